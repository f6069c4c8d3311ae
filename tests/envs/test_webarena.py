"""What is special about WebArena: its fences, its failures in disguise, its rewards that are none."""

from __future__ import annotations

import json
from collections import deque

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.envs.webarena import (
    WEBARENA,
    ClickElement,
    GoBack,
    Goto,
    NewTab,
    Press,
    Scroll,
    Stop,
    TabFocus,
    TypeText,
    WebArenaWire,
)
from agentgym_gym.wire import Outcome, Start
from by_hand import answered
from clock import cpu_seconds
from fake_server import FakeServer, http

GRAMMAR = WEBARENA.grammar
TREE = "Tab 0 (current): Shop\n\n[2] RootWebArea 'Shop'"
PAGE = f"OBSERVATION:\n{TREE}\nURL: http://shop.test\nOBJECTIVE: Find the price.\nPREVIOUS ACTION: None"
DONE = {"reward": 1.0, "terminated": False, "truncated": False, "info": {"fail_error": ""}}
FAILED = {"reward": 0, "terminated": False, "truncated": False, "info": None}


class Browser(FakeServer):
    """A server as WebArena's: plain text and HTML where there is no JSON."""

    def __init__(self):
        self.asked, self.steps = [], []
        super().__init__(self._answer)

    def _answer(self, request):
        if request.method == "GET":
            not_found = http(b"<!doctype html><title>404 Not Found</title>", "404 Not Found")
            return {"/": http(b"ok"), "/observation": PAGE}.get(request.path, not_found)
        body = json.loads(request.content) if request.content else None
        target = f"{request.path}?{request.query}" if request.query else request.path
        self.asked.append((target, body and list(body.items())))
        answers = {
            "/create": {"env_idx": 0},
            "/reset": {"observation": TREE, "sites": ["shopping"], "object": "Find the price."},
            "/close": {"closed": "closed"},
        }
        return self.steps.pop(0) if target == "/step" else answers[target]


@pytest.fixture
def browser(started):
    return started(Browser())


def play(browser, *replies, **options):
    env = AgentGymEnv("WebArena", server=browser.url, **options)
    turns = [env.reset(options={"task_id": 7})]
    turns += [env.step(reply) for reply in replies]
    env.close()
    return turns


def step(action, **answer):
    return answered(WebArenaWire().step(0, action), (200, answer))


# -------------------------------------------------------------------------------------------- the wire


def test_an_episode_sends_the_requests_of_the_protocol(browser):
    browser.steps = [
        {"observation": "clicked", **DONE},
        {"observation": "stopped", **DONE, "terminated": True},
    ]
    reply = "Let's think step-by-step. In summary, the next action I will perform is ```click [2]```"
    (page, start), clicked, stopped = play(browser, reply, "Thought:\nx\n\nAction:\n```stop [$4]```")
    assert (page, start["goal"]) == (PAGE, "Find the price.")
    assert clicked[:4] == ("clicked", 0.0, False, False)
    assert (clicked[-1]["action"], clicked[-1]["raw_reward"]) == ("click [2]", 1.0)
    assert (clicked[-1]["score"], clicked[-1]["success"], clicked[-1]["agentgym_score"]) == (0.0, False, 0.0)
    assert stopped[:4] == ("stopped", 1.0, True, False)
    assert (stopped[-1]["score"], stopped[-1]["success"], stopped[-1]["agentgym_score"]) == (1.0, True, 1.0)
    assert browser.asked == [
        ("/create", None),
        ("/reset", [("env_idx", 0), ("seed", 0), ("idx", 7)]),
        ("/step", [("env_idx", 0), ("action", "```click [2]```")]),
        ("/step", [("env_idx", 0), ("action", "```stop [$4]```")]),
        ("/close", [("env_idx", 0)]),
    ]


def test_agentgyms_parser_sends_whole_replies(browser):
    browser.steps = [{"observation": "clicked", **DONE}]
    reply = "I click ```click [2]``` and ```click [3]```</s>"
    _, clicked, refused = play(browser, reply, "click [2]", parser="agentgym")
    assert [body[1] for path, body in browser.asked if path == "/step"] == [("action", reply)]
    assert clicked[-1]["action"] == reply
    assert refused[-1]["parse_error"] == "NoAction"


def test_an_unknown_action_never_reaches_the_server(browser):
    *_, refused = play(browser, "Action: ```dance [2]```")
    assert refused[-1]["parse_error"] == "UnknownAction"
    assert "/step" not in [path for path, _ in browser.asked]


