"""Runs that are stated and played from Python."""

from __future__ import annotations

import asyncio
import json
import sys
import types
from dataclasses import replace

import pytest

import command_line
import inside
import needs
from agentgym_gym import errors
from agentgym_gym.evaluate import (
    ChatOptions,
    RandomAgent,
    Run,
    RunLimits,
    RunResults,
    find_runs,
    play,
    play_async,
    protocol_runs,
    read_run,
)
from fake_model import asked, completion
from fake_server import FakeServer, in_turn

COUNT = "counting_env:bridge/Count-v0"
USAGE = {"prompt_tokens": 100, "completion_tokens": 20}
UNSTABLE = {
    *("seconds", "agent_seconds", "env_seconds", "wall_seconds", "written", "process", "counters"),
    *("path", "queued"),
}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def chat(started):
    """Makes a model's server, and the options of a model on it."""

    def make(*answers, **options):
        server = started(FakeServer(in_turn(*answers)))
        return server, ChatOptions(model="tiny", base_url=f"{server.url}/v1", **options)

    return make


def stable(value):
    """Return a JSON value without what differs from run to run."""
    if isinstance(value, dict):
        return {name: stable(each) for name, each in value.items() if name not in UNSTABLE}
    return [stable(each) for each in value] if isinstance(value, list) else value


def written(folder):
    """Return the files of a run, without what differs from run to run."""
    episodes = (folder / "episodes.jsonl").read_text("utf-8").splitlines()
    return stable([*map(json.loads, episodes), json.loads((folder / "summary.json").read_text("utf-8"))])


def test_a_run_writes_the_files_of_the_command(tmp_path, textcraft_url):
    settings = {"tasks": "0:3", "server": textcraft_url, "max_turns": 4, "action_format": "tags"}
    (result,) = play(
        Run("TextCraft", "random", seed=3, samples=2, **settings),
        limits=RunLimits(concurrency=1),
        out=tmp_path / "python",
    )
    options = ("--tasks", "0:3", "--server", textcraft_url, "--max-turns", 4, "--action-format", "tags")
    words = ("--agent", "random", "--seed", 3, "--samples", 2, "--concurrency", 1, *options)
    assert command_line.run("eval", "TextCraft", *words, "--out", tmp_path / "command").exit_code == 0
    assert written(tmp_path / "python") == written(tmp_path / "command")
    assert (result.path, result.finished, result.stopped_by) == (tmp_path / "python", True, None)
    read = read_run(tmp_path / "python")
    assert [each.to_json() for each in result.episodes] == [each.to_json() for each in read.episodes]
    assert result.summary.to_json() == read.summary.to_json()


def test_several_runs_have_folders_by_their_names(tmp_path, textcraft_url):
    runs = [Run("TextCraft", agent, tasks=[2, 5], server=textcraft_url) for agent in ("oracle", "random")]
    results = play(*runs, Run(COUNT, RandomAgent, tasks=range(2), name="callable"), out=tmp_path / "runs")
    assert isinstance(results, RunResults)
    names = ["TextCraft-v0-oracle", "TextCraft-v0-random", "Count-v0-callable"]
    assert [result.path.name for result in results] == names
    assert [[each.task_id for each in result.episodes] for result in results] == [[2, 5], [2, 5], [0, 1]]
    assert len(find_runs(tmp_path / "runs")) == 3
    assert results[0].facts["tasks"] == "2,5"
    assert results[2].facts["tasks"] == "0:2"


def test_without_a_folder_it_is_below_runs_and_the_latest_is_resumed(tmp_path, textcraft_url):
    run = Run("TextCraft", "oracle", limit=2, server=textcraft_url)
    (first,) = play(run)
    assert first.path.parent == tmp_path / "runs"
    lines = first.path / "episodes.jsonl"
    lines.write_text(lines.read_text("utf-8").splitlines(keepends=True)[0], "utf-8")
    (again,) = play(run, resume=True)
    assert (again.path, again.finished, len(again.episodes)) == (first.path, True, 2)
    own = tmp_path / "own"
    assert play(Run("TextCraft", "oracle", limit=1, server=textcraft_url, folder=own))[0].path == own


