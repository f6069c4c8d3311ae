"""Names of objects and receptacles in ALFWorld."""

from __future__ import annotations

from agentgym_gym.arguments import Name

__all__ = ["HouseholdName", "household_name"]

_ARTICLES = ("a", "an", "the")
_JOINING = ("and", "from", "in", "into", "on", "onto", "then", "to", "with")


class HouseholdName(Name):
    """The name of an object or receptacle, optionally after an article, which is dropped."""

    def read(self, text: str) -> str:
        """Parse a name with or without an article."""
        article, _, rest = text.strip().partition(" ")
        return super().read(rest if article.lower() in _ARTICLES else text)


def household_name(*samples: str) -> HouseholdName:
    """Return the argument for a name.

    Args:
        samples: Examples of names.
    """
    # A number ends a name, and names in the game are short: "use of the lamp is next" is not an action.
    words = r"[a-z]+(?: [a-z]+)?(?: [0-9]{1,3})?"
    return HouseholdName(samples, reserved=[*_ARTICLES, *_JOINING], words=words)
