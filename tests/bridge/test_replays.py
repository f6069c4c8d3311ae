"""Which faults are worth another try, how long that goes on, and what the log says of it."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import time
from typing import ClassVar
from urllib.parse import urlsplit

import gymnasium
import pytest

from agentgym_gym.local_servers import LocalServer
from agentgym_gym.rollout import close_all
from task_play import begin
from verl_bridge import _replays as replays
from verl_bridge._replays import Replays, budget_of
from verl_bridge.tasks import EnvTask

AGENTGYM_MAZE = "agentgym_gym:agentgym/Maze-v0"


class Returns(gymnasium.Env):
    """Fails in a stage (make, reset or step) for some seconds, or so many times; then pays 1 and ends."""

    observation_space = gymnasium.spaces.Text(9)
    action_space = gymnasium.spaces.Text(9)
    away: ClassVar[float] = 0.0
    back_at: ClassVar[float | None] = None
    failures: ClassVar[int] = 0

    def __init__(self, stage="reset", server=None, error=RuntimeError):
        self.stage, self.error = stage, error
        self._meet("make")

    def _meet(self, stage):
        if stage != self.stage:
            return
        if self.failures > 0:
            type(self).failures -= 1
            raise self.error(f"no answer at {stage}")
        if self.back_at is None:
            type(self).back_at = time.monotonic() + self.away
        if time.monotonic() < self.back_at:
            raise self.error(f"no answer at {stage}")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._meet("reset")
        return f"task {(options or {}).get('task')} of seed {seed}", {}

    def step(self, action):
        self._meet("step")
        return "done", 1.0, True, False, {}


class Permanent(ConnectionError):
    transient = False


def away_for(monkeypatch, seconds):
    monkeypatch.setattr(Returns, "away", seconds)
    monkeypatch.setattr(Returns, "back_at", None)


def fail_times(monkeypatch, count):
    away_for(monkeypatch, 0)
    monkeypatch.setattr(Returns, "failures", count)


gymnasium.register("bridge/Returns-v0", Returns)
RETURNS = "bridge/Returns-v0"


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr(replays, "FIRST_WAIT", 0.02)
    monkeypatch.setattr(replays, "MAX_WAIT", 0.1)
    monkeypatch.setattr(replays, "_replay_log", replays._ReplayLog())
    yield
    close_all()


async def played(task, budget, reply="1"):
    """Play one turn, as often as it takes; return the last episode and the number of tries."""
    again = Replays(task, budget)
    seen = []
    while True:
        episode = await begin(task)
        seen.append(episode.observation)
        if episode.fault is None:
            await episode.step(reply)
        await episode.end()
        if not await again.wait(episode):
            return episode, seen


@pytest.mark.parametrize("stage", ["make", "reset", "step"])
@pytest.mark.parametrize("error", [RuntimeError, ConnectionError])
def test_an_environment_that_comes_back_within_the_budget_is_played(monkeypatch, stage, error):
    fail_times(monkeypatch, 2)
    task = EnvTask(RETURNS, {"stage": stage, "error": error}, {"task": 7}, seed=3)
    episode, seen = asyncio.run(played(task, budget=60))
    assert episode.fault is None
    assert episode.rewards == [1.0]
    assert len(seen) == 3
    assert seen[-1] == "task 7 of seed 3"
    if stage == "step":
        assert set(seen) == {"task 7 of seed 3"}  # each try begins the same task from its reset


def test_what_comes_back_at_the_very_end_of_the_budget_is_met(monkeypatch):
    """The last try is made when the budget ends, however long the waits have grown."""
    monkeypatch.setattr(replays, "FIRST_WAIT", 30.0)
    monkeypatch.setattr(replays, "MAX_WAIT", 30.0)
    away_for(monkeypatch, 0.2)
    episode, seen = asyncio.run(played(EnvTask(RETURNS), budget=0.4))
    assert episode.fault is None
    assert len(seen) == 2


def test_what_stays_away_is_left_out_when_the_budget_is_used_up(monkeypatch, caplog):
    away_for(monkeypatch, 60)
    began = time.monotonic()
    episode, seen = asyncio.run(played(EnvTask(RETURNS), budget=0.3))
    assert 0.3 <= time.monotonic() - began < 20
    assert episode.fault == {"kind": "RuntimeError", "message": "no answer at reset"}
    assert len(seen) >= 4
    assert "The episode is left out after" in caplog.records[-1].message


def test_the_waits_grow_up_to_a_limit_and_differ(monkeypatch):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    async def work():
        for _ in range(20):
            again = Replays(EnvTask(RETURNS), budget=1e6)
            episode = await begin(EnvTask(RETURNS))
            with monkeypatch.context() as patched:
                patched.setattr(replays.asyncio, "sleep", sleep)
                for _ in range(6):
                    assert await again.wait(episode)
            await episode.end()

    monkeypatch.setattr(replays, "FIRST_WAIT", 1.0)
    monkeypatch.setattr(replays, "MAX_WAIT", 6.0)
    away_for(monkeypatch, 60)
    asyncio.run(work())
    for place, longest in enumerate([1, 2, 4, 6, 6, 6]):
        those = waits[place::6]
        assert longest / 2 <= min(those) < max(those) <= longest
        assert len(set(those)) == 20


def test_no_budget_is_no_replay(monkeypatch):
    away_for(monkeypatch, 60)
    episode, seen = asyncio.run(played(EnvTask(RETURNS), budget=0))
    assert episode.fault is not None
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        (EnvTask(RETURNS, {"error": Permanent}), "Permanent"),
        (EnvTask(RETURNS, {"stage": "step", "error": Permanent}), "Permanent"),
        (EnvTask(RETURNS, {"colour": "red"}), "WrongArguments"),
        (EnvTask(AGENTGYM_MAZE, {}, {"task_id": 10**9}), "BadOption"),
        (EnvTask(AGENTGYM_MAZE, {"max_turns": "many"}), "BadOption"),
    ],
    ids=str,
)
def test_what_waiting_does_not_mend_is_not_waited_for(monkeypatch, task, kind, caplog):
    away_for(monkeypatch, 60)
    episode, seen = asyncio.run(played(task, budget=60))
    assert episode.fault["kind"] == kind
    assert len(seen) == 1
    assert "This fault is permanent" in caplog.text


@pytest.mark.parametrize("path", ["/", "/create", "/reset", "/step"])
def test_a_server_that_answers_by_errors_for_a_while_is_waited_for(counted, path):
    server = counted()
    server.broken = {path}
    task = EnvTask("agentgym_gym:agentgym/TextCraft-v0", {"server": server.url, "action_format": "bare"})

    async def work():
        asyncio.get_running_loop().call_later(0.3, server.broken.clear)
        return await played(task, budget=20, reply="inventory")

    episode, seen = asyncio.run(work())
    assert episode.fault is None
    assert len(seen) > 1


def test_a_fault_in_the_info_may_say_that_it_stays(monkeypatch):
    fault = {"kind": "Gone", "message": "m", "transient": False}
    monkeypatch.setattr(Returns, "step", lambda *_: ("", 0.0, False, True, {"fault": fault}))
    episode, seen = asyncio.run(played(EnvTask(RETURNS), budget=60))
    assert (episode.fault["kind"], len(seen)) == ("Gone", 1)


def test_the_log_names_the_first_and_sums_up_the_others(monkeypatch, caplog):
    monkeypatch.setattr(replays, "LOG_SECONDS", 0.3)
    fail_times(monkeypatch, 150)

    async def work():
        server = "http://someone:secret@127.0.0.1:9"
        tasks = [EnvTask(RETURNS, {"server": server}, {"task": n}, seed=n) for n in range(64)]
        episodes = await asyncio.gather(*(played(task, budget=60) for task in tasks))
        await asyncio.sleep(0.5)  # until the last summary
        return episodes

    episodes = asyncio.run(work())
    tries = sum(len(seen) - 1 for _, seen in episodes)
    lines = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert tries == 150
    assert len(lines) < tries / 2
    assert "bridge/Returns-v0, task" in lines[0]
    assert re.search(r'"task": (\d+), "seed": \1} at http', lines[0])
    assert "RuntimeError: no answer at reset. Replay 1 follows in" in lines[0]
    assert "are left for more" in lines[0]
    failed = [line for line in lines if "no answer" in line]
    first = sum("similar lines" not in line for line in failed)
    counted = sum(
        int(re.search(r"(\d+) similar lines", line)[1]) for line in failed if "similar lines" in line
    )
    assert first + counted == tries  # every try is in the log, one by one or summed up
    assert any("played at last, after" in line for line in lines)
    assert "secret" not in caplog.text
    assert "http://***@127.0.0.1:9" in lines[0]


@pytest.mark.parametrize("value", [-1, True, "soon", float("nan"), float("inf")])
def test_a_budget_that_cannot_be_is_an_error(value):
    with pytest.raises(ValueError, match="fault_budget="):
        budget_of(value)


async def maze_while(url, happens, *, turns=200, **options):
    """Play Maze in eight episodes, up and down, while something happens; return the last of each."""

    async def play(task_id):
        # No turn limit of its own: the episodes must still be played when something happens.
        kwargs = {"server": url, "action_format": "bare", "max_turns": None, **options}
        again = Replays(EnvTask(AGENTGYM_MAZE, kwargs, {"task_id": task_id}), budget=90)
        while True:
            episode = await begin(again.task)
            for turn in range(turns if episode.fault is None else 0):
                await episode.step(f"move {('up', 'down')[turn % 2]}")
                if episode.over:
                    break
                await asyncio.sleep(0.02)
            await episode.end()
            if not await again.wait(episode):
                episode.replays = again.count
                return episode

    playing = [asyncio.create_task(play(task_id)) for task_id in range(8)]
    await asyncio.sleep(0.5)
    await asyncio.to_thread(happens)
    return await asyncio.gather(*playing)


@pytest.fixture
def slowly(monkeypatch):
    """The waits as they are outside of tests."""
    monkeypatch.setattr(replays, "FIRST_WAIT", 1.0)
    monkeypatch.setattr(replays, "MAX_WAIT", 30.0)


@pytest.mark.slow
@pytest.mark.usefixtures("slowly")
def test_episodes_outlive_a_server_that_is_killed_and_comes_back(caplog):
    first = LocalServer("maze")
    url = first.start()
    second = LocalServer("maze", port=urlsplit(url).port)

    def happens():
        first.process.kill()
        time.sleep(8)
        second.start()

    try:
        episodes = asyncio.run(maze_while(url, happens))
    finally:
        first.stop()
        second.stop()
    assert [episode.fault for episode in episodes] == [None] * 8
    assert all(episode.replays >= 3 for episode in episodes)
    lines = [record.message for record in caplog.records if record.name == "verl_bridge._replays"]
    assert url in lines[0]
    assert len(lines) < 20 < sum(episode.replays for episode in episodes)


@pytest.mark.slow
@pytest.mark.usefixtures("slowly")
def test_episodes_outlive_a_server_that_says_nothing_until_its_circuit_opens(caplog):
    server = LocalServer("maze")
    url = server.start()

    def happens():
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(7)
        server.process.send_signal(signal.SIGCONT)

    limits = {"create": 0.5, "reset": 0.5, "step": 0.5}
    try:
        episodes = asyncio.run(maze_while(url, happens, timeout=limits))
    finally:
        server.stop()
    assert [episode.fault for episode in episodes] == [None] * 8
    assert "circuit open" in caplog.text
