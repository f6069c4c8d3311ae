"""What inspect_ai reads in an exported run matches the records."""

from __future__ import annotations

import json
import math
import zipfile
from datetime import datetime
from pathlib import Path

import pytest

import inside
import needs
from agentgym_gym import ToolCall
from agentgym_gym.evaluate import EpisodeRecord, summarise
from command_line import run

pytest.importorskip("inspect_ai", reason=needs.reason("inspect_ai"))

from inspect_ai.event import ErrorEvent, InfoEvent, ModelEvent, ScoreEvent
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries


def export(*folders, out, options=()):
    """Export runs by the command; return the paths that it prints, and what it printed of an error."""
    result = run("export", *folders, "--to", "inspect", "--out", out, *options)
    assert result.exit_code == (2 if result.stderr else 0)
    lines = result.stdout.splitlines()
    assert all(line.startswith("Written to ") for line in lines)
    return [Path(line.removeprefix("Written to ").removesuffix(".")) for line in lines], result.stderr


@pytest.fixture
def log(folder, tmp_path):
    """Exports records, and reads the log by inspect_ai's own reader."""

    def read(records, **facts):
        (path,), _ = export(folder(records, **facts), out=tmp_path / "logs")
        return read_eval_log(str(path), resolve_attachments=True)

    return read


def by_epoch(log):
    return {(sample.id, sample.epoch): sample for sample in log.samples}


def texts(messages):
    return [(message.role, message.text) for message in messages]


def model_events(sample):
    return [event for event in sample.events if isinstance(event, ModelEvent)]


def test_the_conversation_matches_the_record(log, record):
    records = [record(task, sample) for task in (0, 7) for sample in (0, 1)]
    samples = by_epoch(log(records))
    assert set(samples) == {(0, 1), (0, 2), (7, 1), (7, 2)}
    for each in records:
        sample = samples[each.task_id, each.sample + 1]
        said = [(message["role"], message["content"]) for message in each.messages]
        assert texts(sample.messages) == [("system", "You are playing a game."), *said]
        assert sample.input == each.goal
        assert sample.output.completion == each.replies[-1]
        assert sample.turn_count == each.turns


def test_each_reply_is_an_event_with_what_the_model_was_given(log, record):
    steps = (
        {"agent_seconds": 1.0, "env_seconds": 0.25, "retries": 2, "finish_reason": "stop"},
        {
            "agent_seconds": 0.5,
            "env_seconds": 0.25,
            "finish_reason": "length",
            "parse_error": "NoAction",
            "ignored_actions": ["inventory"],
        },
    )
    one = record(steps=steps, env_seconds=1.0, agent_seconds=1.5, ending="gave_up")
    (sample,) = log([one]).samples
    first, second = model_events(sample)
    assert texts(first.input) == texts(sample.messages[:2])
    assert texts(second.input) == texts(sample.messages[:4])
    assert [event.output.completion for event in (first, second)] == list(one.replies)
    assert [event.output.stop_reason for event in (first, second)] == ["stop", "max_tokens"]
    assert (first.retries, second.retries) == (2, None)
    began = datetime.fromisoformat("2026-11-20T12:00:00+00:00")
    at = [((event.timestamp - began).total_seconds(), event.working_time) for event in (first, second)]
    assert at == [(0.5, 1.0), (1.75, 0.5)]  # the reset took half a second
    assert (sample.total_time, sample.working_time) == (2.5, 2.5)
    told = [event.data for event in sample.events if isinstance(event, InfoEvent)]
    assert told == [
        {"turn": 2, "reward": 1.0, "parse_error": "NoAction", "ignored_actions": ["inventory"]},
        {"last_observation": "Crafted it"},
    ]


def test_tokens_are_counted_as_inspect_ai_counts_them(log, record):
    steps = (
        {"prompt_tokens": 100, "completion_tokens": 20, "reasoning_tokens": 5, "cached_tokens": 60},
        {"prompt_tokens": 130, "completion_tokens": 10},
    )
    read = log([record(steps=steps), record(1)])
    usage = by_epoch(read)[0, 1].model_usage["some-model"]
    assert (usage.input_tokens, usage.input_tokens_cache_read) == (170, 60)
    assert (usage.output_tokens, usage.reasoning_tokens, usage.total_tokens) == (30, 5, 260)
    assert read.stats.model_usage["some-model"] == usage
    assert by_epoch(read)[1, 1].model_usage == {}  # not known is not zero


