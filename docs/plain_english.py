"""Check that prose and identifiers are in plain English; part of ``make check``.

It reads pages, docstrings, comments, messages and identifiers. It reports programs that speak, sentences
whose subject is *what*, words with a plainer alternative, and verbs of speech in identifiers. A line that
needs such a word ends with a comment: ``# plain: REASON`` in Python, ``<!-- plain: REASON -->`` in Markdown.

Not checked: prompts and texts of the environments, replies of models, generated pages. With file names as
arguments, only those are checked.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

SPEECH = (
    "say|says|said|tell|tells|telling|told|ask|asks|asking|asked|hear|hears|hearing|heard|knows|wants|wanted"
)
"""Verbs of people. A program returns, prints, raises, reports, requires, requests, sends, reads, supports."""

PLAIN = {
    r"anew": "again",
    r"be it": "whether",
    r"likewise": "also",
    r"(can|could|cannot|can't|may|to|not) be had": "get, available",
    r"stands?": "is",
    r"(of|for) which nobody": "name the actor",
    r"alone": "only",
    r"other than": "except",
    r"so many": "N",
    r"(goes|gone|going|went) on": "continues, resumed",
    r"begun": "started",
    r"upon": "on",
    r"whoever|whatever|whichever": "name the actor or the thing",
}
"""Words to avoid, each with a plainer alternative."""

RULES = [
    (
        re.compile(rf"\b({SPEECH})\b", re.IGNORECASE),
        "a program does not speak: returns, prints, raises, sends",
    ),
    (
        re.compile(r"(?:^|(?<=[.:;] ))(What|That which) (?![^.?]*\?)[^.?]*"),
        "name the thing: no sentence whose subject is what",
    ),
    (re.compile(r"\bthat which\b", re.IGNORECASE), "name the thing"),
    *((re.compile(rf"\b({word})\b", re.IGNORECASE), plain) for word, plain in PLAIN.items()),
]

PAGE_RULES = [
    (re.compile(r"\b(that|those) of\b", re.IGNORECASE), "write the noun or the possessive"),
    (re.compile(r", (of|in) which\b"), "begin a new sentence"),
    (re.compile(r"\bfor ever\b"), "indefinitely"),
    (re.compile(r"\bby itself\b"), "automatically, separately"),
]
"""Rules for pages only."""

FOLDERS = ("agentgym_gym", "agentgym_servers", "verl_bridge", "examples", "docs", "benchmarks", "tools")
"""Folders whose pages and modules are checked, besides those of the root."""

SPOKEN_NAMES = frozenset(SPEECH.split("|"))
"""Words to avoid in identifiers: use ``info``, ``text``, ``request``, ``response`` instead."""

ENVIRONMENT_TEXTS = ("agentgym_gym/envs/", "agentgym_servers/")
"""Strings here are prompts and texts on the wire; only docstrings and comments are checked."""

GENERATED = (
    "docs/cli",
    "docs/environments/",
    "docs/modules.md",
    "docs/options.md",
    "docs/training/check_numbers.md",
)

EXEMPT = re.compile(r"plain: \w")


class Passage(NamedTuple):
    """A passage to rewrite.

    Attributes:
        line: Its line, from 1.
        passage: Its text.
        advice: The alternative.
    """

    line: int
    passage: str
    advice: str


def passages(
    text: str, first_line: int = 1, rules: Sequence[tuple[re.Pattern[str], str]] = RULES
) -> Iterator[Passage]:
    """Yield the passages of a text that break a rule.

    Args:
        text: Prose of one or more lines; names and code in backticks are left out.
        first_line: The line of its first line.
        rules: Patterns, each with its advice.
    """
    prose = re.sub(
        r"``.*?``|`[^`\n]*`|\"[^\"\n]{0,80}\"",
        lambda code: re.sub(r"[^\n]", "_", code[0]),
        text,
        flags=re.DOTALL,
    )
    flat = prose.replace("\n", " ")
    for pattern, advice in rules:
        for match in pattern.finditer(flat):
            passage = text[match.start() : match.end()].replace("\n", " ")
            yield Passage(first_line + prose.count("\n", 0, match.start()), passage[:60], advice)


def of_markdown(source: str) -> Iterator[Passage]:
    """Yield the passages of a page, without its code blocks and link targets."""
    source = re.sub(r"^(```|~~~).*?^\1", _blank, source, flags=re.DOTALL | re.MULTILINE)
    source = re.sub(r"\]\([^)\s]*\)", _blank, source)
    line = 1
    for paragraph in re.split(r"(\n\s*\n)", source):
        yield from passages(paragraph, line, RULES + PAGE_RULES)
        line += paragraph.count("\n")


def of_python(source: str, *, strings: bool) -> Iterator[Passage]:
    """Yield the passages of a module.

    Args:
        source: Its source.
        strings: Whether to check other strings too, besides docstrings and comments.
    """
    tree = ast.parse(source)
    texts = set(_docstrings(tree))
    if strings:
        texts |= {
            node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    for node in texts:
        if isinstance(node.value, str) and (" " in node.value.strip()):
            yield from passages(node.value, node.lineno)
    yield from _names(tree)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from passages(token.string.lstrip("#: "), token.start[0])


def _names(tree: ast.Module) -> Iterator[Passage]:
    """Yield the identifiers defined in a module that contain a verb of speech."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.stmt, ast.expr, ast.arg)):
            continue
        name = ""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        elif isinstance(node, ast.arg):
            name = node.arg
        parts = {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
        if parts & SPOKEN_NAMES:
            yield Passage(
                node.lineno, name, "name the data or the action: info, text, request, response, fetch"
            )


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        for below in getattr(node, "body", []) if not isinstance(node, (ast.Lambda, ast.IfExp)) else []:
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                yield below.value


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def of_file(path: Path) -> Iterator[Passage]:
    """Yield the passages of a file, without those on exempt lines."""
    source = path.read_text("utf-8")
    if path.suffix == ".md":
        found = of_markdown(source)
    else:
        strings = not path.relative_to(ROOT).as_posix().startswith(ENVIRONMENT_TEXTS)
        found = of_python(source, strings=strings)
    lines = source.split("\n")
    yield from sorted(each for each in found if not EXEMPT.search(lines[each.line - 1]))


def files() -> list[Path]:
    """Return the files to check."""
    folders = [ROOT / name for name in FOLDERS]
    paths = [
        path
        for suffix in ("md", "py")
        for path in (
            *ROOT.glob(f"*.{suffix}"),
            *(path for folder in folders for path in folder.rglob(f"*.{suffix}")),
        )
    ]
    return [
        path
        for path in sorted(paths)
        if not path.relative_to(ROOT).as_posix().startswith(GENERATED) and path != Path(__file__).resolve()
    ]


def main(arguments: list[str]) -> int:
    """Print the passages to rewrite, and return the exit status: 1 if there are any, else 0."""
    count = 0
    for path in [Path(name).resolve() for name in arguments] or files():
        for finding in of_file(path):
            count += 1
            print(f"{path.relative_to(ROOT)}:{finding.line}: {finding.passage!r}: {finding.advice}")
    if count:
        print(f"{count} passages to rewrite", file=sys.stderr)
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
