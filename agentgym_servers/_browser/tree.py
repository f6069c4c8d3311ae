"""A page as text: its accessibility tree, written as WebArena does, or in more detail for MiniWoB.

`page_text` follows WebArena's processor to the letter; ``make webarena`` compares both on the same pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentgym_servers._browser.chromium import VIEWPORT

if TYPE_CHECKING:
    from agentgym_servers._browser.boxes import Box

__all__ = ["Element", "Numbers", "PageText", "detailed_text", "nodes_with_line", "page_text"]

_HIDDEN_PROPERTIES = {"focusable", "editable", "readonly", "level", "settable", "multiline", "invalid"}

# Roles without information where the element has neither a name nor a property.
_BARE_ROLES = {"generic", "img", "list", "strong", "paragraph", "banner", "navigation", "listitem"}
_BARE_ROLES |= {"Section", "LabelText", "Legend"}

_LABELLING = ("title", "alt", "class", "id")  # the first attribute that an element has is its label
_MAX_LABEL = 60  # characters
_WHOLE_PAGE = {"HTML", "BODY", "#document"}

_ROOT_BOX = (0.0, 0.0, 10.0, 10.0)
_LEAST_VISIBLE = 0.6
_STATIC = re.compile(r"\[\d+\] StaticText (.+)")
_LINES_BEFORE = 3  # a text that one of these lines before it contains is left out


@dataclass(frozen=True)
class Element:
    """An element of a page.

    Attributes:
        node: Its number in the browser.
        text: Its line without indentation.
        box: Left, top, width and height in the window, in pixels.
    """

    node: int
    text: str
    box: Box

    @property
    def center(self) -> tuple[float, float]:
        """The middle of the box."""
        left, top, width, height = self.box
        return left + width / 2, top + height / 2


@dataclass(frozen=True)
class PageText:
    """A page as text.

    Attributes:
        text: The lines.
        elements: The elements by the number before them.
    """

    text: str
    elements: Mapping[str, Element]


@dataclass
class Numbers:
    """The numbers of elements: counted from 1 in an episode, so that they are the same in each process.

    The browser's own numbers depend on what else its process has shown. An element keeps its number as long
    as its document is shown.
    """

    last: int = 0
    document: str = ""
    _known: dict[int, int] = field(default_factory=dict)

    def enter(self, document: str) -> None:
        """Forget the elements of any other document."""
        if document != self.document:
            self.document, self._known = document, {}

    def of(self, node: int) -> str:
        """Return the number of an element, by its number in the browser."""
        if node not in self._known:
            self.last += 1
            self._known[node] = self.last
        return str(self._known[node])


def nodes_with_line(nodes: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers in the browser of the nodes that have a line if they are visible.

    Args:
        nodes: The accessibility tree, by ``Accessibility.getFullAXTree``.
    """
    return [
        node["backendDOMNodeId"] for node in nodes if "backendDOMNodeId" in node and _line(node) is not None
    ]


def page_text(nodes: Sequence[Mapping[str, Any]], boxes: Mapping[int, Box], numbers: Numbers) -> PageText:
    """Return the text of the part of a page that is in the window, as WebArena's.

    Args:
        nodes: The accessibility tree, by ``Accessibility.getFullAXTree``.
        boxes: The boxes of its nodes by their numbers in the browser: at least those of `nodes_with_line`.
        numbers: The numbers of the episode.
    """
    return _text(_Walk(_by_id(nodes), boxes, numbers), nodes)


def detailed_text(
    nodes: Sequence[Mapping[str, Any]], snapshot: Mapping[str, Any], numbers: Numbers
) -> PageText:
    """Return the text of the whole page, with details that WebArena leaves out.

    It has the values of fields, the elements without a role that respond to clicks, each by its class or id,
    and each text that is not the name of the element around it.

    Args:
        nodes: The accessibility tree, by ``Accessibility.getFullAXTree``.
        snapshot: The layout, by ``DOMSnapshot.captureSnapshot``.
        numbers: The numbers of the episode.
    """
    return _text(_DetailedWalk(_by_id(nodes), _boxes(snapshot), numbers, _click_labels(snapshot)), nodes)


