"""``agentgym eval``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from agentgym_gym._cli.completion import complete_env
from agentgym_gym._cli.declared import GivenOptions, command
from agentgym_gym._cli.dry_run import preview
from agentgym_gym._cli.help_layouts import EVAL
from agentgym_gym._cli.options import Header, headers_of
from agentgym_gym._cli.plans import AgentName, AgentPlan, EnvironmentPlan, RunPlan, read_plan
from agentgym_gym._cli.protocol_plan import GivenSettings, plan_under
from agentgym_gym._cli.protocols import PROTOCOLS, complete_protocol
from agentgym_gym._cli.runs import play
from agentgym_gym.errors import BadOption

__all__ = ["EvalOptions", "evaluate"]


@dataclass(frozen=True, kw_only=True)
class EvalOptions:
    """The options of ``agentgym eval``; the options of the plans are also keys of a run file."""

    name: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="environment (id, name or MODULE:ID), or a TOML run file",
            show_default="all of --protocol",
            autocompletion=complete_env,
        ),
    ] = None
    agent: AgentName = None
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"protocol: {', '.join(PROTOCOLS)}, or a TOML file",
            autocompletion=complete_protocol,
        ),
    ] = None
    items: Annotated[
        Path | None, typer.Option(metavar="PATH", help="with --protocol: AgentGym's item file, or folder")
    ] = None
    environment: Annotated[Mapping[str, Any], GivenOptions(EnvironmentPlan)]
    run: Annotated[Mapping[str, Any], GivenOptions(RunPlan)]
    resume: Annotated[
        bool,
        typer.Option("--resume", help="resume the run in --out, else the latest one"),
    ] = False
    retry_faulted: Annotated[
        bool,
        typer.Option(
            "--retry-faulted",
            help="with --resume: retry faulted episodes",
        ),
    ] = False
    yes: Annotated[
        bool,
        typer.Option("--yes", help="play over 1,000 episodes unasked"),
    ] = False
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="print episodes, tokens and cost, and play nothing",
        ),
    ] = False
    header: Header = None
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="model with an OpenAI-compatible chat API; repeatable",
        ),
    ] = None
    model_path: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="model for --launch: folder, name or pattern ('ckpts/*'); repeatable",
        ),
    ] = None
    settings: Annotated[Mapping[str, Any], GivenOptions(AgentPlan, without=("agent",))]


@command(EvalOptions, EVAL.groups)
def evaluate(options: EvalOptions) -> None:
    """Evaluate agents or models, and write episodes and scores.

    Give --agent, --model, or --launch with --model-path. Episodes that a fault of the environment or of the
    model's server ended are counted and not scored. Exits with 1 if a fault ended every episode.

    Tasks are ids and ranges: 3, 1,2,5, 0:50 (without 50) or 10:, or all, or a file of AgentGym's item ids. If
    an environment has no numbered tasks, they are seeds, and all means 1000. The default split applies to
    all and to --positions; ids and files may be of any split. Of these tasks, --limit plays the first ones,
    and --sample random ones.

    A protocol states environments, tasks and settings, so that a run can be repeated. An option that differs
    from it is allowed, and is recorded and shown as a deviation.

    A model plays over 1,000 episodes only after a confirmation, or with --yes. If a budget (--max-cost or
    --max-tokens-total) ends the run, the command exits with 1; give a larger budget and --resume to continue.

    Other users of this machine can see --header in the list of processes. To hide it, set the variable
    AGENTGYM_<NAME>_HEADERS to a JSON object instead.
    """
    plan, headers = _plan(options), headers_of(options.header)
    if options.dry_run:
        preview(plan, headers=headers)
        return
    play(plan, headers=headers, resume=options.resume, retry_faulted=options.retry_faulted, yes=options.yes)


def _plan(options: EvalOptions) -> RunPlan:
    """Return the plan from the options, or from the run file that they name.

    Raises:
        BadOption: The options are incompatible, or the file cannot be read.
    """
    agents = _agents(options.agent, options.model or [], options.model_path or [], options.settings)
    run_file = options.name is not None and options.name.endswith(".toml")
    if options.items is not None and options.protocol is None:
        raise BadOption(f"--items {options.items} needs --protocol; without one, give --tasks PATH")
    if options.protocol is not None and run_file:
        raise BadOption(f"--protocol cannot be combined with the run file {options.name}: remove one")
    if options.name is None and options.protocol is None:
        raise BadOption("no environment: give an ID, a run file, or --protocol")
    if options.name is not None and run_file:
        if agents or options.environment or options.settings:
            names = [*options.environment, *options.settings, *(["agent"] if agents else [])]
            named = ", ".join(map(_option, names))
            raise BadOption(f"{named} cannot be combined with a run file: set these keys in {options.name}")
        return replace(read_plan(Path(options.name)), **options.run)
    if not agents:
        raise BadOption("no agent: give --agent, --model, or --launch with --model-path")
    if options.agent is not None and "system_prompt" in options.environment:
        raise BadOption("--system-prompt is only for models: give --model or --launch instead of --agent")
    if options.protocol is not None:
        given = GivenSettings(options.environment, options.settings, options.run)
        return plan_under(
            options.protocol, only=options.name, items=options.items, agents=agents, given=given
        )
    environment = EnvironmentPlan(id=str(options.name), **options.environment)
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
            raise BadOption(f"--agent {agent!r:.80} has no model: remove the options of a model")
        return [AgentPlan(agent=agent)]
    if "launch" in of_model:
        if not paths or len(models) > 1:
            raise BadOption(
                "--launch needs --model-path, and at most one --model, the name under which it is served"
            )
        served = models[0] if models else None
        return [AgentPlan(model=served, model_path=path, **of_model) for path in paths]
    if paths:
        raise BadOption(f"--model-path {paths[0]!r:.80} needs --launch, which serves it: give both")
    if of_model and not models:
        raise BadOption(f"{', '.join(map(_option, of_model))}: only for models; give --model or --launch")
    return [AgentPlan(model=model, **of_model) for model in models]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
