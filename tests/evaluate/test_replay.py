"""Kept runs and WebArena's references, played."""

from __future__ import annotations

import json
import shutil

import pytest

import command_line
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import AgentReply, ReplayAgent, RunFolder, evaluate, load_oracle, read_run
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
        first = evaluate(env, load_oracle(env.environment), range(3), on_episode=folder.add)
    for path in (tmp_path / "a", tmp_path / "a" / "episodes.jsonl"):
        again = evaluate(env, ReplayAgent(path), range(3))
        assert [each.replies for each in again] == [each.replies for each in first]
        assert [each.rewards for each in again] == [each.rewards for each in first]


def test_each_sample_has_its_own_replies(tmp_path, env, record):
    samples = [record(3, sample=n, messages=said(f"{n}"), turns=1) for n in (0, 2)]
    agent = ReplayAgent(write(tmp_path / "a", *samples, record(3, sample=1, fault="ServerTimeout")))
    info = {"task_id": 3, "goal": "craft item 3"}
    assert played(agent, env, info) == ["0"]
    assert played(agent, env, {**info, "sample": 2}) == ["2"]
    with pytest.raises(BadOption, match=r"\[0, 2\], not for sample 1"):
        agent.reset(env, "", {**info, "sample": 1})


def test_two_tasks_of_one_goal_differ_by_their_ids(tmp_path, env, record):
    records = [record(n, goal="craft stick", messages=said(f"{n}"), turns=1) for n in (4, 5)]
    agent = ReplayAgent(write(tmp_path / "a", *records))
    for task, reply in ((4, "4"), (5, "5"), (9, "4")):
        assert played(agent, env, {"task_id": task, "goal": "craft stick"}) == [reply]
    assert played(agent, env, {"task_id": 5}) == ["5"]


def test_a_task_that_is_missing_is_named(tmp_path, env, record):
    agent = ReplayAgent(write(tmp_path / "a", record(0), record(1, fault="ServerTimeout")))
    assert agent.refusal(env, 0) is None
    assert agent.refusal(env, 1) == (
        f"{tmp_path}/a/episodes.jsonl has no complete episode of agentgym/TextCraft-v0 with task 1"
    )
    with pytest.raises(BadOption, match=r"with task 1$"):
        agent.reset(env, "", {"task_id": 1})
    with pytest.raises(BadOption, match=r"with the goal 'craft item 1' \(task 1\)"):
        agent.reset(env, "", {"task_id": 1, "goal": "craft item 1"})
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
    with pytest.raises(BadOption, match=r"choose one .*/runs/a, .*/runs/b"):
        ReplayAgent(tmp_path / "runs")


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
def eval_by(browser, tmp_path):
    """Plays a task of WebArena by `agentgym eval --agent replay:PATH`; returns what the command left."""

    def play(path, task, *, name="WebArena", url=browser.url):
        words = ["--server", url, "--tasks", task, "--out", tmp_path / "run"]
        browser.steps.clear()
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        return command_line.run("eval", name, "--agent", f"replay:{path}", *words)

    return play


