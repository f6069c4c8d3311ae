"""Every error this library raises, in one tree.

::

    gymnasium.error.Error
    └── AgentGymError
        ├── SetupError                 something must be changed before an episode can start
        │   ├── NoServer               no server is configured and none can be started
        │   ├── WrongServer            another environment answers at that address
        │   ├── AccessDenied           the server, or a gateway before it, wants credentials
        │   ├── MissingExtra           an optional dependency is not installed
        │   ├── UnknownEnvironment     no environment of that name is registered
        │   ├── InUse                  another thread is using the environment
        │   └── BadOption              an argument has a value outside its documented range
        ├── ActionError                the agent's reply holds no action to send
        │   ├── NoAction               nothing in the reply is marked as the action
        │   ├── ManyActions            more than one action, so which was meant is a guess
        │   ├── UnknownAction          an action was read, the environment has none of that name
        │   └── BadArguments           the action exists, its arguments do not fit
        ├── Fault                      the environment failed, whatever the agent did
        │   ├── ServerUnreachable      no connection could be made: the request was never sent
        │   ├── ServerTimeout          the request was sent, no whole reply came in time
        │   ├── ConnectionLost         the connection broke while a reply was awaited
        │   ├── ServerError            an HTTP status that the protocol has no place for
        │   ├── BadReply               the reply is not what the protocol says it is
        │   ├── EnvironmentFailed      the server said that the environment failed
        │   ├── LeaseLost              the remote environment is no longer ours
        │   └── ServerFull             the server has no free environment
        └── AgentFault                 the agent failed to reply: its model's server, or its own code
            ├── ModelUnreachable       no connection to the model's server could be made
            ├── ModelTimeout           it did not reply in time
            ├── ModelBusy              it takes no more requests for now
            ├── ModelError             it failed, or the connection broke
            ├── BadCompletion          what it sent is no completion
            └── AgentCrashed           the code of an agent raised an error

The four families answer four different questions. A ``SetupError`` is for the person who wrote the
call. An ``ActionError`` is for the agent: an episode turns it into an observation and goes on. A
``Fault`` is for whoever keeps score: the episode says nothing about the agent and must be left out. So must
one with an ``AgentFault``, which agents raise: the model was never asked, or was not heard. Both are
``transient``: they may be gone when the task is played again, while a ``SetupError`` stays until mended.

``gymnasium.error.ResetNeeded`` is raised as it is when a finished episode is stepped.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium.error

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "AccessDenied",
    "ActionError",
    "AgentCrashed",
    "AgentFault",
    "AgentGymError",
    "BadArguments",
    "BadCompletion",
    "BadOption",
    "BadReply",
    "ClientAnswer",
    "ConnectionLost",
    "EnvironmentFailed",
    "Fault",
    "InUse",
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


class AgentGymError(gymnasium.error.Error):
    """Root of every error this library raises.

    Attributes:
        transient: Whether waiting and trying again may help.
    """

    transient: bool = False

    @property
    def kind(self) -> str:
        """The class name, the stable word to log, count and compare."""
        return type(self).__name__


class SetupError(AgentGymError):
    """The call, the configuration or the installation must change before an episode can start."""


class NoServer(SetupError):
    """No server is configured for the environment and none can be started here."""


class WrongServer(SetupError):
    """A server answers at the address, but it is not the environment that was asked for."""


class AccessDenied(SetupError):
    """The server, or a gateway before it, wants credentials that it was not given (HTTP 401, 403 or 407)."""


class MissingExtra(SetupError):
    """An optional dependency is missing; the message says which extra to install."""

    def __init__(self, what: str, *, extra: str, module: str) -> None:
        super().__init__(
            f"{what} needs the package {module!r}, which is not installed. "
            f"Install it in a checkout of agentgym-gym: pip install '.[{extra}]'"
        )
        self._made_of = (what, extra, module)

    def __reduce__(self) -> tuple[Any, ...]:
        what, extra, module = self._made_of  # else a copy in another process would be made of the message
        return partial(type(self), extra=extra, module=module), (what,)


class UnknownEnvironment(SetupError):
    """No environment of that name is registered."""


class InUse(SetupError):
    """Another thread is using the environment; each thread needs one of its own."""


class BadOption(SetupError, ValueError):
    """An argument has a value outside its documented range."""


class ClientAnswer(NamedTuple):
    """What AgentGym returns for a reply where this library sends nothing.

    Attributes:
        text: The observation, or its beginning.
        repeats_page: Whether the last page follows the text.
        keeps_score: Whether the reported score stays; otherwise it is 0.
    """

    text: str
    repeats_page: bool = False
    keeps_score: bool = False


class ActionError(AgentGymError, ValueError):
    """The agent's reply holds no action that can be sent.

    Attributes:
        answer: What AgentGym returns for the reply; with ``parser="agentgym"``, None for an error that only
            this library raises.
        example: A reply of the format that can be read, at the end of the message; empty for none.
        mark: The kind of the mark whose text cannot be read, as in `ParseResult`; empty for none.
        span: Where that text begins and ends in the reply.
    """

    answer: ClientAnswer | None = None
    example: str = ""
    mark: str = ""
    span: tuple[int, int] = (0, 0)

    def with_form(self, example: str) -> Self:
        """Return the error with an example of the form to use at the end of its message.

        Args:
            example: A reply that can be read. An error that has one, or AgentGym's answer, stays as it is.
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
    """Nothing in the reply is marked as the action."""


