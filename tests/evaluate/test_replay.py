"""Kept runs and WebArena's references, played."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentgym_gym.env import AgentGymEnv
from agentgym_gym.envs import webarena
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import AgentReply, ReplayAgent, RunFolder, evaluate
from agentgym_gym.evaluate._agents import agent_from
from agentgym_gym.evaluate._reference_agent import ReferenceAgent
from agentgym_gym.evaluate._runner import play_episode
from fake_server import FakeServer, http

REPLIES = ("Thought: one\n\nAction:\ninventory", "Action: get 1 oak log")


def write(folder, *records):
    with RunFolder(folder, {"env_id": records[0].env_id}) as run:
        for each in records:
            run.add(each)
    return folder


def said(*texts):
    return tuple({"role": "assistant", "content": text} for text in texts)


def played(agent, env, info):
    """Return what an agent gives after a reset."""
    agent.reset(env, "", info)
    given = []
    while (reply := agent.act("", {})) is not None:
        given.append(reply)
        if isinstance(reply, AgentReply) and reply.action is None:
            break
    return given


# ------------------------------------------------------------------------------------- a kept run


def test_a_run_is_played_again_by_its_folder_or_its_file(tmp_path, env):
    with RunFolder(tmp_path / "a", {}) as folder:
        first = evaluate(env, agent_from("oracle", env.environment), range(3), on_episode=folder.add)
    for path in (tmp_path / "a", tmp_path / "a" / "episodes.jsonl"):
        again = evaluate(env, agent_from(f"replay:{path}", env.environment), range(3))
        assert [each.replies for each in again] == [each.replies for each in first]
        assert [each.rewards for each in again] == [each.rewards for each in first]


def test_each_sample_has_replies_of_its_own(tmp_path, env, record):
    samples = [record(3, sample=n, messages=said(f"{n}"), turns=1) for n in (0, 2)]
    agent = ReplayAgent(write(tmp_path / "a", *samples, record(3, sample=1, fault="ServerTimeout")))
    info = {"task_id": 3, "goal": "goal 3"}
    assert played(agent, env, info) == ["0"]
    assert played(agent, env, {**info, "sample": 2}) == ["2"]
    with pytest.raises(
        BadOption, match=r"task 3 of agentgym/TextCraft-v0 only for the samples \[0, 2\], not for sample 1"
    ):
        agent.reset(env, "", {**info, "sample": 1})


def test_two_tasks_of_one_goal_are_told_apart_by_their_ids(tmp_path, env, record):
    records = [record(n, goal="craft stick", messages=said(f"{n}"), turns=1) for n in (4, 5)]
    agent = ReplayAgent(write(tmp_path / "a", *records))
    for task, reply in ((4, "4"), (5, "5"), (9, "4")):
        assert played(agent, env, {"task_id": task, "goal": "craft stick"}) == [reply]
    assert played(agent, env, {"task_id": 5}) == ["5"]


def test_a_task_that_is_missing_is_named(tmp_path, env, record):
    agent = ReplayAgent(write(tmp_path / "a", record(0), record(1, fault="ServerTimeout")))
    assert agent.refusal(env, 0) is None
    assert agent.refusal(env, 1) == (
        f"{tmp_path}/a/episodes.jsonl holds no complete episode of agentgym/TextCraft-v0 with task 1"
    )
    with pytest.raises(BadOption, match=r"no complete episode of agentgym/TextCraft-v0 with task 1$"):
        agent.reset(env, "", {"task_id": 1})
    with pytest.raises(BadOption, match=r"with the goal 'goal 1' \(task 1\)"):
        agent.reset(env, "", {"task_id": 1, "goal": "goal 1"})
    agent_failed = record(2, score=0.0, agent_fault={"kind": "ModelBusy", "message": "x"})
    assert ReplayAgent(write(tmp_path / "b", agent_failed)).refusal(env, 2) is not None


def test_tool_calls_are_given_as_calls(tmp_path, env, record):
    """And the environment plays them, on a real server."""
    calls = [{"name": "inventory", "arguments": "{}", "id": "call_1"}]
    steps = ({"action": "inventory", "tool_calls": calls}, {"action": "inventory"})
    kept = record(0, goal=None, messages=said("I look. {...}", REPLIES[0]), steps=steps, turns=2)
    agent = ReplayAgent(write(tmp_path / "a", kept))
    observation, info = env.reset(options={"task_id": 0})
    agent.reset(env, observation, {"task_id": 0})
    first, second = agent.act("", {}), agent.act("", {})
    assert (first.text, first.step) == ("I look. {...}", {"tool_calls": calls})
    _, _, _, _, info = env.step(first.action)
    assert (info["action"], "parse_error" in info) == ("inventory", False)
    assert env.step(second)[-1]["action"] == "inventory"
    assert agent.act("", {}) is None


def test_an_episode_ends_as_it_did(tmp_path, env, record):
    cut = record(0, messages=said("one", "two, and then it brea"), turns=1, ending="reply_cut", goal=None)
    full = record(1, messages=said("one"), turns=1, ending="context_overflow", goal=None)
    over = record(2, messages=said("one"), turns=1, ending="truncated", goal=None)
    agent = ReplayAgent(write(tmp_path / "a", cut, full, over))
    assert played(agent, env, {"task_id": 0}) == [
        "one",
        AgentReply(None, "two, and then it brea", ending="reply_cut"),
    ]
    assert played(agent, env, {"task_id": 1}) == ["one", AgentReply(None, ending="context_overflow")]
    assert played(agent, env, {"task_id": 2}) == ["one"]


def test_a_folder_of_several_runs_is_not_guessed_at(tmp_path, record):
    write(tmp_path / "runs" / "a", record(0))
    write(tmp_path / "runs" / "b", record(0))
    with pytest.raises(BadOption, match=r"runs is not a run: choose one below it: .*/runs/a, .*/runs/b"):
        agent_from(f"replay:{tmp_path / 'runs'}", None)


# ----------------------------------------------------------------------------- WebArena's references

# As in WebArena's config_files/examples.
IDS = {
    "sites": ["misc"],
    "task_id": 3,
    "intent": "Who provides it?",
    "reference_action_sequence": {
        "action_set_tag": "id_accessibility_tree",
        "action_sequence": ["type [13] [xyz@gmail.com] [0]", "click [65]", "stop [Wilson and Reader]"],
    },
}
LOCATORS = {
    "task_id": 4,
    "reference_action_sequence": {
        "action_set_tag": "playwright",
        "action_sequence": ['page.get_by_role("link", name="Forums").click()', "page.stop()"],
    },
}
WITHOUT = {"task_id": 5, "intent": "No reference, as most tasks."}


def reference(task_id, *actions, tag="playwright"):
    sequence = {"action_set_tag": tag, "action_sequence": list(actions)}
    return {"task_id": task_id, "reference_action_sequence": sequence}


class Browser(FakeServer):
    """A server as WebArena's, whose episodes end well with the right answer."""

    def __init__(self):
        self.steps = []
        super().__init__(self._answer)

    def _answer(self, request):
        if request.method == "GET":
            not_found = http(b"<!doctype html><title>404 Not Found</title>", "404 Not Found")
            return {"/": http(b"ok"), "/observation": "OBSERVATION:\nTab 0"}.get(request.path, not_found)
        if request.path == "/step":
            action = request.json["action"]
            self.steps.append(action)
            over = action.startswith("```stop")
            return {
                "observation": "OBSERVATION:\nTab 0",
                "reward": float(not over or "Wilson" in action),
                "terminated": over,
                "truncated": False,
                "info": {"fail_error": ""},
            }
        return {
            "/create": {"env_idx": 0},
            "/reset": {"observation": "Tab 0", "sites": ["misc"], "object": "Who provides it?"},
            "/close": {"closed": "closed"},
        }[request.path]


