"""Checks without a model that an environment's tasks can be won, and cannot be won by doing nothing."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import JudgeFailed
from agentgym_gym.evaluate._episode_workers import Job, Servers
from agentgym_gym.evaluate._figures.intervals import Interval, wilson
from agentgym_gym.evaluate._folder import RunFolder
from agentgym_gym.evaluate._policies import NullAgent, policies_of
from agentgym_gym.evaluate._runner import episodes_of, play_jobs, probe_env
from agentgym_gym.evaluate._runs import counting

if TYPE_CHECKING:
    from agentgym_gym.evaluate._agents import Agent
    from agentgym_gym.evaluate._text_env import TextEnv
    from agentgym_gym.rollout._records import EpisodeRecord
    from agentgym_gym.rollout._workers import Isolation

__all__ = ["MOST_WON", "PolicyResult", "Validation", "policy_result", "validate"]

_GOLD = "gold"

MOST_WON = {"random valid": 0.02}
"""The share of tasks that a cheap policy may win, by its name; others may win `OTHERS_WON`."""

OTHERS_WON = 0.01


@dataclass(frozen=True)
class PolicyResult:
    """The result of a cheap policy.

    Attributes:
        played: Number of episodes without a fault.
        won: Number of tasks won.
        faulted: Number of episodes ended by a fault.
        most: The share of tasks that it may win.
        reason: Why it may win more; empty if it may not.
    """

    played: int
    won: int
    faulted: int
    most: float
    reason: str = ""

    @property
    def share(self) -> float:
        """The share of tasks won."""
        return self.won / self.played if self.played else 0.0

    @property
    def interval(self) -> Interval:
        """The Wilson interval of the share, at 95 %."""
        return wilson(self.won, self.played)


@dataclass(frozen=True)
class Validation:
    """Result of `validate`.

    Attributes:
        env_id: The environment's gymnasium id.
        gold_agent: Name of the agent that plays the known solutions; None if there are none.
        gold: The episodes of this agent, by task.
        null: The episodes of the null agent, by task.
        no_solution: The tasks without a known solution, each with the reason.
        unwinnable: The tasks that are listed as impossible.
        policies: The results of the cheap policies that apply to the environment, by name.
    """

    env_id: str
    gold_agent: str | None
    gold: tuple[EpisodeRecord, ...]
    null: tuple[EpisodeRecord, ...]
    no_solution: Mapping[int, str] = field(default_factory=dict)
    unwinnable: frozenset[int] = frozenset()
    policies: Mapping[str, PolicyResult] = field(default_factory=dict)

    @property
    def cheaply_won(self) -> Mapping[str, PolicyResult]:
        """The policies that win a larger share of the tasks than they may, without a known reason."""
        return {
            name: result
            for name, result in self.policies.items()
            if result.share > result.most and not result.reason
        }

    @property
    def not_won(self) -> tuple[EpisodeRecord, ...]:
        """The episodes in which the known solution does not win a task that is not listed as impossible."""
        return tuple(record for record in self._lost if record.task_id not in self.unwinnable)

    @property
    def impossible(self) -> tuple[EpisodeRecord, ...]:
        """The episodes in which, as expected, the known solution does not win a task listed as impossible."""
        return tuple(record for record in self._lost if record.task_id in self.unwinnable)

    @property
    def _lost(self) -> tuple[EpisodeRecord, ...]:
        return tuple(record for record in self.gold if record.scored and record.success is False)

    @property
    def won_unwinnable(self) -> tuple[EpisodeRecord, ...]:
        """The episodes in which the known solution wins a task listed as impossible."""
        return tuple(
            record
            for record in self.gold
            if record.scored and record.success and record.task_id in self.unwinnable
        )

    @property
    def won_by_null(self) -> tuple[EpisodeRecord, ...]:
        """The episodes that the null agent wins."""
        return tuple(record for record in self.null if record.scored and record.success)

    @property
    def not_judged(self) -> tuple[EpisodeRecord, ...]:
        """The episodes of tasks that the server cannot judge: the fault is `JudgeFailed`."""
        return tuple(record for record in (*self.gold, *self.null) if _is_unjudged(record))

    @property
    def faulted(self) -> tuple[EpisodeRecord, ...]:
        """The episodes that another fault ended, so their result is unknown."""
        return tuple(
            record for record in (*self.gold, *self.null) if not record.scored and not _is_unjudged(record)
        )

    @property
    def undecided(self) -> tuple[EpisodeRecord, ...]:
        """The episodes for which the environment reports neither success nor failure."""
        return tuple(
            record for record in (*self.gold, *self.null) if record.scored and record.success is None
        )

    @property
    def passed(self) -> bool:
        """Whether no check failed and no task has a faulted episode."""
        return not (
            self.not_won
            or self.won_unwinnable
            or self.won_by_null
            or self.not_judged
            or self.faulted
            or self.cheaply_won
            or any(result.faulted for result in self.policies.values())
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "env_id": self.env_id,
            "passed": self.passed,
            "gold_agent": self.gold_agent,
            "gold": _counts(self.gold),
            "null": _counts(self.null),
            "not_won": [_episode_json(record) for record in self.not_won],
            "impossible": [record.task_id for record in self.impossible],
            "won_unwinnable": [_episode_json(record) for record in self.won_unwinnable],
            "won_by_null": [_episode_json(record) for record in self.won_by_null],
            "not_judged": [_episode_json(record) for record in self.not_judged],
            "faulted": [_episode_json(record) for record in self.faulted],
            "undecided": [_episode_json(record) for record in self.undecided],
            "no_solution": [{"task_id": task, "why": why} for task, why in self.no_solution.items()],
            "policies": {
                name: {
                    "played": result.played,
                    "won": result.won,
                    "faulted": result.faulted,
                    "share": result.share,
                    "interval": result.interval,
                    "most": result.most,
                    "reason": result.reason,
                }
                for name, result in self.policies.items()
            },
        }


async def validate(
    make_env: Callable[[], TextEnv],
    make_gold: Callable[[], Agent] | None,
    tasks: Iterable[int],
    *,
    unwinnable: Collection[int] = (),
    null: bool = True,
    policies: bool = False,
    cheap_wins: Mapping[str, str] = MappingProxyType({}),
    concurrency: int = 16,
    folder: Path | None = None,
    facts: Mapping[str, Any] | None = None,
    resume: bool = False,
    on_episode: Callable[[EpisodeRecord], object] | None = None,
    isolate: Isolation | None = None,
    timeout: float | None = None,
    success_at: float | None = None,
) -> Validation:
    """Play tasks concurrently with their known solutions and with an agent that does nothing.

    Args:
        make_env: Makes an environment, as for `evaluate_async`.
        make_gold: Makes the agent that plays the known solutions, such as an oracle, a `ReplayAgent` or a
            `ReferenceAgent`; None if there is none. If the agent has a method ``refusal``, tasks that it
            refuses are not played.
        tasks: Task ids.
        unwinnable: Ids of the tasks that are listed as impossible. They are played too, and the known
            solutions must not win them.
        null: Whether the agent that does nothing plays the tasks too.
        policies: Whether cheap policies play the tasks too: constant answers, the words of the goal, the
            first admissible action, random valid actions and others.
        cheap_wins: Reasons why some of the policies may win more tasks, by their names.
        concurrency: Concurrent episodes, from 1; fewer if the capacity of the environment's servers is lower.
        folder: Folder for a run of each agent: ``gold``, ``null`` and the policies; by default the episodes
            are not saved.
        facts: Facts about the runs for their summaries.
        resume: Whether to resume the runs in the folder and retry faulted episodes.
        on_episode: Called with each record as soon as its episode ends.
        isolate: Where each environment runs, as for `evaluate_async`.
        timeout: Timeout in seconds for each call of the environment, as for `evaluate_async`.
        success_at: Minimum return for success, as for `evaluate_async`.

    Raises:
        SetupError: No task can be played until the setup is fixed.
        AgentFault: The agent with the known solutions failed in many episodes in a row.
    """
    tasks = list(tasks)
    gold = None if make_gold is None else make_gold()
    async with probe_env(make_env, isolate=isolate, timeout=timeout) as probe:
        env_id, servers = probe.facts.env_id, Servers(probe.facts.capacity)
        refused = _refused(probe.env, gold, tasks)
        cheap = dict(policies_of(probe.env)) if policies else {}
    makers: dict[str, Callable[[], Agent]] = {**({NullAgent.name: NullAgent} if null else {}), **cheap}
    chosen = dict.fromkeys(makers, tasks)
    if make_gold is not None and gold is not None:
        makers = {_GOLD: make_gold, **makers}
        chosen[_GOLD] = [task for task in tasks if task not in refused]
    records: dict[str, list[EpisodeRecord]] = {run: [] for run in makers}
    with contextlib.ExitStack() as stack:
        jobs = []
        for run, make_agent in makers.items():
            keep: Callable[[EpisodeRecord], object] = records[run].append
            left = episodes_of(chosen[run], 1)
            if folder is not None:
                agent = gold.name if run == _GOLD and gold is not None else run
                about = {"env_id": env_id, "agent": agent, **(facts or {})}
                place = folder / (run if run in {_GOLD, NullAgent.name} else _folder_name(run, [*cheap]))
                kept = stack.enter_context(RunFolder(place, about, resume=resume, planned=left))
                records[run], keep = kept.records, kept.add
                left = kept.remaining(left, retry_faulted=True)
            take = _in_sequence(keep, on_episode)
            jobs.append(
                Job(
                    make_env,
                    make_agent,
                    left,
                    take,
                    servers,
                    isolate=isolate,
                    timeout=timeout,
                    success_at=success_at,
                )
            )
        await play_jobs(jobs, concurrency=concurrency)
    played = {
        run: tuple(record for record in counting(of_run) if record.task_id in chosen_ids)
        for run, of_run in records.items()
        for chosen_ids in (frozenset(chosen[run]),)
    }
    results = {
        name: policy_result(name, played[name], cheap_wins.get(name, ""))
        for name in cheap
        if _applies(played[name])
    }
    return Validation(
        env_id,
        None if gold is None else gold.name,
        played.get(_GOLD, ()),
        played.get(NullAgent.name, ()),
        refused,
        frozenset(unwinnable),
        results,
    )


def _folder_name(policy: str, names: Sequence[str]) -> str:
    """Return the name of a policy's folder; its number distinguishes answers without letters."""
    words = re.sub(r"\W+", "_", policy).strip("_")
    return f"policy_{names.index(policy)}_{words}"


