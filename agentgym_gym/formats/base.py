"""The base class of all formats, and how a reply is cleaned before its action is looked for."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import ClassVar, TypeAlias

from agentgym_gym._text import shown
from agentgym_gym.actions import MAX_ACTION_CHARS, Action, Grammar, Thought, Verbatim
from agentgym_gym.errors import (
    ActionError,
    BadArguments,
    BadOption,
    ManyActions,
    NoAction,
    UnknownAction,
)

__all__ = ["Format", "ParsedReply", "answer_of", "one_action", "read_piece"]

ParsedReply: TypeAlias = Action | Verbatim | Thought
"""The result of parsing a reply."""

_EXAMPLE_THOUGHT = "I know what to do next."

# Markers that end a turn in the chat templates in use. What a model writes after one is not its reply.
_END_OF_TURN = re.compile(
    r"<\|(?:im_end|endoftext|eot_id|eom_id|end|end_of_text|return)\|>|<end_of_turn>|<｜end▁of▁sentence｜>"
)
_ANALYSIS = "<|channel|>analysis"
_FINAL = "<|channel|>final<|message|>"  # behind it stands the answer of gpt-oss, before it what it thinks
_PAIRS = {'"': '"', "'": "'", "`": "`", "“": "”", "*": "*", "[": "]"}
_NUMBER = re.compile(r"\d{1,3}[.)]\s")
_LANGUAGE = re.compile(r"([a-z]+)\s+", re.ASCII)
_LAYERS = 6  # '- **`"get 1 stick"`**.' and no deeper


class Format(ABC):
    """One way of wrapping an action in a reply."""

    name: ClassVar[str]

    def instructions(self, grammar: Grammar) -> str:
        """Return the part of a system prompt that lists the actions and says how to reply.

        It holds :meth:`example` word for word.
        """
        return (
            f"{self._actions(grammar)}\n\n{self._rule}\n\nAn example of a reply:\n\n{self.example(grammar)}"
        )

    def example(self, grammar: Grammar) -> str:
        """Return a reply that :meth:`parse` reads as the grammar's first example."""
        return self.render(grammar.examples[0], _EXAMPLE_THOUGHT)

    def render(self, action: Action, thought: str = "") -> str:
        """Return the reply by which a model would give an action.

        Args:
            action: The action.
            thought: What the model thinks before it, where the format has a place for that.

        Raises:
            BadOption: The thought would be read as part of the action.
        """
        reply = self._wrap(action, thought.strip())
        try:
            same = self.parse(reply, Grammar([action])) == action
        except ActionError:
            same = False
        if not same or "think>" in thought:
            raise BadOption(f"in the format {self.name!r} this thought hides the action: {shown(thought)}")
        return reply

    @abstractmethod
    def parse(self, reply: str, grammar: Grammar) -> ParsedReply:
        """Read a reply.

        Args:
            reply: All that the model wrote.
            grammar: The actions it may name.

        Raises:
            NoAction: Nothing in the reply is marked as the action.
            ManyActions: It holds more than one.
            UnknownAction: It names an action that the grammar does not know.
            BadArguments: It names a known action with arguments that do not fit.
        """

    @property
    @abstractmethod
    def _rule(self) -> str:
        """The rule of the format, in a sentence or two."""

    @abstractmethod
    def _wrap(self, action: Action, thought: str) -> str:
        """Put an action and a thought together."""

    def _actions(self, grammar: Grammar) -> str:
        fence = grammar.style.fence
        where = "" if fence is None else f", to be written between ```{fence} and ```"
        return f"The actions{where}:\n" + "\n".join(f"- {line}" for line in grammar.lines())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def answer_of(reply: str) -> str:
    """Return a reply up to its end mark, without thinking blocks and carriage returns.

    Raises:
        NoAction: The reply holds only thinking.
    """
    if "<" not in reply:  # as all that is taken off begins
        return _with_plain_ends(reply).rstrip()
    if _ANALYSIS in reply and _FINAL not in reply:
        raise NoAction("the reply ends before its final channel")
    reply = reply.rpartition(_FINAL)[2]
    end = _END_OF_TURN.search(reply)
    answer = _with_plain_ends(_without_thinking(reply[: end.start()] if end else reply))
    stop = len(answer.rstrip())
    while answer.endswith("</s>", 0, stop):
        stop -= len("</s>")
        while stop and answer[stop - 1].isspace():
            stop -= 1
    return answer[:stop]


