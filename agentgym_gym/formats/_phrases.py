"""The phrases by which a reply says of an action that it is not, or not yet, to be carried out.

They are looked for in small letters, with plain marks in place of typographic ones. Case-sensitive patterns
are passed over much faster: an alternative that begins with another letter is not tried.
"""

# ruff: noqa: RUF001 - models write these characters, too

from __future__ import annotations

import re

from agentgym_gym.formats import _languages as languages

__all__ = ["CLAUSE", "COMMENT", "CONDITION", "CONSEQUENCE", "DOUBT", "EXAMPLE", "GOES_ON", "IN_FORMAT"]
__all__ += [
    "IN_MIDST",
    "MISTAKEN",
    "MORE",
    "NAMED",
    "NOT_WRITTEN",
    "OFFERED",
    "QUESTION",
    "REMARK",
    "RUNS_ON",
]
__all__ += ["SPEAKER", "SUPPOSED", "TURNING", "UNREAL"]


def _phrases(*phrases: str, other: str = "") -> re.Pattern[str]:
    """Return a pattern of phrases of whole words, and of others that no borders of words set apart.

    Args:
        phrases: Alternatives of a regular expression.
        other: More of them, in scripts other than Latin. Only where such a letter stands are they tried.
    """
    of_words = rf"\b(?=\w)(?:{'|'.join(phrases)})\b"
    return re.compile(of_words + (rf"|(?=[^\x00-\u024f])(?:{other})" if other else ""))


# ------------------------------------------------------------------ in the sentence that leads to the action

IN_FORMAT = re.compile(
    r"\b(?:in|with|using|following|follows?) (?:\w+ ){0,4}(?:format|form|syntax|schema|template)\b"
)
"""A format that a sentence says it keeps to, and so shows none."""

_NOT_SET = r"(?! (?:are|is|were) (?:all )?(?:set|chosen))"  # which options of a product may be
EXAMPLE = _phrases(
    r"examples?|for instance|such as|e\.g|samples?|illustrat\w*|format|form|syntax|template|schema",
    rf"looks? like|like this|usage|options?{_NOT_SET} \w|histor\w+|rejected|obsolete|old|draft|sketch",
    r"placeholder|hypothetical\w*|pretend|imagine|suppose|what if|how about|whether",
    r"available (?:functions|tools|actions)|in the prompt|the prompt (?:says|shows|has)",
    r"(?:can|could|would|will|do) you|(?:shall|should|may|could|can) (?:i|we)",
    r"(?:this|the following)(?: \w+)? (?:fail(?:s|ed)|crashe[sd]|raise[sd]|does not work)",
    r"this (?:\w+ )?(?:is|was|would be) (?:wrong|incorrect|invalid|bad|a mistake)",
    r"(?:do not|don't|never) (?:do|write|run|call|send|use|reply) (?:this|that|the following|like)",
    r"anything but|the opposite of",
    languages.EXAMPLES,
    other=rf"{languages.OTHER_EXAMPLES}|{languages.OTHER_SUPPOSITIONS}",
)
"""A sentence that shows what follows it as an example, supposes it, or asks."""

SUPPOSED = re.compile(rf"[^\w]*(?:{languages.SUPPOSITIONS})\b")
"""The beginning of a sentence that only supposes what follows it, or makes it wait for something."""

OFFERED = _phrases(
    rf"you (?:said|wrote|suggested|asked)|options?{_NOT_SET}|possib\w+|choices|blocked|impossible",
    r"suggest\w*|testing|commands|(?<!next )(?<!my )command|recipes?|available",
)
"""A sentence that lists what could be done."""

SPEAKER = re.compile(
    r"\W*(?:user|human|system|environment|observation)\W*\Z|.*\b(?:user|human|system|observation)\s*:\s*\Z",
    re.DOTALL,
)
"""The name of somebody else, who says what follows."""

CLAUSE = re.compile(r"[,;:—–]|\b(?:so|but|therefore|thus|hence)\b")
CONSEQUENCE = re.compile(r"[,;] (?:so|but)\b|\b(?:therefore|thus|hence)\b")
"""What stands behind it is done because of what stands before it, whatever that supposes."""

