"""Each judge, and a table of cases by its rule: right, nearly right, too much, too little, at the limit.

The actions go to the environment's local server in this process, and the outcomes to the environment's own
`Wire.judge`, as in an episode.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import re
from typing import NamedTuple

import pytest

from agentgym_gym import find
from agentgym_gym.wire import Outcome, Start
from bird_folder import FIRST_TASK, write_bird
from local_game import LocalGame

NOTHING = (0.0, False, False)
LOST = (0.0, False, True)
WON = (1.0, True, True)


class Scored(NamedTuple):
    """The score of an episode, whether the task is solved, and whether the episode is over."""

    score: float
    success: bool
    done: bool


@pytest.fixture(scope="module")
def game():
    """Returns the game of an environment, one for all of its cases."""
    games = {}

    def game(name, **options):
        if name not in games:
            games[name] = LocalGame(name, **options)
        return games[name]

    yield game
    for each in games.values():
        each.__exit__()


@pytest.fixture(scope="module")
def solution(game):
    """Returns the texts of the oracle's actions in a task."""

    @functools.cache
    def solution(name, task):
        actions, _ = game(name).win(task)
        return tuple(map(game(name).environment.wire.render, actions))

    return solution


def judged(game, task, actions):
    """Play actions, and return the score after the last one; no earlier one may end the episode."""
    start, score = game.reset(task), 0.0
    for number, action in enumerate(actions, start=1):
        outcome = game.step(action)
        now = game.environment.wire.judge(start, score, action, outcome)
        assert not now.done or number == len(actions), f"action {number}, {action!r}, ends it"
        score = now.score
    return Scored(now.score, now.success, now.done)


# --- the games ---

MAZE_WAY = (*["move right"] * 2, *["move down"] * 4, *["move right"] * 3, *["move down"] * 3)
BEACON = ("get 1 nether star", "get 5 glass", "get 3 obsidian")
CRAFT = "craft 1 beacon using 1 nether star, 5 glass, 3 obsidian"

LOGS, PLANKS = "get 1 acacia logs", "craft 4 acacia planks using 1 acacia logs"
SLAB = "craft 6 blackstone slab using 3 blackstone"
WALL = "craft 6 blackstone wall using 6 blackstone"

