"""The sites: server-rendered HTML over data of `state`, which are drawn from a seed."""

from agentgym_servers.webarena._sites.addresses import host_of
from agentgym_servers.webarena._sites.code import CODE
from agentgym_servers.webarena._sites.forum import FORUM
from agentgym_servers.webarena._sites.home import HOME
from agentgym_servers.webarena._sites.map import MAP
from agentgym_servers.webarena._sites.shop import SHOP
from agentgym_servers.webarena._sites.shop_admin import SHOP_ADMIN
from agentgym_servers.webarena._sites.wiki import WIKI

__all__ = ["SITES", "host_of"]

SITES = (SHOP, SHOP_ADMIN, FORUM, WIKI, MAP, CODE, HOME)
"""All sites."""
