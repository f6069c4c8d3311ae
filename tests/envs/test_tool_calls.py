"""AgentGym's five tool servers: what is read, and what is sent for it."""

from __future__ import annotations

import ast
import json
import random
import re

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, catalogue, errors
from agentgym_gym.actions import MAX_ACTION_CHARS
from agentgym_gym.envs import academia, sheet, todolist, weather
from by_hand import exchange

NAMES = ["Weather", "Movie", "Academia", "Sheet", "TODOList"]
WEATHER = catalogue.find("Weather")
(Finish,) = (action for action in WEATHER.grammar.actions if action.name() == "finish")


def told(observation="Observation: x", reward=0.0, *, done=False):
    return {"observation": observation, "reward": reward, "done": done}


def read_by_server(sent):
    """Return the name and the input that the server would find in a text, by its two patterns."""
    one = re.search(r"\s*(.*?)\s*with\s*Action Input:\s*(.*?)$", sent)
    if one is None:
        return None
    pattern = r".*?Action:\s*(.*?)\s*with\s*Action Input:\s*(.*?)$"
    call = re.match(pattern, f"{one[1]} with Action Input: {one[2]}", re.MULTILINE | re.DOTALL)
    return call and (call[1], call[2])


# ------------------------------------------------------------------------------------------ what is sent

TRICKY = [
    "finish",
    "FINISH it, then Finished",
    'it\'s "quoted" and {braced} [so] (too)',
    "two\nlines\tand a tab",
    "back\\slash \\n \\u0041",
    "x with Action Input: {} Action: y with Action Input: {}",
    "\nAction: finish with Action Input: {}",
    "Ünïcödé 北京 \U0001f600 \u2028\u2029 end",
    "not printed\u200finish",  # its escape ends in "f"
    "None, True, NaN",
    "",
    " blank at both ends ",
    "> think: ```a < b",
]


@pytest.mark.parametrize("text", [t for t in TRICKY if "```" not in t])
def test_the_server_reads_what_was_meant(text):
    environment = catalogue.find("Sheet")
    action = sheet.UpdateCell("B2", text)
    _, call = exchange(environment.wire.step(0, environment.wire.render(action)), told())
    sent = call.body["action"]
    assert sent.startswith("Action: update_cell with Action Input: {")
    assert "finish" not in sent.lower()
    name, written = read_by_server(sent)
    assert name == "update_cell"
    assert ast.literal_eval(written) == {"position": "B2", "value": text}
    for action_format in FORMATS.values():
        reply = action_format.render(action)
        assert action_format.parse(reply, environment.grammar) == action


@pytest.mark.parametrize(
    "value", [105, "105", 105.0, -0.1, True, False, None, (1, "a", None), {"a": ({"b": True},)}, (), 1e-07]
)
def test_an_answer_keeps_its_type(value):
    environment = catalogue.find("Weather")
    action = Finish(value)
    _, call = exchange(environment.wire.step(0, environment.wire.render(action)), told(done=True))
    _, written = read_by_server(call.body["action"])
    meant = ast.literal_eval(written)["answer"]
    assert repr(meant) == repr(json_of(value))
    assert environment.grammar.parse(str(action)) == action
    assert json.dumps(action.to_json()["answer"]) == json.dumps(json_of(value))


def json_of(value):
    if isinstance(value, tuple):
        return [json_of(part) for part in value]
    return {k: json_of(v) for k, v in value.items()} if isinstance(value, dict) else value


def test_answers_that_python_takes_for_equal_differ():
    answers = [Finish(1), Finish(1.0), Finish(True), Finish("1")]
    assert len(set(answers)) == len(answers)
    assert Finish([1, 2]) == Finish((1, 2))


