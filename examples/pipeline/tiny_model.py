"""Makes the tiny model and its tokenizer from texts of runs: ``python tiny_model.py RUN ... --out FOLDER``.

These become one token each: the prompts of the environments, the replies of the runs, recurring phrases, and
each item of TextCraft with its number. The model has random weights.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from joint_recipe import MISTAKES, PHRASES

from agentgym_gym.data import Trajectory, read_trajectories
from verl_bridge.cpu.tiny import make_tiny

_NAME = r"[a-z]+(?: [a-z]+)*?"
_COUNTED = re.compile(rf" (?:[0-9]+ )(?:{_NAME})(?=,| using|$)", re.MULTILINE)
_GOAL = re.compile(rf"(?<=^Goal: craft) {_NAME}(?=\.)", re.MULTILINE)


def phrases_of(trajectories: Iterable[Trajectory]) -> list[str]:
    """Return the phrases that become one token each.

    Args:
        trajectories: Trajectories of Maze and TextCraft.
    """
    found = set(PHRASES)
    for trajectory in trajectories:
        for message in trajectory.messages:
            if message.role != "user":
                found.add(message.content)
            elif trajectory.env_id == "agentgym/TextCraft-v0":
                found.update(_COUNTED.findall(message.content))
                found.update(_GOAL.findall(message.content))
    return sorted(found)


def main() -> None:
    """Create the model of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs of agentgym eval")
    parser.add_argument("--out", type=Path, required=True, help="folder for the model and its tokenizer")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the weights")
    args = parser.parse_args()
    trajectories = [each for run in args.runs for each in read_trajectories(run)]
    messages = [message for trajectory in trajectories for message in trajectory.messages]
    texts = [message.content for message in messages if message.role != "system"]
    make_tiny(args.out, [*texts, *MISTAKES], phrases_of(trajectories), seed=args.seed)


if __name__ == "__main__":
    main()
