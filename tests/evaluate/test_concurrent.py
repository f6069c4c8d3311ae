"""Many episodes at once: over the awaited environment, in threads, with agents that are awaited or not."""

import asyncio
import sys
import threading
import time
import types
from functools import partial
from importlib.util import find_spec
from typing import ClassVar

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

import command_line
import inside
from agentgym_gym.aio import AsyncAgentGymEnv
from agentgym_gym.catalogue import find
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.errors import AgentFault, BadArguments, BadOption, ModelBusy, WrongServer
from agentgym_gym.evaluate import AgentReply, RandomAgent, evaluate, evaluate_async, load_oracle, read_run
from agentgym_gym.testing import ScriptedAgent


class Waiting:
    """Replies when all who play at once wait; an agent of the tests' own, awaited."""

    name = "waiting"

    def __init__(self, barrier):
        self.barrier, self.turn = barrier, 0

    async def reset(self, env, observation, info):
        self.turn = 0

    async def act(self, observation, info):
        self.turn += 1
        if self.turn > 1:
            return None
        await self.barrier()
        return AgentReply("Action: inventory", step={"completion_tokens": 3, "finish_reason": "stop"})


def barrier_of(number):
    waiting, everyone = [], asyncio.Event()

    async def wait():
        waiting.append(1)
        if len(waiting) == number:
            everyone.set()
        await asyncio.wait_for(everyone.wait(), 60)

    return wait


class Slow(gymnasium.Env):
    """Another library's environment, which blocks and must stay in one thread."""

    observation_space = action_space = gymnasium.spaces.Text(5)
    made = 0
    threads: ClassVar[set[threading.Thread]]
    together: ClassVar[threading.Barrier]

    def __init__(self):
        type(self).made += 1

    def reset(self, *, seed=None, options=None):
        return "Go.", {}

    def step(self, action):
        assert threading.current_thread() is not threading.main_thread()
        self.threads.add(threading.current_thread())
        self.together.wait(30)
        return "Done.", 1.0, True, False, {"success": True}


def test_as_many_play_at_once_as_are_allowed(textcraft_url):
    async def play():
        barrier = barrier_of(8)
        return await evaluate_async(
            lambda: AsyncAgentGymEnv("TextCraft", server=textcraft_url),
            lambda: Waiting(barrier),
            range(8),
            concurrency=8,
        )

    records = asyncio.run(play())
    assert [record.task_id for record in records] == list(range(8))
    assert [record.ending for record in records] == ["gave_up"] * 8
    for record in records:
        (step,) = record.steps
        assert (step["completion_tokens"], step["finish_reason"], step["action"]) == (3, "stop", "inventory")
        assert step["agent_seconds"] >= 0 < step["env_seconds"]
        assert record.env_seconds > step["env_seconds"]


def test_at_once_is_as_one_after_another(env, textcraft_url):
    told = []
    records = asyncio.run(
        evaluate_async(
            lambda: AsyncAgentGymEnv("TextCraft", server=textcraft_url),
            lambda: load_oracle(env.environment),
            range(10),
            samples=2,
            concurrency=7,
            on_episode=told.append,
        )
    )
    assert [(r.sample, r.task_id) for r in records] == [(s, t) for s in range(2) for t in range(10)]
    assert sorted(map(id, told)) == sorted(map(id, records))
    alone = evaluate(env, load_oracle(env.environment), range(10), samples=2)
    same = ("env_id", "task_id", "sample", "score", "rewards", "messages", "ending", "parse_errors")
    for one, other in zip(records, alone, strict=True):
        assert [getattr(one, name) for name in same] == [getattr(other, name) for name in same]


def test_each_sample_of_the_random_agent_differs(env, textcraft_url):
    records = asyncio.run(
        evaluate_async(
            lambda: AsyncAgentGymEnv("TextCraft", server=textcraft_url, max_turns=2),
            lambda: RandomAgent(3),
            [5, 6],
            samples=3,
        )
    )
    assert len({record.replies for record in records}) == 6
    with AgentGymEnv("TextCraft", server=textcraft_url, max_turns=2) as alone:
        assert evaluate(alone, RandomAgent(3), [5])[0].replies == records[0].replies


