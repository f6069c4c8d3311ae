"""A running task, without I/O: turn limit, score, parsing of replies, faults.

A :class:`RemoteEpisode` outlives a single task: it has the lease on a remote environment and runs one task
after another in it. Its methods are flows (see :mod:`agentgym_gym.calls`); the environments in ``env.py`` and
its siblings only drive them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, TypeVar

from gymnasium.error import ResetNeeded

from agentgym_gym._http.limits import Stats
from agentgym_gym._leasing.acquire import acquire
from agentgym_gym._leasing.late_replies import late_reply
from agentgym_gym._leasing.lease import Holder
from agentgym_gym._leasing.recognition import run_own
from agentgym_gym._tool_calls import called_action, normalize_action, reply_text
from agentgym_gym.actions import MAX_ACTION_CHARS, Thought, Verbatim
from agentgym_gym.calls import listening
from agentgym_gym.errors import (
    ActionError,
    BadArguments,
    ConnectionLost,
    EnvironmentFailed,
    Fault,
    JudgeFailed,
    LeaseLost,
    ServerTimeout,
    ServerUnreachable,
    UnknownAction,
)
from agentgym_gym.formats import ParseResult, get_format
from agentgym_gym.wire import Outcome, Seen, Start, Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from agentgym_gym._leasing.lease import Lease
    from agentgym_gym._tool_calls import NormalizedAction
    from agentgym_gym.actions import StepAction
    from agentgym_gym.calls import Flow, Stage, WaitingFlow
    from agentgym_gym.catalogue import Environment, OnUnknown
    from agentgym_gym.errors import ClientAnswer
    from agentgym_gym.formats import Format

__all__ = ["RemoteEpisode", "StepInfo", "StepResult"]

T = TypeVar("T")


class StepResult(NamedTuple):
    """The return value of ``gymnasium.Env.step``."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class StepInfo(TypedDict, total=False):
    """The part of an info that changes from turn to turn."""

    action: str | None
    raw_reward: float
    success: bool
    parse_error: str
    ignored_actions: list[str]
    played_call: int
    fault: dict[str, Any]


_OPTIONAL = frozenset(
    {"goal", "available_actions", "served_by", "parse_error", "ignored_actions", "played_call", "fault"}
)


