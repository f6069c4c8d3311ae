"""The agent loop over AgentGym's TextCraft, on a real server over a real socket."""

from __future__ import annotations

import json

import gymnasium
import httpx
import pytest

from agentgym_gym.evaluate import load_oracle
from agentgym_gym.rollout import close_all
from agentgym_gym.testing import FaultyProxy
from clock import wait_until
from verl_worker import ScriptedModel

TEXTCRAFT = "agentgym_gym:agentgym/TextCraft-v0"
LENGTHS = {"prompt_length": 4_096, "response_length": 6_144}


def oracle_game(url, task):
    """Play a task without verl; return the observations, the replies and the rewards."""
    env = gymnasium.make(TEXTCRAFT, server=url)
    base = env.unwrapped
    oracle = load_oracle(base.environment)
    observation, info = env.reset(options={"task_id": task})
    oracle.reset(env, observation, info)
    observations, replies, rewards, over = [observation], [], [], False
    while not over:
        replies.append(base.action_space.action_format.render(oracle.act(observation, info), thought="So."))
        observation, reward, terminated, truncated, info = env.step(replies[-1])
        over = terminated or truncated
        observations.append(observation)
        rewards.append(float(reward))
    env.close()
    return observations, replies, rewards


def row(url, task):
    return {
        "env_id": TEXTCRAFT,
        "env_kwargs": json.dumps({"server": url}),
        "reset_options": json.dumps({"task_id": task}),
    }


@pytest.mark.parametrize("template", ["chatml", "headers"])
def test_the_oracle_wins_through_verl(play, textcraft_url, template):
    tasks = [0, 1, 2, 3]
    games = [oracle_game(textcraft_url, task) for task in tasks]
    assert {len(replies) for _, replies, _ in games} != {1}
    system = "You play TextCraft."
    by_goal = {observations[0]: replies for observations, replies, _ in games}

    def reply(seen):
        (replies,) = (replies for first, replies in by_goal.items() if first in seen)
        return replies[sum(said in seen for said in replies)]

    models = []

    def model(tokenizer):
        models.append(ScriptedModel(tokenizer, reply))
        return models[-1]

    played = play(
        model, [row(textcraft_url, task) for task in tasks], template=template, system=system, **LENGTHS
    )
    for i, (observations, replies, rewards) in enumerate(games):
        messages = [{"role": "system", "content": system}]
        for observation, said in zip(observations, replies, strict=False):
            messages += [{"role": "user", "content": observation}, {"role": "assistant", "content": said}]
        whole = played.tokenizer.apply_chat_template(messages, tokenize=False)
        assert played.text(i) == whole.removesuffix("\n")
        tokens = [token for said in conversation(models[0], observations[0]) for token in said]
        assert played.masked_in(i) == tokens
        assert played.field(i, "turn_scores") == rewards
        assert played.score(i) == 1.0
        turns = len(replies)
        assert played.record(i) == {
            "return": 1,
            "success": 1,
            "turns": turns,
            "invalid_actions": 0,
            "fault": 0,
            "cut": 0,
            "replays": 0,
        }
        assert played.turns(i) == 2 * turns


def conversation(model, first):
    """Return what the model said in the conversation that began with an observation."""
    (key,) = (key for key, asked in model.asked.items() if first in model.tokenizer.decode(asked[0][0]))
    return model.said[key]


def test_an_unreadable_reply_is_answered_with_advice_and_counted(play, textcraft_url):
    env = gymnasium.make(TEXTCRAFT, server=textcraft_url)
    env.reset(options={"task_id": 0})
    advice, *_ = env.step("I shall think.")
    env.close()
    replies = ["I shall think.", "Thought: a.\n\nAction: inventory"]
    played = play(lambda made: ScriptedModel(made, replies), [row(textcraft_url, 0)], max_turns=2, **LENGTHS)
    assert played.record(0) == {
        "return": 0,
        "success": 0,
        "turns": 2,
        "invalid_actions": 1,
        "fault": 0,
        "cut": 0,
        "replays": 0,
    }
    told = (
        f"I shall think.<|im_end|>\n<|im_start|>user\n{advice}<|im_end|>\n<|im_start|>assistant\nThought: a."
    )
    assert told in played.text(0)


def test_the_rollouts_of_a_row_begin_alike_by_its_seed(play, textcraft_url):
    rows = [{**row(textcraft_url, None), "seed": 11} for _ in range(3)]
    model = ["Thought: a.\n\nAction: inventory"]
    played = play(lambda tokenizer: ScriptedModel(tokenizer, model), rows, max_turns=1, **LENGTHS)
    assert len({played.prompt(i) for i in range(3)}) == 1


def test_nothing_is_left_open_on_the_server_after_many_episodes_with_faults(
    play, textcraft_url, report_at_end
):
    replies = ["Thought: a.\n\nAction: inventory"] * 3
    proxy = FaultyProxy(
        textcraft_url, share=0.16, kinds=["error", "lost", "garble"], stages=["reset", "step"], seed=5
    )
    with proxy:
        rows = [row(proxy.url, task) for task in range(100)]
        options = {"max_turns": 3, **LENGTHS}
        played = play(lambda made: ScriptedModel(made, replies), rows, **options)
        close_all()
        wait_until(lambda: all(made.closed for made in proxy.journal.created), 60)
    faults = [played.record(i)["fault"] for i in range(100)]
    assert sum(faults) >= 10
    failed = sum(proxy.injected.values()) + proxy.unplanned
    assert failed >= sum(faults)
    for i, fault in enumerate(faults):
        assert (sum(played.mask(i)) == 0) == bool(fault)
        assert played.record(i)["turns"] == 3 or fault
    made = len(proxy.journal.created)
    assert made >= 10
    with httpx.Client(base_url=textcraft_url, timeout=60) as client:
        for each in proxy.journal.created:
            answer = client.get("/observation", params={"id": each.id})
            assert answer.json() == {"error": f"The id {each.id} is not valid."}
    report_at_end(
        f"verl: 100 episodes, {failed} failed requests, {sum(faults):.0f} faults, {made} made, 0 left"
    )