def test_a_folder_with_another_run_is_refused(tmp_path, textcraft_url):
    run = Run("TextCraft", "oracle", limit=1, server=textcraft_url, folder=tmp_path / "run")
    play(run)
    with pytest.raises(errors.BadOption, match="exists"):
        play(run)
    other = replace(run, max_turns=3)
    with pytest.raises(errors.BadOption, match="max_turns"):
        play(other, resume=True)


def test_a_budget_ends_a_run_whose_results_are_returned(tmp_path, chat):
    server, model = chat(completion("4", usage=USAGE))
    run = Run(COUNT, model, tasks="3:13", max_turns=2, folder=tmp_path / "run")
    (result,) = play(run, limits=RunLimits(max_tokens_total=7 * 120, concurrency=1))
    assert len(asked(server)) == 7
    assert (len(result.episodes), result.finished, result.stopped_by) == (3, False, "max_tokens_total")
    assert "840 tokens" in result.stopped
    assert result.facts["usage"]["requests"] == 7
    assert read_run(tmp_path / "run").stopped_by == "max_tokens_total"
    (result,) = play(run, resume=True)
    assert (len(result.episodes), result.finished, result.stopped_by) == (10, True, None)


def test_a_budget_is_shared_by_runs(tmp_path, chat):
    _, model = chat(completion("4", usage=USAGE))
    runs = [Run(COUNT, model, tasks="3:5", max_turns=2, name=name) for name in ("one", "two")]
    first, second = play(*runs, limits=RunLimits(max_tokens_total=6 * 120, concurrency=1), out=tmp_path)
    assert (len(first.episodes), len(second.episodes)) == (2, 1)


def test_many_episodes_of_a_model_need_a_confirmation(chat, monkeypatch):
    inside.limit_unasked(monkeypatch, 3)
    server, model = chat(completion("4", usage=USAGE))
    run = Run(COUNT, model, tasks="0:4", max_turns=1)
    with pytest.raises(errors.BadOption, match="confirmed"):
        play(run)
    assert not asked(server)
    assert len(play(run, confirmed=True)[0].episodes) == 4


def test_an_agent_that_fails_again_and_again_is_raised_and_the_episodes_are_kept(tmp_path):
    class Broken:
        name = "broken"

        def reset(self, env, observation, info):
            raise RuntimeError("no reply")

        def act(self, observation, info):
            """Is never called."""

    with pytest.raises(errors.AgentFault, match="no reply"):
        play(Run(COUNT, Broken, tasks="0:50", folder=tmp_path / "run"))
    kept = read_run(tmp_path / "run")
    assert len(kept.records) >= 20
    assert kept.summary.scored == 0
    assert "no reply" in kept.stopped


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"env": "Nowhere"}, "Nowhere"),
        ({"agent": "nobody"}, "nobody"),
        ({"agent": ChatOptions()}, "model"),
        ({"agent": ChatOptions(model_path="x")}, "launch"),
        ({"agent": ChatOptions(launch="vllm")}, "model_path"),
        ({"agent": ChatOptions(model="x", top_p=0.5, sampling={"top_p": 1})}, "top_p=0.5"),
        ({"tasks": "0:2", "positions": "0:2"}, "positions="),
        ({"agent": RandomAgent(0)}, "callable"),
        (
            {"agent": ChatOptions(model="x", temperature=-1)},
            "temperature=-1 should be a finite number, 0 or more",
        ),
        ({"agent": ChatOptions(model="x", top_p=2)}, "top_p=2 should be a finite number from 0 to 1"),
        ({"agent": ChatOptions(model="x", max_tokens=1.5)}, "max_tokens=1.5 should be a whole number"),
        ({"agent": ChatOptions(model="x", keep_reasoning=1)}, "keep_reasoning=1"),
        ({"limit": 0}, "limit=0"),
        ({"limit": "5"}, "limit='5'"),
        ({"samples": True}, "samples=True"),
        ({"isolate": "moon"}, "isolate='moon' should be one of loop"),
        ({"action_format": "prose"}, "action_format='prose'"),
        ({"sample": 2, "limit": 2}, "limit=2"),
        ({"items": "x.json"}, "items="),
        ({"protocol": "nowhere"}, "protocol="),
        ({"env_timeout": 3}, "env_timeout=3"),
        ({"success_at": float("nan")}, "success_at=nan"),
        ({"samples": 0}, "samples=0"),
    ],
)
def test_a_wrong_setting_is_named_before_anything_is_written(tmp_path, settings, words):
    with pytest.raises(errors.SetupError) as caught:
        play(Run(**{"env": "TextCraft", "agent": "oracle", **settings}))
    assert words in str(caught.value)
    assert "--" not in str(caught.value)
    assert not any(tmp_path.rglob("*.json*"))


