"""A task, whether generated or from a user's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from agentgym_servers.webarena._sites.addresses import Addresses
    from agentgym_servers.webarena._sites.state import SiteState
    from agentgym_servers.webarena._templates.steps import Step

__all__ = ["WebArenaTask", "WebArenaWorld"]


@dataclass(frozen=True)
class WebArenaTask:
    """A task.

    Attributes:
        sites: The sites it needs.
        intent: The task of the agent, in words.
        start_urls: The addresses of the tabs at its start.
        check: ``eval`` of WebArena's task files, with addresses in place of the placeholders.
        state: The number of the initial state of our own sites.
        storage: A file with cookies and storage to begin with.
        template: The name of the template, or its number in a user's file.
        steps: The solution; none for a user's tasks.
    """

    sites: tuple[str, ...]
    intent: str
    start_urls: tuple[str, ...]
    check: Mapping[str, Any]
    state: int = 0
    storage: Path | None = None
    template: str = ""
    steps: tuple[Step, ...] = ()


class WebArenaWorld(Protocol):
    """The tasks of a server.

    Attributes:
        addresses: Where the sites are.
        settle_seconds: How long scripts may take to change a page after a reset or an action.
        check_seconds: How long they may take after a check has opened a page.
    """

    addresses: Addresses
    settle_seconds: float
    check_seconds: float

    def task(self, task_id: int) -> WebArenaTask:
        """Return a task.

        Raises:
            LookupError: There is no such task.
        """

    def fresh_state(self, task: WebArenaTask) -> SiteState | None:
        """Return the state of the sites at the start of a task; None if they are the user's."""
