"""ALFWorld's own games: which folders have them, and the ids under which they are played."""

from __future__ import annotations

from pathlib import Path

from agentgym_gym.envs.alfworld import ALFWORLD
from agentgym_gym.errors import BadOption

__all__ = ["GAME_FILE", "games_of"]

GAME_FILE = "game.tw-pddl"
"""The name of the file of a game."""

_DATA = "json_2.1.1"
_SPLITS = ("train", "valid_seen", "valid_unseen")
_UNPLAYABLE = ("movable", "Sliced")  # ALFWorld leaves out the games whose folders are named so


def games_of(folder: Path) -> dict[int, Path]:
    """Return the files of ALFWorld's games by task id.

    The ids of ``train``, ``test_seen`` and ``test_unseen`` play the first games of ALFWorld's folders
    ``train``, ``valid_seen`` and ``valid_unseen``. Each of these folders also has ids for all of its games.
    The order is that of the paths.

    Args:
        folder: ALFWorld's folder of data, or its folder ``json_2.1.1``.

    Raises:
        BadOption: The folder has no games.
    """
    root = folder / _DATA if (folder / _DATA).is_dir() else folder
    files = {split: _files(root / split) for split in _SPLITS}
    if not any(files.values()):
        where = ", ".join(str(root / split) for split in _SPLITS)
        raise BadOption(f"there is no {GAME_FILE} below any of {where}; give ALFWorld's folder of data")
    games: dict[int, Path] = {}
    for split, selections in {
        "train": ("train", "official_train"),
        "valid_seen": ("test_seen", "valid_seen"),
        "valid_unseen": ("test_unseen", "valid_unseen"),
    }.items():
        for selection in selections:
            games.update(zip(ALFWORLD.split(selection), files[split], strict=False))
    return games


def _files(folder: Path) -> list[Path]:
    return [
        file
        for file in sorted(folder.rglob(GAME_FILE))
        if not any(word in part for part in file.parent.parts for word in _UNPLAYABLE)
        and '"solvable": false' not in file.read_text("utf-8")
    ]
