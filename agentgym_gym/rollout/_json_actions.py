"""JSON form of the actions of gymnasium's spaces: description, parsing, validation and serialization."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from agentgym_gym._text import no_constant, shown

__all__ = ["describe", "fit", "read", "write"]

_MAX_DIGITS = 300  # of an integer; in old versions of Python, `int` takes quadratic time for more
_MAX_ITEMS = 16  # of an array whose items are described individually


def describe(space: Space[Any]) -> str:
    """Describe the JSON form of a space's actions.

    Raises:
        TypeError: The space has no JSON form.
    """
    if isinstance(space, spaces.Discrete):
        return _number("integer", int(space.start), int(space.start) + int(space.n) - 1)
    if isinstance(space, spaces.Text):
        return "a string"
    if isinstance(space, spaces.Dict) and all(isinstance(key, str) for key in space.spaces):
        items = (f"{json.dumps(key)}: {describe(item)}" for key, item in space.spaces.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(space, spaces.Tuple):
        return f"[{', '.join(map(describe, space.spaces))}]"
    if isinstance(space, spaces.Sequence) and not space.stack:
        return f"a list of any length, each item {describe(space.feature_space)}"
    bounds = _bounds(space)
    if bounds is None:
        raise TypeError(f"actions of the space {space!r:.200} have no JSON form; pass act=")
    return _describe_array(*bounds)


def read(space: Space[Any], text: str) -> Any:
    """Parse an action from JSON.

    Raises:
        ValueError: The text is not JSON, or its value is not an action of the space.
    """
    try:
        value = json.loads(
            text, parse_int=_int, parse_constant=no_constant, object_pairs_hook=_without_duplicates
        )
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg})") from None
    return fit(space, value)


def fit(space: Space[Any], value: Any) -> Any:
    """Convert a value to the types that a space's environment expects, such as lists to arrays.

    A value of a space without a JSON form is returned unchanged.

    Raises:
        ValueError: The value is not an action of the space.
    """
    bounds = _bounds(space)
    if isinstance(value, (np.ndarray, np.generic)) and (
        bounds is not None or isinstance(space, (spaces.Discrete, spaces.Text))
    ):
        value = value.tolist()
    if isinstance(space, spaces.Discrete):
        first = int(space.start)
        return _checked_int(value, first, first + int(space.n) - 1)
    if bounds is not None:
        return _array(value, *bounds)
    if isinstance(space, spaces.Dict):
        return _dict(space, value)
    if isinstance(space, spaces.Tuple):
        if not isinstance(value, (list, tuple)) or len(value) != len(space.spaces):
            raise ValueError(f"expected a list of {len(space.spaces)} items, got {shown(value)}")
        return tuple(map(fit, space.spaces, value))
    if isinstance(space, spaces.Sequence) and not space.stack:
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"expected a list, got {shown(value)}")
        return tuple(fit(space.feature_space, item) for item in value)
    return value


def write(action: Any) -> str:
    """Serialize an action as JSON."""
    return json.dumps(action, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"an integer has more than {_MAX_DIGITS} digits")
    return int(digits)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key occurs twice in one JSON object")
    return dict(pairs)


def _dict(space: spaces.Dict, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a JSON object, got {shown(value)}")  # noqa: TRY004 - a model's mistake
    for problem, keys in (
        ("missing", space.spaces.keys() - value.keys()),
        ("unknown", value.keys() - space.spaces.keys()),
    ):
        if keys:
            raise ValueError(f"{problem} key {shown(min(keys, key=str))}")
    return {key: fit(item, value[key]) for key, item in space.spaces.items()}


def _bounds(space: Space[Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.dtype[Any]] | None:
    """Return the lower and upper bounds and the dtype of a space of numeric arrays; None for other spaces."""
    if isinstance(space, spaces.Box) and space.dtype is not None and space.dtype.kind in "biuf":
        return space.low, space.high, space.dtype
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1, np.dtype(space.dtype)
    if isinstance(space, spaces.MultiBinary):
        zeros = np.zeros(space.shape, space.dtype)
        return zeros, zeros + 1, np.dtype(space.dtype)
    return None


def _array(
    value: Any, low: np.ndarray[Any, Any], high: np.ndarray[Any, Any], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """Convert nested lists to an array.

    Raises:
        ValueError: The shape differs, or an item is not a number within its bounds.
    """
    items: list[Any] = []

    def collect(part: Any, low: Any, high: Any, axes: tuple[int, ...]) -> None:
        if not axes:
            checked = _checked_float if dtype.kind == "f" else _checked_int
            items.append(checked(part, low.item(), high.item(), dtype))
            return
        if not isinstance(part, (list, tuple)) or len(part) != axes[0]:
            raise ValueError(f"expected a list of {_count(axes[0], 'item')}, got {shown(part)}")
        for index, item in enumerate(part):
            collect(item, low[index], high[index], axes[1:])

    collect(value, low, high, low.shape)
    array: np.ndarray[Any, Any] = np.array(items, dtype=dtype).reshape(low.shape)
    return array


def _checked_int(value: Any, low: int, high: int, _dtype: np.dtype[Any] | None = None) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"expected {_number('integer', low, high)}, got {shown(value)}")
    return int(value)  # convert an IntEnum too


def _checked_float(value: Any, low: float, high: float, dtype: np.dtype[Any]) -> float:
    number = float("nan")
    largest = float(np.finfo(dtype).max)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= largest:
        number = float(dtype.type(value))  # rounded like the bounds
    if not low <= number <= high:
        raise ValueError(f"expected {_number('number', low, high)}, got {shown(value)}")
    return number


def _describe_array(low: np.ndarray[Any, Any], high: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> str:
    kind = "number" if dtype.kind == "f" else "integer"
    if not low.shape:
        return _number(kind, low.item(), high.item())
    same = not low.size or bool((low == low.flat[0]).all() and (high == high.flat[0]).all())
    if not same and low.ndim == 1 and low.size <= _MAX_ITEMS:
        return (
            f"[{', '.join(_number(kind, *pair) for pair in zip(low.tolist(), high.tolist(), strict=True))}]"
        )
    limits = _limits(low.flat[0].item(), high.flat[0].item()) if same and low.size else ""
    if low.ndim == 1:
        return f"a list of {_count(low.size, kind)}{limits}"
    return f"nested lists of the shape {' x '.join(map(str, low.shape))} of {kind}s{limits}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _number(kind: str, low: float, high: float) -> str:
    return f"{'an' if kind == 'integer' else 'a'} {kind}{_limits(low, high)}"


def _limits(low: float, high: float) -> str:
    bounded = [abs(bound) != float("inf") for bound in (low, high)]
    shortest = [str(int(each)) if isinstance(each, (bool, int)) else f"{each:.6g}" for each in (low, high)]
    if all(bounded):
        return f" from {shortest[0]} to {shortest[1]}"
    if bounded[0]:
        return f" of at least {shortest[0]}"
    return f" of at most {shortest[1]}" if bounded[1] else ""
