"""A report in a real Chromium, opened from a file: fixtures, and what tests ask of a page."""

from __future__ import annotations

import os
import time

import pytest

import needs
from agentgym_gym.evaluate import write_report

OPENED = "#episode .conversation"

CONTRAST = """() => {
  const lightness = ([r, g, b]) => [r, g, b]
    .map((part) => part / 255)
    .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parts = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data;
    if (!text.trim() || element.closest("script, noscript, dialog, button:disabled")) continue;
    if (!element.checkVisibility()) continue;
    const [a, b] = [parts(getComputedStyle(element).color), ground(element)].map(lightness);
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.className, text]);
  }
  return found;
}"""

HIDDEN = """() => {
  const texts = [document.title, document.body.innerText];
  for (const each of document.body.querySelectorAll("*:not(script)")) {
    texts.push(...each.getAttributeNames().map((name) => each.getAttribute(name)));
  }
  const hidden = /[\\u0000\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2066-\\u2069\\u{e0000}-\\u{e007f}]/u;
  return texts.filter((text) => hidden.test(text.replaceAll("👩\\u200d🔬", "")));
}"""
"""Returns shown texts and labels with invisible characters; an emoji may have one."""


@pytest.fixture(scope="module")  # its event loop is in the way of tests of other modules
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason=needs.reason("playwright.sync_api"))
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=needs.path_of("chromium"), args=sandbox)
        yield browser
        browser.close()


@pytest.fixture
def view(browser, tmp_path):
    """Opens a report of runs; all errors, requests and dialogs of the browser are collected."""
    contexts, heard = [], []

    def opened(*runs, fragment="", wait="body.ready", title=None, path=None, **options):
        out = path or tmp_path / "report.html"
        if runs:
            write_report(runs, out, title=title)
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: heard.append(("console", message.text)))
        page.on("pageerror", lambda error: heard.append(("error", str(error))))
        page.on("dialog", lambda dialog: (heard.append(("dialog", dialog.message)), dialog.dismiss()))
        page.on("request", lambda request: heard.append(("request", request.url)))
        page.goto(out.as_uri() + fragment, wait_until="commit")
        page.wait_for_selector(wait)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [kind for kind, _ in heard] == ["request"] * len(contexts), heard  # the file itself, and no more


def shown(page, selector):
    """Return the texts of the elements that are seen."""
    return [each.inner_text() for each in page.locator(selector).all() if each.is_visible()]


def until(page, expression):
    """Wait until an expression is true; the page's policy lets `wait_for_function` evaluate no text."""
    ends = time.monotonic() + 60
    while not page.evaluate(expression):
        assert time.monotonic() < ends, expression
        page.wait_for_timeout(10)
