r"""Loads a user's documents and questions from a folder.

``corpus.jsonl`` has one document per line, in the format of the corpora of Search-R1's retrieval servers:
``{"id": "7", "contents": "\"Title\"\nText"}``. The questions are in ``test.jsonl`` and ``train.jsonl``, or in
``questions.jsonl`` with a field ``split``:
``{"question": "Who wrote it?", "golden_answers": ["Jane Austen"], "split": "test"}``.

Task ids equal AgentGym's: test questions start at 0, train questions at 51,713.

Indexing 100,000 documents of 100 words takes 13 s. The index uses 0.3 GB, and 0.6 GB while it is built.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentgym_gym.errors import BadOption
from agentgym_servers.searchqa._game import MAX_ANSWER_CHARS, SearchQuestion

__all__ = ["TEST_TASKS", "SearchFolder"]

TEST_TASKS = 51_713
"""The number of ids of the test split; the ids of the train split follow."""

_SPLITS = ("test", "train")


class SearchFolder:
    """The validated contents of a folder.

    Args:
        folder: The folder.

    Attributes:
        documents: The documents, each with its title in the first line.

    Raises:
        BadOption: A file is missing or unreadable, or a line has the wrong format; the message names it.
    """

    def __init__(self, folder: Path) -> None:
        self.documents: Sequence[str] = _documents(folder / "corpus.jsonl")
        self._questions = _questions(folder)

    def question(self, task_id: int) -> SearchQuestion:
        """Return the question of a task.

        Raises:
            LookupError: There is no such task.
        """
        split, number = ("test", task_id) if task_id < TEST_TASKS else ("train", task_id - TEST_TASKS)
        questions = self._questions[split]
        if number not in range(len(questions)):
            raise LookupError(
                f"there is no task {task_id}: there are {len(questions)} {split} questions, and the first is "
                f"task {0 if split == 'test' else TEST_TASKS}"
            )
        return questions[number]


def _documents(file: Path) -> list[str]:
    documents = [_text(row, "contents", where) for where, row in _rows(file)]
    if not documents:
        raise BadOption(f"{file} contains no documents")
    return documents


def _questions(folder: Path) -> dict[str, list[SearchQuestion]]:
    """Read the questions of a folder by split."""
    combined, split_files = folder / "questions.jsonl", [folder / f"{split}.jsonl" for split in _SPLITS]
    files = [file for file in (combined, *split_files) if file.is_file()]
    if not files or (combined in files and len(files) > 1):
        names = ", ".join(file.name for file in files) or "none of them"
        raise BadOption(
            f"{folder} must contain questions.jsonl, or test.jsonl and train.jsonl; it contains {names}"
        )
    questions: dict[str, list[SearchQuestion]] = {split: [] for split in _SPLITS}
    for file in files:
        for where, row in _rows(file):
            split = row.get("split") if file == combined else file.stem
            if split not in _SPLITS:
                raise BadOption(f"{where}: 'split' must be 'test' or 'train'")
            questions[split].append(SearchQuestion(_text(row, "question", where), _answers(row, where)))
            if len(questions["test"]) > TEST_TASKS:
                raise BadOption(
                    f"{where}: test question {TEST_TASKS + 1:,} exceeds the maximum of {TEST_TASKS:,}"
                )
    if not any(questions.values()):
        raise BadOption(f"{folder} contains no questions")
    return questions


def _rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a JSON Lines file, each with the file name and line number."""
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    where = f"{file}, line {number}"
                    yield where, _object(line, where)
    except OSError as error:
        raise BadOption(f"cannot read {file}: {error.strerror}") from error


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadOption(f"{where}: not JSON in UTF-8: {error}") from error
    if not isinstance(row, dict):
        raise BadOption(f"{where}: expected a JSON object")
    return row


def _text(row: dict[str, Any], field: str, where: str) -> str:
    text = row.get(field)
    if not isinstance(text, str) or not text.strip():
        raise BadOption(f"{where}: {field!r} must be a non-empty string")
    return text


def _answers(row: dict[str, Any], where: str) -> tuple[str, ...]:
    answers = row.get("golden_answers")
    if isinstance(answers, str):
        answers = [answers]
    if (
        not isinstance(answers, list)
        or not answers
        or not all(isinstance(a, str) and a.strip() for a in answers)
    ):
        raise BadOption(f"{where}: 'golden_answers' must be a non-empty list of non-empty strings")
    if all(len(answer) > MAX_ANSWER_CHARS or "</answer>" in answer for answer in answers):
        raise BadOption(
            f"{where}: 'golden_answers' needs an answer of at most {MAX_ANSWER_CHARS:,} characters without "
            "</answer>"
        )
    return tuple(answers)
