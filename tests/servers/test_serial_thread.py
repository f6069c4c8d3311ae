"""The thread for slow work: whose call runs when."""

from __future__ import annotations

import asyncio
import threading

import pytest

from agentgym_servers._frame.serial_thread import SerialThread


def test_many_calls_of_one_environment_delay_another_by_one():
    order = []

    async def play():
        worker, busy, other = SerialThread(), asyncio.Lock(), asyncio.Lock()
        gate = threading.Event()
        first = asyncio.create_task(worker.run(busy, gate.wait))
        await asyncio.sleep(0)
        rest = [asyncio.create_task(worker.run(busy, order.append, "busy")) for _ in range(50)]
        await asyncio.sleep(0)
        last = asyncio.create_task(worker.run(other, order.append, "other"))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(first, *rest, last)

    asyncio.run(play())
    assert order == ["other", *["busy"] * 50]


def test_the_event_loop_continues_while_a_call_runs():
    async def play():
        gate = threading.Event()
        call = asyncio.create_task(SerialThread().run(asyncio.Lock(), gate.wait, 30))
        await asyncio.sleep(0)
        gate.set()  # which the loop could not do if the call held it up
        return await call

    assert asyncio.run(play()) is True


def test_an_exception_is_raised_to_the_caller_and_ends_the_turn():
    async def play():
        worker, turn = SerialThread(), asyncio.Lock()
        with pytest.raises(ValueError, match="no"):
            await worker.run(turn, int, "no")
        return await worker.run(turn, int, "3")

    assert asyncio.run(play()) == 3
