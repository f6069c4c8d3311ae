"""The calls that two formats read, by model family, and the replies that hold no call or several."""

from __future__ import annotations

import contextlib

import pytest

from agentgym_gym import FORMATS, catalogue, errors
from agentgym_gym.actions import MAX_ACTION_CHARS
from agentgym_gym.formats import get_format
from clock import cpu_seconds

GRAMMAR = catalogue.find("TextCraft").grammar
GET = GRAMMAR.parse("get 1 stick")
LOOK = GRAMMAR.parse("inventory")
GIVEN = '{"count": 1, "item": "stick"}'
HOLD = '{"function_name": "inventory", "arguments": {}}'
TAKE = f'{{"function_name": "get", "arguments": {GIVEN}}}'
CALL = "get(1, 'stick')"


def fenced(code, language="python"):
    return f"```{language}\n{code}\n```"


each_format = pytest.mark.parametrize("name", ["function_calling", "code_as_action"])

# As the chat templates of the families have them, and as engines leave them that keep special tokens out.
DIALECTS = {
    "Hermes, Qwen 2.5 and 3": f'<tool_call>\n{{"name": "get", "arguments": {GIVEN}}}\n</tool_call>',
    "Hermes, stopped at its closing tag": f'<tool_call>\n{{"name": "get", "arguments": {GIVEN}}}\n',
    "Qwen3-Coder": "<tool_call>\n<function=get>\n<parameter=count>\n1\n</parameter>\n<parameter=item>\n"
    "stick\n</parameter>\n</function>\n</tool_call>",
    "Qwen-Agent": f"✿FUNCTION✿: get\n✿ARGS✿: {GIVEN}\n✿RESULT✿",
    "Qwen's ReAct": f"Action: get\nAction Input: {GIVEN}",
    "DeepSeek V3 and R1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n"
    f"```json\n{GIVEN}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
    "DeepSeek V3, stripped": f"functionget\n```json\n{GIVEN}\n```",
    "DeepSeek V3.1": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get<｜tool▁sep｜>{GIVEN}<｜tool▁call▁end｜>"
    "<｜tool▁calls▁end｜>",
    "DeepSeek V3.1, stripped": f"get{GIVEN}",
    "DeepSeek V3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get">\n<｜DSML｜parameter name="count" '
    'string="false">1</｜DSML｜parameter>\n<｜DSML｜parameter name="item" string="true">stick'
    "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "GLM-4.5": "<tool_call>get\n<arg_key>count</arg_key>\n<arg_value>1</arg_value>\n<arg_key>item</arg_key>\n"
    "<arg_value>stick</arg_value>\n</tool_call>",
    "GLM-4": f"get\n{GIVEN}",
    "Kimi K2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get:0<|tool_call_argument_begin|>"
    f"{GIVEN}<|tool_call_end|><|tool_calls_section_end|>",
    "Kimi K2, stripped": f"functions.get:0{GIVEN}",
    "Mistral": f'[TOOL_CALLS] [{{"name": "get", "arguments": {GIVEN}, "id": "abc123def"}}]</s>',
    "Mistral, tokenizer 11": f"[TOOL_CALLS]get[ARGS]{GIVEN}</s>",
    "Mistral, with an id": f"[TOOL_CALLS]get[CALL_ID]abcdef123[ARGS]{GIVEN}",
    "Mistral, stripped": f'[{{"name": "get", "arguments": {GIVEN}}}]',
    "Llama 3": f'<|python_tag|>{{"type": "function", "name": "get", "parameters": {GIVEN}}}<|eom_id|>',
    "Llama 3.1, in tags": f"<function=get>{GIVEN}</function>",
    "Llama 3.1, built in": "<|python_tag|>get.call(count=1, item='stick')",
    "Llama 3.2, in Python": "[get(count=1, item='stick')]",
    "Llama 4": "<|python_start|>[get(count=1, item='stick')]<|python_end|>",
    "gpt-oss": "<|channel|>analysis<|message|>I could get(2, 'stick').<|end|><|start|>assistant<|channel|>"
    f"commentary to=functions.get <|constrain|>json<|message|>{GIVEN}<|call|>",
    "gpt-oss, recipient first": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=functions.get"
    f"<|channel|>commentary json<|message|>{GIVEN}<|call|>",
    "gpt-oss, with a preamble": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>"
    "commentary<|message|>I take it.<|end|><|start|>assistant<|channel|>commentary to=functions.get "
    f"<|constrain|>json<|message|>{GIVEN}",
    "gpt-oss, stripped": f"analysisI need it.assistantcommentary to=functions.get json{GIVEN}",
    "Gemini and Gemma": fenced("print(default_api.get(count=1, item='stick'))", "tool_code"),
    "FunctionGemma": "<start_function_call>call:get{count:1,item:<escape>stick<escape>}<end_function_call>",
    "Granite and Phi-4-mini": f'<|tool_call|>[{{"name": "get", "arguments": {GIVEN}}}]<|/tool_call|>',
    "Command R": f'Action: ```json\n[\n  {{"tool_name": "get", "parameters": {GIVEN}}}\n]```',
    "Command A": '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get", "parameters": '
    f"{GIVEN}}}\n]<|END_ACTION|>",
    "MiniMax": '<minimax:tool_call>\n<invoke name="get">\n<parameter name="count">1</parameter>\n'
    '<parameter name="item">stick</parameter>\n</invoke>\n</minimax:tool_call>',
    "Claude": '<function_calls>\n<invoke name="get">\n<parameter name="count">1</parameter>\n'
    '<parameter name="item">stick</parameter>\n</invoke>\n</function_calls>',
    "Claude 2": "<function_calls>\n<invoke>\n<tool_name>get</tool_name>\n<parameters>\n<count>1</count>\n"
    "<item>stick</item>\n</parameters>\n</invoke>\n</function_calls>",
    "Anthropic's API": f'{{"type": "tool_use", "id": "toolu_1", "name": "get", "input": {GIVEN}}}',
    "OpenAI's API": '{"tool_calls": [{"id": "c", "type": "function", "function": {"name": "get", '
    '"arguments": "{\\"count\\": 1, \\"item\\": \\"stick\\"}"}}]}',
    "Gemini's API": f'{{"functionCall": {{"name": "get", "args": {GIVEN}}}}}',
    "InternLM": f'<|action_start|><|plugin|>\n{{"name": "get", "parameters": {GIVEN}}}<|action_end|>',
    "Functionary": f">>>get\n{GIVEN}",
    "Nemotron": f'<TOOLCALL>[{{"name": "get", "arguments": {GIVEN}}}]</TOOLCALL>',
    "LFM2": "<|tool_call_start|>[get(count=1, item='stick')]<|tool_call_end|>",
    "OLMo 3": "<function_calls>\nget(count=1, item='stick')\n</function_calls>",
    "Apertus": f'<|tools_prefix|>[{{"get": {GIVEN}}}]<|tools_suffix|>',
    "Seed-OSS": "<seed:tool_call>\n<function=get>\n<parameter=count>1</parameter>\n<parameter=item>stick"
    "</parameter>\n</function>\n</seed:tool_call>",
    "Step 3": '<steptml:invoke name="get"><steptml:parameter name="count">1</steptml:parameter>'
    '<steptml:parameter name="item">stick</steptml:parameter></steptml:invoke>',
    "MiniCPM": '<function name="get"><param name="count">1</param>\n'
    '<param name="item">stick</param></function>',
    "LangChain": f'```json\n{{"action": "get", "action_input": {GIVEN}}}\n```',
}


