"""BabyAI: what its server does wrong, its scores and ends, and how its actions are read."""

import json

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.calls import Reply
from agentgym_gym.envs.babyai import (
    BABYAI,
    CheckAvailableActions,
    Drop,
    GoThrough,
    GoTo,
    MoveForward,
    Pickup,
    Toggle,
    ToggleAndGoThrough,
    TurnLeft,
    TurnRight,
)
from agentgym_gym.wire import Outcome, Score, Start
from fake_server import FakeServer

GOAL = "Your goal: go to the red ball\nIn front of you"
LISTED = '\nAvailable actions: ["turn left", "pickup red ball 1", "check available actions"]'


def told(reward=0, score=0, *, done=False, observation="You see"):
    return {"observation": observation + LISTED, "reward": reward, "score": score, "done": done}


def play(*steps, replies=("Action: dance",) * 9, task=0):
    """Play until the episode ends or the steps do; returns the turns and the server."""
    answers = {
        "/": "This is environment BabyAI.",
        "/create": {"id": 0},
        "/reset": {**told(observation=GOAL), "deleted": False},
        "/close": True,
    }
    left = list(steps)
    with FakeServer(lambda said: left.pop(0) if said.path == "/step" else answers[said.path]) as server:
        env = AgentGymEnv("BabyAI", server=server.url, action_format="bare")
        server.steps = left
        turns = [env.reset(options={"task_id": task})]
        for _, reply in zip(steps, replies, strict=False):
            turns.append(env.step(reply))
            if turns[-1][2] or turns[-1][3]:
                break
        env.close()
    return turns, server


def test_the_bodies_match_the_protocol():
    _, server = play(told(), replies=["go to red ball 1"], task=41)
    assert [(each.path, each.content) for each in server.requests if each.path != "/"] == [
        ("/create", b""),
        ("/reset", b'{"id": 0, "data_idx": 41}'),
        ("/step", b'{"id": 0, "action": "go to red ball 1"}'),
        ("/close", b'{"id": 0}'),
    ]


def test_the_goal_and_the_available_actions_are_shown():
    (start, (*_, info)), _ = play(told())
    actions = ("turn left", "pickup red ball 1", "check available actions")
    assert start[1]["goal"] == info["goal"] == "go to the red ball"
    assert start[1]["available_actions"] == info["available_actions"] == actions
    assert start[0] == GOAL + LISTED


def test_an_observation_without_them_is_not_a_fault():
    flow = BABYAI.wire.reset(0, 0)
    call = next(flow)
    with pytest.raises(StopIteration) as stop:
        flow.send(Reply(call, 200, b'{"observation": "nothing"}'))
    assert stop.value.value == Start("nothing")


def test_the_score_is_the_reward_and_not_the_servers_sum():
    turns, _ = play(told(), told(0.875, 0.875, done=True))
    *_, terminated, truncated, info = turns[-1]
    assert (terminated, truncated, info["success"]) == (True, False, True)
    assert (info["score"], info["agentgym_score"]) == (0.875, 0.875)


def test_a_late_success_ends_the_episode_though_the_server_takes_the_end_back():
    turns, server = play(told(0.325, 0.325), told(0.325, 0.65))
    _, reward, terminated, truncated, info = turns[-1]
    assert (reward, terminated, truncated) == (0.325, True, False)
    assert (info["success"], info["score"], info["agentgym_score"]) == (True, 0.325, 0.325)
    assert len(server.steps) == 1  # an unknown action would have been paid again


def test_a_success_after_the_games_own_limit_does_not_count():
    turns, _ = play(told(-1.25, -1.25), told(0, -1.25))
    assert [turn[1] for turn in turns[1:]] == [0.0, 0.0]
    info = turns[-1][4]
    assert (info["success"], info["score"], info["agentgym_score"]) == (False, 0.0, -1.25)


