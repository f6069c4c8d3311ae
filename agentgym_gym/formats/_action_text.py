"""Parse the action after a mark: where it starts, where it ends, and which action it is."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from agentgym_gym._json import NotJson, decode
from agentgym_gym._text import shown
from agentgym_gym.actions import Action
from agentgym_gym.errors import ActionError, BadArguments, ManyActions
from agentgym_gym.formats._base import MAX_IGNORED_CHARS
from agentgym_gym.formats._code import INFO_STRING, single_call
from agentgym_gym.formats._json_calls import arguments_of
from agentgym_gym.formats._labels import INPUT, invented_turn, next_label
from agentgym_gym.formats._markup import is_empty, is_ending, read_peeled, unframed
from agentgym_gym.formats._native import call_at, calls_behind

if TYPE_CHECKING:
    from agentgym_gym.formats._answer import AnswerText

__all__ = ["FENCES", "MarkedAction", "different", "line_end", "read_all", "read_from"]

_MOST_LINES = 64  # parsed between two tags
_MOST_CUTS = 12  # candidate ends of an action within a line
_LONGEST_LABEL = 80  # characters of a line that are searched for a label

FENCES = ("```", "~~~")
# Of fences with nothing between them, the last one is the opening fence.
_FENCE = re.compile(r"(?:`{3,}|~{3,})(?:\s*(?:`{3,}|~{3,}))*")
_LANGUAGE_LINE = re.compile(INFO_STRING + r"\n", re.ASCII)
# Languages of fences; a fence with only such a word is empty.
_LANGUAGES = frozenset(
    {
        *(
            "text",
            "txt",
            "plain",
            "plaintext",
            "markdown",
            "md",
            "json",
            "jsonc",
            "yaml",
            "toml",
            "xml",
            "html",
        ),
        *("css", "csv", "diff", "bash", "sh", "shell", "zsh", "console", "terminal", "powershell", "python"),
        *("python3", "py", "pycon", "sql", "sqlite", "sqlite3", "mysql", "latex", "tex", "java", "js", "ts"),
        *("javascript", "typescript", "c", "cpp", "csharp", "rust", "go", "swift", "julia", "scala", "ruby"),
        *("basic", "perl", "php", "lua", "haskell", "kotlin", "dart", "r", "tool_code", "action", "output"),
    }
)
_LANGUAGE_WORD = re.compile(
    r"(?:python3?|py|json|text|plaintext|bash|sh|tool_code|sql(?:ite3?)?)[ \t]+", re.IGNORECASE
)
_CLOSING = re.compile(r"(?:</[\w-]{1,20}>|[`~\s}$\])\\])*")  # ends of a fence and of what is in it
_RULE = " \t*_-="
_BREAK = re.compile(r"</?(?:br|hr|p)[ \t]?/?>", re.IGNORECASE)
_CUT = re.compile(r"\.(?=\s|[^\x00-\x7f])|[ \t]\(|[ \t]#|[ \t]//|;|[ \t]-{1,2}[ \t]|(?<![ \t])[ \t]*[–—]")
# A joint of two actions on a line, and a quick sign of one.
_THEN = r"(?:(?:and|then|next|after that|finally)[ \t,]+)"
_JOINT = re.compile(
    rf"(?<![ \t])[ \t]*(?:[;,+]+|&{{1,2}}|-+>|=+>|→)[ \t]*{_THEN}*|(?<![ \t])[ \t]+{_THEN}+|\.[ \t]+{_THEN}*"
)
_JOINT_SIGN = re.compile(r"[;,&+→]|->|=>|[ \t](?:and|then)[ \t]|\.[ \t]")
_LIST_NUMBER = re.compile(r"[\s`*\"'(]*\d{1,3}")
_SIGNS_BEFORE = "`*\"' "
_GAP = re.compile(r"[ \t]*")
_LONGEST_HEAD = 80  # characters that are searched for the first words of an action
_INPUT_OPENING = re.compile(r"[\s`]*(?:json\b)?\s*")
_NO_INPUT = ("", "none", "None", "null", None)
_PYTHON_CALL = re.compile(r"\[?[A-Za-z_][\w.]{0,80}[ \t]?\(.*\)\]?", re.DOTALL)


class MarkedAction(NamedTuple):
    """A marked text and the action in it.

    Attributes:
        result: The action, or the error if the text is not an action.
        start: Start of the text in the reply.
        end: End of the text.
        ignored: Texts of further native calls after it, which are not executed.
    """

    result: Action | ActionError
    start: int
    end: int
    ignored: tuple[str, ...] = ()


def read_from(reply: AnswerText, start: int, limit: int) -> MarkedAction | None:
    """Parse the action after a mark; return None if the mark is empty.

    The action is the rest of the line, or the next line that is not blank. If it starts with a fence or a
    call, it ends where the fence or the call ends.

    Args:
        reply: The reply.
        start: End of the mark.
        limit: Start of the next mark, or the end of the reply.
    """
    text, begin = reply.text, start
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    if end == start or _is_blank(text[start:end]):
        begin, end = _next_line(text, end, limit)
        if begin >= limit:
            return None
    elif text[begin] in " \t":
        begin = _next_text(text, begin, end)
    if text[begin] in "`~" and text.startswith(FENCES, begin):
        return _fenced(reply, begin, len(text))
    last = end >= len(text) or text[end:].isspace()
    if not last and reply.shape.find("nput", end) >= 0 and (found := _with_input(reply, begin, end)):
        return found
    style = reply.style
    whole = style.lines or (last and (not style.fence or style.end(text, begin, end) >= end))
    if whole and end <= limit and "&" not in text[begin:end]:
        try:  # fast path: in nearly all replies the line is the action
            action = reply.grammar.parse(text[begin:end].strip())
        except ActionError:
            pass
        else:
            if not style.lines or _JOINT_SIGN.search(reply.shape, begin, end) is None:
                return MarkedAction(action, begin, end)
            return _of_several(reply, begin, end, whole=True) or MarkedAction(action, begin, end)
    return _of_section(reply, begin, end, limit, below=begin > line_end(text, start))


def _is_blank(line: str) -> bool:
    """Return whether a line has only markup: emphasis, a rule or an HTML line break."""
    line = line.strip(_RULE)
    return not line or (line[0] == "<" and not _BREAK.sub("", line).strip(_RULE))


def _next_line(text: str, start: int, limit: int) -> tuple[int, int]:
    """Return the start and end of the next line that is not blank, or the limit twice if there is none."""
    while start < limit:
        begin = _next_text(text, start, limit)
        end = line_end(text, begin)
        if not _is_blank(text[begin:end]):
            return begin, end
        start = end
    return limit, limit


def _of_section(reply: AnswerText, start: int, end: int, limit: int, *, below: bool) -> MarkedAction | None:
    """Parse the action at a position, in the style of the environment's actions.

    Args:
        reply: The reply.
        start: Start of the text.
        end: End of its line.
        limit: Start of the next mark, or the end of the reply.
        below: Whether the line is below the line of the mark. If so, a label in it means that the mark is
            empty.
    """
    if not reply.style.lines:
        limit = invented_turn(reply.shape, start, next_label(reply.shape, start, limit))
        end = reply.style.end(reply.text, start, limit)
    found = _of_text(reply, start, min(end, limit))
    if below and found is not None and not isinstance(found.result, Action) and _is_label(reply, start):
        return None
    if found is not None and not reply.style.lines and not found.ignored and isinstance(found.result, Action):
        behind = _behind(reply, found.end, line_end(reply.text, found.end))
        ignored = (_as_ignored(*read_peeled(reply.piece(*part), reply.grammar)) for part in behind)
        return found._replace(ignored=tuple(ignored))
    return found


def line_end(text: str, start: int) -> int:
    """Return the end of the line that contains ``start``."""
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _next_text(text: str, start: int, limit: int) -> int:
    """Return the position of the next character that is not white space, or the limit if there is none."""
    while start < limit and text[start].isspace():
        start += 1
    return start


def _is_label(reply: AnswerText, start: int) -> bool:
    """Return whether the line at a position has any kind of label."""
    line = reply.text.rfind("\n", 0, start)
    return line >= 0 and next_label(reply.shape, line, start + _LONGEST_LABEL) == line


def read_all(
    reply: AnswerText, start: int, end: int, *, marked: bool = True, fenced: bool = False
) -> MarkedAction | None:
    """Parse the whole text between two positions as one action; return None if it is empty.

    Args:
        reply: The reply.
        start: Start of the text.
        end: End of the text.
        marked: Whether a mark encloses the text; False if the text is the whole reply.
        fenced: Whether a fence encloses the text.
    """
    text = reply.text
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    end = start + len(inside.strip())
    if start >= end:
        return None
    if text.startswith(FENCES, start):
        content = _fenced(reply, start, end, marked=marked)
        if content is not None:
            if content.end == end or _CLOSING.fullmatch(text, content.end, end):
                return content
        elif not text[start:end].rpartition(text[start : start + 3])[2].strip("`~ \t\n"):
            return None
    if not marked and (inner := unframed(text[start:end])) and "\n" not in inner:
        start = text.index(inner, start, end)
        end = start + len(inner)
    if "\n" not in text[start:end] or not reply.style.lines:
        found = _of_text(reply, start, end, marked=marked, fenced=fenced)
        if found is None or isinstance(found.result, (Action, ManyActions)) or "\n" not in text[start:end]:
            return found
    return _of_lines(reply, start, end) if marked else None


def _of_lines(reply: AnswerText, start: int, end: int) -> MarkedAction | None:
    """Parse the one action in marked text of several lines; other lines are ignored."""
    text, style = reply.text, reply.style
    call = _as_call(reply, start, end) or _with_input(reply, start, line_end(text, start))
    if call is not None:
        return call
    found: list[MarkedAction] = []
    place, tried = start, 0
    while place < end and tried < _MOST_LINES:
        stop = min(end, line_end(text, place)) if style.lines else style.end(text, place, end)
        if text[place:stop].strip():
            tried += 1
            line = _of_text(reply, place, stop)
            found += [line] if line else []
        place = stop + 1
    valid = [line for line in found if isinstance(line.result, Action)]
    if not valid:
        whole, _ = read_peeled(reply.piece(start, end), reply.grammar)
        return MarkedAction(whole, start, end) if found else None
    error = different([line.result for line in valid], "the mark holds")
    return MarkedAction(error, start, end) if error else valid[0]


def different(actions: list[Action | ActionError], where: str) -> ManyActions | None:
    """Return the error for several actions that differ; None if all are equal.

    Args:
        actions: At least one action.
        where: The container of the actions and its verb, for the error message.
    """
    for action in actions:
        if action != actions[0]:
            first, other = shown(str(actions[0])), shown(str(action))
            return ManyActions(f"{where} more than one action: {first} and {other}")
    return None


def _of_text(
    reply: AnswerText, start: int, end: int, *, marked: bool = True, fenced: bool = False
) -> MarkedAction | None:
    """Parse the text between two positions as an action; return None if it has no content.

    Args:
        reply: The reply.
        start: Start of the text.
        end: End of the text.
        marked: Whether a mark encloses the text; False if the text is the whole reply.
        fenced: Whether a fence encloses the text.
    """
    if marked and not fenced and not reply.style.lines:
        statement = _of_statement(reply, start, end)
        if statement is not None:
            return statement
    own = reply.style.mark.match(reply.text, start, end) if reply.style.mark else None
    tags = marked and (own is None or own.end() < end)  # otherwise the tags belong to the action
    result, plain = read_peeled(reply.piece(start, end), reply.grammar, tags=tags)
    several = None
    if not isinstance(
        result, (ManyActions, *(() if reply.style.lines else (Action,)))
    ) and _JOINT_SIGN.search(reply.shape, start, end):
        several = _of_several(reply, start, end, whole=isinstance(result, Action) or not marked)
    if several is not None and not marked:  # the whole reply is to be one action
        texts = ", ".join([str(several.result), *several.ignored])
        several = MarkedAction(ManyActions(f"the reply holds several actions: {shown(texts)}"), start, end)
    if several is not None or isinstance(result, Action) or not marked:
        return several or MarkedAction(result, start, end)
    if is_empty(plain):
        return None
    return (
        _as_call(reply, start, end)
        or _of_own_mark(reply, start, end)
        or _shortened(reply, start, end)
        or MarkedAction(result, start, end)
    )


def _shortened(reply: AnswerText, start: int, end: int) -> MarkedAction | None:
    """Return the longest prefix of a line that is an action before punctuation; None if there is none."""
    if not reply.style.lines:
        return None
    cuts = [found.start() for found in islice(_CUT.finditer(reply.shape, start + 1, end), _MOST_CUTS)]
    for cut in reversed(cuts):
        result, _ = read_peeled(reply.piece(start, cut), reply.grammar)
        if isinstance(result, Action):
            closing = reply.shape.find(")", cut, end) if reply.shape.startswith("(", cut + 1) else -1
            if closing >= 0 and reply.grammar.knows(reply.piece(start, closing + 1)):
                return None  # the parenthesis belongs to the action, and other text is behind it
            return MarkedAction(result, start, cut)
    return None


def _of_statement(reply: AnswerText, start: int, end: int) -> MarkedAction | None:
    """Return the action that ends before the end of a text, such as a statement with prose behind it.

    Other actions with brackets of their own may only have signs behind them.
    """
    style = reply.style
    start = _next_text(reply.text, start, end)
    stop = min(style.end(reply.text, start, end), end)
    rest = reply.text[stop:end]
    if not rest.strip() or not (style.fence or is_ending(rest)):
        return None
    result, _ = read_peeled(reply.piece(start, stop), reply.grammar)
    if not isinstance(result, Action):
        return None
    behind = (read_peeled(reply.piece(*part), reply.grammar) for part in _behind(reply, stop, end))
    return MarkedAction(result, start, stop, tuple(_as_ignored(*other) for other in behind))


def _of_several(reply: AnswerText, start: int, end: int, *, whole: bool = False) -> MarkedAction | None:
    """Return the first of several actions on a line, and the others as ignored; None for one action.

    Args:
        reply: The reply.
        start: Start of the text.
        end: End of the text.
        whole: Whether each part must be an action, because the text may be one or nothing marks it.
    """
    parts = _parts(reply, start, end)
    if not parts:
        return None
    results = [read_peeled(reply.piece(*part), reply.grammar) for part in parts]
    first = results[0][0]
    if not isinstance(first, Action) or len(results) == 1:
        return None
    if whole and not all(isinstance(result, Action) for result, _ in results):
        return None
    return MarkedAction(first, *parts[0], tuple(_as_ignored(*other) for other in results[1:]))


def _parts(reply: AnswerText, start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of a text's parts, each of which begins like an action; none for one part."""
    grammar, text, shape = reply.grammar, reply.text, reply.shape
    parts: list[tuple[int, int]] = []
    if not reply.style.lines:
        stop = min(reply.style.end(text, start, end), end)
        behind = _behind(reply, stop, end)
        return [(start, stop), *behind] if behind else []
    for joint in islice(_JOINT.finditer(shape, start + 1, end), _MOST_CUTS):
        first = text[start : min(end, start + _LONGEST_HEAD)].lstrip(_SIGNS_BEFORE)
        head = max((len(each) for each in grammar.heads if first.lower().startswith(each)), default=0)
        rest = text[joint.end() : min(end, joint.end() + _LONGEST_HEAD)].lstrip(_SIGNS_BEFORE)
        if _LIST_NUMBER.fullmatch(text, start, joint.start()):
            continue
        if joint.start() - start >= head and grammar.begins(rest):
            parts.append((start, joint.start()))
            start = joint.end()
    return [*parts, (start, end)] if parts else []


