"""The Maze server: AgentGym's protocol over the games of `maze_game`.

Requests and replies are those of AgentGym's LMRL-Gym server, errors too: HTTP 200 with ``{"error": str}``.
It says of itself what that server says, so that whatever is made for that server finds this one. These are
the differences:

- *There is no Wordle.* That server plays both. Here every route under ``/wordle`` is 404, and
  ``/openapi.json``, by which `agentgym_gym.envs.wordle` knows its server, lists none.
- *A negative task id counts from the end there*, so that -26 is task 0. Here it is refused like any other
  task that does not exist.
- *Some error messages are empty, or name a part of the program*: that of task 25, which is the goal itself,
  and those of requests before the first reset. Here each says what is wrong.
- *Environments are kept for ever* there, as nothing frees one. Here there are at most 4,096: ``/maze/create``
  forgets the one that was asked for longest ago, if that was an hour ago or more, and else answers
  ``{"error"}``. Both limits can be set.
- *Nothing else is limited* there. Here a request has at most 1 MiB, past which it is 413; it can be set.
- *A reply that quotes the request can be 500* there, where JSON cannot hold what it would quote. Here it
  never is.
- *Every environment is announced on standard output* there. Here nothing is printed.

As there: a request before the first reset fails, and so does any but a reset once a game is over; a reset
that is refused leaves the game as it was.
"""

from __future__ import annotations

import itertools
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agentgym_gym.servers.app import MAX_BODY_BYTES, MAX_ENVS, EnvId, Failed, check_limits, new_app
from agentgym_gym.servers.maze_game import ACTIONS, TASKS, Game

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["KEEP_SECONDS", "create_app"]

KEEP_SECONDS = 3600.0
"""For how many seconds an unused environment is kept at least, by default."""


class _StepBody(BaseModel):
    id: int
    action: str


class _ResetBody(BaseModel):
    id: int
    game: int


class _Session:
    """One environment: its game, once there is one, and when it was last asked for."""

    def __init__(self) -> None:
        self.game: Game | None = None
        self.used = time.monotonic()


class _Sessions:
    """All environments of one server. For one thread only."""

    def __init__(self, max_envs: int, keep_seconds: float) -> None:
        self._max_envs = max_envs
        self._keep_seconds = keep_seconds
        self._sessions: OrderedDict[int, _Session] = (
            OrderedDict()
        )  # the one asked for longest ago comes first
        self._ids = itertools.count()  # never reused: an id held too long must not reach another's game

    def create(self) -> int:
        if len(self._sessions) >= self._max_envs:
            self._forget_one()
        env_id = next(self._ids)
        self._sessions[env_id] = _Session()
        return env_id

    def reset(self, env_id: int, task: int) -> Game:
        session = self._session(env_id)
        if task not in range(TASKS):
            raise Failed(f"The game {task} is not valid.")
        session.game = game = Game(task)
        return game

    def game(self, env_id: int) -> Game:
        """Return the game of an environment, which is not over."""
        game = self._session(env_id).game
        if game is None:
            raise Failed(f"The environment {env_id} has no game yet: reset it first.")
        if game.last.done:
            raise Failed(f"The task with environment {env_id} has finished.")
        return game

    def _session(self, env_id: int) -> _Session:
        session = self._sessions.get(env_id)
        if session is None:
            raise Failed(f"The id {env_id} is not valid.")
        session.used = time.monotonic()
        self._sessions.move_to_end(env_id)
        return session

    def _forget_one(self) -> None:
        env_id, session = next(iter(self._sessions.items()))
        if time.monotonic() - session.used < self._keep_seconds:
            raise Failed(
                f"This server holds {self._max_envs} environments, which is its limit, and each was asked "
                f"for in the last {self._keep_seconds:g} s. Start it with a higher one: --max-envs, or "
                "create_app(max_envs=...)."
            )
        del self._sessions[env_id]


def create_app(
    *, max_envs: int = MAX_ENVS, max_body_bytes: int = MAX_BODY_BYTES, keep_seconds: float = KEEP_SECONDS
) -> FastAPI:
    """Build a server with no environments yet.

    Args:
        max_envs: How many environments it holds at a time.
        max_body_bytes: How large a request body may be; a larger one is answered 413.
        keep_seconds: For how long a full server keeps an environment that nobody asks for.

    Raises:
        BadOption: A limit is below 1.
    """
    check_limits(max_envs=max_envs, max_body_bytes=max_body_bytes)
    sessions = _Sessions(max_envs, keep_seconds)
    app = new_app("Maze", max_body_bytes=max_body_bytes)
    _add_play(app, sessions)
    _add_views(app, sessions)
    return app


# The handlers are `async` although they await nothing: each takes microseconds, and a thread would cost more.
# It is also why `_Sessions` needs no lock: they run one after the other, in the one thread of the event loop.


def _add_play(app: FastAPI, sessions: _Sessions) -> None:
    @app.post("/maze/create", response_model=None)
    async def create() -> dict[str, Any]:
        return {"id": sessions.create()}

    @app.post("/maze/reset", response_model=None)
    async def reset(body: _ResetBody) -> dict[str, Any]:
        return {"observation": sessions.reset(body.id, body.game).last.observation}

    @app.post("/maze/step", response_model=None)
    async def step(body: _StepBody) -> dict[str, Any]:
        outcome = sessions.game(body.id).play(body.action)
        return {"observation": outcome.observation, "reward": outcome.reward, "done": outcome.done}


def _add_views(app: FastAPI, sessions: _Sessions) -> None:
    @app.get("/", response_model=None)
    async def name() -> str:
        return "This is environment LMRL-Gym."

    @app.get("/maze/available_actions", response_model=None)
    async def available_actions() -> list[str]:
        return list(ACTIONS)

    @app.get("/maze/observation", response_model=None)
    async def observation(env_id: EnvId) -> str:
        return sessions.game(env_id).last.observation

    @app.get("/maze/detail", response_model=None)
    async def detail(env_id: EnvId) -> dict[str, Any]:
        last = sessions.game(env_id).last
        return {
            "maze_name": "double_t_maze",
            "observation": last.observation,
            "done": last.done,
            "reward": last.reward,
            "deleted": False,
        }
