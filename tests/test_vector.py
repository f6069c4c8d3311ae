"""Many environments side by side: gymnasium's vector contract, and nobody waits for the dead."""

from __future__ import annotations

import asyncio
import gc
import sys
import textwrap
import threading
import time
from pathlib import Path

import gymnasium
import httpx
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv

import inside
import programs
from agentgym_gym import AgentGymEnv, errors, find
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.vector import AgentGymVectorEnv

LOOK = "Action: inventory"


@pytest.fixture
def make(textcraft_url):
    made = []

    def start(num_envs=3, **options):
        options = {"server": textcraft_url, **options}
        made.append(gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=num_envs, **options))
        return made[-1]

    yield start
    for envs in made:
        envs.close()


def test_gymnasium_makes_it(make):
    envs = make(4)
    assert [thread.name for thread in threading.enumerate()].count("agentgym-vector") == 1
    assert isinstance(envs, VectorEnv)
    assert isinstance(envs.unwrapped, AgentGymVectorEnv)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    observations, infos = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert infos["task_id"].dtype == np.int64
    assert infos["_task_id"].all()
    assert envs.action_space.sample() in envs.action_space


def test_gymnasiums_own_processes_need_no_shared_memory_and_the_error_names_it(make):
    with pytest.raises(
        errors.BadOption, match=r"vectorization_mode.*vector_kwargs=\{'shared_memory': False\}"
    ):
        make(2, vectorization_mode="async")
    envs = make(2, vectorization_mode="async", vector_kwargs={"shared_memory": False})
    envs.reset(seed=0)
    observations, *_, infos = envs.step([LOOK, {"name": "inventory", "arguments": "{}"}])
    assert observations == ("Inventory: You are not carrying anything.",) * 2
    assert list(infos["action"]) == ["inventory"] * 2


def in_capitals(env):
    return gymnasium.wrappers.TransformObservation(env, str.upper, env.observation_space)


@pytest.mark.parametrize(
    "mode",
    [
        {"vectorization_mode": "sync"},
        {"vectorization_mode": "async", "vector_kwargs": {"shared_memory": False}},
    ],
    ids=lambda mode: mode["vectorization_mode"],
)
def test_wrappers_of_each_environment_need_a_mode_of_gymnasiums(make, mode):
    with pytest.raises(gymnasium.error.Error, match="Cannot use `vector_entry_point`"):
        make(2, wrappers=[in_capitals])
    envs = make(2, wrappers=[in_capitals], **mode)
    assert "GOAL: CRAFT" in envs.reset(seed=0)[0][1]
    assert envs.step([LOOK, LOOK])[0] == ("INVENTORY: YOU ARE NOT CARRYING ANYTHING.",) * 2


def test_wrappers_of_a_vector_keep_the_event_loop(make):
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(make(2, max_turns=2))
    for _ in range(2):
        envs.reset(seed=0)
        assert "episode" not in envs.step([LOOK, LOOK])[4]
        assert list(envs.step([LOOK, LOOK])[4]["episode"]["l"]) == [2, 2]
    capitals = gymnasium.wrappers.vector.TransformObservation(
        make(2), lambda texts: tuple(map(str.upper, texts))
    )
    assert "GOAL: CRAFT" in capitals.reset(seed=0)[0][1]


def test_the_class_names_both_ways_to_wrap(textcraft_url):
    with pytest.raises(errors.BadOption, match=r"wrappers\.vector.*mode='sync'"):
        AgentGymVectorEnv(2, "TextCraft", server=textcraft_url, wrappers=[in_capitals])


