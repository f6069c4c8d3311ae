"""Write the numbers of ALFWorld's houses into ``agentgym_servers/alfworld/data``.

The server's houses are drawn from these files. They contain counts and names only::

    python tools/alfworld_facts.py --alfworld ../alfworld --agentgym ../AgentGym --games $ALFWORLD_DATA

``kinds.json`` has ALFRED's rules: the treatments of each kind of object, and the kinds of receptacles that
may contain it. ``rooms.json`` has the receptacles and the kinds of objects of each room. ``places.json`` has,
from games in training rooms, how many objects of a kind a game has and where they lie. ``tasks.json`` has the
tasks of AgentGym's training list. ``games.json`` has measures of the games in training rooms, with which the
documentation compares the generated houses.

The counted games are in `SPLITS`. A room without one gets its receptacles from ALFRED's layout files, which
lack receptacles that cannot be opened.
"""

from __future__ import annotations

import argparse
import json
import re
import runpy
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_servers.alfworld._goals import HouseGoal
from agentgym_servers.alfworld._house import House, State
from agentgym_servers.alfworld._measures import measures
from agentgym_servers.alfworld._object_kinds import OPENABLE, in_order
from agentgym_servers.alfworld._rooms import KINDS, UNSEEN
from agentgym_servers.alfworld._rooms import rooms as rooms_by_number
from agentgym_servers.alfworld._tasks import HouseTask

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "agentgym_servers" / "alfworld" / "data"
TREATMENTS = {"Heatable": "heat", "Coolable": "cool", "Cleanable": "clean", "Sliceable": "slice"}
SPLITS = ("valid_seen", "valid_train", "valid_unseen")
SCALE, ROUNDS = 1000, 50


@dataclass(frozen=True)
class Game:
    """The start of one game.

    Attributes:
        room: The number of its room.
        type: The type of its task.
        target: The kind of object of its task.
        goal: The kind of receptacle, or lamp, of its task.
        receptacles: The kind of each receptacle by its identifier.
        openable: The receptacles that can be opened.
        objects: The kind of each object by its identifier.
        places: The receptacle of each object that is in one.
        portable: The objects that can be taken.
    """

    room: int
    type: str
    target: str
    goal: str
    receptacles: Mapping[str, str]
    openable: frozenset[str]
    objects: Mapping[str, str]
    places: Mapping[str, str]
    portable: frozenset[str]

    @property
    def fixed(self) -> frozenset[str]:
        """The names of receptacles that cannot be closed, although others of their kind can."""
        names = named(self.receptacles)
        return frozenset(
            names[each]
            for each, kind in self.receptacles.items()
            if kind in OPENABLE and each not in self.openable
        )

    def task(self) -> HouseTask:
        """Return the game as a task of the generated world."""
        names, receptacles = named(self.objects), named(self.receptacles)
        places = {names[each]: receptacles[place] for each, place in self.places.items()}
        objects = in_order(places)
        house = House(in_order(receptacles.values()), objects, self.fixed)
        start = State(tuple(places[name] for name in objects))
        goal = HouseGoal(self.type, self.target, self.goal, "")
        return HouseTask(0, rooms_by_number()[self.room], goal, house, start, "")


def kind_of_room(number: int) -> str:
    """Return the kind of a room, such as ``kitchen``."""
    return next(kind for kind, numbers in KINDS.items() if number in numbers)


def game_of(file: Path) -> Game:
    """Read the start of a game."""
    problem = json.loads(file.read_text("utf-8"))["pddl_problem"]
    start = problem[problem.index("(:init") : problem.index("(:goal")]
    facts: dict[str, list[list[str]]] = defaultdict(list)
    for fact in re.findall(r"\((\w+ [^()]*)\)", start):
        name, *arguments = fact.split()
        facts[name].append(arguments)
    receptacles = {name: kind.removesuffix("Type").lower() for name, kind in facts["receptacleType"]}
    type_of_task, target, _, goal, room = file.parent.parent.name.split("-")
    return Game(
        int(room),
        type_of_task,
        target.lower(),
        goal.lower(),
        receptacles,
        frozenset(name for (name,) in facts["openable"]),
        {name: kind.removesuffix("Type").lower() for name, kind in facts["objectType"]},
        {name: place for name, place in facts["inReceptacle"] if place in receptacles},
        frozenset(name for (name,) in facts["pickupable"]),
    )