GAMES = [
    ("TextCraft", 2, "right", (*BEACON, CRAFT), WON),
    (
        "TextCraft",
        2,
        "inputs in another order",
        (*BEACON, "craft 1 beacon using 3 obsidian, 1 nether star, 5 glass"),
        WON,
    ),
    ("TextCraft", 2, "more held than needed", (*BEACON, "get 1 glass", CRAFT), WON),
    ("TextCraft", 2, "one of the second held too few", (BEACON[0], "get 4 glass", BEACON[2], CRAFT), NOTHING),
    ("TextCraft", 2, "the last not held", (*BEACON[:2], CRAFT), NOTHING),
    (
        "TextCraft",
        2,
        "one of the second used too few",
        (*BEACON, "craft 1 beacon using 1 nether star, 4 glass, 3 obsidian"),
        NOTHING,
    ),
    (
        "TextCraft",
        2,
        "one of the second used too many",
        (*BEACON, "get 1 glass", "craft 1 beacon using 1 nether star, 6 glass, 3 obsidian"),
        NOTHING,
    ),
    ("TextCraft", 2, "the last not used", (*BEACON, "craft 1 beacon using 1 nether star, 5 glass"), NOTHING),
    ("TextCraft", 2, "one item more", (*BEACON, "get 1 bone", f"{CRAFT}, 1 bone"), NOTHING),
    ("TextCraft", 2, "crafted before it is gathered", (CRAFT, *BEACON), NOTHING),
    ("TextCraft", 2, "the goal fetched", ("get 1 beacon",), NOTHING),
    ("TextCraft", 2, "another item made", ("get 1 bone", "craft 3 bone meal using 1 bone"), NOTHING),
    ("TextCraft", 2, "empty", ("",), NOTHING),
    ("TextCraft", 0, "a recipe that makes four", (LOGS, PLANKS), WON),
    ("TextCraft", 0, "the recipe for one of four", (LOGS, "craft 1 acacia planks using 1 acacia logs"), WON),
    ("TextCraft", 8, "enough is left by another recipe", ("get 9 blackstone", SLAB, WALL), WON),
    ("TextCraft", 8, "one too few is left by another recipe", ("get 8 blackstone", SLAB, WALL), NOTHING),
    ("TextCraft", 8, "a refused recipe takes nothing", ("get 6 blackstone", WALL[:-1], WALL), WON),
    ("Maze", 0, "right", MAZE_WAY, WON),
    ("Maze", 0, "one step too few", MAZE_WAY[:-1], NOTHING),
    ("Maze", 0, "in another order", MAZE_WAY[::-1], NOTHING),
    ("Maze", 18, "the last step of 50", (*[""] * 49, "move down"), WON),
    ("Maze", 18, "50 steps without it", [""] * 50, NOTHING),
    ("Maze", 18, "one step too late", (*[""] * 50, "move down"), (-1.0, False, True)),
    ("Wordle", 26, "right", ("b o a r d",), WON),
    ("Wordle", 26, "right without blanks", ("board",), WON),
    ("Wordle", 26, "its letters in another order", ("b r o a d",), NOTHING),
    ("Wordle", 26, "another first letter", ("h o a r d",), NOTHING),
    ("Wordle", 18, "another last letter", ("s p o r t",), NOTHING),
    ("Wordle", 26, "a letter too few", ("boar",), NOTHING),
    ("Wordle", 26, "a letter too many", ("boards",), NOTHING),
    ("Wordle", 26, "empty", ("",), NOTHING),
    ("Wordle", 26, "the sixth guess", (*["broad"] * 5, "board"), WON),
    ("Wordle", 26, "the sixth guess after unknown words", (*[""] * 5, "board"), WON),
    ("Wordle", 26, "five guesses without it", ["broad"] * 5, NOTHING),
    ("Wordle", 26, "six guesses without it", ["broad"] * 6, LOST),
    ("Wordle", 26, "six unknown words", ["boards"] * 6, LOST),
    ("BabyAI", 0, "right, after 9 of 64 moves", ("pickup red ball 1",), (1 - 0.9 * 9 / 64, True, True)),
    (
        "BabyAI",
        0,
        "what is no move is free",
        ("dance", "", "check available actions", "pickup red ball 1"),
        (1 - 0.9 * 9 / 64, True, True),
    ),
    (
        "BabyAI",
        0,
        "four moves more",
        (*["turn left"] * 4, "pickup red ball 1"),
        (1 - 0.9 * 13 / 64, True, True),
    ),
    (
        "BabyAI",
        0,
        "the last move of 64",
        (*["turn left"] * 56, "pickup red ball 1"),
        (1 - 0.9 * 64 / 64, True, True),
    ),
    ("BabyAI", 0, "one move too late", (*["turn left"] * 60, "pickup red ball 1"), LOST),
    ("BabyAI", 0, "another thing", ("pickup grey key 1",), NOTHING),
    ("BabyAI", 0, "63 moves without it", ["turn left"] * 63, NOTHING),
    ("BabyAI", 0, "64 moves without it", ["turn left"] * 64, LOST),
]


@pytest.mark.parametrize(
    ("name", "task", "actions", "verdict"),
    [
        pytest.param(name, task, tuple(actions), verdict, id=f"{name}-{case}")
        for name, task, case, actions, verdict in GAMES
    ],
)
def test_games(game, name, task, actions, verdict):
    assert judged(game(name), task, actions) == pytest.approx(verdict)


# --- ALFWorld ---

WAIT = "inventory"


def without(actions, word):
    """Return the actions without the first one that begins with a word."""
    at = next(number for number, action in enumerate(actions) if action.startswith(word))
    return (*actions[:at], *actions[at + 1 :])


def elsewhere(actions, place):
    """Return the actions, with the last object put at another place."""
    *before, put = actions[:-2], actions[-1]
    thing = put.removeprefix("put ").partition(" in/on ")[0]
    return (*before[0], f"go to {place}", f"put {thing} in/on {place}")


SIMPLE, TWO_ON_TABLE, LAMP, COOL, HOT, TWO_IN_DRAWER, CLEAN = 6, 14, 63, 67, 70, 72, 107


@pytest.mark.parametrize("task", [SIMPLE, TWO_ON_TABLE, LAMP, COOL, HOT, TWO_IN_DRAWER, CLEAN])
@pytest.mark.parametrize(
    ("lacks", "verdict"),
    [pytest.param(0, WON, id="right"), pytest.param(1, NOTHING, id="all but the last action")],
)
def test_alfworld_by_the_kind_of_task(game, solution, task, lacks, verdict):
    actions = solution("ALFWorld", task)
    assert judged(game("ALFWorld"), task, actions[: len(actions) - lacks]) == verdict


