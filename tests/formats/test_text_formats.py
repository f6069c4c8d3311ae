"""Replies in the text formats: which text is played, which is forwarded, and which replies are refused."""

# ruff: noqa: RUF001 - models write these characters, too

from __future__ import annotations

from itertools import product

import pytest

import agentgym_gym
from agentgym_gym import FORMATS, errors
from agentgym_gym.actions import Grammar, Thought

TEXT_FORMATS = ("react", "tags", "adapt", "bare")

THINKING = [
    *("<think>{}", "<Think>{}", "< think >{}", "<think lang='en'>{}", "<thinking>{}", "<THINKING>\n{}"),
    *("<thought>{}", "<thoughts>{}", "<reasoning>{}", "<reflection>{}", "<seed:think>{}", "<mm:think>{}"),
    *(
        "<antThinking>{}",
        "<inner_monologue>{}",
        "<scratchpad>{}",
        "<analysis>{}",
        "[THINK]{}",
        "[Thinking]\n{}",
    ),
    *("<|begin_of_thought|>{}", "<|START_THINKING|>{}", "<|think|>{}", "◁think▷{}", "<unused94>thought\n{}"),
    *(
        "<|channel>thought\n{}",
        "<|channel|>analysis<|message|>{}",
        "<｜begin▁of▁thinking｜>{}",
        "```thinking\n{}",
    ),
    *("analysisI could write:\n{}", "<think>a <think>b</think> {}", "<thinking>a</thinking><think>{}"),
    *("<think>\nI close with `</think>`. {}", "Sure.\n<reasoning>{}", "\ufeff<think>{}", "\n\n<think>\n\n{}"),
]
CLOSED = [
    *("<think>{}</think>", "<Think>\n{}\n</Think>", "<thinking>{}</thinking>", "<seed:think>{}</seed:think>"),
    *(
        "[THINK]{}[/THINK]",
        "[think]{}[/think]",
        "<|begin_of_thought|>{}<|end_of_thought|>",
        "◁think▷{}◁/think▷",
    ),
    *(
        "<|START_THINKING|>{}<|END_THINKING|>",
        "<unused94>thought\n{}<unused95>",
        "<|channel>thought\n{}<channel|>",
    ),
    *(
        "{}</think>",
        "{}\n</thinking>\n",
        "{}[/THINK]",
        "{}◁/think▷",
        "{}<|end_of_thought|>",
        "{}</seed:think>",
    ),
    *("<think>a<think>b</think>{}</think>", "<reasoning >{}</reasoning >", "```thinking\n{}\n```\n"),
    *("<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",),
    *("{}<|end|><|start|>assistant<|channel|>final<|message|>", "analysisHm: {}.assistantfinal"),
    *("<think>{}</think><|begin_of_solution|>", "<think></think>", "<think>\n\n</think>\n\n"),
]

MOST_TRIED = 400  # 40 pieces, each with what is around it taken off layer by layer

each_format = pytest.mark.parametrize("name", TEXT_FORMATS)


def grammar_of(environment):
    return agentgym_gym.find(environment).grammar


def read(name, environment, reply):
    """Return the text that is sent for a reply; None for a reply that is refused."""
    try:
        reading = FORMATS[name].parse(reply, grammar_of(environment))
    except errors.UnknownAction as error:
        return error.text if agentgym_gym.find(environment).on_unknown == "forward" else None
    except errors.ActionError:
        return None
    return None if isinstance(reading, Thought) else str(reading)


# ------------------------------------------------------------------------------------------------ reasoning


@each_format
def test_reasoning_that_is_never_closed_holds_no_action(name):
    for environment, block in product(("Maze", "SQLGym", "WebArena"), THINKING):
        draft = FORMATS[name].example(grammar_of(environment)).replace("<think>", "").replace("</think>", "")
        assert read(name, environment, block.format(draft)) is None, (environment, block)


