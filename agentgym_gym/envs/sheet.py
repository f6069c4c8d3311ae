"""Sheet: edit a spreadsheet according to instructions (Ma et al., 2024, arXiv:2401.13178).

The score is the best share of correct cells so far, so it is above 0 as soon as a sheet is open. The columns
of cells in formulas can have only one letter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from agentgym_gym._template_text import fields_of
from agentgym_gym.actions import Grammar
from agentgym_gym.arguments import Integer
from agentgym_gym.catalogue import Environment, make_splits
from agentgym_gym.envs._json_arguments import ListOfValues, Maybe, Value
from agentgym_gym.envs._scalar_arguments import Cell, OneOf, ShortText
from agentgym_gym.envs._tools import LOCAL_QUIRKS, QUIRKS, Tool, ToolWire, launch_of, read_as_agentgym
from agentgym_gym.errors import BadArguments

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Self

__all__ = [
    "SHEET",
    "DelSheet",
    "DeleteBatchData",
    "FilterCells",
    "Formula",
    "FreezeData",
    "GetA1Annotation",
    "GetAllValues",
    "GetCellValue",
    "GetNote",
    "GetRangeValues",
    "GetValueByFormula",
    "InsertCols",
    "InsertRows",
    "MergeCells",
    "OpenSheet",
    "SheetFinish",
    "SortSheetByCol",
    "UpdateCell",
    "UpdateCellByFormula",
    "UpdateNote",
    "UpdateRange",
]

_INDEX = Integer(1, 10_000)
_SCALAR = Value("beef", "5", 0.05, "=SUM(A1:A3)", nested=False)
_TABLE = ListOfValues(ListOfValues(_SCALAR))

_SheetName = Annotated[str, ShortText("Sheet1", "Sheet2", "Sheet20"), "the sheet's name"]
_Position = Annotated[str, Cell(), "the cell, such as B2"]
_TopLeft = Annotated[str, Cell(), "the top left cell, such as A2"]
_BottomRight = Annotated[str, Cell(), "the bottom right cell, such as C4"]
_Operator = Annotated[
    str, OneOf("SUM", "AVERAGE", "COUNT", "MAX", "MIN", "MINUS", "PRODUCT"), "what to calculate"
]
_Cells = Annotated[tuple[str, ...] | None, Maybe(ListOfValues(Cell(1))), "the cells, one by one"]
_From = Annotated[str | None, Maybe(Cell(1)), "the top left cell of the range, in place of a list"]
_To = Annotated[str | None, Maybe(Cell(1)), "the bottom right cell of the range"]


@dataclass(frozen=True, eq=False)
class OpenSheet(Tool):
    """Open a sheet, on which all further actions work."""

    name_: _SheetName


@dataclass(frozen=True, eq=False)
class DelSheet(Tool):
    """Delete a sheet."""

    name_: _SheetName


@dataclass(frozen=True, eq=False)
class FreezeData(Tool):
    """Keep the first rows or columns in their place."""

    dimension: Annotated[str, OneOf("rows", "columns"), "what to keep"]
    num: Annotated[int, _INDEX, "how many"]


@dataclass(frozen=True, eq=False)
class GetA1Annotation(Tool):
    """Get the name of a cell from its row and column."""

    function: ClassVar[str] = "get_A1_annotation"
    row: Annotated[int, _INDEX, "the row, from 1"]
    col: Annotated[int, _INDEX, "the column, from 1"]


@dataclass(frozen=True, eq=False)
class InsertCols(Tool):
    """Insert columns."""

    values_list: Annotated[Any, _TABLE, "a list of columns, each a list of values"]
    col_idx: Annotated[int, _INDEX, "the number of the first of them, from 1"]


@dataclass(frozen=True, eq=False)
class InsertRows(Tool):
    """Insert rows."""

    values_list: Annotated[Any, _TABLE, "a list of rows, each a list of values"]
    row_idx: Annotated[int, _INDEX, "the number of the first of them, from 1"]


@dataclass(frozen=True, eq=False)
class DeleteBatchData(Tool):
    """Delete several rows or columns."""

    dimension: Annotated[str, OneOf("row", "col"), "what to delete"]
    index_list: Annotated[tuple[int, ...], ListOfValues(_INDEX), "their numbers, from 1"]


@dataclass(frozen=True, eq=False)
class UpdateCell(Tool):
    """Set the value of a cell."""

    position: _Position
    value: Annotated[Any, _SCALAR, "the new value"]


class Formula(Tool):
    """A calculation over cells, which are given one by one or as a range."""

    operator: str
    position_list: tuple[str, ...] | None
    start_position: str | None
    end_position: str | None

    def _check_fields(self) -> None:
        super()._check_fields()
        ends = (self.start_position is None, self.end_position is None)
        if ends not in {(True, True), (False, False)} or (self.position_list is None) is ends[0]:
            raise BadArguments("give either position_list, or start_position and end_position")

    @classmethod
    def sample(cls, rng: np.random.Generator) -> Self:
        """Draw a calculation over a list of cells."""
        kinds = {f.name: f.argument for f in fields_of(cls)}
        values = {f.name: f.argument.sample(rng) for f in fields_of(cls)}
        return cls(**{**values, "position_list": kinds["position_list"].kind.sample(rng)})  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class UpdateCellByFormula(Formula):
    """Write a calculation over cells, one by one or from a first to a last, into a cell."""

    operator: _Operator
    result_position: Annotated[str, Cell(1), "the cell to write to"]
    position_list: _Cells = None
    start_position: _From = None
    end_position: _To = None


@dataclass(frozen=True, eq=False)
class UpdateRange(Tool):
    """Set the values of a range of cells."""

    start_position: _TopLeft
    end_position: _BottomRight
    values_list: Annotated[Any, _TABLE, "a list of rows, each a list of values"]


@dataclass(frozen=True, eq=False)
class SortSheetByCol(Tool):
    """Sort the rows by a column."""

    col_num: Annotated[int, _INDEX, "the number of the column, from 1"]
    order: Annotated[str, OneOf("asc", "des"), "ascending or descending"]


@dataclass(frozen=True, eq=False)
class MergeCells(Tool):
    """Merge a range of cells into one."""

    start_position: _TopLeft
    end_position: _BottomRight


@dataclass(frozen=True, eq=False)
class UpdateNote(Tool):
    """Set the note of a cell."""

    position: _Position
    content: Annotated[str, ShortText("sold out", "check the price"), "the note"]


@dataclass(frozen=True, eq=False)
class GetAllValues(Tool):
    """Show all values of the open sheet."""


@dataclass(frozen=True, eq=False)
class GetRangeValues(Tool):
    """Show the values of a range of cells."""

    start_position: _TopLeft
    end_position: _BottomRight


@dataclass(frozen=True, eq=False)
class GetCellValue(Tool):
    """Show the value of a cell."""

    position: _Position


@dataclass(frozen=True, eq=False)
class GetValueByFormula(Formula):
    """Calculate over cells, given one by one or from a first to a last, and show the result."""

    operator: _Operator
    position_list: _Cells = None
    start_position: _From = None
    end_position: _To = None


@dataclass(frozen=True, eq=False)
class FilterCells(Tool):
    """Find the cells that match a regular expression."""

    query: Annotated[str, ShortText("Meat", "^(Vegetables|Fruits)$"), "the regular expression"]
    in_row: Annotated[int | None, Maybe(_INDEX), "the row to look in, else all"] = None
    in_column: Annotated[int | None, Maybe(_INDEX), "the column to look in, else all"] = None


@dataclass(frozen=True, eq=False)
class GetNote(Tool):
    """Show the note of a cell."""

    position: _Position


@dataclass(frozen=True, eq=False)
class SheetFinish(Tool):
    """End the task: the sheet is as it should be."""

    function: ClassVar[str] = "finish"


_GRAMMAR = Grammar(
    [
        OpenSheet("Sheet1"),
        GetAllValues(),
        GetRangeValues("A1", "C3"),
        GetCellValue("B2"),
        GetNote("B2"),
        FilterCells("Meat", in_column=2),
        GetValueByFormula("PRODUCT", ("D2", "F2")),
        UpdateCell("B2", "12.50"),
        UpdateRange("D2", "D3", ((30.0,), (53.1,))),
        UpdateCellByFormula("SUM", "G2", start_position="B2", end_position="D2"),
        InsertRows((("lamb", "12"),), 14),
        InsertCols((("Sold", 5, 2),), 8),
        DeleteBatchData("row", (3, 4, 5)),
        SortSheetByCol(4, "des"),
        FreezeData("rows", 1),
        MergeCells("A1", "B1"),
        UpdateNote("B2", "sold out"),
        GetA1Annotation(2, 3),
        DelSheet("Sheet1"),
        SheetFinish(),
    ]
)

_RULES = """\
You edit a spreadsheet as a user tells you, by calling functions. The first message says what to do and on \
which sheet; after each of your actions you are told what the function returned.

