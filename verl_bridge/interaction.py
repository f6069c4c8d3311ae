"""A text environment as a verl interaction, for verl up to 0.7; newer versions have no interactions.

verl 0.7.1 causes five problems for an interaction, and its own ``ToolAgentLoop`` has no hook for any of them
(``verl/experimental/agent_loop/tool_agent_loop.py``):

- The loop discards the return value of ``start_interaction``, so the first observation would never reach the
  model. The loop calls it before it renders the prompt, with the messages in a local variable. The
  interaction gets the messages from there and appends the observation.
- The loop checks the turn limits before the last reply is played. An episode here therefore ends one turn
  earlier, by limits read from the loop.
- The loop never calls ``finalize_interaction``. The interaction ends an episode when its asyncio task is
  done, and at the latest after ``idle_seconds`` without a call.
- The loop never plays a reply that reaches the end of the response. An episode whose first reply is that long
  would score 0, which may be the best of its group. The interaction therefore wraps the loop's own
  ``_handle_generating_state`` for this one episode, and plays such a reply up to the token where training
  cuts it off.
- The loop cannot exclude a failed episode from the loss. The interaction sets the mask of its tokens to 0 in
  the loop's state.

verl's loop encodes the messages itself, without checking their length. The interaction passes each
observation as text without control tokens (a blank is inserted into their spelling: ``< |im_end|>``), and
shortens it to the remaining tokens (``verl_bridge._run.prompt_budget``).

An episode whose reset faults is retried within the time budget ``fault_budget``, because the model has not
replied yet. A later fault is final, because verl's loop cannot start again.

If the calling loop is not the expected one, only the turn limit and the budget work, and a warning is logged.
:class:`verl_bridge.agent_loop.GymAgentLoop` needs none of this, and supports 0.7.1 too: prefer it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from verl_bridge._run.labels import labels_of
from verl_bridge._run.prompt_budget import PromptBudget
from verl_bridge._run.replays import Replays, budget_of, log_excluded
from verl_bridge._run.timing import Timing
from verl_bridge._tokens.observations import CutEpisodes
from verl_bridge.numbers import numbers_of
from verl_bridge.reward import TurnScore
from verl_bridge.tasks import EnvTask

_missing: ModuleNotFoundError | None = None
if TYPE_CHECKING:
    from agentgym_gym.rollout import Episode

    class BaseInteraction:
        """verl's base class, which has no type annotations."""

        def __init__(self, config: dict[str, Any]) -> None: ...

else:
    try:
        from verl.interactions.base import BaseInteraction
    except ModuleNotFoundError as error:
        BaseInteraction, _missing = object, error

__all__ = ["GymInteraction"]

_log = logging.getLogger(__name__)

_OPTIONS = frozenset(
    {
        *("name", "env_id", "env_kwargs", "reset_options", "max_turns", "idle_seconds"),
        *("max_observation_tokens", "hide_reasoning", "fault_budget", "isolate", "success_at"),
    }
)
_TASK_OPTIONS = ("env_id", "env_kwargs", "reset_options", "isolate", "success_at")
_cut_episodes = CutEpisodes()


