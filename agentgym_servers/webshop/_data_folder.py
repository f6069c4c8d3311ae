"""The world of WebShop's own files, which the user has downloaded.

``load_products`` of WebShop (``web_agent_site/engine/engine.py``) reads the same files. They are found by
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
from agentgym_servers.webshop._products import Goal, Product, RequiredOption, ShopWorld

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


def load_world(folder: Path) -> ShopWorld:
    """Return the world of the files in a folder.

    Args:
        folder: The folder.

    Raises:
        BadOption: A file is missing, duplicate or invalid; the message names the file and the item.
    """
    items = _one_file(folder, "items_shuffle*.json")
    instructions_file = _one_file(folder, "items_ins_v2*.json")
    entries = json_object(instructions_file)
    products: list[Product] = []
    by_asin: dict[str, Product] = {}
    instructions: list[_Instruction] = []
    for number, item in enumerate(array_items(items)):
        fields = _Fields(f"{items}: item {number}", item)
        asin = fields.text("asin")
        if asin == "nan" or len(asin) > _ASIN_LETTERS or asin in by_asin:
            continue
        entry = _Fields(f"{instructions_file}: {asin}", entries.pop(asin, {}))
        product = by_asin[asin] = _product(asin, fields, entry.texts("attributes", default=()))
        products.append(product)
        instructions += _product_instructions(product, entry)
    human = _human_instructions(folder / "items_human_ins.json", by_asin)
    if not instructions and not human:
        raise BadOption(f"{instructions_file} has no instruction for a product of {items}")
    return ShopWorld(products, _Goals(instructions, human, f"{folder}"))


def _one_file(folder: Path, pattern: str) -> Path:
    files = sorted(folder.glob(pattern)) if folder.is_dir() else []
    if len(files) != 1:
        names = f"there are {', '.join(file.name for file in files)}" if files else "there is none"
        raise BadOption("data", str(folder), f"a folder with one file {pattern}, but {names}")
    return files[0]


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


def _product(asin: str, fields: _Fields, attributes: tuple[str, ...]) -> Product:
    features = fields.get("small_description")
    price, tag = _price(asin, fields)
    return Product(
        asin=asin,
        name=fields.text("name"),
        query=fields.text("query").lower().strip(),
        path=fields.text("product_category"),
        attributes=attributes,
        options=_options(fields),
        description=fields.text("full_description"),
        features=(features,) if isinstance(features, str) else fields.texts("small_description"),
        price=price,
        price_tag=tag,
    )


def _options(fields: _Fields) -> dict[str, tuple[str, ...]]:
    name = "customization_options"
    contents_by_option = fields.check(fields.get(name) or {}, dict, name)
    options: dict[str, tuple[str, ...]] = {}
    for option, contents in contents_by_option.items():
        if contents is not None:
            values = [
                fields.check(each, dict, name).get("value") for each in fields.check(contents, list, name)
            ]
            texts = [fields.check(value, str, name) for value in values]
            options[option.lower()] = tuple(text.strip().replace("/", " | ").lower() for text in texts)
    return options


def _price(asin: str, fields: _Fields) -> tuple[float, str]:
    """Return the price as a number and as text; a price in a range is seeded, unlike on AgentGym's server."""
    pricing = fields.get("pricing")
    if not pricing:
        return _NO_PRICE, f"${_NO_PRICE}"
    try:
        bounds = [float(re.sub(r"[^\d.]", "", part)) for part in fields.text("pricing").split("$")[1:3]]
    except ValueError:
        bounds = []
    if not bounds or not all(map(math.isfinite, bounds)):
        raise BadOption(
            f"{fields.where}: pricing should be like '$9.99' or '$9.99 to $19.99', not {pricing!r:.50}"
        )
    if len(bounds) == 1:
        return bounds[0], f"${bounds[0]}"
    share = Draw("webshop", "price", asin).below(1_001) / 1_000
    return round(bounds[0] + share * (bounds[1] - bounds[0]), 2), f"${bounds[0]} to ${bounds[1]}"


@dataclass(frozen=True, slots=True)
class _Instruction:
    """An instruction to buy a product; tasks are made from it.

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
        product, text = self.product, self.text
        if self.options is not None:
            options = tuple(map(RequiredOption, self.options))
        else:
            chosen = _combination(product.options, number)
            options = tuple(RequiredOption(value, name) for name, value in chosen.items())
            option_text = ", and ".join(f"{name}: {value}" for name, value in chosen.items())
            text += f" with {option_text}" if option_text else ""
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


def _product_instructions(product: Product, entry: _Fields) -> list[_Instruction]:
    if entry.get("instruction") is None:
        return []
    attributes = entry.texts("instruction_attributes")
    if not attributes:
        raise BadOption(f"{entry.where}: the instruction requires no attributes")
    return [_Instruction(product, entry.text("instruction"), attributes)]


def _human_instructions(file: Path, by_asin: Mapping[str, Product]) -> list[_Instruction]:
    if not file.exists():
        return []
    instructions = []
    for asin, content in json_object(file).items():
        if asin not in by_asin:
            continue
        where = f"{file}: {asin}"
        for entry in content if isinstance(content, list) else [content]:
            fields = _Fields(where, entry)
            text, attributes, options = fields.text("instruction"), *map(fields.texts, _HUMAN_FIELDS[1:])
            if attributes:  # AgentGym's WebShop skips the others
                instructions.append(_Instruction(by_asin[asin], text.strip("."), attributes, options))
    return instructions


class _Goals:
    """The goals of all tasks. Each is generated on request, because there may be many.

    Args:
        shuffled: The instructions whose tasks are shuffled.
        human: The instructions whose tasks follow these.
        where: The folder, for messages.
    """

    def __init__(self, shuffled: Sequence[_Instruction], human: Sequence[_Instruction], where: str) -> None:
        self._instructions = [each for each in (*shuffled, *human) if each.tasks]
        self._ends = list(itertools.accumulate(each.tasks for each in self._instructions))
        self._count = self._ends[-1] if self._ends else 0
        if not 0 < self._count <= _MAX_TASKS:
            raise BadOption(f"{where} has {self._count} tasks; it should have 1 to {_MAX_TASKS}")
        # Not a draw of this world: this is AgentGym's order, so that each task has the same id as there.
        # `random` returns it in all versions of Python 3.
        self._order = array("I", range(self._count - len(human)))
        random.Random(_SHUFFLED_BY).shuffle(self._order)  # noqa: S311 - nothing secret

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, task: int, /) -> Goal:
        task = range(self._count)[task]
        number = self._order[task] if task < len(self._order) else task
        place = bisect_right(self._ends, number)
        instruction = self._instructions[place]
        return instruction.goal(number - self._ends[place] + instruction.tasks)
