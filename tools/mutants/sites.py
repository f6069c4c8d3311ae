"""The places where a fault can be planted, found in the syntax tree; a seed draws among them."""

from __future__ import annotations

import ast
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type, tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
}
ARITHMETIC: dict[type, tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
}
NOT_MUTATED_FIELDS = {"annotation", "returns", "decorator_list", "type_params", "bases"}
LOGS = re.compile(r"(_?log|logger|warnings)\.\w+$|log$")
TIME_LIMIT = re.compile(r"second|timeout|deadline|sleep|limit_s$", re.IGNORECASE)
ANY_LINE = (1, 1_000_000)
Change = tuple[str, "ast.AST | tuple[int, int]", str]


@dataclass(frozen=True)
class Mutant:
    """One fault: the bytes ``start`` to ``end`` of a file are replaced."""

    file: str
    line: int
    """The line that differs."""
    lines: tuple[int, int]
    """The first and last line that a test must run to reach the fault; all if it is met while importing."""
    operator: str
    start: int
    end: int
    before: str
    after: str
    where: str
    """The function, and which of the equal changes in it: the name of the fault while lines move."""

    @property
    def key(self) -> str:
        """A name of the fault that stays when lines move."""
        return f"{self.file}|{self.where}|{self.operator}|{self.before}|{self.after}"

    def apply(self, source: bytes) -> bytes:
        """Return the file with the fault in it."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def drawn(root: Path, targets: list[str], count: int, seed: int) -> list[Mutant]:
    """Draw N mutants; a larger count keeps those of a smaller one, and most stay when code changes."""
    mutants = [
        mutant
        for target in targets
        for path in sorted([root / target] if target.endswith(".py") else (root / target).rglob("*.py"))
        for mutant in mutants_of(path.relative_to(root).as_posix(), path.read_bytes())
    ]
    return sorted(mutants, key=lambda each: hashlib.sha256(f"{seed}|{each.key}".encode()).digest())[:count]


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """Find every fault that can be planted in a module."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source))
    return finder.mutants


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str, source: bytes) -> None:
        self.mutants: list[Mutant] = []
        self._file = file
        self._source = source
        self._line_starts = [0, *(match.end() for match in re.finditer(rb"\n", source))]
        self._names: list[str] = []  # of the classes and functions around
        self._depth = 0  # how many of them are functions
        self._first_line = 1  # of the statement
        self._equal: Counter[str] = Counter()
        self._constants = True  # whether numbers and the like may change here

    def visit(self, node: ast.AST) -> None:
        if _excluded(node):
            return
        function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        first_line, constants = self._first_line, self._constants
        self._depth += function
        around = len(self._names)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._names.append(node.name)
        if isinstance(node, ast.stmt):
            self._first_line = node.lineno
        self._constants = constants and not _sets_time_limit(node)
        for change in self._changes(node):
            self._add(*change)
        self._visit_children(node)
        self._first_line, self._constants = first_line, constants
        self._depth -= function
        del self._names[around:]

    def _visit_children(self, node: ast.AST) -> None:
        if isinstance(node, ast.arguments):
            self._visit_defaults(node)
            return
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and name not in NOT_MUTATED_FIELDS:
                    self.visit(child)

    def _visit_defaults(self, node: ast.arguments) -> None:
        positional = [*node.posonlyargs, *node.args]
        pairs = [
            *zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True),
            *zip(node.kwonlyargs, node.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            if default is not None and not TIME_LIMIT.search(argument.arg):
                self._depth -= 1  # it is evaluated with the definition
                self.visit(default)
                self._depth += 1

    def _changes(self, node: ast.AST) -> Iterator[Change]:  # noqa: C901, PLR0912 - one branch for each kind of fault
        match node:
            case ast.Compare():
                yield from self._comparisons(node)
            case ast.BoolOp(op=op, values=values):
                text, other = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                changed = self._text(values[0])
                for left, right in itertools.pairwise(values):
                    changed += self._between(left, right, rf"\b{text}\b", other) + self._text(right)
                yield "boolean", (self._start(values[0]), self._end(values[-1])), changed
            case ast.UnaryOp(op=ast.Not()):
                yield "boolean", node, self._text(node).removeprefix("not").lstrip()
            case (
                ast.BinOp(left=left, op=op, right=right) | ast.AugAssign(target=left, op=op, value=right)
            ) if _is_arithmetic(op, left, right):
                yield self._swapped("arithmetic", left, right, *ARITHMETIC[type(op)])
            case ast.Constant(value=value) if self._constants and not isinstance(value, (str, bytes, float)):
                if isinstance(value, bool):
                    yield "constant", node, str(not value)
                elif isinstance(value, int):
                    yield "constant", node, str(value + 1)
                elif value is None:
                    yield "constant", node, "True"
            case ast.Break():
                yield "break", node, "continue"
            case ast.Continue():
                yield "break", node, "break"
            case ast.ExceptHandler(body=body) if not isinstance(body[0], ast.Pass):
                yield "handler", self._block(body), "pass"
            case ast.With(items=[item]) | ast.AsyncWith(items=[item]):
                yield from self._never_released(node, item)
            case ast.stmt() if _is_effect(node):
                yield "statement", node, "pass"
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield "statement", node, "return None"
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            yield from self._forced(node.test, while_=isinstance(node, ast.While))
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield from self._forced(test)
        elif isinstance(node, ast.Try) and node.finalbody:
            yield "release", self._block(node.finalbody), "pass"

    def _comparisons(self, node: ast.Compare) -> Iterator[Change]:
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            text, other = COMPARISONS[type(op)]
            if text[0].isalpha():
                text = rf"\b{text}\b"
            yield self._swapped("comparison", left, right, text, other)

    def _forced(self, test: ast.expr, *, while_: bool = False) -> Iterator[Change]:
        for value in ("False",) if while_ else ("True", "False"):
            if self._text(test) != value:
                yield "condition", test, value

    def _never_released(self, node: ast.With | ast.AsyncWith, item: ast.withitem) -> Iterator[Change]:
        # The body's resource is entered, and never left.
        entered = f"({self._text(item.context_expr)}).__enter__()"
        if isinstance(node, ast.AsyncWith):
            entered = f"await {entered.replace('__enter__', '__aenter__')}"
        if isinstance(item.optional_vars, ast.Name):
            entered = f"{item.optional_vars.id} := {entered}"
        elif item.optional_vars is not None:
            return
        end = self._end(item.optional_vars or item.context_expr)
        end += len(self._source[end:]) - len(self._source[end:].lstrip(b") \n\t,"))
        yield "release", (self._start(node), end), f"if [{entered}]"

    def _add(self, operator: str, span: ast.AST | tuple[int, int], after: str) -> None:
        start, end = span if isinstance(span, tuple) else (self._start(span), self._end(span))
        before = self._source[start:end].decode()
        name = ".".join(self._names)
        self._equal[f"{name}|{operator}|{before}|{after}"] += 1
        line = self._source.count(b"\n", 0, start) + 1
        last = self._source.count(b"\n", 0, end) + 1
        lines = (line, line) if operator in ("handler", "release") else (min(self._first_line, line), last)
        if not self._depth:
            lines = ANY_LINE
        where = f"{name}#{self._equal[f'{name}|{operator}|{before}|{after}']}"
        self.mutants.append(Mutant(self._file, line, lines, operator, start, end, before, after, where))

    def _swapped(self, name: str, left: ast.AST, right: ast.AST, operator: str, other: str) -> Change:
        text = self._text(left) + self._between(left, right, operator, other) + self._text(right)
        return name, (self._start(left), self._end(right)), text

    def _between(self, left: ast.AST, right: ast.AST, pattern: str, other: str) -> str:
        text = self._source[self._end(left) : self._start(right)].decode()
        return re.sub(pattern, other, text, count=1)

    def _block(self, body: list[ast.stmt]) -> tuple[int, int]:
        return self._start(body[0]), self._end(body[-1])

    def _text(self, node: ast.AST) -> str:
        return self._source[self._start(node) : self._end(node)].decode()

    def _start(self, node: ast.AST) -> int:
        assert isinstance(node, (ast.stmt, ast.expr))
        return self._line_starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.AST) -> int:
        assert isinstance(node, (ast.stmt, ast.expr))
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._line_starts[node.end_lineno - 1] + node.end_col_offset


