"""The addresses of the sites, in the browser and as WebArena's agents read and write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["OWN_ADDRESSES", "REAL", "Addresses", "host_of"]

REAL = {
    "__REDDIT__": "http://reddit.com",
    "__SHOPPING_ADMIN__": "http://luma.com/admin",
    "__SHOPPING__": "http://onestopmarket.com",
    "__GITLAB__": "http://gitlab.com",
    "__WIKIPEDIA__": "http://wikipedia.org",
    "__MAP__": "http://openstreetmap.org",
    "__HOMEPAGE__": "http://homepage.com",
}
"""The addresses that an agent sees and writes, by the placeholders of WebArena's tasks."""


def host_of(site: str) -> str:
    """Return the host of one of our sites, such as ``shopping-admin.test``."""
    return f"{site.replace('_', '-')}.test"


@dataclass(frozen=True)
class Addresses:
    """Where the sites are.

    Attributes:
        local: The addresses in the browser by placeholder, without a slash at the end.
    """

    local: Mapping[str, str]

    def fill(self, text: str) -> str:
        """Return a text of a task with addresses in place of the placeholders."""
        for placeholder, local in self.local.items():
            text = text.replace(placeholder, local)
        return text

    def fill_all(self, value: Any) -> Any:
        """Return a JSON value with addresses in place of the placeholders in all its texts."""
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_all(each) for each in value]
        if isinstance(value, dict):
            return {key: self.fill_all(each) for key, each in value.items()}
        return value

    def shown(self, url: str) -> str:
        """Return an address as an agent sees it."""
        for placeholder, local in self.local.items():
            url = url.replace(local, REAL.get(placeholder, local))
        return url

    def opened(self, text: str) -> str:
        """Return what an agent wrote, with the addresses in the browser."""
        for placeholder, local in self.local.items():
            real = REAL.get(placeholder, local)
            for written in (real, real.replace("http://", "https://", 1)):
                text = text.replace(written, local)
        return text


OWN_ADDRESSES = Addresses(
    {
        placeholder: f"http://{host_of(placeholder.strip('_').lower())}"
        + ("/admin" if placeholder == "__SHOPPING_ADMIN__" else "")
        for placeholder in REAL
    }
)
"""The addresses of our own sites."""
