"""Strips inline reasoning from replies before the model sees them again in the history."""

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

    Reasoning is the text between the opening and closing tag of a model family. Text before an unmatched
    closing tag is reasoning too, because chat templates often write the opening tag. Reasoning without a
    closing tag extends to the end of the reply.
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
