"""What is special about WebShop: its ids, its pages, its one payment, its words."""

from __future__ import annotations

import contextlib
import json

import pytest
from gymnasium.error import ResetNeeded

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.envs.webshop import WEBSHOP, Click, Search, WebShopWire
from agentgym_gym.wire import Outcome, Start
from by_hand import answered
from fake_server import FakeServer

GRAMMAR = WEBSHOP.grammar
FIRST = "WebShop [SEP] Instruction: [SEP] Find me a red mug, and price lower than 9.00 dollars [SEP] Search"
GOAL = "Find me a red mug, and price lower than 9.00 dollars"


class Shop(FakeServer):
    """A shop with one product, which pays a given reward.

    Attributes:
        pays: The reward of a purchase.
        asked: Method, path, query and body of each request.
    """

    def __init__(self, pays=1.0):
        self.pays = pays
        self.asked = []
        super().__init__(self._said)

    def _said(self, request):
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.path, request.query, body))
        return self._answer(request.path, body or {}, request.query)

    def _answer(self, path, body, query):
        if path == "/step":
            bought = body["action"].lower() == "click[buy now]"
            reward = self.pays if bought else 0.0
            return 200, {"state": f"did {body['action']}", "reward": reward, "done": bought, "info": None}
        if path in {"/observation", "/available_actions"}:
            assert query == "env_idx=4711"
        answers = {
            "/": "ok",
            "/list_envs": [],
            "/create": 4711,
            "/reset": [FIRST, None],
            "/observation": FIRST,
            "/available_actions": {"has_search_bar": True, "clickables": ["search", "buy now"]},
        }
        return (200, answers[path]) if path in answers else (404, {"detail": "Not Found"})


def play(shop, *replies, **options):
    with shop:
        env = AgentGymEnv("WebShop", server=shop.url, action_format="bare", **options)
        with contextlib.closing(env):
            turns = [env.reset(options={"task_id": 3})]
            turns += [env.step(reply) for reply in replies]
    return turns


# -------------------------------------------------------------------------------------------- the wire


def test_an_episode_sends_the_requests_of_the_protocol():
    shop = Shop()
    (observation, info), *_ = play(shop, "search[red mug]", "click[buy now]")
    assert (observation, info["goal"]) == (FIRST, GOAL)
    assert "available_actions" not in info
    asked = [(path, query, body and list(body.items())) for _, path, query, body in shop.asked]
    assert asked == [
        ("/", "", None),
        ("/openapi.json", "", None),
        ("/list_envs", "", None),
        ("/create", "", None),
        ("/reset", "", [("env_idx", 4711), ("session_id", 3)]),
        ("/observation", "env_idx=4711", None),
        ("/step", "", [("env_idx", 4711), ("action", "search[red mug]")]),
        ("/step", "", [("env_idx", 4711), ("action", "click[buy now]")]),
    ]


def test_the_available_actions_are_requested_only_on_demand():
    shop = Shop()
    (_, start), step, last = play(shop, "search[red mug]", "click[buy now]", available_actions=True)
    assert start["available_actions"] == ("search[<keywords>]", "click[buy now]")
    assert step[-1]["available_actions"] == ("search[<keywords>]", "click[buy now]")
    assert "available_actions" not in last[-1]
    assert [path for _, path, _, _ in shop.asked].count("/available_actions") == 2
    with pytest.raises(errors.BadOption):
        AgentGymEnv("WebShop", server="http://x.test", nonsense=True)


def test_a_reset_whose_second_call_fails_is_a_fault():
    with pytest.raises(errors.ServerError):
        answered(WebShopWire().reset(1, 0), (200, b'["a page", null]'), (500, b"Internal Server Error"))


@pytest.mark.parametrize("reward", [1.5, -0.1])
def test_a_reward_out_of_range_is_a_fault(reward):
    told = (200, {"state": "x", "reward": reward, "done": True, "info": None})
    with pytest.raises(errors.BadReply):
        answered(WebShopWire().step(1, "click[buy now]"), told)


def test_another_server_that_returns_ok_is_not_taken_for_it():
    def api(*fields):
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/R"}}}
        return {
            "paths": {"/reset": {"post": {"requestBody": {"content": content}}}},
            "components": {"schemas": {"R": {"properties": {field: {} for field in fields}}}},
        }

    answered(WebShopWire().identify(), (200, b'"ok"'), (200, api("env_idx", "session_id")))
    with pytest.raises(errors.WrongServer):
        answered(WebShopWire().identify(), (200, b'"ok"'), (200, api("env_idx", "item_id")))
    with pytest.raises(errors.WrongServer):  # WebArena's is not JSON
        answered(WebShopWire().identify(), (200, b"ok"))


def test_the_recorded_server_is_known_by_its_routes(recordings):
    rows = {row["path"]: row for row in recordings("webshop.jsonl")[:2]}
    told = [(200, rows[path]["response_json"]) for path in ("/", "/openapi.json")]
    answered(WebShopWire().identify(), *told)


def test_a_server_without_a_list_is_still_used():
    assert answered(WebShopWire().list_envs(), (404, {}))[0] is None


def test_no_more_environments_are_requested_than_the_server_has():
    assert WebShopWire.capacity == 8_000
    assert WebShopWire.reissues_ids
    assert not WebShopWire.closes


# ------------------------------------------------------------------------------------------- the score


