"""Add an environment from outside the library, in one file: a game of guessing a number.

The upper half turns a server into a gymnasium environment with typed actions, six reply formats, a system
prompt, tool schemas, leases and faults; no server needs more. Importing this file registers the environment:
``gymnasium.make`` and every command of ``agentgym`` accept it as ``own_environment:own/Guessing-v0``.
The lower half is the game's own HTTP server, so that ``python examples/own_environment.py`` needs no other.
With a port, as in ``python examples/own_environment.py 36001``, it serves there until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, ClassVar

from agentgym_gym import (
    Action,
    AgentGymEnv,
    Call,
    Environment,
    Flow,
    Grammar,
    Integer,
    Outcome,
    Start,
    Wire,
    register,
)


@dataclass(frozen=True)
class Guess(Action):
    """Guess the number."""

    template: ClassVar[str] = "guess {number}"
    number: Annotated[int, Integer(1, 100), "the number"]


@dataclass(frozen=True)
class GiveUp(Action):
    """End the game."""

    template: ClassVar[str] = "give up"


class GuessingWire(Wire):
    """The requests to the server, and the meaning of its responses."""

    greeting = "This is the guessing game."
    closes = True

    def create(self, task_id: int) -> Flow[int]:
        """Open a game."""
        return (yield Call("create", "POST", "/create")).body().integer("id")

    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a game again."""
        body = (yield Call("reset", "POST", "/reset", {"id": env_id, "number": task_id})).body()
        return Start(body.text("observation"))

    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Play an action."""
        body = (yield Call("step", "POST", "/step", {"id": env_id, "action": action})).body()
        return Outcome(body.text("observation"), body.number("reward"), body.flag("done"))

    def close(self, env_id: int) -> Flow[None]:
        """End a game."""
        (yield Call("close", "POST", "/close", {"id": env_id})).body()


GUESSING = Environment(
    name="Guessing",
    summary="Find a number between 1 and 100.",
    wire=GuessingWire(),
    grammar=Grammar([Guess(50), GiveUp()]),
    rules="Find the number I think of, from 1 to 100. The answer to each guess is Higher or Lower.",
    max_turns=10,
    splits={"all": range(1, 101)},
    namespace="own",
)
register(GUESSING)


class GuessingServer(BaseHTTPRequestHandler):
    """The game over HTTP: ids under ``id``, failures as ``{"error": …}``."""

    games: ClassVar[dict[int, int]] = {}

    def do_GET(self) -> None:
        """Return the name of the server."""
        self._respond("This is the guessing game." if self.path == "/" else {"error": self.path})

    def do_POST(self) -> None:
        """Open, start, play or end a game."""
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else {}
        self._respond(self._execute(body))

    def _execute(self, body: dict[str, Any]) -> Any:
        if self.path == "/create":
            self.games[len(self.games)] = 0
            return {"id": len(self.games) - 1}
        if body.get("id") not in self.games:
            return {"error": f"there is no game {body.get('id')}"}
        if self.path == "/close":
            return True
        if self.path == "/reset":
            self.games[body["id"]] = body["number"]
            return {"observation": "I think of a number from 1 to 100."}
        return self._play(self.games[body["id"]], body["action"])

    @staticmethod
    def _play(secret: int, action: str) -> dict[str, Any]:
        verb, _, number = action.partition(" ")
        if verb != "guess":
            return {"observation": "As you like.", "reward": 0, "done": True}
        if int(number) == secret:
            return {"observation": "You found it.", "reward": 1, "done": True}
        return {"observation": "Higher." if int(number) < secret else "Lower.", "reward": 0, "done": False}

    def _respond(self, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def main() -> None:
    """Play a game by bisection."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), GuessingServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    env = AgentGymEnv("own/Guessing-v0", server=f"http://127.0.0.1:{server.server_port}")
    print(env.system_prompt, end="\n\n")
    observation, info = env.reset(seed=0)
    print(observation)
    low, high, over = 1, 100, False
    while not over:
        guess = (low + high) // 2
        observation, reward, terminated, truncated, info = env.step(
            f"Thought:\nHalf way.\n\nAction:\nguess {guess}"
        )
        print(f"{guess}: {observation}")
        low, high = (guess + 1, high) if "Higher" in observation else (low, guess - 1)
        over = terminated or truncated
    print(f"{reward=} success={info['success']} turns={info['turn']}")
    env.close()
    server.shutdown()
    server.server_close()


def serve(port: int) -> None:
    """Serve the game until Ctrl-C."""
    with (
        contextlib.suppress(KeyboardInterrupt),
        ThreadingHTTPServer(("127.0.0.1", port), GuessingServer) as server,
    ):
        server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1:]:
        serve(int(sys.argv[1]))
    else:
        main()
