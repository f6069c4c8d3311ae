"""Small environments with one defect each, and their repaired versions, for the checks of reproducibility."""

from __future__ import annotations

import datetime as dt
import logging
import os
import random
import threading
import time
import warnings
from typing import Any, ClassVar

import gymnasium

from agentgym_gym import TextSpace

WORDS = ("left", "right", "up", "down")


class Walk(gymnasium.Env[str, str]):
    """A walk on a line: reach the goal, which the first observation names. A sound environment."""

    observation_space = TextSpace()
    action_space = TextSpace()
    system_prompt = "Walk to the goal. Reply with `left`, `right`, `up` or `down`."

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, Any]:
        """Draw the goal."""
        super().reset(seed=seed)
        self.goal = int(self.np_random.integers(2, 5))
        self.place, self.turns = 0, 0
        return self.text(), {"place": 0}

    def step(self, action: str) -> tuple[str, float, bool, bool, Any]:
        """Move."""
        self.turns += 1
        self.place += {"left": -1, "right": 1}.get(action, 0)
        won = self.place == self.goal
        return self.text(), float(won), won, self.turns >= 12, {"place": self.place}

    def text(self) -> str:
        """Return the observation."""
        return f"You are at {self.place}, the goal is {self.goal}."


class RandomGoal(Walk):
    """Draws from the random module."""

    def reset(self, **arguments: Any) -> tuple[str, Any]:
        """Draw the goal."""
        super().reset(**arguments)
        self.goal = random.randint(2, 9)  # noqa: S311
        return self.text(), {}


class TimeGoal(Walk):
    """Draws by the time in seconds."""

    def reset(self, **arguments: Any) -> tuple[str, Any]:
        """Draw the goal."""
        super().reset(**arguments)
        self.goal = 2 + int(time.time()) % 100
        return self.text(), {}


class KeptTurns(Walk):
    """Does not set its turns in reset."""

    all_turns = 0

    def step(self, action: str) -> tuple[str, float, bool, bool, Any]:
        """Count."""
        self.all_turns += 1
        observation, reward, won, late, info = super().step(action)
        return observation, reward, won, late or self.all_turns > 20, info


class KeptPrize(Walk):
    """Pays only once."""

    paid = False

    def step(self, action: str) -> tuple[str, float, bool, bool, Any]:
        """Pay."""
        observation, reward, won, late, info = super().step(action)
        paid, self.paid = self.paid, self.paid or won
        return observation, 0.0 if paid else reward, won, late, info


class SharedPlace(Walk):
    """Keeps the place in the class."""

    where: ClassVar[list[int]] = [0]

    def reset(self, **arguments: Any) -> tuple[str, Any]:
        """Begin."""
        answer = super().reset(**arguments)
        self.where[0] = 0
        return answer

    def step(self, action: str) -> tuple[str, float, bool, bool, Any]:
        """Move."""
        self.place = self.where[0]
        answer = super().step(action)
        self.where[0] = self.place
        return answer


class SharedLog(Walk):
    """Returns the actions of all copies in its info."""

    log: ClassVar[list[str]] = []

    def step(self, action: str) -> tuple[str, float, bool, bool, Any]:
        """Log."""
        self.log.append(action)
        observation, reward, won, late, _ = super().step(action)
        return observation, reward, won, late, {"log": self.log[-5:]}


class Single(Walk):
    """Cannot be made twice."""

    made: ClassVar[list[int]] = []

    def __init__(self) -> None:
        if self.made:
            raise OSError("address in use")
        self.made.append(1)

    def close(self) -> None:
        """Release it."""
        self.made.clear()


_buffer: list[str] = []


class SharedBuffer(Walk):
    """Parses with a buffer of the module: right in turns, wrong in threads."""

    def step(self, action: str) -> tuple[str, float, bool, bool, Any]:
        """Parse."""
        _buffer.clear()
        for letter in action:
            _buffer.append(letter)  # noqa: PERF402 - threads switch here
        return super().step("".join(_buffer))


class HashOrder(Walk):
    """Shows words in the order of a set."""

    def text(self) -> str:
        """Return the observation."""
        return " ".join({*WORDS, str(self.place), str(self.goal)})


class DateText(Walk):
    """Shows the date."""

    def text(self) -> str:
        """Return the observation."""
        return f"{super().text()} Today is {dt.datetime.now():%A}."  # noqa: DTZ005


class ClockText(Walk):
    """Shows the day by the clock."""

    def text(self) -> str:
        """Return the observation."""
        return f"{super().text()} Day {int(time.time()) // 86_400}."


class ProcessText(Walk):
    """Shows the number of its process."""

    def text(self) -> str:
        """Return the observation."""
        return f"{super().text()} {os.getpid()}"


