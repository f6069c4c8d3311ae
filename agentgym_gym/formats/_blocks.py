"""The one action in a block of text, judged by all that the block says."""

from __future__ import annotations

import contextlib
import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from agentgym_gym.actions import MAX_ACTION_CHARS, Action
from agentgym_gym.errors import ActionError, BadArguments, ManyActions, NoAction, UnknownAction
from agentgym_gym.formats._context import EMPTY_MARKS, check_meant, check_not_going_on
from agentgym_gym.formats._labels import end_of_turn

if TYPE_CHECKING:
    from agentgym_gym.formats._pieces import PieceReader

__all__ = ["Found", "read_block"]

_MOST_LINES = 100  # at either end of a block
_FEW_LETTERS = 3

_LINE = re.compile(r"\S[^\n]*")
_LIST_ITEM = re.compile(r"(?:\d{1,2}[.)]|[-*•])[ \t]")
_FURTHER = re.compile(
    r"[ \t]*(?:and |or )?(?:then|next|after that|afterwards|finally|and|or)\b[ ,:]*", re.IGNORECASE
)
_NO_INPUT = re.compile(
    r"[ \t:=*_`]*(?:none|n/?a|null|nothing|\{\s*\}|\"\"|''|-|empty)?[ \t.`]*(?=\n|\Z)", re.IGNORECASE
)
_INPUT = re.compile(r"\baction[ _]?input\b", re.IGNORECASE)


class Found(NamedTuple):
    """An action and where the text of it ends in the block."""

    action: Action
    end: int


class _Piece(NamedTuple):
    start: int
    end: int


def read_block(
    text: str,
    shape: str,
    start: int,
    end: int,
    reader: PieceReader,
    *,
    marked: bool,
    only_marked: bool = False,
) -> Found:
    """Read the one action between two places of a reply.

    Args:
        text: The reply.
        shape: The reply, folded.
        start: Where the block begins.
        end: Where it ends.
        reader: What reads the pieces.
        marked: Whether the block is marked as that of the action: then its beginning needs no other sign.
        only_marked: Whether only what shows by itself that it is an action counts.

    Raises:
        ActionError: There is no action, or more than one, or it is not certain that it was meant.
    """
    style = reader.grammar.style
    block = text[start:end]
    pieces = [_Piece(*place) for place in style.places(block)]
    if not pieces and only_marked:
        raise NoAction("nothing in the reply is marked as the action")
    found = _of_pieces(block, shape[start:end], pieces, reader, marked) if pieces else None
    if found is None and not only_marked and style.lines:
        found = _of_lines(block, shape[start:end], reader)
    elif found is None:
        found = _of_whole(block, reader)
    return Found(found.action, start + found.end)


def _of_pieces(
    block: str, shape: str, pieces: list[_Piece], reader: PieceReader, marked: bool
) -> Found | None:
    """Return the action in the pieces that show what they are; None where all of them are something else."""
    style = reader.grammar.style
    found: Found | None = None
    problem: ActionError | None = None
    stop, place = len(block), None
    for piece in pieces:
        if piece.start >= stop:
            break
        _check_length(piece.end - piece.start)
        read = reader.read(block[piece.start : piece.end])
        if isinstance(read, Action):
            _check_only(read, found, isinstance(problem, BadArguments))
            if found is None:
                place, stop = piece, end_of_turn(shape, piece.end if style.marked else piece.start)
            found = Found(
                read, piece.end if style.marked else _end_of_call(block, piece.start, min(piece.end, stop))
            )
        elif read is not None and problem is None:
            problem = read
    if place is not None and shape[: place.start].strip(EMPTY_MARKS + "\n"):
        check_meant(shape, place.start, place.end)
    elif place is not None and not marked:
        check_not_going_on(shape, place.end, beside=False)
    if found is None and problem is not None and not (style.lines and marked):
        raise problem
    return found


def _check_length(length: int) -> None:
    """Check that a piece is not longer than an action may be.

    Raises:
        BadArguments: It is.
    """
    if length > MAX_ACTION_CHARS:
        raise BadArguments(f"the action is longer than {MAX_ACTION_CHARS} characters")


def _check_only(action: Action, found: Found | None, other: bool) -> None:
    """Check that an action is the only one.

    Args:
        action: The action.
        found: The one that was found before, if any.
        other: Whether something else was meant as an action, but could not be read.

    Raises:
        ManyActions: It is not.
    """
    if other if found is None else action != found.action:
        raise ManyActions("there is more than one action in the reply")


