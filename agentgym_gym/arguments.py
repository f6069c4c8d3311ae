"""Kinds of action arguments: each parses, formats, validates, describes and samples its values."""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from agentgym_gym._text import shown
from agentgym_gym.errors import BadArguments, MissingExtra

if TYPE_CHECKING:
    import numpy as np
    from hypothesis.strategies import SearchStrategy

__all__ = ["NO_NAMES", "Argument", "Choice", "Integer", "Name", "Text", "strategies"]

T = TypeVar("T")

# Control characters except tab and line feed, and lone surrogates, which no server accepts.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

_MAX_DIGITS = 18  # because int() rejects thousands of digits, or takes long to convert them


def strategies() -> Any:
    """Return ``hypothesis.strategies``.

    Raises:
        MissingExtra: hypothesis is not installed.
    """
    try:
        from hypothesis import strategies as st  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError as error:
        raise MissingExtra("A strategy of actions", extra="testing", module="hypothesis") from error
    return st


class Argument(ABC, Generic[T]):
    """One kind of argument: a value, its text, and its JSON.

    `read` returns the intended value. Its validity is checked once, when the action is created.

    Class attributes:
        greedy: Whether its text ends at the *last* occurrence of the text after it in the template, as in
            ``click[a [b]]``, instead of the first. An action can have one greedy argument.
    """

    greedy: ClassVar[bool] = False

    # The protocol of annotated-types, by which hypothesis draws values of an annotated type: `st.builds`.
    __is_annotated_types_grouped_metadata__: ClassVar[bool] = True

    def __iter__(self) -> Iterator[Any]:
        if "hypothesis" in sys.modules:
            yield self.strategy()

    @abstractmethod
    def read(self, text: str) -> T:
        """Return the value of ``text``.

        Raises:
            BadArguments: It is not a value.
        """

    def write(self, value: T) -> str:
        """Return the text of a value, the inverse of ``read``."""
        return str(value)

    @abstractmethod
    def check(self, value: Any) -> None:
        """Validate a Python value.

        Raises:
            BadArguments: The value is of the wrong type or out of range.
        """

    def from_json(self, value: Any) -> T:
        """Return the value of a JSON value; a number may be a string.

        Raises:
            BadArguments: It is not a value.
        """
        if not isinstance(value, str):
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        return self.read(value)

    def to_json(self, value: T) -> Any:
        """Return the JSON value of ``value``."""
        return value

    @abstractmethod
    def describe(self) -> str:
        """Describe the expected values in a few words, for prompts and error messages."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of :meth:`to_json`'s values."""

    @abstractmethod
    def strategy(self) -> SearchStrategy[T]:
        """Return a hypothesis strategy over all values."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> T:
        """Return a typical value."""


class Integer(Argument[int]):
    """A whole number.

    Args:
        minimum: Least value.
        maximum: Greatest value.
    """

    def __init__(self, minimum: int, maximum: int) -> None:
        self.minimum = minimum
        self.maximum = maximum

    def read(self, text: str) -> int:
        """Parse decimal digits with an optional minus sign."""
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS):
            raise BadArguments(f"expected {self.describe()}, got {shown(text)}")
        return int(text)

    def check(self, value: Any) -> None:
        """Accept integers in the range, but not True and False."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        if not self.minimum <= value <= self.maximum:
            raise BadArguments(f"expected {self.describe()}, got a number out of that range")

    def from_json(self, value: Any) -> int:
        """Accept integers, whole floats and strings of digits."""
        if isinstance(value, str):
            return self.read(value.strip())
        number: int = int(value) if isinstance(value, float) and value.is_integer() else value
        return number

    def describe(self) -> str:
        """Describe the range."""
        return f"a whole number from {self.minimum} to {self.maximum}"

    def schema(self) -> dict[str, Any]:
        """Return an integer schema with both bounds."""
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}

    def strategy(self) -> SearchStrategy[int]:
        """Draw from the whole range."""
        return strategies().integers(self.minimum, self.maximum)  # type: ignore[no-any-return]

    def sample(self, rng: np.random.Generator) -> int:
        """Draw a small number."""
        return int(rng.integers(self.minimum, min(self.maximum, self.minimum + 8), endpoint=True))


NO_NAMES = (
    *("because", "so", "since", "then", "or", "if", "not", "but", "now", "that", "this", "i", "we", "my"),
    *("it", "is", "was", "for", "instead", "maybe", "please", "first", "next", "also"),
)
"""Words of a sentence that continues after a name: "get 1 stick because I need it"."""