@pytest.mark.parametrize("task", [SIMPLE, TWO_IN_DRAWER])
@pytest.mark.parametrize(
    ("waits", "lacks", "verdict"),
    [
        pytest.param(50, 0, WON, id="the last of 50 actions"),
        pytest.param(50, 1, NOTHING, id="49 actions without it"),
        pytest.param(51, 1, LOST, id="50 actions without it"),
    ],
)
def test_alfworld_at_its_limits(game, solution, task, waits, lacks, verdict):
    actions = solution("ALFWorld", task)
    padded = (*[WAIT] * max(0, waits - len(actions)), *actions)
    assert judged(game("ALFWorld"), task, padded[: len(padded) - lacks]) == verdict


@pytest.mark.parametrize(
    ("task", "change"),
    [
        pytest.param(SIMPLE, lambda way: elsewhere(way, "countertop 1"), id="put at another place"),
        pytest.param(HOT, lambda way: without(way, "heat"), id="not heated"),
        pytest.param(
            HOT,
            lambda way: (*way[:4], "go to fridge 1", "cool mug 2 with fridge 1", *way[4:]),
            id="heated, and cooled again",
        ),
        pytest.param(CLEAN, lambda way: without(way, "clean"), id="not cleaned"),
        pytest.param(COOL, lambda way: without(way, "cool"), id="not cooled"),
        pytest.param(
            COOL,
            lambda way: (*way[:2], "go to microwave 1", "heat mug 4 with microwave 1", *way[4:]),
            id="heated in place of cooled",
        ),
        pytest.param(LAMP, lambda way: without(way, "take"), id="nothing held under the lamp"),
        pytest.param(LAMP, lambda way: without(way, "use"), id="the lamp is off"),
        pytest.param(
            LAMP,
            lambda way: ("go to sidetable 1", "use desklamp 1", *without(way[:-2], "go to sidetable 1")),
            id="the lamp is on, elsewhere",
        ),
        pytest.param(TWO_IN_DRAWER, lambda way: way[:5], id="the first of two"),
        pytest.param(TWO_IN_DRAWER, lambda way: way[5:7] + way[2:4], id="the second of two, in the hand"),
        pytest.param(TWO_ON_TABLE, lambda way: elsewhere(way, "sidetable 2"), id="two on two tables"),
    ],
)
def test_alfworld_of_what_is_nearly_right(game, solution, task, change):
    actions = change(solution("ALFWorld", task))
    assert judged(game("ALFWorld"), task, actions) == NOTHING


@pytest.mark.parametrize(
    ("task", "change"),
    [
        pytest.param(
            LAMP,
            lambda way: ("go to sidetable 1", "use desklamp 1", *way[1:-1]),
            id="the lamp first, the object then",
        ),
        pytest.param(
            TWO_IN_DRAWER, lambda way: (*way[5:7], *way[2:4], way[8], *way[:3], way[4]), id="the second first"
        ),
        pytest.param(
            COOL,
            lambda way: (*way[:2], "go to microwave 1", "heat mug 4 with microwave 1", *way[2:]),
            id="heated, and cooled then",
        ),
    ],
)
def test_alfworld_in_another_order(game, solution, task, change):
    assert judged(game("ALFWorld"), task, change(solution("ALFWorld", task))) == WON


# --- the tools ---


def values(observation):
    """Return the value that an observation shows."""
    return ast.literal_eval(observation.split("\n")[0].removeprefix("Observation: "))


def finish(answer):
    return f"Action: finish with Action Input: {{'answer': {answer!r}}}"


def answers(name, right):
    """Return answers by whether they are right; Weather's numbers may differ by half of a tenth."""
    if isinstance(right, list):
        good = [right, right[::-1]]
        bad = [right[:-1], right[1:], [*right, right[-1]], [*right, "x"], [*right[:-1], f"{right[-1]}."], []]
        bad += [", ".join(right)]
    elif isinstance(right, str):
        good = [right]
        bad = [f"{right}.", f"{right} ", right[:-1], "", [right]]
    else:
        least = 0.05 if name == "Weather" else 0
        good = [right, float(right), right + least, right - least]
        bad = [
            right + 1,
            right - 1,
            right + least + 0.001,
            right - least - 0.001,
            -right,
            str(right),
            [right],
        ]
    return [(each, True) for each in good] + [(each, False) for each in [*bad, None, True]]


TOOLS = {
    ("Weather", 7): 2,
    ("Weather", 45): 1,
    ("Weather", 6): "Yes",
    ("Weather", 8): ["2022-12-14", "2022-12-15", "2022-12-16", "2022-12-17"],
    ("Weather", 0): 26.0,
    ("Movie", 2): 145578040,
    ("Movie", 0): "Inverness, Scotland, UK",
    ("Movie", 17): ["Juniper Entertainment", "Zephyr Productions"],
    ("Academia", 0): 4,
    ("Academia", 8): "No",
    ("Academia", 7): ["Alma Bjornstad", "Bastian Fontana", "Ruth Okafor"],
    ("TODOList", 4): 3,
    ("TODOList", 96): 1,
    ("TODOList", 0): "2024-06-29",
    ("TODOList", 12): ["Hand over the old keys", "Return the rental van"],
}


