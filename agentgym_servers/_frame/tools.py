"""The common part of the five tool servers: routes, action parsing, and the trial of a task.

A server passes its tasks to `tool_app`, with a function that makes the `Tools` of a task: the goal, the
functions' results and the score of an answer. Actions are parsed as by AgentGym's tool servers, but the input
is never executed: it must be a Python literal. As on AgentGym's servers, an agent's mistake results in an
observation.

A trial is scored once, when the agent calls ``finish``. Until then its reward is 0; afterwards neither the
reward nor ``done`` changes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from agentgym_gym.actions import MAX_ACTION_CHARS
from agentgym_gym.literals import expression, plain_value
from agentgym_servers._frame.app import Failed, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers._frame.request_models import EnvStepBody, EnvTaskBody, IdBody
from agentgym_servers._frame.tool_tasks import CallRefused

if TYPE_CHECKING:
    from fastapi import FastAPI

    from agentgym_gym.local_servers import ServerOptions

__all__ = ["ActionInput", "AnswerTools", "ToolError", "Tools", "Trial", "parse_action", "tool_app"]

T = TypeVar("T")

_NO_FORMAT = (
    'Format error, please response in the format of  "Action: [your action] with Action Input: '
    "[your action input]"
)
_NOT_PLAIN = "Parameters in action input are not valid, please change your action input."
_NO_ACTION = "cannot unpack non-iterable NoneType object"
_WITH = re.compile(r"with\s*Action Input:\s*")


class ToolError(Exception):
    """A function raised an error, which the agent observes as ``ERROR | KIND(TEXT)``.

    Args:
        kind: The name of the exception, as AgentGym's server would show it.
        text: The message.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text


