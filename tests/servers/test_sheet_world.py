"""The sheets and tasks of Sheet, without a server."""

from __future__ import annotations

import ast
import hashlib
import json
import random
import re

import pytest

from agentgym_gym.envs.sheet import SHEET
from agentgym_servers._frame.tools import Trial
from agentgym_servers.sheet._book import Book
from agentgym_servers.sheet._cells import SheetCell, SheetError, format_value, matcher, value_of
from agentgym_servers.sheet._server import SheetTools
from agentgym_servers.sheet._world import TASKS, world_of
from clock import cpu_seconds

DIGEST = "de9b88c3136346eae05ad11a48147f86b0a11c4a1a094e3c810fba7f8705b8f8"
ROWS = [["Name", "Points"], ["Ada", 3.0], ["bob", 1.5], ["Cy", 20.0]]


def digest(seed: int) -> str:
    tasks = world_of(seed).tasks
    told = [(t.goal, t.first, t.end, t.solution) for t in tasks]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def trial(task_id: int = 0, seed: int = 0) -> Trial:
    world = world_of(seed)
    return Trial(task_id, lambda each: SheetTools(world.tasks[each], Book(world.setting)))


class Bench:
    """A sheet of three rows, and what its functions say."""

    def __init__(self) -> None:
        book = Book(
            {"Sheet1": [[SheetCell(value) for value in row] for row in ROWS], "Other": [[SheetCell("x")]]}
        )
        self._trial = Trial(0, lambda _: SheetTools(world_of(0).tasks[0], book))
        self("open_sheet", name="Sheet1")

    def __call__(self, function: str, /, **arguments: object) -> str:
        said = self._trial.step(f"Action: {function} with Action Input: {arguments!r}")["observation"]
        return said.removeprefix("Observation: ").removesuffix("\nGive me one action.")

    def values(self, function: str, /, **arguments: object) -> list:
        return ast.literal_eval(self(function, **arguments))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_world_of_a_seed_is_the_same_everywhere():
    assert digest(0) == DIGEST
    assert digest(1) != DIGEST


def test_there_is_another_task_for_each_id():
    assert range(TASKS) == SHEET.splits["all"]
    assert len({task.goal for task in world_of(0).tasks}) == TASKS


@pytest.mark.parametrize("seed", range(6))
def test_each_solution_reaches_1_within_the_turn_limit(seed):
    for task_id, task in enumerate(world_of(seed).tasks):
        playing = trial(task_id, seed)
        for name, arguments in task.solution:
            outcome = playing.step(f"Action: {name} with Action Input: {arguments!r}")
            assert "Error" not in outcome["observation"]
        assert (outcome["reward"], outcome["done"]) == (1, True), task.goal
        assert len(task.solution) <= SHEET.max_turns


def test_what_changes_nothing_reaches_0():
    for task_id, task in enumerate(world_of(0).tasks):
        for calls in ([], ["open_sheet"], ["open_sheet", "get_all_values"]):
            playing = trial(task_id)
            for name in calls:
                playing.step(f"Action: {name} with Action Input: {{'name': '{task.sheet}'}}")
            outcome = playing.step("Action: finish with Action Input: {}")
            assert (outcome["reward"], outcome["done"]) == (0, True)


def test_a_part_of_the_way_is_paid_in_part():
    task = world_of(0).tasks[16]
    for count in range(3, len(task.solution) - 1):
        playing = trial(16)
        for name, arguments in task.solution[:count]:
            playing.step(f"Action: {name} with Action Input: {arguments!r}")
        assert 0 < playing.step("Action: finish with Action Input: {}")["reward"] < 1


def test_a_score_counts_what_should_not_be_there():
    task = world_of(0).tasks[0]
    more = [[*row, "x"] for row in task.end]
    assert task.score(task.end) == 1
    assert task.score(task.first) == 0
    assert task.score(more) < 1
    assert task.score([*task.end, task.end[0]]) < 1
    assert task.score(task.end[:-1]) < 1
    assert task.score([[]]) == task.score([["x"]]) == 0


