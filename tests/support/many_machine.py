"""Envs that are awaited, one by one or side by side, on the transport that breaks what passes through it."""

from __future__ import annotations

import asyncio

import numpy as np

from agentgym_gym import AgentGymVectorEnv, AsyncAgentGymEnv
from inside import SyncDriver, directly
from lifecycle_machine import Player, account_of


class Line:
    """Replaces the connection of an awaited env: the transport of a world, in the account of its player."""

    def __init__(self, env, world, player):
        self._transport, self._player = world.transport, player
        self._sync = SyncDriver(limits=env._driver.limits)
        directly(self._sync, world.transport)
        self._begun = None

    def send(self, request, answer):
        self._begun = asyncio.get_running_loop().call_soon(self._answer, request, answer)  # after the others

    def give_up(self):
        self._begun.cancel()

    def _answer(self, request, answer):
        vars(self._transport).update(self._player.account)
        try:
            how = self._sync._exchange(request)
        except Exception as error:  # noqa: BLE001 - a fault, or what the transport asserts
            how = error
        self._player.account = account_of(self._transport)
        answer(how)


def through(env, world, player):
    """Let an awaited env speak by the transport of a world."""
    line = Line(env, world, player)
    env._driver.connection = lambda server: line
    return env


class AwaitedPlayer(Player):
    """One `AsyncAgentGymEnv`, in an event loop of its owner."""

    def __init__(self, world, *, loop, **options):
        self._loop = loop
        super().__init__(world, **options)

    def made(self, world):
        env = AsyncAgentGymEnv(world.environment, server=world.url, **self.options)
        return through(env, world, self)

    def reset(self, task, seed=None):
        return self._loop.run_until_complete(super().reset(task, seed))

    def step(self, action):
        return self._loop.run_until_complete(super().step(action))

    def close(self):
        self._loop.run_until_complete(self.env.close())


class Member(Player):
    """One env of an `AgentGymVectorEnv`; its use does not change the others."""

    closes_alone = False

    def __init__(self, world, vector, number, **options):
        self.vector, self.number = vector, number
        super().__init__(world, **options)

    def made(self, world):
        return through(self.vector.envs[self.number], world, self)

    def reset(self, task, seed=None):
        mask = np.arange(self.vector.num_envs) == self.number
        said, infos = self.vector.reset(seed=seed, options={"task_id": task, "reset_mask": mask})
        return said[self.number], row(infos, self.number)

    def step(self, action):
        actions = [None] * self.vector.num_envs
        actions[self.number] = action
        turn = self.vector.step(actions)
        assert not (turn[1].any() and not turn[1][self.number])
        return turn_of(turn, self.number)

    def is_over(self, action):
        if self.number not in self.vector._unset:
            super().is_over(action)
            return
        _, reward, terminated, truncated, info = self.step(
            action
        )  # which returns once more that it was not reset
        assert (reward, terminated, truncated, set(info)) == (0, False, True, {"fault"})

    def close(self):
        self.vector.close()


def row(infos, number):
    """Return the info of one environment of many, as a single environment returns it."""
    return {
        key: row(column, number) if isinstance(column, dict) else plain(column[number])
        for key, column in infos.items()
        if not key.startswith("_") and infos[f"_{key}"][number]
    }


def turn_of(turn, number):
    """Return the turn of one environment of many."""
    said, rewards, terminated, truncated, infos = turn
    return (said[number], *(plain(c[number]) for c in (rewards, terminated, truncated)), row(infos, number))


def plain(value):
    return value.item() if isinstance(value, np.generic) else value


def side_by_side(world, options, **others):
    """Return the members of a vector environment, which all have the options of the first."""
    vector = AgentGymVectorEnv(len(options), world.environment, server=world.url, **options[0], **others)
    return [Member(world, vector, number, **options[0]) for number in range(len(options))]