@each_format
def test_a_draft_in_reasoning_is_not_played(name):
    grammar = grammar_of("Maze")
    draft, action = grammar.parse("move left"), grammar.parse("move up")
    for block in CLOSED:
        reply = block.format(FORMATS[name].render(draft)) + FORMATS[name].render(action)
        assert read(name, "Maze", reply) == "move up", block


@pytest.mark.parametrize("quoted", ["A mark is written `<think>`.", "<think/>", "[Thought]"])
def test_what_only_looks_like_a_mark_of_reasoning_does_not_end_the_search_for_marks(quoted):
    reply = f"{quoted}\n<think>Action:\nmove left</think>\nAction:\nmove up"
    assert read("react", "Maze", reply) == "move up"


# ------------------------------------------------------------------------- replies without one marked action


def test_a_brace_in_a_string_does_not_hide_the_next_command():
    call = 'neighbourCheck with Action Input: {"graph": "PaperNet", "node": "{"}'
    reply = f"> {call}\n> think: and then\n> loadAuthorNet with Action Input: {{}}"
    assert read("adapt", "Academia", reply) is None


NOTHING = {
    "react": [
        ("SearchQA", "The form is <search> query </search> or <answer> text </answer>."),
        ("SQLGym", "Action:\n```sql\nSELECT name FROM singer WHERE"),
        ("SQLGym", "Action: SELECT name FROM singer WHERE country = 'Fra"),
        ("SQLGym", "Action: SELECT count(*) FROM t\nThis counts all of them."),
        ("Maze", "The form is, for example `Action: move up`."),
        ("Maze", "For example: Action: move up"),
        ("Maze", "Thought: move up\nAction:"),
        ("Maze", "Action: move up\nAction: move down"),
        ("Maze", "Action: move up or down"),
        ("Maze", "Action: move up because the goal is there"),
        ("Maze", "Action 1: move up\nAction 2: move left"),
        ("Maze", "Thought: My last Action: move up did nothing."),
        ("Wordle", "Action: solar or panic"),
        ("Weather", 'Action: I will not call\nfinish with Action Input: {"answer": 1}\nyet'),
        ("WebShop", "Action: search[shoes] click[buy now]"),
        ("WebShop", "Action: click[red], then click[buy now]"),
    ],
    "tags": [
        ("Maze", "<action>move up</action> or <action>move down</action>"),
        ("Maze", "The tags are `<action>` and `</action>`."),
        ("Maze", "<action></action>"),
        ("SQLGym", "<action>SELECT name FROM</action>"),
    ],
    "adapt": [
        ("Maze", "> think: I could > move up"),
        ("Maze", "> think: maybe\n> move up\n> move down"),
        ("Maze", "> move up\nThe goal is at 8, 6.\n> move left"),
        ("Maze", "I could write, for example:\nmove up\nbut I would rather think first."),
    ],
    "bare": [
        ("Maze", "I could write:\nmove up\nbut I want to think."),
        ("Maze", "For example:\nmove up"),
        ("Maze", "I will go up.\nmove up"),
        ("Maze", "move up\n\nThat brings me nearer to the goal."),
        ("Maze", "I choose: move up"),
        ("Maze", "The best action is `move up`."),
        ("Maze", "move up\nmove left"),
        ("Maze", "move up?\nor move left?"),
        ("Maze", "I am sorry, I cannot help with that."),
        ("Maze", "move up\n\nActually, that would be a wall."),
        ("Wordle", "solar, panic"),
        ("SQLGym", "SELECT name FROM singer; SELECT 1"),
        ("SQLGym", "SELECT 1;\nThis counts."),
        ("SQLGym", "Select the names of the singers from the table."),
        ("WebShop", "search[a], click[b]"),
        ("TextCraft", "1. get 1 stick\n2. get 2 string"),
        ("TextCraft", "My plan:\n1. get 1 stick\n2. get 2 string"),
        ("TextCraft", "My plan:\n1. get 1 stick\n2. get 2 string\n\nReady to begin"),
        ("TextCraft", "My plan:\n1. get 1 stick\n2. get 2 string\n\nget 1 stick\nget 3 bone"),
        ("TextCraft", "My plan:\n1. get 1 stick\n2. get 2 string\n\nFor example:\nget 1 stick"),
    ],
}


