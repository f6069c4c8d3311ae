"""Wire protocol of LMRL-Gym's server, which serves Maze and Wordle under separate prefixes.

Both environments have the same greeting; their routes distinguish them.
"""

from __future__ import annotations

from typing import ClassVar

from agentgym_gym.calls import Body, Call, Flow
from agentgym_gym.envs._agentgym_parsers import cut_end
from agentgym_gym.wire import Outcome, Seen, Start, Wire, look

__all__ = ["LMRLWire", "read_as_agentgym"]


class LMRLWire(Wire):
    """Protocol of AgentGym's LMRL-Gym server: ids under ``id``, errors as ``{"error": …}`` with HTTP 200.

    The text of an error may be empty.

    Class attributes:
        task: Name of the field with the task id in a reset request.
    """

    greeting = "This is environment LMRL-Gym."
    closes = False
    task: ClassVar[str]

    def create(self, task_id: int) -> Flow[int]:
        """Create an environment."""
        body = (yield Call("create", "POST", f"{self.prefix}/create")).body()
        return body.integer("id")

    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task; the response may contain only the observation."""
        request = {"id": env_id, self.task: task_id}
        body = (yield Call("reset", "POST", f"{self.prefix}/reset", request)).body()
        body.check_id("id", env_id)
        return Start(body.text("observation"))

    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Execute one action."""
        played = {"id": env_id, "action": action}
        body = (yield Call("step", "POST", f"{self.prefix}/step", played)).body()
        return Outcome(body.text("observation"), body.number("reward"), body.flag("done"))

    def recognise(self, env_id: int, seen: Seen) -> Flow[bool | None]:
        """Compare the last observation."""
        observe = Call("observe", "GET", f"{self.prefix}/observation", query={"id": env_id})
        shown = yield from look(observe, seen)
        return shown.text() == seen.observation if isinstance(shown, Body) else shown


def read_as_agentgym(reply: str) -> str:
    """Return the text that AgentGym's ``MazeEnvClient`` and ``WordleEnvClient`` would send.

    These clients take the text between the first and the second ``Action:``, or the whole reply if it has no
    ``Action:``, including quotes, fences and line breaks.
    """
    before, marked, after = cut_end(reply).partition("Action:")
    return (after.partition("Action:")[0] if marked else before).strip()
