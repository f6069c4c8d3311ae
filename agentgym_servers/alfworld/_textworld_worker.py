"""The process that plays ALFWorld's own games by TextWorld, which is not thread-safe.

It reads requests from standard input and writes responses, each as a line of JSON, and exits at the end of
its input.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from typing import Any, BinaryIO

__all__ = ["Player", "main"]


class Player:
    """Plays games, each under a number."""

    def __init__(self) -> None:
        self._games: dict[int, Any] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start a game or play an action; return the observation, the commands, and whether it is won."""
        for number in request["drop"]:
            self._games.pop(number, None)
        number = request["game"]
        try:
            if "path" in request:
                self._games[number] = _loaded(request["path"])
                state = self._games[number].reset()
            else:
                state, _, _ = self._games[number].step(request["action"])
        except Exception as error:  # noqa: BLE001 - any failure of TextWorld is the response
            return {"error": f"{type(error).__name__}: {error}"}
        return {
            "observation": state.feedback,
            "available_actions": state["admissible_commands"],
            "won": state.get("won"),  # none if TextWorld does not evaluate the goal
        }


def _loaded(path: str) -> Any:
    import textworld  # noqa: PLC0415 - it takes a second
    from textworld.envs import PddlEnv  # noqa: PLC0415

    env = PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True, feedback=True))
    env.load(path)
    _name(env._entity_infos)  # noqa: SLF001 - as ALFWorld's own wrapper does
    return env


def _name(entities: dict[str, Any]) -> None:
    """Name each thing by its kind and a number.

    As in ALFWorld, the numbers of a kind descend in the order of the identifiers, such as
    ``sink_bar__minus_01_dot_20_bar_sinkbasin``.
    """
    kinds = {
        identifier: identifier.partition("_bar_")[0] + ("basin" if "basin" in identifier else "")
        for identifier in sorted(entities)
        if "_bar_" in identifier
    }
    counts = Counter(kinds.values())
    for identifier, kind in kinds.items():
        entities[identifier].name = f"{kind} {counts[kind]}"
        counts[kind] -= 1


def main() -> None:
    """Handle requests until the input ends."""
    responses = _private_output()
    player = Player()
    for line in sys.stdin.buffer:
        response = json.dumps(player.answer(json.loads(line))).encode("ascii")
        responses.write(response + b"\n")
        responses.flush()


def _private_output() -> BinaryIO:
    """Return the standard output, and discard all that others print there."""
    output = os.fdopen(os.dup(1), "wb")
    discarded = os.open(os.devnull, os.O_WRONLY)
    os.dup2(discarded, 1)
    os.close(discarded)
    return output


if __name__ == "__main__":
    main()
