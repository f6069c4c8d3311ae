"""The sites of WebArena at addresses of their own, as a user's sites are for `--data`."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

from agentgym_servers.webarena._sites import SITES
from agentgym_servers.webarena._sites.state import fresh_state
from agentgym_servers.webarena._sites.web import signed_in_cookie
from served_app import served

__all__ = ["fresh_state", "plain_sites", "signed_in_cookie"]


@contextmanager
def plain_sites(state, *keys):
    """Serve sites; return their addresses by WebArena's placeholders."""
    with ExitStack() as stack:
        addresses = {}
        for site in SITES:
            if site.key in keys:
                addresses[f"__{site.key.upper()}__"] = stack.enter_context(served(site.app(state)))
        yield addresses