def _with_plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n") if "\r" in text else text  # to find that there is none is faster


def _without_thinking(reply: str) -> str:
    """Return a reply without ``<think>…</think>``; chat templates often swallow the first ``<think>``."""
    if "think>" not in reply:
        return reply
    first = reply.find("</think>")
    if first >= 0 and "<think>" not in reply[:first]:
        reply = reply[first + len("</think>") :]
    kept, position = [], 0
    while (start := reply.find("<think>", position)) >= 0:
        kept.append(reply[position:start])
        end = reply.find("</think>", start)
        if end < 0:
            if not "".join(kept).strip():
                raise NoAction("the reply ends inside `<think>`")
            return "".join(kept)
        position = end + len("</think>")
    return "".join([*kept, reply[position:]])


def one_action(block: str, grammar: Grammar) -> ParsedReply:
    """Read the one action in a block of text.

    The action is the only line, or other piece by the grammar's style, that can be read as one. Other lines
    are ignored, unless the first one was meant as an action too. If no line can be read, the error is that of
    the first line.

    Raises:
        ActionError: There is no action, or more than one.
    """
    if len(block) > MAX_ACTION_CHARS:
        raise BadArguments(f"the action is longer than {MAX_ACTION_CHARS} characters")
    pieces = grammar.style.cut(block)
    found = [read for piece in pieces if (read := read_piece(piece, grammar)) is not None]
    if not found:
        raise NoAction("the place for the action is empty")
    actions = [read for read in found if isinstance(read, Action)]
    if not actions:
        raise found[0]  # type: ignore[misc]  # there is nothing but errors
    # An error other than an unknown action is that of a line that was meant as one.
    meant = isinstance(found[0], ActionError) and not isinstance(found[0], UnknownAction)
    if len(actions) > 1 or meant:
        raise ManyActions("there is more than one action in the reply")
    return actions[0]


def read_piece(piece: str, grammar: Grammar) -> Action | ActionError | None:
    """Return the action in a piece of text or why there is none; None for a blank line or one of a fence.

    Quotes, brackets, list marks and the like around it are removed layer by layer, until it can be read.
    """
    line = piece.strip()
    if line.startswith("```"):
        code = line[3:]
        line = code.strip()
        if " " not in line and not line.endswith("```") and not grammar.knows(line):
            return None  # the fence itself, or with a language behind it
        if code.partition("\n")[0].strip():  # a language stands beside the fence, not below it
            line = _without_language(line, grammar)
    line = line.removesuffix("```").strip()
    if not line:
        return None
    for _ in range(_LAYERS):
        try:
            return grammar.parse(line)
        except ActionError as error:
            problem = error
        peeled = _peeled(line)
        if not peeled:
            return None
        if peeled == line:
            break
        line = peeled
    return problem


def _without_language(code: str, grammar: Grammar) -> str:
    """Return what stands in a fence without the language that the fence names, if it names one."""
    language = _LANGUAGE.match(code)
    if language is None or not (language[1] == grammar.style.fence or "\n" in language[0]):
        return code
    rest = code[language.end() :]
    if rest.strip("` \n") or language[1] == grammar.style.fence or not grammar.knows(language[1]):
        return rest
    return code  # the word is the action, and alone in the fence


def _peeled(line: str) -> str:
    """Return a line without the outermost quotes or brackets, list mark or full stop."""
    if len(line) > 1 and _PAIRS.get(line[0]) == line[-1]:
        return line[1:-1].strip()
    if line[:2] in {"- ", "* ", "> "}:
        return line[2:].strip()
    if number := _NUMBER.match(line):
        return line[number.end() :].strip()
    return line.removesuffix(".").strip()