@each_format
def test_the_call_of_a_model_family_is_read(name):
    for family, reply in DIALECTS.items():
        assert FORMATS[name].parse(reply, GRAMMAR) == GET, family


@each_format
def test_a_call_of_a_model_family_that_breaks_off_is_refused(name):
    played = []
    for family, reply in DIALECTS.items():
        with contextlib.suppress(errors.ActionError):
            FORMATS[name].parse(reply[: reply.rindex("stick") + 3], GRAMMAR)
            played.append(family)
    assert played == []


JSON = [
    "{'function_name': 'get', 'arguments': {'count': 1, 'item': 'stick'}}",
    "{'name': 'get', 'args': {'count': 1, 'item': 'stick',}, 'done': None, 'sure': True,}",
    f'{{"plan": "x", "function_name": "get", /* it */ "arguments": {GIVEN}}} // now',
    f'{{"thought": "one\ntwo", "functionName": "get", "kwargs": {GIVEN}}}',
    f'{{"function_call": {{"name": "get", "arguments": {GIVEN}}}}}',
    f'{{"reasoning": "x", "tool": "get", "tool_input": {GIVEN}}}',
    f'{{"action": {{"name": "get", "input": {GIVEN}}}}}',
    '{"function_name": "get", "count": 1, "item": "stick"}',
    "｛“function_name”：“get”，“arguments”：｛“count”：1，“item”：“stick”｝｝",
    f"I have none, so I take one.\n\n{TAKE}\n\nThis gives me a stick.",
    f"I don't need more, so:\n{fenced(TAKE, 'json')}\nIf I get it, I can craft.",
    f"Here is my answer in the required format:\n{TAKE}",
    f"{TAKE}\nObservation: Got 1 stick\n{HOLD}",
    f"{TAKE}\n<tool_response>\nGot 1 stick\n</tool_response>\n{HOLD}",
    f"{TAKE}\n\n{fenced(TAKE, 'json')}",
    f"{TAKE}\n{fenced('inventory()')}",
    f'{TAKE}\n{{"function_name": "inv',
    f"<json>{TAKE}</json>",
]
CODE = [
    *(
        "x = {}",
        "print({})",
        "await {}",
        "return {}",
        "{};",
        "result = print({})",
        "_ = {}",
        "tools.{}",
        "env.{}",
    ),
    *(
        "# so\n{}",
        "import tools\ntools.{}",
        "print('now')\n{}",
        "x: int = {}",
        ">>> {}\n'Got 1 stick'",
        "{}\nprint(x)",
    ),
]
WRITTEN = [
    *(fenced(code.replace("{}", CALL)) for code in CODE),
    *(fenced(CALL, language) for language in ("", "py", "Python3", "tool_code", "tool_call")),
    *(
        "get(**{'count': 1, 'item': 'stick'})",
        "get(\n    count=1,\n    item='stick',\n)",
        "**get(1, 'stick')**.",
    ),
    fenced("item = 'stick'\nget(1, item)"),
    fenced("get（1，‘stick’）"),
    f"{fenced(CALL)}\nOutput:\n{fenced('Got 1 stick', 'output')}",
    f"{fenced(CALL)}\nSo:\n{fenced(CALL)}",
    f"I will call `{CALL}`, since I need it.\n{fenced(CALL)}",
    f"Action: {CALL}",
    fenced(f"{CALL}  # an example"),
    f"{fenced(CALL)}\n{HOLD}",
    f"<code>\n{CALL}\n</code>",
]


