"""verl's agent loop that plays a text environment, for verl 0.7.1 to 0.9.1.

In the yaml of ``actor_rollout_ref.rollout.agent.agent_loop_config_path``:

.. code-block:: yaml

    - name: gym_env
      _target_: verl_bridge.agent_loop.GymAgentLoop
      env_id: agentgym_gym:agentgym/TextCraft-v0
      env_kwargs: {server: "http://127.0.0.1:36005"}
      max_turns: 20
      max_tokens_per_turn: 256

A row's ``extra_info.interaction_kwargs`` overrides the environment settings of the yaml.

The outcomes of an episode, and the values that verl receives:

==================================  =================  ==========  ======================
outcome                             response mask      score       ``fault``
==================================  =================  ==========  ======================
the environment ended it            the model's turns  the return  0
the limit of turns                  the model's turns  the return  0
``response_length`` is used up      the model's turns  the return  0, and ``cut`` is 1
the environment failed, each time   all zero           0           1
the first prompt does not fit       all zero           0           1, and a warning names
                                                                   the length needed
verl aborted a reply for good       all zero           0           1
==================================  =================  ==========  ======================

An observation over ``max_observation_tokens`` is shortened in the middle, where a mark gives the length of
the omission. A first observation that makes the prompt too long is shortened in the same way. A prompt that
is too long without it is rejected, because a model would learn from half a rule. A reply that is cut off, by
its own limit or by ``response_length``, is sent as it is: the environment decides what a long reply costs.

:mod:`verl_bridge.trainer` leaves faulted episodes out of verl's advantages: verl itself counts their masked 0
in the mean and deviation of their group. With the legacy workers of verl 0.7.1, a micro-batch of masked
episodes only has the loss 0/0, and verl then skips the whole update: set
``trainer.use_legacy_worker_impl=disable``.
"""

# Not @register: importing the module would overwrite the yaml's entry of the same name, and its arguments.

from __future__ import annotations

import asyncio
import functools
import gc
import importlib.util
import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from jinja2 import TemplateError
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput

from agentgym_gym.errors import BadOption
from agentgym_gym.rollout import (
    Episode,
    EpisodeWriter,
    History,
    StepRecord,
    drop_blank_system,
    writer_at,
)
from verl_bridge._credit.estimators import BY_TURN, GIGPO
from verl_bridge._credit.turn_rewards import Penalties, TurnLog
from verl_bridge._run.episode_log import opening_of, record_of, task_id_of
from verl_bridge._run.loop_arguments import ARGUMENTS, LoopOptions, require_trainer, unknown_arguments
from verl_bridge._run.prompts import ContinuedPrompt, Prompts, TurnPrompts
from verl_bridge._run.replays import Replays, budget_of
from verl_bridge._run.rollout_output import RolloutOutput
from verl_bridge._run.timing import Timing
from verl_bridge._tokens.chat_template import shared_chat
from verl_bridge._tokens.limits import TokenLimit, TokenLimits
from verl_bridge._tokens.observations import LEAST, CutEpisodes, default_limit
from verl_bridge._tokens.rendered import RenderedChat
from verl_bridge.horizon import Horizon, Moment, now
from verl_bridge.tasks import ENV_TIMEOUT, EnvTask
from verl_bridge.tokens import TokenizedChat

__all__ = ["ENV_TIMEOUT", "GymAgentLoop", "LoopOptions"]

T = TypeVar("T")

_LONG = 2_000
"""Minimum characters of a text that is encoded in a thread."""

_log = logging.getLogger(__name__)


def _signature(init: Callable[..., None]) -> inspect.Signature:
    """Return a constructor's signature with the arguments of the yaml."""
    own, options = (inspect.signature(each).parameters.values() for each in (init, LoopOptions))
    *first, last = own
    return inspect.Signature([*first, *options, last])