class Name(Argument[str]):
    """The name of a thing: a lower-case word, then words and numbers, separated by single spaces.

    The parser accepts common variants with an unambiguous meaning: capitals, underscores instead of spaces, a
    namespace such as ``minecraft:``, a full stop at the end.

    Args:
        samples: Typical names, for samples and examples.
        reserved: Words that a name must not contain, because the action's template uses them.
        namespace: The namespace prefix to remove from a name.
        words: Pattern of the whole name, if it is stricter than the default.
        max_chars: Longest name, in characters.
    """

    _words = re.compile(r"[a-z][a-z0-9]*(?: [a-z0-9]+)*", re.ASCII)

    def __init__(
        self,
        samples: Sequence[str],
        *,
        reserved: Sequence[str] = (),
        namespace: str = "",
        words: str = "",
        max_chars: int = 64,
    ) -> None:
        self.samples = tuple(samples)
        self.reserved = frozenset(reserved)
        self.namespace = namespace
        if words:
            self._words = re.compile(words, re.ASCII)
        self.max_chars = max_chars

    def read(self, text: str) -> str:
        """Parse a name in any of the accepted variants."""
        return text.strip().lower().removeprefix(self.namespace).replace("_", " ").rstrip(" .")

    def check(self, value: Any) -> None:
        """Accept lower-case words and numbers that are not reserved."""
        if not isinstance(value, str):
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        if len(value) > self.max_chars:
            raise BadArguments(f"expected {self.describe()}, got {len(value)} characters")
        if not self._fits(value):
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")

    def _fits(self, value: str) -> bool:
        return bool(self._words.fullmatch(value)) and self.reserved.isdisjoint(value.split(" "))

    def describe(self) -> str:
        """Return an example."""
        return f"a name such as {self.samples[0]!r}"

    def schema(self) -> dict[str, Any]:
        """Return a string schema with a description."""
        return {"type": "string", "maxLength": self.max_chars}

    def strategy(self) -> SearchStrategy[str]:
        """Draw typical names and names of random words."""
        st = strategies()
        word = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
        invented = st.lists(word, min_size=1, max_size=4).map(" ".join).filter(self._fits)
        return st.sampled_from(self.samples) | invented  # type: ignore[no-any-return]

    def sample(self, rng: np.random.Generator) -> str:
        """Draw one of the typical names."""
        return self.samples[int(rng.integers(len(self.samples)))]


class Choice(Argument[str]):
    """One of a few words.

    Args:
        words: The words, in lower case.
    """

    def __init__(self, *words: str) -> None:
        self.words = words

    def read(self, text: str) -> str:
        """Parse one of the words, ignoring case."""
        return " ".join(text.lower().split())

    def check(self, value: Any) -> None:
        """Accept the words."""
        if value not in self.words:
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")

    def describe(self) -> str:
        """List the words."""
        return f"one of {', '.join(map(repr, self.words))}"

    def schema(self) -> dict[str, Any]:
        """Return an enumeration."""
        return {"type": "string", "enum": list(self.words)}

    def strategy(self) -> SearchStrategy[str]:
        """Draw one of the words."""
        return strategies().sampled_from(self.words)  # type: ignore[no-any-return]

    def sample(self, rng: np.random.Generator) -> str:
        """Draw one of the words."""
        return self.words[int(rng.integers(len(self.words)))]


class Text(Argument[str]):
    """Any non-empty text without leading or trailing white space.

    Args:
        samples: Typical texts, for samples and examples.
        max_chars: Longest text, in characters.
        lines: Whether it may have several lines.
        without: Substrings that it must not contain, because the server would interpret them.
    """

    greedy = True

    def __init__(
        self,
        samples: Sequence[str],
        *,
        max_chars: int = 2_000,
        lines: bool = False,
        without: Sequence[str] = (),
    ) -> None:
        self.samples = tuple(samples)
        self.max_chars = max_chars
        self.lines = lines
        self.without = tuple(without)

    def read(self, text: str) -> str:
        """Return the text without leading and trailing white space."""
        return text.strip()

    def check(self, value: Any) -> None:
        """Accept text that can be printed, sent and parsed again."""
        if not isinstance(value, str) or not value:
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        if value != value.strip():
            limits = f"{self.describe()} without white space at its ends"
            raise BadArguments(f"expected {limits}, got {shown(value)}")
        if len(value) > self.max_chars:
            raise BadArguments(f"expected {self.describe()}, got {len(value)} characters")
        if _UNPRINTABLE.search(value) or (not self.lines and "\n" in value):
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        found = [part for part in self.without if part.lower() in value.lower()]
        if found:
            raise BadArguments(f"{found[0]!r} is not allowed in {self.describe()}")

    def describe(self) -> str:
        """Describe the limits."""
        return f"text of at most {self.max_chars} characters" + ("" if self.lines else " on one line")

    def schema(self) -> dict[str, Any]:
        """Return a string schema."""
        return {"type": "string", "minLength": 1, "maxLength": self.max_chars}

    def strategy(self) -> SearchStrategy[str]:
        """Draw typical texts and arbitrary ones."""
        st = strategies()
        letters = st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("[]\"'`<>{} ")
        if self.lines:
            letters |= st.just("\n")
        drawn = st.text(letters, max_size=min(40, self.max_chars)).map(str.strip)
        return st.sampled_from(self.samples) | drawn.filter(self._fits)  # type: ignore[no-any-return]

    def _fits(self, value: str) -> bool:
        try:
            self.check(value)
        except BadArguments:
            return False
        return True

    def sample(self, rng: np.random.Generator) -> str:
        """Draw one of the typical texts."""
        return self.samples[int(rng.integers(len(self.samples)))]
