"""The functions that checks of WebArena's task files may call, parsed and not evaluated.

The shop's functions use the interface of Magento, which only the user's own sites have.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from playwright.async_api import Error

if TYPE_CHECKING:
    from playwright.async_api import APIResponse

    from agentgym_servers._browser.tabs import Tabs
    from agentgym_servers.webarena._sites.addresses import Addresses

__all__ = [
    "ADMIN",
    "FUNCTIONS",
    "call_function",
    "called_function",
    "evaluate_on_page",
    "is_agents_page",
    "raised_by_page",
    "target_url",
]

_FUNC = "func:"
_LAST_URL = "__last_url__"
_CALL = re.compile(r"(\w+)\((.*)\)")
# An error that a script raised, such as TypeError: null has no properties. A SyntaxError is in the script.
_RAISED = re.compile(r"(?:Page\.evaluate: )?(?!SyntaxError)\w*Error: ")
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


def called_function(text: Any) -> str:
    """Return the call in an address or a locator of a check; empty if it is not a call."""
    return text.removeprefix(_FUNC) if isinstance(text, str) and text.startswith(_FUNC) else ""


def _parsed(call: str) -> tuple[str, list[str]]:
    match = _CALL.fullmatch(call.strip())
    if match is None or match[1] not in FUNCTIONS:
        raise ValueError(f"there is no function {call!r:.80}")
    return match[1], [one or two for one, two in _TEXT.findall(match[2])]


async def target_url(url: str, tabs: Tabs, addresses: Addresses) -> str:
    """Return the address of the page of a check, which may be a call; empty if the agent made no such page.

    Raises:
        ValueError: There is no such function, or the shop does not answer.
    """
    call = called_function(url)
    if not call:
        return url
    name, arguments = _parsed(call.replace(_LAST_URL, tabs.shown.url))
    if name == "reddit_get_post_url":
        return _post_url(arguments[0])
    if name == "shopping_get_latest_order_url":
        fields = "[sortOrders][0][field]=created_at&searchCriteria[sortOrders][0][direction]=DESC"
        shop, orders = await _shop(
            tabs, addresses, f"orders?searchCriteria{fields}&searchCriteria[pageSize]=1"
        )
        latest = orders["items"][:1]
        return f"{shop}/sales/order/view/order_id/{int(latest[0]['increment_id'])}/" if latest else ""
    raise ValueError(f"{name} returns no address")


def is_agents_page(url: str) -> bool:
    """Return whether the page of a check depends on the page at which the agent stopped."""
    return url == "last" or _LAST_URL in url


async def call_function(call: str, tabs: Tabs, addresses: Addresses) -> str:
    """Return the content that a call selects; empty if there is none.

    Raises:
        ValueError: There is no such function, or the shop does not answer.
        Error: The page cannot be read.
    """
    name, arguments = _parsed(call.replace("__page__", "page"))
    if name == "gitlab_get_project_memeber_role":
        return await evaluate_on_page(tabs, _ROLE, arguments[0])
    if not name.startswith("shopping_get_sku"):
        raise ValueError(f"{name} returns no content")
    _, reviews = await _shop(tabs, addresses, f"products/{arguments[0]}/reviews")
    if not reviews:
        return ""
    last = reviews[-1]
    return str(last["nickname"] if name.endswith("author") else last["ratings"][0]["percent"])


def raised_by_page(error: Error) -> bool:
    """Return whether a script raised the error because it expects a different page."""
    return _RAISED.match(error.message) is not None


async def evaluate_on_page(tabs: Tabs, expression: str, *arguments: Any) -> str:
    """Return the value of an expression as text; empty if the page has no such element.

    As in WebArena, a value of null is the text ``None``.

    Raises:
        Error: The expression is not valid, or the page cannot be read.
    """
    try:
        return str(await tabs.shown.evaluate(expression, *arguments))
    except Error as error:
        if raised_by_page(error):
            return ""
        raise


def _post_url(url: str) -> str:
    """Return the address of the post that a page of the forum shows; else the page's own address."""
    parts = urlparse(url)
    path = parts.path.split("/")
    if path[1:2] != ["f"] or not path[3:4]:
        return url
    return f"{parts.scheme}://{parts.netloc}/f/{path[2]}/{path[3]}/"


async def _shop(tabs: Tabs, addresses: Addresses, path: str) -> tuple[str, Any]:
    """Return the address of the user's shop, and a reply of its interface.

    Raises:
        ValueError: It has no address, or answers with an error.
    """
    shop = addresses.local.get("__SHOPPING__")
    if shop is None:
        raise ValueError("the address of __SHOPPING__ is not known")
    api = tabs.context.request
    token = await _answered(await api.post(f"{shop}/rest/default/V1/integration/admin/token", data=ADMIN))
    headers = {"Authorization": f"Bearer {token}"}
    return shop, await _answered(await api.get(f"{shop}/rest/V1/{path}", headers=headers))


async def _answered(reply: APIResponse) -> Any:
    if not reply.ok:
        raise ValueError(f"{reply.url} answered HTTP {reply.status}")
    try:
        return await reply.json()
    except RecursionError:
        raise ValueError(f"{reply.url} answered JSON that is nested too deep") from None
