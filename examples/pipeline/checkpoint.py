"""Play episodes with a checkpoint: ``CHECKPOINT=FOLDER agentgym eval ID --agent checkpoint:Checkpoint``.

The model is loaded once and generates replies for up to 64 episodes at a time. Each reply has random numbers
of its own, seeded by the variable ``CHECKPOINT_SEED``, the environment, the task, the sample and the turn. So
it does not depend on the other episodes of the batch. More variables, with their defaults:

- ``CHECKPOINT_TEMPERATURE=1``.
- ``CHECKPOINT_TOKENS=8``: maximum tokens of a reply.
- ``CHECKPOINT_DTYPE=float32``: the type of the weights; ``bfloat16`` is quicker.
- ``CHECKPOINT_PROMPTS``: folder of system prompts, ``<environment>.txt``; without it, the environment's own.
"""

from __future__ import annotations

import functools
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from agentgym_gym.errors import BadOption
from verl_bridge.cpu.batches import Batches
from verl_bridge.cpu.generator import GeneratedReply, Generator, Request
from verl_bridge.cpu.sampling import Sampling
from verl_bridge.tokens import TokenizedChat

BATCH = 64


class Model:
    """A model with its tokenizer.

    Args:
        folder: The folder of the checkpoint.
    """

    def __init__(self, folder: str) -> None:
        from transformers import AutoTokenizer  # noqa: PLC0415 - slow to import

        variables = os.environ
        self.seed = int(variables.get("CHECKPOINT_SEED", "0"))
        self.sampling = Sampling(
            temperature=float(variables.get("CHECKPOINT_TEMPERATURE", "1")),
            max_tokens=int(variables.get("CHECKPOINT_TOKENS", "8")),
        )
        dtype = variables.get("CHECKPOINT_DTYPE", "float32")
        self.settings = {
            "model_path": folder,
            "seed": self.seed,
            "temperature": self.sampling.temperature,
            "max_tokens": self.sampling.max_tokens,
            "dtype": dtype,
        }
        self.conversation = TokenizedChat(AutoTokenizer.from_pretrained(folder))
        generator = Generator.load(folder, getattr(torch, dtype))
        self.batches: Batches[GeneratedReply] = Batches(
            generator.generate, BATCH, ThreadPoolExecutor(1, thread_name_prefix="generator")
        )

    @staticmethod
    def prompt(env: Any) -> str:
        """Return the system prompt for an environment."""
        folder = os.environ.get("CHECKPOINT_PROMPTS")
        own: str = env.system_prompt
        return (Path(folder) / f"{env.environment.name}.txt").read_text("utf-8").strip() if folder else own


@functools.cache
def model() -> Model:
    """Return the model of the variable ``CHECKPOINT``, loaded once for all agents.

    Raises:
        BadOption: It names no folder of a model.
    """
    folder = os.environ.get("CHECKPOINT", "")
    if not Path(folder, "config.json").is_file():
        raise BadOption(f"CHECKPOINT={folder!r} has no config.json: set it to the folder of a model")
    return Model(folder)


class Checkpoint:
    """An agent that plays one episode after another with the model's replies."""

    name = "checkpoint"

    def __init__(self) -> None:
        self._model = model()
        self._episode: tuple[str, int, int] = ("", 0, 0)
        self._tokens: list[int] = []
        self._reply: list[int] = []
        self._turn = 0

    def describe(self) -> dict[str, Any]:
        """Return the provenance of its replies."""
        prompts = os.environ.get("CHECKPOINT_PROMPTS")
        return self._model.settings | ({"prompts": prompts} if prompts else {})

    async def reset(self, env: Any, observation: str, info: dict[str, Any]) -> None:
        """Start an episode."""
        self._episode = (env.environment.name, info["task_id"], info.get("sample", 0))
        system = {"role": "system", "content": self._model.prompt(env)}
        self._tokens = self._model.conversation.prompt([system, {"role": "user", "content": observation}])
        self._turn = 0

    async def act(self, observation: str, info: dict[str, Any]) -> str:
        """Return the model's reply."""
        if self._turn:
            self._tokens += self._model.conversation.after(self._reply, observation)
        request = Request(tuple(self._tokens), self._model.sampling, self._reply_seed())
        self._reply = (await self._model.batches.answer(request)).token_ids
        self._tokens += self._reply
        self._turn += 1
        return self._model.conversation.text(self._reply)

    def _reply_seed(self) -> int:
        """Return the random seed of this reply."""
        key = repr((self._model.seed, self._episode, self._turn)).encode()
        return int.from_bytes(hashlib.blake2b(key, digest_size=7).digest(), "big")
