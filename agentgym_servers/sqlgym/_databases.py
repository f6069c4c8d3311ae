"""The ten databases of the SQLGym server: eight for training, and two that no train task uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentgym_servers._frame.data_files import read_json
from agentgym_servers.sqlgym._schema import (
    Column,
    Database,
    LabelColumn,
    LinkColumn,
    NumberColumn,
    PickColumn,
    TableSchema,
)

__all__ = ["DEV", "TRAIN"]


def _database(entry: Mapping[str, Any]) -> Database:
    """Return a database of the data file; each table follows those that it refers to."""
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
"""The databases of the dev split."""