def _by_id(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {node["nodeId"]: node for node in reversed(nodes)}  # if an id occurs twice, the first node


def _text(walk: _Walk, nodes: Sequence[Mapping[str, Any]]) -> PageText:
    walk.add(nodes[0]["nodeId"])
    return PageText("\n".join(walk.shown_lines()), walk.elements)


class _Walk:
    """Collects the lines of a tree, without recursion, as pages may be deep."""

    def __init__(
        self,
        nodes: Mapping[str, Mapping[str, Any]],
        boxes: Mapping[int, Box],
        numbers: Numbers,
    ) -> None:
        self._nodes = nodes
        self._boxes = boxes
        self._numbers = numbers
        self.lines: list[str] = []
        self.elements: dict[str, Element] = {}

    def add(self, root: str) -> None:
        """Add an element and all below it, in their order."""
        left = [(root, 0)]
        seen = set()
        while left:
            node_id, depth = left.pop()
            node = self._nodes.get(node_id)
            if node is None or node_id in seen:
                continue
            seen.add(node_id)
            below = depth + self._add_one(node, depth)
            left.extend((child, below) for child in reversed(node.get("childIds", ())))

    def _add_one(self, node: Mapping[str, Any], depth: int) -> int:
        """Add one element; return 1, or 0 if it is not shown."""
        backend = node.get("backendDOMNodeId")
        line = self._line(node)
        if line is None or backend is None:
            return 0
        is_root = node["role"]["value"] == "RootWebArea"
        box = _ROOT_BOX if is_root else self._boxes.get(backend)
        if box is None or not (is_root or self._is_shown(box)):
            return 0
        number = self._numbers.of(backend)
        text = f"[{number}] {line}"
        self.lines.append("\t" * depth + text)
        self.elements[number] = Element(backend, text, box)
        return 1

    def shown_lines(self) -> list[str]:
        """Return the lines that the text has."""
        return _without_repeats(self.lines)

    def _line(self, node: Mapping[str, Any]) -> str | None:
        """Return the line of an element without its number; None if it has none."""
        return _line(node)

    def _is_shown(self, box: Box) -> bool:
        """Return whether an element with this box has a line."""
        return _visible(box)


class _DetailedWalk(_Walk):
    """Collects the lines of a detailed text; `labels` come from `_click_labels`."""

    def __init__(
        self,
        nodes: Mapping[str, Mapping[str, Any]],
        boxes: Mapping[int, Box],
        numbers: Numbers,
        labels: Mapping[int, str],
    ) -> None:
        super().__init__(nodes, boxes, numbers)
        self._labels = labels

    def shown_lines(self) -> list[str]:
        return self.lines

    def _line(self, node: Mapping[str, Any]) -> str | None:
        name = node.get("name", {}).get("value", "")
        if node.get("role", {}).get("value") == "StaticText" and name == self._name_around(node):
            return None
        label, line = self._labels.get(node.get("backendDOMNodeId", -1), ""), _line(node)
        if line is None:
            return f"clickable {label!r}" if label else None
        value = node.get("value", {}).get("value", "")
        line = f"{line} value: {value!r}" if value not in {"", name} else line
        return line if name or not label else f"{line} class: {label!r}"

    def _is_shown(self, box: Box) -> bool:
        return box[2] > 0 < box[3]

    def _name_around(self, node: Mapping[str, Any]) -> str | None:
        """Return the name of the nearest element around a text that is shown; None if it has none."""
        around = self._nodes.get(node.get("parentId", ""))
        while around is not None and _line(around) is None:
            around = self._nodes.get(around.get("parentId", ""))
        return None if around is None else around["name"].get("value")


def _line(node: Mapping[str, Any]) -> str | None:
    """Return the role, the name and the properties of an element; None if these are empty."""
    role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value")
    if role is None or not isinstance(name, str):
        return None
    properties = [
        f"{each['name']}: {each['value']['value']}"
        for each in node.get("properties", ())
        if each["name"] not in _HIDDEN_PROPERTIES and "value" in each["value"]
    ]
    if not name.strip() and ((role in _BARE_ROLES and not properties) or role == "listitem"):
        return None
    return " ".join([f"{role} {name!r}", *properties])


def _boxes(snapshot: Mapping[str, Any]) -> dict[int, Box]:
    """Return the boxes of the first document's nodes in the window, by their numbers in the browser."""
    document = snapshot["documents"][0]
    left, top = document.get("scrollOffsetX", 0), document.get("scrollOffsetY", 0)
    backend = document["nodes"]["backendNodeId"]
    layout = document["layout"]
    return {
        backend[index]: (x - left, y - top, width, height)
        for index, (x, y, width, height) in zip(layout["nodeIndex"], layout["bounds"], strict=True)
    }


def _visible(box: Box) -> bool:
    """Return whether WebArena shows an element with this box.

    The original means the visible share of the box, but multiplies by the height instead of dividing.
    """
    left, top, width, height = box
    if width == 0 or height == 0:
        return False
    across = min(left + width, VIEWPORT[0]) - max(left, 0)
    down = min(top + height, VIEWPORT[1]) - max(top, 0)
    return max(across, 0) * max(down, 0) / width * height >= _LEAST_VISIBLE


def _without_repeats(lines: Sequence[str]) -> list[str]:
    """Return the lines without those texts that one of the lines before them has, as WebArena does.

    A line before counts with the number of its element: a text "1" is left out after "[12] link 'Cart'". A
    property with line breaks is several lines.
    """
    kept: list[str] = []
    for line in "\n".join(lines).split("\n"):
        if "statictext" in line.lower():
            match = _STATIC.search(line)
            text = match.group(1)[1:-1] if match else ""
            if not text or any(text in before for before in kept[-_LINES_BEFORE:]):
                continue
        kept.append(line)
    return kept


def _click_labels(snapshot: Mapping[str, Any]) -> dict[int, str]:
    """Return a label for each element that responds to clicks, by its number in the browser.

    Some of these elements have no name in the accessibility tree.

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
    label = next((attributes[name] for name in _LABELLING if attributes.get(name, "").strip()), "")
    return label.strip()[:_MAX_LABEL] or strings[nodes["nodeName"][index]].lower()
