"""``agentgym eval``: evaluate agents or models."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from agentgym_gym._cli.console import err
from agentgym_gym._cli.declared import GivenOptions, command
from agentgym_gym._cli.dry_run import preview
from agentgym_gym._cli.options import Header, headers_of
from agentgym_gym._cli.played import play_and_print
from agentgym_gym._cli.run_files import RunFile, read_run_file
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import ChatOptions, Run, RunLimits, checkpoints, protocol_runs
from agentgym_gym.options import Option

__all__ = ["EvalOptions", "evaluate"]

_AGENT, _RUN = "Agent or model", "Run"


@dataclass(frozen=True, kw_only=True)
class EvalOptions:
    """The options of ``agentgym eval``; `Run` and `ChatOptions` state the keys of a run file, too."""

    name: Annotated[
        str | None,
        Option(
            "environment (id, name or MODULE:ID), or a TOML run file",
            positional=True,
            metavar="ID",
            default="all of --protocol",
            completes="environment",
            argument="env",
        ),
    ] = None
    agent: Annotated[
        str | None,
        Option(
            "agent: oracle, oracle:thoughts, random, replay:PATH of a run, or MODULE:NAME",
            _AGENT,
            completes="agent",
            usual=True,
        ),
    ] = None
    model: Annotated[
        Sequence[str], Option("model with an OpenAI-compatible chat API; repeatable", _AGENT, usual=True)
    ] = ()
    model_path: Annotated[
        Sequence[str],
        Option(
            "model for --launch: folder, name or pattern ('ckpts/*'); repeatable",
            _AGENT,
            metavar="PATH",
            usual=True,
        ),
    ] = ()
    settings: Annotated[Mapping[str, Any], GivenOptions(Run)]
    of_model: Annotated[Mapping[str, Any], GivenOptions(ChatOptions)]
    out: Annotated[
        Path | None,
        Option(
            "output folder for episodes.jsonl and summary.json",
            _RUN,
            default="a new folder below runs/",
            usual=True,
        ),
    ] = None
    resume: Annotated[bool, Option("resume the run in --out, else the latest one", _RUN, usual=True)] = False
    retry_faulted: Annotated[bool, Option("with --resume: retry faulted episodes", _RUN)] = False
    limits: Annotated[Mapping[str, Any], GivenOptions(RunLimits)]
    ray: Annotated[
        str | None,
        Option("address of a Ray cluster: auto, HOST:PORT or ray://HOST:PORT", _RUN, metavar="ADDRESS"),
    ] = None
    dry_run: Annotated[bool, Option("print episodes, tokens and cost, and play nothing", _RUN)] = False
    yes: Annotated[bool, Option("skip the confirmation above 1,000 episodes", _RUN)] = False
    header: Header = None


@command(
    EvalOptions,
    {
        _AGENT: (),
        "Tasks": (),
        _RUN: (),
        "Prompt and replies of a model": (),
        "Cost and limits": (),
        "Environment": ("header",),
    },
    examples=(
        "agentgym eval TextCraft --agent oracle --limit 50",
        "agentgym eval WebShop --model tiny --base-url http://127.0.0.1:8000/v1",
        "agentgym eval WebShop --model-path tiny --launch vllm --protocol quick",
        "agentgym eval WebShop --launch vllm --model-path 'ckpts/*' --sample 100",
    ),
)
def evaluate(options: EvalOptions) -> None:
    """Evaluate agents or models, and write episodes and scores.

    Give --agent, --model, or --launch with --model-path. Episodes that a fault of the environment or of the
    model's server ended are counted and not scored. Exits with 1 if a fault ended every episode.

    Tasks are ids and ranges: 3, 1,2,5, 0:50 (without 50) or 10:, or all, or a file of AgentGym's item ids. If
    an environment has no numbered tasks, they are seeds, and all means 1000. `all` and --positions use the
    default split; ids and item files can name tasks of any split. Of these tasks, --limit plays the first
    ones, and --sample random ones.

    A protocol states environments, tasks and settings, so that a run can be repeated. An option that differs
    from it is allowed, and is recorded and shown as a deviation.

    A model plays over 1,000 episodes only after a confirmation, or with --yes. If a budget (--max-cost or
    --max-tokens-total) ends the run, the command exits with 1; give a larger budget and --resume to continue.

    Other users of this machine can see --header in the list of processes. To hide it, set the variable
    AGENTGYM_<NAME>_HEADERS to a JSON object instead.
    """
    planned = _planned(options)
    with planned.locate_errors():
        if options.dry_run:
            preview(planned.runs, planned.limits)
            return
        play_and_print(
            planned.runs,
            planned.limits,
            out=planned.out,
            ray=planned.ray,
            resume=options.resume,
            retry_faulted=options.retry_faulted,
            yes=options.yes,
        )


def _planned(options: EvalOptions) -> RunFile:
    """Return the runs from the options, or from the run file that they name.

    Raises:
        BadOption: The options are incompatible, or the file cannot be read.
    """
    name, protocol = options.name, options.settings.get("protocol")
    agents = list(_agents(options))
    headers = headers_of(options.header) or None
    if name is not None and name.endswith(".toml"):
        if protocol is not None:
            raise BadOption(f"--protocol cannot be combined with the run file {name}: remove one")
        of_run = {each for each in options.settings if each not in {"samples", "seed"}}
        given = [*of_run, *options.of_model, *(["agent"] if agents else [])]
        if given:
            named = ", ".join(map(_option, given))
            raise BadOption(f"{named} cannot be combined with a run file: set these keys in {name}")
        file = read_run_file(Path(name))
        more = {**options.settings, "headers": headers}
        return RunFile(
            [replace(run, **more) for run in file.runs],
            replace(file.limits, **options.limits),
            options.out or file.out,
            options.ray or file.ray,
            file.path,
            {*file.keys} - {*options.settings, *options.limits},
        )
    if name is None and protocol is None:
        raise BadOption("no environment: give an ID, a run file, or --protocol")
    if not agents:
        raise BadOption("no agent: give --agent, --model, or --launch with --model-path")
    if options.agent is not None and "system_prompt" in options.settings:
        raise BadOption("--system-prompt is only for models: give --model or --launch instead of --agent")
    settings = {**options.settings, "headers": headers}
    if name is not None:
        runs = [Run(name, agent, **settings) for agent in agents]
    else:
        runs = list(itertools.chain(*(protocol_runs(agent=agent, **settings) for agent in agents)))
    return RunFile(runs, RunLimits(**options.limits), options.out, options.ray)


def _agents(options: EvalOptions) -> Iterator[str | ChatOptions]:
    """Yield the agents that the options name.

    Raises:
        BadOption: The options are incompatible.
    """
    agent, models, paths, of_model = options.agent, options.model, options.model_path, options.of_model
    if agent is not None:
        if models or paths or of_model:
            raise BadOption(f"--agent {agent!r:.80} has no model: remove the options of a model")
        yield agent
    elif "launch" in of_model:
        if not paths or len(models) > 1:
            raise BadOption(
                "--launch needs --model-path, and at most one --model, the name under which it is served"
            )
        served = models[0] if models else None
        for path in paths:
            for model_path in checkpoints(path, merge=err.print):
                yield ChatOptions(model=served, model_path=model_path, **of_model)
    else:
        if paths:
            raise BadOption(f"--model-path {paths[0]!r:.80} needs --launch, which serves it: give both")
        if of_model and not models:
            raise BadOption(f"{', '.join(map(_option, of_model))}: only for models; give --model or --launch")
        yield from (ChatOptions(model=model, **of_model) for model in models)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
