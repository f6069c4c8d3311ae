"""One task being played, without I/O: turn limit, score, reading of replies, faults.

An :class:`Episode` outlives a single task: it holds the lease on a remote environment and plays one task
after another in it. Its methods are flows (see :mod:`agentgym_gym.calls`); the environments in ``env.py`` and
its siblings only drive them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, TypeVar

from gymnasium.error import ResetNeeded

from agentgym_gym._http.limits import Stats
from agentgym_gym._leasing.acquire import acquire
from agentgym_gym._leasing.late_replies import late_reply
from agentgym_gym._leasing.lease import Holder
from agentgym_gym._leasing.recognition import ask_own
from agentgym_gym._tool_calls import called_action, given, shown_reply
from agentgym_gym.actions import MAX_ACTION_CHARS, Thought, Verbatim
from agentgym_gym.calls import listening
from agentgym_gym.errors import (
    ActionError,
    BadArguments,
    ConnectionLost,
    EnvironmentFailed,
    Fault,
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
    from agentgym_gym._tool_calls import Given
    from agentgym_gym.actions import StepAction
    from agentgym_gym.calls import Flow, Stage, WaitingFlow
    from agentgym_gym.catalogue import Environment, OnUnknown
    from agentgym_gym.errors import ClientAnswer
    from agentgym_gym.formats import Format

__all__ = ["Episode", "StepInfo", "StepResult"]

T = TypeVar("T")


class StepResult(NamedTuple):
    """What ``gymnasium.Env.step`` returns."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class StepInfo(TypedDict, total=False):
    """The part of an info that differs from turn to turn."""

    action: str | None
    raw_reward: float
    success: bool
    parse_error: str
    ignored_actions: list[str]
    fault: dict[str, str]


