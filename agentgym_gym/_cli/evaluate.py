"""``agentgym eval``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from agentgym_gym._cli.declared import GivenOptions, command
from agentgym_gym._cli.options import Header, headers_of
from agentgym_gym._cli.plans import AgentName, AgentPlan, EnvironmentPlan, RunPlan, read_plan
from agentgym_gym._cli.resolve_env import complete_name
from agentgym_gym._cli.runs import play
from agentgym_gym.errors import BadOption

__all__ = ["EvalOptions", "evaluate"]


@dataclass(frozen=True, kw_only=True)
class EvalOptions:
    """The options of ``agentgym eval``; the options of the plans are also keys of a run file."""

    name: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Which environment: its id or its name, or MODULE:ID; or a TOML file of several runs.",
            autocompletion=complete_name,
        ),
    ]
    agent: AgentName = None
    environment: Annotated[Mapping[str, Any], GivenOptions(EnvironmentPlan)]
    run: Annotated[Mapping[str, Any], GivenOptions(RunPlan)]
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with the run in that folder.", rich_help_panel="Options of the run"
        ),
    ] = False
    retry_faulted: Annotated[
        bool,
        typer.Option(
            "--retry-faulted",
            help="With --resume: play those episodes anew that a fault ended.",
            rich_help_panel="Options of the run",
        ),
    ] = False
    header: Header = None
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A model behind OpenAI's chat protocol, by its name; repeat it for several.",
            rich_help_panel="Options of a model",
        ),
    ] = None
    model_path: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="The model it serves: a folder, a name, or a pattern such as 'ckpts/*'; may be repeated.",
            rich_help_panel="Options of a model",
        ),
    ] = None
    settings: Annotated[Mapping[str, Any], GivenOptions(AgentPlan, without=("agent",))]


@command(EvalOptions)
def evaluate(options: EvalOptions) -> None:
    """Let an agent or a model play tasks, and keep its score.

    An episode that a failure of the environment or of the model's server ended is counted and not scored.
    Exits with 1 if that happened to every episode.
    """
    play(
        _plan(options),
        headers=headers_of(options.header),
        resume=options.resume,
        retry_faulted=options.retry_faulted,
    )


def _plan(options: EvalOptions) -> RunPlan:
    """Return the plan from the options, or from the run file that they name.

    Raises:
        BadOption: The options are incompatible, or the file cannot be read.
    """
    agents = _agents(options.agent, options.model or [], options.model_path or [], options.settings)
    if options.name.endswith(".toml"):
        if agents or options.environment or options.settings:
            given = [*options.environment, *options.settings, *(["agent"] if agents else [])]
            named = ", ".join(map(_option, given))
            raise BadOption(f"{named}: what a run file says cannot be given as an option too")
        return replace(read_plan(Path(options.name)), **options.run)
    if not agents:
        raise BadOption("who plays? Give --agent, --model, or --launch with --model-path")
    if options.agent is not None and "system_prompt" in options.environment:
        raise BadOption("--system-prompt is for models: it needs --model, or --launch")
    environment = EnvironmentPlan(id=options.name, **options.environment)
    return RunPlan(environments=[environment], agents=agents, **options.run)


def _agents(
    agent: str | None, models: list[str], paths: list[str], of_model: Mapping[str, Any]
) -> list[AgentPlan]:
    """Return the agents that the options name.

    Raises:
        BadOption: The options are incompatible.
    """
    if agent is not None:
        if models or paths or of_model:
            raise BadOption("--agent is for agents without a model: leave out the options of a model")
        return [AgentPlan(agent=agent)]
    if "launch" in of_model:
        if not paths or len(models) > 1:
            raise BadOption("--launch serves --model-path; --model, at most one, is the name it is served by")
        served = models[0] if models else None
        return [AgentPlan(model=served, model_path=path, **of_model) for path in paths]
    if paths:
        raise BadOption("--model-path is what --launch serves: give both")
    if of_model and not models:
        raise BadOption(f"{', '.join(map(_option, of_model))}: these need --model, or --launch")
    return [AgentPlan(model=model, **of_model) for model in models]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
