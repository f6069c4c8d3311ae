"""Folders of trainings, written by the bridge's own writer, for the tests that read and show them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agentgym_gym.rollout import EpisodeRecord, EpisodeWriter
from report_runs import episode

PROMPT = "You craft."


def line(step: int, task: int = 0, *, validation: bool = False, **others: Any) -> dict[str, Any]:
    """Return an episode of a training as JSON has it."""
    made = episode(task, agent="tiny", **others).to_json()
    return {**made, "step": step, "validation": validation, "ended": f"2026-01-01T00:{step:02}:00+00:00"}


def write_training(folder: Path, lines: Iterable[Mapping[str, Any]], session: str | None = None) -> Path:
    """Write episodes as one process of a training does."""

    async def work() -> None:
        async with EpisodeWriter(folder) as writer:
            for each in lines:
                facts = {"env_id": each["env_id"], "agent": each["agent"], "system_prompt": PROMPT}
                await writer.write(EpisodeRecord.from_json({**each, "session": session}), facts)

    with ThreadPoolExecutor(1) as thread:  # playwright has an event loop in the test's own
        thread.submit(asyncio.run, work()).result()
    return folder
