"""The default text form of observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["observation_text"]


def observation_text(observation: Any) -> str:
    """Convert an observation to text; equal observations have equal texts.

    Args:
        observation: Text, numbers, arrays, or mappings, tuples and lists of these.

    Raises:
        TypeError: The observation has another type.
    """
    if isinstance(observation, tuple) and hasattr(observation, "_asdict"):  # such as a graph
        observation = observation._asdict()
    if isinstance(observation, np.ndarray) and observation.ndim:
        return _array_text(observation)
    if isinstance(observation, Mapping):
        return _lines({key: observation_text(value) for key, value in observation.items()})
    if isinstance(observation, (tuple, list)):
        items = [observation_text(item) for item in observation]
        if any("\n" in item for item in items):
            return _lines(dict(enumerate(items)))
        return f"({', '.join(items)})"
    return _scalar_text(observation)


def _scalar_text(value: Any) -> str:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.item()
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(int(value))  # for an IntEnum too
    if isinstance(value, float):
        return f"{value + 0.0:.6g}"  # -0.0 is equal to 0.0
    raise TypeError(f"an observation of type {type(value).__name__} has no default text; pass observe=")


def _array_text(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 1:
        return _row_text(array)
    rows = ",\n ".join(map(_row_text, array))
    return f"[{rows}]"


def _row_text(array: np.ndarray[Any, Any]) -> str:
    return f"[{', '.join(map(_row_text if array.ndim > 1 else _scalar_text, array))}]"


def _lines(texts: Mapping[Any, str]) -> str:
    lines = []
    for key, text in texts.items():
        indented = "\n" + text if "\n" in text else f" {text}"
        lines.append(f"{key}:{indented}".replace("\n", "\n  "))
    return "\n".join(lines)
