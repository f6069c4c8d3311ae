"""Trajectories: the messages of an episode, and its metadata.

`Trajectory` is the common representation of AgentTraj entries, ``agentgym eval`` episodes and rows for
fine-tuning.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from agentgym_gym.catalogue import find
from agentgym_gym.errors import BadOption, UnknownEnvironment

__all__ = [
    "Message",
    "RequestCounts",
    "Role",
    "Selected",
    "Trajectory",
    "as_context",
    "as_system",
    "as_turns",
    "select",
    "with_prompt",
]

Role: TypeAlias = Literal["system", "user", "assistant"]

_ANSWER = "agentgym_answer"  # the key under which `as_system` stores the answer to the prompt
_OK = "OK."
_CONTEXT = "context"  # marks an example or an earlier reply, which is not the answer to a prompt


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        role: The sender: ``system`` (the prompt), ``user`` (the environment) or ``assistant`` (the agent).
        content: The text.
        loss: Whether to train a model on the message; None if the source does not specify it.
        extra: Other values from the source, as JSON values. Messages of runs may have ``reasoning_content``,
            and ``tool_calls``, a list of objects with ``name``, ``arguments`` (text) and ``id``.

    Raises:
        BadOption: The role does not exist.
    """

    role: Role
    content: str
    loss: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise BadOption("role", self.role, f"one of {', '.join(get_args(Role))}")


@dataclass(frozen=True)
class RequestCounts:
    """The token counts of the requests for the replies of an episode.

    Attributes:
        history: The history policy of the requests, as text.
        tokens: The tokens of the request for each reply, as the model server counted them.
    """

    history: str
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Trajectory:
    """The messages of one episode, in order.

    Attributes:
        env_id: The environment's gymnasium id.
        task_id: The task, or the seed if the environment has no numbered tasks.
        messages: The messages.
        score: The final score; None if unknown.
        success: Whether the task was solved; None if unknown.
        action_format: The format of the replies: the name of a format, or ``agentgym`` if AgentGym's own
            parser read them; None if unknown.
        item_id: AgentGym's item id of the task, if the source has one.
        fault: Kind of the fault of the environment or agent that ended the episode. Such a trajectory is not
            training data: `select` drops it, and it cannot be written to a file.
        extra: Other values from the source, as JSON values. A conversation of one turn, as a history policy
            makes it, has the policy as ``history``, and the number of the ``turn``, from 1.
        source: The file and entry that it was read from. It is ignored when trajectories are compared.
        counts: The token counts of the requests, if the source has them and the messages are unchanged. They
            are not written to files, and ignored when trajectories are compared.
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
    counts: RequestCounts | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[str, int]:
        """The environment id and the task id."""
        return self.env_id, self.task_id


def as_system(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory whose prompt is a system message.

    AgentGym's prompt is the first user message, followed by an answer such as "OK.", which is excluded from
    training (``"loss": false``). Both are merged into one system message. The answer is kept in its
    ``extra``, so that `as_turns` can restore both messages. Any other trajectory is returned unchanged.
    """
    first, *rest = trajectory.messages or (None,)
    answer = rest[0] if rest else None
    if first is None or answer is None or (first.role, answer.role) != ("user", "assistant"):
        return trajectory
    if answer.loss is not False or _CONTEXT in answer.extra:
        return trajectory
    stored = {"content": answer.content, "extra": dict(answer.extra)}
    system = replace(first, role="system", extra={**first.extra, _ANSWER: stored})
    return replace(trajectory, messages=(system, *rest[1:]))


def as_context(reply: Message) -> Message:
    """Return an example or an earlier reply, which is not to be trained on, and no answer to a prompt."""
    return replace(reply, loss=False, extra={_CONTEXT: True})


