"""Where a reply marks its action: labels such as ``Action:``, tags, and what begins somebody else's turn."""

# ruff: noqa: RUF001 - models write these characters, too

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = [
    "ANSWERED",
    "FEEDBACK",
    "Mark",
    "end_of_turn",
    "first_section",
    "folded",
    "inline_labels",
    "labels",
    "section_end",
    "tags",
]

_LONGEST_PREFIX = 80
_MOST_MARKS = 4_000


class Mark(NamedTuple):
    """A place that is marked as that of the action.

    Attributes:
        start: Where the mark, or the line of it, begins.
        end: Where what it marks begins.
    """

    start: int
    end: int


def _same_length() -> dict[int, str]:
    """Return what each odd character stands for when marks are looked for: one character each."""
    pairs = dict(
        zip(
            "：﹕∶︰＝＊＃＞＜！。．；，（）【】「」『』＿－",
            ":::: =*#><!..;,()[][][]_-".replace(" ", ""),
            strict=True,
        )
    )
    pairs |= dict.fromkeys("“”„‟«»", '"') | dict.fromkeys("‘’‚‛", "'")
    pairs |= dict.fromkeys("\x0b\x0c\x85\u2028\u2029", "\n") | dict.fromkeys(
        "\xa0\u1680\u202f\u205f\u3000", " "
    )
    pairs |= {chr(code): " " for code in range(0x2000, 0x2010)}
    pairs |= dict.fromkeys("\ufeff\u2060\u2061\u2062\u2063\u2064\xad\u180e", " ")
    return {ord(odd): plain for odd, plain in pairs.items()}


_FOLDED = _same_length()


def folded(text: str) -> str:
    """Return a text of the same length in which marks can be looked for, whatever they are typed with."""
    return text if text.isascii() else text.translate(_FOLDED)


# Tags that only say how a text looks: what stands between others, such as ``<search>plan</search>``, is said.
_LOOKS = r"(?:b|i|u|p|em|strong|mark|code|span|div|li|h[1-6]|summary|thought|think)"
# What may stand before a label in its line; of few kinds and bounded, so that it is passed over quickly, and
# followed by a letter, which is looked for before all the labels there are.
_DECOR = (
    r"[ \t*_#>`~|\-•·‣▪●○➤►▶\"'(\[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]{0,12}"
    rf"(?:<{_LOOKS}>[*_]{{0,3}})?(?=[^\W_])"
)

