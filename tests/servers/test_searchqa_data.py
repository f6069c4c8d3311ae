"""Documents and questions of the user's: their ids, and errors that name the file and line."""

from __future__ import annotations

import json

import pytest

from agentgym_gym.errors import BadOption
from agentgym_servers.searchqa import _data as data
from agentgym_servers.searchqa._data import TEST_TASKS, Data

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


def test_two_files(folder):
    write(folder / "test.jsonl", FIRST, b"", SECOND)
    write(folder / "train.jsonl", SECOND)
    loaded = Data(folder)
    assert loaded.documents == [row["contents"] for row in DOCUMENTS]
    assert [loaded.question(task).answers for task in (0, 1, TEST_TASKS)] == [
        ("Paris",),
        ("Gold", "Au"),
        ("Gold", "Au"),
    ]
    for none in (-1, 2, TEST_TASKS - 1, TEST_TASKS + 1, 10**30):
        with pytest.raises(LookupError, match="there is no task"):
            loaded.question(none)


def test_one_file_with_both_splits(folder):
    one_answer = {**SECOND, "golden_answers": "Gold"}
    write(folder / "questions.jsonl", {**FIRST, "split": "train"}, {**one_answer, "split": "test"})
    loaded = Data(folder)
    assert loaded.question(0).answers == ("Gold",)
    assert loaded.question(TEST_TASKS).text == "Which is the capital?"


def test_one_split_is_enough(folder):
    write(folder / "train.jsonl", FIRST)
    assert Data(folder).question(TEST_TASKS).answers == ("Paris",)
    with pytest.raises(LookupError, match="there are 0 test questions"):
        Data(folder).question(0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe\xfd", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "expected a JSON object"),
        ({"id": "1"}, "'contents' must be a non-empty string"),
        ({"contents": 7}, "'contents' must be a non-empty string"),
        ({"contents": " \n"}, "'contents' must be a non-empty string"),
    ],
)
def test_a_wrong_document_is_named(folder, line, message):
    write(folder / "corpus.jsonl", DOCUMENTS[0], line)
    write(folder / "test.jsonl", FIRST)
    with pytest.raises(BadOption, match=rf"corpus\.jsonl, line 2: {message}"):
        Data(folder)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"question": ""}, "'question' must be a non-empty string"),
        ({"golden_answers": []}, "'golden_answers' must be a non-empty list of non-empty strings"),
        ({"golden_answers": [""]}, "'golden_answers' must be a non-empty list of non-empty strings"),
        ({"golden_answers": ["Paris", 1]}, "'golden_answers' must be a non-empty list of non-empty strings"),
        ({"golden_answers": None}, "'golden_answers' must be a non-empty list of non-empty strings"),
        ({"split": "dev"}, "'split' must be 'test' or 'train'"),
        ({"split": ["test"]}, "'split' must be 'test' or 'train'"),
    ],
)
def test_a_wrong_question_is_named(folder, wrong, message):
    write(folder / "questions.jsonl", {**FIRST, "split": "test"}, {**FIRST, "split": "test", **wrong})
    with pytest.raises(BadOption, match=rf"questions\.jsonl, line 2: {message}"):
        Data(folder)


def test_files_that_are_missing_are_named(tmp_path):
    with pytest.raises(BadOption, match=r"cannot read .*corpus\.jsonl: No such file"):
        Data(tmp_path)
    write(tmp_path / "corpus.jsonl", b"")
    with pytest.raises(BadOption, match=r"corpus\.jsonl contains no documents"):
        Data(tmp_path)
    write(tmp_path / "corpus.jsonl", *DOCUMENTS)
    with pytest.raises(BadOption, match=r"it contains none of them"):
        Data(tmp_path)
    write(tmp_path / "test.jsonl", b"")
    with pytest.raises(BadOption, match=r"contains no questions"):
        Data(tmp_path)
    write(tmp_path / "questions.jsonl", {**FIRST, "split": "test"})
    with pytest.raises(BadOption, match=r"it contains questions\.jsonl, test\.jsonl"):
        Data(tmp_path)


def test_more_test_questions_than_have_an_id_are_refused(folder, monkeypatch):
    monkeypatch.setattr(data, "TEST_TASKS", 2)
    write(folder / "test.jsonl", FIRST, SECOND, FIRST)
    with pytest.raises(BadOption, match=r"test\.jsonl, line 3: test question 3 exceeds the maximum of 2"):
        Data(folder)
