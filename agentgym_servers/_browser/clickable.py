"""Labels for the elements of a page that respond to clicks and have no name in the accessibility tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["click_labels"]

_MOST_SHOWN = 60
_NAMING = ("title", "alt", "class", "id")  # the first one that an element has
_WHOLE_PAGE = {"HTML", "BODY", "#document"}


def click_labels(snapshot: Mapping[str, Any]) -> dict[int, str]:
    """Return a label for each element that responds to clicks, by its number in the browser.

    Args:
        snapshot: The page, by ``DOMSnapshot.captureSnapshot``.
    """
    strings: Sequence[str] = snapshot["strings"]
    nodes = snapshot["documents"][0]["nodes"]
    return {
        nodes["backendNodeId"][index]: _label(strings, nodes, index)
        for index in nodes.get("isClickable", {}).get("index", ())
        if strings[nodes["nodeName"][index]] not in _WHOLE_PAGE
    }


def _label(strings: Sequence[str], nodes: Mapping[str, Any], index: int) -> str:
    flat = [strings[each] for each in nodes["attributes"][index]]
    attributes = dict(zip(flat[::2], flat[1::2], strict=True))
    label = next((attributes[name] for name in _NAMING if attributes.get(name, "").strip()), "")
    return label.strip()[:_MOST_SHOWN] or strings[nodes["nodeName"][index]].lower()
