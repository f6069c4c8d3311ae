"""SearchQA: answer a question with the help of a search engine (Jin et al., 2025, arXiv:2503.09516).

The first tag in an action determines whether it is a search or an answer, but the server scores the last
answer. A wrong answer does not end the episode, so an agent can guess until its turns run out. The server
pays again for answers after the episode ends.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from agentgym_gym._text import shown
from agentgym_gym.actions import MAX_ACTION_CHARS, Action, Grammar, Style
from agentgym_gym.arguments import Text
from agentgym_gym.calls import Body, Call, Flow
from agentgym_gym.catalogue import Environment
from agentgym_gym.errors import BadArguments, BadOption
from agentgym_gym.wire import Outcome, Score, Seen, Start, Wire, look

__all__ = ["SEARCHQA", "Answer", "Search", "SearchQAWire", "Words"]

# A pair of tags with none between them. If generation stops at the closing tag, the inference engine omits it
# from the reply; so an unclosed tag at the start of the last line is accepted too.
_TAGS = re.compile(
    r"<(?:search|answer)>[^<]*(?:<(?!/?(?:search|answer)>)[^<]*)*</(?:search|answer)>"
    r"|^[ \t]*<(?:search|answer)>[^<\n]*\n?\Z",
    re.IGNORECASE | re.ASCII | re.MULTILINE,
)

# The tags, and other marks that end a reply or an action in one of the formats, at any position.
_MARKS = re.compile(r"</?(?:search|answer|action|think)>|```|<\||<｜|<end_of_turn>", re.IGNORECASE)


class Words(Text):
    """Text on one line with single spaces; parsing normalizes white space."""

    def read(self, text: str) -> str:
        """Parse text: normalize white space and remove surrounding ``**`` (Markdown bold)."""
        text = " ".join(text.split())
        return super().read(text[2:-2].strip() if self._is_bold(text) else text)

    def check(self, value: Any) -> None:
        """Accept text without tags and with normalized white space."""
        super().check(value)
        if value != " ".join(value.split()):
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        mark = _MARKS.search(value) if "<" in value or "`" in value else None
        if mark or self._is_bold(value):
            raise BadArguments(f"{mark[0] if mark else '**'!r} is not allowed in {self.describe()}")

    @staticmethod
    def _is_bold(text: str) -> bool:
        return text[:2] == "**" == text[-2:] and len(text) >= len("****")


@dataclass(frozen=True)
class _TagStyle(Style):
    """Style of an action between tags; it ends at its closing tag, or with its line if it has none."""

    def end(self, text: str, start: int, limit: int) -> int:
        """Return the position where the tags or the line end."""
        tags = _TAGS.match(text, start, limit)
        line = text.find("\n", start, limit)
        return tags.end() if tags else limit if line < 0 else line


class _Tagged(Action):
    style = _TagStyle(lines=False, verbatim=True, mark=_TAGS)


@dataclass(frozen=True)
class Search(_Tagged):
    """Look for passages of Wikipedia; the three nearest to the query are shown."""

    template: ClassVar[str] = "<search>{query}</search>"
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {"<search>{query}": {}}
    query: Annotated[
        str,
        Words(["capital of France", "who wrote Pride and Prejudice"], max_chars=1_000),
        "what to look for, in words",
    ]


@dataclass(frozen=True)
class Answer(_Tagged):
    """Give your answer to the question."""

    template: ClassVar[str] = "<answer>{answer}</answer>"
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {"<answer>{answer}": {}}
    blind_answers: ClassVar[tuple[str, ...]] = ("yes", "no", "0", "1", "unknown")
    answer: Annotated[
        str, Words(["Paris", "Jane Austen"], max_chars=1_000), "the answer in a few words, without a sentence"
    ]


_GRAMMAR = Grammar([Search("capital of France"), Answer("Paris")])

_RULES = """\
You are given a question of general knowledge. You can look for passages of Wikipedia that help to answer \
it, several times if need be, and then give an answer.

