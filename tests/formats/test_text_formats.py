"""What the text formats read, and what they refuse, judged on the whole of a reply."""

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
    """Return what is sent for a reply: the text of an action, or None."""
    try:
        reading = FORMATS[name].parse(reply, grammar_of(environment))
    except errors.UnknownAction as error:
        return error.text if agentgym_gym.find(environment).on_unknown == "forward" else None
    except errors.ActionError:
        return None
    return None if isinstance(reading, Thought) else str(reading)


# ------------------------------------------------------------------------------------------------- thinking


@each_format
def test_what_is_cut_off_in_its_thinking_holds_no_action(name):
    for environment, block in product(("Maze", "SQLGym", "WebArena"), THINKING):
        draft = FORMATS[name].example(grammar_of(environment)).replace("<think>", "").replace("</think>", "")
        assert read(name, environment, block.format(draft)) is None, (environment, block)


@each_format
def test_a_draft_in_thinking_is_not_played(name):
    grammar = grammar_of("Maze")
    drafted, meant = grammar.parse("move left"), grammar.parse("move up")
    for block in CLOSED:
        reply = block.format(FORMATS[name].render(drafted)) + FORMATS[name].render(meant)
        assert read(name, "Maze", reply) == "move up", block


# ------------------------------------------------------------------------------------ what was not meant


def test_a_brace_in_a_string_does_not_hide_the_next_command():
    call = 'neighbourCheck with Action Input: {"graph": "PaperNet", "node": "{"}'
    reply = f"> {call}\n> think: and then\n> loadAuthorNet with Action Input: {{}}"
    assert read("adapt", "Academia", reply) is None