class ActionInput:
    """The input of an action: a Python literal, normally a mapping of arguments by name."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getitem__(self, name: str) -> Any:
        """Return an argument.

        Raises:
            ToolError: There is no argument of that name, or the input is not a mapping.
        """
        try:
            return self._value[name]
        except (KeyError, IndexError, TypeError) as error:
            raise ToolError(type(error).__name__, str(error)) from None

    def get(self, name: str) -> Any:
        """Return an argument; None if there is none of that name."""
        return self._value.get(name) if isinstance(self._value, dict) else None

    def __contains__(self, name: str) -> bool:
        return isinstance(self._value, dict) and name in self._value


class Tools(ABC):
    """The functions of one trial, and the score of its answer.

    Class attributes:
        names: The functions in the order in which ``check_valid_actions`` lists them, including itself and
            ``finish`` if the server has them.

    Attributes:
        goal: The instruction for the agent.
    """

    names: ClassVar[tuple[str, ...]]
    goal: str

    @abstractmethod
    def call(self, name: str, arguments: ActionInput) -> object:
        """Call a function of `names`, except ``check_valid_actions`` and ``finish``.

        Returns:
            The result; its ``str`` is the observation.

        Raises:
            ToolError: The function failed.
            CallRefused: The function cannot do what the call requests.
        """

    @abstractmethod
    def finish(self, arguments: ActionInput) -> tuple[object, float]:
        """End the trial.

        Returns:
            The result, whose ``str`` is the observation; and the score from 0 to 1.

        Raises:
            ToolError: The input has no answer; the trial continues.
        """

    def unknown(self, name: str) -> str:
        """Return the observation for a function that does not exist."""
        return f"ERROR | Invalid action: {name}."


class AnswerTools(Tools):
    """Tools of a task that ends when the agent calls ``finish`` with an answer.

    Attributes:
        answer: The right answer; a list is sorted.
    """

    answer: Any

    def finish(self, arguments: ActionInput) -> tuple[object, float]:
        """Score an answer; the order of a list is ignored."""
        answer = arguments["answer"]
        if type(answer) is list:
            try:
                answer = sorted(answer)
            except TypeError as error:
                raise ToolError("TypeError", str(error)) from None
        return answer, self.judge(answer)

    def judge(self, answer: Any) -> float:
        """Return 1 if an answer equals the right one and has its type, else 0."""
        return float(_equal(answer, self.answer))


def _equal(one: Any, other: Any) -> bool:
    """Return whether two literals are equal; 105 and 105.0 are, 1 and True are not."""
    if type(one) is list and type(other) is list:
        return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def parse_action(text: str) -> tuple[str, ActionInput] | str:
    """Parse an action as AgentGym's tool servers do, in linear time.

    The action is a line with ``with Action Input:``; its input extends to the end of the text. The function
    is the text between the first ``Action:`` of the line and ``with Action Input:``.

    Returns:
        The name of the function and its input; or the observation if the text is not an action.

    Raises:
        ToolError: The line names no function, or its input is not a literal.
    """
    text = text.removesuffix("\n")
    last = text.rfind("\n") + 1
    for match in _WITH.finditer(text):
        if match.end() >= last:
            before = text[: match.start()].rstrip()
            line = before[before.rfind("\n") + 1 :].lstrip()
            return _parse_line(f"{line} with Action Input: {text[match.end() :]}")
    return _NO_FORMAT


def _parse_line(line: str) -> tuple[str, ActionInput]:
    start = line.find("Action:") + len("Action:")
    separator = _WITH.search(line, start) if start >= len("Action:") else None
    if separator is None:
        raise ToolError("TypeError", _NO_ACTION)
    node = expression(line[separator.end() :]) if len(line) <= MAX_ACTION_CHARS else None
    try:
        if node is None:
            raise ValueError
        value = plain_value(node)
        repr(value)  # fails if a number has more digits than Python converts
    except (ValueError, RecursionError):
        raise ToolError("Exception", _NOT_PLAIN) from None
    return line[start : separator.start()].strip(), ActionInput(value)


class Trial:
    """One environment: a task and its progress.

    Args:
        task_id: The id of the task.
        start: Makes the tools of a task.

    Raises:
        Failed: There is no such task.
    """

    def __init__(self, task_id: int, start: Callable[[int], Tools]) -> None:
        self._start = start
        self._task_id = task_id
        self.reset(task_id)

    def reset(self, task_id: int | None = None) -> str:
        """Start a task, or restart the current one; return the first observation.

        Raises:
            Failed: There is no such task. The current trial then continues unchanged.
        """
        task_id = self._task_id if task_id is None else task_id
        self._tools = self._start(task_id)
        self._task_id = task_id
        self._reward = 0.0
        self._done = False
        return self.observation

    @property
    def observation(self) -> str:
        """The goal, the only part of a trial that the server shows."""
        return (
            "Now new trial starts.\nYou should perform actions to accomplish the goal: "
            f"{self._tools.goal}\nGive me one action."
        )

    def step(self, text: str) -> dict[str, Any]:
        """Play an agent's text."""
        try:
            action = parse_action(text)
            observation = action if isinstance(action, str) else _observation_of(str(self._play(*action)))
        except ToolError as error:
            observation = _observation_of(f"ERROR | {error.kind}({error.text})")
        except CallRefused as refusal:
            observation = _observation_of(str(refusal))
        return {"observation": observation, "reward": self._reward, "done": self._done}

    def _play(self, name: str, arguments: ActionInput) -> object:
        if name not in self._tools.names:
            return self._tools.unknown(name)
        if name == "check_valid_actions":
            return f"You can use following valid actions: {list(self._tools.names)}"
        if name == "finish":
            result, score = self._tools.finish(arguments)
            if not self._done:
                self._reward, self._done = score, True
            return result
        return self._tools.call(name, arguments)


def _observation_of(text: str) -> str:
    return f"Observation: {text}\nGive me one action."


def tool_app(
    title: str, options: ServerOptions, tasks: Sequence[T], tools_of: Callable[[T], Tools]
) -> FastAPI:
    """Build a tool server with no environments yet.

    Args:
        title: The display name of the environment.
        options: The server's options.
        tasks: The tasks, by their ids.
        tools_of: Makes the tools of a task when it starts.
    """
    trials = HeldEnvs[Trial](options)
    app = new_app(title, options, plain_errors=True)

    def start(task_id: int) -> Tools:
        if task_id not in range(len(tasks)):
            raise Failed(f"There is no task {task_id}.")
        return tools_of(tasks[task_id])

    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return trials.ids()

    @app.post("/create", response_model=None)
    async def create(body: IdBody) -> int:
        return trials.add(lambda _: Trial(body.id, start))

    @app.post("/reset", response_model=None)
    async def reset(body: EnvTaskBody) -> str:
        return trials.get(body.env_idx).reset(body.id)

    @app.post("/step", response_model=None)
    async def step(body: EnvStepBody) -> dict[str, Any]:
        return trials.get(body.env_idx).step(body.action)

    @app.get("/observation", response_model=None)
    async def observation(env_idx: int) -> str:
        return trials.get(env_idx).observation

    return app
