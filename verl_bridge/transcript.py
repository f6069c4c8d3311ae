"""An episode as a conversation, as the evaluation's ``episodes.jsonl`` has it. Needs nothing of verl."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from numbers import Integral
from typing import TYPE_CHECKING, Any

from verl_bridge.episodes import ignored_actions
from verl_bridge.labels import without_passwords

if TYPE_CHECKING:
    from verl_bridge.episodes import Episode, StepResult
    from verl_bridge.horizon import Moment
    from verl_bridge.tasks import Task

__all__ = ["Transcript", "opening_of", "task_id_of"]


@dataclass
class Transcript:
    """What was said in an episode, and when.

    Attributes:
        messages: Observations and replies in order, as ``role`` and ``content``.
        steps: What is known of each reply.
        parse_errors: Number of replies that could not be read, by kind.
        terminated: Whether the environment ended the episode.
        truncated: Whether it cut it short.
    """

    messages: list[dict[str, str]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    parse_errors: Counter[str] = field(default_factory=Counter)
    terminated: bool = False
    truncated: bool = False
    _began: float = field(default_factory=time.monotonic)

    def observe(self, observation: str) -> None:
        """Add what the environment said first."""
        self.messages.append({"role": "user", "content": observation})

    def reply(self, text: str, *, prompt_tokens: int, tokens: int, seconds: float) -> None:
        """Add a reply.

        Args:
            text: What the model wrote, its reasoning included.
            prompt_tokens: Tokens before it.
            tokens: Tokens of it.
            seconds: For which the model was waited for.
        """
        self.messages.append({"role": "assistant", "content": text})
        self.steps.append(
            {"agent_seconds": seconds, "prompt_tokens": prompt_tokens, "completion_tokens": tokens}
        )

    def answer(self, turn: StepResult, seconds: float) -> None:
        """Add what the environment answered, for which it was waited so many seconds."""
        step = self.steps[-1]
        step["env_seconds"] = seconds
        self.terminated, self.truncated = turn.terminated, turn.truncated
        if turn.info.get("fault"):
            return
        self.observe(turn.observation)
        if isinstance(turn.info.get("action"), str):
            step["action"] = turn.info["action"]
        error = turn.info.get("parse_error")
        if error:
            step["parse_error"] = kind = error if isinstance(error, str) else "ParseError"
            step["action"] = None
            self.parse_errors[kind] += 1
        ignored = ignored_actions(turn.info)
        if ignored:
            step["ignored_actions"] = ignored

    def record(
        self,
        episode: Episode,
        *,
        agent: str,
        task_id: int,
        fault: Mapping[str, str] | None,
        cut: bool,
        limited: bool,
        seconds: Sequence[float],
        moment: Moment | None,
    ) -> dict[str, Any]:
        """Return the episode as a line of ``episodes.jsonl``.

        Args:
            episode: The episode, when it is over.
            agent: The model's name.
            task_id: Which task it is.
            fault: Why it does not count, if it does not.
            cut: Whether the response or the context was used up.
            limited: Whether the loop's turn limit ended it.
            seconds: For which the model, and the environment, were waited for.
            moment: When it was played, if verl tells.
        """
        valid = fault is None
        truncated = self.truncated or limited or not valid
        ended = "truncated" if truncated else "context_overflow" if cut else "aborted"
        returned = float(sum(episode.rewards))
        return {
            "env_id": episode.task.env_id.rpartition(":")[2],
            "agent": agent,
            "task_id": task_id,
            "goal": episode.goal,
            "score": returned if valid else None,
            "success": episode.success if valid else None,
            "return": returned,
            "turns": len(episode.rewards),
            "terminated": self.terminated,
            "truncated": truncated,
            "parse_errors": dict(self.parse_errors),
            "fault": None if fault is None else {k: without_passwords(v) for k, v in fault.items()},
            "seconds": time.monotonic() - self._began,
            "rewards": list(episode.rewards),
            "messages": self.messages,
            "ending": "fault" if not valid else "terminated" if self.terminated else ended,
            "agent_seconds": seconds[0],
            "env_seconds": seconds[1],
            "steps": self.steps,
            "step": None if moment is None else moment.step,
            "validation": None if moment is None else moment.validation,
            "ended": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        }


def task_id_of(task: Task, row: Mapping[str, Any]) -> int:
    """Return which task it is: that of the reset's options, else the seed, else the number of the row."""
    extra = row.get("extra_info")
    index = extra.get("index") if isinstance(extra, Mapping) else None
    found = (task.options.get("task_id"), task.seed, index, row.get("index"))
    return next((int(each) for each in found if isinstance(each, Integral)), 0)


def opening_of(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return what stands before the first observation, as text; None if nothing does."""
    if len(messages) == 1 and messages[0].get("role") == "system":
        return str(messages[0].get("content"))
    said = [f"{message.get('role')}: {message.get('content')}" for message in messages]
    return "\n\n".join(said) or None
