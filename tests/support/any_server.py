"""A server that speaks the protocol of every environment and plays none: it counts its observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fake_server import FakeServer, Request, http

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

ACTIONS = ["a"]
"""What ALFWorld's server lists."""

_BARE = {"SQLGym", "SearchQA", "WebShop", "Weather", "Movie", "Academia", "Sheet", "TODOList"}


class AnyServer(FakeServer):
    """Serves one environment of any kind, which pays for every step and never ends.

    Args:
        environment: The environment.
        pays: The reward and the score of each step.
        observation: The observation of each step; None for ``page 0``, ``page 1``, …

    Attributes:
        sent: The actions that arrived.
    """

    def __init__(self, environment: Environment, *, pays: float, observation: str | None = None) -> None:
        self.environment = environment
        self.pays = pays
        self.observation = observation
        self.sent: list[str] = []
        super().__init__(self._answer)

    @property
    def page(self) -> str:
        """The last observation."""
        return self.observation or f"page {len(self.sent)}"

    def _answer(self, request: Request) -> Any:
        wire = self.environment.wire
        path = "/" + request.path.rpartition("/")[2]
        if path == "/reset":
            self.sent.clear()
        if path == "/step":
            self.sent.append(request.json["action"])
        answers = {
            "/": http(wire.greeting.encode()) if wire.plain_greeting else wire.greeting,
            "/create": self._created(),
            "/reset": self._start(),
            "/step": self._state(self.pays),
            "/observation": self.page,
            "/list_envs": [],
        }
        return answers.get(path, http(b"", "404 Not Found"))

    def _created(self) -> Any:
        if self.environment.name == "WebArena":
            return {"env_idx": 0}
        return 0 if self.environment.name in _BARE else self._state(0)

    def _start(self) -> Any:
        name = self.environment.name
        if name in {"SQLGym", "WebShop"}:
            return [self.page, None]
        return self.page if name in _BARE else self._state(0)

    def _state(self, pays: float) -> dict[str, Any]:
        return {
            "id": 0,
            "observation": self.page,
            "state": self.page,
            "reward": 0.0 if self.environment.name == "BabyAI" else pays,  # where a reward is the end
            "score": pays,
            "done": False,
            "available_actions": ACTIONS,
            "task_type": "",
            "task_description": "task",
            "task_name": "",
            "var_num": 0,
            "deleted": False,
            "terminated": False,
            "truncated": False,
            "info": {"fail_error": ""},
            "sites": [],
            "object": "goal",
        }
