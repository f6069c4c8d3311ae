"""Folders that the bridge writes while a training goes on, read as runs."""

from __future__ import annotations

import json
import sys

import pytest

import programs
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import EpisodeRecord, find_runs, read_training, write_report
from report_contents import Page
from report_runs import episode, write_run
from trainings import PROMPT, line, write_training

FAULT = {"kind": "ServerTimeout", "message": "no reply"}


def steps(run):
    return [record.step for record in run.records]


def reported(*paths, last=None):
    """Write a report next to a folder; return the output, and the runs of its page."""
    out = paths[0].parent / "report.html"
    return write_report(paths, out, last=last), Page(out).runs


def test_an_episode_is_read_as_it_was_written(tmp_path):
    said = line(3, validation=True)
    write_training(tmp_path, [said], session="a")
    (run,) = read_training(tmp_path)
    (record,) = run.records
    assert record == EpisodeRecord.from_json({**said, "session": "a"})
    assert record.to_json() == {**said, "session": "a"}
    assert (record.step, record.validation, record.session) == (3, True, "a")
    assert run.facts == {
        "env_id": "agentgym/TextCraft-v0",
        "agent": "tiny",
        "system_prompt": PROMPT,
        "phase": "validation",
    }


def test_an_evaluation_writes_no_steps():
    plain = {key: value for key, value in line(1).items() if key not in {"step", "validation", "ended"}}
    assert EpisodeRecord.from_json(plain).to_json() == plain


@pytest.mark.parametrize(("key", "value"), [("step", "1"), ("step", True), ("validation", 1), ("session", 2)])
def test_invalid_values_of_a_training_are_refused(tmp_path, key, value):
    write_training(tmp_path, [line(1)])
    (file,) = tmp_path.glob("episodes-*.jsonl")
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}) + "\n")
    with pytest.raises(BadOption, match=rf"line 1: '{key}' cannot be"):
        read_training(tmp_path)


def test_environments_trainings_and_validations_are_apart(tmp_path):
    lines = [line(1), line(1, validation=True), line(1, env_id="agentgym/Maze-v0"), line(2)]
    write_training(tmp_path, lines)
    runs = read_training(tmp_path)
    assert [(run.env_id, run.facts["phase"], steps(run)) for run in runs] == [
        ("agentgym/Maze-v0", "training", [1]),
        ("agentgym/TextCraft-v0", "training", [1, 2]),
        ("agentgym/TextCraft-v0", "validation", [1]),
    ]


def test_processes_have_separate_files_and_the_samples_of_a_task_are_numbered(tmp_path):
    for _ in range(3):
        write_training(tmp_path, [line(2, 7), line(1, 7), line(1, 4)])
    assert len(list(tmp_path.glob("episodes-*.jsonl"))) == 3
    (run,) = read_training(tmp_path)
    assert [(each.step, each.task_id, each.sample) for each in run.records] == [
        *((1, 4, sample) for sample in range(3)),
        *((1, 7, sample) for sample in range(3)),
        *((2, 7, sample) for sample in range(3)),
    ]


def test_a_file_that_is_being_written_is_read_up_to_its_last_whole_line(tmp_path):
    write_training(tmp_path, [line(1), line(2)])
    (file,) = tmp_path.glob("episodes-*.jsonl")
    file.write_bytes(file.read_bytes()[:-20])
    (run,) = read_training(tmp_path)
    assert steps(run) == [1]


def test_a_resumed_training_replaces_the_steps_that_it_plays_again(tmp_path):
    first = [line(0, validation=True), *(line(step, score=0.0) for step in (1, 2, 3, 4))]
    first += [line(step, validation=True, score=0.0) for step in (2, 4)]
    write_training(tmp_path, first, session="first")
    again = [line(2, validation=True), line(3), line(4)]  # from the checkpoint of step 2
    again = [{**each, "ended": f"2026-01-02T00:0{each['step']}:00+00:00"} for each in again]
    write_training(tmp_path, again, session="second")
    training, validation = read_training(tmp_path)
    assert [(each.step, each.score) for each in training.records] == [(1, 0.0), (2, 0.0), (3, 1.0), (4, 1.0)]
    assert [(each.step, each.score) for each in validation.records] == [(0, 1.0), (2, 1.0)]


def test_where_the_start_is_not_known_every_episode_stays(tmp_path):
    for _ in range(2):
        write_training(tmp_path, [line(1), line(2)])
    (run,) = read_training(tmp_path)
    assert steps(run) == [1, 1, 2, 2]


def test_the_figures_of_a_step(tmp_path):
    lines = [line(1, 0), line(1, 1, score=0.0, parse_errors={"NoAction": 1}), line(1, 2, fault=FAULT)]
    without = {key: value for key, value in line(9).items() if key != "step"}  # is in the figures of no step
    _, (run,) = reported(write_training(tmp_path / "a", [*lines, line(2, fault=FAULT), without]))
    assert len(run["episodes"]["task"]) == 5
    assert run["by_step"] == {
        "step": [1, 2],
        "episodes": [3, 1],
        "success": [0.5, None],
        "score": [0.5, None],
        "turns": [2, None],
        "parse_errors": [0.25, None],
        "faults": [pytest.approx(1 / 3), 1],
    }


def test_a_run_has_no_figures_of_steps(tmp_path):
    _, (run,) = reported(write_run(tmp_path / "a", [episode(0)]))
    assert run["by_step"]["step"] == []


def test_a_training_is_found_and_is_not_a_run(tmp_path):
    folder = write_training(tmp_path / "a" / "episodes", [line(1)])
    for path in (tmp_path / "a", folder):
        written, (run,) = reported(path)
        assert (written.runs, run["episodes"]["step"]) == (1, [1])
    with pytest.raises(BadOption, match="contains a training, not a run"):
        find_runs(folder)
    with pytest.raises(BadOption, match="has no training"):
        read_training(tmp_path)


def test_a_report_of_a_training_and_a_run(tmp_path):
    write_training(tmp_path / "training", [line(1), line(2)])
    write_run(tmp_path / "run", [EpisodeRecord.from_json(line(1))])
    written = write_report([tmp_path, tmp_path / "training"], tmp_path / "report.html")
    assert (written.runs, written.episodes) == (2, 3)


@pytest.mark.slow
def test_a_process_that_is_killed_loses_no_episode_that_ended(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from trainings import line, write_training\n"
        "def lines():\n"
        "    yield line(1); yield line(2)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_training(Path(sys.argv[1]), lines())\n"
    )
    done = programs.run([sys.executable, "-c", code, str(tmp_path)], env=programs.environment())
    assert done.returncode == -9
    (run,) = read_training(tmp_path)
    assert steps(run) == [1, 2]


def test_the_episodes_of_the_last_steps_with_the_figures_of_all(tmp_path):
    written, (run,) = reported(write_training(tmp_path / "a", [line(step) for step in (1, 2, 3, 5)]), last=2)
    assert (written.episodes, run["episodes"]["step"], run["by_step"]["step"]) == (2, [3, 5], [1, 2, 3, 5])
    assert run["summary"]["episodes"] == 1  # of the last step
