"""Find labels such as ``Action:`` and ``<action>`` tags in a reply."""

# ruff: noqa: RUF001 - models write these characters, too

from __future__ import annotations

import re
import sys
from itertools import chain, islice
from typing import NamedTuple

__all__ = [
    "INPUT",
    "LABELS",
    "Labels",
    "Mark",
    "folded",
    "inline_labels",
    "invented_turn",
    "labels",
    "next_label",
    "tags",
    "without_thought_label",
]

_MOST_MARKS = 1_000
_LONGEST_PREFIX = 80  # characters of a line before its label


class Labels(NamedTuple):
    """The labels of one language, in lower case, as alternatives of a regular expression.

    Attributes:
        action: Labels of an action.
        thought: Labels of a thought, a plan and similar text.
        observation: Labels of text by an environment or another speaker.
        before: Words between the start of a line and the label of an action, such as "next".
        after: Words between that label and its colon.
    """

    action: str
    thought: str = ""
    observation: str = ""
    before: str = ""
    after: str = ""


LABELS = {
    "English": Labels(
        "action|act",
        "thoughts?|thinking|reasons?|reasoning|rationale|explanations?|reflections?|plan|notes?|comments?"
        "|analysis|justification|questions?|(?:final[ _])?answer|next steps?|why",
        "observations?|obs|environment|env|user|human|system"
        "|tool|tool[ _]response|tool[ _]result|tool[ _]output"
        "|feedback|game|server|results?|response|output|assistant|ai",
        "the|my|next|final|chosen|selected",
        "is|to take",
    ),
    "Arabic": Labels("(?:ال)?إجراء|(?:ال)?فعل", "(?:ال)?تفكير|فكرة", "(?:ال)?ملاحظة"),
    "Chinese": Labels(
        "动作|行动|操作|動作|行動",
        "思考|想法|理由|分析|解释|计划|注",
        "观察|观测|結果|结果|环境|用户|反馈|觀察",
        "最终|下一步|下一个|我的|接下来的|当前|选择的|执行|最終",
    ),
    "Czech": Labels("akce", "myšlenka", "pozorování"),
    "Dutch": Labels("actie", "gedachte", "observatie|waarneming", "volgende|mijn|de"),
    "French": Labels("action|act", "pensées?|réflexion|raisonnement", "observations?", "la|mon|ma|prochaine"),
    "German": Labels(
        "aktion|handlung", "gedanken?|überlegung|begründung", "beobachtung", "nächste|meine|die|finale"
    ),
    "Hindi": Labels("क्रिया|कार्रवाई", "विचार", "अवलोकन"),
    "Indonesian": Labels("tindakan|aksi", "pemikiran|pikiran", "pengamatan|observasi"),
    "Italian": Labels("azione", "pensiero|ragionamento", "osservazione", "la|mia|prossima|finale"),
    "Japanese": Labels("アクション|行動|動作|行為", "思考|考え", "観察", "次の|最終"),
    "Korean": Labels("액션|행동|동작", "생각", "관찰", "다음|최종"),
    "Polish": Labels("akcja|działanie", "myśl", "obserwacja", "następna|moja"),
    "Portuguese": Labels("ação|acao", "pensamento|raciocínio", "observação", "a|minha|próxima"),
    "Russian": Labels("действие", "мысль|размышление", "наблюдение", "следующее|мое|моё"),
    "Spanish": Labels("acción|accion", "pensamiento|razonamiento", "observación", "la|mi|próxima"),
    "Turkish": Labels("eylem", "düşünce", "gözlem"),
    "Ukrainian": Labels("дія", "думка", "спостереження"),
    "Vietnamese": Labels("hành động", "suy nghĩ", "quan sát"),
}
"""The labels of ReAct by language: the only table of words that the parsers depend on."""


class Mark(NamedTuple):
    """A marked position of an action.

    Attributes:
        start: Start of the mark, or of its line.
        end: Start of the marked text.
        limit: Latest end of the marked text.
    """

    start: int
    end: int
    limit: int = sys.maxsize


def _plain_characters() -> dict[int, str]:
    """Return a mapping from typographic characters to plain ones."""
    pairs = dict(
        zip("：﹕∶︰＝＊＃＞＜！。．；，（）【】「」『』＿－", "::::=*#><!..;,()[][][]_-", strict=True)
    )
    pairs |= dict.fromkeys("“”„‟«»", '"') | dict.fromkeys("‘’‚‛", "'")
    pairs |= dict.fromkeys("\x0b\x0c\x85\u2028\u2029", "\n") | dict.fromkeys(
        "\xa0\u1680\u202f\u205f\u3000", " "
    )
    pairs |= {chr(code): " " for code in range(0x2000, 0x2010)}
    pairs |= dict.fromkeys("\ufeff\u2060\u2061\u2062\u2063\u2064\xad\u180e", " ")
    pairs["İ"] = "i"  # the only letter with two characters in lower case
    return {ord(odd): plain for odd, plain in pairs.items()}


_PLAIN = _plain_characters()


