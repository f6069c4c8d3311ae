"""TextWorld: a coin to find in five rooms, in a game that is made and compiled for each seed."""

from __future__ import annotations

import shutil
import tempfile

import gymnasium
import textworld
from textworld.challenges import CHALLENGES

from agentgym_gym import TextSpace


class CoinCollector(gymnasium.Env[str, str]):
    observation_space = action_space = TextSpace()

    def __init__(self, level=5):
        self.level = level
        self.folder = tempfile.mkdtemp()
        self.game = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        options = textworld.GameOptions()
        options.seeds = int(self.np_random.integers(1 << 16))
        options.path, options.file_ext = f"{self.folder}/", ".z8"
        _, make, _ = CHALLENGES["tw-coin_collector"]
        file = textworld.generator.compile_game(make({"level": self.level}, options), options)
        infos = textworld.EnvInfos(admissible_commands=True, description=True, won=True, lost=True)
        self.close_game()
        self.game = textworld.start(file, infos)
        state = self.game.reset()
        self.score = 0
        return f"Find the coin and take it.\n{state.description}{self.commands(state)}", {}

    def step(self, action):
        state, score, done = self.game.step(action)
        reward, self.score = score - self.score, score
        return state.feedback + self.commands(state), float(reward), done, False, {"success": state.won}

    def commands(self, state):
        return f"\nCommands: {', '.join(state.admissible_commands)}"

    def close_game(self):
        if self.game is not None:
            self.game.close()

    def close(self):
        self.close_game()
        shutil.rmtree(self.folder, ignore_errors=True)


gymnasium.register("textworld/CoinCollector-v0", CoinCollector)