def games_below(folder: Path) -> list[Game]:
    """Read the games of `SPLITS` that ALFWorld plays, from its folder of data."""
    return [
        game_of(file)
        for split in SPLITS
        for file in sorted((folder / "json_2.1.1" / split).rglob("game.tw-pddl"))
        if not any(word in file.parent.parent.name for word in ("movable", "Sliced"))
    ]


def named(identifiers: Mapping[str, str]) -> dict[str, str]:
    """Return the names of identifiers: in ALFWorld, the numbers descend in the order of the identifiers."""
    left = Counter(identifiers.values())
    names = {}
    for identifier, kind in sorted(identifiers.items(), key=lambda pair: pair[0].lower()):
        names[identifier] = f"{kind} {left[kind]}"
        left[kind] -= 1
    return names


def rooms(layouts: Path, games: Iterable[Game], kinds: Mapping[str, set[str]]) -> dict[str, Any]:
    """Return the receptacles of each room, the ones among them without a door, and its kinds of objects."""
    of_room = {game.room: game for game in games}
    found = {}
    for kind, numbers in KINDS.items():
        for number in numbers:
            listed = {
                name.lower() for name in json.loads((layouts / f"FloorPlan{number}-objects.json").read_text())
            }
            game = of_room.get(number)
            layout = layouts / f"FloorPlan{number}-openable.json"
            counts = Counter(game.receptacles.values()) if game else layout_counts(layout, listed)
            fixed = game.fixed if game else ()
            found[str(number)] = {
                "receptacles": dict(sorted(counts.items())),
                "fixed": sorted(fixed, key=lambda name: (name.split()[0], int(name.split()[1]))),
                "objects": sorted(listed & kinds[kind]),
            }
    return found


def layout_counts(file: Path, listed: set[str]) -> Counter[str]:
    """Return the receptacles of a room by its layout files."""
    kinds = [name.split("|")[0].lower() for name in json.loads(file.read_text())]
    counts = Counter({"sink": "sinkbasin", "bathtub": "bathtubbasin"}.get(kind, kind) for kind in kinds)
    once = {"coffeemachine", "toaster", "garbagecan", "toilet", "toiletpaperhanger", "laundryhamper"}
    once |= {"countertop", "shelf", "drawer", "cabinet", "bathtubbasin", "handtowelholder", "towelholder"}
    for kind in (once & listed) - counts.keys():
        counts[kind] = 1
    if "stoveburner" in listed:
        counts["stoveburner"] = 4
    return counts


def places(games: Iterable[Game]) -> dict[str, Any]:
    """Return, by kind of room and of object, the numbers of objects in a game and where they lie."""
    of_room: dict[str, list[Game]] = {kind: [] for kind in KINDS}
    for game in games:
        of_room[kind_of_room(game.room)].append(game)
    return {
        kind: {name: its for name in names_in(those) if (its := place_of(name, those))["weights"]}
        for kind, those in of_room.items()
    }


def names_in(games: Iterable[Game]) -> list[str]:
    """Return the kinds of objects of some games."""
    return sorted({kind for game in games for kind in game.objects.values()})


def place_of(kind: str, games: Sequence[Game]) -> dict[str, Any]:
    """Return the numbers of objects of a kind in a game, the percentage hidden, and the weights of places."""
    copies: Counter[int] = Counter()
    chosen: Counter[str] = Counter()
    rooms_seen: Counter[tuple[tuple[str, int], ...]] = Counter()
    hidden = 0
    for game in games:
        its = [name for name, of in game.objects.items() if of == kind]
        if not its:
            continue
        copies[len(its)] += kind != game.target  # a task needs more of its own kind
        room = tuple(sorted(Counter(game.receptacles.values()).items()))
        for name in its:
            place = game.places.get(name)
            if place is None:
                hidden += 1
            else:
                chosen[game.receptacles[place]] += 1
                rooms_seen[room] += 1
    total = hidden + sum(chosen.values())
    return {
        "copies": [copies[number] for number in range(1, max(copies) + 1)] if any(copies.values()) else [1],
        "hidden": round(100 * hidden / total),
        "weights": weights(chosen, rooms_seen),
    }


