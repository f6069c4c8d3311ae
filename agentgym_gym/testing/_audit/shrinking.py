"""Shrinks the action sequences that show a defect, with hypothesis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias

from agentgym_gym.arguments import strategies
from agentgym_gym.testing._audit.episodes import ActionSequence

__all__ = ["Case", "shrink"]

Case: TypeAlias = tuple[ActionSequence, ...]
"""The sequences that a defect needs; several if episodes affect each other."""

_KEEP = 1 << 16
"""Largest number drawn for an action; hypothesis shrinks to small ones, which remove or replace it."""

_EXAMPLES = 400
_ALTERNATIVES = 4


async def shrink(
    case: Case,
    fails: Callable[[Case], Coroutine[Any, Any, str]],
    *,
    tasks: Sequence[int] = (),
    alternatives: Sequence[str] = (),
    seconds: float = 10.0,
) -> tuple[Case, str]:
    """Return the smallest case found that still shows a defect, and its description.

    Args:
        case: A case that shows it.
        fails: Plays a case, and returns the description of the defect, or an empty text if it has none.
        tasks: Task numbers to try instead, the simplest first.
        alternatives: Actions to try instead, the simplest first.
        seconds: Time limit.

    Returns:
        The case and the description. Without a failure while shrinking, the case itself and an empty text.
    """
    loop, ends = asyncio.get_running_loop(), time.monotonic() + seconds
    texts: dict[Case, str] = {}

    def shows(candidate: Case) -> bool:
        if candidate not in texts:
            if time.monotonic() > ends:
                return False
            texts[candidate] = asyncio.run_coroutine_threadsafe(fails(candidate), loop).result()
        return bool(texts[candidate])

    await asyncio.to_thread(_search, case, shows, tasks, alternatives)
    failing = [each for each, text in texts.items() if text]
    if not failing:
        return case, ""
    smallest = min(failing, key=lambda each: (sum(len(one.actions) for one in each), _size(each)))
    return smallest, texts[smallest]


def _size(case: Case) -> tuple[int, int]:
    return sum(len(action) for each in case for action in each.actions), sum(each.task for each in case)


def _search(
    case: Case, shows: Callable[[Case], bool], tasks: Sequence[int], alternatives: Sequence[str]
) -> None:
    from hypothesis import HealthCheck, Phase, find, settings  # noqa: PLC0415 - of the extra testing
    from hypothesis.errors import HypothesisException  # noqa: PLC0415

    st = strategies()
    others = list(alternatives[:_ALTERNATIVES])

    def choose(number: int, simpler: Sequence[Any], own: Any) -> Any:
        return simpler[number] if number < len(simpler) else own

    @st.composite  # type: ignore[untyped-decorator]
    def cases(draw: Any) -> Case:
        drawn = []
        for each in case:
            task = choose(draw(st.integers(0, _KEEP)), tasks, each.task)
            kept = [choose(draw(st.integers(0, _KEEP)), [None, *others], action) for action in each.actions]
            drawn.append(ActionSequence(task, tuple(action for action in kept if action is not None)))
        return tuple(drawn)

    if not shows(case):
        return
    limits = settings(
        max_examples=_EXAMPLES,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    try:
        find(cases(), shows, settings=limits)
    except HypothesisException:  # nothing found, or the environment is not reproducible
        return