def _excluded(node: ast.AST) -> bool:  # noqa: PLR0911 - one return for each kind
    match node:
        case ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass():
            return True
        case ast.If(test=test):  # its other branch has nothing to import
            return "TYPE_CHECKING" in ast.unparse(test)
        case ast.Expr(value=ast.Call(func=func)):
            return bool(LOGS.search(ast.unparse(func)))
        case ast.FunctionDef(name=name):
            return name == "__repr__"
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return isinstance(target, ast.Name) and target.id.startswith("__")
        case ast.Subscript(value=value):  # a type, as in Callable[[], None]
            return bool(re.match(r"[A-Z]|dict$|list$|tuple$|type$", ast.unparse(value).rpartition(".")[2]))
        case ast.BinOp(op=ast.BitOr()) | ast.MatchSingleton() | ast.MatchValue():
            return True
    return False


def _sets_time_limit(node: ast.AST) -> bool:
    match node:
        case (
            ast.keyword(arg=str(name))
            | ast.Call(func=ast.Attribute(attr=name))
            | ast.Call(func=ast.Name(id=name))
        ):
            return bool(TIME_LIMIT.search(name))
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return bool(TIME_LIMIT.search(ast.unparse(target)))
    return False


def _is_arithmetic(op: ast.operator, left: ast.expr, right: ast.expr) -> bool:
    texts = any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, (str, bytes)))
        for side in (left, right)
    )
    return type(op) in ARITHMETIC and not texts


def _is_effect(node: ast.stmt) -> bool:
    """Whether it is a statement that can be left out, so that something is not done."""
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            return True
        case ast.Assign(targets=[target]) | ast.AugAssign(target=target):
            return isinstance(target, (ast.Attribute, ast.Subscript))
        case ast.AnnAssign(target=ast.Attribute(), value=ast.expr()):
            return True
    return False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
