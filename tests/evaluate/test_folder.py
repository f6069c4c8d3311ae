"""The folder of a run."""

import json
import subprocess
import sys

import pytest

from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import RunFolder, read_records

RUN = {"env_id": "agentgym/TextCraft-v0", "agent": "someone", "seed": 0, "options": {"max_turns": 20}}


def summary(path):
    return json.loads((path / "summary.json").read_text("utf-8"))


def test_a_run_is_written_down_as_it_happens(tmp_path, record):
    path = tmp_path / "a" / "run"
    with RunFolder(path, RUN) as folder:
        assert summary(path)["run"]["finished"] is False
        for i in range(3):
            folder.add(record(i))
            assert read_records(path / "episodes.jsonl")[0][-1] == record(i)
    written = summary(path)
    assert (written["episodes"], written["success_rate"]) == (3, 1.0)
    assert written["run"]["finished"] is True
    assert written["run"]["options"] == {"max_turns": 20}
    assert written["run"]["wall_seconds"] > 0
    assert set(written["run"]["versions"]) == {"python", "agentgym-gym", "gymnasium", "httpx", "numpy"}
    assert sorted(p.name for p in path.iterdir()) == [".lock", "episodes.jsonl", "summary.json"]


def test_a_run_is_never_overwritten(tmp_path, record):
    with RunFolder(tmp_path, RUN) as folder:
        folder.add(record())
    before = (tmp_path / "episodes.jsonl").read_bytes()
    with pytest.raises(BadOption, match="set resume"):
        RunFolder(tmp_path, RUN)
    assert (tmp_path / "episodes.jsonl").read_bytes() == before


def test_resume_plays_what_is_left_and_counts_all(tmp_path, record):
    with RunFolder(tmp_path, RUN) as folder:
        folder.add(record(0))
        folder.add(record(1, fault="ServerTimeout"))
        folder.add(record(2, fault="ServerTimeout"))
    with (tmp_path / "episodes.jsonl").open("a") as file:
        file.write('{"env_id": "agentgym/Te')  # killed while writing
    with RunFolder(tmp_path, RUN, resume=True) as folder:
        episodes = [(task, 0) for task in range(4)]
        assert folder.remaining(episodes) == [(3, 0)]
        assert folder.remaining(episodes, retry_faulted=True) == [(1, 0), (2, 0), (3, 0)]
        folder.add(record(1, score=0.0))
        folder.add(record(2, fault="ServerFull"))
        folder.add(record(3))
    written = summary(tmp_path)
    assert (written["episodes"], written["scored"], written["faults"]) == (4, 3, {"ServerFull": 1})
    assert written["success_rate"] == pytest.approx(2 / 3)
    assert [r.task_id for r in read_records(tmp_path / "episodes.jsonl")[0]] == [0, 1, 2, 1, 2, 3]


def test_a_run_that_was_killed_and_resumed_adds_up(tmp_path, record):
    with RunFolder(tmp_path, RUN) as folder:
        folder.add(record(0, counters={"requests": 5, "faults": {}}))
        folder.add(record(1, fault="ServerTimeout", counters={"requests": 3, "faults": {"ServerTimeout": 1}}))
        (tmp_path / "summary.json").unlink()  # of a process that was killed there is none to go by
    (tmp_path / "summary.json").unlink()
    with RunFolder(tmp_path, RUN, resume=True) as folder:
        folder.add(record(1, counters={"requests": 4, "faults": {}}))
    counters = summary(tmp_path)["timing"]["counters"]
    assert (counters["episodes"], counters["uncounted"], counters["requests"]) == (3, 0, 12)
    assert counters["faults"] == {"ServerTimeout": 1}
    assert summary(tmp_path)["episodes"] == 2


def test_resume_where_nothing_lies_begins(tmp_path, record):
    with RunFolder(tmp_path, RUN, resume=True) as folder:
        folder.add(record())
    assert summary(tmp_path)["episodes"] == 1


@pytest.mark.parametrize("change", [{"agent": "another"}, {"seed": 1}, {"options": {"max_turns": 30}}])
def test_resume_of_something_else_is_refused(tmp_path, record, change):
    with RunFolder(tmp_path, RUN) as folder:
        folder.add(record())
    with pytest.raises(BadOption, match=f"has a run with {next(iter(change))}"):
        RunFolder(tmp_path, {**RUN, **change}, resume=True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"run": 3}', "[" * 100_000])
def test_resume_with_an_invalid_summary(tmp_path, record, text):
    with RunFolder(tmp_path, RUN) as folder:
        folder.add(record())
    (tmp_path / "summary.json").write_text(text)
    with pytest.raises(BadOption, match="not the summary of a run"):
        RunFolder(tmp_path, RUN, resume=True)


def test_a_bad_line_is_not_torn(tmp_path, record):
    with RunFolder(tmp_path, RUN) as folder:
        folder.add(record())
    with (tmp_path / "episodes.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(BadOption, match="line 2"):
        RunFolder(tmp_path, RUN, resume=True)


def test_an_interrupted_run_keeps_what_was_done(tmp_path, record):
    def play(folder):
        folder.add(record())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), RunFolder(tmp_path, RUN) as folder:
        play(folder)
    written = summary(tmp_path)
    assert (written["episodes"], written["run"]["finished"]) == (1, False)


def test_a_run_that_played_nothing_leaves_the_folder_free(tmp_path, record):
    with pytest.raises(BadOption), RunFolder(tmp_path, RUN):
        raise BadOption("no server")
    with RunFolder(tmp_path, RUN) as folder:
        folder.add(record())
    assert summary(tmp_path)["run"]["finished"] is True


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadOption, match="cannot write to"):
        RunFolder(tmp_path / "file" / "run", RUN)


@pytest.mark.slow  # a separate program
def test_evaluation_needs_no_command_line():
    # Forbidden rather than looked for afterwards: httpx imports rich where it finds it.
    code = "import sys; sys.modules.update(rich=None, typer=None, torch=None); import agentgym_gym.evaluate"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_wall_seconds_add_up_over_a_resume(tmp_path, record):
    with RunFolder(tmp_path, RUN) as folder:
        folder.add(record())
    before = summary(tmp_path)
    before["run"]["wall_seconds"] = 1000.0
    (tmp_path / "summary.json").write_text(json.dumps(before), "utf-8")
    with RunFolder(tmp_path, RUN, resume=True) as folder:
        assert folder.seconds >= 1000
    assert summary(tmp_path)["run"]["wall_seconds"] >= 1000
