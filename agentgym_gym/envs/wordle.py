"""Wordle: guess a word of five letters (LMRL-Gym; Abdulhai et al., 2023, arXiv:2311.18232).

The server accepts forty words, in lower case. At each guess it draws the hidden word again from the words
that are consistent with all its feedback so far. Any other text costs a try too. The server lists the words
that are still possible under a separate route, which this library never requests.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from agentgym_gym._text import shown
from agentgym_gym.actions import Action, Grammar
from agentgym_gym.arguments import Argument, strategies
from agentgym_gym.calls import Body, Call, Flow
from agentgym_gym.catalogue import Environment, make_splits
from agentgym_gym.envs.lmrl import LMRLWire, read_as_agentgym
from agentgym_gym.errors import BadArguments, ManyActions
from agentgym_gym.wire import Seen, look

if TYPE_CHECKING:
    import numpy as np
    from hypothesis.strategies import SearchStrategy

__all__ = ["WORDLE", "WORDS", "Guess", "WordleWire"]

WORDS = (
    *("aloft", "aroma", "caulk", "could", "crimp", "cynic", "dodge", "elder", "frame", "humor"),
    *("knoll", "light", "moist", "mount", "other", "panic", "pause", "perky", "pleat", "point"),
    *("prick", "proxy", "robin", "robot", "shake", "shard", "shire", "skill", "solar", "sugar"),
    *("swill", "tacit", "thorn", "those", "trove", "ulcer", "ultra", "whack", "wince", "wrung"),
)
"""Words that the server accepts; the rules list them for the agent."""


_ANSWER = frozenset("gyb")  # the letters of the game's feedback


class _Word(Argument[str]):
    """A word of five letters, written with spaces between them.

    The parser accepts spaces, commas or hyphens between all letters, or no separators. Extracting five
    letters from longer text would turn "I am ok" into a guess.
    """

    _value = re.compile(r"[a-z]{5}", re.ASCII)
    _between = re.compile(r"(?:[ ,;/&+|]|\band\b|\bor\b|\bthen\b)+")
    _written = re.compile(r"[a-z]{5}|[a-z](?:[ ,_-]{1,3}[a-z]){4}", re.ASCII)

    def read(self, text: str) -> str:
        """Parse five letters, regardless of case.

        Raises:
            ManyActions: The text consists of several of the server's words.
            BadArguments: The text is not a word, or is feedback of the game.
        """
        letters = self._letters(text)
        if _ANSWER.issuperset(letters):
            raise BadArguments(f"{shown(text)} is how the game answers a guess; guess one of its words")
        return letters

    def from_json(self, value: Any) -> str:
        """Parse the letters of any word."""
        return self._letters(value) if isinstance(value, str) else super().from_json(value)

    def _letters(self, text: str) -> str:
        word = text.strip(" .").lower()
        if self._written.fullmatch(word):
            return re.sub(r"[ ,_-]", "", word)
        if word[:5] in WORDS and all(each in WORDS for each in self._between.split(word)):
            raise ManyActions("there is more than one word in the reply; guess one")
        raise BadArguments(f"expected {self.describe()}, got {shown(text)}")

    def write(self, value: str) -> str:
        """Insert spaces between the letters."""
        return " ".join(value)

    def check(self, value: Any) -> None:
        """Accept five lower-case letters."""
        if not isinstance(value, str) or not self._value.fullmatch(value):
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")

    def describe(self) -> str:
        """Describe the value."""
        return "a word of five letters"

    def schema(self) -> dict[str, Any]:
        """Return a string schema with a pattern."""
        return {"type": "string", "pattern": "^[a-z]{5}$"}

    def strategy(self) -> SearchStrategy[str]:
        """Draw words of the game and arbitrary strings of five letters."""
        st = strategies()
        letters = st.text("abcdefghijklmnopqrstuvwxyz", min_size=5, max_size=5)
        return st.sampled_from(WORDS) | letters.filter(lambda word: not _ANSWER.issuperset(word))  # type: ignore[no-any-return]

    def sample(self, rng: np.random.Generator) -> str:
        """Draw one of the words of the game."""
        return WORDS[int(rng.integers(len(WORDS)))]


@dataclass(frozen=True)
class Guess(Action):
    """Guess a word of five letters."""

    template: ClassVar[str] = "{word}"
    accepts: ClassVar[Mapping[str, Mapping[str, str]]] = {"guess {word}": {}, "guess: {word}": {}}
    word: Annotated[str, _Word(), "the word, of five letters"]


_GRAMMAR = Grammar([Guess("shire")])

_RULES = f"""\
You are guessing a hidden word of five letters and have six tries. After each guess you are told, for each \
of its letters in order:

