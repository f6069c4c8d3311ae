"""The system prompt of an environment, and the messages that are made of it."""

from __future__ import annotations

import asyncio

import gymnasium
import pytest

from agentgym_gym.rollout import EnvMaker, Pool, drop_blank_system, row_messages
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


@pytest.mark.parametrize("prompt", [None, "", " \n"])
def test_without_a_system_prompt_a_row_has_a_blank_message_that_no_model_sees(prompt):
    assert row_messages(prompt) == [{"role": "system", "content": ""}]
    assert drop_blank_system(row_messages(prompt)) == []


def test_only_blank_system_messages_are_dropped():
    kept = [
        {"role": "system", "content": "Win."},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": None},
        {"role": "system", "content": [{"type": "text", "text": "Win."}]},
    ]
    blank = [{"role": "system", "content": text} for text in ("", " \n\t", None)]
    assert drop_blank_system([*blank, *kept]) == kept
