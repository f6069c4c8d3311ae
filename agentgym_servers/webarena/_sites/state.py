"""The state of all sites in one episode: drawn from a seed, and changed by what the agent does."""

from __future__ import annotations

import functools
import pickle
from dataclasses import dataclass

from agentgym_servers._frame.draw import Draw
from agentgym_servers.webarena._sites import code_data, forum_data, map_data, shop_data, wiki_data

__all__ = ["STATES", "SiteState", "fresh_state", "state_of"]

STATES = 10
"""The number of different initial states of the sites."""


@dataclass
class SiteState:
    """The data of the sites.

    Attributes:
        shop: The shop, with its admin side.
        forum: The forum.
        wiki: The wiki.
        map: The map.
        code: The repository host.
    """

    shop: shop_data.Shop
    forum: forum_data.Forum
    wiki: wiki_data.Wiki
    map: map_data.Map
    code: code_data.Code

    def accounts(self, site: str) -> dict[str, str]:
        """Return the passwords of the users of a site, by name."""
        accounts = {
            "shopping": {self.shop.me: "shop-1234"},
            "shopping_admin": {"admin": "admin-1234"},
            "reddit": {self.forum.me: "forum-1234"},
            "gitlab": {self.code.me: "code-1234"},
        }
        return accounts.get(site, {})


@functools.lru_cache(maxsize=2 * STATES)
def state_of(seed: int, number: int) -> SiteState:
    """Return one of the states of a world, which must not be changed."""
    draw = Draw("webarena", seed, "state", number)
    world_map = map_data.draw_map(draw)
    return SiteState(
        shop_data.draw_shop(draw),
        forum_data.draw_forum(draw),
        wiki_data.draw_wiki(draw, world_map),
        world_map,
        code_data.draw_code(draw),
    )


@functools.lru_cache(maxsize=2 * STATES)
def _pickled(seed: int, number: int) -> bytes:
    return pickle.dumps(state_of(seed, number))


def fresh_state(seed: int, number: int) -> SiteState:
    """Return a copy of a state for one episode."""
    copy: SiteState = pickle.loads(_pickled(seed, number))  # noqa: S301 - pickled above
    return copy
