"""One question in play, without a server or a search engine.

The rules equal AgentGym's: answers are scored as by Search-R1, by exact match after the SQuAD normalization
(Rajpurkar et al., 2016, arXiv:1606.05250).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from agentgym_servers._frame.game_turn import GameTurn

__all__ = [
    "MAX_ANSWER_CHARS",
    "SearchEpisode",
    "SearchLibrary",
    "SearchQuestion",
    "information",
    "normalize",
    "parse_action",
]

MAX_ANSWER_CHARS = 10_000
"""The maximum length of a right answer, in characters."""

TagKind: TypeAlias = Literal["search", "answer"]

_PROMPT = """\
Find the answer to the question below. Begin each reply with your reasoning, inside <think>...</think>. When \
there is something that you do not know, write a query inside <search>...</search> and stop: write neither \
<information> nor <answer> in that reply. What is found is given to you inside \
<information>...</information>. Reason about it inside <think> again, and search again if you must. Once you \
are sure, write the bare answer inside <answer>...</answer>, without an explanation, as in \
<answer> Lisbon </answer>.

 Question: {question}"""

_RIGHT = "Well done! Your answer is right."
_WRONG = "Your answer is not right. Try again."
_NEITHER = (
    "There is neither a search nor an answer in your reply. Put what you want to look for between <search> "
    "and </search>, or your final answer between <answer> and </answer>, and try again."
)

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


@dataclass(frozen=True)
class SearchQuestion:
    """A question.

    Attributes:
        text: The question.
        answers: The right answers.
    """

    text: str
    answers: tuple[str, ...]


class SearchLibrary(Protocol):
    """Documents, and questions that can be answered from them."""

    @property
    def documents(self) -> Sequence[str]:
        """The documents, each with its title in the first line."""

    def question(self, task_id: int) -> SearchQuestion:
        """Return the question of a task.

        Raises:
            LookupError: There is no such task.
        """


class SearchEpisode:
    """One question in play.

    Args:
        question: The question.

    Attributes:
        prompt: The initial observation.
    """

    def __init__(self, question: SearchQuestion) -> None:
        self.prompt = _PROMPT.format(question=question.text.strip())
        self._right = frozenset(map(normalize, question.answers))
        self._answered = False

    def answer(self, action: str) -> GameTurn:
        """Score the last answer in an action. A wrong one ends nothing; only the first right one counts."""
        if not self._is_right(_last_answer(action)):
            return self.result(_WRONG)
        reward = 0.0 if self._answered else 1.0
        self._answered = True
        return GameTurn(_RIGHT, reward, done=True)

    def result(self, observation: str = _NEITHER) -> GameTurn:
        """Return a result without a reward.

        Args:
            observation: The observation; by default, the message that the text is not an action.
        """
        return GameTurn(observation, 0.0, done=self._answered)

    def _is_right(self, answer: str | None) -> bool:
        if not answer or len(answer) > MAX_ANSWER_CHARS:
            return False
        return normalize(answer) in self._right


def parse_action(action: str) -> tuple[TagKind, str] | None:
    """Return the kind and the text of the first pair of tags in an action; None without a pair."""
    first: tuple[int, TagKind, str] | None = None
    kinds: tuple[TagKind, ...] = ("search", "answer")
    for kind in kinds:
        start = action.find(f"<{kind}>")
        begin = start + len(kind) + 2
        end = action.find(f"</{kind}>", begin) if start >= 0 else -1
        if end >= 0 and (first is None or start < first[0]):
            first = start, kind, action[begin:end].strip()
    return None if first is None else first[1:]


def _last_answer(action: str) -> str | None:
    """Return the text in the last pair of answer tags."""
    # Split once, because a regular expression would search for the end of each open tag separately.
    for piece in reversed(action.split("</answer>")[:-1]):
        _, tag, answer = piece.partition("<answer>")
        if tag:
            return answer.strip()
    return None


def normalize(answer: str) -> str:
    """Return an answer in lower case, without punctuation, articles and superfluous white space."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def information(documents: Iterable[str]) -> str:
    """Return the observation that shows the retrieved documents."""
    text = "\n".join(
        f"Doc {number}(Title: {title}) {text}"
        for number, (title, _, text) in enumerate((each.partition("\n") for each in documents), start=1)
    )
    return f"<information>{text.strip()}</information>"
