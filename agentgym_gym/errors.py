"""All errors of this library, in one tree.

.. code-block:: text

    gymnasium.error.Error
    └── AgentGymError
        ├── SetupError                 the setup must change before an episode can start
        │   ├── NoServer               no server is configured and none can be started
        │   ├── WrongServer            the server at the address provides another environment
        │   ├── AccessDenied           the server, or a gateway in front of it, requires credentials
        │   ├── MissingExtra           an optional dependency is not installed
        │   ├── UnknownEnvironment     no environment of that name is registered
        │   ├── InUse                  another thread is using the environment
        │   └── BadOption              an argument, or a combination of arguments, is not accepted
        │       └── BadFile            a file cannot be read or written, or has invalid contents
        ├── ActionError                the agent's reply contains no valid action
        │   ├── NoAction               no part of the reply is marked as the action
        │   ├── ManyActions            the reply contains several actions, so it is ambiguous
        │   ├── UnknownAction          the environment has no action of that name
        │   └── BadArguments           the action exists, but its arguments are invalid
        ├── Fault                      the environment failed, independently of the agent
        │   ├── ServerUnreachable      no connection could be made: the request was never sent
        │   ├── ServerTimeout          the request was sent, but the reply was not complete in time
        │   ├── ConnectionLost         the connection broke before the reply was complete
        │   ├── ServerError            an HTTP status that the protocol does not include
        │   ├── BadReply               the reply violates the protocol
        │   ├── EnvironmentFailed      the server reported that the environment failed
        │   ├── JudgeFailed            the server cannot score the task: its reference or a check fails
        │   ├── LeaseLost              the remote environment is no longer ours
        │   └── ServerFull             the server has no free environment
        └── AgentFault                 the agent failed to reply: its model server, or its own code
            ├── ModelUnreachable       no connection to the model server could be made
            ├── ModelTimeout           the model server did not reply in time
            ├── ModelBusy              the model server accepts no more requests for now
            ├── ModelError             the model server failed, or the connection broke
            ├── BadCompletion          the model server's reply is not a completion
            ├── ConversationRejected   the model server rejects one conversation, after others
            └── AgentCrashed           the code of an agent raised an error

The four families have four audiences. A ``SetupError`` is for the author of the call. An ``ActionError`` is
for the agent: an episode turns it into an observation and continues. A ``Fault`` is for the evaluation: the
episode is no evidence about the agent and must be left out. The same holds for an ``AgentFault``, which
agents raise: no request reached the model, or its reply was lost. Both are ``transient``, except for
``JudgeFailed``: a retry of the task may succeed, while a ``SetupError`` persists until its cause is fixed.

A step after the end of an episode raises ``gymnasium.error.ResetNeeded``.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import gymnasium.error

from agentgym_gym._deprecated import deprecated_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

__all__ = [
    "AccessDenied",
    "ActionError",
    "AgentCrashed",
    "AgentFault",
    "AgentGymError",
    "ArgumentName",
    "BadArguments",
    "BadCompletion",
    "BadFile",
    "BadOption",
    "BadReply",
    "ClientAnswer",
    "ConnectionLost",
    "ConversationRejected",
    "EnvironmentFailed",
    "Fault",
    "InUse",
    "JudgeFailed",
    "LeaseLost",
    "ManyActions",
    "MissingExtra",
    "ModelBusy",
    "ModelError",
    "ModelTimeout",
    "ModelUnreachable",
    "NoAction",
    "NoServer",
    "ServerError",
    "ServerFull",
    "ServerTimeout",
    "ServerUnreachable",
    "SetupError",
    "UnknownAction",
    "UnknownEnvironment",
    "WrongServer",
]


__getattr__ = deprecated_names(__name__, {"Argument": "agentgym_gym.errors:ArgumentName"}, removed_in="0.4")


class ArgumentName(str):
    """The name of an argument of this library, as a part of an error's message.

    The command line replaces it by the name of its option. It changes no other part, which may be a text of
    the user, of a server or of another library.
    """

    __slots__ = ()


Message: TypeAlias = str | Sequence[str]
"""A text, or its parts: the names of arguments in it are an `ArgumentName` each."""


class AgentGymError(gymnasium.error.Error):
    """Base class of all errors of this library.

    Args:
        *parts: The message; several parts are joined. The name of an argument is an `ArgumentName`.

    Attributes:
        transient: Whether a later retry may succeed.
    """

    transient: bool = False

    def __str__(self) -> str:
        return "".join(map(str, self.args))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"  # hydra shows it for an argument of the agent loop

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args), vars(self)  # the constructor may need other arguments

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the error with other names for the arguments in its message.

        Args:
            names: The new names by the library's; an argument without one keeps its name.
        """
        error = copy.copy(self)
        error.args = tuple(
            ArgumentName(names.get(part, part)) if isinstance(part, ArgumentName) else part
            for part in self.args
        )
        return error

    def with_advice(self, *parts: str) -> Self:
        """Return the error with more parts at the end of its message."""
        error = copy.copy(self)
        error.args = (*self.args, *parts)
        return error

    def as_dict(self) -> dict[str, Any]:
        """Return the error as JSON: its kind, its message, and the fields of a `BadOption` or `BadFile`."""
        return {"kind": self.kind, "message": str(self)}

    @property
    def kind(self) -> str:
        """The class name, a stable identifier for logs, counts and comparisons."""
        return type(self).__name__