def put(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_a_reference_is_played(tmp_path, eval_by, browser):
    put(tmp_path / "tasks" / "3.json", IDS)
    put(tmp_path / "tasks" / "all.json", [IDS, LOCATORS, WITHOUT])
    for path in (tmp_path / "tasks" / "3.json", tmp_path / "tasks" / "all.json", tmp_path / "tasks"):
        result = eval_by(path, 3)
        assert result.exit_code == 0, result.stderr
        assert browser.steps == [
            "```type [13] [xyz@gmail.com] [0]```",
            "```click [65]```",
            "```stop [Wilson and Reader]```",
        ]
        (record,) = read_run(tmp_path / "run").records
        assert (record.success, record.score, record.parse_errors) == (True, 1.0, {})


CALLS = {
    'page.goto("http://shop.test/a?b=[1]")': "goto [http://shop.test/a?b=[1]]",
    "page.press('Meta+A')": "press [Meta+A]",
    'page.keyboard.press("Enter")': "press [Enter]",
    "page.scroll(down)": "scroll [down]",
    'page.scroll("up")': "scroll [up]",
    "page.page_focus(1)": "tab_focus [1]",
    "page.new_tab()": "new_tab",
    "page.go_back()": "go_back",
    "page.go_forward()": "go_forward",
    "page.page_close()": "close_tab",
    "page.stop()": "stop []",
}


@pytest.mark.parametrize(
    ("tag", "sequence", "actions"),
    [
        ("playwright", list(CALLS), list(CALLS.values())),
        ("playwright", ['page.stop("a [b]")'], ["stop [a [b]]"]),
        ("id_accessibility_tree", "\nclick [1]\n  stop \n", ["click [1]", "stop []"]),
    ],
)
def test_actions_without_an_element_are_played(tmp_path, eval_by, browser, tag, sequence, actions):
    task = reference(1, tag=tag)
    task["reference_action_sequence"]["action_sequence"] = sequence
    result = eval_by(put(tmp_path / "1.json", task), 1)
    assert result.exit_code == 0, result.stderr
    assert browser.steps == [f"```{each}```" for each in actions]


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
def test_inexpressible_actions_are_named_and_nothing_is_played(tmp_path, eval_by, browser, action, tag, why):
    first = "page.new_tab()" if tag == "playwright" else "new_tab"
    path = put(tmp_path / "t.json", reference(8, first, action, tag=tag))
    refused = eval_by(path, 8)
    assert refused.exit_code == 2
    assert "t.json: task 8 cannot be played" in refused.stderr
    assert why in refused.stderr
    assert len(refused.stderr) < 1_000
    assert browser.steps == []


def test_validation_names_a_task_that_cannot_be_played(tmp_path, browser):
    tasks = [IDS, WITHOUT, reference(8, "page.new_tab()", "import os")]
    words = ["--gold", f"replay:{put(tmp_path / 't.json', tasks)}", "--server", browser.url]
    result = command_line.run("validate", "WebArena", *words, "--tasks", "3,5,8", "--json")
    without, unreadable = json.loads(result.stdout)["no_solution"]
    assert (without["task_id"], "has no task 5" in without["why"]) == (5, True)
    assert (unreadable["task_id"], "task 8 cannot be played" in unreadable["why"]) == (8, True)


def test_a_task_without_a_reference_is_named(tmp_path, eval_by, textcraft_url):
    path = put(tmp_path / "t.json", [IDS, WITHOUT])
    for task in (5, 6):
        assert f"has no task {task} with a reference_action_sequence" in eval_by(path, task).stderr
    refused = eval_by(path, 3, name="TextCraft", url=textcraft_url)
    assert "which agentgym/TextCraft-v0 cannot play" in refused.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[3]", "entry 0 is not a task of WebArena"),
        ('[{"task_id": "3"}]', "entry 0 is not a task"),
        ('{"task_id": 3, "reference_action_sequence": []}', "task 3 should have an 'action_set_tag'"),
        (
            '{"task_id": 3, "reference_action_sequence": {"action_set_tag": "x", "action_sequence": [3]}}',
            "'action_sequence' of texts",
        ),
    ],
)
def test_an_invalid_task_file_is_named(tmp_path, eval_by, content, said):
    refused = eval_by(put(tmp_path / "t.json", content), 3)
    assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr


def test_files_that_are_missing_or_disagree_are_named(tmp_path, eval_by):
    (tmp_path / "empty").mkdir()
    put(tmp_path / "two" / "a.json", IDS)
    put(tmp_path / "two" / "b.json", reference(3, "page.stop()"))
    for name, said in {
        "empty": "contains neither a run nor task files",
        "nothing.json": "cannot read",
        "nothing.jsonl": "cannot read",
        "two": "b.json give task 3 different sequences",
    }.items():
        refused = eval_by(tmp_path / name, 3)
        assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr


def test_one_line_of_records_is_a_run_under_any_name(tmp_path, env, eval_by, textcraft_url):
    (record,) = evaluate(env, load_oracle(env.environment), [0])
    path = put(tmp_path / "one.json", record.to_json())
    result = eval_by(path, 0, name="TextCraft", url=textcraft_url)
    assert result.exit_code == 0, result.stderr
    assert [each.score for each in read_run(tmp_path / "run").records] == [1.0]
