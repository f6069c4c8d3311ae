"""Maze: what its server does wrong, its scores and ends, and how its moves are read."""

import contextlib

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.calls import Reply
from agentgym_gym.envs.maze import MAZE, Move
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.wire import Outcome, Score, Start
from any_server import AnyServer


def test_the_oracle_gives_up_without_a_way_or_a_position():
    oracle = load_oracle(MAZE)
    shut = "There are walls to your right, to your left, above you, below you."
    told = f"The goal is at position 3, 3. Your current position is at position 1, 1. {shut}"
    assert oracle.act(told, {}) is None
    assert oracle.act("Success\n", {}) is None
    oracle.reset(None, "", {})
    assert oracle.act(told.replace(shut, "There are no walls near you."), {}) == Move("down")
    assert oracle.act("The goal is at position 1, 1. Your current position is at position 1, 1.", {}) is None


def test_the_bodies_match_the_protocol():
    create, reset, step = (
        next(flow) for flow in (MAZE.wire.create(9), MAZE.wire.reset(0, 9), MAZE.wire.step(0, "move left"))
    )
    assert create.content is None
    assert (reset.path, reset.content) == ("/maze/reset", b'{"id": 0, "game": 9}')
    assert (step.path, step.content) == ("/maze/step", b'{"id": 0, "action": "move left"}')


def test_a_reset_returns_only_the_observation():
    flow = MAZE.wire.reset(0, 0)
    call = next(flow)
    with pytest.raises(StopIteration) as stop:
        flow.send(Reply(call, 200, b'{"observation": "here"}'))
    assert stop.value.value == Start("here")


@pytest.mark.parametrize(
    ("outcome", "score_now"),
    [
        (Outcome("Success\n", 1.0, done=True), (1.0, True, True, 1.0)),
        (Outcome("Failure\n", -1.0, done=True), (-1.0, False, True, -1.0)),
        (Outcome("on", 0.0, done=False), (0.0, False, False, 0.0)),
    ],
)
def test_the_score_is_1_at_the_goal_and_minus_1_where_the_server_gives_up(outcome, score_now):
    assert MAZE.wire.judge(Start(""), 0.0, "move up", outcome) == Score(*score_now)


def test_an_unknown_action_is_forwarded(started):
    server = started(AnyServer(MAZE, pays=0))
    with contextlib.closing(AgentGymEnv("Maze", server=server.url, action_format="bare")) as env:
        env.reset(options={"task_id": 0})
        assert env.step("Action: jump")[4]["action"] == "jump"
    assert server.sent == ["jump"]


@pytest.mark.parametrize(
    "text", ["move up", "MOVE UP", "Move  up.", "go up", "up", "Up", "`move up`", "- move up", "[move up]"]
)
def test_accepted_variants_of_up(text):
    assert FORMATS["bare"].parse(text, MAZE.grammar) == Move("up")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("move north", errors.BadArguments),
        ("move up or left", errors.BadArguments),
        ("move", errors.BadArguments),
        ("up\ndown", errors.ManyActions),
        ("wait", errors.UnknownAction),
    ],
)
def test_marked_text_that_is_not_one_move_is_refused(text, kind):
    with pytest.raises(kind):
        FORMATS["tags"].parse(f"<action>{text}</action>", MAZE.grammar)
