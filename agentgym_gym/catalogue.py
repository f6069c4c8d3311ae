"""What is known of each environment, apart from playing it, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from agentgym_gym.errors import BadOption, UnknownEnvironment

if TYPE_CHECKING:
    from agentgym_gym.actions import Grammar
    from agentgym_gym.wire import Wire

__all__ = ["NAMESPACE", "Environment", "OnUnknown", "add", "environments", "find"]

NAMESPACE = "agentgym"

OnUnknown: TypeAlias = Literal["forward", "refuse"]


@dataclass(frozen=True)
class Environment:
    """One kind of environment: everything that is said of it in one place.

    Attributes:
        name: Its name, as in the id ``agentgym/NAME-v0``.
        wire: How its server is spoken to.
        grammar: Its actions.
        rules: The part of the system prompt that explains the game.
        max_turns: AgentGym's turn limit.
        splits: Task ids by split; the first split is the default.
        score_range: Least and greatest score of an episode.
        on_unknown: What is done by default with an action the grammar does not know.
        agentgym_readers: AgentGym's own way of reading a reply, by action format.
        local_server: Name under which this project serves it, or None.
        oracle: Where an agent that can play it well is found, as ``"module:Class"``, or None.
    """

    name: str
    wire: Wire
    grammar: Grammar
    rules: str
    max_turns: int
    splits: Mapping[str, Sequence[int]]
    score_range: tuple[float, float] = (0.0, 1.0)
    on_unknown: OnUnknown = "forward"
    agentgym_readers: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    local_server: str | None = None
    oracle: str | None = None

    @property
    def id(self) -> str:
        """The id under which gymnasium makes it."""
        return f"{NAMESPACE}/{self.name}-v0"

    @property
    def variable(self) -> str:
        """The environment variable that holds the URL of its server."""
        return f"AGENTGYM_{self.name.upper()}_URL"

    def split(self, name: str | None) -> Sequence[int]:
        """Return the task ids of a split; None is the default split.

        Raises:
            BadOption: There is no such split.
        """
        if name is None:
            return next(iter(self.splits.values()))
        try:
            return self.splits[name]
        except (KeyError, TypeError):
            raise BadOption(f"split={name!r} is not one of {sorted(self.splits)} of {self.name}") from None

    def has_task(self, task_id: int) -> bool:
        """Return whether any split holds the task."""
        return any(task_id in tasks for tasks in self.splits.values())


_known: dict[str, Environment] = {}


def add(environment: Environment) -> None:
    """Put an environment in the catalogue, or replace the one of its name."""
    _known[environment.name] = environment


def environments() -> tuple[Environment, ...]:
    """Return all environments in the order they were added."""
    return tuple(_known.values())


def find(name: str) -> Environment:
    """Return an environment by its name, its gymnasium id, or either in lower case.

    Raises:
        UnknownEnvironment: There is none; the message lists those there are.
    """
    wanted = name.rpartition(":")[2].removeprefix(f"{NAMESPACE}/").removesuffix("-v0").lower()
    for environment in _known.values():
        if environment.name.lower() == wanted:
            return environment
    raise UnknownEnvironment(f"there is no environment {name!r}; there are: {', '.join(_known)}")
