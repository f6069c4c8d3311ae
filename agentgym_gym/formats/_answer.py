"""What of a reply is the answer: without its thinking, end marks, role names and unseen characters."""

from __future__ import annotations

import re

from agentgym_gym.errors import NoAction

__all__ = ["answer_of"]

# Characters that show nothing: byte order mark, zero-width ones, marks of direction, soft hyphen.
UNSEEN = (
    "\ufeff\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\u00ad\u180e\u202a-\u202e\u2066-\u2069"
)

# What begins a turn in the chat templates in use; behind the head of a reply it begins somebody's next turn.
_TURN = (
    r"<\|(?:im_start|start_header_id|header_start|start_of_role|start_of_turn_token|role_start|begin_of_text"
    r"|startoftext|(?:user|system|assistant|observation|chatbot|bot|human|ipython)(?:_token)?)\|>"
    r"|<｜(?:user|assistant|begin▁of▁sentence)｜>|<start_of_turn>|<bos>|\]~b\]|\[/?INST\]|<\|turn>"
)
# What ends one.
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
    r"|<start_of_turn>|(?:assistant|model|ai)(?=\s*(?:\n|<\|)))+",
    re.IGNORECASE,
)
_STRUCK = re.compile(r"</s>(?=\s*(?:\Z|\n|<s>|\[INST\]|</s>))", re.IGNORECASE)

# The channels of gpt-oss: what it thinks, what it calls, what it says. Without its marks the names run into
# the text: "analysisWe need a stick.assistantfinalAction: …".
_CHANNEL = re.compile(
    r"(?:<\|start\|>assistant(?:[ \t]+to=[\w.]+)?[ \t]*)?<\|channel\|>[ \t]*(analysis|commentary|final)"
    r"|(?<=assistant)(?:(final))|(?:\A\s*|assistant)(analysis|commentary"
    r"|final)(?=[A-Z`*#{<>\[\n\u4e00-\u9fff]|[ \t]+to=)"
)
_MESSAGE = re.compile(r"[^<\n]{0,200}(?:<\|constrain\|>[^<\n]{0,40})?<\|message\|>")

_THINKING = r"think|thought|reason|reflect|monolog|scratch|deliberat|ponder|brainstorm|rationale|internal"
_THOUGHT_MARK = re.compile(
    r"(?=<[ \t/]{0,7}[|｜]?[\w /]|\[[ \t/]{0,3}[tr]|◁|<｜)(?:"
    rf"<[ \t]{{0,3}}(?P<xml>/)?[ \t]{{0,3}}(?:[\w:-]{{0,20}}?(?:{_THINKING})[\w:-]{{0,20}}|analysis"
    rf"|plan(?:ning)?|draft|cot)"
    r"(?:[ \t\n][^<>]{0,200})?>"
    r"|\[[ \t]?(?P<square>/)?[ \t]?(?:think(?:ing)?|thoughts?|reasoning|reflection)[ \t]?\]"
    rf"|<[|｜](?P<name>[^|｜<>\n]{{0,20}}?(?:{_THINKING}|inner_)[^|｜<>\n]{{0,20}})[|｜]>"
    r"|◁(?P<triangle>/)?think(?:ing)?▷"
    r"|<unused9(?P<unused>[45])>|<(?P<gemma>\|channel|channel\|)>)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```[ \t]{0,3}(\w*)")
_THINKING_LANGUAGE = re.compile(r"think(?:ing)?|thoughts?|reasoning|scratchpad", re.IGNORECASE)
_THINKING_FENCE = re.compile(rf"```[ \t]{{0,3}}(?:{_THINKING_LANGUAGE.pattern})", re.IGNORECASE)
_CLOSING_NAME = re.compile(r"/|end|.*(?:end|suffix|close|stop)\Z", re.IGNORECASE)
_QUOTES = "`'\"“”‘’「」"
_SIGNS = "<[]◁"  # the first characters of all marks
_BEGINNINGS = frozenset(f"aAmM \n\t{UNSEEN}")  # of a role that stands before the reply, or of nothing seen


