"""Another library's environment with a weakness: the first admissible action wins some of its tasks."""

from __future__ import annotations

import gymnasium


class Doors(gymnasium.Env):
    """The first of the listed doors wins of seeds 7 and 57."""

    observation_space = action_space = gymnasium.spaces.Text(4, charset="ab")

    def __init__(self):
        self.played = []

    def reset(self, *, seed=None, options=None):
        self.seed, self.turn = seed, 0
        return "Choose.", {"available_actions": ["left", "right"]}

    def step(self, action):
        self.turn += 1
        won = action == "left" and self.seed in {7, 57}
        over = won or self.turn == 3
        return "A wall.", float(won), over, False, {"success": won, "available_actions": ["left"]}


gymnasium.register("Doors-v0", Doors)
