"""The messages for a model: system prompt and conversation, and the part of it to send.

Evaluation, recipes and training data all take the system prompt from here, so that a model is evaluated with
the messages that it was trained on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentgym_gym.errors import BadOption

__all__ = [
    "NOT_CARRIED_OUT",
    "Conversation",
    "History",
    "Message",
    "drop_blank_system",
    "estimate",
    "played_call",
    "row_messages",
    "system_message",
]

Message: TypeAlias = Mapping[str, Any]
"""A message of OpenAI's chat protocol, in the format of the request."""

NOT_CARRIED_OUT = "Not carried out: one call per turn; this one was ignored."
"""The result of an ignored call: a model expects a result for each of its calls."""

_BYTES_PER_TOKEN = 3
_TOKENS_PER_MESSAGE = 8


def played_call(info: Mapping[str, Any]) -> int:
    """Return the position of the executed call among the calls of a reply, from 0.

    Args:
        info: The info of the step. It has ``played_call`` if the reply has more than one call.
    """
    played = info.get("played_call")
    return played if type(played) is int and played > 0 else 0


@dataclass(frozen=True)
class History:
    """The part of the conversation to send. Without limits, that is the whole conversation.

    The messages before the first reply are always sent: the system prompt, the examples and the first
    observation, which contains the task. A turn is a reply and the environment's answer to it; it is sent
    completely or not at all. The last turn is always sent, since its answer is the current observation. If
    both limits are set, both apply.

    Attributes:
        turns: Maximum number of turns to send, at least 1; None for no limit.
        tokens: Maximum number of tokens of all messages to send, including the tools, at least 1; None for no
            limit. Token counts come from the server's responses if these contain them. The size of the last
            turn, which the server has not counted yet, is estimated: one token for three bytes of UTF-8, plus
            eight for each message.

    Raises:
        BadOption: A limit is less than 1.
    """

    turns: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for name, limit in (("turns", self.turns), ("tokens", self.tokens)):
            if limit is not None and (type(limit) is not int or limit < 1):
                raise BadOption(
                    "history", problem=f"should limit {name} to a whole number from 1, not {limit!r:.80}"
                )

    @classmethod
    def parse(cls, text: str) -> History:
        """Parse a policy: ``all``, ``turns:4``, ``tokens:8000``, or both limits separated by a comma.

        Raises:
            BadOption: The text is not a policy.
        """
        limits: dict[str, int] = {}
        if text.strip() == "all":
            return cls()
        for part in text.split(","):
            name, _, number = part.strip().partition(":")
            if (
                name not in {"turns", "tokens"}
                or name in limits
                or not (number.isascii() and number.isdigit())
            ):
                raise BadOption("history", text, "one of 'all', 'turns:K' and 'tokens:N'")
            limits[name] = int(number[:12])
        return cls(**limits)

    def as_dict(self) -> dict[str, int | None]:
        """Return the limits as a JSON object."""
        return {"turns": self.turns, "tokens": self.tokens}


@dataclass
class _Turn:
    messages: list[Message]
    tokens: int | None = None  # None until the turn is complete and was counted or estimated

    def size(self) -> int:
        return estimate(self.messages) if self.tokens is None else self.tokens


@dataclass
class Conversation:
    """The messages of one episode.

    Attributes:
        history: The part of the conversation to send.
        head: The messages before the first reply.
        overhead: Estimated tokens of the rest of the request, which are the tools.
    """

    history: History
    head: list[Message]
    overhead: int = 0
    _turns: list[_Turn] = field(default_factory=list)
    _first: int = 0  # the first turn to send; a turn that was omitted once is not sent again
    _head_tokens: int | None = None

    @property
    def omitted(self) -> int:
        """The number of turns that the last request left out."""
        return self._first

    @property
    def empty(self) -> bool:
        """Whether there is no reply yet."""
        return not self._turns

    def add_reply(self, reply: Message, answers: Iterable[Message] = ()) -> None:
        """Start a turn with a reply of the model."""
        self._turns.append(_Turn([reply, *answers]))

    def add_answer(self, answers: Iterable[Message]) -> None:
        """Complete the last turn with the environment's answer."""
        self._turns[-1].messages.extend(answers)

    def to_send(self) -> list[Message]:
        """Return the messages of the next request."""
        last = len(self._turns) - 1
        if self.history.turns is not None:
            self._first = max(self._first, last + 1 - self.history.turns)
        if self.history.tokens is not None:
            size = self._head_size() + sum(turn.size() for turn in self._turns[self._first :])
            while size > self.history.tokens and self._first < last:
                size -= self._turns[self._first].size()
                self._first += 1
        return [*self.head, *(message for turn in self._turns[self._first :] for message in turn.messages)]

    def counted(self, tokens: int) -> None:
        """Store the server's token count of the messages in the last request."""
        if not self._turns:
            self._head_tokens = tokens
            return
        sent = self._turns[self._first :]
        before = self._head_size() + sum(turn.size() for turn in sent[:-1])
        for turn in sent[:-1]:
            turn.tokens = turn.size()
        sent[-1].tokens = max(tokens - before, 1)

    def _head_size(self) -> int:
        return estimate(self.head) + self.overhead if self._head_tokens is None else self._head_tokens


def system_message(prompt: str | None) -> list[dict[str, str]]:
    """Return the system message as a list; an empty list if there is no prompt or it is blank."""
    return [{"role": "system", "content": prompt}] if prompt and prompt.strip() else []


def row_messages(prompt: str | None) -> list[dict[str, str]]:
    """Return the messages of a row of training data.

    A row needs a message, since verl's dataset renders it with a chat template. Without a system prompt the
    row has a blank system message, which `drop_blank_system` removes before the messages reach the model.
    """
    return system_message(prompt) or [{"role": "system", "content": ""}]


def drop_blank_system(messages: Iterable[Message]) -> list[Message]:
    """Return messages without blank system messages.

    The chat template's own default then applies, if it has one, as in a request without a system message.
    """
    return [message for message in messages if message.get("role") != "system" or not _is_blank(message)]


def estimate(messages: Sequence[Message]) -> int:
    """Estimate the number of tokens of messages from their size in UTF-8."""
    return sum(_TOKENS_PER_MESSAGE + _bytes(message) // _BYTES_PER_TOKEN for message in messages)


def _is_blank(message: Message) -> bool:
    content = message.get("content")
    return content is None or (isinstance(content, str) and not content.strip())


def _bytes(message: Message) -> int:
    content = message.get("content") or ""
    more = {key: value for key, value in message.items() if key not in {"role", "content"}}
    return len(str(content).encode("utf-8", "replace")) + (len(json.dumps(more)) if more else 0)
