"""Wordle: what its server does wrong, its scores and ends, and how guesses are read."""

import json
import random

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.calls import Reply
from agentgym_gym.envs.wordle import WORDLE, WORDS, Guess
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.wire import Outcome, Score, Start
from agentgym_servers.wordle._oracle import marks
from fake_server import FakeServer

SAID = ("observation", "reward", "done")


class Game(FakeServer):
    """A small replica of the server, with one environment; it draws the hidden word anew at each guess."""

    def __init__(self, words=WORDS):
        self.words, self.asked, self.done = words, [], True
        super().__init__(self._answer)

    def _answer(self, request):
        if request.path == "/openapi.json":
            return 404, None
        body = json.loads(request.content) if request.content else None
        self.asked.append(request.path)
        return self.said(request.path, body)

    def said(self, path, body):
        if path == "/":
            return "This is environment LMRL-Gym."
        if path == "/wordle/create":
            return {"id": 0}
        if path == "/wordle/reset":
            self.random, self.possible = random.Random(body["seed"]), self.words  # noqa: S311
            self.tries, self.done = 0, False
            return {"id": 0, "observation": "Let's start Wordle!"}
        if self.done:
            return {"error": "The task with environment 0 has finished."}
        return self.step(body["action"].strip().replace(" ", ""))

    def step(self, guess):
        self.tries += 1
        said = "invalid word"
        if guess in self.words:
            answer = marks(guess, self.random.choice(self.possible))
            self.possible = [word for word in self.possible if marks(guess, word) == answer]
            said = f"{answer}\n"
        won = said == "g g g g g\n"
        self.done = won or self.tries == 6
        return {"observation": said, "reward": 1 if won else 0.0, "done": self.done}


@pytest.fixture
def game(started):
    return started(Game())


@pytest.fixture
def make(game):
    made = []

    def make(**options):
        made.append(AgentGymEnv("Wordle", server=game.url, **options))
        return made[-1]

    yield make
    for env in made:
        env.close()


def played(env, task):
    oracle = load_oracle(WORDLE)
    observation, info = env.reset(options={"task_id": task})
    oracle.reset(env, observation, info)
    over = False
    while not over:
        observation, _, terminated, truncated, info = env.step(oracle.act(observation, info))
        over = terminated or truncated
    return info


def test_the_oracle_wins_by_the_answers_alone(make, game):
    env = make()
    infos = [played(env, task) for task in env.tasks[::20]]
    assert all(info["success"] and info["score"] == 1.0 for info in infos)
    assert max(info["turn"] for info in infos) <= 3
    assert "/wordle/filtered_vocab" not in game.asked


def test_the_replica_answers_as_was_recorded(recordings, started):
    """Each recorded guess is answered alike, and so the oracle's words and marks are those of the game."""
    rows = recordings("wordle.jsonl")
    words = next(row["response_json"] for row in rows if row["path"] == "/wordle/filtered_vocab")
    assert sorted(words) == list(WORDS)
    games, compared = {}, 0
    for row in rows:
        body, said = row["json_body"], row.get("response_json")
        if row["path"] == "/wordle/reset" and "error" not in said and row["status"] == 200:
            games[body["id"]] = started(Game(words))
        elif row["path"] != "/wordle/step" or row["status"] != 200 or body["id"] not in games:
            continue
        answer = games[body["id"]].said(row["path"], body)
        assert [answer.get(key) for key in SAID] == [said.get(key) for key in SAID], row["seq"]
        compared += row["path"] == "/wordle/step"
    assert compared > 50


def test_the_oracle_lets_go_of_a_word_that_the_game_does_not_know():
    oracle = load_oracle(WORDLE)
    oracle.reset(None, "", {})
    guesses = [oracle.act("Let's start Wordle!", {})]
    while guesses[-1] is not None:
        guesses.append(oracle.act("invalid word", {}))
    assert sorted(guess.word for guess in guesses[:-1]) == list(WORDS)


@pytest.mark.parametrize(
    ("guess", "hidden", "told"),
    [
        ("panic", "aroma", "b y b b b"),
        ("knoll", "wrung", "b y b b b"),
        ("robot", "those", "b y b y y"),  # each `o` is judged by itself
        ("skill", "skill", "g g g g g"),
    ],
)
def test_marks(guess, hidden, told):
    assert marks(guess, hidden) == told


def test_the_words_still_possible_are_neither_asked_for_nor_shown(make, game):
    env = make(action_format="bare")
    observation, info = env.reset(options={"task_id": 3})
    assert observation == "Let's start Wordle!"
    env.step("panic")
    assert set(game.asked) <= {"/", "/wordle/create", "/wordle/reset", "/wordle/step"}
    assert "available_actions" not in info


def test_the_rules_list_the_words_that_can_be_guessed(make):
    assert len(WORDS) == 40
    assert all(word in make().system_prompt for word in WORDS)


def test_an_unknown_word_costs_a_try_and_six_are_the_end(make):
    env = make(action_format="bare")
    env.reset(options={"task_id": 0})
    for guess in ("zzzzz", "hello world", "shires", "ab", "x"):
        observation, reward, terminated, truncated, info = env.step(f"Action: {guess}")
        assert (observation, reward, terminated, truncated) == ("invalid word", 0.0, False, False)
    *_, terminated, truncated, info = env.step("Action: zzzzz")
    assert (terminated, truncated, info["score"], info["success"]) == (True, False, 0.0, False)


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


def test_a_step_after_the_end_is_a_fault_and_no_score():
    flow = WORDLE.wire.step(0, "s h i r e")
    call = next(flow)
    assert call.content == b'{"id": 0, "action": "s h i r e"}'
    with pytest.raises(errors.EnvironmentFailed, match="has finished"):
        flow.send(Reply(call, 200, b'{"error": "The task with environment 0 has finished."}'))


def test_a_reset_tells_the_seed():
    call = next(WORDLE.wire.reset(7, 3))
    assert (call.path, call.content) == ("/wordle/reset", b'{"id": 7, "seed": 3}')


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
def test_marked_text_that_is_no_guess_is_an_unknown_action(text):
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


@pytest.mark.parametrize(
    ("reply", "sent"),
    [("s h i r e</s>", "s h i r"), ("Action: a\nAction: b", "a"), ("no label", "no label")],
)
def test_the_reader_like_agentgyms(reply, sent):
    assert WORDLE.agentgym_readers["react"](reply) == sent


def test_agentgyms_server_is_known_by_its_routes(recordings):
    """One server plays Maze and Wordle, and what it says of itself was recorded with Maze."""
    said = {row["path"]: row for row in recordings("maze.jsonl") if row["path"] in ("/", "/openapi.json")}
    flow = WORDLE.wire.identify()
    greeted, described = (json.dumps(said[path]["response_json"]).encode() for path in ("/", "/openapi.json"))
    call = flow.send(Reply(next(flow), 200, greeted))
    assert call.path == "/openapi.json"
    with pytest.raises(StopIteration):  # and not WrongServer
        flow.send(Reply(call, 200, described))
