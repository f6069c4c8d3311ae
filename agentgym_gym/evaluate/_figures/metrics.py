"""Metrics over the episodes of a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from agentgym_gym._http.limits import Stats
from agentgym_gym.evaluate._figures.by_task import TaskResult, by_task, mean
from agentgym_gym.evaluate._figures.failures import count_failures
from agentgym_gym.evaluate._figures.intervals import bootstrap, share_interval
from agentgym_gym.evaluate._figures.pass_at import Estimator, ks_up_to, over_tasks, pass_at_k, pass_hat_k
from agentgym_gym.evaluate._figures.tokens import Tokens, count_tokens

if TYPE_CHECKING:
    from agentgym_gym.evaluate._figures.prices import Price
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["Solved", "Summary", "counted", "summarise"]


@dataclass(frozen=True)
class Solved:
    """Task ids, grouped by how many of the task's scored episodes solved it.

    Attributes:
        never: No episode solved the task.
        sometimes: Some episodes solved the task.
        always: All episodes solved the task.
        unknown: No scored episode of the task reports success or failure.
    """

    never: tuple[int, ...]
    sometimes: tuple[int, ...]
    always: tuple[int, ...]
    unknown: tuple[int, ...]


@dataclass(frozen=True)
class Summary:
    """Counts and averages over episodes. An average over no episodes is None, never 0.

    Averages are over the scored episodes. All intervals are 95 % confidence intervals, see
    `agentgym_gym.evaluate._figures.intervals`.

    Attributes:
        episodes: Number of episodes.
        scored: Number of episodes that no fault of the environment or the agent ended.
        tasks: Number of tasks.
        samples: k, the largest number of episodes of one task.
        faults: Number of episodes that a fault of the environment ended, by kind.
        agent_faults: Number of episodes that a fault of the agent ended, by kind.
        endings: Number of episodes by `EpisodeRecord.ending`.
        mean_score: Mean over tasks of the mean score of a task's episodes.
        score_interval: Interval of ``mean_score``, by the bootstrap over tasks.
        success_rate: Mean over tasks of the share of a task's episodes that solved it. Episodes without a
            reported success or failure do not count.
        success_interval: Interval of ``success_rate``: the Wilson interval if each task's share is 0 or 1, as
            with one episode for each task, otherwise the bootstrap over tasks.
        avg_at_k: Success rate over exactly k = ``samples`` scored episodes of each task; None if a task has
            fewer.
        pass_at: pass@k by k: the probability that at least one of k episodes of a task solves it, mean over
            tasks; None if a task has fewer than k scored episodes. k is 1, 2, 4 and so on, and ``samples``.
        pass_at_intervals: Intervals of ``pass_at``, computed as for success.
        pass_hat: pass^k by k: the probability that all of k episodes of a task solve it, mean over tasks;
            None if a task has fewer than k scored episodes.
        pass_hat_intervals: Intervals of ``pass_hat``, computed as for success.
        solved: Ids of the tasks that were solved never, sometimes and always.
        mean_turns: Mean number of turns of an episode.
        parse_errors: Number of parse errors in scored episodes, by kind.
        parse_error_share: Share of the replies in scored episodes that failed to parse.
        failures: Number of unsolved episodes by kind, as defined in docs/report.md. An episode can have
            several kinds.
        tokens: Tokens of all episodes, including faulted ones.
        seconds: Wall-clock seconds of all episodes, including faulted ones.
        agent_seconds: Seconds spent in the agent; None if no episode records them, as in files of earlier
            versions.
        env_seconds: Seconds spent in the environment; None if no episode records them.
        retries: Number of retried requests to the agent's model server, counting each retry.
        cost: Cost of the tokens, in the currency of the price table; None if unknown.
        counters: Sums of the episodes' counters, as returned by `counted`.
    """

    episodes: int
    scored: int
    tasks: int
    samples: int
    faults: Mapping[str, int]
    agent_faults: Mapping[str, int]
    endings: Mapping[str, int]
    mean_score: float | None
    score_interval: tuple[float, float] | None
    success_rate: float | None
    success_interval: tuple[float, float] | None
    avg_at_k: float | None
    pass_at: Mapping[int, float | None]
    pass_at_intervals: Mapping[int, tuple[float, float] | None]
    pass_hat: Mapping[int, float | None]
    pass_hat_intervals: Mapping[int, tuple[float, float] | None]
    solved: Solved
    mean_turns: float | None
    parse_errors: Mapping[str, int]
    parse_error_share: float | None
    tokens: Tokens
    seconds: float
    agent_seconds: float | None
    env_seconds: float | None
    retries: int
    cost: float | None
    counters: Mapping[str, Any] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)

    @property
    def faulted(self) -> int:
        """Number of episodes that a fault of the environment or the agent ended."""
        return self.episodes - self.scored

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object.

        Values that depend on the clock, the connection or the cache of the model server are under
        ``timing``. Everything else is the same for two runs with the same replies.
        """
        value = asdict(self)
        tokens = value["tokens"]
        cached, per_second = tokens.pop("cached"), tokens.pop("per_second")
        for each in ("pass_at", "pass_at_intervals", "pass_hat", "pass_hat_intervals"):
            value[each] = {str(k): number for k, number in value[each].items()}
        timing = {name: value.pop(name) for name in _TIMING}
        value["timing"] = {**timing, "cached_tokens": cached, "tokens_per_second": per_second}
        return value


