"""The tokens of a run, as the model's server counted them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from agentgym_gym.rollout._records import EpisodeRecord, StepRecord

__all__ = ["Tokens", "count_tokens"]

_Key: TypeAlias = Literal["prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens"]


@dataclass(frozen=True)
class Tokens:
    """Sums over replies. A sum is None where no reply knows its part.

    Attributes:
        prompt: Tokens of the requests. A turn sends the history again, so one text counts in many turns.
        completion: Tokens of the replies, those of the reasoning included.
        reasoning: How many of these are reasoning.
        cached: How many tokens of the requests the server had at hand.
        uncounted: How many replies do not say both how many tokens were sent and how many came back.
        per_second: Tokens of the replies per second of waiting for them, over the replies that know both:
            the speed of one conversation, not of the server.
    """

    prompt: int | None
    completion: int | None
    reasoning: int | None
    cached: int | None
    uncounted: int
    per_second: float | None


def count_tokens(records: Iterable[EpisodeRecord]) -> Tokens:
    """Sum the tokens of episodes, those that a fault ended included: they were paid for too.

    A request that the server refused because the context was too long has no reply, and so is not uncounted.
    """
    steps: list[StepRecord] = []
    replies = counted = 0
    for record in records:
        steps += record.steps
        replies += max(len(record.steps), len(record.replies))
        counted += sum(
            None not in {_known(step, "prompt_tokens"), _known(step, "completion_tokens")}
            for step in record.steps
        )
        if record.ending == "context_overflow" and record.steps and "prompt_tokens" not in record.steps[-1]:
            counted += 1
    timed = [
        (tokens, step["agent_seconds"])
        for step in steps
        if (tokens := _known(step, "completion_tokens")) is not None and step.get("agent_seconds", 0.0) > 0
    ]
    seconds = fsum(each for _, each in timed)
    return Tokens(
        prompt=_sum(steps, "prompt_tokens"),
        completion=_sum(steps, "completion_tokens"),
        reasoning=_sum(steps, "reasoning_tokens"),
        cached=_sum(steps, "cached_tokens"),
        uncounted=replies - counted,
        per_second=sum(tokens for tokens, _ in timed) / seconds if seconds else None,
    )


def _sum(steps: list[StepRecord], key: _Key) -> int | None:
    known = [tokens for step in steps if (tokens := _known(step, key)) is not None]
    return sum(known) if known else None


def _known(step: StepRecord, key: _Key) -> int | None:
    """Return a number of tokens; None where there is none, or what a server said cannot be one."""
    tokens = step.get(key)
    return tokens if isinstance(tokens, int) and 0 <= tokens <= _MOST else None


_MOST = 10**12
