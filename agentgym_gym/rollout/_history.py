"""The messages for a model: system prompt and conversation, and the part of it to send.

Evaluation, recipes and training data all take the system prompt from here, so that a model is evaluated with
the messages that it was trained on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentgym_gym._imports import import_object
from agentgym_gym._text import scrub
from agentgym_gym.errors import BadOption

__all__ = [
    "NOT_CARRIED_OUT",
    "Conversation",
    "History",
    "Message",
    "Summarize",
    "drop_blank_system",
    "estimate",
    "merge_system",
    "played_call",
    "row_messages",
    "system_message",
]

Message: TypeAlias = Mapping[str, Any]
"""A message of OpenAI's chat protocol, in the format of the request."""

Summarize: TypeAlias = Callable[[Sequence[Message]], str]
"""Returns the summary of the messages of omitted turns."""

NOT_CARRIED_OUT = "Not carried out: one call per turn; this one was ignored."
"""The result of an ignored call: a model expects a result for each of its calls."""

_OF_ENVIRONMENT = "environment"
_SUMMARY = "history_summary"  # the key in the info of a step

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
            turn, which the server has not counted yet, and of the summary is estimated: one token for three
            bytes of UTF-8, plus eight for each message.
        summary: Source of a summary of the omitted turns, which the first observation ends with:
            ``"environment"`` for the latest ``info["history_summary"]``, or the import path
            ``"module:function"`` of a function that is called with the messages of the omitted turns and
            returns text; None for no summary. A summary requires a limit.

    Raises:
        BadOption: A limit is less than 1, or the summary is not one of these or has no limit.
    """

    turns: int | None = None
    tokens: int | None = None
    summary: str | None = None

    def __post_init__(self) -> None:
        for name, limit in (("turns", self.turns), ("tokens", self.tokens)):
            if limit is not None and (type(limit) is not int or limit < 1):
                raise BadOption(
                    "history", problem=f"should limit {name} to a whole number from 1, not {limit!r:.80}"
                )
        if self.summary is None:
            return
        if not isinstance(self.summary, str) or not _is_source(self.summary):
            problem = f"should summarize by 'environment' or 'module:function', not {self.summary!r:.80}"
            raise BadOption("history", problem=problem)
        if self.turns is None and self.tokens is None:
            raise BadOption(
                "history", str(self), problem="omits no turn, so there is no summary: add turns:K or tokens:N"
            )

    def __str__(self) -> str:
        """Return the policy as text for :meth:`parse`."""
        parts = [
            f"{name}:{limit}" for name, limit in (("turns", self.turns), ("tokens", self.tokens)) if limit
        ]
        if self.summary is not None:
            parts.append("summary" if self.summary == _OF_ENVIRONMENT else f"summary:{self.summary}")
        return ",".join(parts) or "all"

    @classmethod
    def parse(cls, text: str | History) -> History:
        """Parse a policy.

        Args:
            text: ``all``, or parts separated by commas: ``turns:4``, ``tokens:8000`` or both, and ``summary``
                for a summary of the environment or ``summary:module:function`` for the summary of a function.
                A policy is returned unchanged.

        Raises:
            BadOption: The text is not a policy.
        """
        if isinstance(text, History):
            return text
        parts: dict[str, Any] = {}
        if text.strip() == "all":
            return cls()
        for part in text.split(","):
            name, separator, value = part.strip().partition(":")
            is_number = value.isascii() and value.isdigit()
            is_valid = is_number if name in {"turns", "tokens"} else name == "summary"
            if name == "summary" and separator:
                is_valid = value != _OF_ENVIRONMENT and _is_source(value)
            if name in parts or not is_valid:
                raise BadOption(
                    "history",
                    text,
                    "one of 'all', 'turns:K' and 'tokens:N', or limits with 'summary' or "
                    "'summary:module:function'",
                )
            parts[name] = int(value[:12]) if is_number else value or _OF_ENVIRONMENT
        return cls(**parts)

    def as_dict(self) -> dict[str, Any]:
        """Return the policy as a JSON object."""
        # Runs of earlier versions lack `summary`. It is added only if set, so that they can resume.
        summary = {} if self.summary is None else {"summary": self.summary}
        return {"turns": self.turns, "tokens": self.tokens, **summary}

    def summarizer(self) -> Summarize | None:
        """Import the function of the summary; return None if there is none.

        Raises:
            BadOption: The import failed, or the object is not callable.
        """
        if self.summary is None or self.summary == _OF_ENVIRONMENT:
            return None
        try:
            summarize: Any = import_object(self.summary)
        except (Exception, SystemExit) as error:  # a module may raise anything
            problem = f"has a function that cannot be imported: {type(error).__name__}: {error}"
            raise BadOption("history", str(self), problem=problem) from error
        if not callable(summarize):
            raise BadOption(
                "history", str(self), problem=f"has a {type(summarize).__name__} in place of a function"
            )
        function: Summarize = summarize
        return function


def _is_source(summary: str) -> bool:
    """Return whether a text names the source of a summary."""
    module, separator, name = summary.partition(":")
    return summary == _OF_ENVIRONMENT or all((module, separator, name, ":" not in name, "," not in summary))


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
        clean: Converts a summary, as the caller converts the texts of the other messages.
        restore: Converts a message back, for the function of the summary.

    Raises:
        BadOption: The function of the summary cannot be imported.
    """

    history: History
    head: list[Message]
    overhead: int = 0
    clean: Callable[[str], str] = str
    restore: Callable[[Message], Message] = dict
    _turns: list[_Turn] = field(default_factory=list)
    _first: int = 0  # the first turn to send; a turn that was omitted once is not sent again
    _head_tokens: int | None = None
    _from_info: str | None = None  # the environment's latest summary
    _from_function: tuple[int, str] = (0, "")  # the number of summarized turns, and their summary

    def __post_init__(self) -> None:
        self._summarize = self.history.summarizer()

    @property
    def omitted(self) -> int:
        """The number of turns that the last request omitted."""
        return self._first

    @property
    def empty(self) -> bool:
        """Whether there is no reply yet."""
        return not self._turns

    def add(self, message: Message, info: Mapping[str, Any]) -> None:
        """Add a message of a record: an observation or a reply, as text.

        Args:
            message: The message.
            info: The info that came with an observation.
        """
        if message["role"] == "assistant":
            self.add_reply(message)
        elif self.empty:
            self.head.append(message)
        else:
            self.add_answer([message], info)

    def add_reply(self, reply: Message, answers: Iterable[Message] = ()) -> None:
        """Start a turn with a reply of the model."""
        self._turns.append(_Turn([reply, *answers]))

    def add_answer(self, answers: Iterable[Message], info: Mapping[str, Any]) -> None:
        """Complete the last turn with the environment's answer.

        Args:
            answers: The messages with the observation.
            info: The info of the step, which may have a summary.
        """
        self._turns[-1].messages.extend(answers)
        if isinstance(info.get(_SUMMARY), str):
            self._from_info = info[_SUMMARY]

    def to_send(self) -> list[Message]:
        """Return the messages of the next request.

        Raises:
            BadOption: The environment has no summary, or the function did not return text.
        """
        last = len(self._turns) - 1
        if self.history.turns is not None:
            self._first = max(self._first, last + 1 - self.history.turns)
        if self.history.tokens is not None:
            while self._first < last and self._size() > self.history.tokens:
                self._first += 1
        return [*self._summarized_head(), *_messages(self._turns[self._first :])]

    def counted(self, tokens: int) -> None:
        """Store the server's token count of the messages in the last request."""
        if not self._turns:
            self._head_tokens = tokens
            return
        sent = self._turns[self._first :]
        before = self._size() - sent[-1].size()
        for turn in sent[:-1]:
            turn.tokens = turn.size()
        sent[-1].tokens = max(tokens - before, 1)

    def _size(self) -> int:
        """Return the tokens of the request without the turns that are omitted."""
        head = estimate(self.head) + self.overhead if self._head_tokens is None else self._head_tokens
        summary = self._summary()
        if summary:
            head += estimate([{"content": summary}])
        return head + sum(turn.size() for turn in self._turns[self._first :])

    def _summarized_head(self) -> list[Message]:
        """Return the head with the summary of the omitted turns.

        The summary is no message of its own, because many chat templates require that roles alternate.
        """
        summary = self._summary()
        if not summary:
            return self.head
        *before, observation = self.head
        return [*before, {**observation, "content": f"{observation['content']}\n\n{summary}"}]

    def _summary(self) -> str:
        """Return the summary of the omitted turns; an empty text if there are none.

        Raises:
            BadOption: As for :meth:`to_send`.
        """
        if self.history.summary is None or not self._first:
            return ""
        if self._summarize is None:
            if self._from_info is None:
                problem = (
                    f'requires info["{_SUMMARY}"], and no step had it: return it from the environment, or '
                    "give a function by summary:module:function"
                )
                raise BadOption("history", str(self.history), problem=problem)
            return self.clean(scrub(self._from_info))
        if self._from_function[0] != self._first:  # called once for each number of omitted turns
            text: object = self._summarize(
                [self.restore(message) for message in _messages(self._turns[: self._first])]
            )
            if not isinstance(text, str):
                problem = f"has a function that returned {type(text).__name__}: it should return text"
                raise BadOption("history", str(self.history), problem=problem)
            self._from_function = self._first, self.clean(scrub(text))
        return self._from_function[1]


def _messages(turns: Iterable[_Turn]) -> list[Message]:
    return [message for turn in turns for message in turn.messages]


def system_message(prompt: str | None) -> list[dict[str, str]]:
    """Return the system message as a list; an empty list if there is no prompt or it is blank."""
    return [{"role": "system", "content": prompt}] if prompt and prompt.strip() else []


def row_messages(prompt: str | None) -> list[dict[str, str]]:
    """Return the messages of a row of training data.

    A row needs a message, since verl's dataset renders it with a chat template. Without a system prompt the
    row has a blank system message, which `drop_blank_system` removes before the messages reach the model.
    """
    return system_message(prompt) or [{"role": "system", "content": ""}]


def merge_system(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with a leading system message merged into the user message after it.

    Some chat templates and model servers have no system role. Evaluation and training then send this.
    """
    if not messages or messages[0].get("role") != "system":
        return list(messages)
    first, *others = messages
    if others and others[0].get("role") == "user" and isinstance(others[0].get("content"), str):
        content = others.pop(0)["content"]
        return [{"role": "user", "content": f"{first['content']}\n\n{content}"}, *others]
    return [{"role": "user", "content": str(first["content"])}, *others]


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
