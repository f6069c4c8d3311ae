"""HTML for notebooks: all texts are escaped, and never read as formulas."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from agentgym_gym._text import scrub

__all__ = ["block", "escaped", "folded", "paragraph", "table"]

_NO_MATH = 'class="tex2jax_ignore mathjax_ignore"'
"""Attribute of an element in which notebooks do not look for formulas."""

_TEXT = '<pre style="white-space: pre-wrap; text-align: left">{}</pre>'


def escaped(text: object) -> str:
    """Return a text that contains no markup."""
    return html.escape(scrub(str(text)))


def block(parts: Iterable[str]) -> str:
    """Return elements as one."""
    return f"<div {_NO_MATH}>{''.join(parts)}</div>"


def paragraph(text: str) -> str:
    """Return a text as a paragraph."""
    return f"<p>{escaped(text)}</p>"


def folded(heading: str, texts: Iterable[tuple[str, str]]) -> str:
    """Return texts, each with its name, that appear by a click on a heading."""
    shown = "".join(f"<div>{escaped(name)}</div>{_TEXT.format(escaped(text))}" for name, text in texts)
    return f"<details><summary>{escaped(heading)}</summary>{shown}</details>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    head = "".join(f"<th>{escaped(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table {_NO_MATH}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