@pytest.mark.parametrize(
    ("name", "reply"),
    [("function_calling", reply) for reply in JSON] + [("code_as_action", reply) for reply in WRITTEN],
)
def test_a_plain_call_is_read(name, reply):
    assert FORMATS[name].parse(reply, GRAMMAR) == GET


AROUND = [
    "I could reply {} now, but I lack a log.",
    "I will not call\n{}\nyet",
    "Do not run this: {}",
    "For example:\n{}",
    "The format is:\n\n{}",
    "If I had a log, I would reply:\n{}",
    "Once I have the planks: {}",
    "My plan is:\n1. {}\n2. craft planks",
    "Should I call {}?",
    "Shall I run {} for you?",
    "I was going to send {} before.",
    "You told me to answer {} and I refuse.",
    "Here is what I will not do:\n{}",
    "{}\nOn second thought, no.",
    "{}\n\nActually, I need wood first.",
    "{}\nNo, wait.",
    "{}\n\nThis is only an illustration.",
    "{} is what I would do.",
    "{}\n\nThat was the previous call.",
    "User: {}",
    "<!-- {} -->",
    "~~{}~~",
    "{}\nThe above should be ignored.",
    "{}\n\nEdit: I meant another one.",
    "{} <- an example",
    "The prompt says:\n{}",
    "Bad: {}",
    "Please confirm: {}",
    "例如：{}",
    "不要调用 {}",
]


@pytest.mark.parametrize("words", AROUND)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("function_calling", TAKE),
        ("function_calling", fenced(TAKE, "json")),
        ("code_as_action", fenced(CALL)),
    ],
)
def test_words_around_a_call_change_nothing(name, call, words):
    assert FORMATS[name].parse(words.replace("{}", call), GRAMMAR) == GET


