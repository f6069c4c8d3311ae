"""A reply as long as an action may be is read quickly, and a longer one by no more attempts."""

from __future__ import annotations

import contextlib

import pytest

from agentgym_gym import FORMATS, errors, find
from agentgym_gym.actions import MAX_ACTION_CHARS, Grammar
from clock import cpu_seconds

pytestmark = pytest.mark.slow


def read(name, reply, grammar):
    with contextlib.suppress(errors.ActionError):
        FORMATS[name].parse(reply, grammar)


PARTS_OF_CALLS = [
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


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["function_calling", "code_as_action"])
def test_a_long_reply_is_read_quickly(name):
    """16 kB of anything takes below 20 ms on an idle machine; here five times that is let pass."""
    grammar = find("TextCraft").grammar
    example = FORMATS[name].example(grammar)
    for part in PARTS_OF_CALLS:
        long = part * (MAX_ACTION_CHARS // len(part))
        for reply in (long, example + long):
            took = cpu_seconds(lambda reply=reply: read(name, reply, grammar), 0.1)
            assert took <= 0.1, f"{part!r}: {took:.3f} s"


MOST_TRIED = 400  # 40 pieces, each with what is around it taken off layer by layer

PIECES = [
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


@pytest.mark.parametrize("name", ["react", "tags", "adapt", "bare"])
@pytest.mark.parametrize("environment", ["TextCraft", "SearchQA"])
def test_no_more_pieces_are_tried_in_a_longer_reply(name, environment, monkeypatch):
    tried = 0
    parse = Grammar.parse

    def counted(self, text):
        nonlocal tried
        tried += 1
        return parse(self, text)

    monkeypatch.setattr(Grammar, "parse", counted)
    grammar = find(environment).grammar
    example = FORMATS[name].example(grammar)
    for piece in PIECES:
        counts = []
        for size in (8_000, 16_000):
            tried = 0
            read(name, f"{example}\n{piece * (size // len(piece))}", grammar)
            counts.append(tried)
        assert counts[1] <= max(counts[0], MOST_TRIED), piece
