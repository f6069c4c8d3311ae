"""What the words around a call say of it: that it is to be carried out, or that it is only spoken of.

A call may stand in a reply as an example, a plan, a memory, or something the model decides against. The words
that show this are looked for in the sentence that leads to the call, and in what follows it. Where they leave
a doubt, the call is not taken.
"""

from __future__ import annotations

import re

__all__ = ["before_invented_turn", "is_doubtful"]

_LEAD = 600  # characters before a call in which its sentence is looked for

# What the model invents after its call: the answer to it, and what follows. The first call is the one.
_INVENTED = re.compile(
    r"\n[ \t>#*_`\[(]*(?:observation|(?:tool|function|code|execution)?[ _]?(?:result|response|output)s?"
    r"|environment|env|user|human|system|tool|ipython|returns?|stdout)[ \t]*\d{0,3}[\])*_`]*[ \t]*(?:[:：>=]|\n)"
    r"|\n[ \t]*(?:`{3,}|~{3,})[ \t]*(?:tool_?)?(?:outputs?|results?|stdout|console|response|observation)\b"
    r"|<\|?/?(?:tool_response|tool_outputs?|tool_results?|function_results?|function_response|observation"
    r"|result|output|information|response|start_header_id|im_start|start_of_turn|user|turn)\b"
    r"|\[TOOL_RESULTS\]|<｜tool▁outputs?▁begin｜>|<｜User｜>|<\|start\|>(?!assistant)|观察[:：]|观察结果[:：]|观测[:：]",
    re.IGNORECASE,
)

# Marks between the words and the call, such as a fence or a tag.
_MARKS = re.compile(r"(?:[\s*_`~\[({>\"'“#-]|<[^<>\n]{1,60}>|\[[A-Z_]{3,20}\]|(?<=`)[a-z_]{1,12}\n)+\Z")
_ENDED = re.compile(r"[.!?。！？…](?:[\"'”)*_`]*(?:\s|\Z))|\n\s*\n|\n(?=[-*#]|\d+\.)")
_CLAUSE = re.compile(r"[,;:，；：—–]| so | therefore | hence |thus ", re.IGNORECASE)

_EXAMPLE = re.compile(
    r"\bexamples?\b|\be\.g\.|\bfor instance\b|\bsuch as\b|\bformat\b|\bsyntax\b|\btemplate\b|\bschema\b"
    r"|\blooks? like\b|\bof the form\b|\billustrat|\bhypothetical|\bdraft\b|\bsketch\b|\bplaceholder\b"
    r"|\bpretend\b|\bimagine\b|\bsuppose\b|\bavailable (?:functions|tools|actions)\b|\b(?:user|human|system|observation)\s*[:：]\s*\Z"
    r"|\bBeispiel|\bpar exemple\b|\bpor ejemplo\b|例如|比如|示例|格式",
    re.IGNORECASE,
)
_IN_FORMAT = re.compile(
    r"\b(?:in|using|following|with) (?:\w+ ){0,4}(?:format|syntax|schema|template)\b", re.IGNORECASE
)
_UNREAL = re.compile(
    r"\b(?:could|might|may|shouldn|should(?= (?:have|not|never))|would(?! like to| now| be to)|not|never|cannot"
    r"|can't|won't|don't|didn't|doesn't|isn't|wasn't|wouldn't|couldn't|shouldn't|avoid|refrain|without|instead of"
    r"|rather than|wrong|mistake|mistaken|invalid|failed|forbidden|refuse[ds]?|pointless|useless|later|eventually"
    r"|afterwards?|next (?:turn|time)|after (?:that|this)|in the end|at the end|when|once|if|until|unless"
    r"|perhaps|maybe|tempt\w+|consider\w*|thought of|thinking of|alternativ\w+|plan\w*|previous\w*"
    r"|earlier|before(?=\s*\Z)|then|already|last (?:turn|time|step)|tried|was|were|did|had|used to|called|ran|wrote|asked|either"
    r"|one day|finally (?:I|we) (?:can|could))\b"
    r"|\b(?:I|we|you|it)['’]d\b(?! like to)|\b(?:nicht|würde|könnte|kein\w*)\b|不要|不能|不应|不会|别|如果|之后|以后|可能|或许",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"[\s\"'*_`>#-]*(?:if|when|once|unless|until|after\w*|later|eventually|before(?=[^,:：]*\Z)|instead|suppose|previously"
    r"|earlier|next turn|in the next|in (?:a|the) later|last|then|had|were|at the end|如果|等|之后)\b",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"\b(?:shall|should|may|could|can) (?:I|we)\b|\b(?:do|would) you (?:want|like|mean)\b|\bwhat if\b|\bhow about\b"
    r"|\bwhether\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[^.!?\n。！？]{0,200}[?？]")
