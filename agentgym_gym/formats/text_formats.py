"""The formats in which an action is written out in words."""

from __future__ import annotations

import re
from itertools import islice

from agentgym_gym.actions import Action, Grammar, Thought
from agentgym_gym.errors import ManyActions, NoAction
from agentgym_gym.formats.base import Format, ParsedReply, answer_of, one_action, read_piece

__all__ = ["ADaPT", "Bare", "ReAct", "Tags"]

_ASIDES = 50  # lines without a mark that are looked at, so that a reply of a million lines is read quickly


class ReAct(Format):
    """``Thought:`` and ``Action:`` paragraphs."""

    name = "react"
    _rule = (
        "First write what you think below the word `Thought:`, then exactly one action below the word "
        "`Action:`, and end your reply there."
    )
    # A line is found by the line end before it, which is fast; "^" is tried at each letter.
    _label = re.compile(
        r"\n(?:[ \t>#*_`-]*(?:next[ \t]+)?action(?:[ \t]*\d{1,3})?[*_`]*[ \t]*[:：][*_]*"
        r"|[ \t]*(?:#{1,6}[ \t]*|\*\*)action(?:\*\*)?[ \t]*$)",  # a heading needs no colon
        re.IGNORECASE | re.MULTILINE,
    )
    # Inside a line, only behind the end of a sentence: "my last Action: get 1 stick failed" is a report.
    _inline = re.compile(r"(?:(?<=[.!?;:)])|(?<=[.!?;:)][ \t]))[*_`]*Action[*_`]*[:：][*_]*")
    _next = re.compile(r"^[ \t>#*_`-]*(?:observation|thought)[*_`]*[ \t]*[:：]", re.IGNORECASE | re.MULTILINE)

    def _wrap(self, action: Action, thought: str) -> str:
        return f"Thought:\n{thought}\n\nAction:\n{action.style.write(str(action))}"

    def parse(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read the text after the one ``Action:``.

        A label at the beginning of a line counts. One inside a line counts only if there is no other. Text
        that can only be an action needs no label.
        """
        reply = "\n" + answer_of(reply)
        labels = _first_two(self._label, reply) or _first_two(self._inline, reply)
        if not labels and grammar.style.shows_in(reply):
            return one_action(reply, grammar)
        if not labels:
            raise NoAction("there is no `Action:` in the reply")
        if len(labels) > 1:
            raise ManyActions("there is more than one `Action:` in the reply")
        after = reply[labels[0].end() :]
        following = self._next.search(after)
        return one_action(after[: following.start()] if following else after, grammar)


class Tags(Format):
    """``<think>…</think><action>…</action>``."""

    name = "tags"
    _rule = (
        "First write what you think between `<think>` and `</think>`, then exactly one action between "
        "`<action>` and `</action>`."
    )
    _open = re.compile(r"<action>", re.IGNORECASE)
    _close = re.compile(r"</action>", re.IGNORECASE)

    def _wrap(self, action: Action, thought: str) -> str:
        return f"<think>{thought}</think>\n<action>{action.style.write(str(action))}</action>"

    def parse(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read the text between the tags."""
        reply = answer_of(reply)
        opened = _first_two(self._open, reply)
        if not opened:
            raise NoAction("there is no `<action>` in the reply")
        if len(opened) > 1:
            raise ManyActions("there is more than one `<action>` in the reply")
        # Where generation stops at `</action>`, an engine leaves that out of the reply.
        closed = self._close.search(reply, opened[0].end())
        return one_action(reply[opened[0].end() : closed.start() if closed else None], grammar)


class ADaPT(Format):
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

    def parse(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read the one line that is an action.

        Lines without the ``>`` are ignored unless they can be read as an action: prompts in this format often
        end in ``>``.
        """
        lines = _lines_of(answer_of(reply), grammar)
        asides = islice((line for line in lines if not line.startswith(">")), _ASIDES)
        known = {
            line for line in asides if _is_thought(line) or isinstance(read_piece(line, grammar), Action)
        }
        marked = [line.removeprefix(">").strip() for line in lines if line.startswith(">") or line in known]
        marked = marked or lines[:1]
        commands = [line for line in marked if line and not _is_thought(line)]
        if len(commands) > 1:
            raise ManyActions("there is more than one action in the reply")
        if commands:
            return one_action(commands[0], grammar)
        if marked and any(marked):
            return Thought("\n".join(line.partition(":")[2].strip() for line in marked))
        raise NoAction("there is no line that begins with `> ` in the reply")


def _lines_of(answer: str, grammar: Grammar) -> list[str]:
    """Return the lines of a reply; if an action may have several, each with those that belong to it."""
    lines = answer.split("\n") if grammar.style.verbatim else answer.splitlines()
    if grammar.style.lines:
        return [line.strip() for line in lines if line.strip()]
    found: list[list[str]] = []
    fenced = False
    for line in lines:
        if found and (fenced or not line.startswith(">")):
            found[-1].append(line)
        else:
            found.append([line])
        fenced ^= line.count("```") % 2 == 1
    joined = ("\n".join(parts).strip() for parts in found)
    return [text for text in joined if text]


def _is_thought(line: str) -> bool:
    return line[:6].lower() == "think:"


class Bare(Format):
    """The action and nothing else."""

    name = "bare"
    _rule = "Reply with exactly one action and nothing else."

    def _wrap(self, action: Action, thought: str) -> str:
        return action.style.write(str(action))

    def parse(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read the reply as it stands."""
        return one_action(answer_of(reply), grammar)


def _first_two(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return at most two matches: whether there is a second is all that is asked."""
    found = []
    for match in pattern.finditer(text):
        found.append(match)
        if len(found) > 1:
            break
    return found