@pytest.mark.parametrize(("pays", "success"), [(1.0, True), (0.75, False), (0.0, False)])
@pytest.mark.parametrize("buy", ["click[buy now]", "Click[Buy Now]"])
def test_a_purchase_ends_the_episode_and_pays(pays, success, buy):
    *_, (_, reward, terminated, truncated, info) = play(Shop(pays), "search[red mug]", buy)
    assert (reward, terminated, truncated) == (pays, True, False)
    assert (info["score"], info["success"], info["agentgym_score"]) == (pays, success, pays)


def test_a_finished_episode_is_not_paid_again():
    with pytest.raises(ResetNeeded):
        play(Shop(), "click[buy now]", "click[buy now]")


def test_without_a_purchase_there_is_no_score():
    turns = play(Shop(), *["search[red mug]"] * WEBSHOP.max_turns)
    assert turns[-1][1:4] == (0.0, False, True)
    score_now = WebShopWire().judge(Start(""), 0.0, "search[x]", Outcome("x", 0.5, done=False))
    assert (score_now.score, score_now.success, score_now.done, score_now.agentgym_score) == (
        0.0,
        False,
        False,
        0.5,
    )


# ------------------------------------------------------------------------------------------- the words


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("click[size: x-large [tall]]", Click("size: x-large [tall]")),
        ("click[[a]", Click("[a")),
        ("click[a]]", Click("a]")),
        ("search [red  mug]", Search("red  mug")),
        ("CLICK[ Buy Now ]", Click("Buy Now")),
        ("click[a\xa0b]", Click("a\xa0b")),
        ('search["women\'s" shoes, 5\' 3"]', Search('"women\'s" shoes, 5\' 3"')),
        ("search[水杯 ☕]", Search("水杯 ☕")),
    ],
)
def test_text_is_taken_as_it_is(text, action):
    assert GRAMMAR.parse(text) == action
    assert GRAMMAR.parse(str(action)) == action
    for action_format in FORMATS.values():
        assert action_format.parse(action_format.render(action, "I think."), GRAMMAR) == action


@pytest.mark.parametrize(
    "text", ["search[]", "click[ ]", "search", "click[a\nb]", "search[x", "search x", "search[a] click[b]"]
)
def test_an_action_without_its_text_is_refused(text):
    with pytest.raises(errors.BadArguments):
        GRAMMAR.parse(text)


@pytest.mark.parametrize("text", ["<a>", "<A> red", "<c>", "<r>", "<q> mug"])
def test_commands_of_the_server_are_not_keywords(text):
    with pytest.raises(errors.BadArguments):
        Search(text)
    Search(f"red {text}")


def test_an_unknown_action_is_forwarded():
    shop = Shop()
    *_, turn = play(shop, "Action: look around")
    assert turn[-1]["action"] == "look around"
    assert shop.asked[-1][-1]["action"] == "look around"


# ------------------------------------------------------------------------------------ AgentGym's readers

READ = {
    "react": {
        "Thought: x\n\nAction:\nsearch[a]": "search[a]",
        "Action: a Action: click[b] ": "click[b]",
        "search[a] it is": "search[a] it is",
        "I wait": "",
        "Action: click[a]</s>": "click[a",
    },
    "function_calling": {
        '{"thought": 1, "function_name": "click", "arguments": {"item": "a"}}\n</s>': "click[a]",
        '{"thought": "", "function_name": "search", "arguments": {"keywords": ["a", 1]}}': "search[['a', 1]]",
        '"thought": "", "function_name": "search", "arguments": {"keywords": ""}': errors.NoAction,
        'a call in JSON, "thought": "x"': errors.NoAction,
        '{"thought": "", "function_name": ["click"], "arguments": {"item": "a"}}': errors.NoAction,
        '{"thought": "", "function_name": "click", "arguments": ["a"]}': errors.BadArguments,
        '{"thought": "", "function_name": "buy", "arguments": {}}': errors.UnknownAction,
    },
    "code_as_action": {
        "```python\n# x\nclick(item='a')\n```": "click[a]",
        "click(5)": "click[5]",
        "'search[a]'": "search[a]",
        "```\nsearch('a\\d')```": errors.NoAction,
        "search('a\\d')": "search[a\\d]",
        "search()": errors.BadArguments,
        "search('a', 'b')": errors.BadArguments,
        "search(item='a')": errors.BadArguments,
        "search('a', keywords='b')": errors.BadArguments,
        "search(*['a'])": errors.BadArguments,
        "search(open('x'))": errors.BadArguments,
        "search(0x" + "f" * 8_000 + ")": errors.BadArguments,
        "search('" + "a" * 20_000 + "')": errors.BadArguments,
        "buy('a')": errors.UnknownAction,
    },
}


@pytest.mark.parametrize(
    ("name", "reply", "expected"), [(n, r, e) for n, rows in READ.items() for r, e in rows.items()]
)
def test_the_readers(name, reply, expected):
    reader = WEBSHOP.agentgym_readers[name]
    if isinstance(expected, str):
        assert reader(reply) == expected
        return
    with pytest.raises(expected) as raised:
        reader(reply)
    assert type(raised.value) is expected


@pytest.mark.parametrize("words", ["<a>", "<A> mug", "<c>"])
def test_nothing_is_sent_that_fails_on_the_server(words):
    call = {"thought": "", "function_name": "search", "arguments": {"keywords": words}}
    replies = {
        "react": f"Action: search[{words}]",
        "function_calling": json.dumps(call),
        "code_as_action": f"search({words!r})",
    }
    for name, reply in replies.items():
        with pytest.raises(errors.BadArguments):
            WEBSHOP.wire.check(WEBSHOP.agentgym_readers[name](reply))
    assert WEBSHOP.agentgym_readers["react"]("Action: search[<r>]") == "search[<r>]"
    WEBSHOP.wire.check("search[<r>]")
