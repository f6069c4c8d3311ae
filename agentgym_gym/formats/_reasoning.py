"""Extract the answer from a reply, without reasoning, role header and text after the end of its turn."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentgym_gym._text import UNSEEN
from agentgym_gym.formats._dialects import LONGEST_MARK, LONGEST_TOKEN, TOKEN_AT_END, Patterns, patterns

__all__ = ["answer_in", "masked"]

_HEAD = re.compile(
    rf"(?:\s|[{UNSEEN}]|<s>|(?:assistant|model|ai)(?=\s*(?:\n|<\|))|(?:assistant|agent)[ \t]*:)+",
    re.IGNORECASE,
)
# Words in the names of tokens that belong to a call.
_OF_CALL = re.compile(r"tool|func|call|invoke|arg|action|plugin|python|param|json", re.IGNORECASE)
_MOST_TOKENS = 8
_END_OF_SEQUENCE = re.compile(r"</s>(?=\s*(?:\Z|\n|<s>|\[INST\]|</s>))", re.IGNORECASE)

# The channels of gpt-oss: analysis, commentary (with the calls) and final. If an engine drops special tokens,
# their names remain in the text: "analysisWe need a stick.assistantfinalAction: …".
_CHANNEL = re.compile(
    r"(?:<\|start\|>assistant(?:[ \t]+to=[\w.]+)?[ \t]*)?<\|channel\|>[ \t]*([a-z_]{1,30})"
    r"|(?<=assistant)(?:(final))|(?:\A\s*|assistant)(analysis|commentary"
    r"|final)(?=[A-Z`*#{<>\[\u4e00-\u9fff]|[ \t]+to=)"
)
_MESSAGE = re.compile(r"[^<\n]{0,200}(?:<\|constrain\|>[^<\n]{0,40})?<\|message\|>")
_CALL_ENDS = re.compile(r"<\|(?:call|end|return|start)\|>")
_CHANNELS = ("analysis", "commentary", "final")
_RECIPIENT = 80  # characters after the name of a channel that are searched for its recipient

_WORDS = r"think|thought|reason|reflect|monolog|scratch|deliberat|ponder|brainstorm|rationale|internal"
# Words in the names of tokens, of which a text outside of reasoning has none.
_TOKEN_WORDS = rf"{_WORDS}|inner|analy|cot\b|plan|draft|hidden|private|secret"
_ANSWER_WORDS = r"(?:start_|begin_)?(?:of_)?(?:final|answer|response|reply|solution|output)(?:_start)?"
_STEM = re.compile(rf"{_TOKEN_WORDS}|cot")  # each mark contains one
_MARK = re.compile(
    r"(?=<[ \t/]{0,7}[|｜]?[\w /]|\[[ \t/|]{0,3}\w)(?:"
    rf"<[|｜](?P<name>[^|｜<>\n]{{0,30}}?(?:{_TOKEN_WORDS})[^|｜<>\n]{{0,30}})[|｜]>"
    rf"|\[\|(?P<bars>[^|\[\]\n]{{0,30}}?(?:{_TOKEN_WORDS})[^|\[\]\n]{{0,30}})\|\]"
    rf"|<\|(?P<opened>[\w:-]{{0,30}}?(?:{_TOKEN_WORDS})[\w:-]{{0,30}})>"
    rf"|<(?P<closed>[\w:-]{{0,30}}?(?:{_TOKEN_WORDS})[\w:-]{{0,30}})\|>"
    rf"|<[|｜](?P<answer>{_ANSWER_WORDS})[|｜]>"
    rf"|<[ \t]{{0,3}}(?P<xml>/)?[ \t]{{0,3}}(?:[\w:|-]{{0,20}}?(?:{_WORDS})[\w:-]{{0,20}}|analysis"
    rf"|plan(?:ning)?|draft|cot)"
    r"(?:[ \t\n][^<>]{0,200})?>"
    r"|\[[ \t]?(?P<square>/)?[ \t]?(?:think(?:ing)?|thoughts?|reasoning|reflection)[ \t]?\])",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```[ \t]{0,3}(\w*)")
_LANGUAGE = re.compile(r"think(?:ing)?|thoughts?|reasoning|scratchpad", re.IGNORECASE)
_REASONING_FENCE = re.compile(rf"```[ \t]{{0,3}}(?:{_LANGUAGE.pattern})", re.IGNORECASE)
_CLOSING_NAME = re.compile(
    r"/|end|close|.*(?:end|suffix|closed?|stop)\Z|.*[:_ -](?:end|close)[:_ -]", re.IGNORECASE
)
_QUOTES = "`'\"“”‘’「」"
_SIGNS = "<[]◁"  # the first characters of all marks
_BEGINNINGS = frozenset(f"aAmMcft \n\t{UNSEEN}")  # of a role, a channel, or a character without a glyph


def answer_in(reply: str) -> tuple[str, str]:
    """Return the answer in a reply of any model family, and the opening mark of unclosed reasoning.

    The answer is the reply up to the end of its turn. Each character of the reasoning and the header is
    replaced by a line break, so that positions in the answer are positions in the reply.

    The reply ends at the first token that ends its turn or starts another one. Reasoning extends from an
    opening mark to its closing mark or the end. If a closing mark has no opening mark, reasoning starts at
    the beginning of the reply, since chat templates often add the opening mark. A mark between quotes is
    ordinary text.
    """
    if "\r" in reply:
        reply = reply.replace("\r\n", " \n").replace("\r", "\n")
    first = -1
    square = reply.find("[")
    squares = square >= 0 and patterns().square.search(reply, max(0, square - 1)) is not None
    if squares or "<" in reply or not reply.isascii():
        first = min([place for sign in _SIGNS if (place := reply.find(sign)) >= 0], default=-1)
    if first < 0 and reply[:1] not in _BEGINNINGS and "assistant" not in reply:  # only fences are possible
        return _without_fences(reply) if "`" in reply and _REASONING_FENCE.search(reply) else (reply, "")
    unclosed = ""
    stripped = "assistant" in reply or reply[:_RECIPIENT].lstrip().startswith(_CHANNELS)
    if stripped or (first >= 0 and reply.find("<|channel|>", first) >= 0):
        reply, unclosed = _without_channels(reply)
    if "```" in reply and _REASONING_FENCE.search(reply):
        reply, unclosed = _without_fences(reply)
    headed = reply[:1] in _BEGINNINGS or reply[:1] in _SIGNS
    if first < 0:
        return (_without_header(reply, None) if headed else reply), unclosed
    return _without_marks(reply, first, unclosed, headed=headed)


def _without_marks(reply: str, first: int, unclosed: str, *, headed: bool) -> tuple[str, str]:
    """Return an answer without the marks of the table and other reasoning, as :func:`answer_in`."""
    table = patterns()
    near = reply.find("to=", max(0, first - LONGEST_MARK), first)  # a mark may begin before its first sign
    near = first if near < 0 else near
    if table.mark.search(reply, near):
        if table.reasoning.search(reply, near):
            reply, unclosed = _without_pairs(reply, near, table)
        if table.frame.search(reply, near):
            reply = masked(reply, [frame.span() for frame in table.frame.finditer(reply, near)])
        reply = _without_header(reply, table)
        end = table.turn_end.search(reply, near)
        reply = reply[: end.start()] if end else reply
    elif headed:
        reply = _without_header(reply, None)
    reply = _before_end_of_sequence(reply, first)
    if _STEM.search(reply[first:].lower()) and _MARK.search(reply, first):
        reply, opened = _without_blocks(reply, first)
        reply, unclosed = _without_header(reply, table), opened or unclosed
    return _before_tokens(reply), unclosed


def masked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a text with line breaks in place of all characters of some spans, which must be in order."""
    kept, position = [], 0
    for start, end in spans:
        kept += [text[position:start], "\n" * (end - start)]
        position = end
    return "".join([*kept, text[position:]])


