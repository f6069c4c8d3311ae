"""Scalar arguments of the tool environments: texts, ids, cells, words, numbers and dates."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from agentgym_gym._text import shown
from agentgym_gym.actions import MAX_ACTION_CHARS
from agentgym_gym.arguments import Argument, Choice, Text, strategies
from agentgym_gym.errors import BadArguments

if TYPE_CHECKING:
    import numpy as np
    from hypothesis.strategies import SearchStrategy

__all__ = ["MARKS", "MAX_CHARS", "Cell", "Date", "Id", "Number", "OneOf", "ShortText"]

MAX_CHARS = MAX_ACTION_CHARS
"""Maximum length of a text. Gold answers reach 2,915 characters; the whole action has a limit too."""

MARKS = ("```", "<|", "<｜", "</s>", "<end_of_turn>", "think>", "<action>", "</action>")
"""Marks that end a turn, a thought or an action in one of the formats, so an action cannot contain them."""

_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_DATE = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})", re.ASCII)
_MAX_INTEGER = 10**18  # keeps every number short enough to write


class ShortText(Text):
    """Text of one or more lines, without marks that end a turn, a thought or an action in a reply."""

    def __init__(self, *samples: str) -> None:
        super().__init__(samples, max_chars=MAX_CHARS, lines=True, without=MARKS)

    def from_json(self, value: Any) -> str:
        """Accept integers too: a film may be called 300."""
        return super().from_json(_as_text(value))


class Id(Text):
    """An id as text; an integer is converted to its digits.

    Args:
        samples: Likely ids.
    """

    _pattern = "[A-Za-z0-9_-]{1,64}"  # no character that could change the path of a URL
    _example = "an id"

    def __init__(self, *samples: str) -> None:
        super().__init__(samples)

    def from_json(self, value: Any) -> str:
        """Accept integers too."""
        return super().from_json(_as_text(value))

    def check(self, value: Any) -> None:
        """Accept strings that match the pattern."""
        if not isinstance(value, str) or not re.fullmatch(self._pattern, value, re.ASCII):
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")

    def describe(self) -> str:
        """Describe the id with an example."""
        return f"{self._example} such as {self.samples[0]!r}"

    def schema(self) -> dict[str, Any]:
        """Return a string schema with a pattern."""
        return {"type": "string", "pattern": f"^{self._pattern}$"}

    def strategy(self) -> SearchStrategy[str]:
        """Draw likely ids and arbitrary ones."""
        st = strategies()
        return st.sampled_from(self.samples) | st.from_regex(self._pattern, fullmatch=True)  # type: ignore[no-any-return]


class Cell(Id):
    """The name of a spreadsheet cell, such as B2.

    Args:
        letters: Maximum number of column letters; formulas accept only one.
    """

    _example = "a cell"

    def __init__(self, letters: int = 2) -> None:
        super().__init__("B2", "A1", "D13", "G2")
        self._pattern = f"[A-Z]{{1,{letters}}}[1-9][0-9]{{0,4}}"

    def read(self, text: str) -> str:
        """Accept lower case letters and the dollar signs of absolute references."""
        return super().read(text.strip().upper().replace("$", ""))


class OneOf(Choice):
    """One of a few words, in the capitalization that the server requires; booleans are accepted as words."""

    def __init__(self, *words: str) -> None:
        super().__init__(*words)
        self._meant = {word.lower(): word for word in words}

    def read(self, text: str) -> str:
        """Return the word that matches the text regardless of case."""
        return self._meant.get(text.strip().lower(), text)

    def from_json(self, value: Any) -> str:
        """Accept booleans if "True" and "False" are among the words."""
        return super().from_json(str(value) if isinstance(value, bool) else value)


class Number(Argument[float]):
    """A number within bounds; the integer 1 and the float 1.0 are distinct values.

    Args:
        minimum: Smallest allowed value.
        maximum: Largest allowed value.
    """

    def __init__(self, minimum: int, maximum: int) -> None:
        self.minimum = minimum
        self.maximum = maximum

    def read(self, text: str) -> float:
        """Parse a decimal number."""
        text = text.strip()
        if not _NUMBER.fullmatch(text):
            raise BadArguments(f"expected {self.describe()}, got {shown(text)}")
        return float(text) if set(text) & set(".eE") else int(text)

    def check(self, value: Any) -> None:
        """Accept integers and floats in the range, but not booleans."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        if not self.minimum <= value <= self.maximum:
            raise BadArguments(f"expected {self.describe()}, got a number out of that range")

    def from_json(self, value: Any) -> float:
        """Accept numbers and strings of digits."""
        if isinstance(value, str):
            return self.read(value)
        number: float = value
        return number

    def describe(self) -> str:
        """Describe the range."""
        return f"a number from {self.minimum} to {self.maximum}"

    def schema(self) -> dict[str, Any]:
        """Return a number schema with both bounds."""
        return {"type": "number", "minimum": self.minimum, "maximum": self.maximum}

    def strategy(self) -> SearchStrategy[float]:
        """Draw from the whole range."""
        st = strategies()
        bounds = (self.minimum, self.maximum)
        return st.floats(*bounds) | st.integers(*bounds)  # type: ignore[no-any-return]

    def sample(self, rng: np.random.Generator) -> float:
        """Draw a number with two decimals."""
        return round(float(rng.uniform(self.minimum, self.maximum)), 2)


class Date(Argument[str]):
    """A calendar date, as YYYY-MM-DD."""

    def read(self, text: str) -> str:
        """Parse a date, with or without leading zeros."""
        found = _DATE.fullmatch(text.strip())
        return f"{found[1]}-{found[2]:0>2}-{found[3]:0>2}" if found else text

    def check(self, value: Any) -> None:
        """Accept dates that exist."""
        try:
            exists = isinstance(value, str) and len(value) == len("YYYY-MM-DD") and value.isascii()
            if exists and date.fromisoformat(value).isoformat() == value:
                return
        except ValueError:
            pass
        raise BadArguments(f"expected {self.describe()}, got {shown(value)}")

    def describe(self) -> str:
        """Describe the date with an example."""
        return "a date such as '2023-06-15'"

    def schema(self) -> dict[str, Any]:
        """Return a string schema with a pattern."""
        return {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}

    def strategy(self) -> SearchStrategy[str]:
        """Draw any date."""
        return strategies().dates().map(date.isoformat)  # type: ignore[no-any-return]

    def sample(self, rng: np.random.Generator) -> str:
        """Draw a date from the years that the tasks cover."""
        return (date(2015, 1, 1) + timedelta(days=int(rng.integers(3_000)))).isoformat()


def _as_text(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and -_MAX_INTEGER < value < _MAX_INTEGER:
        return str(value)
    return value
