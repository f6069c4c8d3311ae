"""The tasks of inspect_ai play, score, and leave unscored what a fault ended."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import needs
from agentgym_gym.catalogue import BUILT_IN, find
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.errors import BadOption, UnknownEnvironment
from agentgym_gym.evaluate import evaluate, load_oracle
from agentgym_gym.local_servers import LocalServer
from fake_server import FakeServer

pytest.importorskip("inspect_ai", reason=needs.reason("inspect_ai"))

import inspect_ai
import sniffio
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.tool import ToolCall

from agentgym_gym.evaluate.inspect_task import EPISODE, TASKS, environment_task
from agentgym_gym.evaluate.inspect_task import play as play_solver

# inspect_ai leaves streams open; ignore the warnings here and in later tests.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.usefixtures("garbage_collected"),
]

ACTION = "Thought: look\n\nAction: inventory"


@pytest.fixture
def play(tmp_path):
    """Runs a task with inspect_ai's mock model, which replies what a function makes of the messages."""

    def run(reply, task="agentgym_gym/TextCraft", *, task_args=None, **options):
        def answer(messages, tools, tool_choice, config):
            said = reply(messages)
            output = said if isinstance(said, ModelOutput) else ModelOutput.from_content("mockllm", said)
            output.usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)
            return output

        (log,) = inspect_ai.eval(
            task,
            model=get_model("mockllm/model", custom_outputs=answer),
            task_args=task_args or {},
            log_dir=str(tmp_path / "logs"),
            display="none",
            **options,
        )
        return log

    return run


def values(sample):
    return {name: score.value for name, score in sample.scores.items()}


def turn_of(messages):
    return sum(message.role == "assistant" for message in messages)


@pytest.fixture(scope="module")
def solutions(textcraft_url):
    """What the oracle writes in some tasks of TextCraft, by the first observation."""
    env = AgentGymEnv("TextCraft", server=textcraft_url)
    records = evaluate(env, load_oracle(find("TextCraft")), range(4))
    env.close()
    assert all(record.success for record in records)
    return {record.messages[0]["content"]: record.replies for record in records}


def first_observation(messages):
    return next(message.text for message in messages if message.role == "user")


def test_a_solved_task_is_scored(play, solutions, textcraft_url):
    goals = list(solutions)

    def reply(messages):
        if goals.index(first_observation(messages)) % 2:
            return ACTION
        return solutions[first_observation(messages)][turn_of(messages)]

    log = play(reply, task_args={"tasks": "0:4", "max_turns": 6, "server": textcraft_url}, epochs=2)
    assert log.status == "success"
    assert log.eval.task == "agentgym_gym/TextCraft"
    assert {(sample.id, sample.epoch): values(sample) for sample in log.samples} == {
        (task, epoch): {"success": float(task % 2 == 0), "score": float(task % 2 == 0)}
        for task in range(4)
        for epoch in (1, 2)
    }
    success, score = log.results.scores
    assert (success.name, success.metrics["accuracy"].value) == ("success", 0.5)
    assert (score.name, score.metrics["mean"].value) == ("score", 0.5)
    endings = {sample.id: sample.store[EPISODE]["ending"] for sample in log.samples}
    assert endings == {0: "terminated", 1: "truncated", 2: "terminated", 3: "truncated"}
    env = AgentGymEnv("TextCraft", server=textcraft_url)
    for sample in log.samples:
        assert [message.role for message in sample.messages[:3]] == ["system", "user", "assistant"]
        assert sample.messages[0].text == env.system_prompt
        assert sample.turn_count == sample.store[EPISODE]["turn"]
        assert sample.store[EPISODE]["world"] == "local world 3"
        ending = sample.store[EPISODE]["ending"]
        explanations = {each.explanation for each in sample.scores.values()}
        assert explanations == {f"ended by: {ending}; played on: local world 3"}
    env.close()


CALLED = {"d": "fly", "e": "inventory", "g": "inventory"}


