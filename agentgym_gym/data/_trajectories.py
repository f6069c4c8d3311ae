"""A trajectory: the messages of one episode, and what is known of it.

It is the one form between AgentGym's AgentTraj, the runs of ``agentgym eval`` and the rows that a model is
fine-tuned on.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from agentgym_gym.errors import BadOption

__all__ = ["Message", "Role", "Selected", "Trajectory", "as_system", "as_turns", "select"]

Role: TypeAlias = Literal["system", "user", "assistant"]

_ANSWER = "agentgym_answer"  # where a system message keeps the answer to the prompt that it was made of
_OK = "OK."


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        role: Whose it is: ``system`` (what the agent is told), ``user`` (the environment's) or ``assistant``
            (the agent's).
        content: Its text.
        loss: Whether a model is to be trained on it; None where the source says nothing.
        extra: What else the source says of it, as JSON values. Runs have ``tool_calls``, a list of objects
            with ``name``, ``arguments`` (text) and ``id``, and ``reasoning_content``.

    Raises:
        BadOption: There is no such role.
    """

    role: Role
    content: str
    loss: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise BadOption(f"role={self.role!r:.80} should be one of {', '.join(get_args(Role))}")


@dataclass(frozen=True)
class Trajectory:
    """The messages of one episode, in order.

    Attributes:
        env_id: The environment's gymnasium id.
        task_id: The task, or the seed where the environment numbers no tasks.
        messages: What was said.
        score: The final score, where it is known.
        success: Whether the task was solved, where it is known.
        action_format: The format of the replies, where it is known: the name of a format, or ``agentgym``
            where AgentGym's own parser read them.
        item_id: AgentGym's name of the task, as the source has it.
        fault: Kind of the fault that ended it, of the environment or of the agent. Such a trajectory is no
            data: `select` leaves it out, and no file takes it.
        extra: What else the source says of it, as JSON values.
        source: The file and the entry it was read from. Equal trajectories may have different ones.
    """

    env_id: str
    task_id: int
    messages: tuple[Message, ...]
    score: float | None = None
    success: bool | None = None
    action_format: str | None = None
    item_id: str | None = None
    fault: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    source: str = field(default="", compare=False)

    @property
    def key(self) -> tuple[str, int]:
        """Which task of which environment."""
        return self.env_id, self.task_id


def as_system(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory whose prompt is a system message.

    AgentGym tells the agent the rules in a first message of the user, and has the agent answer "OK." or the
    like, which no model is trained on (``"loss": false``). These two become one. The answer is kept beside
    it, so that `as_turns` restores both. Any other trajectory is returned as it is.
    """
    first, *rest = trajectory.messages or (None,)
    answer = rest[0] if rest else None
    if first is None or answer is None or (first.role, answer.role) != ("user", "assistant"):
        return trajectory
    if answer.loss is not False:
        return trajectory
    kept = {"content": answer.content, "extra": dict(answer.extra)}
    system = replace(first, role="system", extra={**first.extra, _ANSWER: kept})
    return replace(trajectory, messages=(system, *rest[1:]))


def as_turns(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory whose prompt is a first message of the user, which the agent answers.

    It is the inverse of `as_system`. The answer to a prompt that never was answered is "OK.".
    """
    first, *rest = trajectory.messages or (None,)
    if first is None or first.role != "system":
        return trajectory
    extra = dict(first.extra)
    kept = extra.pop(_ANSWER, {"content": _OK, "extra": {}})
    prompt = replace(first, role="user", extra=extra)
    answer = Message("assistant", kept["content"], loss=False, extra=kept["extra"])
    return replace(trajectory, messages=(prompt, answer, *rest))


@dataclass(frozen=True)
class Selected:
    """What was chosen of some trajectories.

    Attributes:
        kept: The chosen ones, in their order.
        left_out: How many were not chosen, by the reason in words.
    """

    kept: tuple[Trajectory, ...]
    left_out: Mapping[str, int]


def select(
    trajectories: Iterable[Trajectory],
    *,
    successful: bool = False,
    min_score: float | None = None,
    best: int | None = None,
) -> Selected:
    """Choose trajectories to train on.

    Left out are always those that a fault ended, those in which the agent says nothing, and those that are
    there already, message for message.

    Args:
        trajectories: The trajectories.
        successful: Whether only those are chosen that solved their task.
        min_score: The least score.
        best: How many of each task at most: those of the highest scores, of equal ones the first.

    Raises:
        BadOption: ``best`` is below 1, or ``min_score`` is no finite number.
    """
    if min_score is not None and not math.isfinite(min_score):
        raise BadOption(f"min_score={min_score} should be a finite number")
    if best is not None and best < 1:
        raise BadOption(f"best={best} should be 1 or more")
    left_out: Counter[str] = Counter()
    kept: list[Trajectory] = []
    seen = set()
    for each in trajectories:
        said = (each.key, tuple((message.role, message.content) for message in each.messages))
        reason = _refused(each, successful=successful, min_score=min_score)
        if reason is None and said in seen:
            reason = "there twice"
        if reason is not None:
            left_out[reason] += 1
            continue
        seen.add(said)
        kept.append(each)
    if best is not None:
        chosen = _best(kept, best)
        if len(chosen) < len(kept):
            left_out[f"not among the best {best} of its task"] += len(kept) - len(chosen)
        kept = chosen
    return Selected(tuple(kept), dict(sorted(left_out.items())))


def _refused(trajectory: Trajectory, *, successful: bool, min_score: float | None) -> str | None:
    if trajectory.fault is not None:
        return f"ended by {trajectory.fault}"
    if not any(message.role == "assistant" for message in trajectory.messages):
        return "without a reply"
    if successful and not trajectory.success:
        return "success not known" if trajectory.success is None else "not successful"
    if min_score is not None and (trajectory.score is None or trajectory.score < min_score):
        return "score not known" if trajectory.score is None else f"score below {min_score:g}"
    return None


def _best(trajectories: list[Trajectory], most: int) -> list[Trajectory]:
    by_task: dict[tuple[str, int], list[int]] = defaultdict(list)
    for at, each in enumerate(trajectories):
        by_task[each.key].append(at)
    chosen = {
        at
        for places in by_task.values()
        for at in sorted(places, key=lambda place: -_score(trajectories[place]))[:most]
    }
    return [each for at, each in enumerate(trajectories) if at in chosen]


def _score(trajectory: Trajectory) -> float:
    return float("-inf") if trajectory.score is None else trajectory.score
