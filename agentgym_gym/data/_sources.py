"""Read trajectories from runs, AgentGym files or rows for fine-tuning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentgym_gym.data._agenttraj import read_agenttraj
from agentgym_gym.data._runs import of_run
from agentgym_gym.data._sft import read_sft
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import find_runs, read_run
from agentgym_gym.evaluate._runs import EPISODES

if TYPE_CHECKING:
    from agentgym_gym.data._trajectories import Trajectory

__all__ = ["read_trajectories"]


def read_trajectories(path: Path) -> list[Trajectory]:
    """Return the trajectories at a path, in order.

    Args:
        path: A folder with one or several runs, or an ``episodes.jsonl``; an AgentTraj file (``.json`` or
            ``.jsonl``), or a folder of them; a ``.parquet`` file of ``agentgym data sft``, or a folder of
            them.

    Raises:
        BadOption: The path does not exist, holds no trajectories, or a file cannot be read. The message names
            the file and the entry.
        MissingExtra: The files are parquet, and pyarrow is not installed.
    """
    if not path.exists():
        raise BadOption(f"{path} does not exist")
    if path.name == EPISODES or (path.is_dir() and next(path.rglob(EPISODES), None) is not None):
        return [each for folder in find_runs(path) for each in of_run(read_run(folder))]
    if path.suffix == ".parquet" or (path.is_dir() and next(path.glob("*.parquet"), None) is not None):
        return read_sft(path)
    if path.is_dir() and next(path.glob("*.json"), None) is None:
        raise BadOption(
            f"{path} contains no trajectories: it has no {EPISODES}, also in its subfolders, and no .json or "
            ".parquet file"
        )
    return read_agenttraj(path)