def test_the_ends_are_right_by_the_rules_of_the_goals():
    tasks = world_of(0).tasks
    for task in tasks:
        head, *rows = task.end
        if found := re.search(r'by "(\w+)" in (ascending|descending) order\.$', task.goal):
            column = [row[head.index(found[1])] for row in rows]
            keys = [float(each) if re.fullmatch(r"[\d.]+", each) else each.lower() for each in column]
            assert keys == sorted(keys, reverse=found[2] == "descending"), task.goal
    head, *rows = tasks[3].end
    assert all(float(row[2]) * float(row[3]) == pytest.approx(float(row[7])) for row in rows)
    head, *rows = tasks[8].end
    assert all(sum(map(float, row[2:7])) == float(row[7]) == 5 * float(row[8]) for row in rows)
    head, *rows = tasks[9].end
    assert [row[head.index("Rank")] for row in rows] == [str(rank + 1) for rank in range(len(rows))]
    assert "Completed" not in {each for row in tasks[15].end for each in row}


# --- the functions ---


def test_a_sheet_must_be_opened_first():
    for name in (*SheetTools.names[1:-1],):
        arguments = dict.fromkeys(
            [
                "name",
                "dimension",
                "num",
                "row",
                "col",
                "values_list",
                "col_idx",
                "row_idx",
                "index_list",
                "position",
                "value",
                "operator",
                "result_position",
                "start_position",
                "end_position",
                "col_num",
                "order",
                "content",
                "query",
            ],
            1,
        )
        said = trial().step(f"Action: {name} with Action Input: {arguments!r}")["observation"]
        assert said == "Observation: Please open a sheet before operating it\nGive me one action.", name


def test_sheets_are_opened_and_deleted_by_name(bench):
    assert bench("open_sheet", name="Sheet1") == "<Worksheet 'Sheet1' id:0>"
    assert bench("open_sheet", name="Sheet9") == "WorksheetNotFound('Sheet9')"
    assert bench("open_sheet", name=[]) == "WorksheetNotFound('[]')"
    assert bench("del_sheet", name="Other") == "You have deleted sheet Other successfully"
    assert bench("open_sheet", name="Other") == "WorksheetNotFound('Other')"
    bench("del_sheet", name="Sheet1")
    assert bench("get_all_values") == "Please open a sheet before operating it"


def test_values_are_written_and_shown(bench):
    assert bench.values("get_all_values") == [["Name", "Points"], ["Ada", "3"], ["bob", "1.50"], ["Cy", "20"]]
    assert bench.values("update_cell", position="D2", value="7.255")[1] == ["Ada", "3", "", "7.25"]
    assert bench("get_cell_value", position="D2") == "7.25"
    assert bench("get_cell_value", position="C2") == "None"
    assert bench.values("get_range_values", start_position="A1", end_position="B2") == [
        ["Name", "Points"],
        ["Ada", "3"],
    ]
    changed = bench.values("update_range", start_position="A2", end_position="A3", values_list=[["x"], ["y"]])
    assert [row[0] for row in changed] == ["Name", "x", "y", "Cy"]


def test_rows_and_columns_come_and_go(bench):
    assert bench.values("insert_rows", values_list=[["Di", 4]], row_idx=5)[4] == ["Di", "4"]
    assert bench.values("insert_cols", values_list=[["No", 1, 2]], col_idx=1)[1] == ["1", "Ada", "3"]
    assert bench.values("delete_batch_data", dimension="col", index_list=["1"])[0] == ["Name", "Points"]
    assert bench.values("delete_batch_data", dimension="row", index_list=[2, 3]) == [
        ["Name", "Points"],
        ["Cy", "20"],
        ["Di", "4"],
    ]
    assert "at once" in bench("delete_batch_data", dimension="row", index_list=[1, 2])


def test_sorting_keeps_what_is_frozen_and_the_notes(bench):
    bench("update_note", position="A4", content="best")
    assert bench("freeze_data", dimension="rows", num=1) == "You have successfully freeze the rows 1"
    assert [row[0] for row in bench.values("sort_sheet_by_col", col_num="2", order="des")] == [
        "Name",
        "Cy",
        "Ada",
        "bob",
    ]
    assert bench("get_note", position="A2") == "best"
    bench("freeze_data", dimension="rows", num=0)
    assert [row[0] for row in bench.values("sort_sheet_by_col", col_num=1, order="asc")] == [
        "Ada",
        "bob",
        "Cy",
        "Name",
    ]


