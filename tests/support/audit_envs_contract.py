"""A small sound game for audits, and the same game with one defect each, as ``contract/NAME-v0``."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from typing import Any, ClassVar

import gymnasium
import numpy as np

LIMIT = 6
WORDS = ("north", "south", "east", "west")


class Sound(gymnasium.Env):
    """Walk 3 steps east of the start within 6 turns."""

    observation_space = action_space = gymnasium.spaces.Text(1 << 17)
    metadata: ClassVar = {"render_modes": [], "reward_range": (0.0, 1.0), "score_range": (0.0, 1.0)}
    max_turns = LIMIT
    system_prompt = f"Go 3 steps east. You have {LIMIT} turns. Actions: `north`, `south`, `east`, `west`."
    goal = 3

    def __init__(self) -> None:
        self.at = self.turn = 0
        self.over = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.at, self.turn, self.over = int(self.np_random.integers(2)), 0, False
        return f"You are at {self.at}.", {}

    def step(self, action: str) -> Any:
        if self.over:
            raise gymnasium.error.ResetNeeded("the episode is over")
        self.turn += 1
        known = action in WORDS
        self.at += {"east": 1, "west": -1}.get(action, 0)
        won = self.at >= self.goal
        late = self.turn >= self.limit() and not won
        self.over = won or late
        return f"You are at {self.at}.", float(won), won, late, {} if known else {"parse_error": "unknown"}

    def limit(self) -> int:
        return LIMIT


class _Changed(Sound):
    """Changes what a step returns."""

    def step(self, action: str) -> Any:
        return self.changed(*super().step(action))


class InfoNone(_Changed):
    def changed(self, observation, reward, terminated, truncated, info):
        return observation, reward, terminated, truncated, None


class FourValues(_Changed):
    def changed(self, observation, reward, terminated, truncated, info):
        return observation, reward, terminated or truncated, info


class TextReward(_Changed):
    def changed(self, observation, reward, terminated, truncated, info):
        return observation, "1" if reward else reward, terminated, truncated, info


class IntegerEnd(_Changed):
    def changed(self, observation, reward, terminated, truncated, info):
        return observation, reward, int(terminated), truncated, info


class NoInfo(Sound):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class SeedOnly(Sound):
    def reset(self, *, seed=None):
        return super().reset(seed=seed)


class RareNaN(Sound):
    """NaN once in 500 episodes."""

    episodes = 0

    def reset(self, *, seed=None, options=None):
        self.episodes += 1
        return super().reset(seed=seed)

    def step(self, action):
        observation, reward, *others = super().step(action)
        return observation, float("nan") if self.episodes % 500 == 499 else reward, *others


class SeedNaN(Sound):
    def step(self, action):
        observation, reward, *others = super().step(action)
        return observation, float("inf") if action == "south" and self.at == 2 else reward, *others


class Generous(_Changed):
    def changed(self, observation, reward, terminated, truncated, info):
        return observation, 2 * reward, terminated, truncated, info


class PaysSteps(_Changed):
    """Each reward is in its range, and the sum is not."""

    def changed(self, observation, reward, terminated, truncated, info):
        return observation, 0.5, terminated, truncated, info


class PaysAgain(Sound):
    def step(self, action):
        self.over = False
        return super().step(action)


class Revives(Sound):
    def step(self, action):
        if self.over:
            return f"You are at {self.at}.", 0.0, False, False, {}
        return super().step(action)


class Endless(Sound):
    def limit(self):
        return 1 << 30


class StuckReset(Sound):
    """Its reset fails in the middle of an episode that went south."""

    south = False

    def reset(self, *, seed=None, options=None):
        if self.south and not self.over:
            raise RuntimeError("the south gate is open")
        self.south = False
        return super().reset(seed=seed)

    def step(self, action):
        self.south = self.south or action == "south"
        return super().step(action)


class StaysOver(Sound):
    """Its reset does not begin a new episode after the end of one."""

    ended = False

    def reset(self, *, seed=None, options=None):
        answer = super().reset(seed=seed)
        self.over = self.ended
        return answer

    def step(self, action):
        answer = super().step(action)
        self.ended = self.over
        return answer


class CloseEarly(Sound):
    """Its close needs a reset."""

    def reset(self, *, seed=None, options=None):
        self.log = []
        return super().reset(seed=seed)

    def close(self):
        self.log.clear()


class CloseTwice(Sound):
    closed = False

    def close(self):
        if self.closed:
            raise RuntimeError("it is closed")
        self.closed = True


class OneMore(Sound):
    def limit(self):
        return LIMIT + 1


class OneFewer(Sound):
    def limit(self):
        return LIMIT - 1


class WrongPrompt(Sound):
    system_prompt = Sound.system_prompt.replace("6 turns", "8 turns")


class Braces(Sound):
    def step(self, action):
        action.format()
        return super().step(action)


class Argument(Sound):
    """Only the argument of an action is formatted badly."""

    system_prompt = "Go 3 steps east. You have 6 turns. Actions: `go north`, `go south`, `go east`."

    def step(self, action):
        if found := re.fullmatch(r"go (.*)", action, re.DOTALL):
            "%s" % (found[1] % ())
        return super().step(action.removeprefix("go "))


class SlowPattern(Sound):
    def step(self, action):
        re.match(r"(\w+)+$", action)
        return super().step(action)


class Faulty(Sound):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        if "\0" in action:
            return observation, 0.0, False, True, {"fault": {"kind": "ServerError", "message": "500"}}
        return observation, reward, terminated, truncated, info


class Remembers(Sound):
    """Keeps the observations of all episodes."""

    def __init__(self):
        super().__init__()
        self.past = []

    def step(self, action):
        answer = super().step(action)
        self.past.append({"observation": answer[0] + action})
        return answer


class OpenFiles(Sound):
    """Opens a file for each episode, and closes them only at the end."""

    def __init__(self):
        super().__init__()
        self.files = []

    def reset(self, *, seed=None, options=None):
        self.files.append(os.open(os.devnull, os.O_RDONLY))
        return super().reset(seed=seed)

    def close(self):
        while self.files:
            os.close(self.files.pop())


class LeavesThread(Sound):
    """Starts a thread that its close does not end."""

    def __init__(self):
        super().__init__()
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


class SlowStep(Sound):
    def step(self, action):
        if action == "south":
            time.sleep(1.1)
        return super().step(action)


class Awaited(Sound):
    """Asynchronous, and sound."""

    async def reset(self, *, seed=None, options=None):
        await self.wait()
        return super().reset(seed=seed)

    async def step(self, action):
        await self.wait()
        return super().step(action)

    async def wait(self):
        await asyncio.sleep(0.05)


class Blocks(Awaited):
    async def wait(self):
        time.sleep(0.05)  # noqa: ASYNC251 - the defect


class Limited(Sound):
    """Its 4 sessions are enough for its capacity."""

    capacity = 4
    sessions = 4
    lock = threading.Lock()
    opened: ClassVar = [0]

    def __init__(self):
        super().__init__()
        with self.lock:
            if self.opened[0] >= self.sessions:
                raise ConnectionRefusedError("all sessions are in use")
            self.opened[0] += 1

    def close(self):
        with self.lock:
            self.opened[0] -= 1


class OverPromised(Limited):
    sessions = 2
    opened: ClassVar = [0]


class Waits(Sound):
    """Its steps wait, at once."""

    def step(self, action):
        self.wait()
        return super().step(action)

    def wait(self):
        time.sleep(0.01)


class Serial(Waits):
    """Its steps wait one after another."""

    lock = threading.Lock()

    def wait(self):
        with self.lock:
            time.sleep(0.01)


class Numbers(Sound):
    """The game with numbers, which an audit plays through `TextAdapter`."""

    observation_space = gymnasium.spaces.Box(-10, 10, (1,), np.int64)
    action_space = gymnasium.spaces.Discrete(len(WORDS))
    system_prompt = ""

    def reset(self, *, seed=None, options=None):
        return self.seen(), super().reset(seed=seed)[1]

    def step(self, action):
        _, *others = super().step(WORDS[action])
        return self.seen(), *others

    def seen(self):
        return np.array([self.at])


class NumbersOutside(Numbers):
    def seen(self):
        return np.array([self.at * 8])


class NumbersNaN(Numbers):
    def step(self, action):
        seen, reward, *others = super().step(action)
        return seen, float("nan") if self.at == 2 and action == 0 else reward, *others


class NumbersLate(Numbers):
    def limit(self):
        return LIMIT + 1


for _class in [each for each in globals().values() if isinstance(each, type) and issubclass(each, Sound)]:
    # gymnasium's wrappers cannot be awaited
    _plain = {"order_enforce": False, "disable_env_checker": True} if issubclass(_class, Awaited) else {}
    gymnasium.register(f"contract/{_class.__name__}-v0", _class, **_plain)
