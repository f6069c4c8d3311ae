"""The routes of the SciWorld server.

Requests and responses equal AgentGym's, including errors: HTTP 200 with ``{"error": str}``, but HTTP 500 for
closing an environment that does not exist. The ``local_quirks`` of `agentgym_gym.envs.sciworld` list the
differences.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi.responses import PlainTextResponse

from agentgym_gym.envs.sciworld_tasks import task_of
from agentgym_gym.errors import BadOption
from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import EnvId, Failed, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers._frame.request_models import IdBody, ResetBody, StepBody
from agentgym_servers.sciworld._java import missing_java
from agentgym_servers.sciworld._simulator import SIMPLIFICATIONS
from agentgym_servers.sciworld._workers import JavaWorker, JavaWorkerPool

if TYPE_CHECKING:
    from fastapi import FastAPI, Response

    from agentgym_servers.sciworld._game import SciWorldGame
    from agentgym_servers.sciworld._simulator import Simulator

__all__ = ["create_app"]

T = TypeVar("T")

_NO_ELECTRICITY, _ELECTRICAL = "noElectricalAction", ("power-component", "conductivity")

_MOST_SHOWN = 10  # of the actions and the objects in a state


class _ServedEnv:
    """One environment: its game after the first reset.

    Attributes:
        number: The number of environments created before it.
        current: The game.
        turn: Held while the simulator works for the environment.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.current: SciWorldGame | None = None
        self.turn = asyncio.Lock()

    @property
    def game(self) -> SciWorldGame:
        """The current game, which is not over."""
        if self.current is None:
            raise Failed(f"The environment {self.number} has no task yet: reset it first.")
        if self.current.done:
            raise Failed(f"The task with environment {self.number} has finished.")
        return self.current


