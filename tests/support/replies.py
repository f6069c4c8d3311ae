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
        action_format: The format that the model was told to write.
        line: The line of its headline in the file of the format, from 1.
        headline: A few words about the reply.
        family: The family of models that write so.
        environment: The environment it was written to.
        reply: The text of the model.
        kind: ``action`` where the rule reads it, ``nothing`` where the rule refuses the reply, or ``either``
            where the rule allows both.
        action: The text of the action; empty for ``nothing``.
    """

    action_format: str
    line: int
    headline: str
    family: str
    environment: agentgym_gym.Environment
    reply: str
    kind: str
    action: str

    def __str__(self):
        return f"{self.action_format}.txt:{self.line}: {self.headline}"

    @cached_property
    def sent(self):
        """The text that an environment with its default options sends, or None; and whether it is forwarded.

        Text is forwarded where the grammar does not know it.
        """
        try:
            action = FORMATS[self.action_format].parse(self.reply, self.environment.grammar)
        except errors.UnknownAction as error:
            forwarded = self.environment.on_unknown == "forward" and error.text is not None
            return (error.text if forwarded else None), forwarded
        except errors.ActionError:
            return None, False
        return (None if isinstance(action, Thought) else str(action)), False

    def verdict(self):
        """Return ``read``, ``refused``, ``forwarded`` or ``wrong``."""
        text, forwarded = self.sent
        if text is None:
            return "refused"
        if self.kind != "nothing" and text == self.action:
            return "read"
        return "forwarded" if forwarded else "wrong"


def entries(action_format):
    """Return the entries of one format, in the order of its file.

    Raises:
        ValueError: A part of the file is no entry.
    """
    return _entries(action_format, (FOLDER / f"{action_format}.txt").read_text("utf-8"))


@cache
def _entries(action_format, text):
    found, end = [], 0
    for match in _ENTRY.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match.start() != end or _HEADLINE.search(match["reply"]):
            raise ValueError(f"{action_format}.txt:{line}: an entry is a headline, a reply and its label")
        end = match.end()
        found.append(_entry(action_format, line, match))
    if end != len(text):
        raise ValueError(f"{action_format}.txt: the last entry has no label")
    return found


def _entry(action_format, line, match):
    label = _unescaped(match["label"])
    kind, _, rest = label.partition(" ")
    return Entry(
        action_format=action_format,
        line=line,
        headline=match["headline"],
        family=match["family"],
        environment=agentgym_gym.find(match["environment"]),
        reply=_unescaped(match["reply"]),
        kind=kind if kind in {"nothing", "either"} else "action",
        action="" if kind == "nothing" else rest if kind == "either" else label,
    )


def _unescaped(text):
    text = _REPEATED.sub(lambda found: found[2] * int(found[1]), text)
    return _CHARACTER.sub(lambda found: chr(int(found[1], 16)), text)
