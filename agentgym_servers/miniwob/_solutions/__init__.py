"""The solutions of all pages by their names.

`clicks`, `fields` and `sites` have the solutions, which read each page by `page_view`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_servers.miniwob._solutions.clicks import CLICKS
from agentgym_servers.miniwob._solutions.fields import FIELDS
from agentgym_servers.miniwob._solutions.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agentgym_gym.actions import Action
    from agentgym_servers.miniwob._solutions.page_view import PageView

__all__ = ["SOLUTIONS"]

SOLUTIONS: Mapping[str, Callable[[PageView], Iterator[Action]]] = {**CLICKS, **FIELDS, **SITES}
"""Each returns the actions one by one, and reads the page in between."""
