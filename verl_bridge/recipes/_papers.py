"""Published training settings for these environments: the overlays in ``templates/papers/``, one per name.

An overlay contains settings of verl by their dotted keys, for all environments (``common``) and for each;
keys that begin with ``agent_loop.`` belong to ``agent_loop.yaml``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from agentgym_gym.errors import BadOption
from agentgym_gym.rollout import split_id
from verl_bridge.recipes._filler import fill, read_template, scalar

__all__ = ["LIKE", "LOOP_KEYS", "Like", "Published", "algorithm_of", "published", "published_by"]

Like: TypeAlias = Literal["agentgym-rl", "scalinginter-rl", "gigpo"]

LIKE: tuple[Like, ...] = get_args(Like)
"""Names of the publications with settings."""

LOOP_KEYS = "agent_loop."
"""Prefix of the overlay keys that are not verl's."""


@dataclass(frozen=True)
class Published:
    """The settings for one environment.

    Attributes:
        source: The paper and its script.
        settings: The settings by their dotted keys.
        named: Their names in the source, by the same keys.
        template: The differences from the paper and the agreements with it, in Markdown with conditions.
        tasks: The tasks of the paper, in a sentence.
    """

    source: str
    settings: Mapping[str, Any]
    named: Mapping[str, str]
    template: str
    tasks: str

    def get(self, key: str, default: Any = None) -> Any:
        """Return a setting, or the default if it was not published."""
        return self.settings.get(key, default)

    @property
    def turns(self) -> tuple[int, ...]:
        """Turn limits of the stages, in order."""
        return tuple(self.settings["agent_loop.turns"])

    def about(self, **values: Any) -> str:
        """Return the differences from the paper and the agreements with it, in Markdown.

        Args:
            values: The values of the conditions.
        """
        return fill(self.template, {"source": self.source, **values})

    def cite(self, key: str, value: str) -> str:
        """Return the source of a setting; empty if its value differs from the published one.

        Args:
            key: Its dotted key.
            value: Its value as YAML.
        """
        if key not in self.named or key not in self.settings or scalar(self.settings[key]) != value:
            return ""
        return f"{self.source}: {self.named[key]} is {self.settings[key]}."


@functools.cache
def published_by(like: str) -> Mapping[str, Published]:
    """Return the published settings by the environment's id without its module.

    Args:
        like: One of :data:`LIKE`.

    Raises:
        BadOption: There is no publication of this name.
        ModuleNotFoundError: PyYAML is not installed.
    """
    if like not in LIKE:
        raise BadOption("like", like, f"one of {', '.join(LIKE)}")
    overlay = importlib.import_module("yaml").safe_load(read_template(f"papers/{like}.yaml"))
    made = {}
    for env_id, own in overlay["environments"].items():
        settings = overlay["common"] | own
        source = f"{overlay['source']}/{settings.pop('script')}"
        made[env_id] = Published(
            source,
            settings,
            overlay["named"],
            overlay["about"].rstrip("\n"),
            " ".join(overlay["tasks"].split()),
        )
    return made


def algorithm_of(like: str | None) -> Literal["gigpo", "grpo"]:
    """Return the algorithm of a publication, or of recipes without one."""
    return "gigpo" if like == "gigpo" else "grpo"


def published(like: str | None, env_id: str) -> Published | None:
    """Return the published settings for an environment.

    Args:
        like: One of :data:`LIKE`, or None.
        env_id: gymnasium's id, with or without the module that registers it.

    Returns:
        The settings; None if `like` is None.

    Raises:
        BadOption: There is no publication of this name, or it has no settings for this environment.
        ModuleNotFoundError: PyYAML is not installed.
    """
    if like is None:
        return None
    of, environment = published_by(like), split_id(env_id)[1]
    if environment not in of:
        problem = f"published no settings for {environment}, only for {', '.join(of)}"
        raise BadOption("like", like, problem=problem)
    return of[environment]
