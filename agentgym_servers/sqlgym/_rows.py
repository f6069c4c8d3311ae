"""Generates the rows of a database of the SQLGym server."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, TypeAlias

from agentgym_servers._frame.data_files import read_json
from agentgym_servers.sqlgym._schema import LabelColumn, LinkColumn, NumberColumn, PickColumn

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.sqlgym._schema import Column, Database, TableSchema

__all__ = ["Row", "opened", "rows_of", "script_of"]

Row: TypeAlias = dict[str, str | int]

_NAMES = read_json("sqlgym", "names.json")
_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"


def rows_of(database: Database, draw: Draw) -> dict[str, list[Row]]:
    """Return the rows of all tables, by table name."""
    return {table.name: _rows(table, draw) for table in database.tables}


def _rows(table: TableSchema, draw: Draw) -> list[Row]:
    used: set[str] = set()
    return [
        {table.key: number, **{column.name: _cell(column, draw, used) for column in table.columns}}
        for number in range(1, table.rows + 1)
    ]


def _cell(column: Column, draw: Draw, used: set[str]) -> str | int:
    if isinstance(column, LinkColumn):
        return draw.between(1, column.table.rows)
    if isinstance(column, PickColumn):
        return draw.one(column.values)
    if isinstance(column, NumberColumn):
        return column.least + column.step * draw.between(0, (column.most - column.least) // column.step)
    name = _name(column.kind, draw)
    while name in used:
        name = _name(column.kind, draw)
    used.add(name)
    return name


def _name(kind: str, draw: Draw) -> str:
    """Return a random name.

    Args:
        kind: The kind of name: ``person``, ``title``, ``place``, ``firm`` or ``code``.
        draw: The source of random draws.
    """
    if kind == "person":
        return f"{draw.one(_NAMES['first_names'])} {draw.one(_NAMES['last_names'])}"
    if kind == "title":
        return f"The {draw.one(_NAMES['adjectives'])} {draw.one(_NAMES['nouns'])}"
    if kind == "place":
        return f"{draw.one(_NAMES['towns'])} {draw.one(_NAMES['nouns'])}"
    if kind == "firm":
        return f"{draw.one(_NAMES['adjectives'])} {draw.one(_NAMES['last_names'])}"
    return f"{draw.one(_LETTERS)}{draw.one(_LETTERS)}{draw.between(100, 999)}"


def script_of(database: Database, rows: dict[str, list[Row]]) -> str:
    """Return the SQL statements that create a database with its rows."""
    made = ["BEGIN;"]
    for table in database.tables:
        columns = [f"{table.key} INTEGER PRIMARY KEY", *map(_declared, table.columns)]
        made.append(f"CREATE TABLE {table.name} ({', '.join(columns)});")
        values = ",".join(f"({','.join(map(_literal, row.values()))})" for row in rows[table.name])
        made.append(f"INSERT INTO {table.name} VALUES {values};")  # noqa: S608 - all of it is made here
    return "\n".join([*made, "COMMIT;"])


def _declared(column: Column) -> str:
    if isinstance(column, LinkColumn):
        return f"{column.name} INTEGER NOT NULL REFERENCES {column.table.name}"
    return f"{column.name} {'TEXT' if isinstance(column, LabelColumn | PickColumn) else 'INTEGER'} NOT NULL"


def _literal(value: str | int) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)  # no name contains a quote


def opened(script: str) -> sqlite3.Connection:
    """Return an in-memory database created by a script of this module."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    return connection
