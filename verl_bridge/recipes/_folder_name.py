"""Paths of training folders, as Hydra, OmegaConf and verl's data sets read them."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["hydra_text", "name_problem"]

_UNUSABLE = {
    "a character of file patterns (*, ? or [)": re.compile(r"[*?\[]"),
    "'::', which separates parts of an address": re.compile("::"),
    "'${', which begins an interpolation": re.compile(r"\$\{"),
    "a line break or another control character": re.compile(r"[\x00-\x1f\x7f]"),
    "a backslash at its end or before a quote": re.compile(r"\\('|$)"),
    "bytes that are not UTF-8": re.compile("[\ud800-\udfff]"),
}


def name_problem(folder: Path) -> str:
    """Return why verl cannot train in a folder, as a sentence; empty if its path has no such part.

    Args:
        folder: The folder, which need not exist.
    """
    path = str(folder.resolve())
    wrong = [name for name, pattern in _UNUSABLE.items() if pattern.search(path)]
    if not wrong:
        return ""
    shown = path.encode("utf-8", "backslashreplace").decode("utf-8")
    return f"verl cannot train in {shown!r}: the path has {' and '.join(wrong)}"


def hydra_text(text: str) -> str:
    """Return a path without `name_problem` as a quoted value of Hydra's overrides, as ``run.sh`` does."""
    return "'" + text.replace("'", "\\'") + "'"
