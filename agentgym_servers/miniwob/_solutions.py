"""The solutions of all pages by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_servers.miniwob._clicks import CLICKS
from agentgym_servers.miniwob._fields import FIELDS
from agentgym_servers.miniwob._sites import SITES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agentgym_gym.actions import Action
    from agentgym_servers.miniwob._view import View

__all__ = ["SOLUTIONS"]

SOLUTIONS: Mapping[str, Callable[[View], Iterator[Action]]] = {**CLICKS, **FIELDS, **SITES}
"""Each returns the actions one by one, and reads the page in between."""
