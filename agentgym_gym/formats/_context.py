"""What the words around a call say of it: that it is to be carried out, or that it is only spoken of.

A call may stand in a reply as an example, a plan, a memory, or something the model decides against. The words
that show this are looked for in the sentence that leads to the call, and in what follows it. Where they leave
a doubt, the call is not taken.
"""

from __future__ import annotations

import re

from agentgym_gym.formats._languages import NEGATED, SUPPOSED, TAKEN_BACK

__all__ = ["REMARK", "before_invented_turn", "is_doubtful"]

_LEAD = 600  # characters before a call in which its sentence is looked for
_BEHIND = 2_000  # characters right behind it, and at the end of the reply, in which it may be taken back

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
    rf"\n[ \t>#*_`\[(]*(?:{_TURNS})[ \t]*\d{{0,3}}[\])*_`]*[ \t]*(?:[:：>=]|\n)"
    r"|\n[ \t]*(?:`{3,}|~{3,})[ \t]*(?:tool_?)?(?:outputs?|results?|stdout|console|response|observation)\b"
    rf"|<\|?/?(?:{_TURN_TAGS})\b|\[TOOL_RESULTS\]|<｜tool▁outputs?▁begin｜>|<｜User｜>|<\|start\|>(?!assistant)"
    r"|观察(?:结果)?[:：]|观测[:：]",
    re.IGNORECASE,
)

# Marks between the words and the call, such as a fence or a tag.
_MARKS = re.compile(r"(?:[\s*_`~\[({>\"'“#-]|<[^<>\n]{1,60}>|\[[A-Z_]{3,20}\]|(?<=`)[a-z_]{1,12}\n)+\Z")
_FENCE_BEFORE = re.compile(r"(?:`{3,}|~{3,})[ \t]*[\w+#.-]*\s*\[?\s*\Z")
_FENCE_BEHIND = re.compile(r"[\s\]]*(?:`{3,}|~{3,})")
# Struck out, in a comment, or quoted by a traceback.
_HIDDEN = re.compile(
    r"(?:~~|<!--\s*|(?:\A|\n)[ \t]*(?://|#)[ \t]*|File \"[^\"\n]*\", line \d+[^\n]*\n[ \t]*)\Z"
)
_LIST_MARK = re.compile(r"(?:\A|\n)[ \t]*(?:\d{1,2}[.)]|[-*•])[ \t]*[`\s]*\Z")
_LIST_GOES_ON = re.compile(r"[`\s.;,]*\n[ \t]*(?:\d{1,2}[.)]|[-*•])[ \t]")
_ENDED = re.compile(r"[.!?。！？…](?:[\"'”)*_`]*(?:\s|\Z))|\n\s*\n|\n(?=[-*#]|\d+\.)")
# A word and a colon before a call name it: as what is meant only in these.
_ONE_WORD_LABEL = re.compile(r"[\s*_`>#-]*([A-Za-z]+)[\s*_`]*[:：]\s*\Z")
_LABELS = frozenset(
    {
        *(
            "action",
            "function",
            "tool",
            "call",
            "answer",
            "output",
            "response",
            "reply",
            "json",
            "code",
            "final",
        ),
        *(
            "next",
            "now",
            "so",
            "here",
            "result",
            "act",
            "do",
            "execute",
            "run",
            "command",
            "decision",
            "move",
        ),
        *(
            "choice",
            "ok",
            "okay",
            "well",
            "assistant",
            "solution",
            "invoke",
            "python",
            "accion",
            "aktion",
            "antwort",
        ),
    }
)
_CLAUSE = re.compile(r"[,;:，；：—–]| so | therefore | hence |thus ", re.IGNORECASE)


def _phrases(*phrases: str, other: str = "") -> re.Pattern[str]:
    """Return a pattern of phrases of whole words, and of others that no word borders set apart."""
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b" + (f"|{other}" if other else ""), re.IGNORECASE)