def as_turns(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory whose prompt is the first user message, followed by an answer of the agent.

    It is the inverse of `as_system`. If the trajectory has no stored answer, the answer is "OK.".
    """
    first, *rest = trajectory.messages or (None,)
    if first is None or first.role != "system":
        return trajectory
    extra = dict(first.extra)
    stored = extra.pop(_ANSWER, {"content": _OK, "extra": {}})
    prompt = replace(first, role="user", extra=extra)
    answer = Message("assistant", stored["content"], loss=False, extra=stored["extra"])
    return replace(trajectory, messages=(prompt, answer, *rest))


def with_prompt(trajectory: Trajectory, prompt: str) -> Trajectory:
    """Return a trajectory with another system prompt, as a system message."""
    trajectory = replace(as_system(trajectory), counts=None)
    first, *rest = trajectory.messages or (None,)
    if first is None or first.role != "system":
        return replace(trajectory, messages=(Message("system", prompt), *trajectory.messages))
    return replace(trajectory, messages=(replace(first, content=prompt), *rest))


@dataclass(frozen=True)
class Selected:
    """The result of `select`.

    Attributes:
        kept: The selected trajectories, in input order.
        left_out: The number of dropped trajectories by reason.
    """

    kept: tuple[Trajectory, ...]
    left_out: Mapping[str, int]


def select(
    trajectories: Iterable[Trajectory],
    *,
    successful: bool = False,
    min_score: float | None = None,
    best: int | None = None,
    split: str | None = None,
) -> Selected:
    """Select trajectories to train on.

    Trajectories that a fault ended, that have no replies, or whose messages duplicate an earlier trajectory
    of the same task are always dropped. Tasks of a split for evaluation, such as ``test`` or ``dev``, are
    dropped by default.

    Args:
        trajectories: The trajectories.
        successful: Whether to keep only trajectories that solved their task.
        min_score: The minimum score.
        best: Keep the N trajectories with the highest scores of each task; on ties, earlier ones win.
        split: The split of the tasks to keep, or ``all``. Environments without numbered tasks have no splits,
            and all their trajectories are kept.

    Raises:
        BadOption: ``best`` is below 1, or a trajectory is one turn of an episode; ``min_score`` is not
            finite, or an environment has no such split.
    """
    if min_score is not None and not math.isfinite(min_score):
        raise BadOption("min_score", min_score, "a finite number")
    if best is not None and best < 1:
        raise BadOption("best", best, "1 or more")
    trajectories = list(trajectories)
    if best is not None and any("history" in each.extra for each in trajectories):
        raise BadOption("best", best, problem="compares episodes, and a source has turns: give its episodes")
    left_out: Counter[str] = Counter()
    kept: list[Trajectory] = []
    seen = set()
    for each in trajectories:
        identity = (each.key, tuple((message.role, message.content) for message in each.messages))
        reason = _drop_reason(each, successful=successful, min_score=min_score) or _split_reason(each, split)
        if reason is None and identity in seen:
            reason = "duplicate"
        if reason is not None:
            left_out[reason] += 1
            continue
        seen.add(identity)
        kept.append(each)
    if best is not None:
        chosen = _best(kept, best)
        if len(chosen) < len(kept):
            left_out[f"not among the best {best} of its task"] += len(kept) - len(chosen)
        kept = chosen
    return Selected(tuple(kept), dict(sorted(left_out.items())))


def _drop_reason(trajectory: Trajectory, *, successful: bool, min_score: float | None) -> str | None:
    if trajectory.fault is not None:
        return f"ended by {trajectory.fault}"
    if not any(message.role == "assistant" for message in trajectory.messages):
        return "no reply"
    if successful and not trajectory.success:
        return "success unknown" if trajectory.success is None else "not successful"
    if min_score is not None and (trajectory.score is None or trajectory.score < min_score):
        return "score unknown" if trajectory.score is None else f"score below {min_score:g}"
    return None


def _split_reason(trajectory: Trajectory, split: str | None) -> str | None:
    """Return why a trajectory is dropped for the split of its task; None if it is kept."""
    try:
        environment = find(trajectory.env_id)
    except UnknownEnvironment:
        return None
    if split is not None:
        return None if trajectory.task_id in environment.split(split) else f"not of the split {split}"
    held_out = environment.held_out(trajectory.task_id)
    return f"of the split {held_out}" if held_out else None


def _best(trajectories: list[Trajectory], count: int) -> list[Trajectory]:
    by_task: dict[tuple[str, int], list[int]] = defaultdict(list)
    for at, each in enumerate(trajectories):
        by_task[each.key].append(at)
    chosen = {
        at
        for indices in by_task.values()
        for at in sorted(indices, key=lambda index: -_score(trajectories[index]))[:count]
    }
    return [each for at, each in enumerate(trajectories) if at in chosen]


def _score(trajectory: Trajectory) -> float:
    return float("-inf") if trajectory.score is None else trajectory.score