@pytest.mark.parametrize(
    "line", ["# see ```python for more", "print('```')", "x = '```'  # a fence", "s = 'write ``` here'"]
)
def test_a_fence_in_a_line_of_code_does_not_end_the_code(line):
    reply = f"{fenced(line + chr(10) + CALL)}\nThat is all."
    assert FORMATS["code_as_action"].parse(reply, GRAMMAR) == GET


def test_code_may_be_indented_as_a_whole():
    reply = fenced("    for each in found:\n        pass\n    " + CALL)
    with pytest.raises(errors.ManyActions, match="inside other code"):
        FORMATS["code_as_action"].parse(reply, GRAMMAR)


def test_a_thought_with_a_call_of_its_own_is_not_written():
    """The call in the thought would be the one that is played."""
    with pytest.raises(errors.BadOption, match="hides the action"):
        get_format("tool_calls").render(GET, f"Perhaps:\n{HOLD}")


def test_the_first_of_several_native_calls_is_played():
    """The others are listed, also one that breaks off."""
    first = '<tool_call>{"name": "inventory"}</tool_call>'
    for other in (f"<tool_call>{TAKE}</tool_call>", '<tool_call>{"name": "get", "arguments": {"co'):
        found = FORMATS["function_calling"].read(first + other, GRAMMAR)
        assert found.action == LOOK
        assert len(found.ignored) == 1
        assert "get" in found.ignored[0]


NOT_ONE_CALL = {
    "function_calling": [
        f"{HOLD}\n{TAKE}",
        f"Draft: {HOLD}\nNo, instead:\n{TAKE}",
        f'{{"actions": [{HOLD}, {TAKE}]}}',
        '{"function_name": "get", "name": "inventory", "arguments": {}}',
        f'{{"function_name": "get", "arguments": {GIVEN}, "parameters": {{"count": 2, "item": "stick"}}}}',
        '{"thought": "{\\"function_name\\": \\"inventory\\"}"}',
        '{"name": "inventory", "description": "See it.", "parameters": {"type": "object", "properties": {}}}',
        '{"name": "inventory", "items": []}',
        '{"role": "tool", "name": "inventory", "content": "nothing"}',
        f'{{"function_name": "get", "arguments": {GIVEN}',
        f'{{"function_name": "get", "arguments": {GIVEN}, "execute": false}}',
        '{"function_name": "get", "arguments": "{\\"count\\": 1, \\"item\\": \\"sti"}',
        "<tool_call>get\n<arg_key>count</arg_key>\n<arg_value>1</arg_value>\n<arg_key>item</arg_key>\n",
    ],
    "code_as_action": [
        *(
            fenced(code.replace("{}", CALL))
            for code in ("if wood:\n    {}", "for _ in range(2):\n    {}", "def f():\n    {}")
        ),
        *(
            fenced(code.replace("{}", CALL))
            for code in ("while True: {}", "try:\n    {}\nfinally: pass", "x = lambda: {}")
        ),
        *(
            fenced(code.replace("{}", CALL))
            for code in ("# {}", "'''\n{}\n'''", "'''\n{}", "return\n{}", "raise X\n{}")
        ),
        *(
            fenced(code.replace("{}", CALL))
            for code in ("craft(1, {})", "{} if x else None", "not {}", "{} or inventory()")
        ),
        *(
            fenced(code.replace("{}", CALL))
            for code in ("if wood:\n# it\n    {}", "else:\n    {}", "a, b = {}, inventory()")
        ),
        *(
            fenced(code.replace("{}", CALL))
            for code in ("{}\ninventory()", "{}; {}", "{}\n{}", "x = inventory()\n{}")
        ),
        *(
            fenced(f"get({written}, 'stick')")
            for written in ("1_0", "0x1", "1e400", "True", "n", "1 + 1", "1.5")
        ),
        fenced("n = 1\nn += 1\nget(n, 'stick')"),
        fenced("get(count=1, count=1, item='stick')"),
        fenced("import os\nos.get(1, 'stick')"),
        f"{fenced(CALL)}\n{fenced('inventory()')}",
        f"I need a stick.\n\n{CALL}\n\nThen I craft.",
        "Plan:\n- inventory()\n- get(1, 'stick')",
        f"I could call {CALL}.",
        f"{CALL} and then inventory()",
    ],
}