- First open the sheet, and look at its values before you change any.
- Rows and columns are counted from 1; the first row is the heading. Cells are named by column and row: \
B2.
- Freeze the first row before you sort, or the heading is sorted too.
- No action may overwrite or delete the whole sheet at once.
- Call `finish` when the sheet is as it should be: that ends the task and cannot be taken back."""

SHEET = Environment(
    name="Sheet",
    summary=(
        "Edit a spreadsheet by calling functions (the tool tasks of AgentBoard, Ma et al., 2024, "
        "arXiv:2401.13178)."
    ),
    wire=ToolWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=15,
    splits=make_splits(range(20), test=range(15, 20)),
    on_unknown="refuse",
    agentgym_readers={"react": read_as_agentgym},
    quirks=f"""\
{QUIRKS}
- The score is the best share of correct cells so far: it is above 0 as soon as the right sheet is open, and \
no later mistake lowers it. It may reach 1 before `finish`.
- There is no `check_valid_actions`.
- Its server copies a Google spreadsheet for each create and each reset, and never deletes one. It needs \
the credentials of a Google service account, and `SHEET_EMAIL`.
- A step whose result contains the word "error" is tried four times, 10 s apart: a mistake takes 40 s, and a \
partly failed insertion is repeated.""",
    local_server="agentgym_servers.sheet:SERVER",
    local_quirks=f"""\
{LOCAL_QUIRKS}
- The sheets are in memory: no Google, no key, no waiting. The 20 sheets and tasks are generated from a seed \
and differ from AgentGym's.
- The score is computed at `finish`: the share of the necessary changes that were made, from 0 for the \
original sheet to 1 for the correct one. Cells that are missing or should not exist count as wrong.
- Whole numbers are shown bare, others with two decimal places: 8 and 8.50. There are no other formats.
- A formula is calculated once, when it is written; text that begins with `=` stays text.
- A merged range shows its first value in all cells, which can then be changed one by one.
- A sheet has at most 100 rows, 26 columns and 20,000 characters.
- A pattern of `filter_cells` may have alternatives with `|`, `^` and `$` around them, `.` and `.*`, but no \
other syntax of regular expressions, so no pattern can block the server.
- Errors have other words.""",
    oracle="agentgym_servers._tool_oracles:SheetOracle",
    launch=f"export SHEET_EMAIL=...\n{launch_of('sheet')}",
    transcript=(
        (
            "Now new trial starts.\nYou should perform actions to accomplish the goal: Product Update: "
            'The table in "Sheet1" contains …'
        ),
        "Action: get_all_values with Action Input: {}",
        "Observation: Please open a sheet before operating it\nGive me one action.",
        'Action: open_sheet with Action Input: {"name": "Sheet1"}',
        "Observation: <Worksheet 'Sheet1' id:0>\nGive me one action.",
        "Action: get_all_values with Action Input: {}",
        ("Observation: [['Product', 'Category', 'Price', 'Quantity', 'Discount', 'Location', 'Product …"),
    ),
)