def _without_header(reply: str, table: Patterns | None) -> str:
    """Return a reply with line breaks in place of the role and the marks at its start."""
    start, end = 0, -1
    while start > end:
        end = start
        if head := _HEAD.match(reply, start):
            start = head.end()
        if table is not None and (mark := table.header.match(reply, start)):
            start = mark.end()
    return masked(reply, [(0, start)]) if start else reply


def _before_tokens(reply: str) -> str:
    """Return a reply without the tokens at its end, known or not, that belong to no call."""
    kept = reply.rstrip()
    for _ in range(_MOST_TOKENS):
        if not kept.endswith((">", "|]")) or "|" not in kept[-LONGEST_TOKEN:].replace("｜", "|"):
            break
        token = TOKEN_AT_END.search(kept, max(0, len(kept) - LONGEST_TOKEN))
        if token is None or _OF_CALL.search(token[0]) or _ends_call(token[0]):
            break
        reply = kept[: token.start()]
        kept = reply.rstrip()
    return reply


def _ends_call(token: str) -> bool:
    """Return whether a token ends a call in the table of dialects."""
    return any(end.fullmatch(token) for _, _, end in patterns().arguments.values())


def _without_pairs(reply: str, first: int, table: Patterns) -> tuple[str, str]:
    """Return a reply without the reasoning between marks of the table, and the mark of an unclosed one."""
    spans: list[tuple[int, int]] = []
    opened, closing = None, ""
    turn = table.turn_end.search(reply, first)
    limit = turn.start() if turn else len(reply)
    for mark in table.reasoning.finditer(reply, first):
        written = mark[0].lower()
        if opened is not None:
            if written == closing:
                spans.append((opened.start(), mark.end()))
                opened = None
        elif _is_quoted(reply, mark):
            continue
        elif not spans and mark.start() > limit:
            break
        elif written in table.closing:
            opened, closing = mark, table.closing[written]
        elif written not in table.ends:
            spans = [(0, mark.end())]
    if opened is not None:
        return masked(reply, [*spans, (opened.start(), len(reply))]), opened[0]
    return masked(reply, spans), ""


