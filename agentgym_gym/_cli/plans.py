"""The plan of ``agentgym eval``, from its options or from a TOML file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from agentgym_gym._cli.completion import complete_agent, complete_split
from agentgym_gym._cli.declared import CliValue
from agentgym_gym._cli.options import (  # noqa: TC001 - read at run time
    ActionFormat,
    EnvTimeout,
    Isolate,
    MaxTurns,
    OnUnknown,
    Parser,
    Server,
    SuccessAt,
    Timeout,
)
from agentgym_gym._cli.resolve_env import TASKS_HELP, json_object
from agentgym_gym._cli.toml_tables import checked, read_table, toml_keys
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._protocol import AppliedProtocol  # noqa: TC001 - read at run time

__all__ = [
    "UNRECORDED",
    "AgentName",
    "AgentPlan",
    "ChatArgument",
    "EnvArgument",
    "EnvironmentPlan",
    "RunPlan",
    "read_plan",
]

UNRECORDED = frozenset({"headers", "server"})
"""Keys of `EnvironmentPlan.env_kwargs` that a run does not record: headers may contain tokens."""


@dataclass(frozen=True)
class EnvArgument:
    """Marks a field that is an argument of AgentGym's environments.

    Attributes:
        recorded: Whether a run records the argument, and so can be resumed only with the same value.
    """

    recorded: bool = True


@dataclass(frozen=True)
class ChatArgument:
    """Marks a field that is an argument of the chat agent for models.

    Attributes:
        name: The name of the argument, if it differs from the field.
    """

    name: str = ""


_FILE = CliValue(Path, str)
_SAMPLING = CliValue(str, partial(json_object, option="--sampling", example='{"top_k": 20}'))


@dataclass(frozen=True)
class EnvironmentPlan:
    """An environment: each field is a key of the table ``[[environments]]``, and some are options."""

    id: str = ""
    tasks: Annotated[str, typer.Option(help=TASKS_HELP, show_default="all")] = "all"
    split: Annotated[
        str | None,
        typer.Option(
            help="split of the tasks",
            show_default="test, else dev, else the first",
            autocompletion=complete_split,
        ),
        EnvArgument(),
    ] = None
    positions: Annotated[
        str | None,
        typer.Option(metavar="RANGES", help="positions in the split from 0, such as 0:50"),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="play only the first N tasks")] = None
    sample: Annotated[int | None, typer.Option(min=1, help="play N random tasks, drawn with --seed")] = None
    server: Annotated[Server, EnvArgument(recorded=False)] = None
    action_format: Annotated[ActionFormat, EnvArgument()] = None
    parser: Annotated[Parser, EnvArgument()] = None
    on_unknown: Annotated[OnUnknown, EnvArgument()] = None
    max_turns: MaxTurns = None
    timeout: Annotated[Timeout, EnvArgument(recorded=False)] = None
    isolate: Isolate = None
    success_at: SuccessAt = None
    env_timeout: EnvTimeout = None
    env_kwargs: Annotated[
        Mapping[str, Any],
        typer.Option(metavar="JSON", help="more arguments of the environment, as a JSON object"),
        CliValue(str, json_object),
    ] = field(default_factory=dict)
    system_prompt: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="file with a system prompt to replace the environment's",
        ),
        _FILE,
    ] = None
    protocol: AppliedProtocol | None = None  # from --protocol, and not a key


AgentName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="agent: oracle, oracle:thoughts, random, replay:PATH of a run, or MODULE:NAME",
        autocompletion=complete_agent,
    ),
]


@dataclass(frozen=True)
class AgentPlan:
    """An agent: each field is a key of the table ``[[agents]]``, and some are options.

    One of ``agent``, ``model`` and ``launch`` is required. ``name`` replaces the default name. On the command
    line, `model` and `model_path` may name several agents.
    """

    agent: AgentName = None
    name: str | None = None
    model: str | None = None
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="base URL of the model's API, such as http://127.0.0.1:8000/v1",
            show_default="OpenAI's",
        ),
    ] = None
    api_key_variable: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="environment variable with the API key",
            show_default="OPENAI_API_KEY",
        ),
    ] = None
    launch: Annotated[
        Literal["sglang", "vllm", "transformers"] | None,
        typer.Option(help="inference engine to start for --model-path"),
    ] = None
    model_path: str | None = None
    engine_arguments: Annotated[
        Sequence[str],
        typer.Option(metavar="'WORDS'", help="more arguments of the engine"),
        CliValue(str, shlex.split),
    ] = field(default_factory=list)
    engine_python: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="path of the engine's Python interpreter",
            show_default="this one",
        ),
    ] = None
    tools: Annotated[
        Literal["none", "native"] | None,
        typer.Option(
            help="actions as text (none) or as native tool calls",
            show_default="none",
        ),
        ChatArgument(),
    ] = None
    prompt: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="prompt file: text around the system prompt, or example messages",
        ),
        _FILE,
    ] = None
    history: Annotated[
        str | None,
        typer.Option(
            help="messages to send: all, turns:K or tokens:N",
            show_default="all",
        ),
        ChatArgument(),
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="maximum number of tokens per reply"),
        ChatArgument(),
    ] = None
    temperature: Annotated[float | None, typer.Option(min=0, help="sampling temperature (0 = greedy)")] = None
    top_p: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="nucleus sampling threshold"),
    ] = None
    stop: Annotated[
        Sequence[str],
        typer.Option(help="stop sequence of replies; repeatable"),
        CliValue(list[str], list),
        ChatArgument(),
    ] = field(default_factory=list)
    sampling: Annotated[
        Mapping[str, Any],
        typer.Option(
            metavar="JSON",
            help="more request parameters, as a JSON object",
        ),
        _SAMPLING,
    ] = field(default_factory=dict)
    on_cut_reply: Annotated[
        Literal["end", "play"] | None,
        typer.Option(
            help="whether a truncated reply ends the episode or is played",
            show_default="end",
        ),
        ChatArgument(),
    ] = None
    keep_reasoning: Annotated[
        bool | None,
        typer.Option(
            "--keep-reasoning",
            help="send the model's reasoning back in later requests",
        ),
        ChatArgument(),
    ] = None
    model_timeout: Annotated[
        float | None,
        typer.Option(help="timeout of each model request, in seconds"),
        ChatArgument("timeout"),
    ] = None
    retry_seconds: Annotated[
        float | None,
        typer.Option(help="time limit for retries of failed model requests, in seconds"),
        ChatArgument(),
    ] = None


@dataclass(frozen=True)
class RunPlan:
    """A run of each agent in each environment; each field is a top-level key of a run file."""

    out: Annotated[
        str,
        typer.Option(
            help="output folder for episodes.jsonl and summary.json", show_default="a new folder below runs/"
        ),
        _FILE,
    ] = ""
    environments: Sequence[EnvironmentPlan] = field(default_factory=list)
    agents: Sequence[AgentPlan] = field(default_factory=list)
    samples: Annotated[int, typer.Option(min=1, help="episodes per task", show_default="1")] = 1
    concurrency: Annotated[
        int,
        typer.Option(
            min=1,
            help="maximum number of concurrent episodes",
            show_default="16",
        ),
    ] = 16
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="random seed; models receive one only if given",
        ),
    ] = None
    prices: Annotated[
        str | None,
        typer.Option(help="TOML or JSON file with prices per million tokens"),
        _FILE,
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(help="stop when the models cost this much; needs --prices"),
    ] = None
    max_tokens_total: Annotated[
        int | None,
        typer.Option(min=1, help="stop after this many prompt and reply tokens"),
    ] = None
    requests_per_minute: Annotated[
        float | None,
        typer.Option(help="maximum rate of requests to a model server"),
    ] = None
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="address of a Ray cluster: auto, HOST:PORT or ray://HOST:PORT",
        ),
    ] = None


def read_plan(path: Path) -> RunPlan:
    """Read a plan from a TOML file.

    Raises:
        BadOption: The file cannot be read, or a key or value is invalid; the message names the key.
        MissingExtra: Python is 3.10 and the package tomli is not installed.
    """
    value = read_table(path, "A run file")
    shared = {key: value.pop(key) for key in list(value) if key in _SHARED}
    tables = {key: value.pop(key, None) for key in ("environments", "agents")}
    for key, rows in tables.items():
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            raise BadOption(f"{path} should have one or more tables [[{key}]]")
    environment, agent = toml_keys(EnvironmentPlan), toml_keys(AgentPlan)
    plan = RunPlan(
        **checked(toml_keys(RunPlan), value, str(path)),
        environments=[
            EnvironmentPlan(**checked(environment, {**shared, **each}, f"{path}, [[environments]]"))
            for each in tables["environments"]
        ],
        agents=[AgentPlan(**checked(agent, each, f"{path}, [[agents]]")) for each in tables["agents"]],
    )
    if not plan.out:
        raise BadOption(f'{path} has no output folder; add a line such as out = "runs/NAME"')
    if not all(environment.id for environment in plan.environments):
        raise BadOption(f"{path}: each of [[environments]] needs an id")
    return plan


_SHARED = frozenset(toml_keys(EnvironmentPlan)) - {"id", "server", "env_kwargs"}
"""Keys of an environment that are also allowed at the top level, for all environments."""
