"""ALFWorld: what its server does that ours must be ready for, and how its actions are read."""

from __future__ import annotations

import json

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.envs.alfworld import (
    ALFWORLD,
    Clean,
    Cool,
    Examine,
    GoTo,
    Heat,
    Inventory,
    Look,
    Move,
    Put,
    Take,
    Use,
)
from by_hand import exchange
from fake_server import FakeServer

ROOM = "You are in the middle of a room. Looking quickly around you, you see a countertop 1, and a desk 1."
TASK = "put a mug in desk"
MUG_TO_DESK = ["go to countertop 1", "take mug 1 from countertop 1", "go to desk 1", "put mug 1 in/on desk 1"]


class House(FakeServer):
    """AgentGym's server, with only a mug, a countertop and a desk; ``bodies`` keeps what it was sent."""

    def __init__(self):
        self.bodies = []
        self.taken = 0  # actions since the reset
        self.progress = 0  # how many of MUG_TO_DESK were done
        self.done = False
        self.made = 0
        super().__init__(self._answer)

    def _answer(self, request):
        if request.path == "/detail":
            return {"game": 0, **self.shown}
        if request.method == "GET":
            return "This is environment AlfWorld."
        self.bodies.append((request.path, request.content))
        if request.path == "/create":
            self.made += 1
            return {"id": self.made - 1}
        if request.path == "/close":
            return 404, {"detail": "Not Found"}
        return getattr(self, request.path[1:])(request.json)

    def reset(self, body):
        if body["game"] == 1:
            return {"error": "Unable to find game 'game.tw-pddl'."}
        self.taken, self.progress, self.done = 0, 0, False
        observation = f"{ROOM}\nYour task is to: {TASK}."
        self.shown = {"observation": observation, "available_actions": self.actions()}
        return {
            "id": body["id"],
            "observation": observation,
            "available_actions": self.actions(),
            "task_type": "a/b",
        }

    def step(self, body):
        if self.done:
            return {"error": f"The task with environment {body['id']} has finished."}
        self.taken += 1
        observation = "Nothing happens."
        if body["action"] == MUG_TO_DESK[self.progress]:
            self.progress += 1
            observation = "You did it."
        won = self.progress == len(MUG_TO_DESK)
        self.done = won or self.taken == 50
        return {
            "observation": observation,
            "reward": float(won),
            "available_actions": self.actions(),
            "done": self.done,
        }

    def actions(self):
        return ["go to countertop 1", "go to desk 1", "help", "inventory", "look"]


@pytest.fixture
def house(started):
    return started(House())


def made(house, **options):
    return AgentGymEnv("ALFWorld", server=house.url, **options)


@pytest.fixture
def env(house):
    env = made(house, action_format="bare")
    yield env
    env.close()


# ------------------------------------------------------------------------------------------------- the wire


def test_a_win(env):
    observation, info = env.reset(options={"task_id": 0})
    assert observation.startswith(ROOM)
    assert info["goal"] == TASK
    for action in MUG_TO_DESK:
        observation, reward, terminated, truncated, info = env.step(action)
        assert info["action"] == action
        assert "AVAILABLE ACTIONS" not in observation
        assert "look" in info["available_actions"]
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert info["score"] == info["agentgym_score"] == info["raw_reward"] == 1.0


def test_the_first_observation_lists_the_actions_as_agentgyms_client_does(env, house):
    observation, info = env.reset(options={"task_id": 0})
    assert observation == (
        f"{ROOM}\nYour task is to: {TASK}.\n"
        "AVAILABLE ACTIONS: go to countertop 1,go to desk 1,help,inventory,look"
    )
    assert info["available_actions"] == tuple(house.actions())


def test_available_actions_are_listed_also_after_a_reply_that_cannot_be_read(env):
    _, info = env.reset(options={"task_id": 0})
    _, _, _, _, unread = env.step("")
    assert unread["parse_error"]
    assert unread["available_actions"] == info["available_actions"]


