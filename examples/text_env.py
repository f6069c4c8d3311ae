"""A text environment independent of AgentGym: evaluated from Python, and played as verl would play it.

Any `gymnasium.Env` with text observations and actions works. Run it with ``python examples/text_env.py``. The
same id in a row of data, or in the yaml of the agent loop, trains in it.
"""

from __future__ import annotations

import asyncio
import string
from typing import Any

import gymnasium
from gymnasium.spaces import Text

from agentgym_gym.evaluate import RandomAgent, evaluate, summarise
from verl_bridge.numbers import numbers_of
from verl_bridge.tasks import EnvTask


class GuessEnv(gymnasium.Env[str, str]):
    """Guess a number from 1 to 9."""

    observation_space = Text(100, charset=string.printable)
    action_space = Text(1, charset="123456789")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Choose a number."""
        super().reset(seed=seed)
        self.number = (options or {}).get("number", int(self.np_random.integers(1, 10)))
        return "Which number from 1 to 9 do I think of?", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Compare a guess."""
        if not action.strip().isdecimal():
            return "Reply with only a number.", 0.0, False, False, {"invalid_action": True}
        guess = int(action)
        if guess == self.number:
            return "Right!", 1.0, True, False, {"success": True}
        return "Higher." if guess < self.number else "Lower.", 0.0, False, False, {"success": False}


gymnasium.register("example/Guess-v0", "__main__:GuessEnv", max_episode_steps=5)


class Halving:
    """An agent that guesses by bisection."""

    name = "halving"

    def reset(self, env: Any, observation: str, info: dict[str, Any]) -> None:
        """Start with all numbers."""
        self.low, self.high, self.guess = 1, 9, 0

    def act(self, observation: str, info: dict[str, Any]) -> str:
        """Guess the middle of the remaining numbers."""
        if observation == "Higher.":
            self.low = self.guess + 1
        elif observation == "Lower.":
            self.high = self.guess - 1
        self.guess = (self.low + self.high) // 2
        return str(self.guess)


async def play(number: int) -> dict[str, float]:
    """Play an episode as verl's agent loop does; return the numbers that it passes to verl."""
    async with EnvTask("example/Guess-v0", options={"number": number}).episode() as episode:
        agent, observation = Halving(), episode.observation
        agent.reset(None, observation, {})
        while not episode.over:
            observation = (await episode.step(agent.act(observation, {}))).observation
        return numbers_of(episode)


async def main() -> None:
    """Evaluate two agents, then play three episodes at once."""
    with gymnasium.make("example/Guess-v0") as env:
        for agent in (RandomAgent(seed=0), Halving()):
            summary = summarise(evaluate(env, agent, range(30)))  # tasks are seeds here
            print(agent.name, summary.success_rate, summary.success_interval, summary.mean_turns)
    for number, record in zip((2, 7, 9), await asyncio.gather(*map(play, (2, 7, 9))), strict=True):
        print(number, record)


if __name__ == "__main__":
    asyncio.run(main())
