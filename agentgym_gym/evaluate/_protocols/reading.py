"""Read protocols from TOML files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from agentgym_gym.errors import BadOption, UnknownEnvironment
from agentgym_gym.evaluate._resolve import resolve
from agentgym_gym.evaluate._run import ChatOptions, Run
from agentgym_gym.evaluate._toml import checked, located, read_table, toml_keys

__all__ = ["NOT_STATED", "PROTOCOLS", "Protocol", "ProtocolEnvironment", "read_protocol"]

_FOLDER = Path(__file__).parent / "files"

PROTOCOLS = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
"""The names of the protocols in this package."""

_METRICS = ("success", "score")


@dataclass(frozen=True)
class ProtocolEnvironment:
    """The part of a protocol for one environment.

    Attributes:
        id: Id of the environment, with the module that registers it.
        name: Its name in the catalogue, or its gymnasium id.
        settings: Fields of a `Run`.
        model_settings: Fields of `ChatOptions`.
        metric: The metric that the protocol reports: ``success`` or ``score``.
        items: Name of the published item file; empty if the settings select the tasks.
        count: Number of items in the published file; None if unknown.
    """

    id: str
    name: str
    settings: Mapping[str, Any]
    model_settings: Mapping[str, Any]
    metric: str
    items: str
    count: int | None


@dataclass(frozen=True)
class Protocol:
    """A protocol.

    Attributes:
        name: Its name, which is the name of its file without the suffix.
        sha256: Hash of all that it states, without its comments, ``summary`` and ``source``.
        environments: Its environments.
        samples: Number of episodes per task.
        seed: The random seed; None for no seed.
        published: Where the item files are published; empty if it needs none.
    """

    name: str
    sha256: str
    environments: Sequence[ProtocolEnvironment]
    samples: int
    seed: int | None
    published: str


def read_protocol(name: str) -> Protocol:
    """Read a protocol.

    Args:
        name: The name of a protocol of this package, or the path of a TOML file.

    Raises:
        BadOption: There is no such protocol, or its file is invalid; the message names the file and the key.
        MissingExtra: Python is 3.10 and the package tomli is not installed.
    """
    path = _FOLDER / f"{name}.toml" if name in PROTOCOLS else Path(name)
    if name not in PROTOCOLS and path.suffix != ".toml":
        raise BadOption(
            "protocol",
            name,
            f"one of {', '.join(PROTOCOLS)}; for a protocol of your own, give the path of its TOML file",
        )
    table = read_table(path, "A protocol")
    with located(path):
        return _protocol(path, table)


NOT_STATED = frozenset(
    {
        *("env", "agent", "name", "folder", "protocol", "items", "samples", "seed"),
        *("server", "headers", "timeout", "isolate", "env_timeout"),
        *("model", "base_url", "api_key_variable", "model_timeout", "retry_seconds"),
        *("launch", "model_path", "engine_arguments", "engine_python"),
    }
)
"""Settings of the machine, the servers and the model, which a protocol cannot state."""

_ENVIRONMENT = {name: kinds for name, kinds in toml_keys(Run).items() if name not in NOT_STATED}
_MODEL = {name: kinds for name, kinds in toml_keys(ChatOptions).items() if name not in NOT_STATED}
_ABOUT_ITEMS: dict[str, tuple[type, ...]] = {"items": (str,), "count": (int,), "metric": (str,)}
_IN_ENVIRONMENT = {"id": (str,), "model": (dict,), **_ABOUT_ITEMS, **_ENVIRONMENT}
_AT_TOP: dict[str, tuple[type, ...]] = {
    "summary": (str,),
    "source": (str,),
    "published": (str,),
    "samples": (int,),
    "seed": (int,),
    "metric": (str,),
    "model": (dict,),
    "environments": (list,),
    **{name: kinds for name, kinds in _ENVIRONMENT.items() if name != "env_kwargs"},
}
_SELECTING = frozenset({"tasks", "split", "positions", "limit", "sample"})


def _protocol(path: Path, table: dict[str, Any]) -> Protocol:
    rows = table.pop("environments", None)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise BadOption("environments", expected="one or more tables [[environments]]")
    top = checked(_AT_TOP, table)
    with located(f"[model] of {path}"):
        model = checked(_MODEL, top.pop("model", {}))
    samples, seed = top.pop("samples", 1), top.pop("seed", None)
    published = top.pop("published", "")
    if samples < 1:
        raise BadOption("samples", samples, "1 or more")
    shared = {name: value for name, value in top.items() if name not in {"summary", "source"}}
    with located(f"[[environments]] of {path}"):
        environments = [_environment(path, shared, model, row) for row in rows]
    names = [each.name for each in environments]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadOption(f"two of [[environments]] are {twice}: keep one")
    if not published and any(each.items for each in environments):
        raise BadOption("items", problem="needs a line published = ..., the place of its publication")
    stated = {
        "samples": samples,
        "seed": seed,
        "environments": [
            {each.name: getattr(environment, each.name) for each in fields(environment)}
            for environment in environments
        ],
    }
    return Protocol(path.stem, _digest(stated), environments, samples, seed, published)


def _environment(
    path: Path, shared: Mapping[str, Any], model: Mapping[str, Any], row: dict[str, Any]
) -> ProtocolEnvironment:
    checked(_IN_ENVIRONMENT, row)
    table = {**shared, **row}
    if "id" not in table:
        raise BadOption("id", problem="is missing; give one, such as WebShop")
    try:
        chosen = resolve(table["id"])
    except UnknownEnvironment as error:
        raise BadOption("id", table["id"], problem=f"is unknown: {error}") from None
    name = chosen.source.name
    metric, items, count = table.get("metric", "success"), table.get("items", ""), table.get("count")
    if metric not in _METRICS:
        raise BadOption("metric", metric, f"one of {', '.join(_METRICS)}")
    selecting = sorted(_SELECTING & table.keys())
    if items and selecting:
        raise BadOption(
            selecting[0],
            table[selecting[0]],
            problem=f"and items both select the tasks of {name}: remove one",
        )
    if count is not None and not items:
        raise BadOption("count", count, problem=f"is the number of items, and {name} has no items")
    settings = {name: value for name, value in table.items() if name in _ENVIRONMENT}
    with located(f"[environments.model] of {path}"):
        model = {**model, **checked(_MODEL, table.get("model", {}))}
    for values, key in ((settings, "system_prompt"), (model, "prompt")):
        if key in values:
            values[key] = str(path.parent / values[key])
    return ProtocolEnvironment(chosen.name, name, settings, model, metric, items, count)


def _digest(stated: Mapping[str, Any]) -> str:
    """Return the hash of what a protocol states, with the contents of its prompt files.

    Raises:
        BadOption: A prompt file cannot be read.
    """

    def with_contents(value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {name: with_contents(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [with_contents(each) for each in value]
        if key in {"system_prompt", "prompt"} and isinstance(value, str):
            try:
                return hashlib.sha256(Path(value).read_bytes()).hexdigest()
            except OSError as error:
                raise BadOption(key, value, problem=f"cannot be read: {error.strerror or error}") from error
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    text = json.dumps(with_contents(stated), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
