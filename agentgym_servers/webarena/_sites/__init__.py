"""The sites: server-rendered HTML over the data of `state`; and the home page, which lists them."""

from agentgym_servers.webarena._sites.addresses import host_of
from agentgym_servers.webarena._sites.code import CODE
from agentgym_servers.webarena._sites.forum import FORUM
from agentgym_servers.webarena._sites.html import items, link, tag
from agentgym_servers.webarena._sites.map import MAP
from agentgym_servers.webarena._sites.shop import SHOP
from agentgym_servers.webarena._sites.shop_admin import SHOP_ADMIN
from agentgym_servers.webarena._sites.web import Response, Site, Visit
from agentgym_servers.webarena._sites.wiki import WIKI

__all__ = ["SITES", "host_of"]

_HOME = Site("homepage", "Homepage", (), accounts=False)


@_HOME.get("/")
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


SITES = (SHOP, SHOP_ADMIN, FORUM, WIKI, MAP, CODE, _HOME)
"""All sites."""
