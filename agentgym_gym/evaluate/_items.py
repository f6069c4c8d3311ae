"""Read tasks and prompts from AgentGym's files.

AgentGym identifies a task by an item id, such as ``webshop_5238``: the environment and the task number. Its
files are JSON lists of objects with an ``item_id``. AgentTraj files also contain the trajectory, in
``conversations``. The first message of a trajectory is the prompt of the environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym.catalogue import environments
from agentgym_gym.errors import ArgumentName, BadFile, BadOption
from agentgym_gym.evaluate._tasks import is_tasks, parse_tasks, tasks_of

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

__all__ = [
    "SEEDS",
    "Item",
    "Seeds",
    "entries",
    "is_unicode",
    "item_id_of",
    "item_of",
    "items_of",
    "read_items",
    "read_prompts",
    "training_items",
    "validation_items",
]

SEEDS = 1_000
"""The number of seeds that "all" selects for an environment without numbered tasks."""

_MAX_SEEDS = 10_000_000

# AgentGym itself takes the number after the last underscore.
_ITEM_ID = re.compile(r"(?P<prefix>.+)_(?P<task>[0-9]{1,18})", re.DOTALL)

_SERVERS = ("lmrlgym_", "tool_")
"""Servers of several environments, which some of AgentGym's item ids begin with: ``lmrlgym_maze_3``."""


@dataclass(frozen=True)
class Seeds:
    """An environment without numbered tasks: each seed of its ``reset`` is a task.

    Attributes:
        id: Its gymnasium id.
    """

    id: str

    @property
    def name(self) -> str:
        """The gymnasium id, which is the only name of such an environment."""
        return self.id


@dataclass(frozen=True)
class Item:
    """A task of an environment: its number, or a seed if the environment has no numbered tasks."""

    environment: Environment | Seeds
    task_id: int

    @property
    def key(self) -> tuple[str, int]:
        """The key that identifies the item."""
        return self.environment.name, self.task_id


def items_of(environment: Environment | Seeds, tasks: str = "all", split: str | None = None) -> list[Item]:
    """Return the items that a task selection names.

    Args:
        environment: The environment.
        tasks: The task selection, such as ``0:50``, ``3``, ``1,2,5``, ``10:`` or ``all``, or the path of
            a file or folder of item ids for :func:`read_items`. Duplicates are dropped.
        split: The split of the tasks. By default, ``all`` means the training split, and task numbers may be
            of any split.

    Raises:
        BadOption: The split or a task does not exist, or the file names tasks of another environment.
    """
    path = Path(tasks)
    if not is_tasks(tasks) and not (tasks and path.exists()):
        raise BadOption(
            "tasks",
            tasks,
            "a selection such as '0:50', '3', '1,2,5', '10:' or 'all', or the path of an existing file of "
            "item ids",
        )
    if is_tasks(tasks):
        if isinstance(environment, Seeds):
            return [Item(environment, seed) for seed in _seeds(environment, tasks, split)]
        return [Item(environment, task) for task in tasks_of(environment, tasks, split)]
    if isinstance(environment, Seeds):
        raise BadFile(
            f"{path} contains item ids, and {environment.id} has no numbered tasks: pass seeds, such as 0:50",
            path=path,
        )
    items = read_items(path, split)
    other = next((item for item in items if item.environment.name != environment.name), None)
    if other is not None:
        raise BadFile(
            f"{path} contains tasks of {other.environment.name}, such as {other.task_id}; expected only "
            f"tasks of {environment.name}",
            path=path,
        )
    return list({item.key: item for item in items}.values())


