"""ADaPT: ``> think: …`` and ``> get 1 stick`` (Prasad et al., 2024, arXiv:2311.05772)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from agentgym_gym.actions import Action, Grammar, Thought
from agentgym_gym.formats._action_text import line_end, read_from
from agentgym_gym.formats._answer import AnswerText
from agentgym_gym.formats._base import Format, ParseResult
from agentgym_gym.formats._labels import labels
from agentgym_gym.formats._reply import Marked, MarkedReply, action_in, other_mark

__all__ = ["ADaPT"]

_LINE = re.compile(r"^[^\w\n>&]{0,8}(?<![-=])(?:>|&gt;)(?!=)(?:[ \t>]|&gt;)*", re.MULTILINE)
_THINK = re.compile(
    r"[^\w\n]{0,12}(?:think|thought|thinking|reasoning|思考|想法)s?[ \t]?\d{0,2}[*_`]*"
    r"(?:\][ \t]*:?|[ \t]*:)[*_]*",
    re.IGNORECASE,
)
_THINK_LINE = re.compile(r"^[ \t>]{0,8}think(?:ing)?[ \t]?:(.*)$", re.IGNORECASE | re.MULTILINE)
_OPENINGS = frozenset("`~{[<")  # of a fence, an object or a tag
_MOST_UNITS = 8  # actions that may extend over several lines
_LONGEST_HEAD = 80  # characters of a line that are searched for the first words of an action


class ADaPT(Format):
    """Lines that start with ``>``, as in ADaPT.

    A reply with only thoughts costs a turn, and its observation is "OK.".
    """

    name = "adapt"
    _rule = (
        "Begin each line with `> `. A line `> think: ...` holds what you think; it may come before the "
        "action or be a whole reply. Any other line is an action: write at most one in a reply."
    )

    def _wrap(self, action: Action, thought: str) -> str:
        think = f"> think: {' '.join(thought.split())}\n" if thought else ""
        return f"{think}> {action.style.write(str(action))}"

    def read(self, reply: str, grammar: Grammar) -> ParseResult:
        """Parse the line that is marked as an action, or return the thoughts."""
        whole = MarkedReply(reply, grammar)
        thoughts: list[tuple[int, int]] = []
        found = whole.one_of(_commands(whole, thoughts), "command")
        if found is None and thoughts:
            thought = "\n".join(whole.piece(*span) for span in thoughts)
            whole.hide(thoughts)
            found = other_mark(whole, "command")
            if found is None and whole.unclosed:
                raise whole.nothing("line that begins with `> `")
            found = found or ParseResult(Thought(thought), "command")
        return found or action_in(whole, "command", "line that begins with `> `")

    def _thought_in(self, reply: str) -> str:
        return "\n".join(line.strip() for line in _THINK_LINE.findall(reply))


def _commands(reply: MarkedReply, thoughts: list[tuple[int, int]]) -> Iterator[Marked]:
    """Yield the lines of a reply that are marked as an action, and collect the thoughts."""
    text, shape, behind = reply.text, reply.shape, 0
    several = 0
    for line in _LINE.finditer(shape):
        if line.start() < behind:
            continue  # part of the previous action
        start, end = line.end(), line_end(text, line.end())
        if think := _THINK.match(shape, start):
            thoughts.append((think.end(), end))
            continue
        if label := labels(shape[start:end]):
            start += label[0].end
        if not shape[start:end].strip():
            another = _LINE.search(shape, end)
            end = another.start() if another else len(text)
            if not shape[start:end].strip():
                continue
        if _is_line(reply, start, end):
            yield Marked(line.start(), start, end)
            continue
        several += 1
        if several > _MOST_UNITS:
            break
        part = text[start : _end_of_paragraph(reply, start, end)]
        part, places = _unquoted(part) if _LINE.match(text, end + 1) else (part, int)
        found = read_from(AnswerText(part, reply.grammar), 0, len(part))
        if found is not None:
            found = found._replace(start=start + places(found.start), end=start + places(found.end))
            behind = found.end
            yield Marked(line.start(), start, found.end, found)


def _is_line(reply: MarkedReply, start: int, end: int) -> bool:
    """Return whether the action that starts on a marked line also ends on it."""
    line = reply.shape[start:end]
    if line[:1] in _OPENINGS or reply.shape.find("nput", end) >= 0:
        return False
    tagged = reply.style.mark is not None and reply.style.fence is None
    return reply.style.lines or (tagged and "<" not in line)


def _end_of_paragraph(reply: MarkedReply, start: int, end: int) -> int:
    """Return the latest end of the text that starts on a marked line.

    A statement without a fence extends to the next marked line with a thought or another action.
    """
    text, style = reply.text, reply.style
    if style.fence is None or style.lines or text[start : start + 1] in _OPENINGS:
        return len(text)
    for line in _LINE.finditer(text, end):
        head = text[line.end() : line.end() + _LONGEST_HEAD]
        if _THINK.match(text, line.end()) or reply.grammar.begins(head):
            return line.start()
    return len(text)


def _unquoted(text: str) -> tuple[str, Callable[[int], int]]:
    """Return a text without the ``>`` of its lines, and a function from new to original positions."""
    kept, cuts, position, size = [], [], 0, 0
    for line in _LINE.finditer(text):
        kept.append(text[position : line.start()])
        size += line.start() - position
        cuts.append((size, len(line[0])))
        position = line.end()
    plain = "".join([*kept, text[position:]])
    return plain, lambda place: place + sum(length for at, length in cuts if at <= place)