@pytest.mark.parametrize(
    ("operator", "cells", "result"),
    [
        ("SUM", {"start_position": "B1", "end_position": "B4"}, "24.50"),
        ("AVERAGE", {"position_list": ["B2", "B3"]}, "2.25"),
        ("COUNT", {"start_position": "A1", "end_position": "B4"}, "3"),
        ("MAX", {"position_list": ["B2", "B4"]}, "20"),
        ("MIN", {"position_list": ["A1"]}, "0"),
        ("MINUS", {"position_list": ["B2", "B4"]}, "-17"),
        ("MINUS", {"position_list": ["B2"]}, "#N/A"),
        ("PRODUCT", {"position_list": ["B2", "B4"]}, "60"),
        ("AVERAGE", {"position_list": ["A1"]}, "#DIV/0!"),
    ],
)
def test_formulas_calculate_over_numbers(bench, operator, cells, result):
    assert bench("get_value_by_formula", operator=operator, **cells) == result
    written = bench.values("update_cell_by_formula", operator=operator, result_position="C1", **cells)
    assert written[0][2] == result


def test_merged_cells_show_the_first(bench):
    assert bench.values("merge_cells", start_position="A2", end_position="B3")[1:3] == [["Ada"] * 2] * 2


@pytest.mark.parametrize(
    "query",
    ["Ada", "^(Ada|Cy)$", "A", ".*da", "^.d", "o.*b", "1.50", r"1\.5", "a$", "^A.*a$", "b|C", "^20$", "x"],
)
def test_patterns_find_what_regular_expressions_find(bench, query):
    cells = [
        (f"{'AB'[c]}{r + 1}", format_value(value))
        for r, row in enumerate(ROWS)
        for c, value in enumerate(row)
    ]
    assert bench.values("filter_cells", query=query) == [n for n, text in cells if re.search(query, text)]


def test_patterns_are_looked_for_in_a_row_or_a_column(bench):
    assert bench.values("filter_cells", query="a", in_column=1) == ["A1", "A2"]
    assert bench.values("filter_cells", query="a", in_row="2") == ["A2"]


@pytest.mark.parametrize("query", ["(a+)+$", "a{2}", "[ab]", r"\d", "a?", "(", "a" * 300, "x(y|z)", "\\"])
def test_other_patterns_are_refused(bench, query):
    assert bench("filter_cells", query=query).startswith("error(")


def test_no_pattern_takes_long():
    finds = matcher("^" + "a.*" * 50 + "b$")
    assert cpu_seconds(lambda: [finds("a" * 200) for _ in range(100)], 1.0) <= 1.0


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_called_is_answered_within_bounds(seed):
    """Draws calls of odd arguments: each is answered in words, and the sheet stays within its limits."""
    draw, bench = random.Random(seed), Bench()  # noqa: S311 - nothing secret
    odd = [
        *(
            "A1",
            "Z100",
            "AA1",
            "A0",
            "A101",
            "a1",
            "",
            "\0",
            "\ud800",
            "x" * 300,
            "rows",
            "row",
            "asc",
            "des",
        ),
        *(
            0,
            1,
            2,
            26,
            27,
            100,
            101,
            -1,
            10**30,
            1.5,
            1e308,
            float("1e15"),
            True,
            None,
            "SUM",
            "PRODUCT",
            "1e400",
        ),
        *(
            [],
            [[]],
            [[1, "y"]],
            [["z" * 200] * 26] * 100,
            [[None]],
            [[[1]]],
            ["A1", "B2"],
            [1, 2],
            {"a": 1},
            "nan",
        ),
    ]
    names = [
        "dimension",
        "num",
        "row",
        "col",
        "values_list",
        "col_idx",
        "row_idx",
        "index_list",
        "position",
        "value",
        "operator",
        "position_list",
        "result_position",
        "start_position",
        "end_position",
        "col_num",
        "order",
        "content",
        "query",
        "in_row",
        "in_column",
        "name",
    ]
    for _ in range(150):
        name = draw.choice(SheetTools.names[1:-1])
        given = {each: draw.choice(odd) for each in names}
        if draw.random() < 0.5:
            del given["position_list"]
        said = bench(name, **given) if name != "del_sheet" else ""
        assert len(said) < 60_000
        assert "Traceback" not in said
        values = bench.values("get_all_values")
        assert len(values) <= 100
        assert sum(len(cell) for row in values for cell in row) <= 20_000


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, 10**400, 1e15, float("inf"), "x" * 201])
def test_what_no_cell_can_hold_is_refused(value):
    with pytest.raises(SheetError):
        value_of(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [("nan", "nan"), ("1e400", "1e400"), ("=SUM(A1)", "=SUM(A1)"), ("-0.001", "0"), (True, "1")],
)
def test_what_cells_show(value, text):
    assert format_value(value_of(value)) == text


def test_a_world_is_made_in_a_second():
    assert cpu_seconds(lambda: world_of.__wrapped__(5), 5.0) <= 5.0
