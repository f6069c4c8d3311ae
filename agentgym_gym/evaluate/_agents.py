"""The agent protocol, and agents that need no model: random, replay and oracle."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from agentgym_gym._imports import import_object
from agentgym_gym.actions import Action
from agentgym_gym.errors import BadFile, BadOption
from agentgym_gym.evaluate._reference_agent import ReferenceAgent, holds_references
from agentgym_gym.evaluate._runs import EPISODES, find_runs
from agentgym_gym.rollout import EpisodeRecord, StepRecord, read_records
from agentgym_gym.rollout._env_facts import env_id_of
from agentgym_gym.rollout._records import goal_of

if TYPE_CHECKING:
    from agentgym_gym.actions import StepAction
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.evaluate._text_env import TextEnv

__all__ = [
    "Agent",
    "AgentReply",
    "RandomAgent",
    "ReplayAgent",
    "agent_from",
    "load_oracle",
    "maker_from",
]

_THOUGHTS = "oracle:thoughts"


@dataclass(frozen=True)
class AgentReply:
    """Reply of an agent, with metadata about its generation.

    Attributes:
        action: The action for the environment's ``step``; None ends the episode.
        text: The reply's text for the record; by default the text of ``action``.
        ending: Ending of the episode if ``action`` is None: ``gave_up``, ``context_overflow``, ``reply_cut``
            or another name.
        step: Metadata for the record's step: tokens, reasoning and others.
        thought: The thought before a typed action, for an action format with a place for one.
    """

    action: StepAction | None
    text: str | None = None
    ending: str = "gave_up"
    step: StepRecord = field(default_factory=StepRecord)
    thought: str = ""


class Agent(Protocol):
    """Plays episodes one at a time. Each concurrent episode has its own agent.

    ``reset`` and ``act`` may be coroutine functions, which are awaited. Otherwise they are called in a
    thread, unless ``blocking`` is false.

    Attributes:
        name: The agent's name in records.
        blocking: Optional. False if ``reset`` and ``act`` are not coroutine functions and return at once.
        close: Optional. Called, or awaited, when the agent is no longer needed.
        describe: Optional. Returns the settings that affect the replies, such as the model, as JSON values
            for the summary of the run.
    """

    name: str

    def reset(self, env: Any, observation: str, info: dict[str, Any]) -> Awaitable[None] | None:
        """Begin an episode.

        Args:
            env: The environment, for its ``system_prompt`` or its spaces. The agent must not step it.
            observation: The observation from ``env.reset``.
            info: The info from ``env.reset``. The runner adds ``task_id``, which may be a seed, and
                ``sample``, the index of the episode among the task's samples.

        Raises:
            SetupError: The agent cannot play this task; the whole run ends.
            AgentFault: The agent failed; the episode is not scored.
        """

    def act(
        self, observation: str, info: dict[str, Any]
    ) -> Awaitable[AgentReply | StepAction | None] | AgentReply | StepAction | None:
        """Return the next reply: text, a typed action, a function call or an `AgentReply`; None to give up.

        Args:
            observation: The last observation.
            info: The last info.

        Raises:
            SetupError: The agent cannot continue; the whole run ends.
            AgentFault: The agent failed; the episode is not scored.
        """


class RandomAgent:
    """Samples the action space of any text environment.

    The replies depend only on the seed, the task and the sample. The task is the ``task_id`` of the info, or
    the first observation if there is none.

    Args:
        seed: Any integer from 0.

    Raises:
        BadOption: The seed is negative.
    """

    name = "random"
    blocking = False

    def __init__(self, seed: int = 0) -> None:
        if seed < 0:
            raise BadOption("seed", seed, problem="should not be negative")
        self.seed = seed

    def reset(self, env: TextEnv, observation: str, info: dict[str, Any]) -> None:
        """Begin an episode with its own random generator.

        Raises:
            BadOption: The environment's action space does not produce text.
        """
        space: Any = getattr(env, "action_space", None)
        try:
            self._space = copy.deepcopy(space)  # a copy, so that seeding does not affect the environment
            task = info.get("task_id", zlib.crc32(observation.encode("utf-8", "surrogatepass")))
            drawn_from = [self.seed, task, *([info["sample"]] if info.get("sample") else [])]
            self._space.seed(int(np.random.SeedSequence(drawn_from).generate_state(1)[0]))
            drawn = copy.deepcopy(self._space).sample()
        except (AttributeError, NotImplementedError):  # None, or not a space
            drawn = None
        if not isinstance(drawn, (str, Action)):
            raise BadOption(
                f"the agent 'random' samples replies from the action space, but {space!r:.200} of "
                f"{env_id_of(env)} has no text; use another agent, or wrap the environment in "
                "agentgym_gym.rollout.TextAdapter"
            )

    def act(self, observation: str, info: dict[str, Any]) -> str | Action | None:
        """Return a random action."""
        reply: str | Action = self._space.sample()
        return reply


class ReplayAgent:
    """Replays the replies of a saved run, and ends each episode where that run ended it.

    The agent looks up an episode by its task and sample. It identifies a task by its goal if it has one,
    because two servers may number the same goals differently, and otherwise by its id. The agent skips
    faulted episodes, because they are incomplete. It replays tool calls as calls.

    Args:
        path: The ``episodes.jsonl`` of the run, or its folder.

    Raises:
        BadOption: The file cannot be read, and the message names the line, or the folder contains no run or
            several runs.
    """

    name = "replay"
    blocking = False

    def __init__(self, path: Path) -> None:
        self.path = path / EPISODES if path.is_dir() else path
        if path.is_dir() and find_runs(path) != [path]:
            found = ", ".join(str(each) for each in find_runs(path))
            raise BadFile(f"{path} is not a run: choose one below it: {found:.400}", path=path)
        self._samples: dict[tuple[str, int], dict[int, EpisodeRecord]] = {}
        self._by_goal: dict[tuple[str, str], set[int]] = {}
        for record in read_records(self.path)[0]:
            if not record.scored:
                continue
            self._samples.setdefault((record.env_id, record.task_id), {})[record.sample] = record
            if record.goal is not None:
                self._by_goal.setdefault((record.env_id, record.goal), set()).add(record.task_id)
        self._left: Iterator[AgentReply] = iter(())
        self._end: AgentReply | None = None

    def refusal(self, env: TextEnv, task_id: int) -> str | None:
        """Return the reason that a task id cannot be replayed, or None if it can."""
        if (env_id_of(env), task_id) in self._samples:
            return None
        return f"{self.path} has no complete episode of {env_id_of(env)} with task {task_id}"

    def reset(self, env: TextEnv, observation: str, info: dict[str, Any]) -> None:
        """Look up the episode of the task.

        Raises:
            BadOption: The file has no complete episode of the task, or none of this sample.
        """
        where, task_id, goal = env_id_of(env), info.get("task_id", -1), goal_of(info)
        kept, sample = self._task(where, task_id, goal), int(info.get("sample", 0))
        if kept is None:
            task = f"task {task_id}" if goal is None else f"the goal {goal!r:.80} (task {task_id})"
            raise BadFile(f"{self.path} has no complete episode of {where} with {task}", path=self.path)
        samples = self._samples[where, kept]
        if sample not in samples:
            raise BadFile(
                f"{self.path} has complete episodes of task {kept} of {where} only for the samples "
                f"{sorted(samples)}, not for sample {sample}: play as many samples as the file has",
                path=self.path,
            )
        record = samples[sample]
        self._left = iter(_replies(record))
        self._end = _end(record)

    def act(self, observation: str, info: dict[str, Any]) -> AgentReply | str | None:
        """Return the next reply, or after the last one the ending of the episode in the run."""
        reply = next(self._left, None)
        if reply is None:
            return self._end
        return reply if reply.step else str(reply.action)

    def _task(self, where: str, task_id: int, goal: str | None) -> int | None:
        """Return the task's id in the file, or None."""
        if goal is None:
            return task_id if (where, task_id) in self._samples else None
        tasks = self._by_goal.get((where, goal), set())
        return task_id if task_id in tasks else min(tasks, default=None)


