"""The contract of every env, on a real server."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import threading

import gymnasium
import httpx
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import agentgym_gym
from agentgym_gym import AgentGymEnv, errors
from agentgym_gym.actions import Action, Verbatim
from agentgym_gym.envs.textcraft import Craft, Get, Ingredient, Inventory

FIXED_KEYS = {"task_id", "turn", "score", "agentgym_score", "raw_reward", "success", "action"}


@pytest.fixture
def env(textcraft_url):
    made = AgentGymEnv("TextCraft", server=textcraft_url, render_mode="ansi")
    yield made
    made.close()


def task_of(env: AgentGymEnv, goal: str) -> int:
    """Find the task of a goal by looking."""
    for task in env.tasks:
        _, info = env.reset(options={"task_id": task})
        if info["goal"] == goal:
            return task
    raise AssertionError(goal)


@pytest.fixture
def emerald(env):
    """A task solved by two actions."""
    return task_of(env, "emerald block")


@pytest.mark.parametrize("render_mode", [None, "ansi"])
def test_gymnasium_finds_nothing_to_complain_of(textcraft_url, render_mode):
    env = gymnasium.make("agentgym/TextCraft-v0", server=textcraft_url, render_mode=render_mode)
    check_env(env.unwrapped)  # any warning is an error here
    env.close()


def test_ids_are_registered_by_import_or_by_prefix(textcraft_url):
    assert "agentgym/TextCraft-v0" in gymnasium.registry
    env = gymnasium.make("agentgym_gym:agentgym/TextCraft-v0", server=textcraft_url)
    assert isinstance(env.unwrapped, AgentGymEnv)


def test_reset_returns_the_task(env):
    observation, info = env.reset(options={"task_id": 0})
    assert set(info) == FIXED_KEYS | {"goal", "served_by"}
    assert info["task_id"] == 0
    assert observation.endswith(f"Goal: craft {info['goal']}.")
    assert (info["turn"], info["score"], info["success"]) == (0, 0.0, False)


def test_a_seed_draws_the_same_tasks(env):
    def draw(seed):
        return [env.reset(seed=seed)[1]["task_id"]] + [env.reset()[1]["task_id"] for _ in range(5)]

    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def test_task_id_may_be_a_numpy_integer(env):
    assert env.reset(options={"task_id": np.int64(3)})[1]["task_id"] == 3


@pytest.mark.parametrize("options", [{"task_id": -1}, {"task_id": 544}, {"task_id": "3"}, {"task_id": True}])
def test_a_task_that_does_not_exist_is_refused(env, options):
    with pytest.raises(errors.BadOption, match="task"):
        env.reset(options=options)


def test_unknown_reset_options_are_refused(env):
    with pytest.raises(errors.BadOption, match="taskid"):
        env.reset(options={"taskid": 3})


def test_a_solved_task(env, emerald):
    env.reset(options={"task_id": emerald})
    turn = env.step("Thought:\nI need nine.\n\nAction:\nget 9 emerald")
    assert turn[0] == "Got 9 emerald"
    assert turn[1:4] == (0.0, False, False)
    observation, reward, terminated, truncated, info = env.step(
        "Thought:\nNow craft.\n\nAction:\ncraft 1 emerald block using 9 emerald"
    )
    assert observation == "Crafted 1 minecraft:emerald_block"
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert type(reward) is float
    assert info["action"] == "craft 1 emerald block using 9 emerald"
    assert (info["score"], info["success"], info["raw_reward"], info["agentgym_score"]) == (
        1.0,
        True,
        1.0,
        1.0,
    )


def test_typed_actions_are_played(env, emerald):
    env.reset(options={"task_id": emerald})
    env.step(Get(9, "emerald"))
    assert env.step(Inventory())[0] == "Inventory: [emerald] (9) "
    assert env.step(Craft(1, "emerald block", (Ingredient(9, "emerald"),)))[2] is True


def test_there_is_nothing_to_step_before_the_first_reset(textcraft_url):
    with pytest.raises(ResetNeeded):
        AgentGymEnv("TextCraft", server=textcraft_url).step("Action: inventory")


def test_the_server_gets_no_request_after_the_end(env, emerald):
    env.reset(options={"task_id": emerald})
    env.step(Get(9, "emerald"))
    env.step(Craft(1, "emerald block", (Ingredient(9, "emerald"),)))
    with pytest.raises(ResetNeeded):
        env.step("Action: inventory")
    assert env.render().count("[agent]") == 2


def test_turn_limit(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, max_turns=2)
    env.reset(seed=1)
    assert env.step("Action: inventory")[2:4] == (False, False)
    assert env.step("no action, which costs a turn too")[2:4] == (False, True)
    with pytest.raises(ResetNeeded):
        env.step("Action: inventory")


def test_winning_on_the_last_turn_is_not_a_truncation(textcraft_url, env, emerald):
    last = AgentGymEnv("TextCraft", server=textcraft_url, max_turns=2)
    last.reset(options={"task_id": emerald})
    last.step(Get(9, "emerald"))
    assert last.step(Craft(1, "emerald block", (Ingredient(9, "emerald"),)))[1:4] == (1.0, True, False)


def test_no_turn_limit(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, max_turns=None)
    env.reset(seed=1)
    assert not any(env.step("Action: inventory")[3] for _ in range(60))


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("I do not know.", "NoAction"),
        ("Action: get 1 stick\nAction: get 2 stick", "ManyActions"),
        ("Action: get some sticks", "BadArguments"),
        ("Action: get 99999999999999999999 stick", "BadArguments"),
        ("Action: get 0 stick", "BadArguments"),
        ("Action: " + "x" * 20_000, "BadArguments"),
    ],
)
def test_a_reply_that_cannot_be_read_costs_a_turn_and_stays_here(env, reply, kind):
    env.reset(options={"task_id": 0})
    observation, reward, terminated, truncated, info = env.step(reply)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info["parse_error"] == kind
    assert info["action"] is None
    assert info["turn"] == 1
    assert env.action_space.action_format.example(env.environment.grammar) in observation


def test_an_unknown_action_is_forwarded_or_refused(textcraft_url):
    forward = AgentGymEnv("TextCraft", server=textcraft_url, on_unknown="forward")
    forward.reset(seed=0)
    observation, *_, info = forward.step("Action: fly away")
    assert observation == "Could not execute fly away"
    assert info["action"] == "fly away"
    refuse = AgentGymEnv("TextCraft", server=textcraft_url, on_unknown="refuse")
    refuse.reset(seed=0)
    assert refuse.step("Action: fly away")[4]["parse_error"] == "UnknownAction"
    assert refuse.step(Verbatim("fly away"))[4]["parse_error"] == "UnknownAction"
    assert refuse.step(Verbatim("inventory"))[4]["action"] == "inventory"


def test_an_unknown_function_has_no_words_to_forward(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, action_format="function_calling")
    env.reset(seed=0)
    assert env.step('{"function_name": "fly", "arguments": {}}')[4]["parse_error"] == "UnknownAction"


@pytest.mark.parametrize("action", [3, None, b"inventory", ["inventory"], object()])
def test_step_takes_text_or_actions_of_the_environment(env, action):
    env.reset(options={"task_id": 0})
    with pytest.raises(errors.BadOption, match="step takes text"):
        env.step(action)


def test_an_action_of_another_environment_is_refused(env):
    class Other(Action):
        template = "other"

    env.reset(options={"task_id": 0})
    with pytest.raises(errors.BadOption):
        env.step(Other())


def test_a_thought_is_a_move_in_adapt(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, action_format="adapt")
    env.reset(seed=0)
    observation, *_, info = env.step("> think: let me see")
    assert observation == "OK."
    assert info["turn"] == 1
    assert info["action"] is None
    assert "parse_error" not in info


def test_agentgyms_own_reading(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, parser="agentgym")
    env.reset(seed=0)
    assert env.step("I do not know.")[4]["action"] == ""
    assert env.step("Action: get 1 minecraft:stick")[4]["action"] == "get 1 minecraftstick"
    assert "Action:" in env.system_prompt


def test_a_number_the_server_would_fail_on_is_refused(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, parser="agentgym")
    env.reset(seed=0)
    *_, info = env.step(f"Action: get {'9' * 5000} bamboo")
    assert info["parse_error"] == "BadArguments"
    assert "fault" not in info


def test_render_is_the_transcript(env, emerald):
    observation, _ = env.reset(options={"task_id": emerald})
    env.step("Action: inventory")
    assert env.render() == (
        f"[environment]\n{observation}\n\n[agent]\nAction: inventory\n\n"
        "[environment]\nInventory: You are not carrying anything."
    )


def test_no_render_mode_renders_nothing(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url)
    env.reset(seed=0)
    assert env.render() is None


def test_with_closes_it(textcraft_url):
    with AgentGymEnv("TextCraft", server=textcraft_url) as env:
        env.reset(seed=0)
        assert env.playing
    assert env._episode.lease is None


def test_close_may_be_called_again_and_gives_the_environment_back(env, textcraft_url):
    env.reset(seed=0)
    env_id = env._episode.lease.env_id
    assert "error" not in httpx.get(f"{textcraft_url}/observation", params={"id": env_id}).text
    env.close()
    env.close()
    assert "error" in httpx.get(f"{textcraft_url}/observation", params={"id": env_id}).json()
    with pytest.raises(ResetNeeded):
        env.step("Action: inventory")


def test_reset_after_close_starts_again(env):
    env.reset(seed=0)
    env.close()
    assert env.reset(seed=0)[0]


def test_a_dropped_environment_releases_its_lease(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url)
    env.reset(seed=0)
    env_id = env._episode.lease.env_id
    del env
    gc.collect()
    assert "error" in httpx.get(f"{textcraft_url}/observation", params={"id": env_id}).json()


def test_the_counters(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url)
    env.reset(seed=0)
    env.step("Action: inventory")
    env.step("nothing that is sent")
    counted = env.stats.as_dict()
    assert 0 < counted.pop("seconds") < 30
    requests = counted.pop("requests")
    assert counted == {
        "retries": 0,
        "connections": 1,
        "reconnects": 0,
        "looks": 0,
        "faults": {},
        "server_tasks": {textcraft_url.removeprefix("http://"): 1},
        "server_faults": {},
        "queued": 0.0,
    }
    env.step("Action: inventory")
    assert env.stats.requests == requests + 1
    env.close()


def test_two_envs_do_not_share_a_remote_environment(textcraft_url):
    one, two = (AgentGymEnv("TextCraft", server=textcraft_url) for _ in range(2))
    one.reset(options={"task_id": 0})
    two.reset(options={"task_id": 0})
    assert one._episode.lease.env_id != two._episode.lease.env_id
    one.close()
    assert "fault" not in two.step("Action: inventory")[4]
    two.close()


def test_one_thread_at_a_time(env):
    env.reset(seed=0)
    env._busy.acquire()
    raised = []

    def step():
        try:
            env.step("Action: inventory")
        except errors.AgentGymError as error:
            raised.append(str(error))

    thread = threading.Thread(target=step)
    thread.start()
    thread.join()
    env._busy.release()
    assert "another thread" in raised[0]


def test_an_interrupted_thread_can_still_close(env):
    """Ctrl-C may come when a step has just started, before anything could be undone."""
    env.reset(seed=0)
    env._busy.acquire()
    env.close()
    assert env._episode.lease is None


@pytest.mark.parametrize("parser", ["default", "agentgym"])
def test_words_that_fail_on_agentgyms_server_are_not_sent(textcraft_url, parser):
    env = AgentGymEnv("TextCraft", server=textcraft_url, parser=parser)
    env.reset(seed=0)
    for reply in (Verbatim("get " + "9" * 601 + " stick"), "Action: got " + "9" * 601 + " stick"):
        info = env.step(reply)[-1]
        assert info["parse_error"] == "BadArguments"
        assert info["action"] is None
    env.close()


def test_spec_round_trips(textcraft_url):
    env = gymnasium.make("agentgym/TextCraft-v0", server=textcraft_url, action_format="tags", max_turns=None)
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert repr(again.unwrapped.__class__.__name__) == repr(env.unwrapped.__class__.__name__)
    assert again.spec == env.spec
    assert again.unwrapped.action_space == env.unwrapped.action_space


def test_repr_round_trips(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, action_format="tags", max_turns=None)
    assert repr(eval(repr(env))) == repr(env)  # noqa: S307 - our own text
    assert repr(AgentGymEnv("textcraft")) == "AgentGymEnv('TextCraft')"


def test_repr_keeps_passwords_to_itself():
    for server in (
        ["http://a.test", "http://me:secret@b.test"],
        "http://a.test,http://me:secret@b.test",
    ):
        assert "secret" not in repr(AgentGymEnv("TextCraft", server=server))


@pytest.mark.parametrize(
    "option",
    [
        {"action_format": "yaml"},
        {"split": "dev"},
        {"parser": "mine"},
        {"parser": "agentgym", "action_format": "tags"},
        {"on_unknown": "guess"},
        {"on_fault": "ignore"},
        {"max_turns": 0},
        {"max_turns": 2.5},
        {"max_turns": True},
        {"max_envs_per_server": 0},
        {"max_envs_per_server": "2"},
        {"timeout": 0},
        {"timeout": float("inf")},
        {"timeout": "10"},
        {"render_mode": "human"},
        {"server": "localhost:8000"},
        {"server": []},
        {"server": ["http://a.test", "ftp://b.test"]},
        {"server": 8000},
    ],
)
def test_a_bad_option_is_named(option):
    name = next(iter(option))
    with pytest.raises(errors.BadOption, match=name):
        AgentGymEnv("TextCraft", **option)


def test_numbers_of_numpy_are_numbers():
    AgentGymEnv("TextCraft", max_turns=np.int64(3), timeout=np.float32(2))


def test_a_copy_is_created_again_without_a_lease(env):
    env.reset(seed=0)
    for again in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):  # noqa: S301 - our own
        assert repr(again) == repr(env)
        assert again._episode.lease is None


def test_an_unknown_environment_is_named():
    with pytest.raises(errors.UnknownEnvironment, match="TextCraft"):
        AgentGymEnv("Textcraftt")


def test_the_prompt_contains_rules_actions_and_format(env):
    prompt = env.system_prompt
    assert env.environment.rules in prompt
    for example in env.environment.grammar.examples:
        assert str(example) in prompt
    assert env.action_space.action_format.example(env.environment.grammar) in prompt


def test_tools_are_function_tools(env):
    names = [tool["function"]["name"] for tool in env.tools]
    assert names == ["get", "craft", "inventory"]
    json.dumps(env.tools)


def test_works_in_gymnasiums_vector_envs(textcraft_url):
    vector = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make("agentgym/TextCraft-v0", server=textcraft_url)] * 2
    )
    observations, _ = vector.reset(seed=[1, 2])
    assert len(observations) == 2
    assert (
        vector.step(("Action: inventory", "Action: inventory"))[0]
        == ("Inventory: You are not carrying anything.",) * 2
    )
    vector.close()


def test_everything_public_is_reachable_from_the_top():
    assert agentgym_gym.find("agentgym/TextCraft-v0").name == "TextCraft"
    assert [e.id for e in agentgym_gym.environments()][:1] == ["agentgym/TextCraft-v0"]
