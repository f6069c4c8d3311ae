"""Agents: what writes the replies."""

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
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._reference_agent import ReferenceAgent, holds_references
from agentgym_gym.evaluate._runs import EPISODES, find_runs
from agentgym_gym.rollout import EpisodeRecord, StepRecord, env_id_of, goal_of, read_records

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


@dataclass(frozen=True)
class AgentReply:
    """What an agent replies, with what is known of how the reply came about.

    Attributes:
        action: What the environment's ``step`` is given; None ends the episode.
        text: What the agent wrote, as the record shows it; by default what ``action`` says.
        ending: Why the episode ends, where ``action`` is None: ``gave_up``, ``context_overflow``,
            ``reply_cut``, or another word.
        step: What goes into the record's step: tokens, reasoning and the like.
    """

    action: StepAction | None
    text: str | None = None
    ending: str = "gave_up"
    step: StepRecord = field(default_factory=StepRecord)


class Agent(Protocol):
    """Plays one episode after another; where several are played at once, each has an agent of its own.

    ``reset`` and ``act`` may be coroutine functions, which are awaited. If they are not, they are called in a
    thread, unless ``blocking`` is false.

    Attributes:
        name: What to call it in a log.
        blocking: Optional: False where ``reset`` and ``act``, being no coroutine functions, return at once.
        close: Optional: called, or awaited, when the agent is not needed any more.
        describe: Optional: returns what made its replies, such as the model and its settings, as JSON
            values; it stands in the summary of the run.
    """

    name: str

    def reset(self, env: Any, observation: str, info: dict[str, Any]) -> Awaitable[None] | None:
        """Begin an episode.

        Args:
            env: The environment, to be asked for its ``system_prompt`` or its spaces; not to be stepped.
            observation: What ``env.reset`` returned.
            info: The info that came with it; the runner sets its ``task_id``, which may be a seed, and its
                ``sample``, which of several episodes of the task this is.

        Raises:
            SetupError: The agent cannot play this task; the whole run ends.
            AgentFault: The agent failed; the episode is not scored.
        """

    def act(
        self, observation: str, info: dict[str, Any]
    ) -> Awaitable[AgentReply | StepAction | None] | AgentReply | StepAction | None:
        """Return the next reply: text, a typed action, a function call, an `AgentReply`; None to give up.

        Args:
            observation: What the environment said last.
            info: Likewise.

        Raises:
            SetupError: The agent cannot go on; the whole run ends.
            AgentFault: The agent failed; the episode is not scored.
        """


class RandomAgent:
    """Samples the action space of any text environment.

    Its replies depend only on its seed, the task (the ``task_id`` of the info, or the first observation where
    there is none) and the sample.

    Args:
        seed: Any whole number from 0.

    Raises:
        BadOption: The seed is negative.
    """

    name = "random"
    blocking = False

    def __init__(self, seed: int = 0) -> None:
        if seed < 0:
            raise BadOption(f"seed={seed} should not be negative")
        self.seed = seed

    def reset(self, env: TextEnv, observation: str, info: dict[str, Any]) -> None:
        """Begin an episode with a generator of its own.

        Raises:
            BadOption: The environment has no action space of text.
        """
        space: Any = getattr(env, "action_space", None)
        try:
            self._space = copy.deepcopy(space)  # seeding the environment's would meddle with it
            task = info.get("task_id", zlib.crc32(observation.encode("utf-8", "surrogatepass")))
            drawn_from = [self.seed, task, *([info["sample"]] if info.get("sample") else [])]
            self._space.seed(int(np.random.SeedSequence(drawn_from).generate_state(1)[0]))
            drawn = copy.deepcopy(self._space).sample()
        except (AttributeError, NotImplementedError):  # None, or no space
            drawn = None
        if not isinstance(drawn, (str, Action)):
            raise BadOption(
                f"the agent 'random' draws replies from the action space, and {space!r:.200} of "
                f"{env_id_of(env)} holds no text; play it by another agent, or wrap the environment in "
                "agentgym_gym.rollout.TextAdapter"
            )

    def act(self, observation: str, info: dict[str, Any]) -> str | Action | None:
        """Return a sample."""
        reply: str | Action = self._space.sample()
        return reply


