"""Find the marks of each kind in a reply, and the one action that they contain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from agentgym_gym._text import shown
from agentgym_gym.actions import Action
from agentgym_gym.errors import ActionError, BadArguments, ManyActions, NoAction
from agentgym_gym.formats._action_text import FENCES, MarkedAction, different, read_all, read_from
from agentgym_gym.formats._answer import AnswerText
from agentgym_gym.formats._base import MAX_IGNORED_CHARS, ParseResult
from agentgym_gym.formats._code import action_of, blocks, calls_in_code, calls_known, single_call
from agentgym_gym.formats._labels import Mark, inline_labels, invented_turn, labels, tags
from agentgym_gym.formats._markup import is_ending
from agentgym_gym.formats._native import calls_in

if TYPE_CHECKING:
    from agentgym_gym.formats._json_calls import WrittenCall

__all__ = ["Marked", "MarkedReply", "action_in", "other_mark"]

_MOST_MARKS = 64  # marks of one kind that are parsed
_CALL = re.compile(r"[A-Za-z_][\w.]*[ \t]*[(（]")
_WORD = re.compile(r"[A-Za-z_]\w+")
_NEAR = 500  # characters of invalid JSON that are searched for the name of a function


class Marked(NamedTuple):
    """A marked position of an action.

    Attributes:
        mark: Start of the mark.
        start: Start of the marked text.
        end: Latest end of the marked text.
        found: The action, if it is already parsed.
        closed: Whether the action is the entire marked text, as between tags.
    """

    mark: int
    start: int
    end: int
    found: MarkedAction | None = None
    closed: bool = False


class MarkedReply(AnswerText):
    """The marks in a reply, and the action that they contain."""

    empty = False  # whether the last kind of mark searched for has no text

    def nothing(self, looked_for: str, *, empty: bool = False) -> NoAction:
        """Return the error for a reply without a mark.

        Args:
            looked_for: Description of the format's mark.
            empty: Whether the reply has that mark, but without text.
        """
        if self.unclosed:
            return NoAction(f"the reasoning that {shown(self.unclosed)} begins is never closed")
        text = self.text.strip()
        if not text:
            return NoAction("the reply is empty")
        if empty:
            return NoAction(f"no action is in the {looked_for}: {shown(text)}")
        line = None if "\n" in text else read_all(self, 0, len(self.text))
        if line is not None and isinstance(line.result, (BadArguments, ManyActions)):
            return NoAction(f"the reply has no {looked_for}; {line.result}")  # it starts like an action
        return NoAction(f"the reply has no {looked_for}: {shown(text)}")

    def labelled(self) -> ParseResult | None:
        """Return the action after a label; None if there is none."""
        found = labels(self.shape) or inline_labels(self.shape)
        if not found:
            return None
        if len(found) == 1:  # fast path for nearly all replies
            _, start, limit = found[0]
            marked = read_from(self, start, min(len(self.text), limit))
            self.empty = marked is None
            return marked and _result(marked, "label")
        ends = [mark.start for mark in found[1:]]
        ends.append(len(self.text))
        marks = [
            Marked(mark.start, mark.end, min(end, mark.limit)) for mark, end in zip(found, ends, strict=True)
        ]
        return self.one_of(marks, "label")

    def tagged(self) -> ParseResult | None:
        """Return the action between tags; None if there is none. A label between the tags is skipped."""
        if "action" not in self.shape:
            return None
        return self.one_of(map(self._between, tags(self.shape)), "tags")

    def _between(self, tag: tuple[Mark, int]) -> Marked:
        mark, end = tag
        inside = labels(self.shape[mark.end : end])
        start = mark.end + inside[-1].end if inside else mark.end
        return Marked(mark.start, start, end, closed=True)

    def of_environment(self) -> ParseResult | None:
        """Return the action in the environment's own mark; None if there is none."""
        if self.style.mark is None:
            return None
        spans = (found.span() for found in self.style.mark.finditer(self.text))
        return self.one_of((Marked(start, start, end, closed=True) for start, end in spans), "environment")

    def whole(self) -> ParseResult | None:
        """Return the action or Python call that is the whole reply; None if it is neither."""
        self.text = self.unquoted if self.style.lines else self.text
        end = invented_turn(self.shape, 0)
        text = self.text[:end].strip()
        if text and not self.style.lines and not text.startswith(FENCES):
            stop = self.style.end(self.text, self.text.index(text), end)
            end = stop if is_ending(self.text[stop:end]) else end
        found = read_all(self, 0, end, marked=False)
        if found is not None and isinstance(found.result, Action) and self._is_all(found):
            return ParseResult(found.result, "whole reply", found.start, found.end, found.ignored)
        called = None
        code = text.strip("`*. \n")
        if _CALL.match(code) or calls_known(code.replace("（", "("), self.grammar):
            called = single_call(code, self.grammar)
        if called is None:
            return None
        if isinstance(called, ActionError):
            raise called
        start = len(self.text) - len(self.text.lstrip())
        return ParseResult(called, "whole reply", start, start + len(text))

    def _is_all(self, found: MarkedAction) -> bool:
        """Return whether no text follows an action of several lines."""
        if self.style.lines or self.text.lstrip().startswith(FENCES):
            return True
        stop = self.style.end(self.text, found.start, found.end)
        return is_ending(self.text[stop : found.end])

    def called(self, *, own: bool = False) -> ParseResult | None:
        """Return the action of a call in JSON or a native notation; None if there is none.

        Args:
            own: Whether a call is the format's own kind of mark; any invalid JSON is then an error.
        """
        found = calls_in(self.unquoted, self.grammar)
        if not found:
            return None
        limit = invented_turn(self.shape, found[0].end)
        found = [call for call in found if call.start < limit]
        valid = [call for call in found if isinstance(call.result, Action)]
        if not valid and not own and not any(call.name or self._names_function(call.start) for call in found):
            return None
        if not valid:
            return _result(MarkedAction(found[0].result, found[0].start, found[0].end), "call")
        first = valid[0]
        if self.grammar.exclusive and len(found) > 1:
            raise ManyActions("the reply has more than one call")
        if any(call.native for call in found):
            ignored = tuple(str(call)[:MAX_IGNORED_CHARS] for call in found if call is not first)
            played = found.index(first)
        else:
            ignored, played = (), 0
            _check_one(valid)
        return ParseResult(first.result, "call", first.start, first.end, ignored, played)  # type: ignore[arg-type]

    def _names_function(self, start: int) -> bool:
        """Return whether the text just after a position contains the name of a known function."""
        words = _WORD.findall(self.text, start, start + _NEAR)
        return any(self.grammar.has_function(word) for word in words)

    def coded(self, *, own: bool = False) -> ParseResult | None:
        """Return the action of the one call in fenced code; None if there is no such call.

        Args:
            own: Whether code is the format's own kind of mark; a call of an unknown function is then an
                error.
        """
        if not any(fence in self.text for fence in FENCES):
            return None
        found: list[MarkedAction] = []
        limit: int | None = None
        for block in blocks(self.unquoted)[:_MOST_MARKS]:
            if (
                block.language is None
                or block.is_output
                or not (own or calls_known(block.code, self.grammar))
            ):
                continue
            if found and limit is None:
                limit = invented_turn(self.shape, found[0].end)
            if limit is not None and block.start >= limit:
                break
            try:
                calls = calls_in_code(block.code, self.grammar)
            except ActionError as error:
                found.append(MarkedAction(error, block.start, block.end))
            else:
                found += [
                    MarkedAction(action_of(call, self.grammar), block.start, block.end) for call in calls
                ]
        return _one(found, "code", exclusive=self.grammar.exclusive)

    def one_of(self, marks: Iterable[Marked], kind: str) -> ParseResult | None:
        """Return the one action in several marks; None if all of them are empty.

        Raises:
            ActionError: None of the marks is a valid action, or several are different actions.
        """
        found: dict[str, MarkedAction] = {}
        limit = None
        for mark in islice(marks, _MOST_MARKS):
            if found:
                limit = limit or invented_turn(self.shape, next(iter(found.values())).end)
                if mark.mark >= limit:
                    break
            inside = mark.found or (read_all if mark.closed else read_from)(self, mark.start, mark.end)
            if inside is not None:
                found.setdefault(self.text[inside.start : inside.end], inside)
            self.empty = not found
        return _one([*found.values()], kind, exclusive=self.grammar.exclusive)