class _ServedEnvs:
    """All environments, and the workers that play their games."""

    def __init__(self, options: ServerOptions) -> None:
        self.held = HeldEnvs[_ServedEnv](options)
        self.simplifications = options.simplifications or ""
        self.workers = JavaWorkerPool(simplifications=self.simplifications)

    async def start(self, env_id: int, task_id: int) -> SciWorldGame:
        """Start a task in an environment."""
        env = self.held.get(env_id)
        try:
            task = task_of(task_id)
        except LookupError:
            raise Failed("list index out of range") from None
        if _NO_ELECTRICITY in self.simplifications and any(word in task.kind for word in _ELECTRICAL):
            raise Failed(f"The task {task.kind} needs electrical actions, which {_NO_ELECTRICITY} removes.")

        def work(worker: JavaWorker) -> None:
            env.current = worker.start(task, env.current)

        await self.workers.run(env.number, env.turn, work)
        return env.game

    async def play(self, env_id: int, action: str) -> SciWorldGame:
        """Play an action in an environment."""
        env = self.held.get(env_id)

        def work(worker: JavaWorker) -> SciWorldGame:
            game = env.game
            worker.play(game, action)
            return game

        return await self.workers.run(env.number, env.turn, work)

    async def view(self, env_id: int, look: Callable[[Simulator, SciWorldGame], T]) -> T:
        """Return what a function reads from the simulator of an environment."""
        env = self.held.get(env_id)

        def work(worker: JavaWorker) -> T:
            game = env.game
            return worker.view(game, lambda simulator: look(simulator, game))

        return await self.workers.run(env.number, env.turn, work)

    async def close(self, env_id: int) -> bool:
        """Drop an environment; return whether it existed."""
        if env_id not in self.held:
            return False
        env = self.held.get(env_id)
        self.held.close(env_id)

        def work(worker: JavaWorker) -> None:
            if env.current is not None:
                worker.drop(env.current)

        await self.workers.run(env.number, env.turn, work)
        return True


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet; the first reset starts a Java process.

    Raises:
        SetupError: There is no Java.
        BadOption: A simplification does not exist.
    """
    missing = missing_java()
    if missing is not None:
        raise missing
    names = options.simplifications.split(",") if options.simplifications else []
    if not {*names} <= {*SIMPLIFICATIONS}:
        expected = f"names with commas between them, of {', '.join(SIMPLIFICATIONS)}"
        raise BadOption("simplifications", options.simplifications, expected)
    app = new_app("SciWorld", options, greeting="This is environment ScienceWorld.", one_world=True)
    envs = _ServedEnvs(options)
    app.state.workers = envs.workers
    _add_play(app, envs)
    _add_views(app, envs)
    _add_simulator_views(app, envs)
    return app


def _add_play(app: FastAPI, envs: _ServedEnvs) -> None:
    @app.post("/create", response_model=None)
    async def create() -> dict[str, Any]:
        return {"id": envs.held.add(_ServedEnv)}

    @app.post("/reset", response_model=None)
    async def reset(body: ResetBody) -> dict[str, Any]:
        game = await envs.start(body.id, body.data_idx)
        return {**_started(game), **_scored(game), "deleted": False, "done": game.done}

    @app.post("/step", response_model=None)
    async def step(body: StepBody) -> dict[str, Any]:
        game = await envs.play(body.id, body.action)
        return {**_scored(game), "done": game.done}

    @app.post("/step_visual", response_model=None)
    async def step_visual(body: StepBody) -> dict[str, Any]:
        game = await envs.play(body.id, _action_of(body.action))
        return await envs.view(body.id, _pictured) if not game.done else {**_scored(game), "done": True}

    @app.post("/close", response_model=None)
    async def close(body: IdBody) -> bool | Response:
        closed = await envs.close(body.id)
        return closed or PlainTextResponse("Internal Server Error", status_code=500)


def _add_views(app: FastAPI, envs: _ServedEnvs) -> None:
    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return envs.held.ids()

    @app.get("/observation", response_model=None)
    async def observation(env_id: EnvId) -> str:
        return envs.held.get(env_id).game.last.observation

    @app.get("/task_description", response_model=None)
    async def task_description(env_id: EnvId) -> dict[str, Any]:
        return {"task_description": envs.held.get(env_id).game.description}

    @app.get("/detail", response_model=None)
    async def detail(env_id: EnvId) -> dict[str, Any]:
        env = envs.held.get(env_id)
        return _detail(env.game) if env.current is not None else {"deleted": False, "done": False}


def _add_simulator_views(app: FastAPI, envs: _ServedEnvs) -> None:
    @app.get("/action_hint", response_model=None)
    async def action_hint(env_id: EnvId) -> dict[str, Any]:
        return await envs.view(
            env_id,
            lambda simulator, _: {
                "possible_actions": simulator.texts("getPossibleActions"),
                "possible_objects": simulator.texts("getPossibleObjects"),
            },
        )

    @app.get("/goals", response_model=None)
    async def goals(env_id: EnvId) -> dict[str, Any]:
        return await envs.view(env_id, lambda simulator, _: {"goals": simulator.text("getGoalProgressStr")})

    @app.get("/object_tree", response_model=None)
    async def object_tree(env_id: EnvId) -> dict[str, Any]:
        return await envs.view(env_id, lambda simulator, _: {"object_tree": _tree(simulator)})

    @app.get("/state", response_model=None)
    async def state(env_id: EnvId) -> dict[str, Any]:
        return await envs.view(env_id, _state)


def _started(game: SciWorldGame) -> dict[str, Any]:
    return {
        "task_name": game.task.kind,
        "var_num": game.task.variation,
        "task_description": game.description,
    }


def _scored(game: SciWorldGame) -> dict[str, Any]:
    return {"observation": game.last.observation, "reward": game.reward, "score": game.last.score}


def _detail(game: SciWorldGame) -> dict[str, Any]:
    return {"deleted": False, "done": game.done, **_started(game), **_scored(game)}


def _state(simulator: Simulator, game: SciWorldGame) -> dict[str, Any]:
    return {
        "observation": simulator.text("freeActionLook"),
        "inventory": simulator.text("freeActionInventory"),
        "task_description": game.description,
        "goal_progress": simulator.text("getGoalProgressStr"),
        "possible_actions": simulator.texts("getPossibleActions")[:_MOST_SHOWN],
        "possible_objects": simulator.texts("getPossibleObjects")[:_MOST_SHOWN],
        "current_moves": game.last.moves,
        "environment_info": _detail(game),
    }


def _pictured(simulator: Simulator, game: SciWorldGame) -> dict[str, Any]:
    """Return a step with all that AgentGym's page of the simulator shows."""
    inventory = simulator.text("freeActionInventory")
    info = {
        "moves": game.last.moves,
        "score": game.last.score,
        "reward": game.reward,
        "look": simulator.text("freeActionLook"),
        "inv": inventory,
        "taskDesc": simulator.text("freeActionTaskDesc"),
        "valid": simulator.texts("getValidActionObjectCombinations"),
        "variationIdx": game.task.variation,
        "taskName": game.task.kind,
        "simplificationStr": simulator.simplifications,
    }
    more = {"info": info, "object_tree": _tree(simulator), "inventory": inventory, "moves": game.last.moves}
    return {**_scored(game), "done": game.done, **more}


def _tree(simulator: Simulator) -> Any:
    return json.loads(simulator.text("getObjectTree", ""))


def _action_of(text: str) -> str:
    """Return the action of a reply to AgentGym's page: the text between its first two labels."""
    _, label, after = text.removesuffix("</s>").partition("Action:")
    return after.partition("Action:")[0].strip() if label else text.removesuffix("</s>")
