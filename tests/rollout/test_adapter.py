"""Any gymnasium environment as text: what is read, what is not, and that nothing is stepped by mistake."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import warnings
from types import MappingProxyType
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import DelayObservation, FrameStackObservation, RecordEpisodeStatistics, TimeLimit
from hypothesis import example, given
from hypothesis import strategies as st

from agentgym_gym import AgentGymEnv, TextSpace
from agentgym_gym.evaluate import RandomAgent, evaluate, summarise
from agentgym_gym.rollout import TextAdapter

MOVES = {"left": 0, "down": 1, "right": 2, "up": 3}
WAY = ["down", "down", "right", "right", "down", "right"]


def lake(**options):
    return gymnasium.make("FrozenLake-v1", is_slippery=False, **options)


def where(observation):
    return f"You are on tile {observation}."


def first_letter(text):
    if not text:
        raise ValueError("an empty reply has no first letter")
    return "ldru".index(text[0])


class Recorded(gymnasium.Env[Any, Any]):
    """Records the actions; the observation names the last one."""

    def __init__(self, space, observation=0, info=None):
        self.action_space = space
        self.observation_space = TextSpace()
        self.observation = observation
        self.info = info
        self.actions = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation, {} if self.info is None else self.info

    def step(self, action):
        assert action in self.action_space
        self.actions.append(action)
        return self.observation, np.float32(1), np.False_, np.False_, {"steps": len(self.actions)}


def adapted(space, **arguments):
    env = TextAdapter(Recorded(space), **arguments)
    env.reset()
    return env


def played(space, text, **arguments):
    """Return the action that a text plays."""
    env = adapted(space, **arguments)
    observation, *_, info = env.step(text)
    assert "parse_error" not in info, observation
    (action,) = env.unwrapped.actions
    return action


def refused(space, text, **arguments):
    """Return the line with the parse error of a text."""
    env = adapted(space, **arguments)
    observation, reward, terminated, truncated, info = env.step(text)
    assert (reward, terminated, truncated, info["parse_error"]) == (0.0, False, False, "BadAction")
    assert type(reward) is float
    assert type(terminated) is type(truncated) is bool
    assert env.unwrapped.actions == []
    line, _, rest = observation.partition("\n")
    assert rest == "0"
    return line


# What is played


def test_a_lake_is_crossed_in_text():
    env = TextAdapter(lake(), observe=where, act=MOVES)
    assert env.reset(seed=0) == ("You are on tile 0.", {"prob": 1})
    turns = [env.step(move) for move in WAY]
    assert [turn[0] for turn in turns][-2:] == ["You are on tile 14.", "You are on tile 15."]
    assert [turn[1] for turn in turns] == [0.0] * 5 + [1.0]
    assert turns[-1][2:4] == (True, False)
    assert all(type(turn[1]) is float and type(turn[2]) is type(turn[3]) is bool for turn in turns)


def test_names_are_read_in_any_case_with_blanks_around_them():
    env = TextAdapter(lake(), act=MOVES)
    env.reset(seed=0)
    assert env.step("  DOWN\n")[0] == "4"
    assert env.step("Down.")[4]["parse_error"] == "BadAction"


def test_a_parse_error_repeats_the_observation_and_the_info():
    env = TextAdapter(lake(), observe=where, act=MOVES)
    env.reset(seed=0)
    env.step("down")
    for text in ("jump", "left\nright", ""):
        observation, reward, terminated, truncated, info = env.step(text)
        assert observation == (
            f"{text!r} is not an action: expected one of left, down, right, up\nYou are on tile 4."
        )
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert info == {"prob": 1.0, "parse_error": "BadAction"}
    assert env.step("down") == ("You are on tile 8.", 0.0, False, False, {"prob": 1.0})


def test_a_long_reply_is_cut_in_the_message():
    assert len(refused(spaces.Discrete(2), "x" * 10**6)) < 200
    assert len(refused(spaces.Discrete(2), "x" * 10**6, act=int)) < 600


def test_a_reply_of_several_lines_is_one_line_in_the_message():
    assert "\n" not in refused(spaces.Discrete(2), "a\nb\r\nc\u2028d")

    def act(text):
        raise ValueError(f"cannot\nread\r{text}")

    assert refused(spaces.Discrete(2), "x", act=act) == "'x' is not an action: cannot read x"


def test_an_info_is_not_shared_between_turns():
    env = TextAdapter(Recorded(spaces.Discrete(2), info={"mask": np.ones(2), "left": [1]}))
    _, first = env.reset()
    second, third = env.step("?")[4], env.step("?")[4]
    second["mask"][0] = 7
    second["left"].append(2)
    assert first["mask"].tolist() == third["mask"].tolist() == [1, 1]
    assert first["left"] == third["left"] == [1]


def test_an_info_that_cannot_be_copied_is_passed_on():
    env = TextAdapter(Recorded(spaces.Discrete(2), info={"generator": iter([]), "open": (_ for _ in ())}))
    _, info = env.reset()
    assert env.step("?")[4] == {**info, "parse_error": "BadAction"}


def test_changes_of_an_info_do_not_return():
    env = adapted(spaces.Discrete(2))
    env.step("1")[4]["episode"] = {"r": 1.0}
    assert env.step("?")[4] == {"steps": 1, "parse_error": "BadAction"}


# The actions of each space


@pytest.mark.parametrize(
    ("space", "text", "action"),
    [
        (spaces.Discrete(3), " 2\n", 2),
        (spaces.Discrete(3, start=-1), "-1", -1),
        (spaces.Text(5), "hello", "hello"),
        (spaces.Text(5), " hello\n", "hello"),
        (TextSpace(), " as it is ", " as it is "),
        (spaces.MultiDiscrete([2, 3]), "[1, 2]", np.array([1, 2])),
        (spaces.MultiDiscrete([[2, 2], [2, 2]]), "[[1, 0], [0, 1]]", np.array([[1, 0], [0, 1]])),
        (spaces.MultiBinary(3), "[1, 0, 1]", np.array([1, 0, 1], np.int8)),
        (spaces.Box(-1, 1, (2,)), "[0.5, -1]", np.array([0.5, -1], np.float32)),
        (spaces.Box(-1, 1, ()), "0.5", np.array(0.5, np.float32)),
        (spaces.Box(0, 0.1, (1,)), "[0.1]", np.array([0.1], np.float32)),
        (spaces.Box(-np.inf, np.inf, (1,), np.float64), "[1e300]", np.array([1e300])),
        (spaces.Box(0, 255, (1, 2), np.uint8), "[[0, 255]]", np.array([[0, 255]], np.uint8)),
        (spaces.Tuple([spaces.Discrete(2), spaces.Text(3)]), '[1, "abc"]', (1, "abc")),
        (spaces.Sequence(spaces.Discrete(3)), "[2, 1, 0, 2]", (2, 1, 0, 2)),
        (spaces.Sequence(spaces.Discrete(3)), "[]", ()),
    ],
    ids=str,
)
def test_json_that_fits(space, text, action):
    result = played(space, text)
    assert type(result) is type(action)
    if isinstance(action, np.ndarray):
        assert (result.dtype, result.shape) == (action.dtype, action.shape)
        assert np.array_equal(result, action)
    else:
        assert result == action


def test_json_that_fits_a_nested_space():
    space = spaces.Dict(
        move=spaces.Discrete(3),
        force=spaces.Box(-1, 1, (2,)),
        keys=spaces.Tuple([spaces.MultiBinary(2), spaces.Dict(word=spaces.Text(9))]),
    )
    text = '{"keys": [[0, 1], {"word": "go"}], "move": 2, "force": [0, 0.25]}'
    action = played(space, text)
    assert list(action) == list(space.spaces)
    assert action["move"] == 2
    assert action["force"].tolist() == [0, 0.25]
    assert action["keys"][1] == {"word": "go"}


NESTED = spaces.Dict(a=spaces.Discrete(2), b=spaces.Tuple([spaces.Box(0, 1, (1,), np.float64)]))


@pytest.mark.parametrize(
    ("space", "text", "reason"),
    [
        (spaces.Discrete(3), "3", "expected an integer from 0 to 2"),
        (spaces.Discrete(3), "left", "expected an integer from 0 to 2"),
        *(
            (spaces.Discrete(3), text, "expected an integer")
            for text in ("true", "1.0", "[1]", "", "٢", "1 2")
        ),
        (spaces.Discrete(3), "9" * 10**5, "expected an integer"),
        (spaces.Discrete(3), "9" * 30, "expected an integer"),
        (spaces.Text(3), "hello", "is not in the action space"),
        (spaces.MultiDiscrete([2, 3]), "[1]", "expected a list of 2 items, got [1]"),
        (spaces.MultiDiscrete([2, 3]), "[1, 3]", "expected an integer from 0 to 2, got 3"),
        (spaces.MultiDiscrete([2, 3]), "[1, [2]]", "expected an integer from 0 to 2, got [2]"),
        (spaces.MultiBinary(2), "[true, false]", "expected an integer from 0 to 1, got True"),
        (spaces.Box(-1, 1, (1,)), "[1.1]", "expected a number from -1 to 1, got 1.1"),
        (spaces.Box(-1, 1, (1,)), '["1"]', "expected a number from -1 to 1, got '1'"),
        (spaces.Box(-1, 1, (1,)), "0.5", "expected a list of 1 item, got 0.5"),
        (spaces.Box(0, 255, (1,), np.uint8), "[256]", "expected an integer from 0 to 255, got 256"),
        (spaces.Box(0, 255, (1,), np.uint8), "[-1]", "expected an integer from 0 to 255, got -1"),
        *((spaces.Box(-np.inf, np.inf, (1,)), f"[{text}]", "") for text in ("NaN", "Infinity", "-Infinity")),
        *(
            (spaces.Box(-np.inf, np.inf, (1,)), f"[{text}]", "")
            for text in ("1e999", "1e39", "-1" + "0" * 200)
        ),
        (spaces.Box(-np.inf, np.inf, (1,), np.float16), "[65600]", "expected a number, got 65600"),
        (NESTED, '{"a": 1}', "missing key 'b'"),
        (NESTED, '{"a": 1, "b": [[1]], "c": 2}', "unknown key 'c'"),
        (NESTED, '{"a": 1, "a": 1, "b": [[1]]}', "a key occurs twice"),
        (NESTED, '{"a": 2, "b": [[1]]}', "expected an integer from 0 to 1, got 2"),
        (NESTED, '{"a": 1, "b": [1]}', "expected a list of 1 item, got 1"),
        (NESTED, '{"a": 1, "b": {"0": [1]}}', "expected a list of 1 item"),
        (NESTED, "[1, [[1]]]", "expected a JSON object"),
        (NESTED, '{"a": 1, "b": [[1]]', "not JSON"),
        (NESTED, '{"a": 1, "b": [[1]]} and more', "not JSON"),
        (NESTED, "[" * 10**5, "nested too deep"),
        (NESTED, '{"a":' * 10**5, "nested too deep"),
        (NESTED, '{"a": ' + "9" * 10**5 + ', "b": [[1]]}', "more than 300 digits"),
        (spaces.Sequence(spaces.Discrete(3)), "[3]", "expected an integer"),
        (spaces.Sequence(spaces.Discrete(3)), "3", "expected a list"),
        (spaces.Tuple([spaces.Text(3)]), "[1]", "is not in the action space"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_json_that_does_not_fit(space, text, reason):
    assert reason in refused(space, text)


def test_the_form_is_named_after_the_reason():
    line = refused(NESTED, "go")
    assert line == (
        "'go' is not an action: not JSON (Expecting value); expected JSON: "
        '{"a": an integer from 0 to 1, "b": [a list of 1 number from 0 to 1]}'
    )


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        (spaces.Discrete(4), "Reply with an integer from 0 to 3 and nothing else."),
        (spaces.Discrete(3, start=5), "Reply with an integer from 5 to 7 and nothing else."),
        (TextSpace(), "Reply with one action and nothing else."),
        (spaces.MultiDiscrete([3, 3]), "JSON and nothing else: a list of 2 integers from 0 to 2."),
        (spaces.MultiDiscrete([2, 3]), "[an integer from 0 to 1, an integer from 0 to 2]."),
        (spaces.MultiDiscrete(range(1, 20)), ": a list of 19 integers."),
        (spaces.MultiBinary(8), "a list of 8 integers from 0 to 1."),
        (spaces.MultiBinary((2, 3)), "nested lists of the shape 2 x 3 of integers from 0 to 1."),
        (spaces.Box(-2, 2, (1,)), "a list of 1 number from -2 to 2."),
        (spaces.Box(0, np.inf, ()), "a number of at least 0."),
        (spaces.Box(-np.inf, 0.5, (2,)), "a list of 2 numbers of at most 0.5."),
        (spaces.Box(-np.inf, np.inf, (2,)), "a list of 2 numbers."),
        (spaces.Box(0, 1, (0,)), "a list of 0 numbers."),
        (spaces.Sequence(spaces.Text(3)), "a list of any length, each item a string."),
        (NESTED, '{"a": an integer from 0 to 1, "b": [a list of 1 number from 0 to 1]}.'),
    ],
    ids=str,
)
def test_the_system_prompt_describes_the_actions(space, sentence):
    assert TextAdapter(Recorded(space)).system_prompt.endswith(sentence)


EVERY_SPACE = [
    spaces.Discrete(4, start=2),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiBinary((2, 2)),
    spaces.Box(-1, 1, (2, 2)),
    spaces.Box(0, 255, (3,), np.uint8),
    spaces.Box(-np.inf, np.inf, (1,), np.float64),
    spaces.Box(0, 1, ()),
    spaces.Sequence(spaces.Box(0, 1, (2,))),
    NESTED,
    TextSpace(),
    spaces.Text(4),
]


@pytest.mark.parametrize("space", EVERY_SPACE, ids=str)
def test_samples_are_actions(space):
    env = adapted(space)
    env.action_space.seed(3)
    texts = [env.action_space.sample() for _ in range(20)]
    assert all("parse_error" not in env.step(text)[4] for text in texts)
    env.action_space.seed(3)
    assert [env.action_space.sample() for _ in range(20)] == texts


def test_spaces_without_a_json_form_need_a_function():
    graph = spaces.Graph(spaces.Discrete(2), None)
    for space in (graph, spaces.Dict(a=graph), spaces.Sequence(spaces.Discrete(2), stack=True)):
        with pytest.raises(TypeError, match="have no JSON form; pass act="):
            TextAdapter(Recorded(space))
    action = graph.sample()
    assert played(graph, "any", act=lambda _: action) is action


# Functions and mappings


class Left(NamedTuple):
    x: int


@pytest.mark.parametrize(
    ("space", "action", "expected"),
    [
        (spaces.Discrete(3), np.int64(2), 2),
        (spaces.Discrete(3), np.array(2, np.int8), 2),
        (spaces.MultiDiscrete([2, 2]), (1, 0), [1, 0]),
        (spaces.Box(-1, 1, (2,)), [0.5, 1], [0.5, 1]),
        (spaces.Box(-1, 1, (2,)), np.array([0.5, 1], np.float64), [0.5, 1]),
        (spaces.Box(-1, 1, ()), 0.5, 0.5),
    ],
)
def test_actions_of_functions_and_mappings_are_converted(space, action, expected):
    for act in (lambda _: action, {"go": action}, MappingProxyType({"go": action})):
        result = played(space, "go", act=act)
        assert isinstance(result, np.ndarray if space.shape or isinstance(space, spaces.Box) else int)
        assert np.asarray(result).tolist() == expected


def test_an_environment_may_change_an_action_in_place():
    env = adapted(spaces.Box(-1, 1, (1,)), act={"go": [0.5]})
    env.step("go")
    env.unwrapped.actions[0][0] = 0
    env.step("go")
    assert env.unwrapped.actions[1].tolist() == [0.5]


@pytest.mark.parametrize("action", [7, -1, "left", None, 1.5, np.array([1])])
def test_an_action_outside_the_space_is_a_parse_error(action):
    refused(spaces.Discrete(3), "go", act=lambda _: action)
    refused(spaces.Tuple([spaces.Discrete(3)]), "go", act=lambda _: (action,))
    with pytest.raises(ValueError, match="act maps 'go' to"):
        TextAdapter(Recorded(spaces.Discrete(3)), act={"go": action})


def test_a_function_that_fails_is_not_the_models_mistake():
    def act(text):
        return MOVES[text]

    with pytest.raises(KeyError):
        adapted(spaces.Discrete(4), act=act).step("fly")


def test_an_error_of_the_environment_is_not_a_parse_error():
    class Broken(Recorded):
        def step(self, action):
            raise ValueError("broken")

    env = TextAdapter(Broken(spaces.Discrete(2)))
    env.reset()
    with pytest.raises(ValueError, match="broken"):
        env.step("1")


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        ({}, ValueError, "empty"),
        ({"left": 0, " LEFT": 1}, ValueError, "' LEFT' twice"),
        ({" ": 0}, ValueError, "without a letter"),
        ({0: "left"}, TypeError, "0 is not text"),
        (["left", "right"], TypeError, "act should be a function of a text or a mapping"),
    ],
)
def test_a_mapping_is_checked(act, error, message):
    with pytest.raises(error, match=message):
        TextAdapter(lake(), act=act)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observe": 3}, "observe should be a function"),
        ({"system_prompt": 3}, "system_prompt should be text"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(TypeError, match=message):
        TextAdapter(lake(), **arguments)


def test_objects_that_are_not_environments_are_refused():
    envs = gymnasium.make_vec("FrozenLake-v1", num_envs=2)
    with pytest.raises(TypeError, match="not the vector environment"):
        TextAdapter(envs)
    envs.close()
    for env, name in (
        (FrozenLakeEnv, "the class FrozenLakeEnv"),
        (None, "NoneType"),
        ("FrozenLake-v1", "str"),
    ):
        with pytest.raises(TypeError, match=f"takes an instance of gymnasium.Env, not {name}"):
            TextAdapter(env)


def test_the_advice_for_vector_environments_works():
    envs = gymnasium.make_vec(
        "FrozenLake-v1", num_envs=2, vectorization_mode="sync", wrappers=[TextAdapter], is_slippery=False
    )
    assert envs.reset(seed=0)[0] == ("0", "0")
    observations, *_, infos = envs.step(("1", "fly"))
    assert observations == ("4", "'fly' is not an action: expected an integer from 0 to 3\n0")
    assert list(infos["_parse_error"]) == [False, True]
    envs.close()


def test_an_action_that_is_not_text_is_a_mistake_of_the_program():
    env = adapted(spaces.Discrete(2))
    for action in (1, None, b"1", ["1"]):
        with pytest.raises(TypeError, match="step takes the text of an action"):
            env.step(action)
    assert env.unwrapped.actions == []


# Turns


def test_parse_errors_are_turns():
    env = TextAdapter(lake(max_episode_steps=4), act=MOVES)
    env.reset(seed=0)
    assert [env.step(text)[3] for text in ("?", "down", "?", "up")] == [False, False, False, True]
    with pytest.raises(ResetNeeded):
        env.step("down")
    env.reset()
    assert [env.step("?")[3] for _ in range(4)] == [False, False, False, True]


def test_the_limit_of_any_wrapper_within_is_kept():
    env = TextAdapter(RecordEpisodeStatistics(TimeLimit(FrozenLakeEnv(), 2)))
    env.reset(seed=0)
    assert [env.step("?")[3] for _ in range(2)] == [False, False]  # without a specification none is known
    made = TextAdapter(RecordEpisodeStatistics(TimeLimit(lake(), 2)))
    made.reset(seed=0)
    assert [made.step("?")[3] for _ in range(2)] == [False, True]


def test_an_environment_without_a_limit_has_none():
    env = adapted(spaces.Discrete(2))
    assert not any(env.step("?")[3] for _ in range(1000))


def test_there_is_no_step_outside_of_an_episode():
    env = TextAdapter(lake(), act=MOVES)
    with pytest.raises(ResetNeeded):
        env.step("down")
    env.reset(seed=0)
    for move in WAY:
        env.step(move)
    for text in ("down", "?"):
        with pytest.raises(ResetNeeded, match="call reset"):
            env.step(text)


# Within gymnasium


def test_spaces_are_of_text():
    for act in (None, MOVES, first_letter):
        env = TextAdapter(lake(), act=act)
        assert isinstance(env.observation_space, TextSpace)
        assert isinstance(env.action_space, TextSpace)
        for space in (env.observation_space, env.action_space):
            assert pickle.loads(pickle.dumps(space)) == space == copy.deepcopy(space)  # noqa: S301 - our own
            assert "any text" in space
            assert repr(space)
            assert hash(space) == hash(copy.copy(space))
            with pytest.raises(ValueError, match="mask"):
                space.sample(mask=np.ones(4))
    assert TextAdapter(lake(), act=MOVES).action_space != TextAdapter(lake()).action_space


@pytest.mark.parametrize("act", [None, MOVES, first_letter])
@pytest.mark.parametrize("name", ["FrozenLake-v1", "Blackjack-v1"])
def test_gymnasiums_checker_is_content(name, act):
    if act is not None and name != "FrozenLake-v1":
        act = {"stick": 0, "hit": 1}
    env = TextAdapter(gymnasium.make(name), act=act)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env, skip_render_check=True)
    # As of every wrapper.
    assert [warning for warning in caught if "different from the unwrapped version" not in str(warning)] == []


def test_a_prompt_of_the_users_own_is_kept():
    env = TextAdapter(lake(), act=MOVES, system_prompt="Cross the lake.")
    assert env.system_prompt == "Cross the lake."
    assert TextAdapter(lake(), system_prompt="").system_prompt == ""


def test_wrappers_around_it_find_the_prompt():
    env = RecordEpisodeStatistics(TimeLimit(TextAdapter(lake(), act=MOVES), 5))
    sentence = "Reply with one of these actions and nothing else: left, down, right, up."
    assert env.get_wrapper_attr("system_prompt") == sentence
    assert TextAdapter(env).system_prompt == sentence
    assert TextAdapter(env, act=str.lower).system_prompt == (
        f"{sentence}\n\nReply with one action and nothing else."
    )


def test_an_adapter_in_an_adapter_is_text_in_text():
    env = TextAdapter(
        RecordEpisodeStatistics(TextAdapter(lake(), act=MOVES)), observe=lambda text: f"<{text}>"
    )
    env.reset(seed=0)
    assert env.step(" DOWN")[0] == "<4>"
    assert env.step("?")[0] == "<'?' is not an action: expected one of left, down, right, up\n4>"


def test_a_specification_makes_it_again():
    env = TextAdapter(lake(max_episode_steps=3), observe=where, act=MOVES, system_prompt="Cross.")
    again = gymnasium.make(pickle.loads(pickle.dumps(env.spec)))  # noqa: S301 - our own
    assert isinstance(again, TextAdapter)
    assert again.system_prompt == "Cross."
    again.reset(seed=0)
    assert again.step("down")[0] == "You are on tile 4."
    assert again.spec == env.spec
    names_only = TextAdapter(lake(), act=MOVES)
    assert gymnasium.envs.registration.EnvSpec.from_json(names_only.spec.to_json()).additional_wrappers


def test_it_can_be_registered_as_an_additional_wrapper():
    gymnasium.register(
        "adapted/Lake-v0",
        entry_point=FrozenLakeEnv,
        max_episode_steps=7,
        additional_wrappers=(TextAdapter.wrapper_spec(observe=where, act=MOVES),),
    )
    try:
        env = gymnasium.make("adapted/Lake-v0", is_slippery=False)
        env.reset(seed=0)
        assert env.step("down")[0] == "You are on tile 4."
        assert [env.step("?")[3] for _ in range(6)] == [*[False] * 5, True]
        assert env.spec.id == "adapted/Lake-v0"
    finally:
        del gymnasium.registry["adapted/Lake-v0"]


def make_lake(**options):
    return TextAdapter(lake(**options), observe=where, act=MOVES)


def test_it_can_be_registered_by_a_function_and_evaluated():
    gymnasium.register("adapted/Made-v0", entry_point=make_lake, max_episode_steps=30)
    try:
        env = gymnasium.make("adapted/Made-v0", map_name="4x4")
        assert env.spec.id == "adapted/Made-v0"
        summary = summarise(evaluate(env, RandomAgent(), range(5)))
        assert (summary.faults, summary.parse_errors) == ({}, {})
        assert env.spec.id == "adapted/Made-v0"
        assert env.spec.max_episode_steps == 30
    finally:
        del gymnasium.registry["adapted/Made-v0"]


def test_it_can_be_pickled_within_an_episode():
    env = TextAdapter(lake(), observe=where, act=first_letter)
    env.reset(seed=0)
    env.step("down")
    again = pickle.loads(pickle.dumps(env))  # noqa: S301 - our own
    assert again.step("x")[0] == "'x' is not an action: substring not found\nYou are on tile 4."
    assert again.step("d")[0] == "You are on tile 8."
    assert env.step("d")[0] == "You are on tile 8."


def test_a_method_of_the_environment_can_read():
    base = lake().unwrapped
    base.lock = (_ for _ in ())  # which cannot be copied
    base.tile_of = lambda observation: f"tile {observation}"

    class Bound:
        def __init__(self, env):
            self.env = env

        def observe(self, observation):
            return self.env.tile_of(observation)

    assert TextAdapter(base, observe=Bound(base).observe).reset(seed=0)[0] == "tile 0"


@pytest.mark.parametrize("padding", ["zero", "reset", "nothing yet"])
def test_observations_are_stacked(padding):
    env = FrameStackObservation(TextAdapter(lake(), act=MOVES), 3, padding_type=padding)
    first = {"zero": "", "reset": "0"}.get(padding, padding)
    assert env.reset(seed=0)[0] == (first, first, "0")
    stacked = env.step("down")[0]
    assert stacked == (first, "0", "4")
    assert stacked in env.observation_space


@pytest.mark.parametrize("padding", ["zero", "reset"])
def test_observations_of_agentgyms_are_stacked(textcraft_url, padding):
    with AgentGymEnv("TextCraft", server=textcraft_url) as base:
        env = FrameStackObservation(base, 4, padding_type=padding)
        stacked, _ = env.reset(options={"task_id": 3})
        assert stacked[:3] == ("" if padding == "zero" else stacked[3],) * 3
        assert "Goal: craft" in stacked[3]
        assert env.step("Action: inventory")[0][2:] == (
            stacked[3],
            "Inventory: You are not carrying anything.",
        )
        assert stacked in env.observation_space


def test_stacked_observations_can_be_batched():
    envs = gymnasium.vector.SyncVectorEnv(
        [lambda: FrameStackObservation(TextAdapter(lake(), act=MOVES), 2) for _ in range(3)]
    )
    observations, _ = envs.reset(seed=0)
    assert observations == (("0", "0", "0"), ("0", "0", "0"))
    assert observations in envs.observation_space
    envs.close()


def test_observations_are_delayed():
    env = DelayObservation(TextAdapter(lake(), act=MOVES), 1)
    assert env.reset(seed=0)[0] == ""
    assert env.step("down")[0] == "0"


# The default text of observations


@pytest.mark.parametrize(
    ("observation", "text"),
    [
        ("as it is\n", "as it is\n"),
        (3, "3"),
        (np.int64(-3), "-3"),
        (True, "true"),
        (np.False_, "false"),
        (None, "none"),
        (0.1 + 0.2, "0.3"),
        (np.float32(1 / 3), "0.333333"),
        (-0.0, "0"),
        (float("nan"), "nan"),
        (np.array(2), "2"),
        (np.array([]), "[]"),
        (np.array([1.5, -0.0]), "[1.5, 0]"),
        (np.array([True, False]), "[true, false]"),
        (np.arange(4).reshape(2, 2), "[[0, 1],\n [2, 3]]"),
        (np.arange(8).reshape(2, 2, 2), "[[[0, 1], [2, 3]],\n [[4, 5], [6, 7]]]"),
        (np.array(["a", "b"]), "[a, b]"),
        ((11, 10, 0), "(11, 10, 0)"),
        ([1, "b"], "(1, b)"),
        ({"a": 1, "b": "two"}, "a: 1\nb: two"),
        ({"a": {"b": 1, "c": 2}, "d": {"e": 3}}, "a:\n  b: 1\n  c: 2\nd: e: 3"),
        ({"grid": np.eye(2), "x": 1}, "grid:\n  [[1, 0],\n   [0, 1]]\nx: 1"),
        ({"a": "two\nlines"}, "a:\n  two\n  lines"),
        ((1, {"a": 1, "b": 2}), "0: 1\n1:\n  a: 1\n  b: 2"),
        (Left(3), "x: 3"),
        ({}, ""),
        ((), "()"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_the_default_text(observation, text):
    env = TextAdapter(Recorded(spaces.Discrete(2), observation))
    assert env.reset()[0] == text
    assert env.step("?")[0].partition("\n")[2] == text


def test_a_graph_has_a_text():
    space = spaces.Graph(spaces.Discrete(3), spaces.Box(0, 1, (1,)), seed=0)
    text = TextAdapter(Recorded(spaces.Discrete(2), space.sample(num_nodes=2, num_edges=1))).reset()[0]
    assert [line.partition(":")[0] for line in text.splitlines()] == ["nodes", "edges", "edge_links"]


def test_other_types_need_a_function():
    for observation in (object(), {"a": {1, 2}}, b"bytes", 1j):
        with pytest.raises(TypeError, match="has no default text; pass observe="):
            TextAdapter(Recorded(spaces.Discrete(2), observation)).reset()
    assert TextAdapter(Recorded(spaces.Discrete(2), {1}), observe=str).reset()[0] == "{1}"
    with pytest.raises(TypeError, match="observe returned int"):
        TextAdapter(Recorded(spaces.Discrete(2)), observe=lambda _: 3).reset()


# Any text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab") | st.text(), inner),
    max_leaves=8,
).map(json.dumps)
TEXTS = st.text(st.characters()) | JSON | st.sampled_from([*MOVES, "0", "[1, 2]"])


@given(st.lists(TEXTS, max_size=6), st.sampled_from([*EVERY_SPACE, None]))
@example(["[" * 10**5, "9" * 5000, "\ud800", "\x00", "1e999"], NESTED)
def test_no_text_raises_and_no_parse_error_steps(texts, space):
    env = (
        TextAdapter(Recorded(space))
        if space is not None
        else TextAdapter(Recorded(spaces.Discrete(4)), act=MOVES)
    )
    env.reset()
    for text in texts:
        before = len(env.unwrapped.actions)
        observation, reward, terminated, truncated, info = env.step(text)
        stepped = len(env.unwrapped.actions) - before
        assert stepped == ("parse_error" not in info)
        assert (reward, terminated, truncated) == (float(stepped), False, False)
        assert observation in env.observation_space
        assert len(observation.splitlines()) == 2 - stepped
        assert observation.endswith("0")


@given(st.lists(TEXTS, min_size=1, max_size=12))
def test_a_lake_with_any_replies(texts):
    env, plain = TextAdapter(lake(max_episode_steps=8), act=MOVES), lake()
    env.reset(seed=0)
    tile, _ = plain.reset(seed=0)
    over = False
    for turn, text in enumerate(itertools.islice(texts, 8), start=1):
        if over:
            with pytest.raises(ResetNeeded):
                env.step(text)
            continue
        observation, reward, terminated, truncated, info = env.step(text)
        ended, gained = False, 0
        if "parse_error" not in info:
            tile, gained, ended, *_ = plain.step(MOVES[text.strip().casefold()])
        assert (observation.rpartition("\n")[2], reward, terminated) == (str(tile), gained, ended)
        assert truncated == (turn == 8)
        over = terminated or truncated
