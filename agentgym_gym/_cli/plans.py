"""What ``agentgym eval`` is to play: from its options, or from a TOML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from agentgym_gym._text import shown
from agentgym_gym._toml import read_toml
from agentgym_gym.errors import BadOption

__all__ = ["AgentPlan", "EnvironmentPlan", "RunPlan", "read_plan"]


def _key(kind: type | tuple[type, ...], doc: str, default: Any = None) -> Any:
    """Return a field that a TOML file may set.

    Args:
        kind: The types of its value.
        doc: What it means.
        default: Its value where it is not set; a new list or dict for those.
    """
    made = {"default_factory": type(default)} if isinstance(default, (list, dict)) else {"default": default}
    return field(metadata={"kind": kind, "doc": doc}, **made)


@dataclass(frozen=True)
class EnvironmentPlan:
    """An environment, as a table ``[[environments]]`` names it."""

    id: str = _key(str, "its id or name; MODULE:ID for another library's", "")
    tasks: str = _key(str, "which tasks, as --tasks has them", "all")
    split: str | None = _key(str, "which split they are of")
    server: str | None = _key(str, "URL of its server, or several with commas")
    action_format: str | None = _key(str, "how a reply wraps its action")
    parser: str | None = _key(str, "who reads a reply: default or agentgym")
    on_unknown: str | None = _key(str, "what is done with an unknown action: forward or refuse")
    max_turns: int | None = _key(int, "turn limit, 0 for none")
    timeout: float | None = _key((int, float), "seconds allowed for each reply of the server")
    isolate: str | None = _key(str, "where each environment runs: loop, thread or process")
    success_at: float | None = _key((int, float), "return that solves a task where no success is stated")
    env_timeout: float | None = _key((int, float), "seconds for each call of another library's environment")
    env_kwargs: Mapping[str, Any] = _key(dict, "more arguments of the environment", {})
    system_prompt: str | None = _key(str, "file with a system prompt for models")


@dataclass(frozen=True)
class AgentPlan:
    """An agent, as a table ``[[agents]]`` names it: by ``agent``, by ``model``, or by ``launch``."""

    agent: str | None = _key(str, "oracle, random, replay:PATH, or MODULE:NAME of your own")
    name: str | None = _key(str, "what to call it, in place of its usual name")
    model: str | None = _key(str, "name of a model behind OpenAI's chat protocol")
    base_url: str | None = _key(str, "where that is served, such as http://127.0.0.1:8000/v1")
    api_key_variable: str | None = _key(str, "the environment variable that holds the key")
    launch: str | None = _key(str, "an engine to start: sglang, vllm or transformers")
    model_path: str | None = _key(str, "the model it serves, or several by a pattern such as 'ckpts/*'")
    engine_arguments: Sequence[str] = _key(list, "more arguments of the engine", [])
    engine_python: str | None = _key(str, "the Python that the engine is installed for")
    tools: str | None = _key(str, "native: actions are tool calls; none: they are text")
    prompt: str | None = _key(str, "a file with a prompt of your own")
    history: str | None = _key(str, "what is sent of the conversation: all, turns:K, or tokens:N")
    max_tokens: int | None = _key(int, "most tokens of a reply")
    temperature: float | None = _key((int, float), "temperature of the sampling")
    top_p: float | None = _key((int, float), "share of the probability that is sampled from")
    stop: Sequence[str] = _key(list, "texts at which a reply ends", [])
    sampling: Mapping[str, Any] = _key(dict, "more parameters of the request, as the server takes them", {})
    on_cut_reply: str | None = _key(str, "end: a reply cut by length ends the episode; play: it is played")
    keep_reasoning: bool | None = _key(bool, "whether what the model thought is sent back to it")
    model_timeout: float | None = _key((int, float), "seconds allowed for a reply of the model")
    retry_seconds: float | None = _key((int, float), "seconds in which faults of the model are tried again")


@dataclass(frozen=True)
class RunPlan:
    """What is to be played: each agent in each environment."""

    out: str = _key(str, "the folder of the run", "")
    environments: Sequence[EnvironmentPlan] = _key(list, "the environments", [])
    agents: Sequence[AgentPlan] = _key(list, "the agents", [])
    samples: int = _key(int, "episodes of each task", 1)
    concurrency: int = _key(int, "episodes at once", 16)
    seed: int | None = _key(int, "seed of what is drawn")
    prices: str | None = _key(str, "a file with prices of tokens")
    ray: str | None = _key(str, "address of a Ray cluster that plays the episodes, such as auto")


def read_plan(path: Path) -> RunPlan:
    """Read a TOML file.

    Raises:
        BadOption: It cannot be read, or holds what it should not; the message names the key.
        MissingExtra: Python is 3.10 and the package tomli is missing.
    """
    try:
        value = read_toml(path.read_text("utf-8"), "A run file")
    except OSError as error:
        raise BadOption(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise BadOption(f"{path} is not TOML: {error}") from None
    shared = {key: value.pop(key) for key in list(value) if key in _SHARED}
    tables = {key: value.pop(key, None) for key in ("environments", "agents")}
    for key, given in tables.items():
        if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
            raise BadOption(f"{path} should have one or more tables [[{key}]]")
    plan = RunPlan(
        **_checked(RunPlan, value, str(path)),
        environments=[
            EnvironmentPlan(**_checked(EnvironmentPlan, {**shared, **each}, f"{path}, [[environments]]"))
            for each in tables["environments"]
        ],
        agents=[AgentPlan(**_checked(AgentPlan, each, f"{path}, [[agents]]")) for each in tables["agents"]],
    )
    if not plan.out:
        raise BadOption(f'{path} should say where the run goes: out = "runs/NAME"')
    if not all(environment.id for environment in plan.environments):
        raise BadOption(f"{path}: each of [[environments]] needs an id")
    return plan


_SHARED = frozenset(each.name for each in fields(EnvironmentPlan)) - {"id", "server", "env_kwargs"}
"""Keys of an environment that may stand at the top of the file, for all of them."""


def _checked(kind: type, values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the keys and values of a table.

    Args:
        kind: The class that is made of them.
        values: The table.
        where: What to call it in an error.

    Raises:
        BadOption: A key is not known, or its value is of another type.
    """
    known = {each.name: each.metadata["kind"] for each in fields(kind)}
    for key, value in values.items():
        if key not in known:
            raise BadOption(f"{where}: there is no key {key!r}; the keys are {', '.join(known)}")
        kinds = known[key] if isinstance(known[key], tuple) else (known[key],)
        fits = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        if not fits or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
            wanted = " or ".join(_IN_TOML[each] for each in kinds)
            raise BadOption(f"{where}: {key} should be {wanted}, not {shown(value)}")
    return values


_IN_TOML = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list of texts",
    dict: "a table",
}
