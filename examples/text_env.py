"""A text environment of another maker, played through the bridge as verl would play it.

Any `gymnasium.Env` whose observations and actions are text will do: nothing of it is AgentGym's. Run it by
``python examples/text_env.py``; the same id in a row of data, or in the yaml of the agent loop, trains it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium
from gymnasium.spaces import Text

from verl_bridge.episodes import Episode, Task


class Guess(gymnasium.Env[str, str]):
    """Guess a number from 1 to 9."""

    observation_space, action_space = Text(100), Text(100)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Think of a number."""
        super().reset(seed=seed)
        self.number = (options or {}).get("number", int(self.np_random.integers(1, 10)))
        return "Which number from 1 to 9 do I think of?", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Compare a guess."""
        if not action.strip().isdecimal():
            return "Reply with a number alone.", 0.0, False, False, {"invalid_action": True}
        guess = int(action)
        if guess == self.number:
            return "Right!", 1.0, True, False, {"success": True}
        return "Higher." if guess < self.number else "Lower.", 0.0, False, False, {}


gymnasium.register("example/Guess-v0", "__main__:Guess", max_episode_steps=10)


async def main() -> None:
    """Play three episodes at once, by halving."""

    async def play(number: int) -> dict[str, float]:
        episode = await Episode.begin(Task("example/Guess-v0", options={"number": number}))
        try:
            low, high = 1, 9
            while not episode.over:
                guess = (low + high) // 2
                turn = await episode.step(str(guess))
                low, high = (guess + 1, high) if turn.observation == "Higher." else (low, guess - 1)
            return episode.record()
        finally:
            await episode.end()

    for number, record in zip((2, 7, 9), await asyncio.gather(*map(play, (2, 7, 9))), strict=True):
        print(number, record)


if __name__ == "__main__":
    asyncio.run(main())
