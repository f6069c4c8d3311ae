"""The cost of a run, from the user's price table. No prices are built in, because they change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym._text import shown
from agentgym_gym.errors import BadFile, BadOption
from agentgym_gym.evaluate._toml import located, read_toml

if TYPE_CHECKING:
    from agentgym_gym.evaluate._figures.tokens import Tokens

__all__ = ["Price", "price_of", "read_prices"]

_NAMES = ("input", "cached_input", "output")
_PER = 1_000_000
_MOST = 1e9  # far above any price, and far below overflow


@dataclass(frozen=True)
class Price:
    """Price per million tokens, in the currency of the table.

    Attributes:
        input: Price of prompt tokens.
        output: Price of completion tokens, including reasoning.
        cached_input: Price of prompt tokens that the server read from its cache; by default ``input``.
    """

    input: float
    output: float
    cached_input: float | None = None

    def cost(self, tokens: Tokens) -> float | None:
        """Return the cost of tokens.

        Returns:
            The cost; None if some replies lack token counts. If the server does not report cached tokens,
            none are assumed to be cached.
        """
        if tokens.prompt is None or tokens.completion is None or tokens.uncounted:
            return None
        return self.of(tokens.prompt, tokens.completion, tokens.cached)

    def of(self, prompt: int, completion: int, cached: int | None = None) -> float:
        """Return the cost of token counts.

        Args:
            prompt: Prompt tokens.
            completion: Completion tokens.
            cached: Prompt tokens from the server's cache.
        """
        cached = min(cached or 0, prompt)
        cached_price = self.input if self.cached_input is None else self.cached_input
        return ((prompt - cached) * self.input + cached * cached_price + completion * self.output) / _PER


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return the price of a model.

    Args:
        model: The model's name.
        prices: Prices by model name, or by shell pattern with ``*``, ``?`` and ``[...]``. An exact name wins;
            otherwise the first matching pattern.

    Returns:
        The price; None if the table has no match.
    """
    if model in prices:
        return prices[model]
    return next((price for pattern, price in prices.items() if fnmatchcase(model, pattern)), None)


def read_prices(path: Path) -> dict[str, Price]:
    """Read a table of prices per million tokens by model from a TOML or JSON file.

    In TOML, the entry of a model or pattern is:

    .. code-block:: toml

        ["Qwen/Qwen3-*"]
        input = 0.20
        cached_input = 0.02
        output = 0.60

    Args:
        path: The file: JSON if its name ends in ``.json``, otherwise TOML.

    Raises:
        BadOption: The file cannot be read or is not a price table; the message names the model.
        MissingExtra: Python 3.10 needs the package ``tomli`` for TOML.
    """
    table = _content(path)
    if not isinstance(table, dict):
        raise BadFile(f"{path} should be a table of prices by model, not {shown(table)}", path=path)
    prices = {}
    for model, value in table.items():
        with located(f"the price of {model!r:.100} in {path}"):
            prices[model] = _price(value)
    return prices


def _content(path: Path) -> Any:
    try:
        text = path.read_bytes().decode("utf-8")
        return (
            json.loads(text)
            if path.suffix.lower() == ".json"
            else read_toml(text, "A table of prices in TOML")
        )
    except OSError as error:
        raise BadFile(f"cannot read {path}: {error.strerror or error}", path=path) from error
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path} cannot be read as a table of prices: {error}", path=path) from None


def _price(value: Any) -> Price:
    if not isinstance(value, dict):
        raise BadOption(f"expected a table with {', '.join(_NAMES)}, got {shown(value)}")
    unknown = sorted(set(value) - set(_NAMES))
    if unknown:
        raise BadOption(
            f"there is no key {shown(unknown[0])}; the keys are {', '.join(_NAMES)}. A model name that "
            "contains a dot needs quotation marks"
        )
    missing = [name for name in ("input", "output") if name not in value]
    if missing:
        raise BadOption(missing[0], problem="is missing")
    for name, number in value.items():
        good = isinstance(number, (int, float)) and not isinstance(number, bool)
        if not good or not 0 <= number <= _MOST:
            raise BadOption(name, number, f"a number from 0 to {_MOST:g}")
    return Price(**value)