def test_each_plays_as_a_single_environment_would(make, textcraft_url):
    tasks = [3, 14, 15, 92]
    envs = make(4)
    observations, _ = envs.reset(options={"task_id": tasks})
    replies = ["Action: get 1 oak logs", "nothing", LOOK, "Action: get 2 iron ingot"]
    stepped = envs.step(replies)
    for number, (task, reply) in enumerate(zip(tasks, replies, strict=True)):
        env = AgentGymEnv("TextCraft", server=textcraft_url)
        assert env.reset(options={"task_id": task})[0] == observations[number]
        said, reward, terminated, truncated, info = env.step(reply)
        assert (said, reward, terminated, truncated) == tuple(column[number] for column in stepped[:4])
        for key, value in info.items():
            assert stepped[4][key][number] == value
            assert stepped[4][f"_{key}"][number]
        env.close()
    assert stepped[1].dtype == np.float64
    assert stepped[2].dtype == stepped[3].dtype == np.bool_
    assert list(stepped[4]["_parse_error"]) == [False, True, False, False]


def test_a_seed_gives_each_its_own_tasks_and_the_same_again(make):
    envs = make(5)
    first = envs.reset(seed=7)[1]["task_id"]
    assert list(envs.reset(seed=7)[1]["task_id"]) == list(first)
    assert list(envs.reset(seed=[7, 8, 9, 10, 11])[1]["task_id"]) == list(first)
    assert len(set(first)) > 1


def test_turns_truncate_and_a_mask_resets(make):
    envs = make(2, max_turns=2)
    envs.reset(seed=0)
    envs.step([LOOK, LOOK])
    envs.reset(options={"reset_mask": np.array([True, False]), "task_id": 5})
    said, _, _, truncated, infos = envs.step([LOOK, LOOK])
    assert list(truncated) == [False, True]
    assert list(infos["turn"]) == [1, 2]
    with pytest.raises(ResetNeeded, match=r"\[1\]"):
        envs.step([LOOK, LOOK])
    kept, rewards, _, truncated, infos = envs.step([LOOK, None])
    assert kept[1] == said[1]
    assert (rewards[1], truncated[1], infos["_turn"][1]) == (0, False, False)
    observations, infos = envs.reset(options={"reset_mask": np.array([False, True]), "task_id": 9})
    assert observations[0] == kept[0]
    assert list(infos["_task_id"]) == [False, True]
    assert infos["task_id"][1] == 9


def test_next_step(make):
    envs = make(2, max_turns=2, autoreset_mode=AutoresetMode.NEXT_STEP)
    envs.reset(seed=0)
    envs.step([LOOK, LOOK])
    assert list(envs.step([LOOK, LOOK])[3]) == [True, True]
    said, rewards, terminated, truncated, infos = envs.step([LOOK, LOOK])
    assert all("Goal: craft" in each for each in said)
    assert not np.concatenate([rewards, terminated, truncated]).any()
    assert list(infos["turn"]) == [0, 0]
    assert list(envs.step([LOOK, LOOK])[4]["turn"]) == [1, 1]


def test_same_step(make):
    envs = make(2, max_turns=2, autoreset_mode="SameStep")
    envs.reset(options={"task_id": [1, 2]})
    _, _, _, _, infos = envs.step([LOOK, LOOK])
    assert "final_obs" not in infos
    said, _, _, truncated, infos = envs.step([LOOK, LOOK])
    assert truncated.all()
    assert all("Goal: craft" in each for each in said)
    assert list(infos["turn"]) == [0, 0]
    assert list(infos["final_info"]["turn"]) == [2, 2]
    assert list(infos["final_info"]["task_id"]) == [1, 2]
    assert infos["final_info"]["_turn"].all()
    assert infos["_final_obs"].all()
    assert list(infos["final_obs"]) == ["Inventory: You are not carrying anything."] * 2
    assert list(envs.step([LOOK, LOOK])[4]["turn"]) == [1, 1]
    assert envs.step([LOOK, LOOK])[3].all()