def answer_of(reply: str) -> str:
    """Return what a reply says: without its thinking, and up to the mark that ends it.

    Taken off are, whatever the family of the model:

    - what stands behind the first mark that ends a turn or begins the next one;
    - what is thought: from an opening mark to its closing mark, or from the beginning of the reply to a
      closing mark that nothing opened, since chat templates often write the opening one. A mark in quotes
      is a mention;
    - the role, marks and invisible characters before the first word; carriage returns of line ends.

    Raises:
        NoAction: The reply holds only thinking, or ends in the midst of it.
    """
    if "\r" in reply:  # to find that there is none is faster
        reply = reply.replace("\r\n", "\n") if "\n" in reply else reply.replace("\r", "\n")
    first = _first_mark(reply)
    if "analysis" in reply or "assistantfinal" in reply or (first is not None and "<|channel|>" in reply):
        reply = _said_aloud(reply)
        first = _first_mark(reply)
    if "```" in reply and _THINKING_FENCE.search(reply):
        reply = _without_fenced_thinking(reply)
        first = _first_mark(reply)
    if first is None and reply[:1] not in _BEGINNINGS:
        return reply.rstrip()
    head = _HEAD.match(reply)
    if head:
        reply = reply[head.end() :]
        first = _first_mark(reply)
    if first is not None:
        end = _END_OF_TURN.search(reply, first)
        reply = _without_struck(reply[: end.start()] if end else reply, first)
        if _THOUGHT_MARK.search(reply, first):
            reply = _without_head(_without_thinking(reply, first))
    return reply.rstrip()


def _first_mark(reply: str) -> int | None:
    """Return the first place where a mark of a chat template could stand, or None: to search is slow."""
    found = [place for sign in _SIGNS if (place := reply.find(sign)) >= 0]
    return min(found) if found else None


def _without_head(reply: str) -> str:
    head = _HEAD.match(reply)
    return reply[head.end() :] if head else reply


def _without_struck(reply: str, first: int) -> str:
    """Return a reply up to its ``</s>``, which is HTML where a ``<s>`` stands before it."""
    end = _STRUCK.search(reply, first) if reply.find("</", first) >= 0 else None
    return reply if end is None or "<s>" in reply[: end.start()] else reply[: end.start()]


def _said_aloud(reply: str) -> str:
    """Return what a reply of gpt-oss says or calls, without what it thinks.

    Raises:
        NoAction: It only thinks.
    """
    channels = list(_CHANNEL.finditer(reply))
    if not channels:
        return reply
    called = ""
    ends = [*(channel.start() for channel in channels[1:]), len(reply)]
    for channel, end in zip(channels, ends, strict=True):
        name = channel[1] or channel[2] or channel[3]
        if name == "final":
            message = _MESSAGE.match(reply, channel.end())
            return reply[message.end() if message else channel.end() : end]
        if name == "commentary" and not called and "to=" in channel[0] + reply[channel.end() : end][:80]:
            called = reply[channel.start() : end]
    if not called:
        raise NoAction("the reply ends before its final channel: think less, then give the action")
    return called


def _without_thinking(reply: str, first: int) -> str:
    """Return a reply without the blocks in which it thinks.

    Raises:
        NoAction: It ends inside of one.
    """
    kept: list[str] = []
    depth = position = 0
    last_square = reply.rfind("[/")  # where none closes one, "[Thought]" is a heading
    for mark in _THOUGHT_MARK.finditer(reply, first):
        closes = _closes(mark)
        heading = (
            mark[0][0] == "[" and not closes and "think" not in mark[0].lower() and last_square < mark.end()
        )
        if heading or mark[0].endswith("/>") or _is_mention(reply, mark):
            continue
        if not closes:
            if not depth:
                kept.append(reply[position : mark.start()])
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept = []  # all that stands before a closing mark which nothing opened was thought
        position = mark.end()
    if not depth:
        if not position:
            return reply
        kept.append(reply[position:])
    elif not "".join(kept).strip():
        raise NoAction("the reply ends inside its thinking: think less, then give the action")
    return "".join(kept)


def _without_fenced_thinking(reply: str) -> str:
    """Return a reply without the fences whose language says that they hold thinking.

    Raises:
        NoAction: It ends inside of one.
    """
    kept, position, depth = [], 0, 0
    for fence in _FENCE.finditer(reply):
        if not depth and not _THINKING_LANGUAGE.fullmatch(fence[1]):
            continue
        if not depth:
            kept.append(reply[position : fence.start()])
        depth += 1 if fence[1] else -1
        position = fence.end()
    if depth:
        raise NoAction("the reply ends inside its thinking: think less, then give the action")
    return "".join([*kept, reply[position:]])


def _closes(mark: re.Match[str]) -> bool:
    name = mark["name"]
    if name is not None:
        return _CLOSING_NAME.match(name) is not None
    if mark["unused"] or mark["gemma"]:
        return mark["unused"] == "5" or mark["gemma"] == "channel|"
    return bool(mark["xml"] or mark["square"] or mark["triangle"])


def _is_mention(reply: str, mark: re.Match[str]) -> bool:
    """Return whether a mark stands in quotes, and so is only spoken of; a fence is none."""
    before, after = reply[max(0, mark.start() - 2) : mark.start()], reply[mark.end() : mark.end() + 2]
    if not before or not after or "``" in (before, after):
        return False
    return before[-1] in _QUOTES and after[0] in _QUOTES
