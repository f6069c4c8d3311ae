"""The routes of the WebShop server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import Failed, new_app
from agentgym_servers._frame.draw import Draw
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers._frame.request_models import EnvStepBody
from agentgym_servers.webshop._data_folder import load_world
from agentgym_servers.webshop._search import ProductIndex
from agentgym_servers.webshop._session import Session, keywords_of
from agentgym_servers.webshop._twin import twin_of
from agentgym_servers.webshop._world import world_of

if TYPE_CHECKING:
    from fastapi import FastAPI

    from agentgym_servers.webshop._products import Product, ShopWorld

__all__ = ["create_app"]

_MANY = 10_000  # the number of products from which a search may take too long for the event loop


class _ResetBody(BaseModel):
    env_idx: int
    session_id: int | None = None


class _Shop:
    """The shared, immutable state of all environments: the world and its index.

    Args:
        world: The world.
        twin: Whether sessions differ in nothing from AgentGym's server.
    """

    def __init__(self, world: ShopWorld, *, twin: bool) -> None:
        self.goals = world.goals
        self.twin = twin
        self._products = world.products
        self._index = ProductIndex(product.text for product in world.products)

    async def find(self, keywords: str) -> Sequence[Product]:
        """Search the products."""
        if len(self._products) < _MANY:
            places = self._index.search(keywords)
        else:
            places = await run_in_threadpool(self._index.search, keywords)
        return tuple(self._products[place] for place in places)


class _ServedEnv:
    """One environment with its current task.

    Args:
        shop: The state shared by all environments.
        number: The number of environments that the server created before.
    """

    def __init__(self, shop: _Shop, number: int) -> None:
        self._shop = shop
        self._draw = Draw("webshop", "any task", number)
        self.reset(None)

    def reset(self, task: int | None) -> None:
        """Start a task; by default, one that depends only on the environment's number and its past tasks.

        Raises:
            Failed: There is no such task.
        """
        goals = self._shop.goals
        if task is None:
            task = self._draw.below(len(goals))
        # On AgentGym's server, too, a negative id counts from the end.
        if task not in range(-len(goals), len(goals)):
            raise Failed("There is no such task.")
        self.session = Session(goals[task], twin=self._shop.twin)


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet.

    Args:
        options: Its options.

    Raises:
        BadOption: WebShop's files in the user's folder are missing or invalid.
    """
    if options.data is not None:
        world = load_world(options.data)
    else:
        world = twin_of(options.seed) if options.twin else world_of(options.seed)
    shop = _Shop(world, twin=options.twin)
    envs = HeldEnvs[_ServedEnv](options, new_ids=True)
    app = new_app("WebShop", options, plain_errors=True)
    _add_play(app, envs, shop)
    _add_views(app, envs)
    return app


def _add_play(app: FastAPI, envs: HeldEnvs[_ServedEnv], shop: _Shop) -> None:
    @app.post("/create", response_model=None)
    async def create() -> int:
        return envs.add(lambda number: _ServedEnv(shop, number))

    @app.post("/reset", response_model=None)
    async def reset(body: _ResetBody) -> list[str | None]:
        env = envs.get(body.env_idx)
        env.reset(body.session_id)
        return [env.session.observation, None]

    @app.post("/step", response_model=None)
    async def step(body: EnvStepBody) -> dict[str, Any]:
        session = envs.get(body.env_idx).session
        keywords = keywords_of(body.action)
        results = () if keywords is None else await shop.find(keywords)
        result = session.play(body.action, results)
        return {"state": result.observation, "reward": result.reward, "done": result.done, "info": None}


def _add_views(app: FastAPI, envs: HeldEnvs[_ServedEnv]) -> None:
    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return envs.ids()

    @app.get("/observation", response_model=None)
    async def observation(env_idx: int) -> str:
        return envs.get(env_idx).session.observation

    @app.get("/available_actions", response_model=None)
    async def available_actions(env_idx: int) -> dict[str, Any]:
        session = envs.get(env_idx).session
        return {"has_search_bar": session.has_search_bar, "clickables": session.clickables}

    @app.get("/instruction_text", response_model=None)
    async def instruction_text(env_idx: int) -> str:
        text = envs.get(env_idx).session.instruction_text
        if text is None:
            raise Failed("This page has no instruction.")
        return text

    @app.get("/state", response_model=None)
    async def state(env_idx: int) -> dict[str, str]:
        envs.get(env_idx)
        # AgentGym's server responds with the names of its fields, independently of their values.
        return {name: name for name in ("url", "html", "instruction_text")}
