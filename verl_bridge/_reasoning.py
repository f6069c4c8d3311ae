"""The reasoning of thinking models: where it ends in a reply.

A model family has its own marks for it. Some chat templates write the first mark themselves, so that a reply
begins in the midst of the reasoning.
"""

from __future__ import annotations

__all__ = ["MARKS", "TOKENS", "opens", "span"]

MARKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought", "<channel|>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
)
"""How reasoning begins and ends, in Qwen, DeepSeek, GLM and most others; Seed-OSS, Magistral, Command A,
Gemma 4, Kimi and gpt-oss have marks of their own."""

TOKENS = frozenset(mark for pair in MARKS for mark in pair) | {"<|channel|>", "<|message|>", "<|channel>"}
"""Tokens of these marks. They are text to whoever reads a reply, even where they are special tokens."""


def span(reply: str, *, opened: bool = False) -> tuple[int, int]:
    """Return where the answer in a reply begins and ends: behind the last mark that ends some reasoning.

    Reasoning that never ends leaves what stands before it, which is nothing in most replies.

    Args:
        reply: What the model wrote, with the marks.
        opened: Whether the chat template has begun the reasoning already.
    """
    ends = [reply.rfind(end) + len(end) for _, end in MARKS if end in reply]
    if opened and not ends:
        return len(reply), len(reply)
    start = max(ends, default=0)
    begins = [reply.index(begin, start) for begin, _ in MARKS if begin in reply[start:]]
    return start, min(begins, default=len(reply))


def opens(generation_prompt: str) -> bool:
    """Whether what a template lets a reply begin with ends by beginning the reasoning."""
    return generation_prompt.rstrip().endswith(tuple(begin for begin, _ in MARKS))
