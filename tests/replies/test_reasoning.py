"""Reasoning contains no action, with any marks: an action is read only after it."""

from __future__ import annotations

import pytest

from agentgym_gym import FORMATS, errors, find

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

each_text_format = pytest.mark.parametrize("name", ["react", "tags", "adapt", "bare"])


def is_played(name, reply, grammar):
    """Whether an action is read, or a text that an environment may forward."""
    try:
        FORMATS[name].parse(reply, grammar)
    except errors.UnknownAction as error:
        return error.text is not None
    except errors.ActionError:
        return False
    return True


@each_text_format
@pytest.mark.parametrize("environment", ["Maze", "SQLGym", "WebArena"])
def test_unclosed_reasoning_contains_no_action(name, environment):
    grammar = find(environment).grammar
    draft = FORMATS[name].example(grammar).replace("<think>", "").replace("</think>", "")
    assert [block for block in THINKING if is_played(name, block.format(draft), grammar)] == []


@each_text_format
def test_a_draft_in_reasoning_is_not_played(name):
    grammar = find("Maze").grammar
    draft, action = grammar.parse("move left"), grammar.parse("move up")
    for block in CLOSED:
        reply = block.format(FORMATS[name].render(draft)) + FORMATS[name].render(action)
        assert FORMATS[name].parse(reply, grammar) == action, block