def _end_of_call(block: str, start: int, end: int) -> int:
    """Return where the object of a call ends; the piece may hold what is said about it, too."""
    brace = block.rfind("}", start, end)
    return brace + 1 if brace >= 0 else end


def _of_whole(block: str, reader: PieceReader) -> Found:
    """Return the action that a block is, or its first paragraph, or its first line."""
    said = reader.grammar.style.alone(block).strip()
    if len(said) > MAX_ACTION_CHARS:
        said = said.partition("\n\n")[0]
        _check_length(len(said))
    read = reader.read(said)
    if isinstance(read, Action):
        return Found(read, block.index(said) + len(said))
    problem = read
    if not reader.grammar.style.marked and not _INPUT.search(said) and not isinstance(problem, ManyActions):
        for part in (said.partition("\n\n")[0], said.partition("\n")[0]):
            if part != said and isinstance(read := reader.read(part), Action):
                _check_alone(read, said[len(part) :], reader)
                return Found(read, block.index(part) + len(part))
    if problem is None:
        raise NoAction("the place for the action is empty")
    raise problem


def _check_alone(action: Action, rest: str, reader: PieceReader) -> None:
    """Check that none of the lines behind an action is another one.

    Raises:
        ManyActions: One is.
    """
    for line in rest.split("\n", _MOST_LINES)[:_MOST_LINES]:
        if reader.might_read(line) and isinstance(read := reader.read(line), Action) and read != action:
            raise ManyActions("there is more than one action in the reply")


def _of_lines(block: str, shape: str, reader: PieceReader) -> Found:
    """Return the action that one line of a block is; other lines may only be about it.

    The items of a list are a plan or a choice, if a line announces them and the action stands behind them.
    """
    lines = _lines(block if reader.grammar.style.verbatim else shape)
    try:
        return _one_of_lines(lines, block, shape, reader)
    except ManyActions:
        items = [number for number, each in enumerate(lines) if _LIST_ITEM.match(block, each.start)]
        if not items or items[0] == 0 or items[-1] == len(lines) - 1:
            raise
        with contextlib.suppress(ActionError):
            return _one_of_lines(lines[items[-1] + 1 :], block, shape, reader, led=True)
        raise


def _one_of_lines(
    lines: list[_Piece], block: str, shape: str, reader: PieceReader, *, led: bool = False
) -> Found:
    """Return the action that one of some lines is.

    Args:
        lines: Where they are in the block.
        block: The block.
        shape: The block, folded.
        reader: What reads the lines.
        led: Whether something is said before them.

    Raises:
        ActionError: None is, more than one, or one that is only spoken of.
    """
    found: Found | None = None
    first: ActionError | None = None
    place = None  # where the action is
    stop = len(block)
    for each in lines:
        if each.start >= stop:
            break
        line = block[each.start : each.end]
        says_something = first is not None or found is not None
        if says_something and (further := _FURTHER.match(line)):
            line = line[further.end() :]
        read = reader.read(line) if not says_something or reader.might_read(line) else None
        if isinstance(read, Action):
            # An error other than an unknown action is that of a line that was meant as one.
            _check_only(read, found, first is not None and not isinstance(first, UnknownAction))
            if found is None:
                place, stop = each, end_of_turn(shape, each.end)
            found = Found(read, each.end)
        elif found is None:
            if read is not None and first is None:
                first = read
            led = led or bool(line.strip(EMPTY_MARKS))
    if place is not None and led:
        check_meant(shape, place.start, place.end)
    if found is None:
        raise first or NoAction("the place for the action is empty")
    _check_no_input(shape, found.end, stop)
    return found


def _check_no_input(shape: str, end: int, stop: int) -> None:
    """Check that an action, which ends at a place, is not followed by ``Action Input:``.

    Raises:
        UnknownAction: It is.
    """
    called = _INPUT.search(shape, end, stop)
    if called is None or _NO_INPUT.match(shape, called.end()):
        return
    if len(shape[end : called.start()].strip(EMPTY_MARKS + "\n")) < _FEW_LETTERS:
        raise UnknownAction(
            "the action is written as a call of a tool; write it in one line, as the rules show it"
        )


def _lines(text: str) -> list[_Piece]:
    """Return where the first and the last lines are that say something."""
    first = [_Piece(*line.span()) for line in islice(_LINE.finditer(text), _MOST_LINES)]
    last: list[_Piece] = []
    end = len(text)
    while len(first) == _MOST_LINES > len(last) and (end := len(text[:end].rstrip())) > first[-1].end:
        start = text.rfind("\n", 0, end) + 1
        last.append(_Piece(start, end))
        end = start
    return first + last[::-1]
