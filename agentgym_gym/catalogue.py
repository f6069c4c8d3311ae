"""The catalogue of environments: their metadata and their registration."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import gymnasium

from agentgym_gym.errors import BadOption, UnknownEnvironment

if TYPE_CHECKING:
    from agentgym_gym.actions import Grammar
    from agentgym_gym.wire import Wire

__all__ = [
    "BUILT_IN",
    "ENTRY_POINT",
    "Environment",
    "OnUnknown",
    "environments",
    "find",
    "is_for_evaluation",
    "make_splits",
    "register",
]

_NAMESPACE = "agentgym"

ENTRY_POINT = "agentgym_gym.env:AgentGymEnv"
"""Import path of the class that gymnasium uses for every environment of the catalogue."""

_PACKAGE = "agentgym_gym"
"""The module that registers the environments of this library."""

OnUnknown: TypeAlias = Literal["forward", "refuse"]


@dataclass(frozen=True)
class Environment:
    """One kind of environment, with all its metadata.

    Attributes:
        name: Its name, as in the id ``agentgym/NAME-v0``. Names are unique.
        summary: A one-sentence description of the task.
        wire: The protocol of its server.
        grammar: Its actions.
        rules: The part of the system prompt that explains the game.
        aliases: Other names; there is an id for each.
        item_prefix: The prefix of its item ids in AgentGym, if it differs from all its names.
        options: Options of this environment only: names of fields of the wire, with their descriptions.
        quirks: Notes for users about its server, as a list in Markdown.
        launch: The shell commands that start AgentGym's own server in a checkout of AgentGym, on port 36001;
            empty if AgentGym has none.
        transcript: The beginning of an episode: the first observation, then alternately actions and
            observations. Long observations end in ``…``.
        namespace: The namespace of its gymnasium id; use one of your own for your own environments.
        version: The version in its gymnasium id.
        max_turns: AgentGym's turn limit.
        splits: Task ids by split. If the first is ``all``, the others divide its tasks; no two of the others
            share a task.
        parts: Further selections of tasks by name, which can be selected like splits: parts of splits, and
            tasks that only some servers have.
        unwinnable: Reasons, by task id, why a task cannot be won within the turn limit, or why no way to win
            it is known. The ids refer to this project's own server, with the world of seed 0 if it has
            seeds.
        cheap_wins: Reasons, by the name of a cheap policy, why it wins more of the tasks than
            `agentgym validate --policies` allows.
        score_range: Least and greatest score of an episode.
        on_unknown: Default handling of actions that the grammar does not include.
        agentgym_readers: AgentGym's own parser of replies, by action format.
        local_server: Import path ``"module:NAME"`` of its local server, a
            `agentgym_gym.local_servers.ServerKind`, or None.
        local_quirks: Differences of that server from AgentGym's, as a list in Markdown.
        oracle: Import path ``"module:Class"`` of a scripted expert agent, or None.
    """

    name: str
    summary: str
    wire: Wire
    grammar: Grammar
    rules: str
    max_turns: int
    splits: Mapping[str, Sequence[int]]
    parts: Mapping[str, Sequence[int]] = field(default_factory=dict)
    unwinnable: Mapping[int, str] = field(default_factory=dict)
    cheap_wins: Mapping[str, str] = field(default_factory=dict)
    score_range: tuple[float, float] = (0.0, 1.0)
    on_unknown: OnUnknown = "forward"
    agentgym_readers: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    local_server: str | None = None
    local_quirks: str = ""
    oracle: str | None = None
    aliases: tuple[str, ...] = ()
    item_prefix: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    quirks: str = ""
    launch: str = ""
    transcript: tuple[str, ...] = ()
    namespace: str = _NAMESPACE
    version: int = 0

    @property
    def id(self) -> str:
        """The gymnasium id."""
        return self.ids[0]

    @property
    def of_agentgym(self) -> bool:
        """Whether AgentGym has a server for it."""
        return bool(self.launch)

    @property
    def variable(self) -> str:
        """The environment variable for the URL of its server, or for several URLs, separated by commas."""
        return f"AGENTGYM_{self.name.upper()}_URL"

    @property
    def headers_variable(self) -> str:
        """The environment variable for HTTP headers: a JSON object of strings."""
        return f"AGENTGYM_{self.name.upper()}_HEADERS"

    @property
    def ids(self) -> tuple[str, ...]:
        """The gymnasium ids: its own, then the ids of its aliases."""
        return _ids(self)

    def wire_with(self, options: Mapping[str, Any]) -> Wire:
        """Return the wire with some of its options set.

        Raises:
            BadOption: The environment has no such option, or the value is invalid.
        """
        unknown = sorted(set(options) - set(self.options))
        if unknown:
            known = (
                f"its own options are {sorted(self.options)}" if self.options else "it has none of its own"
            )
            raise BadOption(f"{self.name} has no option {', '.join(unknown)}; {known}")
        return replace(self.wire, **options) if options else self.wire  # type: ignore[type-var]

    def split(self, name: str | None) -> Sequence[int]:
        """Return the task ids of a split or of another selection; ``all`` selects every task.

        Args:
            name: The name; None for the training split.

        Raises:
            BadOption: There is no such split.
        """
        if name is None:
            name = self.training_split
        if name == "all":
            return self.task_ids
        selectable = {**self.splits, **self.parts}
        try:
            return selectable[name]
        except (KeyError, TypeError):
            raise BadOption("split", name, f"one of {sorted(selectable)} of {self.name}") from None

    def sample_tasks(self, count: int, seed: int = 0, split: str | None = None) -> list[int]:
        """Return randomly drawn task ids, as ``agentgym eval --sample`` draws them.

        The sample is the same on every machine, and a larger one with the same seed begins with it.

        Args:
            count: Number of tasks.
            seed: The random seed.
            split: The split to draw from; None for the training split.

        Raises:
            BadOption: There is no such split, or it has fewer tasks.
        """
        from agentgym_gym._draw import draw  # noqa: PLC0415 - importing the library must be cheap

        return draw(self.split(split), count, seed)

    @property
    def task_ids(self) -> Sequence[int]:
        """The ids of the tasks of all splits, ascending."""
        if "all" in self.splits:
            return self.splits["all"]
        count, least = self.task_count, min(map(min, self.splits.values()))
        if max(map(max, self.splits.values())) == least + count - 1:
            return range(least, least + count)  # constant time for any number of tasks
        return sorted(frozenset().union(*self.splits.values()))

    @property
    def task_count(self) -> int:
        """The number of tasks in all splits."""
        return len(self.splits["all"]) if "all" in self.splits else sum(map(len, self.splits.values()))

    @property
    def training_split(self) -> str:
        """The split to train on: ``train``, else the first that is not for evaluation, else the first."""
        if "train" in self.splits:
            return "train"
        return next((name for name in self.splits if not is_for_evaluation(name)), next(iter(self.splits)))

    @property
    def evaluation_split(self) -> str:
        """The split to evaluate on: ``test``, else ``dev``, else the first."""
        return next((name for name in ("test", "dev") if name in self.splits), next(iter(self.splits)))

    def held_out(self, task_id: int) -> str | None:
        """Return the split for evaluation that contains a task, such as ``test``; None without one.

        A split is for evaluation if a word of its name is test, dev, val, valid, validation, eval, evaluation
        or unseen, as in ``test_unseen``.
        """
        return next((name for name, ids in self._for_evaluation.items() if task_id in ids), None)

    @functools.cached_property
    def _for_evaluation(self) -> Mapping[str, Container[int]]:
        selectable = {**self.splits, **self.parts}
        return {
            name: ids if isinstance(ids, range) else frozenset(ids)
            for name, ids in selectable.items()
            if is_for_evaluation(name)
        }

    def has_task(self, task_id: int) -> bool:
        """Return whether any split, or another selection, contains the task."""
        return any(task_id in tasks for named in (self.splits, self.parts) for tasks in named.values())


_EVALUATION = frozenset({"test", "dev", "val", "valid", "validation", "eval", "evaluation", "unseen"})


def is_for_evaluation(split: str) -> bool:
    """Return whether the name of a split has a word such as ``test`` or ``dev``."""
    return not _EVALUATION.isdisjoint(split.lower().replace("-", "_").split("_"))


def make_splits(
    tasks: range, *, test: range, unwinnable: Collection[int] = (), repeated: Collection[int] = ()
) -> dict[str, Sequence[int]]:
    """Return splits for an environment without splits in AgentGym: ``all``, and its division in two.

    Args:
        tasks: The ids of all tasks.
        test: The tasks for evaluation, at one end of the range.
        unwinnable: Tasks that are only in ``all``, because they cannot be won.
        repeated: Tasks that are not in ``test``, because an agent cannot distinguish them from others.
    """
    train = range(test.stop, tasks.stop) if test.start == tasks.start else range(tasks.start, test.start)
    return {
        "all": tasks,
        "train": _without(train, unwinnable),
        "test": _without(test, {*unwinnable, *repeated}),
    }


def _without(tasks: range, others: Collection[int]) -> Sequence[int]:
    """Return tasks without some others; return the range if it contains none of them."""
    kept = tuple(task for task in tasks if task not in others)
    return tasks if len(kept) == len(tasks) else kept


@dataclass(frozen=True)
class _LazyEnvironment:
    """An environment that is imported on first use.

    Attributes:
        name: The environment's name.
        where: Its import path, ``"module:CONSTANT"``.
        aliases: Its other names.
        namespace: The namespace of its gymnasium id.
        version: The version in its gymnasium id.
    """

    name: str
    where: str
    aliases: tuple[str, ...] = ()
    namespace: str = _NAMESPACE
    version: int = 0

    @property
    def ids(self) -> tuple[str, ...]:
        """The gymnasium ids: its own, then the ids of its aliases."""
        return _ids(self)

    def environment(self) -> Environment:
        """Import and return the environment."""
        from agentgym_gym._imports import import_object  # noqa: PLC0415 - a light import

        found: Environment = import_object(self.where)
        return found


def _ids(known: Environment | _LazyEnvironment) -> tuple[str, ...]:
    return tuple(f"{known.namespace}/{name}-v{known.version}" for name in _names(known))


def _names(known: Environment | _LazyEnvironment) -> tuple[str, ...]:
    return known.name, *known.aliases


_known: dict[str, Environment | _LazyEnvironment] = {}


def environments() -> tuple[Environment, ...]:
    """Return all environments in the order of their registration."""
    return tuple(map(_environment, _known.values()))


def find(name: str) -> Environment:
    """Return an environment by its name or its gymnasium id, ignoring case.

    The version of an id may be omitted. A module before a colon must have registered the environment; the
    module is not imported.

    Raises:
        UnknownEnvironment: There is no environment of that name; the message lists all.
    """
    module, bare = None, name
    if ":" in name:
        from agentgym_gym.rollout._specs import split_id  # noqa: PLC0415 - importing the library must be cheap

        module, bare = split_id(name)
    key = bare.lower()
    for known in _known.values():
        version = f"-v{known.version}"
        ids = [each.lower() for each in (*known.ids, *_names(known))]
        matches = key in ids or f"{key}{version}" in ids or key.removesuffix(version) in ids
        if matches and _is_of(known, module):
            return _environment(known)
    raise UnknownEnvironment(f"there is no environment {name!r}; there are: {', '.join(_known)}")


def _is_of(known: Environment | _LazyEnvironment, module: str | None) -> bool:
    """Return whether a module registered an environment; True if no module is given."""
    if module is None or module == _PACKAGE:
        return True
    from agentgym_gym.rollout._specs import is_registered_by  # noqa: PLC0415 - importing the library must be cheap

    return is_registered_by(known.ids[0], module)


def _environment(known: Environment | _LazyEnvironment) -> Environment:
    return known.environment() if isinstance(known, _LazyEnvironment) else known


BUILT_IN: tuple[_LazyEnvironment, ...] = (
    _LazyEnvironment("TextCraft", "agentgym_gym.envs.textcraft:TEXTCRAFT"),
    _LazyEnvironment("Maze", "agentgym_gym.envs.maze:MAZE"),
    _LazyEnvironment("Wordle", "agentgym_gym.envs.wordle:WORDLE"),
    _LazyEnvironment("BabyAI", "agentgym_gym.envs.babyai:BABYAI"),
    _LazyEnvironment("ALFWorld", "agentgym_gym.envs.alfworld:ALFWORLD"),
    _LazyEnvironment("SciWorld", "agentgym_gym.envs.sciworld:SCIWORLD"),
    _LazyEnvironment("WebShop", "agentgym_gym.envs.webshop:WEBSHOP"),
    _LazyEnvironment("WebArena", "agentgym_gym.envs.webarena:WEBARENA"),
    _LazyEnvironment("SQLGym", "agentgym_gym.envs.sqlgym:SQLGYM", aliases=("BIRD",)),
    _LazyEnvironment("SearchQA", "agentgym_gym.envs.searchqa:SEARCHQA"),
    _LazyEnvironment("Weather", "agentgym_gym.envs.weather:WEATHER"),
    _LazyEnvironment("Movie", "agentgym_gym.envs.movie:MOVIE"),
    _LazyEnvironment("Academia", "agentgym_gym.envs.academia:ACADEMIA"),
    _LazyEnvironment("Sheet", "agentgym_gym.envs.sheet:SHEET"),
    _LazyEnvironment("TODOList", "agentgym_gym.envs.todolist:TODOLIST"),
    _LazyEnvironment("MiniWoB", "agentgym_gym.envs.miniwob:MINIWOB"),
)
"""The environments of this library."""


def register(environment: Environment | _LazyEnvironment) -> None:
    """Register an environment with this library and with ``gymnasium.make``.

    Args:
        environment: The environment; it replaces one with the same id.

    Raises:
        BadOption: Another environment has one of its names, which identify servers, tasks and leases.
    """
    taken = set(map(str.lower, _names(environment)))
    for known in _known.values():
        if known.ids[0] != environment.ids[0] and taken & set(map(str.lower, _names(known))):
            raise BadOption(
                f"cannot register {environment.ids[0]}: {known.ids[0]} has the same name, and so the "
                "same variable of its server; choose another name"
            )
    _known[environment.name] = environment
    module = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001 - the caller, as warnings find it
    for each in environment.ids:
        gymnasium.registry.pop(each, None)
        # No max_episode_steps: the turn limit belongs to the episode, so that all drivers truncate alike.
        gymnasium.register(
            id=each,
            entry_point=ENTRY_POINT,
            vector_entry_point="agentgym_gym.vector:AgentGymVectorEnv",
            kwargs={"environment": environment.name},
        )
        if each in gymnasium.registry:  # false within `gymnasium.envs.registration.namespace`
            vars(gymnasium.registry[each])["registered_by"] = module  # for agentgym_gym.rollout._specs
