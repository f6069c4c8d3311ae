"""The tasks: templates by site, each with its solution."""

from agentgym_servers.webarena._templates import code, forum, places, shop, shop_admin
from agentgym_servers.webarena._templates.template import TEMPLATES

__all__ = ["MODULES", "TEMPLATES"]

MODULES = (shop, shop_admin, forum, places, code)
"""The modules with the templates in `TEMPLATES`."""
