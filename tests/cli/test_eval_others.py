"""`agentgym eval` of other libraries' environments: their failures end an episode, and never the run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

import nasty_envs
from agentgym_gym.rollout import EpisodeRecord


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def play(run, tmp_path):
    """Plays an environment by name; returns the result, the records by task, and the summary."""

    def evaluate(name, *options, tasks="0:4", agent="nasty_envs:Says", out="run", **env_kwargs):
        result = run(
            *("eval", f"nasty_envs:nasty/{name}-v0", "--agent", agent, "--tasks", tasks, "--out", out),
            *("--env-kwargs", json.dumps(env_kwargs), *options),
        )
        folder = tmp_path / out
        lines = (folder / "episodes.jsonl").read_text("utf-8").splitlines() if folder.exists() else []
        records = sorted(map(EpisodeRecord.from_json, map(json.loads, lines)), key=lambda r: r.task_id)
        return result, records

    return evaluate


FAULTS = {
    "step exit": "RuntimeError: SystemExit: 3",
    "reset exit": "RuntimeError: SystemExit: 3",
    "reset None": "TypeError: reset should return an observation and an info, not None",
    "reset info": "TypeError: the info should be a mapping, not NoneType",
    "step info": "TypeError: the info should be a mapping, not NoneType",
    "step four": "ValueError: not enough values to unpack (expected 5, got 4)",  # by gymnasium's wrapper
    "step six": "ValueError: too many values to unpack (expected 5",
    "step nan": "ValueError: the reward is nan, not a number that can be summed",
    "step reward": "TypeError: the reward should be a number, not 'much'",
    "step bytes": "TypeError: the observation should be text, not bytes",
    "step array": "TypeError: the observation should be text, not ndarray",
    "step interrupt": "RuntimeError: KeyboardInterrupt",
}


IN_PROCESS = ("reset exit", "step interrupt", "step nan")


@pytest.mark.parametrize(
    ("wrong", "isolate"),
    [
        *((wrong, "thread") for wrong in FAULTS),
        *(pytest.param(wrong, "process", marks=pytest.mark.slow) for wrong in IN_PROCESS),
    ],
)
def test_a_fault_is_of_its_episode(play, wrong, isolate):
    result, records = play("Nasty", "--isolate", isolate, wrong=wrong)
    assert [record.score for record in records] == [2.0, None, 2.0, None]
    fault = records[1].fault
    assert f"{fault['kind']}: {fault['message']}".startswith(FAULTS[wrong])
    assert result.exit_code == 0
    kind, _, message = FAULTS[wrong].partition(": ")
    # The first of two; a slow run has lines of progress, too.
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("fault: "))
    assert line.startswith(f"fault: {kind} in nasty/Nasty-v0, task ")
    assert message in line
    assert f"2 ended by {kind}; not scored." in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("step os._exit", "the environment's process exited with code 9"),
        ("step abort", "the environment's process was killed by SIGABRT"),
    ],
)
def test_a_crash_is_of_its_episode(play, wrong, message):
    _, records = play("Nasty", "--isolate", "process", wrong=wrong)
    assert [record.score for record in records] == [2.0, None, 2.0, None]
    assert records[1].fault == {"kind": "EnvProcessDied", "message": message}


@pytest.mark.slow  # it waits; no call of the others may take as long
def test_a_hang_is_of_its_episode(play):
    options = ("--isolate", "thread", "--env-timeout", 3, "--concurrency", 2)
    _, records = play("Nasty", *options, wrong="step hang")
    assert [record.score for record in records] == [2.0, None, 2.0, None]
    message = "no answer from the environment in 3 s"
    assert records[1].fault == {"kind": "TimeoutError", "message": message}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "isolate", "message"),
    [
        ("make exit", "thread", "cannot create nasty/Nasty-v0: RuntimeError: SystemExit: no licence"),
        ("make exit", "process", "cannot create nasty/Nasty-v0: RuntimeError: SystemExit: no licence"),
        ("make os._exit", "process", "EnvProcessDied: the environment's process exited with code 7"),
        ("", "loop", "isolate='loop' awaits reset and step, and nasty/Nasty-v0 has no coroutine functions"),
    ],
)
def test_one_that_cannot_be_made_ends_the_run_before_it_begins(play, wrong, isolate, message):
    result, records = play("Nasty", "--isolate", isolate, wrong=wrong)
    assert (result.exit_code, records) == (2, [])
    assert message in result.stderr
    assert not Path("run").exists()


def test_a_working_directory_that_changes(play, tmp_path):
    """Also the path of the replayed run, which is relative."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "prices.toml").write_text("[says]\ninput = 1\noutput = 1\n", "utf-8")
    more = ("--prices", "prices.toml")
    for agent, out in (("nasty_envs:Says", "first"), ("replay:first", "second")):
        result, records = play(
            "Nasty", *more, agent=agent, out=out, wrong="step chdir", folder=str(elsewhere)
        )
        assert result.exit_code == 0
        assert [record.score for record in records] == [2.0] * 4
        assert json.loads((tmp_path / out / "summary.json").read_text("utf-8"))["run"]["finished"]
        assert Path.cwd() == tmp_path
        assert f"Written to {tmp_path / out}.\n" in result.stdout
    assert list(elsewhere.iterdir()) == []


