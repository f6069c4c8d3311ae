"""Token counts of a run, as reported by the model server."""

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
    """Token sums over replies. A sum is None if no reply has that count.

    Attributes:
        prompt: Prompt tokens. Each turn sends the history again, so the same text counts in many turns.
        completion: Completion tokens, including reasoning.
        reasoning: Completion tokens that are reasoning.
        cached: Prompt tokens that the server read from its prefix cache.
        uncounted: Number of replies that lack the prompt count or the completion count.
        per_second: Completion tokens per second of request time, over the replies that have both. This is
            the speed of one conversation, not the throughput of the server.
    """

    prompt: int | None
    completion: int | None
    reasoning: int | None
    cached: int | None
    uncounted: int
    per_second: float | None


def count_tokens(records: Iterable[EpisodeRecord]) -> Tokens:
    """Sum the tokens of episodes, including faulted ones, because their tokens cost money too.

    A request that the server rejected because the context was too long has no reply, so it does not count
    as uncounted.
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
    """Return a token count, or None if it is missing or implausible."""
    tokens = step.get(key)
    return tokens if isinstance(tokens, int) and 0 <= tokens <= _MOST else None


_MOST = 10**12
