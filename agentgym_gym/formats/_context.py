"""What the words around an action say of it: that it is to be carried out, or that it is only spoken of.

An action may stand in a reply as an example, a plan, a memory, or something the model decides against. The
words that show this are looked for in the sentence that leads to it, in what goes on behind it, and in what
follows, all within bounds. Where they leave a doubt, the action is not taken.

One set of phrases serves the actions in words and the calls. Where they are looked for differs, since words
are part of the sentence in which they stand, and a call, which has an end of its own, is not.
"""

from __future__ import annotations

import re

from agentgym_gym.errors import NoAction
from agentgym_gym.formats import _phrases as phrases
from agentgym_gym.formats._labels import end_of_turn, folded

__all__ = [
    "EMPTY_MARKS",
    "before_invented_turn",
    "check_meant",
    "check_not_going_on",
    "check_not_taken_back",
    "check_tag_ends_sentence",
    "doubted",
    "is_doubtful",
    "is_more_than_a_comment",
    "said_beside",
]

EMPTY_MARKS = "*_`#>-=~ \t:.\"'|[]()<>/"
"""Marks that say nothing by themselves."""

_LEAD = 600  # characters before an action in which its sentence is looked for
_LABEL_LEAD = 300  # before a label
_SENTENCE = 2_000  # behind an action, in which its sentence is looked for
_BEHIND = 2_000  # right behind it, and at the end of the reply, in which it may be taken back
_FEW_WORDS = 3
_CLAUSE = 80

# What ends a sentence: a mark before a blank, one behind a letter of Chinese, Japanese or Korean, a line end.
_ENDED = re.compile(
    r"[.!?…。！？\n](?:(?<=\n)(?<![,;]\n)|(?<=[\u3040-\u9fff\uac00-\ud7a3][.!?。！？])"
    r"|(?<=[.!?…])[\"'”)*_`]*(?:\s|\Z))"
)
_LETTER = re.compile(r"[^\W\d_]")
_SAME_SENTENCE = re.compile(r"[ \t*_`'\"]{0,12}(?:[,;][ \t]?\w|[^\W\dA-Z_])")
_FLOWS_ON = re.compile(r"[\s,;]{0,40}[a-zà-ÿ]")

# What the model invents after its call: the answer to it, and what follows. The first call is the one.
_TURNS = (
    r"observation|(?:tool|function|code|execution)?[ _]?(?:result|response|output)s?|environment|env|user"
    r"|human|system|tool|ipython|returns?|stdout"
)
_TURN_TAGS = (
    r"tool_response|tool_outputs?|tool_results?|function_results?|function_response|observation|result|output"
    r"|information|response|start_header_id|im_start|start_of_turn|user|turn"
)
_INVENTED = re.compile(
    rf"\n[ \t>#*_`\[(]*(?=[a-z])(?:{_TURNS})[ \t]*\d{{0,3}}[\])*_`]*[ \t]*(?:[:：>=]|\n)"
    r"|\n[ \t]*(?:`{3,}|~{3,})[ \t]*(?:tool_?)?(?:outputs?|results?|stdout|console|response|observation)\b"
    rf"|<\|?/?(?=[a-z])(?:{_TURN_TAGS})\b|\[TOOL_RESULTS\]|<｜tool▁outputs?▁begin｜>|<｜User｜>"
    r"|<\|start\|>(?!assistant)|观察(?:结果)?[:：]|观测[:：]",
    re.IGNORECASE,
)

# Marks between the words and the call, such as a fence or a tag.
_MARKS = frozenset(" \t\n\r*_`~[({>\"'“#-")
_TAG_BEFORE = re.compile(r"(?:<[^<>\n]{1,60}>|\[[A-Z_]{3,20}\]|(?<=`)[a-z_]{1,12}\n)\Z")
_LONGEST_TAG = 64
_FENCE_BEFORE = re.compile(r"(?:(?<!`)`{3,}|(?<!~)~{3,})[ \t]{0,9}[\w+#.-]*\s*(?:\[\s*)?\Z")
_FENCE_BEHIND = re.compile(r"[\s\]]*(?:`{3,}|~{3,})")
# Struck out, in a comment, or quoted by a traceback.
_HIDDEN = re.compile(
    r"(?:~~|<!--\s*|(?:\A|\n)[ \t]*(?://|#)[ \t]*|File \"[^\"\n]*\", line \d+[^\n]*\n[ \t]*)\Z"
)
_CLOSING_TAGS = re.compile(r"(?:\s*</[^<>\n]{1,60}>)*")
_LIST_MARK = re.compile(r"(?:\A|\n)[ \t]*(?:\d{1,2}[.)]|[-*•])[`\s]*\Z")
_LIST_GOES_ON = re.compile(r"[`\s.;,]*\n[ \t]*(?:\d{1,2}[.)]|[-*•])[ \t]")
_ONE_WORD_LABEL = re.compile(r"[\s*_`>#-]*([A-Za-z]+)[\s*_`]*[:：]\s*\Z")


