"""The reasons for the answers of the Weather world: the values of the results, and what follows from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agentgym_servers.weather._climate import Day

__all__ = ["added", "compared", "dated", "days_counted", "exact_sum", "listed"]


def exact_sum(numbers: Iterable[float]) -> float:
    """Return a sum, to two decimal places."""
    return round(math.fsum(numbers), 2)


def days_counted(count: int) -> str:
    """Return a number of listed days."""
    return "That is 1 day" if count == 1 else f"These are {count} days"


def listed(values: Iterable[object]) -> str:
    """Return values separated by commas."""
    return ", ".join(map(str, values))


def dated(days: Iterable[Day], value: Callable[[Day], float]) -> str:
    """Return the dates of days, each with a value."""
    return listed(f"{day.date} {value(day)}" for day in days)


def added(noun: str, numbers: Iterable[float], total: float) -> str:
    """Return a sum of daily values, without those that are 0."""
    return f"The {noun}: {' + '.join(str(number) for number in numbers if number) or '0'} = {total}."


def compared(nouns: str, values: Mapping[str, float], comparison: str) -> str:
    """Return the values of cities, and the city with the comparison: the greatest, lowest or nearest."""
    choose = min if comparison in {"lower", "nearer"} else max
    best = choose(values, key=lambda name: values[name])
    return (
        f"The {nouns}: {listed(f'{name} {value}' for name, value in values.items())}. {best} is {comparison}."
    )
