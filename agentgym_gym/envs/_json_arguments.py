"""Compound arguments of the tool environments: arbitrary values, lists and optional values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentgym_gym._text import shown
from agentgym_gym.arguments import Argument, strategies
from agentgym_gym.envs._scalar_arguments import MARKS, MAX_CHARS
from agentgym_gym.errors import BadArguments

if TYPE_CHECKING:
    import numpy as np
    from hypothesis.strategies import SearchStrategy

__all__ = ["ListOfValues", "Maybe", "Value", "literal"]

_MAX_NUMBER = 10**18  # keeps every number short enough to write and parse
_MAX_DEPTH = 8
_NOT_PLAIN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BMP = 0xFFFF  # beyond it, Python and JSON share no escape sequence
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_PLAIN = re.compile(r"[ !#-\[\]-~]*")  # fast path: most values, and all names
# Characters to escape in a literal. After a letter whose escape may end in "f", "inish" would spell another
# "finish".
_SPELT = re.compile(r'["\\]|[^ -~]|(?i:f(?=inish)|(?<=[^ -~])i(?=nish))')


def literal(value: Any) -> str:
    r"""Return a value as a literal of Python and JSON (None and booleans are written as in Python).

    The word "finish" is escaped, since AgentGym's server ends the episode wherever it finds that word.

    >>> literal({"a": ["it's", 1.0, None], "b": "Finished"})
    '{"a": ["it\'s", 1.0, None], "b": "\\u0046inished"}'
    """
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and "inish" not in value.lower()
        return f'"{value}"' if plain else f'"{_SPELT.sub(_spelling, value)}"'
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (dict, Mapping)):  # `dict` first: the check against it is faster
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(literal, value)) + "]"
    return repr(value)


class Value(Argument[Any]):
    """Any plain value: text, a number, a boolean, None, or a list or object of these.

    Args:
        samples: Likely values, for sampling and examples.
        nested: Whether lists, objects, booleans and None are allowed.
    """

    def __init__(self, *samples: Any, nested: bool = True) -> None:
        self.samples = samples
        self.nested = nested

    def read(self, text: str) -> Any:
        """Return the text unchanged: a string is a valid value."""
        return self.from_json(text)

    def check(self, value: Any) -> None:
        """Accept values that can be serialized, sent and parsed again."""
        self._check(value, 0)

    def _check(self, value: Any, depth: int) -> None:
        if isinstance(value, str):
            _check_text(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if not -_MAX_NUMBER < value < _MAX_NUMBER:
                raise BadArguments("a number must be finite and not that large")
        elif not self.nested or depth >= _MAX_DEPTH:
            raise BadArguments(f"expected {self.describe()}, not {shown(value)}")
        elif not isinstance(value, bool) and value is not None:
            for part in self._parts(value):
                self._check(part, depth + 1)

    def _parts(self, value: Any) -> list[Any]:
        if isinstance(value, (list, tuple)):
            return list(value)
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return [*value, *value.values()]
        raise BadArguments(f"expected {self.describe()}, got {shown(value)}")

    def from_json(self, value: Any) -> Any:
        """Accept JSON values unchanged, except that lists become tuples."""
        self.check(value)
        return _frozen(value)

    def to_json(self, value: Any) -> Any:
        """Convert tuples to lists."""
        if isinstance(value, (list, tuple)):
            return [self.to_json(part) for part in value]
        if isinstance(value, Mapping):
            return {key: self.to_json(part) for key, part in value.items()}
        return value

    def describe(self) -> str:
        """Describe the allowed types."""
        return "text, a number, a list or an object" if self.nested else "text or a number"

    def schema(self) -> dict[str, Any]:
        """Return a schema of all allowed types."""
        more = ["array", "object", "boolean", "null"] if self.nested else []
        return {"type": ["string", "number", *more]}

    def strategy(self) -> SearchStrategy[Any]:
        """Draw any value."""
        st = strategies()
        letters = st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\"'\\`<>{}[]\n\t ")
        texts = (st.text(letters, max_size=30) | st.sampled_from(["finish", "FINISH it"])).filter(self._fits)
        plain = texts | st.integers(-_MAX_NUMBER + 1, _MAX_NUMBER - 1)
        plain |= st.floats(-1e17, 1e17)
        if not self.nested:
            return plain  # type: ignore[no-any-return]
        plain |= st.none() | st.booleans() | st.sampled_from(self.samples)
        return st.recursive(  # type: ignore[no-any-return]
            plain,
            lambda v: st.lists(v, max_size=3).map(tuple) | st.dictionaries(texts, v, max_size=3),
            max_leaves=6,
        ).filter(self._fits)

    def _fits(self, value: Any) -> bool:
        try:
            self.check(value)
        except BadArguments:
            return False
        return True

    def sample(self, rng: np.random.Generator) -> Any:
        """Draw one of the likely values."""
        return self.samples[int(rng.integers(len(self.samples)))]


class ListOfValues(Argument[tuple[Any, ...]]):
    """One or more values of one kind.

    Args:
        kind: The argument type of each value.
        max_items: Maximum number of values.
    """

    def __init__(self, kind: Argument[Any], *, max_items: int = 200) -> None:
        self.kind = kind
        self.max_items = max_items

    def read(self, text: str) -> tuple[Any, ...]:
        """Reject plain text: the syntax of a list depends on the reply format."""
        raise BadArguments(f"expected {self.describe()}, got {shown(text)}")

    def check(self, value: Any) -> None:
        """Accept non-empty tuples of at most ``max_items`` valid values."""
        if not isinstance(value, tuple) or not 1 <= len(value) <= self.max_items:
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        for each in value:
            self.kind.check(each)

    def from_json(self, value: Any) -> tuple[Any, ...]:
        """Convert a list to a tuple."""
        if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= self.max_items:
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        return tuple(map(self.kind.from_json, value))

    def to_json(self, value: tuple[Any, ...]) -> Any:
        """Convert to a list."""
        return list(map(self.kind.to_json, value))

    def describe(self) -> str:
        """Describe the length and the kind of the values."""
        return f"a list of 1 to {self.max_items} of: {self.kind.describe()}"

    def schema(self) -> dict[str, Any]:
        """Return an array schema."""
        return {
            "type": "array",
            "items": self.kind.schema(),
            "minItems": 1,
            "maxItems": self.max_items,
        }

    def strategy(self) -> SearchStrategy[tuple[Any, ...]]:
        """Draw up to three values."""
        drawn = strategies().lists(self.kind.strategy(), min_size=1, max_size=3)
        return drawn.map(tuple)  # type: ignore[no-any-return]

    def sample(self, rng: np.random.Generator) -> tuple[Any, ...]:
        """Draw one or two values."""
        return tuple(self.kind.sample(rng) for _ in range(int(rng.integers(1, 2, endpoint=True))))


class Maybe(Argument[Any]):
    """An optional argument: a value of a kind, or None if omitted.

    Args:
        kind: The argument type of the value.
    """

    def __init__(self, kind: Argument[Any]) -> None:
        self.kind = kind

    def read(self, text: str) -> Any:
        """Parse a value of the kind."""
        return self.kind.read(text)

    def check(self, value: Any) -> None:
        """Accept None and valid values of the kind."""
        if value is not None:
            self.kind.check(value)

    def from_json(self, value: Any) -> Any:
        """Convert a JSON value; null is accepted."""
        return None if value is None else self.kind.from_json(value)

    def to_json(self, value: Any) -> Any:
        """Convert a value with the kind; None stays None."""
        return None if value is None else self.kind.to_json(value)

    def describe(self) -> str:
        """Return the description of the kind."""
        return self.kind.describe()

    def schema(self) -> dict[str, Any]:
        """Return the schema of the kind."""
        return self.kind.schema()

    def strategy(self) -> SearchStrategy[Any]:
        """Draw None or a value."""
        return strategies().none() | self.kind.strategy()  # type: ignore[no-any-return]

    def sample(self, rng: np.random.Generator) -> Any:
        """Return None: samples omit the argument."""
        return None


def _check_text(value: str) -> None:
    if len(value) > MAX_CHARS or _NOT_PLAIN.search(value):
        raise BadArguments(f"expected text of at most {MAX_CHARS} printable characters")
    found = [mark for mark in MARKS if mark in value.lower()]
    if found:
        raise BadArguments(f"{found[0]!r} is not allowed in an action")


def _spelling(found: re.Match[str]) -> str:
    letter = found[0]
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    itself = letter not in "fFiI" and (letter.isprintable() or ord(letter) > _BMP)
    return letter if itself else f"\\u{ord(letter):04x}"


def _frozen(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    if isinstance(value, Mapping):
        return {key: _frozen(part) for key, part in value.items()}
    return value
