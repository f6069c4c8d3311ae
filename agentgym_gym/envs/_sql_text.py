"""The text of SQL statements: their tokens, their end, and what cannot be one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing

from agentgym_gym._text import CONTROLS, UNSEEN

__all__ = [
    "OPENING_CHARS",
    "UNFINISHED",
    "begins_query",
    "end_of_statement",
    "first_statement",
    "has_prose",
    "is_closed",
    "is_complete",
    "is_empty",
    "plain_text",
    "tokens_of",
    "without_opening",
]

# An unclosed token extends to the end, so no text is scanned twice. A byte order mark counts as white space.
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)"  # comments
    r"|'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|`[^`]*(?:`|\Z)|\[[^\]]*(?:\]|\Z)"  # quoted
    r"|\w+|[^\s\ufeff]",
    re.DOTALL,
)
_QUOTES = {"'": "'", '"': '"', "`": "`", "[": "]"}
OPENING_CHARS = 1_000  # prefix of a text that is searched for the start of a statement
_OPENING = re.compile(r"(?:```[`\s]*)?(?:sql(?:ite3?)?\s+)?", re.IGNORECASE | re.ASCII)

# Tokens that cannot end a statement.
UNFINISHED = frozenset(
    {
        *("select", "from", "join", "inner", "outer", "left", "right", "cross", "natural", "where"),
        *("and", "or", "on", "by", "group", "order", "having", "as", "in", "not", "like", "between"),
        *("union", "all", "distinct", "except", "intersect", "limit", "offset", "case", "when"),
        *("then", "else", "with", "using", "is", "set", "values", ",", "=", "<", ">", "(", "+", "-"),
        *("/", "|", "."),
    }
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEYWORDS = _words(
    """abort action add after all alter always analyze and as asc attach autoincrement before begin between
    by cascade case cast check collate column commit conflict constraint create cross current
    current_date current_time current_timestamp database default deferrable deferred delete desc detach
    distinct do drop each else end escape except exclude exclusive exists explain fail filter first
    following for foreign from full generated glob group groups having if ignore immediate in index
    indexed initially inner insert instead intersect into is isnull join key last left like limit match
    materialized natural no not nothing notnull null nulls of offset on or order others outer over
    partition plan pragma preceding primary query raise range recursive references regexp reindex
    release rename replace restrict returning right rollback row rows savepoint select set table temp
    temporary then ties to transaction trigger unbounded union unique update using vacuum values view
    virtual when where window with within without"""
)
"""Keywords of SQLite, in lower case."""

# Keywords at the start of a line that continues a statement.
_CLAUSES = _words(
    """and as asc between case collate cross desc else end escape except exists filter from full glob group
    having in inner intersect into is join left like limit natural not null offset on or order outer
    over partition regexp returning right rows select then union using values when where window with"""
)
# Keywords after which a parenthesis with a space before it is no part of a statement.
_LAST = frozenset({"asc", "desc", "null", "end", "first", "last", "isnull", "notnull"})
_FUNCTIONS = _words(
    """abs avg cast ceil ceiling changes char coalesce concat count cume_dist date datetime dense_rank exp
    first_value floor format glob group_concat hex ifnull iif instr julianday json json_array json_each
    json_extract json_group_array json_object lag last_value lead length like likelihood ln log lower
    ltrim max min mod nth_value ntile nullif percent_rank pi pow power printf quote random rank replace
    round row_number rtrim sign sqrt strftime substr substring sum time timediff total trim trunc typeof
    unicode unixepoch upper"""
)
_BEFORE_SELECT = frozenset({"union", "all", "except", "intersect", ")", "as", "explain"})
_JOINTS = frozenset({"and", "then", "next", ",", "&", "|", "-", "+", "=", ">"})  # between two statements
_SEVERAL = 2
_SIGNS = frozenset("()+-*/|.,;=<>%&~!_[]\"'`:?@$\\")  # a backslash escapes a sign of Markdown
_KNOWN = _KEYWORDS | _SIGNS
_MOST_PLAIN_WORDS = 2  # in a row: a table and its alias
_PROSE = frozenset({"the", "of", "this", "these", "because", "which"})  # words that no query has
_FIRST_WORDS = _words(
    """alter analyze attach begin commit create delete detach drop end explain insert pragma reindex release
    replace rollback savepoint select update vacuum values with"""
)
"""First words of statements, in lower case."""
_SYNTAX_ERROR = re.compile("syntax error|incomplete input|unrecognized token|null character")
_LONGEST = 10_000  # characters of a statement that SQLite parses here
_MOST_CHECKS = 50  # of one statement
_BULLETS = frozenset("-*")
_ENDS = frozenset(".!?:")  # of sentences
_LONGEST_COMMENT = 500  # characters
_BEHIND = re.compile(r"(?:[ \t]*(?:;|--[^\n]*|/\*[^*]*\*/))*")  # what may follow a statement on its line
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_INVISIBLE = re.compile(f"[{UNSEEN}{CONTROLS}]+")
_PARTS = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|[^'\"`\[]+|.", re.DOTALL)


def is_closed(tokens: Sequence[str]) -> bool:
    """Return whether a text closes all its quotes and brackets."""
    last = tokens[-1] if tokens else ""
    if last[:1] in _QUOTES and (len(last) < 2 or last[-1] != _QUOTES[last[0]]):  # noqa: PLR2004 - a pair
        return False
    return tokens.count("(") == tokens.count(")")


def tokens_of(sql: str) -> list[str]:
    """Return the tokens that SQLite would parse, without white space and comments."""
    found = _TOKEN.findall(sql)
    if "--" in sql or "/*" in sql:
        found = [part for part in found if part[:2] not in {"--", "/*"}]
    return found


def is_empty(sql: str) -> bool:
    """Return whether SQLite would find nothing to execute; its result is then empty, as for no rows."""
    return all(part == ";" for part in tokens_of(sql))


def begins_query(tokens: Sequence[str]) -> bool:
    """Return whether a text starts like a query, and not like an English sentence with "with"."""
    first = tokens[0].lower() if tokens else ""
    if first != "with":
        return first in {"select", "values"}
    table = [token.lower() for token in tokens[1:]]
    if table[:1] == ["recursive"]:
        del table[0]
    if table[1:2] == ["("] and ")" in table:  # column names
        del table[1 : table.index(")") + 1]
    return table[1:2] == ["as"]


def without_opening(text: str) -> str:
    """Return a text without the opening code fence and its language tag."""
    opening = _OPENING.match(text)
    return text[opening.end() :] if opening else text


_THREE_WORDS = re.compile(r" (\w+)[ ,]+(\w+)[ ,]+(\w+)")
# The text after a sign that is SQL only before such text.
_SIGN_OF_SQL = {
    "!": re.compile("="),
    ".": re.compile(r"\S"),
    "/": re.compile("[^/]"),
    "<": re.compile(r"(?!/?[a-z]+[ /]*>\s*(?:\n|\Z))", re.IGNORECASE),  # a tag of HTML at the end of a line
}
# Without such a character, a text on one line holds nothing but the statement.
_SUSPECT = re.compile(r"[^\x00-\x7f]|[\x00-\x08\n!#{}\\?$@:]| \(|//| -|\.\s|\.$|;\s*\S|```|\A\s*\W")


def _is_plain(token: str) -> bool:
    """Return whether a token is an identifier without quotes."""
    return token.isidentifier() and token.lower() not in _KEYWORDS


def end_of_statement(text: str, start: int, limit: int) -> int:
    """Return the position of the end of a statement without a fence.

    It ends after its semicolon, before another statement, or where the text behind it cannot continue it: a
    sign that no statement has outside of quotes, a comment in parentheses, a dash with prose, or a line of
    prose. SQLite decides whether the statement is complete there; otherwise the text continues it.

    Args:
        text: The reply.
        start: Start of the statement.
        limit: Latest end.
    """
    if _SUSPECT.search(text, start, limit) is None and text.lower().count("select", start, limit) < _SEVERAL:
        return limit
    if not begins_query(tokens_of(plain_text(text[start : start + OPENING_CHARS]))):
        blank = _BLANK_LINE.search(text, start, limit)  # quotes or a list are around the statement
        return blank.start() if blank else limit
    fence = text.find("```", start, limit)
    latest = limit if fence < 0 else fence
    lines: list[int] = []
    checks = 0
    for end, kind in _possible_ends(text, start, latest):
        if kind == "line":
            lines.append(end)
            continue
        checks += 1
        if kind == "certain" or (checks < _MOST_CHECKS and is_complete(text[start:end])):
            latest = end
            break
    is_whole = is_complete(text[start:latest])
    for end in lines[: -_MOST_CHECKS - 1 : -1]:
        behind = tokens_of(text[end:latest])
        if is_whole and not _is_item(behind):
            break
        if is_complete(text[start:end]):
            return end if _is_sentence(behind) else latest
    return latest


def _possible_ends(text: str, start: int, limit: int) -> Iterator[tuple[int, str]]:
    """Yield the positions where a statement may end, each with its kind.

    At an end of the kind ``"behind"``, the statement ends if it is complete. At ``"line"``, the next line may
    continue it. ``"certain"`` is the last one.
    """
    end = joined = start  # the end of the last token, and of the last one that does not join two statements
    first = before = last = ""
    depth = 0
    for found in _TOKEN.finditer(text, start, limit):
        part = found[0]
        if part.startswith(("--", "/*")):
            end = found.end() if first and "\n" not in text[end : found.start()] else end
            continue
        if _INVISIBLE.fullmatch(part):
            continue
        if depth <= 0 and last:
            if part.lower() == "select" and last.lower() not in _BEFORE_SELECT:
                yield joined, "certain"
                return
            gap = text[end : found.start()]
            rest = text[found.end() : min(limit, found.end() + _LONGEST_COMMENT)]
            if _is_aside(part, rest) or (gap and part == "(" and _is_comment(last, before, first, rest)):
                yield end, "behind"
            elif "\n" in gap:
                yield end, "line" if _may_continue(part) else "behind"
            if part == ";" and not (before == "&" and last.isalnum()):  # not as in "&lt;"
                behind = _BEHIND.match(text, found.end(), limit)
                yield (behind or found).end(), "certain"
                return
        depth += (part == "(") - (part == ")")
        first = first or part
        before, last, end = last, part, found.end()
        joined = joined if part.lower() in _JOINTS else end
    yield end if first else limit, "certain"


def is_complete(sql: str) -> bool:
    """Return whether SQLite can parse a text as one statement; its tables need not exist."""
    if len(sql) > _LONGEST or "\0" in sql:
        return False
    import sqlite3  # noqa: PLC0415 - only statements need it

    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute(f"EXPLAIN {plain_text(sql)}")
        except UnicodeEncodeError:
            return False
        except sqlite3.Error as error:
            return _SYNTAX_ERROR.search(str(error)) is None
    return True


def _may_continue(part: str) -> bool:
    """Return whether a token at the start of a line may continue a statement: a sign or a keyword.

    A keyword with only its first letter in upper case begins a sentence. A word in upper case may be a
    keyword of another dialect.
    """
    return not part[0].isalnum() or part.isupper() or part in _CLAUSES


def _is_aside(part: str, rest: str) -> bool:
    """Return whether a sign in a statement is none of SQL, given the text after it."""
    if len(part) > 1 or part.isalnum():
        return False
    if part == "-":
        words = _THREE_WORDS.match(rest)
        return words is not None and all(map(_is_plain, words.groups()))
    if pattern := _SIGN_OF_SQL.get(part):
        return pattern.match(rest) is None
    return part not in _SIGNS


def _is_comment(last: str, before: str, first: str, rest: str) -> bool:
    """Return whether a parenthesis after a space is a comment, given the tokens around it."""
    inner = tokens_of(rest.partition(")")[0])
    if has_prose(inner):
        return True
    word = last.lower()
    if _is_plain(last):
        named = before.lower() == "as" or (
            first.lower() == "with" and before.lower() in {"with", "recursive", ","}
        )
        may_end = not named and word not in _FUNCTIONS
    else:
        may_end = last[0].isdigit() or last[0] in "')" or word in _LAST
    return may_end and all(token.isalpha() for token in inner)


def has_prose(tokens: Sequence[str]) -> bool:
    """Return whether a statement has signs or words that no SQL has, or more words in a row than an alias."""
    words = {*map(str.lower, tokens)}
    if not words.isdisjoint(_PROSE):
        return True
    words -= _KNOWN
    if any(not word[0].isascii() and not word[0].isalnum() for word in words):
        return True
    if len(words) <= _MOST_PLAIN_WORDS:
        return False
    row = 0
    for token in tokens:
        row = row + 1 if _is_plain(token) and not token.isupper() else 0  # a keyword of another dialect
        if row > _MOST_PLAIN_WORDS:
            return True
    return False


def _is_item(tokens: Sequence[str]) -> bool:
    """Return whether a text behind a statement is an item of a list, of words only."""
    return len(tokens) > _SEVERAL and tokens[0] in _BULLETS and all(map(_is_plain, tokens[1:]))


def _is_sentence(tokens: Sequence[str]) -> bool:
    """Return whether a text behind a statement is prose."""
    return _is_item(tokens) or has_prose(tokens) or bool(tokens and tokens[-1] in _ENDS)


def first_statement(text: str) -> str:
    """Return a text without the words after its first semicolon, unless they are another statement."""
    if ";" not in text or len(text) > _LONGEST:
        return text
    end = next((found.end() for found in _TOKEN.finditer(text) if found[0] == ";"), len(text))
    behind = tokens_of(text[end : end + OPENING_CHARS])
    if not behind or behind[0].lower() in _FIRST_WORDS:
        return text
    return text[:end] if behind[0].isalpha() or has_prose(behind) else text


def plain_text(sql: str) -> str:
    """Return a statement without invisible and control characters outside of its quotes."""
    if _INVISIBLE.search(sql) is None:
        return sql
    return "".join(
        part if part[0] in _QUOTES else _INVISIBLE.sub("", part) for part in _PARTS.findall(sql)
    ).strip()
