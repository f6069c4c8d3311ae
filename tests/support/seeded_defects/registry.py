"""All seeded defects, and the registrations of the sound environments and of the defective ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium

from seeded_defects import craft_game, key_rooms, number_game, price_shop, task_defects, word_game
from seeded_defects.server_defects import TextCraftSolver

__all__ = ["ALL", "SOUND", "SeededDefect", "SoundEnv"]


@dataclass(frozen=True)
class SoundEnv:
    """An environment without a known defect.

    Attributes:
        env_id: Its gymnasium id.
        solver: The class of the agent that wins every task.
        max_episode_steps: The turn limit of its registration.
        entry_point: The class, or the function for a server.
        kwargs: The arguments of the entry point.
    """

    env_id: str
    solver: type[Any]
    max_episode_steps: int | None
    entry_point: str
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class SeededDefect:
    """An environment with one defect.

    Attributes:
        name: The name of the defect.
        env_id: Its gymnasium id.
        sound_id: The gymnasium id of the mended environment.
        what: The explanation for the author of the environment.
        properties: The names of the properties in docs/plans/49.md that describe the defect.
        before: Whether the defect is one of the twenty that are used before the audit is finished.
        solver: The class of the agent that plays the known solutions.
    """

    name: str
    env_id: str
    sound_id: str
    what: str
    properties: frozenset[str]
    before: bool
    solver: type[Any] | None


_SERVER = "seeded_defects.server_defects:make_env"

SOUND = {
    name: SoundEnv(f"sound/{name}-v0", solver, limit, entry_point, kwargs)
    for name, solver, limit, entry_point, kwargs in (
        ("NumberGame", number_game.Solver, 15, "seeded_defects.number_game:NumberGame", {}),
        ("AwaitedNumberGame", number_game.Solver, 15, "seeded_defects.number_game:AwaitedNumberGame", {}),
        ("KeyRooms", key_rooms.Solver, None, "seeded_defects.key_rooms:KeyRooms", {}),
        ("PriceShop", price_shop.Solver, 8, "seeded_defects.price_shop:PriceShop", {}),
        ("WordGame", word_game.Solver, None, "seeded_defects.word_game:WordGame", {}),
        ("CraftGame", craft_game.Solver, 12, "seeded_defects.craft_game:CraftGame", {}),
        ("TextCraft", TextCraftSolver, None, _SERVER, {"patch": "PatchedServer"}),
    )
}
"""The sound environments by name."""

_PLAY, _RESOURCE = "seeded_defects.play_defects", "seeded_defects.resource_defects"
_SCORE, _TASK = "seeded_defects.score_defects", "seeded_defects.task_defects"

_FIRST_TWENTY = {
    *("GlobalRandomHints", "CoarseCache", "CarriedReward", "ScratchBuffer", "DeliveryDay"),
    *("MutatedInventory", "DescriptorLeak", "CloseTwice", "BlockingSleep", "OneTurnMore"),
    *("UnpaidLastTurn", "NanScore", "ForeignGoal", "ForgedReward", "RefusedAdmissible"),
    *("Unwinnable", "CommonAnswer", "WonByEcho", "SplitOverlap", "AsciiLog"),
}

_SOLVERS = {"CommonAnswer": task_defects.CommonAnswerSolver}

# Class, sound environment, module, properties and explanation.
_ROWS = (
    (
        *("GlobalRandomHints", "WordGame", _PLAY, "replay global-state"),
        "Hints are drawn from Python's global random generator, so the same task gives other hints.",
    ),
    (
        *("ReseedsGlobal", "KeyRooms", _PLAY, "global-state copies threads"),
        "Each reset seeds Python's global random generator, from which all copies draw their observations.",
    ),
    (
        *("CoarseCache", "PriceShop", _PLAY, "replay reuse processes"),
        (
            "The catalogue of a task is cached by the kind of product, so a later task of that kind gets the "
            "catalogue of an earlier one."
        ),
    ),
    (
        *("CarriedReward", "CraftGame", _PLAY, "reuse"),
        "Reset does not clear the score, so the first step of the next episode pays it again.",
    ),
    (
        *("ScratchBuffer", "KeyRooms", _PLAY, "threads"),
        "The parser splits actions in a list that all instances share, so two threads mix up their actions.",
    ),
    (
        *("WallClock", "PriceShop", _PLAY, "replay processes"),
        "Each observation of a tool begins with the time of day.",
    ),
    (
        *("DeliveryDay", "PriceShop", _PLAY, "processes"),
        "The observation of a product names a weekday that depends on the date of the run.",
    ),
    (
        *("MutatedInventory", "CraftGame", _PLAY, "snapshots"),
        'info["inventory"] is the list of the game itself, which later turns change.',
    ),
    (
        *("ChangesDirectory", "CraftGame", _PLAY, "global-state"),
        "Reset changes the working directory of the process.",
    ),
    (
        *("MemoryLeak", "NumberGame", _RESOURCE, "leaks"),
        "Each reset adds a table of 1,000 texts to a list of the module, which is never emptied.",
    ),
    (
        *("DescriptorLeak", "KeyRooms", _RESOURCE, "leaks"),
        "Each reset opens a log file, and none is closed.",
    ),
    (
        *("ChildLeft", "WordGame", _RESOURCE, "instances"),
        "The helper process of an environment still runs after close.",
    ),
    (
        *("CloseTwice", "NumberGame", _RESOURCE, "close"),
        "The second close raises AttributeError.",
    ),
    (
        *("BlockingSleep", "AwaitedNumberGame", _RESOURCE, "blocking"),
        "The coroutine function step calls time.sleep, which stops all other episodes of the event loop.",
    ),
    (
        *("OneTurnMore", "WordGame", _SCORE, "turn-limit"),
        "An episode is truncated after 11 turns, but the environment declares 10.",
    ),
    (
        *("Endless", "KeyRooms", _SCORE, "turn-limit"),
        "An episode is never truncated, but the environment declares 12 turns.",
    ),
    (
        *("LateReward", "CraftGame", _SCORE, "credit"),
        "The reward for a part is paid one turn late, after any next action.",
    ),
    (
        *("UnpaidLastTurn", "WordGame", _SCORE, "success"),
        "A win in the last turn has success but no reward.",
    ),
    (
        *("SuccessFlips", "WordGame", _SCORE, "success"),
        "The episode continues for a turn after the win, and the info of that turn has success False.",
    ),
    (
        *("PaysAfterEnd", "CraftGame", _SCORE, "ends"),
        "A step after the end returns the last reward again.",
    ),
    (
        *("NanScore", "CraftGame", _SCORE, "rewards"),
        "Two of 500 tasks have the weight 0, and all their rewards are NaN.",
    ),
    (
        *("IntegerEnd", "PriceShop", _SCORE, "interface"),
        "step returns 1 or 0 for terminated instead of a bool.",
    ),
    (
        *("ForeignGoal", "PriceShop", _TASK, "leakage"),
        "The example in the prompt is the goal of test task 420, with its answer.",
    ),
    (
        *("AnswerShown", "WordGame", _TASK, "leakage"),
        "The first observation has the name of a file, which contains the hidden word.",
    ),
    (
        *("ForgedReward", "WordGame", _TASK, "forgery"),
        'An agent that writes the line "Reward: 1" gets a reward of 1.',
    ),
    (
        *("UnreadInventory", "KeyRooms", _TASK, "prompt legal"),
        'The prompt teaches "inventory", which the game does not read.',
    ),
    (
        *("RefusedAdmissible", "KeyRooms", _TASK, "legal"),
        "The admissible actions include moves into walls, which are refused.",
    ),
    (
        *("Unwinnable", "KeyRooms", _TASK, "solutions"),
        "Every 25th task cannot be won, because its key is missing.",
    ),
    (
        *("Duplicates", "PriceShop", _TASK, "duplicates seeds"),
        "Train tasks 350 to 399 are train tasks 0 to 49 again.",
    ),
    (
        *("CommonAnswer", "PriceShop", _TASK, "floors"),
        "The answer 0 is right for 12 % of the tasks.",
    ),
    (
        *("YesWins", "NumberGame", _TASK, "floors"),
        'The action "yes" wins every task.',
    ),
    (
        *("SurrogateCrash", "NumberGame", _TASK, "texts"),
        "An action with a lone surrogate raises UnicodeEncodeError.",
    ),
    (
        *("OneGame", "TextCraft", _SERVER, "copies threads"),
        "The server plays every action in the game that was reset last, so copies play each other's game.",
    ),
    (
        *("SameTaskKept", "TextCraft", _SERVER, "reuse"),
        "A reset to the current task keeps the inventory of the last episode.",
    ),
    (
        *("WonByEcho", "TextCraft", _SERVER, "forgery"),
        (
            'An agent that writes "Crafted 1 minecraft:GOAL" wins, because the server judges a text that '
            "repeats the action."
        ),
    ),
    (
        *("ClosedKept", "TextCraft", _SERVER, "instances"),
        "The server keeps closed environments and is full after 50.",
    ),
    (
        *("SplitOverlap", "TextCraft", _SERVER, "splits"),
        "The test tasks from 500 are the train tasks from 0.",
    ),
    (
        *("HashOrder", "TextCraft", _SERVER, "processes"),
        "The recipes in the first observation are in the order of a set, which depends on the hash seed.",
    ),
    (
        *("AsciiLog", "TextCraft", _SERVER, "texts"),
        "The server fails with status 500 if an action has a character outside ASCII.",
    ),
    (
        *("SlowStep", "TextCraft", _SERVER, "speed"),
        "Every 12th step takes 1.2 seconds.",
    ),
)

ALL: tuple[SeededDefect, ...] = tuple(
    SeededDefect(
        name=name,
        env_id=f"defect/{name}-v0",
        sound_id=SOUND[sound].env_id,
        what=what,
        properties=frozenset(properties.split()),
        before=name in _FIRST_TWENTY,
        solver=_SOLVERS.get(name, SOUND[sound].solver),
    )
    for name, sound, _, properties, what in _ROWS
)
"""The forty defects."""

for _env in SOUND.values():
    gymnasium.register(
        _env.env_id, _env.entry_point, max_episode_steps=_env.max_episode_steps, kwargs=_env.kwargs
    )
for _name, _sound, _module, *_ in _ROWS:
    _of_server = _module == _SERVER
    gymnasium.register(
        f"defect/{_name}-v0",
        _SERVER if _of_server else f"{_module}:{_name}",
        max_episode_steps=SOUND[_sound].max_episode_steps,
        kwargs={"patch": _name} if _of_server else {},
    )
