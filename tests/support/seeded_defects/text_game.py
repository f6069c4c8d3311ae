"""The common part of the sound text games: tasks, turns, ends and the agent that plays a known solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium
from gymnasium.error import ResetNeeded

from agentgym_gym.spaces import TextSpace


class TextGame(gymnasium.Env):
    """A game of numbered tasks, which ends when it is won.

    Class attributes:
        system_prompt: Instructions for the agent.
        splits: The task ids of each split.
        reward_range: The range of a reward.
        max_turns: The turn limit of the game; None if only the registration has one.
    """

    metadata: dict[str, Any] = {"render_modes": [], "task_option": "task_id"}  # noqa: RUF012 - as gymnasium has it
    system_prompt = ""
    splits: ClassVar[Mapping[str, range]] = {"train": range(400), "test": range(400, 500)}
    reward_range = (0.0, 1.0)
    max_turns: int | None = None

    def __init__(self) -> None:
        self.observation_space = TextSpace()
        self.action_space = TextSpace()
        self.task: int | None = None
        self.turn, self.won, self.over = 0, False, True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start the task of the option, or a random one."""
        super().reset(seed=seed)
        self.task = self.chosen_task(seed, options or {})
        self.turn, self.won, self.over = 0, False, False
        return self.start(self.task), self.info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one action."""
        if self.over:
            raise ResetNeeded("the episode is over: call reset()")
        self.turn += 1
        observation, reward = self.play(action)
        terminated = self.is_finished()
        truncated = not terminated and self.max_turns is not None and self.turn >= self.max_turns
        self.over = terminated or truncated
        return observation, reward, terminated, truncated, self.info()

    def chosen_task(self, seed: int | None, options: Mapping[str, Any]) -> int:
        """Return the task to start."""
        task = options.get("task_id")
        if task is None:
            return int(self.np_random.integers(len(self.splits["train"])))
        if not any(task in ids for ids in self.splits.values()):
            raise ValueError(f"there is no task {task!r}")
        return int(task)

    def is_finished(self) -> bool:
        """Return whether the game is over before its turn limit."""
        return self.won

    def info(self) -> dict[str, Any]:
        """Return the info of a turn."""
        return {"task_id": self.task, "goal": self.goal(), "success": self.won}

    def start(self, task: int) -> str:
        """Set up a task; return the first observation."""
        raise NotImplementedError

    def play(self, action: str) -> tuple[str, float]:
        """Return the observation and the reward of an action, and set ``won``."""
        raise NotImplementedError

    def goal(self) -> str:
        """Return the goal of the current task."""
        raise NotImplementedError


class SolutionPlayer:
    """Plays the known solution of each task.

    Class attributes:
        solution: Returns the actions that win a task.
    """

    name = "solver"
    blocking = False
    solution: Callable[[int], list[str]]

    def reset(self, env: Any, observation: str, info: dict[str, Any]) -> None:
        """Look up the solution of the task."""
        self._left = iter(type(self).solution(info["task_id"]))

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """Return the next action of the solution; None after the last."""
        return next(self._left, None)