# ---------------------------------------------------------------------------------- what leads to the action


def _leads_away(sentence: str, *, closed: bool = False) -> bool:
    """Return whether a sentence that leads to an action says that it is an example, or not to be done.

    Args:
        sentence: The sentence.
        closed: Whether it is complete: then only what it shows as an example is one.
    """
    said = folded(sentence).lower()
    if phrases.EXAMPLE.search(phrases.IN_FORMAT.sub("", said)) or phrases.SUPPOSED.match(said):
        return True
    if closed:
        return False
    if phrases.OFFERED.search(said) or phrases.SPEAKER.match(said):
        return True
    said = phrases.CONSEQUENCE.split(said)[-1]
    clauses = [clause for clause in phrases.CLAUSE.split(said) if clause.strip()]
    return bool(phrases.CONDITION.match(said) or (clauses and phrases.UNREAL.search(clauses[-1])))


def _last_sentence(words: str) -> str:
    """Return the sentence with which some words end."""
    said = words.rstrip(".!?。！？…:： \t")
    begins = 0
    for end in _ENDED.finditer(said):
        begins = end.end()
    return words[begins:]


def said_beside(shape: str, place: int) -> str:
    """Return what stands before a place on its line, without marks that say nothing."""
    return shape[shape.rfind("\n", 0, place) + 1 : place].strip(EMPTY_MARKS)


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
    beside = said_beside(shape, start)
    lead = (shape[line:start] if beside else _line_before(shape, line)).rstrip(" \t*_`\"'")
    closed = lead.endswith((".", "!", "?"))
    if (not closed or beside) and _leads_away(_last_sentence(lead[-_LEAD:]).rstrip(".!?")):
        raise _only_a_mention()
    if (beside or not closed) and not lead.endswith(":"):
        check_not_going_on(shape, end, beside=bool(beside))


def _line_before(shape: str, line: int) -> str:
    """Return the line before a place, if no empty line stands between or it ends in a colon."""
    before = shape[:line].rstrip(" \t`\n*_")
    said = before[before.rfind("\n") + 1 :]
    near = shape[len(before) : line].count("\n") <= 1 + shape[len(before) : line].count("```")
    return said if near or said.rstrip().endswith(":") else ""


def doubted(shape: str, start: int) -> bool:
    """Return whether a label stands below a line that announces an example, or something not to be done."""
    before = shape[max(0, start - _LABEL_LEAD) : start].rstrip(" \t\n*_`>")
    if before.endswith((":", ",")):  # a comma may also end a thought
        return _leads_away(_last_sentence(before)[:-1], closed=before.endswith(","))
    if not before or not before[-1].isalpha():
        return False
    if phrases.NOT_WRITTEN.search(before[-_CLAUSE:].lower()):
        return True
    sentence = _last_sentence(before).lower()
    return len(sentence.split()) >= _FEW_WORDS and phrases.SUPPOSED.match(sentence) is not None


def _is_led_to_doubtfully(before: str) -> bool:
    """Return whether what stands before a call leaves it open that it is to be carried out.

    Other than words, a call may stand below an empty line or a complete sentence that shows it: there, too,
    it can be an example.
    """
    words = _without_marks(before)
    if not words:
        return False
    closed = words[-1] in ".!?。！？…" or (words[-1] not in ":：" and "\n\n" in before[len(words) :])
    sentence = _last_sentence(words)
    label = None if closed else _ONE_WORD_LABEL.match(sentence)
    if label is not None:
        return not phrases.NAMED & {label[1].lower(), label[1].lower().removesuffix("s")}
    return _leads_away(sentence, closed=closed)


