"""WebArena's own reader of pages, imported from a checkout of WebArena, and the comparison with ours.

The checkout is not part of this repository: the variable ``WEBARENA`` names it. ``make webarena
WEBARENA=../webarena`` runs the tests that use it.
"""

from __future__ import annotations

import asyncio
import difflib
import importlib
import math
import os
import re
import sys
import types
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import needs
from page_kinds import without_numbers

__all__ = ["Comparison", "compare", "processor_or_skip"]

_WINDOW = {"width": 1280, "height": 720}  # as AgentGym's server starts it
_ROUNDING = 1e-6  # pixels; WebArena divides by the size of the window and multiplies again
_ROLE = re.compile(r"\t*(\w*)")


def processor_or_skip() -> type:
    """Return WebArena's class that writes a page as text; skip the tests of the importing file without it."""
    needs.skip_without("webarena", "numpy", "gymnasium", "playwright")
    # Its package imports the agent, the addresses of the sites and beartype. The processors need none of it.
    package = types.ModuleType("browser_env")
    package.__path__ = [str(Path(os.environ["WEBARENA"], "browser_env").resolve())]
    sys.modules["browser_env"] = package
    try:
        return importlib.import_module("browser_env.processors").TextObervationProcessor
    finally:
        for name in [each for each in sys.modules if each.partition(".")[0] == "browser_env"]:
            del sys.modules[name]


class _Blocking:
    """A page or a session of our driver, with methods that block, as WebArena's code calls them."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop, **more: Any) -> None:
        self._inner, self._loop = inner, loop
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        return lambda *args: asyncio.run_coroutine_threadsafe(method(*args), self._loop).result()


async def _its_text(processor: Any, tabs: Any) -> str:
    """Return the current tab as WebArena writes it."""
    loop = asyncio.get_running_loop()
    pages = [_Blocking(page, loop) for page in tabs.context.pages]
    page = pages[tabs.context.pages.index(tabs.shown)]
    page.context = types.SimpleNamespace(pages=pages)
    session = await tabs.context.new_cdp_session(tabs.shown)
    await session.send("Accessibility.enable")
    try:
        return await asyncio.to_thread(processor.process, page, _Blocking(session, loop))
    finally:
        await session.detach()


class _BrowsersNumbers:
    """Gives elements the browser's numbers, as WebArena does."""

    last = 0

    def enter(self, document: str) -> None:
        pass

    def of(self, node: int) -> str:
        return str(node)


@dataclass
class Comparison:
    """The lines of pages in both texts.

    Attributes:
        rows: Lines that are equal, ours and theirs, by the name of the page.
        kinds: Lines in one text only, by whose text that is and the role.
        misses: Differences of pages with the same numbers of elements: of lines, or of an element's middle.
        failures: Pages that WebArena's processor cannot read, with its error.
        texts: WebArena's texts by page, without the numbers of elements.
    """

    rows: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    misses: dict[str, list[str]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The share of equal lines among all lines of both texts."""
        equal, ours, theirs = (sum(column) for column in zip(*self.rows.values(), strict=True))
        return 2 * equal / (ours + theirs)

    def add(self, name: str, ours: str, theirs: str) -> None:
        """Count the lines of a page, without the numbers of elements."""
        self.texts[name] = without_numbers(theirs)
        one, other = (without_numbers(text).split("\n") for text in (ours, theirs))
        equal = 0
        for tag, i, j, k, m in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
            if tag == "equal":
                equal += j - i
            for whose, lines in (("ours", one[i:j]), ("theirs", other[k:m])):
                if tag != "equal":
                    self.kinds.update(f"{whose}: {_ROLE.match(line)[1]}" for line in lines)
        self.rows[name] = (equal, len(one), len(other))

    def table(self) -> str:
        """Return the shares by page, and the differences by kind."""
        lines = [f"{2 * a / (b + c):.4f} {a:6} {b:6} {c:6}  {name}" for name, (a, b, c) in self.rows.items()]
        lines.append(f"{self.share:.4f} of the lines on {len(self.rows)} pages are equal")
        lines += [f"{count:6} {kind}" for kind, count in self.kinds.most_common()]
        lines += [f"WebArena cannot read {name}: {error}" for name, error in self.failures.items()]
        lines += [f"{name}:\n    " + "\n    ".join(diff) for name, diff in self.misses.items()]
        return "\n".join(lines)


async def compare(processor_class: type, tabs: Any, name: str, into: Comparison) -> None:
    """Read the current tab by both, and count the lines."""
    processor = processor_class("accessibility_tree", current_viewport_only=True, viewport_size=_WINDOW)
    try:
        theirs = await _its_text(processor, tabs)
    except Exception as error:  # noqa: BLE001 - whatever its code raises on this page
        into.failures[name] = repr(error)
        return
    ours = await _with_browsers_numbers(tabs)
    misses = list(difflib.unified_diff(ours.text.split("\n"), theirs.split("\n"), n=0, lineterm=""))
    misses += [
        f"[{number}] {element.center} is elsewhere"
        for number, element in ours.page.elements.items()
        if math.dist(_its_center(processor, number), element.center) > _ROUNDING
    ]
    if misses:
        into.misses[name] = misses
    into.add(name, (await tabs.see()).text, theirs)


async def _with_browsers_numbers(tabs: Any) -> Any:
    """Return the current tab as our server writes it, but with WebArena's numbers."""
    numbers = tabs._numbers
    tabs._numbers = {tabs.shown: _BrowsersNumbers()}
    try:
        return await tabs.see()
    finally:
        tabs._numbers = numbers


def _its_center(processor: Any, number: str) -> tuple[float, float]:
    """Return where WebArena clicks, in pixels."""
    left, top = processor.get_element_center(number)
    return left * _WINDOW["width"], top * _WINDOW["height"]