class RemoteEpisode:
    """Runs the tasks of an environment, one after another.

    Args:
        environment: The environment.
        action_format: The format of replies.
        on_unknown: Handling of actions that the grammar does not include: ``"forward"`` sends the agent's
            text, ``"refuse"`` treats it like any other invalid reply.
        max_turns: Turns after which an unfinished task is truncated; None for no limit.
        wire: The environment's wire with non-default options.
        max_envs_per_server: Limit of remote environments per server for this process; a reset waits until
            one is free. None for no limit.
        on_fault: ``"raise"`` raises a fault that ends a task; ``"truncate"`` only ends the task.

    Attributes:
        stats: The metrics object of the driver, which also counts the faults.
        transcript: The texts of the current task: the environment's first, then alternately the agent's and
            the environment's.
        lease: The lease on the remote environment in use.
        holder: The record of this and all other leases that are not released yet.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        action_format: Format,
        on_unknown: OnUnknown,
        max_turns: int | None,
        wire: Wire | None = None,
        max_envs_per_server: int | None = None,
        on_fault: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        self.environment = environment
        self.max_envs_per_server = max_envs_per_server
        self.on_fault = on_fault
        self.wire = wire or environment.wire
        self.action_format = action_format
        self.on_unknown = on_unknown
        self.max_turns = max_turns
        # Whether a fault ended the task. The fault itself is not kept: its traceback leads to the
        # environment, which would never be collected, as the function that closes it leads here.
        self._faulted = False
        self.stats = Stats()
        self.transcript: list[str] = []  # only texts, which the garbage collector skips
        self.lease: Lease | None = None
        self.holder = Holder()
        self._playing = False
        self._task_id = -1
        self._start = Start("")
        self._available: tuple[str, ...] | None = None  # from the last reply that listed them
        self._served_by: str | None = None  # the identification of this project's own server
        self._turn = 0
        self._score = 0.0
        self._agentgym_score = 0.0
        self._ignored: tuple[str, ...] = ()  # calls of the last reply
        self._played_call = 0  # its position among them

    @property
    def playing(self) -> bool:
        """Whether a task is running."""
        return self._playing

    def reset(self, task_id: int, servers: Sequence[str]) -> WaitingFlow[tuple[str, dict[str, Any]]]:
        """Start a task.

        Args:
            task_id: The task.
            servers: Base URLs of the servers; the least loaded healthy one is used.

        Returns:
            The first observation, from the server's current reply, and the info.

        Raises:
            WrongServer: The server provides another environment.
            Fault: The reset failed. It is always raised, regardless of ``on_fault``, because there is no task
                to truncate.
        """
        self._playing = False
        lease = self.lease
        if lease is not None and (self._faulted or lease.maybe_busy or not lease.pool.resume(lease)):
            lease = self.lease = None
        yield from self._release(but=lease)
        self._faulted = False
        start = yield from self._start_task(task_id, servers)
        self._task_id, self._start = task_id, start
        self._turn, self._score, self._agentgym_score, self._ignored = 0, 0.0, 0.0, ()
        self._available = start.available_actions
        self.transcript = [start.observation]
        self._playing = True
        return start.observation, self._info()

    def step(self, action: StepAction) -> WaitingFlow[StepResult]:
        """Execute one turn.

        Args:
            action: The agent's reply, a typed action, or a function call.

        Returns:
            The result of the turn. A reply without a valid action costs a turn and is not sent to the server.
            A fault ends the episode as truncated, with reward 0, and is described in ``info["fault"]``.

        Raises:
            ResetNeeded: No episode is running.
            BadOption: The argument has another type, or is an action of another environment.
            Fault: The environment failed and ``on_fault="raise"``.
        """
        if not self._playing or self.lease is None:
            raise ResetNeeded("the episode is over, or none has started: call reset() before step()")
        reply = normalize_action(action, self.environment.grammar)
        self._turn += 1
        self._ignored = ()
        self.transcript.append(reply_text(reply))
        try:
            reading = self.read(reply)
        except ActionError as error:
            if error.answer is not None:
                return self._answer(self._as_agentgym(error.answer, self.lease), parse_error=error.kind)
            return self._answer(self._advice(error, reply), parse_error=error.kind)
        meant, self._ignored, self._played_call = reading.action, reading.ignored, reading.played
        if isinstance(meant, Thought):
            return self._answer("OK.")
        lease, words = self.lease, self.wire.render(meant)
        lease.memory.note_action(words)
        try:
            begin, keep = partial(self.wire.step, lease.env_id, words), lease.memory.note_outcome
            outcome = yield from self._request(lease, begin, "step", keep)
        except Fault as fault:
            return self._end_by(fault, str(meant))
        return self._judge(outcome, str(meant))

    def read(self, reply: NormalizedAction) -> ParseResult:
        """Parse a reply without executing it.

        Raises:
            ActionError: It contains no valid action.
        """
        if isinstance(reply, tuple):
            return called_action(reply, self.environment.grammar)
        try:
            reading = self._read(reply) if isinstance(reply, str) else ParseResult(reply)
        except UnknownAction as error:
            if self.on_unknown == "refuse" or error.text is None:
                raise
            reading = ParseResult(Verbatim(error.text), error.mark, *error.span)
        action = reading.action
        if isinstance(action, Verbatim) and self.on_unknown == "refuse":
            action = self.environment.grammar.parse(action.text)
        if isinstance(action, Verbatim):
            if len(action.text) > MAX_ACTION_CHARS:
                raise BadArguments(f"the action is longer than {MAX_ACTION_CHARS} characters")
            self.wire.check(action.text)
        return reading if action is reading.action else reading._replace(action=action)

    def abort_episode(self) -> None:
        """Abort the episode: its last step was lost, so a reset is required."""
        self._playing = False

    def close(self) -> WaitingFlow[bool]:
        """Release the remote environment. May be called again.

        Returns:
            False if the server failed to close it.
        """
        self._playing = False
        return (yield from self._release(again=True))

    def _start_task(self, task_id: int, servers: Sequence[str]) -> WaitingFlow[Start]:
        """Reset the current remote environment, or a free one; if that fails, reset a new one."""
        lease = self.lease = self.lease or (yield from self._acquire(task_id, servers))
        fresh = lease.fresh
        try:
            return (yield from self._reset_remote(lease, task_id))
        except (ServerTimeout, JudgeFailed):
            raise  # no time is left for another attempt, or it would end alike
        except Fault as fault:
            # A new environment may work, because the cause may be in the history of the old one.
            if fresh and not isinstance(fault, LeaseLost):
                raise
        lease = self.lease = yield from self._acquire(task_id, servers, fresh=True)
        return (yield from self._reset_remote(lease, task_id))

    def _acquire(self, task_id: int, servers: Sequence[str], *, fresh: bool = False) -> WaitingFlow[Lease]:
        most, stats = self.max_envs_per_server, self.stats
        return (
            yield from acquire(
                self.environment, servers, task_id, stats, most=most, fresh=fresh, holder=self.holder
            )
        )

    def _reset_remote(self, lease: Lease, task_id: int) -> WaitingFlow[Start]:
        begin, memory = partial(self.wire.reset, lease.env_id, task_id), lease.memory
        keep: Callable[[Start], object] = partial(memory.note_start, task_id)
        try:
            start = yield from self._request(lease, begin, "reset", keep)
        except Fault as fault:
            if not isinstance(fault, JudgeFailed):  # its cause is the task
                lease.unusable = not lease.maybe_busy
            if not isinstance(fault, (EnvironmentFailed, JudgeFailed, LeaseLost)):
                lease.pool.breaker.deprioritize()
            yield from self._release()
            raise
        lease.fresh = False
        self.stats.note_task(lease.server)
        self._served_by = memory.served_by
        return start

    def _request(
        self, lease: Lease, begin: Callable[[], Flow[T]], stage: Stage, keep: Callable[[T], object]
    ) -> WaitingFlow[T]:
        """Run a flow on the server of a valid lease, and count a fault; `keep` is as for `run_own`."""
        if not self.wire.closes:  # then the end of an abandoned request frees the environment
            begin = partial(_listen, begin, lease)
        try:
            lease.check()
            # Until the reply arrives, the state of the server is unknown: after an interrupt here, the
            # episode must not look as if it could continue.
            self._playing, lease.maybe_busy, lease.answered = False, True, False
            began = time.monotonic()
            answer = yield from run_own(lease, begin, self.stats, keep=keep)
        except Fault as fault:
            lease.maybe_busy = fault.was_sent and isinstance(fault, (ServerTimeout, ConnectionLost))
            if isinstance(fault, ServerUnreachable) and fault.refused is None:
                lease.revoke("could not be reached, and may have assigned the id to another client since")
            yield from lease.pool.note_fault(fault)
            self.stats.fault(fault, server=lease.server, stage=stage)
            raise
        lease.maybe_busy = False
        lease.pool.note_reply(time.monotonic() - began if stage == "step" else None)
        return answer

    def _release(self, *, but: Lease | None = None, again: bool = False) -> WaitingFlow[bool]:
        """Release all leases, including leases from before an interrupt.

        Args:
            but: A lease to keep.
            again: Whether to retry failed attempts to close an environment.
        """
        self.lease = but
        done = True
        for lease in self.holder.pending_releases(retry=again):
            if lease is but:
                continue
            if lease.released and not done:
                break  # do not retry a server that does not answer
            done = (yield from lease.pool.release(lease, self.stats)) and done
        return done

    def _read(self, reply: str) -> ParseResult:
        return self.action_format.read(reply, self.environment.grammar)

    def _advice(self, error: ActionError, reply: NormalizedAction) -> str:
        called = isinstance(reply, tuple)
        written, form = (get_format("tool_calls"), "call") if called else (self.action_format, "reply")
        return (
            f"Your {form} was not carried out: {error.with_form(written.example(self.environment.grammar))}"
        )

    def _as_agentgym(self, answer: ClientAnswer, lease: Lease) -> str:
        """Return the text and adopt the score of AgentGym's client for a reply that it does not send."""
        if not answer.keeps_score:
            self._agentgym_score = 0.0
        seen = lease.memory.seen or Seen(self._task_id, self._start)
        return answer.text + (self.wire.page(seen) if answer.repeats_page else "")

    def _judge(self, outcome: Outcome, action: str) -> StepResult:
        score_now = self.wire.judge(self._start, self._score, action, outcome)
        reward = score_now.score - self._score
        self._score, self._agentgym_score = score_now.score, score_now.agentgym_score
        self._available = outcome.available_actions
        return self._answer(
            outcome.observation,
            reward=reward,
            done=score_now.done,
            action=action,
            raw_reward=outcome.reward,
            success=score_now.success,
        )

    def _answer(
        self, observation: str, *, reward: float = 0.0, done: bool = False, **info: Unpack[StepInfo]
    ) -> StepResult:
        truncated = not done and self.max_turns is not None and self._turn >= self.max_turns
        self._playing = not (done or truncated)
        if not self._playing and self.lease is not None:
            self.lease.pool.park(self.lease)
        self.transcript.append(observation)
        return StepResult(observation, reward, done, truncated, self._info(**info))

    def _end_by(self, fault: Fault, action: str) -> StepResult:
        """End the episode.

        Raises:
            Fault: This fault, with ``on_fault="raise"``.
        """
        self._playing = False
        self._faulted, self._available = True, None
        observation = f"The environment failed and the episode ends here ({fault.kind})."
        self.transcript.append(observation)
        if self.on_fault == "raise":
            raise fault
        info = self._info(action=action, fault=fault.as_dict())
        return StepResult(observation, 0.0, terminated=False, truncated=True, info=info)

    def _info(self, **details: Unpack[StepInfo]) -> dict[str, Any]:
        info: dict[str, Any] = {
            "task_id": self._task_id,
            "turn": self._turn,
            "score": self._score,
            "agentgym_score": self._agentgym_score,
            "raw_reward": 0.0,
            "success": False,
            "action": None,
            "goal": self._start.goal,
            "available_actions": self._available,
            "served_by": self._served_by,
            "ignored_actions": list(self._ignored) or None,
            "played_call": self._played_call if self._ignored else None,
            **details,
        }
        # Keys without a value are omitted, so that `"fault" in info` can be used as a test.
        return {name: value for name, value in info.items() if value is not None or name not in _OPTIONAL}


def _listen(begin: Callable[[], Flow[T]], lease: Lease) -> Flow[T]:
    return listening(begin(), late_reply(lease))
