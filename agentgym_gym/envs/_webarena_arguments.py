"""Arguments of WebArena's actions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentgym_gym._text import shown
from agentgym_gym.arguments import Integer, Text, strategies
from agentgym_gym.errors import BadArguments

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["BooleanInteger", "OptionalText", "TypedText"]

_KEYS = 1_000  # the server's browser can type the characters below this one

# The text of `type [5] [] [0]` and of `type [5] [tea] []`, if they are read without their last number.
_EMPTY = re.compile(r"\]\s*\[[01]|.*\]\s*\[")


class TypedText(Text):
    """Text that the server's browser can type."""

    def check(self, value: Any) -> None:
        super().check(value)
        if _EMPTY.fullmatch(value):
            raise BadArguments("the text to type or the number after it is empty")
        strange = next((letter for letter in value if ord(letter) >= _KEYS), None)
        if strange:
            raise BadArguments(f"the browser has no key for {shown(strange)}")

    def strategy(self) -> SearchStrategy[str]:
        st = strategies()
        letters = st.characters(max_codepoint=_KEYS - 1, exclude_categories=["Cc"])
        drawn = st.text(letters | st.sampled_from("[]\"'`<>{} 01"), max_size=40).map(str.strip)
        return st.sampled_from(self.samples) | drawn.filter(self._fits)  # type: ignore[no-any-return]


class BooleanInteger(Integer):
    """0 or 1; a call may also pass a boolean."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def from_json(self, value: Any) -> int:
        return int(value) if isinstance(value, bool) else super().from_json(value)


class OptionalText(Text):
    """Text that may be empty, for tasks without an answer."""

    def check(self, value: Any) -> None:
        if value != "":
            super().check(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.max_chars}

    def strategy(self) -> SearchStrategy[str]:
        return strategies().just("") | super().strategy()  # type: ignore[no-any-return]
