"""What `agentgym verl check` finds out about an environment by playing it."""

from __future__ import annotations

import asyncio

import pytest

import nasty_envs
import needs
from verl_bridge.recipes import _check_episodes as check_episodes
from verl_bridge.recipes import check as check_folder
from verl_bridge.recipes import seeded, write_rows
from verl_bridge.recipes._check_episodes import Case, examine
from verl_bridge.tasks import EnvTask

pytestmark = pytest.mark.usefixtures("pools_closed")


def check(name, isolate=None, *, timeout=30.0, seeds=(0, 2), at_once=True, **env_kwargs):
    """Return the findings of two tasks, each as status, text and advice."""
    tasks = [EnvTask(f"nasty_envs:nasty/{name}-v0", env_kwargs, seed=seed, isolate=isolate) for seed in seeds]
    case, other, *_ = *(Case(f"row {at}", task) for at, task in enumerate(tasks)), None
    work = examine(case, timeout, other=other, at_once=at_once)
    findings, trial = asyncio.run(work)
    assert {finding.check for finding in findings} == {"environment"}
    return [(finding.status, finding.text, finding.advice) for finding in findings], trial.observations


@pytest.mark.parametrize("isolate", [None, "process"])
def test_one_in_which_nothing_is_wrong(isolate):
    ((status, text, _),), observations = check("Nasty", isolate)
    assert status == "ok"
    assert "nasty/Nasty-v0 begins and answers; 6 characters at first; reset 0." in text
    assert text.endswith(" s")
    assert observations == ["Begin.", "Go on.", "Go on."]


@pytest.mark.parametrize("isolate", [None, "loop", "thread"])
def test_coroutines(isolate):
    ((status, _, _),), _ = check("Awaited", isolate)
    assert status == "ok"


def test_one_that_fails_beside_another():
    (first, (status, text, advice)), observations = check("OneAtATime")
    assert (first[0], status) == ("ok", "problem")
    assert (
        "fails when two episodes run at once, but not one by one: RuntimeError: another environment" in text
    )
    assert "isolate: process beside env_id (it is thread now)" in advice
    assert len(observations) == 3
    assert [status for status, _, _ in check("OneAtATime", at_once=False)[0]] == ["ok"]
    assert [status for status, _, _ in check("OneAtATime", "process")[0]] == ["ok"]


def test_one_that_hangs_beside_another():
    (_, (status, text, advice)), _ = check("HangsBesideAnother", timeout=1)
    assert status in {"problem", "warning"}
    assert "at once" in text
    assert "isolate: process" in advice


def test_one_that_has_room_for_one():
    (_, (status, text, _)), _ = check("OneSession")
    assert (status, text) == (
        "skipped",
        "nasty_envs:nasty/OneSession-v0 has room for one: two episodes at once were not played",
    )


@pytest.mark.parametrize("seeds", [(0, 2), (0,)])
def test_one_that_shares_a_generator(seeds):
    (_, (status, text, advice)), _ = check("GlobalRandom", seeds=seeds)
    assert status == "problem"
    assert "at once mix up: one observes" in text
    assert "where it observed" in text
    assert "isolate: process" in advice
    assert [status for status, _, _ in check("GlobalRandom", "process", seeds=seeds)[0]] == ["ok"]


@pytest.mark.parametrize("isolate", ["thread", "process"])
def test_one_that_is_not_reproducible(isolate):
    (_, (status, text, advice)), _ = check("NoSeed", isolate)
    assert status == "warning"
    assert "is not reproducible: with the same seed, options and replies it observes" in text
    assert "GRPO" in advice


def test_one_that_draws_its_tasks_need_not_be_reproducible():
    assert [status for status, _, _ in check("NoSeed", seeds=(None, None))[0]] == ["ok"]


def test_a_slow_one(monkeypatch):
    monkeypatch.setattr(check_episodes, "SLOW_STEP", 0.1)
    (_, (status, text, advice)), _ = check("Slow")
    assert status == "warning"
    assert "a step of nasty_envs:nasty/Slow-v0 takes 0.1" in text
    assert "a reset 0.0" in text
    assert "isolate: process" in advice


@pytest.mark.parametrize(
    ("name", "seeds", "wrong", "text", "advice"),
    [
        (
            "Nasty",
            (1, 0),
            "step array",
            "TypeError: the observation should be text, not ndarray",
            "adapters.md",
        ),
        (
            "Nasty",
            (1, 0),
            "step exit",
            "RuntimeError: SystemExit: 3",
            "start its server, or correct env_kwargs",
        ),
        (
            "Nasty",
            (0, 1),
            "step exit",
            "RuntimeError: SystemExit: 3",
            "start its server, or correct env_kwargs",
        ),
        ("MainThread", (0,), "", "signal only works in main thread", "isolate: process"),
    ],
)
def test_one_that_fails_alone(name, seeds, wrong, text, advice):
    (*_, (status, found, given)), _ = check(name, seeds=seeds, wrong=wrong)
    assert status == "problem"
    row = next((row for row, seed in enumerate(seeds) if seed % 2), 0)
    assert f"row {row}: nasty_envs:nasty/{name}-v0 failed: " in found
    assert text in found
    assert advice in given
    assert ("server" in given) is ("server" in advice)


@pytest.mark.slow
def test_one_that_wants_the_main_thread_has_one_in_a_process():
    assert [status for status, _, _ in check("MainThread", "process")[0]] == ["ok"]


def test_no_more_than_two_are_open(monkeypatch):
    monkeypatch.setattr(nasty_envs.EightSessions, "most", 0)
    check("EightSessions")
    assert nasty_envs.EightSessions.most == 2


@pytest.mark.parametrize("isolate", [None, "process"])
def test_the_isolation_is_that_of_the_recipe(tmp_path, isolate):
    """Of its yaml, or of a row."""
    yaml = pytest.importorskip("yaml", reason=needs.reason("yaml"))
    parquet_of = [seeded("nasty_envs:nasty/OneAtATime-v0", range(8), "Play.") for _ in range(2)]
    (tmp_path / "data").mkdir()
    for part, rows in zip(("train", "val"), parquet_of, strict=True):
        write_rows(tmp_path / f"data/{part}.parquet", rows)
    loop = {"name": "gym_env", "_target_": "verl_bridge.agent_loop.GymAgentLoop"}
    loop |= {"env_id": "nasty_envs:nasty/OneAtATime-v0"} | ({"isolate": isolate} if isolate else {})
    (tmp_path / "agent_loop.yaml").write_text(yaml.safe_dump([loop]))
    config = {
        "data": {f"{part}_files": f"{tmp_path}/data/{part}.parquet" for part in ("train", "val")},
        "actor_rollout_ref": {
            "rollout": {"agent": {"agent_loop_config_path": f"{tmp_path}/agent_loop.yaml"}}
        },
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    findings, _ = check_folder(tmp_path, timeout=30)
    found = {finding.status for finding in findings if finding.check == "environment"}
    assert found == ({"ok"} if isolate else {"ok", "problem"})