@pytest.mark.parametrize(
    ("name", "task", "answer", "right"),
    [(*key, answer, right) for key, value in TOOLS.items() for answer, right in answers(key[0], value)],
)
def test_answers_of_tools(game, name, task, answer, right):
    assert judged(game(name), task, [finish(answer)]) == (WON if right else LOST)


@pytest.mark.parametrize(
    "given", ["{}", "{'answers': 2}", "2", "", "{'answer': [1, 'a']}", "{'answer': 1 + 1}"]
)
def test_an_invalid_answer_ends_nothing(game, given):
    action = f"Action: finish with Action Input: {given}"
    assert judged(game("Weather"), 7, [action]) == NOTHING
    assert judged(game("Weather"), 7, [action, finish(2)]) == WON


@pytest.mark.parametrize(("first", "then"), [(2, 3), (3, 2)])
def test_only_the_first_answer_of_a_trial_counts(game, first, then):
    game("Weather").reset(7)
    outcomes = [game("Weather").step(finish(answer)) for answer in (first, then, then)]
    assert [(each.reward, each.done) for each in outcomes] == [(float(first == 2), True)] * 3
    game("Weather").reset(7)
    assert not game("Weather").step("Action: check_valid_actions with Action Input: {}").done


LISTED = "Action: get_projects with Action Input: {}"


@pytest.mark.parametrize("task", [17, 20, 25])
@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        pytest.param(lambda way: way, WON, id="right"),
        pytest.param(lambda way: (*way[:-1][::-1], way[-1]), WON, id="changes in another order"),
        pytest.param(lambda way: (LISTED, *way[:-1], LISTED, way[-1]), WON, id="more looks"),
        pytest.param(lambda way: way[-1:], LOST, id="no change"),
        pytest.param(lambda way: (*way[:-2], way[-1]), LOST, id="all but the last change"),
        pytest.param(lambda way: (*way[:-1], finish("undone")), LOST, id="another answer"),
        pytest.param(lambda way: (*way[:-1], finish("")), LOST, id="an empty answer"),
        pytest.param(lambda way: way[:-1], NOTHING, id="no answer"),
    ],
)
def test_todolist_by_its_changes(game, solution, task, change, verdict):
    assert judged(game("TODOList"), task, change(solution("TODOList", task))) == verdict


def test_todolist_of_one_change_too_many(game, solution):
    *before, delete, done = solution("TODOList", 20)
    look = next(each for each in before if "get_tasks" in each)
    listed = values(game("TODOList").play(20, [*before, look]).observation)
    left = next(each["id"] for each in listed if each["id"] not in delete)
    more = f'Action: delete_task with Action Input: {{"task_id": "{left}"}}'
    assert judged(game("TODOList"), 20, [*before, delete, more, done]) == LOST


# --- Sheet: the share of the way from the first sheet to the last one ---

LOOK = "Action: get_all_values with Action Input: {}"
DONE = "Action: finish with Action Input: {}"


def equal_share(one, other):
    """Return the share of equal cells of the rectangle that has both sheets."""
    height, width = max(len(one), len(other)), max(len(row) for row in one + other)
    mine, yours = (
        {(y, x): cell for y, row in enumerate(sheet) for x, cell in enumerate(row)} for sheet in (one, other)
    )
    return len(mine.items() & yours.items()) / (height * width)


@pytest.fixture(scope="module")
def ends(game, solution):
    """Returns the first and the last sheet of a task."""

    @functools.cache
    def ends(task):
        sheet, way = game("Sheet"), solution("Sheet", task)
        first = sheet.play(task, [way[0], LOOK])
        return values(first.observation), values(sheet.play(task, way).observation)

    return ends