_IF = r"if|when|whenever|while|once|unless|until"
CONDITION = re.compile(
    rf"[\W_]*(?:{_IF}|after\w*|later|eventually|before(?=[^,:]*\Z)|instead(?! of)|suppose|previously|earlier"
    r"|next turn|in the next|in (?:a|the) later|last|then(?! i\b)|had|were|at the end|如果|等|之后)(?!\w)"
    rf"|.*[,;] ?(?:{_IF})\b",
    re.DOTALL,
)
"""At the beginning of a sentence: what follows is done under a condition, or at another time."""

_DOUBTS = (
    r"could|would|might|maybe|perhaps|if|unless|until|once|instead|rather|alternativ\w+|avoid|without",
    r"e\.g|examples?|such as|(?:looks?|something|reply|replies|answer|formatted) like|the form|format is",
    r"template|syntax|placeholder|draft|hypothetical\w*|suppose|imagine|consider(?:ed|ing)?",
    r"th(?:ought|inking) (?:of|about)|tried|attempt|first try|wrong|incorrect|mistake|previous|earlier|last",
    r"either|whether|should (?:have|i|look|reply|be|not)|otherwise|else|refuse|never",
    r"not (?:to|yet|going|sure|this|that|now)",
    r"(?:will|do|does|did|would|should|must|shall|could|can|am|may) ?(?:not|n'?t)|can ?not",
    r"(?:do|did|would|should|could|ca|wo|must|does)n't|later",
    languages.DOUBTS,
)
DOUBT = _phrases(*_DOUBTS, other=languages.OTHER_DOUBTS)
"""Words by which a text says that what it names is not, or not yet, what it does."""

UNREAL = _phrases(
    *_DOUBTS,
    r"possibly|like(?=\s*\Z)|no(?=\s*\Z)|said|says|confirm\w*|permission|approv\w*|waiting for|unsure",
    r"may|should never|not|\w+n't|refrain|mistaken|invalid|failed|forbidden|refuse[ds]|pointless|useless",
    r"eventually|afterwards?|next (?:turn|time)|in the end|at the end|after|before|when|whenever|while",
    r"tempt\w+|consider\w*|plan\w*|previous\w*|then|already|was|were|did|had|used to|called|ran|wrote",
    r"executed|issued|performed|buggy|broken|faulty|erroneous|outdated|asked|one day|i'd(?! like to)",
    r"(?:we|you|it)'d(?! like to)|no to|banned|prohibited|ruled out",
    languages.NEGATIONS,
    other=rf"{languages.OTHER_DOUBTS}|别|之后|以后|或许",
)
"""In the clause that leads to the action: it is not done, or not now."""

NOT_WRITTEN = re.compile(
    r"(?:\b(?:not|never|avoid|refuse to|instead of|rather than|without|would|could|might|should)|n't|'d)"
    r" (?:\w+ ){0,2}(?:writ|reply|repli|answer|say|us|send|output|do)(?:e|ing)?\Z"
    r"|\b(?:format|form|template|example) (?:is|was|would be|looks like)\Z|anything but\Z|opposite of\Z"
)
"""The end of a line above the mark of an action, which says that it is not written."""

NAMED = frozenset(
    [
        *("action", "function", "tool", "call", "answer", "output", "response", "reply", "json", "code"),
        *("final", "next", "now", "so", "here", "result", "act", "do", "execute", "run", "command", "move"),
        *("decision", "choice", "ok", "okay", "well", "assistant", "agent", "solution", "invoke", "python"),
        *("therefore", "thus", "hence", "accion", "aktion", "antwort", "entonces", "alors", "donc", "also"),
    ]
)
"""The words with a colon behind them, alone in their line, that name a call as what is meant."""

# ------------------------------------------------------------------------ behind the action, in its sentence

REMARK = re.compile(
    r"[^\n]*\b(?:examples?|draft|illustration|not yet|later|wrong|todo|instead|do not|don['’]?t"
    r"|times|twice|repeat\w*)\b"
    r"|[ \t]*[x\xd7*][ \t]?\d",
    re.IGNORECASE,
)
"""What is said on the line on which a call ends if it is not to be carried out.

Less than of a comment on words, since one in code often speaks of what comes next, or of what else could be.
"""