class FirstOfProcess(Walk):
    """The first episode of a process is easier."""

    known: ClassVar[set[int]] = set()

    def reset(self, **arguments: Any) -> tuple[str, Any]:
        """Begin."""
        super().reset(**arguments)
        self.goal += len(self.known)
        self.known.add(1)
        return self.text(), {}


class NoSeed(Walk):
    """Has one episode."""

    def reset(self, **arguments: Any) -> tuple[str, Any]:
        """Begin."""
        super().reset(**arguments)
        self.goal = 2
        return self.text(), {"place": 0}


class Reseeding(Walk):
    """Seeds the random module."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, Any]:
        """Begin."""
        answer = super().reset(seed=seed)
        random.seed(seed)
        return answer


class Careless(Walk):
    """Changes the directory, variables and filters."""

    def __init__(self) -> None:
        os.environ["WALKING"] = "1"

    def step(self, action: str) -> tuple[str, float, bool, bool, Any]:
        """Move."""
        os.chdir("/")
        warnings.simplefilter("ignore", FutureWarning)
        return super().step(action)


class Loud(Walk):
    """Sets the level of all loggers."""

    def reset(self, **arguments: Any) -> tuple[str, Any]:
        """Begin."""
        logging.getLogger().setLevel(logging.DEBUG)
        return super().reset(**arguments)


class LiveInfo(Walk):
    """Returns one info for all turns."""

    def reset(self, **arguments: Any) -> tuple[str, Any]:
        """Begin."""
        observation, _ = super().reset(**arguments)
        self.info = {"place": 0}
        return observation, self.info

    def step(self, action: str) -> tuple[str, float, bool, bool, Any]:
        """Move."""
        observation, reward, won, late, _ = super().step(action)
        self.info["place"] = self.place
        return observation, reward, won, late, self.info


class LiveHistory(Walk):
    """Clears the returned history in the next reset."""

    def reset(self, **arguments: Any) -> tuple[str, Any]:
        """Begin."""
        if hasattr(self, "history"):
            self.history.clear()
        self.history: list[str] = ["begun"]
        return super().reset(**arguments)[0], {"history": self.history}


class LiveCount(Walk):
    """Returns a mapping of the class, which each constructor changes."""

    counts: ClassVar[dict[str, int]] = {"made": 0}

    def __init__(self) -> None:
        self.counts["made"] += 1

    def reset(self, **arguments: Any) -> tuple[str, Any]:
        """Begin."""
        return super().reset(**arguments)[0], {"counts": self.counts}


class LiveGrid(gymnasium.Env[Any, int]):
    """Returns its grid itself."""

    observation_space = gymnasium.spaces.Box(0, 9, (3,), int)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Draw the grid."""
        super().reset(seed=seed)
        self.grid = self.np_random.integers(0, 5, 3)
        return self.grid, {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, Any]:
        """Add one."""
        self.grid[action] = min(9, self.grid[action] + 1)
        return self.grid, 0.0, bool(self.grid.sum() > 15), False, {}


class SoundGrid(LiveGrid):
    """Returns copies of its grid."""

    def reset(self, **arguments: Any) -> tuple[Any, Any]:
        """Draw the grid."""
        super().reset(**arguments)
        return self.grid.copy(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, Any]:
        """Add one."""
        return super().step(action)[0].copy(), 0.0, bool(self.grid.sum() > 15), False, {}


class OneOnly(Walk):
    """Declares a capacity of one."""

    capacity = 1


class ClosingAll(Walk):
    """Closes what all copies use."""

    open: ClassVar[list[bool]] = [True]

    def reset(self, **arguments: Any) -> tuple[str, Any]:
        """Open."""
        self.open[0] = True
        return super().reset(**arguments)

    def step(self, action: str) -> tuple[str, float, bool, bool, Any]:
        """Move, if open."""
        return super().step(action if self.open[0] else "")

    def close(self) -> None:
        """Close."""
        self.open[0] = False


class AwaitedWalk(Walk):
    """Has coroutine functions."""

    async def reset(self, **arguments: Any) -> tuple[str, Any]:  # type: ignore[override]
        """Begin."""
        return super().reset(**arguments)

    async def step(self, action: str) -> tuple[str, float, bool, bool, Any]:  # type: ignore[override]
        """Move."""
        return super().step(action)

    async def close(self) -> None:  # type: ignore[override]
        """Close."""


class Locked(Walk):
    """Holds a lock of all copies during an episode."""

    lock = threading.Lock()
    own = False

    def reset(self, **arguments: Any) -> tuple[str, Any]:
        """Begin, as soon as no other copy plays."""
        if not self.own:
            self.own = self.lock.acquire(timeout=2)
        return super().reset(**arguments)

    def close(self) -> None:
        """End."""
        if self.own:
            self.own = False
            self.lock.release()