def _restored(kind: type[AgentGymError], parts: tuple[Any, ...]) -> AgentGymError:
    """Return a copied or unpickled error, whose attributes are set afterwards."""
    return kind.__new__(kind, *parts)


class SetupError(AgentGymError):
    """The call, the configuration or the installation must change before an episode can start."""


class NoServer(SetupError):
    """No server is configured for the environment and none can be started here."""


class WrongServer(SetupError):
    """The server at the address provides another environment than the requested one."""


class AccessDenied(SetupError):
    """The server, or a gateway in front of it, requires other credentials (HTTP 401, 403 or 407)."""


class MissingExtra(SetupError):
    """An optional dependency is missing; the message contains the extra to install."""

    def __init__(self, what: str, *, extra: str, module: str) -> None:
        super().__init__(
            f"{what} needs the package {module!r}, which is not installed. "
            f"Install it in a checkout of agentgym-gym: pip install '.[{extra}]'"
        )


class UnknownEnvironment(SetupError):
    """No environment of that name is registered."""


class InUse(SetupError):
    """Another thread is using the environment; create one environment per thread."""


_NO_VALUE: Any = object()
_LONGEST = 200  # characters of a value


class BadOption(SetupError, ValueError):
    """An argument has a value that is not accepted, or some arguments cannot be combined.

    >>> from agentgym_gym.errors import ArgumentName, BadOption
    >>> print(BadOption("samples", 0, "1 or more"))
    samples=0 should be 1 or more
    >>> print(BadOption("launch", "vllm", problem=("needs ", ArgumentName("model_path"))))
    launch='vllm' needs model_path
    >>> print(BadOption("samples", 0, "1 or more").found_in("run.toml"))
    samples = 0 in run.toml should be 1 or more

    Args:
        argument: The name of the argument; the whole message if it is the only thing given.
        value: The value of the argument. Omit a value that is secret, or not given.
        expected: The accepted values; they are read after "should be".
        problem: The predicate of the sentence, where "should be" does not fit.

    Attributes:
        argument: The name of the argument; empty if the error is not about one argument.
        value: The value as its ``repr``, shortened; empty if there is none.
        expected: The accepted values; empty if the message has a problem instead.
        place: The file that has the value, or a part of it; empty for an argument of a call.
    """

    argument: str = ""
    value: str = ""
    expected: str = ""
    place: str = ""

    def __init__(
        self, argument: Message, value: object = _NO_VALUE, expected: Message = "", *, problem: Message = ""
    ) -> None:
        if not expected and not problem:
            rest = () if value is _NO_VALUE else (value if isinstance(value, str) else _shown(value),)
            super().__init__(*_parts(argument), *rest)
            return
        self.argument = "".join(argument)
        self.value = "" if value is _NO_VALUE else _shown(value)
        self.expected = "".join(expected)
        wrong = ("should be ", *_parts(expected)) if expected else _parts(problem)
        super().__init__(ArgumentName(self.argument), "=" * bool(self.value), self.value, " ", *wrong)

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the error with other names for the arguments in its message.

        Args:
            names: The new names by the library's; an argument without one keeps its name.
        """
        error = super().renamed(names)
        error.argument = names.get(self.argument, self.argument)
        return error

    def found_in(self, place: str) -> Self:
        """Return the error of a value that was read from a file, with the file in its message.

        The names of arguments are keys of the file, so that the command line keeps them. An error that
        already has a place is returned unchanged.

        Args:
            place: The file, or a part of it, such as ``[[environments]] of run.toml``.
        """
        if self.place:
            return self
        error = copy.copy(self)
        error.place = place
        parts = map(str, self.args)
        if self.argument:
            name, equals, value, *wrong = parts
            error.args = (name, f" {equals} " if equals else "", value, f" in {place}", *wrong)
        else:
            error.args = (f"{place}: ", *parts)
        return error

    def as_dict(self) -> dict[str, Any]:
        """Return the error as JSON: its kind, its message, and its fields that are not empty."""
        fields = {name: getattr(self, name) for name in ("argument", "value", "expected", "place")}
        return super().as_dict() | {name: text for name, text in fields.items() if text}


def _parts(words: Message) -> Sequence[str]:
    return (words,) if isinstance(words, str) else words


def _shown(value: object) -> str:
    """Return the ``repr`` of a value, shortened. The ``repr`` of an integer may fail for its length."""
    try:
        text = repr(os.fspath(value) if isinstance(value, os.PathLike) else value)
    except (ValueError, RecursionError):
        return f"<{type(value).__name__} too large to show>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class BadFile(BadOption):
    """A file or folder cannot be read or written, or its contents are invalid.

    >>> from agentgym_gym.errors import BadFile
    >>> BadFile("run.toml has no output folder", path="run.toml").as_dict()
    {'kind': 'BadFile', 'message': 'run.toml has no output folder', 'path': 'run.toml'}

    Args:
        *message: The message, with the path in it; several parts are joined, as in `AgentGymError`.
        path: The file or folder.

    Attributes:
        path: The file or folder.
    """

    def __init__(self, *message: str, path: str | os.PathLike[str]) -> None:
        super().__init__(message)
        self.path = str(path)

    def as_dict(self) -> dict[str, Any]:
        """Return the error as JSON: its kind, its message and its path."""
        return super().as_dict() | {"path": self.path}


class ClientAnswer(NamedTuple):
    """AgentGym's answer to a reply for which this library sends no request.

    Attributes:
        text: The observation, or its beginning.
        repeats_page: Whether the last page follows the text.
        keeps_score: Whether the reported score is kept; otherwise it is 0.
    """

    text: str
    repeats_page: bool = False
    keeps_score: bool = False


class ActionError(AgentGymError, ValueError):
    """The agent's reply contains no valid action.

    Attributes:
        answer: AgentGym's answer to the reply, with ``parser="agentgym"``; None for an error that only this
            library raises.
        example: A valid reply in the format, at the end of the message; empty for none.
        mark: The kind of the mark around the invalid text, as in `ParseResult`; empty for none.
        span: The start and end of that text in the reply.
    """

    answer: ClientAnswer | None = None
    example: str = ""
    mark: str = ""
    span: tuple[int, int] = (0, 0)

    def with_form(self, example: str) -> Self:
        """Return the error with an example of a valid reply at the end of its message.

        Args:
            example: A valid reply. An error that already has one, or AgentGym's answer, is returned
                unchanged.
        """
        if self.example or self.answer is not None:
            return self
        error = copy.copy(self)
        error.example = example
        return error

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}.\nWrite it like this:\n\n{self.example}" if self.example else message


class NoAction(ActionError):
    """No part of the reply is marked as the action."""


class ManyActions(ActionError):
    """The reply contains more than one action, so it is ambiguous."""


class UnknownAction(ActionError):
    """The environment's grammar has no action of that name.

    Attributes:
        text: The action as the agent wrote it, if the format writes actions as text, so that it can be
            forwarded; None if the format has a function name and arguments, which have no text.
    """

    def __init__(self, message: str, *, text: str | None = None) -> None:
        super().__init__(message)
        self.text = text


class BadArguments(ActionError):
    """The action exists, but its arguments are missing, of the wrong type or out of range."""


class Fault(AgentGymError):
    """The environment failed, independently of the agent: the episode must not be scored.

    Attributes:
        was_sent: Whether the request may have reached the server, which may have executed it.
        server_slow: Whether the server exceeded a time limit, and no local cause is known: several of these
            in a row open its circuit.
        counted: Whether it was counted; the first handler does so.
    """

    transient = True
    was_sent: bool = True
    server_slow: bool = False
    counted: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return its kind and message, as in ``info["fault"]``; also ``transient`` if that is False."""
        fault = {"kind": self.kind, "message": str(self)}
        return fault if self.transient else {**fault, "transient": False}


