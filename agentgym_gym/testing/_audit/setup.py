"""Finds the environment to audit: an id, the URL of a server, or a function that makes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium import spaces

from agentgym_gym._base_env import BaseTextEnv
from agentgym_gym._text import redact
from agentgym_gym._text_space import TextSpace
from agentgym_gym.catalogue import find
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._agents import load_oracle, maker_from
from agentgym_gym.evaluate._probe import probe
from agentgym_gym.evaluate._resolve import find_modules_here, resolve
from agentgym_gym.rollout._env_facts import attribute_of, describe_env
from agentgym_gym.rollout._makers import creation_errors
from agentgym_gym.rollout._specs import find_spec
from agentgym_gym.rollout._workers import close_env
from agentgym_gym.testing._audit.choices import Choices
from agentgym_gym.testing._audit.subject import Source, Subject, TextMaker, here

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.evaluate import Agent
    from agentgym_gym.evaluate._resolve import Chosen

__all__ = ["GymMaker", "subject_of"]

_SELECTED = 24
"""Tasks of each split to play by default, or seeds."""


@dataclass(frozen=True)
class GymMaker:
    """Makes a registered environment with ``gymnasium.make``. Instances can be pickled.

    Attributes:
        env_id: The id, with the module that registers it.
        env_kwargs: Arguments of ``gymnasium.make``.
    """

    env_id: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self) -> Any:
        """Make the environment.

        Raises:
            Unregistered: No environment is registered under the id.
            Exception: The error of its constructor.
        """
        spec = find_spec(self.env_id)
        env = gymnasium.make(spec, **{"disable_env_checker": True, **self.env_kwargs})
        made: Any = env.unwrapped
        if not inspect.iscoroutinefunction(made.step):
            return env
        made.spec = env.spec  # gymnasium's wrappers cannot await
        return made

    @property
    def source(self) -> Source:
        """How a program makes it; without the arguments that may contain secrets."""
        shown = {name: value for name, value in self.env_kwargs.items() if not _is_secret(name, value)}
        arguments = "".join(f", {name}={value!r}" for name, value in shown.items())
        return Source(("import gymnasium",), f"gymnasium.make({self.env_id!r}{arguments})")


def _is_secret(name: str, value: Any) -> bool:
    return name == "headers" or (name == "server" and redact(str(value)) != str(value))


def subject_of(
    env: str | Callable[[], Any],
    env_kwargs: Mapping[str, Any] | None = None,
    *,
    solver: str | Callable[[], Agent] | None = None,
    actions: Sequence[str] = (),
    tasks: str | Sequence[int] | None = None,
    split: str | None = None,
    seed: int = 0,
    thorough: bool = False,
    timeout: float = 30.0,
) -> Subject:
    """Return the subject of an audit.

    Args:
        env: The name or id of an environment, the URL of a server, or a function that makes one.
        env_kwargs: Arguments of ``gymnasium.make``.
        solver: Makes an agent that plays known solutions, or its specification; by default the environment's
            oracle, if any.
        actions: Actions to draw from; by default the environment's own.
        tasks: Numbers of the tasks to play, or a text such as ``"0:50"``; by default some of each split, or
            seeds.
        split: The split of the tasks; by default all.
        seed: Seed of everything that is drawn.
        thorough: Whether to play all tasks and more episodes.
        timeout: Timeout of each call of the environment, in seconds.

    Raises:
        UnknownEnvironment: The environment does not exist.
        BadOption: It cannot be created, or a server serves no known environment.
    """
    origin = here()
    make, chosen = _maker(env, dict(env_kwargs or {}))
    environment = None if chosen is None else chosen.environment
    if isinstance(solver, str):
        if solver == "random":
            raise BadOption("solver", solver, "oracle, replay:PATH or MODULE:NAME, which play solutions")
        find_modules_here()
        solver = maker_from(solver, environment, seed)
    with creation_errors(getattr(make, "env_id", "the environment")):
        made = make()
    if environment is None and isinstance(getattr(made, "unwrapped", None), BaseTextEnv):
        environment = find(made.unwrapped.env_id)
    try:
        facts, adapt = describe_env(made), not _is_text(made)
        if adapt and facts.awaited:
            raise BadOption(f"{facts.env_id} is asynchronous and has no text: audit a text environment")
        shown = TextMaker(lambda: made, adapt)() if adapt else made
        choices, splits = Choices(shown, actions), _splits(made, environment)
        facts = describe_env(shown) if adapt else facts
    finally:
        close_env(made, "the environment")
    if solver is None and environment is not None and environment.oracle is not None:
        solver = _Oracle(environment)
    return Subject(
        TextMaker(make, adapt),
        make,
        _source(make, adapted=adapt),
        facts,
        choices,
        _tasks(chosen, splits, tasks, split, thorough=thorough),
        solver=solver,
        environment=environment,
        splits=splits,
        seed=seed,
        thorough=thorough,
        timeout=timeout,
        origin=origin,
    )


@dataclass(frozen=True)
class _Oracle:
    environment: Environment

    def __call__(self) -> Agent:
        return load_oracle(self.environment)


def _maker(env: str | Callable[[], Any], env_kwargs: dict[str, Any]) -> tuple[Any, Chosen | None]:
    if callable(env):
        if env_kwargs:
            raise BadOption("env_kwargs require the id of an environment: pass them in the function instead")
        return env, None
    if env.startswith(("http://", "https://")):
        if "server" in env_kwargs:
            raise BadOption("server", problem="and the URL of a server exclude each other: give one of them")
        chosen = resolve(_served(env, env_kwargs.get("headers")).id)
        return GymMaker(chosen.name, {"server": env, **env_kwargs}), chosen
    find_modules_here()
    chosen = resolve(env)
    return GymMaker(chosen.name, env_kwargs), chosen


def _served(url: str, headers: Mapping[str, str] | None) -> Environment:
    """Return the environment of a server.

    Raises:
        BadOption: It does not serve one environment of the catalogue.
    """
    result = probe(url, headers=headers)
    if result.problem is not None:
        raise BadOption(f"{result.url}: {result.problem}")
    if len(result.environments) != 1:
        names = ", ".join(each.name for each in result.environments) or "no environment"
        raise BadOption(f"{result.url} may serve {names}: give the name, and the URL as the server")
    return result.environments[0]


def _is_text(env: Any) -> bool:
    space = attribute_of(env, "observation_space")
    return space is None or isinstance(space, (spaces.Text, TextSpace))


def _source(make: Any, *, adapted: bool) -> Source:
    if isinstance(make, GymMaker):
        return Source(make.source.imports, make.source.expression, adapted)
    module, name = getattr(make, "__module__", ""), getattr(make, "__qualname__", "")
    if not name.isidentifier() or module in {"", "__main__"}:  # defined in a function, or in the program
        return Source((), "", adapted)
    return Source((f"from {module} import {name}",), f"{name}()", adapted)


def _splits(env: Any, environment: Environment | None) -> Mapping[str, Sequence[int]]:
    if environment is not None:
        return environment.splits
    splits = attribute_of(env, "splits")
    return dict(splits) if isinstance(splits, Mapping) else {}


def _tasks(
    chosen: Chosen | None,
    splits: Mapping[str, Sequence[int]],
    tasks: str | Sequence[int] | None,
    split: str | None,
    *,
    thorough: bool,
) -> Sequence[int]:
    """Return the tasks to play.

    Raises:
        BadOption: The tasks or the split do not exist.
    """
    if isinstance(tasks, str):
        if chosen is None:
            raise BadOption("tasks", tasks, "a list of numbers, where a function makes the environment")
        every = tasks == "all" and split is None and chosen.environment is not None
        return chosen.tasks(":" if every else tasks, split)  # without a split, `all` means one
    if tasks is not None:
        if not tasks:
            raise BadOption("tasks", tasks, "one number or more")
        return tasks
    if split is not None and split not in splits:
        expected = f"one of {', '.join(splits)}" if splits else "absent: the environment has no splits"
        raise BadOption("split", split, expected)
    return _chosen_tasks(splits if split is None else {split: splits[split]}, thorough=thorough)


def _chosen_tasks(splits: Mapping[str, Sequence[int]], *, thorough: bool) -> list[int]:
    """Return tasks from each split, evenly spaced; seeds without splits."""
    parts = {name: tasks for name, tasks in splits.items() if name != "all"} or dict(splits)
    if not parts:
        return list(range(_SELECTED * (4 if thorough else 1)))
    if thorough:
        return list(dict.fromkeys(task for tasks in parts.values() for task in tasks))
    chosen: dict[int, None] = {}
    for tasks in parts.values():
        step = max(1, len(tasks) // max(1, _SELECTED // len(parts)))
        chosen.update(dict.fromkeys(tasks[::step]))
    return list(chosen)
