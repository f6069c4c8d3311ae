"""Resolves the name of an environment: one of the catalogue, or any that is registered with gymnasium."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

from agentgym_gym.catalogue import ENTRY_POINT, find
from agentgym_gym.errors import ArgumentName, BadOption, UnknownEnvironment
from agentgym_gym.evaluate._items import Seeds, items_of
from agentgym_gym.rollout import EnvMaker
from agentgym_gym.rollout._makers import creation_errors
from agentgym_gym.rollout._specs import Unregistered, find_spec, import_envs, split_id

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

    from agentgym_gym.catalogue import Environment
    from agentgym_gym.evaluate._text_env import TextEnv

__all__ = ["Chosen", "find_modules_here", "refuse_agentgym_options", "refuse_twice", "resolve"]

OURS = "agentgym_gym"
"""The module that registers AgentGym's environments."""

DEFAULT_TURNS = 100
"""Turn limit for other libraries' environments registered without one, so that every episode ends."""


@dataclass(frozen=True)
class Chosen:
    """An environment named on the command line.

    Attributes:
        name: The gymnasium id with the module that registers it, from which any process can create it.
        environment: The catalogue entry; None for an environment of another library.
    """

    name: str
    environment: Environment | None

    @property
    def id(self) -> str:
        """The gymnasium id."""
        return split_id(self.name)[1]

    @property
    def module(self) -> str:
        """The module that registers the environment; empty if none was named."""
        return split_id(self.name)[0] or ""

    @property
    def source(self) -> Environment | Seeds:
        """The source of tasks: the catalogue entry, or seeds for an environment of another library."""
        return self.environment or Seeds(self.id)

    def tasks(self, text: str, split: str | None = None) -> list[int]:
        """Return task ids, or seeds if the environment has no numbered tasks.

        Args:
            text: The task selection, as for `agentgym_gym.data.items_of`.
            split: The split of the tasks.

        Raises:
            BadOption: The tasks do not exist.
        """
        return [item.task_id for item in items_of(self.source, text, split)]

    def evaluation_split(self) -> str | None:
        """Return the split for evaluation: ``test``, else ``dev``, else the first."""
        return None if self.environment is None else self.environment.evaluation_split

    def make(
        self, env_kwargs: Mapping[str, Any], own: Mapping[str, Any], max_turns: int | None
    ) -> gymnasium.Env[str, Any]:
        """Create the environment.

        Args:
            env_kwargs: Arguments from ``--env-kwargs``.
            own: Arguments that only AgentGym's environments support; None values are omitted.
            max_turns: Turn limit; 0 for none, None for the default.

        Raises:
            BadOption: The environment cannot be created with these arguments.
        """
        arguments = self._arguments(env_kwargs, own, max_turns)
        with creation_errors(self.id):
            return gymnasium.make(find_spec(self.name), **{"disable_env_checker": True, **arguments})

    def maker(
        self, env_kwargs: Mapping[str, Any], own: Mapping[str, Any], max_turns: int | None
    ) -> Callable[[], TextEnv]:
        """Return a reusable factory for the runner; AgentGym's environments have an async interface.

        Args:
            env_kwargs: As for `make`.
            own: As for `make`.
            max_turns: As for `make`.

        Raises:
            BadOption: The environment does not support an argument, or an argument is given twice.
        """
        return EnvMaker(self.name, self._arguments(env_kwargs, own, max_turns))

    def _arguments(
        self, env_kwargs: Mapping[str, Any], own: Mapping[str, Any], max_turns: int | None
    ) -> dict[str, Any]:
        """Return all arguments for creating the environment.

        Raises:
            BadOption: The environment does not support an argument, or an argument is given twice.
        """
        if max_turns is not None and max_turns < 0:
            raise BadOption("max_turns", max_turns, "a positive number of turns, or 0 for no limit")
        given = {name: value for name, value in own.items() if value is not None}
        refuse_twice([*given, *(["max_turns"] if max_turns is not None else [])], env_kwargs)
        if self.environment is None:
            refuse_agentgym_options(list(given), self.id)
            if max_turns is None and gymnasium.spec(self.id).max_episode_steps is None:
                max_turns = DEFAULT_TURNS
            if max_turns is not None:
                given["max_episode_steps"] = max_turns or -1  # for gymnasium, -1 means no limit
        elif max_turns is not None:
            given["max_turns"] = max_turns or None
        return {**given, **env_kwargs}


def resolve(name: str) -> Chosen:
    """Return the environment with the given name.

    Args:
        name: A catalogue name or a gymnasium id. The module that registers it may precede it, separated by a
            colon: ``my_module:my/Env-v0``. The module may be in the working directory.

    Raises:
        UnknownEnvironment: The environment does not exist, its module cannot be imported, or the module does
            not register it.
    """
    module, bare = split_id(name)
    if module not in (None, OURS):
        return _resolve_in(str(module), name)
    try:
        spec = find_spec(name)
    except Unregistered:
        spec = None
    try:
        environment = find(bare)
    except UnknownEnvironment as error:
        if spec is None:
            advice = "an environment of another package needs its module, as in my_package:my/Env-v0"
            raise error.with_advice(f"; {advice}") from None
        return Chosen(_with_module(module, spec.id), None)
    if spec is None:
        return Chosen(f"{OURS}:{environment.id}", environment)
    if _catalogue_entry(spec) is None:
        return Chosen(_with_module(module, spec.id), None)  # its name is that of an AgentGym environment
    return Chosen(f"{OURS}:{spec.id}", environment)


def _resolve_in(module: str, name: str) -> Chosen:
    """Return the environment that a module registers, with gymnasium or in the catalogue.

    Raises:
        UnknownEnvironment: The module cannot be imported, or does not register this name.
    """
    find_modules_here()
    try:
        import_envs(name)
    except Unregistered as error:
        raise UnknownEnvironment(str(error)) from error
    try:
        spec = find_spec(name)
    except Unregistered as error:
        try:
            environment = find(name)
        except UnknownEnvironment:
            raise UnknownEnvironment(str(error)) from None
        return Chosen(f"{module}:{environment.id}", environment)
    return Chosen(f"{module}:{spec.id}", _catalogue_entry(spec))


def _catalogue_entry(spec: EnvSpec) -> Environment | None:
    """Return the catalogue entry of a gymnasium registration; None for another library's environment."""
    try:
        environment = find(spec.id)
    except UnknownEnvironment:
        return None
    return environment if spec.id in environment.ids and spec.entry_point == ENTRY_POINT else None


def _with_module(module: str | None, env_id: str) -> str:
    return env_id if module is None else f"{module}:{env_id}"


def refuse_twice(options: Collection[str], env_kwargs: Mapping[str, Any]) -> None:
    """Check that no argument is given both by an option and by ``--env-kwargs``.

    Raises:
        BadOption: An argument is given by both.
    """
    twice = sorted(set(options) & set(env_kwargs))
    if twice:
        raise BadOption(
            "env_kwargs", problem=f"gives {', '.join(twice)}, and so does an option: give it once"
        )


def refuse_agentgym_options(options: Collection[str], env_id: str) -> None:
    """Reject options that only AgentGym's environments support.

    Raises:
        BadOption: There are such options.
    """
    if options:
        named = [part for name in sorted(options) for part in (", ", ArgumentName(name))][1:]
        reason = f": only for AgentGym's environments; give the arguments of {env_id} by "
        raise BadOption([*named, reason, ArgumentName("env_kwargs")])


def find_modules_here() -> None:
    """Add the working directory to the end of the import path, so that installed modules take precedence."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