class Episode:
    """Plays tasks in it, one after another.

    Args:
        environment: The environment.
        action_format: How replies are read.
        on_unknown: What is done with an action the grammar does not know: ``"forward"`` sends it in the
            agent's words, ``"refuse"`` answers it like any other reply that cannot be read.
        max_turns: Turns after which an unfinished task is truncated; None for no limit.
        wire: The environment's wire with other options than its own.
        max_envs_per_server: Where this process holds as many remote environments, one is waited for; None
            for no limit.
        on_fault: Whether a fault that ends a task is raised, too: ``"raise"``, else ``"truncate"``.

    Attributes:
        fault: The fault that ended the current task, if one did.
        stats: Where faults are counted; the driver's own, so that they stand beside what it counts.
        transcript: The texts of the current task: the environment's first, then in turn the agent's and the
            environment's.
        lease: The lease on the remote environment that is played in.
        holder: Where that and all others are noted that are not released yet.
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
        self.fault: Fault | None = None
        self.stats = Stats()
        self.transcript: list[str] = []  # texts alone, which the garbage collector skips
        self.lease: Lease | None = None
        self.holder = Holder()
        self._playing = False
        self._task_id = -1
        self._start = Start("")
        self._available: tuple[str, ...] | None = None  # as the server last listed them
        self._served_by: str | None = None  # which of our own servers
        self._turn = 0
        self._score = 0.0
        self._agentgym_score = 0.0
        self._ignored: tuple[str, ...] = ()  # calls of the last reply

    @property
    def playing(self) -> bool:
        """Whether a task was begun that is not over."""
        return self._playing

    def reset(self, task_id: int, servers: Sequence[str]) -> WaitingFlow[tuple[str, dict[str, Any]]]:
        """Start a task.

        Args:
            task_id: Which task.
            servers: Base URLs that may serve it; the least loaded that answers is used.

        Returns:
            The first observation, as the server said it just now, and the info.

        Raises:
            WrongServer: Another environment answers there.
            Fault: The environment could not be reset. There is no task then to be truncated, so a fault is
                raised here, whatever is done with those of a step.
        """
        self._playing = False
        lease = self.lease
        if lease is not None and (self.fault or lease.maybe_busy or not lease.pool.resume(lease)):
            lease = self.lease = None
        yield from self._release(but=lease)
        self.fault = None
        start = yield from self._start_task(task_id, servers)
        self._task_id, self._start = task_id, start
        self._turn, self._score, self._agentgym_score, self._ignored = 0, 0.0, 0.0, ()
        self._available = start.available_actions
        self.transcript = [start.observation]
        self._playing = True
        return start.observation, self._info()

    def step(self, action: StepAction) -> WaitingFlow[StepResult]:
        """Play one turn.

        Args:
            action: What the agent wrote, a typed action, or a function call.

        Returns:
            The turn. A reply that holds no action costs a turn and never reaches the server; a fault ends
            the episode as truncated, with reward 0, and is kept in :attr:`fault`.

        Raises:
            ResetNeeded: The episode is over, or none was begun.
            BadOption: It is none of these, or an action of another environment.
            Fault: The environment failed and ``on_fault="raise"``.
        """
        if not self._playing or self.lease is None:
            raise ResetNeeded("the episode is over, or none was begun: call reset() before step()")
        reply = given(action, self.environment.grammar)
        self._turn += 1
        self._ignored = ()
        self.transcript.append(shown_reply(reply))
        try:
            reading = self.read(reply)
        except ActionError as error:
            if error.answer is not None:
                return self._answer(self._as_agentgym(error.answer, self.lease), parse_error=error.kind)
            return self._answer(self._advice(error, reply), parse_error=error.kind)
        meant, self._ignored = reading.action, reading.ignored
        if isinstance(meant, Thought):
            return self._answer("OK.")
        lease, words = self.lease, self.wire.render(meant)
        seen = lease.memory.seen
        if seen is not None:
            seen.unanswered = words
        try:
            outcome = yield from self._ask(lease, partial(self.wire.step, lease.env_id, words), "step")
        except Fault as fault:
            return self._end_by(fault, str(meant))
        if seen is not None:
            seen.outcome, seen.unanswered = outcome, ""
        return self._judge(outcome, str(meant))

    def read(self, reply: Given) -> ParseResult:
        """Read a reply without playing it.

        Raises:
            ActionError: It holds no action that would be played.
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
        """End an episode of which nobody has the last turn: what is played next must begin anew."""
        self._playing = False

    def close(self) -> WaitingFlow[bool]:
        """Release the remote environment. May be called again.

        Returns:
            Whether the server did its part, if it had one.
        """
        self._playing = False
        return (yield from self._release(again=True))

    def _start_task(self, task_id: int, servers: Sequence[str]) -> WaitingFlow[Start]:
        """Reset the remote environment we hold, or a free one; where that proves unusable, a new one."""
        lease = self.lease = self.lease or (yield from self._acquire(task_id, servers))
        fresh = lease.fresh
        try:
            return (yield from self._reset_remote(lease, task_id))
        except ServerTimeout:
            raise  # it has cost all the time there was
        except Fault as fault:
            # What made it unusable may lie in its past, and a new one has none.
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
        try:
            start = yield from self._ask(lease, partial(self.wire.reset, lease.env_id, task_id), "reset")
        except Fault as fault:
            lease.unusable = not lease.maybe_busy
            if not isinstance(fault, (EnvironmentFailed, LeaseLost)):
                lease.pool.breaker.deprioritize()
            yield from self._release()
            raise
        lease.fresh = False
        lease.memory.seen = Seen(task_id, start)
        self._served_by = lease.memory.served_by
        return start

    def _ask(self, lease: Lease, begin: Callable[[], Flow[T]], stage: Stage) -> WaitingFlow[T]:
        """Run a flow on the server of a lease that is still ours, and count the fault that it fails by."""
        if not self.wire.closes:  # then it is of use to know when the server is done
            begin = partial(_listen, begin, lease)
        try:
            lease.check()
            # Until the reply is in, nobody knows what the server does: an interrupt here must not leave an
            # episode that looks as if it could go on.
            self._playing, lease.maybe_busy, lease.answered = False, True, False
            answer = yield from ask_own(lease, begin, self.stats)
        except Fault as fault:
            lease.maybe_busy = fault.was_sent and isinstance(fault, (ServerTimeout, ConnectionLost))
            if isinstance(fault, ServerUnreachable) and fault.refused is None:
                lease.revoke()  # the server may have been restarted, and the id be another's
            yield from lease.pool.note_fault(fault)
            self.stats.fault(fault, server=lease.server, stage=stage)
            raise
        lease.maybe_busy = False
        lease.pool.note_reply()
        return answer

    def _release(self, *, but: Lease | None = None, again: bool = False) -> WaitingFlow[bool]:
        """Release all leases, those of before an interrupt, too.

        Args:
            but: One that is kept.
            again: Whether what was asked in vain to close is asked again.
        """
        self.lease = but
        done = True
        for lease in self.holder.owes(again=again):
            if lease is but:
                continue
            if lease.released and not done:
                break  # what does not answer is not asked again and again
            done = (yield from lease.pool.release(lease, self.stats)) and done
        return done

    def _read(self, reply: str) -> ParseResult:
        return self.action_format.read(reply, self.environment.grammar)

    def _advice(self, error: ActionError, reply: Given) -> str:
        called = isinstance(reply, tuple)
        written, form = (get_format("tool_calls"), "call") if called else (self.action_format, "reply")
        return (
            f"Your {form} was not carried out: {error.with_form(written.example(self.environment.grammar))}"
        )

    def _as_agentgym(self, answer: ClientAnswer, lease: Lease) -> str:
        """Return what AgentGym's client shows for a reply that it does not send, and take over its score."""
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
            Fault: This one, with ``on_fault="raise"``.
        """
        self._playing = False
        self.fault, self._available = fault, None
        observation = f"The environment failed and the episode ends here ({fault.kind})."
        self.transcript.append(observation)
        if self.on_fault == "raise":
            raise fault
        info = self._info(action=action, fault=fault.as_dict())
        return StepResult(observation, 0.0, terminated=False, truncated=True, info=info)

    def _info(self, **told: Unpack[StepInfo]) -> dict[str, Any]:
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
            **told,
        }
        # What does not apply is left out, so that `"fault" in info` says what it seems to say.
        optional = ("goal", "available_actions", "served_by", "parse_error", "ignored_actions", "fault")
        return {name: value for name, value in info.items() if value is not None or name not in optional}


def _listen(begin: Callable[[], Flow[T]], lease: Lease) -> Flow[T]:
    return listening(begin(), late_reply(lease))