def test_thoughts_and_function_calls_have_their_places(log, record):
    steps = (
        {
            "reasoning": "I need a stick.",
            "tool_calls": [{"name": "get", "arguments": '{"count": 1}', "id": "call-9"}],
        },
        {"tool_calls": [{"name": "craft", "arguments": "{not json"}, {"name": "get", "arguments": "[1]"}]},
    )
    (sample,) = log([record(steps=steps)]).samples
    _, _, first, got, second, crafted = sample.messages
    assert [(part.type, getattr(part, "reasoning", None)) for part in first.content] == [
        ("reasoning", "I need a stick."),
        ("text", None),
    ]
    (call,) = first.tool_calls
    assert (call.id, call.function, call.arguments, call.parse_error) == ("call-9", "get", {"count": 1}, None)
    assert (got.role, got.tool_call_id, got.function, got.text) == ("tool", "call-9", "get", "Got 1 stick")
    bad, listed = second.tool_calls
    assert (bad.arguments, listed.arguments) == ({"text": "{not json"}, {"text": "[1]"})
    assert "not JSON:" in bad.parse_error
    assert "not a JSON object" in listed.parse_error
    assert crafted.tool_call_id == bad.id


def test_the_observation_answers_the_call_that_was_played(log, record):
    calls = [
        {"name": "fly", "arguments": "{}", "id": "a"},
        {"name": "get", "arguments": '{"count": 1}', "id": "b"},
        {"name": "inventory", "arguments": "{}", "id": "c"},
    ]
    ignored = [str(ToolCall("fly", "{}")), "inventory"]
    step = {"tool_calls": calls, "ignored_actions": ignored, "played_call": 1}
    (sample,) = log([record(steps=(step,))]).samples
    assert [each.id for each in sample.messages[2].tool_calls] == ["a", "b", "c"]
    assert (sample.messages[3].tool_call_id, sample.messages[3].function) == ("b", "get")


def test_a_fault_is_not_a_zero(log, record):
    records = [
        record(0),
        record(1, score=0.5),
        record(2, fault="ServerTimeout"),
        record(3, agent_fault="ModelBusy", messages=({"role": "user", "content": "Goal."},), turns=0),
        record(4, success=None),
    ]
    read = log(records)
    samples = by_epoch(read)
    assert {name: score.value for name, score in samples[1, 1].scores.items()} == {"success": 0, "score": 0.5}
    for task, reason, message in (
        (2, "fault", "ServerTimeout: the server failed"),
        (3, "agent_fault", "ModelBusy: the model failed"),
    ):
        sample = samples[task, 1]
        assert sample.error.message == message
        assert [event.error.message for event in sample.events if isinstance(event, ErrorEvent)] == [message]
        for score in sample.scores.values():
            assert math.isnan(score.value)
            assert (score.reason, score.explanation) == (reason, message)
    assert math.isnan(samples[4, 1].scores["success"].value)
    assert (samples[4, 1].scores["score"].value, samples[4, 1].error) == (1.0, None)
    success, score = read.results.scores
    assert (success.scored_samples, success.unscored_samples) == (2, 3)
    assert (score.scored_samples, score.unscored_samples) == (3, 2)
    assert success.metrics["accuracy"].value == 0.5
    assert score.metrics["mean"].value == pytest.approx(2.5 / 3)
    assert (read.results.total_samples, read.results.completed_samples) == (5, 3)


def test_the_success_rate_matches_the_summary(log, record):
    records = [
        *(
            record(task, sample, score=float((task + sample) % 3 == 0))
            for task in range(5)
            for sample in (0, 1)
        ),
        record(9, fault="LeaseLost"),
    ]
    results = log(records).results
    summary = summarise([each for each in records if each.scored])
    assert 0 < summary.success_rate < 1
    assert results.scores[0].metrics["accuracy"].value == summary.success_rate
    assert results.scores[1].metrics["mean"].value == summary.mean_score
    assert results.headline.metric == "accuracy"
    assert results.metadata["summary"]["success_rate"] == summary.success_rate


def test_scores_and_endings_can_be_read_without_the_conversations(folder, record, tmp_path):
    records = [record(0), record(1, terminated=False, truncated=True, score=0.0, turns=20)]
    (path,), _ = export(folder(records), out=tmp_path / "logs")
    first, second = read_eval_log_sample_summaries(str(path))
    assert (first.metadata["ending"], second.metadata["ending"]) == ("terminated", "truncated")
    assert (first.limit, second.limit) == (None, "turn")
    assert [each.scores["success"].value for each in (first, second)] == [1, 0]
    (listed,) = list_eval_logs(str(tmp_path / "logs"))
    assert listed.task == "agentgym/TextCraft-v0"