class ServerUnreachable(Fault):
    """No connection could be made, so the request never reached the server.

    Attributes:
        refused: Whether no server listens: a new server process will not have our environments. None if that
            is unknown, as behind a proxy, which may have refused the connection.
    """

    was_sent = False

    def __init__(self, message: str, *, refused: bool | None = False, server_slow: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        self.server_slow = server_slow


class ServerTimeout(Fault):
    """The request was sent, but the reply was not complete within the time allowed."""

    server_slow = True


class ConnectionLost(Fault):
    """The connection broke after the request may have been sent and before the reply was complete."""


class ServerError(Fault):
    """The server answered with an HTTP status that the protocol does not include."""


class BadReply(Fault):
    """The reply violates the protocol: not JSON, too large, a field missing or of the wrong type."""


class EnvironmentFailed(Fault):
    """The server reported, in a well-formed reply, that the environment failed."""


class JudgeFailed(Fault):
    """The server cannot score the task for any agent: its reference or one of its checks fails.

    Attributes:
        header: The HTTP header by which this project's own servers mark such a response.
    """

    transient = False
    header = "agentgym-judge"


class LeaseLost(Fault):
    """The remote environment no longer belongs to this client: its server was restarted, or is down."""


class ServerFull(Fault):
    """The server has no free environment."""


class AgentFault(AgentGymError):
    """The agent failed to reply for a technical reason: the episode must not be scored."""

    transient = True


class ModelUnreachable(AgentFault):
    """No connection to the model server could be made."""


class ModelTimeout(AgentFault):
    """The model server did not reply within the time allowed."""


class ModelBusy(AgentFault):
    """The model server accepts no more requests for now (HTTP 429 or 503), and the wait was too long."""


class ModelError(AgentFault):
    """The model server failed (HTTP 5xx), or the connection to it broke."""


class BadCompletion(AgentFault):
    """The model server's reply is not a completion: not JSON, incomplete, or without a message."""


class ConversationRejected(AgentFault):
    """The model server rejects this conversation (HTTP 4xx), after it accepted others of the same run."""


class AgentCrashed(AgentFault):
    """The code of an agent raised an exception that this library does not define, or an `ActionError`."""