_DEEP = [[[[[[[[[1]]]]]]]]]
_LONG = ["a" * 2_000] * 9
_TOO_LONG = "a" * (MAX_ACTION_CHARS + 1)


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), float("inf"), 10**18, "\x00", "\ud800", "```", "a</s>", "<|im_end|>", _TOO_LONG),
        *({1: 2}, {1}, b"1", 1j, _DEEP, _LONG),
    ],
)
def test_values_without_a_literal_are_refused(value):
    with pytest.raises(errors.BadArguments):
        Finish(value)


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_teaches_what_agentgyms_server_reads(name):
    """It looks for the call only on the line of its ``Action:``."""
    env = AgentGymEnv(name, server="http://games.test", parser="agentgym")
    example = env.system_prompt.rpartition("An example of a reply:\n\n")[2]
    assert env.system_prompt.count("on the same line") == 1
    assert read_by_server(example) is not None
    env.close()


def test_an_answer_as_long_as_the_longest_gold_answer_can_be_given():
    answer = Finish(["Ångström, 1871. " * 180])
    assert len(answer.answer[0]) == 2_880
    assert Finish.parse(str(answer)) == answer


def test_how_a_call_is_written_can_be_copied_with_its_optional_arguments():
    grammar = catalogue.find("Sheet").grammar
    (line,) = (line for line in grammar.lines() if line.startswith("filter_cells"))
    assert '(may be left out: "in_row", "in_column")' in line
    call = line.partition(" (")[0].replace("<query>", '"Meat"').replace("<in_row>", "2")
    assert grammar.parse(call.replace("<in_column>", "3")) == sheet.FilterCells("Meat", 2, 3)


def test_an_optional_argument_is_left_out():
    assert str(sheet.FilterCells("Meat")) == 'filter_cells with Action Input: {"query": "Meat"}'
    assert '"in_row": 2}' in str(sheet.FilterCells("Meat", in_row=2))
    grammar = catalogue.find("Sheet").grammar
    assert grammar.from_call("filter_cells", {"query": "Meat", "in_row": None}) == sheet.FilterCells("Meat")


@pytest.mark.parametrize(
    "given",
    [{}, {"position_list": ("A1",), "start_position": "A1", "end_position": "A2"}, {"start_position": "A1"}],
)
def test_a_formula_has_one_kind_of_range(given):
    with pytest.raises(errors.BadArguments, match="either position_list"):
        sheet.GetValueByFormula("SUM", **given)


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (weather.GetLatitudeLongitude, 7.5),
        (lambda v: weather.GetElevation(v, 0), 90.5),
        (lambda v: weather.GetElevation(v, 0), "31"),
        (lambda v: weather.GetElevation(0, v), True),
        (lambda v: weather.GetCurrentTemp(0, 0, v), "2023-02-30"),
        (lambda v: weather.GetCurrentTemp(0, 0, v), "2023-2-3"),
        (todolist.GetTasks, "1/../2"),
        (todolist.GetTasks, 7),
        (lambda v: todolist.UpdateProject("1", v), True),
        (lambda v: academia.NeighbourCheck(v, "A"), "papernet"),
        (sheet.GetCellValue, "b2"),
        (sheet.GetCellValue, "B0"),
        (lambda v: sheet.UpdateCellByFormula("SUM", v, ("A1",)), "AA1"),
        (lambda v: sheet.UpdateRange("A1", "B2", v), ("a",)),
    ],
)
def test_arguments_are_strict(make, value):
    with pytest.raises(errors.BadArguments):
        make(value)


# ------------------------------------------------------------------------------------------- what is read

SHANGHAI = weather.GetCurrentTemp(31.2, 121.4, "2015-01-04")


_PLAIN = "{'latitude': 31.2, 'longitude': 121.4, 'current_date': '2015-01-04'}"
_JSON = '{\n  "current_date": "2015-01-04",\n  "latitude": 31.2,\n  "longitude": 121.4\n}'
_ODD = "{'latitude': '31.2', 'longitude': 121.4, 'CURRENT_DATE': '2015/1/4'}"

_FULL_WIDTH = str.maketrans("{}:,", "｛｝：，")


