"""Calls: truncated ones, the values of arguments, several calls, and errors of arguments."""

from __future__ import annotations

import contextlib

import pytest

from agentgym_gym import FORMATS, environments, errors, find
from agentgym_gym.formats import get_format
from replies import entries

TEXTCRAFT = find("TextCraft").grammar
GET = '{"function_name": "get", "arguments": {"count": 1, "item": "stick"}}'
each_format = pytest.mark.parametrize("name", FORMATS)


@each_format
def test_a_truncated_native_call_is_refused(name):
    written = [each for each in entries(name) if each.headline == "a call as the chat template has it"]
    assert len(written) >= 45
    played = []
    for entry in written:
        with contextlib.suppress(errors.ActionError):
            FORMATS[name].parse(entry.reply[: entry.reply.rindex("stick") + 3], TEXTCRAFT)
            played.append(entry.family)
    assert played == []


@pytest.mark.parametrize(
    "number", ["1e400", "NaN", "1_0", "true", "01", "1.0000000000000000001", "9" * 5_000, "0x1", "1.5"]
)
@pytest.mark.parametrize("quotes", ['"', "'"])
def test_a_number_that_is_not_the_one_written_is_refused(number, quotes):
    with pytest.raises(errors.ActionError):
        FORMATS["function_calling"].parse(GET.replace('"', quotes).replace("1", number), TEXTCRAFT)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("105", 105),
        ("18.5", 18.5),
        ("Oslo", "Oslo"),
        ("[1, 2]", (1, 2)),
        ("2015-01-04", "2015-01-04"),
    ],
)
def test_values_in_tags_have_the_types_that_the_function_takes(written, value):
    reply = f"<function=finish>\n<parameter=answer>\n{written}\n</parameter>\n</function>"
    grammar = find("Weather").grammar
    answer = FORMATS["function_calling"].parse(f"<tool_call>\n{reply}\n</tool_call>", grammar).answer
    assert (type(answer), answer) == (type(value), value)


def test_a_number_in_tags_is_text_for_a_function_that_takes_text():
    reply = "<function=get_latitude_longitude><parameter=name>105</parameter></function>"
    read = FORMATS["function_calling"].parse(reply, find("Weather").grammar)
    assert read.to_json() == {"name": "105"}


@pytest.mark.parametrize(
    ("environment", "name", "arguments", "words"),
    [
        ("ALFWorld", "toggle", {"obj": "desklamp 1"}, "use desklamp 1"),
        ("ALFWorld", "toggle", {"recep": "desklamp 1"}, "use desklamp 1"),
        ("SciWorld", "use", {"tool": "stopwatch"}, "use stopwatch"),
        ("SciWorld", "use", {"tool": "stopwatch", "obj": None}, "use stopwatch"),
    ],
)
def test_agentgyms_own_calls_are_known(environment, name, arguments, words):
    grammar = find(environment).grammar
    assert str(grammar.from_call(name, arguments)) == words
    assert grammar.parse(words) == grammar.from_call(name, arguments)


@pytest.mark.parametrize(
    ("environment", "reply", "played", "ignored"),
    [
        (
            "TextCraft",
            f'<tool_call>{{"name": "inventory"}}</tool_call><tool_call>{GET}</tool_call>',
            "inventory",
            "get 1 stick",
        ),
        (
            "TextCraft",
            '<tool_call>{"name": "inventory"}</tool_call><tool_call>{"name": "get", "arguments": {"co',
            "inventory",
            '{"name": "get", "arguments": {"co',
        ),
        (
            "Maze",
            '<tool_call>[move(direction="up"), move(direction="down")]</tool_call>',
            "move up",
            "move down",
        ),
        (
            "Maze",
            '{"name": "move", "direction": "up"}<tool_call>[move(direction="down")]</tool_call>',
            "move up",
            "move down",
        ),
    ],
)
def test_the_first_of_several_native_calls_is_played_and_the_others_are_listed(
    environment, reply, played, ignored
):
    found = FORMATS["function_calling"].read(reply, find(environment).grammar)
    assert (str(found.action), found.ignored) == (played, (ignored,))


def test_a_thought_that_contains_a_call_is_not_written():
    """The call in the thought would be the one that is played."""
    with pytest.raises(errors.BadOption, match="hides the action"):
        get_format("tool_calls").render(
            TEXTCRAFT.parse("get 1 stick"), 'Perhaps:\n{"function_name": "inventory", "arguments": {}}'
        )


@pytest.mark.parametrize("name", ["function_calling", "code_as_action"])
@pytest.mark.parametrize("environment", ["Weather", "Sheet"])
def test_advice_calls_the_arguments_as_the_prompt_does(name, environment):
    grammar = find(environment).grammar
    for action in grammar.actions:
        written = {"function_calling": f'{{"function_name": "{action.name()}", "arguments": {{"no_": 1}}}}'}
        with pytest.raises(errors.BadArguments) as raised:
            FORMATS[name].parse(written.get(name, f"{action.name()}(no_=1)"), grammar)
        listed = str(raised.value).partition(";")[0].removeprefix("the arguments are: ").split(", ")
        assert listed == (list(action.schema()["properties"]) or ["none"])


@each_format
@pytest.mark.parametrize("environment", [each.name for each in environments()])
def test_instructions_name_a_fence_only_where_there_is_one(name, environment):
    grammar = find(environment).grammar
    instructions = FORMATS[name].instructions(grammar)
    fence = grammar.style.fence
    assert "```None" not in instructions
    assert (fence is not None and name != "function_calling") or "to be written between" not in instructions


# ------------------------------------------------------------------------------- lines that begin as actions


MARKED = [each for each in entries("tags") if each.headline == "the error of a mark"]


@pytest.mark.parametrize("entry", [each for each in MARKED if each.action == "BadArguments"], ids=str)
def test_the_error_of_a_bare_line_that_begins_as_an_action_names_what_does_not_fit(entry):
    line = entry.reply.removeprefix("<action>").removesuffix("</action>")
    with pytest.raises(errors.NoAction, match=r"expected '(get|craft) <count> "):
        FORMATS["bare"].parse(line, TEXTCRAFT)


def test_the_number_in_craft_may_be_left_out():
    action = TEXTCRAFT.parse("craft oak planks using 1 oak logs")
    assert (action.item, action.ingredients) == (
        "oak planks",
        TEXTCRAFT.parse("craft 4 oak planks using 1 oak logs").ingredients,
    )