# In the sentence that leads to the call: it is an example, or a question.
_IN_FORMAT = _phrases(r"(?:in|using|following|with) (?:\w+ ){0,4}(?:format|syntax|schema|template)")
_EXAMPLE = _phrases(
    *(
        "usage",
        r"options? \w",
        "(?:can|could|would|will) you",
        "the prompt (?:says|shows|has)",
        "in the prompt",
    ),
    *("samples?", r"histor\w+", "rejected", "obsolete", "old"),
    *("examples?", "for instance", "such as", "format", "syntax", "template", "schema", "looks? like"),
    *(
        "of the form",
        "the form is",
        r"illustrat\w*",
        r"hypothetical\w*",
        "draft",
        "sketch",
        "placeholder",
        "pretend",
        "imagine",
    ),
    r"(?:this|the following)(?: \w+)? (?:fail(?:s|ed)|crashe[sd]|raise[sd]|does not work)",
    r"this (?:\w+ )?(?:is|was|would be) (?:wrong|incorrect|invalid|bad|a mistake)",
    *("suppose", "available (?:functions|tools|actions)", "par exemple", "por ejemplo", "Beispiel"),
    *(r"(?:shall|should|may|could|can) (?:I|we)", "(?:do|would) you (?:want|like|mean)", "what if"),
    *("how about", "whether"),
    other=r"\be\.g\.|\b(?:user|human|system|observation)\s*[:：]\s*\Z|例如|比如|示例|格式",
)
# In the clause that leads to it: it is not done, or not now.
_UNREAL = _phrases(
    *(
        "possibly",
        r"like(?=\s*\Z)",
        r"no(?=\s*\Z)",
        "said",
        "says",
        r"confirm\w*",
        "permission",
        r"approv\w*",
    ),
    *("waiting for", "not sure", "unsure"),
    *("could", "might", "may", "should (?:have|not|never)", "would(?! like to| now| be to)", "not", "never"),
    *(
        "cannot",
        r"\w+n['’]t",
        "avoid",
        "refrain",
        "without",
        "instead of",
        "rather than",
        "wrong",
        "mistaken?",
    ),
    *("invalid", "failed", "forbidden", "refuse[ds]?", "pointless", "useless", "later", "eventually"),
    *("afterwards?", "next (?:turn|time)", "after (?:that|this)", "in the end", "at the end", "when", "once"),
    *("if", "until", "unless", "perhaps", "maybe", r"tempt\w+", r"consider\w*", "thought of", "thinking of"),
    *(r"alternativ\w+", r"plan\w*", r"previous\w*", "earlier", r"before(?=\s*\Z)", "then", "already"),
    *("last (?:turn|time|step)", "tried", "was", "were", "did", "had", "used to", "called", "ran", "wrote"),
    *("executed", "issued", "performed", "buggy", "broken", "faulty", "erroneous", "outdated"),
    *("asked", "either", "one day", "nicht", "würde", "könnte", r"kein\w*", r"ne \w+ pas"),
    other=r"\b(?:I|we|you|it)['’]d\b(?! like to)|不要|不能|不应|不会|别|如果|之后|以后|可能|或许",
)
# At the beginning of the sentence: it is done only under a condition, or at another time.
_CONDITION = re.compile(
    r"[\s\"'*_`>#-]*(?:if|when|once|unless|until|after\w*|later|eventually|before(?=[^,:：]*\Z)"
    r"|instead|suppose"
    r"|previously|earlier|next turn|in the next|in (?:a|the) later|last|then|had|were|at the end"
    r"|如果|等|之后)\b",
    re.IGNORECASE,
)
# Behind the call, a sentence that goes on in another way than with its purpose.
_GOES_ON = re.compile(
    r"[ \t\"'`”*_)\]}>,;—–-]*[ \t](?!(?:to|because|so|since|in order|now|as|which|with"
    r"|for(?! (?:example|instance)))\b|and (?:wait|see)\b)[a-zà-ÿ]"
)
_RUNS_ON = re.compile(
    r"[ \t\"'`”*_)\]}>]*[,;—–-]*\s*(?:but|yet|or|nor|unless|if|when|once|until|would|could|might|may|should"
    r"|was|were|is|are|will|can|cannot|does|did|has|had|later|instead|only|except|and then|then|afterwards?"
    r"|before|not|never|for (?:example|instance)|as (?:an? )?(?:example|illustration)"
    r"|because (?:it|that) (?:would|is not))\b"
)
# On its line behind it.
REMARK = re.compile(
    r"[^\n]*\b(?:examples?|draft|illustration|not yet|later|wrong|todo|instead|do not|don['’]?t"
    r"|times|twice|repeat\w*)\b"
    r"|[ \t]*[x\xd7*][ \t]?\d",
    re.IGNORECASE,
)
"""What a remark says of a call on the line on which it ends, if the call is not to be carried out."""

