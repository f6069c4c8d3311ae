"""The options of ``agentgym verl init`` for each environment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from agentgym_gym import data
from agentgym_gym.commands import (
    TASKS_HELP,
    Option,
    PerEnvironment,
    file_text,
    json_object,
    parse_urls,
    read_per_environment,
    resolve,
)
from agentgym_gym.errors import ArgumentName, BadOption
from verl_bridge.recipes import EnvChoice

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.commands import Chosen

__all__ = [
    "ENVIRONMENT",
    "KEPT_OUT",
    "PROMPT_HELP",
    "TASKS",
    "EnvSelection",
    "SelectionOptions",
    "env_arguments",
    "selections_of",
    "server_urls",
    "validation_of",
]

TASKS, ENVIRONMENT = "Environments and tasks", "Environment"
"""Groups of options in a help."""

KEPT_OUT = "dev, else training tasks that are kept out"
"""The default split of the validation tasks."""

PROMPT_HELP = "file with a system prompt to replace the environment's"


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise BadOption("val", text, "a number of tasks, from 1")
    return int(text)


def _return(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadOption("success_at", text, "a number, such as 1 or 0.5")
    return number


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """The options that choose environments and tasks, and apply to each environment."""

    env: Annotated[
        list[str],
        Option(
            "environment (id, name or MODULE:ID) and its weight; repeatable",
            TASKS,
            argument="env_id",
            metavar="ID[=WEIGHT]",
            completes="environment",
            usual=True,
        ),
    ]
    tasks: Annotated[
        list[str] | None,
        PerEnvironment(),
        Option(TASKS_HELP, TASKS, default="few for test, else all", metavar="[ENV=]TASKS", usual=True),
    ] = None
    split: Annotated[
        list[str] | None,
        PerEnvironment(),
        Option(
            "split of the training tasks; all for every task",
            TASKS,
            default="train",
            metavar="[ENV=]SPLIT",
            completes="split",
        ),
    ] = None
    val: Annotated[
        list[str] | None,
        PerEnvironment(_number),
        Option(
            "number of tasks for validation",
            TASKS,
            argument="val_tasks",
            default="8 for test, else a tenth",
            metavar="[ENV=]N",
        ),
    ] = None
    val_split: Annotated[
        list[str] | None,
        PerEnvironment(),
        Option(
            "split of the validation tasks",
            TASKS,
            default=KEPT_OUT,
            metavar="[ENV=]SPLIT",
            completes="split",
        ),
    ] = None
    server: Annotated[
        list[str] | None,
        PerEnvironment(several=True),
        Option(
            "server URL; repeatable",
            ENVIRONMENT,
            default="configured at training",
            metavar="[ENV=]URL",
            usual=True,
        ),
    ] = None
    env_kwargs: Annotated[
        list[str] | None,
        PerEnvironment(json_object),
        Option("more arguments of the environment, as a JSON object", ENVIRONMENT, metavar="[ENV=]JSON"),
    ] = None
    system_prompt: Annotated[
        list[str] | None,
        PerEnvironment(file_text),
        Option(PROMPT_HELP, ENVIRONMENT, metavar="[ENV=]FILE"),
    ] = None
    isolate: Annotated[
        list[str] | None,
        PerEnvironment(),
        Option("where each environment runs: loop, thread or process", ENVIRONMENT, metavar="[ENV=]WHERE"),
    ] = None
    success_at: Annotated[
        list[str] | None,
        PerEnvironment(_return),
        Option("return that counts as success if none is reported", ENVIRONMENT, metavar="[ENV=]RETURN"),
    ] = None


@dataclass(frozen=True)
class EnvSelection:
    """The options of one environment.

    Attributes:
        chosen: The environment.
        weight: Relative weight of the environment in the training tasks.
        env_kwargs: Arguments of the environment, including its servers.
        tasks: The task selection; None for the default of the preset.
        val: The number of validation tasks; None for the default of the preset.
        split: The split of the tasks to train on; None for the training split.
        val_split: The split of the validation tasks; None for ``dev``, or training tasks that are kept out.
        system_prompt: The system prompt; None for the environment's own.
        isolate: Where each environment runs; None for the default.
        success_at: The return that counts as success if the environment reports none; None for the default.
    """

    chosen: Chosen
    weight: float
    env_kwargs: Mapping[str, Any]
    tasks: str | None = None
    val: int | None = None
    split: str | None = None
    val_split: str | None = None
    system_prompt: str | None = None
    isolate: str | None = None
    success_at: float | None = None


def selections_of(options: SelectionOptions, *, native_tools: bool) -> list[EnvSelection]:
    """Return the options of each environment.

    Args:
        options: The options.
        native_tools: Whether the model calls functions in the notation of its own chat template.

    Raises:
        BadOption: The value of an option is invalid.
    """
    weights: dict[str, float] = {}
    chosen: dict[str, Chosen] = {}
    for text in options.env:
        env, weight = _weighted(text)
        name = env.source.name
        if name in chosen:
            raise BadOption("env", problem=f"is given twice for {name}")
        chosen[name], weights[name] = env, weight
    selections = []
    for name, given in read_per_environment(options, list(chosen)).items():
        env_kwargs = _arguments(
            chosen[name].environment,
            given.pop("env_kwargs", {}),
            given.pop("server", []),
            native_tools=native_tools,
        )
        selections.append(EnvSelection(chosen[name], weights[name], env_kwargs, **given))
    return selections


def _weighted(text: str) -> tuple[Chosen, float]:
    name, equals, weight = text.partition("=")
    if not equals:
        return resolve(name), 1.0
    try:
        number = float(weight)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        problem = f"has the weight {weight!r:.40}, which should be a positive number, such as 2 or 0.5"
        raise BadOption("env", text, problem=problem)
    return resolve(name), number


def _arguments(
    environment: Environment | None, env_kwargs: dict[str, Any], servers: Sequence[str], *, native_tools: bool
) -> dict[str, Any]:
    if environment is None:
        if servers:
            others = ("is only for AgentGym's environments; for others, give ", ArgumentName("env_kwargs"))
            raise BadOption("server", problem=others)
        return env_kwargs
    if "headers" in env_kwargs:
        problem = f"contains headers; set {environment.headers_variable} where the training runs"
        raise BadOption("env_kwargs", problem=problem)
    urls = [url for text in servers for url in server_urls(environment, text)]
    own = {"action_format": "tool_calls"} if native_tools else {}
    return {**own, **env_kwargs, **({"server": urls} if urls else {})}


def server_urls(environment: Environment, text: str) -> list[str]:
    """Return the URLs of ``--server``, which a training's files will contain.

    Raises:
        BadOption: A URL is invalid, or contains a password.
    """
    urls = list(parse_urls(text, "server"))
    if any("@" in urlsplit(url).netloc for url in urls):
        problem = f"contains a password; set {environment.variable} where the training runs"
        raise BadOption("server", problem=problem)
    return urls


def validation_of(
    environment: Environment | data.Seeds, training: Sequence[data.Item], val_split: str | None
) -> list[data.Item]:
    """Return the items for validation only, as `agentgym_gym.data.validation_items` does.

    Raises:
        BadOption: There is no such split.
    """
    try:
        return data.validation_items(environment, training, val_split)
    except BadOption as error:
        raise error.renamed({"split": "val_split"}) from error


def env_arguments(selections: Sequence[EnvSelection]) -> dict[str, Any]:
    """Return the arguments of a recipe that specify its environment, or several environments.

    Raises:
        BadOption: An id is invalid.
    """
    if len(selections) == 1:
        (only,) = selections
        return {
            "env_id": only.chosen.name,
            "env_kwargs": only.env_kwargs,
            "isolate": only.isolate,
            "success_at": only.success_at,
        }
    return {
        "envs": [
            EnvChoice(each.chosen.name, each.env_kwargs, each.weight, each.isolate, each.success_at)
            for each in selections
        ]
    }
