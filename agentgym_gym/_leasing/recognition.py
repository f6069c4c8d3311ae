"""Whether a remote environment is still ours: what is asked before a call may go to it.

A server that was restarted gives out the same ids again. Then a call by an id that we hold would reach the
environment of somebody else. A connection that was open when the environment was last heard, and is open
now, proves that the server was not restarted in between. Where there is none, the environment is looked at,
over the connection on which the call is sent then. If it does not show what was last seen, the lease is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, TypeVar

from agentgym_gym._http import connection_ids
from agentgym_gym._text import redact
from agentgym_gym.calls import MaybeRestarted, relay
from agentgym_gym.errors import Fault, LeaseLost
from agentgym_gym.wire import SERVER_HEADER

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from agentgym_gym._http.limits import Stats
    from agentgym_gym.calls import Call, Flow, Reply, Stage, WaitingFlow
    from agentgym_gym.wire import Seen, Wire

__all__ = ["Gateway", "Memory", "Recognisable", "ask_own"]

T = TypeVar("T")

_RETRIES = 2
_MOST_LOOKS = 3

# What a gateway answers while the server behind it is away.
_AWAY = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})


@dataclass
class Gateway:
    """What is known of a gateway before a server, whose connections prove only that the gateway lives.

    Attributes:
        away: How often it said that the server behind it is away.
    """

    away: int = 0


@dataclass
class Memory:
    """What is known of a remote environment, whoever has the lease on it.

    Attributes:
        connection: The number of the connection on which it was last heard.
        closing: Whether the server said that it closes that connection.
        away: How often a gateway had said by then that the server behind it is away.
        seen: What was last seen of it; None where no task was started in it.
        uncertain: Whether a request was sent since, and not answered as it should be.
        unseen: Whether the last look failed, so that nothing else was asked.
        witness: What proves then that the server was not restarted, when the connections are closed.
        served_by: Which of this project's own servers it was last heard from, in the server's words; None
            for any other.
    """

    connection: int = 0
    closing: bool = False
    away: int = 0
    seen: Seen | None = None
    uncertain: bool = False
    unseen: bool = False
    witness: connection_ids.Witness | None = field(default=None, repr=False)
    served_by: str | None = None

    def note(self, reply: Reply, gateway: Gateway) -> None:
        """Note a reply."""
        self.connection, self.closing, self.away = reply.connection, reply.closing, gateway.away
        self.served_by = reply.headers.get(SERVER_HEADER)

    def listen(self, flow: Flow[T], gateway: Gateway) -> Flow[T]:
        """Run a flow, and note the replies."""
        return relay(flow, lambda call: call, lambda reply: self.note(reply, gateway))


class Recognisable(Protocol):
    """A lease, as this module sees it."""

    env_id: int
    memory: Memory

    @property
    def server(self) -> str:
        """Base URL of the server."""

    @property
    def wire(self) -> Wire:
        """The wire of the server."""

    @property
    def gateway(self) -> Gateway:
        """What is known of a gateway before the server."""

    def revoke(self) -> None:
        """Give up the environment, which stays on record."""

    def forget(self) -> WaitingFlow[None]:
        """Give up the environment, and take it off the record."""


def ask_own(
    lease: Recognisable, begin: Callable[[], Flow[T]], stats: Stats | None, *, within: Stage | None = None
) -> WaitingFlow[T]:
    """Run a flow on the remote environment of a lease, if it surely is the one that the lease is on.

    Args:
        lease: The lease.
        begin: Returns the flow, of relative calls. It is run from its beginning once it may be sent.
        stats: Where looks are counted.
        within: The stage whose time limit a look has; None for that of a look.

    Returns:
        What the flow returns.

    Raises:
        LeaseLost: The environment is another's, or gone, or nobody can tell. The flow was not run.
        Fault: The flow, or the look, failed.
    """
    memory, gateway = lease.memory, lease.gateway
    proof: int | None = memory.connection if lease.wire.repeats_ids else None
    # No look can tell anything then, so that it is enough if another connection proves that the server lives.
    witness = memory.uncertain or memory.seen is None
    tries = 0
    while True:
        if proof is None or memory.away == gateway.away:
            try:
                return (yield from _send(lease, begin(), proof, witness=witness))
            except MaybeRestarted as error:
                if error.after is not None and tries >= _RETRIES:
                    raise error.after from None
        tries += 1
        if tries > _MOST_LOOKS:
            return (yield from _lose(lease, uncertain=True))
        if memory.seen is None:
            # A new one. What said that it closes the connection was there when it did.
            known: bool | None = memory.closing and not memory.uncertain
            proof = None
        else:
            replies: list[Reply] = []
            memory.unseen = True
            known = yield from _look(lease, memory.seen, stats, replies, within)
            memory.unseen = False
            # Where nothing can be looked at, or the server closes each connection, this is all there is.
            proof, witness = (None if not replies or memory.closing else memory.connection), False
        if not known:
            uncertain = known is False and (memory.uncertain or memory.seen is None)
            return (yield from _lose(lease, uncertain=uncertain))


def _look(
    lease: Recognisable, seen: Seen, stats: Stats | None, replies: list[Reply], within: Stage | None
) -> Flow[bool | None]:
    """Look at the environment of a lease; return what `Wire.recognise` returns, and keep the replies."""
    flow = lease.wire.recognise(
        lease.env_id, seen if lease.memory.uncertain else replace(seen, unanswered="")
    )

    def ask(call: Call) -> Call:
        if stats is not None:
            stats.looks += 1
        return call.on(lease.server, within=within)

    def keep(reply: Reply) -> None:
        replies.append(reply)
        lease.memory.note(reply, lease.gateway)

    return (yield from relay(flow, ask, keep))


def _send(lease: Recognisable, flow: Flow[T], proof: int | None, *, witness: bool = False) -> Flow[T]:
    """Run a flow whose first call goes over a connection of a certain number, or of a lower one.

    The first reply is the next proof: what the flow asks beyond it is asked of whatever has answered.
    """
    memory, heard, was_uncertain = lease.memory, False, lease.memory.uncertain
    try:
        call = next(flow).on(lease.server, connection=proof, witness=witness)
        memory.uncertain = True
        while True:
            try:
                reply = yield call
            except (Fault, MaybeRestarted) as error:
                if not heard and not error.was_sent:
                    memory.uncertain = was_uncertain
                call = flow.throw(error).on(lease.server)
            else:
                if not heard:
                    memory.note(reply, lease.gateway)
                heard = True
                lease.gateway.away += reply.status in _AWAY
                call = flow.send(reply).on(lease.server)
    except StopIteration as stop:
        memory.uncertain, memory.witness = False, None
        result: T = stop.value
        return result
    finally:
        flow.close()
        if memory.uncertain:
            memory.witness = connection_ids.keep(lease.server, memory.connection)


def _lose(lease: Recognisable, *, uncertain: bool) -> WaitingFlow[NoReturn]:
    """Give up a lease: its environment is not used and not closed any more.

    Args:
        lease: The lease.
        uncertain: Whether the environment may still be ours. Then it stays on record, so that
            ``agentgym leases`` can close it.

    Raises:
        LeaseLost: Always.
    """
    where = f"remote environment {lease.env_id} on {redact(lease.server)}"
    if uncertain:
        lease.revoke()
        raise LeaseLost(
            f"the connection to {where} broke before all was answered, and nobody can tell whether what is "
            "there now is still ours: it is neither used nor closed"
        )
    yield from lease.forget()
    raise LeaseLost(f"{where} is not the one that was last seen there: the server was restarted meanwhile")
