"""The home page: the list of the sites."""

from __future__ import annotations

from agentgym_servers.webarena._sites.html import items, link, tag
from agentgym_servers.webarena._sites.web import Response, Site, Visit

__all__ = ["HOME"]

HOME = Site("homepage", "Homepage", (), accounts=False)


@HOME.get("/")
def _home(visit: Visit) -> Response:
    names = (
        ("Corner Market, a shop", "http://shopping.test/"),
        ("Corner Market Admin, the admin side of the shop", "http://shopping-admin.test/admin/"),
        ("Roundtable, a forum", "http://reddit.test/"),
        ("Forgehub, a host of repositories", "http://gitlab.test/"),
        ("Openways Map, a map", "http://map.test/"),
        ("Openpedia, a wiki", "http://wikipedia.test/"),
    )
    return visit.page("Websites", tag("h1", "Websites"), items(link(text, url) for text, url in names))
