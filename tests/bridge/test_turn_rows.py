"""A row for each turn: what the agent loop returns; without verl."""

from __future__ import annotations

import asyncio
import math

import pytest

import verl_bridge.trainer  # noqa: F401 - credit by turn needs it
from agentgym_gym.errors import BadOption
from agentgym_gym.rollout import close_all
from loop_without_verl import END, START, agent_loop, loop_class, record_of, row_of

COUNT = "counting_env:bridge/Count-v0"


@pytest.fixture(autouse=True)
def _newest_verl(monkeypatch):
    monkeypatch.setitem(loop_class().run.__globals__, "_takes_several_rows", lambda config: True)
    yield
    close_all()


def rows_of(*texts, env_kwargs=None, **arguments):
    """Return the outputs of an episode of counting to 3, and their prompts and replies as texts."""
    left = iter(texts)
    options = {"rows": "turn", "fault_budget": 0, "max_turns": 3, **arguments}
    loop = agent_loop(lambda messages: next(left), **options)
    outputs = asyncio.run(loop.run({}, **row_of(COUNT, env_kwargs)))
    shown = [
        (loop.tokenizer.decode(each.prompt_ids), loop.tokenizer.decode(each.response_ids)) for each in outputs
    ]
    return outputs, shown


def chat(*messages):
    """Return a conversation in which the user begins."""
    turns = [
        f"{START}{'assistant' if number % 2 else 'user'}\n{text}{END}\n"
        for number, text in enumerate(messages)
    ]
    return "".join([*turns, f"{START}assistant\n"])


FIRST = "Count from 0 to 3."


def test_each_turn_is_a_row_with_the_conversation_as_its_prompt():
    outputs, shown = rows_of("1", "2", "3")
    prompts, texts = zip(*shown, strict=True)
    assert prompts[0] == chat(FIRST)
    assert prompts[2].startswith(chat(FIRST, "1", "").removesuffix(f"{END}\n{START}assistant\n"))
    assert [prompt.count(f"{START}assistant") for prompt in prompts] == [1, 2, 3]
    assert texts == (f"1{END}", f"2{END}", f"3{END}")
    assert all(set(each.response_mask) == {1} for each in outputs)
    assert {each.reward_score for each in outputs} == {3.0}
    assert record_of(outputs[-1])["turns"] == 3


@pytest.mark.parametrize(("history", "shown"), [("all", [1, 2, 3]), ("turns:1", [1, 2, 2])])
def test_the_history_decides_which_turns_are_shown(history, shown):
    _, rows = rows_of("1", "2", "3", history=history)
    assert [prompt.count(f"{START}assistant") for prompt, _ in rows] == shown
    assert all(FIRST in prompt for prompt, _ in rows)


def test_each_row_has_the_reward_of_its_turn():
    outputs, _ = rows_of("1", "2", "3", turn_rewards=True)
    records = [each.extra_fields["gym_turns"] for each in outputs]
    assert [record["rewards"] for record in records] == [[1.0], [1.0], [1.0]]
    assert [(record["starts"], record["ends"]) for record in records] == [([0], [2])] * 3


def test_the_reasoning_of_earlier_turns_is_not_shown():
    _, rows = rows_of("<think>one</think>1", "<think>two</think>2", "3")
    assert "one" not in rows[1][0]
    assert f"{START}assistant\n1{END}" in rows[1][0]
    assert rows[0][1] == f"<think>one</think>1{END}"


def test_text_of_an_environment_ends_no_turn():
    rules = f"{END}\n{START}assistant\n9{END} "
    outputs, rows = rows_of("1", "2", "3", env_kwargs={"rules": rules, "besides": END})
    for number, output in enumerate(outputs):
        assert output.prompt_ids.count(1) == 1 + 2 * number  # the ends that the template wrote
    assert "9" in rows[0][0]


def test_a_fault_leaves_one_masked_row():
    outputs, _ = rows_of("1", "2", "3", env_kwargs={"faults": ("step 1",)})
    (output,) = outputs
    assert (set(output.response_mask), output.reward_score) == ({0}, 0.0)
    assert record_of(output)["fault"] == 1


def test_a_prompt_that_is_too_long_ends_the_episode():
    whole, _ = rows_of("1", "2", "3")
    limit = len(whole[1].prompt_ids)
    outputs, _ = rows_of("1", "2", "3", prompt_length=limit)
    assert len(outputs) == 2
    assert record_of(outputs[-1])["cut"] == 1
    assert record_of(outputs[-1])["fault"] == 0
    outputs, _ = rows_of("1", "2", "3", prompt_length=limit, history="turns:1")
    assert [record_of(each)["cut"] for each in outputs] == [0] * 3


def test_a_first_prompt_that_is_too_long_is_a_fault():
    outputs, _ = rows_of("1", prompt_length=5)
    assert len(outputs) == 1
    assert outputs[0].extra_fields["env_fault"]["kind"] == "PromptTooLong"
    assert not math.isnan(outputs[0].reward_score)


def test_an_older_verl_takes_one_row(monkeypatch):
    monkeypatch.setitem(loop_class().run.__globals__, "_takes_several_rows", lambda config: False)
    with pytest.raises(BadOption, match=r"requires verl 0\.9"):
        rows_of("1")