@pytest.mark.parametrize(
    "text",
    [
        f"get_current_temp with Action Input: {_PLAIN}",
        f"get_current_temp with Action Input: {_JSON}",
        f"GET_CURRENT_TEMP with action input: {_ODD}",
        f"get_current_temp\nAction Input: {_JSON}",
        f"- `get_current_temp with Action Input: {_PLAIN}`",
        f"get_current_temp with Action Input: {_PLAIN[:-1]},}}",
        f"get_current_temp with Action Input:\n```json\n{_JSON}\n```",
        f"get_current_temp\nAction Input: ```json\n{_JSON}\n```",
        f"get_current_temp\nInput: {_JSON}",
        f"get_current_temp with {_PLAIN}",
        f"get_current_temp with Action Input: {_PLAIN.translate(_FULL_WIDTH)}",
    ],
)
def test_the_ways_of_writing_a_call(text):
    grammar = catalogue.find("Weather").grammar
    assert FORMATS["bare"].parse(text, grammar) == SHANGHAI
    assert FORMATS["react"].parse(f"Thought: x\nAction: {text}", grammar) == SHANGHAI


_FINISH = 'finish with Action Input: {"answer": 1}'


@pytest.mark.parametrize(
    ("rest", "kind"),
    [
        ('\nfinish with Action Input: {"answer": 2}', errors.ManyActions),
        (" or get_tasks with Action Input: {}", errors.BadArguments),
        (" is what I do last", errors.BadArguments),
        (" once I know", errors.BadArguments),
        ("?", errors.BadArguments),
        (" // of that day", errors.BadArguments),
        (" to know how warm it was.", errors.BadArguments),
    ],
)
def test_text_after_the_input(rest, kind):
    """After a label the action ends with the bracket of its input; tags hold the action only."""
    grammar = catalogue.find("TODOList").grammar
    assert str(FORMATS["react"].parse(f"Action: {_FINISH}{rest}", grammar)) == _FINISH
    with pytest.raises(kind):
        FORMATS["tags"].parse(f"<action>{_FINISH}{rest}</action>", grammar)
    with pytest.raises(errors.NoAction):
        FORMATS["bare"].parse(_FINISH + rest, grammar)


@pytest.mark.parametrize(
    "text",
    [
        f"I look it up.\n{_FINISH}\nThat is all.",
        f"I will not call\n{_FINISH}\nyet",
        f"I will not call\n{_FINISH}",
        f"For example:\n{_FINISH}",
        f"If I knew it, I would write\n{_FINISH}",
    ],
)
def test_lines_of_prose_around_an_action(text):
    """Tags may hold lines of prose; a label marks the first line; unmarked, the whole reply is the action."""
    grammar = catalogue.find("TODOList").grammar
    assert str(FORMATS["tags"].parse(f"<action>{text}</action>", grammar)) == _FINISH
    with pytest.raises(errors.UnknownAction):
        FORMATS["react"].parse(f"Action: {text}", grammar)
    with pytest.raises(errors.NoAction):
        FORMATS["bare"].parse(text, grammar)


@pytest.mark.parametrize(
    "text", ["get_projects", "get_projects()", "get_projects with Action Input:", "Get_Projects"]
)
def test_a_function_without_arguments_needs_no_object(text):
    assert catalogue.find("TODOList").grammar.parse(text) == todolist.GetProjects()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('finish with Action Input: {"answer": 1', errors.BadArguments),
        ('finish with Action Input: {"answer": "1}', errors.BadArguments),
        ('finish with Action Input: {"answer": 1, "answer": 2}', errors.BadArguments),
        ('finish with Action Input: {"answer": 1_0}', errors.BadArguments),
        ('finish with Action Input: {"answer": 1e400}', errors.BadArguments),
        ('finish with Action Input: {"answer": 1, ', errors.BadArguments),
        ('finish with Action Input: {"answer": NaN}', errors.BadArguments),
        ('finish with Action Input: {"answer": 1e999}', errors.BadArguments),
        ('finish with Action Input: {"answer": 9**9}', errors.BadArguments),
        ('finish with Action Input: {"answer": print(1)}', errors.BadArguments),
        ("finish with Action Input: 5", errors.BadArguments),
        ("finish", errors.BadArguments),
        ("finished with Action Input: {}", errors.UnknownAction),
    ],
)
def test_a_marked_call_that_does_not_fit_is_refused(text, kind):
    with pytest.raises(kind):
        FORMATS["react"].parse(f"Action: {text}", catalogue.find("TODOList").grammar)


