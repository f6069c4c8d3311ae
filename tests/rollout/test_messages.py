"""The system prompt of an environment, and the messages that are made of it."""

from __future__ import annotations

import asyncio

import gymnasium
import pytest

from agentgym_gym.errors import BadOption
from agentgym_gym.rollout import EnvMaker, History, Pool, drop_blank_system, merge_system
from counting_env import Count, Instructed

INSTRUCTED = "counting_env:bridge/Instructed-v0"

TASK = {"role": "user", "content": "Count from 0 to 3."}


def first_chat(env, **options):
    """Return the messages with which an episode begins."""

    async def work():
        pool = Pool(env, **options)
        try:
            async with pool.episode(task=4) as episode:
                return episode.chat()
        finally:
            await pool.close()

    return asyncio.run(work())


class Prompted(gymnasium.Wrapper):
    """Has its own system prompt, around any environment."""

    def __init__(self, env, system_prompt):
        super().__init__(env)
        self.system_prompt = system_prompt


class Failing(gymnasium.Wrapper):
    @property
    def system_prompt(self):
        raise RuntimeError("not yet")


@pytest.mark.parametrize(
    ("make", "prompt"),
    [
        (Count, None),
        (lambda: Instructed(Count()), Instructed.system_prompt),
        (lambda: gymnasium.wrappers.TimeLimit(Instructed(Count()), 3), Instructed.system_prompt),
        (lambda: Prompted(Instructed(Count()), "Outer."), "Outer."),
        (lambda: Prompted(Instructed(Count()), " \n"), None),
        (lambda: Prompted(Instructed(Count()), b"bytes"), None),
        (lambda: Prompted(Count(), "half \ud83d"), "half ?"),
        (lambda: Failing(Count()), None),
    ],
)
def test_the_system_prompt_comes_from_the_outermost_wrapper(make, prompt):
    system = [] if prompt is None else [{"role": "system", "content": prompt}]
    assert first_chat(make) == [*system, TASK]


@pytest.mark.parametrize("isolate", ["thread", pytest.param("process", marks=pytest.mark.slow)])
def test_an_episode_has_the_system_prompt_of_a_wrapper(isolate):
    assert EnvMaker(INSTRUCTED).facts().system_prompt == Instructed.system_prompt
    system = {"role": "system", "content": Instructed.system_prompt}
    assert first_chat(INSTRUCTED, isolate=isolate) == [system, TASK]


def chats(history, *replies, skipped=()):
    """Return the messages before each reply except the skipped ones, and the records of the steps."""

    async def work():
        async with Pool(Count) as pool, pool.episode(history=history) as episode:
            requests = []
            for number, reply in enumerate(replies):
                if number not in skipped:
                    requests.append([message["content"] for message in episode.chat()])
                await episode.step(reply)
            return requests, episode.steps

    return asyncio.run(work())


@pytest.mark.parametrize("history", ["turns:1", History(turns=1)])
def test_an_episode_returns_the_messages_that_the_history_keeps(history):
    requests, steps = chats(history, "4", "1", "5")
    goal = TASK["content"].replace("4", "0")
    assert requests == [[goal], [goal, "4", "You are at 0."], [goal, "1", "You are at 1."]]
    assert [step.get("omitted_turns") for step in steps] == [None, None, 1]


def test_the_messages_are_the_same_if_earlier_ones_were_not_requested():
    every, _ = chats("turns:1", "4", "1", "5", "6")
    last, steps = chats("turns:1", "4", "1", "5", "6", skipped=(0, 1, 2))
    assert last == every[-1:]
    assert [step.get("omitted_turns") for step in steps] == [None, None, None, 2]


def test_repeated_requests_return_the_same_messages_which_a_caller_may_change():
    async def work():
        async with Pool(Count) as pool, pool.episode(history="tokens:1") as episode:
            for reply in ("4", "5"):
                await episode.step(reply)
            first = episode.chat()
            first[0]["content"] = "changed"
            return first, episode.chat()

    first, second = asyncio.run(work())
    assert first[1:] == second[1:]
    assert second[0]["content"] == TASK["content"]


def test_a_history_that_is_no_policy_is_an_error_before_the_episode():
    with pytest.raises(BadOption, match="history='few'"):
        Pool(Count).episode(history="few")


@pytest.mark.parametrize(
    ("messages", "merged"),
    [
        ([("system", "Win."), ("user", "o0")], [("user", "Win.\n\no0")]),
        (
            [("system", "Win."), ("user", "a"), ("assistant", "b")],
            [("user", "Win.\n\na"), ("assistant", "b")],
        ),
        ([("system", "Win."), ("assistant", "b")], [("user", "Win."), ("assistant", "b")]),
        ([("user", "o0")], [("user", "o0")]),
        ([], []),
    ],
)
def test_a_system_message_is_merged_into_the_first_user_message(messages, merged):
    def of(pairs):
        return [{"role": role, "content": content} for role, content in pairs]

    assert merge_system(of(messages)) == of(merged)


def test_only_blank_system_messages_are_dropped():
    kept = [
        {"role": "system", "content": "Win."},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": None},
        {"role": "system", "content": [{"type": "text", "text": "Win."}]},
    ]
    blank = [{"role": "system", "content": text} for text in ("", " \n\t", None)]
    assert drop_blank_system([*blank, *kept]) == kept