@pytest.mark.slow
def test_a_process_has_its_own_working_directory(play, tmp_path):
    _, records = play("Somewhere", "--isolate", "process", "--concurrency", 2)
    places = {record.messages[-1]["content"] for record in records}
    assert {place.partition(" ")[2] for place in places} == {str(tmp_path)}
    processes = {place.partition(" ")[0] for place in places}
    assert str(os.getpid()) not in processes
    assert len(processes) == 2


@pytest.mark.slow
@pytest.mark.parametrize("isolate", ["thread", "process"])
def test_a_wrapper_can_be_registered(play, isolate):
    _, records = play("Wrapped", "--isolate", isolate)
    assert [record.score for record in records] == [2.0] * 4


def test_a_reset_without_a_seed_is_named(play):
    result, records = play("Unseeded")
    assert result.exit_code == 1
    assert "unexpected keyword argument 'seed'" in records[0].fault["message"]
    assert "TypeError in nasty/Unseeded-v0" in result.stderr


@pytest.mark.parametrize("agent", ["nasty_envs:Says", "random"])
def test_an_info_may_have_another_task_id(play, agent):
    _, records = play("Nasty", agent=agent, wrong="task_id")
    assert [(record.task_id, record.score) for record in records] == [(n, 2.0) for n in range(4)]


def test_a_replayed_run_may_have_other_task_ids(play):
    play("Nasty", out="first", wrong="task_id")
    _, records = play("Nasty", agent="replay:first", out="second", wrong="task_id")
    assert [record.score for record in records] == [2.0] * 4


@pytest.mark.slow
@pytest.mark.parametrize("isolate", [None, "loop", "thread", "process"])
def test_coroutines_are_awaited(play, isolate):
    result, records = play(
        "Awaited", *([] if isolate is None else ["--isolate", isolate]), "--env-timeout", 9
    )
    assert result.exit_code == 0
    assert [(record.score, record.success) for record in records] == [(1.0, True)] * 4
    assert records[3].messages[0]["content"] == "Begin 3."


@pytest.mark.slow
@pytest.mark.parametrize("isolate", ["thread", "process"])
def test_capacity(play, isolate, monkeypatch):
    monkeypatch.setattr(nasty_envs.EightSessions, "most", 0)
    _, records = play("EightSessions", "--concurrency", 16, "--isolate", isolate, tasks="0:48")
    assert [record.fault for record in records] == [None] * 48
    assert nasty_envs.EightSessions.most == (8 if isolate == "thread" else 0)
    assert nasty_envs.EightSessions._open == 0