_TIMING = ("seconds", "agent_seconds", "env_seconds", "retries", "cost", "counters")


def summarise(records: Iterable[EpisodeRecord], price: Price | None = None) -> Summary:
    """Return the metrics of episodes. The order of the episodes makes no difference.

    Args:
        records: The episodes that count, such as `Run.records`. Episodes of the same task are its samples.
        price: Price of the tokens.
    """
    records = list(records)
    scored = [record for record in records if record.scored]
    tasks = by_task(records)
    samples = max((task.episodes for task in tasks), default=0)
    scores = [task.score for task in tasks if task.score is not None]
    shares = [task.success for task in tasks if task.success is not None]
    at, hat = _passes(pass_at_k, tasks, samples), _passes(pass_hat_k, tasks, samples)
    parse_errors: Counter[str] = Counter()
    for record in scored:
        parse_errors.update(record.parse_errors)
    turns = sum(record.turns for record in scored)
    timed = [record for record in records if record.agent_seconds or record.env_seconds]
    tokens = count_tokens(records)
    return Summary(
        episodes=len(records),
        scored=len(scored),
        tasks=len(tasks),
        samples=samples,
        faults=_count(record.fault["kind"] for record in records if record.fault is not None),
        agent_faults=_count(
            record.agent_fault["kind"] for record in records if record.agent_fault is not None
        ),
        endings=_count(record.ending for record in records),
        mean_score=mean(scores),
        score_interval=bootstrap(scores),
        success_rate=mean(shares),
        success_interval=share_interval(shares),
        avg_at_k=mean(shares) if tasks and all(task.known == samples for task in tasks) else None,
        pass_at={k: mean(values or ()) for k, values in at.items()},
        pass_at_intervals={k: share_interval(values or ()) for k, values in at.items()},
        pass_hat={k: mean(values or ()) for k, values in hat.items()},
        pass_hat_intervals={k: share_interval(values or ()) for k, values in hat.items()},
        solved=_solved(tasks),
        mean_turns=mean(record.turns for record in scored),
        parse_errors=dict(sorted(parse_errors.items())),
        parse_error_share=sum(parse_errors.values()) / turns if turns else None,
        tokens=tokens,
        seconds=math.fsum(record.seconds for record in records),
        agent_seconds=math.fsum(record.agent_seconds for record in timed) if timed else None,
        env_seconds=math.fsum(record.env_seconds for record in timed) if timed else None,
        retries=sum(step.get("retries", 0) for record in records for step in record.steps),
        cost=None if price is None else price.cost(tokens),
        counters=counted(records),
        failures=count_failures(records),
    )


def counted(records: Iterable[EpisodeRecord]) -> dict[str, Any]:
    """Return the sums of the episodes' counters, and the number of episodes without counters."""
    each = [record.counters for record in records]
    known = [Stats.of(counters) for counters in each if counters is not None]
    total = Stats()
    for stats in known:
        total.add(stats)
    total.faults = Counter(_count(total.faults.elements()))
    total.queued, total.seconds = (
        math.fsum(getattr(s, name) for s in known) for name in ("queued", "seconds")
    )
    return {"episodes": len(each), "uncounted": each.count(None), **total.as_dict()}


def _count(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _passes(estimator: Estimator, tasks: Sequence[TaskResult], samples: int) -> dict[int, list[float] | None]:
    counts = [(task.known, task.solved) for task in tasks]
    return {k: over_tasks(estimator, counts, k) for k in ks_up_to(samples)}


def _solved(tasks: Iterable[TaskResult]) -> Solved:
    ids: dict[str, list[int]] = {"never": [], "sometimes": [], "always": [], "unknown": []}
    for task in tasks:
        if task.success is None:
            ids["unknown"].append(task.task_id)
        else:
            ids[{0.0: "never", 1.0: "always"}.get(task.success, "sometimes")].append(task.task_id)
    return Solved(**{name: tuple(each) for name, each in ids.items()})