def test_native_tools_are_called(play, solutions, textcraft_url):
    """What does not fit, what is no tool, several calls and none are answered, and the episode goes on."""
    calls = [
        [ToolCall(id="a", function="get", arguments={"count": "many"})],
        [ToolCall(id="b", function="fly", arguments={})],
        [ToolCall(id="c", function="inventory", arguments={}, parse_error="no JSON")],
        [ToolCall(id=name, function=function, arguments={}) for name, function in CALLED.items()],
        [],
        [ToolCall(id="f", function="inventory", arguments={})],
    ]

    def reply(messages):
        made = calls[turn_of(messages)]
        output = ModelOutput.from_content("mockllm", "so be it")
        output.choices[0].message.tool_calls = made or None
        return output

    log = play(reply, task_args={"tasks": 0, "tools": "native", "max_turns": 6, "server": textcraft_url})
    (sample,) = log.samples
    answered = [(message.tool_call_id, message.text) for message in sample.messages if message.role == "tool"]
    assert [name for name, _ in answered] == [*"abc", *CALLED, "f"]
    told = dict(answered)
    assert told["f"] == "Inventory: You are not carrying anything."
    assert told["e"] == told["f"]  # of several calls at once, the first that can be read
    assert told["d"] == told["g"] == "Not carried out: one call per turn; this one was ignored."
    assert "JSON" in told["c"]
    assert told["a"] != told["b"]
    (unread,) = [m for m in sample.messages[2:] if m.role == "user"]
    assert "function" in unread.text
    assert (sample.store[EPISODE]["turn"], values(sample)) == (6, {"success": 0, "score": 0})
    (first, *_) = [event for event in sample.events if event.event == "model"]
    tools = {tool.name: tool.parameters.required for tool in first.tools}
    assert tools["get"] == ["count", "item"]
    assert {"get", "craft", "inventory"} <= set(tools)


def test_a_limit_scores_what_was_reached(play, textcraft_url):
    log = play(lambda _: ACTION, task_args={"tasks": 0, "server": textcraft_url}, message_limit=5)
    (sample,) = log.samples
    assert sample.limit.type == "message"
    assert (sample.store[EPISODE]["ending"], values(sample)) == ("limit", {"success": 0, "score": 0})
    log = play(lambda _: ACTION, task_args={"tasks": 0, "server": textcraft_url}, token_limit=25)
    assert (log.samples[0].limit.type, values(log.samples[0])["score"]) == ("token", 0)


@pytest.mark.parametrize(
    ("stop", "ending"), [("max_tokens", "reply_cut"), ("model_length", "context_overflow")]
)
def test_a_reply_that_was_cut_ends_the_episode(play, textcraft_url, stop, ending):
    cut = ModelOutput.from_content("mockllm", ACTION, stop_reason=stop)
    (sample,) = play(lambda _: cut, task_args={"tasks": 0, "server": textcraft_url}).samples
    assert (sample.store[EPISODE]["ending"], sample.store[EPISODE]["turn"]) == (ending, 0)
    assert values(sample) == {"success": 0, "score": 0}


def assert_unscored(log, kind):
    (sample,) = log.samples
    assert sample.error is None
    assert sample.store[EPISODE]["fault"]["kind"] == kind
    for score in sample.scores.values():
        assert math.isnan(score.value)
        assert (score.reason, score.explanation.split(":")[0]) == ("fault", kind)
    assert [(score.scored_samples, score.unscored_samples) for score in log.results.scores] == [(0, 1)] * 2


def test_a_server_that_is_not_there_leaves_it_unscored(play, counted):
    server = counted()
    server.broken = {"/create"}
    log = play(lambda _: ACTION, task_args={"tasks": 0, "server": server.url})
    assert log.status == "success"
    assert_unscored(log, "ServerError")


def test_a_server_that_ends_in_the_middle_leaves_it_unscored(play):
    server = LocalServer("textcraft")

    def reply(messages):
        if turn_of(messages) == 1:
            server.stop()
        return ACTION

    log = play(reply, task_args={"tasks": 0, "server": server.start()})
    assert_unscored(log, log.samples[0].store[EPISODE]["fault"]["kind"])
    assert log.samples[0].store[EPISODE]["turn"] == 2


def test_every_environment_is_closed(play, counted):
    server = counted()
    replies = iter(range(1_000))

    def reply(messages):
        if next(replies) == 30:
            raise RuntimeError("the model failed")
        return ACTION

    options = {"tasks": "0:8", "server": server.url}
    log = play(reply, task_args=options, message_limit=12, fail_on_error=False, max_samples=4)
    assert sum(sample.error is not None for sample in log.samples) == 1
    assert 1 <= server.most <= 4
    assert server.open == set()


