"""The report: the content of the file. How it looks and behaves is tested in a browser: test_report_page."""

import base64
import hashlib
import json
import random
import re
import shlex
from pathlib import Path

import pytest

import command_line
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import read_run, summarise, write_report
from doc_blocks import blocks_of
from report_contents import Page
from report_runs import HOSTILE, episode, large_run, rich_episodes, write_run

ROOT = Path(__file__).resolve().parents[2]
SECRET = "hunter2"  # noqa: S105 - none


def report(tmp_path, *runs, **options):
    """Write a report; return it and its page."""
    out = tmp_path / "report.html"
    written = write_report(runs or [tmp_path / "runs"], out, **options)
    assert written.size == out.stat().st_size
    return written, Page(out)


def test_the_page_contains_every_episode_as_recorded(tmp_path):
    first = list(rich_episodes("one", random.Random(1)))  # noqa: S311
    second = [episode(task, agent="two") for task in range(3)]
    write_run(tmp_path / "runs" / "a", first)
    write_run(tmp_path / "runs" / "b" / "c", second)
    written, page = report(tmp_path)
    assert (written.runs, written.episodes) == (2, 99)
    assert [run["name"] for run in page.runs] == ["a", "b/c"]
    for run, records in zip(page.runs, (first, second), strict=True):
        found = page.episodes(run)
        assert len(found) == len(records)
        for at, record in enumerate(records):
            whole = json.loads(json.dumps(record.to_json()))
            kept = {key: whole[key] for key in whole if key in found[at]}
            assert found[at] == kept
            assert {"messages", "steps", "rewards", "fault", "agent_fault", "ending"} <= set(found[at])
            cells = run["episodes"]
            assert (cells["task"][at], cells["sample"][at]) == (record.task_id, record.sample)
            assert cells["goals"][cells["goal"][at]] == record.goal
            assert cells["endings"][cells["ending"][at]] == record.ending
            assert (cells["success"][at], cells["score"][at]) == (record.success, record.score)


def test_the_figures_match_summarise(tmp_path):
    folder = write_run(tmp_path / "a", rich_episodes("one", random.Random(3)), finished=True)  # noqa: S311
    _, page = report(tmp_path, folder)
    figures = json.loads(json.dumps(summarise(read_run(folder).records).to_json()))
    shown = page.runs[0]["summary"]
    assert {key: shown[key] for key in figures} == figures