@pytest.mark.parametrize(
    ("name", "reply"), [(name, reply) for name, replies in NOT_ONE_CALL.items() for reply in replies]
)
def test_a_reply_without_one_call_is_refused(name, reply):
    with pytest.raises(errors.ActionError):
        FORMATS[name].parse(reply, GRAMMAR)


@pytest.mark.parametrize(
    "number", ["1e400", "NaN", "1_0", "true", "01", "1.0000000000000000001", "9" * 5_000, "0x1", "1.5"]
)
def test_a_number_that_is_not_the_one_written_is_refused(number):
    for quotes in ('"', "'"):
        reply = TAKE.replace('"', quotes).replace("1", number)
        with pytest.raises(errors.ActionError):
            FORMATS["function_calling"].parse(reply, GRAMMAR)


def test_values_in_tags_have_the_types_that_the_function_wants():
    grammar = catalogue.find("Weather").grammar
    reply = "<tool_call>\n<function=finish>\n<parameter=answer>\n{}\n</parameter>\n</function>\n</tool_call>"
    for written, meant in {
        "105": 105,
        "18.5": 18.5,
        "Oslo": "Oslo",
        "[1, 2]": (1, 2),
        "2015-01-04": "2015-01-04",
    }.items():
        read = FORMATS["function_calling"].parse(reply.format(written), grammar)
        assert (type(read.answer), read.answer) == (type(meant), meant)
    reply = "<function=get_latitude_longitude><parameter=name>105</parameter></function>"
    assert FORMATS["function_calling"].parse(reply, grammar).to_json() == {"name": "105"}


def test_a_function_of_one_argument_takes_it_as_text():
    grammar = catalogue.find("SearchQA").grammar
    reply = '{"action": "search", "action_input": "who wrote Faust"}'
    assert str(FORMATS["function_calling"].parse(reply, grammar)) == "<search>who wrote Faust</search>"


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
    grammar = catalogue.find(environment).grammar
    assert str(grammar.from_call(name, arguments)) == words
    assert grammar.parse(words) == grammar.from_call(name, arguments)


@each_format
@pytest.mark.parametrize("environment", ["Weather", "Sheet"])
def test_advice_calls_the_arguments_as_the_prompt_does(name, environment):
    grammar = catalogue.find(environment).grammar
    for action in grammar.actions:
        written = {"function_calling": f'{{"function_name": "{action.name()}", "arguments": {{"no_": 1}}}}'}
        with pytest.raises(errors.BadArguments) as raised:
            FORMATS[name].parse(written.get(name, f"{action.name()}(no_=1)"), grammar)
        listed = str(raised.value).partition(";")[0].removeprefix("the arguments are: ").split(", ")
        assert listed == (list(action.schema()["properties"]) or ["none"])


LONG = [
    *(
        "{",
        "[",
        "(",
        "`",
        "```",
        '"',
        "'",
        '{"a":',
        "{'",
        "{“",
        "{/*",
        "{a:1,",
        '{"name": "inventory"}',
        "<tool_call>",
    ),
    *(
        "<function=get><parameter=a>",
        '<invoke name="a">',
        "<w:",
        "to=get",
        "[ARGS]",
        "f(\n",
        "f()\n",
        "x = ",
        "(a)\n",
    ),
    *(
        "#\n",
        "\\\n",
        "'''",
        "1.",
        "word\n",
        "!.?",
        "Action: get\nAction Input: ",
        "\nObservation: ",
        "but ",
        "not ",
    ),
    *("<|channel|>", "<｜tool▁call▁begin｜>get", "if x:\n ", ">>> f()\n", "**{", "e.g. "),
]


@pytest.mark.slow
@pytest.mark.no_cover  # measuring coverage takes several times as long
@each_format
def test_a_long_reply_is_read_quickly(name):
    """16 kB of anything takes below 20 ms on an idle machine; here five times that is let pass."""
    example = FORMATS[name].example(GRAMMAR)
    for part in LONG:
        for reply in (
            part * (MAX_ACTION_CHARS // len(part)),
            example + part * (MAX_ACTION_CHARS // len(part)),
        ):

            def look(reply=reply):
                with contextlib.suppress(errors.ActionError):
                    FORMATS[name].parse(reply, GRAMMAR)

            took = cpu_seconds(look, 0.1)
            assert took <= 0.1, f"{part!r}: {took:.3f} s"