@pytest.mark.parametrize("task", [1, 2, 7])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda way: way, id="right"),
        pytest.param(lambda way: (*way[:-2], way[-1]), id="all but the last change"),
        pytest.param(lambda way: (*way[:2], *way[3:]), id="all but the first change"),
        pytest.param(lambda way: (way[0], way[-1]), id="no change"),
        pytest.param(
            lambda way: (
                *way[:-1],
                'Action: update_cell with Action Input: {"position": "A2", "value": "x"}',
                way[-1],
            ),
            id="one cell wrong",
        ),
        pytest.param(
            lambda way: (
                *way[:-1],
                'Action: update_cell with Action Input: {"position": "A40", "value": "x"}',
                way[-1],
            ),
            id="rows too many",
        ),
        pytest.param(
            lambda way: (
                *way[:-1],
                'Action: update_cell with Action Input: {"position": "Z2", "value": "x"}',
                way[-1],
            ),
            id="columns too many",
        ),
        pytest.param(
            lambda way: (
                way[0],
                'Action: delete_batch_data with Action Input: {"dimension": "row", "index_list": [2, 3]}',
                way[-1],
            ),
            id="rows too few",
        ),
    ],
)
def test_sheet_by_the_share_of_right_cells(game, solution, ends, task, change):
    sheet, (first, end) = game("Sheet"), ends(task)
    actions = change(solution("Sheet", task))
    got = values(sheet.play(task, actions).observation)
    before = equal_share(first, end)
    expected = max(0.0, (equal_share(got, end) - before) / (1 - before))
    assert judged(sheet, task, actions) == pytest.approx((expected, got == end, True))


def test_sheet_of_nothing_and_without_an_end(game, solution):
    way = solution("Sheet", 1)
    assert judged(game("Sheet"), 1, [DONE]) == LOST
    assert judged(game("Sheet"), 1, way[:-1]) == NOTHING


# --- SearchQA ---

QUESTIONS = (
    {"question": "Which town is it?", "golden_answers": ["The Old Bridge", "Bridgetown, U.K."]},
    {"question": "Which metal is it?", "golden_answers": ["Au"]},
)


@pytest.fixture(scope="module")
def search(tmp_path_factory, game):
    folder = tmp_path_factory.mktemp("search")
    lines = {
        "corpus": [{"id": "0", "contents": '"Bridge"\nA town.'}, {"id": "1", "contents": '"Gold"\nAu.'}],
        "test": QUESTIONS,
    }
    for name, rows in lines.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return game("SearchQA", data=folder)


@pytest.mark.parametrize(
    ("task", "action", "verdict"),
    [
        (0, "<answer>The Old Bridge</answer>", WON),
        (0, "<answer> old   bridge! </answer>", WON),
        (0, "<answer>bridgetown UK</answer>", WON),
        (0, "<answer> an OLD\nbridge</answer>", WON),
        (0, "<answer>\0old bridge</answer>", LOST),
        (0, "<answer>\ud800</answer>", LOST),
        (0, "<answer>   </answer>", LOST),
        (0, "<answer>town</answer> <answer>Old Bridge</answer>", WON),
        (0, "<answer>Old Bridge</answer> <answer>town</answer>", LOST),
        (0, "<answer>Bridge Old</answer>", LOST),
        (0, "<answer>Old Bridge, Bridgetown UK</answer>", LOST),
        (0, "<answer>Old Bridges</answer>", LOST),
        (0, "<answer>Bridge</answer>", LOST),
        (0, "<answer>Au</answer>", LOST),
        (0, "<answer></answer>", LOST),
        (0, "<answer>the</answer>", LOST),
        (0, f"<answer>old bridge{'.' * 9_990}</answer>", WON),
        (0, f"<answer>old bridge{'.' * 9_991}</answer>", LOST),
        (1, "<answer>au</answer>", WON),
        (1, "<answer>a u</answer>", LOST),
        (1, "<search>Au</search>", NOTHING),
        (1, "<search>metal</search> <answer>Au</answer>", NOTHING),
        (1, "Au", NOTHING),
        (1, "", NOTHING),
    ],
)
def test_searchqa(search, task, action, verdict):
    assert judged(search, task, [action]) == verdict
    assert judged(search, task, ["<search>town</search>", action]) == verdict


def test_searchqa_pays_one_right_answer(search):
    search.reset(1)
    outcomes = [search.step(f"<answer>{answer}</answer>") for answer in ("Ag", "Au", "Au", "Ag")]
    assert [(each.reward, each.done) for each in outcomes] == [(0, False), (1, True), (0, True), (0, True)]


# --- SQLGym ---

IDS, ORDERED, NONE, HALVES, MANY = range(FIRST_TASK, FIRST_TASK + 5)


@pytest.fixture(scope="module")
def bird(tmp_path_factory, game):
    return game(
        "SQLGym",
        data=write_bird(
            tmp_path_factory.mktemp("bird"),
            "SELECT id FROM animal",
            "SELECT id, id + 1 FROM animal ORDER BY id DESC",
            "SELECT id FROM animal WHERE id > 9",
            "SELECT 0.5 * id FROM animal",
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300) SELECT x FROM c",
        ),
    )


