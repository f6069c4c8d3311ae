"""The environments as tasks of inspect_ai: ``inspect eval agentgym_gym/WebShop --model openai/gpt-5``.

inspect_ai imports this module by its entry point, because a task is found by being registered. Nothing else
of this library imports it, and it imports inspect_ai at once.
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
from agentgym_gym._tool_calls import NOT_CARRIED_OUT, played_call
from agentgym_gym.actions import ToolCall
from agentgym_gym.aio import AsyncAgentGymEnv
from agentgym_gym.catalogue import BUILT_IN, find
from agentgym_gym.errors import BadOption, Fault
from agentgym_gym.evaluate._tasks import tasks_of

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, ChatMessageAssistant
    from inspect_ai.scorer import Scorer, Target
    from inspect_ai.solver import Generate, Solver, TaskState

    from agentgym_gym.catalogue import Environment, OnUnknown

__all__ = ["EPISODE", "TASKS", "environment_task", "play", "score", "success"]

EPISODE = "agentgym_episode"
"""Where a sample's store holds what is known of its episode."""

_CLOSE_SECONDS = 30.0  # for releasing the remote environment of a sample that was cancelled
_SEXAGESIMAL = 60  # YAML 1.1 reads 10:20 as 620, and no number below 60 can come of that
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
    """Return an environment as a task of inspect_ai. Samples of a task are inspect_ai's epochs.

    Args:
        environment: Its name, such as ``"WebShop"``; or that of one of your own that is registered.
        tasks: Which tasks: ``0:50``, ``3``, ``1,2,5``, ``10:`` or ``all``; or a list of such texts and ids.
        split: The split they are of. By default ``all`` tasks are those of ``test``, or of the first where
            there is no such split; others are of any.
        action_format: How a reply wraps its action. Native tools have a format of their own.
        tools: ``text``: the model writes its action into its reply. ``native``: it calls a tool.
        server: URL of the server, or several with commas; by default the variable, else a local one. A log
            holds it, so that a URL with a password is given by the variable.
        max_turns: Turn limit, 0 for none; by default AgentGym's own.
        parser: Who reads a reply: ``agentgym`` reads as AgentGym's own client does.
        on_unknown: What is done with an action the environment does not know.
        timeout: Seconds allowed for each reply of the server.

    Raises:
        BadOption: There is no such task or option.
        UnknownEnvironment: There is no such environment.
    """
    known = find(environment)
    if tools not in ("text", "native"):
        raise BadOption(f"tools={tools!r:.80} should be 'text' or 'native'")
    if server is not None and redact(server) != server:
        raise BadOption(
            f"server={redact(server)!r} holds a password, and inspect_ai keeps arguments of tasks in its "
            f"log: give it by the environment variable {known.variable}"
        )
    if split is None and tasks == "all" and "test" in known.splits:
        split = "test"
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
    AsyncAgentGymEnv(known.name, **options)  # a mistyped option is told now, and not by every sample
    samples = [
        Sample(input=f"{known.name}, task {task_id}", id=task_id, metadata={"task_id": task_id})
        for task_id in _chosen(tasks, known, split)
    ]
    return Task(
        dataset=MemoryDataset(samples, name=known.name),
        solver=play(known.name, native_tools=tools == "native", **options),
        scorer=[success(), score()],
        version=known.version,
        viewer=ViewerConfig(trust_content=False),  # shown as it is, and neither rendered nor linked
    )