def _replies(record: EpisodeRecord) -> Iterator[AgentReply]:
    """Yield the replies that were played: tool calls as calls, all others as text."""
    for turn, text in enumerate(record.replies[: record.turns]):
        step = record.steps[turn] if turn < len(record.steps) else StepRecord()
        calls = step.get("tool_calls")
        if "server_error" in step:
            yield AgentReply("", text, step=StepRecord(server_error=step["server_error"]))
        elif calls:
            yield AgentReply(calls, text, step=StepRecord(tool_calls=calls))
        else:
            yield AgentReply(text)


def _end(record: EpisodeRecord) -> AgentReply | None:
    """Return the ending of an episode by the agent, with the unplayed reply if there is one."""
    unplayed = record.replies[record.turns :]
    if record.ending in {"gave_up", "terminated", "truncated"} and not unplayed:
        return None
    return AgentReply(None, unplayed[0] if unplayed else None, ending=record.ending)


class _Oracle(Agent, Protocol):
    """A scripted expert. Its ``act`` returns typed actions."""

    def act(self, observation: str, info: dict[str, Any]) -> Action | None: ...

    def thought(self) -> str:
        """Return why the last action is the next one, in the words of the task and its observations."""


class _ThinkingOracle:
    """An oracle that writes a thought before each action.

    Args:
        oracle: The oracle.
    """

    name = "oracle-thoughts"

    def __init__(self, oracle: _Oracle) -> None:
        self._oracle = oracle
        self.blocking = getattr(oracle, "blocking", True)
        self.reset = oracle.reset

    def act(self, observation: str, info: dict[str, Any]) -> AgentReply:
        """Return the next action with its thought."""
        action = self._oracle.act(observation, info)
        return AgentReply(action, thought="" if action is None else self._oracle.thought())