def training_items(
    environment: Environment | Seeds, tasks: str = "all", split: str | None = None
) -> list[Item]:
    """Return the items to train on that a task selection names.

    Args:
        environment: The environment.
        tasks: The task selection, as for :func:`items_of`. The items of a file may be of any split.
        split: The split of the tasks, such as ``train``, or ``all``. By default the training split without
            tasks that another split holds out for evaluation.

    Raises:
        BadOption: The split or a task does not exist, or the task is not in the split.
    """
    if split is not None or isinstance(environment, Seeds) or not is_tasks(tasks):
        return items_of(environment, tasks, split)
    training = environment.training_split
    try:
        items = items_of(environment, tasks, training)
    except BadOption as error:
        raise error.with_advice(
            f", in the split {training} of {environment.name}; to train on tasks of other splits, pass ",
            ArgumentName("split"),
            "='all'",
        ) from None
    kept = [item for item in items if environment.held_out(item.task_id) is None]
    if not kept:
        raise BadOption(
            "tasks",
            tasks,
            problem=(
                f"of {environment.name} are all for evaluation; to train on them, pass ",
                ArgumentName("split"),
                "='all'",
            ),
        )
    return kept


def validation_items(
    environment: Environment | Seeds, training: Iterable[Item], split: str | None = None
) -> list[Item]:
    """Return the items for validation only; none if some training items must be kept out instead.

    Args:
        environment: The environment.
        training: The items to train on.
        split: The split for validation. By default ``dev``, unless there is none, or training uses it.

    Raises:
        BadOption: There is no such split.
    """
    if split is not None:
        return items_of(environment, "all", split)
    if isinstance(environment, Seeds) or "dev" not in environment.splits:
        return []
    dev = items_of(environment, "all", "dev")
    return dev if {item.key for item in dev}.isdisjoint(item.key for item in training) else []


def read_items(path: Path, split: str | None = None) -> list[Item]:
    """Return the items in an AgentGym file, or in all ``.json`` files of a folder, in order.

    Args:
        path: A file or folder. Subfolders are not searched.
        split: The split that every item must belong to; any by default.

    Raises:
        BadOption: A file cannot be read, or an item id does not name a task. The message includes both.
    """
    return [item_of(record, file, at, split) for file, at, record in entries(path)]


def read_prompts(path: Path) -> dict[str, str]:
    """Return the prompt of each environment in AgentTraj files: the first message of its trajectories.

    Args:
        path: A file or folder. Subfolders are not searched.

    Returns:
        The prompts by environment name.

    Raises:
        BadOption: A file cannot be read, a trajectory does not start with a user message, or trajectories of
            the same environment start differently.
    """
    prompts: dict[str, str] = {}
    firsts: dict[str, str] = {}
    for file, at, record in entries(path):
        name = item_of(record, file, at).environment.name
        item_id = record["item_id"]
        if record.get("conversations") is None:
            continue  # AgentEval items have no conversations
        text = _first_message(record["conversations"])
        if text is None:
            raise BadFile(
                f"{file}: the conversations of item {item_id!r:.80} should begin with a message "
                '{"from": "human", "value": "..."}',
                path=file,
            )
        if prompts.setdefault(name, text) != text:
            raise BadFile(
                f"{file}: the first messages of {firsts[name]!r:.80} and {item_id!r:.80} differ, so neither "
                f"is the prompt of {name}; put the right one into a separate file",
                path=file,
            )
        firsts.setdefault(name, item_id)
    return prompts


def item_id_of(environment: Environment, task_id: int) -> str:
    """Return the AgentGym item id of a task, such as ``webshop_5238``."""
    return f"{_prefixes(environment)[0]}_{task_id}"


def entries(path: Path) -> Iterator[tuple[Path, int, Any]]:
    """Yield every entry of AgentGym's files, as a tuple of file, index in the file (from 0) and value.

    Args:
        path: A file, or a folder whose ``.json`` files are read. Subfolders are not searched. A ``.jsonl``
            file has one entry per line.

    Raises:
        BadOption: A file cannot be read, or is not a list.
    """
    if path.is_dir():
        files = sorted(file for file in path.glob("*.json") if not file.name.startswith("."))
        if not files:
            raise BadFile(f"there is no .json file in the folder {path}", path=path)
    else:
        files = [path]
    for file in files:
        for at, record in enumerate(_load(file)):
            yield file, at, record


