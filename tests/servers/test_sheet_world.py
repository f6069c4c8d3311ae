"""What the functions of Sheet do and return, and what a sheet scores."""

from __future__ import annotations

import ast
import random
import re

import pytest

from agentgym_gym import find
from clock import cpu_seconds
from local_game import LocalGame

SHEET = find("Sheet")
ROWS = [["Name", "Points"], ["Ada", 3.0], ["bob", 1.5], ["Cy", 20.0]]
SHOWN = [["Name", "Points"], ["Ada", "3"], ["bob", "1.50"], ["Cy", "20"]]


@pytest.fixture(scope="module")
def game():
    with LocalGame("Sheet") as game:
        yield game


class Bench:
    """A sheet of three rows, and what its functions return."""

    def __init__(self, game: LocalGame) -> None:
        self._game = game
        game.reset(0)
        self("open_sheet", name="Sheet1")
        self("delete_batch_data", dimension="row", index_list=list(range(5, len(self.rows()) + 1)))
        self("delete_batch_data", dimension="col", index_list=list(range(3, len(self.rows()[0]) + 1)))
        self("update_range", start_position="A1", end_position="B2", values_list=ROWS[:2])  # not all at once
        self("update_range", start_position="A3", end_position="B4", values_list=ROWS[2:])
        assert self.rows() == SHOWN

    def __call__(self, function: str, /, **arguments: object) -> str:
        return self._game.call(function, **arguments)

    def values(self, function: str, /, **arguments: object) -> list:
        return ast.literal_eval(self(function, **arguments))

    def rows(self) -> list[list[str]]:
        return self.values("get_all_values")


@pytest.fixture
def bench(game) -> Bench:
    return Bench(game)


# --- scores ---


def played(game, task, actions, *calls):
    """Play actions of a solution, call functions, and finish; return the reward."""
    game.reset(task)
    for action in actions:
        game.step(action)
    for name, arguments in calls:
        game.call(name, **arguments)
    outcome = game.step("Action: finish with Action Input: {}")
    assert outcome.done
    return outcome.reward


@pytest.mark.slow
def test_an_unchanged_sheet_scores_0(game):
    for task in SHEET.task_ids:
        opened, *_ = game.win(task)[0]
        assert opened.name() == "open_sheet"
        for calls in ((), [("get_all_values", {})]):
            assert played(game, task, [opened], *calls) == 0
        assert played(game, task, []) == 0


def test_an_empty_sheet_scores_nothing(game):
    opened, *_ = game.win(0)[0]
    assert (
        played(
            game, 0, [opened], ("delete_batch_data", {"dimension": "row", "index_list": list(range(1, 12))})
        )
        == 0
    )


def test_the_ends_are_right_by_the_rules_of_the_goals(game):
    ends, ordered = {}, 0
    for task in SHEET.task_ids:
        goal = game.reset(task).goal
        game.win(task)
        shown = game.seen[-1].removeprefix("Observation: ").removesuffix("\nGive me one action.")
        ends[task] = head, *rows = ast.literal_eval(shown)
        if found := re.search(r'by "(\w+)" in (ascending|descending) order\.$', goal):
            column = [row[head.index(found[1])] for row in rows]
            keys = [float(each) if re.fullmatch(r"[\d.]+", each) else each.lower() for each in column]
            assert keys == sorted(keys, reverse=found[2] == "descending"), goal
            ordered += 1
    assert ordered > 5
    _, *rows = ends[3]
    assert all(float(row[2]) * float(row[3]) == pytest.approx(float(row[7])) for row in rows)
    _, *rows = ends[8]
    assert all(sum(map(float, row[2:7])) == float(row[7]) == 5 * float(row[8]) for row in rows)
    head, *rows = ends[9]
    assert [row[head.index("Rank")] for row in rows] == [str(rank + 1) for rank in range(len(rows))]
    assert "Completed" not in {each for row in ends[15] for each in row}


# --- the functions ---