COMMENT = re.compile(r"[ \t*_`'\"]{0,12}(?:[–—-]{1,2}|\(|#|//)[ \t]*([^\n]{1,300})")
"""A comment on the action, on its line."""

MORE = re.compile(
    r"\b(?:or|and then|then|not|no|wait|actually|but|instead|maybe|perhaps|if|unless|never|sorry"
    r"|twice|thrice|times|repeat\w*|fois|veces|vezes|volte|mal|раза?"
    r"|[x×] ?\d+|\d+ ?[x×]|\d+ (?:more )?(?:steps?|cells?|squares?|tiles?|spaces?))\b"
    r"|[*×] ?\d|[?]|或|不|然后|[\d一二两三四五] ?(?:次|遍|回|번)"
)
"""Words that make more than a comment of what follows an action on its line."""

QUESTION = re.compile(r"[^.!?\n]{0,200}[?]")
_PURPOSE = (
    r"to|because|since|so|in order|as(?! I\b)|for(?! (?:example|instance))|which|where|with|now"
    r"|and (?:wait|see)"
)
IN_MIDST = re.compile(rf"[ \t*_`'\")\]}}>]{{0,12}}[,;]?[ \t]?(?!(?:{_PURPOSE})\b)[a-zà-ÿ]")
"""A sentence goes on behind an action on its line, and not with its purpose."""

RUNS_ON = re.compile(
    r"[ \t\"'`*_)\]}>]{0,20}[,;—–-]{0,3}\s{0,20}(?=[a-z])(?:"
    r"but|yet|or|nor|unless|if|when|once|until|would|could|might|may|should"
    r"|was|were|is|are|will|can|cannot|does|did|has|had|seems?|later|instead|only|except|and then|then"
    r"|afterwards?|before|not|never|for (?:example|instance)|as (?:an? )?(?:example|illustration)"
    r"|because (?:it|that) (?:would|is not)|which (?:failed|did|does|was|would|could|might|never|is not))\b"
)
"""The same, on whatever line."""

GOES_ON = _phrases(
    r"but|once|until|when|after|before|later|would|is|was|were|are|or|then|and|did|failed|worked|gave|which",
    r"if|because|as soon as|as long as|unless|should|whenever|tags?|block|format|above|below|earlier|yet",
)
"""What a sentence says of the words in it that are an action, if it only speaks of them."""

# ------------------------------------------------------------------------ behind the action, in what follows

_FILLERS = r"(?:(?:oh|ah|uh|um|hmm+|but|no|and|well|ok|okay|yet|so)[,. …!—-]{1,4}){0,3}"
_IT_IS = r"(?:this|that|it|above|which) (?:is|was|would be|were)"
_DO = "(?:run|call|execute|play|send|use|do|carry)"
TURNING = re.compile(
    rf"(?:^|[.!?…;:\n—(-])[\s*_\"'>)`-]{{0,8}}(?=\w){_FILLERS}(?:"
    r"hmm+\b|oops\b|argh\b|ugh\b|damn\b|whoops\b|ups\b|no[,.!…—]|no ?[–—-]|nope\b"
    r"|no (?:wait|i|let|that|this|it|sorry)\b"
    r"|wait(?!\s+(?:for|until|till|to|here|and see))\b|hold on\b|hang on\b|stop[,.!]|but\b|however\b"
    r"|actually\b|sorry\b|correction\b|edit\b|better\b|instead(?! of)\b|rather(?! than)\b|alternatively\b"
    r"|or (?:rather|maybe|perhaps|else|should)\b|then again|just kidding|joking\b|not (?:this|that|so|yet)\b"
    r"|strike that|scratch (?:that|this|it)|never ?mind|forget (?:it|that|this|about)"
    r"|ignore (?:that|this|the|my)|disregard|cancel (?:that|this|it)|on second thou?ghts?"
    r"|let me (?:re(?:think|consider|do|vise|write|start|try)|correct|fix|change (?:that|this|it|my)"
    r"|think again|try again)"
    r"|i (?:made a|meant|take (?:it|that|this) back|take back|changed? my mind"
    r"|should (?:have|not|rather|instead)|was wrong|withdraw|retract|won't|will not|do not want|don't want)"
    r"|(?:that|this|it)(?:'s| is| was| would be| seems| looks)? (?:wrong|not right|incorrect|a mistake"
    r"|not what|not correct|invalid|only an? (?:example|draft))"
    r"|(?:that|this) (?:was|is) (?:just |only )?(?:an? )?(?:example|draft|test|joke)\b"
    r"|that was (?:your|what|my (?:last|previous))\b"
    r"|please (?:ignore|disregard|skip|wait|do not|don't)\b|(?:do not|don't) \w"
    rf"|{languages.OPENINGS}|(?=[^\x00-\u024f])(?:{languages.OTHER_OPENINGS}))"
)
"""The beginning of a sentence that turns against what was said before it."""

