"""Handlers for the replies to abandoned requests; see `_http.abandoned`."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from agentgym_gym._leasing.recognition import Memory
from agentgym_gym.errors import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentgym_gym._leasing.lease import Holder, Lease
    from agentgym_gym._leasing.pool import LeasePool
    from agentgym_gym.calls import Flow, Reply

__all__ = ["late_create", "late_reply"]

# A gateway's own replies: the server may still be at work.
_NOT_OF_THE_SERVER = frozenset(
    {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
)


def late_create(pool: LeasePool, task_id: int, holder: Holder) -> Callable[[Reply], None]:
    """Return the handler for a late reply to ``/create``.

    It closes the new environment in the thread that has read the reply, or leaves that to the holder.

    Args:
        pool: The pool of the server.
        task_id: The task of the request.
        holder: The holder that made the request.
    """
    epoch = pool.epoch

    def late(reply: Reply) -> None:
        try:
            env_id = _id_in(reply, pool.environment.wire.create(task_id))
            if env_id is None or epoch != pool.epoch or any(env_id == each.env_id for each in holder.leases):
                return
            if pool.lease_on(env_id) is not None and (reply.connection is None or not reply.connection.lives):
                return  # the id may belong to a server process that was started since
            memory = Memory()
            memory.note(reply, pool.gateway)
            lease = pool.add_new(env_id, None, memory=memory)
        except Fault:
            return
        try:
            if pool.journal is not None:
                pool.journal.flush()
            if holder.run is not None:
                holder.run(pool.release(lease))
        finally:
            holder.leases.append(lease)

    return late


def late_reply(lease: Lease) -> Callable[[Reply], None]:
    """Return the handler for a late reply about a remote environment: no request runs there any more.

    Args:
        lease: The lease on the environment.
    """

    def late(reply: Reply) -> None:
        if reply.status not in _NOT_OF_THE_SERVER:
            lease.memory.note(reply, lease.gateway)
            lease.pool.note_answered(lease)

    return late


def _id_in(reply: Reply, create: Flow[int]) -> int | None:
    """Return the id in a reply to ``/create``; None if creation needs further requests."""
    try:
        next(create)
        create.send(reply)
    except StopIteration as stop:
        env_id: int = stop.value
        return env_id
    return None
