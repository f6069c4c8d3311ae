"""Pages as the agent reads them, in a real Chromium: visible elements, values of fields, and boxes.

``make webarena`` compares many more pages with WebArena's own processor.
"""

from __future__ import annotations

import asyncio
import re

import pytest

import needs
from page_kinds import WEBARENAS_TEXTS, path_of, served_pages, without_numbers
from webarena_parts import Chromium, Tabs, client_boxes, read_command

pytestmark = [pytest.mark.needs(*needs.needs_of_server("webarena")), pytest.mark.slow]


def in_tab(play):
    """Run a coroutine with a new tab and the address of the generated pages; return its result."""

    async def main(site):
        chromium = Chromium()
        try:
            tabs = Tabs(await chromium.context())
            await tabs.open("")
            return await play(tabs, site)
        finally:
            await chromium.close()

    with served_pages() as site:
        return asyncio.run(main(site.url))


def number(text, element):
    return re.search(rf"\[(\d+)\] {element}", text)[1]


def test_pages_have_the_texts_that_webarena_writes():
    async def read(tabs, site):
        texts = {}
        for name in WEBARENAS_TEXTS:
            await tabs.visit(site + path_of(name))
            text = (await tabs.see()).page.text.replace(site, "")
            texts[name] = f"\n{without_numbers(text)}\n"
        return texts

    assert in_tab(read) == WEBARENAS_TEXTS


def test_a_typed_price_is_in_the_next_observation():
    async def type_price(tabs, site):
        await tabs.visit(site + path_of("fields"))
        element = number((await tabs.see()).text, "textbox 'Search'")
        await tabs.act(read_command(f"type [{element}] [249.50] [0]"))
        return element, (await tabs.see()).text

    element, text = in_tab(type_price)
    assert re.search(
        rf"\[{element}\] textbox 'Search' focused: True required: False\n\t\t\[\d+\] StaticText '249.50'",
        text,
    )


def test_an_element_partly_outside_the_window_is_clicked_in_its_middle():
    page = """<button id=half style="position: fixed; left: 1200px; top: 300px; width: 100px; height: 60px">
        Half</button><p>none<script>half.onclick = event => document.querySelector('p').textContent =
        `clicked at ${event.clientX} ${event.clientY}`</script>"""

    async def click(tabs, site):
        await tabs.shown.set_content(page)
        element = number((await tabs.see()).text, "button 'Half'")
        await tabs.act(read_command(f"click [{element}]"))
        return (await tabs.see()).text

    assert "clicked at 1250 330" in in_tab(click)


def test_a_page_that_changes_while_it_is_read_mixes_up_no_boxes():
    """The elements of the snapshot have the boxes that they have now, or none if they are gone."""
    page = "<ul style='list-style: none'><li>first<li>second<li>third</ul><p>after <b>bold</b></p>"
    change = """() => {
        const list = document.querySelector('ul');
        list.firstChild.remove();
        list.prepend(document.createElement('div'), 'text');
        document.querySelector('b').replaceWith(document.createElement('i'));
    }"""

    async def measure(tabs, site):
        await tabs.shown.set_content(page)
        session = await tabs.context.new_cdp_session(tabs.shown)
        snapshot = await session.send("DOMSnapshot.captureSnapshot", {"computedStyles": []})
        strings, nodes = snapshot["strings"], snapshot["documents"][0]["nodes"]
        items = [
            backend
            for backend, name in zip(nodes["backendNodeId"], nodes["nodeName"], strict=True)
            if strings[name] in {"LI", "P", "B"}
        ]
        await tabs.shown.evaluate(change)
        boxes = await client_boxes(session.send, snapshot, items)
        right = await tabs.shown.eval_on_selector_all(
            "li, p", "all => all.map(each => each.getBoundingClientRect().y)"
        )
        return [boxes[item][1] if item in boxes else None for item in items], right

    tops, right = in_tab(measure)
    first, second, third, paragraph, bold = tops
    assert [second, third, paragraph] == right
    # The browser measures a node that is no longer in the page as nothing at its corner.
    assert first in {None, 0}
    assert bold in {None, 0}
