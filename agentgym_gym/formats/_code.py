"""Python calls, parsed with :mod:`ast` and never executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from agentgym_gym._json import NotJson, exact_number
from agentgym_gym._text import shown
from agentgym_gym.actions import MAX_ACTION_CHARS, Action, Grammar
from agentgym_gym.errors import ActionError, BadArguments, ManyActions, NoAction
from agentgym_gym.formats._dialects import MODULES
from agentgym_gym.literals import plain_value, statements

__all__ = [
    "INFO_STRING",
    "Block",
    "CodeCall",
    "action_of",
    "blocks",
    "calls_in_code",
    "calls_known",
    "single_call",
]

_FENCE = re.compile(r"`{3,}|~{3,}")
_ATTRIBUTE = r"[ \t]+[\w-]+=(?:\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'|[^\s`]{1,80})"
_ATTRIBUTES = rf"(?:[ \t]*\{{[^{{}}\n]{{0,80}}\}}|(?:{_ATTRIBUTE})+)?[ \t]*"
INFO_STRING = rf"[ \t]*[\w+#.-]*{_ATTRIBUTES}"
"""Pattern of the text behind an opening fence: a language and attributes."""

_LANGUAGE = re.compile(rf"[ \t]*([\w+#.-]*){_ATTRIBUTES}\Z", re.ASCII)
_BESIDE = re.compile(r"(?:python3?|py|tool_code|tool_call|code|json)\s+", re.IGNORECASE)
_SESSION = re.compile(r"^[^\S\n]*>>>", re.MULTILINE)
_PROMPT = re.compile(r"[ \t]*(?:>>>|\.\.\.|In ?\[\d*\]:) ?")
_OUTPUTS = frozenset(
    {"output", "outputs", "stdout", "result", "results", "console", "tool_output", "tool_outputs"}
)
_TOKEN = re.compile(
    r"\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    # An unclosed string ends with its line: searching for its end again from each quote would take too long.
    r"|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|\#[^\n]*|\\\n|[()\[\]{}\n]",
    re.DOTALL,
)
_TYPOGRAPHIC = str.maketrans(
    "‘’“”（），＝：｛｝［］；\u00a0\u202f\u3000", "''\"\"(),=:{}[];   ", "\u200b\u200c\u200d\ufeff\u2060"
)
_LABEL = re.compile(
    r"(?:[ \t>*_#]*(?:next |final |my )?(?:action|code|call|function call|tool call|answer|tool_code|python)"
    r"[*_`]*[:：][*_ \t]*)?(?:<\|?[\w:]{1,40}\|?>\s*)*",
    re.IGNORECASE,
)
_TAGS_BEHIND = re.compile(r"(?:<\|?/?[\w:]{1,40}\|?>\s*)*\Z")
_COMPOUND = re.compile(
    r"(?:if|for|while|def|with|try|else|elif|class|async|except|finally|match|case|unless|when|once|@)(?!\w)",
    re.IGNORECASE,
)
_ODD_NUMBER = re.compile(r"[0-9]_|[0-9][eE][+-]?[0-9]{2}|0[xXoObB]|[0-9.]{16}|[0-9][jJ]")
_SIMPLE = (
    ast.Expr,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Import,
    ast.ImportFrom,
    ast.Pass,
)
_TRACEBACK = re.compile(r"^[ \t]*(?:File \"[^\"\n]*\", line \d+|Traceback \()", re.MULTILINE)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_WRAPPINGS = 3  # `print(await get())`
_MOST = 200  # statements that are parsed
_NEAR = 80  # characters next to a fence that are examined
_CONTROL = re.compile(
    r"(?:return|raise|break|continue|assert|yield|if|for|while|with|def|class|try|else|elif|except|finally|match|async)\b"
)
_CALL_ALONE = re.compile(r"(?:\*\*|`)*(.*\))[.。!！;；*_`]*\Z", re.DOTALL)
_WORTH_READING = re.compile("[(（=]|\"\"\"|'''")
_SPANNING = re.compile(r"[()\[\]{}\"'\\]")  # characters that can continue a statement on the next line
_CALLED = re.compile(r"\b([A-Za-z_]\w*)[ \t]*\(")


class Block(NamedTuple):
    """A part of a reply.

    Attributes:
        code: The text.
        language: The language tag of the fence, in lower case; None outside of a fence.
        start: Start of the part in the reply, including the fence.
        end: End of the part.
    """

    code: str
    language: str | None
    start: int
    end: int

    @property
    def is_output(self) -> bool:
        """Whether the block is program output, based on its language tag or a traceback in it."""
        return self.language in _OUTPUTS or _TRACEBACK.search(self.code) is not None


class CodeCall(NamedTuple):
    """A call of a function by its plain name.

    Attributes:
        name: The name of the function.
        args: Values of the positional arguments.
        keywords: Values of the keyword arguments.
    """

    name: str
    args: list[Any]
    keywords: dict[str, Any]


def blocks(text: str) -> list[Block]:
    """Split a reply into its fenced blocks and the text between them."""
    found, start, inside, opened = [], 0, False, 0
    for fence in [*_FENCE.finditer(text), None]:
        if fence and inside and _is_inside_a_line(text, start, fence):
            continue
        part = text[start : fence.start() if fence else len(text)]
        end = fence.end() if fence else len(text)
        if inside:
            language, newline, code = part.partition("\n")
            if newline and (info := _LANGUAGE.match(language)):
                found.append(Block(code, info[1].lower(), opened, end))
            else:
                beside = _BESIDE.match(part)
                found.append(Block(part[beside.end() if beside else 0 :], "", opened, end))
        elif part.strip():
            found.append(Block(part, None, start, end - (len(fence[0]) if fence else 0)))
        if fence:
            opened, start, inside = fence.start(), fence.end(), not inside
    return found


def _is_inside_a_line(text: str, start: int, fence: re.Match[str]) -> bool:
    """Return whether a fence is in the middle of a code line, as in a comment: it does not end the block."""
    start_of_line = max(start, fence.start() - _NEAR)
    before = text[max(start_of_line, text.rfind("\n", start_of_line, fence.start())) : fence.start()]
    after = text[fence.end() : fence.end() + _NEAR].partition("\n")[0]
    return "\n" in text[start : start + _NEAR] and bool(before.strip()) and bool(after.strip())


def calls_in_code(
    code: str, grammar: Grammar, *, prose: bool = True, several: bool = False
) -> list[CodeCall]:
    """Return the calls in a piece of code, each a separate statement.

    Args:
        code: The code.
        grammar: The actions that the code may contain.
        prose: Whether to skip lines that are not Python and call no function of the grammar.
        several: Whether more than one call is allowed.

    Raises:
        ManyActions: There is more than one call, or the call is nested in other code.
        NoAction: A line is not Python, and ``prose`` is False.
        BadArguments: A line with a call is not Python, or an argument is not a literal.
    """
    if ">>>" in code and _SESSION.search(code):  # a console session with its output
        code = "\n".join(line[found.end() :] for line in code.split("\n") if (found := _PROMPT.match(line)))
    calls: list[CodeCall] = []
    values: dict[str, ast.expr] = {}
    budget = _MOST
    worth = -1  # position of the next character of a call or assignment: one search serves many lines
    for start, end in _statements(code):
        worth = worth if worth >= start else _next(_WORTH_READING, code, start)
        if worth >= end and prose and not _CONTROL.match(code, start, end):
            continue
        text = code[start:end].rstrip()
        text = _without_label(text) if prose else text
        budget -= 1
        if budget < 0 or len(text) > MAX_ACTION_CHARS:
            raise BadArguments("the code is too long to be read")
        parsed = _parsed(text)
        if parsed is None:
            _check_prose(text, grammar, prose=prose)
            continue
        for node in parsed:
            called = _calls_of(node)
            if not called:
                _check_aside(node, text, grammar, values)
            calls += [_read(call, text, values) for call in called]
        if len(calls) > 1 and not several:
            raise ManyActions(f"the code has more than one call: {calls[0].name} and {calls[1].name}")
    return calls


def calls_known(code: str, grammar: Grammar) -> bool:
    """Return whether a text contains a function name of the grammar before an opening parenthesis."""
    return any(grammar.has_function(called[1]) for called in _CALLED.finditer(code))


def single_call(code: str, grammar: Grammar) -> Action | ActionError | None:
    """Return the action of a text that is exactly one call; None for other text."""
    try:
        calls = calls_in_code(code, grammar, prose=False)
    except BadArguments as error:
        called = _CALLED.match(code.strip())
        return error if called and grammar.has_function(called[1]) else None
    except ActionError:
        return None
    return action_of(calls[0], grammar) if calls else None


def action_of(call: CodeCall, grammar: Grammar) -> Action | ActionError:
    """Return the action of a call, or the error if it is not an action."""
    try:
        names = grammar.signature(call.name)
        if len(call.args) > len(names):
            raise BadArguments(f"{call.name} takes {len(names)} arguments, not {len(call.args)}")
        by_place = dict(zip(names, call.args, strict=False))
        if twice := by_place.keys() & call.keywords:
            raise BadArguments(f"{call.name}: the argument {', '.join(twice)} is given twice")
        return grammar.from_call(call.name, by_place | call.keywords)
    except ActionError as error:
        return error


def _statements(code: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each statement: a line, or more with open brackets or an indented body."""
    span: tuple[int, int] | None = None
    depth = start = 0
    base: int | None = None
    spanning = -1  # position of the next character that can continue a statement on the next line
    while start <= len(code):
        end = code.find("\n", start)
        end = len(code) if end < 0 else end
        spanning = spanning if spanning >= start else _next(_SPANNING, code, start)
        for token in _TOKEN.finditer(code, start) if depth or spanning < end else ():
            end = len(code)
            letter = token[0]
            if letter in _OPENING:
                depth += 1
            elif letter in _CLOSING:
                depth = max(0, depth - 1)
            elif letter == "\n" and not depth:
                end = token.start()
                break
        line = code[start:end]
        indent = len(line) - len(line.lstrip(" \t"))
        if indent < len(line) and line[indent] != "#":
            base = indent if base is None else base
            if span and indent > base and _COMPOUND.match(code, *span):
                span = (span[0], end)
            else:
                if span:
                    yield span
                span = (start + indent, end)
        start = end + 1
    if span:
        yield span


