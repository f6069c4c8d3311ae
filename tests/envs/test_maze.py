"""Maze: what its server does wrong, its scores and ends, and how its moves are read."""

import json
import re

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.calls import Reply
from agentgym_gym.envs.maze import MAZE, Move
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.wire import Outcome, Score, Start
from fake_server import FakeServer

# The maze of the game, so small that it is copied from what the walls in the observations say.
PLAN = [
    "#############",
    "#.....#.....#",
    "###.#####.###",
    "###.#####.###",
    "###.#####.###",
    "###.......###",
    "######.######",
    "######.######",
    "######.######",
    "#############",
]
GOAL = (8, 6)
STARTS = [
    *((1, column) for column in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11)),
    *((row, 3) for row in (2, 3, 4, 5)),
    *((5, 4), (5, 5), (5, 6), (6, 6), (7, 6), (5, 7), (5, 8), (5, 9)),
    *((row, 9) for row in (4, 3, 2)),
]
STEPS = {"move up": (-1, 0), "move down": (1, 0), "move left": (0, -1), "move right": (0, 1)}
SIDES = {"to your right": (0, 1), "to your left": (0, -1), "above you": (-1, 0), "below you": (1, 0)}


class Game(FakeServer):
    """A small replica of the server, with one environment, whose steps it counts."""

    def __init__(self):
        self.place, self.steps, self.done, self.asked = (1, 1), 0, True, []
        super().__init__(self._answer)

    def _answer(self, request):
        if request.path == "/openapi.json":
            return 404, None
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.path, body))
        return self.said(request.path, body)

    def said(self, path, body):
        if path == "/":
            return "This is environment LMRL-Gym."
        if path == "/maze/create":
            return {"id": 0}
        if path == "/maze/reset":
            if body["game"] == len(STARTS):
                return {"error": ""}
            self.place, self.steps, self.done = STARTS[body["game"]], 0, False
            return {"observation": self.seen()}
        if self.done:
            return {"error": "The task with environment 0 has finished."}
        return self.step(body["action"])

    def step(self, action):
        self.steps += 1
        row, column = STEPS.get(action, (0, 0))
        following = (self.place[0] + row, self.place[1] + column)
        if self.is_open(following):
            self.place = following
        if self.steps > 50:
            self.done = True
            return {"observation": "Failure\n", "reward": -1.0, "done": True}
        if self.place == GOAL:
            self.done = True
            return {"observation": "Success\n", "reward": 1.0, "done": True}
        return {"observation": self.seen(), "reward": 0, "done": False}

    def is_open(self, place):
        return PLAN[place[0]][place[1]] == "."

    def seen(self):
        row, column = self.place
        walls = [side for side, (r, c) in SIDES.items() if not self.is_open((row + r, column + c))]
        near = f"There is a wall {walls[0]}." if len(walls) == 1 else f"There are walls {', '.join(walls)}."
        return f"The goal is at position 8, 6. Your current position is at position {row}, {column}. {near}"


@pytest.fixture
def game(started):
    return started(Game())


@pytest.fixture
def make(game):
    made = []

    def make(**options):
        made.append(AgentGymEnv("Maze", server=game.url, **options))
        return made[-1]

    yield make
    for env in made:
        env.close()


def test_every_task_is_solved_by_the_oracle_from_what_it_sees(make):
    env, oracle, turns = make(), load_oracle(MAZE), []
    for task in env.tasks:
        observation, info = env.reset(options={"task_id": task})
        oracle.reset(env, observation, info)
        over = False
        while not over:
            action = oracle.act(observation, info)
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        assert (terminated, info["success"], info["score"]) == (True, True, 1.0)
        turns.append(info["turn"])
    assert max(turns) == 13  # the turn limit is 15


def test_the_replica_is_the_maze_that_was_recorded(recordings, game):
    for row in recordings("maze.jsonl"):
        said = row.get("response_json")
        observation = said.get("observation", "") if isinstance(said, dict) else ""
        if observation.startswith("The goal"):
            game.place = tuple(map(int, re.findall(r"\d+", observation)[2:]))
            assert game.seen() == observation