@pytest.mark.slow
def test_one_that_allows_no_concurrent_episode(play):
    _, records = play("OneAtATime", "--concurrency", 4, out="threads")
    assert {record.fault["kind"] for record in records if record.fault} == {"RuntimeError"}
    _, records = play("OneAtATime", "--concurrency", 4, "--isolate", "process", out="processes")
    assert [record.score for record in records] == [2.0] * 4


@pytest.mark.parametrize(
    ("options", "success", "isolate"),
    [
        ((), None, "thread"),
        (("--success-at", 2), True, "thread"),
        (("--success-at", 2.5), False, "thread"),
        pytest.param(("--success-at", 2), True, "process", marks=pytest.mark.slow),
    ],
)
def test_a_return_solves_a_task(play, tmp_path, options, success, isolate):
    _, records = play("Nasty", *options, "--isolate", isolate, tasks="0:2")
    assert [record.success for record in records] == [success] * 2
    facts = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["run"]
    assert facts["options"].get("success_at") == (options[1] if options else None)
    assert (facts["isolate"], facts["env_timeout"]) == (isolate, 900)


def test_a_run_is_resumed_with_the_same_threshold_only(play):
    play("Nasty", "--success-at", 2, tasks="0:2")
    result, _ = play("Nasty", "--success-at", 1, "--resume")
    assert result.exit_code == 2
    assert "options.success_at 2.0, not 1.0" in result.stderr
    result, records = play("Nasty", "--success-at", 2, "--resume", "--isolate", "thread")
    assert (result.exit_code, len(records)) == (0, 4)


@pytest.mark.slow
def test_a_run_file(run, tmp_path):
    (tmp_path / "run.toml").write_text(
        'out = "runs"\ntasks = "0:2"\nsuccess_at = 2\n'
        '[[environments]]\nid = "nasty_envs:nasty/OneAtATime-v0"\nisolate = "process"\nenv_timeout = 60\n'
        '[[environments]]\nid = "nasty_envs:nasty/Nasty-v0"\nsuccess_at = 3\n'
        '[[agents]]\nagent = "nasty_envs:Says"\n',
        "utf-8",
    )
    result = run("eval", "run.toml")
    assert result.exit_code == 0, result.stderr
    assert f"Written to {tmp_path / 'runs'}." in result.stdout
    runs = {
        path.parent.name: json.loads(path.read_text("utf-8")) for path in tmp_path.glob("runs/*/summary.json")
    }
    facts = {
        name: (each["success_rate"], each["run"]["isolate"], each["run"]["env_timeout"])
        for name, each in runs.items()
    }
    assert facts == {
        "OneAtATime-v0-nasty_envs_Says": (1.0, "process", 60),
        "Nasty-v0-nasty_envs_Says": (0.0, None, 900),
    }


@pytest.mark.slow
def test_validate(run):
    options = ("--tasks", "0:2", "--isolate", "process", "--success-at", 2, "--json")
    result = run("validate", "nasty_envs:nasty/Nasty-v0", *options)
    found = json.loads(result.stdout)
    assert (result.exit_code, found["null"]["won"], found["null"]["undecided"]) == (1, 2, 0)


def test_the_kinds_of_faults_that_are_printed_are_limited(run, monkeypatch):
    """Each kind is printed once, and 20 of 25."""

    class Fails(gymnasium.Env):
        observation_space = action_space = gymnasium.spaces.Text(9)

        def reset(self, *, seed=None, options=None):
            raise type(f"Kind{seed % 25:02}", (Exception,), {})("x" * 1000)

    monkeypatch.setitem(gymnasium.registry, "Fails-v0", EnvSpec("Fails-v0", entry_point=Fails))
    result = run("eval", "Fails-v0", "--agent", "random", "--tasks", "0:50", "--concurrency", 1)
    lines = [line for line in result.stderr.splitlines() if line.startswith("fault: ")]
    assert [line.split()[1] for line in lines] == [f"Kind{number:02}" for number in range(20)]
    assert lines[7] == f"fault: Kind07 in Fails-v0, task 7: {'x' * 300}"[:300]
