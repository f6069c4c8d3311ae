"""The world of WebShop's own files, which the user has downloaded.

The files are those that ``load_products`` of WebShop reads (``web_agent_site/engine/engine.py``), found by
name in one folder: ``items_shuffle*.json``, an array of products; ``items_ins_v2*.json``, the attributes and
instructions of products by product number; and optionally ``items_human_ins.json``, instructions written by
people. Tasks are generated as by ``get_synthetic_goals`` of ``goal.py``: one for each combination of the
options of each product with an instruction, in the order into which AgentGym's server shuffles them. The
tasks with instructions written by people follow.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from agentgym_gym.errors import BadOption
from agentgym_servers._frame.draw import Draw
from agentgym_servers.webshop._json_files import array_items, json_object
from agentgym_servers.webshop._products import Goal, Product, World

__all__ = ["load_world"]

T = TypeVar("T")

_MAX_TASKS = 5_000_000
_ASIN_LETTERS = 10  # AgentGym's server skips products with a longer number, and those called "nan"
_NO_PRICE = 100.0  # the price of a product without one, as on AgentGym's server
_NO_LIMIT = 1_000_000.0  # dollars; for products dearer than the greatest price limit
_LIMITS = tuple(10.0 * step for step in range(1, 100))
_NEAR_LIMITS = 4  # the limit is one of the next four above the price, but never the nearest
_SHUFFLED_BY = 233  # AgentGym's server shuffles its goals with this seed
_HUMAN_FIELDS = ("instruction", "instruction_attributes", "instruction_options")


def load_world(folder: Path) -> World:
    """Return the world of the files in a folder.

    Args:
        folder: The folder.

    Raises:
        BadOption: A file is missing, duplicate or invalid; the message names the file and the item.
    """
    items, instructions = _one_file(folder, "items_shuffle*.json"), _one_file(folder, "items_ins_v2*.json")
    known = json_object(instructions)
    products: list[Product] = []
    by_asin: dict[str, Product] = {}
    asked: list[_Asked] = []
    for number, item in enumerate(array_items(items)):
        read = _Fields(f"{items}: item {number}", item)
        asin = read.text("asin")
        if asin == "nan" or len(asin) > _ASIN_LETTERS or asin in by_asin:
            continue
        more = _Fields(f"{instructions}: {asin}", known.pop(asin, {}))
        product = by_asin[asin] = _product(asin, read, more.texts("attributes", default=()))
        products.append(product)
        asked += _asked(product, more)
    people = _asked_by_people(folder / "items_human_ins.json", by_asin)
    if not asked and not people:
        raise BadOption(f"{instructions} has no instruction for a product of {items}")
    return World(products, _Goals(asked, people, f"{folder}"))


def _one_file(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern)) if folder.is_dir() else []
    if len(found) != 1:
        said = f"there are {', '.join(file.name for file in found)}" if found else "there is none"
        raise BadOption(f"data={str(folder)!r} should be a folder with one file {pattern}, but {said}")
    return found[0]


class _Fields:
    """The fields of an item, validated when they are read.

    Args:
        where: The file and the item, for messages.
        item: The item.
    """

    def __init__(self, where: str, item: Any) -> None:
        self.where = where
        self._item = self.check(item, dict, "the item")

    def get(self, name: str) -> Any:
        return self._item.get(name)

    def text(self, name: str) -> str:
        return self.check(self._item.get(name), str, name)

    def texts(self, name: str, *, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        if name not in self._item and default is not None:
            return default
        return tuple(self.check(each, str, name) for each in self.check(self._item.get(name), list, name))

    def check(self, value: Any, kind: type[T], name: str) -> T:
        if not isinstance(value, kind):
            raise BadOption(f"{self.where}: {name} should be of type {kind.__name__}, not {value!r:.50}")
        return value


def _product(asin: str, read: _Fields, attributes: tuple[str, ...]) -> Product:
    features = read.get("small_description")
    price, tag = _price(asin, read)
    return Product(
        asin=asin,
        name=read.text("name"),
        query=read.text("query").lower().strip(),
        path=read.text("product_category"),
        attributes=attributes,
        options=_options(read),
        description=read.text("full_description"),
        features=(features,) if isinstance(features, str) else read.texts("small_description"),
        price=price,
        price_tag=tag,
    )


def _options(read: _Fields) -> dict[str, tuple[str, ...]]:
    name = "customization_options"
    given = read.check(read.get(name) or {}, dict, name)
    options: dict[str, tuple[str, ...]] = {}
    for option, contents in given.items():
        if contents is not None:
            values = [read.check(each, dict, name).get("value") for each in read.check(contents, list, name)]
            texts = [read.check(value, str, name) for value in values]
            options[option.lower()] = tuple(text.strip().replace("/", " | ").lower() for text in texts)
    return options


def _price(asin: str, read: _Fields) -> tuple[float, str]:
    """Return the price as a number and as text; a price in a range is seeded, unlike on AgentGym's server."""
    given = read.get("pricing")
    if not given:
        return _NO_PRICE, f"${_NO_PRICE}"
    try:
        bounds = [float(re.sub(r"[^\d.]", "", part)) for part in read.text("pricing").split("$")[1:3]]
    except ValueError:
        bounds = []
    if not bounds or not all(map(math.isfinite, bounds)):
        raise BadOption(
            f"{read.where}: pricing should be like '$9.99' or '$9.99 to $19.99', not {given!r:.50}"
        )
    if len(bounds) == 1:
        return bounds[0], f"${bounds[0]}"
    share = Draw("webshop", "price", asin).below(1_001) / 1_000
    return round(bounds[0] + share * (bounds[1] - bounds[0]), 2), f"${bounds[0]} to ${bounds[1]}"


