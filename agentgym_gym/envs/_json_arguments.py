"""Compound arguments of the tools: any plain value, lists, and optional values."""

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

_MAX_NUMBER = 10**18  # so that none is too long to be written or read
_MAX_DEPTH = 8
_NOT_PLAIN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BMP = 0xFFFF  # above it Python and JSON have no escape in common
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_PLAIN = re.compile(r"[ !#-\[\]-~]*")  # what most values are, and all names: it is read fastest
# What does not stand for itself in a literal. Behind a letter whose escape may end in "f", "inish" is another
# "finish".
_SPELT = re.compile(r'["\\]|[^ -~]|(?i:f(?=inish)|(?<=[^ -~])i(?=nish))')


def literal(value: Any) -> str:
    r"""Return a plain value as a literal that means the same in Python and (but for None and booleans) JSON.

    The word that ends an episode wherever AgentGym's server sees it is escaped.

    >>> literal({"a": ["it's", 1.0, None], "b": "Finished"})
    '{"a": ["it\'s", 1.0, None], "b": "\\u0046inished"}'
    """
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and "inish" not in value.lower()
        return f'"{value}"' if plain else f'"{_SPELT.sub(_spelling, value)}"'
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (dict, Mapping)):  # a dict is told at once
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(literal, value)) + "]"
    return repr(value)


class Value(Argument[Any]):
    """Any plain value: text, number, truth value, None, a list or an object of such.

    Args:
        samples: Likely values, for samples and examples.
        nested: Whether lists, objects, truth values and None are allowed.
    """

    def __init__(self, *samples: Any, nested: bool = True) -> None:
        self.samples = samples
        self.nested = nested

    def read(self, text: str) -> Any:
        """Read text as itself: a string is an answer as good as any."""
        return self.from_json(text)

    def check(self, value: Any) -> None:
        """Accept what can be written out, sent and read again."""
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
        """Accept JSON values as they are; lists become tuples."""
        self.check(value)
        return _frozen(value)

    def to_json(self, value: Any) -> Any:
        """Return lists for tuples."""
        if isinstance(value, (list, tuple)):
            return [self.to_json(part) for part in value]
        if isinstance(value, Mapping):
            return {key: self.to_json(part) for key, part in value.items()}
        return value

    def describe(self) -> str:
        """Name the types."""
        return "text, a number, a list or an object" if self.nested else "text or a number"

    def schema(self) -> dict[str, Any]:
        """Return a schema of all types allowed."""
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
        kind: The kind.
        max_items: Greatest number of values.
    """

    def __init__(self, kind: Argument[Any], *, max_items: int = 200) -> None:
        self.kind = kind
        self.max_items = max_items

    def read(self, text: str) -> tuple[Any, ...]:
        """Refuse text: what a list is written as depends on the format."""
        raise BadArguments(f"expected {self.describe()}, got {shown(text)}")

    def check(self, value: Any) -> None:
        """Accept tuples of the right length of values of the kind."""
        if not isinstance(value, tuple) or not 1 <= len(value) <= self.max_items:
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        for each in value:
            self.kind.check(each)

    def from_json(self, value: Any) -> tuple[Any, ...]:
        """Accept a list."""
        if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= self.max_items:
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        return tuple(map(self.kind.from_json, value))

    def to_json(self, value: tuple[Any, ...]) -> Any:
        """Return a list."""
        return list(map(self.kind.to_json, value))

    def describe(self) -> str:
        """Say what it holds."""
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
    """A value of a kind, or None for an argument that is left out.

    Args:
        kind: The kind.
    """

    def __init__(self, kind: Argument[Any]) -> None:
        self.kind = kind

    def read(self, text: str) -> Any:
        """Read a value of the kind."""
        return self.kind.read(text)

    def check(self, value: Any) -> None:
        """Accept None and values of the kind."""
        if value is not None:
            self.kind.check(value)

    def from_json(self, value: Any) -> Any:
        """Accept null too."""
        return None if value is None else self.kind.from_json(value)

    def to_json(self, value: Any) -> Any:
        """Return what the kind returns."""
        return None if value is None else self.kind.to_json(value)

    def describe(self) -> str:
        """Say what the kind says."""
        return self.kind.describe()

    def schema(self) -> dict[str, Any]:
        """Return the schema of the kind."""
        return self.kind.schema()

    def strategy(self) -> SearchStrategy[Any]:
        """Draw None or a value."""
        return strategies().none() | self.kind.strategy()  # type: ignore[no-any-return]

    def sample(self, rng: np.random.Generator) -> Any:
        """Leave it out."""
        return None


def _check_text(value: str) -> None:
    if len(value) > MAX_CHARS or _NOT_PLAIN.search(value):
        raise BadArguments(f"expected text of at most {MAX_CHARS} printable characters")
    found = [mark for mark in MARKS if mark in value.lower()]
    if found:
        raise BadArguments(f"{found[0]!r} cannot stand in an action")


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