def folded(text: str) -> str:
    """Return a text of the same length in lower case, with plain characters in place of typographic ones.

    Case-sensitive patterns on lower-case text take a third of the time of case-insensitive ones.
    """
    return text.lower() if text.isascii() else text.translate(_PLAIN).lower()


def _alternatives(column: str) -> str:
    words = [word for row in LABELS.values() for word in getattr(row, column).split("|") if word]
    return "|".join(sorted(dict.fromkeys(words), key=len, reverse=True))  # "act" is a prefix of others


_ACTION, _OTHER = _alternatives("action"), f"{_alternatives('thought')}|{_alternatives('observation')}"
# Markup before a label in its line: signs, list marks, tags. Its length is bounded to keep the time linear.
_MARKUP = (
    r"[ \t*_#>`~|\-•·‣▪●○➤►▶\"'(\[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]{0,12}"
    r"(?:<[a-z][a-z0-9]{0,9}>[*_]{0,3})?(?=[^\W_])"
)
_BEFORE = (
    r"[^\w\n]{0,24}(?:(?:</?[a-z][a-z0-9]{0,9}(?: [^<>\n]{0,60})?>|\d{1,3}[.)]|_)[^\w\n]{0,12}){0,3}"
    rf"(?:(?:{_alternatives('before')})[ _]*){{0,3}}"
)
_IN_ENGLISH = re.compile(r"act(?:ion)?(?![a-z])")
_PREFIX = re.compile(_BEFORE)
_FIRST_LINE = re.compile(rf"{_BEFORE}(?P<label>{_ACTION})")
_OTHER_LINE = re.compile(rf"\n{_BEFORE}(?P<label>{_ACTION})")
_BEHIND = re.compile(
    r"(?:s|\(s\))?(?:[ \t]*[#(\[]?\d{1,3}[)\]]?)?"
    rf"(?: (?:{_alternatives('after')}))?"
    r"[ \t*_`\"')\]]{0,8}(?:</[a-z][a-z0-9]{0,9}>)?[ \t*_]{0,4}"
    r"(?:[:=]+>?|-{1,2}>|→|⇒|➡|[-–—](?=[ \t]))(?:[ \t]*</[a-z]{1,10}>)?"
    # a heading
    r"|(?:s|\(s\))?[ \t]{0,3}\d{0,3}[ \t*_#=`\])]{0,12}(?:</[a-z0-9]{1,10}>)?[ \t]{0,4}(?=\n|\Z)",
)
_IN_BRACKETS = re.compile(r"s?\][ \t]*(?=\S)")  # "[Action] move up"
_INLINE = re.compile(
    rf"[.!?)][ \t]{{0,2}}(?P<label>[*_]{{0,3}}(?:(?:{_alternatives('before')})[ _]+){{0,3}}"
    rf"(?:{_ACTION})s?[*_]{{0,3}}[ \t]?:[*_]{{0,3}})"
)

INPUT = re.compile(r"[ \t>*_`#-]*(?:action|tool|function)[ _]?input(?:s|\(s\))?[*_`]*[ \t]*[:=][*_]*[ \t]*")
"""Label of the arguments on a separate line, from the start of the line."""

_COLON = r"[ \t]{0,3}(?:[#(\[]?\d{1,3}[)\]]?)?[*_`\"')\]]{0,6}(?:</[a-z]{1,10}>)?[ \t*_]{0,4}"
_NEXT = re.compile(
    rf"\n{_MARKUP}(?:(?:{_alternatives('before')})[ _]+){{0,3}}"
    rf"(?:{_ACTION}|{_OTHER})s?{_COLON}(?::|(?=\n|\Z))"
)
_INVENTED = re.compile(
    rf"\n{_MARKUP}(?:{_alternatives('observation')}){_COLON}(?:[:=]|->|→|[-–—](?=[ \t])|(?=\n|\Z))"
    r"|<(?:obs|observation|information|tool[_-](?:response|result|output)|results?|response|output|environment"
    r"|env|user|function_results?)\b|\[(?:observation|environment|user|result|tool_results)\]|✿result✿",
)


def labels(shape: str) -> list[Mark]:
    """Return the labels at the start of a line.

    Args:
        shape: The reply, :func:`folded`.
    """
    if shape.isascii() and (found := _english_labels(shape)):
        return found
    first = _FIRST_LINE.match(shape)
    lines = chain((first,) if first else (), islice(_OTHER_LINE.finditer(shape), _MOST_MARKS))
    return [mark for line in lines if (mark := _mark(shape, line.start(), *line.span("label")))]


def _english_labels(shape: str) -> list[Mark]:
    """Return the English labels at the start of a line; searching only for them takes a third of the time."""
    found: list[Mark] = []
    line = -1  # start of the previous word's line: only the first word of a line can be its label
    for word in _IN_ENGLISH.finditer(shape):
        start, end = word.span()
        if not start or shape[start - 1] == "\n":
            if shape.startswith(":\n", end):  # the form in prompts
                found.append(Mark(start, end + 1))
                continue
            first = start
        else:
            first = shape.rfind("\n", max(0, start - _LONGEST_PREFIX), start) + 1
            if (
                first == line
                or (not first and start > _LONGEST_PREFIX)
                or not _PREFIX.fullmatch(shape, first, start)
            ):
                continue
            line = first
        if mark := _mark(shape, first, start, end):
            found.append(mark)
        if len(found) >= _MOST_MARKS:
            break
    return found


