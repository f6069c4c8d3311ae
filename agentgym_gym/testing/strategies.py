"""Hypothesis strategies for replies, tasks and episodes. They require the extra ``testing``.

For typed actions, use ``st.from_type(Get)`` or :meth:`Grammar.strategy`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentgym_gym.arguments import strategies
from agentgym_gym.catalogue import Environment, find
from agentgym_gym.errors import BadOption
from agentgym_gym.formats import Format, get_format

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from agentgym_gym.actions import Grammar

__all__ = ["MARKS", "broken_replies", "episodes", "mixtures", "replies", "tasks", "thoughts"]

MARKS: tuple[str, ...] = (
    # Markers of the formats, tokens of chat templates, line separators, and text that breaks tools.
    *("Action:", "\nAction:\n", "Action：", "**Action:**", "\n> Action :", "Thought:", "Observation:"),
    *("<action>", "</action>", "<ACTION>", "<think>", "</think>", "<tool_call>", "</tool_call>"),
    *("> ", "\n> ", "> think:", "think: ", ">", "```", "```python\n", "\n```\n", "```json\n", "`"),
    *('{"function_name": "', '"arguments": {', '{"name": "', '{"function": ', "{}", "{", "}", "[", "]"),
    *('"', "'", "“", "”", "*", "**", "#", "_", "\\", "\\u", "\\ud800", "(", ")", ", ", "=", ":", ":="),
    *("</s>", "<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<｜end▁of▁sentence｜>"),
    *("\n", "\r\n", "\r", "\t", "\x00", "\x0b", "\x0c", "\x1c", "\x1f", "\x85", "\xa0", "\u2028", "\u3000"),
    *("\ud800", "\udfff", "\N{KELVIN SIGN}", "ß", "İ", "٣", "\uff11", "\u202e", "\ufeff", "\U0001f600"),
    *("0", "1", "-1", "1.0", "1e9", "0x", "9**9**9", "NaN", "None", "True", "lambda:", "f'{", "await "),
)
"""Text fragments that are special to a reply parser."""


def thoughts() -> SearchStrategy[str]:
    """Generate plain text, possibly empty, such as a model writes before an action; it contains no action."""
    st = strategies()
    letters = st.characters(categories=["Lu", "Ll", "Nd", "Zs"], include_characters=".,!?'-()\n")
    return st.text(letters)  # type: ignore[no-any-return]


def replies(environment: str | Environment, action_format: str | Format = "react") -> SearchStrategy[str]:
    """Generate replies with exactly one action in the given format.

    Args:
        environment: The environment, or its name.
        action_format: The format, or its name.

    Raises:
        UnknownEnvironment: The environment does not exist.
        BadOption: The format does not exist.
    """
    grammar, wrapped = _grammar(environment), _format(action_format)
    drawn = strategies().tuples(grammar.strategy(), thoughts())
    return drawn.map(lambda drawn: wrapped.render(*drawn))  # type: ignore[no-any-return]


def mixtures(environment: str | Environment) -> SearchStrategy[str]:
    """Generate random sequences of `MARKS` and fragments of the environment's actions.

    Args:
        environment: The environment, or its name.

    Raises:
        UnknownEnvironment: The environment does not exist.
    """
    st = strategies()
    piece = st.sampled_from([*MARKS, *_pieces(_grammar(environment))]) | st.text(max_size=4)
    return st.lists(piece, max_size=24).map("".join)  # type: ignore[no-any-return]


def broken_replies(
    environment: str | Environment, action_format: str | Format = "react"
) -> SearchStrategy[str]:
    """Generate malformed replies.

    They are well-formed replies with fragments removed, inserted or doubled; `mixtures`; and arbitrary text.
    Most cannot be parsed, but some can, for example if the damage is in the thought. The text may contain
    lone surrogates, which models do generate and UTF-8 cannot encode.

    Args:
        environment: The environment, or its name.
        action_format: The format, or its name.

    Raises:
        UnknownEnvironment: The environment does not exist.
        BadOption: The format does not exist.
    """
    st = strategies()
    good = replies(environment, action_format)

    @st.composite  # type: ignore[untyped-decorator]
    def broken(draw: Any) -> str:
        reply: str = draw(good)
        for _ in range(draw(st.integers(1, 4))):
            start, end = sorted(draw(st.tuples(*[st.integers(0, len(reply))] * 2)))
            pieces = st.sampled_from(["", reply[start:end] * 2, reply[start:end].swapcase(), reply])
            put = draw(pieces | st.sampled_from(MARKS) | st.text(max_size=3))
            end = draw(st.sampled_from([start, min(start + 1, len(reply)), end]))
            reply = reply[:start] + put + reply[end:]
        return reply

    anything = st.text(st.characters(codec=None))
    return broken() | mixtures(environment) | anything  # type: ignore[no-any-return]


def tasks(environment: str | Environment, split: str = "all") -> SearchStrategy[int]:
    """Generate task ids.

    Args:
        environment: The environment, or its name.
        split: The split of the tasks; all tasks by default.

    Raises:
        UnknownEnvironment: The environment does not exist.
        BadOption: The environment does not have this split.
    """
    return strategies().sampled_from(_environment(environment).split(split))  # type: ignore[no-any-return]


def episodes(
    environment: str | Environment, action_format: str | Format = "react", *, max_turns: int = 8
) -> SearchStrategy[tuple[int, list[str]]]:
    """Generate episodes: a task id and the reply of each turn. Most replies are well-formed.

    Args:
        environment: The environment, or its name.
        action_format: The format, or its name.
        max_turns: Maximum number of replies.

    Raises:
        UnknownEnvironment: The environment does not exist.
        BadOption: The format does not exist, or ``max_turns`` is below 1.
    """
    if max_turns < 1:
        raise BadOption("max_turns", max_turns, "1 or more")
    st = strategies()
    good = replies(environment, action_format)
    mixed = st.one_of(good, good, broken_replies(environment, action_format))
    return st.tuples(  # type: ignore[no-any-return]
        tasks(environment), st.lists(mixed, min_size=1, max_size=max_turns)
    )


def _environment(given: str | Environment) -> Environment:
    return find(given) if isinstance(given, str) else given


def _grammar(given: str | Environment) -> Grammar:
    return _environment(given).grammar


def _format(given: str | Format) -> Format:
    return get_format(given) if isinstance(given, str) else given


def _pieces(grammar: Grammar) -> list[str]:
    """Return example actions in every notation, and their words."""
    found = []
    for example in grammar.examples:
        text, arguments = str(example), example.to_json()
        call = f"{example.name()}({', '.join(map(repr, arguments.values()))})"
        found += [text, call, json.dumps({"function_name": example.name(), "arguments": arguments})]
        found += text.split()
    return sorted(set(found))