def test_two_runs_of_one_name_are_refused(tmp_path):
    run = Run("TextCraft", "oracle", limit=1)
    with pytest.raises(errors.BadOption, match="another name"):
        play(run, run)


@pytest.mark.parametrize("concurrency", [0, "4", None])
def test_limits_are_checked(concurrency):
    limits = RunLimits(concurrency=concurrency)
    if concurrency is None:
        limits = RunLimits(max_tokens_total=0)
    with pytest.raises(errors.BadOption, match="should be a whole number, 1 or more"):
        play(Run("TextCraft", "oracle"), limits=limits)


def test_limits_without_a_model_are_refused():
    with pytest.raises(errors.BadOption, match="max_tokens_total=5"):
        play(Run("TextCraft", "oracle"), limits=RunLimits(max_tokens_total=5))


def test_a_protocol_states_settings_and_deviations_are_recorded(tmp_path, textcraft_url):
    run = Run("TextCraft", "oracle", protocol="quick", limit=2, server=textcraft_url)
    (result,) = play(run, out=tmp_path / "run")
    recorded = result.facts["protocol"]
    assert recorded["name"] == "quick"
    assert [each["setting"] for each in recorded["deviations"]] == ["limit"]
    assert "limit 2" in result.protocol
    named = {each.env.rpartition(":")[2] for each in protocol_runs("quick", "oracle")}
    assert "agentgym/TextCraft-v0" in named


def test_records_as_a_table(textcraft_url):
    pyarrow = pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))
    (result,) = play(Run("TextCraft", "oracle", limit=2, server=textcraft_url))
    table = result.to_arrow()
    assert isinstance(table, pyarrow.Table)
    assert table.num_rows == 2
    assert table.column("success").to_pylist() == [True, True]
    assert json.loads(table.column("messages")[0].as_py())[0]["role"] == "user"


def test_a_data_frame_has_the_same_rows(textcraft_url, monkeypatch):
    (result,) = play(Run("TextCraft", "oracle", limit=2, server=textcraft_url))
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=list))
    assert [row["task_id"] for row in result.to_pandas()] == [each.task_id for each in result.episodes]


def test_a_notebook_shows_escaped_tables(textcraft_url):
    runs = [
        Run("TextCraft", "oracle", limit=1, server=textcraft_url, name="<b>bold</b>"),
        Run("TextCraft", "random", limit=1, server=textcraft_url, max_turns=1),
    ]
    results = play(*runs)
    shown = results._repr_html_()
    assert shown.count("<tr>") == 3
    assert "&lt;b&gt;bold" in shown
    assert "<b>" not in shown
    assert results[1]._repr_html_().count("<tr>") == 2


def test_in_an_event_loop_it_is_awaited(textcraft_url):
    run = Run("TextCraft", "oracle", limit=2, server=textcraft_url)

    async def main():
        with pytest.raises(errors.BadOption, match="play_async"):
            play(run)
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0.01)

        beating = asyncio.ensure_future(beat())
        episodes = []
        (result,) = await play_async(run, on_episode=episodes.append)
        beating.cancel()
        return beats, len(episodes), len(result.episodes)

    beats, *counts = asyncio.run(main())
    assert counts == [2, 2]
    assert beats > 2


def test_a_cancelled_task_ends_the_run_and_keeps_its_episodes(tmp_path, textcraft_url):
    folder = tmp_path / "run"
    run = Run("TextCraft", "oracle", tasks="0:400", server=textcraft_url, folder=folder)

    async def main():
        loop, enough = asyncio.get_running_loop(), asyncio.Event()

        def note(record):
            loop.call_soon_threadsafe(enough.set)

        playing = asyncio.ensure_future(play_async(run, on_episode=note))
        await asyncio.wait_for(enough.wait(), 60)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing

    asyncio.run(main())
    kept = read_run(folder)
    assert 0 < len(kept.records) < 400
    assert (kept.finished, kept.stopped) == (False, "interrupted")
    (result,) = play(
        Run("TextCraft", "oracle", tasks="0:400", server=textcraft_url, folder=folder), resume=True
    )
    assert (result.finished, len(result.episodes)) == (True, 400)
