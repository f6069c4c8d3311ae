"""The documentation as a site: it is built without a warning, has all pages, and its links lead somewhere."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import command_line
import needs
from report_browser import browser  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = {"plans", "records"}  # folders of docs/; see conf.py for the reason

DOCUMENTED = {
    "agentgym_gym": "api/agentgym_gym.html",
    "agentgym_gym.actions": "api/actions.html",
    "agentgym_gym.data": "api/data.html",
    "agentgym_gym.errors": "api/errors.html",
    "agentgym_gym.evaluate": "api/evaluate.html",
    "agentgym_gym.formats": "api/formats.html",
    "agentgym_gym.testing": "api/testing.html",
}


class Page(HTMLParser):
    """What a page links to, what it loads, and what can be linked to in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors = set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if values.get("id"):
            self.anchors.add(values["id"])
        if tag == "a" and values.get("href"):
            self.links.add(values["href"])
        if tag in {"script", "img", "source", "iframe"} and values.get("src"):
            self.loads.add(values["src"])
        if tag == "link" and values.get("href"):
            self.loads.add(values["href"])


def sphinx(docs, out):
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "-qnW", "--keep-going", str(docs), str(out)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, by the words of `make site`: page by path."""
    needs.skip_without("sphinx", "myst_parser", "furo", "sphinx_copybutton")
    out = tmp_path_factory.mktemp("site")
    built = sphinx(ROOT / "docs", out)
    assert (built.returncode, built.stderr) == (0, "")
    return {path: Page(path.read_text("utf-8")) for path in out.rglob("*.html")}


@pytest.fixture(scope="module")
def root(site):
    return min((path for path in site), key=lambda path: len(path.parts)).parent


def test_every_page_is_in_it(site, root):
    pages = {
        path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        for kind in ("*.md", "*.rst")
        for path in (ROOT / "docs").rglob(kind)
        if path.relative_to(ROOT / "docs").parts[0] not in LEFT_OUT
    }
    assert len(pages) > 40
    assert pages <= {path.relative_to(root).as_posix() for path in site}
    begin = site[root / "index.html"].links
    assert pages - {"index.html"} <= {link.partition("#")[0] for link in begin}, (
        "not in the order of index.md"
    )


def test_links_within_it_lead_somewhere(site):
    within = 0
    for path, page in site.items():
        for link in page.links | page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path.name} links to {link}"
            if parts.fragment and target in site:
                within += 1
                assert unquote(parts.fragment) in site[target].anchors, f"{path.name} links to {link}"
    assert within > 1000


def test_it_loads_nothing_from_elsewhere(site):
    assert {load for page in site.values() for load in page.loads if urlsplit(load).netloc} == set()


def test_the_first_page_is_the_readme(site, root):
    readme = (ROOT / "README.md").read_text("utf-8")
    titles = re.findall(r"^## (.*)$", readme, re.MULTILINE)
    assert len(titles) > 5
    assert {title.lower().replace(" ", "-") for title in titles} <= site[root / "index.html"].anchors


@pytest.mark.parametrize("module", DOCUMENTED)
def test_every_public_name_is_documented(site, root, module):
    anchors = set().union(*(site[root / page].anchors for page in DOCUMENTED.values()))
    names = set(importlib.import_module(module).__all__) - {"__version__", "errors"}
    elsewhere = {"agentgym_gym.actions", "agentgym_gym.formats"} if module == "agentgym_gym" else set()
    assert names
    assert {name for name in names if not anchors & {f"{at}.{name}" for at in {module, *elsewhere}}} == set()


def test_a_link_that_leads_nowhere_is_found(tmp_path, site):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "conf.py").write_text('extensions = ["myst_parser"]\nmyst_heading_anchors = 4\n')
    (docs / "index.md").write_text("# Title\n\n[a](#title) [b](#nowhere)\n")
    built = sphinx(docs, tmp_path / "out")
    assert built.returncode == 1
    assert "nowhere" in built.stderr
    assert "#title" not in built.stderr


def options():
    """Yield the path of a command's page, its name, and each option, also of groups of commands."""
    for words in [(), ("data",), ("verl",), *command_line.commands()]:
        page = "/".join(["cli", *words]) + ".html"
        for option in command_line.options(*words):
            if option.group != "Arguments":
                yield from ((page, " ".join(["agentgym", *words]), name) for name in option.names)


def test_each_option_can_be_linked_to_and_found(site, root):
    index = (root / "searchindex.js").read_text("utf-8")
    index = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    listed = {
        (f"{index['docnames'][entry[0]]}.html", f"{prefix}.{entry[-1]}")
        for prefix, entries in index["objects"].items()
        for entry in entries
    }
    documented = list(options())
    assert len(documented) > 150
    for page, command, option in documented:
        anchor = f"cmdoption-{command.replace(' ', '-')}-{option.lstrip('-')}"
        assert anchor in site[root / page].anchors, f"{page} has no anchor {anchor}"
        name = f"{command.replace(' ', '-')}.{option}"
        assert (page, name) in listed, f"the search does not find {command} {option}"


@pytest.fixture
def view(browser, root):  # noqa: F811 - the fixture
    """Open a page of the site from the disk; a test fails if the browser reports an error."""
    contexts, errors = [], []

    def opened(page, query="", **settings):
        contexts.append(browser.new_context(**settings))
        view = contexts[-1].new_page()
        view.on("console", lambda message: message.type == "error" and errors.append(message.text))
        view.on("pageerror", lambda error: errors.append(str(error)))
        view.goto((root / page).as_uri() + query)
        return view

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


def test_the_search_from_the_disk_finds_an_option(view):
    page = view("search.html", "?q=--on-unknown")
    page.wait_for_selector("#search-results .search a")
    links = page.locator("#search-results .search a").evaluate_all("links => links.map((a) => a.href)")
    assert any(link.endswith("cli/eval.html#cmdoption-agentgym-eval-on-unknown") for link in links)


def test_the_search_from_the_disk_has_excerpts(view):
    page = view("search.html", "?q=quarantine")
    page.wait_for_selector("#search-results .search p.context")
    excerpts = page.locator("#search-results .search p.context").all_inner_texts()
    assert any("quarantine" in excerpt for excerpt in excerpts)


def test_copy_buttons_leave_out_prompts(view):
    page = view("replies.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = page.locator(".highlight-console", has_text="$ printf").first
    block.hover()
    block.locator("button.copybtn").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("printf ")
    assert len(copied.splitlines()) == 1  # the output is no command


def test_no_page_scrolls_sideways_on_a_phone(view, site, root):
    page = view("index.html", viewport={"width": 390, "height": 844})
    parts = "[...document.querySelectorAll('html, .page, .main, .content, article')]"
    widest = f"Math.max(...{parts}.map((part) => part.scrollWidth))"  # the theme lets .content scroll
    wide = {}
    for path in site:
        page.goto(path.as_uri())
        if (width := page.evaluate(widest)) > 390:
            wide[path.relative_to(root).as_posix()] = width
    assert wide == {}
    wide_element = '<div style="width: 900px">wide</div>'
    page.evaluate(f"document.querySelector('article').insertAdjacentHTML('beforeend', '{wide_element}')")
    assert page.evaluate(widest) >= 900  # a wide element would be found
