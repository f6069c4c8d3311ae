"""verl's own client over the rollout server for a CPU, in one process, with aborts as its trainers make them.

A call of another process through Ray is an object with ``remote``; here it is a call in this process, with
copies of the arguments.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient
from verl.workers.rollout.router import GlobalRequestLoadBalancer

from verl_bridge.cpu._rollout import CpuServer


class Piece(NamedTuple):
    """What the server returned for one request: a reply, or a part of one."""

    prompt: list[int]
    tokens: list[int]
    log_probs: list[float]
    aborted: bool
    version: int


class Handle:
    """Calls the methods of an object like a Ray actor's."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)

        def remote(*args: Any, **kwargs: Any) -> asyncio.Future[Any]:
            value = method(*args, **(kwargs if name == "add_servers" else copy.deepcopy(kwargs)))
            if inspect.iscoroutine(value):
                return asyncio.ensure_future(value)
            done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            done.set_result(value)
            return done

        return SimpleNamespace(remote=remote)


class AbortingServer(CpuServer):
    """The server for a CPU, which aborts all requests at random and goes on with other weights.

    Args:
        folder: Of the model.
        every: The most tokens of a batch between two aborts; they are drawn from 1 on.
        rejects: Whether to reject the requests that arrive before the other weights do.
        seed: Of the aborts and the weights.

    Attributes:
        pieces: What was returned, in order.
        weights: The weights by their version.
        after: A number of pieces, and a function to call after that many.
    """

    def __init__(self, folder: Path, *, every: int, rejects: bool, seed: int) -> None:
        super().__init__(str(folder), response_length=64, context=None, batch=64, seed=seed)
        self.pieces: list[Piece] = []
        self.after: tuple[int, Callable[[], Any]] | None = None
        self.weights = {0: self._copy()}
        self._global_steps = 0
        self._random = random.Random(seed)  # noqa: S311
        self._every, self._rejects, self._left = every, rejects, every
        self._wanted, self._updating = asyncio.Event(), None
        self._plain = self._generator.generate
        self._generator.generate = self._counting  # type: ignore[method-assign]

    def _copy(self) -> dict[str, torch.Tensor]:
        return {name: tensor.clone() for name, tensor in self._generator._model.state_dict().items()}

    def client(self) -> FullyAsyncLLMServerClient:
        """Return verl's client, and begin to abort. Called in the event loop of the episodes."""
        self._loop = asyncio.get_running_loop()
        self._updating = asyncio.create_task(self._update())
        rollout = SimpleNamespace(name="transformers", full_determinism=False, response_length=64)
        config = SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=rollout))
        balancer = Handle(GlobalRequestLoadBalancer({"cpu:0": Handle(self)}))
        return FullyAsyncLLMServerClient(config, load_balancer_handle=balancer)

    async def generate(self, request_id: str, prompt_ids: list[int], *args: Any, **kwargs: Any) -> Any:
        output = await super().generate(request_id, prompt_ids, *args, **kwargs)
        aborted, version = output.stop_reason == "aborted", output.extra_fields["global_steps"]
        log_probs = list(output.log_probs or ())
        self.pieces.append(Piece(list(prompt_ids), list(output.token_ids), log_probs, aborted, version))
        if self.after and len(self.pieces) == self.after[0]:
            self.after[1]()
        return output

    def _counting(self, requests: Any, aborting: Callable[[], bool]) -> Any:
        def counted() -> bool:
            self._left -= 1
            if not self._left:
                self._loop.call_soon_threadsafe(self._wanted.set)
            return aborting()

        return self._plain(requests, counted)

    async def _update(self) -> None:
        """Abort, train and resume, as a trainer does, each time a number of tokens was drawn."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self.abort_all_requests(reject_request=self._rejects)
            version = self._global_steps + 1
            noise = torch.Generator().manual_seed(version)
            self.weights[version] = {
                name: tensor + 0.05 * torch.randn(tensor.shape, generator=noise)
                for name, tensor in self._copy().items()
            }
            await self.load_weights(self.weights[version], version)
            self._left = self._random.randint(1, self._every)
            await self.resume_generation()
