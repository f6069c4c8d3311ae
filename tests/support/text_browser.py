"""A browser without pictures and scripts: plays solutions of WebArena's tasks on the sites, in this process.

It follows links, fills forms and presses buttons, by their names. Layout, tabs and keys are for the tests
with Chromium.
"""

from __future__ import annotations

import asyncio
import functools
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin

import httpx

from webarena_parts import (
    HEADER,
    OWN_ADDRESSES,
    SITES,
    TEMPLATES,
    SiteServer,
    host_of,
    matches_answer,
    matches_url,
    signed_in_cookie,
    world_of,
)

TEMPLATE_NAMES = frozenset(each.name for each in TEMPLATES)
"""The names of all templates of tasks."""

VOID = {"input", "br", "meta"}


class Node:
    def __init__(self, name, attributes, parent):
        self.name, self.attributes, self.parent = name, attributes, parent
        self.children = []

    @property
    def text(self):
        parts = [child if isinstance(child, str) else child.text for child in self.children]
        joint = "\t" if self.name == "tr" else ""
        return joint.join(parts) + ("\n" if self.name in {"p", "tr", "li", "h1", "h2"} else "")

    def walk(self):
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def inside(self, name):
        node = self
        while node is not None and node.name != name:
            node = node.parent
        return node


class Tree(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.root = self.here = Node("", {}, None)
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        node = Node(tag, dict(attrs), self.here)
        self.here.children.append(node)
        if tag not in VOID:
            self.here = node

    def handle_endtag(self, tag):
        assert self.here.name == tag, f"</{tag}> ends <{self.here.name}>"
        self.here = self.here.parent

    def handle_data(self, data):
        self.here.children.append(data)


class TextBrowser:
    """A context with the accounts of an episode."""

    def __init__(self, state):
        server = SiteServer()
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(server.app),
            headers={HEADER: server.add(state)},
            follow_redirects=True,
            trust_env=False,
        )
        for site in SITES:
            if site.accounts:
                cookie = signed_in_cookie(next(iter(state.accounts(site.key))))
                self.client.cookies.set("session", cookie, domain=host_of(site.key))

    def open(self, url, form=None):
        method = "GET" if form is None else "POST"
        response = asyncio.run(self.client.request(method, url, data=form))
        self.url, self.status = str(response.url), response.status_code
        self.root = Tree(response.text).root
        self.values = {}

    def nodes(self, *names):
        return [node for node in self.root.walk() if node.name in names]

    def find(self, role, name):
        if role in {"link", "button"}:
            tag = {"link": "a", "button": "button"}[role]
            return next(node for node in self.nodes(tag) if node.text.strip() == name)
        if role == "radio":
            labels = (node for node in self.nodes("label") if node.text.strip() == name)
            return next(child for label in labels for child in label.children if isinstance(child, Node))
        return next(
            node for node in self.nodes("input", "textarea") if node.attributes.get("aria-label") == name
        )

    def play(self, step):
        if step.verb == "goto":
            self.open(OWN_ADDRESSES.fill(step.text))
        elif step.verb == "press":
            assert step.text in {"Control+a", "Delete"}
            if step.text == "Delete":
                self.values[id(self.focus)] = ""
        elif step.verb == "type":
            node = self.find(step.role, step.name)
            self.values[id(node)] = self.value(node) + step.text
            if step.enter:
                self.submit(node.inside("form"))
        elif step.verb == "click":
            self.click(step.role, self.find(step.role, step.name))

    def click(self, role, node):
        self.focus = node
        if role == "link":
            self.open(urljoin(self.url, node.attributes["href"]))
        elif role == "button":
            self.submit(node.inside("form"))
        elif role == "radio":
            for other in self.nodes("input"):
                if other.attributes.get("name") == node.attributes["name"]:
                    other.attributes.pop("checked", None)
            node.attributes["checked"] = ""

    def value(self, node):
        return self.values.get(
            id(node), node.attributes.get("value") or (node.text if node.name == "textarea" else "")
        )

    def submit(self, form):
        fields = {}
        for node in form.walk():
            if node.name == "textarea" or node.attributes.get("type") in {"text", "password"}:
                fields[node.attributes["name"]] = self.value(node)
            elif "type" in node.attributes and "checked" in node.attributes:
                fields[node.attributes["name"]] = node.attributes["value"]
        action = urljoin(self.url, form.attributes["action"])
        if form.attributes["method"] == "get":
            self.open(f"{action}?{urlencode(fields)}")
        else:
            self.open(action, fields)

    def select(self, locator):
        """Return what a locator of our checks selects."""
        css, _, attribute = locator.removeprefix("document.querySelector('").partition("').")
        css, checked, _ = css.partition(":checked")
        for node in self.root.walk():
            its = node.attributes
            fits = {
                "#": css[1:] == its.get("id"),
                ".": css[1:] == its.get("class"),
                "[": css[6:-1] == its.get("name"),
            }
            if fits.get(css[0], css == node.name) and (not checked or "checked" in its):
                return self.value(node) if attribute == "value" else node.text
        return ""


@functools.cache
def task_of(number):
    """Return a task of the generated sites."""
    return world_of(0).task(number)


def begun(task):
    """Return a browser at the start of a task."""
    browser = TextBrowser(world_of(0).fresh_state(task))
    browser.open(task.start_urls[0])
    return browser


def met(task, browser, answer):
    """Return whether the check of a task accepts what was done: as the server does, without Chromium."""
    check = task.check
    parts = {
        "string_match": lambda: matches_answer(check["reference_answers"], answer),
        "url_match": lambda: matches_url(check["reference_url"], browser.url),
        "program_html": lambda: all(_has_content(each, browser) for each in check["program_html"]),
    }
    return all(parts[kind]() for kind in check["eval_types"])


def _has_content(target, browser):
    if target["url"] != "last":
        browser.open(target["url"])
    selected = browser.select(target["locator"]).lower()
    return all(text.lower() in selected for text in target["required_contents"]["must_include"])
