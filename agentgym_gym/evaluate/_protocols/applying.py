"""Apply a protocol to runs: the settings that it states, the items that it names, and the deviations."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from agentgym_gym.errors import ArgumentName, BadOption
from agentgym_gym.evaluate._items import Item, read_items
from agentgym_gym.evaluate._protocols.applied import AppliedProtocol, Deviation
from agentgym_gym.evaluate._protocols.reading import NOT_STATED, Protocol, ProtocolEnvironment, read_protocol
from agentgym_gym.evaluate._resolve import resolve
from agentgym_gym.evaluate._run import ChatOptions, Run
from agentgym_gym.evaluate._selection import selection_text

__all__ = ["apply_protocols", "protocol_runs"]

_MOST = 5  # item files in an error message

UNRECORDED = frozenset({"headers", "server"})
"""Keys of `Run.env_kwargs` that a run does not record: headers may contain tokens."""


def protocol_runs(
    protocol: str,
    agent: str | ChatOptions | Callable[[], Any],
    *,
    items: Path | None = None,
    **settings: Any,
) -> list[Run]:
    """Return a run for each environment of a protocol.

    Args:
        protocol: Name of the protocol, or the path of its TOML file.
        agent: The agent of the runs.
        items: A folder with the item files that the protocol names. Environments without a file there are
            left out.
        settings: Settings of the runs; each that differs from the protocol is recorded as a deviation.

    Raises:
        BadOption: There is no such protocol, or it needs item files that are not there.
    """
    stated = read_protocol(protocol)
    files = _read_item_files(stated, stated.environments, items, every=True)
    return [
        Run(each.id, agent, protocol=protocol, items=items if each.items else None, **settings)
        for each in stated.environments
        if not each.items or each.name in files
    ]


def apply_protocols(runs: Iterable[Run]) -> Iterator[tuple[Run, AppliedProtocol | None]]:
    """Yield each run with the settings that its protocol states, and the protocol as it applies.

    Settings of the run take precedence over the protocol. A run without a protocol is yielded unchanged. Each
    file is read once.

    Raises:
        BadOption: A protocol is invalid, does not include the environment, or lacks its item file.
    """
    protocol_of, items_of = functools.cache(read_protocol), functools.cache(read_items)
    for run in runs:
        yield _apply(run, protocol_of, items_of)


def _apply(
    run: Run, protocol_of: Callable[[str], Protocol], items_of: Callable[[Path], Sequence[Item]]
) -> tuple[Run, AppliedProtocol | None]:
    if run.protocol is None:
        if run.items is not None:
            raise BadOption(
                "items",
                run.items,
                problem=("needs ", ArgumentName("protocol"), "; without one, give ", ArgumentName("tasks")),
            )
        return run, None
    protocol = protocol_of(run.protocol)
    stated = _stated(protocol, run.env)
    file = _read_item_files(protocol, [stated], run.items, every=False, items_of=items_of).get(stated.name)
    given, settings, deviations = _given(run), dict(stated.settings), list[Deviation]()
    if "env_kwargs" in given:
        given["env_kwargs"] = {**settings.get("env_kwargs", {}), **given["env_kwargs"]}
    if file is not None:
        _check_selection(protocol, given)
        settings["tasks"] = file.selection
        if stated.count is not None and stated.count != len(file.tasks):
            deviations.append(Deviation("items", len(file.tasks), stated.count))
    of_run = {"samples": protocol.samples, "seed": protocol.seed}
    deviations += _deviations(_public(given), {**settings, **of_run}, _DEFAULTS)
    model = _given(run.agent) if isinstance(run.agent, ChatOptions) else {}
    deviations += _deviations(model, stated.model_settings, _MODEL_DEFAULTS)
    replaced = {name for each in given for name in _REPLACES.get(each, ())}
    kept = {name: value for name, value in settings.items() if name not in replaced}
    if isinstance(kept.get("system_prompt"), str):
        kept["system_prompt"] = Path(kept["system_prompt"])
    of_run = {name: value for name, value in of_run.items() if value is not None}
    run = replace(run, **{**kept, **of_run, **given})
    if isinstance(run.agent, ChatOptions):
        run = replace(run, agent=_with_settings(run.agent, stated.model_settings))
    applied = AppliedProtocol(
        protocol.name,
        protocol.sha256,
        stated.metric,
        None if file is None else file.facts,
        deviations,
    )
    return run, applied


_DEFAULTS: Mapping[str, Any] = {"samples": 1}
_MODEL_DEFAULTS: Mapping[str, Any] = {}


def _given(options: Run | ChatOptions) -> dict[str, Any]:
    """Return the given settings that a protocol can state."""
    values = {each.name: getattr(options, each.name) for each in fields(options) if each.init}
    named = {"samples", "seed"} if isinstance(options, Run) else set()
    kept = {name: value for name, value in values.items() if name not in NOT_STATED - named}
    return {name: value for name, value in kept.items() if value is not None and value not in ((), {}, [])}


def _with_settings(model: ChatOptions, stated: Mapping[str, Any]) -> ChatOptions:
    given = _given(model)
    more = {name: value for name, value in stated.items() if name not in given}
    if "prompt" in more:
        more["prompt"] = Path(more["prompt"])
    return replace(model, **more)


def _public(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as a record has them."""
    public: dict[str, Any] = {
        name: str(value) if isinstance(value, Path) else value for name, value in given.items()
    }
    if "tasks" in public:
        public["tasks"] = selection_text(given["tasks"])
    if "env_kwargs" in public:
        own = given["env_kwargs"]
        public["env_kwargs"] = {name: value for name, value in own.items() if name not in UNRECORDED}
    return public