@pytest.mark.parametrize(
    ("name", "environment", "reply"),
    [(name, *case) for name, cases in NOTHING.items() for case in cases],
)
def test_a_reply_without_one_marked_action_is_refused(name, environment, reply):
    assert read(name, environment, reply) is None


FORWARDED = {
    "react": [
        ("Maze", "Action: I will not move up.", "I will not move up"),
        ("Maze", "Action: I could move up\nmove up", "I could move up"),
        ("TextCraft", "Action: None", "None"),
        (
            "TextCraft",
            "Action: I need more information about the recipes.",
            "I need more information about the recipes",
        ),
        (
            "TextCraft",
            "Action: I do not know yet.\nThe form is <action>get 1 stick</action>",
            "I do not know yet",
        ),
    ],
    "tags": [
        ("Maze", "I put it between <action> and </action>.", "and"),
        ("Maze", "<action>I am not sure</action>", "I am not sure"),
    ],
    "adapt": [("Maze", "> I would move up", "I would move up")],
}


@pytest.mark.parametrize(
    ("name", "environment", "reply", "sent"),
    [(name, *case) for name, cases in FORWARDED.items() for case in cases],
)
def test_the_text_of_a_mark_that_is_no_action_is_forwarded(name, environment, reply, sent):
    with pytest.raises(errors.UnknownAction):
        FORMATS[name].parse(reply, grammar_of(environment))
    assert read(name, environment, reply) == sent


# ------------------------------------------------------------------------------------------ how much is tried

LONG = [
    *(
        "word\n",
        "<",
        "{",
        "`",
        "``` ",
        "Action: ",
        "Action:\n",
        "Action: move up\n",
        "\u200b",
        "'\"",
        "> a\n",
    ),
    *(
        "<action>",
        "<action>a</action>",
        "(a) ",
        "a. Action: b",
        "<!-- ",
        "- ",
        "SELECT 1;\n",
        "<search>a</search>",
    ),
]


