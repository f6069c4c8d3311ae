"""An agent that plays WebArena's reference solutions."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym._files import find_files
from agentgym_gym._text import shown
from agentgym_gym.errors import BadFile, BadOption
from agentgym_gym.evaluate._runs import EPISODES
from agentgym_gym.literals import expression, plain_value
from agentgym_gym.rollout._env_facts import env_id_of

if TYPE_CHECKING:
    from agentgym_gym.actions import Action, Grammar
    from agentgym_gym.evaluate._text_env import TextEnv

__all__ = ["ReferenceAgent", "holds_references"]

_KEY = "reference_action_sequence"

# The methods of WebArena's ``page`` that need no element, and the equivalent actions of AgentGym's server
# (create_playwright_action in WebArena's browser_env/actions.py).
_EQUIVALENT = {
    "press": "press",
    "keyboard.press": "press",
    "scroll": "scroll",
    "goto": "goto",
    "page_focus": "tab_focus",
    "new_tab": "new_tab",
    "go_back": "go_back",
    "go_forward": "go_forward",
    "page_close": "close_tab",
    "stop": "stop",
}


class ReferenceAgent:
    """Plays the ``reference_action_sequence`` of WebArena's task files, like its teacher forcing agent.

    A sequence with the tag ``id_accessibility_tree`` already uses the action syntax of AgentGym's server. A
    sequence with the tag ``playwright`` is supported if it needs no element, because this server has no
    locators. The agent does not start a task unless it can play the whole sequence. It gives up after the
    last action.

    Args:
        path: A JSON file with a task or a list of tasks, or a folder of such files with names that end in
            ``.json``.

    Raises:
        BadOption: A file cannot be read or is not a task file, or two files have different sequences for a
            task.
    """

    name = "replay"
    blocking = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._references: dict[int, _Reference] = {}
        for file, at, task in _tasks(path):
            reference = _reference(file, at, task)
            if reference is None:
                continue
            other = self._references.setdefault(reference.task_id, reference)
            if (other.tag, other.actions) != (reference.tag, reference.actions):
                raise BadFile(
                    f"{other.file} and {file} give task {reference.task_id} different sequences: keep one",
                    path=file,
                )
        self._left: Iterator[Action] = iter(())

    def refusal(self, env: TextEnv, task_id: int) -> str | None:
        """Return the reason that a task cannot be played, or None if it can."""
        try:
            self._actions(env, task_id)
        except BadOption as error:
            return str(error)
        return None

    def reset(self, env: TextEnv, observation: str, info: dict[str, Any]) -> None:
        """Look up the task by its id.

        Raises:
            BadOption: The task has no sequence, or the environment does not support its actions.
        """
        self._left = iter(self._actions(env, info.get("task_id", -1)))

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action, or None after the last one."""
        return next(self._left, None)

    def _actions(self, env: TextEnv, task_id: int) -> list[Action]:
        grammar: Grammar | None = getattr(env.unwrapped, "grammar", None)
        if grammar is None or not all(map(grammar.has_function, _EQUIVALENT.values())):
            raise BadFile(
                f"{self.path} contains tasks of WebArena, which {env_id_of(env)} cannot play", path=self.path
            )
        reference = self._references.get(task_id)
        if reference is None:
            raise BadFile(f"{self.path} has no task {task_id} with a {_KEY}", path=self.path)
        return [_convert_action(action, reference, grammar) for action in reference.actions]


@dataclass(frozen=True)
class _Reference:
    file: Path
    task_id: int
    tag: str
    actions: tuple[str, ...]


def holds_references(path: Path) -> bool:
    """Return whether a path probably contains task files, not a run.

    Args:
        path: A file or a folder.
    """
    if path.is_dir():
        return next(find_files(path, EPISODES), None) is None
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return path.suffix == ".json"  # the agent then reports the error
    return isinstance(value, list) or (isinstance(value, dict) and "messages" not in value)


def _tasks(path: Path) -> Iterator[tuple[Path, int, Any]]:
    """Yield the file, the index in the file and the JSON value of every task."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise BadFile(
            f"{path} contains neither a run nor task files: there is no .json file in it", path=path
        )
    for file in files:
        try:
            value = json.loads(file.read_bytes())
        except OSError as error:
            raise BadFile(f"cannot read {file}: {error.strerror or error}", path=file) from error
        except (ValueError, RecursionError) as error:
            raise BadFile(f"{file} is not JSON: {error}", path=file) from None
        for at, task in enumerate(value if isinstance(value, list) else [value]):
            yield file, at, task


def _reference(file: Path, at: int, task: Any) -> _Reference | None:
    """Return the sequence of a task, or None if it has none, like most published tasks."""
    task_id = task.get("task_id") if isinstance(task, dict) else None
    if not isinstance(task_id, int) or isinstance(task_id, bool):
        raise BadFile(
            f"{file}: entry {at} is not a task of WebArena: it has no number under 'task_id'", path=file
        )
    sequence = task.get(_KEY)
    if sequence is None:
        return None
    tag, actions = (
        (sequence.get("action_set_tag"), sequence.get("action_sequence"))
        if isinstance(sequence, dict)
        else (0, 0)
    )
    if isinstance(actions, str):
        actions = actions.splitlines()
    if (
        not isinstance(tag, str)
        or not isinstance(actions, list)
        or not all(isinstance(a, str) for a in actions)
    ):
        raise BadFile(
            f"{file}: the {_KEY} of task {task_id} should have an 'action_set_tag', and an 'action_sequence' "
            "of texts",
            path=file,
        )
    return _Reference(file, task_id, tag, tuple(action.strip() for action in actions if action.strip()))


def _convert_action(action: str, reference: _Reference, grammar: Grammar) -> Action:
    """Convert an action of a sequence to an action of the server.

    Raises:
        BadOption: The server has no equivalent action; the message names the task and the action.
    """
    where = f"{reference.file}: task {reference.task_id}"
    if reference.tag not in {"id_accessibility_tree", "playwright"}:
        raise BadOption(
            f"{where} cannot be played: its action_set_tag {shown(reference.tag)} is neither "
            "'id_accessibility_tree' nor 'playwright'"
        )
    try:
        return grammar.parse(action) if reference.tag != "playwright" else _parse_playwright(action, grammar)
    except (ValueError, RecursionError) as error:  # an ActionError is a ValueError
        raise BadOption(f"{where} cannot be played: {shown(action)}: {error}") from None


def _parse_playwright(code: str, grammar: Grammar) -> Action:
    """Parse a method call on the page, without executing it.

    Raises:
        ValueError: The method needs an element.
        ActionError: The arguments are invalid.
    """
    call = expression(code)
    name = "" if not isinstance(call, ast.Call) else ast.unparse(call.func).removeprefix("page.")
    if not isinstance(call, ast.Call) or name not in _EQUIVALENT or call.keywords:
        raise ValueError(
            "AgentGym's server accepts element numbers, not locators of Playwright; supported are "
            f" {', '.join(f'page.{each}' for each in _EQUIVALENT)}"
        )
    function = _EQUIVALENT[name]
    values = [each.id if isinstance(each, ast.Name) else plain_value(each) for each in call.args]
    names = grammar.signature(function)
    if len(values) > len(names):
        raise ValueError(f"page.{name} accepts {len(names)} arguments")
    arguments = dict(zip(names, values, strict=False))
    if function == "stop":
        arguments.setdefault(names[0], "")
    return grammar.from_call(function, arguments)