MISTAKEN = _phrases(
    r"(?:just|only) a (?:suggestion|proposal|thought|guess|possibility)|you decide|regret\w*|overrul\w*",
    r"would never|another (?:one|action|move|call)|(?:erase|delete|replace|remove) (?:this|that|it)",
    r"to be replaced|wrong|mistak(?:e|en)|typo|erroneous|retract\w*|revoke\w*|void|undo|aloud|seriously",
    r"reconsider\w*|on reflection|on second thou?ghts?|come to think|i meant|not meant|never ?mind|disregard",
    r"i(?: would|'d)? (?:prefer|rather)|would (?:be|have been) better|(?:as soon as|until|once) you",
    r"my (?:bad|mistake|error|fault)|confirmation|approval|permission|go-ahead|consent",
    r"(?<!if )(?<!case )(?:this|that) (?:(?:will|would|does|did|can|could|is|was) not"
    r"|(?:wo|would|does|did|ca|could|is|was)n't|cannot|never)",
    r"hold (?:\w+ ){0,3}(?:back|off)|hold (?:this|that|it) for now|on hold",
    r"keep (?:this|that|it) (?:one )?back",
    r"(?:cancel|forget|scratch|scrap|strike|undo|revert|discard|belay|withdraw) (?:that|this|it)",
    r"ignore (?:this|that|the|it|my)|take (?:this|that|it) back|changed? my mind|not (?:yet|now)",
    r"let me (?:rethink|reconsider|think again)|(?:was|is) (?:only |just )?a test",
    r"(?:should|must|can) be (?:ignored|skipped)|the above (?:call )?(?:is|was)",
    rf"do not {_DO}|(?:will|would|should|shall|must|did) not (?:{_DO}|be)|\w+n't (?:{_DO}|be)",
    rf"{_IT_IS} (?:only|just|merely|but|not|wrong|incorrect|a mistake|invalid|how (?:i|we|it|one|you|a))",
    rf"{_IT_IS} an? (?:example|draft|sketch|illustration|plan)",
    rf"{_IT_IS} what (?:i|we|you) (?:wrote|said|sent|did|had|would|could|might)",
    rf"{_IT_IS} the (?:previous|last|first|old|format|syntax|wrong|form)",
    r"(?:ok|okay|right|agreed|yes|correct)(?=[?])",
    # A question that asks for consent; what, where and how only ask for what comes next.
    r"(?:is|was) (?:this|that|it) (?:right|correct|ok|okay|fine|allowed|what)(?=\b[^.\n?]{0,80}[?])",
    r"(?:^|(?<=[.!?,\n(])|(?<=[.!?,\n(]\W)|(?<=[.!?,\n(]\W\W))(?:(?:do|are|would|could) you"
    r"|(?:shall|should|can|may|could|do) (?:i|we)|(?:is|was|does|would|will) (?:this|that))"
    r"(?=\b[^.!?\n]{0,120}[?])",
    languages.MISTAKES,
    other=languages.OTHER_MISTAKES,
)
"""Words that say, wherever they stand, that the action was a mistake, or that it waits."""
