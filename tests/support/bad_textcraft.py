"""A TextCraft server that misbehaves on request, each kind of environment, and checks of both."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import inside
from agentgym_gym import AgentGymEnv, AgentGymVectorEnv, AsyncAgentGymEnv, errors
from clock import wait_until
from fake_server import FakeServer, http

LOOK = "Action: inventory"
POISON = "get 1 poison"  # the action that is answered badly
CURSED = 13  # the task, too
TOLD = {"observation": "It works.", "reward": 0, "done": False}


def told(**changes) -> bytes:
    """Return a reply to a step with some fields changed; `...` takes one out."""
    return http(json.dumps({k: v for k, v in {**TOLD, **changes}.items() if v is not ...}).encode())


class Server(FakeServer):
    """Serves TextCraft's wire, and badly on request.

    Attributes:
        bad: What is answered by the action, the task or the path that it answers: see `fake_server.Answer`.
        ids: The ids it gives out.
        asked: The path and the body of each request.
    """

    def __init__(self):
        self.bad, self.ids, self.asked, self.shown = {}, itertools.count(100), [], {}
        super().__init__(self._answer)

    def _answer(self, request):
        path, body = request.path, request.json
        if path == "/observation":
            return self.shown.get(int(request.query.removeprefix("id=")), {"error": "no such id"})
        self.asked.append((path, body))
        keys = (body.get("action"), body.get("data_idx"), path)
        return next((self.bad[key] for key in keys if key in self.bad), None) or self._well(path, body)

    def _well(self, path, body):
        if path == "/":
            return "This is environment TextCraft."
        if path == "/create":
            return {"id": next(self.ids)}
        if path == "/reset":
            return {"id": body["id"], **TOLD, "observation": self._shows(body, f"Task {body['data_idx']}")}
        if path == "/step":
            return {**TOLD, "observation": self._shows(body, body["action"])}
        return True

    def pretend(self, what):
        """Have all environments show the observation of a bad answer."""
        self.shown = dict.fromkeys(self.shown, what)

    def _shows(self, body, what):
        self.shown[body["id"]] = f"{what} in {body['id']}."
        return self.shown[body["id"]]


class Alone:
    """An `AgentGymEnv`, which is also `played`."""

    def __init__(self, url, **options):
        self.env = self.played = AgentGymEnv("TextCraft", server=url, **options)

    def reset(self, task=1):
        return self.env.reset(options={"task_id": task})

    def step(self, action):
        return self.env.step(action)

    def idle(self):
        pass

    @property
    def faults(self):
        return Counter(self.env.stats.faults)

    def close(self):
        self.env.close()


class Awaited(Alone):
    """An `AsyncAgentGymEnv`."""

    def __init__(self, url, **options):
        self.env = self.played = AsyncAgentGymEnv("TextCraft", server=url, **options)
        self.loop = asyncio.new_event_loop()

    def reset(self, task=1):
        return self.loop.run_until_complete(super().reset(task))

    def step(self, action):
        return self.loop.run_until_complete(super().step(action))

    def idle(self):
        self.loop.run_until_complete(asyncio.sleep(0.05))

    def close(self):
        if self.loop.is_closed():
            return
        self.loop.run_until_complete(self.env.close())
        self.idle()  # asyncio closes sockets by callbacks
        self.loop.close()


class Among(Alone):
    """The middle one of three in an `AgentGymVectorEnv`; the others play on as if nothing was."""

    def __init__(self, url, **options):
        self.env = AgentGymVectorEnv(3, "TextCraft", server=url, **options)
        self.played = self.env.envs[1]
        self.env.reset(options={"task_id": [1, 2, 3], "reset_mask": np.array([True, False, True])})

    def reset(self, task=1):
        said, infos = self.env.reset(options={"task_id": task, "reset_mask": np.array([False, True, False])})
        return said[1], row(infos, 1)

    def step(self, action):
        said, rewards, terminated, truncated, infos = self.env.step([LOOK, action, LOOK])
        for other in (0, 2):
            env_id = self.env.envs[other]._episode.lease.env_id
            assert said[other] == f"inventory in {env_id}."
            assert "fault" not in row(infos, other)
        return said[1], rewards[1], terminated[1], truncated[1], row(infos, 1)

    def close(self):
        self.env.close()


def row(infos, number):
    """Return the info of one environment."""
    return {
        key: row(column, number) if isinstance(column, dict) else column[number]
        for key, column in infos.items()
        if not key.startswith("_") and infos[f"_{key}"][number]
    }


def plays_on(play):
    said, _ = play.reset()
    env_id = int(said.split()[-1].rstrip("."))
    assert said == f"Task 1 in {env_id}."
    turn = play.step(LOOK)
    assert turn[:4] == (f"inventory in {env_id}.", 0, False, False)
    assert "fault" not in turn[4]
    return env_id


def ends_by(fault, said, play, server, answer):
    """Check that a badly answered step is a counted fault, was sent once, and affects no later episode."""
    server.bad[POISON] = answer
    play.reset()
    before = play.faults
    if fault is errors.ServerTimeout:
        inside.limit_times(play.played, step=0.3)
    observation, reward, terminated, truncated, info = play.step(f"Action: {POISON}")
    inside.limit_times(play.played, step=60)
    assert (reward, terminated, truncated) == (0, False, True)
    assert info["fault"]["kind"] == fault.__name__
    assert f"POST {server.url}/step" in info["fault"]["message"]
    assert said in info["fault"]["message"]
    assert len(info["fault"]["message"]) < 500
    assert fault.__name__ in observation
    assert play.faults - before == {fault.__name__: 1}
    # On a busy machine, the request arrives after the time limit.
    wait_until(lambda: [body.get("action") for _, body in server.asked].count(POISON) == 1)
    with pytest.raises(ResetNeeded):
        play.step(LOOK)
    plays_on(play)


def cannot_begin(said, play, server, path, answer):
    """Check that a badly answered reset raises the fault, and that the next one succeeds."""
    server.bad[CURSED if path == "/reset" else path] = answer
    before = play.faults
    with pytest.raises(errors.BadReply) as caught:
        play.reset(CURSED)
    server.bad.clear()
    assert f"POST {server.url}{path}" in str(caught.value)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500
    assert play.faults - before == {"BadReply": 1}
    plays_on(play)