NAMES = [action.name() for action in SHEET.grammar.actions]
ARGUMENTS = (
    *("name", "dimension", "num", "row", "col", "values_list", "col_idx", "row_idx", "index_list"),
    *("position", "value", "operator", "position_list", "result_position", "start_position"),
    *("end_position", "col_num", "order", "content", "query", "in_row", "in_column"),
)


def test_a_sheet_must_be_opened_first(game):
    game.reset(0)
    functions = [name for name in NAMES if name not in {"open_sheet", "check_valid_actions", "finish"}]
    assert len(functions) > 15
    for name in functions:
        assert game.call(name, **dict.fromkeys(ARGUMENTS, 1)) == "Please open a sheet before operating it"


def test_sheets_are_opened_and_deleted_by_name(bench):
    assert bench("open_sheet", name="Sheet1") == "<Worksheet 'Sheet1' id:0>"
    assert bench("open_sheet", name="Sheet99") == "WorksheetNotFound('Sheet99')"
    assert bench("open_sheet", name=[]) == "WorksheetNotFound('[]')"
    assert bench("del_sheet", name="Sheet2") == "You have deleted sheet Sheet2 successfully"
    assert bench("open_sheet", name="Sheet2") == "WorksheetNotFound('Sheet2')"
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
    cells = [(f"{'AB'[c]}{r + 1}", text) for r, row in enumerate(SHOWN) for c, text in enumerate(row)]
    assert bench.values("filter_cells", query=query) == [n for n, text in cells if re.search(query, text)]


def test_patterns_are_looked_for_in_a_row_or_a_column(bench):
    assert bench.values("filter_cells", query="a", in_column=1) == ["A1", "A2"]
    assert bench.values("filter_cells", query="a", in_row="2") == ["A2"]


@pytest.mark.parametrize("query", ["(a+)+$", "a{2}", "[ab]", r"\d", "a?", "(", "a" * 300, "x(y|z)", "\\"])
def test_other_patterns_are_refused(bench, query):
    assert bench("filter_cells", query=query).startswith("error(")


def test_no_pattern_takes_long(bench):
    bench("update_range", start_position="A1", end_position="B1", values_list=[["a" * 200] * 2])
    query = "^" + "a.*" * 50 + "b$"
    assert bench("filter_cells", query=query) == "[]"
    assert cpu_seconds(lambda: [bench("filter_cells", query=query) for _ in range(50)], 1.0) <= 1.0


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 4))])
def test_any_call_is_answered_within_bounds(game, seed):
    """Draws calls of odd arguments: each is answered in words, and the sheet stays within its limits."""
    draw, bench = random.Random(seed), Bench(game)  # noqa: S311 - nothing secret
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
            [["z" * 200] * 26],
            [[None]],
            [[[1]]],
            ["A1", "B2"],
            [1, 2],
            {"a": 1},
            "nan",
        ),
    ]
    functions = [name for name in NAMES if name not in {"check_valid_actions", "del_sheet", "finish"}]
    for _ in range(150 if seed else 50):
        given = {each: draw.choice(odd) for each in ARGUMENTS}
        if draw.random() < 0.5:
            del given["position_list"]
        said = bench(draw.choice(functions), **given)
        assert len(said) < 60_000
        assert "Traceback" not in said
        bench("open_sheet", name="Sheet1")
        values = bench.rows()
        assert len(values) <= 100
        assert sum(len(cell) for row in values for cell in row) <= 20_000


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, 10**400, 1e15, float("inf"), "x" * 201])
def test_values_that_no_cell_can_contain_are_refused(bench, value):
    bench("update_cell", position="A1", value=value)
    assert bench.rows() == SHOWN


@pytest.mark.parametrize(
    ("value", "text"),
    [("nan", "nan"), ("1e400", "1e400"), ("=SUM(A1)", "=SUM(A1)"), ("-0.001", "0"), (True, "1")],
)
def test_the_displayed_values_of_cells(bench, value, text):
    bench("update_cell", position="A1", value=value)
    assert bench("get_cell_value", position="A1") == text
