"""The text of SQL statements: their tokens, their end, and what cannot be one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentgym_gym._text import CONTROLS, UNSEEN

__all__ = [
    "OPENING_CHARS",
    "UNFINISHED",
    "begins_query",
    "end_of_statement",
    "has_prose",
    "is_closed",
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
_SIGNS = frozenset("()+-*/|.,;=<>%&~!_[]\"'`:?@$")
_KNOWN = _KEYWORDS | _SIGNS
_CONTINUING = frozenset(",);=<>+/|")  # the first characters of a line that continues a statement
_MOST_PLAIN_WORDS = 2  # in a row: a table and its alias
_PROSE = frozenset({"the", "of", "this", "these", "because", "which"})  # words that no query has
_BEHIND = re.compile(r"(?:[ \t]*(?:;|--[^\n]*|/\*[^*]*\*/))*")  # what may follow a statement on its line
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
_SIGN_OF_SQL = {"!": re.compile("="), ".": re.compile(r"\S"), "/": re.compile("[^/]")}
# Without such a character, a text on one line holds nothing but the statement.
_SUSPECT = re.compile(r"[^\x00-\x7f]|[\x00-\x08\n!#{}\\?$@:]| \(|//| -|\.\s|\.$|;\s*\S|```|\A\s*\W")


def _is_plain(token: str) -> bool:
    """Return whether a token is an identifier without quotes."""
    return token.isidentifier() and token.lower() not in _KEYWORDS


def end_of_statement(text: str, start: int, limit: int) -> int:
    """Return the position of the end of a statement without a fence.

    It ends after its semicolon; before a sign that no statement has outside of quotes, a comment in
    parentheses or a dash with prose; before another statement; and before a line that cannot continue it.
    While a quote or a parenthesis is open, or a word or an operator is missing, every line continues it.

    Args:
        text: The reply.
        start: Start of the statement.
        limit: Latest end.
    """
    if _SUSPECT.search(text, start, limit) is None and text.lower().count("select", start, limit) < _SEVERAL:
        return limit
    if not begins_query(tokens_of(plain_text(text[start : start + OPENING_CHARS]))):
        return limit  # something else is around the statement
    fence = text.find("```", start, limit)
    limit = limit if fence < 0 else fence
    end = joined = start  # the end of the last token, and of the last one that does not join two statements
    first = before = last = ""
    depth = 0
    for found in _TOKEN.finditer(text, start, limit):
        part = found[0]
        if part.startswith(("--", "/*")):
            end = found.end() if first else end
            continue
        if _INVISIBLE.fullmatch(part):
            continue
        if depth <= 0 and last:
            if part.lower() == "select" and last.lower() not in _BEFORE_SELECT:
                return joined
            gap = text[end : found.start()]
            if last.lower() not in UNFINISHED and (
                ("\n" in gap and not _continues(part, first))
                or _is_aside(part, text[found.end() : limit])
                or (gap and part == "(" and _is_comment(last, before, first))
            ):
                return end
            if part == ";" and not (before == "&" and last.isalnum()):  # not as in "&lt;"
                behind = _BEHIND.match(text, found.end(), limit)
                return behind.end() if behind else found.end()
        depth += (part == "(") - (part == ")")
        first = first or part
        before, last, end = last, part, found.end()
        joined = joined if part.lower() in _JOINTS else end
    return end if first else limit


def _continues(part: str, first: str) -> bool:
    """Return whether a token at the start of a line continues a statement, given its first word.

    A keyword does if it is written in the same case, unlike the first word of a sentence.
    """
    if part[0] in _CONTINUING:
        return True
    return part.lower() in _CLAUSES and part == (part.upper() if first.isupper() else part.lower())


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


def _is_comment(last: str, before: str, first: str) -> bool:
    """Return whether a parenthesis after a space is a comment, given the tokens before it."""
    word = last.lower()
    if last[0].isdigit() or last[0] in "')" or word in _LAST:
        return True
    named = before.lower() == "as" or (
        first.lower() == "with" and before.lower() in {"with", "recursive", ","}
    )
    return _is_plain(last) and word not in _FUNCTIONS and not named


def has_prose(tokens: Sequence[str]) -> bool:
    """Return whether a statement has signs or words that no SQL has, or more words in a row than an alias."""
    words = {*map(str.lower, tokens)}
    if not words.isdisjoint(_PROSE):
        return True
    words -= _KNOWN
    if [word for word in words if len(word) == 1 and not word.isalnum()]:
        return True
    if len(words) <= _MOST_PLAIN_WORDS:
        return False
    row, last = 0, ""
    for token in tokens:
        if not token.isidentifier() or token.lower() in _KEYWORDS:
            row, last = 0, token
            continue
        row += 1
        if row > _MOST_PLAIN_WORDS and last.lower() != "as":  # a type may have three words
            return True
    return False


def plain_text(sql: str) -> str:
    """Return a statement without invisible and control characters outside of its quotes."""
    if _INVISIBLE.search(sql) is None:
        return sql
    return "".join(
        part if part[0] in _QUOTES else _INVISIBLE.sub("", part) for part in _PARTS.findall(sql)
    ).strip()
