"""The parts of the rollout server for a CPU that verl 0.9's asynchronous trainers need, in this process."""

from __future__ import annotations

import asyncio
import time
from importlib import metadata

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

import torch

from verl_bridge.cpu._rollout import CpuServer
from verl_bridge.cpu.tiny import make_tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("tiny"), ["Guess a digit. The digit is high."] * 20)


@pytest.fixture
def server(tiny):
    return CpuServer(str(tiny), response_length=6, context=40, batch=64, seed=1)


@pytest.mark.parametrize("rejects", [False, True])
def test_aborted_requests_return_what_they_have(server, rejects, capfd):
    """Those in a batch and those that wait; later ones wait for the gate to open, or are rejected."""

    async def play():
        started = asyncio.Event()
        generate, loop = server._generator.generate, asyncio.get_running_loop()

        def late(requests, aborting):  # the second token is drawn after the abort
            count = iter(range(99))

            def aborted():
                if next(count) == 1:
                    loop.call_soon_threadsafe(started.set)
                    while not aborting():
                        time.sleep(0.001)
                return aborting()

            return generate(requests, aborted)

        server._generator.generate = late
        ask = [asyncio.ensure_future(server.generate(str(i), (5, i), {"logprobs": True})) for i in range(70)]
        await started.wait()
        await server.abort_all_requests(reject_request=rejects)
        aborted = await asyncio.gather(*ask)
        server._generator.generate = generate
        later = asyncio.ensure_future(server.generate("later", (5,), {}))
        await asyncio.sleep(0.05)
        waits = not later.done()
        await server.resume_generation()
        return aborted, waits, await later

    aborted, waits, later = asyncio.run(play())
    stopped = [reply for reply in aborted if reply.stop_reason == "aborted"]
    assert {len(reply.token_ids) for reply in stopped} == {0, 1}  # of two batches
    assert all(len(reply.log_probs) == len(reply.token_ids) for reply in stopped)
    assert f"verl_bridge.cpu: {len(stopped)} requests aborted" in capfd.readouterr().out
    assert waits is not rejects
    assert (later.stop_reason, later.token_ids == []) == (
        ("aborted", True) if rejects else ("completed", False)
    )


@pytest.mark.skipif(metadata.version("verl") < "0.9", reason="it has no checkpoint engines")
def test_a_separate_server_gets_the_weights():
    from verl_bridge.cpu._transfer import StoreTransfer

    weights = {"a": torch.arange(6.0).reshape(2, 3).T, "b": torch.ones(1, dtype=torch.bfloat16)}
    sides = StoreTransfer(1, is_master=True), StoreTransfer(1)
    trainer, server = StoreTransfer.build_topology(1, 1, [side.prepare() for side in sides])
    for side, arguments in zip(sides, (trainer, server), strict=True):
        side.init_process_group(**{name: value for name, (value,) in arguments.items()})
    asyncio.run(sides[0].send_weights(iter(weights.items())))
    received = dict(sides[1].receive_weights())
    assert received.keys() == weights.keys()
    assert all(torch.equal(received[name], tensor) for name, tensor in weights.items())
    for side in sides:
        side.finalize()
