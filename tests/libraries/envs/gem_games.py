"""GEM: a number to guess, and 2048, which draws its tiles while it is played."""

from __future__ import annotations

import gem
import gymnasium

from agentgym_gym import TextSpace


class GemGame(gymnasium.Env[str, str]):
    observation_space = action_space = TextSpace()

    def __init__(self, game):
        self.game = gem.make(game)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        observation, info = self.game.reset(seed)
        return f"{observation}\n{info['suffix']}", info

    def step(self, action):
        observation, reward, terminated, truncated, info = self.game.step(action)
        return f"{observation}\n{info['suffix']}", reward, terminated, truncated, info


gymnasium.register("gem/GuessTheNumber-v0", GemGame, kwargs={"game": "game:GuessTheNumber-v0-hard"})
gymnasium.register("gem/Game2048-v0", GemGame, kwargs={"game": "game:Game2048-v0-easy"})
