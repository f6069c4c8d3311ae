"""The rules of the local Wordle server's games, the words, and the oracle."""

from __future__ import annotations

import hashlib
import re

import pytest

from agentgym_gym.envs.wordle import WORDLE
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import load_oracle
from agentgym_servers.wordle._game import MAX_TRIES, START, Game, marks
from agentgym_servers.wordle._world import WORDS, World, world_of, world_of_data

TASKS = WORDLE.splits["all"]
DIGEST = "31042d7ea422a09f930ffd7182e27f450bea3264c9a178e80eb1579e982ac150"


def test_the_words_are_many_of_five_letters_and_none_twice():
    assert len(WORDS) == 1748
    assert sorted(set(WORDS)) == list(WORDS)
    assert all(re.fullmatch("[a-z]{5}", word) for word in WORDS)


def test_the_world_is_the_same_everywhere():
    told = "\n".join(map(world_of(0).hidden, TASKS))
    assert hashlib.sha256(told.encode()).hexdigest() == DIGEST


def test_each_task_hides_another_word_and_each_seed_hides_them_in_another_order():
    hidden = [world_of(0).hidden(task) for task in TASKS]
    assert len(set(hidden)) == len(TASKS) == 980
    assert [world_of(1).hidden(task) for task in TASKS] != hidden


@pytest.mark.parametrize("seed", [-1, 10**18, -(10**30)])
def test_any_seed_is_a_task(seed):
    assert world_of(0).hidden(seed) in WORDS


def test_each_letter_is_marked_by_itself():
    assert marks("eerie", "elder") == "g y y b y"
    assert marks("solar", "aroma") == "b y b y y"  # as recorded


@pytest.fixture
def game():
    return Game(World(("solar", "sugar", "shard"), 0), 0)


def test_guesses_are_words_with_blanks_or_without(game):
    assert game.play("s u g a r") == game.play(" sugar\n")


@pytest.mark.parametrize("action", ["", "zzzzz", "S O L A R", "solar sugar", "\0", "\ud800", "x" * 1_000_000])
def test_what_is_no_word_is_a_try(game, action):
    outcomes = [game.play(action) for _ in range(MAX_TRIES)]
    assert [(each.observation, each.reward) for each in outcomes] == [("invalid word", 0)] * 6
    assert [each.done for each in outcomes] == [False] * 5 + [True]
    with pytest.raises(ValueError, match="over"):
        game.play(action)


def test_the_possible_words_fit_the_answers_and_hold_the_hidden_one():
    game = Game(world_of(0), 7)
    assert game.possible() == list(WORDS)
    answer = game.play("crane").observation.strip()
    left = game.possible()
    assert world_of(0).hidden(7) in left
    assert left == [word for word in WORDS if marks("crane", word) == answer]


def test_the_hidden_word_stays_through_the_game():
    """So a word that the answers do not fit wins too, where AgentGym's server would draw another one."""
    for opening in ("crane", "moist"):
        game = Game(world_of(0), 3)
        game.play(opening)
        assert game.play(world_of(0).hidden(3)).reward == 1


# --- a file of the user's ---


def test_words_of_a_file(tmp_path):
    (tmp_path / "words.txt").write_text("Solar\nsugar\n\nsolar\n")
    assert world_of_data(tmp_path).words == ("solar", "sugar")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot read"),
        (b"\xff", "cannot read"),
        (b"", "0 words"),
        (b"sugar\ntooth brush", "'brush'|'too"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, content, said):
    if content is not None:
        (tmp_path / "words.txt").write_bytes(content.replace(b"tooth", b"teeths"))
    with pytest.raises(BadOption, match="teeths" if b"tooth" in (content or b"") else said):
        world_of_data(tmp_path)


# --- the oracle ---


def play(task: int, seed: int = 0) -> tuple[float, int]:
    """Return the reward of the oracle's game and its number of guesses."""
    oracle = load_oracle(WORDLE)
    oracle.reset(None, START, {"served_by": f"agentgym-servers/2 (Wordle, seed {seed})"})
    game, told, guesses = Game(world_of(seed), task), START, 0
    while not game.done:
        told = game.play(oracle.act(told, {}).word).observation
        guesses += 1
    return game.reward, guesses


def test_the_oracle_wins_some_tasks():
    assert {play(task)[0] for task in TASKS[::140]} == {1}


@pytest.mark.slow
def test_the_oracle_wins_every_task(report_at_end):
    played = [play(task) for task in TASKS]
    assert [reward for reward, _ in played] == [1] * 980
    guesses = [guesses for _, guesses in played]
    report_at_end(
        f"the oracle of Wordle wins by {sum(guesses) / 980:.2f} guesses on average, {max(guesses)} at most"
    )
    assert max(guesses) <= 6