@pytest.mark.parametrize(
    ("task", "statement", "verdict"),
    [
        (IDS, "SELECT id FROM animal", WON),
        (IDS, "SELECT id FROM animal ORDER BY id DESC", WON),
        (IDS, "SELECT id FROM animal UNION ALL SELECT id FROM animal", WON),  # sets are compared
        (IDS, "SELECT 1.0 * id FROM animal", WON),
        (IDS, "SELECT id + 0.001 FROM animal", LOST),
        (IDS, "SELECT id || '' FROM animal", LOST),
        (IDS, "SELECT id FROM animal LIMIT 1", LOST),
        (IDS, "SELECT id FROM animal WHERE id > 4", LOST),
        (IDS, "SELECT id FROM animal UNION SELECT 8", LOST),
        (IDS, "SELECT id, id FROM animal", LOST),
        (IDS, "SELECT id FROM animal WHERE id > 9", LOST),
        (IDS, "SELECT id FROM animals", LOST),
        (IDS, "SELECT id FROM animal; SELECT 1", LOST),
        (IDS, "", LOST),
        (ORDERED, "SELECT id, id + 1 FROM animal", WON),
        (ORDERED, "SELECT id + 1, id FROM animal", LOST),
        (ORDERED, "SELECT id FROM animal", LOST),
        (NONE, "SELECT id FROM animal WHERE id < 0", WON),
        (NONE, "SELECT id FROM animal", LOST),
        (NONE, "", LOST),
        (NONE, "-- nothing", LOST),
        (NONE, "SELECT nothing", LOST),
        (HALVES, "SELECT id / 2.0 FROM animal", WON),
        (HALVES, "SELECT id / 2 FROM animal", LOST),
        (
            MANY,
            "WITH RECURSIVE c(x) AS (SELECT 300 UNION ALL SELECT x - 1 FROM c WHERE x > 1) SELECT x FROM c",
            WON,
        ),
        (
            MANY,
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 299) SELECT x FROM c",
            LOST,
        ),
    ],
)
def test_sqlgym(bird, task, statement, verdict):
    assert judged(bird, task, [statement]) == verdict
    assert bird.play(task, [statement]).reward == verdict[0]  # by the server, for any client


@pytest.mark.parametrize("first", ["SELECT 1", "SELECT id FROM animals", "SELECT id FROM animal"])
def test_sqlgym_scores_one_attempt(bird, first):
    bird.reset(IDS)
    rewards = [bird.step(each).reward for each in (first, "SELECT id FROM animal")]
    assert rewards == [float("animals" not in first and "id" in first), 0.0]
    assert bird.play(IDS, ["SELECT id FROM animal"]).reward == 1.0


# --- WebShop: a share of the requirements ---


@pytest.mark.parametrize(
    ("task", "change", "score"),
    [
        # Of task 0: four attributes, two options and the price.
        pytest.param(0, lambda way: way, 1.0, id="right"),
        pytest.param(0, lambda way: (*way[:2], way[3], way[2], way[4]), 1.0, id="options in another order"),
        pytest.param(0, lambda way: (*way[:2], *way[3:]), 6 / 7, id="without the first option"),
        pytest.param(0, lambda way: (*way[:3], way[4]), 6 / 7, id="without the second option"),
        pytest.param(0, lambda way: (*way[:2], way[4]), 5 / 7, id="without both options"),
        pytest.param(
            0, lambda way: (*way[:4], "click[< prev]", *way[1:2], way[4]), 5 / 7, id="options given up"
        ),
        pytest.param(0, lambda way: (*way[:2], "click[ivory]", *way[2:]), 1.0, id="the last choice counts"),
        pytest.param(0, lambda way: (*way[:3], "click[ivory]", *way[3:]), 6 / 7, id="another last choice"),
        pytest.param(0, lambda way: (*way[:3], "click[style 2]", way[4]), 6 / 7, id="another second option"),
        pytest.param(0, lambda way: (*way[:3], "click[style 12]", way[4]), 5 / 7, id="also too dear"),
        pytest.param(1, lambda way: way, 1.0, id="right without options"),
        pytest.param(
            0,
            lambda way: (way[0], *way[1:4], "click[description]", "click[< prev]", way[4]),
            1.0,
            id="with looks",
        ),
    ],
)
def test_webshop(game, solution, task, change, score):
    actions = change(solution("WebShop", task))
    assert judged(game("WebShop"), task, actions) == pytest.approx((score, score == 1.0, True))
    assert judged(game("WebShop"), task, actions[:-1]) == NOTHING


def test_webshop_of_another_product_and_of_none(game, solution):
    other = solution("WebShop", 1)
    assert judged(game("WebShop"), 0, other).score < 0.5
    for nothing in ("", "click[buy now]", "search[]", "buy now"):
        assert judged(game("WebShop"), 0, [nothing]) == NOTHING


