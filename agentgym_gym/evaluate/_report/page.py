"""Builds and writes the HTML page of a report."""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from agentgym_gym._html import block, escaped
from agentgym_gym._text import scrub
from agentgym_gym._version import __version__
from agentgym_gym.errors import BadFile
from agentgym_gym.evaluate._report.contents import Contents, collect, packed

__all__ = ["Report", "complete", "served_page", "write_report"]

_SCRIPTS = (
    *("text", "state", "summary", "columns", "steps", "several_runs", "plot", "grid", "grid_keys", "filters"),
    *("search", "search_all", "transcript", "episode", "page"),
)
"""The scripts of the page, in order."""

_FIRST_LINE = "<!doctype html><!-- a report of agentgym eval -->\n"
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


@dataclass(frozen=True)
class Report:
    """A report that was written. Notebooks show a link to it.

    Attributes:
        path: The file.
        runs: Number of runs in the report.
        episodes: Number of episodes in all runs.
        size: Size of the file in bytes.
    """

    path: Path
    runs: int
    episodes: int
    size: int

    def _repr_html_(self) -> str:
        link = f'<a href="{html.escape(quote(self.path.as_posix()))}">{escaped(self.path.name)}</a>'
        counts = [
            f"{n} {word}{'s' * (n != 1)}" for n, word in ((self.runs, "run"), (self.episodes, "episode"))
        ]
        return block([f"<p>{link}: {', '.join(counts)}</p>"])


def write_report(
    runs: Iterable[str | Path], out: str | Path, *, title: str | None = None, last: int | None = None
) -> Report:
    """Write a page that shows runs side by side, with all their episodes.

    Args:
        runs: Folders of runs or trainings, or folders that contain them.
        out: The output file. An existing report is replaced; any other file is kept, and is an error.
        title: The report title; by default the agents and environments.
        last: Number of last training steps whose episodes the page includes; by default all steps. Charts
            cover all steps.

    Raises:
        BadOption: There is no run at a path, a run cannot be read, or the file cannot be written.
    """
    out = Path(out)
    _refuse_other(out)
    contents = complete(collect(map(Path, runs), last=last), title)
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(_parts(contents))
        size = part.stat().st_size
        part.replace(out)
    except OSError as error:
        raise BadFile(f"cannot write to {out}: {error.strerror or error}", path=out) from error
    finally:
        part.unlink(missing_ok=True)
    return Report(out, contents.runs, contents.episodes, size)


def complete(contents: Contents, title: str | None) -> Contents:
    """Add the title and the origin of a page to its index, and return the contents."""
    contents.index.update(
        title=title or _title(contents),
        written=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        version=__version__,
    )
    return contents


def _refuse_other(out: Path) -> None:
    """Refuse to overwrite a file that is not a report, such as a run's own file.

    Raises:
        BadOption: The file exists and is not a report, or it cannot be read.
    """
    beginning = _FIRST_LINE.encode()
    try:
        with out.open("rb") as file:
            if file.read(len(beginning)) in {beginning, b""}:
                return
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadFile(f"cannot write to {out}: {error.strerror or error}", path=out) from error
    raise BadFile(f"{out} exists, is not a report, and is not overwritten: choose another file", path=out)


def _title(contents: Contents) -> str:
    runs = contents.index["runs"]
    agents = list(dict.fromkeys(run["agent"] for run in runs))
    environments = list(dict.fromkeys(run["env"].rpartition("/")[2].partition("-v")[0] for run in runs))
    return f"{_listed(agents, 'agents')} on {_listed(environments, 'environments')}"


def _listed(names: list[str], what: str) -> str:
    if len(names) > _NAMED:
        return f"{len(names)} {what}"
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


_NAMED = 4  # maximum number of names in a title


def _parts(contents: Contents) -> Iterator[str]:
    """Yield the page in the order of the file: first the page itself and the index, then the rest."""
    before, after = _frame(contents.index["title"], _SCRIPTS, packed(contents.index))
    yield before
    for name, part in contents.blocks.items():
        yield _data(name, part)
    yield _data("comparisons", contents.comparisons())
    yield after


def served_page(title: str, *, watch: bool) -> str:
    """Return a page that requests its data from its own server.

    Args:
        title: The title.
        watch: Whether the page also requests changes.
    """
    scripts = (*_SCRIPTS[:-1], "served", *(["watch"] if watch else []), _SCRIPTS[-1])
    return "".join(_frame(title, scripts, "", "connect-src 'self'; "))


def _data(name: str, text: str) -> str:
    return f'<script type="application/octet-stream" id="{name}">{text}</script>\n'


def _frame(title: str, scripts: Iterable[str], index: str, allowed: str = "") -> tuple[str, str]:
    """Return the page before and after the blocks of data."""
    style, script = _read("page.css"), "".join(_read(f"{name}.js") for name in scripts)
    values = {
        "title": html.escape(_CONTROLS.sub(" ", scrub(title))),
        "policy": _policy(style, script, allowed),
        "style": style,
        "script": script,
        "index": index,
    }
    before, _, after = _read("page.html").partition("{{blocks}}\n")
    return _FIRST_LINE + _PLACE.sub(lambda place: values[place[1]], before), after


def _policy(style: str, script: str, allowed: str) -> str:
    """Return the page's Content-Security-Policy, which allows only its own script and style, by their hashes.

    In browsers that support it, ``require-trusted-types-for`` blocks the conversion of text to HTML.
    """
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; {allowed}"
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _read(name: str) -> str:
    return (files(__package__) / "static" / name).read_text("utf-8")
