"""The environments as inspect_ai tasks: ``inspect eval agentgym_gym/WebShop --model openai/gpt-5``.

inspect_ai imports this module through its entry point, which registers the tasks. This module imports
inspect_ai at the top, so no other module of this library imports it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import anyio
import sniffio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageTool, ChatMessageUser
from inspect_ai.scorer import Score, accuracy, mean, scorer, stderr
from inspect_ai.solver import solver
from inspect_ai.tool import ToolDef, ToolParams
from inspect_ai.viewer import ViewerConfig

from agentgym_gym._text import redact
from agentgym_gym.aio import AsyncAgentGymEnv
from agentgym_gym.catalogue import BUILT_IN, find
from agentgym_gym.errors import BadOption, Fault
from agentgym_gym.evaluate._tasks import tasks_of
from agentgym_gym.evaluate._world import world_of
from agentgym_gym.rollout._history import NOT_CARRIED_OUT, played_call

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, ChatMessageAssistant
    from inspect_ai.scorer import Scorer, Target
    from inspect_ai.solver import Generate, Solver, TaskState

    from agentgym_gym.catalogue import Environment, OnUnknown

__all__ = ["EPISODE", "TASKS", "environment_task", "play", "score", "success"]

EPISODE = "agentgym_episode"
"""Key of the episode's state in a sample's store."""

_CLOSE_SECONDS = 30.0  # timeout for releasing the remote environment of a cancelled sample
_SEXAGESIMAL = 60  # YAML 1.1 parses 10:20 as 620; the result is never below 60
_STOPPED = {"max_tokens": "reply_cut", "model_length": "context_overflow"}


def environment_task(
    environment: str,
    *,
    tasks: str | int | Sequence[str | int] = "all",
    split: str | None = None,
    action_format: str = "react",
    tools: Literal["text", "native"] = "text",
    server: str | None = None,
    max_turns: int | None = None,
    parser: Literal["default", "agentgym"] = "default",
    on_unknown: OnUnknown | None = None,
    timeout: float | None = None,
) -> Task:
    """Return an environment as an inspect_ai task. Several samples of a task are inspect_ai's epochs.

    Args:
        environment: Name of the environment, such as ``"WebShop"``, or of your own registered one.
        tasks: The tasks: ``0:50``, ``3``, ``1,2,5``, ``10:`` or ``all``; or a list of such texts and ids.
        split: The split to select from. By default ``all`` selects the split ``test``, else ``dev``, else the
            first, and any other text selects from all splits.
        action_format: Format of the action in a reply. Native tools have their own format.
        tools: ``text``: the model writes its action in its reply. ``native``: the model calls a tool.
        server: URL of the server, or several, separated by commas; by default from the environment variable,
            otherwise a local server. The log contains this URL, so set a URL with a password through the
            variable.
        max_turns: Turn limit, 0 for none; by default AgentGym's own limit.
        parser: Parser of the replies: ``agentgym`` parses like AgentGym's own client.
        on_unknown: Handling of actions that are unknown to the environment.
        timeout: Timeout in seconds for each server reply.

    Raises:
        BadOption: A task or an option is invalid.
        UnknownEnvironment: The environment does not exist.
    """
    known = find(environment)
    if tools not in ("text", "native"):
        raise BadOption("tools", tools, "'text' or 'native'")
    if server is not None and redact(server) != server:
        raise BadOption(
            "server",
            redact(server),
            problem="contains a password, and inspect_ai logs the arguments of tasks: set the environment "
            f"variable {known.variable} instead",
        )
    if split is None and tasks == "all":
        split = known.evaluation_split
    options: dict[str, Any] = {
        "server": server,
        "split": split,
        "action_format": "tool_calls" if tools == "native" else action_format,
        "parser": parser,
        "on_unknown": on_unknown,
    }
    if max_turns is not None:
        options["max_turns"] = max_turns or None
    if timeout is not None:
        options["timeout"] = timeout
    AsyncAgentGymEnv(known.name, **options)  # reports a mistyped option here, not in every sample
    samples = [
        Sample(input=f"{known.name}, task {task_id}", id=task_id, metadata={"task_id": task_id})
        for task_id in _select_tasks(tasks, known, split)
    ]
    return Task(
        dataset=MemoryDataset(samples, name=known.name),
        solver=play(known.name, native_tools=tools == "native", **options),
        scorer=[success(), score()],
        version=known.version,
        viewer=ViewerConfig(trust_content=False),  # text is never rendered or linked
    )


@solver
def play(environment: str, *, native_tools: bool = False, **options: Any) -> Solver:
    """Play the task in a sample's metadata, in a new environment.

    The sample's store contains the episode so far. If a limit of inspect_ai ends the episode, it is scored by
    its state at that point.

    Args:
        environment: Name of the environment in the catalogue.
        native_tools: Whether to offer the actions to the model as tools.
        **options: Options of `AsyncAgentGymEnv`.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if sniffio.current_async_library() != "asyncio":
            raise BadOption("the environments require asyncio: unset INSPECT_ASYNC_BACKEND")
        env = AsyncAgentGymEnv(environment, **options)
        try:
            return await _Game(env, state, generate, native_tools=native_tools).play()
        finally:  # limits and the user may cancel a sample at any await
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await env.close()

    return solve