def _before_end_of_sequence(reply: str, first: int) -> str:
    """Return a reply up to its ``</s>``, unless a ``<s>`` precedes it, which makes it HTML."""
    end = _END_OF_SEQUENCE.search(reply, first) if reply.find("</", first) >= 0 else None
    return reply if end is None or "<s>" in reply[: end.start()] else reply[: end.start()]


def _without_channels(reply: str) -> tuple[str, str]:
    """Return a reply of gpt-oss without its analysis, up to the end of its first call."""
    channels = list(_CHANNEL.finditer(reply))
    if not channels:
        return reply, ""
    spans, answered = [(0, channels[0].start())] if channels[0].start() else [], False
    ends = [*(channel.start() for channel in channels[1:]), len(reply)]
    for channel, end in zip(channels, ends, strict=True):
        name = channel[1] or channel[2] or channel[3]
        message = _MESSAGE.match(reply, channel.end())
        if "to=" in channel[0] + reply[channel.end() : min(end, channel.end() + _RECIPIENT)]:
            call_end = _CALL_ENDS.search(reply, message.end() if message else channel.end())
            return masked(reply[: call_end.start() if call_end else end], spans), ""
        if name == "final":
            start = message.end() if message else channel.end()
            return masked(reply, [*spans, (channel.start(), start)]), ""
        spans.append((channel.start(), end))
        answered = name == "commentary"
    return masked(reply, spans), "" if answered else channels[-1][0].strip()


def _without_blocks(reply: str, first: int) -> tuple[str, str]:
    """Return a reply without its reasoning blocks, and the opening mark of an unclosed one."""
    spans: list[tuple[int, int]] = []
    depth, opened, unclosed = 0, 0, ""
    last_square = reply.rfind("[/")  # without a closing mark after it, "[Thought]" is a heading
    for mark in _MARK.finditer(reply, first):
        if mark["answer"]:
            if depth and unclosed[1:2] in {"|", "｜"}:
                spans.append((opened, mark.end()))
                depth = 0
            continue
        closes = _closes(mark)
        heading = (
            mark[0][0] == "["
            and mark["bars"] is None
            and not closes
            and "think" not in mark[0].lower()
            and last_square < mark.end()
        )
        if heading or mark[0].endswith("/>") or _is_quoted(reply, mark):
            continue
        if not closes:
            if not depth:
                opened, unclosed = mark.start(), mark[0]
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                spans.append((opened, mark.end()))
        else:
            spans = [(0, mark.end())]
    if depth:
        return masked(reply, [*spans, (opened, len(reply))]), unclosed
    return masked(reply, spans), ""


def _without_fences(reply: str) -> tuple[str, str]:
    """Return a reply without fences whose language tag marks them as reasoning."""
    spans: list[tuple[int, int]] = []
    depth, opened, unclosed = 0, 0, ""
    for fence in _FENCE.finditer(reply):
        if not depth and not _LANGUAGE.fullmatch(fence[1]):
            continue
        if not depth:
            opened, unclosed = fence.start(), fence[0]
        depth += 1 if fence[1] else -1
        if not depth:
            spans.append((opened, fence.end()))
    if depth:
        return masked(reply, [*spans, (opened, len(reply))]), unclosed
    return masked(reply, spans), ""


def _closes(mark: re.Match[str]) -> bool:
    name = mark["name"] or mark["bars"]
    if name is not None:
        return _CLOSING_NAME.match(name) is not None
    return bool(mark["xml"] or mark["square"] or mark["closed"])


def _is_quoted(reply: str, mark: re.Match[str]) -> bool:
    """Return whether a mark is between quotes; a fence does not count as a quote."""
    before, after = reply[max(0, mark.start() - 2) : mark.start()], reply[mark.end() : mark.end() + 2]
    if not before or not after or "``" in (before, after):
        return False
    return before[-1] in _QUOTES and after[0] in _QUOTES