def test_the_bodies_match_the_protocol(env, house):
    env.reset(options={"task_id": 2619})
    env.step("look")
    assert house.bodies == [
        ("/create", b""),
        ("/reset", b'{"id": 0, "game": 2619, "world_type": "Text"}'),
        ("/step", b'{"id": 0, "action": "look"}'),
    ]


def test_the_servers_own_limit_ends_an_episode_without_success(house):
    env = made(house, action_format="bare", max_turns=None)
    env.reset(options={"task_id": 0})
    ends = [env.step("look")[2] for _ in range(50)]
    assert ends == [False] * 49 + [True]
    env.reset(options={"task_id": 0})
    for _ in range(50):
        _, _, terminated, truncated, info = env.step("look")
    assert (terminated, truncated, info["success"], info["score"]) == (True, False, False, 0.0)
    env.close()


def test_the_turn_limit_is_agentgyms(env):
    env.reset(options={"task_id": 0})
    ends = [env.step("look")[2:4] for _ in range(30)]
    assert ends == [(False, False)] * 29 + [(False, True)]


def test_an_environment_is_used_again_because_it_cannot_be_freed(house):
    for _ in range(3):
        env = made(house, action_format="bare")
        env.reset(options={"task_id": 0})
        env.close()
    assert house.made == 1
    assert "/close" not in dict(house.bodies)


def test_a_finished_episode_does_not_spoil_the_next(env, house):
    for _ in range(2):
        env.reset(options={"task_id": 0})
        for action in MUG_TO_DESK:
            info = env.step(action)[4]
        assert info["success"]
    assert house.made == 1


def test_a_missing_game_is_the_environments_failure(env):
    with pytest.raises(errors.EnvironmentFailed, match="Unable to find game"):
        env.reset(options={"task_id": 1})


@pytest.mark.parametrize("task_id", [-1, 2620])
def test_task_ids_that_the_server_would_wrap_or_not_find_are_refused(env, house, task_id):
    with pytest.raises(errors.BadOption):
        env.reset(options={"task_id": task_id})
    assert house.bodies == []


def test_a_busy_server_is_waited_for(house):
    """While it resets a game it answers no request, not even for its name: 10.8 seconds were measured."""
    env = made(house)
    env.reset(options={"task_id": 0})
    env.close()
    stages = {"/": "identify", "/create": "create", "/reset": "reset"}
    assert [request.path for request in house.requests] == list(stages)
    assert min(map(env._limits.seconds, stages.values())) > 60


GOOD_RESET = {"id": 0, "observation": "Hm.", "available_actions": ["look"], "task_type": "a/b"}


def test_without_a_task_there_is_no_goal():
    start, _ = exchange(ALFWORLD.wire.reset(0, 0), GOOD_RESET)
    assert (start.goal, start.observation) == (None, "Hm.\nAVAILABLE ACTIONS: look")


def test_the_listed_actions_of_the_game_equal_ours(recordings):
    """But for ``help``, which is of no use to an agent that has a prompt."""
    listed = {
        action
        for row in recordings("alfworld.jsonl")
        if isinstance(row["response_json"], dict)
        for action in row["response_json"].get("available_actions", ())
    }
    listed.discard("help")
    assert len(listed) > 30
    assert [each for each in listed if str(ALFWORLD.grammar.parse(each)) != each] == []


