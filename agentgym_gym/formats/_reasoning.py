"""Extract the answer from a reply, without reasoning, role header and text after the end of its turn."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["UNSEEN", "answer_in", "masked"]

UNSEEN = (
    "\ufeff\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\u00ad\u180e\u202a-\u202e\u2066-\u2069"
)
"""Characters without a glyph, for a character class: byte order mark, zero width, direction, soft hyphen."""

# Tokens that start a turn in common chat templates. After the header of a reply, such a token starts another
# turn.
_TURN = (
    r"<\|(?:im_start|start_header_id|header_start|start_of_role|start_of_turn_token|role_start|begin_of_text"
    r"|startoftext|(?:user|system|assistant|observation|chatbot|bot|human|ipython)(?:_token)?)\|>"
    r"|<｜(?:user|assistant|begin▁of▁sentence)｜>|<start_of_turn>|<bos>|\]~b\]|\[/?INST\]|<\|turn>"
)
# Tokens that end a turn.
_END = (
    r"<\|(?:im_end|endoftext|end_of_text|eot_id|eom_id|eot|eom|eos|end|return|call|end_of_turn_token"
    r"|end_of_turn|end_response|end_text|end_of_solution|hy_eos|role_end|endofturn|endofresponse|im_stop)\|>"
    r"|<｜end▁of▁sentence｜>|<end_of_turn>|<end_of_utterance>|<seed:eos>|<eos>|\[e~\[|<turn\|>"
)
_END_OF_TURN = re.compile(
    rf"(?=<[|｜]?[a-z]|\[/?INST|\[e~|\]~)(?:{_END}|{_TURN}|<\|start\|>(?!assistant))", re.IGNORECASE
)
_HEAD = re.compile(
    rf"(?:\s|[{UNSEEN}]|<s>|{_TURN}|<\|(?:end_header_id|header_end|im_sep|end_of_role|chatbot_token"
    r"|begin_of_solution|start_response|start_text|message|start)\|>"
    r"|<start_of_turn>|(?:assistant|model|ai)(?=\s*(?:\n|<\|))|(?:assistant|agent)[ \t]*:)+",
    re.IGNORECASE,
)
_END_OF_SEQUENCE = re.compile(r"</s>(?=\s*(?:\Z|\n|<s>|\[INST\]|</s>))", re.IGNORECASE)

# The channels of gpt-oss: analysis, commentary (with the calls) and final. If an engine drops special tokens,
# their names remain in the text: "analysisWe need a stick.assistantfinalAction: …".
_CHANNEL = re.compile(
    r"(?:<\|start\|>assistant(?:[ \t]+to=[\w.]+)?[ \t]*)?<\|channel\|>[ \t]*(analysis|commentary|final)"
    r"|(?<=assistant)(?:(final))|(?:\A\s*|assistant)(analysis|commentary"
    r"|final)(?=[A-Z`*#{<>\[\u4e00-\u9fff]|[ \t]+to=)"
)
_MESSAGE = re.compile(r"[^<\n]{0,200}(?:<\|constrain\|>[^<\n]{0,40})?<\|message\|>")
_CALL_ENDS = re.compile(r"<\|(?:call|end|return|start)\|>")
_CHANNELS = ("analysis", "commentary", "final")
_RECIPIENT = 80  # characters after the name of a channel that are searched for its recipient

_WORDS = r"think|thought|reason|reflect|monolog|scratch|deliberat|ponder|brainstorm|rationale|internal"
_STEM = re.compile(rf"{_WORDS}|inner_|analysis|plan|draft|cot|unused9|channel")  # each mark contains one
_MARK = re.compile(
    r"(?=<[ \t/]{0,7}[|｜]?[\w /]|\[[ \t/]{0,3}[tr]|◁|<｜)(?:"
    rf"<[ \t]{{0,3}}(?P<xml>/)?[ \t]{{0,3}}(?:[\w:-]{{0,20}}?(?:{_WORDS})[\w:-]{{0,20}}|analysis"
    rf"|plan(?:ning)?|draft|cot)"
    r"(?:[ \t\n][^<>]{0,200})?>"
    r"|\[[ \t]?(?P<square>/)?[ \t]?(?:think(?:ing)?|thoughts?|reasoning|reflection)[ \t]?\]"
    rf"|<[|｜](?P<name>[^|｜<>\n]{{0,20}}?(?:{_WORDS}|inner_)[^|｜<>\n]{{0,20}})[|｜]>"
    r"|◁(?P<triangle>/)?think(?:ing)?▷"
    r"|<unused9(?P<unused>[45])>|<(?P<gemma>\|channel|channel\|)>)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```[ \t]{0,3}(\w*)")
_LANGUAGE = re.compile(r"think(?:ing)?|thoughts?|reasoning|scratchpad", re.IGNORECASE)
_REASONING_FENCE = re.compile(rf"```[ \t]{{0,3}}(?:{_LANGUAGE.pattern})", re.IGNORECASE)
_CLOSING_NAME = re.compile(r"/|end|.*(?:end|suffix|close|stop)\Z", re.IGNORECASE)
_QUOTES = "`'\"“”‘’「」"
_SQUARE_MARK = re.compile(r"\[[ \t]?/?[ \t]?(?:INST|e~\[|[Tt][Hh][Ii]|[Tt][Hh][Oo]|[Rr][Ee])")
_SIGNS = "<[]◁"  # the first characters of all marks
_BEGINNINGS = frozenset(f"aAmMcf \n\t{UNSEEN}")  # of a role, a channel, or a character without a glyph


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
    squares = square >= 0 and (_SQUARE_MARK.search(reply, square) is not None or "]~b]" in reply)
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
    if (reply[:1] in _BEGINNINGS or reply[:1] in _SIGNS) and (head := _HEAD.match(reply)):
        reply = masked(reply, [(0, head.end())])
    if first >= 0:
        end = _END_OF_TURN.search(reply, first)
        reply = _before_end_of_sequence(reply[: end.start()] if end else reply, first)
        if _STEM.search(reply[first:].lower()) and _MARK.search(reply, first):
            reply, unclosed = _without_blocks(reply, first)
            if head := _HEAD.match(reply):
                reply = masked(reply, [(0, head.end())])
    return reply, unclosed


def masked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a text with line breaks in place of all characters of some spans, which must be in order."""
    kept, position = [], 0
    for start, end in spans:
        kept += [text[position:start], "\n" * (end - start)]
        position = end
    return "".join([*kept, text[position:]])


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
        closes = _closes(mark)
        heading = (
            mark[0][0] == "[" and not closes and "think" not in mark[0].lower() and last_square < mark.end()
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
    name = mark["name"]
    if name is not None:
        return _CLOSING_NAME.match(name) is not None
    if mark["unused"] or mark["gemma"]:
        return mark["unused"] == "5" or mark["gemma"] == "channel|"
    return bool(mark["xml"] or mark["square"] or mark["triangle"])


def _is_quoted(reply: str, mark: re.Match[str]) -> bool:
    """Return whether a mark is between quotes; a fence does not count as a quote."""
    before, after = reply[max(0, mark.start() - 2) : mark.start()], reply[mark.end() : mark.end() + 2]
    if not before or not after or "``" in (before, after):
        return False
    return before[-1] in _QUOTES and after[0] in _QUOTES
