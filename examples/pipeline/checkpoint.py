"""Play episodes with a checkpoint: ``CHECKPOINT=FOLDER agentgym eval checkpoint.toml``.

The model is loaded once and generates replies for up to 64 episodes at a time, at temperature 1. Each reply
has random numbers of its own, seeded by the variable ``CHECKPOINT_SEED``, the environment, the task, the
sample and the turn. So it does not depend on the other episodes of the batch.
"""

from __future__ import annotations

import functools
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from verl_bridge.cpu.batches import Batches
from verl_bridge.cpu.generator import GeneratedReply, Generator, Request
from verl_bridge.cpu.sampling import Sampling
from verl_bridge.tokens import TokenizedChat

REPLY_TOKENS = 8
"""Maximum tokens of a reply, as in the training."""

BATCH = 64


class Model:
    """A model with its tokenizer.

    Args:
        folder: The folder of the checkpoint.
    """

    def __init__(self, folder: str) -> None:
        from transformers import AutoTokenizer  # noqa: PLC0415 - slow to import

        self.folder = folder
        self.conversation = TokenizedChat(AutoTokenizer.from_pretrained(folder))
        self.sampling = Sampling(temperature=1.0, max_tokens=REPLY_TOKENS)
        self.batches: Batches[GeneratedReply] = Batches(
            Generator.load(folder).generate, BATCH, ThreadPoolExecutor(1, thread_name_prefix="generator")
        )


@functools.cache
def model() -> Model:
    """Return the model of the variable ``CHECKPOINT``, loaded once for all agents."""
    return Model(os.environ["CHECKPOINT"])


class Checkpoint:
    """An agent that plays one episode after another with the model's replies."""

    name = "checkpoint"

    def __init__(self) -> None:
        self._model = model()
        self._seed = int(os.environ.get("CHECKPOINT_SEED", "0"))
        self._episode: tuple[str, int, int] = ("", 0, 0)
        self._tokens: list[int] = []
        self._reply: list[int] = []
        self._turn = 0

    def describe(self) -> dict[str, Any]:
        """Return the provenance of its replies."""
        return {
            "model_path": self._model.folder,
            "seed": self._seed,
            "temperature": 1.0,
            "max_tokens": REPLY_TOKENS,
        }

    async def reset(self, env: Any, observation: str, info: dict[str, Any]) -> None:
        """Start an episode with the environment's own prompt."""
        self._episode = (env.environment.name, info["task_id"], info.get("sample", 0))
        system = {"role": "system", "content": env.system_prompt}
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
        key = repr((self._seed, self._episode, self._turn)).encode()
        return int.from_bytes(hashlib.blake2b(key, digest_size=7).digest(), "big")