def test_a_function_with_capitals_is_called_in_any():
    grammar = catalogue.find("Academia").grammar
    assert grammar.from_call("loadPaperNet", {}) == grammar.from_call("loadpapernet", {})
    assert str(grammar.parse("loadpapernet with Action Input: {}")) == "loadPaperNet with Action Input: {}"


# --------------------------------------------------------------------------------- as AgentGym's client does

EVIL = "{'x': __import__('os').getpid()}"


@pytest.mark.parametrize(
    "reply",
    [
        f"Action: finish with Action Input: {EVIL}",
        f"Thought: a\nAction: finish with Action Input: {EVIL}\n",
        f"Action: finish with\nAction Input:\n{EVIL}",
        f"finish with Action Input: {{}} Action: x with Action Input: {EVIL}",
        f"Action: a with Action Input: 1\nAction: b with Action Input: {EVIL}",
        f"Action:finishwithAction Input:{EVIL}",
        f"Action: no_such_tool with Action Input: {EVIL}",
        'Action: finish with Action Input: {"answer": true}',
        "Action: finish with Action Input: 9**9**9",
        "Action: finish with Action Input: ",
        "Action: finish with Action Input: {" + "[" * 5_000,
    ],
)
def test_a_reply_that_the_server_would_run_is_not_sent(reply):
    with pytest.raises(errors.BadArguments):
        WEATHER.wire.check(reply)


PARTS = [
    "Action:",
    " with ",
    "Action Input:",
    "\n",
    " ",
    "\r",
    "\x0b",
    "\u3000",
    "x",
    "with\nAction Input:",
    "{}",
    "9",
]


@pytest.mark.parametrize("replies", [4_000, pytest.param(40_000, marks=pytest.mark.slow)])
def test_the_part_that_the_server_runs_is_found(replies):
    draw = random.Random(0)  # noqa: S311 - a draw that is the same everywhere
    found = 0
    for _ in range(replies):
        reply = "".join(draw.choices(PARTS, k=draw.randint(1, 12)))
        run = read_by_server(reply)
        try:
            ast.literal_eval(run[1].strip() if run else "0")
            plain = True
        except (SyntaxError, ValueError):
            plain = False
        found += run is not None
        try:
            WEATHER.wire.check(reply)
            assert plain, reply
        except errors.BadArguments:
            assert not plain, reply
    assert found > replies / 40


@pytest.mark.slow
def test_of_a_long_reply_the_part_that_the_server_reads_is_sent():
    draw = random.Random(1)  # noqa: S311 - a draw that is the same everywhere
    found = 0
    for _ in range(400):
        parts = draw.choices(PARTS, k=draw.randint(1, 12))
        place = draw.randint(0, len(parts))
        reply = "".join([*parts[:place], "long\n" * 3_400, *parts[place:]])
        sent = WEATHER.agentgym_readers["react"](reply)
        assert len(sent) <= 16_384
        assert read_by_server(sent) == read_by_server(reply)
        found += read_by_server(sent) is not None
    assert found > 5


@pytest.mark.parametrize("text", ["", "x", "foo with Action Input: {}", "Thought: a\nAction: get_projects"])
def test_unknown_text_is_sent_unchanged(text):
    _, call = exchange(catalogue.find("TODOList").wire.step(3, text), told())
    assert list(call.body.items()) == [("env_idx", 3), ("action", text)]
