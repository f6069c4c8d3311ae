"""Documents and questions of the user's: their ids, and errors that name the file and line."""

from __future__ import annotations

import json

import pytest

from agentgym_gym.envs.searchqa import SEARCHQA
from agentgym_gym.errors import BadOption, ServerError
from agentgym_gym.local_servers import server_kind
from local_game import LocalGame

TEST_TASKS = len(SEARCHQA.split("test"))

DOCUMENTS = [
    {"id": "0", "contents": '"Paris"\nParis is the capital of France.'},
    {"id": "1", "contents": '"Gold"\nGold is a metal.'},
]
FIRST = {"question": "Which is the capital?", "golden_answers": ["Paris"]}
SECOND = {"question": "Which is the metal?", "golden_answers": ["Gold", "Au"]}


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "corpus.jsonl", *DOCUMENTS)
    return tmp_path


def write(file, *rows):
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    file.write_bytes(b"\n".join(lines))


def load(folder):
    return server_kind("searchqa").app(data=folder)


def pays(game, task, *answers):
    """Return the reward of each answer to a question."""
    return [game.play(task, [f"<answer>{answer}</answer>"]).reward for answer in answers]


def test_two_files(folder):
    write(folder / "test.jsonl", FIRST, b"", SECOND)
    write(folder / "train.jsonl", SECOND)
    with LocalGame("SearchQA", data=folder) as game:
        assert pays(game, 0, "Paris", "Gold") == [1, 0]
        assert pays(game, 1, "Gold", "Au") == pays(game, TEST_TASKS, "Gold", "Au") == [1, 1]
        for none in (-1, 2, TEST_TASKS - 1, TEST_TASKS + 1, 10**30):
            with pytest.raises(ServerError):
                game.reset(none)


def test_one_file_with_both_splits(folder):
    one_answer = {**SECOND, "golden_answers": "Gold"}
    write(folder / "questions.jsonl", {**FIRST, "split": "train"}, {**one_answer, "split": "test"})
    with LocalGame("SearchQA", data=folder) as game:
        assert pays(game, 0, "Gold", "Au") == [1, 0]
        assert game.reset(TEST_TASKS).goal == "Which is the capital?"


def test_one_split_is_enough(folder):
    write(folder / "train.jsonl", FIRST)
    with LocalGame("SearchQA", data=folder) as game:
        assert pays(game, TEST_TASKS, "Paris") == [1]
        with pytest.raises(ServerError):
            game.reset(0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe\xfd", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "expected a JSON object"),
        ({"id": "1"}, "'contents'"),
        ({"contents": 7}, "'contents'"),
        ({"contents": " \n"}, "'contents'"),
    ],
)
def test_a_wrong_document_is_named(folder, line, message):
    write(folder / "corpus.jsonl", DOCUMENTS[0], line)
    write(folder / "test.jsonl", FIRST)
    with pytest.raises(BadOption, match=rf"corpus\.jsonl, line 2: {message}"):
        load(folder)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"question": ""}, "'question'"),
        ({"golden_answers": []}, "'golden_answers'"),
        ({"golden_answers": [""]}, "'golden_answers'"),
        ({"golden_answers": ["Paris", 1]}, "'golden_answers'"),
        ({"golden_answers": None}, "'golden_answers'"),
        ({"golden_answers": ["a" * 100_000, "x</answer>"]}, "'golden_answers' needs an answer of at most"),
        ({"split": "dev"}, "'split'"),
        ({"split": ["test"]}, "'split'"),
    ],
)
def test_a_wrong_question_is_named(folder, wrong, message):
    write(folder / "questions.jsonl", {**FIRST, "split": "test"}, {**FIRST, "split": "test", **wrong})
    with pytest.raises(BadOption, match=rf"questions\.jsonl, line 2: {message}"):
        load(folder)


def test_files_that_are_missing_are_named(tmp_path):
    with pytest.raises(BadOption, match=r"corpus\.jsonl: No such file"):
        load(tmp_path)
    write(tmp_path / "corpus.jsonl", b"")
    with pytest.raises(BadOption, match="no documents"):
        load(tmp_path)
    write(tmp_path / "corpus.jsonl", *DOCUMENTS)
    with pytest.raises(BadOption, match="none of them"):
        load(tmp_path)
    write(tmp_path / "test.jsonl", b"")
    with pytest.raises(BadOption, match="no questions"):
        load(tmp_path)
    write(tmp_path / "questions.jsonl", {**FIRST, "split": "test"})
    with pytest.raises(BadOption, match=r"contains questions\.jsonl, test\.jsonl"):
        load(tmp_path)


@pytest.mark.slow
def test_more_test_questions_than_have_an_id_are_refused(folder):
    write(folder / "test.jsonl", *[FIRST] * (TEST_TASKS + 1))
    with pytest.raises(BadOption, match=rf"test\.jsonl, line {TEST_TASKS + 1}: "):
        load(folder)
