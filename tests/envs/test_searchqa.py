"""SearchQA: tags in replies, which of them the server acts on, when an episode ends, and faults."""

from __future__ import annotations

import itertools
import re
from collections import deque

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.calls import Call
from agentgym_gym.envs.searchqa import SEARCHQA, Answer, Search, SearchQAWire
from agentgym_gym.wire import Outcome, Score, Start
from by_hand import exchange
from clock import cpu_seconds
from fake_server import FakeServer

WIRE = SearchQAWire()
WRONG = Outcome("Sorry", 0.0, done=False)
RIGHT = Outcome("Congratulations", 1.0, done=True)


# ------------------------------------------------------------------------------------------------ the tags


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("<search>who</search>", Search("who")),
        ("<think>Is it <answer>x</answer>?</think>\n<search> who </search>", Search("who")),
        ("Is it?</think><search>who</search>", Search("who")),
        ("<think>x</think><search>who", Search("who")),  # generation stopped at the closing tag
        ("Thought: x\n<answer>Paris\n", Answer("Paris")),
        ("<answer>Paris</answer><answer>Paris</answer>", Answer("Paris")),
        ("<search>a</search><information>b</information><answer>c</answer>", Search("a")),
        ("I search.\n<search>\n  who wrote\n  it\n</search>\nNow I wait.", Search("who wrote it")),
        ("<SEARCH>Who</SEARCH>", Search("Who")),
        ("I need a <search> to know.\n\n<search>who</search>", Search("who")),
        ("Thought:\nx\n\nAction:\n```\n<answer>a < b > c</answer>\n```", Answer("a < b > c")),
        ('<answer>It\'s "5%"; é, 東京</answer>', Answer('It\'s "5%"; é, 東京')),
    ],
)
def test_a_reply_is_read_by_its_tags(reply, action):
    assert FORMATS["react"].parse(reply, SEARCHQA.grammar) == action
    assert FORMATS["bare"].parse(reply, SEARCHQA.grammar) == action


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("<search>a</search><search>b</search>", errors.ManyActions),
        ("<search>a</search>\n<answer>b</answer>", errors.ManyActions),
        ("<answer>a</answer><answer>b</answer>", errors.ManyActions),
        ("<search></search>", errors.BadArguments),
        ("<answer> \n </answer>", errors.BadArguments),
        ("<search>a</answer>", errors.BadArguments),
        (f"<search>{'a' * 1_001}</search>", errors.BadArguments),
        ("Action: look it up", errors.UnknownAction),
        ("I could <search> for it.", errors.NoAction),
        ("<search>a\nThen I shall see.", errors.NoAction),
        ("<think><search>a</search>", errors.NoAction),
        ("Paris", errors.NoAction),
    ],
)
def test_a_reply_without_one_marked_action_is_refused(reply, kind):
    with pytest.raises(kind) as raised:
        FORMATS["react"].parse(reply, SEARCHQA.grammar)
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    "text",
    ["", " a", "a  b", "a\nb", "<search>", "</Answer>", "x</ACTION>", "</think>", "a ``` b", "<|im_end|>", 1],
)
@pytest.mark.parametrize("action", [Search, Answer])
def test_a_text_that_would_be_read_otherwise_is_refused(action, text):
    with pytest.raises(errors.BadArguments):
        action(text)


