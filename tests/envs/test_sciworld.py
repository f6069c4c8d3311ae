"""What is special about SciWorld: scores, ends, menus, names, and AgentGym's three readers."""

from __future__ import annotations

import json

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.calls import Call
from agentgym_gym.envs import sciworld_actions as sw
from agentgym_gym.envs.sciworld import SCIWORLD
from agentgym_gym.wire import Outcome, Start
from by_hand import exchange
from fake_server import FakeServer, http

WIRE, GRAMMAR = SCIWORLD.wire, SCIWORLD.grammar


def beginning(score=0, **changes):
    return {
        "task_name": "boil",
        "var_num": 3,
        "task_description": "Your task is to boil water.",
        "observation": "This room is called the hallway.",
        "reward": score,
        "score": score,
        "deleted": False,
        "done": False,
        **changes,
    }


def answer(score, reward=0, *, done=False, observation="Done."):
    return {"observation": observation, "reward": reward, "score": score, "done": done}


class Server(FakeServer):
    """Plays a script, for one environment, and fails at a second close."""

    def __init__(self, begin, *answers):
        self.begin, self.answers = begin, list(answers)
        self.sent, self.closed = [], 0
        super().__init__(self._answer)

    def _answer(self, request):
        if request.path == "/close":
            self.closed += 1
            return http(b"Internal Server Error", "500 Internal Server Error")
        if request.path == "/step":
            self.sent.append(request.json["action"])
            return self.answers.pop(0)
        answers = {"/": WIRE.greeting, "/create": {"id": 0}, "/reset": self.begin, "/detail": self.begin}
        return answers[request.path]

    def env(self, **options):
        return AgentGymEnv("SciWorld", server=self.url, **options)


def test_the_first_observation_matches_agentgyms_client():
    start, call = exchange(WIRE.reset(4, 7), beginning(8))
    assert call == Call("reset", "POST", "/reset", {"id": 4, "data_idx": 7})
    assert start.observation == "Your task is to boil water.\nThis room is called the hallway."
    assert start.goal == "Your task is to boil water."


def test_create_has_no_body():
    env_id, call = exchange(WIRE.create(7), {"id": 0})
    assert (call.path, call.content, env_id) == ("/create", None, 0)


@pytest.mark.parametrize("score", [101, -101])
def test_a_score_out_of_range_is_a_fault(score):
    with pytest.raises(errors.BadReply):
        exchange(WIRE.reset(1, 0), beginning(score))
    with pytest.raises(errors.BadReply):
        exchange(WIRE.step(1, "wait"), answer(score))


def test_a_task_that_is_over_before_it_began_is_a_fault():
    with pytest.raises(errors.EnvironmentFailed, match="over already"):
        exchange(WIRE.reset(1, 0), beginning(done=True))


def test_a_double_close_is_only_a_fault_of_the_close(started):
    with pytest.raises(errors.ServerError):
        exchange(WIRE.close(1), None, 500)
    server = started(Server(beginning()))
    env = server.env()
    env.reset(options={"task_id": 0})
    env.close()
    env.close()
    assert server.closed == 3  # by the first, which is tried three times


@pytest.mark.parametrize(
    ("began", "now", "done", "score", "success"),
    [
        (0, 0, False, 0.0, False),
        (0, 25, False, 0.25, False),
        (0, 100, True, 1.0, True),
        (13, 13, False, 0.0, False),
        (13, 100, True, 0.87, True),
        (13, 8, False, -0.05, False),
        (0, -100, True, -1.0, False),
        (13, -100, True, -1.0, False),
        (50, 75, True, 0.25, False),  # out of moves
    ],
)
def test_the_score_of_an_outcome(began, now, done, score, success):
    score_now = WIRE.judge(
        Start("", details={"score": began}), 0.0, "wait", Outcome("", 0.0, done, details={"score": now})
    )
    assert score_now.score == pytest.approx(score)
    assert (score_now.success, score_now.done, score_now.agentgym_score) == (success, done, now)


def test_an_episode_that_began_with_points(started):
    server = started(Server(beginning(5), answer(25, 20), answer(100, 75, done=True)))
    env = server.env(action_format="bare")
    env.reset(options={"task_id": 4_638})
    _, first, terminated, _, info = env.step("go to kitchen")
    assert (first, terminated, info["raw_reward"]) == (pytest.approx(0.2), False, 20)
    _, second, terminated, _, info = env.step("focus on water")
    assert (first + second, terminated, info["success"]) == (pytest.approx(0.95), True, True)
    assert info["agentgym_score"] == 100
    env.close()