def weights(
    chosen: Mapping[str, int], rooms_seen: Mapping[tuple[tuple[str, int], ...], int]
) -> dict[str, int]:
    """Fit the weight of one receptacle of each kind, from which a place is drawn in proportion.

    Args:
        chosen: How many objects lie in receptacles of each kind.
        rooms_seen: The number of these objects in rooms with these receptacles.

    Returns:
        The maximum-likelihood weights, the largest `SCALE`.
    """
    fitted = dict.fromkeys(chosen, 1.0)
    for _ in range(ROUNDS):
        exposure = dict.fromkeys(chosen, 0.0)
        for room, objects in rooms_seen.items():
            counts = {kind: count for kind, count in room if kind in chosen}
            total = sum(count * fitted[kind] for kind, count in counts.items())
            for kind, count in counts.items():
                exposure[kind] += objects * count / total
        fitted = {kind: chosen[kind] / exposure[kind] for kind in chosen}
    most = max(fitted.values(), default=1.0)
    return {kind: max(1, round(SCALE * weight / most)) for kind, weight in sorted(fitted.items())}


def kinds(constants: Mapping[str, Any], games: Sequence[Game]) -> dict[str, Any]:
    """Return ALFRED's rules for each kind of object and receptacle.

    ALFRED has no holders for things that are never taken, such as lamps: they are the ones in the games.
    """
    portable = {game.objects[name] for game in games for name in game.portable}
    seen = {
        (game.objects[name], game.receptacles[place]) for game in games for name, place in game.places.items()
    }
    rules = constants["VAL_RECEPTACLE_OBJECTS"]
    movable = constants["MOVABLE_RECEPTACLES_SET"]
    found = {}
    for name in constants["OBJECTS"]:
        kind = name.lower()
        holders = {holder.lower() for holder, its in rules.items() if name in its and holder not in movable}
        if kind not in portable:
            holders |= {place for each, place in seen if each == kind}
        treatments = [
            word for key, word in TREATMENTS.items() if name in constants["VAL_ACTION_OBJECTS"][key]
        ]
        found[name] = {
            "treatments": treatments,
            "portable": kind in portable,
            "holders": sorted(holders),
        }
    return found


def tasks(file: Path) -> dict[str, Any]:
    """Return the number of training tasks by type, object and receptacle."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for entry in json.loads(file.read_text("utf-8")):
        kind, name, _, place, _ = entry["task_type"].split("-")
        its = found.setdefault(kind, {}).setdefault(name.lower(), {})
        its[place.lower()] = its.get(place.lower(), 0) + 1
    return found


def write(name: str, rows: Mapping[str, Any]) -> None:
    """Write a file with a line for each entry of the first two levels."""
    lines = []
    for key, value in rows.items():
        if name in {"places.json", "tasks.json"}:
            inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(value.items()))
            lines.append(f"{json.dumps(key)}: {{\n{inner}\n}}")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    (DATA / name).write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--alfworld", type=Path, required=True, help="a checkout of ALFWorld")
    parser.add_argument("--agentgym", type=Path, required=True, help="a checkout of AgentGym")
    parser.add_argument("--games", type=Path, required=True, help="ALFWorld's folder of data")
    options = parser.parse_args()
    code = options.alfworld / "alfworld" / "gen"
    games = games_below(options.games)
    seen = [game for game in games if game.room not in UNSEEN]
    where = places(seen)
    DATA.mkdir(exist_ok=True)
    write("kinds.json", kinds(runpy.run_path(str(code / "constants.py")), games))
    write("places.json", where)
    write("rooms.json", rooms(code / "layouts", games, {kind: set(its) for kind, its in where.items()}))
    write(
        "tasks.json",
        tasks(options.agentgym / "agentenv-alfworld" / "configs" / "mappings_train.json"),
    )
    real = measures([game.task() for game in seen])
    write("games.json", {name: round(value, 3) for name, value in real.items()})
    print(f"{len(games)} games in {len({game.room for game in games})} rooms; {len(seen)} in training rooms")


if __name__ == "__main__":
    main()