def test_the_oracle_gives_up_where_there_is_no_way_or_no_place():
    oracle = load_oracle(MAZE)
    shut = "There are walls to your right, to your left, above you, below you."
    told = f"The goal is at position 3, 3. Your current position is at position 1, 1. {shut}"
    assert oracle.act(told, {}) is None
    assert oracle.act("Success\n", {}) is None
    oracle.reset(None, "", {})
    assert oracle.act(told.replace(shut, "There are no walls near you."), {}) == Move("down")
    assert oracle.act("The goal is at position 1, 1. Your current position is at position 1, 1.", {}) is None


def test_the_bodies_are_those_of_the_protocol(make, game):
    env = make()
    env.reset(options={"task_id": 9})
    env.step(Move("left"))
    assert next(MAZE.wire.create(9)).content is None
    assert [(path, list(body.items())) for path, body in game.asked if body] == [
        ("/maze/reset", [("id", 0), ("game", 9)]),
        ("/maze/step", [("id", 0), ("action", "move left")]),
    ]


def test_an_empty_error_is_an_error(make):
    wire = MAZE.wire
    flow = wire.reset(0, 25)
    call = next(flow)
    with pytest.raises(errors.EnvironmentFailed):
        flow.send(Reply(call, 200, b'{"error": ""}'))
    assert 25 not in MAZE.splits["all"]
    with pytest.raises(errors.BadOption):
        make().reset(options={"task_id": 25})


def test_a_reset_is_answered_by_the_observation_alone():
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


def test_the_server_gives_up_at_the_51st_step(make):
    env = make(max_turns=None, action_format="bare")
    env.reset(options={"task_id": 0})
    for _ in range(50):
        _, reward, terminated, truncated, info = env.step("up")
        assert (reward, terminated, truncated, info["score"]) == (0.0, False, False, 0.0)
    observation, reward, terminated, truncated, info = env.step("up")
    assert (observation, reward, terminated, truncated) == ("Failure\n", -1.0, True, False)
    assert (info["score"], info["success"], info["agentgym_score"]) == (-1.0, False, -1.0)


def test_an_unknown_action_is_forwarded_and_costs_a_step(make, game):
    env = make(action_format="bare")
    observation, _ = env.reset(options={"task_id": 0})
    again, reward, *_, info = env.step("Action: jump")
    assert (again, reward, info["action"], game.steps) == (observation, 0.0, "jump", 1)


def test_a_step_after_the_end_is_a_fault_and_no_score():
    flow = MAZE.wire.step(0, "move up")
    call = next(flow)
    with pytest.raises(errors.EnvironmentFailed, match="has finished"):
        flow.send(Reply(call, 200, b'{"error": "The task with environment 0 has finished."}'))


@pytest.mark.parametrize(
    "text", ["move up", "MOVE UP", "Move  up.", "go up", "up", "Up", "`move up`", "- move up", "[move up]"]
)
def test_ways_to_say_up(text):
    assert FORMATS["bare"].parse(text, MAZE.grammar) == Move("up")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("move north", errors.BadArguments),
        ("move up and left", errors.BadArguments),
        ("move", errors.BadArguments),
        ("up\ndown", errors.ManyActions),
        ("wait", errors.UnknownAction),
    ],
)
def test_marked_text_that_is_not_one_move_is_refused(text, kind):
    with pytest.raises(kind):
        FORMATS["tags"].parse(f"<action>{text}</action>", MAZE.grammar)


@pytest.mark.parametrize(
    ("reply", "sent"),
    [
        ("move up</s>", "move u"),
        ("Thought:\nx\n\nAction:\nmove up</s>", "move u"),
        ("Action: a\nAction: b Action: c", "a"),
        ("no label", "no label"),
        ("Action:", ""),
        ("", ""),
        ("</s>", ""),
    ],
)
def test_the_reader_like_agentgyms(reply, sent):
    assert MAZE.agentgym_readers["react"](reply) == sent
