"""verl's rollout on a CPU: an inference server as a Ray actor, and the sender of the weights."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray
from verl.utils.torch_dtypes import PrecisionType
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput

from verl_bridge.cpu._gate import AbortGate
from verl_bridge.cpu._shims import return_free_memory
from verl_bridge.cpu.batches import Batches
from verl_bridge.cpu.generator import GeneratedReply, Generator, Request
from verl_bridge.cpu.sampling import Sampling

if TYPE_CHECKING:
    import torch

IDLE_S = 1.0
"""Seconds without a request after which the server returns free memory; turns of a rollout come sooner."""


class CpuServer:
    """Generates replies to prompts, both as token ids. Waiting requests are generated as one batch.

    Args:
        model: the folder of the model.
        response_length: maximum tokens of a reply if its request has no limit.
        context: maximum tokens of prompt and reply together; None uses the model's own.
        batch: maximum number of requests in a batch.
        seed: random seed.
        dtype: the type of the weights and of the computation, such as ``"bfloat16"``.
    """

    def __init__(
        self,
        model: str,
        *,
        response_length: int,
        context: int | None,
        batch: int,
        seed: int,
        dtype: str = "float32",
    ) -> None:
        self._generator = Generator.load(model, PrecisionType.to_dtype(dtype))
        self._response_length = response_length
        self._context = min(context or self._generator.context, self._generator.context)
        self._seed = seed
        # One thread: weights never change during a batch, and new weights wait for the batch before them.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="generator")
        self._batches = Batches(self._generate, batch, self._thread)
        self._gate = AbortGate()
        self._prompt_counts: Counter[tuple[int, ...]] = Counter()
        self._updates = 0
        self._aborted = 0
        self._global_steps: int | None = None
        self._when_idle: asyncio.TimerHandle | None = None

    async def generate(
        self,
        request_id: str,
        prompt_ids: Sequence[int],
        sampling_params: Mapping[str, Any],
        image_data: object = None,
        video_data: object = None,
        **_other: object,
    ) -> Any:
        """Generate the reply to one prompt.

        Returns:
            verl's ``TokenOutput``; ``global_steps`` in its ``extra_fields`` is the training step of the
            weights. If :meth:`abort_all_requests` ended it, its ``stop_reason`` is ``"aborted"``, and it has
            the tokens so far.

        Raises:
            ValueError: the prompt fills the context, or the parameters or images are not supported.
        """
        if image_data or video_data:
            raise ValueError("the CPU rollout server supports only text: remove the images and videos")
        async with self._gate.request() as admitted:
            request = self._parse_request(prompt_ids, sampling_params)
            reply, steps = GeneratedReply(aborted=True), self._global_steps
            if admitted:
                reply, steps = await self._batches.answer(request)
            self._aborted += reply.aborted
        self._return_memory_when_idle()
        return TokenOutput(
            token_ids=reply.token_ids,
            log_probs=reply.log_probs if request.sampling.logprobs else None,
            stop_reason="aborted" if reply.aborted else "completed",
            num_preempted=0,
            extra_fields={"global_steps": steps},
        )

    def _parse_request(self, prompt_ids: Sequence[int], params: Mapping[str, Any]) -> Request:
        prompt = tuple(int(token) for token in prompt_ids)
        room = self._context - len(prompt)
        if not prompt or room < 1:
            raise ValueError(
                f"a prompt of {len(prompt)} tokens leaves no room in a context of {self._context}: shorten "
                "it, or raise actor_rollout_ref.rollout.max_model_len or the model's max_position_embeddings"
            )
        sampling = Sampling.of(params)
        limit = min(room, self._response_length if sampling.max_tokens is None else sampling.max_tokens)
        return Request(prompt, replace(sampling, max_tokens=limit), self._seed_of(prompt))

    def _seed_of(self, prompt: tuple[int, ...]) -> int:
        """Return a seed from the prompt, its count and the weights, so that runs are reproducible."""
        text = repr((self._seed, self._updates, self._prompt_counts[prompt], prompt))
        self._prompt_counts[prompt] += 1
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")

    def _generate(self, requests: list[Request]) -> list[tuple[GeneratedReply, int | None]]:
        replies = self._generator.generate(requests, self._gate.aborting.is_set)
        return [(reply, self._global_steps) for reply in replies]

    def _return_memory_when_idle(self) -> None:
        if self._when_idle is not None:
            self._when_idle.cancel()
        loop = asyncio.get_running_loop()
        # In the generator's thread, so after a batch that is in work by then.
        self._when_idle = loop.call_later(IDLE_S, loop.run_in_executor, self._thread, return_free_memory)

    async def load_weights(self, weights: Mapping[str, torch.Tensor], global_steps: int | None) -> None:
        """Load the trainer's weights after the current batch, and print the size of the change."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._load, weights, global_steps)
        self._updates += 1
        self._prompt_counts.clear()

    def _load(self, weights: Mapping[str, torch.Tensor], global_steps: int | None) -> None:
        change = self._generator.load_weights(weights)
        self._global_steps = global_steps
        print(  # noqa: T201 -- Ray forwards it to the trainer's output
            f"verl_bridge.cpu: weights of step {global_steps} loaded, {len(weights)} tensors, "
            f"largest change {change:.3e}",
            flush=True,
        )

    async def do_nothing(self, *_args: object, **_kwargs: object) -> None:
        """Do nothing: a CPU has no GPU memory to free or fill, no prefix cache and no profiler."""

    wake_up = sleep = clear_kv_cache = release_kv_cache = resume_kv_cache = do_nothing
    start_profile = stop_profile = do_nothing

    async def abort_all_requests(self, reject_request: bool = False, **_other: object) -> None:
        """Abort all requests after their current token, and wait until they have returned.

        verl's asynchronous trainers do so before they train, and verl's client then sends the tokens of each
        reply back to be continued.

        Args:
            reject_request: Whether requests from now on are aborted at once; otherwise they wait for
                :meth:`resume_generation`.
        """
        self._aborted = 0
        await self._gate.close(reject=reject_request)
        if self._aborted:
            print(f"verl_bridge.cpu: {self._aborted} requests aborted", flush=True)  # noqa: T201 -- as below

    async def resume_generation(self) -> None:
        """Admit requests again."""
        await self._gate.open()


