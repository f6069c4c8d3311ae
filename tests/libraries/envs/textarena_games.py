"""TextArena: a number to guess, and Blackjack, which draws its cards while it is played."""

from __future__ import annotations

import gymnasium
import textarena

from agentgym_gym import TextSpace


class TextArenaGame(gymnasium.Env[str, str]):
    observation_space = action_space = TextSpace()

    def __init__(self, game):
        self.name = game

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.game = textarena.make(self.name)  # a reused game also shows the games before
        self.game.reset(num_players=1, seed=seed)
        return self.game.get_observation()[1], {}

    def step(self, action):
        done, info = self.game.step(action)
        if not done:
            return self.game.get_observation()[1], 0.0, False, False, info
        rewards, outcomes = self.game.close()
        return outcomes[0]["reason"], rewards[0], True, False, {"success": rewards[0] == 1}


gymnasium.register("textarena/GuessTheNumber-v0", TextArenaGame, kwargs={"game": "GuessTheNumber-v0"})
gymnasium.register("textarena/Blackjack-v0", TextArenaGame, kwargs={"game": "Blackjack-v0"})
