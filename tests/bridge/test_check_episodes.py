"""What `check` finds out about an environment by playing it."""

from __future__ import annotations

import pytest

import inside_bridge
import nasty_envs
from checked import checked, write_tasks

pytestmark = pytest.mark.usefixtures("pools_closed")


@pytest.fixture
def check(tmp_path):
    """Returns the findings of a folder with two tasks, each as status, text and advice."""

    def play(name, isolate=None, *, timeout=30.0, seeds=(0, 2), **env_kwargs):
        loop = {"env_kwargs": env_kwargs, **({"isolate": isolate} if isolate else {})}
        folder = write_tasks(tmp_path, f"nasty_envs:nasty/{name}-v0", seeds, **loop)
        findings = checked(folder, "environment", timeout=timeout)
        return [(finding.status, finding.text, finding.advice) for finding in findings]

    return play


@pytest.mark.parametrize("isolate", [None, "process"])
def test_one_in_which_nothing_is_wrong(check, isolate):
    ((status, text, _),) = check("Nasty", isolate)
    assert status == "ok"
    assert "nasty/Nasty-v0 begins and answers; 6 characters at first; reset 0." in text
    assert text.endswith(" s")


@pytest.mark.parametrize("isolate", [None, "loop", "thread"])
def test_coroutines(check, isolate):
    ((status, _, _),) = check("Awaited", isolate)
    assert status == "ok"


def test_an_environment_that_fails_next_to_another(check):
    (first, (status, text, advice)) = check("OneAtATime")
    assert (first[0], status) == ("ok", "problem")
    assert "fails when two episodes run at once, but not one by one" in text
    assert "RuntimeError: another environment" in text
    assert "isolate: process beside env_id (it is thread now)" in advice


def test_an_environment_that_hangs_next_to_another(check):
    (_, (status, text, advice)) = check("HangsBesideAnother", timeout=1)
    assert status in {"problem", "warning"}
    assert "at once" in text
    assert "isolate: process" in advice


def test_one_that_has_room_for_one(check):
    (_, (status, text, _)) = check("OneSession")
    assert (status, "nasty/OneSession-v0 has room for one" in text) == ("skipped", True)


@pytest.mark.parametrize("seeds", [(0, 2), (0,)])
def test_one_that_shares_a_generator(check, seeds):
    (_, (status, text, advice)) = check("GlobalRandom", seeds=seeds)
    assert status == "problem"
    assert "at once mix up: one observes" in text
    assert "where it observed" in text
    assert "isolate: process" in advice


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seeds"), [("OneAtATime", (0, 2)), ("GlobalRandom", (0, 2)), ("GlobalRandom", (0,))]
)
def test_in_a_separate_process_nothing_is_wrong(check, name, seeds):
    assert [status for status, _, _ in check(name, "process", seeds=seeds)] == ["ok"]


@pytest.mark.parametrize("isolate", ["thread", pytest.param("process", marks=pytest.mark.slow)])
def test_one_that_is_not_reproducible(check, isolate):
    (_, (status, text, advice)) = check("NoSeed", isolate)
    assert status == "warning"
    assert "is not reproducible: with the same seed" in text
    assert "GRPO" in advice


def test_one_that_draws_its_tasks_need_not_be_reproducible(check):
    assert [status for status, _, _ in check("NoSeed", seeds=(None, None))] == ["ok"]


def test_a_slow_one(check, monkeypatch):
    inside_bridge.call_steps_slow_from(monkeypatch, 0.1)
    (_, (status, text, advice)) = check("Slow")
    assert status == "warning"
    assert "a step of nasty_envs:nasty/Slow-v0 takes 0.1" in text
    assert "a reset 0.0" in text
    assert "isolate: process" in advice


NOT_TEXT = "TypeError: the observation should be text, not ndarray"
EXIT = "RuntimeError: SystemExit: 3"


@pytest.mark.parametrize(
    ("name", "seeds", "wrong", "text", "advice"),
    [
        ("Nasty", (1, 0), "step array", NOT_TEXT, "adapters.md"),
        ("Nasty", (1, 0), "step exit", EXIT, "start its server, or correct env_kwargs"),
        ("Nasty", (0, 1), "step exit", EXIT, "start its server, or correct env_kwargs"),
        ("MainThread", (0,), "", "signal only works in main thread", "isolate: process"),
    ],
)
def test_one_that_fails_alone(check, name, seeds, wrong, text, advice):
    (*_, (status, found, given)) = check(name, seeds=seeds, wrong=wrong)
    assert status == "problem"
    row = next((row for row, seed in enumerate(seeds) if seed % 2), 0)
    assert f"row {row}: nasty_envs:nasty/{name}-v0 failed: " in found
    assert text in found
    assert advice in given
    assert ("server" in given) is ("server" in advice)


@pytest.mark.slow
def test_one_that_wants_the_main_thread_has_one_in_a_process(check):
    assert [status for status, _, _ in check("MainThread", "process")] == ["ok"]


def test_no_more_than_two_are_open_and_two_turns_are_played(check, monkeypatch):
    replies, step = [], nasty_envs.EightSessions.step
    counted = lambda env, reply: replies.append(reply) or step(env, reply)  # noqa: E731
    monkeypatch.setattr(nasty_envs.EightSessions, "step", counted)
    monkeypatch.setattr(nasty_envs.EightSessions, "most", 0)
    check("EightSessions")
    assert nasty_envs.EightSessions.most == 2
    assert replies == [""] * 2 * 4


@pytest.mark.parametrize("isolate", [None, pytest.param("process", marks=pytest.mark.slow)])
def test_a_row_sets_the_isolation(tmp_path, isolate):
    folder = write_tasks(
        tmp_path, "nasty_envs:nasty/OneAtATime-v0", of_rows={"isolate": isolate} if isolate else {}
    )
    found = {finding.status for finding in checked(folder, "environment", timeout=30)}
    assert found == ({"ok"} if isolate else {"ok", "problem"})


@pytest.mark.parametrize(
    ("env_id", "history", "named"),
    [
        ("Count", "turns:1,summary", True),
        ("Summarizing", "turns:1,summary", False),
        ("Count", "turns:1,summary:counting_env:summarize", False),
        ("Count", "turns:1,summary:no_such_module:f", False),
        ("Count", "turns:1", False),
    ],
)
def test_an_environment_without_the_summaries_of_the_history(tmp_path, env_id, history, named):
    folder = write_tasks(tmp_path, f"counting_env:bridge/{env_id}-v0", rows="turn", history=history)
    found = [(finding.status, finding.text) for finding in checked(folder, "history")]
    text = f'has no info["history_summary"] in its first turns, which history={history!r} requires'
    assert [(status, text in finding) for status, finding in found] == [("warning", True)] * named
