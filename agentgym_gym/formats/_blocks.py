"""The one action in a block of text, judged by all that the block says."""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from agentgym_gym.actions import MAX_ACTION_CHARS, Action
from agentgym_gym.errors import ActionError, BadArguments, ManyActions, NoAction, UnknownAction
from agentgym_gym.formats._labels import end_of_turn
from agentgym_gym.formats._languages import NEGATED, SUPPOSED, TAKEN_BACK
from agentgym_gym.formats._pieces import DOUBT, PieceReader

__all__ = ["Found", "check_not_taken_back", "check_tag_ends_sentence", "doubted", "read_block"]

_LONGEST_LEAD = 300
_LONGEST_SENTENCE = 2_000  # of which the words are looked at
_MOST_LINES = 100  # at either end of a block
_FEW_LETTERS = 3
_FEW_WORDS = 3

# A sentence by which what was said before is taken back.
_TAKEN_BACK = re.compile(
    r"(?:^|[.!?…;:\n—(]|--)[\s*_\"'>-]{0,8}(?=[^\W_])(?:"
    r"(?:oh|ah|uh|um|hmm+|but|no|and|well|ok|okay|yet|so)[,. …!—-]{1,4}){0,3}(?:"
    r"hmm+\b|oops\b|no[,.!…—]|no wait|nope\b|wait(?!\s+(?:for|until|till|to|here|and see))\b|hold on|hang on"
    r"|actually[,.…]|actually (?:i|let|no|that|this|it)\b|sorry[,.!…]|correction\b|scratch (?:that|this|it)"
    r"|strike that|never ?mind|forget (?:it|that|this|about)|ignore (?:that|this|the|my)"
    r"|disregard|cancel (?:that"
    r"|this|it)|on second thou?ghts?|not that|let me (?:re(?:think|consider|do|vise|write|start"
    r"|try)|correct|fix"
    r"|change (?:that|this|it|my)|think again|try again)|i (?:made a|meant|take (?:it|that"
    r"|this) back|take back"
    r"|changed? my mind|should (?:have|not|rather|instead)|was wrong|withdraw|retract|won't"
    r"|will not|do not want"
    r"|don't want)|(?:that|this|it)(?:'s| is| was| would be| seems| looks)? (?:wrong|not right"
    r"|incorrect|a mistake"
    r"|not what|not correct|invalid|only an? (?:example|draft))|instead[,.]|instead i\b"
    r"|rather[,.]|but (?:that|this"
    r"|i (?:should|must|need|have to|can(?:no|')t|will|would|do(?:n't| not)|am not)|first"
    r"|it (?:is|would|will|may|might)|wait|no)\b"
    r"|(?:that|this) (?:was|is) (?:just |only )?(?:an? )?(?:example|draft|test|joke)\b"
    r"|that was (?:your|what|my (?:last|previous))\b|just kidding|joking\b)"
    r"|\A\s*(?-i:is|was|would|could|might|has|had|seems?) "
    r"|(?:is|was) (?:this|that|it) (?:right|correct|ok|okay|fine|allowed|what)\b[^.\n]{0,80}[?]",
    re.IGNORECASE,
)
# How the text goes on in the sentence of an action that only speaks of it.
_GOES_ON = re.compile(
    r"\b(?:but|once|until|when|after|before|later|would|is|was|were|are|or|then|and|did|failed"
    r"|worked|gave|which"
    r"|if|because|as soon as|as long as|unless|should|whenever|tags?|block|format|above|below|earlier|yet)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?。！？;；](?=\s|$)|\n")
