"""The prose around a marked action changes nothing: `read(P + "\\n" + taught(a) + "\\n" + Q) == a`.

P and Q are lines without a mark, by the filter of `unmarked`. In `bare` the whole reply is the action: with
prose around it nothing is marked, except where the actions themselves carry marks.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import environment_texts
from agentgym_gym import FORMATS, errors
from every_format import (
    ENVIRONMENTS,
    MARKED,
    each_environment,
    each_pair_and_native,
    failed,
    verdict,
)
from unmarked import SENTENCES, holds_mark

FULL = (
    settings.default.max_examples >= 25
)  # HYPOTHESIS_PROFILE=full; else a line for each environment in turn
_STEP = 1 if FULL else len(ENVIRONMENTS)

# ------------------------------------------------------------------------------------------------ the filter


def test_the_sentences_contain_no_mark():
    assert [line for line in SENTENCES if holds_mark(line)] == []
    assert len(SENTENCES) == len(set(SENTENCES)) >= 350
    assert all(map(str.strip, SENTENCES))


@pytest.mark.parametrize(
    "line",
    [
        *("Action:", "Action: go", "**Action:** go", "## Action", "## Next action", "My final action is: go"),
        *("Action 2: go", "Action → go", "Action = go", "[Action] go", "I go. Action: go", "Action - go"),
        *("动作：走", "行动: 走", "Aktion: geh", "Azione: vai", "Действие: иди", "<b>Action</b>: go"),
        *(
            "Action Input: 1",
            "<action>",
            "</action>",
            "<ACTION>",
            "< action >",
            "<tool_call>",
            "<function=go>",
        ),
        *("```", "```python", "~~~", '{"name": "go"}', "[TOOL_CALLS]", "go(1)", "functions.go:0", "> go"),
        *(
            "  > go",
            "- > go",
            "\uff1e go",
            "<think>",
            "</think>",
            "<thinking>",
            "[THINK]",
            "<|channel|>analysis",
        ),
        *("<|im_end|>", "</s>", "Observation: a door", "**Observation**: a door", "User: go on", "### User"),
        *("user", "观察：门", "<tool_response>", "a\nAction:\nb", "a\r> b", "<｜tool▁calls▁begin｜>"),
    ],
)
def test_the_filter_recognises_a_mark(line):
    assert holds_mark(line)


@pytest.mark.slow  # the texts of a world
@each_environment
def test_enough_is_left_of_the_texts_of_an_environment(environment):
    kept = [text for text in environment_texts.sentences(environment.name) if not holds_mark(text)]
    assert len(kept) >= 50
    assert {text[-1] for text in kept} > {":", "."}


# ---------------------------------------------------------------------------------------------- the property


def actions_of(environment):
    """Return the examples of a grammar and some samples of it."""
    drawn = np.random.default_rng(0)
    return (*environment.grammar.examples, *(environment.grammar.sample(drawn) for _ in range(10)))


def around(lines, seed):
    """Yield P, Q and a thought: every line comes at each of the three places, sometimes several as one."""
    order = np.random.default_rng(seed).permuted(np.tile(np.arange(len(lines)), (2, 1)), axis=1)
    for number, line in enumerate(lines):
        behind, thought = (lines[index] for index in order[:, number])
        before = line if number % 4 else f"{behind}\n\n{thought}\n{line}"
        yield before, behind, thought


def expected(environment, action_format, before, behind):
    """Return the verdict that the rule has for an action as taught between prose."""
    alone = not before and not behind
    return "read" if alone or action_format.name != "bare" or environment.name in MARKED else "NoAction"


def check_around(environment, action_format, lines):
    """Check all of the property for lines before, after and, where there is a place, as the thought."""
    grammar, failures, count = environment.grammar, [], 0
    actions = itertools.cycle(actions_of(environment))
    for before, behind, thought in around(lines, ENVIRONMENTS.index(environment)):
        action = next(actions)
        plain = action_format.render(action)
        replies = [
            (f"{before}\n{plain}\n{behind}", before, behind),
            (f"{before}\n{plain}", before, ""),
            (f"{plain}\n{behind}", "", behind),
        ]
        try:
            with_thought = action_format.render(action, thought)
        except errors.BadOption:
            failures.append(("the thought is refused", thought))
        else:
            replies.append((f"{before}\n{with_thought}\n{behind}", before, behind))
        for reply, first, last in replies:
            count += 1
            found = verdict(action_format, reply, grammar, action)
            if found != expected(environment, action_format, first, last):
                failures.append((found, reply))
    assert not failures, failed(failures, count)


@each_pair_and_native
def test_ordinary_sentences_change_nothing(environment, action_format):
    check_around(
        environment, action_format, _words(SENTENCES)[ENVIRONMENTS.index(environment) % _STEP :: _STEP]
    )


@pytest.mark.slow  # the texts of a world
@each_pair_and_native
def test_the_words_of_the_environment_change_nothing(environment, action_format):
    lines = [text for text in environment_texts.sentences(environment.name) if not holds_mark(text)]
    formats = [*FORMATS, "tool_calls"]
    check_around(
        environment, action_format, _words(lines)[formats.index(action_format.name) % _STEP :: _STEP]
    )


def _words(lines):
    """Leave out what is all punctuation: in `bare` it may be taken off with the markdown."""
    return [line for line in lines if any(map(str.isalpha, line))]


@each_pair_and_native
def test_punctuation_changes_nothing(environment, action_format):
    if action_format.name == "bare":
        return
    lines = [line for line in SENTENCES if not any(map(str.isalpha, line))]
    check_around(environment, action_format, lines[:: 1 if FULL else 4])


_PIECES = (
    *(
        "<",
        ">",
        "`",
        "``",
        "[",
        "]",
        "(",
        ")",
        '"',
        "'",
        "“",
        "*",
        "**",
        "#",
        "-",
        "~",
        "|",
        "\\",
        "}",
        "$",
        "&",
    ),
    *(
        ":",
        "：",
        ".",
        "。",
        "?",
        "!",
        ",",
        ";",
        "=",
        "/",
        "…",
        "\n",
        "\n\n",
        "\r\n",
        "\t",
        " ",
        "\u2028",
        "\x0b",
    ),
    *(
        "action",
        "Action",
        "The next action",
        "Thought: ",
        "thought",
        "call",
        "tool",
        "final",
        "answer",
        "json",
    ),
    *(
        "python",
        "sql",
        "SELECT 1",
        "I",
        "not",
        "would",
        "1.",
        "2)",
        "🙂",
        "我",
        "é",
        "\ufeff",
        "\u200b",
        "\ud800",
    ),
)


@st.composite
def unmarked(draw, environment):
    """Any text without a mark, more often than by chance with the characters of marks."""
    pieces = st.sampled_from([*_PIECES, *environment_texts.named(environment)])
    text = draw(st.lists(pieces, max_size=16).map("".join) | st.text(st.characters(codec=None)))
    return "" if holds_mark(text) else text


@each_pair_and_native
def test_random_text_changes_nothing(environment, action_format):
    bare = action_format.name == "bare"

    @given(environment.grammar.strategy(), unmarked(environment), unmarked(environment))
    def check(action, before, behind):
        reply = f"{before}\n{action_format.render(action)}\n{behind}"
        found = verdict(action_format, reply, environment.grammar, action)
        if not bare or environment.name in MARKED:
            assert found == "read", reply
        elif any(map(str.isalpha, before + behind)):
            assert found == "NoAction", reply

    check()


@each_pair_and_native
def test_an_action_as_taught_is_read(environment, action_format):
    for action in actions_of(environment):
        assert verdict(action_format, action_format.render(action), environment.grammar, action) == "read"


@each_pair_and_native
def test_the_place_of_an_action_lies_in_what_was_taught(environment, action_format):
    if action_format.name == "bare" and environment.name not in MARKED:
        return
    for action, line in zip(actions_of(environment), SENTENCES[3::40], strict=False):
        reply = action_format.render(action)
        reading = action_format.read(f"{line}\n{reply}\n{line}", environment.grammar)
        start = len(line) + 1
        assert start <= reading.start < reading.end <= start + len(reply)
        assert reading.ignored == ()
