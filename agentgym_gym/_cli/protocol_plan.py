"""Apply a protocol: the plan of a run, its deviations from the protocol, and its item files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from agentgym_gym._cli.plans import AgentPlan, EnvironmentPlan, RunPlan
from agentgym_gym._cli.protocols import Protocol, ProtocolEnvironment, read_protocol
from agentgym_gym._cli.resolve_env import resolve
from agentgym_gym.data._items import Item, read_items
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._protocol import AppliedProtocol, Deviation

__all__ = ["GivenSettings", "plan_under"]


@dataclass(frozen=True)
class GivenSettings:
    """The options given beside a protocol, as fields of the plans.

    Attributes:
        environment: Fields of an `EnvironmentPlan`.
        model: Fields of an `AgentPlan`.
        run: Fields of a `RunPlan`.
    """

    environment: Mapping[str, Any]
    model: Mapping[str, Any]
    run: Mapping[str, Any]


def plan_under(
    name: str, *, only: str | None, items: Path | None, agents: Sequence[AgentPlan], given: GivenSettings
) -> RunPlan:
    """Return the plan of a run under a protocol.

    Args:
        name: Name of the protocol, or the path of its file.
        only: The environment to play; all of the protocol by default.
        items: An item file, or a folder with the item files of several environments.
        agents: The agents.
        given: The options given beside the protocol, which take precedence.

    Raises:
        BadOption: The protocol is invalid, does not include the environment, or lacks its item file.
    """
    protocol = read_protocol(name)
    chosen = _chosen(protocol, only)
    tasks = _Items(protocol, chosen, items, all_played=only is None).by_environment
    settings = {name: value for name, value in given.environment.items() if name not in _NEUTRAL}
    of_run = _deviations(
        {name: value for name, value in given.run.items() if name in {"samples", "seed"}},
        {"samples": protocol.samples, "seed": protocol.seed},
        RunPlan,
    )
    environments = []
    for each in chosen:
        if each.items and each.id not in tasks:
            continue
        stated, own = dict(each.settings), tasks.get(each.id)
        if own is not None:
            _check_selection(given.environment, protocol.name)
            stated["tasks"] = own.selection
        applied = AppliedProtocol(
            protocol.name,
            protocol.sha256,
            each.metric,
            items=None if own is None else own.facts,
            deviations=[
                *([] if own is None else own.deviations(each.count)),
                *of_run,
                *_deviations(settings, stated, EnvironmentPlan),
                *_deviations(given.model, each.model_settings, AgentPlan),
            ],
            model_settings={
                name: value for name, value in each.model_settings.items() if name not in given.model
            },
        )
        kept = {name: value for name, value in stated.items() if _REPLACED_BY.get(name) not in settings}
        environments.append(EnvironmentPlan(id=each.id, protocol=applied, **{**kept, **given.environment}))
    run = {"samples": protocol.samples, "seed": protocol.seed, **given.run}
    return RunPlan(environments=environments, agents=agents, **run)


# Options that change no result, except those of the model itself.
_NEUTRAL = frozenset(
    "server timeout isolate env_timeout base_url api_key_variable launch engine_arguments engine_python "
    "model_timeout retry_seconds".split()
)
_REPLACED_BY = {"limit": "sample", "sample": "limit", "tasks": "positions", "positions": "tasks"}
"""Settings that exclude each other: an option replaces the other one of the protocol."""


def _deviations(given: Mapping[str, Any], stated: Mapping[str, Any], plan: type) -> list[Deviation]:
    defaults = {
        each.name: each.default_factory() if each.default is MISSING else each.default  # type: ignore[misc]
        for each in fields(plan)
    }
    found = []
    for name, value in given.items():
        if name in _NEUTRAL:
            continue
        other = _REPLACED_BY.get(name, "")
        if name not in stated and other in stated:
            found.append(Deviation(name, value, stated[other], instead_of=other))
        elif value != stated.get(name, defaults[name]):
            usual = stated.get(name, defaults[name])
            found.append(Deviation(name, value, None if usual in ("", "all", [], {}) else usual))
    return found


def _chosen(protocol: Protocol, only: str | None) -> list[ProtocolEnvironment]:
    if only is None:
        return list(protocol.environments)
    wanted = resolve(only).name
    chosen = [each for each in protocol.environments if each.id == wanted]
    if not chosen:
        names = ", ".join(_short(each.id) for each in protocol.environments)
        raise BadOption(f"protocol {protocol.name} does not include {only}; it includes {names}")
    return chosen


def _check_selection(given: Mapping[str, Any], name: str) -> None:
    selecting = next((each for each in ("tasks", "split", "positions") if each in given), None)
    if selecting is not None:
        raise BadOption(
            f"{selecting}={given[selecting]!r:.80} and --items both select the tasks of protocol {name}: "
            "remove one"
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
        return ",".join(map(str, self.tasks))

    @property
    def facts(self) -> dict[str, str]:
        return {"file": self.path.name, "sha256": hashlib.sha256(self.path.read_bytes()).hexdigest()}

    def deviations(self, count: int | None) -> list[Deviation]:
        """Return the deviation from the number of published items, if it differs."""
        differs = count is not None and len(self.tasks) != count
        return [Deviation("items", len(self.tasks), count)] if differs else []


class _Items:
    """The item files of a run.

    Args:
        protocol: The protocol.
        chosen: The environments to play.
        path: An item file, or a folder with the files that the protocol names; None if not given.
        all_played: Whether all environments of the protocol are to be played, if they have items.

    Attributes:
        by_environment: The items by the id of the environment.

    Raises:
        BadOption: An item file is missing or invalid, or has items of other environments.
    """

    def __init__(
        self,
        protocol: Protocol,
        chosen: Sequence[ProtocolEnvironment],
        path: Path | None,
        *,
        all_played: bool,
    ) -> None:
        self._protocol = protocol
        self._all_played = all_played
        self.by_environment: dict[str, _ItemFile] = {}
        wanting = [each for each in chosen if each.items]
        if path is not None and not wanting:
            raise BadOption(f"--items {path}: protocol {protocol.name} needs no item file: remove --items")
        if path is None and wanting:
            raise BadOption(
                f"protocol {protocol.name} plays the items of {_files(wanting)}, published at "
                f"{protocol.published}: give --items PATH, that file or a folder of such files"
            )
        if path is None:
            return
        for each in wanting:
            file = path / each.items if path.is_dir() else path
            if path.is_dir() and not file.exists():
                continue
            tasks = self._tasks(read_items(file), file, each)
            if tasks:
                self.by_environment[each.id] = _ItemFile(file, tasks)
        if not self.by_environment:
            raise BadOption(
                f"--items {path} has no items of {', '.join(_short(each.id) for each in wanting)}: protocol "
                f"{protocol.name} plays the items of {_files(wanting)}, published at {protocol.published}"
            )

    def _tasks(self, items: Sequence[Item], file: Path, environment: ProtocolEnvironment) -> list[int]:
        known = {resolve(each.id).source.name for each in self._protocol.environments if each.items}
        other = next((item for item in items if item.environment.name not in known), None)
        if other is not None and self._all_played:
            raise BadOption(
                f"--items {file} has items of {other.environment.name}, which protocol "
                f"{self._protocol.name} does not play: remove them from the file, or name an environment"
            )
        name = resolve(environment.id).source.name
        return list(dict.fromkeys(item.task_id for item in items if item.environment.name == name))


def _files(environments: Sequence[ProtocolEnvironment]) -> str:
    named = [f"{each.items} ({_short(each.id)})" for each in environments]
    return ", ".join(named[:_MOST]) + (f" and {len(named) - _MOST} more" if len(named) > _MOST else "")


_MOST = 5  # item files in an error message


def _short(env_id: str) -> str:
    return env_id.rpartition("/")[2]