_LINE = re.compile(r"\S[^\n]*")
_FURTHER = re.compile(
    r"[ \t]*(?:and |or )?(?:then|next|after that|afterwards|finally|and|or)\b[ ,:]*", re.IGNORECASE
)
_NO_INPUT = re.compile(
    r"[ \t:=*_`]*(?:none|n/?a|null|nothing|\{\s*\}|\"\"|''|-|empty)?[ \t.`]*(?=\n|\Z)", re.IGNORECASE
)
_INPUT = re.compile(r"\baction[ _]?input\b", re.IGNORECASE)
_EMPTY_MARKS = "*_`#>-=~ \t:.\"'|[]()<>/"
_SAME_SENTENCE = re.compile(r"[ \t*_`'\"]{0,12}(?:[,;][ \t]?\w|[^\W\dA-Z_])")
_GOES_ELSEWHERE = re.compile(
    r"[ \t*_`]{0,12}[,;]?[ \t]?(?!(?:to|because|so|since|in order|as(?! I)|for|which|and|with)\b)[a-zà-ÿ]"
)
_FLOWS_ON = re.compile(r"[\s,;]{0,40}[a-zà-ÿ]")


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
    if place is not None and shape[: place.start].strip(_EMPTY_MARKS + "\n"):
        check_meant(shape, place.start, place.end)
    elif place is not None and not marked:
        _check_not_going_on(shape, place.end, beside=False)
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
    """Return the action that one line of a block is; other lines may only be about it."""
    found: Found | None = None
    first: ActionError | None = None
    led, place = False, None  # whether a line says something before the action, and where the action is
    stop = len(block)
    for each in _lines(block if reader.grammar.style.verbatim else shape):
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
            led = led or bool(line.strip(_EMPTY_MARKS))
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
    if len(shape[end : called.start()].strip(_EMPTY_MARKS + "\n")) < _FEW_LETTERS:
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


def check_meant(shape: str, start: int, end: int) -> None:
    """Check that the text around an action, which says something before it, does not only speak of it.

    Args:
        shape: The text, folded.
        start: Where the action begins.
        end: Where it ends.

    Raises:
        NoAction: It does.
    """
    line = shape.rfind("\n", 0, start) + 1
    beside = shape[line:start].strip(_EMPTY_MARKS)
    lead = (shape[line:start] if beside else _line_before(shape, line)).rstrip(" \t*_`\"'")
    closed = lead.endswith((".", "!", "?"))
    if not closed or beside:
        sentence = _SENTENCE_END.split(lead[-_LONGEST_SENTENCE:].rstrip(".!?:"))[-1]
        if announces_no_action(sentence) or (beside and _WHEN.search(sentence)):
            raise _only_a_mention()
    if (beside or not closed) and not lead.endswith(":"):
        _check_not_going_on(shape, end, beside=bool(beside))


_WHEN = re.compile(r"\b(?:after|before|when|whenever|while|until)\b", re.IGNORECASE)
_SHOWN = re.compile(
    r"\A\W*(?:user|human|system|environment|observation)\W*\Z"
    r"|\b(?:examples?|samples?|history|rejected|obsolete|formats?|form|template|syntax|like this"
    r"|you (?:said|wrote|suggested|asked)|options?|possib\w+"
    r"|choices|blocked|impossible|suggest\w*|testing|commands?|recipes?|available)\b|例如|格式",
    re.IGNORECASE,
)
_RIGHT_FORM = re.compile(
    r"\b(?:in|with|using|follow\w*) (?:the|this|that|a) (?:\w+ )?(?:format|form)\b", re.IGNORECASE
)
_CLAUSE = re.compile(r"[,;，；]|\b(?:so|but|therefore|thus|hence)\b", re.IGNORECASE)


def announces_no_action(sentence: str) -> bool:
    """Return whether a sentence that leads to an action says that it is an example, or not to be done."""
    if _SHOWN.search(_RIGHT_FORM.sub("", sentence)) or SUPPOSED.search(sentence):
        return True
    clauses = [clause for clause in _CLAUSE.split(sentence) if clause.strip()]
    return bool(clauses) and bool(DOUBT.search(clauses[-1]) or NEGATED.search(clauses[-1]))


def _line_before(shape: str, line: int) -> str:
    """Return the line before a place, if no empty line stands between or it ends in a colon."""
    before = shape[:line].rstrip(" \t`\n*_")
    said = before[before.rfind("\n") + 1 :]
    near = shape[len(before) : line].count("\n") <= 1 + shape[len(before) : line].count("```")
    return said if near or said.rstrip().endswith(":") else ""


