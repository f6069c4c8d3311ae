"""The schemas of the ten databases of the SQLGym server: tables and columns, and their names in questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentgym_servers._frame.data_files import read_json

__all__ = [
    "DEV",
    "TRAIN",
    "Column",
    "Database",
    "LabelColumn",
    "LinkColumn",
    "NumberColumn",
    "PickColumn",
    "TableSchema",
]


@dataclass(frozen=True)
class LabelColumn:
    """A column with a unique name for each row.

    Attributes:
        name: The column's name.
        kind: The kind of name: ``person``, ``title``, ``place``, ``firm`` or ``code``.
    """

    name: str
    kind: str


@dataclass(frozen=True)
class PickColumn:
    """A column whose value is one of a few texts.

    Attributes:
        name: The column's name.
        values: The texts.
    """

    name: str
    values: tuple[str, ...]

    @property
    def words(self) -> str:
        """The column's name in a question."""
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class NumberColumn:
    """A column with an integer.

    Attributes:
        name: The column's name.
        least: The smallest value.
        most: The largest value.
        step: The values are the smallest one plus multiples of this step.
        counts: Whether the value is a number of the things that the column is named after.
    """

    name: str
    least: int
    most: int
    step: int = 1
    counts: bool = False

    @property
    def words(self) -> str:
        """The column's name in a question."""
        return f"{'number of ' if self.counts else ''}{self.name.replace('_', ' ')}"

    @property
    def adds_up(self) -> bool:
        """Whether a sum of the values is meaningful."""
        return not self.name.endswith("_year") and self.name not in {"age", "rating"}


@dataclass(frozen=True)
class LinkColumn:
    """A foreign key.

    Attributes:
        table: The table that the key refers to.
    """

    table: TableSchema

    @property
    def name(self) -> str:
        """The column's name."""
        return self.table.key


Column: TypeAlias = LabelColumn | PickColumn | NumberColumn | LinkColumn


class TableSchema:
    """A table, whose first column is its primary key.

    Args:
        one: The noun for a row, such as ``student``.
        rows: The number of rows.
        columns: The other columns.
        many: The noun for several rows, which is also the table's name; by default the singular with an s.

    Attributes:
        name: The table's name.
        key: The name of its primary key.
        label: The column with the name of the row, if the table has one.
        picks: The columns with one of a few texts.
        numbers: The columns with numbers.
        value_columns: The columns of both kinds.
        links: The foreign keys.
    """

    def __init__(self, one: str, rows: int, *columns: Column, many: str = "") -> None:
        self.one = one.replace("_", " ")
        self.name = many or f"{one}s"
        self.many = self.name.replace("_", " ")
        self.rows = rows
        self.key = f"{one}_id"
        self.columns = columns
        self.label = next((column for column in columns if isinstance(column, LabelColumn)), None)
        self.picks = [column for column in columns if isinstance(column, PickColumn)]
        self.numbers = [column for column in columns if isinstance(column, NumberColumn)]
        self.value_columns: list[PickColumn | NumberColumn] = [*self.picks, *self.numbers]
        self.links = [column for column in columns if isinstance(column, LinkColumn)]


@dataclass(frozen=True)
class Database:
    """A database.

    Attributes:
        name: Its name.
        tables: Its tables; each follows the tables that it refers to.
    """

    name: str
    tables: tuple[TableSchema, ...]

    def description(self) -> str:
        """Return the description that the agent reads, in the format of AgentGym's server."""
        sentences = [f"{self.name} contains tables such as {', '.join(table.name for table in self.tables)}."]
        for table in self.tables:
            columns = ", ".join([table.key, *(column.name for column in table.columns)])
            sentences.append(
                f"Table {table.name} has columns such as {columns}. {table.key} is the primary key."
            )
        sentences += [
            f"The {link.name} of {table.name} is the foreign key of {link.table.key} of {link.table.name}."
            for table in self.tables
            for link in table.links
        ]
        return " ".join(sentences)


def _database(entry: Mapping[str, Any]) -> Database:
    """Return a database of the data file; each table follows the tables that it refers to."""
    tables: dict[str, TableSchema] = {}
    for table in entry["tables"]:
        columns = [_column(column, tables) for column in table["columns"]]
        one = table["one"]
        tables[one] = TableSchema(one, table["rows"], *columns, many=table.get("many", ""))
    return Database(entry["name"], tuple(tables.values()))


def _column(entry: Mapping[str, Any], tables: Mapping[str, TableSchema]) -> Column:
    if "link" in entry:
        return LinkColumn(tables[entry["link"]])
    if "label" in entry:
        return LabelColumn(entry["label"], entry["kind"])
    if "pick" in entry:
        return PickColumn(entry["pick"], tuple(entry["values"]))
    options = {name: entry[name] for name in ("step", "counts") if name in entry}
    return NumberColumn(entry["number"], entry["least"], entry["most"], **options)


_ENTRIES = read_json("sqlgym", "databases.json")

TRAIN = tuple(map(_database, _ENTRIES["train"]))
"""The databases of the train split."""

DEV = tuple(map(_database, _ENTRIES["dev"]))
"""The databases of the dev split, which no train task uses."""
