"""Validate the return values of ``reset`` and ``step`` of any environment, and convert errors to faults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_gym._text import scrub
from agentgym_gym.errors import BadOption
from agentgym_gym.rollout._history import played_call

if TYPE_CHECKING:
    from agentgym_gym.rollout._records import StepRecord

__all__ = [
    "TurnResult",
    "check_reset",
    "error_of_part",
    "error_of_step",
    "fault_of",
    "flag",
    "number",
    "stated_fault",
    "stated_success",
    "step_facts",
]


class TurnResult(NamedTuple):
    """The result of a step. After a fault: no observation, no reward, truncated, ``info["fault"]``."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]


def check_reset(answer: Any, env_id: str) -> tuple[str, Mapping[str, Any]]:
    """Return the observation and the info from the return value of ``reset``.

    Raises:
        BadOption: The observation is not text.
        TypeError: The value is not a tuple of an observation and an info.
    """
    if not isinstance(answer, tuple) or len(answer) != 2:  # noqa: PLR2004 - observation and info
        raise TypeError(f"reset should return an observation and an info, not {answer!r:.200}")
    observation, info = answer
    if not isinstance(observation, str):
        raise BadOption(
            f"{env_id} is not a text environment: its observation is of type {type(observation).__name__}, "
            "not str; wrap it in agentgym_gym.rollout.TextAdapter"
        )
    if not isinstance(info, Mapping):
        raise error_of_part(observation, 0.0, info)
    return observation, info


def number(name: str, value: Any) -> float:
    """Return a number of Python or numpy as a float, and no text. A bool is 0 or 1, as for gymnasium.

    Args:
        name: Its name in the error.
        value: The value.

    Raises:
        TypeError: The value is not a number.
        OverflowError: The value is an integer too large for a float.
    """
    plain = _item(value)
    if not isinstance(plain, (float, int)):
        raise TypeError(f"the {name} should be a number, not {value!r:.200}")
    return float(plain)


def flag(name: str, value: Any) -> bool:
    """Return a bool of Python or numpy; no number and no text, as for a reply over HTTP.

    Args:
        name: Its name in the error.
        value: The value.

    Raises:
        TypeError: The value is not a bool.
    """
    plain = _item(value)
    if not isinstance(plain, bool):
        raise TypeError(f"{name} should be True or False, not {value!r:.200}")
    return plain


def stated_success(value: Any) -> bool | None:
    """Return the ``success`` of an info: a bool or a number; None if it is neither."""
    plain = _item(value)
    return bool(plain) if isinstance(plain, (bool, int, float)) and not math.isnan(plain) else None


def _item(value: Any) -> Any:
    """Return the Python value of a scalar, or of an array without dimensions, of numpy or a like library."""
    if isinstance(value, (bool, int)) or type(value) is float:
        return value
    return value.item() if getattr(value, "ndim", None) == 0 else value


def error_of_step(answer: Any, error: Exception) -> Exception:
    """Return the error for a step whose return value could not be unpacked.

    Args:
        answer: The return value of the step.
        error: The exception raised while unpacking it.
    """
    if isinstance(answer, tuple) and len(answer) == 5:  # noqa: PLR2004 - then it is the reward
        return error
    return TypeError(
        f"step should return observation, reward, terminated, truncated, info, not {answer!r:.200}"
    )


def error_of_part(observation: Any, reward: float, info: Any) -> Exception:
    """Return the error for the invalid part of a reset or step result."""
    if not isinstance(observation, str):
        return TypeError(f"the observation should be text, not {type(observation).__name__}")
    if not isinstance(info, Mapping):
        return TypeError(f"the info should be a mapping, not {type(info).__name__}")
    return ValueError(f"the reward is {reward}, not a number that can be summed")


def fault_of(error: Exception) -> dict[str, str]:
    """Convert an exception of an environment to a fault."""
    kind = getattr(error, "kind", None)  # set by errors of this library and of a child process
    kind = kind if isinstance(kind, str) else type(error).__name__
    return {"kind": kind, "message": scrub(str(error))}


def stated_fault(stated: Any) -> dict[str, str]:
    """Return the ``fault`` of an info with its values as strings."""
    fault = stated if isinstance(stated, Mapping) else {"message": stated}
    return {
        "kind": scrub(str(fault.get("kind", "Fault"))),
        "message": scrub(str(fault.get("message", ""))),
    }


def step_facts(info: Mapping[str, Any]) -> StepRecord:
    """Return the fields of a step record that come from the info of the step."""
    action, error, ignored = info.get("action", 0), info.get("parse_error"), info.get("ignored_actions")
    found: StepRecord = {}
    if action is None or isinstance(action, str):
        found["action"] = action
    if error:
        found["parse_error"] = error if isinstance(error, str) else "ParseError"
        found["action"] = None
    if ignored and isinstance(ignored, (list, tuple)) and all(isinstance(text, str) for text in ignored):
        found["ignored_actions"] = list(ignored)
        found["played_call"] = min(played_call(info), len(ignored))
    return found