def test_a_blocking_agent_has_its_own_thread():
    Slow.made, Slow.threads, Slow.together = 0, set(), threading.Barrier(8)
    records = asyncio.run(evaluate_async(Slow, lambda: ScriptedAgent("go"), range(8), concurrency=8))
    assert [record.score for record in records] == [1.0] * 8
    assert Slow.made == 8 + 1
    deadline = time.monotonic() + 30
    while any(thread in threading.enumerate() for thread in Slow.threads):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_no_more_play_at_once_than_the_servers_hold(counted, monkeypatch):
    server = counted()
    monkeypatch.setattr(type(find("TextCraft").wire), "capacity", 2)
    records = asyncio.run(
        evaluate_async(
            lambda: AsyncAgentGymEnv("TextCraft", server=server.url),
            partial(Waiting, barrier_of(2)),
            range(12),
            concurrency=8,
        )
    )
    assert (server.most, [record.fault for record in records]) == (2, [None] * 12)
    env = AsyncAgentGymEnv("TextCraft", server=[server.url, f"{server.url}/b"], max_envs_per_server=1)
    assert env.capacity == 2


@pytest.fixture
def eval_file(monkeypatch, tmp_path):
    """Plays the environments of a run file, with agents by name; returns the records of each run."""
    inside.forget_registrations(monkeypatch)

    def play(environments, agents, *, concurrency):
        module = types.ModuleType("own_agents")
        vars(module).update(agents)
        monkeypatch.setitem(sys.modules, "own_agents", module)
        lines = [f'out = "{tmp_path / "runs"}"', f"concurrency = {concurrency}", *environments]
        lines += [f'[[agents]]\nagent = "own_agents:{name}"\nname = "{name}"' for name in agents]
        (tmp_path / "run.toml").write_text("\n".join(lines))
        result = command_line.run("eval", tmp_path / "run.toml")
        assert result.exit_code == 0, result.stderr
        return {path.name: read_run(path).records for path in (tmp_path / "runs").iterdir()}

    return play


@pytest.mark.needs("tomllib" if find_spec("tomllib") else "tomli")
def test_agents_on_the_same_servers_share_their_capacity(counted, monkeypatch, eval_file):
    server = counted()
    monkeypatch.setattr(type(find("TextCraft").wire), "capacity", 2)
    make_agent = partial(Waiting, barrier_of(2))
    environment = f'[[environments]]\nid = "TextCraft"\nserver = "{server.url}"\ntasks = "0:5"'
    runs = eval_file([environment], dict.fromkeys("abc", make_agent), concurrency=8)
    faults = [record.fault for records in runs.values() for record in records]
    assert (server.most, faults) == (2, [None] * 15)


class OnePlace(gymnasium.Env):
    """An environment whose server has one place; its step waits until four play in the other one."""

    observation_space = action_space = gymnasium.spaces.Text(5)
    capacity: int | None = 1
    four: ClassVar[threading.Event]
    taken: ClassVar[threading.Lock]

    def reset(self, *, seed=None, options=None):
        return "Go.", {}

    def step(self, action):
        assert self.taken.acquire(blocking=False), "two play at once"
        assert self.four.wait(60)
        self.taken.release()
        return "Done.", 1.0, True, False, {"success": True}


class FourPlaces(OnePlace):
    """The other one."""

    capacity = None
    together: ClassVar[threading.Barrier]

    def step(self, action):
        self.together.wait(60)
        self.four.set()
        return "Done.", 1.0, True, False, {"success": True}