# Struck out, or in a comment.
_HIDDEN = re.compile(r"(?:~~|<!--\s*|(?:\A|\n)[ \t]*(?://|#)[ \t]*)\Z")
_LIST_MARK = re.compile(r"(?:\A|\n)[ \t]*(?:\d{1,2}[.)]|[-*•])[ \t]*[`\s]*\Z")
_LIST_GOES_ON = re.compile(r"[`\s.;,]*\n[ \t]*(?:\d{1,2}[.)]|[-*•])[ \t]")
# A sentence that goes on behind the call in another way than with its purpose.
_GOES_ON = re.compile(
    r"[ \t\"'`”*_)\]}>,;—–-]*[ \t](?!(?:to|because|so|since|in order|now|as|which|with|for(?! (?:example|instance)))\b"
    r"|and (?:wait|see)\b)[a-zà-ÿ]"
)
_RUNS_ON = re.compile(
    r"[ \t\"'`”*_)\]}>]*[,;—–-]*\s*(?:but|yet|or|nor|unless|if|when|once|until|would|could|might|may|should|was"
    r"|were|is|are|will|can|cannot|does|did|has|had|later|instead|only|except|and then|then|afterwards?|before"
    r"|not|never|for (?:example|instance)|as (?:an? )?(?:example|illustration)|because (?:it|that) (?:would|is not))\b"
)
_TAKEN_BACK = re.compile(
    r"(?:^|[.!?\n—…(-])[ \t\"'*_`>)]*(?:but\b|no\b[,.! —-]|nope\b|wait\b|actually\b|hmm|hold on|however\b|on second"
    r" thought|scratch|never ?mind|instead\b|rather\b|correction\b|oops|sorry\b|alternatively\b|or (?:rather|maybe"
    r"|perhaps|else|should)\b|not yet\b|just kidding|then again)"
    r"|\b(?:on second thought|scratch that|never ?mind|ignore (?:this|that|the|it|my)|disregard|take (?:that|it) back"
    r"|changed? my mind|not (?:yet|now)\b|let me (?:rethink|reconsider|think again)|don['’]?t (?:run|call|execute|play"
    r"|send|use|do|carry)|do not (?:run|call|execute|play|send|use|do|carry)|should not be|must not be"
    r"|(?:will|would|should|shall|must|do|did) not (?:run|call|execute|play|send|use|do|carry|be)"
    r"|(?:won['’]?t|wouldn['’]?t|shouldn['’]?t) (?:run|call|execute|play|send|use|do|carry|be)"
    r"|(?:this|that|it|above|which) (?:is|was|would be|were) (?:only |just |merely |but |not |wrong|the (?:previous|last|first|old)|a mistake"
    r"|incorrect|invalid|an? (?:example|draft|sketch|illustration|mistake|plan)|what (?:I|we) (?:would|could|might)"
    r"|how (?:I|we|it|one|you|a) |the (?:format|syntax|wrong|form)))"
    r"|不对|等等|算了|不过先|但是先|而不是|只是示例|只是例子",
    re.IGNORECASE,
)


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
    before, after = text[max(0, start - _LEAD) : start], text[end:]
    if _HIDDEN.search(before):
        return True
    if mark := _LIST_MARK.search(before):
        before = before[: mark.start()]
        if _LIST_GOES_ON.match(after):
            return True
    return _is_led_to_doubtfully(before) or _is_taken_back(after)


def _is_led_to_doubtfully(before: str) -> bool:
    marks = _MARKS.search(before)
    words = before[: marks.start()] if marks else before
    if not words:
        return False
    complete = words[-1] in ".!?。！？…"
    apart = complete or "\n\n" in (marks[0] if marks else "")
    ends = [found.end() for found in _ENDED.finditer(words[:-1])]
    sentence = words[ends[-1] :] if ends else words
    if _ASKED.search(sentence) or _EXAMPLE.search(_IN_FORMAT.sub("", sentence)):
        return True
    if apart and words[-1] not in ":：":
        return False
    clauses = [clause for clause in _CLAUSE.split(sentence) if clause.strip()]
    return bool(_CONDITION.match(sentence) or (clauses and _UNREAL.search(clauses[-1])))


def _is_taken_back(after: str) -> bool:
    after = " " + after.lstrip("`~ \t")
    return bool(_RUNS_ON.match(after) or _GOES_ON.match(after) or _QUESTION.match(after) or _TAKEN_BACK.search(after))