def test_a_step_that_failed_ends_the_episode_as_a_fault(browser):
    browser.steps = [{"observation": "Error: Env 0 is dead", **FAILED}]
    *_, (_, reward, terminated, truncated, info) = play(browser, "```stop [$4]```")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["fault"]["kind"] == "EnvironmentFailed"
    assert "is dead" in info["fault"]["message"]


@pytest.mark.parametrize("object_", ["Error", None])
def test_a_reset_that_failed_is_a_fault(object_):
    told = {"observation": "TimeoutError", "sites": "Error", "object": object_}
    with pytest.raises(errors.EnvironmentFailed):
        answered(WebArenaWire().reset(0, 999), (200, told))


def test_the_first_page_is_what_must_be_there():
    told = (200, {"observation": TREE, "sites": [], "object": "x"})
    with pytest.raises(errors.ServerError):
        answered(WebArenaWire().reset(0, 0), told, (500, b"<!doctype html>"))
    with pytest.raises(errors.BadReply):
        answered(WebArenaWire().reset(0, 0), told, (200, b'{"text": "x"}'))


AGENTS = [
    "Cannot parse action from response no ticks",
    "Cannot parse action from response ",
    "Invalid action foo [1]",
    "Invalid click action click [x]",
    "Invalid tab_focus action tab_focus [x]",
    "list index out of range",
    "Exceeds the limit (4300 digits) for integer string conversion",
    *map(repr, "水—€'\u200b\U0001f600\\\n"),
]
ENVIRONMENTS = [
    "0",
    "77",
    "",
    "Error: Env 0 is dead",
    "[Errno 32] Broken pipe",
    "'text'",
    "'observation_metadata'",
    "Page.content: Unable to retrieve content because the page is navigating and changing the content.",
    "Timeout 30000ms exceeded.",
    "Connection error.",
    "TimeoutError",
]


@pytest.mark.parametrize("said", AGENTS)
def test_failures_caused_by_the_agent_are_observations(said):
    outcome, _ = step("x", observation=said, **FAILED)
    assert outcome.observation == said
    assert not outcome.done


@pytest.mark.parametrize("said", ENVIRONMENTS)
def test_failures_caused_by_the_environment_are_faults(said):
    with pytest.raises(errors.EnvironmentFailed):
        step("stop [x]", observation=said, **FAILED)


@pytest.mark.parametrize("reward", [2, -1])
def test_a_reward_out_of_range_is_a_fault(reward):
    with pytest.raises(errors.BadReply):
        step("stop []", observation="x", **{**DONE, "reward": reward, "terminated": True})


def test_a_browser_that_does_not_end_is_a_fault():
    close = WebArenaWire().close
    answered(close(3), (200, b'{"closed": "closed"}'))
    for said in ("Close Env 3 time out.", "Close Env 3 Error: x"):
        with pytest.raises(errors.EnvironmentFailed):
            answered(close(3), (200, {"closed": said}))


def test_another_server_that_returns_ok_is_not_taken_for_it():
    identify = WebArenaWire().identify
    answered(identify(), (200, b"ok"), (404, b"<!doctype html>"))
    with pytest.raises(errors.WrongServer):
        answered(identify(), (200, b'"ok"'), (200, b'{"paths": {"/step": {}}}'))
    with pytest.raises(errors.WrongServer):
        answered(identify(), (200, b"<!doctype html>"))


def test_every_recorded_step_is_read(recordings):
    kinds = {Outcome: 0, errors.EnvironmentFailed: 0}
    for row in recordings("webarena.jsonl"):
        body = row["json_body"] or {}
        if row["path"] != "/step" or "action" not in body or "```" not in body["action"]:
            continue
        flow = WebArenaWire().step(body["env_idx"], body["action"])
        try:
            outcome, asked = answered(flow, (row["status"], row["response_json"]))
        except errors.EnvironmentFailed:
            kinds[errors.EnvironmentFailed] += 1
            assert row["response_json"]["observation"] == str(body["env_idx"])
        else:
            kinds[Outcome] += 1
            assert asked[0].body == body
            assert outcome.observation == row["response_json"]["observation"]
    assert kinds == {Outcome: 14, errors.EnvironmentFailed: 3}


# ------------------------------------------------------------------------------------------- the score


@pytest.mark.parametrize(
    ("reward", "terminated", "done", "score", "success"),
    [
        (1.0, False, False, 0.0, False),
        (1.0, False, True, 0.0, False),  # truncated
        (1.0, True, True, 1.0, True),
        (0.0, True, True, 0.0, False),
    ],
)
def test_the_reward_counts_when_the_task_is_terminated(reward, terminated, done, score, success):
    outcome, _ = step(
        "x",
        observation="",
        reward=reward,
        terminated=terminated,
        truncated=done and not terminated,
        info={},
    )
    score_now = WebArenaWire().judge(Start(""), 0.0, "x", outcome)
    assert (score_now.score, score_now.success, score_now.done) == (score, success, done)
    assert score_now.agentgym_score == score


