"""Inject one fault at each I/O point of a script, and ask four questions after it.

A script is one operation of a client: a reset, a step, a close, a wait for a place. `Trial.run` prepares the
client, runs the operation with one fault, and returns the answers that are wrong:

1. Is an environment open that neither the journal names nor a later close or exit closes?
2. Can the environment be used again, in the same process?
3. Does another environment of the process notice?
4. Is the next score right?

Faults come from outside (`game_server.FAULTS`, a restart) at each request, as a Ctrl-C at each point at which
Python checks for signals (`interrupts`), and as a cancellation in each iteration of the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium

import inside
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from agentgym_gym.rollout import Pool
from fake_server import hang_up
from game_server import FAULTS, WIN, GameServer, observation
from interrupts import Point, interrupted, points_of, run_as_asyncio, spread

TIMEOUT = 60.0
"""Seconds for each reply."""

SHORT_TIMEOUT = 0.5
"""Seconds for each reply if one comes too late; less than `game_server.LATE`."""

TASK, NEXT_TASK, OTHER_TASK = 1, 2, 3


class SyncClient:
    """An environment that waits in the calling thread.

    Attributes:
        once: Whether it cannot be used again after its close.
        size: Number of its remote environments.
    """

    once = False
    size = 1

    def __init__(self, servers: Sequence[GameServer], **options: Any) -> None:
        self.action = servers[0].action
        self.env = AgentGymEnv(servers[0].environment, server=[each.url for each in servers], **options)

    def reset(self, task: int) -> str:
        return self.env.reset(options={"task_id": task})[0]

    def step(self) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return self.env.step(self.action)

    def close(self) -> None:
        self.env.close()

    def end(self) -> None:
        """Release what is no part of the environment."""


class AwaitedClient(SyncClient):
    """An environment with coroutines, run as `asyncio.run` runs them.

    Attributes:
        task: The last one; None before the first.
    """

    task: asyncio.Task[Any] | None = None

    def __init__(self, servers: Sequence[GameServer], **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.action = servers[0].action
        self.env = AsyncAgentGymEnv(servers[0].environment, server=[each.url for each in servers], **options)

    def reset(self, task: int) -> str:
        return self.run(self.env.reset(options={"task_id": task}))[0]

    def step(self) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return self.run(self.env.step(self.action))

    def close(self) -> None:
        self.run(self.env.close())

    def run(self, work: Any) -> Any:
        self.task = self.loop.create_task(work)
        return run_as_asyncio(self.loop, self.task)

    def end(self) -> None:
        self.loop.close()


class VectorClient(SyncClient):
    """Two environments of a vector, of which the first is looked at."""

    once = True
    size = 2

    def __init__(self, servers: Sequence[GameServer], **options: Any) -> None:
        self.action = servers[0].action
        self.env = gymnasium.make_vec(
            f"agentgym/{servers[0].environment}-v0",
            num_envs=2,
            server=[each.url for each in servers],
            **options,
        ).unwrapped

    def reset(self, task: int) -> str:
        observations, infos = self.env.reset(options={"task_id": task})
        if "fault" in infos:
            raise errors.ServerError("a reset failed")
        assert observations[0] == observations[1]
        return observations[0]

    def step(self) -> tuple[str, float, bool, bool, dict[str, Any]]:
        shown, rewards, terminated, truncated, infos = self.env.step([self.action] * 2)
        fault = {"fault": True} if "fault" in infos else {}
        return shown[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), fault

    def close(self) -> None:
        self.env.close_extras()


class EpisodeClient(AwaitedClient):
    """An episode of the rollout runtime, on which evaluation and training run."""

    def __init__(self, servers: Sequence[GameServer], **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.action = servers[0].action
        self.pool = Pool(
            f"agentgym/{servers[0].environment}-v0",
            env_kwargs={"server": [each.url for each in servers], **options},
        )
        self.episode: Any = None

    def reset(self, task: int) -> str:
        if self.episode is not None:
            self.run(self.episode.end())
        self.episode = self.pool.episode(task=task)
        self.run(self.episode.begin())
        if self.episode.fault:
            raise errors.ServerError(str(self.episode.fault))
        return self.episode.observation

    def step(self) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return tuple(self.run(self.episode.step(self.action)))  # type: ignore[return-value]

    def close(self) -> None:
        if self.episode is not None:
            self.run(self.episode.end())
        self.run(self.pool.close())


@dataclass(frozen=True)
class Script:
    """One operation of a client.

    Attributes:
        name: Its name.
        prepare: Brings the client into the state before it.
        run: The operation.
        servers: Number of servers.
        closes: Whether they can close environments.
        rival: Whether another environment of the process has the last place: ``"idle"`` if its episode is
            over, ``"busy"`` if it is closed while the client waits; empty if there are places enough.
    """

    name: str
    prepare: Callable[[SyncClient], object]
    run: Callable[[SyncClient], object]
    servers: int = 1
    closes: bool = True
    rival: str = ""


def _nothing(client: SyncClient) -> None:
    pass


def _begin(client: SyncClient) -> None:
    client.reset(TASK)
    client.step()


def _reset(client: SyncClient) -> None:
    client.reset(TASK)


def _step(client: SyncClient) -> None:
    client.step()


def _close(client: SyncClient) -> None:
    client.close()


SCRIPTS = [
    Script("first reset", _nothing, _reset),
    Script("next reset", _begin, _reset),
    Script("step", _begin, _step),
    Script("close", _begin, _close),
    Script("reset that takes over a place", _nothing, _reset, rival="idle"),
    Script("reset that waits for a place", _nothing, _reset, rival="busy"),
    Script("reset on one of two servers", _nothing, _reset, servers=2),
    Script("first reset where nothing closes", _nothing, _reset, closes=False),
    Script("next reset where nothing closes", _begin, _reset, closes=False),
    Script("step where nothing closes", _begin, _step, closes=False),
    Script("close where nothing closes", _begin, _close, closes=False),
]


class Trial:
    """A script with a kind of client on separate servers.

    Args:
        script: The script.
        client: The class of the client.
    """

    def __init__(self, script: Script, client: type[SyncClient]) -> None:
        self.script, self._make = script, client
        self.servers = [GameServer(closes=script.closes) for _ in range(script.servers)]
        self._clients: list[SyncClient] = []
        self._timers: list[threading.Timer] = []
        self._other = SyncClient(self.servers[-1:])  # with two servers, the client goes to the first
        self._restarted = False
        self._timeout = TIMEOUT
        self._steps = 0

    def stop(self) -> None:
        """End the servers."""
        for client in self._clients:
            client.end()
        for server in self.servers:
            server.stop()

    def signal_points(self, number: int | None) -> list[Point]:
        """Return the points of the operation at which a Ctrl-C may come, evenly spread.

        Args:
            number: How many; None for all.
        """
        for _ in range(2):  # the first time other things are imported
            points = points_of(partial(self.script.run, self._client()))
            self._put_away()
        return points if number is None else spread(points, number)

    def interrupted(self, point: Point) -> list[str]:
        """Interrupt the operation at a point by Ctrl-C, and return what is wrong after it."""
        return self._run(lambda client: interrupted(lambda: self.script.run(client), point))

    def cancelled_at(self, point: Point) -> list[str]:
        """Cancel the operation of an awaited client at a point, as `asyncio.run` does at a Ctrl-C.

        Its signal handler cancels the task between any two instructions, also within our callbacks.
        """

        def operation(client: SyncClient) -> None:
            assert isinstance(client, AwaitedClient)

            def cancel() -> None:
                if client.task is not None:
                    client.task.cancel()

            with contextlib.suppress(asyncio.CancelledError):
                interrupted(partial(self.script.run, client), point, cancel)

        return self._run(operation)

    def cancelled(self, iteration: int) -> tuple[list[str], bool]:
        """Cancel the operation of an awaited client after some iterations of its event loop.

        Returns:
            What is wrong after it, and whether the operation was still running.
        """
        came = False

        def operation(client: SyncClient) -> None:
            nonlocal came
            assert isinstance(client, AwaitedClient)
            left = itertools.count(iteration, -1)

            def tick() -> None:
                nonlocal came
                task = client.task
                assert task is not None
                if next(left) == 0:
                    came = task.cancel()
                elif not task.done():
                    client.loop.call_soon(tick)

            client.loop.call_soon(tick)
            with contextlib.suppress(asyncio.CancelledError):
                self.script.run(client)

        return self._run(operation), came

    def with_fault(self, name: str, number: int) -> tuple[list[str], bool]:
        """Fail the n-th request of the operation, by one of `FAULTS` or by a restart of its server.

        Returns:
            What is wrong after it, and whether the operation made as many requests.
        """
        self._restarted = name == "restart"
        self._timeout = SHORT_TIMEOUT if name == "late" else TIMEOUT
        requests = itertools.count(1)
        reached = False

        def fail(server: GameServer, play: Callable[[], Any]) -> Any:
            nonlocal reached
            if next(requests) != number:
                return play()
            reached = True
            if self._restarted:
                server.restart()
                return hang_up
            return FAULTS[name](play)

        def operation(client: SyncClient) -> None:
            for server in self.servers:
                server.fault = partial(fail, server)
            try:
                self.script.run(client)
            except errors.Fault:
                pass
            finally:
                for server in self.servers:
                    server.fault = None

        return self._run(operation), reached

    def _client(self) -> SyncClient:
        options: dict[str, Any] = {"timeout": self._timeout}
        if self.script.rival:
            # One for the environment that must not notice.
            options["max_envs_per_server"] = 1 + self._make.size
            rival = SyncClient(self.servers, **options)
            self._clients.append(rival)
            rival.reset(NEXT_TASK)
            if self.script.rival == "idle":
                self._play(rival, NEXT_TASK)
            else:
                timer = threading.Timer(0.03, rival.close)
                timer.start()
                self._timers.append(timer)
        client = self._make(self.servers, **options)
        self._clients.append(client)
        self.script.prepare(client)
        return client

    def _run(self, operation: Callable[[SyncClient], object]) -> list[str]:
        wrong: list[str] = []
        self._other_goes_on(wrong)
        before = self._open()
        client = self._client()
        operation(client)
        if self.script.closes:
            wrong += [f"open and unnamed: {env_id}" for env_id in self._unnamed()]
        self._other_goes_on(wrong)
        try:
            if not (client.once and self.script.name.startswith("close")):
                self._play(client, NEXT_TASK)
        except Exception as error:  # noqa: BLE001 - it is the finding
            wrong.append(f"cannot be used again: {error!r}")
        self._put_away()
        if self.script.closes:
            wrong += [f"open and unnamed after close: {env_id}" for env_id in self._unnamed(before)]
            for server in self.servers:
                for url, env_id in self._open() - before:
                    if url == server.url:
                        server.open.pop(env_id, None)
        return wrong

    def _put_away(self) -> None:
        while self._timers:
            self._timers.pop().join()
        for each in self._clients:
            each.close()
        for each in self._clients:
            each.end()
        self._clients.clear()
        self._restarted, self._timeout = False, TIMEOUT

    def _play(self, client: SyncClient, task: int) -> None:
        """Play a task to its end, and check each observation and the score."""
        shown, score = client.reset(task), 0.0
        assert shown == observation(task, 0), shown
        for number in range(1, WIN + 1):
            shown, reward, terminated, _, info = client.step()
            assert "fault" not in info, info
            assert shown == observation(task, number), (shown, number)
            score += reward
        assert (score, terminated) == (1.0, True)

    def _other_goes_on(self, wrong: list[str]) -> None:
        """Play a turn in the other environment, whose observation shows whether anything happened in it.

        Its episode never ends, so that no other client takes its place over.
        """
        if self._steps in {0, WIN - 1}:
            self._steps = 0
            shown = self._other.reset(OTHER_TASK)
            if shown != observation(OTHER_TASK, 0):
                wrong.append(f"the other environment shows {shown!r} after its reset")
        shown, *_, info = self._other.step()
        self._steps += 1
        if "fault" in info:
            if not self._restarted:
                wrong.append(f"the other environment had a fault: {info['fault']}")
            self._steps = 0
        elif shown != observation(OTHER_TASK, self._steps):
            wrong.append(f"the other environment shows {shown!r} after step {self._steps}")
            self._steps = 0

    def _unnamed(self, before: Collection[tuple[str, int]] = ()) -> list[tuple[str, int]]:
        """Return the environments that stay open and that the journal does not name."""
        deadline = time.monotonic() + 10  # the threads of a vector and of late replies may be at work
        while True:
            inside.wait_for_background()
            unnamed = self._open().difference(before) - self._named()
            if not unnamed or time.monotonic() > deadline:
                return sorted(unnamed)
            time.sleep(0.01)

    def _open(self) -> set[tuple[str, int]]:
        return {(each.url, env_id) for each in self.servers for env_id in set(each.open) - each.unknown}

    def _named(self) -> set[tuple[str, int]]:
        return {
            (server.url, env_id)
            for server in self.servers
            for record in inside.records(server.url)
            for env_id in record.ids
        }


def signal_points(
    trial: Trial, number: int | None, *, under_asyncio_run: bool = False
) -> Iterator[tuple[str, list[str]]]:
    """Interrupt a trial's operation by Ctrl-C at points evenly spread; yield each and what is wrong after it.

    Args:
        trial: The trial.
        number: How many points; None for all.
        under_asyncio_run: Whether the handler of the signal cancels the task, as under `asyncio.run`.
    """
    interrupt = trial.cancelled_at if under_asyncio_run else trial.interrupted
    for point in trial.signal_points(number):
        yield str(point), interrupt(point)


def fault_points(trial: Trial) -> Iterator[tuple[str, list[str]]]:
    """Fail each request of a trial's operation in each way; yield each fault and what is wrong after it."""
    for name in (*FAULTS, "restart"):
        for number in itertools.count(1):
            wrong, reached = trial.with_fault(name, number)
            if not reached:
                break
            yield f"{name} at request {number}", wrong


def cancel_points(trial: Trial, most: int = 60) -> Iterator[tuple[str, list[str]]]:
    """Cancel a trial's operation in each iteration of its event loop.

    Args:
        trial: The trial.
        most: The last iteration; a wait for a place has thousands.
    """
    for iteration in range(most):
        wrong, came = trial.cancelled(iteration)
        if not came:
            break
        yield f"cancelled in iteration {iteration}", wrong