- What a search finds is shown to you between `<information>` and `</information>`. Never write these tags \
yourself.
- Search or answer once in each reply, then wait for what you are told.
- An answer is right when it is one of the expected ones but for capitals, punctuation and the words a, an \
and the. So give just the name, number or phrase that was asked for.
- Count on a single answer, and give it before your turns run out."""

_TAG = re.compile(r"<(search|answer)>")


def _first_pair(text: str) -> re.Match[str] | None:
    """Return the opening tag of the first pair of tags, which the server plays; None without a pair."""
    last_end = {name: text.rfind(f"</{name}>") for name in ("search", "answer")}
    return next((tag for tag in _TAG.finditer(text) if last_end[tag[1]] >= tag.end()), None)


def _answers(action: str) -> bool:
    """Return whether the server treats an action as an answer, which its first pair of tags determines."""
    tag = _first_pair(action)
    return tag is not None and tag[1] == "answer"


def _read_as_agentgym(reply: str) -> str:
    """Return the reply, which AgentGym's client sends unchanged, or the part that the server parses.

    The limit on the length of an action applies to the text from the first pair of tags on: reasoning before
    it may be longer. Without tags, the server's reply is the same for the end of the text.
    """
    if len(reply) <= MAX_ACTION_CHARS:
        return reply
    tag = _first_pair(reply)
    return reply[-MAX_ACTION_CHARS:] if tag is None else reply[tag.start() :]


@dataclass(frozen=True)
class SearchQAWire(Wire):
    """Protocol of AgentGym's SearchQA server: bare values, ids under ``env_idx``, failures as HTTP 500.

    Args:
        answers: 1 to end an episode at its first answer, right or wrong; None to let the agent answer in
            every turn, as AgentGym's server does.

    Raises:
        BadOption: ``answers`` has another value.
    """

    greeting = "ok"
    closes = True
    routes: ClassVar[Mapping[str, Collection[str]]] = {
        "/reset": ("env_idx", "id"),
        "/close": ("env_idx",),
    }
    no_routes = ("/list_envs",)

    answers: int | None = 1

    def __post_init__(self) -> None:
        if self.answers is not None and (type(self.answers) is not int or self.answers != 1):
            raise BadOption("answers", self.answers, "1 or None")

    def create(self, task_id: int) -> Flow[int]:
        """Create an environment; the server requires a task id."""
        body = (yield Call("create", "POST", "/create", {"id": task_id})).body()
        return body.integer()

    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task."""
        body = (yield Call("reset", "POST", "/reset", {"env_idx": env_id, "id": task_id})).body()
        observation = body.text()
        return Start(observation, goal=observation.partition("\n\n Question: ")[2].strip() or None)

    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Execute one action."""
        body = (yield Call("step", "POST", "/step", {"env_idx": env_id, "action": action})).body()
        return Outcome(body.text("observation"), body.number("reward"), body.flag("done"))

    def recognise(self, env_id: int, seen: Seen) -> Flow[bool | None]:
        """Compare the question, the only part of an episode that the server exposes."""
        shown = yield from look(Call("observe", "GET", "/observation", query={"env_idx": env_id}), seen)
        return shown.text() == seen.start.observation if isinstance(shown, Body) else shown

    def close(self, env_id: int) -> Flow[None]:
        """Free an environment; the server ignores ids that are already closed."""
        (yield Call("close", "POST", "/close", {"env_idx": env_id})).body()

    def judge(self, start: Start, score: float, action: str, outcome: Outcome) -> Score:
        """Score 1 for a right answer; the first answer ends the episode unless more are allowed."""
        success = outcome.done and outcome.reward > 0
        done = outcome.done or (self.answers is not None and _answers(action))
        return Score(1.0 if success else score, success, done, outcome.reward)


_QUIRKS = """\
- AgentGym's server lets an agent answer until it is right, so its score counts guesses. Here the first answer
  ends the episode; `answers=None` leaves it to the server, for scores that compare with AgentGym's.
- With `parser="agentgym"` the whole reply is sent. The first of several tags determines whether it is a
  search or an answer, and the last of several answers is scored.
- The default parser ignores capitals in a tag; the server accepts only tags in lower case.
- Each search shows three passages, whose text is not cut.
- Failures are a bare HTTP 500, without a reason."""

_LOCAL_QUIRKS = """\
- Documents and questions are generated from a seed: 5,284 short documents about invented towns, people, films
  and so on, and 221,328 questions, each of which takes two searches. AgentGym's server searches Wikipedia for
  the questions of seven collections, some of which take one search or none.
- With `--data` a server has the documents and questions of a folder: `corpus.jsonl`, and `test.jsonl` and
  `train.jsonl`, or `questions.jsonl` with a field `split`. Test questions are the tasks from 0 on, train
  questions the tasks from 51,713 on. The oracle cannot answer them. Indexing 100,000 documents of 100 words
  takes 13 s and 0.3 GB.
- A search is BM25 over words, by `bm25s`; on AgentGym's server it is a dense index, `e5` by default. The
  first 2,000 characters of a query count, and at most 64 different words; on AgentGym's server 256 tokens.
- The instructions before the question and the responses to answers and to replies without tags have other
  words.
- A correct answer is paid once, and the episode stays done; AgentGym's server pays for it again each time.
- An empty answer is never correct, nor is one of more than 10,000 characters.
- `/list_envs` returns the ids of all environments; on AgentGym's server it is 404. `/openapi.json` omits it.
- Environments without a request for an hour are deleted. There are at most 4,096 environments, and a request
  has at most 1 MiB."""

SEARCHQA = Environment(
    name="SearchQA",
    summary="Answer a question with the help of a search engine (Jin et al., 2025, arXiv:2503.09516).",
    wire=SearchQAWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=5,
    splits={"train": range(51_713, 221_328), "test": range(51_713)},
    on_unknown="refuse",
    agentgym_readers={"react": _read_as_agentgym},
    options={
        "answers": "1 to end at the first answer; None to let the agent answer as often as it has turns."
    },
    quirks=_QUIRKS,
    local_server="agentgym_servers.searchqa:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers.searchqa._oracle:SearchQAOracle",
    launch=(
        "cd agentenv-searchqa && conda env create -f environment.yml && conda activate agentenv-searchqa\n"
        "pip install -e . && bash ./setup.sh\n"
        "searchqa --host 127.0.0.1 --port 36001"
    ),
    transcript=(
        "You must reason inside <think>...</think> first. …",
        "<search>capital of France</search>",
        '<information>Doc 1(Title: "Paris") Paris is the capital and most populous city of France.\n…',
        "<answer>Paris</answer>",
        "Congratulations! You have answered the question correctly.",
    ),
)