@pytest.mark.parametrize(
    ("outcome", "score_now"),
    [
        (Outcome("", 0.9, done=True, details={"score": 1.2}), Score(0.9, True, True, 1.2)),
        (Outcome("", 0.3, done=False, details={"score": 0.3}), Score(0.3, True, True, 0.3)),
        (Outcome("", 0.0, done=True, details={"score": 0.0}), Score(0.0, False, True, 0.0)),
        (Outcome("", -1.25, done=True, details={"score": -1.25}), Score(0.0, False, True, -1.25)),
        (Outcome("", -1.25, done=False, details={"score": -1.25}), Score(0.0, False, False, -1.25)),
        (Outcome("", 0.0, done=False, details={"score": 0.62}), Score(0.0, False, False, 0.62)),
    ],
)
def test_scores_and_ends(outcome, score_now):
    assert BABYAI.wire.judge(Start(""), 0.0, "toggle", outcome) == score_now


def test_closing_an_environment_that_was_never_reset_is_not_a_fault():
    flow = BABYAI.wire.close(1)
    call = next(flow)
    with pytest.raises(StopIteration):
        flow.send(Reply(call, 200, b"false"))


def test_an_unknown_action_is_forwarded():
    turns, server = play(told(), replies=["Action: dance"])
    assert (server.requests[-2].path, server.requests[-2].content) == (
        "/step",
        b'{"id": 0, "action": "dance"}',
    )
    assert turns[-1][4]["action"] == "dance"


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("pickup red ball 1", Pickup("red ball 1")),
        ("pick up red ball 1", Pickup("red ball 1")),
        ("Pick up the Red Ball 1.", Pickup("red ball 1")),
        ("pick_up red_ball_1", Pickup("red ball 1")),
        ("go to gray key 12", GoTo("grey key 12")),
        ("GO TO the blue closed door 1", GoTo("blue closed door 1")),
        ("go_to red box 1", GoTo("red box 1")),
        ("go forward", MoveForward()),
        ("move forward", MoveForward()),
        ("move_forward", MoveForward()),
        ("turn left", TurnLeft()),
        ("Turn right.", TurnRight()),
        ("drop", Drop()),
        ("toggle", Toggle()),
        ("toggle the door", Toggle()),
        ("go through red open door 2", GoThrough("red open door 2")),
        ("toggle and go through red locked door 1", ToggleAndGoThrough("red locked door 1")),
        ("check available actions", CheckAvailableActions()),
    ],
)
def test_accepted_variants(text, action):
    assert FORMATS["bare"].parse(text, BABYAI.grammar) == action


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("go to red ball", errors.BadArguments),  # which of them
        ("go to red ball 0", errors.BadArguments),
        ("go to pink ball 1", errors.BadArguments),
        ("go through red door 1", errors.BadArguments),  # in which state
        ("pickup red open door 1", errors.BadArguments),
        ("go to red ball 1 and pick it up", errors.BadArguments),
        ("toggle red closed door 1", errors.BadArguments),  # perhaps not the one in front
        ("turn left\nturn right", errors.ManyActions),
        ("jump", errors.UnknownAction),
        ("turn around", errors.UnknownAction),
    ],
)
def test_marked_text_that_is_not_one_action_is_refused(text, kind):
    with pytest.raises(errors.ActionError) as raised:
        FORMATS["tags"].parse(f"<action>{text}</action>", BABYAI.grammar)
    assert type(raised.value) is kind


def test_calls():
    grammar = BABYAI.grammar
    assert grammar.from_call("pickup", {"obj": "the red ball 1"}) == Pickup("red ball 1")
    assert grammar.from_call("toggle_and_go_through", {"door": "red_closed_door_1"}) == ToggleAndGoThrough(
        "red closed door 1"
    )
    with pytest.raises(errors.BadArguments):
        Pickup("Red ball 1")


def test_every_action_that_a_recorded_observation_lists_is_read(recordings):
    listed = set()
    for row in recordings("babyai.jsonl"):
        said = row.get("response_json")
        if row["path"] in {"/reset", "/step"} and isinstance(said, dict) and "observation" in said:
            content = json.dumps({"reward": 0, "score": 0, "done": False, **said}).encode()
            flow = BABYAI.wire.step(0, "")
            call = next(flow)
            with pytest.raises(StopIteration) as stop:
                flow.send(Reply(call, 200, content))
            listed.update(stop.value.value.available_actions)
    assert len(listed) > 80
    assert all(str(BABYAI.grammar.parse(action)) == action for action in listed)