@pytest.fixture
def browser(started):
    return started(Browser())


@pytest.fixture
def web(browser):
    with AgentGymEnv("WebArena", server=browser.url) as env:
        yield env


def put(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def test_a_reference_is_played(tmp_path, web, browser):
    put(tmp_path / "tasks" / "3.json", IDS)
    put(tmp_path / "tasks" / "all.json", [IDS, LOCATORS, WITHOUT])
    for path in (tmp_path / "tasks" / "3.json", tmp_path / "tasks" / "all.json", tmp_path / "tasks"):
        browser.steps.clear()
        agent = agent_from(f"replay:{path}", web.environment)
        assert isinstance(agent, ReferenceAgent)
        record = play_episode(web, agent, 3)
        assert browser.steps == [
            "```type [13] [xyz@gmail.com] [0]```",
            "```click [65]```",
            "```stop [Wilson and Reader]```",
        ]
        assert (record.success, record.score, record.parse_errors) == (True, 1.0, {})


def test_what_playwright_says_without_an_element_is_played(tmp_path, web):
    calls = {
        'page.goto("http://shop.test/a?b=[1]")': webarena.Goto("http://shop.test/a?b=[1]"),
        "page.press('Meta+A')": webarena.Press("Meta+A"),
        'page.keyboard.press("Enter")': webarena.Press("Enter"),
        "page.scroll(down)": webarena.Scroll("down"),
        'page.scroll("up")': webarena.Scroll("up"),
        "page.page_focus(1)": webarena.TabFocus(1),
        "page.new_tab()": webarena.NewTab(),
        "page.go_back()": webarena.GoBack(),
        "page.go_forward()": webarena.GoForward(),
        "page.page_close()": webarena.CloseTab(),
        'page.stop("a [b]")': webarena.Stop("a [b]"),
        "page.stop()": webarena.Stop(""),
    }
    agent = ReferenceAgent(put(tmp_path / "1.json", reference(1, *calls)))
    assert played(agent, web, {"task_id": 1}) == list(calls.values())
    text = {"action_set_tag": "id_accessibility_tree", "action_sequence": "\nclick [1]\n  stop \n"}
    agent = ReferenceAgent(put(tmp_path / "2.json", {"task_id": 2, "reference_action_sequence": text}))
    assert played(agent, web, {"task_id": 2}) == [webarena.ClickElement(1), webarena.Stop("")]


@pytest.mark.parametrize(
    ("action", "tag", "why"),
    [
        ('page.get_by_role("link").click()', "playwright", "not locators of Playwright"),
        ('page.get_by_label("x").press("Enter")', "playwright", "not locators of Playwright"),
        ("page.goto(url='http://a')", "playwright", "not locators of Playwright"),
        ("page.goto(open('x'))", "playwright", "not a plain value"),
        ("page.stop('a', 'b')", "playwright", "accepts 1 arguments"),
        ("page.press()", "playwright", "keys"),
        ("import os", "playwright", "not locators of Playwright"),
        ("stop [x]", "playwright", "not locators of Playwright"),
        ("page.stop()", "id_accessibility_tree", "is not one of the actions"),
        ("click [x]", "id_accessibility_tree", "click"),
        ("a" * 20_000, "id_accessibility_tree", "20000 characters"),
        ("page" + ".a" * 20_000 + "()", "playwright", ""),
        ("click [1]", "som", "action_set_tag 'som' is neither"),
    ],
)
def test_what_cannot_be_said_is_named_and_nothing_is_played(tmp_path, web, browser, action, tag, why):
    first = "page.new_tab()" if tag == "playwright" else "new_tab"
    path = put(tmp_path / "t.json", reference(8, first, action, tag=tag))
    agent = ReferenceAgent(path)
    with pytest.raises(BadOption, match=r"t\.json: task 8 cannot be played: .*") as raised:
        play_episode(web, agent, 8)
    assert why in str(raised.value)
    assert len(str(raised.value)) < 1_000
    assert agent.refusal(web, 8) == str(raised.value)
    assert browser.steps == []


def test_a_task_without_a_reference_is_named(tmp_path, web, env):
    agent = ReferenceAgent(put(tmp_path / "t.json", [IDS, WITHOUT]))
    for task in (5, 6):
        assert f"holds no task {task} with a reference_action_sequence" in agent.refusal(web, task)
    with pytest.raises(BadOption, match="tasks of WebArena, which agentgym/TextCraft-v0 cannot play"):
        agent.reset(env, "", {"task_id": 3})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[3]", "entry 0 is no task of WebArena: it has no number under 'task_id'"),
        ('[{"task_id": "3"}]', "entry 0 is no task"),
        ('{"task_id": 3, "reference_action_sequence": []}', "task 3 should have an 'action_set_tag'"),
        (
            '{"task_id": 3, "reference_action_sequence": {"action_set_tag": "x", "action_sequence": [3]}}',
            "'action_sequence' of texts",
        ),
    ],
)
def test_a_file_that_is_no_task_file_is_named(tmp_path, content, said):
    path = tmp_path / "t.json"
    path.write_text(content)
    with pytest.raises(BadOption, match=said):
        agent_from(f"replay:{path}", None)


def test_files_that_are_missing_or_disagree_are_named(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadOption, match=r"holds neither a run nor task files"):
        agent_from(f"replay:{tmp_path / 'empty'}", None)
    with pytest.raises(BadOption, match=r"cannot read .*nothing\.json"):
        agent_from(f"replay:{tmp_path / 'nothing.json'}", None)
    with pytest.raises(BadOption, match=r"cannot read .*nothing\.jsonl"):
        agent_from(f"replay:{tmp_path / 'nothing.jsonl'}", None)
    put(tmp_path / "two" / "a.json", IDS)
    put(tmp_path / "two" / "b.json", reference(3, "page.stop()"))
    with pytest.raises(BadOption, match=r"a\.json and .*b\.json give task 3 different sequences"):
        agent_from(f"replay:{tmp_path / 'two'}", None)


def test_one_line_of_records_is_a_run_whatever_its_name(tmp_path, env, record):
    (tmp_path / "one.json").write_text(json.dumps(replace(record(0)).to_json()))
    assert isinstance(agent_from(f"replay:{tmp_path / 'one.json'}", env.environment), ReplayAgent)
