"""`agentgym rescore`."""

from __future__ import annotations

import sys

import pytest

from agentgym_gym.catalogue import find
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.evaluate import DIVERGED, EpisodeRecord, RunFolder, evaluate, load_oracle, read_run
from agentgym_gym.testing import ScriptedAgent

ENV_ID = "agentgym/TextCraft-v0"
OPTIONS = {"split": None, "action_format": "react", "parser": "default", "on_unknown": None, "max_turns": 20}


@pytest.fixture
def keep(textcraft_url):
    """Plays tasks on a real server, and keeps the run."""

    def keep(folder, agent, tasks):
        with (
            AgentGymEnv("TextCraft", server=textcraft_url) as env,
            RunFolder(folder, {"env_id": ENV_ID, "agent": agent.name, "options": OPTIONS}) as kept,
        ):
            evaluate(env, agent, tasks, on_episode=kept.add)

    return keep


def test_the_command_writes_a_new_run(run, tmp_path, keep):
    keep(tmp_path / "runs" / "a", ScriptedAgent("Action: inventory", "no action"), range(3))
    keep(tmp_path / "runs" / "b", load_oracle(find("TextCraft")), range(2))
    before = (tmp_path / "runs/a/episodes.jsonl").read_bytes()
    result = run("rescore", tmp_path / "runs", "--out", tmp_path / "new", "--parser", "agentgym")
    assert result.exit_code == 0
    assert "diverged" in result.stdout
    assert "NoAction: 3 before, 0 after." in result.stdout
    assert (
        "  task 0, sample 0, turn 2 sent nothing when it was played, and is now read as ''\n" in result.stdout
    )
    new = read_run(tmp_path / "new" / "a")
    assert [(each.ending, each.turns, each.score) for each in new.records] == [(DIVERGED, 1, None)] * 3
    assert new.facts["options"] == {**OPTIONS, "parser": "agentgym"}
    facts = new.facts["rescored"]
    assert (facts["from"], facts["options_played"]) == (str(tmp_path / "runs" / "a"), OPTIONS)
    assert (facts["diverged"], facts["different"], facts["replies"]) == (3, 3, 6)
    assert (facts["examples"][0]["played"], facts["examples"][0]["read"]) == (None, "")
    assert (facts["errors_before"], facts["errors_after"]) == ({"NoAction": 3}, {})
    assert facts["finished_played"] is True
    assert [each.score for each in read_run(tmp_path / "new" / "b").records] == [1.0, 1.0]
    assert (tmp_path / "runs/a/episodes.jsonl").read_bytes() == before
    again = run("rescore", tmp_path / "runs", "--out", tmp_path / "new")
    assert (again.exit_code, "is not overwritten" in again.stderr) == (2, True)
    inside = run("rescore", tmp_path / "runs", "--out", tmp_path / "runs" / "a" / "x")
    assert (inside.exit_code, "is inside the run" in inside.stderr) == (2, True)


def test_the_command_takes_a_rule(run, tmp_path, keep, monkeypatch):
    keep(tmp_path / "a", load_oracle(find("TextCraft")), range(2))
    (tmp_path / "my_rule_of_turns.py").write_text(
        "def few(episode):\n    return 1 / episode.turns, episode.turns < 2\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    result = run("rescore", "a/episodes.jsonl", "--out", "b", "--score", "my_rule_of_turns:few")
    assert result.exit_code == 0, result.stderr
    assert "The replies were not parsed again." in result.stdout
    new = read_run(tmp_path / "b")
    assert [each.score for each in new.records] == [1 / each.turns for each in new.records]
    assert new.facts["rescored"]["score"] == "my_rule_of_turns:few"


def test_nothing_of_a_reply_reaches_the_terminal_as_a_command(run, tmp_path):
    said = ({"role": "assistant", "content": "Action: \x1b[31mdance"},)
    with RunFolder(tmp_path / "a", {"env_id": ENV_ID, "agent": "x", "options": OPTIONS}) as folder:
        folder.add(
            EpisodeRecord(
                env_id=ENV_ID,
                agent="x",
                task_id=0,
                goal=None,
                score=1.0,
                success=True,
                return_=1.0,
                turns=1,
                terminated=True,
                truncated=False,
                parse_errors={},
                fault=None,
                seconds=0.5,
                rewards=(1.0,),
                messages=said,
                steps=({"action": "\x1b[2Jget"},),
            )
        )
    result = run("rescore", tmp_path / "a", "--out", tmp_path / "b")
    assert result.exit_code == 0
    assert "task 0, sample 0, turn 1" in result.stdout
    assert "\x1b" not in result.stdout