def test_a_wrong_focus_is_the_end(started):
    server = started(Server(beginning(5), answer(25, 20), answer(-100, -125, done=True)))
    env = server.env(action_format="bare")
    env.reset(options={"task_id": 0})
    env.step("go to kitchen")
    _, reward, terminated, truncated, info = env.step("focus on picture")
    assert (info["score"], terminated, truncated, info["success"]) == (-1.0, True, False, False)
    assert reward == pytest.approx(-1.2)
    assert (info["raw_reward"], info["agentgym_score"]) == (-125, -100)
    env.close()


@pytest.mark.parametrize("task", [-1, 4_639])
def test_task_ids_that_the_server_would_wrap_or_refuse(started, task):
    env = started(Server(beginning())).env()
    with pytest.raises(errors.BadOption):
        env.reset(options={"task_id": task})
    env.close()


def test_a_menu_is_answered_by_a_number(started):
    menu = (
        "Ambiguous request: Please enter the number for the action you intended (or blank to cancel):\n0:\t…"
    )
    server = started(Server(beginning(), answer(0, observation=menu), answer(8, 8)))
    env = server.env()
    env.reset(options={"task_id": 0})
    observation, *_ = env.step("Thought: a door\nAction: open door")
    assert observation == menu
    env.step("Thought: the first\nAction: 0")
    assert server.sent == ["open door", "0"]
    env.close()


READ = {
    "look": sw.LookAround(),
    "LOOK AROUND": sw.LookAround(),
    "look at table.": sw.LookAt("table"),
    "wait": sw.Wait(),
    "wait10": sw.Wait(),
    "wait1": sw.Wait1(),
    "wait 1": sw.Wait1(),
    "12": sw.Choose(12),
    "choose 0": sw.Choose(0),
    "open the door to the kitchen": sw.Open("the door to the kitchen"),
    "OPEN metal_pot": sw.Open("metal pot"),
    'read "book (pride and prejudice)"': sw.Read("book (pride and prejudice)"),
    "focus on unknown substance B": sw.Focus("unknown substance b"),
    "focus on green-blue paint": sw.Focus("green-blue paint"),
    "turn stove on": sw.Activate("stove"),
    "take thermometer": sw.PickUp("thermometer"),
    "drop jug": sw.PutDown("jug"),
    "put jug down": sw.PutDown("jug"),
    "put jug on table": sw.Move("jug", "table"),
    "put down jug in inventory": sw.PutDown("jug in inventory"),
    "move to kitchen": sw.GoTo("kitchen"),
    "go kitchen": sw.GoTo("kitchen"),
    "move instructions to make mixed nuts to red box": sw.Move("instructions to make mixed nuts", "red box"),
    "use stopwatch": sw.Use("stopwatch"),
    "use thermometer in inventory on substance in pot": sw.Use(
        "thermometer in inventory", "substance in pot"
    ),
    "connect black wire terminal 2 to cathode in red light bulb": sw.Connect(
        "black wire terminal 2", "cathode in red light bulb"
    ),
    "pour cup into bowl in art studio": sw.Pour("cup", "bowl in art studio"),
    "pour cup in inventory into bowl": sw.Pour("cup in inventory", "bowl"),
    "pour jug in jug": sw.Pour("jug", "jug"),
    "pour cup in art studio in bowl": sw.Pour("cup in art studio", "bowl"),
    "pour cup in bowl in art studio": sw.Pour("cup", "bowl in art studio"),
    "pour cup in art studio in mug in table": sw.Pour("cup in art studio", "mug in table"),
    "put cup in inventory in red box": sw.Move("cup in inventory", "red box"),
    "put cup in inventory on stove": sw.Move("cup in inventory", "stove"),
    "dunk cup in water": sw.Dunk("cup", "water"),
    "dunk cup into water in sink": sw.Dunk("cup", "water in sink"),
}


@pytest.mark.parametrize("text", READ)
def test_accepted_texts(text):
    assert GRAMMAR.parse(text) == READ[text]
    assert GRAMMAR.parse(str(READ[text])) == READ[text]


@pytest.mark.parametrize(
    "text",
    [
        *("go to", "open", "focus on", "look at", "pour cup into", "move to", "use"),
        *(
            "use thermometer on",
            "pour cup",
            "connect battery",
            "wait 5",
            "look kitchen",
            "open pot; open jar",
        ),
        *("dunk cup in", "move pot in", "look at stove, then activate it"),
    ],
)
def test_known_actions_with_invalid_arguments(text):
    with pytest.raises(errors.BadArguments):
        GRAMMAR.parse(text)