NOT_MEANT = {
    "react": [
        ("WebArena", "I could reply ```stop [N/A]``` now, but the page may still load."),
        ("WebArena", "A reply like ```click [5]``` would be wrong here."),
        ("WebArena", "For example, ```stop [N/A]```. I have not decided yet."),
        ("WebArena", "Should I do ```click [5]```?"),
        ("WebArena", "```click [5]```\n\nWait, that is the wrong link. Let me look again"),
        ("SearchQA", "I will give the final answer inside <answer> and </answer> once I know it."),
        ("SearchQA", "The form is <search> query </search> or <answer> text </answer>."),
        ("SearchQA", "If it is not in the passages, I would say <answer>unknown</answer>."),
        (
            "SQLGym",
            "My first try would be\n```sql\nSELECT name FROM singer\n```\nbut it lacks the filter, so",
        ),
        ("SQLGym", "```sql\nSELECT name FROM singer\n```\nThis is wrong since the question asks for"),
        ("SQLGym", "Action:\n```sql\nSELECT name FROM singer WHERE"),
        ("SQLGym", "Action: SELECT name FROM singer WHERE country = 'Fra"),
        ("Maze", "The form is, for example `Action: move up`."),
        ("Maze", "For example: Action: move up"),
        ("Maze", "For example:\nAction: move up"),
        ("Maze", "I was told to answer like this:\n\nThought:\nx\n\nAction:\nmove up"),
        ("Maze", "Action: move up\n\nWait, there is a wall above. I should not do that."),
        ("Maze", "Action: move up\nNo, that is a wall."),
        ("Maze", "Action: I will not move up."),
        ("Maze", "Action: I could move up\nmove up"),
        ("Maze", "Thought: move up\nAction:"),
        ("Maze", "Action: move up\nAction: move down"),
        ("Maze", "Action: move up or down"),
        ("Maze", "Action 1: move up\nAction 2: move left"),
        ("Maze", "Action: move up (or left)"),
        ("Maze", "Action: move up - move left"),
        ("Maze", "Thought: My last Action: move up did nothing."),
        ("Wordle", "Action: guess\nAction Input: panic"),
        ("Wordle", "Action: solar or panic"),
        ("Weather", 'Action: I will not call\nfinish with Action Input: {"answer": 1}\nyet'),
        ("Weather", 'Action: finish with Action Input: {"answer": 1}\nHmm, that is not right.'),
        ("WebShop", "Action: search[shoes] click[buy now]"),
        ("WebShop", "Action: click[red], then click[buy now]"),
        ("TextCraft", "Action: None"),
        ("TextCraft", "Action: I need more information about the recipes."),
    ],
    "tags": [
        ("Maze", "I put it between <action> and </action>."),
        ("Maze", "The form is `<action>move up</action>`."),
        ("Maze", "I could say <action>move up</action>, but I see a wall."),
        ("Maze", "I say <action>move up</action> once I know more."),
        ("Maze", "For example:\n<action>move up</action>"),
        ("Maze", "<action>move up</action>\nWait, no."),
        ("Maze", "<action>move up</action> or <action>move down</action>"),
        ("Maze", "<action>I am not sure</action>"),
        ("Maze", "<action></action>"),
        ("Maze", "<!-- <action>move up</action> -->"),
        ("SQLGym", "<action>SELECT name FROM</action>"),
    ],
    "adapt": [
        ("Maze", "> think: I could > move up"),
        ("Maze", "> think: maybe\n> move up\n> move down"),
        ("Maze", "> move up\n\nWait, no. That is a wall."),
        ("Maze", "An example:\n\n> move up"),
        ("Maze", "I could write, for example:\nmove up\nbut I would rather think first."),
        ("Maze", "> I would move up"),
    ],
    "bare": [
        ("Maze", "I could write:\nmove up\nbut I want to think."),
        ("Maze", "For example:\nmove up"),
        ("Maze", "move up\nmove left"),
        ("Maze", "move up?\nor move left?"),
        ("Maze", "I am sorry, I cannot help with that."),
        ("Maze", "move up\n\nActually, that would be a wall."),
        ("Wordle", "solar, panic"),
        ("SQLGym", "SELECT name FROM singer; SELECT 1"),
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
    [(name, *each) for name, several in NOT_MEANT.items() for each in several],
)
def test_what_was_not_meant_is_not_played(name, environment, reply):
    assert read(name, environment, reply) is None


# ------------------------------------------------------------------------------------------ how much is done

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


# ------------------------------------------------------------------------- calls where words were asked for

CALL = '{"name": "get", "arguments": {"count": 1, "item": "stick"}}'
ENDS_IN_A_CALL = [
    CALL,
    f"I take a stick first.\n\n{CALL}",
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"```json\n{CALL}\n```",
    f"<action>{CALL}</action>",
    f"Action: {CALL}",
    'Action:\n```json\n{"action": "get", "action_input": {"count": 1, "item": "stick"}}\n```',
    f"> {CALL}",
    f"> think: I need one.\n> {CALL}",
    '{"action": "get 1 stick"}',
    '{"thought": "I need one.", "action": "get 1 stick"}',
    '[TOOL_CALLS]get{"count": 1, "item": "stick"}</s>',
    '<|tool_call_begin|>functions.get:0<|tool_call_argument_begin|>{"count": 1, "item": "stick"}',
]
NO_CALL = [
    f"I could say {CALL}",
    f"For example: {CALL}",
    f"{CALL}\n{CALL.replace('stick', 'string')}",
    f"{CALL}\n\nShall I?",
    f"{CALL}\n\nIs that what you want me to do?",
    CALL[:-1],
    '{"action": "get 1 stick", "command": "get 1 string"}',
    '{"action": "nothing"}',
    'The step before: {"action": "get 1 stick", "result": "Got 1 stick"}',
    '{"observation": "get 1 stick"}',
    f"Action: I do not know yet.\nThe form is {CALL}",
]


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("reply", ENDS_IN_A_CALL)
def test_a_call_is_read_where_words_were_asked_for(name, reply):
    assert read(name, "TextCraft", reply) == "get 1 stick"


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("reply", NO_CALL)
def test_a_call_that_is_only_spoken_of_is_not_taken(name, reply):
    assert read(name, "TextCraft", reply) is None


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_a_call_that_cannot_be_read_says_what_is_wrong_with_it(name):
    reply = CALL.replace('"count": 1', '"count": "many"')
    with pytest.raises(errors.BadArguments, match=r"whole number .*'many'"):
        FORMATS[name].parse(reply, agentgym_gym.find("TextCraft").grammar)


# ----------------------------------------------------------------------------------------- what was plain

PLAIN = {
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
        ("SciWorld", "Action: activate stove (to heat the water)", "activate stove"),
        ("SciWorld", "Action: pick up pot (red)", "pick up pot (red)"),
        ("Wordle", 'Action: {"name": "guess", "arguments": {"word": "panic"}}', "p a n i c"),
        ("Wordle", '{\n  "action": "guess",\n  "action_input": "panic"\n}', "p a n i c"),
        ("Maze", "Action: move up  # the way is free", "move up"),
        ("Maze", "Action: move up // free", "move up"),
        ("Maze", "Action: move up (the way is free)", "move up"),
        ("Maze", "Action: move up because the goal is there", "move up"),
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
        ("SQLGym", "Action:\nSELECT a\n\nFROM t\nWHERE b = 1", "SELECT a\n\nFROM t\nWHERE b = 1"),
        ("SQLGym", "Action: SELECT count(*) FROM t\nThis counts all of them.", "SELECT count(*) FROM t"),
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
        ("Maze", "> move up\nThe goal is at 8, 6.\n> move left", "move up"),
        ("SQLGym", "> ```sql\n> SELECT a\n> FROM t\n> ```", "SELECT a\nFROM t"),
    ],
    "bare": [
        ("Maze", "Action: move up", "move up"),
        ("Maze", "I will go up.\nmove up", "move up"),
        ("Maze", "move up\n\nThat brings me nearer to the goal.", "move up"),
        ("Maze", "\ufeffmove\xa0up", "move up"),
        ("Maze", "<action>move up</action>", "move up"),
        ("Maze", "I choose: move up", "move up"),
        ("Maze", "The best action is `move up`.", "move up"),
        ("SQLGym", "SELECT 1;\nThis counts.", "SELECT 1;"),
    ],
}


@pytest.mark.parametrize(
    ("name", "environment", "reply", "sent"),
    [(name, *each) for name, several in PLAIN.items() for each in several],
)
def test_what_was_plain_is_read(name, environment, reply, sent):
    assert read(name, environment, reply) == sent