class _Game:
    """One sample during its episode."""

    def __init__(
        self, env: AsyncAgentGymEnv, state: TaskState, generate: Generate, *, native_tools: bool
    ) -> None:
        self._env = env
        self._state = state
        self._generate = generate
        self._native = native_tools
        self._world: str | None = None

    async def play(self) -> TaskState:
        state = self._state
        try:
            observation, info = await self._env.reset(options={"task_id": state.metadata["task_id"]})
        except Fault as fault:
            self._note({"ending": "fault", "fault": fault.as_dict()})
            return state
        state.messages = [
            ChatMessageSystem(content=self._env.system_prompt),
            ChatMessageUser(content=observation),
        ]
        if self._native:
            state.tools = [*map(_tool, self._env.tools)]
        self._world = world_of(self._env.environment.id, {"served_by": [info.get("served_by")]})
        ending = "limit"  # the ending if generate or appending a message raises
        self._note(_episode_state(info, ending))
        while ending == "limit":
            state = self._state = await self._generate(state, tool_calls="none")
            stopped = _STOPPED.get(state.output.stop_reason)
            if stopped is not None:
                self._note(_episode_state(info, stopped))
                return state
            reply = state.output.message
            observation, _, terminated, truncated, info = await self._env.step(self._action(reply))
            if terminated or truncated:
                ending = "fault" if "fault" in info else "terminated" if terminated else "truncated"
            self._note(_episode_state(info, ending))
            for message in self._answers(reply, observation, info):
                state.messages.append(message)
        return state

    def _action(self, reply: ChatMessageAssistant) -> Any:
        return self._calls(reply) or reply.text

    def _calls(self, reply: ChatMessageAssistant) -> list[dict[str, str]]:
        calls = reply.tool_calls if self._native else None
        return [
            # For arguments that are not JSON, inspect_ai keeps only the error. It fails to parse here too.
            {
                "name": call.function,
                "arguments": call.parse_error or json.dumps(call.arguments, ensure_ascii=False),
            }
            for call in calls or ()
        ]

    def _answers(
        self, reply: ChatMessageAssistant, observation: str, info: Mapping[str, Any]
    ) -> list[ChatMessage]:
        """Return the observation as messages, with one tool result for each call."""
        calls = self._calls(reply)
        if not calls:
            return [ChatMessageUser(content=observation)]
        answers = [NOT_CARRIED_OUT] * len(calls)
        answers[min(played_call(info), len(calls) - 1)] = observation
        return [
            ChatMessageTool(content=answer, tool_call_id=call.id, function=call.function)
            for call, answer in zip(reply.tool_calls or (), answers, strict=True)
        ]

    def _note(self, episode: dict[str, Any]) -> None:
        self._state.store.set(EPISODE, {**episode, "world": self._world})


def _episode_state(info: dict[str, Any], ending: str) -> dict[str, Any]:
    """Return the episode's state for the store, from the info of its last step."""
    kept = ("score", "success", "turn", "goal", "agentgym_score", "fault")
    return {"ending": ending, **{name: info[name] for name in kept if name in info}}


def _tool(tool: dict[str, Any]) -> Any:
    """Return an action as a tool for the model. The environment executes the calls.

    Args:
        tool: A function tool in the format of the OpenAI chat API.
    """

    async def executed_by_the_environment() -> str:  # one per tool: inspect_ai sets its attributes
        raise NotImplementedError

    described = tool["function"]
    return ToolDef(
        executed_by_the_environment,
        name=described["name"],
        description=described["description"],
        parameters=ToolParams.model_validate(described["parameters"]),
    ).as_tool()


@scorer(metrics=[accuracy(), stderr()])
def success() -> Scorer:
    """Score success as reported by the environment; a faulted episode is unscored."""
    return _scorer("success")


@scorer(metrics=[mean(), stderr()])
def score() -> Scorer:
    """Score an episode by the environment's score; a faulted episode is unscored."""
    return _scorer("score")


def _scorer(name: str) -> Scorer:
    async def judge(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - inspect_ai names them
        episode = state.store.get(EPISODE, {})
        fault = episode.get("fault")
        if fault is not None:
            return Score.unscored(reason="fault", explanation=f"{fault['kind']}: {fault['message']}")
        if name not in episode:
            return Score.unscored(reason="not_played", explanation="The episode did not start.")
        world = "" if episode["world"] is None else f"; played on: {episode['world']}"
        return Score(value=float(episode[name]), explanation=f"ended by: {episode['ending']}{world}")

    return judge


def _select_tasks(
    tasks: str | int | Sequence[str | int], environment: Environment, split: str | None
) -> list[int]:
    """Return task ids.

    Raises:
        BadOption: The tasks do not exist, or YAML has turned a range into a number.
    """
    if isinstance(tasks, int) and tasks >= _SEXAGESIMAL:
        raise BadOption(
            "tasks",
            tasks,
            problem="may be a range such as 10:20, which YAML parses as the number 620: pass a range or a "
            "single task in quotes that reach YAML, as '\"10:20\"'",
        )
    text = str(tasks) if isinstance(tasks, (str, int)) else ",".join(map(str, tasks))
    return tasks_of(environment, text, split)


def _registered(name: str) -> Any:
    def made(
        *,
        tasks: str | int | Sequence[str | int] = "all",
        split: str | None = None,
        action_format: str = "react",
        tools: Literal["text", "native"] = "text",
        server: str | None = None,
        max_turns: int | None = None,
        parser: Literal["default", "agentgym"] = "default",
        on_unknown: OnUnknown | None = None,
        timeout: float | None = None,
    ) -> Task:
        return environment_task(
            name,
            tasks=tasks,
            split=split,
            action_format=action_format,
            tools=tools,
            server=server,
            max_turns=max_turns,
            parser=parser,
            on_unknown=on_unknown,
            timeout=timeout,
        )

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"{name}, as `environment_task` makes it."
    return task(name=name)(made)


TASKS = {known.name: _registered(known.name) for known in BUILT_IN}
"""The tasks by environment name."""
