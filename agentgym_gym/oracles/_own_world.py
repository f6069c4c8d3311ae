"""What an oracle asks before it plays by what it knows of this project's own server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentgym_gym.errors import BadOption

__all__ = ["seed_of"]

_WORLD = re.compile(r"agentgym-gym/\S+ \((?P<title>\w+), seed (?P<seed>\d+)\)")


def seed_of(info: Mapping[str, Any], title: str) -> int:
    """Return the seed of the world that a task is of.

    Args:
        info: The info of its reset.
        title: The title of the server, as it is written.

    Raises:
        BadOption: It is not played on this project's own server, or not in a world made from a seed.
    """
    said = str(info.get("served_by"))
    found = _WORLD.fullmatch(said)
    if found is None or found["title"] != title:
        raise BadOption(
            f"the oracle of {title} knows the tasks of this project's own server alone, made from a seed "
            f"(agentgym serve {title.lower()}); this one says of itself: {said}"
        )
    return int(found["seed"])
