"""The item files of a protocol, which AgentGym publishes and the user downloads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentgym_gym.data._items import Item, read_items
from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    from agentgym_gym._cli.protocols import Protocol, ProtocolEnvironment

__all__ = ["ItemFile", "read_item_files"]

_MOST = 5  # item files in an error message


@dataclass(frozen=True)
class ItemFile:
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


def read_item_files(
    protocol: Protocol, chosen: Sequence[ProtocolEnvironment], path: Path | None, *, every: bool
) -> Mapping[str, ItemFile]:
    """Return the items of the environments that need them, by the name of the environment.

    Args:
        protocol: The protocol.
        chosen: The environments to play.
        path: An item file, or a folder with the files that the protocol names; None if the user gave none.
        every: Whether each item in the file must be of an environment of the protocol.

    Raises:
        BadOption: A file is missing or invalid, or has items of other environments.
    """
    with_items = [each for each in chosen if each.items]
    if not with_items:
        if path is not None:
            raise BadOption(f"--items {path}: protocol {protocol.name} needs no item file: remove --items")
        return {}
    need = (
        f"protocol {protocol.name} plays the items of {_files(with_items)}, published at {protocol.published}"
    )
    if path is None:
        raise BadOption(f"{need}: give --items PATH, that file or a folder of such files")
    found: dict[str, ItemFile] = {}
    for environment in with_items:
        file = path / environment.items if path.is_dir() else path
        if path.is_dir() and not file.exists():
            continue
        items = read_items(file)
        if every:
            _check_all(items, file, protocol)
        own = [item.task_id for item in items if item.environment.name == environment.name]
        tasks = list(dict.fromkeys(own))
        if tasks:
            found[environment.name] = ItemFile(file, tasks)
    if not found:
        raise BadOption(
            f"--items {path} has no items of {', '.join(each.name for each in with_items)}: {need}"
        )
    return found


def _check_all(items: Sequence[Item], file: Path, protocol: Protocol) -> None:
    names = {each.name for each in protocol.environments if each.items}
    other = next((item.environment.name for item in items if item.environment.name not in names), None)
    if other is not None:
        raise BadOption(
            f"--items {file} has items of {other}, which protocol {protocol.name} does not play: remove "
            "them, or name the environment to play"
        )


def _files(environments: Sequence[ProtocolEnvironment]) -> str:
    named = [f"{each.items} ({each.name})" for each in environments]
    return ", ".join(named[:_MOST]) + (f" and {len(named) - _MOST} more" if len(named) > _MOST else "")