class GymInteraction(BaseInteraction):
    """Plays a text environment. One instance serves all samples of a worker.

    In the interaction yaml:

    .. code-block:: yaml

        interaction:
          - name: gym_env
            class_name: verl_bridge.interaction.GymInteraction
            config:
              env_id: agentgym_gym:agentgym/TextCraft-v0
              max_turns: 20

    Args:
        config: ``env_id``, ``env_kwargs`` and ``reset_options`` for rows without them; ``max_turns``, the
            maximum number of turns of an episode, or null; ``idle_seconds``, after which an episode without
            calls is closed, 1800 by default; ``max_observation_tokens``, above which an observation is
            shortened in the middle, by default a quarter of ``response_length``, at least 128;
            ``hide_reasoning``, whether to send the environment only the part of a reply after the reasoning;
            ``fault_budget``, the seconds within which a failed start of an episode is retried, 600 by
            default, 0 for no retry.

    Raises:
        RuntimeError: The installed verl has no interactions.
        ValueError: The config has an unknown key or an invalid value.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        if _missing is not None:
            raise RuntimeError(
                f"the installed verl has no interactions ({_missing}); 0.8.0 deleted them: use the agent "
                "loop verl_bridge.agent_loop.GymAgentLoop, which runs on verl 0.7.1 to 0.9.1"
            )
        super().__init__(config)
        if config.get("drop_reasoning"):
            raise ValueError(
                "drop_reasoning is not supported here, because verl's loop keeps replies unchanged: use the "
                "agent loop verl_bridge.agent_loop.GymAgentLoop"
            )
        unknown = sorted(set(config) - _OPTIONS)
        if unknown:
            raise ValueError(
                f"the config of GymInteraction has unknown keys {unknown}: use {sorted(_OPTIONS)}"
            )
        self._defaults = {key: config.get(key) for key in _TASK_OPTIONS}
        self._max_turns = _positive("max_turns", config.get("max_turns"), float("inf"))
        most = _positive("max_observation_tokens", config.get("max_observation_tokens"), 0.0)
        self._observation_limit = math.ceil(most) or None
        self._hide_reasoning = bool(config.get("hide_reasoning"))
        self._idle_seconds = _positive("idle_seconds", config.get("idle_seconds"), 1_800.0)
        self._fault_budget = budget_of(config.get("fault_budget"))
        self._played: dict[str, _LimitedEpisode] = {}

    async def start_interaction(self, instance_id: str | None = None, **kwargs: Any) -> str:
        """Start an episode, and add the first observation to the messages.

        Args:
            instance_id: The id of the episode in later calls.
            **kwargs: The row's ``interaction_kwargs``.

        Returns:
            The `instance_id`, or a new one.

        Raises:
            ValueError: The row's environment cannot be made, or verl's own limit leaves no turn.
        """
        loop = _Loop.from_frame(sys._getframe(1))  # noqa: SLF001 - the only way to the messages, see above
        instance_id = instance_id or uuid4().hex
        limit = min(self._max_turns, loop.turns)
        if limit < 1:
            raise ValueError(
                "verl's limits leave no turn to play: max_assistant_turns must be at least 2, since the last "
                "reply within it is never played, and max_user_turns at least 1"
            )
        task = EnvTask.of({"interaction_kwargs": kwargs}, **self._defaults)
        replays, timing = Replays(task, self._fault_budget), Timing()
        episode = await task.episode().begin()
        while await replays.wait(episode):
            await episode.end()
            timing.note(episode)
            episode = await task.episode().begin()
        self._played[instance_id] = played = _LimitedEpisode(task, episode, limit, replays.count, timing)
        self._restart_timer(instance_id, played)
        player = asyncio.current_task()
        if player is not None:
            player.add_done_callback(lambda task: self._done(instance_id, task))
        if loop.messages is None:
            _log.warning(
                "the first observation of %s does not reach the model: start_interaction was not called by "
                "the ToolAgentLoop of verl 0.7",
                task.env_id,
            )
        else:
            rejected = loop.budget.begin(loop.messages, "" if episode.fault else episode.observation)
            if rejected and episode.fault is None:
                episode.fault = {"kind": "PromptTooLong", "message": rejected}
                episode.over = True
                _log.warning("%s: %s", task.env_id, rejected)
            loop.play_last_reply(self, instance_id)
        return instance_id

    async def generate_response(
        self, instance_id: str, messages: list[dict[str, Any]], **kwargs: Any
    ) -> tuple[bool, str, float, dict[str, Any]]:
        """Play the model's last reply.

        Returns:
            Whether the episode is over, the observation, the reward (with the record, see
            :class:`~verl_bridge.reward.TurnScore`), and ``info`` of the environment.

        Raises:
            KeyError: There is no such episode, or it was closed after its idle time.
            ValueError: No message is the model's.
        """
        loop = _Loop.from_frame(sys._getframe(1))  # noqa: SLF001
        played = self._find(instance_id)
        self._restart_timer(instance_id, played)
        episode, reward, info = played.episode, 0.0, {}
        if not played.over:
            reply = loop.budget.reply(_reply_in(messages), messages, hide_reasoning=self._hide_reasoning)
            turn = await episode.step(reply)
            reward, info = turn.reward, dict(turn.info)
            log_excluded(played.task, episode)
        if episode.fault is not None:
            loop.mask()
            info = {"fault": episode.fault}
        shown, limit = loop.budget.after(episode.observation, self._observation_limit)
        if limit is not None and not played.over:
            played.cut_by, shown = limit, ""
        if played.over:
            await episode.end()
        return played.over, shown, TurnScore(reward, played.record()), info

    async def calculate_score(self, instance_id: str, **kwargs: Any) -> float:
        """Return the return of an episode so far; 0 after a fault.

        Raises:
            KeyError: There is no such episode, or it was closed after its idle time.
        """
        return float(self._find(instance_id).record()["return"])

    async def finalize_interaction(self, instance_id: str, **kwargs: Any) -> None:
        """Release the environment of an episode. May be called again."""
        played = self._played.pop(instance_id, None)
        if played is not None:
            played.stop_timer()
            await played.episode.end()

    def _find(self, instance_id: str) -> _LimitedEpisode:
        if instance_id not in self._played:
            raise KeyError(
                f"there is no episode {instance_id!r}: it was never started, has been finalized, or was "
                f"given up after {self._idle_seconds:g} idle seconds"
            )
        return self._played[instance_id]

    def _restart_timer(self, instance_id: str, played: _LimitedEpisode) -> None:
        """Restart the idle timer of an episode."""
        played.stop_timer()
        played.timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._abandon, instance_id)

    def _done(self, instance_id: str, player: asyncio.Task[Any]) -> None:
        played = self._played.get(instance_id)
        if played is not None and not player.cancelled() and player.exception() is None:
            _cut_episodes.count(played.cut_by if played.over else "data.max_response_length")
        self._abandon(instance_id)

    def _abandon(self, instance_id: str) -> None:
        if instance_id in self._played:
            ending = asyncio.get_running_loop().create_task(self.finalize_interaction(instance_id))
            _ending.add(ending)
            ending.add_done_callback(_ending.discard)


_ending: set[asyncio.Task[None]] = set()  # asyncio itself keeps weak references only


class _LimitedEpisode:
    """An episode, its turn limit, and its idle timer."""

    def __init__(self, task: EnvTask, episode: Episode, limit: float, replays: int, earlier: Timing) -> None:
        self.task = task
        self.episode = episode
        self.limit = limit
        self.replays = replays
        self._earlier = earlier  # the timing of the tries before
        self.timer: asyncio.TimerHandle | None = None
        self.cut_by: str | None = None

    @property
    def over(self) -> bool:
        ended = self.episode.over or len(self.episode.rewards) >= self.limit
        return ended or self.cut_by is not None

    def record(self) -> dict[str, Any]:
        """Return the numbers and labels of the episode, assuming that this turn is the last.

        verl's loop does not report that the response is full: an unfinished episode without a next turn was
        cut off.
        """
        timing = Timing()
        timing.add(self._earlier)
        timing.note(self.episode)
        return {
            **numbers_of(self.episode, self.replays),
            "cut": float(self.cut_by is not None or not self.over),
            **labels_of(self.task, self.episode.fault, timing),
        }

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class _Loop:
    """The parts of verl's ``ToolAgentLoop`` that are needed, from the frame that calls the interaction."""

    def __init__(self, messages: list[Any] | None, turns: float, state: Any, loop: Any = None) -> None:
        self.messages = messages
        self.turns = turns
        self.budget = PromptBudget(loop, state)
        self._state = state
        self._loop = loop

    @classmethod
    def from_frame(cls, frame: FrameType) -> _Loop:
        """Read the caller's frame: ``run`` has the messages, ``_handle_interacting_state`` the state."""
        names = frame.f_locals
        loop: Any = names.get("self")
        messages = names.get("messages") if frame.f_code.co_name == "run" else None
        if not hasattr(loop, "max_assistant_turns") or not hasattr(loop, "max_user_turns"):
            return cls(None, float("inf"), None)
        # The loop does not play the last reply within the limit of replies, and requests none after the limit
        # of answers. 0 and None mean no limit.
        replies = (loop.max_assistant_turns or float("inf")) - 1
        answers = loop.max_user_turns or float("inf")
        known = messages if isinstance(messages, list) else None
        return cls(known, min(replies, answers), names.get("agent_data"), loop)

    def play_last_reply(self, interaction: GymInteraction, instance_id: str) -> None:
        """Wrap the loop so that a reply which fills the response is played. Each episode has its own loop."""
        loop = self._loop
        generate = getattr(loop, "_handle_generating_state", None)
        if not inspect.iscoroutinefunction(generate):
            _log.warning(
                "a reply that reaches the end of the response is not played: this is not the ToolAgentLoop "
                "of verl 0.7"
            )
            return

        async def generate_and_play(agent_data: Any, *args: Any, **kwargs: Any) -> Any:
            state = await generate(agent_data, *args, **kwargs)
            if getattr(state, "name", None) == "TERMINATED":
                await _play_last_reply(loop, agent_data, interaction, instance_id)
            return state

        loop._handle_generating_state = generate_and_play  # noqa: SLF001 - see the top of this file

    def mask(self) -> None:
        """Exclude the episode from the loss."""
        mask = getattr(self._state, "response_mask", None)
        if isinstance(mask, list):
            mask[:] = [0] * len(mask)
        else:
            _log.warning(
                "a faulted episode is not excluded from the loss: this is not the ToolAgentLoop of verl 0.7"
            )


async def _play_last_reply(self: Any, agent_data: Any, interaction: GymInteraction, instance_id: str) -> None:
    """Play the last reply of a full response, up to the token where training cuts it off.

    The first two parameters have the names of the loop's own methods, because this replaces one of them.
    """
    beyond = max(0, len(agent_data.response_mask) - self.response_length)
    reply = agent_data.response_ids[: len(agent_data.response_ids) - beyond]
    if not reply:  # the previous observation filled the response
        return
    text = self.tokenizer.decode(reply, skip_special_tokens=True)
    messages = [*agent_data.messages, {"role": "assistant", "content": text}]
    _, _, score, _ = await interaction.generate_response(instance_id, messages)
    agent_data.turn_scores.append(score)


def _reply_in(messages: list[dict[str, Any]]) -> str:
    for message in reversed(messages):
        if message.get("role") == "assistant":
            return str(message.get("content") or "")
    raise ValueError("no message has the role assistant: there is no reply to play")


def _positive(name: str, value: Any, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f"{name}={value!r} should be a number above 0")
    return float(value)
