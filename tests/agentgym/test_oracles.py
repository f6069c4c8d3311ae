"""AgentGym's own clients play the actions of our oracles on every local server, and win."""

from __future__ import annotations

import pytest

import needs
from agentgym_checkout import import_or_skip
from agentgym_pair import NAMES, is_full_score, sample, winning_replies

import_or_skip("agentenv.envs")

GAMES = 20

SHOWN_FIRST = {
    # Before the first reply, these clients show rules of their own. Here the rules are in the system prompt.
    "Maze": lambda client, ours: f"{client.first_observation}\n{ours}",
    "Wordle": lambda client, ours: client.first_observation.replace(
        "{{vocab}}", "\n".join(client.info["vocab"])
    ),
}


@pytest.mark.parametrize("name", needs.with_needs(NAMES))
def test_their_client_wins_each_game_with_our_oracles_replies(name, pair, report_at_end):
    both = pair(name)
    tasks, replies = sample(name, GAMES), 0
    assert len(tasks) == GAMES
    for task in tasks:
        winning = winning_replies(both.env, task)
        theirs_first, ours_first = both.reset(task)
        assert theirs_first == SHOWN_FIRST.get(name, lambda _, ours: ours)(both.client, ours_first)
        for reply in winning:
            theirs, ours = both.step(reply)
            assert theirs == ours, (task, reply)
        assert theirs.done, (task, winning)
        assert is_full_score(name, theirs.reward), (task, winning)
        replies += len(winning)
    report_at_end(
        f"{name}: AgentGym's client won {len(tasks)} of {len(tasks)} games, {replies} replies equal"
    )


@pytest.mark.parametrize("name", needs.with_needs(NAMES))
def test_their_client_plays_on_a_process_with_all_servers(name, pair, urls):
    """There too, AgentGym's clients of Maze and Wordle take the address with their prefix."""
    both = pair(name, url=f"{urls('all')}/{name.lower()}")
    (task,) = sample(name, 1)
    winning = winning_replies(both.env, task)
    both.reset(task)
    for reply in winning:
        theirs, ours = both.step(reply)
        assert theirs == ours
    assert theirs.done
    assert is_full_score(name, theirs.reward)