class GymAgentLoop(AgentLoopBase):
    """Plays one episode for each sample.

    Args:
        *args: The arguments that verl passes to its agent loops.
        **kwargs: The arguments of the yaml (see :class:`LoopOptions`), and further arguments that verl passes
            to its agent loops, which depend on its version.

    Raises:
        ValueError: An argument is invalid, or :mod:`verl_bridge.trainer` is needed and not loaded.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        arguments = {name: kwargs.pop(name) for name in ARGUMENTS if name in kwargs}
        try:
            super().__init__(*args, **kwargs)
        except TemplateError:
            # verl 0.7 and 0.8 end by rendering two user messages in a row, for a number that is not used
            # here. Some templates reject that.
            if not hasattr(self, "apply_chat_template_kwargs"):
                raise
        _warn_about_unknown(kwargs)
        self._options = options = LoopOptions(**arguments)
        self._horizon = Horizon.of(options.horizon)
        self._estimator = str(self.config.algorithm.adv_estimator)
        require_trainer(self._estimator, vars(options))
        directory = options.episodes_dir
        self._episodes = None if directory is None else writer_at(self._resolve_path(directory))
        self._limits = TokenLimits(self.rollout_config)
        self._by_turn = options.rows == "turn"
        if self._by_turn and not _takes_several_rows(self.config):
            raise BadOption("rows", "turn", "episode: a row for each turn requires verl 0.9, and its use_v1")
        self._history = History.parse(options.history)

    __init__.__signature__ = _signature(__init__)  # type: ignore[attr-defined]

    async def run(
        self, sampling_params: dict[str, Any], **kwargs: Any
    ) -> AgentLoopOutput | list[AgentLoopOutput]:
        """Play the episode of a row; with ``rows: turn``, return an output for each turn.

        Args:
            sampling_params: The sampling parameters. Log-probabilities are returned if requested here.
            **kwargs: The row.

        Raises:
            ValueError: The row is wrong, its environment is not registered or has no tools for `tool_calls`,
                or the turn limit depends on the training step and verl does not pass the step on.
            UnstableTemplate: The model's chat template does not support continuing a conversation.
            TypeError: The estimator is ``gym_gigpo``, and the ``state_key`` in the environment's ``info`` is
                neither text nor an integer.
            Exception: Any error of the generation server. The environment raises nothing.
        """
        task = self._options.task_of(kwargs)
        messages = drop_blank_system(kwargs["raw_prompt"])
        replays, timing = Replays(task, budget_of(self._options.fault_budget)), Timing()
        turn_limit = self._options.max_turns if self._horizon is None else self._horizon.limit(now.get())
        while True:
            rollout = RolloutOutput(
                with_logprobs=bool(sampling_params.get("logprobs")),
                row_per_turn=self._by_turn,
                turn_limit=turn_limit,
                is_baseline=self._is_baseline(sampling_params),
                turns=self._turn_log(),
            )
            episode = await self._play(rollout, task, messages, sampling_params)
            rollout.add_result(episode, task, replays.count, timing)
            if not await replays.wait(episode):
                break
        _cut_episodes.count(rollout.cut_by)
        if self._episodes is not None:
            await self._write(self._episodes, episode, task, rollout, messages, kwargs)
        # verl 0.9.1 requires the training step of the weights, also if nothing was sampled.
        rollout.server_fields = {**_steps_of(kwargs), **rollout.server_fields}
        return rollout.output()

    def _is_baseline(self, sampling_params: Mapping[str, Any]) -> bool:
        """Return whether verl's ReMax uses the score of this episode as the baseline of its prompt.

        Only a trainer that is wrapped by :mod:`verl_bridge.trainer` passes the moment on.
        """
        moment = now.get()
        greedy = sampling_params.get("temperature") == 0
        if moment is None or moment.validation or not greedy:
            return False
        return self._estimator == "remax"

    def _turn_log(self) -> TurnLog | None:
        options, moment = self._options, now.get()
        penalties = Penalties(options.invalid_action_penalty, options.format_penalty)
        in_training = moment is None or not moment.validation
        log = TurnLog(
            options.turn_rewards,
            with_states=self._estimator == GIGPO,
            penalties=penalties if any(penalties) and in_training else None,
        )
        return log if log.place or log.penalties or self._estimator in BY_TURN else None

    async def _write(
        self,
        writer: EpisodeWriter,
        episode: Episode,
        task: EnvTask,
        rollout: RolloutOutput,
        messages: Sequence[Mapping[str, Any]],
        row: Mapping[str, Any],
    ) -> None:
        """Write a finished episode; of a retried episode, the last try."""
        moment, agent = now.get() or _moment_of(row), _model_name(self.tokenizer)
        facts = {
            "env_id": rollout.record["env_id"],
            "agent": agent,
            "server": rollout.record["env_server"] or None,
            "system_prompt": opening_of(messages),
        }
        record = functools.partial(
            record_of,
            episode,
            agent=agent,
            task_id=task_id_of(task, row),
            fault=rollout.fault,
            cut=rollout.cut_by is not None,
            agent_seconds=rollout.generate_seconds,
            moment=moment,
        )
        await writer.write(record, facts)

    async def _play(
        self,
        rollout: RolloutOutput,
        task: EnvTask,
        messages: Sequence[Mapping[str, Any]],
        sampling_params: Mapping[str, Any],
    ) -> Episode:
        episode = task.episode(timeout=self._options.env_timeout, max_turns=rollout.turn_limit)
        async with episode:
            _freeze_imports()
            prompts = self._prompts(messages, episode)
            rollout.end_token = prompts.end_token
            first = episode.observation  # empty after a fault
            limit = self._limits.of_prompt.tokens
            prompt, shown = await _encode_aside(len(first), lambda: prompts.begin(first, limit))
            rollout.prompt = prompt[-limit:]
            if len(prompt) > limit or shown < min(LEAST, len(first)):
                needed, _ = await _encode_aside(len(first), lambda: prompts.begin(first, None))
                rollout.reject("PromptTooLong", self._limits.explain(len(needed)))
                _log.warning("%s: %s", task.env_id, rollout.fault)
            elif episode.fault is None:
                await self._play_turns(episode, rollout, prompts, sampling_params)
        rollout.environment_seconds = episode.env_seconds
        return episode

    def _prompts(self, messages: Sequence[Mapping[str, Any]], episode: Episode) -> Prompts:
        native = self._options.tool_calls and episode.fault is None
        tools = episode.tools if native else []
        if native and not tools:
            raise ValueError(
                "tool_calls: true needs an environment with the attribute tools, a list of JSON schemas: set "
                "tool_calls to false"
            )
        system = any(message.get("role") == "system" for message in messages)
        limits, tokenizer, template = self._limits, self.tokenizer, self.apply_chat_template_kwargs
        if self._by_turn:
            return TurnPrompts(
                shared_chat(RenderedChat, tokenizer, template, system=system, tools=tools),
                messages,
                limits,
                history=self._history,
                observation_limit=self._options.max_observation_tokens
                or default_limit(limits.of_prompt.tokens),
            )
        return ContinuedPrompt(
            shared_chat(TokenizedChat, tokenizer, template, system=system, tools=tools),
            messages,
            limits,
            observation_limit=self._options.max_observation_tokens or default_limit(limits.response_length),
            drop_reasoning=self._options.drop_reasoning,
        )

    async def _play_turns(
        self,
        episode: Episode,
        rollout: RolloutOutput,
        prompts: Prompts,
        sampling_params: Mapping[str, Any],
    ) -> None:
        request_id, chat = uuid4().hex, prompts.chat
        while True:
            before = rollout.generate_seconds
            if rollout.turns is not None:
                rollout.turns.begin(episode.observation, episode.info)
            reply = await self._generate(request_id, rollout, sampling_params)
            if reply is None:
                return
            text = chat.text(reply)
            step: StepRecord = {
                "agent_seconds": rollout.generate_seconds - before,
                "prompt_tokens": len(rollout.prompt) + len(rollout.response) - len(reply),
                "completion_tokens": len(reply),
            }
            if prompts.omitted_turns:
                step["omitted_turns"] = prompts.omitted_turns
            episode.add_reply(text, step)
            await episode.step(chat.answer(reply) if self._options.hide_reasoning else text)
            if rollout.turns is not None:
                rollout.turns.end(episode.info)
            if episode.over:
                return
            characters = len(episode.observation) + prompts.characters
            rollout.cut_by = await _encode_aside(
                _LONG + 1 if prompts.calls_function else characters,  # a user's function may take any time
                functools.partial(prompts.continue_with, rollout, reply, episode),
            )
            if rollout.cut_by is not None:
                return

    async def _generate(
        self, request_id: str, rollout: RolloutOutput, sampling_params: Mapping[str, Any]
    ) -> list[int] | None:
        """Generate a reply; return its tokens, or None if verl aborted it for good."""
        params = dict(sampling_params)
        # Use one name, which the servers of all versions support; some raise an error if both are set.
        requested = [params.pop(name, None) for name in ("max_tokens", "max_new_tokens")]
        limits = [limit for limit in (*requested, self._options.max_tokens_per_turn) if limit is not None]
        params["max_tokens"] = limit = min([self._room(rollout).tokens, *limits])
        started = time.monotonic()
        output = await self.server_manager.generate(
            request_id=request_id, prompt_ids=rollout.prompt + rollout.response, sampling_params=params
        )
        rollout.generate_seconds += time.monotonic() - started
        return rollout.append_reply(output, limit)

    def _room(self, rollout: RolloutOutput) -> TokenLimit:
        return self._limits.room(len(rollout.prompt) + len(rollout.response), len(rollout.response))

    def _resolve_path(self, path: str) -> Path:
        """Return a path, relative to the folder of the loop's yaml unless it is absolute."""
        yaml = self.rollout_config.agent.get("agent_loop_config_path")
        folder = Path(yaml).parent if yaml and "://" not in yaml else Path()
        return (folder / path).absolute()