- `g`: the letter stands at that place in the hidden word;
- `y`: the hidden word holds the letter, but not at that place;
- `b`: the hidden word does not hold the letter.

Each letter is judged by itself: one that you guess at two places is marked at both, though the hidden \
word may hold it only once. After `g g g g g` you have won.

Anything that the server does not know as a word is answered `invalid word` and still takes a try. Where \
the game begins by saying which words may be hidden, it knows those. Otherwise it knows the following words \
alone, and the hidden word is one of them:

{" ".join(WORDS)}"""


class WordleWire(LMRLWire):
    """Protocol of the Wordle server, where a task is the seed of the hidden words."""

    prefix = "/wordle"
    task = "seed"
    # The local Maze server has the same greeting but no Wordle routes.
    routes: ClassVar[Mapping[str, Collection[str]]] = {"/wordle/reset": ("id", "seed")}

    def recognise(self, env_id: int, seen: Seen) -> Flow[bool | None]:
        """Compare the task and the last observation."""
        shown = yield from look(Call("observe", "GET", "/wordle/detail", query={"id": env_id}), seen)
        if not isinstance(shown, Body):
            return shown
        if not shown.has("seed"):  # no task was started
            return False
        return shown.integer("seed") == seen.task_id and shown.text("observation") == seen.observation


_QUIRKS = """\
- One server serves Wordle and Maze. Its address may end in `/wordle`, which AgentGym's client requires.
- A task id is a seed, and the server accepts any. There are as many ids here as AgentGym has trajectories
  (955) and evaluation tasks (25), but AgentGym does not document their seeds.
- At each guess the hidden word is drawn again from the words that are consistent with all feedback, so the
  same seed with other guesses leads to another word.
- The server accepts 40 words, which the rules list, as AgentGym's client does. This library never requests
  the server's list of possible words, `/wordle/filtered_vocab`.
- Any text except one of these words in lower case also counts as one of the six tries.
- The server cannot free an environment."""

_LOCAL_QUIRKS = """\
- It serves only Wordle: every route below `/maze` is 404.
- It has 1,748 common English words, or the words in `words.txt`, one per line, in the folder of `--data`. The
  first observation states this after `Let's start Wordle!`.
- The hidden word is drawn from the seed at the reset, and does not depend on the guesses. The tasks 0 to 979
  hide 980 different words. Seeds that are equal modulo the number of words hide the same word.
- `/wordle/filtered_vocab` lists at most 40 words. More are summarized in one entry, `any common English word
  of five letters`, because AgentGym's client puts the list into its first message, and its Evaluator allows
  4,096 tokens. `?whole=true` lists all.
- With `--twin` it has AgentGym's 40 words and AgentGym's texts, and draws the hidden word again at each
  guess, with the same draws for the same seed. The only remaining difference above is the missing Maze.
- It has `/list_envs`, which lists the ids of its environments.
- A look before the first reset returns an error message, where AgentGym's server names a part of its
  program."""

WORDLE = Environment(
    name="Wordle",
    summary="Guess a word of five letters in six tries (LMRL-Gym; Abdulhai et al., 2023, arXiv:2311.18232).",
    wire=WordleWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=8,
    splits=make_splits(range(980), test=range(784, 980)),
    agentgym_readers={"react": read_as_agentgym},
    local_server="agentgym_servers.wordle:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers.wordle._oracle:WordleOracle",
    quirks=_QUIRKS,
    launch=(
        "git submodule update --init agentenv-lmrlgym/lmrlgym && cd agentenv-lmrlgym && "
        "conda env create --name agentenv-lmrlgym -f lmrlgym/environment.yml && "
        "conda activate agentenv-lmrlgym && bash setup.sh && lmrlgym --host 127.0.0.1 --port 36001"
    ),
    transcript=(
        "Let's start Wordle!",
        "p a n i c",
        "b y b b b",
        "s o l a r",
        "b y b y y",
        "a r o m a",
        "g g g g g",
    ),
)