def test_webshop_pays_one_purchase(game, solution):
    shop, way = game("WebShop"), solution("WebShop", 0)
    assert shop.play(0, way).reward == 1.0
    again = [shop.step(action) for action in way]
    assert [each.reward for each in again] == [0.0] * len(way)


TITLE = "Alder Birch Cedar Elm Fir Hazel Larch Maple Oak Pine"


def product(number, price, title, **fields):
    return {
        "asin": f"B{number:09d}",
        "name": title,
        "category": "x",
        "query": "trees",
        "product_category": "Garden \u203a Plants \u203a Trees",
        "full_description": "",
        "small_description": ["Easy clean."],
        "pricing": f"${price:.2f}",
        "customization_options": {},
        "images": ["x"],
        **fields,
    }


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Returns a game with one goal, and with other products."""
    with contextlib.ExitStack() as stack:

        def shop(*others):
            goal = product(0, 15, TITLE)
            instruction = {
                "attributes": ["easy clean", "long lasting"],
                "instruction": "Find me easy clean trees",
                "instruction_attributes": ["easy clean"],
            }
            folder = tmp_path_factory.mktemp("shop")
            (folder / "items_shuffle.json").write_text(json.dumps([goal, *others]), "utf-8")
            (folder / "items_ins_v2.json").write_text(json.dumps({goal["asin"]: instruction}), "utf-8")
            return stack.enter_context(LocalGame("WebShop", data=folder))

        yield shop


def buy(number):
    return ("search[trees easy clean]", f"click[b{number:09d}]", "click[buy now]")


OTHER = {"query": "x", "product_category": "Garden \u203a Herbs"}


@pytest.mark.parametrize(
    ("title", "fields", "factor"),
    [
        ("Willow", {}, 0.0),
        ("Alder", {}, 1.0),  # a tenth of the words, and the same query
        ("Alder", {"query": "x"}, 1.0),  # and the same category
        ("Alder", OTHER, 0.5),
        ("Pine Alder", OTHER, 0.5),  # a fifth
        ("Oak Pine Alder", OTHER, 1.0),
        ("Willow", {**OTHER, "query": "trees"}, 0.0),
    ],
)
def test_webshop_by_the_kind_of_product(shop, title, fields, factor):
    """The attribute and the price are right: what is left is the factor."""
    # The query of the search finds it by its description.
    other = product(1, 10, title, full_description="Trees, easy clean.", **fields)
    assert judged(shop(other), 0, buy(1)) == pytest.approx((factor, factor == 1.0, True))


def test_webshop_by_the_price(shop):
    """The price may be as much as the limit, which the instruction states."""
    instruction = shop().reset(0).goal
    limit = float(re.search(r"lower than ([\d.]+) dollars", instruction)[1])
    prices = (limit - 0.01, limit, limit + 0.01, 2 * limit)
    others = [product(number, price, TITLE) for number, price in enumerate(prices, start=1)]
    game = shop(*others)
    assert [judged(game, 0, buy(number)).score for number in range(5)] == [1.0, 1.0, 1.0, 0.5, 0.5]


# --- the client's side: each wire's rule for the replies of a server ---


def outcome(reward, *, done=False, **details):
    return Outcome("…", reward, done, details=details)


RULES = [
    # name, action, score before, reply, score now
    *[
        row
        for name in ("TextCraft", "Wordle", "ALFWorld")
        for row in [
            (name, "x", 0.0, outcome(1.0, done=True), (1.0, True, True, 1.0)),
            (name, "x", 0.0, outcome(0.5, done=True), (1.0, True, True, 0.5)),
            (name, "x", 0.0, outcome(0.0, done=True), (0.0, False, True, 0.0)),
            (name, "x", 0.0, outcome(1.0), (0.0, False, False, 1.0)),
            (name, "x", 0.0, outcome(-1.0, done=True), (0.0, False, True, -1.0)),
        ]
    ],
    ("Maze", "x", 0.0, outcome(1.0, done=True), (1.0, True, True, 1.0)),
    ("Maze", "x", 0.0, outcome(-1.0, done=True), (-1.0, False, True, -1.0)),
    ("Maze", "x", 0.0, outcome(0.0, done=True), (0.0, False, True, 0.0)),
    ("Maze", "x", 0.0, outcome(1.0), (0.0, False, False, 1.0)),
    ("BabyAI", "x", 0.0, outcome(0.1, done=True, score=0.1), (0.1, True, True, 0.1)),
    ("BabyAI", "x", 0.0, outcome(0.1, score=0.2), (0.1, True, True, 0.2)),
    ("BabyAI", "x", 0.0, outcome(0.0, score=0.2), (0.0, False, False, 0.2)),
    ("BabyAI", "x", 0.0, outcome(0.0, done=True, score=0.0), (0.0, False, True, 0.0)),
    ("BabyAI", "x", 0.0, outcome(-0.1, score=-0.1), (0.0, False, False, -0.1)),
    ("SciWorld", "x", 0.0, outcome(0.0, score=5.0), (0.0, False, False, 5.0)),
    ("SciWorld", "x", 0.0, outcome(20.0, score=25.0), (0.2, False, False, 25.0)),
    ("SciWorld", "x", 0.2, outcome(0.0, done=True, score=99.0), (0.94, False, True, 99.0)),
    ("SciWorld", "x", 0.2, outcome(75.0, done=True, score=100.0), (0.95, True, True, 100.0)),
    ("SciWorld", "x", 0.9, outcome(-195.0, done=True, score=-100.0), (-1.0, False, True, -100.0)),
    ("SciWorld", "x", 0.9, outcome(-90.0, score=5.0), (0.0, False, False, 5.0)),
    ("WebShop", "x", 0.0, outcome(1.0, done=True), (1.0, True, True, 1.0)),
    ("WebShop", "x", 0.0, outcome(0.99, done=True), (0.99, False, True, 0.99)),
    ("WebShop", "x", 0.0, outcome(0.0, done=True), (0.0, False, True, 0.0)),
    ("WebShop", "x", 0.0, outcome(1.0), (0.0, False, False, 1.0)),
    *[
        row
        for name in ("Weather", "Movie", "Academia", "Sheet", "TODOList")
        for row in [
            (name, "x", 0.0, outcome(1.0, done=True), (1.0, True, True, 1.0)),
            (name, "x", 0.0, outcome(0.99, done=True), (0.99, False, True, 0.99)),
            (name, "x", 0.0, outcome(0.0, done=True), (0.0, False, True, 0.0)),
        ]
    ],
    ("Academia", "x", 0.5, outcome(0.25), (0.5, False, False, 0.25)),  # the best so far
    ("Academia", "x", 0.5, outcome(0.75), (0.75, False, False, 0.75)),
    ("Academia", "x", 0.5, outcome(0.25, done=True), (0.5, False, True, 0.25)),
    ("TODOList", "x", 0.0, outcome(1.0), (0.0, False, False, 1.0)),  # it compares at the end
    ("SearchQA", "<answer>x</answer>", 0.0, outcome(1.0, done=True), (1.0, True, True, 1.0)),
    ("SearchQA", "<answer>x</answer>", 0.0, outcome(0.0), (0.0, False, True, 0.0)),
    ("SearchQA", "<search>x</search>", 0.0, outcome(0.0), (0.0, False, False, 0.0)),
    ("SearchQA", "<answer>x</answer>", 0.0, outcome(0.0, done=True), (0.0, False, True, 0.0)),
    ("SQLGym", "SELECT 1", 0.0, outcome(1.0, done=True), (1.0, True, True, 1.0)),
    ("SQLGym", "SELECT 1", 0.0, outcome(0.0, done=True), (0.0, False, True, 0.0)),
    ("SQLGym", "", 0.0, outcome(1.0, done=True), (0.0, False, True, 1.0)),
    ("SQLGym", " -- x\n/* y */ ;", 0.0, outcome(1.0, done=True), (0.0, False, True, 1.0)),
    ("MiniWoB", "x", 0.0, outcome(1.0, done=True), (1.0, True, True, 1.0)),
    ("MiniWoB", "x", 0.0, outcome(0.99, done=True), (0.99, False, True, 0.99)),
    ("MiniWoB", "x", 0.0, outcome(-1.0, done=True), (-1.0, False, True, -1.0)),
    ("MiniWoB", "x", 0.0, outcome(1.0), (0.0, False, False, 0.0)),
    ("WebArena", "x", 0.0, outcome(1.0, done=True, terminated=True), (1.0, True, True, 1.0)),
    ("WebArena", "x", 0.0, outcome(0.0, done=True, terminated=True), (0.0, False, True, 0.0)),
    ("WebArena", "x", 0.0, outcome(1.0, done=True, terminated=False), (0.0, False, True, 0.0)),
    ("WebArena", "x", 0.0, outcome(1.0, terminated=False), (0.0, False, False, 0.0)),
]


@pytest.mark.parametrize(("name", "action", "before", "reply", "now"), RULES)
def test_the_rule_of_each_wire(name, action, before, reply, now):
    start = Start("…", details={"score": 5.0})
    assert tuple(vars(find(name).wire.judge(start, before, action, reply)).values()) == pytest.approx(now)