class CpuReplica(RolloutReplica):
    """Starts the server for verl."""

    async def launch_servers(self) -> None:
        """Start the server, and wait until its model is loaded.

        Raises:
            ValueError: the server is meant for a reward model or a teacher, or for model parallelism.
        """
        if self.is_reward_model or getattr(self, "is_teacher_model", False):
            raise ValueError("the CPU rollout server supports only the policy: no reward model, no teacher")
        if self.world_size != 1:
            raise ValueError("on a CPU, rollout.{tensor,data,pipeline}_model_parallel_size must be 1")
        server = (
            ray.remote(CpuServer)
            .options(name=_server_name(self.replica_rank), num_cpus=0, max_concurrency=self.max_concurrency)
            .remote(
                self.model_config.get("local_path", None) or self.model_config.path,
                response_length=self.config.response_length,
                context=self.config.max_model_len,
                batch=min(self.config.max_num_seqs, 64),
                seed=int(getattr(self.config, "seed", 0)) + self.replica_rank,
                dtype=self.config.dtype,
            )
        )
        await server.do_nothing.remote()
        self.servers = [server]
        self._server_handle = server
        self._server_address = f"cpu:{self.replica_rank}"  # never used: verl calls the handle


class WeightSender(BaseRollout):
    """Runs in the trainer's worker, and sends its weights to the server of the same rank.

    With the trainer ``separate_async``, another one runs in a worker next to each separate server: verl names
    the server's rank, and passes on the weights that the checkpoint engine receives.

    Args:
        config: verl's configuration of the rollout.
        model_config: verl's configuration of the model.
        device_mesh: torch's mesh of the trainer's processes; unused.
        replica_rank: rank of the server; None for the rank of this process.
    """

    is_leader_rank = True  # a server has one worker

    def __init__(
        self,
        config: Any,
        model_config: Any,
        device_mesh: Any,
        *_args: object,
        replica_rank: int | None = None,
        **_other: object,
    ) -> None:
        super().__init__(config, model_config, device_mesh)
        self.replica_rank = int(os.environ.get("RANK", "0")) if replica_rank is None else replica_rank

    async def resume(self, tags: list[str]) -> None:
        """Do nothing: no memory was released."""

    async def release(self) -> None:
        """Do nothing: there is no GPU memory to release."""

    async def update_weights(
        self,
        weights: Iterable[tuple[str, torch.Tensor]],
        wire_format: str = "named_tensors",
        *,
        global_steps: int | None = None,
        peft_config: object = None,
        **_other: object,
    ) -> None:
        """Send all weights, and wait until the server has loaded them.

        Raises:
            NotImplementedError: they are LoRA weights or deltas.
        """
        if peft_config is not None or wire_format != "named_tensors":
            raise NotImplementedError(
                "the CPU rollout server accepts only complete weights: no LoRA, no deltas"
            )
        whole = {name: tensor.detach().to("cpu").clone() for name, tensor in weights}
        server = ray.get_actor(_server_name(self.replica_rank))
        await server.load_weights.remote(whole, global_steps)


def _server_name(rank: int) -> str:
    return f"verl_bridge_cpu_server_{rank}"
