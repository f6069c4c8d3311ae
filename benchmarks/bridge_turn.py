"""The processor time that a turn of `GymAgentLoop` adds to the tokenizer's own work.

One episode at a time plays an environment that answers at once, with a fake generation server, in an event
loop, as in verl's worker. The tokenizer decodes each reply and encodes each observation; these calls are
timed in the turns themselves, and subtracted. It is measured for observations of 200 and of 1,900 characters.
A second measurement plays 10,240 turns, in 64 episodes at once, and records the processor time of the longest
callback of the event loop, of the longest garbage collection, and of a full one.

Prints JSON: milliseconds. Run it with ``python benchmarks/bridge_turn.py``, in an environment with verl;
without verl it prints that it was skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib.util
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from _common import MEASUREMENTS, at_most, report, usually

from verl_bridge._tokens import chat_template

LIMITS_MS = {200: 0.1, 1_900: 0.15}
"""Bars by the characters of an observation."""

LONGEST_MS = 20.0
TURNS = usually(20, quick=2)
"""Turns of an episode: some 15,000 tokens of the longer observations."""

EPISODES = usually(50, quick=1)  # in each measurement
AT_ONCE, ROUNDS = usually(64, quick=2), usually(8, quick=1)  # of the long run
REPLY_TOKENS = 24
ENV_ID = "_echo_env:bench/EchoAsync-v0"
WORDS = Path(__file__).resolve().parents[1] / "docs" / "reliability.md"


def main() -> None:
    """Measure and print."""
    if importlib.util.find_spec("verl") is None:
        report(benchmark="bridge_turn", skipped="verl is not installed: see docs/training/cpu.md")
        return
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of verl's own imports
        logging.disable(logging.WARNING)  # those of verl for each episode
        setup = Setup(Path(folder))
        rows: dict[str, Any] = {}
        for characters, bar in LIMITS_MS.items():
            asyncio.run(setup.play(characters, TURNS))  # lazy imports happen here
            turns, own = zip(*(setup.turn_ms(characters) for _ in range(MEASUREMENTS)), strict=True)
            rows[f"added_ms_{characters}"] = {
                "tokenizer_ms": round(statistics.median(own), 3),
                "turn_ms": round(statistics.median(turns), 3),
                **at_most([turn - each for turn, each in zip(turns, own, strict=True)], bar),
            }
        rows["longest_callback"] = asyncio.run(setup.longest())
    report(benchmark="bridge_turn", measurements=MEASUREMENTS, turns_each=EPISODES * TURNS, **rows)


class Setup:
    """A tokenizer of its own, verl's settings, and the agent loop over a fake generation server."""

    def __init__(self, folder: Path) -> None:
        from hydra import compose, initialize_config_module  # noqa: PLC0415 - verl may be missing
        from transformers import AutoTokenizer  # noqa: PLC0415 - verl may be missing
        from verl.experimental.agent_loop import agent_loop  # noqa: PLC0415 - verl may be missing

        from verl_bridge.agent_loop import GymAgentLoop  # noqa: PLC0415 - verl may be missing
        from verl_bridge.cpu.tiny import make_tiny  # noqa: PLC0415 - verl may be missing

        self.text = WORDS.read_text("utf-8")
        make_tiny(folder / "tiny", self.text.splitlines(), vocabulary=2048, hidden=8, layers=1)
        self.tokenizer = AutoTokenizer.from_pretrained(folder / "tiny")
        rollout = "actor_rollout_ref.rollout"
        limits = {"prompt_length": 4096, "response_length": 32_768}
        overrides = [
            f"{rollout}.name=vllm",
            *(f"{rollout}.{name}={value}" for name, value in limits.items()),
        ]
        with initialize_config_module("verl.trainer.config", version_base=None):
            self.config = compose("ppo_trainer", overrides=overrides)
        self._wrap = agent_loop.DictConfigWrap
        self._loop_class: Any = GymAgentLoop
        self.reply = self.tokenizer.encode(self.text, add_special_tokens=False)[:REPLY_TOKENS]

    async def generate(self, **_: Any) -> Any:
        """Return a reply, as verl's generation server does."""
        return SimpleNamespace(token_ids=self.reply, log_probs=[0.0] * len(self.reply), extra_fields={})

    async def play(self, characters: int, turns: int) -> Any:
        """Play an episode."""
        loop = self._loop_class(
            trainer_config=self._wrap(self.config),
            server_manager=self,
            tokenizer=self.tokenizer,
            processor=None,
            dataset_cls=None,
            data_config=self._wrap(self.config.data),
            max_observation_tokens=4096,
            fault_budget=0,
        )
        kwargs = {"text": self.text[:characters], "turns": turns}
        output = await loop.run(
            {"temperature": 1.0, "logprobs": True},
            raw_prompt=[{"role": "system", "content": "You play."}],
            extra_info={"interaction_kwargs": {"env_id": ENV_ID, "env_kwargs": kwargs}},
        )
        record = output.extra_fields["reward_extra_info"]
        if record["fault"] or record["turns"] != turns:
            raise RuntimeError(f"the episode failed: {record}")
        return output

    def turn_ms(self, characters: int) -> tuple[float, float]:
        """Return the processor time of a turn and of the tokenizer in it, without the ends of episodes."""
        short, long = (self._episodes(characters, turns) for turns in (1, TURNS + 1))
        turn, own = (
            (after - before) * 1e3 / (EPISODES * TURNS) for before, after in zip(short, long, strict=True)
        )
        return turn, own

    def _episodes(self, characters: int, turns: int) -> tuple[float, float]:
        async def play() -> float:
            began = time.process_time()
            for _ in range(EPISODES):
                await self.play(characters, turns)
            return time.process_time() - began

        with _timed_tokenizer(self.tokenizer) as seconds:
            return asyncio.run(play()), seconds[0]

    async def longest(self) -> dict[str, Any]:
        """Play many episodes at once; return the longest callback and the longest garbage collection."""
        characters = max(LIMITS_MS)
        await self.play(characters, 1)
        callbacks, pauses = [0.0], [0.0]
        restore = _time_callbacks(callbacks)
        watch = _time_collections(pauses)
        try:
            for _ in range(ROUNDS):
                await asyncio.gather(*(self.play(characters, TURNS) for _ in range(AT_ONCE)))
        finally:
            restore()
            gc.callbacks.remove(watch)
        longest = max(callbacks) * 1e3
        began = time.thread_time()
        gc.collect()
        full = time.thread_time() - began
        return {
            "turns": TURNS * AT_ONCE * ROUNDS,
            "tracked_objects": len(gc.get_objects()),
            "frozen_objects": gc.get_freeze_count(),
            "longest_garbage_collection_ms": round(max(pauses) * 1e3, 1),
            "full_garbage_collection_ms": round(full * 1e3, 1),
            "ms": round(longest, 1),
            "at_most": LONGEST_MS,
            "met": longest <= LONGEST_MS,
        }


