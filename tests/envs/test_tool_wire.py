"""The wire of AgentGym's five tool servers: what is sent, what pays, what is a fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, catalogue, errors
from agentgym_gym.actions import Verbatim
from agentgym_gym.wire import Outcome, Start
from by_hand import exchange
from fake_server import FakeServer, Request

NAMES = ["Weather", "Movie", "Academia", "Sheet", "TODOList"]
(FINISH,) = (a for a in catalogue.find("Weather").grammar.actions if a.name() == "finish")
GOAL = "Now new trial starts.\nYou should perform actions to accomplish the goal: Count.\nGive me one action."

each = pytest.mark.parametrize("environment", [catalogue.find(name) for name in NAMES], ids=lambda e: e.name)


def told(observation="Observation: x", reward=0.0, *, done=False):
    return {"observation": observation, "reward": reward, "done": done}


@each
def test_the_calls(environment):
    wire = environment.wire
    env_id, call = exchange(wire.create(4), 0)
    assert (call.path, call.body, env_id) == ("/create", {"id": 4}, 0)
    start, call = exchange(wire.reset(0, 4), GOAL)
    assert (call.path, list(call.body.items())) == ("/reset", [("env_idx", 0), ("id", 4)])
    assert start == Start(GOAL, goal="Count.")
    assert exchange(wire.step(0, "x"), told("a", 0.5))[0] == Outcome("a", 0.5, done=False)
    assert not wire.closes
    with pytest.raises(errors.ServerError):
        exchange(wire.reset(0, 999), b"Internal Server Error", 500)


@each
@pytest.mark.parametrize("reply", [told(reward=1.5), told(reward=-1)])
def test_a_reward_out_of_range_is_a_fault(environment, reply):
    with pytest.raises(errors.BadReply):
        exchange(environment.wire.step(0, "x"), reply)


@pytest.mark.parametrize(
    "shown",
    [
        "ERROR | ConnectionError(HTTPSConnectionPool(host='api.themoviedb.org', port=443): Max retries",
        "ERROR | ReadTimeout(HTTPSConnectionPool(host='x', port=443): Read timed out.",
        "ConnectionError(MaxRetryError(\"HTTPSConnectionPool(host='sheets.googleapis.com', port=443)",
        "APIError({'code': 429, 'message': \"Quota exceeded",
        '{"error":true,"reason":"Daily API request limit exceeded. Please try again tomorrow."}',
        '{"status_code":7,"status_message":"Invalid API key: You must be granted a valid key."}',
    ],
)
def test_a_service_that_is_down_is_a_fault_and_not_a_wrong_step(shown):
    reply = told(f"Observation: {shown}\nGive me one action.")
    with pytest.raises(errors.EnvironmentFailed):
        exchange(catalogue.find("Movie").wire.step(0, "x"), reply)
    said_by_the_agent = {**reply, "done": True}
    assert exchange(catalogue.find("Movie").wire.step(0, "x"), said_by_the_agent)[0].done


@pytest.mark.parametrize(
    "shown",
    [
        "ERROR | KeyError('answer')",
        "APIError({'code': 400, 'message': \"Unable to parse range\"",
        '{"status_code":34,"status_message":"The resource you requested could not be found."}',
        "Task not found",
    ],
)
def test_a_mistake_of_the_agent_is_not_a_fault(shown):
    assert exchange(catalogue.find("Movie").wire.step(0, "x"), told(f"Observation: {shown}"))[0].reward == 0


def judged(environment, *outcomes):
    score, verdicts = 0.0, []
    for reward, done in outcomes:
        score_now = environment.wire.judge(Start(GOAL), score, "x", Outcome("x", reward, done))
        score = score_now.score
        verdicts.append((score_now.score, score_now.success, score_now.done, score_now.agentgym_score))
    return verdicts


@pytest.mark.parametrize("name", ["Weather", "Movie", "Academia", "Sheet"])
def test_the_score_is_the_best_that_was_paid(name):
    told_so = judged(catalogue.find(name), (0.25, False), (0.25, False), (1.0, False), (0.5, True))
    assert told_so == [
        (0.25, False, False, 0.25),
        (0.25, False, False, 0.25),
        (1.0, True, False, 1.0),
        (1.0, True, True, 0.5),
    ]


def test_todolist_counts_what_was_checked():
    verdicts = judged(catalogue.find("TODOList"), (1.0, False), (0.0, True))
    assert verdicts == [(0.0, False, False, 1.0), (0.0, False, True, 0.0)]
    assert judged(catalogue.find("TODOList"), (1.0, True)) == [(1.0, True, True, 1.0)]


def test_only_todolist_has_one_account():
    assert [catalogue.find(name).wire.capacity for name in NAMES] == [None] * 4 + [1]


class Server(FakeServer):
    """A tool server with one goal, which counts the episodes that any finish in the text has ended."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        super().__init__(self._answer)

    def _answer(self, request: Request) -> Any:
        if request.path == "/step":
            action = request.json["action"]
            self.sent.append(action)
            return told(reward=float("105" in action), done="finish" in action.lower())
        return {"/": "ok", "/create": 0, "/reset": GOAL}.get(request.path, (404, None))


@pytest.fixture
def server(started: Callable[[Server], Server]) -> Server:
    return started(Server())


@each
def test_an_episode(environment, server):
    env = AgentGymEnv(environment.name, server=server.url)
    observation, info = env.reset(options={"task_id": 3})
    assert (observation, info["goal"]) == (GOAL, "Count.")
    first = environment.grammar.examples[0]
    _, reward, terminated, _, info = env.step(FORMATS["react"].render(first))
    assert (reward, terminated, info["action"]) == (0, False, str(first))
    _, _, _, _, info = env.step("Thought: x\nAction: unheard_of with Action Input: {}")
    assert info["parse_error"] == "UnknownAction"
    last = environment.grammar.examples[-1] if environment.name == "Sheet" else FINISH(105)
    _, reward, terminated, _, info = env.step(last)
    assert (reward, terminated) == (float(environment.name != "Sheet"), True)
    assert server.sent == [f"Action: {first}", f"Action: {last}"]
    env.close()


def test_agentgyms_parser_sends_the_reply(server):
    env = AgentGymEnv("Weather", server=server.url, parser="agentgym")
    env.reset(options={"task_id": 0})
    reply = "Thought: I finish soon.\nAction: get_user_current_date with Action Input: {}"
    _, _, terminated, _, _ = env.step(reply)
    assert server.sent == [reply]
    assert terminated
    env.close()


EVIL = '{"x": __import__("os").getpid()}'


@pytest.mark.parametrize("options", [{}, {"parser": "agentgym"}, {"on_unknown": "forward"}])
@each
def test_nothing_is_sent_that_the_server_would_run(environment, options, server):
    env = AgentGymEnv(environment.name, server=server.url, **options)
    for name in (environment.grammar.actions[0].name(), "finish", "unheard_of"):
        call = f"{name} with Action Input: {EVIL}"
        for said in (call, f"Action: {call}"):
            for reply in (said, Verbatim(said), f"Thought: a\n{said}"):
                env.reset(options={"task_id": 0})
                _, reward, _, _, info = env.step(reply)
                assert (reward, "fault" in info) == (0, False)
    assert not [sent for sent in server.sent if "__import__" in sent and "Action:" in sent]
    env.close()
