"""Recognition: checks that a remote environment is still ours before a call goes to it.

A restarted server assigns the same ids again, so a call with an old id would reach the environment of another
client. While the connection of the environment's last reply is open, or an older one of another environment,
the server was not restarted. Otherwise this project's own servers report the number of their process, which
changes with a restart. On other servers the environment is inspected first, over the connection of the call.
If it does not match its last known state, the lease is lost.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, TypeVar

from agentgym_gym._http.sockets import Link
from agentgym_gym._logging import log
from agentgym_gym._text import redact
from agentgym_gym.calls import Call, MaybeRestarted, relay
from agentgym_gym.errors import Fault, LeaseLost, ServerError
from agentgym_gym.wire import SERVER_HEADER, Seen

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from agentgym_gym._http.limits import Stats
    from agentgym_gym.calls import Flow, Reply, ServerConnection, Stage, WaitingFlow
    from agentgym_gym.wire import Outcome, Start, Wire

__all__ = ["Gateway", "Memory", "Recognisable", "run_own"]

T = TypeVar("T")

_PROCESS_HEADER = f"{SERVER_HEADER}-process"
_RETRIES = 2
_MOST_LOOKS = 3

# Replies of a gateway while the server behind it is down.
_AWAY = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})


@dataclass
class Gateway:
    """The state of a gateway in front of a server; connections prove only that the gateway was not restarted.

    Attributes:
        away: How often it reported that the server behind it is down.
    """

    away: int = 0


_NO_REPLY = Link()  # closed, and none is older


@dataclass
class Memory:
    """The last known state of a remote environment, for any lease on it.

    Attributes:
        connection: The connection of its last reply; None if it is unknown.
        closing: Whether the server announced that it closes that connection.
        away: The value of `Gateway.away` at that time.
        seen: The state of the task at its last reply; None if no task was started.
        uncertain: Whether a request was sent since, and not answered properly.
        unseen: Whether the last check failed, so that nothing else was sent.
        served_by: The identification of this project's own server that sent the last reply; None for other
            servers.
        process: The random number of that server's process; None for other servers.
    """

    connection: ServerConnection | None = _NO_REPLY
    closing: bool = False
    away: int = 0
    seen: Seen | None = None
    uncertain: bool = False
    unseen: bool = False
    served_by: str | None = None
    process: str | None = None

    def note(self, reply: Reply, gateway: Gateway) -> None:
        """Record a reply."""
        self.connection, self.closing, self.away = reply.connection, reply.closing, gateway.away
        if _shows_process(reply):
            self.served_by = reply.headers.get(SERVER_HEADER)
            self.process = reply.headers.get(_PROCESS_HEADER)

    def note_start(self, task_id: int, start: Start) -> None:
        """Record the beginning of a task."""
        self.seen = Seen(task_id, start)

    def note_action(self, action: str) -> None:
        """Record an action before it is sent."""
        if self.seen is not None:
            self.seen.unanswered = action

    def note_outcome(self, outcome: Outcome) -> None:
        """Record the outcome of the action that was sent."""
        if self.seen is not None:
            self.seen.outcome, self.seen.unanswered = outcome, ""

    def listen(self, flow: Flow[T], gateway: Gateway) -> Flow[T]:
        """Run a flow, and record the replies."""
        return relay(flow, lambda call: call, lambda reply: self.note(reply, gateway))


class Recognisable(Protocol):
    """The interface of a lease that this module needs."""

    env_id: int
    memory: Memory

    @property
    def server(self) -> str:
        """Base URL of the server."""

    @property
    def wire(self) -> Wire:
        """The protocol of the server."""

    @property
    def gateway(self) -> Gateway:
        """The state of a gateway in front of the server."""

    def older_connection(self) -> ServerConnection | None:
        """Return an open connection of another environment that is older than that of the last reply."""

    def revoke(self, reason: str) -> None:
        """Give up the environment for a reason, but keep its record."""

    def forget(self) -> WaitingFlow[None]:
        """Give up the environment, and remove its record."""


def run_own(
    lease: Recognisable,
    begin: Callable[[], Flow[T]],
    stats: Stats | None,
    *,
    within: Stage | None = None,
    keep: Callable[[T], object] | None = None,
) -> WaitingFlow[T]:
    """Run a flow on the remote environment of a lease, after checking that it is the right one.

    Args:
        lease: The lease.
        begin: Returns the flow, of relative calls. It may be called again after a check.
        stats: Metrics to update with checks.
        within: The stage whose time limit applies to a check; None for the default of a check.
        keep: Called with the result, to update the memory of the lease, before the environment's state counts
            as known: an interrupt must not come in between.

    Returns:
        The result of the flow.

    Raises:
        LeaseLost: The environment belongs to another client, is gone, or cannot be identified. The flow was
            not run.
        Fault: The flow or the check failed.
    """
    memory, gateway = lease.memory, lease.gateway
    bound = lease.wire.repeats_ids
    tries = 0
    while True:
        if not bound or memory.away == gateway.away:
            proof = _proof(lease) if bound else None
            try:
                return (yield from _send(lease, begin(), proof, keep))
            except MaybeRestarted as error:
                if error.after is not None and tries >= _RETRIES:
                    raise error.after from None
                if _proof(lease) is not proof:
                    tries += 1
                    continue
        tries += 1
        if tries > _MOST_LOOKS:
            return (yield from _lose(lease, uncertain=True))
        process = memory.process
        if process is None and memory.seen is None:
            # A new environment. An announced close of its connection does not indicate a restart.
            known: bool | None = memory.closing and not memory.uncertain
            bound = False
        else:
            replies: list[Reply] = []
            memory.unseen = True
            known = yield from _look(lease, stats, replies, within)
            memory.unseen = False
            # Without anything to check, or if the server closes each connection, there is no better proof.
            bound = bool(replies) and not memory.closing
        if not known:
            maybe_ours = process is None and known is False and (memory.uncertain or memory.seen is None)
            return (yield from _lose(lease, uncertain=maybe_ours))


def _proof(lease: Recognisable) -> ServerConnection | None:
    """Return the connection that proves, while it is open, that the server was not restarted.

    It is the connection of the last reply. If that is closed, and a lost request may have changed the
    environment, so that a check is inconclusive, it is an older one of another environment.

    Returns:
        The connection; None if the call may be sent in any case.
    """
    memory, connection = lease.memory, lease.memory.connection
    inconclusive = memory.process is None and (memory.uncertain or memory.seen is None)
    if connection is None or not inconclusive or connection.lives:
        return connection
    return lease.older_connection() or connection


def _is_same_process(process: str) -> Flow[bool]:
    """Return whether this project's own server still has the process of this number.

    Raises:
        ServerError: The reply is an error. A gateway's error does not show the process behind it.
    """
    reply = yield Call("observe", "GET", "/")
    if not _shows_process(reply):
        raise ServerError(f"{reply.call} answered HTTP {reply.status}: {reply.excerpt}")
    return reply.headers.get(_PROCESS_HEADER) == process


def _shows_process(reply: Reply) -> bool:
    """Return whether a reply is the server's own: without a header, it is another server's than ours."""
    return reply.status == HTTPStatus.OK or _PROCESS_HEADER in reply.headers


def _look(
    lease: Recognisable, stats: Stats | None, replies: list[Reply], within: Stage | None
) -> Flow[bool | None]:
    """Check the server's process, or else the environment; collect the replies.

    Returns:
        Whether the environment is still that of the lease; None if that cannot be checked.
    """
    memory = lease.memory
    if memory.process is not None:
        flow: Flow[bool | None] = _is_same_process(memory.process)
    elif memory.seen is not None:
        seen = memory.seen if memory.uncertain else replace(memory.seen, unanswered="")
        flow = lease.wire.recognise(lease.env_id, seen)
    else:
        return None

    def count(call: Call) -> Call:
        if stats is not None:
            stats.looks += 1
        log(logging.DEBUG, "lease checked", server=redact(lease.server), env_id=lease.env_id)
        return call.on(lease.server, within=within)

    def keep(reply: Reply) -> None:
        replies.append(reply)
        lease.memory.note(reply, lease.gateway)

    return (yield from relay(flow, count, keep))


def _send(
    lease: Recognisable,
    flow: Flow[T],
    connection: ServerConnection | None,
    keep: Callable[[T], object] | None,
) -> Flow[T]:
    """Run a flow, whose first call is sent only while a connection is open.

    The first reply is the next proof: the later calls of the flow are sent in any case.
    """
    memory, replied, was_uncertain = lease.memory, False, lease.memory.uncertain
    try:
        call = next(flow).on(lease.server, connection=connection)
        memory.uncertain = True
        while True:
            try:
                reply = yield call
            except (Fault, MaybeRestarted) as error:
                if not replied and not error.was_sent:
                    memory.uncertain = was_uncertain
                call = flow.throw(error).on(lease.server)
            else:
                if not replied:
                    memory.note(reply, lease.gateway)
                replied = True
                lease.gateway.away += reply.status in _AWAY
                call = flow.send(reply).on(lease.server)
    except StopIteration as stop:
        result: T = stop.value
        if keep is not None:
            keep(result)
        memory.uncertain = False
        return result
    finally:
        flow.close()


def _lose(lease: Recognisable, *, uncertain: bool) -> WaitingFlow[NoReturn]:
    """Give up a lease: its environment is neither used nor closed any more.

    Args:
        lease: The lease.
        uncertain: Whether the environment may still be ours. If so, its record is kept, so that
            ``agentgym leases`` can close it.

    Raises:
        LeaseLost: Always.
    """
    where = f"remote environment {lease.env_id} on {redact(lease.server)}"
    if uncertain:
        lease.revoke(f"may have given remote environment {lease.env_id} to another client")
        raise LeaseLost(
            f"the connection to {where} broke before all replies arrived, and the environment "
            "there may belong to another client now: it is neither used nor closed"
        )
    yield from lease.forget()
    raise LeaseLost(f"{where} is not the one that was last seen there: the server was restarted meanwhile")
