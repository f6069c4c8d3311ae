"""Reasoning Gym: a question and an answer."""

from __future__ import annotations

import gymnasium
import reasoning_gym

from agentgym_gym import TextSpace


class ReasoningTask(gymnasium.Env[str, str]):
    observation_space = action_space = TextSpace()

    def __init__(self, dataset):
        self.name = dataset

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.dataset = reasoning_gym.create_dataset(self.name, size=1, seed=seed)
        self.entry = self.dataset[0]
        return self.entry["question"], {}

    def step(self, action):
        score = self.dataset.score_answer(action, self.entry)
        return f"The answer is {self.entry['answer']}.", score, True, False, {"success": score == 1}


gymnasium.register("reasoning_gym/ChainSum-v0", ReasoningTask, kwargs={"dataset": "chain_sum"})
gymnasium.register("reasoning_gym/WordSorting-v0", ReasoningTask, kwargs={"dataset": "word_sorting"})
