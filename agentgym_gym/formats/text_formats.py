"""The formats in which an action is written out in words.

All of them read in one way: the places that a reply marks as that of its action are found, each is read, and
what the whole reply says decides. That gives one action, or an error that says what to write.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from itertools import islice

from agentgym_gym.actions import Action, Grammar, Thought
from agentgym_gym.errors import BadArguments, NoAction, UnknownAction
from agentgym_gym.formats._labels import ANSWERED
from agentgym_gym.formats._reply import Block, Reply
from agentgym_gym.formats.base import Format, ParsedReply
from agentgym_gym.formats.call_formats import action_of_call

__all__ = ["ADaPT", "Bare", "ReAct", "ReActOnOneLine", "Tags"]


class _TextFormat(Format):
    """A format in which an action is written out in words."""

    def parse(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read the action in words; a call, as models are trained to emit, is read where there is none."""
        try:
            read = self._read(reply, grammar)
        except (NoAction, UnknownAction, BadArguments):
            action = action_of_call(reply, grammar)
            if action is None:
                raise
            return action
        return (action_of_call(reply, grammar) or read) if isinstance(read, Thought) else read

    @abstractmethod
    def _read(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read the action in words."""


class ReAct(_TextFormat):
    """``Thought:`` and ``Action:`` paragraphs."""

    name = "react"
    _rule = (
        "First write what you think below the word `Thought:`, then exactly one action below the word "
        "`Action:`, and end your reply there."
    )

    def _wrap(self, action: Action, thought: str) -> str:
        return f"Thought:\n{thought}\n\nAction:\n{action.style.write(str(action))}"

    def _read(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read what stands behind ``Action:``.

        A label at the beginning of a line counts. One inside a line counts only behind the end of a sentence,
        and if there is no other. Text that can only be an action needs no label.
        """
        return _marked(Reply(reply, grammar), "write it below the word `Action:`")


class ReActOnOneLine(ReAct):
    """The same with the action on the line of its label, where alone AgentGym's tool servers look for it."""

    _rule = (
        "First write what you think below the word `Thought:`, then the word `Action:` and exactly one "
        "action on the same line, and end your reply there."
    )

    def _wrap(self, action: Action, thought: str) -> str:
        return f"Thought:\n{thought}\n\nAction: {action.style.write(str(action))}"


class Tags(_TextFormat):
    """``<think>…</think><action>…</action>``."""

    name = "tags"
    _rule = (
        "First write what you think between `<think>` and `</think>`, then exactly one action between "
        "`<action>` and `</action>`."
    )

    def _wrap(self, action: Action, thought: str) -> str:
        return f"<think>{thought}</think>\n<action>{action.style.write(str(action))}</action>"

    def _read(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read what stands between the tags."""
        return _marked(Reply(reply, grammar), "write it between `<action>` and `</action>`", tags_first=True)


def _marked(reply: Reply, advice: str, *, tags_first: bool = False) -> Action:
    """Return the action that a label, a tag or its own form marks.

    Raises:
        ActionError: There is none, or more than one.
    """
    for way in (reply.tagged, reply.labelled) if tags_first else (reply.labelled, reply.tagged):
        action = way()
        if action is not None:
            return action
    if not reply.style.shows_in(reply.text):
        raise NoAction(f"no action is marked in the reply; {advice}")
    return reply.unmarked(only_marked=True)


class ADaPT(_TextFormat):
    """``> think: …`` and ``> get 1 stick``, as in ADaPT (Prasad et al., 2024, arXiv:2311.05772).

    A reply that only thinks is allowed: it costs a turn and is answered "OK.".
    """

    name = "adapt"
    _rule = (
        "Begin each line with `> `. A line `> think: ...` holds what you think; it may come before the "
        "action or be a whole reply. Any other line is an action: write at most one in a reply."
    )

    def _wrap(self, action: Action, thought: str) -> str:
        think = f"> think: {' '.join(thought.split())}\n" if thought else ""
        return f"{think}> {action.style.write(str(action))}"

    def _read(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read the one line that is an action.

        Lines without the ``>`` are ignored unless they can be read as an action: prompts in this format often
        end in ``>``.
        """
        whole = Reply(reply, grammar)
        blocks, thoughts = _commands(whole)
        if any(whole.text[block.start : block.end].strip() for block in blocks):
            return whole.one_of(blocks)
        if thoughts:
            return whole.labelled(inline=False) or whole.tagged() or Thought("\n".join(thoughts))
        if not blocks:
            action = whole.labelled() or whole.tagged()
            if action is not None or whole.text.strip():
                return action or whole.unmarked(only_marked=False)
        raise NoAction("there is no action in the reply; write it in a line that begins with `> `")


_THINK = (
    r"[^\w\n]{0,12}(?:think|thought|thinking|reasoning|思考|想法)s?[ \t]?\d{0,2}[*_`]*"
    r"(?:\][ \t]*:?|[ \t]*:)[*_]*"
)
_MARKED = re.compile(r"^[^\w\n>&]{0,8}(?<![-=])(?:>|&gt;)(?!=)(?:[ \t>]|&gt;)*", re.MULTILINE)
_THINKS = re.compile(rf"^{_THINK}", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(_THINK, re.IGNORECASE)
_LABEL = re.compile(r"[*_`]*(?:next )?act(?:ion)?[*_`]*[ \t]*:[*_`]*[ \t]*", re.IGNORECASE)
_GOES_ON = re.compile(r"[*_`]*action[ _]?input\b", re.IGNORECASE)
# One that is not closed is matched to the end, so that it is looked at once.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)')
_OK = re.compile(r"OK\.?[ \t]*(?=\n|\Z)")
_MOST_COMMANDS = 300
_MOST_ASIDES = 50  # lines without a mark that are looked at, so that a reply of a million is read quickly


def _commands(reply: Reply) -> tuple[list[Block], list[str]]:
    """Return the parts of a reply that are commands, and its thoughts."""
    _join_lines(reply)
    shape = reply.shape
    # The first of each kind hold the first of both, and where the last one of them ends.
    found = [islice(pattern.finditer(shape), _MOST_COMMANDS + 1) for pattern in (_MARKED, _THINKS)]
    starts = sorted({match.start() for matches in found for match in matches})
    if not starts:
        return [], []
    blocks, thoughts = _asides(reply, 0, starts[0]), []
    ends = [*starts[1:], len(shape)]
    for start, end in islice(zip(starts, ends, strict=True), _MOST_COMMANDS):
        mark = _MARKED.match(shape, start)
        begin = mark.end() if mark else start
        line = shape.find("\n", begin, end)
        line = end if line < 0 else line
        if thinks := _THOUGHT.match(shape, begin):
            thoughts.append(reply.text[thinks.end() : line].strip())
            blocks += _asides(reply, line, end)
            continue
        if _OK.match(shape, begin):
            break
        label = _LABEL.match(shape, begin)
        blocks.append(Block(start, label.end() if label else begin, end, end))
        if reply.style.lines and ANSWERED.match(shape, line, end):
            blocks[-1] = blocks[-1]._replace(end=line, behind=line)
            break  # what the action leads to is imagined
    reply.opening = starts[0]
    return blocks, thoughts


def _join_lines(reply: Reply) -> None:
    """Take the mark off the lines that go on with what a line before began.

    That is a fence, an object or a call, and every action that is written in several lines, such as SQL.
    """
    fenced, depth, kept, position, before = False, 0, [], 0, 0
    several, begun = bool(reply.style.fence), False
    if not several and not any(sign in reply.shape for sign in ("```", "{", "nput")):
        return
    for mark in islice(_MARKED.finditer(reply.shape), _MOST_COMMANDS):
        end = reply.shape.find("\n", mark.end())
        line = reply.shape[mark.end() : end if end >= 0 else None]
        follows = reply.shape.rfind("\n", 0, max(0, mark.start() - 1)) + 1 == before
        before = mark.start()
        if not fenced and _THOUGHT.match(line):
            depth = 0  # the object has an end: the brace left open stands in a string
            begun = False
        elif follows and (
            fenced or depth > 0 or (begun and not reply.reader.grammar.knows(line)) or _GOES_ON.match(line)
        ):
            kept.append(reply.text[position : mark.start()])
            position = mark.end()
        else:
            begun = several
        fenced ^= line.count("```") % 2 == 1
        outside = _STRING.sub(lambda said: "" if said[0].endswith('"') else said[0], line)
        depth = max(0, depth + outside.count("{") - outside.count("}"))
    if kept:
        reply.rewrite("".join([*kept, reply.text[position:]]))


def _asides(reply: Reply, start: int, end: int) -> list[Block]:
    """Return the lines between two places that are actions without a mark."""
    if not reply.style.lines:
        return [Block(start, start, end, end)] if reply.style.shows_in(reply.text[start:end]) else []
    blocks = []
    for line in reply.shape[start:end].split("\n", _MOST_ASIDES)[:_MOST_ASIDES]:
        said = reply.text[start : start + len(line)].strip()
        if said and reply.reader.might_read(said) and isinstance(reply.reader.read(said), Action):
            blocks.append(Block(start, start, start + len(line), start + len(line)))
        start += len(line) + 1
    return blocks


class Bare(_TextFormat):
    """The action and nothing else."""

    name = "bare"
    _rule = "Reply with exactly one action and nothing else."

    def _wrap(self, action: Action, thought: str) -> str:
        return action.style.write(str(action))

    def _read(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read the one action of the reply; what else it says must be about that."""
        whole = Reply(reply, grammar)
        return whole.labelled() or whole.tagged() or whole.unmarked(only_marked=False)