def test_an_episode_is_won_in_a_vector(make, textcraft_url):
    envs = make(3)
    observations, infos = envs.reset(options={"task_id": [0, 1, 2]})
    oracles = [load_oracle(find("TextCraft")) for _ in range(3)]
    for number, oracle in enumerate(oracles):
        oracle.reset(envs.unwrapped.envs[number], observations[number], {"goal": infos["goal"][number]})
    score, over = np.zeros(3), np.zeros(3, dtype=bool)
    while not over.all():
        actions = [
            None if over[n] else oracle.act(observations[n], {"goal": infos["goal"][n]})
            for n, oracle in enumerate(oracles)
        ]
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        score += rewards
        over |= terminated | truncated
    assert list(score) == [1, 1, 1]


def test_a_dead_server_ends_one_episode_and_the_others_go_on(textcraft_url, silent_url):
    envs = AgentGymVectorEnv(3, "TextCraft", server=textcraft_url)
    # The second environment is sent to where nobody answers.
    envs.envs[1]._server = silent_url
    inside.limit_times(envs.envs[1], create=0.3)
    began = time.monotonic()
    observations, infos = envs.reset(options={"task_id": 4})
    assert time.monotonic() - began < 10
    assert list(infos["_fault"]) == [False, True, False]
    assert infos["fault"]["kind"][1] == "ServerTimeout"
    assert "could not be reset" in observations[1]
    said, rewards, _, truncated, infos = envs.step([LOOK, LOOK, LOOK])
    assert list(truncated) == [False, True, False]
    assert infos["fault"]["kind"][1] == "ServerTimeout"
    assert said[0] == said[2] == "Inventory: You are not carrying anything."
    assert not rewards.any()
    with pytest.raises(ResetNeeded):
        envs.step([LOOK, LOOK, LOOK])
    envs.envs[1]._server = textcraft_url
    inside.limit_times(envs.envs[1], create=60)
    _, infos = envs.reset(options={"reset_mask": np.array([False, True, False]), "task_id": 6})
    assert "fault" not in infos
    assert "fault" not in envs.step([LOOK, LOOK, LOOK])[4]
    assert envs.stats.faults == {"ServerTimeout": 1}
    envs.close()


def test_it_is_an_error_if_every_reset_fails(silent_url):
    envs = AgentGymVectorEnv(2, "TextCraft", server=silent_url, timeout=0.3)
    with pytest.raises(errors.ServerTimeout):
        envs.reset(seed=0)
    envs.close()


def test_a_fault_is_raised_where_it_is_wanted(textcraft_url, silent_url):
    envs = AgentGymVectorEnv(2, "TextCraft", server=textcraft_url, timeout=0.3, on_fault="raise")
    envs.envs[1]._server = silent_url
    with pytest.raises(errors.ServerTimeout):
        envs.reset(seed=0)
    envs.close()


def test_a_fault_that_is_raised_ends_one_episode_and_no_other(make):
    envs = make(2, max_turns=2, on_fault="raise", autoreset_mode="NextStep")
    envs.reset(seed=0)
    envs.unwrapped.envs[1]._episode.lease.revoke("was restarted")
    with pytest.raises(errors.LeaseLost):
        envs.step([LOOK, LOOK])
    _, _, _, truncated, infos = envs.step([LOOK, LOOK])
    assert list(truncated) == [True, False]
    assert list(infos["turn"]) == [2, 0]  # the one goes on, the other was reset