@contextlib.contextmanager
def _timed_tokenizer(tokenizer: Any) -> Iterator[list[float]]:
    """Sum the processor time of a tokenizer's calls, and of those of its copies in conversations."""
    seconds = [0.0]

    def timed(call: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            result = call(*args, **kwargs)
            seconds[0] += time.process_time() - began
            return result

        return wrapper

    def encoding(copy: Any) -> Any:
        def encode_batch_fast(texts: list[str], **options: Any) -> Any:
            return [SimpleNamespace(ids=each.ids) for each in copy.encode_batch_fast(texts, **options)]

        return SimpleNamespace(encode_batch_fast=timed(encode_batch_fast))

    controls = [conversation._control for conversation in chat_template._chats.values()]  # noqa: SLF001
    copies = [control._copy for control in controls]  # noqa: SLF001
    tokenizer.decode = timed(tokenizer.decode)
    for control, copy in zip(controls, copies, strict=True):
        control._copy = encoding(copy)  # noqa: SLF001
    try:
        yield seconds
    finally:
        del tokenizer.decode
        for control, copy in zip(controls, copies, strict=True):
            control._copy = copy  # noqa: SLF001


def _time_callbacks(seconds: list[float]) -> Any:
    """Record the duration of each callback of asyncio; return the function that ends this."""
    run = asyncio.events.Handle._run  # noqa: SLF001 - asyncio only logs them, in its debug mode

    def timed(self: Any) -> None:
        began = time.thread_time()
        run(self)
        seconds[0] = max(seconds[0], time.thread_time() - began)

    asyncio.events.Handle._run = timed  # type: ignore[method-assign]  # noqa: SLF001
    return lambda: setattr(asyncio.events.Handle, "_run", run)


def _time_collections(seconds: list[float]) -> Any:
    """Record the duration of each garbage collection; return the callback to remove."""
    began = [0.0]

    def watch(phase: str, _: Any) -> None:
        if phase == "start":
            began[0] = time.thread_time()
        else:
            seconds[0] = max(seconds[0], time.thread_time() - began[0])

    gc.callbacks.append(watch)
    return watch


if __name__ == "__main__":
    main()
