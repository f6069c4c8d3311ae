"""The plan of a run under a protocol, with its deviations from the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_gym._cli.plans import UNRECORDED, AgentPlan, EnvironmentPlan, RunPlan
from agentgym_gym._cli.protocol_items import ItemFile, read_item_files
from agentgym_gym._cli.protocols import NOT_STATED, Protocol, ProtocolEnvironment, read_protocol
from agentgym_gym._cli.resolve_env import resolve
from agentgym_gym.errors import Argument, BadOption
from agentgym_gym.evaluate._protocol import AppliedProtocol, Deviation

__all__ = ["GivenSettings", "plan_under"]


@dataclass(frozen=True)
class GivenSettings:
    """The options given beside a protocol.

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
    files = read_item_files(protocol, chosen, items, every=only is None)
    environments = [
        _environment(protocol, each, files.get(each.name), given)
        for each in chosen
        if not each.items or each.name in files
    ]
    run = {"samples": protocol.samples, "seed": protocol.seed, **given.run}
    return RunPlan(environments=environments, agents=agents, **run)


def _chosen(protocol: Protocol, only: str | None) -> list[ProtocolEnvironment]:
    if only is None:
        return list(protocol.environments)
    name = resolve(only).source.name
    chosen = [each for each in protocol.environments if each.name == name]
    if not chosen:
        names = ", ".join(each.name for each in protocol.environments)
        raise BadOption(f"protocol {protocol.name} does not include {only}; it includes {names}")
    return chosen


def _environment(
    protocol: Protocol, stated: ProtocolEnvironment, file: ItemFile | None, given: GivenSettings
) -> EnvironmentPlan:
    settings, deviations = dict(stated.settings), list[Deviation]()
    own, public = dict(given.environment), dict(given.environment)
    if "env_kwargs" in own:
        own["env_kwargs"] = {**settings.get("env_kwargs", {}), **own["env_kwargs"]}
        public["env_kwargs"] = {
            name: value for name, value in own["env_kwargs"].items() if name not in UNRECORDED
        }
    if file is not None:
        _check_selection(protocol, given)
        settings["tasks"] = file.selection
        if stated.count is not None and stated.count != len(file.tasks):
            deviations.append(Deviation("items", len(file.tasks), stated.count))
    of_run = {name: value for name, value in given.run.items() if name in {"samples", "seed"}}
    deviations += [
        *_deviations(of_run, {"samples": protocol.samples, "seed": protocol.seed}, RunPlan()),
        *_deviations(public, settings, EnvironmentPlan()),
        *_deviations(given.model, stated.model_settings, AgentPlan()),
    ]
    applied = AppliedProtocol(
        protocol.name,
        protocol.sha256,
        stated.metric,
        None if file is None else file.facts,
        deviations,
        {name: value for name, value in stated.model_settings.items() if name not in given.model},
    )
    replaced = {name for each in own for name in _REPLACES.get(each, ())}
    kept = {name: value for name, value in settings.items() if name not in replaced}
    return EnvironmentPlan(id=stated.id, protocol=applied, **{**kept, **own})


_REPLACES = {
    "limit": ("sample",),
    "sample": ("limit",),
    "tasks": ("positions", "sample", "limit"),
    "positions": ("tasks", "sample", "limit"),
}
"""The settings of a protocol that an option replaces, as both select the tasks."""


def _deviations(given: Mapping[str, Any], stated: Mapping[str, Any], defaults: object) -> list[Deviation]:
    found = []
    for name, value in given.items():
        other = next((each for each in _REPLACES.get(name, ()) if each in stated), "")
        usual = stated.get(name, getattr(defaults, name))
        if name in NOT_STATED or value == usual:
            continue
        if name not in stated and other:
            found.append(Deviation(name, value, stated[other], instead_of=other))
            continue
        if usual in (None, "", [], {}):
            usual = "all" if name in _REPLACES else None
        found.append(Deviation(name, value, usual))
    return found


def _check_selection(protocol: Protocol, given: GivenSettings) -> None:
    name = next((each for each in ("tasks", "split", "positions") if each in given.environment), None)
    if name is not None:
        raise BadOption(
            Argument(name),
            f"={given.environment[name]!r:.80} and --items both select the tasks of protocol "
            f"{protocol.name}: remove one",
        )
