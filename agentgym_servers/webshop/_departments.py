"""The departments of the shop: kinds of products with their attributes and options."""

from __future__ import annotations

from dataclasses import dataclass

from agentgym_servers._frame.data_files import read_json

__all__ = ["DEPARTMENTS", "Department", "ProductKind", "ProductOption"]


@dataclass(frozen=True)
class ProductOption:
    """An option of a product, such as its size.

    Attributes:
        name: Its name.
        values: The possible values, the cheapest first.
        cents: The difference in price between a value and the previous one.
    """

    name: str
    values: tuple[str, ...]
    cents: int = 0


@dataclass(frozen=True)
class ProductKind:
    """A kind of product.

    noun: Its name, in the plural.
    path: The last two parts of its category.
    dollars: The lowest and the highest price.
    """

    noun: str
    path: tuple[str, str]
    dollars: tuple[int, int]


@dataclass(frozen=True)
class Department:
    """Kinds of products that share their attributes and options.

    Attributes:
        name: The name of the department.
        qualities: Attributes placed before the noun.
        parts: Attributes that follow "with".
        uses: Attributes that follow "for".
        options: The options of its products; colour is an option of every product.
        kinds: The kinds of products.
    """

    name: str
    qualities: tuple[str, ...]
    parts: tuple[str, ...]
    uses: tuple[str, ...]
    options: tuple[ProductOption, ...]
    kinds: tuple[ProductKind, ...]


DEPARTMENTS = tuple(
    Department(
        name=entry["name"],
        qualities=tuple(entry["qualities"]),
        parts=tuple(entry["parts"]),
        uses=tuple(entry["uses"]),
        options=tuple(
            ProductOption(option["name"], tuple(option["values"]), option.get("cents", 0))
            for option in entry["options"]
        ),
        kinds=tuple(
            ProductKind(kind["noun"], tuple(kind["path"]), tuple(kind["dollars"])) for kind in entry["kinds"]
        ),
    )
    for entry in read_json("webshop", "departments.json")
)
"""All departments."""
