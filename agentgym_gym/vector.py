"""The vector environment: several environments of one kind, in one event loop that runs in a thread."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv

from agentgym_gym._base_env import public_spec
from agentgym_gym._env_options import is_client
from agentgym_gym._http.limits import Stats
from agentgym_gym._remote_episode import StepResult
from agentgym_gym.aio import AsyncAgentGymEnv
from agentgym_gym.errors import BadOption, Fault, SetupError

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec
    from numpy.typing import NDArray

    from agentgym_gym.actions import Grammar, StepAction

__all__ = ["AgentGymVectorEnv"]

T = TypeVar("T")

_OTHER_DESCRIPTORS = 32  # for the event loop, files, and connections about to close


class AgentGymVectorEnv(VectorEnv[tuple[str, ...], Sequence["StepAction | None"], "NDArray[Any]"]):
    """Many environments in one thread: ``gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=256)``.

    Observations are a tuple of strings; actions are a sequence of arguments of `AgentGymEnv.step`. All
    environments step concurrently, and ``step`` returns when the slowest is done or has reached its time
    limit. A fault ends the episode of one environment and does not affect the others. If the reset of an
    environment fails, ``info["fault"]`` reports it, and the environment's next step is truncated.

    With ``AutoresetMode.DISABLED``, the default, ``reset(options={"reset_mask": mask})`` resets environments
    whose episode is over. Until then their action must be None, which leaves an environment unchanged, so
    that no reply of a model is silently dropped.

    Args:
        num_envs: Number of environments, an integer from 1.
        environment: Name in the catalogue, such as ``"TextCraft"``.
        autoreset_mode: An `AutoresetMode`, or its value.
        **options: The options of `AgentGymEnv`. ``http_client`` returns an ``httpx.AsyncClient`` for each
            environment, and cannot be a live client.

    Raises:
        UnknownEnvironment: The catalogue has no such environment.
        BadOption: An argument, or the variable for headers, has an invalid value.
        SetupError: This process may not open a connection for each environment.
    """

    _spec: EnvSpec | None = None
    metadata: dict[str, Any] = {"render_modes": ["ansi"], "autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int,
        environment: str,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.DISABLED,
        **options: Any,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise BadOption("num_envs", num_envs, "a positive number of environments")
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            modes = [mode.value for mode in AutoresetMode]
            raise BadOption("autoreset_mode", autoreset_mode, f"one of {modes}") from None
        if is_client(options.get("http_client")):
            raise BadOption(
                "a vector environment takes no live http_client: give a callable that makes an "
                "httpx.AsyncClient for each environment, or its import path"
            )
        if "wrappers" in options:
            raise BadOption(
                "wrappers= wraps each gymnasium.Env, and the environments of this vector are none: wrap the "
                "whole by gymnasium.wrappers.vector, or each by gymnasium.make_vec(id, num_envs, "
                "vectorization_mode='sync', wrappers=[...])"
            )
        _check_descriptors(num_envs)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.num_envs = num_envs
        self.envs = tuple(AsyncAgentGymEnv(environment, **options) for _ in range(num_envs))
        first = self.envs[0]
        self.render_mode = first.render_mode
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = spaces.Tuple([env.observation_space for env in self.envs])
        self.action_space = spaces.Tuple([env.action_space for env in self.envs])
        self._unset: dict[int, Fault] = {}  # environments whose last reset failed
        self._observations = [""] * num_envs
        from agentgym_gym._event_loop import EventLoopThread  # noqa: PLC0415 - it imports asyncio

        self._loop = EventLoopThread()
        # Without close(), the garbage collector stops the thread; the environments release themselves.
        self._finalizer = weakref.finalize(self, self._loop.stop, wait=False)
        self._finalizer.atexit = False  # at exit the environments are released first: see _exit.py

    @property
    def spec(self) -> EnvSpec | None:
        """The specification from which `gymnasium.make_vec` created these environments, without headers."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = public_spec(spec)

    @property
    def system_prompt(self) -> str:
        """The text for an agent before the first observation, as `AgentGymEnv.system_prompt`."""
        return self.envs[0].system_prompt

    @property
    def grammar(self) -> Grammar:
        """The actions of the environments."""
        return self.envs[0].grammar

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The actions as function tools, as `AgentGymEnv.tools`."""
        return self.envs[0].tools

    @property
    def stats(self) -> Stats:
        """Total metrics of all environments since they were created."""
        total = Stats()
        for env in self.envs:
            total.add(env.stats)
        return total

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Start a task in every environment, or in the environments of a mask.

        Args:
            seed: As in `AgentGymEnv.reset`, one per environment; or one number, to which the index of each
                environment, from 0, is added.
            options: ``task_id``, an integer or one per environment; and ``reset_mask``, an array of bool that
                is true for the environments to reset. Both are optional.

        Returns:
            The observations, with the last one of environments that were not reset; and the infos, in
            gymnasium's format.

        Raises:
            BadOption: The options have other keys or values, or not one value per environment.
            NoServer: No server is configured and none can be started.
            WrongServer: The server at the address provides another environment.
            Fault: All resets failed; or one failed, and ``on_fault="raise"``.
        """
        options = dict(options or {})
        mask = self._mask(options.pop("reset_mask", None))
        tasks = self._each("task_id", options.pop("task_id", None))
        if options:
            raise BadOption(f"reset options may hold 'task_id' and 'reset_mask', not {sorted(options)}")
        if isinstance(seed, (int, np.integer)):
            seed = [int(seed) + number for number in range(self.num_envs)]
        seeds = self._each("seed", seed)
        chosen = [number for number in range(self.num_envs) if mask[number]]
        infos = self._loop.run(self._reset_all(chosen, seeds, tasks))
        if chosen and all(number in self._unset for number in chosen):
            raise self._unset[chosen[0]]
        return tuple(self._observations), _columns(infos, self.num_envs)

    def step(
        self, actions: Sequence[StepAction | None]
    ) -> tuple[tuple[str, ...], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Execute one turn in every environment whose action is not None.

        Args:
            actions: One per environment.

        Returns:
            Observations, rewards (float64), terminated and truncated (bool), and the infos in gymnasium's
            format. An environment whose action was None repeats its last observation, with reward 0.

        Raises:
            gymnasium.error.ResetNeeded: An environment whose episode is over received an action.
            BadOption: There is not one action per environment, or `AgentGymEnv.step` does not accept one of
                them.
            Fault: The environment failed and ``on_fault="raise"``.
        """
        # A mapping or a single ToolCall is a call for one environment.
        several = hasattr(actions, "__len__") and not isinstance(actions, (str, Mapping))
        if not several or len(actions) != self.num_envs:
            raise BadOption(f"step takes a sequence of {self.num_envs} actions, one for each environment")
        if self.autoreset_mode != AutoresetMode.NEXT_STEP:
            over = [
                number
                for number, action in enumerate(actions)
                if action is not None and not self.envs[number].playing and number not in self._unset
            ]
            if over:
                raise ResetNeeded(
                    f"the episodes of environments {over} are over: reset them by reset(options="
                    "{'reset_mask': mask}), or give them None for an action"
                )
        if self.autoreset_mode != AutoresetMode.DISABLED and any(action is None for action in actions):
            raise BadOption(
                "every environment needs an action: only with AutoresetMode.DISABLED may it be None"
            )
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminated = np.zeros(self.num_envs, dtype=np.bool_)
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        infos: dict[int, dict[str, Any]] = {}
        for number, turn in self._loop.run(self._step_all(actions)).items():
            self._observations[number], rewards[number] = turn.observation, turn.reward
            terminated[number], truncated[number] = turn.terminated, turn.truncated
            infos[number] = turn.info
        return tuple(self._observations), rewards, terminated, truncated, _columns(infos, self.num_envs)

    def render(self) -> tuple[str, ...] | None:
        """Return the transcripts, or None without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(str(env.render()) for env in self.envs)

    def close_extras(self, **_kwargs: Any) -> None:
        """Release all remote environments and stop the thread; called by ``close``.

        If Ctrl-C interrupts it, call it again to close the remaining environments.
        """
        if "_loop" not in vars(self):
            return  # its construction failed, and gymnasium before 1.3 closes it on deletion
        if not self._loop.runs_here:
            # It was closed before, or this is a forked child, which does not own the environments.
            self._loop.stop()  # which Ctrl-C may have interrupted
            return
        try:
            self._loop.run(self._close_all())
        except Exception:
            self._loop.stop()
            raise
        self._loop.stop()  # not after Ctrl-C: the next `close` closes the rest

    async def _reset_all(
        self, chosen: Sequence[int], seeds: Sequence[Any], tasks: Sequence[Any]
    ) -> dict[int, dict[str, Any]]:
        return dict(
            await _gather(
                {number: self._reset_one(number, seeds[number], tasks[number]) for number in chosen}
            )
        )

    async def _step_all(self, actions: Sequence[StepAction | None]) -> dict[int, StepResult]:
        import asyncio  # noqa: PLC0415 - not before it is needed: importing the library must be cheap

        begun = {
            number: self._begin(number, action) for number, action in enumerate(actions) if action is not None
        }
        try:
            return await _gather(begun)
        except asyncio.CancelledError:
            for number in begun:
                self.envs[number].abort_episode()
            raise

    def _begin(self, number: int, action: StepAction) -> Awaitable[StepResult]:
        """Send the request of a turn, and return an awaitable of its result."""
        if number in self._unset:
            return self._end_unset(number)
        if not self.envs[number].playing:  # NEXT_STEP: ignore the action and reset
            return self._reset_instead(number)
        stepping = self.envs[number].begin_step(action)
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            return self._reset_after(number, stepping)
        return stepping

    async def _reset_one(self, number: int, seed: int | None, task: int | None) -> dict[str, Any]:
        """Reset one environment; record a fault."""
        env = self.envs[number]
        self._unset.pop(number, None)
        try:
            observation, info = await env.reset(
                seed=seed, options=None if task is None else {"task_id": task}
            )
        except Fault as fault:
            if env.on_fault == "raise":
                raise
            self._unset[number] = fault
            observation = f"The environment failed and could not be reset ({fault.kind})."
            info = {"fault": fault.as_dict()}
        self._observations[number] = observation
        return info

    async def _end_unset(self, number: int) -> StepResult:
        fault = {"fault": self._unset.pop(number).as_dict()}
        turn = StepResult(self._observations[number], 0.0, terminated=False, truncated=True, info=fault)
        return await self._next_episode(number, turn)

    async def _reset_instead(self, number: int) -> StepResult:
        info = await self._reset_one(number, None, None)
        return StepResult(self._observations[number], 0.0, terminated=False, truncated=False, info=info)

    async def _reset_after(self, number: int, stepping: Awaitable[StepResult]) -> StepResult:
        return await self._next_episode(number, await stepping)

    async def _next_episode(self, number: int, turn: StepResult) -> StepResult:
        """With SAME_STEP, reset an environment whose episode is over."""
        if self.autoreset_mode != AutoresetMode.SAME_STEP or not (turn.terminated or turn.truncated):
            return turn
        info = await self._reset_one(number, None, None)
        ended = {"final_obs": turn.observation, "final_info": turn.info}
        return turn._replace(observation=self._observations[number], info={**info, **ended})

    async def _close_all(self) -> None:
        await _gather({number: env.close() for number, env in enumerate(self.envs)})

    def _mask(self, given: Any) -> NDArray[Any]:
        mask = np.ones(self.num_envs, dtype=np.bool_) if given is None else np.asarray(given)
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise BadOption("reset_mask", expected=f"an array of {self.num_envs} truth values")
        return mask

    def _each(self, name: str, given: Any) -> Sequence[Any]:
        """Return one value per environment."""
        if given is None or isinstance(given, (int, np.integer)):
            return [given] * self.num_envs
        values = list(given)
        if len(values) != self.num_envs:
            raise BadOption(name, expected=f"one number, or {self.num_envs}, not {len(values)}")
        return values


def _check_descriptors(num_envs: int) -> None:
    """Check that this process can open a connection per environment.

    Raises:
        SetupError: The limit of file descriptors is too low.
    """
    try:
        import resource  # noqa: PLC0415 - not every system has it
    except ImportError:
        return
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = _descriptors()
    needed = used + num_envs + _OTHER_DESCRIPTORS
    if most != resource.RLIM_INFINITY and needed > most:
        raise SetupError(
            f"num_envs={num_envs} needs about {needed} file descriptors, one for the connection of each "
            f"environment in addition to the {used} in use, and this process may open {most}. Allow more, by "
            f"`ulimit -n {needed}` in its shell or by resource.setrlimit, or make fewer environments"
        )


def _descriptors() -> int:
    """Return the number of open descriptors of this process, or 0 if the system does not list them."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        with contextlib.suppress(OSError):
            return sum(1 for _ in Path(folder).iterdir())
    return 0


async def _gather(work: Mapping[int, Awaitable[T]]) -> dict[int, T]:
    """Await all concurrently; when all are done, raise the first error."""
    import asyncio  # noqa: PLC0415 - see above

    done = await asyncio.gather(*work.values(), return_exceptions=True)
    for each in done:
        if isinstance(each, BaseException):
            raise each
    return {
        number: each for number, each in zip(work, done, strict=True) if not isinstance(each, BaseException)
    }


def _columns(infos: dict[int, dict[str, Any]], size: int) -> dict[str, Any]:
    """Merge infos as gymnasium does: an array per key, and under ``_key`` the mask of its owners."""
    columns: dict[str, Any] = {}
    for key in dict.fromkeys(key for info in infos.values() for key in info):
        have = {number: info[key] for number, info in infos.items() if key in info}
        mask = np.zeros(size, dtype=np.bool_)
        mask[list(have)] = True
        columns[key], columns[f"_{key}"] = _column(have, size), mask
    return columns


def _column(have: dict[int, Any], size: int) -> Any:
    values = list(have.values())
    if all(isinstance(value, dict) for value in values):
        return _columns(have, size)
    kind = next((kind for kind in (bool, int, float) if all(type(value) is kind for value in values)), None)
    column = np.zeros(size, dtype=kind) if kind is not None else np.full(size, None, dtype=object)
    for number, value in have.items():
        column[number] = value
    return column
