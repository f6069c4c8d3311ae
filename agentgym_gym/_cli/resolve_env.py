"""Which environment and which tasks are meant: the one way in which every command reads them."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import gymnasium
import typer

from agentgym_gym.catalogue import BUILT_IN, ENTRY_POINT, find
from agentgym_gym.data._items import Seeds, items_of
from agentgym_gym.errors import AgentGymError, BadOption, UnknownEnvironment
from agentgym_gym.rollout import EnvMaker
from agentgym_gym.rollout._specs import Unregistered, find_spec, import_envs, split_id

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

    from agentgym_gym.catalogue import Environment
    from agentgym_gym.evaluate._text_env import TextEnv

__all__ = [
    "OURS",
    "TASKS_HELP",
    "Chosen",
    "EnvKwargs",
    "Name",
    "Own",
    "all_by_name",
    "by_name",
    "complete_name",
    "find_modules_here",
    "json_object",
    "know",
    "refuse_own",
    "refuse_twice",
    "resolve",
]

OURS = "agentgym_gym"
"""The module that registers AgentGym's environments."""

DEFAULT_TURNS = 100
"""Turn limit of another library's environment that is registered without one: no episode goes on for ever."""

TASKS_HELP = (
    "Which tasks: 0:50, 3, 1,2,5, 10: or all, where a range leaves out its end; or a file of AgentGym's item "
    "ids. Seeds where the environment numbers no tasks; all are then 1000."
)


@dataclass(frozen=True)
class Chosen:
    """An environment that was named to a command.

    Attributes:
        name: Its gymnasium id with the module that registers it, by which any process can make it.
        environment: What the catalogue knows of it; None for another library's.
    """

    name: str
    environment: Environment | None

    @property
    def id(self) -> str:
        """Its gymnasium id."""
        return split_id(self.name)[1]

    @property
    def module(self) -> str:
        """The module that registers it; empty if none was named."""
        return split_id(self.name)[0] or ""

    @property
    def source(self) -> Environment | Seeds:
        """What its tasks are of."""
        return self.environment or Seeds(self.id)

    def tasks(self, text: str, split: str | None = None) -> list[int]:
        """Return task ids, or seeds where it numbers no tasks.

        Args:
            text: As `TASKS_HELP` says.
            split: The split they are of.

        Raises:
            BadOption: There are no such tasks.
        """
        return [item.task_id for item in items_of(self.source, text, split)]

    def evaluation_split(self) -> str | None:
        """Return the split that models are measured on: ``test``, else ``dev``, else the first."""
        splits = [] if self.environment is None else list(self.environment.splits)
        return next((name for name in ("test", "dev") if name in splits), splits[0] if splits else None)

    def make(
        self, env_kwargs: Mapping[str, Any], own: Mapping[str, Any], max_turns: int | None
    ) -> gymnasium.Env[str, Any]:
        """Make it.

        Args:
            env_kwargs: Arguments that were given as JSON.
            own: Arguments that only AgentGym's environments take; what is None is left out.
            max_turns: Turn limit; 0 for none, None for its usual one.

        Raises:
            BadOption: It cannot be made with these.
        """
        arguments = self._arguments(env_kwargs, own, max_turns)
        try:
            return gymnasium.make(find_spec(self.name), **{"disable_env_checker": True, **arguments})
        except AgentGymError:
            raise
        except Exception as error:  # another's constructor may raise anything
            raise BadOption(f"{self.id} cannot be made: {type(error).__name__}: {error}") from error

    def maker(
        self, env_kwargs: Mapping[str, Any], own: Mapping[str, Any], max_turns: int | None
    ) -> Callable[[], TextEnv]:
        """Return what makes it, again and again, for the runner: AgentGym's to be awaited.

        Args:
            env_kwargs: As for `make`.
            own: Likewise.
            max_turns: Likewise.

        Raises:
            BadOption: It cannot be made with these.
        """
        return EnvMaker(self.name, self._arguments(env_kwargs, own, max_turns))

    def _arguments(
        self, env_kwargs: Mapping[str, Any], own: Mapping[str, Any], max_turns: int | None
    ) -> dict[str, Any]:
        """Return all arguments that it is made with.

        Raises:
            BadOption: It does not take one, or one is given twice.
        """
        given = {name: value for name, value in own.items() if value is not None}
        refuse_twice([*given, *(["max_turns"] if max_turns is not None else [])], env_kwargs)
        if self.environment is None:
            refuse_own(list(given), self.id)
            if max_turns is None and gymnasium.spec(self.id).max_episode_steps is None:
                max_turns = DEFAULT_TURNS
            if max_turns is not None:
                given["max_episode_steps"] = max_turns or -1  # by which gymnasium sets no limit
        elif max_turns is not None:
            given["max_turns"] = max_turns or None
        return {**given, **env_kwargs}