@pytest.mark.needs("tomllib" if find_spec("tomllib") else "tomli")
def test_who_finds_no_place_in_one_environment_plays_the_next(monkeypatch, eval_file):
    OnePlace.four, OnePlace.taken = threading.Event(), threading.Lock()
    FourPlaces.together = threading.Barrier(4)
    environments = []
    for name, made in {"own/One-v0": OnePlace, "own/Four-v0": FourPlaces}.items():
        monkeypatch.setitem(gymnasium.registry, name, EnvSpec(name, entry_point=made))
        environments.append(f'[[environments]]\nid = "own_agents:{name}"\ntasks = "0:8"')
    runs = eval_file(environments, {"a": partial(ScriptedAgent, "go")}, concurrency=5)
    assert sorted(runs) == ["Four-v0-a", "One-v0-a"]
    assert [record.score for records in runs.values() for record in records] == [1.0] * 16


class Failing:
    """An agent whose model fails, or whose own code does."""

    name = "failing"

    def __init__(self, error):
        self.error = error

    async def reset(self, env, observation, info):
        pass

    async def act(self, observation, info):
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ModelBusy("full"), "ModelBusy"),
        (ZeroDivisionError("oops"), "AgentCrashed"),
        (BadArguments("count: too large"), "AgentCrashed"),
    ],
)
def test_a_fault_of_the_agent_is_not_a_zero(textcraft_url, error, kind):
    records = asyncio.run(
        evaluate_async(
            lambda: AsyncAgentGymEnv("TextCraft", server=textcraft_url), lambda: Failing(error), range(3)
        )
    )
    for record in records:
        assert (record.score, record.success, record.scored, record.fault) == (None, None, False, None)
        assert (record.agent_fault["kind"], record.ending) == (kind, "agent_fault")
        assert record.from_json(record.to_json()) == record


def test_an_agent_that_always_fails_ends_the_run(textcraft_url):
    told = []
    with pytest.raises(AgentFault, match=r"last \d+ .* ModelBusy: full"):
        asyncio.run(
            evaluate_async(
                lambda: AsyncAgentGymEnv("TextCraft", server=textcraft_url),
                lambda: Failing(ModelBusy("full")),
                range(100),
                on_episode=told.append,
            )
        )
    assert 20 <= len(told) < 60


def test_a_mistake_in_the_set_up_ends_all(textcraft_url):
    with pytest.raises(WrongServer):
        asyncio.run(
            evaluate_async(
                lambda: AsyncAgentGymEnv("TextCraft", server=f"{textcraft_url}/elsewhere"),
                RandomAgent,
                range(5),
            )
        )
    for wrong in ({"concurrency": 0}, {"samples": 0}):
        with pytest.raises(BadOption, match="should be 1 or more"):
            asyncio.run(evaluate_async(Slow, RandomAgent, range(5), **wrong))


def test_cancelled_work_closes_its_environments(counted):
    server = counted()
    server.held_up.add("/step")

    async def play():
        work = asyncio.ensure_future(
            evaluate_async(
                lambda: AsyncAgentGymEnv("TextCraft", server=server.url),
                lambda: ScriptedAgent("Action: inventory"),
                range(20),
                concurrency=4,
            )
        )
        while server.asked["/step"] < 4:  # noqa: ASYNC110 - it is counted in another thread
            await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(play())
    assert (server.most, server.open) == (4, set())


def test_an_agent_that_is_awaited_plays_without_an_event_loop_of_the_user_s(env):
    async def now():
        pass

    (record,) = evaluate(env, Waiting(now), [3])
    assert record.replies == ("Action: inventory",)

    async def within():
        return evaluate(env, Waiting(now), [3])

    with pytest.raises(BadOption, match="use evaluate_async"):
        asyncio.run(within())


class Partial:
    """An agent whose plain methods return coroutines, as a function does that wraps another."""

    name = "partial"

    def reset(self, env, observation, info):
        return asyncio.sleep(0)

    def act(self, observation, info):
        async def answer():
            return "Action: inventory"

        return answer()


def test_a_coroutine_that_a_plain_method_returns_is_awaited(textcraft_url):
    make_env = partial(AsyncAgentGymEnv, "TextCraft", server=textcraft_url, max_turns=2)
    records = asyncio.run(evaluate_async(make_env, Partial, range(2), concurrency=2))
    assert [record.replies for record in records] == [("Action: inventory",) * 2] * 2
