"""A text game with a defect for each test of an audit: open a box by the code that a note shows."""

from __future__ import annotations

import gymnasium

import agentgym_gym

NAMES = ("Anna", "Boris", "Chiara", "Dmitri", "Elena", "Farid", "Greta", "Hiro", "Ines", "Jonas")


class Box(gymnasium.Env[str, str]):
    """Look, and open the box by its code. The seed decides the code.

    Args:
        defect: The name of the defect; empty for none.
    """

    observation_space = action_space = gymnasium.spaces.Text(1 << 12)

    def __init__(self, defect: str = "") -> None:
        self.defect = defect
        self.splits = {"train": range(40), "test": range(39 if defect == "overlap" else 40, 60)}
        verb = "read" if defect == "prompt" else "look"
        self.system_prompt = f"Open the box. The actions are: {verb}, wait, leave. `open CODE` opens the box."

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        task = seed or 0
        if self.defect == "splits":
            task %= 40
        elif self.defect == "duplicates":
            task -= task % 2
        self.task, self.turn, self.opened, self.seen = task, 0, False, False
        self.code = str(1000 + task * 7919 % 9000)
        self.goal = f"open the box of {NAMES[task % 10]} {task // 10}"
        text = f"Your goal: {self.goal}."
        if self.defect == "answer":
            text += f" (answer: open {self.code})"
        if self.defect == "goal":
            text += f" Your goal: open the box of {NAMES[(task + 1) % 10]} {task // 10}."
        return text, self._info(success=False)

    def step(self, action):  # noqa: C901 - a branch for each defect
        self.turn += 1
        words, defect, odd = action.strip(), self.defect, self.task % 8 > 3
        right = "1" + self.code if defect == "solutions" and odd else self.code
        reward, won, text = 0.0, False, f"Unknown action: {words}"
        if defect == "credit" and self.opened:
            return "It was open.", 1.0, True, False, self._info(success=True)
        if words == f"open {right}" or (defect == "floors" and not words):
            reward, won, text = 1.0, True, "The box is open."
        elif words.startswith("open "):
            text = "It stays closed."
        elif words == "look":
            text, self.seen = f"A note has the code {self.code}.", True
        elif words == "wait":
            text = "Time passes."
        elif words == "leave":
            return "You leave.", 0.0, True, False, self._info(success=False)
        if defect == "forged-reward" and '"reward": 1' in words:
            reward = 1.0
        if defect == "forged-success" and "<success>true" in words:
            won = True
        over = won or (defect == "forged-end" and "you win" in words.lower())
        if defect == "credit" and won:
            self.opened = True
            return "You hear a click.", 0.0, False, False, self._info(success=False)
        if defect == "partial":
            reward = {"look": 0.05, "wait": 0.02}.get(words, reward / 2)
        if defect == "unpaid" and odd:
            reward = 0.0
        if defect == "vain" and odd:
            won = False
        return text, reward, over, not over and self.turn == 8, self._info(success=won)

    def _info(self, *, success):
        info = {"goal": self.goal, "success": success, "available_actions": ["look", "wait", "leave"]}
        if self.defect == "legal":
            info["available_actions"] = ["look", "dance"]
        if self.defect == "threshold":
            del info["success"]
        if self.defect == "text":
            info["success"] = "yes" if success else "no"
        if self.defect == "revoked" and self.seen and self.turn == 1:
            info["success"] = True
        if self.defect == "partial" or (self.defect == "unstated" and not success):
            del info["success"]
        return info


class Solver:
    """Looks, and opens the box."""

    name = "solver"
    blocking = False

    def reset(self, env, observation, info):
        pass

    def act(self, observation, info):
        if "code" in observation:
            return "open " + observation.rpartition(" ")[2].rstrip(".")
        return "look" if "goal" in observation else "open"


class HidesFaults(gymnasium.Wrapper):
    """Returns a fault of the server as an observation."""

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, {key: info[key] for key in info if key != "fault"}


def craft(*, hides: bool = False, **kwargs):
    env = gymnasium.make("agentgym/TextCraft-v0", disable_env_checker=True, **kwargs)
    return HidesFaults(env) if hides else env


assert agentgym_gym
gymnasium.register("audit-scores/Box-v0", Box)
gymnasium.register("audit-scores/Far-v0", Box, reward_threshold=10.0)
gymnasium.register("audit-scores/Craft-v0", craft)