# ---------------------------------------------------------------------------------------------- the actions


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("go to desk 1", GoTo("desk 1")),
        ("GO TO DESK 1.", GoTo("desk 1")),
        ("goto desk 1", GoTo("desk 1")),
        ("go to the desk 1", GoTo("desk 1")),
        ("take a mug 1 from The desk 1", Take("mug 1", "desk 1")),
        ("go to coffee_machine 1", GoTo("coffee machine 1")),
        ("pick up mug 1 from desk 1", Take("mug 1", "desk 1")),
        ("put mug 1 in/on desk 1", Put("mug 1", "desk 1")),
        ("put mug 1 in desk 1", Put("mug 1", "desk 1")),
        ("Put mug 1 on desk 1", Put("mug 1", "desk 1")),
        ("put mug 1 into drawer 11", Put("mug 1", "drawer 11")),
        ("put mug 1 onto desk 1", Put("mug 1", "desk 1")),
        ("move mug 1 to desk 1", Move("mug 1", "desk 1")),
        ("toggle desklamp 1", Use("desklamp 1")),
        ("examine mug 1", Examine("mug 1")),
        ("look", Look()),
        ("look around", Look()),
        ("Inventory.", Inventory()),
    ],
)
def test_the_ways_of_writing_an_action(text, action):
    assert FORMATS["bare"].parse(text, ALFWORLD.grammar) == action


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("go to desk 1\nopen it", errors.ManyActions),
        ("use of the lamp is next", errors.BadArguments),
        ("go to the the desk 1", errors.BadArguments),
        ("go to the", errors.BadArguments),
        ("go to desk 1 take mug 1", errors.BadArguments),
        ("take mug 1", errors.BadArguments),
        ("take mug 1 from desk 1 with hand 1", errors.BadArguments),
        ("put mug 1 in box 1 on desk 1", errors.BadArguments),
        ("put mug 1", errors.BadArguments),
        ("examine book 1 with desklamp 1", errors.BadArguments),
        ("go to", errors.BadArguments),
        ("look at mug 1", errors.BadArguments),
        ("inventory now", errors.BadArguments),
        ("opendrawer 1", errors.UnknownAction),
        ("lookup mug 1", errors.UnknownAction),
        ("help", errors.UnknownAction),
    ],
)
def test_marked_text_that_is_not_one_action_is_refused(text, kind):
    with pytest.raises(kind) as raised:
        FORMATS["tags"].parse(f"<action>{text}</action>", ALFWORLD.grammar)
    assert type(raised.value) is kind


def test_an_aside_is_not_an_action():
    reply = "Action:\ngo to desk 1\n\nUse of the lamp is next."
    assert FORMATS["react"].parse(reply, ALFWORLD.grammar) == GoTo("desk 1")


def test_capitals_are_sent_in_lower_case(env, house):
    env.reset(options={"task_id": 0})
    info = env.step("GO TO COUNTERTOP 1")[4]
    assert info["action"] == "go to countertop 1"
    assert house.progress == 1


def test_a_command_only_of_the_game_is_forwarded_after_a_mark(env):
    env.reset(options={"task_id": 0})
    assert env.step("Action: help")[4]["action"] == "help"
    assert env.step("help")[4]["parse_error"] == "NoAction"  # nothing shows that it is an action


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("goto", {"recep": "desk 1"}),
        ("take", {"obj": "mug 1", "recep": "desk 1"}),
        ("put", {"obj": "mug 1", "recep": "desk 1"}),
        ("open", {"recep": "drawer 1"}),
        ("close", {"recep": "drawer 1"}),
        ("heat", {"obj": "mug 1", "recep": "microwave 1"}),
        ("cool", {"obj": "mug 1", "recep": "fridge 1"}),
        ("clean", {"obj": "mug 1", "recep": "sinkbasin 1"}),
        ("use", {"obj": "desklamp 1"}),
        ("examine", {"recep": "mug 1"}),
        ("look", {}),
        ("inventory", {}),
    ],
)
def test_the_functions_are_agentgyms(name, arguments):
    action = ALFWORLD.grammar.from_call(name, arguments)
    reply = json.dumps({"thought": "t", "function_name": name, "arguments": arguments})
    assert ALFWORLD.agentgym_readers["function_calling"](reply) == str(action)
    call = f"{name}({', '.join(map(repr, arguments.values()))})"
    assert ALFWORLD.agentgym_readers["code_as_action"](call) == str(action)


def test_an_appliance_need_not_be_the_usual_one():
    """The game decides what heats and cools."""
    for kind in (Heat, Cool, Clean):
        assert kind("mug 1", "stoveburner 2") == ALFWORLD.grammar.parse(str(kind("mug 1", "stoveburner 2")))


def test_an_unknown_split_is_refused_with_the_names():
    with pytest.raises(errors.BadOption, match="'test_seen', 'test_unseen'"):
        ALFWORLD.split("dev")
