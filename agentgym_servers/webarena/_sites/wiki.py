"""The wiki: articles with a box of facts, and links between them."""

from __future__ import annotations

import re
from urllib.parse import quote

from agentgym_servers.webarena._sites.html import Html, facts, field, form, items, join, link, tag
from agentgym_servers.webarena._sites.web import Response, Site, Visit, or_404, redirect

__all__ = ["WIKI", "wiki_path"]

WIKI = Site("wikipedia", "Openpedia", (("Main page", "/"),), accounts=False)

_KINDS = (
    ("town", "Towns"),
    ("person", "People"),
    ("company", "Companies"),
    ("sight", "Sights"),
    ("mountain", "Mountains"),
)


def wiki_path(title: str) -> str:
    """Return the path of an article."""
    return f"/wiki/{quote(title.replace(' ', '_'))}"


def _search_form() -> Html:
    return form("/search", field("Search articles", "q"), submit="Search", method="get")


@WIKI.get("/")
def _home(visit: Visit) -> Response:
    kinds = items(link(name, f"/kind/{kind}") for kind, name in _KINDS)
    return visit.page("Main page", tag("h1", "Openpedia"), _search_form(), kinds)


@WIKI.get("/kind/{kind}")
def _kind(visit: Visit, kind: str) -> Response:
    name = or_404(dict(_KINDS).get(kind))
    titles = sorted(each.title for each in visit.state.wiki.of(kind))
    return visit.page(name, tag("h1", name), items(link(title, wiki_path(title)) for title in titles))


@WIKI.get("/search")
def _search(visit: Visit) -> Response:
    query = visit.text("q")
    articles = visit.state.wiki.articles
    exact = next((title for title in articles if title.lower() == query.lower()), None)
    if exact is not None:
        return redirect(wiki_path(exact))
    found = [
        each for each in articles.values() if query and query.lower() in f"{each.title} {each.text}".lower()
    ]
    rows = items(join(link(each.title, wiki_path(each.title)), f": {each.text}") for each in found)
    return visit.page(f"Search: {query}", tag("h1", f"Results for: {query}"), _search_form(), rows)


@WIKI.get("/wiki/{name:path}")
def _article(visit: Visit, name: str) -> Response:
    articles = visit.state.wiki.articles
    article = or_404(articles.get(name.replace("_", " ")))
    about = [
        (key, link(value, wiki_path(value)) if value in articles else value)
        for key, value in article.facts.items()
    ]
    return visit.page(
        article.title,
        tag("h1", article.title),
        _search_form(),
        tag("p", _linked(article.text, article.title, list(articles))),
        facts(about, id="facts"),
    )


def _linked(text: str, own: str, titles: list[str]) -> Html:
    """Return a text in which the titles of other articles are links."""
    others = sorted((title for title in titles if title != own), key=len, reverse=True)
    parts = re.split(f"({'|'.join(map(re.escape, others))})", text)
    return join(*(link(part, wiki_path(part)) if part in others else part for part in parts))