def _load(file: Path) -> list[Any]:
    try:
        content = file.read_bytes()
        if file.suffix == ".jsonl":  # the format of the rollouts that AgentGym's trainer saves
            loaded = [json.loads(line) for line in content.split(b"\n") if line.strip()]
        else:
            loaded = json.loads(content)
    except OSError as error:
        raise BadFile(f"cannot read {file}: {error.strerror or error}", path=file) from error
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{file} is not JSON: {error}", path=file) from error
    if not isinstance(loaded, list) or not loaded:
        raise BadFile(f'{file} should contain a JSON list such as [{{"item_id": "webshop_5238"}}]', path=file)
    return loaded


def item_of(record: Any, file: Path, at: int, split: str | None = None) -> Item:
    """Return the task that an entry names.

    Args:
        record: The entry.
        file: The file of the entry.
        at: The index of the entry in the file, from 0.
        split: The split that the task must belong to; any by default.

    Raises:
        BadOption: The entry does not name a task. The message includes the entry and the file.
    """
    item_id = record.get("item_id") if isinstance(record, dict) else None
    if item_id is None:
        raise BadFile(f"{file}: entry {at} has no item_id: {json.dumps(record):.80}", path=file)
    match = _ITEM_ID.fullmatch(item_id) if isinstance(item_id, str) else None
    if match is None:
        raise BadFile(
            f"{file}: item {item_id!r:.80} should name an environment and a task, such as 'webshop_5238'",
            path=file,
        )
    environment = _environment(match["prefix"])
    if environment is None:
        known = ", ".join(f"{_prefixes(each)[0]}_" for each in environments())
        raise BadFile(
            f"{file}: item {item_id!r:.80} names an unknown environment; items begin with {known}", path=file
        )
    task = int(match["task"])
    if not (environment.has_task(task) if split is None else task in environment.split(split)):
        chosen = environment.splits if split is None else {split: environment.split(split)}
        there = ", ".join(f"{min(ids)} to {max(ids)}" for ids in chosen.values())
        of = "" if split is None else f" in its split {split!r}"
        raise BadFile(
            f"{file}: item {item_id!r:.80}: {environment.name} has no task {task}{of}; it has {there}",
            path=file,
        )
    return Item(environment, task)


def _seeds(environment: Seeds, text: str, split: str | None) -> list[int]:
    if split is not None:
        raise BadOption(
            "split", split, problem=f"does not apply: {environment.id} has no numbered tasks, so no splits"
        )
    if any(part.endswith(":") for part in text.replace(" ", "").split(",")):
        raise BadOption(
            "tasks", text, problem=f"has no end, and {environment.id} has seeds: give one, as in 0:50"
        )
    return parse_tasks(f"0:{SEEDS}" if text == "all" else text, range(_MAX_SEEDS))


def _environment(prefix: str) -> Environment | None:
    name = prefix.lower()
    for server in _SERVERS:
        name = name.removeprefix(server)
    return next((each for each in environments() if name in _prefixes(each)), None)


def _prefixes(environment: Environment) -> list[str]:
    """Return the prefixes accepted in the environment's item ids, AgentGym's own prefix first."""
    names = [environment.name, *environment.aliases]
    return [name.lower() for name in ([environment.item_prefix] if environment.item_prefix else []) + names]


def _first_message(conversations: Any) -> str | None:
    first = conversations[0] if isinstance(conversations, list) and conversations else None
    if not isinstance(first, dict) or first.get("from") != "human":
        return None
    text = first.get("value")
    return text if isinstance(text, str) and text.strip() and is_unicode(text) else None


def is_unicode(text: str) -> bool:
    """Return whether text can be encoded as UTF-8: JSON can contain an escaped lone surrogate."""
    return text.encode("utf-8", "ignore").decode() == text
