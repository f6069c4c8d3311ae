"""``agentgym eval``."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agentgym_gym._cli.options import (
    ActionFormat,
    EnvTimeout,
    Header,
    Isolate,
    MaxTurns,
    OnUnknown,
    Parser,
    Server,
    SuccessAt,
    Timeout,
    headers_of,
)
from agentgym_gym._cli.plans import AgentPlan, EnvironmentPlan, RunPlan, read_plan
from agentgym_gym._cli.resolve_env import TASKS_HELP, EnvKwargs, complete_name, json_object
from agentgym_gym._cli.runs import play
from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["evaluate"]

_MODEL, _RUN = "Options of a model", "Options of the run"


def evaluate(
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Which environment: its id or its name, or MODULE:ID; or a TOML file of several runs.",
            autocompletion=complete_name,
        ),
    ],
    *,
    agent: Annotated[
        str | None,
        typer.Option(
            help="Who plays: oracle, random, replay:PATH, an earlier run, or MODULE:NAME of your "
            "own; --model for a model."
        ),
    ] = None,
    tasks: Annotated[str | None, typer.Option(help=TASKS_HELP + " By default all.")] = None,
    out_: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for episodes.jsonl and summary.json; by default below runs/."),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Episodes of each task; by default 1.", rich_help_panel=_RUN)
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Episodes at once; by default 16.", rich_help_panel=_RUN)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in that folder.", rich_help_panel=_RUN)
    ] = False,
    retry_faulted: Annotated[
        bool,
        typer.Option(
            "--retry-faulted",
            help="With --resume: play those episodes anew that a fault ended.",
            rich_help_panel=_RUN,
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seed of an agent that draws; a model is sent one only where this is given.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(help="A TOML or JSON file with prices per million tokens.", rich_help_panel=_RUN),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Spread the episodes over a Ray cluster: auto, HOST:PORT or ray://HOST:PORT.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    server: Server = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Which split the tasks are of. By default `all` tasks are those of test, if there is one, "
            "else of dev or the first; ids and files are of any."
        ),
    ] = None,
    action_format: ActionFormat = None,
    parser: Parser = None,
    on_unknown: OnUnknown = None,
    max_turns: MaxTurns = None,
    timeout: Timeout = None,
    isolate: Isolate = None,
    success_at: SuccessAt = None,
    env_timeout: EnvTimeout = None,
    env_kwargs: EnvKwargs = "{}",
    header: Header = None,
    system_prompt: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="System prompt in place of the environment's own.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A model behind OpenAI's chat protocol, by its name; repeat it for several.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where it is served, such as http://127.0.0.1:8000/v1; by default OpenAI's.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    api_key_variable: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The environment variable that holds the key; by default OPENAI_API_KEY.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    launch: Annotated[
        Literal["sglang", "vllm", "transformers"] | None,
        typer.Option(help="Start this engine's server for --model-path.", rich_help_panel=_MODEL),
    ] = None,
    model_path: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="The model it serves: a folder, a name, or a pattern such as 'ckpts/*'; may be repeated.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    engine_arguments: Annotated[
        str,
        typer.Option(
            metavar="'WORDS'",
            help="More arguments of the engine.",
            rich_help_panel=_MODEL,
        ),
    ] = "",
    engine_python: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The Python that the engine is installed for; by default this one.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    tools: Annotated[
        Literal["none", "native"] | None,
        typer.Option(help="native: actions are tool calls; by default text.", rich_help_panel=_MODEL),
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Prompt file: text around the system prompt, or messages with examples.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(
            help="What is sent of the conversation: all, turns:K, or tokens:N; by default all.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Most tokens of a reply.", rich_help_panel=_MODEL)
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="0 always takes the likeliest.", rich_help_panel=_MODEL)
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of the probability drawn from.", rich_help_panel=_MODEL),
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(help="A text at which a reply ends; repeat it for several.", rich_help_panel=_MODEL),
    ] = None,
    sampling: Annotated[
        str,
        typer.Option(
            metavar="JSON", help="More parameters of the request, as a JSON object.", rich_help_panel=_MODEL
        ),
    ] = "{}",
    on_cut_reply: Annotated[
        Literal["end", "play"] | None,
        typer.Option(
            help="What is done with a reply cut by length: by default it ends the episode.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    keep_reasoning: Annotated[
        bool,
        typer.Option("--keep-reasoning", help="Send back what the model thought.", rich_help_panel=_MODEL),
    ] = False,
    model_timeout: Annotated[
        float | None, typer.Option(help="Seconds allowed for a reply.", rich_help_panel=_MODEL)
    ] = None,
    retry_seconds: Annotated[
        float | None,
        typer.Option(help="Seconds in which the model's faults are tried again.", rich_help_panel=_MODEL),
    ] = None,
) -> None:
    """Let an agent or a model play tasks, and keep its score.

    An episode that a failure of the environment or of the model's server ended is counted and not scored.
    Exits with 1 if that happened to every episode.
    """
    of_run: dict[str, Any] = {
        "out": None if out_ is None else str(out_),
        "samples": samples,
        "concurrency": concurrency,
        "seed": seed,
        "prices": None if prices is None else str(prices),
        "ray": ray,
    }
    of_environment: dict[str, Any] = {
        "tasks": tasks,
        "split": split,
        "server": server,
        "action_format": action_format,
        "parser": parser,
        "on_unknown": on_unknown,
        "max_turns": max_turns,
        "timeout": timeout,
        "isolate": isolate,
        "success_at": success_at,
        "env_timeout": env_timeout,
        "env_kwargs": json_object(env_kwargs) or None,
        "system_prompt": None if system_prompt is None else str(system_prompt),
    }
    of_model: dict[str, Any] = {
        "base_url": base_url,
        "api_key_variable": api_key_variable,
        "launch": launch,
        "engine_arguments": shlex.split(engine_arguments) or None,
        "engine_python": engine_python,
        "tools": tools,
        "prompt": None if prompt is None else str(prompt),
        "history": history,
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "stop": stop or None,
        "sampling": json_object(sampling, "--sampling", '{"top_k": 20}') or None,
        "on_cut_reply": on_cut_reply,
        "keep_reasoning": keep_reasoning or None,
        "model_timeout": model_timeout,
        "retry_seconds": retry_seconds,
    }
    of_run, of_environment, of_model = map(_given, (of_run, of_environment, of_model))
    agents = _agents(agent, model or [], model_path or [], of_model)
    if name.endswith(".toml"):
        if agents or of_environment or of_model:
            named = ", ".join(map(_option, [*of_environment, *of_model, *(["agent"] if agents else [])]))
            raise BadOption(f"{named}: what a run file says cannot be given as an option too")
        plan = replace(read_plan(Path(name)), **of_run)
    else:
        if not agents:
            raise BadOption("who plays? Give --agent, --model, or --launch with --model-path")
        if agent is not None and system_prompt is not None:
            raise BadOption("--system-prompt is for models: it needs --model, or --launch")
        plan = RunPlan(environments=[EnvironmentPlan(id=name, **of_environment)], agents=agents, **of_run)
    play(plan, headers=headers_of(header), resume=resume, retry_faulted=retry_faulted)


def _agents(
    agent: str | None, models: list[str], paths: list[str], of_model: Mapping[str, Any]
) -> list[AgentPlan]:
    """Return the agents that the options name.

    Raises:
        BadOption: They do not go together.
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


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