def _without_marks(before: str) -> str:
    """Return a text without the marks at its end, such as fences and tags."""
    end = len(before)
    while end:
        last = before[end - 1]
        tag = _TAG_BEFORE.search(before, max(0, end - _LONGEST_TAG), end) if last in ">]\n" else None
        if tag is not None:
            end = tag.start()
        elif last in _MARKS or last.isspace():
            end -= 1
        else:
            break
    return before[:end]


# ---------------------------------------------------------------------------- what goes on behind the action


def check_not_going_on(shape: str, end: int, *, beside: bool = True) -> None:
    """Check that a sentence in which an action stands does not go on in a way that makes it a mention.

    Args:
        shape: The text, folded.
        end: Where the action ends.
        beside: Whether words stand before it on its line, so that it is part of a sentence in any language.

    Raises:
        NoAction: It does.
    """
    rest = shape[end : end + _SENTENCE]
    if rest.lstrip(EMPTY_MARKS.replace(".", "")).startswith("?") or (beside and _SAME_SENTENCE.match(rest)):
        raise _only_a_mention()
    if not _FLOWS_ON.match(rest):
        return
    sentence = _ENDED.split(rest.lstrip(" \t\n,"), maxsplit=1)[0].lower()
    if phrases.GOES_ON.search(sentence) or phrases.DOUBT.search(sentence):
        raise _only_a_mention()


def check_tag_ends_sentence(shape: str, end: int) -> None:
    """Check that no sentence goes on behind a tag that begins its line, such as ``… is not what I want``.

    Args:
        shape: The reply, folded.
        end: Where the closing tag ends.

    Raises:
        NoAction: One does.
    """
    if _goes_on(shape[end:]):
        raise _only_a_mention()


def _goes_on(rest: str) -> bool:
    """Return whether the line on which a tag or a call ends goes on in a way that makes it a mention."""
    rest = rest[:_SENTENCE]
    if any(p.match(rest) for p in (phrases.IN_MIDST, phrases.RUNS_ON, phrases.REMARK)):
        return True
    comment = phrases.COMMENT.match(rest)
    return bool(phrases.QUESTION.match(folded(rest)) or (comment and is_more_than_a_comment(comment[1])))


def is_more_than_a_comment(said: str) -> bool:
    """Return whether what is said behind an action, on its line, does more than say what it is for."""
    said = folded(said).lower()
    return bool(phrases.MORE.search(said) or phrases.DOUBT.search(said))


def _only_a_mention() -> NoAction:
    return NoAction("the reply only speaks of an action, and gives none")


# ---------------------------------------------------------------------------------------- what takes it back


def _is_taken_back(rest: str) -> bool:
    """Return whether what follows an action takes it back."""
    if len(rest) > 2 * _BEHIND:
        rest = f"{rest[:_BEHIND]}\n{rest[-_BEHIND:]}"
    if not _LETTER.search(rest):
        return False
    said = "\n" + folded(rest).lower()
    return bool(phrases.TURNING.search(said) or phrases.MISTAKEN.search(said))


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
    if phrases.RUNS_ON.match(rest) or _is_taken_back(rest):
        raise NoAction("the reply takes its action back; write the action alone, once it is certain")
    if complete and stop == len(shape) and rest[-1].isalnum() and len(rest.split()) > _FEW_WORDS:
        raise NoAction("the reply breaks off behind its action; write the action last")


# ----------------------------------------------------------------------------------------------------- calls


def before_invented_turn(text: str, end: int) -> int:
    """Return where the model begins to write the environment's part, after the call that ends at ``end``."""
    found = _INVENTED.search(text, end)
    return found.start() if found else len(text)


def is_doubtful(text: str, start: int, end: int) -> bool:
    """Return whether the words around a call leave it open that it is to be carried out.

    Args:
        text: The reply.
        start: Where the call begins.
        end: Where it ends.
    """
    before = text[max(0, start - _LEAD) : start]
    if fence := _FENCE_BEFORE.search(before):
        before = before[: fence.start()]
        behind = _FENCE_BEHIND.match(text, end)
        end = behind.end() if behind else end
    after = text[end:]
    if _HIDDEN.search(before):
        return True
    if mark := _LIST_MARK.search(before):
        before = before[: mark.start()]
        if _LIST_GOES_ON.match(after):
            return True
    if _is_led_to_doubtfully(before):
        return True
    after = after[_CLOSING_TAGS.match(after).end() :]  # type: ignore[union-attr]  # it matches nothing too
    after = " " + after.lstrip("`~ \t")
    return _goes_on(after) or _is_taken_back(after)
