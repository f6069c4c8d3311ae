"""Games in the format of ALFWorld's folders, written from tasks of the local server.

A folder of a game has ``traj_data.json`` and ``game.tw-pddl``: a JSON object of a PDDL domain, a PDDL problem
and a grammar of TextWorld. Domain and grammar are our own, with the actions and conditions that ALFWorld
documents and the texts of the recorded games.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentgym_gym.envs.alfworld import ALFWORLD
from agentgym_servers.alfworld._game import HouseGame
from agentgym_servers.alfworld._goals import HouseGoal
from agentgym_servers.alfworld._house import House, State
from agentgym_servers.alfworld._measures import comparison
from agentgym_servers.alfworld._object_kinds import (
    LAMP,
    TOOLS,
    camel_case,
    in_order,
    kind_of,
    object_kind,
)
from agentgym_servers.alfworld._solution import searching
from agentgym_servers.alfworld._tasks import task_of

if TYPE_CHECKING:
    from agentgym_servers.alfworld._tasks import HouseTask

__all__ = ["RECORDED_GOALS", "comparison", "recorded_game", "search_with_one", "write_games"]

# The house of the recorded games, which were written by hand.
_RECEPTACLES = ("countertop 1", "desk 1", "drawer 1", "fridge 1", "microwave 1", "sinkbasin 1")
_PLACES = {"apple 1": "countertop 1", "book 1": "drawer 1", "desklamp 1": "desk 1", "mug 1": "countertop 1"}

RECORDED_GOALS = {
    "put a mug in desk": ("pick_and_place_simple", "mug", "desk"),
    "put a hot apple in countertop": ("pick_heat_then_place_in_recep", "apple", "countertop"),
    "look at book under the desklamp": ("look_at_obj_in_light", "book", "desklamp"),
    "put a clean mug in drawer": ("pick_clean_then_place_in_recep", "mug", "drawer"),
}
"""The goals of the recorded games: the type, the object and the receptacle or lamp of each."""


def recorded_game(text: str, fixed: Iterable[str] = (), **places: str) -> HouseGame:
    """Return a game in the recorded house, with further objects such as ``knife="desk 1"``.

    Args:
        text: Its goal.
        fixed: Receptacles that cannot be closed.
        places: The receptacles of further objects, by their kinds.
    """
    placed = dict(sorted({**_PLACES, **{f"{kind} 1": place for kind, place in places.items()}}.items()))
    house = House(tuple(sorted({*placed.values(), *_RECEPTACLES})), tuple(placed), frozenset(fixed))
    goal = HouseGoal(*RECORDED_GOALS[text], text)
    return HouseGame(replace(task_of(0, 0), house=house, start=State(tuple(placed.values())), goal=goal))


def search_with_one(task_id: int, name: str, place: str) -> list[str]:
    """Return what the oracle does in a task with one object of a kind, such as ``potato 1``, at a place."""
    task = task_of(0, task_id)
    placed = {
        each: where
        for each, where in zip(task.house.objects, task.start.places, strict=True)
        if kind_of(each) != kind_of(name)
    }
    objects = in_order({**placed, name: place})
    house = replace(task.house, objects=objects)
    moved = replace(
        task, house=house, start=State(tuple(place if each == name else placed[each] for each in objects))
    )
    return [text for text, _ in searching(moved, ALFWORLD.max_turns)]


_TREATMENTS = {"clean": "cleanable", "heat": "heatable", "cool": "coolable", "slice": "sliceable"}

_HERE = "(atLocation ?a ?l) (receptacleAtLocation ?r ?l)"
_OPEN = "(or (not (openable ?r)) (opened ?r))"

_ACTIONS = {
    "look": ("?l - location", "(atLocation ?a ?l)", "(checked ?l)"),
    "inventory": ("", "", "(checked ?a)"),
    "help": ("", "", "(checked ?a)"),
    "examineReceptacle": ("?l - location ?r - receptacle", _HERE, "(checked ?r)"),
    "examineObject": ("?o - object", "(holds ?a ?o)", "(checked ?o)"),
    "GotoLocation": (
        "?lStart - location ?lEnd - location ?r - receptacle",
        "(atLocation ?a ?lStart) (receptacleAtLocation ?r ?lEnd) (not (atLocation ?a ?lEnd))",
        "(not (atLocation ?a ?lStart)) (atLocation ?a ?lEnd)",
    ),
    "OpenObject": (
        "?l - location ?r - receptacle",
        f"{_HERE} (openable ?r) (not (opened ?r))",
        "(opened ?r)",
    ),
    "CloseObject": (
        "?l - location ?r - receptacle",
        f"{_HERE} (openable ?r) (opened ?r)",
        "(not (opened ?r))",
    ),
    "PickupObject": (
        "?l - location ?o - object ?r - receptacle",
        f"{_HERE} (pickupable ?o) (inReceptacle ?o ?r) (not (holdsAny ?a)) {_OPEN}",
        "(not (inReceptacle ?o ?r)) (holds ?a ?o) (holdsAny ?a)",
    ),
    "PutObject": (
        "?l - location ?o - object ?r - receptacle ?ot - otype ?rt - rtype",
        f"{_HERE} (holds ?a ?o) {_OPEN} (objectType ?o ?ot) (receptacleType ?r ?rt) (canContain ?rt ?ot)",
        "(inReceptacle ?o ?r) (not (holds ?a ?o)) (not (holdsAny ?a))",
    ),
    "ToggleObject": (
        "?l - location ?o - object ?r - receptacle",
        f"{_HERE} (toggleable ?o) (inReceptacle ?o ?r)",
        "(isToggled ?o)",
    ),
    "CleanObject": (
        "?l - location ?r - receptacle ?o - object",
        f"{_HERE} (cleanable ?o) (receptacleType ?r sinkbasinType) (holds ?a ?o)",
        "(isClean ?o)",
    ),
    "HeatObject": (
        "?l - location ?r - receptacle ?o - object",
        f"{_HERE} (heatable ?o) (receptacleType ?r microwaveType) (holds ?a ?o)",
        "(isHot ?o) (not (isCool ?o))",
    ),
    "CoolObject": (
        "?l - location ?r - receptacle ?o - object",
        f"{_HERE} (coolable ?o) (receptacleType ?r fridgeType) (holds ?a ?o)",
        "(isCool ?o) (not (isHot ?o))",
    ),
    "SliceObject": (
        "?l - location ?r - receptacle ?co - object ?ko - object",
        f"{_HERE} {_OPEN} (sliceable ?co) (inReceptacle ?co ?r) (holds ?a ?ko) (isKnife ?ko)",
        "(isSliced ?co)",
    ),
}

_PREDICATES = """
(atLocation ?a - agent ?l - location) (receptacleAtLocation ?r - receptacle ?l - location)
(openable ?r - receptacle) (opened ?r - receptacle) (inReceptacle ?o - object ?r - receptacle)
(receptacleType ?r - receptacle ?t - rtype) (objectType ?o - object ?t - otype)
(canContain ?rt - rtype ?ot - otype) (holds ?a - agent ?o - object) (holdsAny ?a - agent)
(pickupable ?o - object) (toggleable ?o - object) (isToggled ?o - object) (isKnife ?o - object)
(cleanable ?o - object) (isClean ?o - object) (heatable ?o - object) (isHot ?o - object)
(coolable ?o - object) (isCool ?o - object) (sliceable ?o - object) (isSliced ?o - object)
(checked ?x)
"""

# The command of each action, and its feedback.
_TEXTS = {
    "look": ("look", "#look.feedback#"),
    "inventory": ("inventory", "#inventory.feedback#"),
    "help": ("help", "Available commands: look, inventory, go to, open, close, take, put, examine, use."),
    "examineReceptacle": ("examine {r}", "#contents#"),
    "examineObject": ("examine {o}", "#condition#"),
    "GotoLocation": (
        "go to [{r.name | receptacleatlocation(r:receptacle, lend:location)}]",
        "You arrive at {r.name}. #contents#",
    ),
    "OpenObject": ("open {r}", "You open the {r.name}. #contents#"),
    "CloseObject": ("close {r}", "You close the {r.name}."),
    "PickupObject": ("take {o} from {r}", "You pick up the {o.name} from the {r.name}."),
    "PutObject": ("put {o} in/on {r}", "You put the {o.name} in/on the {r.name}."),
    "ToggleObject": ("use {o}", "You turn on the {o.name}."),
    "CleanObject": ("clean {o} with {r}", "You clean the {o.name} using the {r.name}."),
    "HeatObject": ("heat {o} with {r}", "You heat the {o.name} using the {r.name}."),
    "CoolObject": ("cool {o} with {r}", "You cool the {o.name} using the {r.name}."),
    "SliceObject": ("slice {co} with {ko}", "You sliced the {co.name} with the {ko.name}."),
}

_INSIDE = "[{o.indefinite + ' ' + o.name | inreceptacle(o:object, r:receptacle)}]"
_AT = "atlocation(a:agent, l:location) & receptacleatlocation(r:receptacle, l:location)"
_CONDITIONS = {
    "isclean(o:object) & ishot(o:object)": "This is a hot and clean {o.name}.",
    "isclean(o:object) & iscool(o:object)": "This is a cool and clean {o.name}.",
    "ishot(o:object)": "This is a hot {o.name}.",
    "isclean(o:object)": "This is a clean {o.name}.",
    "iscool(o:object)": "This is a cold {o.name}.",
    "": "There's nothing special about {o.name}.",
}


def _rules(task_text: str) -> dict[str, list[dict[str, str]]]:
    """Return the rules of the grammar that are shared by actions."""
    room = "You are in the middle of a room. Looking quickly around you, you see "
    seen = "[{r.indefinite + ' ' + r.name | receptacleatlocation(r:receptacle, l:location)}]"
    rules: dict[str, dict[str, str]] = {
        "intro": {"": f"-= Welcome =-\n\n{room}#receptacles#.\n\nYour task is to: {task_text}."},
        "receptacles": {"": seen},
        "look.feedback": {
            _AT: "You are facing the [{r.name | " + _AT + "}]. Next to it, you see nothing.",
            "": f"{room}nothing.",
        },
        "inventory.feedback": {
            "holdsany(a:agent)": "You are carrying: "
            "[{o.indefinite + ' ' + o.name | holds(a:agent, o:object)}].",
            "": "You are not carrying anything.",
        },
        "contents": {
            "openable(r:receptacle) & opened(r:receptacle)": "The {r.name} is open. In it, you see "
            + _INSIDE
            + ".",
            "openable(r:receptacle)": "The {r.name} is closed.",
            "": "On the {r.name}, you see " + _INSIDE + ".",
        },
        "condition": _CONDITIONS,
        "list_empty": {"": "nothing"},
        "list_separator": {"": ", "},
        "list_last_separator": {"": ", and "},
    }
    return {
        name: [{"condition": condition, "rhs": text} for condition, text in each.items()]
        for name, each in rules.items()
    }


def _grammar(task_text: str) -> str:
    shared = f'grammar :: """\n{json.dumps(_rules(task_text))}\n""";\n'
    parts = [shared]
    for name, (template, feedback) in _TEXTS.items():
        rule = json.dumps({f"{name}.text": [{"rhs": feedback}]})
        parts.append(
            f'action {name} {{\n    template :: "{template}";\n    feedback :: "#{name}.text#";\n'
            f'    grammar :: """\n{rule}\n""";\n}}\n'
        )
    return "\n".join(parts)


def _domain() -> str:
    actions = "".join(
        f"(:action {name} :parameters (?a - agent {parameters})\n"
        f" :precondition (and {condition})\n :effect (and {effect}))\n"
        for name, (parameters, condition, effect) in _ACTIONS.items()
    )
    types = "agent location receptacle object rtype otype"
    return (
        f"(define (domain household)\n(:requirements :adl :typing)\n(:types {types})\n"
        f"(:predicates {_PREDICATES})\n{actions})\n"
    )


def _id(name: str) -> str:
    """Return the identifier of a thing, in the form of ALFWorld's.

    Numbers are given in the reverse order of the identifiers, as ALFWorld's own wrapper does.
    """
    kind, _, number = name.rpartition(" ")
    return f"{kind.removesuffix('basin')}_bar_{100 - int(number):03}" + "_basin" * kind.endswith("basin")


def _problem(task: HouseTask) -> str:
    receptacles, objects = task.house.receptacles, task.house.objects
    kinds = sorted({kind_of(name) for name in objects})
    places = sorted({kind_of(name) for name in receptacles})
    facts = ["(atLocation agent1 loc_start)"]
    for name in receptacles:
        facts.append(f"(receptacleAtLocation {_id(name)} loc_{_id(name)})")
        facts.append(f"(receptacleType {_id(name)} {_type(kind_of(name))})")
        facts += [f"(openable {_id(name)})"] * (name in task.house.openable)
    for name, place in zip(objects, task.start.places, strict=True):
        facts.append(f"(inReceptacle {_id(name)} {_id(place)})")
        facts += [f"(toggleable {_id(name)})"] * (kind_of(name) == LAMP)
        facts += [f"(pickupable {_id(name)})"] * object_kind(kind_of(name)).portable
        facts += [f"(isKnife {_id(name)})"] * (kind_of(name) in ("knife", "butterknife"))
        facts += [
            f"({_TREATMENTS[each]} {_id(name)})" for each in sorted(object_kind(kind_of(name)).treatments)
        ]
    numbered = [f"{kind} {n + 1}" for kind, count in _counts(objects).items() for n in range(count)]
    facts += [f"(objectType {_id(name)} {_type(kind_of(name))})" for name in numbered]
    for kind in kinds:
        facts += [
            f"(canContain {_type(each)} {_type(kind)})"
            for each in places
            if each in object_kind(kind).holders
        ]
    named = {
        "agent": ["agent1"],
        "location": ["loc_start", *(f"loc_{_id(name)}" for name in receptacles)],
        "receptacle": [_id(name) for name in receptacles],
        "object": [_id(name) for name in numbered],
        "rtype": [_type(kind) for kind in sorted({*places, *TOOLS.values()})],
        "otype": [_type(kind) for kind in kinds],
    }
    listed = "\n".join(f"{' '.join(names)} - {kind}" for kind, names in named.items())
    return (
        f"(define (problem game)\n(:domain household)\n(:objects {listed})\n"
        f"(:init {' '.join(facts)})\n(:goal {_goal(task.goal)}))\n"
    )


def _counts(objects: Iterable[str]) -> dict[str, int]:
    """Return the highest number of each kind; objects in no receptacle have the other numbers up to it."""
    counts: dict[str, int] = {}
    for name in objects:
        counts[kind_of(name)] = max(counts.get(kind_of(name), 0), int(name.rpartition(" ")[2]))
    return counts


def _type(kind: str) -> str:
    return f"{kind}Type"


def _goal(goal: HouseGoal) -> str:
    kind, place = _type(goal.object), _type(goal.receptacle)
    if goal.is_look:
        return (
            f"(exists (?a - agent ?o - object ?r - receptacle ?l - location ?lamp - object) (and {_HERE} "
            f"(inReceptacle ?lamp ?r) (isToggled ?lamp) (holds ?a ?o) (objectType ?o {kind})))"
        )
    marks = {"clean": "(isClean ?o)", "hot": "(isHot ?o)", "cool": "(isCool ?o)"}
    one = f"(objectType ?o {kind}) (inReceptacle ?o ?r) {marks.get(goal.mark, '')}"
    if goal.count == 1:
        return f"(exists (?o - object ?r - receptacle) (and (receptacleType ?r {place}) {one}))"
    other = f"(objectType ?p {kind}) (inReceptacle ?p ?r) (not (= ?o ?p))"
    return (
        f"(exists (?o - object ?p - object ?r - receptacle) (and (receptacleType ?r {place}) {one} {other}))"
    )


def write_game(folder: Path, task: HouseTask) -> Path:
    """Write the game of a task into a folder below one, which is named as ALFWorld names it; return it."""
    game = folder / task.name
    game.mkdir(parents=True)
    data = {
        "pddl_domain": _domain(),
        "grammar": _grammar(task.goal.text),
        "pddl_problem": _problem(task),
        "solvable": True,
    }
    (game / "game.tw-pddl").write_text(json.dumps(data), "utf-8")
    parameters = {
        "object_target": camel_case(task.goal.object),
        "parent_target": "" if task.goal.is_look else camel_case(task.goal.receptacle),
        "toggle_target": camel_case(task.goal.receptacle) if task.goal.is_look else "",
        "mrecep_target": "",
        "object_sliced": False,
    }
    description = {"task_type": task.goal.type, "pddl_params": parameters}
    (game / "traj_data.json").write_text(json.dumps(description), "utf-8")
    return game


def write_games(folder: Path, task_ids: Iterable[int], seed: int = 0) -> dict[int, int]:
    """Write the games of tasks as ALFWorld's split ``valid_unseen``; return their ids there by task id."""
    tasks = [task_of(seed, task_id) for task_id in task_ids]
    for task in tasks:
        write_game(folder / "json_2.1.1" / "valid_unseen", task)
    in_order = sorted(tasks, key=lambda task: task.name)
    return {
        task.id: official for task, official in zip(in_order, ALFWORLD.split("valid_unseen"), strict=False)
    }