def _mark(shape: str, line: int, start: int, end: int) -> Mark | None:
    """Return the mark of a word that can be a label; None if its line does not make it one.

    Args:
        shape: The reply.
        line: Start of the word's line.
        start: Start of the word.
        end: End of the word.
    """
    behind = _BEHIND.match(shape, end)
    if behind is None and shape[start - 1 : start] == "[" and "[/action]" not in shape:
        behind = _IN_BRACKETS.match(shape, end)
    if behind is None or (start and shape[start - 1] == '"' == shape[end : end + 1]):
        return None  # not a label, or a JSON key
    return _within_emphasis(shape, line, start, behind.end())


_EMPHASIS = re.compile(r"[*_`~\"']+")


def _within_emphasis(shape: str, line: int, start: int, end: int) -> Mark:
    """Return the mark of a label without closing emphasis signs after its colon or at the end of the line.

    Args:
        shape: The reply.
        line: Start of the label's line.
        start: Start of its word.
        end: End of its colon.
    """
    opened = _EMPHASIS.search(shape, line, start)
    if opened is None:
        return Mark(line, end)
    if shape.startswith(opened[0], end):
        return Mark(line, end + len(opened[0]))
    line_end = shape.find("\n", end)
    text = shape[end : line_end if line_end >= 0 else len(shape)].rstrip()
    if text.endswith(opened[0]) and text.count(opened[0]) % 2:
        return Mark(line, end, end + len(text) - len(opened[0]))
    return Mark(line, end)


def inline_labels(shape: str) -> list[Mark]:
    """Return the labels inside lines, directly after the end of a sentence."""
    return [Mark(*match.span("label")) for match in islice(_INLINE.finditer(shape), _MOST_MARKS)]


_TAG = re.compile(
    r"<[ \t]{0,3}(?P<close>[/\\])?[ \t]{0,3}(?:final_|next_|my_)?actions?(?:[ \t\n][^<>]{0,200})?/?>"
    r"|\[(?P<square>/)?action\]"
    r"|&lt;(?P<escaped>/)?action&gt;"
)
_QUOTES = "`'\""
_CUT_TAG = re.compile(r"<[/\\]?[a-z_]{0,12}\Z")  # a truncated closing tag
_LONGEST_TAG = 16


def tags(shape: str) -> list[tuple[Mark, int]]:
    """Return the spans between tags, each with its end.

    A second opening tag closes the first, as does the end of the reply: if generation stops at ``</action>``,
    an inference engine omits that tag. A tag between quotes is only mentioned, not used.
    """
    found: list[tuple[Mark, int]] = []
    opened: Mark | None = None
    squares = "[/action]" in shape
    for match in _TAG.finditer(shape):
        if match[0][0] == "[" and not squares:
            continue  # a label in brackets
        before, after = shape[match.start() - 1 : match.start()], shape[match.end() : match.end() + 1]
        if before and after and before in _QUOTES and before == after:
            continue
        closes = match["close"] or match["square"] or match["escaped"]
        if opened is not None:
            found.append((opened, match.start()))
            # ``<action>get 1 stick<action>``: with nothing after the second tag, it closes the first.
            opened = None
            if closes or not shape[match.end() : match.end() + 1].strip():
                continue
        if not closes:
            opened = Mark(*match.span())
        if len(found) >= _MOST_MARKS:
            break
    if opened is not None:
        shape = shape[: invented_turn(shape, opened.end)]
        cut = _CUT_TAG.search(shape, max(opened.end, len(shape) - _LONGEST_TAG))
        found.append((opened, cut.start() if cut else len(shape)))
    return found


def next_label(shape: str, start: int, end: int) -> int:
    """Return the start of the next line with a label of any kind, or ``end`` if there is none."""
    found = _NEXT.search(shape, start, end)
    return found.start() if found else end


def invented_turn(shape: str, start: int, end: int | None = None) -> int:
    """Return the start of an invented turn of the environment or a user, or the end if there is none."""
    end = len(shape) if end is None else end
    found = _INVENTED.search(shape, start, end)
    return found.start() if found else end


_THOUGHT = re.compile(r"\s*[*_#]{0,4}thoughts?[*_]{0,4}[ \t]?:[*_]{0,4}", re.IGNORECASE)
_THINK_TAG = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)


def without_thought_label(text: str) -> str:
    """Return the thought in a text, without the tags of a reasoning model and without ``Thought:``."""
    parts = [part.strip() for part in _THINK_TAG.split(text)]
    return "\n".join(
        filter(
            None,
            (_THOUGHT.sub("", part, count=1).strip() if _THOUGHT.match(part) else part for part in parts),
        )
    )