def test_faults_of_the_environment_and_of_the_agent_are_counted_apart(tmp_path):
    fault, busy = {"kind": "ServerError", "message": "500"}, {"kind": "ModelBusy", "message": "429"}
    records = [
        episode(0),
        episode(1, fault=fault),
        episode(2, agent_fault=busy),
        episode(3, agent_fault=busy),
    ]
    _, page = report(tmp_path, write_run(tmp_path / "a", records))
    (run,) = page.runs
    assert run["episodes"]["fault"] == [None, "fault", "agent_fault", "agent_fault"]
    assert (run["summary"]["faults"], run["summary"]["agent_faults"]) == (
        {"ServerError": 1},
        {"ModelBusy": 2},
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_that_others_wrote_is_html(tmp_path, name):
    text = HOSTILE[name]
    step = {"action": text, "reasoning": text, "tool_calls": [{"name": text, "arguments": text, "id": text}]}
    record = episode(0, agent=text, goal=text, messages=({"role": text, "content": text},), steps=(step,))
    plain = write_run(tmp_path / "plain", [episode(0)], options={})
    folder = write_run(tmp_path / "run", [record], options={text: text}, system_prompt=text, agent=text)
    _, expected = report(tmp_path, plain, title="title")
    _, page = report(tmp_path, folder, title=text or "title")
    assert page.outline == expected.outline
    (run,) = page.runs
    assert (run["system_prompt"], run["facts"]["options"]) == (text, {text: text})
    (found,) = page.episodes(run)
    assert (found["messages"][0]["content"], found["steps"][0]["action"]) == (text, text)


def test_the_page_loads_nothing(tmp_path):
    _, page = report(tmp_path, write_run(tmp_path / "a", [episode(0)]))
    asked = {value for _, has in page.elements for name, value in has.items() if name in {"src", "href"}}
    assert asked == {"#grid"}
    assert not [name for _, has in page.elements for name in has if name.startswith("on") or name == "style"]
    directives = dict(each.split(" ", 1) for each in page.policy.split("; "))
    assert directives["default-src"] == "'none'"
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        digest = base64.b64encode(hashlib.sha256(page.texts[tag].encode()).digest()).decode()
        assert directives[directive] == f"'sha256-{digest}'"
    code = page.texts["script"]
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|fetch\(", code)
    assert set(re.findall(r"\w+://[^\"]*", code)) == {"http://www.w3.org/2000/svg"}  # a name, and no address


def test_no_secret_is_shown(tmp_path):
    facts = {
        "server": [f"http://me:{SECRET}@127.0.0.1:8000/v1"],
        "engine": f"vllm serve m --api http://{SECRET}@host/x",
        "headers": {"Authorization": SECRET},
        "options": {"headers": {"X": SECRET}, "max_turns": 3},
    }
    _, page = report(tmp_path, write_run(tmp_path / "a", [episode(0)], **facts))
    (run,) = page.runs
    assert SECRET not in json.dumps(page.index)
    assert run["facts"]["server"] == ["http://***@127.0.0.1:8000/v1"]
    assert run["facts"]["options"] == {"max_turns": 3}


def test_a_run_without_episodes_and_one_without_a_summary(tmp_path):
    write_run(tmp_path / "runs" / "a", [], env_id="agentgym/Maze-v0", agent="model", finished=False)
    (write_run(tmp_path / "runs" / "b", [episode(0)]) / "summary.json").unlink()
    written, page = report(tmp_path)
    empty, other = page.runs
    assert (written.runs, written.episodes) == (2, 1)
    assert (empty["env"], empty["agent"], empty["starts"]) == ("agentgym/Maze-v0", "model", [])
    assert (other["facts"], other["agent"]) == ({}, "someone")


def test_a_run_that_is_named_twice_is_there_once(tmp_path):
    folder = write_run(tmp_path / "runs" / "a", [episode(0)])
    written, _ = report(tmp_path, tmp_path / "runs", folder, folder / "episodes.jsonl")
    assert written.runs == 1


def test_numbers_that_json_or_javascript_do_not_have(tmp_path):
    folder = write_run(
        tmp_path / "a", [episode(2**60), episode(3)], nothing=float("nan"), many=[float("inf")]
    )
    _, page = report(tmp_path, folder)
    (run,) = page.runs
    assert run["episodes"]["task"] == [3, str(2**60)]
    assert run["facts"] == {"nothing": None, "many": [None]}


def test_a_file_that_is_not_a_report_is_not_overwritten(tmp_path):
    folder = write_run(tmp_path / "a", [episode(0)])
    episodes = (folder / "episodes.jsonl").read_bytes()
    with pytest.raises(BadOption, match="is not a report"):
        write_report([folder], folder / "episodes.jsonl")
    assert (folder / "episodes.jsonl").read_bytes() == episodes
    out = tmp_path / "report.html"
    write_report([folder], out, title="first")
    write_report([folder], out, title="second")
    assert "<title>second</title>" in out.read_text("utf-8")


@pytest.mark.parametrize("out", [".", "no/folder/report.html"])
def test_where_it_cannot_be_written(tmp_path, out):
    folder = write_run(tmp_path / "a", [episode(0)])
    with pytest.raises(BadOption, match="cannot write to"):
        write_report([folder], tmp_path / out)
    assert {each.name for each in tmp_path.iterdir()} == {"a"}


def test_where_there_is_no_run(tmp_path):
    with pytest.raises(BadOption, match="no run"):
        write_report([tmp_path], tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_an_episode_takes_less_than_six_kilobytes(tmp_path):
    """So 5,000 episodes take less than 30 MB; test_report_page.py opens these."""
    few = write_report([large_run(tmp_path / "a", episodes=16)], tmp_path / "a.html")
    more = write_report([large_run(tmp_path / "b", episodes=80)], tmp_path / "b.html")
    assert (more.size - few.size) / 64 < 6000


def test_the_title_is_who_played_what(tmp_path):
    for number, agent in enumerate(("oracle", "random")):
        for env in ("Maze", "TextCraft"):
            records = [episode(0, agent=agent, env_id=f"agentgym/{env}-v0")]
            write_run(tmp_path / "runs" / f"{env}-{number}", records)
    _, page = report(tmp_path)
    assert page.index["title"] == page.texts["title"] == "oracle and random on Maze and TextCraft"


@pytest.mark.slow
def test_the_commands_on_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _view = blocks_of((ROOT / "docs" / "report.md").read_text("utf-8"), "console")
    results = [command_line.run(*shlex.split(line)[1:]) for line in code.splitlines()]
    assert [result.exit_code for result in results] == [0] * 5, [result.stderr for result in results]
    assert "report.html: 4 runs, 100 episodes" in results[-1].stdout
    rates = [each["summary"]["success_rate"] for each in Page(tmp_path / "report.html").runs]
    assert [rate == 1.0 for rate in rates] == [True, False, True, False]


def test_the_page_has_the_recorded_cost_and_the_world(tmp_path):
    served_by = "agentgym-servers/2 (WebShop, seed 0)"
    folder = write_run(tmp_path / "a", [episode(0)], served_by=[served_by])
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    (folder / "summary.json").write_text(json.dumps({**summary, "timing": {"cost": 1.25}}), "utf-8")
    foreign = write_run(tmp_path / "b", [episode(0, env_id="gem/Guess-v0")])
    write_report([folder, foreign], tmp_path / "report.html")
    first, second = Page(tmp_path / "report.html").runs
    assert (first["summary"]["timing"]["cost"], first["world"]) == (1.25, "local world 2, seed 0")
    assert (second["summary"]["timing"]["cost"], second["world"]) == (None, None)