def test_the_log_has_the_run_s_metadata(log, record):
    spec = log([record(0), record(1, 1)], agent_settings={"model": "m", "temperature": 0.5}).eval
    assert (spec.task, spec.model) == ("agentgym/TextCraft-v0", "some-model")
    assert spec.task_args == {
        "tasks": "0:2",
        "samples": 2,
        "seed": 0,
        "action_format": "react",
        "max_turns": 20,
    }
    assert (spec.revision.commit, spec.revision.dirty) == ("0123abc", True)
    assert spec.packages == {"python": "3.11.7", "agentgym-gym": "0.1.0"}
    assert spec.metadata["agent_settings"] == {"model": "m", "temperature": 0.5}
    assert (spec.config.epochs, spec.dataset.samples, spec.dataset.sample_ids) == (2, 2, [0, 1])
    assert spec.created == "2026-11-20T12:00:00+00:00"


def test_it_has_no_passwords_and_headers(folder, record, tmp_path):
    secrets = {
        "server": ["http://me:hunter2@games.test"],
        "headers": {"Authorization": "Bearer hunter2"},
        "agent_settings": {"base_url": "https://me:hunter2@host/v1", "headers": {"X": "hunter2"}},
    }
    (path,), _ = export(folder([record()], **secrets), out=tmp_path / "logs")
    with zipfile.ZipFile(path) as file:
        parts = [file.read(name) for name in file.namelist()]
    assert any(b"some-model" in part for part in parts)
    assert not any(b"hunter2" in part for part in parts)
    assert any(b"***@host" in part for part in parts)


HOSTILE = [
    "<script>window.attacked = true</script></script>",
    "\u202eright to left\u2066",
    "attachment://0123456789abcdef0123456789abcdef",
    "![](http://a.test/x.png) [x](javascript:attacked) $$x$$",
    "\x00\x1b[31m\x7f",
    "x" * 1_000_000,
    '"}],"status":"error"',
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_comes_back_as_it_was(log, record, text):
    said = (
        {"role": "user", "content": text},
        {"role": "assistant", "content": text},
        {"role": "user", "content": text},
    )
    steps = ({"reasoning": text, "tool_calls": [{"name": text, "arguments": json.dumps({text: text})}]},)
    one = record(goal=text, messages=said, steps=steps, agent=text, agent_fault=None, ending=text)
    read = log([one], system_prompt=text, agent=text)
    (sample,) = read.samples
    assert [message.text for message in sample.messages] == [text] * 4
    assert sample.input == text
    assert sample.messages[2].content[0].reasoning == text
    assert sample.messages[2].tool_calls[0].arguments == {text: text}
    assert sample.metadata["goal"] == text
    assert read.eval.model == text
    assert read.eval.viewer.trust_content is False
    (event,) = model_events(sample)
    assert event.output.completion == text


def test_half_characters_are_replaced(log, record):
    half = "a\ud800b"
    said = ({"role": "user", "content": half}, {"role": "assistant", "content": half})
    steps = ({"reasoning": half, "tool_calls": [{"name": half, "arguments": '{"\\ud800": "\\ud800"}'}]},)
    fault = {"kind": "X", "message": half}
    one = record(goal=half, agent=half, messages=said, steps=steps, turns=1, agent_fault="X")
    one = EpisodeRecord.from_json({**one.to_json(), "agent_fault": fault})
    (sample,) = log([one], agent=half, options={half: [half]}).samples
    assert sample.messages[-1].text == "a?b"
    assert sample.messages[-1].tool_calls[0].arguments == {"?": "?"}
    assert sample.error.message == "X: a?b"


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":' * 400 + "1" + "}" * 400,
        '{"a":' * 100_000,
        '{"a": NaN}',
        '{"a": ' + "9" * 5_000 + "}",
        '{"a": ' + "9" * 300 + "}",
        '{"a": 1e999}',
        "",
        "null",
    ],
    ids=range(8),
)
def test_no_arguments_of_a_call_keep_a_log_from_being_written(log, record, arguments):
    (sample,) = log([record(steps=({"tool_calls": [{"name": "get", "arguments": arguments}]},))]).samples
    (call,) = sample.messages[2].tool_calls
    assert call.function == "get"
    assert call.arguments