class ReplayAgent:
    """Repeats the replies of a kept run, and ends each episode where that run ended it.

    A task is looked up by its goal if it has one, since two servers may number the same goals differently;
    else by its id; and by its sample. Episodes that a fault ended are skipped, because they are not whole.
    Tool calls are given as calls.

    Args:
        path: The ``episodes.jsonl`` of the run, or its folder.

    Raises:
        BadOption: The file cannot be read; the message names the line. Or the folder holds no run, or
            several.
    """

    name = "replay"
    blocking = False

    def __init__(self, path: Path) -> None:
        self.path = path / EPISODES if path.is_dir() else path
        if path.is_dir() and find_runs(path) != [path]:
            found = ", ".join(str(each) for each in find_runs(path))
            raise BadOption(f"{path} is no run: name one of those below it: {found:.400}")
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
        """Return why there is nothing to play in a task, None where there is, as far as its id tells."""
        if (env_id_of(env), task_id) in self._samples:
            return None
        return f"{self.path} holds no whole episode of {env_id_of(env)} with task {task_id}"

    def reset(self, env: TextEnv, observation: str, info: dict[str, Any]) -> None:
        """Look the task up.

        Raises:
            BadOption: The file holds no whole episode of it, or none of its sample.
        """
        where, task_id, goal = env_id_of(env), info.get("task_id", -1), goal_of(info)
        kept, sample = self._task(where, task_id, goal), int(info.get("sample", 0))
        if kept is None:
            task = f"task {task_id}" if goal is None else f"the goal {goal!r:.80} (task {task_id})"
            raise BadOption(f"{self.path} holds no whole episode of {where} with {task}")
        samples = self._samples[where, kept]
        if sample not in samples:
            raise BadOption(
                f"{self.path} holds task {kept} of {where} whole in the samples {sorted(samples)}, and not "
                f"in sample {sample}: play as many samples as it has"
            )
        record = samples[sample]
        self._left = iter(_played(record))
        self._end = _end(record)

    def act(self, observation: str, info: dict[str, Any]) -> AgentReply | str | None:
        """Return the next reply; when there is none, how the run ended the episode."""
        reply = next(self._left, None)
        if reply is None:
            return self._end
        return reply if reply.step else str(reply.action)

    def _task(self, where: str, task_id: int, goal: str | None) -> int | None:
        """Return the id under which the file has a task."""
        if goal is None:
            return task_id if (where, task_id) in self._samples else None
        tasks = self._by_goal.get((where, goal), set())
        return task_id if task_id in tasks else min(tasks, default=None)


def _played(record: EpisodeRecord) -> Iterator[AgentReply]:
    """Yield the replies that were played: calls as calls, anything else as text."""
    for turn, text in enumerate(record.replies[: record.turns]):
        calls = record.steps[turn].get("tool_calls") if turn < len(record.steps) else None
        if calls:
            yield AgentReply(calls, text, step=StepRecord(tool_calls=calls))
        else:
            yield AgentReply(text)


def _end(record: EpisodeRecord) -> AgentReply | None:
    """Return how the agent ended an episode: with the reply that was not played, if there is one."""
    unplayed = record.replies[record.turns :]
    if record.ending in {"gave_up", "terminated", "truncated"} and not unplayed:
        return None
    return AgentReply(None, unplayed[0] if unplayed else None, ending=record.ending)


def load_oracle(environment: Environment) -> Agent:
    """Return a new oracle of an environment.

    Args:
        environment: The environment; its ``oracle`` says where the class is found, as ``"module:Class"``.

    Raises:
        BadOption: It has no oracle.
    """
    if environment.oracle is None:
        raise BadOption(f"there is no oracle that plays {environment.name}")
    agent: Agent = import_object(environment.oracle)()
    return agent


def agent_from(spec: str, environment: Environment | None, seed: int = 0) -> Agent:
    """Return an agent by its specification.

    Args:
        spec: ``oracle``, ``random`` or ``replay:PATH``, which is a kept run, as `ReplayAgent` takes it, or
            task files of WebArena, as `ReferenceAgent` does.
        environment: What it is to play; None for an environment that is not in the catalogue.
        seed: Seed of an agent that draws.

    Raises:
        BadOption: There is no such agent, the environment has no oracle, or the file cannot be read.
    """
    kind, _, file = spec.partition(":")
    if spec == "oracle" and environment is None:
        raise BadOption("there is no oracle that plays an environment of another library")
    if spec == "oracle" and environment is not None:
        return load_oracle(environment)
    if spec == "random":
        return RandomAgent(seed)
    if kind == "replay" and file:
        return ReferenceAgent(Path(file)) if holds_references(Path(file)) else ReplayAgent(Path(file))
    raise BadOption(f"agent {spec!r:.80} is not one of 'oracle', 'random', 'replay:PATH' and 'MODULE:NAME'")


def maker_from(spec: str, environment: Environment | None, seed: int = 0) -> Callable[[], Agent]:
    """Return what makes an agent by its specification, one for each episode that is played at once.

    Args:
        spec: As for `agent_from`; or ``MODULE:NAME``, the import path of a class or function of your own,
            which is called without arguments and returns an agent.
        environment: As for `agent_from`.
        seed: Likewise.

    Raises:
        BadOption: There is no such agent.
    """
    module, _, name = spec.partition(":")
    if module in {"", "oracle", "random", "replay"} or not name:
        first = agent_from(spec, environment, seed)  # a file is read once
        return lambda: copy.copy(first) if module == "replay" else agent_from(spec, environment, seed)
    try:
        made_by = import_object(spec)
    except Exception as error:  # a module may raise anything
        raise BadOption(f"cannot import the agent {spec!r:.80}: {type(error).__name__}: {error}") from error
    if not callable(made_by):
        raise BadOption(f"the agent {spec!r:.80} should be a class or a function that returns an agent")
    own: Callable[[], Agent] = made_by
    return own