class ManyActions(ActionError):
    """The reply holds more than one action, so which one was meant would be a guess."""


class UnknownAction(ActionError):
    """An action was read, but the environment's grammar has none of that name.

    Attributes:
        text: The action as the agent wrote it, when it was written as text and so could be forwarded;
            None when the format carries a function name and arguments, which have no text.
    """

    def __init__(self, message: str, *, text: str | None = None) -> None:
        super().__init__(message)
        self.text = text


class BadArguments(ActionError):
    """The action exists, its arguments are missing, of the wrong type or out of range."""


class Fault(AgentGymError):
    """The environment failed, whatever the agent did: the episode must not be scored.

    Attributes:
        was_sent: Whether the request may have reached the server, and so may have been carried out.
        server_slow: Whether the server let a time limit pass, and nothing here is to blame: its circuit opens
            after some of these.
        counted: Whether it was counted, which whoever meets it first does.
    """

    transient = True
    was_sent: bool = True
    server_slow: bool = False
    counted: bool = False

    def as_dict(self) -> dict[str, str]:
        """Return its kind and message, as ``info["fault"]`` and records hold them."""
        return {"kind": self.kind, "message": str(self)}


class ServerUnreachable(Fault):
    """No connection could be made, so the request never reached the server.

    Attributes:
        refused: Whether no server listens there: one that comes back has not what we hold on it. None where
            that is not known, as behind a proxy, which may be what refused.
    """

    was_sent = False

    def __init__(self, message: str, *, refused: bool | None = False, server_slow: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        self.server_slow = server_slow


class ServerTimeout(Fault):
    """The request was sent, but no whole reply came within the time allowed."""

    server_slow = True


class ConnectionLost(Fault):
    """The connection broke after the request may have been sent and before a whole reply came."""


class ServerError(Fault):
    """The server answered with an HTTP status that the protocol has no place for."""


class BadReply(Fault):
    """The reply is not what the protocol says: not JSON, too large, a field missing or of the wrong type."""


class EnvironmentFailed(Fault):
    """The server said, in a well-formed reply, that the environment failed."""


class LeaseLost(Fault):
    """The remote environment no longer belongs to this client: its server was restarted."""


class ServerFull(Fault):
    """The server has no free environment to give."""


class AgentFault(AgentGymError):
    """The agent failed to reply, and not for want of skill: the episode must not be scored."""

    transient = True

    def as_dict(self) -> dict[str, str]:
        """Return its kind and message, as records hold them."""
        return {"kind": self.kind, "message": str(self)}


class ModelUnreachable(AgentFault):
    """No connection to the model's server could be made."""


class ModelTimeout(AgentFault):
    """The model's server did not reply within the time allowed."""


class ModelBusy(AgentFault):
    """The model's server takes no more requests for now (HTTP 429 or 503), for longer than was waited."""


class ModelError(AgentFault):
    """The model's server failed (HTTP 5xx), or the connection to it broke."""


class BadCompletion(AgentFault):
    """What the model's server sent is no completion: not JSON, broken off, or without a message."""


class AgentCrashed(AgentFault):
    """The code of an agent raised an error that is none of this library's."""