@pytest.mark.slow
@each_format
@pytest.mark.parametrize("piece", LONG)
def test_no_more_pieces_are_tried_in_a_longer_reply(name, piece, monkeypatch):
    tried = []
    parse = Grammar.parse
    monkeypatch.setattr(Grammar, "parse", lambda self, text: tried.append(len(text)) or parse(self, text))
    for environment in ("TextCraft", "SearchQA"):
        counts = []
        for size in (8_000, 16_000):
            tried.clear()
            read(
                name,
                environment,
                FORMATS[name].example(grammar_of(environment)) + "\n" + piece * (size // len(piece)),
            )
            counts.append(len(tried))
        assert counts[1] <= max(counts[0], MOST_TRIED)


# ---------------------------------------------------------------------------------- calls in the text formats

CALL = '{"name": "get", "arguments": {"count": 1, "item": "stick"}}'
ONE_CALL = [
    CALL,
    f"I take a stick first.\n\n{CALL}",
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"```json\n{CALL}\n```",
    f"<action>{CALL}</action>",
    f"Action: {CALL}",
    'Action:\n```json\n{"action": "get", "action_input": {"count": 1, "item": "stick"}}\n```',
    f"I could say {CALL}",
    f"For example: {CALL}",
    f"{CALL}\n\nShall I?",
    f"{CALL}\n\nIs that what you want me to do?",
    f"> {CALL}",
    f"> think: I need one.\n> {CALL}",
    '{"action": "get 1 stick"}',
    '{"thought": "I need one.", "action": "get 1 stick"}',
    '[TOOL_CALLS]get{"count": 1, "item": "stick"}</s>',
    '<|tool_call_begin|>functions.get:0<|tool_call_argument_begin|>{"count": 1, "item": "stick"}',
]
NOT_ONE_CALL = [
    f"{CALL}\n{CALL.replace('stick', 'string')}",
    CALL[:-1],
    '{"action": "get 1 stick", "command": "get 1 string"}',
    '{"action": "nothing"}',
    'The step before: {"action": "get 1 stick", "result": "Got 1 stick"}',
    '{"observation": "get 1 stick"}',
]


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("reply", ONE_CALL)
def test_a_call_is_read_in_a_text_format(name, reply):
    assert read(name, "TextCraft", reply) == "get 1 stick"


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("reply", NOT_ONE_CALL)
def test_a_reply_without_one_call_is_refused(name, reply):
    assert read(name, "TextCraft", reply) is None


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_the_own_mark_of_a_format_comes_before_a_call(name):
    reply = f"Action: I do not know yet.\nThe form is {CALL}"
    assert read(name, "TextCraft", reply) == ("I do not know yet" if name == "react" else "get 1 stick")


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_the_error_of_a_call_names_the_argument_that_does_not_fit(name):
    reply = CALL.replace('"count": 1', '"count": "many"')
    with pytest.raises(errors.BadArguments, match=r"whole number .*'many'"):
        FORMATS[name].parse(reply, agentgym_gym.find("TextCraft").grammar)


# ----------------------------------------------------------------------------------------- one marked action

MARKED = {
    "react": [
        ("Maze", "Action: move up\nObservation: ok\nThought: now left\nAction: move left", "move up"),
        ("Maze", "Action: move up\nuser\nYou moved.\nassistant\nAction: move left", "move up"),
        ("Maze", "Action: move up\n\n### User:\nok\n\nAction: move left", "move up"),
        ("Maze", "Action: move up\n\nAction: move up", "move up"),
        ("Maze", "I write it below the word `Action:`.\nAction:\nmove up", "move up"),
        ("Maze", "动作：move up", "move up"),
        ("Maze", "思考：好。\n行动：\nmove up。", "move up"),
        ("Maze", "Final Action: move up", "move up"),
        ("Maze", "The action: move up", "move up"),
        ("Maze", "My next action is: move up", "move up"),
        ("Maze", "Actions: move up", "move up"),
        ("Maze", "Action 3: move up", "move up"),
        ("Maze", "Action #3: move up", "move up"),
        ("Maze", "### Action\nmove up", "move up"),
        ("Maze", "## **Action:**\n`move up`", "move up"),
        ("Maze", "[Action] move up", "move up"),
        ("Maze", "Action -> move up", "move up"),
        ("Maze", "<b>Action:</b> move up", "move up"),
        ("Maze", "<p>Action: move up</p>", "move up"),
        ("Maze", "• Action: move up", "move up"),
        ("Maze", "👉 **Action**： move up ✅", "move up"),
        ("Maze", "\u200bAction\u200b:\u200b move\xa0up\u200b", "move up"),
        ("Maze", "Thought: x\u2028Action: move up", "move up"),
        ("Maze", "ACTION: MOVE UP!", "move up"),
        ("Maze", "Action: move up;", "move up"),
        # The grammar reads the whole line: a name may end in brackets.
        ("SciWorld", "Action: activate stove (to heat the water)", "activate stove (to heat the water)"),
        ("SciWorld", "Action: pick up pot (red)", "pick up pot (red)"),
        ("Wordle", 'Action: {"name": "guess", "arguments": {"word": "panic"}}', "p a n i c"),
        ("Wordle", '{\n  "action": "guess",\n  "action_input": "panic"\n}', "p a n i c"),
        ("Maze", "Action: move up  # the way is free", "move up"),
        ("Maze", "Action: move up // free", "move up"),
        ("Maze", "Action: move up (the way is free)", "move up"),
        ("Maze", "Action: move up. This brings me nearer.", "move up"),
        ("Maze", "Action: \\boxed{move up}", "move up"),
        ("Maze", "Action: $\\text{move up}$", "move up"),
        ("Maze", "Action: ```plaintext\nmove up\n```", "move up"),
        ("Maze", "Action:\n~~~\nmove up\n~~~", "move up"),
        ("Maze", "Action:\n<action>move up</action>", "move up"),
        ("Maze", "Action: “move up”", "move up"),
        ("Maze", "Action: <move up>", "move up"),
        ("Maze", "Action:\n\n\n\nmove up\n\nI hope that this helps!", "move up"),
        ("Maze", "Thought: I wait for nothing. Action: move up", "move up"),
        ("Maze", "Action: move up\n\nI will wait for the answer. Then I go on.", "move up"),
        ("Maze", "Action: move up<|im_end|>\n<|im_start|>user\nok", "move up"),
        *(
            ("Maze", f"Action: move up{end}", "move up")
            for end in (
                *(
                    "<|eot_id|>",
                    "<|eot|>",
                    "<|end|>",
                    "<|return|>",
                    "<end_of_turn>",
                    "</s>",
                    "</s>\n<s>[INST]",
                ),
                *(
                    "<｜end▁of▁sentence｜>",
                    "<|END_OF_TURN_TOKEN|>",
                    "<|user|>",
                    "<|observation|>",
                    "[e~[",
                    "<eos>",
                ),
                *("<|endoftext|>", "<seed:eos>", "<|end_of_solution|>", "<|END_RESPONSE|>", "<turn|>"),
            )
        ),
        ("Maze", "<|start_header_id|>assistant<|end_header_id|>\n\nAction: move up", "move up"),
        ("Maze", "assistant\nAction: move up", "move up"),
        ("Maze", "Action: move up\n\n" + "The wall is there. " * 900, "move up"),
        ("Maze", "Action: move up\n\n" + "word\n" * 3_000, "move up"),
        ("Maze", "Action: move up\n" * 2_000, "move up"),
        ("Maze", "Thought: " + "so\n" * 5_000 + "\nAction: move up", "move up"),
        ("SQLGym", "Action: SELECT 1\n\nThis counts them.", "SELECT 1"),
        ("SQLGym", "Action:\nSELECT a\nFROM t;\nIt gives the names.", "SELECT a\nFROM t;"),
        ("SQLGym", "Action:\nSELECT a\n\nFROM t\nWHERE b = 1", "SELECT a"),
        (
            "SQLGym",
            "Action:\n```sql\nSELECT a\n\nFROM t\nWHERE b = 1\n```",
            "SELECT a\n\nFROM t\nWHERE b = 1",
        ),
        ("WebArena", "In summary, the next action I will perform is ```click [5]```", "click [5]"),
        ("WebArena", "Action: ```click [5]```\nI click it.", "click [5]"),
        ("SearchQA", "I look it up: <search>who</search>", "<search>who</search>"),
    ],
    "tags": [
        ("Maze", "<action >move up</action >", "move up"),
        ("Maze", '<action type="x">move up</action>', "move up"),
        ("Maze", "<Action>move up</Action>", "move up"),
        ("Maze", "<action>move up<action>", "move up"),
        ("Maze", "<action>move up<\\action>", "move up"),
        ("Maze", "<action>move up</", "move up"),
        ("Maze", "<actions>move up</actions>", "move up"),
        ("Maze", "<action>Action: move up</action>", "move up"),
        ("Maze", "<action>move up</action><action>move up</action>", "move up"),
        (
            "Maze",
            "<action>move up</action>\n<observation>ok</observation>\n<action>move left</action>",
            "move up",
        ),
        ("Maze", "I use the <action> tag. <action>move up</action>", "move up"),
        ("Maze", "```xml\n<action>move up</action>\n```", "move up"),
        ("Maze", "Thought: x\nAction: move up", "move up"),
        ("Maze", "＜action＞move up＜/action＞", "move up"),
    ],
    "adapt": [
        ("Maze", "> think: up\n> move up", "move up"),
        ("Maze", "> think: up\nOK.\n> move up", "move up"),
        ("Maze", "＞ think：上\n＞ move up", "move up"),
        ("Maze", "&gt; move up", "move up"),
        ("Maze", "> move up\n> move up", "move up"),
        ("Maze", "> Action: move up", "move up"),
        ("SQLGym", "> ```sql\n> SELECT a\n> FROM t\n> ```", "SELECT a\nFROM t"),
    ],
    "bare": [
        ("Maze", "Action: move up", "move up"),
        ("Maze", "\ufeffmove\xa0up", "move up"),
        ("Maze", "<action>move up</action>", "move up"),
    ],
}

# A marked action is played, whatever the prose around it says.
PROSE_AROUND = {
    "react": [
        ("WebArena", "I could reply ```stop [N/A]``` now, but the page may still load.", "stop [N/A]"),
        ("WebArena", "A reply like ```click [5]``` would be wrong here.", "click [5]"),
        ("WebArena", "For example, ```stop [N/A]```. I have not decided yet.", "stop [N/A]"),
        ("WebArena", "Should I do ```click [5]```?", "click [5]"),
        ("WebArena", "```click [5]```\n\nWait, that is the wrong link. Let me look again", "click [5]"),
        (
            "SearchQA",
            "I will give the final answer inside <answer> and </answer> once I know it.",
            "<answer>and</answer>",
        ),
        (
            "SearchQA",
            "If it is not in the passages, I would say <answer>unknown</answer>.",
            "<answer>unknown</answer>",
        ),
        (
            "SQLGym",
            "My first try would be\n```sql\nSELECT name FROM singer\n```\nbut it lacks the filter, so",
            "SELECT name FROM singer",
        ),
        (
            "SQLGym",
            "```sql\nSELECT name FROM singer\n```\nThis is wrong since the question asks for",
            "SELECT name FROM singer",
        ),
        ("Maze", "For example:\nAction: move up", "move up"),
        ("Maze", "I was told to answer like this:\n\nThought:\nx\n\nAction:\nmove up", "move up"),
        ("Maze", "Action: move up\n\nWait, there is a wall above. I should not do that.", "move up"),
        ("Maze", "Action: move up\nNo, that is a wall.", "move up"),
        ("Maze", "Action: move up (or left)", "move up"),
        ("Maze", "Action: move up - move left", "move up"),
        ("Wordle", "Action: guess\nAction Input: panic", "p a n i c"),
        (
            "Weather",
            'Action: finish with Action Input: {"answer": 1}\nHmm, that is not right.',
            'finish with Action Input: {"answer": 1}',
        ),
    ],
    "tags": [
        ("Maze", "The form is `<action>move up</action>`.", "move up"),
        ("Maze", "I could say <action>move up</action>, but I see a wall.", "move up"),
        ("Maze", "I say <action>move up</action> once I know more.", "move up"),
        ("Maze", "For example:\n<action>move up</action>", "move up"),
        ("Maze", "<action>move up</action>\nWait, no.", "move up"),
        ("Maze", "<!-- <action>move up</action> -->", "move up"),
    ],
    "adapt": [
        ("Maze", "> move up\n\nWait, no. That is a wall.", "move up"),
        ("Maze", "An example:\n\n> move up", "move up"),
    ],
}


@pytest.mark.parametrize(
    ("name", "environment", "reply", "sent"),
    [(name, *case) for table in (MARKED, PROSE_AROUND) for name, cases in table.items() for case in cases],
)
def test_a_marked_action_is_played(name, environment, reply, sent):
    assert str(FORMATS[name].parse(reply, grammar_of(environment))) == sent
