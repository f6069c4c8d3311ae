"""Stock tasks of Sheet: each function makes one, or returns None if the draw gives none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agentgym_servers._frame.tool_tasks import FunctionCall
from agentgym_servers.sheet._cells import format_value
from agentgym_servers.sheet._tables import SheetDraft, delete_rows, fill, format_rows, inventory, sort, write

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["STOCK"]


def _sales(draw: Draw) -> SheetDraft:
    """Subtract the sold quantities from the stock."""
    table = inventory(draw)
    cells = table.cells
    sold = [float(draw.between(1, 39)) for _ in table.rows]
    listing = format_rows(["Product", "Sold"], zip(table.column("Product"), sold, strict=True))
    pairs = list(zip(table.column("Quantity"), sold, strict=True))
    remaining = [before - less for before, less in pairs]
    why = f"Less the sold: {', '.join(f'{one:g}-{less:g}={one - less:g}' for one, less in pairs)}."
    calls = (fill(table, "Quantity", remaining, why), *sort(table, "Quantity", "des"))
    goal = (
        f'The stock of a shop is in "{{sheet}}". This was sold today: {listing}. Take it off the column '
        '"Quantity", then sort the products by "Quantity" in descending order.'
    )
    return SheetDraft(goal, cells, calls)


def _worst_rated(draw: Draw) -> SheetDraft:
    """Raise the discount of the three products with the lowest ratings."""
    table = inventory(draw)
    cells = table.cells
    worst = sorted(range(len(table.rows)), key=lambda row: table.column("Rating")[row])[:3]
    ratings = ", ".join(format_value(table.column("Rating")[row]) for row in worst)
    changes = [
        write(
            table,
            row,
            "Discount",
            round(table.column("Discount")[row] + 0.05, 2),
            f"The lowest ratings are {ratings}." if row == worst[0] else "",
        )
        for row in worst
    ]
    goal = (
        'In "{sheet}", add 0.05 to the discount of the three products with the lowest rating. Then sort the '
        'products by "Rating" in descending order.'
    )
    return SheetDraft(goal, cells, (*changes, *sort(table, "Rating", "des")))


def _only_some(draw: Draw) -> SheetDraft:
    """Delete a category, and cheap products."""
    table = inventory(draw, 12)
    cells = table.cells
    category, price = draw.one(table.column("Category")), float(draw.between(4, 9))
    calls = delete_rows(table, lambda record: record["Category"] == category or record["Price"] < price)
    goal = (
        f'In "{{sheet}}", delete all products of the category "{category}" and all that cost less than '
        f'{price:g}. Then sort the others by "Price" in ascending order.'
    )
    return SheetDraft(goal, cells, (*calls, *sort(table, "Price", "asc")))


def _value(draw: Draw) -> SheetDraft:
    """Calculate the value of the stock."""
    table = inventory(draw, 8)
    table.heading.append("Value")
    for row in table.rows:
        row.append("")
    cells = table.cells
    pairs = [(record["Price"], record["Quantity"]) for record in table.records()]
    values = [price * quantity for price, quantity in pairs]
    why = f"Price times quantity: {', '.join(f'{one:g}*{many:g}={one * many:.10g}' for one, many in pairs)}."
    goal = (
        'In "{sheet}", fill the column "Value": it is the price of a product times its quantity. Then sort '
        'the products by "Value" in descending order.'
    )
    return SheetDraft(goal, cells, (fill(table, "Value", values, why), *sort(table, "Value", "des")))


def _close_store(draw: Draw) -> SheetDraft | None:
    """Delete the store with the largest stock."""
    table = inventory(draw, 12)
    cells = table.cells
    quantities: dict[str, float] = {}
    for record in table.records():
        quantities[record["Store"]] = quantities.get(record["Store"], 0.0) + record["Quantity"]
    most = [store for store, quantity in quantities.items() if quantity == max(quantities.values())]
    if len(most) > 1:
        return None
    why = f"The quantities: {', '.join(f'{store} {quantity:g}' for store, quantity in quantities.items())}."
    calls = delete_rows(table, lambda record: record["Store"] == most[0], why)
    goal = (
        'Find the store in "{sheet}" whose products have the greatest total quantity, and delete all '
        'products of that store. Then sort the others by "Quantity" in descending order.'
    )
    return SheetDraft(goal, cells, (*calls, *sort(table, "Quantity", "des")))


def _fewer_columns(draw: Draw) -> SheetDraft:
    """Delete two columns."""
    table = inventory(draw)
    names = draw.some(["Price", "Quantity", "Discount", "Store", "Rating"], 2)
    columns = sorted(table.at(each) + 1 for each in names)
    goal = (
        f'Delete the columns "{names[0]}" and "{names[1]}" of "{{sheet}}", then sort the products by '
        '"Product" in '
        "ascending order."
    )
    deleted = FunctionCall("delete_batch_data", {"dimension": "col", "index_list": columns}).because(
        " ".join(f'"{each}" is column {table.at(each) + 1}.' for each in names)
    )
    return SheetDraft(goal, table.cells, (deleted, *sort(table, "Product", "asc")))


def _new_prices(draw: Draw) -> SheetDraft | None:
    """Raise the prices of a category."""
    table = inventory(draw, 9)
    cells = table.cells
    category, more = draw.one(table.column("Category")), draw.between(1, 6) / 2
    rows = [row for row, each in enumerate(table.column("Category")) if each == category]
    if not 2 <= len(rows) <= 4:  # noqa: PLR2004 - so that it is neither trivial nor too long
        return None
    changes = [write(table, row, "Price", table.column("Price")[row] + more) for row in rows]
    goal = (
        f'All products of the category "{category}" in "{{sheet}}" cost {more:.2f} more from today on. '
        "Change "
        'their prices, and then sort the products by "Rating" in ascending order.'
    )
    return SheetDraft(goal, cells, (*changes, *sort(table, "Rating", "asc")))


def _new_discounts(draw: Draw) -> SheetDraft:
    """Set discounts from a list."""
    table = inventory(draw)
    cells = table.cells
    rows = draw.some(range(len(table.rows)), 5)
    new = [round(0.25 + draw.below(5) * 0.03, 2) for _ in rows]
    listing = format_rows(
        ["Product", "Discount"], [(table.column("Product")[r], d) for r, d in zip(rows, new, strict=True)]
    )
    changes = [write(table, row, "Discount", each) for row, each in zip(rows, new, strict=True)]
    goal = (
        f'Some products in "{{sheet}}" have new discounts: {listing}. Enter them, and then sort the products '
        'by "Quantity" in ascending order.'
    )
    return SheetDraft(goal, cells, (*changes, *sort(table, "Quantity", "asc")))


STOCK: tuple[Callable[[Draw], SheetDraft | None], ...] = (
    _sales,
    _worst_rated,
    _only_some,
    _value,
    _close_store,
    _fewer_columns,
    _new_prices,
    _new_discounts,
)
"""All kinds of stock tasks."""