def load_oracle(environment: Environment, *, thoughts: bool = False) -> Agent:
    """Return a new oracle of an environment.

    Args:
        environment: The environment; its ``oracle`` is the import path ``"module:Class"``.
        thoughts: Whether it writes a short thought before each action: what is still missing, and why this
            action is next. Models that are fine-tuned on such episodes learn to plan.

    Raises:
        BadOption: The environment has no oracle, or one without thoughts.
    """
    if environment.oracle is None:
        raise BadOption(f"there is no oracle that plays {environment.name}")
    oracle: _Oracle = import_object(environment.oracle)()
    if thoughts and not hasattr(oracle, "thought"):
        raise BadOption(f"the oracle of {environment.name} writes no thoughts; use the agent 'oracle'")
    return _ThinkingOracle(oracle) if thoughts else oracle


def agent_from(spec: str, environment: Environment | None, seed: int = 0) -> Agent:
    """Return an agent by its specification.

    Args:
        spec: ``oracle``, ``oracle:thoughts`` (with a thought before each action), ``random`` or
            ``replay:PATH``, where the path is a saved run for `ReplayAgent`, or WebArena's task files for
            `ReferenceAgent`.
        environment: The environment to play; None if it is not in the catalogue.
        seed: Seed of a random agent.

    Raises:
        BadOption: The agent does not exist, the environment has no oracle, or the file cannot be read.
    """
    kind, _, file = spec.partition(":")
    if spec in {"oracle", _THOUGHTS}:
        if environment is None:
            raise BadOption("there is no oracle that plays an environment of another library")
        return load_oracle(environment, thoughts=spec == _THOUGHTS)
    if spec == "random":
        return RandomAgent(seed)
    if kind == "replay" and file:
        return ReferenceAgent(Path(file)) if holds_references(Path(file)) else ReplayAgent(Path(file))
    raise BadOption(
        "agent", spec, f"one of 'oracle', '{_THOUGHTS}', 'random', 'replay:PATH' and 'MODULE:NAME'"
    )


def maker_from(spec: str, environment: Environment | None, seed: int = 0) -> Callable[[], Agent]:
    """Return a function that makes agents by their specification, one for each concurrent episode.

    Args:
        spec: A specification as for `agent_from`, or ``MODULE:NAME``, the import path of your own class or
            function, which is called without arguments and returns an agent.
        environment: The environment, as for `agent_from`.
        seed: The seed, as for `agent_from`.

    Raises:
        BadOption: The agent does not exist.
    """
    module, _, name = spec.partition(":")
    if module in {"", "oracle", "random", "replay"} or not name:
        first = agent_from(spec, environment, seed)  # reads a file only once
        return lambda: copy.copy(first) if module == "replay" else agent_from(spec, environment, seed)
    try:
        make_agent = import_object(spec)
    except Exception as error:  # a module may raise anything
        raise BadOption(
            "agent", spec, problem=f"cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(make_agent):
        raise BadOption("agent", spec, "a class or a function that returns an agent")
    own: Callable[[], Agent] = make_agent
    return own
