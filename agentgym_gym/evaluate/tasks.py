"""Task ids, written in a few characters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentgym_gym.errors import BadOption

__all__ = ["parse_tasks"]

_PART = re.compile(r"(?P<one>\d{1,18})|(?P<start>\d{1,18})?:(?P<stop>\d{1,18})?")


def parse_tasks(text: str, tasks: Sequence[int]) -> list[int]:
    """Return task ids from text such as ``0:50``, ``3``, ``1,2,5``, ``10:``, ``0:5,40`` or ``all``.

    Args:
        text: Ids and ranges with commas between them. A range leaves out its end, as in Python.
        tasks: The ids there are.

    Returns:
        The ids in the order given, each once.

    Raises:
        BadOption: The text cannot be read, or names an id that does not exist.
    """
    least, most = min(tasks), max(tasks)
    chosen: list[int] = []
    for part in text.replace(" ", "").split(","):
        match = _PART.fullmatch(":" if part == "all" else part)
        if match is None:
            raise BadOption(
                f"tasks {text!r:.80} cannot be read; they look like '0:50', '3', '1,2,5', '10:' or 'all'"
            )
        if match["one"]:
            start, stop = int(match["one"]), int(match["one"]) + 1
        else:
            start = int(match["start"]) if match["start"] else least
            stop = int(match["stop"]) if match["stop"] else most + 1
        found = [task for task in tasks if start <= task < stop]
        if start < least or stop > most + 1 or not found:
            raise BadOption(f"tasks {part!r:.80} are not among those there are, {least} to {most}")
        chosen += found
    return list(dict.fromkeys(chosen))