def _next(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.search(text, start)
    return found.start() if found else len(text) + 1


def _parsed(text: str) -> list[ast.stmt] | None:
    """Parse a text into statements, with typographic quotes and brackets allowed; None if it is not code."""
    parsed = statements(text)
    if parsed is None and (plain := text.translate(_TYPOGRAPHIC)) != text:
        return statements(plain)
    return parsed


def _without_label(text: str) -> str:
    """Return a statement without a leading ``Action:`` and enclosing backticks."""
    if label := _LABEL.match(text):
        text = text[label.end() :]
    if text.endswith(">"):
        text = text[: _TAGS_BEHIND.search(text).start()]  # type: ignore[union-attr]  # it matches nothing too
    alone = _CALL_ALONE.match(text)
    return alone[1] if alone else text


def _check_prose(text: str, grammar: Grammar, *, prose: bool) -> None:
    """Check that a line that is not Python is allowed and calls no function."""
    if not prose:
        raise NoAction(f"a line is not Python: {shown(text)}")
    if '"""' in text or "'''" in text:
        raise BadArguments("a string in the code has no end")
    if calls_known(text, grammar):
        raise BadArguments(f"a line of the code is not Python: {shown(text)}")


def _check_aside(node: ast.stmt, text: str, grammar: Grammar, values: dict[str, ast.expr]) -> None:
    """Check that a statement does not affect the call; record the value that it assigns to a name."""
    called = [each for each in ast.walk(node) if isinstance(each, ast.Call)] if "(" in text else []
    shows = (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name_of(node.value) == "print"
    )
    if any(grammar.has_function(_name_of(each)) for each in called) or not isinstance(node, _SIMPLE):
        raise ManyActions("the call must be a statement of its own")
    if len(called) > shows:
        raise ManyActions("the code does more than call one function")
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and not _ODD_NUMBER.search(text):
        values[target.id] = node.value
    elif not isinstance(node, ast.Expr):
        values.clear()  # the statement may change any name


def _calls_of(node: ast.stmt) -> list[ast.Call]:
    """Return the calls that make up a statement; it may assign, await, print or return their results."""
    if not isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return)):
        return []
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target, node.annotation]
        if any(isinstance(each, ast.Call) for target in targets for each in ast.walk(target)):
            return []
    values = [node.value]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.List):
        values = [*node.value.elts]
    calls = [call for value in values if (call := _call_of(value)) is not None]
    return calls if len(calls) == len(values) else []


