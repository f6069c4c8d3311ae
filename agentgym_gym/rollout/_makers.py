"""Create environments by id, in this process or another."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from agentgym_gym.errors import AgentGymError, BadOption
from agentgym_gym.rollout._check_results import fault_of
from agentgym_gym.rollout._env_facts import EnvFacts, describe_env
from agentgym_gym.rollout._release import release_at_end
from agentgym_gym.rollout._specs import find_spec, split_id
from agentgym_gym.rollout._workers import close_env

__all__ = ["EnvMaker", "WrongArguments", "creation_errors", "creator_of", "metadata_of"]


class WrongArguments(TypeError):
    """The arguments for an environment do not match its signature."""

    transient = False


@dataclass(frozen=True)
class EnvMaker:
    """Creates the environment registered under an id. Instances can be pickled.

    If ``metadata["asynchronous_entry_point"]`` of the environment's class names another class, that class is
    created with the same arguments. An environment whose ``reset`` and ``step`` are coroutine functions is
    created without gymnasium's wrappers, which cannot await.

    Attributes:
        env_id: The gymnasium id, with the module that registers it: ``"package:namespace/Name-v0"``.
        env_kwargs: Arguments of ``gymnasium.make``.
        release_if_killed: Whether another process releases the environment if this one is killed; see
            `agentgym_gym.rollout._release`.
    """

    env_id: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    release_if_killed: bool = False

    def __call__(self) -> Any:
        """Create the environment.

        Raises:
            Unregistered: No environment is registered under the id.
            WrongArguments: The environment does not accept an argument, or requires another one.
            Exception: The error of its constructor.
        """
        spec = find_spec(self.env_id)
        creator = creator_of(spec)
        arguments = {**spec.kwargs, **self.env_kwargs}
        if self.release_if_killed:
            release_at_end(metadata_of(creator), arguments)
        try:
            return self._make(creator, spec)
        except TypeError as error:
            _check_arguments(creator, arguments, error)
            raise

    def facts(self) -> EnvFacts:
        """Create the environment, read its properties and close it. Do not call it in an event loop.

        Raises:
            BadOption: The environment cannot be created.
        """
        with creation_errors(self.env_id):
            env = self()
        try:
            return describe_env(env)
        finally:
            close_env(env, self.env_id)

    def _make(self, creator: Any, spec: EnvSpec) -> Any:
        awaited = metadata_of(creator).get("asynchronous_entry_point")
        if awaited is not None:
            return self._make_awaited(load_env_creator(awaited), spec)
        # gymnasium's checker does not support the text spaces of every library, and slows down each step.
        env = gymnasium.make(spec, **{"disable_env_checker": True, **self.env_kwargs})
        made = env.unwrapped
        if not _is_awaited(made):
            return env
        made.spec = env.spec  # it has the step limit, which the runtime enforces instead of the wrapper
        return made

    def _make_awaited(self, create: Callable[..., Any], spec: EnvSpec) -> Any:
        # gymnasium.make rejects classes that do not derive from gymnasium.Env.
        arguments = {name: value for name, value in self.env_kwargs.items() if name != "disable_env_checker"}
        limit = arguments.pop("max_episode_steps", spec.max_episode_steps)
        env = create(**{**copy.deepcopy(spec.kwargs), **arguments})
        env.spec = replace(spec, kwargs={}, max_episode_steps=limit)  # without headers and other credentials
        return env


@contextlib.contextmanager
def creation_errors(env_id: str) -> Iterator[None]:
    """Convert the errors of another library's constructor, which may raise anything.

    Args:
        env_id: The id of the environment, with or without its module.

    Raises:
        BadOption: The environment cannot be created.
    """
    try:
        yield
    except AgentGymError:
        raise
    except Exception as error:
        fault = fault_of(error)
        message = f"cannot create {split_id(env_id)[1]}: {fault['kind']}: {fault['message']}"
        raise BadOption(message) from error


def creator_of(spec: EnvSpec) -> Any:
    """Return the class or function that creates an environment."""
    return load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point


def metadata_of(creator: Any) -> Mapping[str, Any]:
    """Return the metadata of an environment's class; empty for a `gymnasium.Wrapper` (a property there)."""
    metadata = getattr(creator, "metadata", None)
    return metadata if isinstance(metadata, Mapping) else {}


def _is_awaited(env: Any) -> bool:
    return inspect.iscoroutinefunction(env.reset) and inspect.iscoroutinefunction(env.step)


def _check_arguments(creator: Any, arguments: Mapping[str, Any], error: TypeError) -> None:
    """Raise if a TypeError is due to arguments that do not match the environment's signature.

    Raises:
        WrongArguments: The environment does not accept an argument, or requires another one.
    """
    of_make = {*inspect.signature(gymnasium.make).parameters, "render_mode"}
    try:
        signature = inspect.signature(creator)
    except (TypeError, ValueError):  # implemented in C
        return
    try:
        signature.bind(**{name: value for name, value in arguments.items() if name not in of_make})
    except TypeError as mismatch:
        raise WrongArguments(f"env_kwargs do not fit: {mismatch}") from error
