"""Properties and counters of an environment of any library, read from its attributes and its spec."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from agentgym_gym._text import scrub

__all__ = [
    "EnvCounters",
    "EnvFacts",
    "attribute_of",
    "describe_env",
    "env_id_of",
    "system_prompt_of",
    "tools_of",
]


@dataclass(frozen=True)
class EnvFacts:
    """Properties of an environment, read once when it is created.

    Attributes:
        env_id: Its gymnasium id; ``module:class`` if it was created without ``gymnasium.make``.
        awaited: Whether its ``reset`` and ``step`` are coroutine functions.
        system_prompt: Attribute ``system_prompt`` of a wrapper or of the environment; None if there is none,
            or if it is blank.
        capacity: Attribute ``capacity``: how many such environments may be open at once; None for no limit.
        max_turns: The registered step limit of an asynchronous environment: gymnasium's wrapper, which
            enforces it for others, cannot be awaited.
        success_at: The registered ``reward_threshold``.
        task_option: The key of the reset option that selects a task by number (``metadata["task_option"]``);
            None if the seed selects it.
    """

    env_id: str
    awaited: bool = False
    system_prompt: str | None = None
    capacity: int | None = None
    max_turns: int | None = None
    success_at: float | None = None
    task_option: str | None = None


def attribute_of(env: Any, name: str) -> Any:
    """Return an attribute of a wrapper or of the environment; None if it is missing or its access fails."""
    try:
        found = getattr(env, "get_wrapper_attr", None)
        return getattr(env, name) if found is None else found(name)
    except Exception:  # noqa: BLE001 - a property of any library
        return None


def system_prompt_of(env: Any) -> str | None:
    """Return the ``system_prompt`` of a wrapper or of the environment; None if there is none or it is blank.

    Evaluation and training send it to the model before the first observation.
    """
    prompt = attribute_of(env, "system_prompt")
    return scrub(prompt) if isinstance(prompt, str) and prompt.strip() else None


def tools_of(env: Any) -> list[dict[str, Any]]:
    """Return the ``tools`` of a wrapper or of the environment: JSON schemas as in OpenAI's API, or none."""
    tools = attribute_of(env, "tools")
    return list(tools) if isinstance(tools, (list, tuple)) else []


def env_id_of(env: Any) -> str:
    """Return the gymnasium id of an environment, or ``module:class`` if it has none."""
    spec = getattr(env, "spec", None)
    made = getattr(env, "unwrapped", env)
    env_id = spec.id if spec is not None else getattr(made, "env_id", None)
    return env_id if isinstance(env_id, str) else f"{type(made).__module__}:{type(made).__qualname__}"


def describe_env(env: Any) -> EnvFacts:
    """Return the properties of an environment of any library."""
    spec = getattr(env, "spec", None)
    awaited = inspect.iscoroutinefunction(getattr(env, "step", None))
    capacity, metadata = attribute_of(env, "capacity"), attribute_of(env, "metadata")
    option = metadata.get("task_option") if isinstance(metadata, dict) else None
    threshold = getattr(spec, "reward_threshold", None)
    return EnvFacts(
        env_id=env_id_of(env),
        awaited=awaited,
        system_prompt=system_prompt_of(env),
        capacity=capacity if type(capacity) is int and capacity > 0 else None,
        max_turns=getattr(spec, "max_episode_steps", None) if awaited else None,
        success_at=None if threshold is None else float(threshold),
        task_option=option if isinstance(option, str) else None,
    )


class EnvCounters:
    """The increase of an environment's ``stats`` during an episode, if ``env.stats`` exists."""

    def __init__(self) -> None:
        self._stats: Any = None
        self._before: Any = None
        self._values: dict[str, Any] | None = None

    def begin(self, env: Any) -> None:
        """Start to count, if the environment has suitable ``stats``."""
        stats: Any = getattr(getattr(env, "unwrapped", env), "stats", None)
        if all(callable(getattr(stats, name, None)) for name in ("copy", "since", "as_dict")):
            self._stats, self._before = stats, stats.copy()

    def values(self) -> dict[str, Any] | None:
        """Return the counters since the start, or None if there are none."""
        if self._stats is not None:
            self._values = self._stats.since(self._before).as_dict()
        return self._values

    def end(self) -> None:
        """Keep the current values, because another episode will use the environment."""
        self.values()
        self._stats = None