def resolve(name: str) -> Chosen:
    """Return the environment of a name.

    Args:
        name: A name of the catalogue, a gymnasium id, or either after the module that registers it and a
            colon, ``my_module:my/Env-v0``. The module may lie in the working directory.

    Raises:
        UnknownEnvironment: There is none of that name, its module cannot be imported, or its module does
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
            advice = "one of your own is named with its module, as in my_package:my/Env-v0"
            raise UnknownEnvironment(f"{error}; {advice}") from None
        return Chosen(_with_module(module, spec.id), None)
    if spec is None:
        return Chosen(f"{OURS}:{environment.id}", environment)
    if _catalogue_entry(spec) is None:
        return Chosen(_with_module(module, spec.id), None)  # its name is like that of one of AgentGym's
    return Chosen(f"{OURS}:{spec.id}", environment)


def _resolve_in(module: str, name: str) -> Chosen:
    """Return the environment that a module registered, with gymnasium or in the catalogue.

    Raises:
        UnknownEnvironment: It registered none of that name, or cannot be imported.
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
    """Return the environment of the catalogue that a registration is for; None for another library's."""
    try:
        environment = find(spec.id)
    except UnknownEnvironment:
        return None
    return environment if spec.id in environment.ids and spec.entry_point == ENTRY_POINT else None


def _with_module(module: str | None, env_id: str) -> str:
    return env_id if module is None else f"{module}:{env_id}"


def refuse_twice(options: Collection[str], env_kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that an option and ``--env-kwargs`` give.

    Raises:
        BadOption: There are some.
    """
    twice = sorted(set(options) & set(env_kwargs))
    if twice:
        raise BadOption(f"--env-kwargs gives {', '.join(twice)}, and so does an option: give it once")


def refuse_own(options: Collection[str], env_id: str) -> None:
    """Refuse options that only AgentGym's environments take.

    Raises:
        BadOption: There are some.
    """
    if options:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(options))
        raise BadOption(
            f"{named}: for AgentGym's environments alone; give the arguments of {env_id} by --env-kwargs"
        )


def by_name(option: str, values: Iterable[str] | None, names: Sequence[str]) -> dict[str, str]:
    """Return the values of a repeated option ``[NAME=]VALUE`` by the name of the environment.

    Args:
        option: Its name.
        values: What was given; a value without a name is of the only environment.
        names: The environments that there are.

    Raises:
        BadOption: A value does not say which of several environments it is for, is for one that is not
            there, or is the second for the same one.
    """
    found = all_by_name(option, values, names)
    twice = next((name for name, those in found.items() if len(those) > 1), None)
    if twice is not None:
        raise BadOption(f"{option} is given twice for {twice}")
    return {name: value for name, (value,) in found.items()}


def all_by_name(option: str, values: Iterable[str] | None, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of an option as `by_name` does, where one environment may have several.

    Raises:
        BadOption: A value does not say which of several environments it is for, or is for one that is not
            there.
    """
    found: dict[str, list[str]] = {}
    for value in values or ():
        head, equals, tail = value.partition("=")
        name, text = None, value
        if equals:
            bare = split_id(head)[1]
            with contextlib.suppress(UnknownEnvironment):
                name, text = bare if bare in names else find(head).name, tail
        if name is None and len(names) != 1:
            raise BadOption(
                f"{option} is for one environment of {', '.join(names)}: say which, as in {names[0]}=..."
            )
        name = name or names[0]
        if name not in names:
            raise BadOption(f"{option} is given for {name}, of which there are no tasks here")
        found.setdefault(name, []).append(text)
    return found


def complete_name(incomplete: str) -> list[str]:
    """Return the names of AgentGym's environments that a shell may complete a word to."""
    names = [name for each in BUILT_IN for name in (each.name, *each.aliases, *each.ids)]
    return [name for name in names if name.startswith(incomplete)]


def json_object(text: str, option: str = "--env-kwargs", example: str = '{"size": 5}') -> dict[str, Any]:
    """Return what an option gives that takes a JSON object.

    Args:
        text: Its value.
        option: Its name.
        example: What could stand there.

    Raises:
        BadOption: It is not a JSON object.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadOption(f"{option} {text!r:.80} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadOption(f"{option} {text!r:.80} should be a JSON object, such as '{example}'")
    return value


Name: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Which environment: its id or its name; MODULE:ID for one of your own, or another library's.",
        autocompletion=complete_name,
    ),
]

EnvKwargs: TypeAlias = Annotated[
    str,
    typer.Option(metavar="JSON", help="More arguments of the environment, as a JSON object."),
]


Own: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="MODULE:ID",
        help="An environment of your own, to be known beside AgentGym's; repeat it for several.",
    ),
]


def know(names: Collection[str] | None) -> None:
    """Have the catalogue know the environments of ``--env``.

    Raises:
        UnknownEnvironment: There is none of a name, or its module cannot be imported.
        BadOption: One of them has no server that is played over HTTP.
    """
    for name in names or ():
        chosen = resolve(name)
        if chosen.environment is None:
            raise BadOption(
                f"{chosen.id} has no server to look at: --env is for environments that were made known by "
                "agentgym_gym.register"
            )


def find_modules_here() -> None:
    """Let modules in the working directory be imported, after all that is installed."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