def test_close_gives_everything_back_and_may_come_again(make, textcraft_url):
    envs = make(3)
    envs.reset(seed=0)
    held = [env._episode.lease.env_id for env in envs.unwrapped.envs]
    threads = threading.active_count()
    envs.close()
    envs.close()
    assert threading.active_count() < threads
    for env_id in held:
        assert "error" in httpx.get(f"{textcraft_url}/observation", params={"id": env_id}).json()
    with pytest.raises(RuntimeError, match="closed"):
        envs.unwrapped.reset()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda envs: envs.reset(options={"task_id": [1]}), "task_id should be one number, or 2"),
        (lambda envs: envs.reset(options={"task": 1}), "'task'"),
        (lambda envs: envs.reset(options={"reset_mask": [1, 0]}), "truth values"),
        (lambda envs: envs.reset(seed=[1, 2, 3]), "seed should be"),
        (lambda envs: envs.step([LOOK]), "2 actions"),
        (lambda envs: envs.step("ab"), "2 actions"),
        (lambda envs: AgentGymVectorEnv(0, "TextCraft"), "num_envs=0"),
        (lambda envs: AgentGymVectorEnv(1, "TextCraft", autoreset_mode="Never"), "'Never'"),
    ],
)
def test_bad_arguments_are_named(make, call, said):
    envs = make(2).unwrapped
    with pytest.raises(errors.BadOption, match=said):
        call(envs)


def test_rendering(make):
    envs = make(2, render_mode="ansi")
    envs.reset(options={"task_id": 3})
    envs.step([LOOK, LOOK])
    assert all("[agent]\nAction: inventory" in each for each in envs.render())
    assert make(2).unwrapped.render() is None


@pytest.mark.parametrize("late", [False, True])
def test_an_interrupted_step_ends_the_episodes_that_took_part(make, late):
    """As Ctrl-C does it, before a reply is there and when all of them just are."""
    envs = make(3)
    envs.reset(options={"task_id": 0})

    async def interrupt():
        step = asyncio.ensure_future(envs._step_all([LOOK, None, LOOK]))
        await asyncio.sleep(0)
        played = [envs.envs[number]._driver._future for number in (0, 2)]
        while late and not all(future.done() for future in played):  # noqa: ASYNC110 - in that very moment
            await asyncio.sleep(0)
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step

    envs._loop.run(interrupt())
    assert [env.playing for env in envs.envs] == [False, True, False]
    with pytest.raises(ResetNeeded):
        envs.step([LOOK] * 3)
    envs.reset(options={"reset_mask": np.array([True, False, True])})
    *_, infos = envs.step([LOOK] * 3)
    assert infos["turn"].tolist() == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("played", [False, True])
def test_a_dropped_vector_leaves_no_thread_and_no_descriptor(counted, played):
    def descriptors():
        folder = Path("/proc/self/fd")
        return len(list(folder.iterdir())) if folder.is_dir() else 0

    server = counted()
    first = gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=1, server=server.url)
    first.reset(seed=0)
    first.close()  # what is imported and kept for good
    gc.collect()
    before = descriptors(), {each for each in threading.enumerate() if each.name == "agentgym-vector"}
    for _ in range(3):
        envs = gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=4, server=server.url)
        if played:
            envs.reset(seed=0)
            envs.step(["Action: inventory"] * 4)
        del envs
        gc.collect()
    deadline = time.monotonic() + 10
    after = None
    while after != before or server.open:
        assert time.monotonic() < deadline, (before, after, server.open)
        time.sleep(0.02)
        after = (
            descriptors() - len(server._open),
            {each for each in threading.enumerate() if each.name == "agentgym-vector"},
        )


@pytest.mark.slow  # a separate program
@pytest.mark.parametrize(("number", "made"), [(1_000, False), (100, True)])
def test_a_vector_beyond_the_limit_of_descriptors_is_named(counted, number, made):
    server = counted()
    code = f"""
        import resource, sys
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        import gymnasium, agentgym_gym
        try:
            envs = gymnasium.make_vec("agentgym/TextCraft-v0", num_envs={number}, server=sys.argv[1])
        except agentgym_gym.errors.SetupError as error:
            print(error)
        else:
            envs.reset(seed=0)
            envs.close()
            print("plays")
    """
    ended = programs.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), server.url],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stderr == ""
    if made:
        assert ended.stdout == "plays\n"
    else:
        assert "num_envs=1000 needs about 10" in ended.stdout
        assert "may open 256" in ended.stdout
        assert "ulimit -n" in ended.stdout
    assert (server.most, server.open) == (number if made else 0, set())
