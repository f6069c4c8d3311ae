"""What is special about MiniWoB: its tasks, its splits, its score, the protocol of this project."""

from __future__ import annotations

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.calls import Reply
from agentgym_gym.envs.miniwob import MINIWOB, TASK_NAMES, UNSEEN_NAMES, VARIATIONS, task_of
from fake_server import FakeServer, http

GRAMMAR = MINIWOB.grammar
PAGE = "OBJECTIVE: Click the button.\n\n[1] RootWebArea 'Click Test Task'\n\t[2] button 'Click Me!'"


class Pages(FakeServer):
    """A server that ends each episode with a reward."""

    def __init__(self, reward):
        self.reward, self.actions = reward, []
        super().__init__(self._answer)

    def _answer(self, request):
        body = request.json if request.method == "POST" else {}
        if request.path == "/step":
            self.actions.append(body["action"])
        found = {"id": 0, "observation": PAGE, "goal": "Click the button.", "task": "click-test"}
        return {
            "/": MINIWOB.wire.greeting,
            "/create": {"id": 0},
            "/reset": {**found, "reward": 0, "done": False},
            "/step": {"observation": PAGE, "reward": self.reward, "done": True},
            "/close": True,
        }.get(request.path, http(b"", "404 Not Found"))


def test_a_task_is_a_page_and_a_seed():
    assert task_of(0) == (TASK_NAMES[0], 0)
    assert task_of(VARIATIONS + 7) == (TASK_NAMES[1], 7)
    with pytest.raises(IndexError):
        task_of(len(TASK_NAMES) * VARIATIONS)


def test_the_splits_are_by_seed_and_some_pages_are_in_no_training():
    train, test, unseen = (MINIWOB.splits[name] for name in ("train", "test", "test_unseen"))
    assert {task_of(task)[0] for task in unseen} == set(UNSEEN_NAMES)
    assert {task_of(task)[0] for task in train} == set(TASK_NAMES) - set(UNSEEN_NAMES)
    assert {task_of(task)[0] for task in test} < set(TASK_NAMES) - set(UNSEEN_NAMES)
    assert max(task_of(task)[1] for task in train) < min(task_of(task)[1] for task in test)


@pytest.mark.parametrize(("reward", "success"), [(1, True), (0.5, False), (-1, False)])
def test_the_score_is_the_reward_of_the_page_and_success_is_the_full_one(started, reward, success):
    server = started(Pages(reward))
    env = AgentGymEnv("MiniWoB", server=server.url)
    observation, info = env.reset(options={"task_id": 5})
    assert (observation, info["goal"]) == (PAGE, "Click the button.")
    _, paid, terminated, truncated, info = env.step("Thought: x\nAction: ```click [2]```")
    env.close()
    assert server.actions == ["click [2]"]
    assert (paid, terminated, truncated) == (reward, True, False)
    assert (info["score"], info["success"]) == (reward, success)


def test_a_reward_out_of_range_is_a_fault():
    flow = MINIWOB.wire.step(0, "click [2]")
    call = next(flow)
    with pytest.raises(errors.BadReply, match="from -1 to 1"):
        flow.send(Reply(call, 200, b'{"observation": "", "reward": 2, "done": true}'))


@pytest.mark.parametrize("text", ["goto [http://a.test]", "new_tab", "stop [x]"])
def test_there_are_no_tabs_and_no_addresses(text):
    with pytest.raises(errors.UnknownAction):
        FORMATS["tags"].parse(f"<action>{text}</action>", GRAMMAR)