@pytest.mark.parametrize("text", ["dance", "reset task", "0: open door", "-1", "é", "teleport to kitchen"])
def test_unknown_actions(text):
    with pytest.raises(errors.UnknownAction):
        GRAMMAR.parse(text)


def test_two_names_that_would_be_read_as_others_make_no_action():
    with pytest.raises(errors.BadArguments, match="something else"):
        sw.Use("note on table", "stove")
    with pytest.raises(errors.BadArguments, match="something else"):
        sw.Move("pot", "door to kitchen")


def test_functions_have_agentgyms_names():
    known = {tool["function"]["name"] for tool in GRAMMAR.tools()}
    assert {"lookaround", "lookat", "lookin", "pickup", "drop", "goto", "focus", "choose", "use"} <= known
    reply = '{"thought": "", "function_name": "dunk", "arguments": {"liq": "water", "container": "cup"}}'
    assert FORMATS["function_calling"].parse(reply, GRAMMAR) == sw.Dunk("cup", "water")


def call(name, arguments):
    return json.dumps({"thought": "t", "function_name": name, "arguments": arguments})


CLIENT = {
    ("react", "Thought: x\nAction: look around</s>"): "look aroun",
    ("react", "Action: a\nAction: b \n"): "b",
    ("react", "click[x] and no label"): "click[x] and no label",
    ("react", "look around"): "",
    ("function_calling", call("wait", {"duration": 10})): "wait10",
    ("function_calling", call("choose", {"option": 3})): "3",
    ("function_calling", call(" lookaround ", {})): "look around",
    ("function_calling", call("use", {"tool": "thermometer"})): "use thermometer",
    ("function_calling", call("pour", {"liq": "milk", "container": "mug"})): "pour milk into mug",
    ("function_calling", call("dunk", {"liq": "milk", "container": "mug"})): "dunk mug in milk",
    ("function_calling", call("drop", {"obj": "jug"}) + "\n</s>"): "drop jug",
    ("function_calling", call("read", {"info": "note"})): errors.BadArguments,
    ("function_calling", call("lookin", {"obj": "jug"})): errors.UnknownAction,
    ("function_calling", call("open", {"obj": "a", "and": "b"})): errors.BadArguments,
    ("function_calling", call("task", {"obj": "a"})): errors.BadArguments,
    ("function_calling", call("open", "jug")): errors.BadArguments,
    ("function_calling", call("open", None)): errors.BadArguments,
    ("function_calling", '{"function_name": "task", "arguments": {}}'): errors.NoAction,
    ("function_calling", "{" * 5_000): errors.NoAction,
    ("function_calling", "[1]"): errors.NoAction,
    ("code_as_action", "```python\n# why\nwait('1')\n```"): "wait1",
    ("code_as_action", "use('thermometer')"): "use thermometer",
    ("code_as_action", "use('thermometer', obj='pot')\n</s>"): "use thermometer on pot",
    ("code_as_action", "use('thermometer', '')"): "use thermometer",
    ("code_as_action", "choose(2)"): "2",
    ("code_as_action", "task()"): "task",
    ("code_as_action", "open()"): errors.BadArguments,
    ("code_as_action", "open('a', 'b')"): errors.BadArguments,
    ("code_as_action", "open('a', obj='b')"): errors.BadArguments,
    ("code_as_action", "open(**{'obj': 'a'})"): errors.BadArguments,
    ("code_as_action", "open(exit())"): errors.BadArguments,
    ("code_as_action", "lookin('jug')"): errors.UnknownAction,
    ("code_as_action", "open('a'); open('b')"): errors.NoAction,
    ("code_as_action", "open.close('a')"): errors.NoAction,
    ("code_as_action", "open('\\d')"): "open \\d",
    ("code_as_action", "open('" + "a" * 20_000 + "')"): errors.BadArguments,
}


@pytest.mark.parametrize(("action_format", "reply"), CLIENT, ids=lambda text: repr(text[:60]))
def test_agentgyms_readers(action_format, reply):
    expected = CLIENT[action_format, reply]
    read = SCIWORLD.agentgym_readers[action_format]
    if isinstance(expected, str):
        assert read(reply) == expected
    else:
        with pytest.raises(expected):
            read(reply)
