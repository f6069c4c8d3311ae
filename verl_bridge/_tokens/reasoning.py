"""Find where the reasoning of a thinking model ends in its reply.

Each model family has its own delimiters. Some chat templates write the opening delimiter themselves, so that
a reply begins in the middle of the reasoning.
"""

from __future__ import annotations

__all__ = ["MARKS", "TOKENS", "continued", "opens", "span"]

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
"""How reasoning begins and ends: in Qwen, DeepSeek, GLM and most others; then Seed-OSS, Magistral, Command A,
Gemma 4, Kimi and gpt-oss, which have delimiters of their own."""

TOKENS = frozenset(mark for pair in MARKS for mark in pair) | {"<|channel|>", "<|message|>", "<|channel>"}
"""Tokens of these delimiters. Parsers need them as text, even if they are special tokens."""


def span(reply: str, *, opened: bool = False) -> tuple[int, int]:
    """Return where the answer begins and ends in a reply: after the last closing delimiter of reasoning.

    If reasoning never ends, the answer is the text before it, which is empty in most replies.

    Args:
        reply: The model's text, with the delimiters.
        opened: Whether the chat template has already opened the reasoning.
    """
    ends = [reply.rfind(end) + len(end) for _, end in MARKS if end in reply]
    if opened and not ends:
        return len(reply), len(reply)
    start = max(ends, default=0)
    begins = [reply.index(begin, start) for begin, _ in MARKS if begin in reply[start:]]
    return start, min(begins, default=len(reply))


def opens(generation_prompt: str) -> bool:
    """Return whether a template's generation prompt ends by opening the reasoning."""
    return _opened_by(generation_prompt) is not None


def continued(generation_prompt: str, reply: str) -> str:
    """Return the text of a reply after a generation prompt, which may have opened the reasoning.

    A reply without reasoning then begins by ending it.

    Args:
        generation_prompt: The prompt.
        reply: The reply, with its reasoning if it has any.
    """
    marks = _opened_by(generation_prompt)
    if marks is None:
        return reply
    begin, end = marks
    if end not in reply:
        return f"\n{end}\n\n{reply}"
    blank = generation_prompt[len(generation_prompt.rstrip()) :]
    return reply.lstrip().removeprefix(begin).removeprefix(blank)


def _opened_by(generation_prompt: str) -> tuple[str, str] | None:
    """Return the delimiters of the reasoning that a generation prompt opens."""
    shown = generation_prompt.rstrip()
    return next((marks for marks in MARKS if shown.endswith(marks[0])), None)