def _applies(records: Collection[EpisodeRecord]) -> bool:
    """Return whether a policy has an action in some episode, or a fault ended one."""
    return any(record.turns or not record.scored for record in records)


def policy_result(name: str, records: Collection[EpisodeRecord], reason: str = "") -> PolicyResult:
    """Return the result of a policy from its episodes.

    Args:
        name: Its name.
        records: Its episodes.
        reason: Why it may win more tasks than others; empty if it may not.
    """
    scored = [record for record in records if record.scored]
    won = sum(bool(record.success) for record in scored)
    most = MOST_WON.get(name, OTHERS_WON)
    return PolicyResult(len(scored), won, len(records) - len(scored), most, reason)


def _in_sequence(
    keep: Callable[[EpisodeRecord], object], then: Callable[[EpisodeRecord], object] | None
) -> Callable[[EpisodeRecord], None]:
    def take(record: EpisodeRecord) -> None:
        keep(record)
        if then is not None:
            then(record)

    return take


def _refused(env: TextEnv, gold: Agent | None, tasks: Iterable[int]) -> dict[int, str]:
    if gold is None:
        return dict.fromkeys(tasks, "no agent has a solution")
    refusal: Callable[[Any, int], str | None] = getattr(gold, "refusal", lambda *_: None)
    return {task: why for task in tasks if (why := refusal(env, task)) is not None}


def _is_unjudged(record: EpisodeRecord) -> bool:
    return record.fault is not None and record.fault["kind"] == JudgeFailed.__name__


def _counts(records: Iterable[EpisodeRecord]) -> dict[str, int]:
    records = list(records)
    return {
        "played": len(records),
        "won": sum(bool(record.scored and record.success) for record in records),
        "not_won": sum(record.scored and record.success is False for record in records),
        "undecided": sum(record.scored and record.success is None for record in records),
        "not_judged": sum(map(_is_unjudged, records)),
        "faulted": sum(not record.scored and not _is_unjudged(record) for record in records),
    }


def _episode_json(record: EpisodeRecord) -> dict[str, Any]:
    fault = record.fault or record.agent_fault
    return {
        "agent": record.agent,
        "task_id": record.task_id,
        "score": record.score,
        "turns": record.turns,
        "ending": record.ending,
        **({} if fault is None else {"fault": dict(fault)}),
    }
