"""Code as action: one Python call, parsed with :mod:`ast` and never executed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentgym_gym.formats._base import Format, ParseResult
from agentgym_gym.formats._labels import without_thought_label
from agentgym_gym.formats._reply import MarkedReply, action_in

if TYPE_CHECKING:
    from agentgym_gym.actions import Action, Grammar

__all__ = ["CodeAsAction"]

_FENCE = re.compile(r"```[ \t]?\w*[ \t]*\n")


class CodeAsAction(Format):
    """One Python call in a fenced block, or as the whole reply."""

    name = "code_as_action"
    _rule = (
        "Reply with one Python code block that calls exactly one of the functions once, with plain values as "
        "arguments. Write what you think as a comment above the call."
    )

    def _actions(self, grammar: Grammar) -> str:
        lines = []
        for example in grammar.examples:
            arguments = ", ".join(grammar.signature(example.name()))
            lines.append(f"- {example.name()}({arguments}) - {example.doc()} Example: {_call(example)}")
        return "The functions:\n" + "\n".join(lines)

    def _wrap(self, action: Action, thought: str) -> str:
        comment = "".join(f"# {line}\n" for line in thought.splitlines())
        return f"```python\n{comment}{_call(action)}\n```"

    def read(self, reply: str, grammar: Grammar) -> ParseResult:
        """Parse the call in a code block or in the whole reply."""
        whole = MarkedReply(reply, grammar)
        return whole.coded(own=True) or action_in(whole, "code", "code block with one call")

    def _thought_in(self, reply: str) -> str:
        fence = _FENCE.search(reply)
        before, code = (reply[: fence.start()], reply[fence.end() :]) if fence else ("", reply)
        thoughts = [without_thought_label(before)] if before.strip() else []
        for line in code.split("\n"):
            if not line.lstrip().startswith("#"):
                break
            thoughts.append(line.lstrip().removeprefix("#").removeprefix(" "))
        return "\n".join(thoughts)


def _call(action: Action) -> str:
    return f"{action.name()}({', '.join(f'{k}={v!r}' for k, v in action.to_json().items())})"