def test_a_sample_that_is_cancelled_closes_its_environment(play, counted):
    server = counted()
    server.held_up = {"/step"}
    log = play(lambda _: ACTION, task_args={"tasks": 0, "server": server.url}, time_limit=2)
    server.let_go.set()
    assert log.samples[0].limit.type == "time"
    assert values(log.samples[0]) == {"success": 0, "score": 0}
    assert server.open == set()


def test_tasks_are_named_by_text_and_by_numbers(textcraft_url):
    def ids(tasks, **options):
        made = environment_task("TextCraft", tasks=tasks, server=textcraft_url, **options)
        return [sample.id for sample in made.dataset]

    assert ids("3") == ids(3) == ids([3]) == [3]
    assert ids(["1", "5:7"]) == ids("1,5:7") == ids([1, 5, 6]) == [1, 5, 6]
    everything = find("TextCraft").splits
    assert ids("all") == list(everything.get("test", next(iter(everything.values()))))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": 620}, "YAML parses as the number 620"),
        ({"tasks": "x"}, "cannot be read"),
        ({"split": "no"}, "should be one of"),
        ({"tools": "hammer"}, "should be 'text' or 'native'"),
        ({"action_format": "no"}, "no"),
        ({"max_turns": -1}, "max_turns"),
        ({"server": "http://me:hunter2@games.test"}, "AGENTGYM_TEXTCRAFT_URL"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_played(options, message):
    with pytest.raises(BadOption, match=message) as raised:
        environment_task("TextCraft", **options)
    assert "hunter2" not in str(raised.value)


def test_another_event_loop_is_refused():
    before = sniffio.current_async_library_cvar.set("trio")
    try:
        with pytest.raises(BadOption, match="require asyncio"):
            play_solver("TextCraft")(None, None).send(None)
    finally:
        sniffio.current_async_library_cvar.reset(before)


def test_there_is_a_task_for_each_environment():
    assert list(TASKS) == [known.name for known in BUILT_IN]
    with pytest.raises(UnknownEnvironment):
        environment_task("Nowhere")


def model_server(request):
    """OpenAI's chat protocol, of a model that always looks into its inventory."""
    if request.path != "/v1/chat/completions":
        return 404, {"error": {"message": "there is nothing else"}}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request.json["model"],
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ACTION}}
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }


def test_the_command_of_inspect_ai_finds_it_from_any_folder(tmp_path, textcraft_url):
    # In a folder that has one of the library's name.
    (tmp_path / "agentgym_gym" / "TextCraft").mkdir(parents=True)
    with FakeServer(model_server) as server:
        ended = subprocess.run(
            [
                *(Path(sys.executable).with_name("inspect"), "eval", "agentgym_gym/TextCraft"),
                *("--model", "openai-api/local/tiny", "--display", "plain"),
                *("-T", 'tasks="1:3"', "-T", "max_turns=2", "-T", f"server={textcraft_url}"),
                *("--log-dir", "logs"),
            ],
            cwd=tmp_path,
            env={**os.environ, "LOCAL_API_KEY": "none", "LOCAL_BASE_URL": f"{server.url}/v1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        asked = [request.json for request in server.requests]
    assert ended.returncode == 0, ended.stdout[-3_000:] + ended.stderr[-3_000:]
    (path,) = (tmp_path / "logs").iterdir()
    log = read_eval_log(str(path))
    assert (log.status, sorted(sample.id for sample in log.samples)) == ("success", [1, 2])
    assert log.results.scores[0].metrics["accuracy"].value == 0
    assert log.stats.model_usage["openai-api/local/tiny"].total_tokens == 4 * 7
    assert len(asked) == 4
    assert asked[0]["messages"][0]["role"] == "system"


def test_nothing_else_of_the_library_imports_it():
    program = """
        import importlib, json, pkgutil, sys
        import agentgym_gym
        for found in pkgutil.walk_packages(agentgym_gym.__path__, "agentgym_gym."):
            inspect_ai_itself = found.name.endswith((".inspect_task", "._inspect_samples"))
            if not inspect_ai_itself and "__main__" not in found.name:
                importlib.import_module(found.name)
        print(json.dumps([name for name in sys.modules if name.startswith("inspect_ai")]))
    """
    lines = "\n".join(line[8:] for line in program.splitlines())
    ended = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2_000:]
    assert json.loads(ended.stdout.splitlines()[-1]) == []