def test_a_long_run_becomes_several_logs(folder, record, tmp_path, monkeypatch):
    inside.limit_exported_log(monkeypatch, 5)
    records = [record(task, sample, score=float(task < 2)) for task in range(4) for sample in (0, 1)]
    paths, _ = export(folder(records), out=tmp_path / "logs")
    logs = [read_eval_log(str(path)) for path in paths]
    # The samples of a task stay together.
    assert [len(each.samples) for each in logs] == [4, 4]
    assert [each.eval.dataset.sample_ids for each in logs] == [[0, 1], [2, 3]]
    assert [each.results.scores[0].metrics["accuracy"].value for each in logs] == [1.0, 0.0]
    assert {each.results.metadata["summary_of_the_run"]["success_rate"] for each in logs} == {0.5}
    assert len({each.eval.run_id for each in logs}) == 1
    assert len({each.eval.eval_id for each in logs}) == 2
    assert len({sample.uuid for each in logs for sample in each.samples}) == 8


def test_a_task_with_more_samples_than_fit_in_a_log_is_divided(folder, record, tmp_path, monkeypatch):
    inside.limit_exported_log(monkeypatch, 3)
    records = [record(0, sample) for sample in range(7)] + [record(1)]
    paths, _ = export(folder(records), out=tmp_path / "logs")
    logs = [read_eval_log(str(path)) for path in paths]
    found = [(sample.id, sample.epoch) for each in logs for sample in each.samples]
    assert sorted(found) == [(each.task_id, each.sample + 1) for each in records]
    assert max(len(each.samples) for each in logs) <= 3


def test_a_log_that_is_there_is_not_written_over(folder, record, tmp_path):
    first, second = folder([record()], name="a"), folder([record(score=0.0)], name="b")
    out = tmp_path / "logs"
    (path,), _ = export(second, out=out)
    before = path.read_bytes()
    paths, error = export(first, second, out=out)
    assert paths == []
    assert f"{path} exists" in error
    assert "--overwrite" in error
    assert [each.name for each in out.iterdir()] == [path.name]
    assert path.read_bytes() == before
    assert len(export(first, second, out=out, options=["--overwrite"])[0]) == 2
    assert sorted(each.suffix for each in out.iterdir()) == [".eval", ".eval"]


def test_a_run_that_cannot_be_exported_is_an_error_with_the_reason(folder, tmp_path, record):
    empty = folder([])
    paths, error = export(empty, out=tmp_path / "logs")
    assert (paths, f"{empty} has no episodes" in error) == ([], True)
    (tmp_path / "file").write_text("")
    paths, error = export(folder([record()], name="other"), out=tmp_path / "file")
    assert (paths, f"cannot write to {tmp_path / 'file'}" in error) == ([], True)


def test_no_facts_and_no_seconds_keep_a_log_from_being_written(log, record):
    deep = {}
    for _ in range(300):
        deep = {"a": [deep]}
    facts = {"deep": deep, "versions": 3, "git": {"commit": 5}, "options": "x", "written": "once"}
    read = log([record(seconds=1e300, steps=({"agent_seconds": 1e308, "env_seconds": -5.0},))], **facts)
    assert len(model_events(read.samples[0])) == 2
    assert (read.eval.revision, read.eval.packages) == (None, {})


def test_an_unfinished_run_is_not_a_success(log, record):
    assert log([record()], finished=False).status == "cancelled"


def test_a_run_without_a_summary_is_exported(folder, record, tmp_path):
    path = folder([record()])
    (path / "summary.json").unlink()
    (log,), _ = export(path, out=tmp_path / "logs")
    read = read_eval_log(str(log))
    assert (read.eval.task, read.eval.model, read.eval.revision) == (
        "agentgym/TextCraft-v0",
        "some-model",
        None,
    )


def test_the_scores_are_shown_in_the_transcript(log, record):
    (sample,) = log([record(score=0.25)]).samples
    shown = {event.scorer: event.score.value for event in sample.events if isinstance(event, ScoreEvent)}
    assert shown == {"success": 0.0, "score": 0.25}


def test_each_run_is_exported_once(folder, record, tmp_path):
    for name in ("a", "b"):
        folder([record()], name=name)
    paths, _ = export(tmp_path / "runs", tmp_path / "runs" / "a", out=tmp_path / "logs")
    assert paths == sorted((tmp_path / "logs").iterdir())
    assert [path.name.rpartition("-")[0] for path in paths] == ["run-a", "run-b"]


def test_the_log_names_the_world(log, record):
    served_by = "agentgym-servers/3 (TextCraft)"
    made = log([record(0)], served_by=[served_by])
    assert made.eval.task_display_name == "TextCraft-v0 (local world 3)"
    assert (made.eval.metadata["world"], made.eval.metadata["served_by"]) == ("local world 3", [served_by])


def test_the_log_of_another_librarys_environment_names_no_world(log, record):
    made = log([record(0, env_id="gem/Guess-v0")], env_id="gem/Guess-v0")
    assert (made.eval.task_display_name, made.eval.metadata["world"]) == ("Guess-v0", None)
