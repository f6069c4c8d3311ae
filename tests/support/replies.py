"""The corpus of replies in `tests/replies/`, each labelled by the reading rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import agentgym_gym
from agentgym_gym import FORMATS, errors
from agentgym_gym.actions import Thought

FOLDER = Path(__file__).resolve().parents[1] / "replies"
EVERY_FORMAT = "every_format"
_KINDS = {"nothing", "either", "forward", "error", "thought"}

_ENTRY = re.compile(
    r"^=== (?P<headline>[^|\n]+) \| (?P<family>[^|\n]+) \| (?P<environment>\w+)\n"
    r"(?P<reply>.*?)\n?^--> (?P<label>.*?)\s*(?=^=== |\Z)",
    re.MULTILINE | re.DOTALL,
)
_HEADLINE = re.compile(r"^=== ", re.MULTILINE)
_CHARACTER = re.compile(r"\{U\+([0-9A-F]{4,6})\}")
_REPEATED = re.compile(r"\{x ([0-9]+) ((?:[^{}]|\{U\+[0-9A-F]+\})*)\}")


@dataclass(frozen=True)
class Entry:
    """A reply as a model writes it, and its label by the reading rule.

    Attributes:
        action_format: The format that the prompt requires.
        file: The name of its file: the format, or ``every_format``.
        line: The line of its headline in the file, from 1.
        headline: A few words about the reply.
        family: The family of models that write so.
        environment: The environment it was written to.
        reply: The text of the model.
        kind: ``action`` where the rule reads it, ``nothing`` where the rule refuses the reply, ``either``
            where the rule allows both, or ``forward``, ``error`` or ``thought``: see the README.
        action: The text after the kind: the action's; empty for ``nothing``.
    """

    action_format: str
    file: str
    line: int
    headline: str
    family: str
    environment: agentgym_gym.Environment
    reply: str
    kind: str
    action: str

    def __str__(self):
        return f"{self.file}.txt:{self.line}: {self.headline}"

    @property
    def sends_nothing(self):
        """Whether the label allows no text to be sent to the server."""
        return self.kind in {"nothing", "error", "thought"}

    @cached_property
    def reading(self):
        """The action or thought that the format reads, or its error."""
        try:
            return FORMATS[self.action_format].parse(self.reply, self.environment.grammar)
        except errors.ActionError as error:
            return error

    @property
    def sent(self):
        """The text that an environment with its default options sends, or None; and whether it is forwarded.

        Text outside the grammar is forwarded.
        """
        if isinstance(self.reading, errors.UnknownAction):
            forwarded = self.environment.on_unknown == "forward" and self.reading.text is not None
            return (self.reading.text if forwarded else None), forwarded
        refused = isinstance(self.reading, (errors.ActionError, Thought))
        return (None if refused else str(self.reading)), False

    @property
    def is_as_labelled(self):
        """Whether the error or the thought matches the label, or the text is forwarded."""
        if self.kind == "error":
            name, _, words = self.action.partition(" ")
            return type(self.reading).__name__ == name and words in str(self.reading)
        if self.kind == "thought":
            return self.reading == Thought(self.action)
        return self.sent == (self.action, True)

    def verdict(self):
        """Return ``read``, ``refused``, ``forwarded`` or ``wrong``."""
        text, forwarded = self.sent
        if text is None:
            return "refused"
        if not self.sends_nothing and text == self.action:
            return "read"
        return "forwarded" if forwarded else "wrong"


def entries(action_format):
    """Return the entries of one format: from its file, and from the file of every format.

    Raises:
        ValueError: A part of a file is no entry.
    """
    return [
        entry
        for file in (action_format, EVERY_FORMAT)
        for entry in _entries(action_format, file, (FOLDER / f"{file}.txt").read_text("utf-8"))
    ]


@cache
def _entries(action_format, file, text):
    found, end, line = [], 0, 1
    for match in _ENTRY.finditer(text):
        if match.start() != end or _HEADLINE.search(match["reply"]):
            raise ValueError(f"{file}.txt:{line}: an entry is a headline, a reply and its label")
        found.append(_entry(action_format, file, line, match))
        end = match.end()
        line += text.count("\n", match.start(), end)
    if end != len(text):
        raise ValueError(f"{file}.txt: the last entry has no label")
    return found


def _entry(action_format, file, line, match):
    label = _unescaped(match["label"])
    kind, _, rest = label.partition(" ")
    kind = kind if kind in _KINDS else "action"
    return Entry(
        action_format=action_format,
        file=file,
        line=line,
        headline=match["headline"],
        family=match["family"],
        environment=agentgym_gym.find(match["environment"]),
        reply=_unescaped(match["reply"]),
        kind=kind,
        action={"action": label, "nothing": ""}.get(kind, rest),
    )


def _unescaped(text):
    text = _REPEATED.sub(lambda found: found[2] * int(found[1]), text)
    return _CHARACTER.sub(lambda found: chr(int(found[1], 16)), text)
