"""The rules of the local Wordle server's games, and its words."""

from __future__ import annotations

import re

import pytest

from agentgym_gym import errors
from agentgym_gym.local_servers import server_kind
from local_game import LocalGame


@pytest.fixture(scope="module")
def game():
    with LocalGame("Wordle") as game:
        yield game


def with_words(folder, *words):
    """Return the game of a folder with these words."""
    (folder / "words.txt").write_text("\n".join(words))
    return LocalGame("Wordle", data=folder)


def test_the_words_are_many_of_five_letters_and_none_twice(game):
    game.reset(0)
    words = game.get("/wordle/filtered_vocab", id=game.id, whole=True).json()
    assert len(words) == 1748
    assert sorted(set(words)) == words
    assert all(re.fullmatch("[a-z]{5}", word) for word in words)


@pytest.mark.parametrize(
    ("guess", "hidden", "marks"),
    [
        ("eerie", "elder", "g y y b y"),
        ("solar", "aroma", "b y b y y"),  # as recorded, like the next three
        ("panic", "aroma", "b y b b b"),
        ("knoll", "wrung", "b y b b b"),
        ("robot", "those", "b y b y y"),
    ],
)
def test_each_letter_is_marked_separately(tmp_path, guess, hidden, marks):
    with with_words(tmp_path, guess, hidden) as game:
        answers = [game.play(task, [guess]).observation for task in (0, 1)]
    assert sorted(answers) == sorted(["g g g g g\n", f"{marks}\n"])


def test_guesses_are_words_with_blanks_or_without(game):
    game.reset(0)
    assert game.step("s u g a r") == game.step(" sugar\n")
    assert game.step("sugar").observation != "invalid word"


@pytest.mark.parametrize("action", ["", "zzzzz", "S O L A R", "solar sugar", "\0", "\ud800", "x" * 1_000_000])
def test_text_that_is_not_a_word_costs_a_try(tmp_path, action):
    with with_words(tmp_path, "solar", "sugar", "shard") as game:
        game.reset(0)
        outcomes = [game.step(action) for _ in range(6)]
        assert [(each.observation, each.reward) for each in outcomes] == [("invalid word", 0)] * 6
        assert [each.done for each in outcomes] == [False] * 5 + [True]
        with pytest.raises(errors.EnvironmentFailed, match="has finished"):
            game.step(action)


def test_the_hidden_word_stays_through_the_game(game):
    """A word that the answers do not fit wins too, where AgentGym's server would draw another one."""
    guesses, _ = game.win(3)
    for opening in ("crane", "moist"):
        assert game.play(3, [opening, guesses[-1]]).reward == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot read"),
        (b"\xff", "cannot read"),
        (b"", "0 words"),
        (b"sugar\nteeths brush", "teeths"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, content, reason):
    if content is not None:
        (tmp_path / "words.txt").write_bytes(content)
    with pytest.raises(errors.BadOption, match=reason):
        server_kind("wordle").app(data=tmp_path)
