"""Which faults are retried, for how long, and how that is logged."""

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

import inside
import inside_bridge
from agentgym_gym.local_servers import LocalServer
from agentgym_gym.rollout import close_all
from clock import wait_until
from loop_without_verl import agent_loop, play, record_of, row_of

AGENTGYM_MAZE = "agentgym_gym:agentgym/Maze-v0"


class Returns(gymnasium.Env):
    """Fails in a stage (make, reset or step) for some seconds, or a number of times; then pays 1 and ends."""

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
    inside_bridge.retry_episodes_after(monkeypatch, 0.02, 0.1)
    yield
    close_all()


def played(row, budget, reply="1", **arguments):
    """Play one turn, as often as it takes; return the fault and the number of tries."""
    output = asyncio.run(play(row, reply, fault_budget=budget, max_turns=1, **arguments))
    return output.extra_fields["env_fault"], int(record_of(output)["replays"]) + 1


@pytest.mark.parametrize("stage", ["make", "reset", "step"])
@pytest.mark.parametrize("error", [RuntimeError, ConnectionError])
def test_an_environment_that_comes_back_within_the_budget_is_played(monkeypatch, stage, error):
    fail_times(monkeypatch, 2)
    row = row_of(RETURNS, {"stage": stage, "error": error}, {"task": 7}, seed=3)
    seen = []
    loop = agent_loop(lambda messages: seen.append(messages[-1]["content"]) or "1", fault_budget=60)
    output = asyncio.run(loop.run({}, **row))
    assert output.extra_fields["env_fault"] is None
    assert output.extra_fields["turn_scores"] == [1.0]
    assert record_of(output)["replays"] == 2
    # Each try begins the same task from its reset.
    assert seen == ["task 7 of seed 3"] * (3 if stage == "step" else 1)


def test_a_server_that_returns_at_the_end_of_the_budget(monkeypatch):
    """The last try is made when the budget ends, however long the waits have grown."""
    inside_bridge.retry_episodes_after(monkeypatch, 30.0, 30.0)
    away_for(monkeypatch, 0.2)
    began = time.monotonic()
    assert played(row_of(RETURNS), budget=0.4) == (None, 2)
    assert time.monotonic() - began < 15


def test_an_episode_is_excluded_after_the_budget(monkeypatch, caplog):
    away_for(monkeypatch, 60)
    began = time.monotonic()
    fault, tries = played(row_of(RETURNS), budget=0.3)
    assert 0.3 <= time.monotonic() - began < 20
    assert fault == {"kind": "RuntimeError", "message": "no answer at reset"}
    assert tries >= 4
    assert "left out after" in caplog.records[-1].message


def test_the_waits_grow_up_to_a_limit_and_differ(monkeypatch):
    waits, wait = [], asyncio.sleep

    async def sleep(seconds):
        if seconds >= 0.5:  # else of something else
            waits.append(seconds)
            seconds = 0
        await wait(seconds)

    inside_bridge.retry_episodes_after(monkeypatch, 1.0, 6.0)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    for _ in range(20):
        fail_times(monkeypatch, 6)
        assert played(row_of(RETURNS), budget=1e6) == (None, 7)
    for place, longest in enumerate([1, 2, 4, 6, 6, 6]):
        those = waits[place::6]
        assert longest / 2 <= min(those) < max(those) <= longest
        assert len(set(those)) == 20


def test_without_a_budget_nothing_is_retried(monkeypatch):
    away_for(monkeypatch, 60)
    fault, tries = played(row_of(RETURNS), budget=0)
    assert fault is not None
    assert tries == 1


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (row_of(RETURNS, {"error": Permanent}), "Permanent"),
        (row_of(RETURNS, {"stage": "step", "error": Permanent}), "Permanent"),
        (row_of(RETURNS, {"colour": "red"}), "WrongArguments"),
        (row_of(AGENTGYM_MAZE, {}, {"task_id": 10**9}), "BadOption"),
        (row_of(AGENTGYM_MAZE, {"max_turns": "many"}), "BadOption"),
    ],
    ids=["reset", "step", "arguments", "task", "option"],
)
def test_permanent_faults_are_not_retried(monkeypatch, row, kind, caplog):
    away_for(monkeypatch, 60)
    fault, tries = played(row, budget=60)
    assert fault["kind"] == kind
    assert tries == 1
    assert "This fault is permanent" in caplog.text


class AtReplay(logging.Handler):
    """Does something when an episode is about to be played again."""

    def __init__(self, happens):
        super().__init__()
        self.happens = happens

    def emit(self, record):
        if "Replay 1 follows" in record.getMessage():
            self.happens()


