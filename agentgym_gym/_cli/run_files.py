"""Run files: TOML files with the environments, agents and settings of an evaluation."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_gym._cli.console import err
from agentgym_gym.errors import BadFile, BadOption
from agentgym_gym.evaluate import ChatOptions, Run, RunLimits, checkpoints
from agentgym_gym.evaluate._toml import checked, located, read_table, toml_keys
from agentgym_gym.options import check_options

__all__ = ["RunFile", "read_run_file"]


@dataclass(frozen=True)
class RunFile:
    """The runs of a command, and how they are played together.

    Attributes:
        runs: The runs.
        limits: The limits that they share.
        out: The output folder; None for a new one.
        ray: The address of a Ray cluster; None to play in this process.
        path: The file; None if the command line states the runs.
        keys: The keys that the file sets.
    """

    runs: Sequence[Run]
    limits: RunLimits
    out: Path | None = None
    ray: str | None = None
    path: Path | None = None
    keys: Collection[str] = ()

    @contextlib.contextmanager
    def locate_errors(self) -> Iterator[None]:
        """Add the path of the file to errors about its values.

        Raises:
            BadOption: The block raised it.
        """
        try:
            yield
        except BadOption as error:
            if error.argument not in self.keys:
                raise
            raise error.found_in(str(self.path)) from error.__cause__


_TEXT: tuple[type, ...] = (str,)
_OF_ALL = {"samples", "seed"}
_ENVIRONMENT = {
    "id": _TEXT,
    **{name: kinds for name, kinds in toml_keys(Run).items() if name not in {*_OF_ALL, "protocol", "items"}},
}
_AGENT = {"agent": _TEXT, "name": _TEXT, **toml_keys(ChatOptions, "model", "model_path")}
_TOP = {
    "environments": (list,),
    "agents": (list,),
    "out": _TEXT,
    "ray": _TEXT,
    **{name: kinds for name, kinds in toml_keys(Run).items() if name in _OF_ALL},
    **toml_keys(RunLimits),
}
_SHARED = _ENVIRONMENT.keys() - {"id", "server", "env_kwargs"}
"""Keys of an environment that are also allowed at the top level, for all environments."""

_PATHS = {"system_prompt", "prompt", "prices"}


def read_run_file(path: Path) -> RunFile:
    """Read a run file.

    Raises:
        BadOption: The file cannot be read, or a key or value is invalid; the message names the key.
        MissingExtra: Python is 3.10 and the package tomli is not installed.
    """
    value = read_table(path, "A run file")
    keys = {*value}
    shared = {key: value.pop(key) for key in list(value) if key in _SHARED}
    tables = {key: value.pop(key, None) for key in ("environments", "agents")}
    for key, rows in tables.items():
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            raise BadFile(f"{path} should have one or more tables [[{key}]]", path=path)
    with located(path):
        top = checked(_TOP, value)
    with located(f"[[environments]] of {path}"):
        environments = [checked(_ENVIRONMENT, {**shared, **each}) for each in tables["environments"]]
    with located(f"[[agents]] of {path}"):
        agents = [pair for each in tables["agents"] for pair in _agents(checked(_AGENT, each))]
    if "out" not in top:
        raise BadFile(f'{path} has no output folder; add a line such as out = "runs/NAME"', path=path)
    if not all(each.get("id") for each in environments):
        raise BadFile(f"{path}: each of [[environments]] needs an id", path=path)
    of_all = {name: top.pop(name) for name in list(top) if name in _OF_ALL}
    out, ray = Path(top.pop("out")), top.pop("ray", None)
    runs = [
        Run(each["id"], agent, name=name, **of_all, **_with_paths(each, without="id"))
        for name, agent in agents
        for each in environments
    ]
    limits = RunLimits(**_with_paths(top))
    with located(path):
        for options in (*runs, *(agent for _, agent in agents if isinstance(agent, ChatOptions)), limits):
            check_options(options)
    keys.update(*tables["environments"], *tables["agents"])
    return RunFile(runs, limits, out, ray, path, keys)


def _agents(row: Mapping[str, Any]) -> Iterator[tuple[str | None, str | ChatOptions]]:
    """Yield the name and the agent of a table; a pattern of model paths may yield several.

    Raises:
        BadOption: The table names no agent, or two.
    """
    settings = _with_paths(row)
    agent, name = settings.pop("agent", None), settings.pop("name", None)
    if agent is not None:
        if settings.keys() & {"launch", "model"}:
            raise BadOption("agent", agent, problem="and a model or launch exclude each other: keep one key")
        yield name, agent
    elif "launch" in settings:
        pattern = settings.pop("model_path", None)
        if pattern is None:
            raise BadOption("launch", settings["launch"], problem="needs a model_path")
        paths = checkpoints(pattern, merge=err.print)
        if name and len(paths) > 1:
            raise BadOption(
                "name", name, problem=f"is for one model, and {pattern} matches {len(paths)}: remove it"
            )
        for path in paths:
            yield name, ChatOptions(model_path=path, **settings)
    elif "model" in settings:
        yield name, ChatOptions(**settings)
    else:
        raise BadOption("an agent needs one of agent, model and launch")


def _with_paths(row: Mapping[str, Any], *, without: str = "") -> dict[str, Any]:
    return {name: Path(value) if name in _PATHS else value for name, value in row.items() if name != without}
