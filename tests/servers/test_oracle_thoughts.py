"""The thoughts of oracles: before each action, short, and kept by every action format."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import agentgym_gym
from agentgym_gym import AgentGymEnv
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.formats import FORMATS, Bare, get_format
from local_game import LocalGame
from needs import OTHER_PROGRAMS, with_needs

ROOT = Path(__file__).resolve().parents[2]
PLAYED = [
    each
    if each.values[0].name.lower() not in OTHER_PROGRAMS
    else pytest.param(*each.values, marks=[*each.marks, pytest.mark.exhaustive])
    for each in with_needs(each for each in agentgym_gym.environments() if each.oracle)
]
NAME = re.compile(r"(?<=[^.:] )[A-Z][a-z]{2,}|B0\w{8}")  # of a thing, or a product; no start of a sentence
SAMPLE = 1  # tasks per split
MOST_WORDS = 100  # of one thought; the mean is a quarter of this


def tasks_of(environment):
    """Return the first tasks of each split that is not all of them."""
    splits = {split: tasks for split, tasks in environment.splits.items() if split != "all"}
    firsts = [task for tasks in splits.values() for task in tasks[:SAMPLE]]
    return sorted(set(firsts)) or list(environment.splits["all"][:SAMPLE])


@pytest.fixture(scope="module", params=PLAYED, ids=lambda environment: environment.name)
def games(request, local_url):
    """The environment, and the replies of its oracles in the first tasks of each split."""
    environment, replies, known = request.param, [], []
    with AgentGymEnv(environment.name, server=local_url(environment.name.lower())) as env:
        for task in tasks_of(environment):
            silent, thinking = (load_oracle(environment, thoughts=thoughts) for thoughts in (False, True))
            observation, info = env.reset(options={"task_id": task})
            for oracle in (silent, thinking):
                oracle.reset(env, observation, info)
            over, seen = False, env.system_prompt
            while not over:
                reply = thinking.act(observation, info)
                assert reply.action == silent.act(observation, info)
                seen += f"\n{observation}"
                replies.append(reply)
                known.append(seen)
                observation, _, terminated, truncated, info = env.step(reply.action)
                over = terminated or truncated
            assert info["success"], (environment.name, task)
    return environment, replies, known


def test_each_action_has_a_short_thought(games):
    environment, replies, _ = games
    for reply in replies:
        assert 0 < len(reply.thought.split()) <= MOST_WORDS, (environment.name, reply)
        assert "\n" not in reply.thought


def test_every_format_keeps_the_thought_and_the_action(games):
    environment, replies, _ = games
    for action_format in map(get_format, [*FORMATS, "tool_calls"]):
        for reply in replies:
            text = action_format.render(reply.action, reply.thought)
            assert action_format.parse(text, environment.grammar) == reply.action
            if not isinstance(action_format, Bare):
                assert action_format.thought_of(text, reply.action) == reply.thought


def test_a_thought_names_only_what_the_player_has_seen(games):
    environment, replies, known = games
    for reply, seen in zip(replies, known, strict=True):
        for name in NAME.findall(reply.thought):
            assert name.lower() in seen.lower(), (environment.name, reply)


def test_an_oracle_without_thoughts_is_refused():
    environment = replace(agentgym_gym.find("Maze"), oracle="agentgym_gym.evaluate:RandomAgent")
    assert load_oracle(environment)
    with pytest.raises(BadOption, match="writes no thoughts"):
        load_oracle(environment, thoughts=True)


def thinking(name, served_by=None):
    oracle = load_oracle(agentgym_gym.find(name), thoughts=True)
    oracle.reset(None, "", {"task_id": 0, "served_by": served_by})
    return oracle


def test_the_example_of_the_docs_is_a_reply_of_the_oracle():
    page = (ROOT / "docs" / "trajectories.md").read_text()
    with LocalGame("Weather") as game:
        game.reset(0)
    oracle = thinking("Weather", game.head)
    replies = iter(lambda: oracle.act("", {}), None)
    assert any(reply.thought in page for reply in replies)


def test_maze_plans_around_the_walls_that_it_has_seen():
    here = (
        "The goal is at position 3, 1. Your current position is at position 1, 1. There is a wall below you."
    )
    reply = thinking("Maze").act(here, {})
    assert str(reply.action) == "move right"
    assert reply.thought == "The goal is 2 down. Free: up, right, left. My way: right 1, down 2, left 1."


def test_wordle_sums_up_its_answers():
    oracle = thinking("Wordle")
    assert [oracle.act(answer, {}).thought for answer in ("", "b b b b y", "y g g b y")] == [
        "I know no letter yet. s o l a r has common letters.",
        "Elsewhere: r not 5. Not in it: s, o, l, a. c r i m p fits.",
        "In place: _ r i _ _. Elsewhere: c not 1, p not 5. Not in it: s, o, l, a, m. p r i c k fits.",
    ]
