"""The functions that checks of WebArena's task files may call, parsed and not evaluated.

Those of the shop use the interface of Magento, which only the user's own sites have.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from playwright.async_api import Error

if TYPE_CHECKING:
    from agentgym_servers._browser.tabs import Tabs
    from agentgym_servers.webarena._sites.addresses import Addresses

__all__ = ["ADMIN", "FUNCTIONS", "call_function", "target_url"]

_CALL = re.compile(r"(\w+)\((.*)\)")
_TEXT = re.compile(r"'([^']*)'|\"([^\"]*)\"")

ADMIN = {"username": "admin", "password": "admin1234"}
"""The account of WebArena's shop, from its published configuration."""

FUNCTIONS = {
    "shopping_get_latest_order_url",
    "shopping_get_sku_latest_review_author",
    "shopping_get_sku_latest_review_rating",
    "reddit_get_post_url",
    "gitlab_get_project_memeber_role",
}
"""All functions, with WebArena's names."""

_ROLE = """(account) => {
    const names = [...document.querySelectorAll("td[data-label='Account'] span.gl-avatar-labeled-sublabel")];
    const index = names.findIndex(name => name.outerText === '@' + account);
    return document.querySelectorAll("td.col-max-role span")[index].outerText;
}"""


def _parsed(call: str) -> tuple[str, list[str]]:
    match = _CALL.fullmatch(call.strip())
    if match is None or match[1] not in FUNCTIONS:
        raise ValueError(f"there is no function {call!r:.80}")
    return match[1], [one or two for one, two in _TEXT.findall(match[2])]


async def target_url(url: str, tabs: Tabs, addresses: Addresses) -> str:
    """Return the address of the page of a check, which may be a call.

    Raises:
        ValueError: There is no such function.
    """
    if not url.startswith("func:"):
        return url
    name, arguments = _parsed(url.removeprefix("func:").replace("__last_url__", tabs.shown.url))
    if name == "reddit_get_post_url":
        return _post_url(arguments[0])
    if name == "shopping_get_latest_order_url":
        shop = addresses.local["__SHOPPING__"]
        fields = "[sortOrders][0][field]=created_at&searchCriteria[sortOrders][0][direction]=DESC"
        orders = await _shop(tabs, shop, f"orders?searchCriteria{fields}&searchCriteria[pageSize]=1")
        return f"{shop}/sales/order/view/order_id/{int(orders['items'][0]['increment_id'])}/"
    raise ValueError(f"{name} returns no address")


async def call_function(call: str, tabs: Tabs) -> str:
    """Return the content that a call selects; empty if there is none.

    Raises:
        ValueError: There is no such function.
    """
    name, arguments = _parsed(call.replace("__page__", "page"))
    if name == "gitlab_get_project_memeber_role":
        try:
            return str(await tabs.shown.evaluate(_ROLE, arguments[0]))
        except Error:
            return ""
    if not name.startswith("shopping_get_sku"):
        raise ValueError(f"{name} returns no content")
    parts = urlsplit(tabs.shown.url)
    reviews = await _shop(tabs, f"{parts.scheme}://{parts.netloc}", f"products/{arguments[0]}/reviews")
    if not reviews:
        return ""
    last = reviews[-1]
    return str(last["nickname"] if name.endswith("author") else last["ratings"][0]["percent"])


def _post_url(url: str) -> str:
    """Return the address of the post of a page of the forum; the page's own if it is of none."""
    parts = urlsplit(url)
    path = parts.path.split("/")
    if path[1:2] != ["f"] or not path[3:4]:
        return url
    return f"{parts.scheme}://{parts.netloc}/f/{path[2]}/{path[3]}/"


async def _shop(tabs: Tabs, shop: str, path: str) -> Any:
    """Return a reply of the interface of the user's shop."""
    api = tabs.context.request
    token = await (await api.post(f"{shop}/rest/default/V1/integration/admin/token", data=ADMIN)).json()
    reply = await api.get(f"{shop}/rest/V1/{path}", headers={"Authorization": f"Bearer {token}"})
    return await reply.json()