def _takes_several_rows(config: Any) -> bool:
    """Return whether verl's trainer takes several rows of an episode."""
    try:
        newer = importlib.util.find_spec("verl.trainer.ppo.v1") is not None
    except ModuleNotFoundError:  # of a package above it
        return False
    return newer and bool((config.get("trainer") or {}).get("use_v1", True))


def _moment_of(row: Mapping[str, Any]) -> Moment | None:
    """Return the training step that verl 0.9's trainer puts into a row; None if the row has none."""
    step = row.get("global_steps")
    return None if step is None else Moment(int(step), None)


def _model_name(tokenizer: Any) -> str:
    """Return the model's name: its name on the hub, or the name of its folder."""
    path = str(getattr(tokenizer, "name_or_path", None) or "model")
    return Path(path).name if "://" in path or Path(path).is_absolute() else path


def _steps_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training step of the weights when the row was started: the step before its own."""
    step = row.get("global_steps")
    return {} if step is None else dict.fromkeys(("min_global_steps", "max_global_steps"), max(step - 1, 0))


@functools.cache
def _freeze_imports() -> None:
    """Exempt all objects of this process so far from garbage collection, once.

    A full collection inspects every object of PyTorch, transformers, Ray and verl, 345,000 of them, and stops
    the event loop with all its episodes meanwhile: for 220 to 260 ms on two cores, before this was added;
    after it, for less than 20 ms. By the first reset of the first episode everything has been imported.
    """
    gc.collect()  # what is garbage now would stay
    gc.freeze()


_cut_episodes = CutEpisodes()
_known_arguments = {"name", "tools", "hf_model_type"}


async def _encode_aside(characters: int, work: Callable[[], T]) -> T:
    """Encode a text, in a thread if it is long, so that it does not block the event loop."""
    return work() if characters <= _LONG else await asyncio.to_thread(work)


def _warn_about_unknown(arguments: Mapping[str, Any]) -> None:
    # verl passes its own arguments, and each version more of them, so unknown names cannot be rejected.
    unknown = {*arguments} - _known_arguments - {*AgentLoopBase.__init__.__code__.co_varnames}
    if unknown:
        for message in unknown_arguments(sorted(unknown)):
            _log.warning("%s: check its spelling in the yaml", message)
        _known_arguments.update(unknown)
