"""Reasoning that stands in a reply: taken out of what a model is shown of its earlier replies."""

from __future__ import annotations

import re

__all__ = ["without_thinking"]

_NAMES = r"(?:seed:)?think(?:ing)?|thought|reasoning"
_MARK = re.compile(
    rf"<(?P<xml>/?)(?:{_NAMES})>"  # Qwen, DeepSeek, GLM and most others
    r"|\[(?P<square>/?)THINK\]"  # Magistral
    r"|<\|(?P<command>START|END)_THINKING\|>"  # Command A
    r"|◁(?P<kimi>/?)think▷"
    r"|(?P<gemma><\|channel>thought|<channel\|>)"
    r"|<\|channel\|>(?P<channel>analysis|final)<\|message\|>"  # gpt-oss
)
_CLOSING = frozenset({"/", "END", "<channel|>", "final"})


def without_thinking(reply: str) -> str:
    """Return a reply without its reasoning.

    Reasoning is what stands between the two marks of a model family. What stands before a closing mark that
    nothing opened is reasoning too, since chat templates often write the opening mark. Reasoning that never
    ends goes to the end of the reply.
    """
    kept: list[str] = []
    position = depth = 0
    for mark in _MARK.finditer(reply):
        closes = next(filter(None, mark.groups()), "") in _CLOSING
        if not closes:
            if not depth:
                kept.append(reply[position : mark.start()])
            depth += 1
        else:
            if not depth:
                kept.clear()
            depth = 0
        position = mark.end()
    if not position:
        return reply
    if not depth:
        kept.append(reply[position:])
    return "".join(kept).strip()