@pytest.mark.parametrize(
    "long",
    [
        "<search>a<",
        " " * 9 + "\n",
        *(
            pytest.param(text, marks=pytest.mark.slow)
            for text in ("<search>", "</search>", "<answer> ", "<", "\n<search>", "<search")
        ),
    ],
)
def test_looking_for_tags_takes_linear_time(long):
    reply = "<answer>" + long * (1_000_000 // len(long)) + "x"

    def look():
        deque(SEARCHQA.grammar.style.mark.finditer(reply), maxlen=0)
        WIRE.judge(Start(""), 0.0, reply, WRONG)

    assert cpu_seconds(look, 1.0) <= 1.0


# ------------------------------------------------------------------------------------------------ the wire


def test_the_calls():
    assert exchange(WIRE.create(51_713), 0) == (0, Call("create", "POST", "/create", {"id": 51_713}))
    start, call = exchange(WIRE.reset(0, 3), "You must.\n\n Question: Who wrote it?")
    assert call == Call("reset", "POST", "/reset", {"id": 3, "env_idx": 0})
    assert start == Start("You must.\n\n Question: Who wrote it?", goal="Who wrote it?")
    said = {"observation": "x", "reward": 0.0, "done": False, "info": {"ground_truth": "gold"}}
    outcome, call = exchange(WIRE.step(0, "<search>a</search>"), said)
    assert call == Call("step", "POST", "/step", {"action": "<search>a</search>", "env_idx": 0})
    assert outcome == Outcome("x", 0.0, done=False)
    assert "gold" not in repr(outcome)
    assert exchange(WIRE.close(0), False) == (None, Call("close", "POST", "/close", {"env_idx": 0}))


# The first pair of tags decides how the server reads a text.
TAKEN_FOR = {
    "<answer>a</answer>": "answer",
    "<think>x</think>\n<answer>\n</answer>": "answer",
    "<answer>a</answer><search>b</search>": "answer",
    "<answer>a</answer><answer>b</answer>": "answer",
    "<search>a<answer>b</answer>": "answer",
    "</answer><answer>a</answer>": "answer",
    "<search>a</search><answer>b</answer>": "search",
    "<answer>a<search>b</search>": "search",
    "<search><answer>b</answer></search>": "search",
    "<answer>a": None,
    "<answer": None,
    "<ANSWER>a</ANSWER>": None,
    "<answer>a</search>": None,
    "</answer><answer>": None,
    "": None,
}


@pytest.mark.parametrize(("text", "kind"), TAKEN_FOR.items())
def test_an_answer_is_what_the_server_takes_for_one(text, kind):
    assert WIRE.judge(Start(""), 0.0, text, WRONG) == Score(0.0, False, kind == "answer", 0.0)


def test_an_answer_is_found_as_the_server_finds_it():
    tags = ["<search>", "</search>", "<answer>", "</answer>", "x"]
    for text in map("".join, itertools.product(tags, repeat=5)):
        found = re.search(r"<(search|answer)>.*?</\1>", text, re.DOTALL)
        score_now = WIRE.judge(Start(""), 0.0, text, WRONG)
        assert score_now.done == (found is not None and found[1] == "answer"), text


def test_a_right_answer_scores_and_ends():
    for wire in (WIRE, SearchQAWire(answers=None)):
        assert wire.judge(Start(""), 0.0, str(Answer("a")), RIGHT) == Score(1.0, True, True, 1.0)
        assert wire.judge(Start(""), 0.0, str(Search("a")), WRONG) == Score(0.0, False, False, 0.0)
    assert not SearchQAWire(answers=None).judge(Start(""), 0.0, str(Answer("a")), WRONG).done


@pytest.mark.parametrize("answers", [0, 2, -1, True, 1.0, "1", "None", []])
def test_other_numbers_of_answers_are_refused(answers):
    with pytest.raises(errors.BadOption):
        SearchQAWire(answers=answers)
    with pytest.raises(errors.BadOption):
        AgentGymEnv("SearchQA", server="http://nowhere.test", answers=answers)


# ------------------------------------------------------------------------------------------ whole episodes


class Server(FakeServer):
    """A server of SearchQA's wire with one question, which never ends."""

    def __init__(self):
        self.envs = set()
        self.sent = []
        super().__init__(self._answer)

    def _answer(self, request):
        body, path = request.json, request.path
        if path == "/":
            return "ok"
        if path == "/create":
            self.envs.add(env_id := 0 if 0 not in self.envs else 1)
            return env_id
        if path == "/close":
            gone = body["env_idx"] not in self.envs
            self.envs.discard(body["env_idx"])
            return not gone
        if body.get("env_idx") not in self.envs:
            return 404 if path == "/openapi.json" else 500, "Internal Server Error"
        if path == "/reset":
            return "Use the tags.\n\n Question: Which is the capital of France?"
        self.sent.append(body["action"])
        return self.step(body["action"])

    def step(self, text):
        found = re.search(r"<(search|answer)>(.*?)</\1>", text, re.DOTALL)
        right = False
        if found is None:
            said = "Your previous action is invalid."
        elif found[1] == "search":
            said = "<information>Paris is a city.</information>"
        else:
            last = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)[-1]
            right = re.sub(r"\W|\bthe\b", "", last.lower()) == "paris"
            said = "Right." if right else "Wrong."
        return {"observation": said, "reward": float(right), "done": right, "info": None}


@pytest.fixture
def server(started):
    return started(Server())


@pytest.fixture
def new_env(server):
    made = []

    def make(**options):
        made.append(AgentGymEnv("SearchQA", server=server.url, **options))
        made[-1].reset(options={"task_id": 0})
        return made[-1]

    yield make
    for env in made:
        env.close()
    assert server.envs == set()


def test_an_episode(server, new_env):
    env = new_env()
    observation, reward, terminated, truncated, info = env.step("<think>?</think><search>France</search>")
    assert (observation, reward, terminated) == ("<information>Paris is a city.</information>", 0.0, False)
    assert info["goal"] == "Which is the capital of France?"
    _, reward, terminated, truncated, info = env.step("<think>!</think><answer>the PARIS</answer>")
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert server.sent == ["<search>France</search>", "<answer>the PARIS</answer>"]


def test_a_wrong_answer_ends_it(new_env):
    _, reward, terminated, _, info = new_env().step("<answer>Lyon</answer>")
    assert (reward, terminated, info["score"], info["success"]) == (0.0, True, 0.0, False)


def test_a_wrong_answer_does_not_end_it_where_more_are_allowed(new_env):
    env = new_env(answers=None)
    for _ in range(3):
        assert env.step("<answer>Lyon</answer>")[2:4] == (False, False)
    _, reward, terminated, _, info = env.step("<answer>Paris</answer>")
    assert (reward, terminated, info["score"]) == (1.0, True, 1.0)


def test_answers_end_with_the_turns(new_env):
    env = new_env(answers=None)
    turns = [env.step("<answer>Lyon</answer>") for _ in range(5)]
    assert [turn[2:4] for turn in turns] == [(False, False)] * 4 + [(False, True)]


@pytest.mark.parametrize(
    ("reply", "score", "terminated"),
    [
        ("<think>x</think><answer>Lyon</answer> or <answer>Paris</answer>", 1.0, True),
        ("<answer>Paris</answer> or <answer>Lyon</answer>", 0.0, True),
        ("<search>x</search><answer>Paris</answer>", 0.0, False),
        ("<ANSWER>Paris</ANSWER>", 0.0, False),
        ("", 0.0, False),
    ],
)
def test_agentgyms_parser_sends_all_of_a_reply(server, new_env, reply, score, terminated):
    env = new_env(parser="agentgym")
    *_, ended, truncated, info = env.step(reply)
    assert server.sent == [reply]
    assert (info["score"], info["agentgym_score"], ended, truncated) == (score, score, terminated, False)


def test_the_splits():
    assert SEARCHQA.split(None) == SEARCHQA.split("train") == range(51_713, 221_328)
    assert SEARCHQA.split("test") == range(51_713)
