"""The Wordle server: AgentGym's protocol over the games of `_game`.

Requests and responses equal AgentGym's LMRL-Gym server's, including errors: HTTP 200 with ``{"error": str}``.
The server identifies itself as that server does, and its routes distinguish it from a Maze server. The
``local_quirks`` of `agentgym_gym.envs.wordle` list the differences, most of which a twin does not have. There
are three more:

- *Some error messages of AgentGym's server before the first reset name a part of the program.* Here each
message describes the error.
- *AgentGym's server has no limits.* Here the body of a request may have 1 MiB, and a larger one results in
413; there are at most 4,096 environments, and an environment that is idle for an hour is dropped. All limits
can be set.
- *On AgentGym's server, a response that quotes the request can be 500*, where JSON cannot represent the
quotation. Here it never is.

As on AgentGym's server, a new environment has a game before the first reset, and a request fails once the
game is over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agentgym_gym.errors import ArgumentName, BadOption
from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import EnvId, Failed, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers._frame.request_models import StepBody
from agentgym_servers._frame.serial_thread import SerialThread
from agentgym_servers.wordle._game import START, TwinGame, WordleGame
from agentgym_servers.wordle._world import TWIN_WORDS, WordleWorld, world_of, world_of_data

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI

__all__ = ["create_app"]

_ANY_WORD = "Any common English word of five letters may be hidden."

MAX_LISTED = 40
"""The maximum number of possible words that ``filtered_vocab`` lists; more are summarized in one entry.

AgentGym's client puts the list into the first message, and its Evaluator plays no episode whose messages have
more than 4,096 tokens. AgentGym's server has 40 words.
"""


class _ResetBody(BaseModel):
    id: int
    seed: int


class _ServedEnv:
    """One environment.

    Attributes:
        seed: The task of its last reset; None before the first.
        observation: The last observation; None before the first reset and guess.
        turn: Held while the possible words of the environment are computed.
    """

    def __init__(self, env_id: int, world: WordleWorld, *, twin: bool) -> None:
        self._id = env_id
        self._world = world
        self._twin = twin
        self._game = TwinGame(world, None) if twin else WordleGame(world, env_id)
        self.seed: int | None = None
        self.observation: str | None = None
        self.turn = asyncio.Lock()

    def start(self, seed: int, observation: str) -> None:
        """Start a task."""
        self._game = TwinGame(self._world, seed) if self._twin else WordleGame(self._world, seed)
        self.seed, self.observation = seed, observation

    @property
    def game(self) -> WordleGame:
        """The current game, which is not over."""
        if self._game.done:
            raise Failed(f"The task with environment {self._id} has finished.")
        return self._game


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet.

    Raises:
        BadOption: The user's words are unreadable or invalid, or are given to a twin, which has its own.
    """
    if options.twin:
        if options.data is not None or options.seed:
            reason = "needs the words of AgentGym's server: leave out "
            raise BadOption("twin", problem=(reason, ArgumentName("seed"), " and ", ArgumentName("data")))
        world, start, summary = WordleWorld(TWIN_WORDS, 0), START, None
    elif options.data is None:
        world, start = world_of(options.seed), f"{START} {_ANY_WORD}"
        summary = "any common English word of five letters"
    else:
        world = world_of_data(options.data)
        start = f"{START} There are {len(world.words)} words."
        summary = f"any of {len(world.words)} words of five letters"
    envs = HeldEnvs[_ServedEnv](options)
    greeting = "This is environment LMRL-Gym."
    app = new_app("Wordle", options, greeting=greeting, one_world=options.twin, prefix="/wordle")
    _add_play(app, envs, lambda env_id: _ServedEnv(env_id, world, twin=options.twin), start)
    _add_views(app, envs, summary, twin=options.twin)
    return app


def _add_play(app: FastAPI, envs: HeldEnvs[_ServedEnv], new: Callable[[int], _ServedEnv], start: str) -> None:
    @app.post("/wordle/create", response_model=None)
    async def create() -> dict[str, Any]:
        return {"id": envs.add(new)}

    @app.post("/wordle/reset", response_model=None)
    async def reset(body: _ResetBody) -> dict[str, Any]:
        envs.get(body.id).start(body.seed, start)
        return {"id": body.id, "observation": start}

    @app.post("/wordle/step", response_model=None)
    async def step(body: StepBody) -> dict[str, Any]:
        env = envs.get(body.id)
        result = env.game.play(body.action)
        env.observation = result.observation
        return vars(result)


def _add_views(app: FastAPI, envs: HeldEnvs[_ServedEnv], summary: str | None, *, twin: bool) -> None:
    worker = SerialThread()

    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return envs.ids()

    @app.get("/wordle/filtered_vocab", response_model=None)
    async def filtered_vocab(env_id: EnvId, whole: bool = False) -> list[str]:
        env = envs.get(env_id)
        words = await worker.run(env.turn, env.game.possible)  # takes some milliseconds
        return words if whole or summary is None or len(words) <= MAX_LISTED else [summary]

    @app.get("/wordle/observation", response_model=None)
    async def observation(env_id: EnvId) -> str:
        env = envs.get(env_id)
        env.game  # noqa: B018 - fails where the game is over
        if env.observation is None and twin:
            raise Failed("'observation'")  # as AgentGym's server words it
        if env.observation is None:
            raise Failed(f"The environment {env_id} has no observation yet: reset it first.")
        return env.observation

    @app.get("/wordle/detail", response_model=None)
    async def detail(env_id: EnvId) -> dict[str, Any]:
        env = envs.get(env_id)
        shown: dict[str, Any] = {"done": False, "reward": env.game.reward, "deleted": False}
        if env.observation is not None:
            shown["observation"] = env.observation
        if env.seed is not None:
            shown["seed"] = env.seed
        return shown
