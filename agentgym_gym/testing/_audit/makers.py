"""Makes environments for comparisons: a new one for each episode, also under a later clock."""

from __future__ import annotations

import datetime as dt
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentgym_gym.rollout._env_facts import describe_env
from agentgym_gym.rollout._workers import BlockingEnv, close_env

__all__ = ["LaterMaker", "RenewedEnv"]


class RenewedEnv:
    """Makes a new environment in each reset, so that no episode depends on earlier ones.

    Args:
        make: Makes the environment.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._used = False
        self._env = self._new()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, **arguments: Any) -> Any:
        """Make a new environment, unless this one is new, and reset it."""
        if self._used:
            self.close()
            self._env = self._new()
        self._used = True
        return self._env.reset(**arguments)

    def close(self) -> None:
        """Close the current environment."""
        close_env(self._env, "the environment")

    def _new(self) -> Any:
        env = self._make()
        return BlockingEnv(env) if describe_env(env).awaited else env


@dataclass(frozen=True)
class LaterMaker:
    """Makes an environment after the clock of its process was set forward. Instances can be pickled.

    Attributes:
        pickled: The pickled maker; its modules are imported under the later clock.
        seconds: How far the clock is set forward.
    """

    pickled: bytes
    seconds: int

    def __call__(self) -> RenewedEnv:
        """Set the clock forward, and make the environment."""
        if self.seconds:
            _set_forward(self.seconds)
        return RenewedEnv(pickle.loads(self.pickled))  # noqa: S301 - of our own process


def _set_forward(seconds: int) -> None:
    """Add seconds to the time of `time` and `datetime` in this process; monotonic clocks keep theirs."""
    now, now_ns, local, utc = time.time, time.time_ns, time.localtime, time.gmtime
    text, text_of, formatted = time.ctime, time.asctime, time.strftime
    vars(time).update(
        time=lambda: now() + seconds,
        time_ns=lambda: now_ns() + seconds * 10**9,
        localtime=lambda at=None: local(time.time() if at is None else at),
        gmtime=lambda at=None: utc(time.time() if at is None else at),
        ctime=lambda at=None: text(time.time() if at is None else at),
        asctime=lambda parts=None: text_of(time.localtime() if parts is None else parts),
        strftime=lambda form, parts=None: formatted(form, time.localtime() if parts is None else parts),
    )
    _set_dates_forward(dt.timedelta(seconds=seconds))


def _set_dates_forward(delta: dt.timedelta) -> None:
    """Replace the classes of `datetime` by ones with a later now, of which all dates are instances."""
    date, moment = dt.date, dt.datetime

    class AnyDate(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, moment if issubclass(cls, moment) else date)

    class LaterDate(dt.date, metaclass=AnyDate):
        @classmethod
        def today(cls) -> Any:
            return (moment.now() + delta).date()

    class LaterMoment(dt.datetime, metaclass=AnyDate):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return moment.now(tz) + delta

        @classmethod
        def utcnow(cls) -> Any:
            return moment.now(dt.timezone.utc).replace(tzinfo=None) + delta

        @classmethod
        def today(cls) -> Any:
            return moment.now() + delta

    vars(dt).update(date=LaterDate, datetime=LaterMoment)
