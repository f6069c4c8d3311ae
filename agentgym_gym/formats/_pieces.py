"""How one action is read from a line or another piece of a reply, whatever it is wrapped in."""

# ruff: noqa: RUF001 - models write these characters, too

from __future__ import annotations

import re
from html import unescape

from agentgym_gym._text import shown
from agentgym_gym.actions import Action, Grammar
from agentgym_gym.errors import ActionError, BadArguments, ManyActions, UnknownAction
from agentgym_gym.formats._answer import UNSEEN
from agentgym_gym.formats._context import is_more_than_a_comment
from agentgym_gym.formats._labels import FEEDBACK
from agentgym_gym.formats._phrases import DOUBT
from agentgym_gym.formats.call_formats import CodeAsAction

__all__ = ["PieceReader", "is_sentence"]

_MOST_PIECES = 40
_FEW_LAYERS = 3
_LONGEST_LEAD = 40  # that names an action, with its colon
_LONGEST_COMMENT = 300  # that is looked at
_LAYERS = 8  # '- **`"get 1 stick"`**.' and no deeper

_PAIRS = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "*": "*", "_": "_", "[": "]", "(": ")", "$": "$"}
_PAIRS |= {"「": "」", "『": "』", "【": "】", "«": "»", "《": "》", "~": "~", "<": ">", "{": "}"}
_ENDS = ".!;。！；…．,，、"
_MARKS = re.compile(
    r"(?:[-*>+•·‣▪●○◦→➤➜►▶✅👉🎯🤖#]+|=>|\d{1,3}[.)]|\(\d{1,3}\)|[^\w\s\x00-\x7f“‘「『【«《]+)\s*"
)
_END_WORD = re.compile(
    r"[\[<(](?:END|DONE|STOP|EOS|EOT|FINISH|END OF (?:ACTION|REPLY|TURN|RESPONSE))[\])>]\Z"
)
_TAG = re.compile(r"</?[a-z]{1,10}(?: [^<>]{0,80})?/?>", re.IGNORECASE)
_WRAPPED = re.compile(r"\\(?:boxed|text|texttt|mathrm|mathbf|textbf)\{(.*)\}\Z", re.DOTALL)
_LANGUAGE = re.compile(r"([a-z]+)\s+", re.ASCII)
_COMMENT = re.compile(
    r"\s(?:#|//|--|<!--|[—–]|- |\(|because\b|since\b|so that\b|in order to\b|as I\b|to (?:see"
    r"|make|craft|get|use|find|build|check)\b|for (?:the|my|later)\b)"
    r"|(?<=[\w\])}`\"'*])[.!;。！；]\s?(?=[A-Z(\u4e00-\u9fff])|(?<=[\w\])}`\"'*])\s*[（，]"
)
_CODE = CodeAsAction()
_CALL = re.compile(r"[A-Za-z_]\w{0,60}\([^\n]*\)")
# In names, brackets hold what there is, and not what it is for.
_PURPOSE = re.compile(r"\s\((?:to|so that|because|since|in order to|as I|as we)\s[^()]{1,200}\)[.!]?\Z")
_BLANKS = re.compile(r"[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_ANNOUNCED = re.compile(
    r"(i(?:['’]ll| will|['’]m going to| am going to)|let(?:['’]s| me| us))[ \t]+(?=\w)|(?:(?:so"
    r"|ok|okay|thus|then|therefore)[, ]+)?(?:i(?:'ll| will| choose| pick| go with| do| say| guess| reply"
    r"| answer)?|so|final answer|guess \d|agent|next|player|me|assistant"
    r"|(?:my|the) (?:(?:next|best|final|only|right|chosen) ){0,2}"
    r"(?:action|move|guess|choice|answer|reply|command|step)(?: (?:is|will be|would be))?|answer"
    r"|output|command)"
    r"[ \t]*([:：])?[ \t]*",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,5});")
_INVISIBLE = re.compile(f"[{UNSEEN}]")

# The first words of sentences, which no game knows as a command.
_SENTENCE = re.compile(
    r"(?:i|i'\w+|we|let|let's|you|he|she|it|this|that|these|those|there|here|the|a|an|my|your|our|as|since"
    r"|because|if|so|to|in|on|at|for|with|what|how|why|who|where|when|which|sorry|please|ok|okay|sure|yes|no"
    r"|none|nothing|null|n/a|nan|undefined|unknown|thanks?|hi|maybe|perhaps|thoughts?|action|actions"
    r"|observation|think(?:ing)?|wait (?:for|until|and)|waiting|pending|guess|h+m+|not|never|and|or|but|now"
    rf"|{FEEDBACK}|first|next|finally|based|given|after|before|once|do|does|did|is"
    r"|are|was|were|can|could|would|should|will|must|may|might|see|tbd|todo|error|invalid)\b",
    re.IGNORECASE,
)
_MOST_WORDS, _MOST_CHARACTERS = 10, 120  # of a command that only the game may know


