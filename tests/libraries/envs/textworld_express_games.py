"""TextWorldExpress: a coin to find; each environment starts a Java process."""

from __future__ import annotations

import gymnasium
from textworld_express import TextWorldExpressEnv

from agentgym_gym import TextSpace


class CoinGame(gymnasium.Env[str, str]):
    observation_space = action_space = TextSpace()

    def __init__(self, steps=40):
        self.game = TextWorldExpressEnv(envStepLimit=steps)
        self.game.load("coin", "numLocations=5,includeDoors=0,numDistractorItems=0")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        observation, info = self.game.reset(seed=seed, gameFold="train")
        return f"{info['taskDescription']}\n{observation}{self.commands(info)}", {}

    def step(self, action):
        observation, reward, done, info = self.game.step(action)
        solved = info["tasksuccess"]
        return (
            observation + self.commands(info),
            reward,
            done and solved,
            done and not solved,
            {"success": solved},
        )

    def commands(self, info):
        return f"\nCommands: {', '.join(info['validActions'])}"

    def close(self):
        self.game.close()


gymnasium.register("textworld_express/Coin-v0", CoinGame)
