"""The boxes of a page's nodes, as WebArena measures them: ``getBoundingClientRect`` of each node.

WebArena sends two requests for each node, one after another. Here one script measures all nodes that
scripts can reach, and a layout snapshot, whose tree has the same nodes, has their numbers. Only the others,
such as the text inside an input, need a request each; these are sent together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

__all__ = ["Box", "client_boxes"]

Box = tuple[float, float, float, float]
"""Left, top, width and height in the window, in pixels."""

Send = Callable[..., Awaitable[dict[str, Any]]]

_GROUP = "agentgym-boxes"

# Pages replace names such as `Node`: 3 is the type of a text.
_MEASURE = """
    let range;
    const boxOf = node => {
        try {
            const measured = node.nodeType === 3 ? range ??= document.createRange() : node;
            if (measured === range) range.selectNode(node);
            const {x, y, width, height} = measured.getBoundingClientRect();
            return [x, y, width, height];
        } catch {
            return null;
        }
    };
"""

# In the order of a snapshot, which has slotted nodes below their slot.
_WALK = f"""(() => {{{_MEASURE}
    const walked = {{names: [], parents: [], boxes: []}};
    const left = [[document, -1]];
    while (left.length) {{
        const [node, parent] = left.pop();
        const index = walked.names.push(node.nodeName) - 1;
        walked.parents.push(parent);
        walked.boxes.push(boxOf(node));
        const slotted = node.localName === "slot" && node.assignedNodes ? node.assignedNodes() : [];
        const below = slotted.length ? slotted : (node.shadowRoot || node).childNodes;
        for (let i = below.length - 1; i >= 0; i--) left.push([below[i], index]);
    }}
    return walked;
}})()"""

_MEASURE_ALL = f"function(...nodes) {{{_MEASURE} return nodes.map(boxOf); }}"


async def client_boxes(send: Send, snapshot: Mapping[str, Any], numbers: Iterable[int]) -> dict[int, Box]:
    """Return the boxes of nodes in the window.

    Args:
        send: Sends a command of the DevTools protocol to the page.
        snapshot: The page, by ``DOMSnapshot.captureSnapshot``.
        numbers: The nodes' numbers in the browser.

    Returns:
        Boxes by the number of the node; without nodes that have no box or are no longer there.

    Raises:
        playwright.async_api.Error: The page is no longer there.
    """
    walked = await send("Runtime.evaluate", {"expression": _WALK, "returnByValue": True})
    boxes = _matched(snapshot, walked["result"]["value"])
    others = [number for number in numbers if number not in boxes]
    if others:
        boxes.update(await _resolved(send, others))
    return {number: (box[0], box[1], box[2], box[3]) for number, box in boxes.items() if box}


async def _resolved(send: Send, numbers: Sequence[int]) -> Mapping[int, Sequence[float] | None]:
    """Return the boxes of nodes that a script cannot reach."""
    replies = await asyncio.gather(
        *(send("DOM.resolveNode", {"backendNodeId": each, "objectGroup": _GROUP}) for each in numbers),
        return_exceptions=True,
    )
    objects = {
        number: reply["object"]["objectId"]
        for number, reply in zip(numbers, replies, strict=True)
        if not isinstance(reply, BaseException)
    }
    if not objects:
        return {}
    arguments = [{"objectId": each} for each in objects.values()]
    try:
        reply = await send(
            "Runtime.callFunctionOn",
            {
                "functionDeclaration": _MEASURE_ALL,
                "arguments": arguments,
                "returnByValue": True,
                **arguments[0],
            },
        )
    finally:
        await send("Runtime.releaseObjectGroup", {"objectGroup": _GROUP})
    return dict(zip(objects, reply["result"]["value"], strict=True))


def _matched(snapshot: Mapping[str, Any], walked: Mapping[str, Any]) -> dict[int, Sequence[float] | None]:
    """Return the measured boxes by the numbers of the nodes.

    Nodes are the same if their parents are, and have children of the same names. A script cannot reach closed
    shadow trees, and the page may change between the snapshot and the script.
    """
    nodes = snapshot["documents"][0]["nodes"]
    names = [snapshot["strings"][each] for each in nodes["nodeName"]]
    below = _children(nodes["parentIndex"], without=nodes.get("pseudoType", {}).get("index", ()))
    walked_below = _children(walked["parents"])
    boxes: dict[int, Sequence[float] | None] = {}
    left = [(0, 0)]
    while left:
        index, walked_index = left.pop()
        boxes[nodes["backendNodeId"][index]] = walked["boxes"][walked_index]
        children, walked_children = below[index], walked_below[walked_index]
        if [names[each] for each in children] == [walked["names"][each] for each in walked_children]:
            left.extend(zip(children, walked_children, strict=True))
    return boxes


def _children(parents: Sequence[int], *, without: Iterable[int] = ()) -> Sequence[Sequence[int]]:
    """Return the children of each node by the parents of all, each by its index, in their order."""
    children: list[list[int]] = [[] for _ in parents]
    left_out = set(without)
    for index, parent in enumerate(parents):
        if parent >= 0 and index not in left_out:
            children[parent].append(index)
    return children