class PieceReader:
    """Reads pieces of one reply. Each is read once, and no more than so many are tried.

    Args:
        grammar: The actions there are.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._known: dict[str, Action | ActionError | None] = {}

    def read(self, piece: str) -> Action | ActionError | None:
        """Return the action in a piece of text, or why there is none; None where the piece says nothing.

        What is around the action is taken off layer by layer until it can be read: fences, quotes, brackets,
        list marks, HTML, marks of emphasis, full stops, a comment behind it.

        Raises:
            ManyActions: More different pieces were tried than a reply may have.
        """
        line = piece.strip()
        if line in self._known:
            return self._known[line]
        if len(self._known) >= _MOST_PIECES:
            raise ManyActions("too many lines of the reply could be the action; write one, and nothing else")
        read = self._read(line)
        if isinstance(read, Action) and self.grammar.style.verbatim and _is_placeholder(read, line):
            read = BadArguments(f"{shown(str(read))} only shows where something is to be filled in")
        self._known[line] = read
        return read

    def might_read(self, line: str) -> bool:
        """Return whether a line may be an action, by its first words alone."""
        if self.grammar.may_begin(_bare(line)):
            return True
        lead = _ANNOUNCED.match(line) if ":" in line[:_LONGEST_LEAD] else None
        return lead is not None and lead[2] is not None

    def _read(self, line: str, *, announced: bool = False) -> Action | ActionError | None:
        line = _unfenced(line, self.grammar)
        if not line:
            return None
        read, plain = self._peeled(line)
        if not isinstance(read, ActionError) or isinstance(read, ManyActions):
            return read
        said = None if announced else self._announced(plain)
        return (
            said
            or self._before_a_comment(plain)
            or self._as_a_call(plain)
            or _as_refused(read, line, self.grammar)
        )

    def _peeled(self, line: str) -> tuple[Action | ActionError | None, str]:
        """Return what can be read when one layer after the other is taken off, and what is left then."""
        style = self.grammar.style
        if style.lines and line.endswith((")", ").", ")!")) and (purpose := _PURPOSE.search(line)):
            line = line[: purpose.start()]
        escaped = style.lines and "&" in line and _ENTITY.search(line) is not None
        read = None if escaped else self._parsed(line)
        if isinstance(read, Action):
            return read, line
        plain = line if line.isascii() else _BLANKS.sub(" ", _INVISIBLE.sub("", line)).strip()
        plain = unescape(plain) if escaped else plain
        tags = style.pieces is None or not style.marked
        for _ in range(_LAYERS if style.lines else _FEW_LAYERS):
            if not plain:
                return None, plain
            if plain is not line:
                read = self._parsed(plain)
                if isinstance(read, Action):
                    break
            peeled = _peeled(plain, tags=tags, sentence=style.lines)
            if peeled == plain:
                break
            plain = peeled
        return read, plain

    def _parsed(self, line: str) -> Action | ActionError:
        try:
            return self.grammar.parse(line)
        except ActionError as error:
            return error

    def _announced(self, line: str) -> Action | None:
        """Return the action in a line that names it as what comes next: ``I will get 1 stick``."""
        lead = _ANNOUNCED.match(line)
        if lead is None:
            return None
        said = line[lead.end() :]
        wrapped = len(said) > 1 and _PAIRS.get(said[0]) == said[-1]
        read = self._read(said, announced=True) if lead[1] or lead[2] or wrapped else None
        return read if isinstance(read, Action) else None

    def _as_a_call(self, line: str) -> Action | None:
        """Return the action that a line calls as a function, such as ``get(1, "stick")``."""
        if not _CALL.fullmatch(line):
            return None
        try:
            return _CODE.parse(line, self.grammar)  # type: ignore[return-value]  # a call is a typed action
        except ActionError:
            return None

    def _before_a_comment(self, line: str) -> Action | None:
        """Return the action in a line that ends in a comment on it."""
        comment = _COMMENT.search(line) if self.grammar.style.lines else None
        if comment is None or not comment.start():
            return None
        said = line[comment.start() : comment.start() + _LONGEST_COMMENT]
        if is_more_than_a_comment(said):
            return None
        words = _peeled(said.strip(" \t#/-()（），,.—–!;。"))
        if words and self.grammar.knows(words):
            return None  # it is a second action
        action = line[: comment.start()].strip()
        for _ in range(3):
            if not action:
                return None
            try:
                return self.grammar.parse(action)
            except ActionError:
                action = _peeled(action)
        return None


def _is_placeholder(action: Action, piece: str) -> bool:
    """Return whether an action that was read from a piece only shows how one is written."""
    text = str(action) if "<" in piece else ""
    return "<" in text and text == _usage(type(action))


_usages: dict[type[Action], str] = {}  # filled at first use


def _usage(action: type[Action]) -> str:
    if action not in _usages:
        _usages[action] = action.usage()
    return _usages[action]


def is_sentence(text: str) -> bool:
    """Return whether a text begins as a sentence does, and as no command."""
    return _SENTENCE.match(text.lstrip(" \t\n*_`\"'(")) is not None


def _as_refused(problem: ActionError, text: str, grammar: Grammar) -> ActionError:
    """Return an error, without the text to be forwarded where that is a sentence rather than a command.

    Words that end in an action of two words or more that the grammar knows are about that action.
    """
    if not isinstance(problem, UnknownAction) or problem.text is None:
        return problem
    words = problem.text.split()
    if (
        len(words) <= _MOST_WORDS
        and len(problem.text) <= _MOST_CHARACTERS
        and "\n" not in text
        and not _SENTENCE.match(problem.text)
        and not DOUBT.search(problem.text.lower())
        and not any(grammar.knows(" ".join(words[first:])) for first in range(1, len(words) - 1))
        and not re.search(r"[{}<>?`;→]|->| / |,|[.!:：。] ?\b|\b(?:not|or|I)\b|n't\b|…|\.\.\.", text)
        and re.search(r"\w", problem.text)
    ):
        return problem
    return UnknownAction(str(problem))


def _unfenced(line: str, grammar: Grammar) -> str:
    """Return what stands in a fence; nothing for a line that is the fence itself, or with a language."""
    if not line.startswith(("```", "~~~")):
        return line.removesuffix("```").strip() if line.endswith("```") else line
    code = line[3:]
    line = code.strip().rstrip("~")
    if " " not in line and not line.endswith("```") and not grammar.knows(line):
        return ""
    if code.partition("\n")[0].strip():  # a language stands beside the fence, not below it
        line = _without_language(line, grammar)
    return line.removesuffix("```").strip()


def _without_language(code: str, grammar: Grammar) -> str:
    """Return what stands in a fence without the language that the fence names, if it names one."""
    language = _LANGUAGE.match(code)
    if language is None or not (language[1] == grammar.style.fence or "\n" in language[0]):
        return code
    rest = code[language.end() :]
    if rest.strip("` \n") or language[1] == grammar.style.fence or not grammar.knows(language[1]):
        return rest
    return code  # the word is the action, and alone in the fence


def _peeled(line: str, *, tags: bool = True, sentence: bool = True) -> str:
    """Return a line without its outermost layer: quotes, brackets, a tag, a list mark, a full stop."""
    if not line:
        return line
    if (
        len(line) > 1
        and _PAIRS.get(line[0]) == line[-1]
        and (line[0] != "<" or (tags and line.count("<") == 1))
    ):
        return line[1:-1].strip()
    if wrapped := _WRAPPED.match(line):
        return wrapped[1].strip()
    if tags and line[0] == "<" and (tag := _TAG.match(line)):
        return line[tag.end() :].strip()
    if tags and line[-1] == ">" and (tag := _TAG.match(line, line.rfind("<"))) and tag.end() == len(line):
        return line[: tag.start()].strip()
    return _without_ends(line, sentence=sentence)


def _without_ends(line: str, *, sentence: bool) -> str:
    """Return a line without what stands at one of its ends alone: a full stop, a list mark, a quote."""
    if line[-1] in _ENDS and sentence:
        return line.rstrip(_ENDS).strip()
    if line[-1] in "])>" and (end := _END_WORD.match(line, max(map(line.rfind, "[<(")))):
        return line[: end.start()].strip()
    if mark := _MARKS.match(line):
        return line[mark.end() :].strip()
    if line[-1] in "`\"'*”’_" and line[-1] not in (said := line.rstrip(line[-1])):
        return said.strip()  # what opened it stands before the label
    if line[-1] > "\x7f" and not line[-1].isalnum() and line[-1] not in "”’」』】»》）":
        return line[:-1].strip()
    return line


def _bare(line: str) -> str:
    """Return a line from its first word on."""
    return line.lstrip(" \t\"'`*_[(<>-•#.\xa0“‘" + "0123456789)")