_QUESTION = re.compile(r"[^.!?\n。！？]{0,200}[?？]")
# Behind it, what takes it back: as the beginning of a sentence, and anywhere.
_TURNING = re.compile(
    r"(?:^|[.!?\n—…(-])[ \t\"'*_`>)]*(?:but\b|no\b[,.! —-]|nope\b|wait\b|actually\b|hmm|hold on|however\b"
    r"|on second thought|scratch|never ?mind|instead\b|rather\b|correction\b|edit\b|oops|sorry\b"
    r"|alternatively\b|or (?:rather|maybe|perhaps|else|should)\b|not yet\b|just kidding|then again)",
    re.IGNORECASE,
)
_IT_IS = "(?:this|that|it|above|which) (?:is|was|would be|were)"
_DO = "(?:run|call|execute|play|send|use|do|carry)"
_TAKEN_BACK = _phrases(
    *(
        "cancel (?:this|that|it)",
        "forget (?:this|that|it)",
        "(?:was|is) (?:only |just )?a test",
    ),
    *(
        "(?:should|must|can) be (?:ignored|skipped)",
        f"{_IT_IS} what (?:I|we|you) (?:wrote|said|sent|did|had)",
    ),
    "the above (?:call )?(?:is|was)",
    *("on second thought", "scratch that", "never ?mind", "ignore (?:this|that|the|it|my)", "disregard"),
    *(
        "take (?:that|it) back",
        "changed? my mind",
        "not (?:yet|now)",
        "let me (?:rethink|reconsider|think again)",
    ),
    *(f"do not {_DO}", f"(?:will|would|should|shall|must|did) not (?:{_DO}|be)", rf"\w+n['’]t (?:{_DO}|be)"),
    f"{_IT_IS} (?:only|just|merely|but|not|wrong|incorrect|a mistake|invalid|how (?:I|we|it|one|you|a))",
    f"{_IT_IS} an? (?:example|draft|sketch|illustration|plan)",
    f"{_IT_IS} what (?:I|we) (?:would|could|might)",
    f"{_IT_IS} the (?:previous|last|first|old|format|syntax|wrong|form)",
    other="不对|等等|算了|不过先|但是先|而不是|只是示例|只是例子",
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
    if _EXAMPLE.search(_IN_FORMAT.sub("", sentence)) or SUPPOSED.search(sentence):
        return True
    if apart and words[-1] not in ":：":
        return False
    if label := _ONE_WORD_LABEL.match(sentence):
        return label[1].lower() not in _LABELS
    clauses = [clause for clause in _CLAUSE.split(sentence) if clause.strip()]
    return bool(
        _CONDITION.match(sentence)
        or (clauses and (_UNREAL.search(clauses[-1]) or NEGATED.search(clauses[-1])))
    )


def _is_taken_back(after: str) -> bool:
    if len(after) > 2 * _BEHIND:
        after = f"{after[:_BEHIND]}\n{after[-_BEHIND:]}"
    after = " " + after.lstrip("`~ \t")
    going_on = (REMARK, _RUNS_ON, _GOES_ON, _QUESTION)
    return any(p.match(after) for p in going_on) or any(
        p.search(after) for p in (_TURNING, _TAKEN_BACK, TAKEN_BACK)
    )