@solver
def play(environment: str, *, native_tools: bool = False, **options: Any) -> Solver:
    """Play the task that a sample's metadata names, in an environment of its own.

    The episode so far stands in the sample's store, so that one which a limit of inspect_ai ends is scored by
    what it had reached.

    Args:
        environment: Name in the catalogue.
        native_tools: Whether the model is given the actions as tools.
        **options: Options of `AsyncAgentGymEnv`.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if sniffio.current_async_library() != "asyncio":
            raise BadOption("the environments work in asyncio alone: unset INSPECT_ASYNC_BACKEND")
        env = AsyncAgentGymEnv(environment, **options)
        try:
            return await _Game(env, state, generate, native_tools=native_tools).play()
        finally:  # by limits and by the user, a sample may be cancelled at any await
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await env.close()

    return solve


class _Game:
    """One sample, as it is played."""

    def __init__(
        self, env: AsyncAgentGymEnv, state: TaskState, generate: Generate, *, native_tools: bool
    ) -> None:
        self._env = env
        self._state = state
        self._generate = generate
        self._native = native_tools

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
        ending = "limit"  # what it is if generate or a message that is appended raises
        self._note(_told(info, ending))
        while ending == "limit":
            state = self._state = await self._generate(state, tool_calls="none")
            stopped = _STOPPED.get(state.output.stop_reason)
            if stopped is not None:
                self._note(_told(info, stopped))
                return state
            reply = state.output.message
            observation, _, terminated, truncated, info = await self._env.step(self._action(reply))
            if terminated or truncated:
                ending = "fault" if "fault" in info else "terminated" if terminated else "truncated"
            self._note(_told(info, ending))
            for message in self._answers(reply, observation, info):
                state.messages.append(message)
        return state

    def _action(self, reply: ChatMessageAssistant) -> Any:
        return self._calls(reply) or reply.text

    def _calls(self, reply: ChatMessageAssistant) -> list[dict[str, str]]:
        calls = reply.tool_calls if self._native else None
        return [
            # Of arguments that are no JSON inspect_ai keeps the error alone; read again, it is one here too.
            {
                "name": call.function,
                "arguments": call.parse_error or json.dumps(call.arguments, ensure_ascii=False),
            }
            for call in calls or ()
        ]

    def _answers(
        self, reply: ChatMessageAssistant, observation: str, info: Mapping[str, Any]
    ) -> list[ChatMessage]:
        """Return the observation as messages: each call requires an answer."""
        calls = [ToolCall(**call) for call in self._calls(reply)]
        if not calls:
            return [ChatMessageUser(content=observation)]
        answers = [NOT_CARRIED_OUT] * len(calls)
        answers[played_call(calls, info.get("ignored_actions"))] = observation
        return [
            ChatMessageTool(content=answer, tool_call_id=call.id, function=call.function)
            for call, answer in zip(reply.tool_calls or (), answers, strict=True)
        ]

    def _note(self, episode: dict[str, Any]) -> None:
        self._state.store.set(EPISODE, episode)


def _told(info: dict[str, Any], ending: str) -> dict[str, Any]:
    """Return what the store holds of an episode, from the info of its last step."""
    kept = ("score", "success", "turn", "goal", "agentgym_score", "fault")
    return {"ending": ending, **{name: info[name] for name in kept if name in info}}


def _tool(made: dict[str, Any]) -> Any:
    """Return an action as a tool to be shown to a model; the environment carries it out.

    Args:
        made: A function tool, as OpenAI's chat protocol describes it.
    """

    async def carried_out_by_the_environment() -> str:  # one for each tool, since inspect_ai marks it
        raise NotImplementedError

    described = made["function"]
    return ToolDef(
        carried_out_by_the_environment,
        name=described["name"],
        description=described["description"],
        parameters=ToolParams.model_validate(described["parameters"]),
    ).as_tool()


@scorer(metrics=[accuracy(), stderr()])
def success() -> Scorer:
    """Whether the environment says that the task was solved; no score where a fault ended the episode."""
    return _scorer("success")


@scorer(metrics=[mean(), stderr()])
def score() -> Scorer:
    """The score of the episode, likewise."""
    return _scorer("score")


def _scorer(name: str) -> Scorer:
    async def judge(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - inspect_ai names them
        episode = state.store.get(EPISODE, {})
        fault = episode.get("fault")
        if fault is not None:
            return Score.unscored(reason="fault", explanation=f"{fault['kind']}: {fault['message']}")
        if name not in episode:
            return Score.unscored(reason="not_played", explanation="The episode did not begin.")
        return Score(value=float(episode[name]), explanation=f"ended by: {episode['ending']}")

    return judge


def _chosen(tasks: str | int | Sequence[str | int], environment: Environment, split: str | None) -> list[int]:
    """Return task ids.

    Raises:
        BadOption: There are none such, or YAML has made a number of a range.
    """
    if isinstance(tasks, int) and tasks >= _SEXAGESIMAL:
        raise BadOption(
            f"tasks={tasks} may be a range such as 10:20, which YAML reads as the number 620: give a "
            "range, or a single task, in quotes that YAML sees, as '\"10:20\"'"
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
"""The tasks, by the names of their environments."""