def _check_not_going_on(shape: str, end: int, *, beside: bool = True) -> None:
    """Check that a sentence in which an action stands does not go on in a way that makes it a mention.

    Args:
        shape: The text, folded.
        end: Where the action ends.
        beside: Whether words stand before it on its line, so that it is part of a sentence in any language.

    Raises:
        NoAction: It does.
    """
    rest = shape[end : end + _LONGEST_SENTENCE]
    if rest.lstrip(_EMPTY_MARKS.replace(".", "")).startswith("?"):
        raise _only_a_mention()
    if beside and _SAME_SENTENCE.match(rest):
        raise _only_a_mention()
    if not _FLOWS_ON.match(rest):
        return
    sentence = _SENTENCE_END.split(rest.lstrip(" \t\n,"), maxsplit=1)[0]
    if _GOES_ON.search(sentence) or DOUBT.search(sentence):
        raise _only_a_mention()


def check_tag_ends_sentence(shape: str, end: int) -> None:
    """Check that no sentence goes on behind a tag that begins its line, such as ``… is not what I want``.

    Args:
        shape: The reply, folded.
        end: Where the closing tag ends.

    Raises:
        NoAction: One does.
    """
    if _GOES_ELSEWHERE.match(shape, end):
        raise _only_a_mention()


def _only_a_mention() -> NoAction:
    return NoAction("the reply only speaks of an action, and gives none")


def doubted(shape: str, start: int) -> bool:
    """Return whether a label stands below a line that announces an example, or something not to be done."""
    before = shape[max(0, start - _LONGEST_LEAD) : start].rstrip(" \t\n*_`>")
    if before.endswith(":"):
        return announces_no_action(_SENTENCE_END.split(before[:-1])[-1])
    return (
        bool(before)
        and before[-1].isalpha()
        and (
            _ANNOUNCED.search(before[-_LONGEST_CLAUSE:]) is not None
            or _supposes(_SENTENCE_END.split(before)[-1])
        )
    )


def _supposes(sentence: str) -> bool:
    return len(sentence.split()) > _FEW_WORDS - 1 and SUPPOSED.match(sentence) is not None


_LONGEST_CLAUSE = 80
_BEHIND = (
    2_000  # characters right behind an action, and at the end of the reply, in which it may be taken back
)


def _ends(rest: str) -> str:
    return rest if len(rest) <= 2 * _BEHIND else f"{rest[:_BEHIND]}\n{rest[-_BEHIND:]}"


_ANNOUNCED = re.compile(
    r"(?:\b(?:not|never|avoid|refuse to|instead of|rather than|without|would|could|might|should)|n't|'d)"
    r" (?:\w+ ){0,2}(?:writ|reply|repli|answer|say|us|send|output|do)(?:e|ing)?\Z"
    r"|\b(?:format|form|template|example) (?:is|was|would be|looks like)\Z",
    re.IGNORECASE,
)


def check_not_taken_back(shape: str, start: int, stop: int | None = None, *, complete: bool = False) -> None:
    """Check that what follows an action does not take it back.

    Args:
        shape: The reply, folded.
        start: Where the action ends.
        stop: Where somebody else begins to speak, if that is known.
        complete: Whether a reply that ends in the midst of a sentence is refused too.

    Raises:
        NoAction: It does.
    """
    stop = end_of_turn(shape, start) if stop is None else stop
    rest = shape[start:stop].strip()
    if not rest:
        return
    if _TAKEN_BACK.search("\n" + rest) or TAKEN_BACK.search(_ends("\n" + rest)):
        raise NoAction("the reply takes its action back; write the action alone, once it is certain")
    if complete and stop == len(shape) and rest[-1].isalnum() and len(rest.split()) > _FEW_WORDS:
        raise NoAction("the reply breaks off behind its action; write the action last")