def _behind(reply: AnswerText, start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of the actions that directly follow an action that may have several lines."""
    found: list[tuple[int, int]] = []
    while len(found) < _MOST_CUTS:
        joint = _JOINT.match(reply.shape, start, end) or _GAP.match(reply.shape, start, end)
        begin = joint.end() if joint else end
        if begin >= end or not reply.grammar.begins(reply.text[begin:end]):
            break
        start = min(max(reply.style.end(reply.text, begin, end), begin + 1), end)
        found.append((begin, start))
    return found


def _as_ignored(result: Action | ActionError, text: str) -> str:
    return (str(result) if isinstance(result, Action) else text)[:MAX_IGNORED_CHARS]


def _of_own_mark(reply: AnswerText, start: int, end: int) -> MarkedAction | None:
    """Return the action in the environment's own mark, if the text has exactly one; otherwise None."""
    if reply.style.mark is None:
        return None
    spans = [found.span() for found in islice(reply.style.mark.finditer(reply.text, start, end), 2)]
    if len(spans) != 1 or spans[0] == (start, end):
        return None
    found = read_all(reply, *spans[0])
    return found if found and isinstance(found.result, Action) else None


def _fenced(reply: AnswerText, start: int, limit: int, *, marked: bool = True) -> MarkedAction | None:
    """Parse the content of the fence at a position; an unclosed fence ends at the limit."""
    text = reply.text
    opening = _FENCE.match(text, start)
    begin = opening.end() if opening else start
    closing = text.find(text[begin - 3 : begin], begin, limit)
    end = limit if closing < 0 else closing
    language = _LANGUAGE_LINE.match(text, begin, limit)
    if language and _opens(text, own := _next_text(text, language.end(), limit), limit):
        return _fenced(reply, own, limit, marked=marked)  # the action's own fence
    if language and not text[language.end() : end].strip():
        info = language[0].strip()
        if info.lower() in _LANGUAGES or not reply.grammar.knows(info):
            return None
    elif language:
        begin = language.end()
    elif (word := _LANGUAGE_WORD.match(text, begin, end)) and text[word.end() : end].strip():
        begin = word.end()
    inside = read_all(reply, begin, end, marked=marked, fenced=True)
    if inside is None or isinstance(inside.result, Action):
        return inside
    return inside._replace(end=end if closing < 0 else closing + 3)


def _opens(text: str, start: int, limit: int) -> bool:
    """Return whether a fence with text after it on its line begins at a position."""
    if not text.startswith(FENCES, start):
        return False
    return bool(text[start : min(line_end(text, start), limit)].strip("`~ \t"))


def _with_input(reply: AnswerText, start: int, end: int) -> MarkedAction | None:
    """Return the call from a function name and ``Action Input:`` on the next line; None if there is none.

    Args:
        reply: The reply.
        start: Start of the name.
        end: End of its line.
    """
    text, grammar = reply.text, reply.grammar
    label = INPUT.match(reply.shape, _next_text(text, end, len(text)))
    if label is None:
        return None
    name = read_peeled(reply.piece(start, end), grammar)[1].removesuffix("()").strip()
    if not grammar.has_function(name):
        return None
    line = line_end(text, label.end())
    opening = _INPUT_OPENING.match(text, label.end())
    place = opening.end() if opening else label.end()
    try:
        arguments, end = decode(text, place)
        if not isinstance(arguments, dict) and text[end:line].strip(" \t`"):
            raise NotJson("text follows the object on its line", meant=False)
    except NotJson as error:
        if error.meant and text[place : place + 1] in {"{", "｛", "["}:
            return MarkedAction(
                BadArguments(f"the JSON of `Action Input:` cannot be read: {error}"), start, line
            )
        arguments, end = reply.piece(label.end(), line), line
    try:
        arguments = {} if arguments in _NO_INPUT else arguments_of(arguments, name, grammar)
        return MarkedAction(grammar.from_call(name, arguments), start, end)
    except ActionError as error:
        return MarkedAction(error, start, end)


def _as_call(reply: AnswerText, start: int, end: int) -> MarkedAction | None:
    """Return the call at a position in JSON, a native notation or Python; None if there is none."""
    if (call := call_at(reply.text, start, end, reply.grammar)) is not None:
        others = calls_behind(call, reply.text, reply.grammar, invented_turn(reply.shape, call.end))
        return MarkedAction(call.result, call.start, call.end, others)
    piece = reply.piece(start, end).strip("*_` \t.;")
    if piece.endswith((")", ")]")) and _PYTHON_CALL.fullmatch(piece):
        called = single_call(piece, reply.grammar)
        aside = isinstance(called, ActionError) and " (" in piece.partition(")")[0]
        return None if called is None or aside else MarkedAction(called, start, end)
    return None