def _stated(protocol: Protocol, env: str) -> ProtocolEnvironment:
    name = resolve(env).source.name
    for each in protocol.environments:
        if each.name == name:
            return each
    names = ", ".join(each.name for each in protocol.environments)
    raise BadOption("env", env, problem=f"is not in protocol {protocol.name}, which includes {names}")


_REPLACES = {
    "limit": ("sample",),
    "sample": ("limit",),
    "tasks": ("positions", "sample", "limit"),
    "positions": ("tasks", "sample", "limit"),
}
"""The settings of a protocol that another setting replaces, as both select the tasks."""


def _deviations(
    given: Mapping[str, Any], stated: Mapping[str, Any], defaults: Mapping[str, Any]
) -> list[Deviation]:
    found = []
    for name, value in given.items():
        other = next((each for each in _REPLACES.get(name, ()) if each in stated), "")
        usual = stated.get(name, defaults.get(name))
        if name in _REPLACES and usual is None:
            usual = "all"
        if value == usual:
            continue
        if name not in stated and other:
            found.append(Deviation(name, value, stated[other], instead_of=other))
            continue
        found.append(Deviation(name, value, usual))
    return found


def _check_selection(protocol: Protocol, given: Mapping[str, Any]) -> None:
    name = next((each for each in ("tasks", "split", "positions") if each in given), None)
    if name is not None:
        raise BadOption(
            name,
            given[name],
            problem=(
                "and ",
                ArgumentName("items"),
                f" both select the tasks of protocol {protocol.name}: remove one",
            ),
        )


@dataclass(frozen=True)
class _ItemFile:
    """The items of one environment.

    Attributes:
        path: The file.
        tasks: The ids of the tasks, in the order of the file.
    """

    path: Path
    tasks: Sequence[int]

    @property
    def selection(self) -> str:
        """The tasks as text for a task selection."""
        return ",".join(map(str, self.tasks))

    @property
    def facts(self) -> dict[str, str]:
        """The name and the hash of the file, for the run's record."""
        return {"file": self.path.name, "sha256": hashlib.sha256(self.path.read_bytes()).hexdigest()}


def _read_item_files(
    protocol: Protocol,
    chosen: Sequence[ProtocolEnvironment],
    path: Path | None,
    *,
    every: bool,
    items_of: Callable[[Path], Sequence[Item]] = read_items,
) -> Mapping[str, _ItemFile]:
    """Return the items of the environments that need them, by the name of the environment.

    Args:
        protocol: The protocol.
        chosen: The environments to play.
        path: An item file, or a folder with the files that the protocol names; None if the user gave none.
        every: Whether each item in the file must be of an environment of the protocol.
        items_of: Reads an item file.

    Raises:
        BadOption: A file is missing or invalid, or has items of other environments.
    """
    with_items = [each for each in chosen if each.items]
    if not with_items:
        if path is not None:
            raise BadOption(
                "items",
                path,
                problem=f"does not apply: protocol {protocol.name} needs no item file; remove it",
            )
        return {}
    need = (
        f"protocol {protocol.name} plays the items of {_files(with_items)}, published at {protocol.published}"
    )
    if path is None:
        raise BadOption(
            (f"{need}: give ", ArgumentName("items"), "=PATH, that file or a folder of such files")
        )
    found: dict[str, _ItemFile] = {}
    for environment in with_items:
        file = path / environment.items if path.is_dir() else path
        if path.is_dir() and not file.exists():
            continue
        items = items_of(file)
        if every:
            _check_all(items, file, protocol)
        own = [item.task_id for item in items if item.environment.name == environment.name]
        tasks = list(dict.fromkeys(own))
        if tasks:
            found[environment.name] = _ItemFile(file, tasks)
    if not found:
        raise BadOption(
            "items", path, problem=f"has no items of {', '.join(each.name for each in with_items)}: {need}"
        )
    return found


def _check_all(items: Sequence[Item], file: Path, protocol: Protocol) -> None:
    names = {each.name for each in protocol.environments if each.items}
    other = next((item.environment.name for item in items if item.environment.name not in names), None)
    if other is not None:
        raise BadOption(
            "items",
            file,
            problem=f"has items of {other}, which protocol {protocol.name} does not play: remove them, or "
            "name the environment to play",
        )


def _files(environments: Sequence[ProtocolEnvironment]) -> str:
    named = [f"{each.items} ({each.name})" for each in environments]
    return ", ".join(named[:_MOST]) + (f" and {len(named) - _MOST} more" if len(named) > _MOST else "")
