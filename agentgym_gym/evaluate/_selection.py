"""Select the tasks of a run: a split, positions in it, the first tasks, or a random sample."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentgym_gym._draw import draw
from agentgym_gym.errors import ArgumentName, BadOption
from agentgym_gym.evaluate._tasks import parse_tasks

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.evaluate._resolve import Chosen
    from agentgym_gym.evaluate._run import Run

__all__ = ["Selection", "count_by_split", "select_tasks", "selection_text"]


@dataclass(frozen=True)
class Selection:
    """The tasks of one environment in a run.

    Attributes:
        tasks: Task ids or seeds, in the order in which they are played.
        split: The split of the tasks; None if the tasks may be of any split.
        facts: The selection as JSON values, for the run's record.
    """

    tasks: list[int]
    split: str | None
    facts: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The selection in words."""
        return str(self.facts["text"])


def select_tasks(chosen: Chosen, run: Run, *, any_split: bool = False) -> Selection:
    """Return the tasks that a run selects.

    Args:
        chosen: The environment.
        run: The run.
        any_split: Whether ``all`` means the tasks of all splits if the run names no split; otherwise it
            means the split for evaluation.

    Raises:
        BadOption: The tasks do not exist, or the run combines options that exclude each other.
    """
    _check(run)
    split, text, seed = run.split, selection_text(run.tasks), run.seed or 0
    if split is None and text == "all" and chosen.environment is not None:
        if any_split:
            text = ":"  # a range covers all splits, while `all` covers one
        else:
            split = chosen.evaluation_split()
    try:
        available: Sequence[int] = chosen.tasks(text, split)
    except BadOption as error:
        if run.split is None or error.argument != "tasks":
            raise
        raise error.with_advice(
            "; for positions in the split, pass ", ArgumentName("positions"), f"={text!r:.80}"
        ) from None
    tasks = list(available)
    if run.positions is not None:
        tasks = [available[at] for at in _positions(run.positions, len(available))]
    total = len(tasks)
    if run.sample is not None:
        tasks = draw(tasks, run.sample, seed)
    elif run.limit is not None:
        tasks = tasks[: run.limit]
    facts = {
        "split": split,
        "positions": run.positions,
        "limit": run.limit,
        "sample": run.sample,
        "seed": None if run.sample is None else seed,
        "count": len(tasks),
        "of": total,
        "by_split": {} if chosen.environment is None else count_by_split(chosen.environment, tasks),
    }
    words = _text(run, facts, has_splits=chosen.environment is not None)
    return Selection(tasks, split, {**facts, "text": words})


def selection_text(tasks: str | Sequence[int] | None) -> str:
    """Return tasks as the text of a selection, such as ``0:50``; ``all`` by default."""
    if tasks is None or isinstance(tasks, str):
        return "all" if tasks is None else tasks
    if isinstance(tasks, range) and tasks.step == 1:
        return f"{tasks.start}:{tasks.stop}"
    return ",".join(map(str, tasks))


def _check(run: Run) -> None:
    if run.sample is not None and run.limit is not None:
        raise BadOption(
            "limit",
            run.limit,
            problem=("and ", ArgumentName("sample"), f"={run.sample} exclude each other: remove one"),
        )
    if run.positions is not None and selection_text(run.tasks) != "all":
        raise BadOption(
            "positions",
            run.positions,
            problem=(
                "are positions in a split, and ",
                ArgumentName("tasks"),
                f"={selection_text(run.tasks)!r:.80} are ids: remove one",
            ),
        )


def _positions(text: str, count: int) -> list[int]:
    try:
        return parse_tasks(text, range(count))
    except BadOption as error:
        raise error.renamed({"tasks": "positions"}) from None


def count_by_split(environment: Environment, tasks: Collection[int]) -> dict[str, int]:
    """Return the number of tasks in each split; tasks in no other split count as of ``all``."""
    counts = {
        name: sum(map((ids if isinstance(ids, range) else frozenset(ids)).__contains__, tasks))
        for name, ids in environment.splits.items()
        if name != "all"
    }
    counts["all"] = len(tasks) - sum(counts.values())
    return {name: count for name, count in counts.items() if count}


def _text(run: Run, facts: Mapping[str, Any], *, has_splits: bool) -> str:
    count, total, split = facts["count"], facts["of"], facts["split"]
    kind = "task" if has_splits else "seed"
    text = f"{count} {kind}{'s' * (count != 1)}"
    if run.sample is not None:
        text = f"{count} of {total} {kind}s, drawn with seed {facts['seed']}"
    elif count < total:
        text = f"the first {count} of {total} {kind}s"
    if run.positions is not None:
        text += f", at the positions {run.positions}"
    if split is not None:
        return f"{text}, split {split}"
    parts = facts["by_split"]
    if len(parts) == 1:
        return f"{text}, split {next(iter(parts))}"
    return (
        f"{text} ({', '.join(f'{number} of split {name}' for name, number in parts.items())})"
        if parts
        else text
    )