@dataclass(frozen=True, slots=True)
class _Asked:
    """An instruction.

    Attributes:
        product: The product it is for.
        text: The instruction without the options and the price.
        attributes: The required attributes.
        options: The required values of options; None for one task per combination.
    """

    product: Product
    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] | None = None

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return 1 if self.options is not None else math.prod(map(len, self.product.options.values()))

    def goal(self, number: int) -> Goal:
        """Return the goal of one of the tasks."""
        product, options, text = self.product, self.options, self.text
        if options is None:
            chosen = _combination(product.options, number)
            options = tuple(chosen.values())
            told = ", and ".join(f"{name}: {value}" for name, value in chosen.items())
            text += f" with {told}" if told else ""
        limits = list(itertools.islice((each for each in _LIMITS if each > product.price), _NEAR_LIMITS))
        if len(limits) > 1:
            limit = Draw("webshop", "limit", product.asin).one(limits[1:])
            text += f", and price lower than {limit:.2f} dollars"
        else:
            limit = _NO_LIMIT
        return Goal(text, product, self.attributes, options, limit)


def _combination(options: Mapping[str, tuple[str, ...]], number: int) -> dict[str, str]:
    """Return a combination of values, by option name; the last option changes first."""
    chosen: dict[str, str] = {}
    for name in sorted(options, reverse=True):
        number, place = divmod(number, len(options[name]))
        chosen[name] = options[name][place]
    return dict(reversed(chosen.items()))


def _asked(product: Product, more: _Fields) -> list[_Asked]:
    if more.get("instruction") is None:
        return []
    attributes = more.texts("instruction_attributes")
    if not attributes:
        raise BadOption(f"{more.where}: the instruction asks for no attributes")
    return [_Asked(product, more.text("instruction"), attributes)]


def _asked_by_people(file: Path, by_asin: Mapping[str, Product]) -> list[_Asked]:
    if not file.exists():
        return []
    asked = []
    for asin, given in json_object(file).items():
        if asin not in by_asin:
            continue
        where = f"{file}: {asin}"
        for each in given if isinstance(given, list) else [given]:
            read = _Fields(where, each)
            text, attributes, options = read.text("instruction"), *map(read.texts, _HUMAN_FIELDS[1:])
            if attributes:  # AgentGym's WebShop skips the others
                asked.append(_Asked(by_asin[asin], text.strip("."), attributes, options))
    return asked


class _Goals:
    """The goals of all tasks. Each is generated on request, because there may be many.

    Args:
        asked: The instructions whose tasks are shuffled.
        people: The instructions whose tasks follow these.
        where: The folder, for messages.
    """

    def __init__(self, asked: Sequence[_Asked], people: Sequence[_Asked], where: str) -> None:
        self._asked = [each for each in (*asked, *people) if each.tasks]
        self._ends = list(itertools.accumulate(each.tasks for each in self._asked))
        self._count = self._ends[-1] if self._ends else 0
        if not 0 < self._count <= _MAX_TASKS:
            raise BadOption(f"{where} holds {self._count} tasks; it should be from 1 to {_MAX_TASKS}")
        # Not a draw of this world: this is AgentGym's order, so that each task has the same id as there.
        # `random` returns it in all versions of Python 3.
        self._order = array("I", range(self._count - len(people)))
        random.Random(_SHUFFLED_BY).shuffle(self._order)  # noqa: S311 - nothing secret

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, task: int, /) -> Goal:
        task = range(self._count)[task]
        number = self._order[task] if task < len(self._order) else task
        place = bisect_right(self._ends, number)
        asked = self._asked[place]
        return asked.goal(number - self._ends[place] + asked.tasks)
