"""Options that name an environment, the same for every command."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any, TypeAlias

import typer

from agentgym_gym._cli.completion import complete_env
from agentgym_gym.catalogue import find
from agentgym_gym.errors import BadOption, UnknownEnvironment
from agentgym_gym.evaluate._resolve import Chosen, find_modules_here, resolve
from agentgym_gym.rollout._specs import split_id

__all__ = [
    "TASKS_HELP",
    "Chosen",
    "EnvKwargs",
    "ExtraEnvs",
    "Name",
    "all_by_name",
    "by_name",
    "find_modules_here",
    "json_object",
    "register_envs",
    "resolve",
]

TASKS_HELP = "tasks, such as 0:50, 1,2,5, all, or an item file"
"""The help of options for tasks; the commands explain the syntax in their descriptions."""


def by_name(option: str, values: Iterable[str] | None, names: Sequence[str]) -> dict[str, str]:
    """Return the values of a repeated option ``[NAME=]VALUE`` by environment name.

    Args:
        option: The name of the option.
        values: The given values. A value without a name applies to the only environment.
        names: The names of all environments.

    Raises:
        BadOption: A value does not name one of several environments, names an unknown environment, or is the
            second one for the same environment.
    """
    by_env = all_by_name(option, values, names)
    twice = next((name for name, texts in by_env.items() if len(texts) > 1), None)
    if twice is not None:
        raise BadOption(f"{option} is given twice for {twice}")
    return {name: value for name, (value,) in by_env.items()}


def all_by_name(option: str, values: Iterable[str] | None, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of an option as `by_name` does, but allow several per environment.

    Raises:
        BadOption: A value does not name one of several environments, or names an unknown environment.
    """
    by_env: dict[str, list[str]] = {}
    for value in values or ():
        head, equals, tail = value.partition("=")
        name, text = None, value
        if equals:
            bare = split_id(head)[1]
            with contextlib.suppress(UnknownEnvironment):
                name, text = bare if bare in names else find(head).name, tail
        if name is None and len(names) != 1:
            raise BadOption(
                f"{option} {value!r:.80} names none of {', '.join(names)}: name one, as in {names[0]}=..."
            )
        name = name or names[0]
        if name not in names:
            raise BadOption(
                f"{option} is given for {name}, which has no tasks here; it may be for {', '.join(names)}"
            )
        by_env.setdefault(name, []).append(text)
    return by_env


def json_object(text: str, option: str = "--env-kwargs", example: str = '{"size": 5}') -> dict[str, Any]:
    """Parse the value of an option that accepts a JSON object.

    Args:
        text: The value of the option.
        option: The name of the option.
        example: A valid value, for the error message.

    Raises:
        BadOption: The value is not a JSON object.
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
        help="environment: id, name, or MODULE:ID of another package",
        autocompletion=complete_env,
    ),
]

EnvKwargs: TypeAlias = Annotated[
    str,
    typer.Option(metavar="JSON", help="more arguments of the environment, as a JSON object"),
]


ExtraEnvs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="MODULE:ID",
        help="environment of another package, to add to the catalogue; repeatable",
    ),
]


def register_envs(names: Collection[str] | None) -> None:
    """Import the modules of ``--env``, which add their environments to the catalogue.

    Raises:
        UnknownEnvironment: An environment does not exist, or its module cannot be imported.
        BadOption: An environment has no HTTP server.
    """
    for name in names or ():
        chosen = resolve(name)
        if chosen.environment is None:
            raise BadOption(
                f"{chosen.id} has no server to check: --env accepts only environments that their module adds "
                "by agentgym_gym.register"
            )
