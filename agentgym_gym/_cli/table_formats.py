"""Tables of runs as text, Markdown, CSV, LaTeX and JSON."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich.cells import cell_len, set_cell_size

from agentgym_gym._cli.console import clean, json_text, out, print_table
from agentgym_gym._text import scrub

if TYPE_CHECKING:
    from agentgym_gym.evaluate._table import RunRow, SuccessRow, Table

__all__ = ["FORMATS", "TableFormat", "print_run", "print_runs", "render", "show_range"]

TableFormat: TypeAlias = Literal["text", "markdown", "csv", "latex", "json"]

_LEFT = frozenset({"environment", "split", "protocol", "model"})
_BELOW = frozenset({"95 %"})
_SUCCESS = "Success by environment and model:"
_RUNS = "Runs:"
_INTERVALS = "Ranges are 95 % intervals."


@dataclass(frozen=True)
class _Grid:
    """A table of texts.

    Attributes:
        title: The title.
        headings: The headings of the columns.
        rows: The cells of each row.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def map(self, convert: Callable[[str], str]) -> _Grid:
        """Return the table with each heading and cell converted."""
        rows = [[convert(cell) for cell in row] for row in self.rows]
        return _Grid(self.title, [convert(heading) for heading in self.headings], rows)


def print_runs(table: Table) -> None:
    """Print the tables and their notes in the terminal."""
    for grid in _grids(table):
        shown = grid.map(_plain)
        print_table(shown.headings, shown.rows, left=_LEFT, below=_BELOW, title=grid.title)
    for note in (_INTERVALS, *(f"{note}." for note in table.notes)):
        out.print(_plain(note))


def print_run(row: RunRow) -> None:
    """Print the metrics of one run in the terminal."""
    cells = {name: cell for name, cell in _cells(row).items() if name not in _IN_TITLE}
    names = [name for name, cell in cells.items() if cell != _NONE or name in _ALWAYS]
    title = f"{row.environment} by {row.model}{f', protocol {row.protocol}' if row.protocol else ''}"
    print_table(names, [[cells[name] for name in names]], below=_BELOW, title=_plain(title))


def render(table: Table, table_format: TableFormat) -> str:
    """Return the tables in a format. CSV and JSON have one row per run, with unrounded numbers."""
    return FORMATS[table_format](table)


def _text(table: Table) -> str:
    parts = []
    for grid in _grids(table):
        shown = grid.map(_plain)
        lines = [shown.headings, *shown.rows]
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        body = ["  ".join(map(set_cell_size, line, widths)).rstrip() for line in lines]
        parts.append("\n".join([grid.title, "", *body]))
    return "\n\n".join([*parts, "\n".join(map(_plain, _sentences(table)))]) + "\n"


def _markdown(table: Table) -> str:
    parts = []
    for grid in _grids(table):
        shown = grid.map(_escape_markdown)
        rules = ["---" if heading in _LEFT else "---:" for heading in grid.headings]
        lines = [shown.headings, rules, *shown.rows]
        parts += [grid.title, "\n".join(f"| {' | '.join(line)} |" for line in lines)]
    notes = [_escape_markdown(sentence) for sentence in _sentences(table)]
    return "\n\n".join([*parts, *notes]) + "\n"


def _csv(table: Table) -> str:
    rows = [row.to_json() for row in table.rows]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(
        [scrub(value) if isinstance(value, str) else value for value in row.values()] for row in rows
    )
    return file.getvalue()


def _json(table: Table) -> str:
    return f"{json_text([row.to_json() for row in table.rows])}\n"


def _latex(table: Table) -> str:
    parts = ["% Requires \\usepackage{booktabs}; letters outside of ASCII require LuaLaTeX or XeLaTeX."]
    for grid in _grids(table):
        shown = grid.map(_escape_latex)
        columns = "".join("l" if heading in _LEFT else "r" for heading in grid.headings)
        body = [f"{' & '.join(row)} \\\\" for row in shown.rows]
        lines = [
            f"% {grid.title}",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            f"{' & '.join(shown.headings)} \\\\",
            "\\midrule",
            *body,
            "\\bottomrule",
            "\\end{tabular}",
        ]
        parts.append("\n".join(lines))
    notes = "\n\n".join(_escape_latex(sentence) for sentence in _sentences(table))
    return "\n\n".join([*parts, notes]) + "\n"


FORMATS: dict[TableFormat, Callable[[Table], str]] = {
    "text": _text,
    "markdown": _markdown,
    "csv": _csv,
    "latex": _latex,
    "json": _json,
}
"""The function of each format."""


def _sentences(table: Table) -> list[str]:
    return [_INTERVALS, *(f"{note}." for note in table.notes)]


