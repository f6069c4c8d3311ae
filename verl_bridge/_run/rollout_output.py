"""Collect the tokens of an episode and its other data in the form that verl's agent loops return."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput

from verl_bridge._credit.sessions import ROW_PER_TURN
from verl_bridge._credit.turn_rewards import COLUMN, split_turns
from verl_bridge._run.labels import labels_of
from verl_bridge.numbers import numbers_of

if TYPE_CHECKING:
    from agentgym_gym.rollout import Episode
    from verl_bridge._credit.turn_rewards import TurnLog, TurnRecord
    from verl_bridge._run.timing import Timing
    from verl_bridge.tasks import EnvTask

__all__ = ["RolloutOutput"]

_ABORTED = ("aborted", "abort")
"""The ``stop_reason`` of an aborted reply, by the engine."""


class _Row(NamedTuple):
    """The tokens of one row."""

    prompt: list[int]
    response: list[int]
    mask: list[int]
    logprobs: list[float]
    routed_experts: Any


@dataclass
class RolloutOutput:
    """The tokens of an episode with a limited number of replies, and its other data for verl.

    The tokens are those of the current row. An episode has one row, or a row for each turn, each of which
    :meth:`begin_row` starts.
    """

    with_logprobs: bool
    row_per_turn: bool = False
    turn_limit: int | None = None
    is_baseline: bool = False
    turns: TurnLog | None = None
    end_token: int | None = None
    prompt: list[int] = field(default_factory=list)
    response: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    replies: int = 0
    shown: int = 0
    generate_seconds: float = 0.0
    environment_seconds: float = 0.0
    preempted: int = -1
    routed_experts: Any = None
    server_fields: dict[str, Any] = field(default_factory=dict)
    rewards: list[float] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)
    fault: dict[str, str] | None = None
    cut_by: str | None = None

    _earlier: list[_Row] = field(default_factory=list)
    _no_experts: ClassVar[Any] = None  # of the shape and type that the server of this process returns

    def append_reply(self, output: Any, limit: int) -> list[int] | None:
        """Append a reply from the server, of at most `limit` tokens; mark the episode if it was aborted.

        The client of verl's asynchronous trainers resumes an aborted reply and returns the whole. A client
        that does not returns a part of one, which must not reach the environment.

        Returns:
            The tokens; None for an aborted reply.
        """
        reply = list(map(int, output.token_ids))[:limit]
        self._merge_fields(dict(getattr(output, "extra_fields", None) or {}))
        if getattr(output, "num_preempted", None) is not None:
            self.preempted = max(self.preempted, 0) + output.num_preempted
        if getattr(output, "stop_reason", None) in _ABORTED:
            self.reject("Aborted", "verl aborted the generation of a reply, and did not resume it")
            return None
        if getattr(output, "routed_experts", None) is not None:
            self.routed_experts = output.routed_experts
            RolloutOutput._no_experts = output.routed_experts[:1] * 0
        if self.with_logprobs:
            logprobs = list(map(float, output.log_probs or ()))[:limit]
            if len(logprobs) != len(reply):
                raise RuntimeError(
                    f"the generation server returned {len(logprobs)} log-probabilities for {len(reply)} "
                    "tokens: rollout.calculate_log_probs requires one for each"
                )
            self.logprobs += logprobs
        if self.turns is not None:
            self.turns.add(len(self.response), len(self.response) + len(reply))
        self.response += reply
        self.mask += [1] * len(reply)
        self.replies += 1
        return reply

    def begin_row(self, prompt: list[int]) -> None:
        """Start the next row, with the prompt of the next reply."""
        self._earlier.append(self._row())
        self.prompt, self.response, self.mask, self.logprobs = prompt, [], [], []
        self.routed_experts = None
        self.shown += 1

    def append_observation(self, tokens: Sequence[int]) -> None:
        """Append tokens that are not the model's."""
        self.response += tokens
        self.mask += [0] * len(tokens)
        self.logprobs += [0.0] * len(tokens) if self.with_logprobs else []
        self.shown += 1

    def replace_last(self, reply: Sequence[int], kept: Sequence[int], opened: Sequence[int]) -> None:
        """Replace the last reply by the part that is kept, and exclude all earlier replies from the loss.

        The opening tokens that the template writes before a reply are removed too. The earlier replies were
        sampled after a longer context than the one that remains, so their probabilities would differ.
        """
        if self.turns is not None:
            self.turns.forget()
        del self.response[len(self.response) - len(reply) :]
        before = self.response or self.prompt
        if opened and before[-len(opened) :] == list(opened):
            del before[-len(opened) :]
        self.response += kept
        self.mask = [0] * len(self.response)
        self.logprobs = [0.0] * len(self.response) if self.with_logprobs else []

    def reject(self, kind: str, message: str) -> None:
        """Mark the episode as faulted for a reason that does not lie in its environment."""
        self.fault = {"kind": kind, "message": message}

    def add_result(self, episode: Episode, task: EnvTask, replays: int, timing: Timing) -> None:
        """Copy the rewards, the fault and the numbers of the episode.

        Args:
            episode: The finished episode.
            task: The task of the episode.
            replays: How often it was played before.
            timing: The timing of these earlier tries; the timing of this one is added.
        """
        self.fault = self.fault or episode.fault
        self.rewards = list(episode.rewards)
        self.cut_by = None if self.fault else self.cut_by
        numbers = {
            **numbers_of(episode, replays),
            "fault": float(self.fault is not None),
            "cut": float(self.cut_by is not None),
            "turn_limit": float(self.turn_limit or 0),
        }
        if self.fault is not None:
            numbers["success"] = 0.0
        if self.turns is not None and self.turns.penalties is not None:
            numbers["penalty"] = 0.0 if self.fault else self.turns.penalty
        timing.note(episode)
        self.record = {**numbers, **labels_of(task, self.fault, timing)}

    def output(self) -> AgentLoopOutput | list[AgentLoopOutput]:
        """Return the collected data: one output, or a list with one for each turn.

        verl copies the score and the numbers of the last row of an episode to all. A faulted episode has one
        row, which is masked. The score of a faulted baseline of ReMax is NaN: verl passes on no more of a
        baseline than its score.
        """
        if not self.response:  # verl puts the score on the last token, so there must be one
            self.response, self.mask = [self.end_token or 0], [0]
            self.logprobs = [0.0] if self.with_logprobs else []
        turns = None if self.fault or self.turns is None else self.turns.record(self.rewards)
        if not self.row_per_turn:
            return self._output(self._row(), turns, last=True)
        if self.fault:
            return [self._output(self._row(), None, last=True)]
        rows = [*self._earlier, self._row()]
        records = [None] * len(rows) if turns is None else split_turns(turns)
        return [
            self._output(row, record, last=row is rows[-1]) for row, record in zip(rows, records, strict=True)
        ]

    def _row(self) -> _Row:
        return _Row(self.prompt, self.response, self.mask, self.logprobs, self.routed_experts)

    def _output(self, row: _Row, turns: TurnRecord | None, *, last: bool) -> AgentLoopOutput:
        # verl requires them of all rows or of none, and a row without a reply got none.
        experts = self._no_experts if row.routed_experts is None else row.routed_experts
        optional = {}
        if experts is not None:
            optional["routed_experts"] = experts[: len(row.prompt) + len(row.response)]
        return AgentLoopOutput(
            prompt_ids=row.prompt,
            response_ids=row.response,
            response_mask=[0] * len(row.mask) if self.fault else row.mask,
            response_logprobs=row.logprobs if self.with_logprobs else None,
            multi_modal_data={},
            reward_score=math.nan if self.fault and self.is_baseline else self.record["return"],
            num_turns=self.replies + self.shown + 1,  # as verl's own loops count: the prompt is one
            metrics=AgentLoopMetrics(
                generate_sequences=self.generate_seconds if last else 0.0,
                tool_calls=self.environment_seconds if last else 0.0,
                num_preempted=self.preempted if last else -1,
            ),
            extra_fields={
                **self.server_fields,
                "turn_scores": self.rewards,
                COLUMN: turns,
                ROW_PER_TURN: self.row_per_turn,
                "tool_rewards": [],
                "reward_extra_info": self.record,
                "env_fault": self.fault,
            },
            **optional,
        )

    def _merge_fields(self, fields: dict[str, Any]) -> None:
        """Keep the last value of each key; of the training steps of the weights, the first and the last.

        A step that the server does not know is left out, because verl's trainer rejects None.
        """
        for name, pick in (("min_global_steps", min), ("max_global_steps", max)):
            steps = (self.server_fields.get(name), fields.pop(name, None))
            known = [step for step in steps if step is not None]
            if known:
                fields[name] = pick(known)
        self.server_fields.update(fields)
