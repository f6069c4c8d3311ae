"""Wordle: what its server does wrong, its scores and ends, and how guesses are read."""

import contextlib
import json

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.calls import Reply
from agentgym_gym.envs.wordle import WORDLE, WORDS, Guess
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.wire import Outcome, Score, Start
from any_server import AnyServer


def test_the_oracle_drops_a_word_that_the_game_does_not_have():
    oracle = load_oracle(WORDLE)
    oracle.reset(None, "", {})
    guesses = [oracle.act("Let's start Wordle!", {})]
    while guesses[-1] is not None:
        guesses.append(oracle.act("invalid word", {}))
    assert sorted(guess.word for guess in guesses[:-1]) == list(WORDS)


def test_unknown_words_are_forwarded_and_the_possible_words_are_neither_requested_nor_shown(started):
    server = started(AnyServer(WORDLE, pays=0))
    guesses = ["hello world", "shires", "ab", "x"]
    with contextlib.closing(AgentGymEnv("Wordle", server=server.url, action_format="bare")) as env:
        _, info = env.reset(options={"task_id": 3})
        for guess in guesses:
            env.step(f"Action: {guess}")
    assert server.sent == guesses
    assert not [request for request in server.requests if "vocab" in request.path]
    assert "available_actions" not in info


def test_the_rules_list_the_words_that_can_be_guessed():
    env = AgentGymEnv("Wordle", server="http://nowhere.test")
    assert len(WORDS) == 40
    assert all(word in env.system_prompt for word in WORDS)
    env.close()


@pytest.mark.parametrize(
    ("outcome", "score_now"),
    [
        (Outcome("g g g g g\n", 1.0, done=True), Score(1.0, True, True, 1.0)),
        (Outcome("b y b b b\n", 0.0, done=True), Score(0.0, False, True, 0.0)),
        (Outcome("b y b b b\n", 0.0, done=False), Score(0.0, False, False, 0.0)),
    ],
)
def test_the_score_is_1_for_the_word_else_0(outcome, score_now):
    assert WORDLE.wire.judge(Start(""), 0.0, "p a n i c", outcome) == score_now


def test_a_reset_returns_the_seed():
    call = next(WORDLE.wire.reset(7, 3))
    assert (call.path, call.content) == ("/wordle/reset", b'{"id": 7, "seed": 3}')
    assert next(WORDLE.wire.step(0, "s h i r e")).content == b'{"id": 0, "action": "s h i r e"}'


@pytest.mark.parametrize(
    "text",
    [
        *("s h i r e", "shire", "SHIRE", "S H I R E", "Shire.", "s-h-i-r-e", "s, h, i, r, e", "s_h_i_r_e"),
        *(
            "'s h i r e'",
            "**shire**",
            "guess shire",
            "Guess: s h i r e",
            "1. shire",
            "> shire",
            "s  h   i    r e",
        ),
    ],
)
def test_ways_to_guess(text):
    guess = FORMATS["bare"].parse(text, WORDLE.grammar)
    assert guess == Guess("shire")
    assert str(guess) == "s h i r e"


@pytest.mark.parametrize(
    "text", ["I am ok", "sh ire", "shir", "shires", "s h i r", "shirë", "sh1re", "s h i r e s"]
)
def test_marked_text_that_is_not_a_guess_is_an_unknown_action(text):
    with pytest.raises(errors.UnknownAction):
        FORMATS["tags"].parse(f"<action>{text}</action>", WORDLE.grammar)


def test_two_guesses_are_one_too_many():
    with pytest.raises(errors.ManyActions):
        FORMATS["tags"].parse("<action>shire\npanic</action>", WORDLE.grammar)


@pytest.mark.parametrize("value", ["Shire", "s h i r e", "shir", "", 5, None, "shirë"])
def test_a_typed_guess_is_strict(value):
    with pytest.raises(errors.BadArguments):
        Guess(value)


def test_a_call_may_spell_the_word():
    assert WORDLE.grammar.from_call("guess", {"word": "S H I R E"}) == Guess("shire")


def test_agentgyms_server_is_known_by_its_routes(recordings):
    """One server plays Maze and Wordle, and its greeting was recorded with Maze."""
    said = {row["path"]: row for row in recordings("maze.jsonl") if row["path"] in ("/", "/openapi.json")}
    flow = WORDLE.wire.identify()
    greeted, described = (json.dumps(said[path]["response_json"]).encode() for path in ("/", "/openapi.json"))
    call = flow.send(Reply(next(flow), 200, greeted))
    assert call.path == "/openapi.json"
    with pytest.raises(StopIteration):  # and not WrongServer
        flow.send(Reply(call, 200, described))
