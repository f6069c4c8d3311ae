"""WebArena's own processor reads the same pages as our server, in the same browser.

It is not part of this repository: ``make webarena WEBARENA=../webarena`` runs these tests with a checkout.
They print the share of equal lines of each page, and the lines that differ by kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import re

import pytest

import needs
from page_kinds import DOCUMENTS, WEBARENAS_TEXTS, path_of, served_pages
from webarena_checkout import Comparison, compare, processor_or_skip
from webarena_parts import (
    SITES,
    ActionFailed,
    Chromium,
    SiteServer,
    Tabs,
    WebArenaBrowser,
    host_of,
    read_command,
    world_of,
)

pytestmark = [pytest.mark.needs("webarena", *needs.needs_of_server("webarena")), pytest.mark.slow]

ACTIONS = (
    ("scrolled", "scroll [down]", ""),
    ("scrolled back", "scroll [up]", ""),
    ("typed", "type [{}] [9.50] [0]", r"(?:textbox|searchbox|spinbutton) "),
    ("select box open", "click [{}]", r"combobox .*hasPopup: menu"),
    ("checked", "click [{}]", r"(?:checkbox|switch) "),
    ("hovered", "hover [{}]", r"(?:link|button) "),
)
"""What was done before a page is read again, the action, and the element that it needs."""

PAGES_OF_A_SITE = 10


def check(comparison):
    print(comparison.table())  # noqa: T201 - the target shows it
    assert not comparison.failures
    assert not comparison.misses
    assert comparison.share >= 0.99


async def compare_with_actions(processor, tabs, name, comparison):
    await compare(processor, tabs, name, comparison)
    for done, action, element in ACTIONS:
        match = re.search(rf"\[(\d+)\] {element}", (await tabs.see()).page.text)
        if match is not None:
            with contextlib.suppress(ActionFailed):  # a page without a body cannot be scrolled
                await tabs.act(read_command(action.format(match[1])))
            await compare(processor, tabs, f"{name}, {done}", comparison)


@pytest.fixture(scope="module")
def processor():
    return processor_or_skip()


def test_pages_of_all_kinds_have_the_text_that_webarena_writes(processor):
    comparison = Comparison()

    async def main():
        chromium = Chromium()
        try:
            for name in DOCUMENTS:
                tabs = Tabs(await chromium.context())
                await tabs.open(site + path_of(name))
                await compare_with_actions(processor, tabs, name, comparison)
                await tabs.close()
        finally:
            await chromium.close()

    with served_pages() as server:
        site = server.url
        asyncio.run(main())
    check(comparison)
    for name, text in WEBARENAS_TEXTS.items():
        tabs_and_page = comparison.texts[name].replace(site, "")
        assert text == f"{tabs_and_page}\n".partition("\n")[2]


async def pages_of(tabs, host):
    """Return addresses of a site, one of each kind: those of a kind differ in numbers and queries only."""
    found = {}
    left = [f"http://{host}/"]
    while left and len(found) < PAGES_OF_A_SITE:
        url = left.pop(0)
        kind = re.sub(r"\d+|=[^&]*", "0", url)
        if kind not in found and f"//{host}/" in url:
            found[kind] = url
            await tabs.visit(url)
            left += await tabs.shown.eval_on_selector_all("a[href]", "all => all.map(each => each.href)")
    return list(found.values())


def test_the_made_sites_have_the_text_that_webarena_writes(processor):
    comparison = Comparison()

    async def main():
        world = world_of(0)
        browser = WebArenaBrowser(world, SiteServer())
        tabs = await browser.open(world.task(0))
        try:
            for site in SITES:
                for url in await pages_of(tabs, host_of(site.key)):
                    await tabs.visit(url)
                    await compare_with_actions(processor, tabs, url, comparison)
        finally:
            await browser.chromium.close()
            browser.sites._server.close()

    asyncio.run(main())
    assert len(comparison.rows) > 2 * len(SITES)
    check(comparison)
