"""What the tool servers share: how an action is read, and how a trial is judged."""

from __future__ import annotations

from typing import Any

import pytest

from agentgym_gym.actions import MAX_ACTION_CHARS
from agentgym_servers._frame.tool_tasks import CallRefused
from agentgym_servers._frame.tools import ActionInput, AnswerTools, ToolError, Trial, parse_action
from clock import cpu_seconds

FORMAT_ERROR = parse_action("")
NOT_PLAIN = "Parameters in action input are not valid, please change your action input."


class Echo(AnswerTools):
    names = ("echo", "check_valid_actions", "finish")
    goal = "Say it."

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def call(self, name: str, arguments: ActionInput) -> object:
        if arguments["x"] == "refused":
            raise CallRefused("There is no x of this name.")
        return name, arguments["x"]


def trial(answer: Any = "a") -> Trial:
    return Trial(7, lambda _: Echo(answer))


def said(text: str) -> str:
    return (
        trial().step(text)["observation"].removeprefix("Observation: ").removesuffix("\nGive me one action.")
    )


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        ("Action: echo with Action Input: {'x': 1}", "('echo', 1)"),
        ('Thought: so\n\nAction: echo with Action Input: {"x": [2]}\n', "('echo', [2])"),
        ("Action: no\nAction: echo with Action Input: {'x': 'y'}", "('echo', 'y')"),
        ("I think Action: echo  with  Action Input:\n{'x': 1}", "('echo', 1)"),
        ("Action: echo with Action Input: {'x': ' with Action Input: '}", "('echo', ' with Action Input: ')"),
        ("", FORMAT_ERROR),
        ("Action: echo", FORMAT_ERROR),
        ("Action: echo with Action Input: {'x': 1}\n\n", FORMAT_ERROR),
        ("Action: echo with Action Input: {\n'x': 1}", FORMAT_ERROR),
        ("echo with Action Input: {}", "ERROR | TypeError(cannot unpack non-iterable NoneType object)"),
        ("Action: other with Action Input: {}", "ERROR | Invalid action: other."),
        ("Action: echo with Action Input: {'y': 1}", "ERROR | KeyError('x')"),
        ("Action: echo with Action Input: 5", "ERROR | TypeError('int' object is not subscriptable)"),
        (
            "Action: check_valid_actions with Action Input: {}",
            "You can use following valid actions: ['echo', 'check_valid_actions', 'finish']",
        ),
    ],
)
def test_an_action_is_read_as_agentgym_reads_it(text, observed):
    assert said(text) == observed


@pytest.mark.parametrize(
    "written",
    [
        "{'x': __import__('os').getpid()}",
        "{'x': 1 + 1}",
        "{'x': true}",
        "{'x': [i for i in (1,)]}",
        "{'x': 0x" + "F" * 9_000 + "}",
        "{'x': " + "9" * 5_000 + "}",
        "{",
        "[" * 9_000,
        "-" * 9_000 + "1",
        "\0",
        "{'x': '" + "y" * MAX_ACTION_CHARS + "'}",
    ],
    ids=lambda written: written[:20],
)
def test_an_input_that_is_no_plain_value_is_not_run_and_not_read(written):
    assert said(f"Action: echo with Action Input: {written}") == f"ERROR | Exception({NOT_PLAIN})"


@pytest.mark.parametrize(
    "text",
    [
        "with Action Input: " * 50_000,
        " " * 1_000_000,
        "with" + " " * 1_000_000,
        "\n" * 1_000_000,
        "Action:" * 140_000 + " with Action Input: {}",
        "\ud800" * 100_000,
    ],
    ids=["inputs", "blanks", "blanks behind with", "lines", "actions", "half pairs"],
)
def test_a_megabyte_is_read_in_linear_time(text):
    assert cpu_seconds(lambda: trial().step(text), 1.0) <= 1.0


@pytest.mark.parametrize(
    ("right", "given", "reward"),
    [
        (105, "105", 1),
        (105, "105.0", 1),
        (105, "'105'", 0),
        (1, "True", 0),
        (["a", "b"], "['b', 'a']", 1),
        (["a", "b"], "['b']", 0),
        ([1, 2], "[2, True]", 0),
        ("Yes", "'yes'", 0),
        ("Invalid", "'Invalid'", 1),
    ],
)
def test_the_type_of_an_answer_counts_and_the_order_of_a_list_does_not(right, given, reward):
    outcome = trial(right).step(f"Action: finish with Action Input: {{'answer': {given}}}")
    assert (outcome["reward"], outcome["done"]) == (reward, True)


@pytest.mark.parametrize("given", ["{}", "{'answers': 1}", "3", "{'answer': [1, 'a']}"])
def test_finish_without_an_answer_does_not_end_the_trial(given):
    outcome = trial().step(f"Action: finish with Action Input: {given}")
    assert outcome["observation"].startswith("Observation: ERROR | ")
    assert (outcome["reward"], outcome["done"]) == (0, False)


def test_the_word_finish_elsewhere_does_not_end_the_trial():
    playing = trial()
    for text in (
        "I finish. Action: echo with Action Input: {'x': 'finish'}",
        "Action: Finish with Action Input: {'answer': 'a'}",
        "Action: foofinish with Action Input: {}",
    ):
        assert playing.step(text)["done"] is False


@pytest.mark.parametrize(("first", "second", "reward"), [("a", "b", 1.0), ("b", "a", 0.0)])
def test_the_first_answer_alone_is_paid(first, second, reward):
    playing = trial()
    for answer in (first, second):
        outcome = playing.step(f"Action: finish with Action Input: {{'answer': '{answer}'}}")
        assert (outcome["reward"], outcome["done"]) == (reward, True)
    assert playing.step("hello")["done"] is True
    assert playing.reset() == playing.observation
    assert playing.step("hello") == {"observation": FORMAT_ERROR, "reward": 0.0, "done": False}


def test_a_function_that_returns_the_answer_is_not_paid():
    playing = trial(("echo", 1))
    assert playing.step("Action: echo with Action Input: {'x': 1}")["reward"] == 0


def test_an_argument_may_be_asked_for_by_name():
    assert ActionInput({"a": 1}).get("a") == 1
    assert ActionInput({"a": 1}).get("b") is None
    assert ActionInput([1]).get("b") is None
    assert "a" in ActionInput({"a": 1})
    assert "a" not in ActionInput("a")
    with pytest.raises(ToolError):
        ActionInput("a")["a"]


def test_a_refused_call_is_observed_as_its_message_and_the_trial_continues():
    played = trial()
    refused = played.step("Action: echo with Action Input: {'x': 'refused'}")
    assert refused == {
        "observation": "Observation: There is no x of this name.\nGive me one action.",
        "reward": 0.0,
        "done": False,
    }
    assert played.step("Action: finish with Action Input: {'answer': 'a'}")["done"]