# ------------------------------------------------------------------------------------------- the words

WAYS = {
    "click [5]": ClickElement(5),
    "CLICK[005]": ClickElement(5),
    "click 5": ClickElement(5),
    "type [5] [a [b] c] [0]": TypeText(5, "a [b] c", 0),
    "type [5] [a] [b]": TypeText(5, "a] [b", 1),
    "type [5] [see [1]]": TypeText(5, "see [1]", 1),
    "type[5][x][1]": TypeText(5, "x", 1),
    "type [5] [two  blanks]": TypeText(5, "two  blanks", 1),
    "type [5] [x] [0] [1]": TypeText(5, "x] [0", 1),
    "press [Control+]]": Press("Control+]"),
    "scroll [down]": Scroll("down"),
    "scroll [direction=down]": Scroll("down"),
    "scroll down": Scroll("down"),
    "scroll [UP]": Scroll("up"),
    "goto [http://a.test/?q=[1]]": Goto("http://a.test/?q=[1]"),
    "new_tab": NewTab(),
    "tab_focus [1]": TabFocus(1),
    "go_back": GoBack(),
    "stop []": Stop(""),
    "stop": Stop(""),
    "stop [ N/A ]": Stop("N/A"),
    "stop [[1, 2]]": Stop("[1, 2]"),
}


@pytest.mark.parametrize(("text", "action"), WAYS.items())
def test_the_ways_of_writing_an_action(text, action):
    assert GRAMMAR.parse(text) == action
    assert GRAMMAR.parse(str(action)) == action
    for fenced in (f"```{text}```", f"```\n{text}\n```", f"```bash\n{text}\n```", f"Well:\n```{text}```."):
        assert FORMATS["react"].parse(fenced, GRAMMAR) == action
    for action_format in FORMATS.values():
        assert action_format.parse(action_format.render(action, "I think."), GRAMMAR) == action


@pytest.mark.parametrize("flag", [0, "0", 0.0, False])
def test_a_call_may_give_the_flag_as_a_truth_value(flag):
    call = {"id": 5, "text": "x", "press_enter": flag}
    assert GRAMMAR.from_call("type", call) == TypeText(5, "x", 0)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("click [-1]", errors.BadArguments),
        ("click [x]", errors.BadArguments),
        ("type [5] []", errors.BadArguments),
        ("type [5] [] [0]", errors.BadArguments),
        ("type[5][ ][1]", errors.BadArguments),
        ("type [5] [tea] []", errors.BadArguments),
        ("type [5] [a\nb]", errors.BadArguments),
        ("type [5] [水]", errors.BadArguments),
        ("type [5] [a```b]", errors.BadArguments),
        ("stop [a```b]", errors.BadArguments),
        ("scroll [left]", errors.BadArguments),
        ("new_tab [1]", errors.BadArguments),
        ("noop", errors.UnknownAction),
    ],
)
def test_text_that_the_server_cannot_read_is_refused(text, kind):
    with pytest.raises(kind) as raised:
        GRAMMAR.parse(text)
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("```click [5]``` ```click [6]```", errors.ManyActions),
        ("```click [5]```\n```\nclick [6]\n```", errors.ManyActions),
        ("``````", errors.NoAction),
        ("``` ```", errors.NoAction),
        ("```", errors.NoAction),
        ("I do click [5]", errors.NoAction),
        ("```dance```", errors.UnknownAction),
    ],
)
def test_a_reply_without_one_fenced_action_is_refused(reply, kind):
    with pytest.raises(kind) as raised:
        FORMATS["react"].parse(reply, GRAMMAR)
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    "reply",
    ["```\n```click [5]```\n```", "````click [5]````", "```click [5]", "``` ```click [5]```", "click [5]"],
)
def test_an_odd_fence_or_none_is_read(reply):
    assert FORMATS["react"].parse(reply, GRAMMAR) == ClickElement(5)


def test_the_fences_are_found_in_linear_time():
    for piece in ["`", "``` ", "```\n", "```x", " " * 50 + "```", "`` `"]:
        text = piece * (200_000 // len(piece))
        assert cpu_seconds(lambda text=text: deque(GRAMMAR.style.mark.finditer(text), maxlen=0), 1.0) <= 1.0