def _one(found: list[MarkedAction], kind: str, *, exclusive: bool) -> ParseResult | None:
    """Return the one action in several marks; None if there is no mark.

    Args:
        found: The texts of the marks, in order.
        kind: The kind of the marks.
        exclusive: Whether an invalid mark next to a valid one is an error.

    Raises:
        ActionError: None of the marks is a valid action, or several are different actions.
    """
    if not found:
        return None
    valid = [each for each in found if isinstance(each.result, Action)]
    if not valid:
        return _result(found[0], kind)
    if exclusive and len(valid) < len(found):
        raise ManyActions("the reply has more than one mark")
    _check_one(valid)
    return _result(valid[0], kind)


def _check_one(valid: Sequence[MarkedAction | WrittenCall]) -> None:
    """Check that several marks contain the same action.

    Raises:
        ManyActions: Two of the actions differ.
    """
    if len(valid) > 1 and (error := different([each.result for each in valid], "the reply marks")):
        raise error


def _result(found: MarkedAction, kind: str) -> ParseResult:
    """Return the action of a mark as a result.

    Raises:
        ActionError: The marked text is not a valid action.
    """
    action, start, end, ignored = found
    if isinstance(action, ActionError):
        action.mark, action.span = kind, (start, end)
        raise action
    return ParseResult(action, kind, start, end, ignored)


_KINDS: tuple[tuple[str, Callable[[MarkedReply], ParseResult | None]], ...] = (
    ("call", MarkedReply.called),
    ("code", MarkedReply.coded),
    ("tags", MarkedReply.tagged),
    ("label", MarkedReply.labelled),
    ("environment", MarkedReply.of_environment),
)


def other_mark(reply: MarkedReply, own: str) -> ParseResult | None:
    """Return the action of the first other kind of mark in a reply, except the format's own kind.

    Raises:
        ActionError: Marks of that kind contain several actions, or no valid one.
    """
    for kind, parse in _KINDS:
        if kind != own and (found := parse(reply)) is not None:
            return found
    return None


def action_in(reply: MarkedReply, own: str, looked_for: str) -> ParseResult:
    """Return the action in a reply that has no mark of its format.

    Args:
        reply: The reply.
        own: The kind of the format's own marks, which are missing.
        looked_for: Description of the format's own mark, for the error message.

    Raises:
        ActionError: The reply has no action, several actions, or an invalid one.
    """
    empty = reply.empty
    found = other_mark(reply, own) or reply.whole()
    if found is None:
        raise reply.nothing(looked_for, empty=empty)
    return found