def _grids(table: Table) -> Iterable[_Grid]:
    """Yield success by environment and model, if there are several runs, and then all metrics of the runs."""
    if len(table.rows) > 1:
        yield _success(table)
    rows = [_cells(row) for row in table.rows]
    names = [name for name in rows[0] if any(row[name] != _NONE for row in rows) or name in _ALWAYS]
    yield _Grid(_RUNS, names, [[row[name] for name in names] for row in rows])


def _success(table: Table) -> _Grid:
    groups = table.by_environment
    models = table.models
    protocols = any(group.protocol for group in groups)
    rows = [
        [
            group.environment,
            group.split or _NONE,
            *([group.protocol or _NONE] if protocols else []),
            _task_counts(group),
            *(_success_cell(group.runs.get(model)) for model in models),
        ]
        for group in groups
    ]
    names = ["environment", "split", *(["protocol"] if protocols else []), "tasks"]
    return _Grid(_SUCCESS, [*names, *models], rows)


def _task_counts(group: SuccessRow) -> str:
    counts = sorted({run.summary.tasks for run in group.runs.values()})
    return f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"


def _success_cell(row: RunRow | None) -> str:
    """Return success with its interval, and pass@k if there are several samples."""
    if row is None or row.summary.success_rate is None:
        return _NONE
    interval = row.summary.success_interval
    cell = _decimal(row.summary.success_rate) + ("" if interval is None else f" ({show_range(interval)})")
    k = row.summary.samples
    return f"{cell}, pass@{k} {_decimal(row.pass_at_k)}" if k > 1 else cell


_NONE = "-"
_IN_TITLE = frozenset({"model", "environment", "protocol"})
_ALWAYS = frozenset({"model", "environment", "split", "tasks", "success", "score"})
"""Columns that are shown even if no run has a value."""


def _cells(row: RunRow) -> dict[str, str]:
    summary, k = row.summary, row.summary.samples
    share, tokens = summary.parse_error_share, summary.tokens
    counted = None if tokens.completion is None else (tokens.prompt or 0) + tokens.completion
    return {
        "model": row.model,
        "environment": row.environment,
        "split": row.split or _NONE,
        "protocol": row.protocol or _NONE,
        "tasks": f"{summary.tasks:,}",
        "episodes": f"{summary.episodes:,}",
        "faulted": f"{summary.faulted:,}",
        "success": _decimal(summary.success_rate),
        "95 %": show_range(summary.success_interval),
        "pass@k": f"{_decimal(row.pass_at_k)} (k={k})" if k > 1 else _NONE,
        "pass^k": f"{_decimal(row.pass_hat_k)} (k={k})" if k > 1 else _NONE,
        "score": _decimal(summary.mean_score),
        "turns": _decimal(summary.mean_turns),
        "parse errors": _NONE if share is None else f"{share:.1%}",
        "tokens": _NONE if counted is None else f"{counted:,}",
        "cost": _NONE if row.cost is None else f"{row.cost:,.2f}",
        "wall time": _NONE if row.wall_seconds is None else _duration(row.wall_seconds),
    }


def _decimal(value: float | None) -> str:
    return _NONE if value is None else f"{value:.2f}"


def show_range(interval: tuple[float, float] | None) -> str:
    return _NONE if interval is None else "{:.2f} to {:.2f}".format(*interval)


def _duration(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {left:02} s"


_MINUTE = 60


def _plain(text: str) -> str:
    """Return a name in one line, without characters that are invisible or command a terminal."""
    line = " ".join(clean(scrub(text)).split())
    return "".join(letter for letter in line if unicodedata.category(letter) not in _INVISIBLE)


_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})


def _escape_markdown(text: str) -> str:
    """Return text as a Markdown table cell that shows exactly the text."""
    return _MARKDOWN.sub(r"\\\g<0>", _plain(text).replace("&", "&amp;").replace("<", "&lt;"))


_MARKDOWN = re.compile(r"[\\`*_{}\[\]#|~>$]|(?<!\w)@|:(?=//)|(?<=www)\.", re.IGNORECASE)  # also no link


def _escape_latex(text: str) -> str:
    """Return text as a LaTeX table cell that shows the text and executes none of it."""
    return _LIGATURES.sub(r"\1{}", "".join(_LATEX.get(letter, letter) for letter in _plain(text)))


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "'": r"\char39{}",
    '"': r"\char34{}",
    "[": "{[}",  # a row that begins with a bracket would be an argument of the line break above it
    "]": "{]}",
    "*": "{*}",
}
"""LaTeX for each character that is not shown as itself."""

_LIGATURES = re.compile(r"([-,])(?=\1)")
