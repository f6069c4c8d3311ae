"""What is in a written report, read without the code that wrote it."""

from __future__ import annotations

import base64
import gzip
import html.parser
import itertools
import json
from pathlib import Path
from typing import Any


def unpacked(text: str) -> Any:
    """Return a value of the page's data."""
    return json.loads(gzip.decompress(base64.b64decode(text, validate=True)))


class Page(html.parser.HTMLParser):
    """A page as Python's own reader of HTML sees it.

    Attributes:
        elements: The name and the attributes of each element.
        texts: The text in each element that has one, by the element's id or else its name.
        policy: The page's Content-Security-Policy.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.texts: dict[str, str] = {}
        self.policy = ""
        self._within: str | None = None
        self.feed(path.read_text("utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes: dict[str, Any] = dict(attrs)
        self.elements.append((tag, attributes))
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        self._within = attributes.get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self._within = None

    def handle_data(self, data: str) -> None:
        if self._within:
            self.texts[self._within] = self.texts.get(self._within, "") + data

    @property
    def outline(self) -> list[tuple[str, dict[str, Any]]]:
        """The elements, without the names of blocks, which depend on their content."""
        return [
            (tag, {**has, "id": "block"} if has.get("id", "").startswith("block-") else has)
            for tag, has in self.elements
        ]

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs of the page."""
        runs: list[dict[str, Any]] = self.index["runs"]
        return runs

    @property
    def index(self) -> dict[str, Any]:
        """The page's data but for the episodes."""
        index: dict[str, Any] = unpacked(self.texts["index"])
        return index

    def episodes(self, run: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the episodes of a run as the page's script finds them."""
        starts = [*run["starts"], len(run["episodes"]["task"])]
        blocks = [unpacked(self.texts[name]) for name in run["blocks"]]
        assert [len(block) for block in blocks] == [b - a for a, b in itertools.pairwise(starts)]
        return [each for block in blocks for each in block]