_OTHER_WORDS = "动作|行动|操作|行為|行为|動作|行動|アクション|액션|행동|acción|ação|действие|aktion|azione"
_WORD = re.compile(rf"action|{_OTHER_WORDS}", re.IGNORECASE)
_BEFORE = re.compile(
    r"(?:</?[a-z]{1,10}>|[^\w\n]|_|\d{1,3}[.)])*"
    r"(?:(?:so|thus|hence|therefore|then|now|and|ok|okay|here is|here's|this is)[ ,]+)?"
    r"(?:(?:the|my|our|your|this|agent(?:'s)?|assistant(?:'s)?)[ _]+)?"
    r"(?:(?:next|final|best|chosen|proposed|selected|current|first|second|third|fourth|fifth|single|only|new|one"
    r"|exact|actual|real|true|planned|recommended|immediate|following|corrected|correct|revised|updated|another"
    r"|alternative|final answer|最终|下一步|下一个|我的|接下来的|当前|选择的|执行)[ _]*){0,2}",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"(?:s|\(s\))?(?:[ \t]*[#(\[]?\d{1,3}[)\]]?)?"
    r"(?: (?:is|to take|i take|i choose|taken|will be|i will take|i will perform|i will perform is"
    r"|for this turn))?"
    r"[ \t*_`\"')\]]{0,8}(?:</[a-z]{1,10}>)?[ \t*_]{0,4}"
    r"(?:[:=]+>?|-{1,2}>|[-–—](?=[ \t])|→|⇒|➡)(?:[ \t]*</[a-z]{1,10}>)?"
    r"|(?:s|\(s\))?[ \t]{0,3}\d{0,3}[ \t*_#=`\])]{0,12}(?:</[a-z0-9]{1,10}>)?[ \t]{0,4}(?=\n"
    r"|\Z)",  # a heading
    re.IGNORECASE,
)
_OTHER_LABEL = re.compile(
    rf"^{_DECOR}(?:my |the |next |final ){{0,2}}(?:act|command|move|decision)[*_`]*[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
_IN_BRACKETS = re.compile(r"s?\][ \t]*(?=\S)", re.IGNORECASE)  # "[Action] move up"

# Inside a line, only behind the end of a sentence: "my last Action: get 1 stick failed" is a report, and what
# stands in quotes is a mention.
_INLINE = re.compile(r"(?:(?<=[.!?)])|(?<=[.!?)][ \t])|(?<=[.!?)][ \t]{2}))[*_]*Action[*_]*[ \t]?:[*_]*")

_SPEAKERS = (
    r"observations?|obs|environment|env|user|human|system|tool(?:[ _](?:result|response|output))?|feedback"
    r"|game|server|results?|response|output|观察|观测|结果|环境|用户|反馈|観察|관찰"
)
_OTHERS = (
    r"thoughts?|thinking|reason(?:ing|s)?|rationale|explanations?|reflections?|plan|notes?|comments?"
    r"|analysis|justification|assistant|ai|questions?|(?:final[ _])?answer|next steps?|why"
    r"|思考|想法|理由|分析|解释|计划|注"
)
_COLON = rf"[ \t]{{0,3}}(?:[#(\[]?\d{{1,3}}[)\]]?)?[*_`\"')\]]{{0,6}}(?:</{_LOOKS}>)?[ \t*_]{{0,4}}"
_SECTION = re.compile(
    rf"\n{_DECOR}(?:(?:{_SPEAKERS}|{_OTHERS}){_COLON}(?::|(?=\n|\Z)))",
    re.IGNORECASE,
)
_NEXT_TURN = re.compile(
    rf"\n{_DECOR}(?:(?:{_SPEAKERS}){_COLON}(?::|(?=\n|\Z))|assistant[ \t]{{0,3}}(?=\n))"
    r"|<(?:observation|information|tool_response|tool_result|results?|response|output|environment|env|user)\b"
    r"|\[(?:observation|environment|user|result)\]",
    re.IGNORECASE,
)


_INPUTS = frozenset({" Input", " input", "_input", "_Input", " INPUT"})

FEEDBACK = r"[bgy](?: [bgy]){4}"
"""How Wordle answers a guess."""

# A line that an environment says: the model imagines what its action leads to.
ANSWERED = re.compile(
    rf"\s*(?:OK\b\.?[ \t]*(?=\n|\Z)|->|=>|{FEEDBACK}\b|Inventory:|Observation"
    r"|(?!(?:Then|Next|Now|Or|Let|But|Actually|Wait|After|First|So|Also|Finally|Because|Since|Note|Maybe|If)\b)"
    r"[A-Z](?![^\n]*\b(?:I|I'\w+|my|me|we)\b)[^\n]*[.!\]\d][ \t]*(?=\n|\Z))"
)


def labels(shape: str) -> list[Mark]:
    """Return the labels that begin a line.

    Args:
        shape: The reply, :func:`folded`.
    """
    lowered = shape.lower() if shape.isascii() else None
    found: list[Mark] = []
    line = -1  # where the line of the word before begins: only the first word of a line can be its label
    for start, end in _words(shape, lowered):
        if shape[end : end + 1] == ":" != shape[end + 1 : end + 2] and (
            not start or shape[start - 1] == "\n"
        ):
            found.append(Mark(start, end + 1))  # as nearly all are
            line = start
            continue
        if shape[end : end + 6] in _INPUTS:
            continue
        first = shape.rfind("\n", max(0, start - _LONGEST_PREFIX), start) + 1
        if first == line or (first == 0 and start > _LONGEST_PREFIX):
            continue
        line = first
        if first < start and not _BEFORE.fullmatch(shape, first, start):
            continue
        if start and shape[start - 1] == '"' == shape[end : end + 1]:
            continue  # a key of JSON
        behind = _BEHIND.match(shape, end)
        if behind is None and start and shape[start - 1] == "[":
            behind = _IN_BRACKETS.match(shape, end)
        if behind is None:
            continue
        found.append(Mark(first, _behind_emphasis(shape, start, behind.end())))
        if len(found) >= _MOST_MARKS:
            break
    return found or [Mark(*match.span()) for match in _OTHER_LABEL.finditer(shape)][:_MOST_MARKS]


def _behind_emphasis(shape: str, start: int, end: int) -> int:
    """Return the end of a label with the marks behind its colon that close those before its word."""
    mark = shape[start - 1 : start]
    if mark and mark in "*_`\"'":
        line = shape.find("\n", end)
        line = len(shape) if line < 0 else line
        if shape.count(mark, start, line) % 2 == shape[max(0, start - 3) : start].count(mark) % 2:
            while shape[end : end + 1] == mark:
                end += 1
    return end


def _words(shape: str, lowered: str | None) -> list[tuple[int, int]]:
    if lowered is None:
        return [match.span() for match in _WORD.finditer(shape)]
    found, start = [], lowered.find("action")
    while start >= 0:
        found.append((start, start + 6))
        start = lowered.find("action", start + 6)
    return found


def inline_labels(shape: str) -> list[Mark]:
    """Return the labels inside lines that can be none but labels."""
    return [Mark(*match.span()) for match in _INLINE.finditer(shape)]


_TAG = re.compile(
    r"<[ \t]{0,3}(?P<close>[/\\])?[ \t]{0,3}(?:final_|next_|my_)?actions?(?:[ \t\n][^<>]{0,200})?/?>"
    r"|\[(?P<square>/)?action\]"
    r"|&lt;(?P<escaped>/)?action&gt;",
    re.IGNORECASE,
)
_QUOTES = "`'\""


def tags(shape: str) -> list[tuple[Mark, int, int]]:
    """Return what stands between tags: each with where it ends, and where its closing tag ends.

    A second opening tag closes the first, as does the end of the reply: where generation stops at
    ``</action>``, an engine leaves that out. A tag in quotes is a mention.
    """
    found: list[tuple[Mark, int, int]] = []
    opened: Mark | None = None
    squares = "[/action]" in shape.lower()
    for match in _TAG.finditer(shape):
        if match[0][0] == "[" and not squares:
            continue  # a label in brackets
        before, after = shape[match.start() - 1 : match.start()], shape[match.end() : match.end() + 1]
        if before and after and before in _QUOTES and before == after:
            continue
        closes = match["close"] or match["square"] or match["escaped"]
        if opened is not None:
            found.append((opened, match.start(), match.end() if closes else match.start()))
            # ``<action>get 1 stick<action>``: what follows directly behind is nothing, and so the tag closed.
            opened = None
            if closes or not shape[match.end() : match.end() + 1].strip():
                continue
        if not closes:
            opened = Mark(*match.span())
        if len(found) >= _MOST_MARKS:
            break
    if opened is not None:
        found.append((opened, len(shape), len(shape)))
    return found


def section_end(shape: str, start: int, end: int) -> int:
    """Return where what belongs to a label ends: at the next label, of whatever kind, or at the end."""
    found = _SECTION.search(shape, start, end)
    return found.start() if found else end


def first_section(shape: str) -> int:
    """Return where the first label of any other kind stands; the end where there is none."""
    found = _SECTION.search(f"\n{shape}")
    return found.start() if found else len(shape)


def end_of_turn(shape: str, start: int) -> int:
    """Return where somebody else begins to speak, which the model only imagined; or the end."""
    found = _NEXT_TURN.search(shape, start)
    return found.start() if found else len(shape)