@pytest.mark.parametrize("path", ["/", "/create", "/reset", "/step"])
def test_a_server_that_answers_by_errors_for_a_while_is_waited_for(counted, path):
    server = counted()
    server.broken = {path}
    mend = AtReplay(server.broken.clear)
    logging.getLogger("verl_bridge").addHandler(mend)
    try:
        options = {"server": server.url, "action_format": "bare"}
        fault, tries = played(row_of("agentgym_gym:agentgym/TextCraft-v0", options), 60, "inventory")
    finally:
        logging.getLogger("verl_bridge").removeHandler(mend)
    assert (fault, tries) == (None, 2)


def test_a_fault_in_the_info_may_be_permanent(monkeypatch):
    fault = {"kind": "Gone", "message": "m", "transient": False}
    monkeypatch.setattr(Returns, "step", lambda *_: ("", 0.0, False, True, {"fault": fault}))
    found, tries = played(row_of(RETURNS), budget=60)
    assert (found["kind"], tries) == ("Gone", 1)


def test_the_log_names_the_first_and_sums_up_the_others(monkeypatch, caplog):
    inside_bridge.sum_up_retries_after(monkeypatch, 0.3)
    fail_times(monkeypatch, 150)

    async def work():
        server = "http://someone:secret@games.test"
        rows = [row_of(RETURNS, {"server": server}, {"task": n}, seed=n) for n in range(64)]
        outputs = await asyncio.gather(*(play(row, "1", fault_budget=60) for row in rows))
        await asyncio.sleep(0.5)  # until the last summary
        return outputs

    tries = sum(int(record_of(output)["replays"]) for output in asyncio.run(work()))
    lines = [message for message in caplog.messages if "Returns-v0" in message]
    assert tries == 150
    assert len(lines) < tries / 2
    assert "bridge/Returns-v0, task" in lines[0]
    assert "at reset. Replay 1 follows in" in lines[0]
    assert "are left for more" in lines[0]
    failed = [line for line in lines if "no answer" in line]
    first = sum("similar lines" not in line for line in failed)
    counted = sum(
        int(re.search(r"(\d+) similar lines", line)[1]) for line in failed if "similar lines" in line
    )
    assert first + counted == tries  # every try is in the log, one by one or summed up
    assert any("played at last, after" in line for line in lines)
    assert "secret" not in caplog.text
    assert "http://***@games.test" in lines[0]


async def maze_while(url, happens, *, turns=60, **options):
    """Play Maze in eight episodes, up and down, while something happens; return what the loop returns."""
    # No separate turn limit: the episodes must still be played when something happens.
    options = {"server": url, "action_format": "bare", "max_turns": None, **options}
    started = asyncio.Event()

    def move(messages):
        if len(messages) > 20:
            started.set()
        return f"move {('up', 'down')[len(messages) // 2 % 2]}"

    loop = agent_loop(move, fault_budget=90, max_turns=turns)
    rows = [row_of(AGENTGYM_MAZE, options, {"task_id": task_id}) for task_id in range(8)]
    playing = [asyncio.create_task(loop.run({}, **row)) for row in rows]
    await started.wait()
    await asyncio.to_thread(happens)
    return await asyncio.gather(*playing)


@pytest.mark.slow
def test_episodes_outlive_a_server_that_is_killed_and_comes_back(monkeypatch, caplog):
    inside_bridge.retry_episodes_after(monkeypatch, 0.1, 5.0)
    first = LocalServer("maze")
    url = first.start()
    second = LocalServer("maze", port=urlsplit(url).port)

    def happens():
        first.process.kill()
        time.sleep(1)
        second.start()

    try:
        outputs = asyncio.run(maze_while(url, happens))
    finally:
        first.stop()
        second.stop()
    assert [output.extra_fields["env_fault"] for output in outputs] == [None] * 8
    replays = [int(record_of(output)["replays"]) for output in outputs]
    assert min(replays) >= 3
    lines = [message for message in caplog.messages if message.startswith(AGENTGYM_MAZE)]
    assert url in lines[0]
    assert len(lines) < 20 < sum(replays)


@pytest.mark.slow
def test_episodes_outlive_a_silent_server_until_its_circuit_opens(monkeypatch, caplog):
    inside_bridge.retry_episodes_after(monkeypatch, 0.5, 5.0)
    server = LocalServer("maze")
    url = server.start()

    def happens():
        server.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: "circuit open for" in caplog.text)
        server.process.send_signal(signal.SIGCONT)
        inside.advance_clock("Maze", url, 60)

    limits = {"create": 0.5, "reset": 0.5, "step": 0.5}
    try:
        outputs = asyncio.run(maze_while(url, happens, timeout=limits))
    finally:
        server.stop()
    assert [output.extra_fields["env_fault"] for output in outputs] == [None] * 8
