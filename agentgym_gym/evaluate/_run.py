"""A run as a user states it: an agent in an environment, which tasks it plays, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from agentgym_gym._env_options import (  # noqa: TC001 - read at run time
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
from agentgym_gym.options import Option

__all__ = ["ChatOptions", "Run", "RunLimits"]

_AGENT, _TASKS, _RUN = "Agent or model", "Tasks", "Run"
_MODEL, _COST, _ENVIRONMENT = "Prompt and replies of a model", "Cost and limits", "Environment"


@dataclass(frozen=True, kw_only=True)
class ChatOptions:
    """A model with an OpenAI-compatible chat API. Its server is given, or an engine is started for it.

    A setting that is None has the default of `ChatAgent`, or the value that the run's protocol states.

    Attributes:
        model: The model's name on its server.
        model_path: Folder of the model or of a checkpoint, for `launch`.
    """

    model: str | None = None
    base_url: Annotated[
        str | None,
        Option(
            "base URL of the model's API, such as http://127.0.0.1:8000/v1",
            _AGENT,
            default="OpenAI's",
            metavar="URL",
            usual=True,
        ),
    ] = None
    api_key_variable: Annotated[
        str | None,
        Option("environment variable with the API key", _AGENT, default="OPENAI_API_KEY", metavar="NAME"),
    ] = None
    launch: Annotated[
        Literal["sglang", "vllm", "transformers"] | None,
        Option("inference engine to start for --model-path", _AGENT, usual=True, argument="kind"),
    ] = None
    model_path: str | None = None
    engine_arguments: Annotated[
        Sequence[str],
        Option(
            "more arguments of the engine",
            _AGENT,
            metavar="'WORDS'",
            values="words",
            argument="arguments",
        ),
    ] = ()
    engine_python: Annotated[
        str | None,
        Option(
            "path of the engine's Python interpreter",
            _AGENT,
            default="this one",
            metavar="PATH",
            argument="python",
        ),
    ] = None
    prompt: Annotated[
        Path | None,
        Option("prompt file: text around the system prompt, or example messages", _MODEL, metavar="FILE"),
    ] = None
    tools: Annotated[
        Literal["none", "native"] | None,
        Option("actions as text (none) or as native tool calls", _MODEL, default="none"),
    ] = None
    history: Annotated[
        str | None,
        Option("messages to send: all, turns:K, tokens:N, with or without summary", _MODEL, default="all"),
    ] = None
    keep_reasoning: Annotated[
        bool | None, Option("send the model's reasoning back in later requests", _MODEL)
    ] = None
    max_tokens: Annotated[
        int | None, Option("maximum number of tokens per reply", _MODEL, least=1, usual=True)
    ] = None
    temperature: Annotated[
        float | None, Option("sampling temperature (0 = greedy)", _MODEL, least=0, usual=True)
    ] = None
    top_p: Annotated[float | None, Option("nucleus sampling threshold", _MODEL, least=0, most=1)] = None
    stop: Annotated[Sequence[str], Option("stop sequence of replies; repeatable", _MODEL)] = ()
    system_role: Annotated[
        Literal["system", "user"] | None,
        Option("role of the system prompt (user: in the first message)", _MODEL, default="system"),
    ] = None
    sampling: Annotated[
        Mapping[str, Any],
        Option("more request parameters, as a JSON object", _MODEL, metavar="JSON", values="json"),
    ] = field(default_factory=dict)
    on_cut_reply: Annotated[
        Literal["end", "play"] | None,
        Option("whether a truncated reply ends the episode or is played", _MODEL, default="end"),
    ] = None
    model_timeout: Annotated[float | None, Option("timeout of each model request, in seconds", _MODEL)] = None
    retry_seconds: Annotated[
        float | None, Option("time limit for retries of failed model requests, in seconds", _MODEL)
    ] = None


@dataclass(frozen=True)
class Run:
    """An agent in an environment, as `play` plays it.

    >>> from agentgym_gym.evaluate import Run, play
    >>> (result,) = play(Run("TextCraft", "oracle", tasks="0:2"))
    >>> result.summary.success_rate
    1.0

    A setting that is None has its default, or the value that the protocol states.

    Attributes:
        env: The environment: its name, or a gymnasium id with the module that registers it, as in
            ``my_module:my/Env-v0``.
        agent: The agent: ``oracle``, ``oracle:thoughts``, ``random``, ``replay:PATH`` of a run,
            ``MODULE:NAME``, a callable that makes an `Agent`, or the options of a model.
        name: Name of the agent in records and folders.
        headers: HTTP headers for the environment's servers, which no file records.
        system_prompt: Replaces the environment's system prompt: a text, or the path of a file.
        folder: Folder of the run; by default a new one below ``runs``.
        protocol: Name of a protocol, or the path of its TOML file.
        items: The item file of the protocol, or a folder with such files.
    """

    env: str
    agent: str | ChatOptions | Callable[[], Any]
    _: KW_ONLY
    name: str | None = None
    protocol: Annotated[
        str | None,
        Option(
            "protocol: agentgym-eval, agentgym-rl, quick, webshop-500, or a TOML file",
            _TASKS,
            metavar="NAME",
            completes="protocol",
            usual=True,
        ),
    ] = None
    items: Annotated[
        Path | None, Option("with --protocol: AgentGym's item file, or folder", _TASKS, metavar="PATH")
    ] = None
    tasks: Annotated[
        str | Sequence[int] | None,
        Option("tasks, such as 0:50, 1,2,5, all, or an item file", _TASKS, default="all", usual=True),
    ] = None
    split: Annotated[
        str | None,
        Option(
            "split of the tasks",
            _TASKS,
            default="test, else dev, else the first",
            completes="split",
        ),
    ] = None
    positions: Annotated[
        str | None, Option("positions in the split from 0, such as 0:50", _TASKS, metavar="RANGES")
    ] = None
    limit: Annotated[int | None, Option("play only the first N tasks", _TASKS, least=1, usual=True)] = None
    sample: Annotated[int | None, Option("play N random tasks, drawn with --seed", _TASKS, least=1)] = None
    samples: Annotated[int | None, Option("episodes per task", _TASKS, default="1", least=1, usual=True)] = (
        None
    )
    seed: Annotated[int | None, Option("random seed; models receive one only if given", _TASKS, least=0)] = (
        None
    )
    system_prompt: Annotated[
        str | Path | None,
        Option("file with a system prompt to replace the environment's", _MODEL, metavar="FILE"),
    ] = None
    server: Server = None
    action_format: ActionFormat = None
    parser: Parser = None
    on_unknown: OnUnknown = None
    max_turns: MaxTurns = None
    timeout: Timeout = None
    headers: Mapping[str, str] | None = None
    isolate: Isolate = None
    success_at: SuccessAt = None
    env_timeout: EnvTimeout = None
    env_kwargs: Annotated[
        Mapping[str, Any],
        Option(
            "more arguments of the environment, as a JSON object",
            _ENVIRONMENT,
            metavar="JSON",
            values="json",
        ),
    ] = field(default_factory=dict)
    folder: str | Path | None = None


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """The limits of `play`, which all its runs share."""

    concurrency: Annotated[
        int, Option("maximum number of concurrent episodes", _RUN, default="16", least=1, usual=True)
    ] = 16
    prices: Annotated[Path | None, Option("TOML or JSON file with prices per million tokens", _COST)] = None
    max_cost: Annotated[
        float | None, Option("stop when the models cost this much; needs --prices", _COST)
    ] = None
    max_tokens_total: Annotated[
        int | None, Option("stop after this many prompt and reply tokens", _COST, least=1)
    ] = None
    requests_per_minute: Annotated[
        float | None, Option("maximum rate of requests to a model server", _COST)
    ] = None