def _call_of(value: ast.expr | None) -> ast.Call | None:
    for _ in range(_WRAPPINGS):
        if isinstance(value, ast.Await):
            value = value.value
        elif isinstance(value, ast.Call) and _name_of(value) == "print" and _is_one(value):
            value = value.args[0]
    return value if isinstance(value, ast.Call) and _name_of(value) not in {"", "print"} else None


def _is_one(call: ast.Call) -> bool:
    return len(call.args) == 1 and not call.keywords and isinstance(call.args[0], (ast.Call, ast.Await))


def _name_of(call: ast.Call) -> str:
    """Return the name of the called function without a tool module; "" for any other expression."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        if call.func.attr == "call":  # Llama's syntax for built-in tools
            return call.func.value.id
        return call.func.attr if call.func.value.id.lower() in MODULES else ""
    return ""


def _read(call: ast.Call, text: str, values: dict[str, ast.expr]) -> CodeCall:
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    if len({keyword.arg for keyword in call.keywords}) < len(call.keywords):
        raise BadArguments("an argument is given twice")
    if len(given) < len(call.keywords):
        for unpacked in (keyword.value for keyword in call.keywords if keyword.arg is None):
            for key, value in _pairs(values.get(unpacked.id) if isinstance(unpacked, ast.Name) else unpacked):
                if key in given:
                    raise BadArguments(f"the argument {key} is given twice")
                given[key] = value
    if _ODD_NUMBER.search(text):
        _check_numbers(call, text)
    args = [_plain(node, values) for node in call.args]
    return CodeCall(_name_of(call), args, {name: _plain(node, values) for name, node in given.items()})


def _pairs(node: ast.expr | None) -> Iterator[tuple[str, ast.expr]]:
    if not isinstance(node, ast.Dict):
        raise BadArguments("an unpacked argument is not a literal mapping with text keys")
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise BadArguments("an unpacked argument is not a literal mapping with text keys")
        yield key.value, value


def _plain(node: ast.expr, values: dict[str, ast.expr]) -> Any:
    if isinstance(node, ast.Name):
        node = values.get(node.id, node)
    try:
        return plain_value(node)
    except ValueError:
        raise BadArguments("an argument is not a plain value") from None


def _check_numbers(node: ast.AST, text: str) -> None:
    """Check that each number is written in plain decimal digits and has exactly that value.

    Raises:
        BadArguments: A number is written differently.
    """
    lines = text.encode("utf-8", "replace").split(b"\n")
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, (int, float, complex)):
            if isinstance(each.value, bool):
                continue
            written = lines[each.lineno - 1][each.col_offset : each.end_col_offset].decode()
            try:
                same = exact_number(written) == each.value
            except NotJson:
                same = False
            if not same:
                raise BadArguments("a number is not written in plain decimal digits")
