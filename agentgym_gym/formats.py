"""How a model wraps an action in a reply: each format writes the instructions and reads the answers.

The instructions, the example in them and the parser belong to one object and the list of actions comes from
the grammar, so a prompt cannot teach a form that the parser does not read.

Reading takes time that grows with the length of the reply and no faster, never runs what a model wrote, and
raises nothing but the four :class:`~agentgym_gym.errors.ActionError` kinds.
"""

from __future__ import annotations

import ast
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from agentgym_gym.actions import MAX_ACTION_CHARS, Action, Grammar, Thought, Verbatim
from agentgym_gym.errors import (
    ActionError,
    BadArguments,
    BadOption,
    ManyActions,
    NoAction,
)

__all__ = ["FORMATS", "AgentGymFormat", "Format", "Reading", "get_format"]

Reading: TypeAlias = Action | Verbatim | Thought
"""What a reply turns out to be."""

_EXAMPLE_THOUGHT = "I know what to do next."

# Markers that end a turn in the chat templates in use. What a model writes behind one is not its reply.
_END_OF_TURN = re.compile(
    r"<\|(?:im_end|endoftext|eot_id|end|end_of_text)\|>|<end_of_turn>|<｜end▁of▁sentence｜>"
)
_PAIRS = {'"': '"', "'": "'", "`": "`", "“": "”", "*": "*"}
_UNWRAP_ROUNDS = 4  # '**`"get 1 stick"`**' and no deeper


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
        if not same:
            raise BadOption(f"in the format {self.name!r} this thought hides the action: {thought!r:.80}")
        return reply

    @abstractmethod
    def parse(self, reply: str, grammar: Grammar) -> Reading:
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
        return "The actions:\n" + "\n".join(f"- {line}" for line in grammar.lines())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ReAct(Format):
    """``Thought:`` and ``Action:`` paragraphs."""

    name = "react"
    _rule = (
        "First write what you think below the word `Thought:`, then exactly one action below the word "
        "`Action:`, and end your reply there."
    )
    _label = re.compile(r"^[ \t>#*_`-]*action[*_`]*[ \t]*[:：][*_]*", re.IGNORECASE | re.MULTILINE)
    _inline = re.compile(r"\bAction[*_`]*[:：][*_]*")
    _next = re.compile(r"^[ \t>#*_`-]*(?:observation|thought)[*_`]*[ \t]*[:：]", re.IGNORECASE | re.MULTILINE)

    def _wrap(self, action: Action, thought: str) -> str:
        return f"Thought:\n{thought}\n\nAction:\n{action}"

    def parse(self, reply: str, grammar: Grammar) -> Reading:
        """Read what stands behind the one ``Action:``.

        A label at the beginning of a line counts; one inside a line counts only where there is no other.
        """
        reply = _answer(reply)
        labels = _first_two(self._label, reply) or _first_two(self._inline, reply)
        if not labels:
            raise NoAction("there is no `Action:` in the reply")
        if len(labels) > 1:
            raise ManyActions("there is more than one `Action:` in the reply")
        after = reply[labels[0].end() :]
        following = self._next.search(after)
        return _one_action(after[: following.start()] if following else after, grammar)


class Tags(Format):
    """``<think>…</think><action>…</action>``."""

    name = "tags"
    _rule = (
        "First write what you think between `<think>` and `</think>`, then exactly one action between "
        "`<action>` and `</action>`."
    )
    _open = re.compile(r"<action>", re.IGNORECASE)
    _close = re.compile(r"</action>", re.IGNORECASE)

    def _wrap(self, action: Action, thought: str) -> str:
        return f"<think>{thought}</think>\n<action>{action}</action>"

    def parse(self, reply: str, grammar: Grammar) -> Reading:
        """Read what stands between the tags."""
        reply = _answer(reply)
        opened = _first_two(self._open, reply)
        if not opened:
            raise NoAction("there is no `<action>` in the reply")
        if len(opened) > 1:
            raise ManyActions("there is more than one `<action>` in the reply")
        closed = self._close.search(reply, opened[0].end())
        if closed is None:
            raise NoAction("the `<action>` is not closed by `</action>`")
        return _one_action(reply[opened[0].end() : closed.start()], grammar)


class ADaPT(Format):
    """``> think: …`` and ``> get 1 stick``, as in ADaPT (Prasad et al., 2024, arXiv:2311.05772).

    A reply that only thinks is a move there: it costs a turn and is answered "OK.".
    """

    name = "adapt"
    _rule = (
        "Begin each line with `> `. A line `> think: ...` holds what you think; it may come before the "
        "action or be a whole reply. Any other line is an action: write at most one in a reply."
    )

    def _wrap(self, action: Action, thought: str) -> str:
        think = f"> think: {' '.join(thought.split())}\n" if thought else ""
        return f"{think}> {action}"

    def parse(self, reply: str, grammar: Grammar) -> Reading:
        """Read the one line that is neither a thought nor, lacking the ``>``, an aside.

        Prompts in this format often end in ``>``, so the first line may lack it.
        """
        lines = [line.strip() for line in _answer(reply).splitlines()]
        lines = [line for line in lines if line]
        marked = [line[1:].strip() for line in lines if line.startswith(">")]
        if lines and not lines[0].startswith(">") and (not marked or _is_thought(lines[0])):
            marked.insert(0, lines[0])
        commands = [line for line in marked if line and not _is_thought(line)]
        if len(commands) > 1:
            raise ManyActions("there is more than one action in the reply")
        if commands:
            return _one_action(commands[0], grammar)
        if marked and any(marked):
            return Thought("\n".join(line.partition(":")[2].strip() for line in marked))
        raise NoAction("there is no line that begins with `> ` in the reply")


def _is_thought(line: str) -> bool:
    return line[:6].lower() == "think:"


class Bare(Format):
    """The action and nothing else."""

    name = "bare"
    _rule = "Reply with exactly one action and nothing else."

    def _wrap(self, action: Action, thought: str) -> str:
        return str(action)

    def parse(self, reply: str, grammar: Grammar) -> Reading:
        """Read the reply as it stands."""
        return _one_action(_answer(reply), grammar)


class FunctionCalling(Format):
    """One JSON object: AgentGym's, or the ``<tool_call>`` form that models are trained to emit."""

    name = "function_calling"
    _rule = (
        "Reply with one JSON object and nothing else. It has three keys: `thought`, what you think; "
        "`function_name`, the function to call; `arguments`, an object with its arguments."
    )
    _opened = "<tool_call>"

    def _actions(self, grammar: Grammar) -> str:
        tools = "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in grammar.tools())
        return f"The functions, as JSON:\n{tools}"

    def _wrap(self, action: Action, thought: str) -> str:
        call = {"thought": thought, "function_name": action.name(), "arguments": action.to_json()}
        return json.dumps(call, ensure_ascii=False)

    def parse(self, reply: str, grammar: Grammar) -> Reading:
        """Read the one object that names a function."""
        reply = _answer(reply)
        if reply.count(self._opened) > 1:
            raise ManyActions("there is more than one `<tool_call>` in the reply")
        start = reply.find("{", max(reply.find(self._opened), 0))
        if start < 0:
            raise NoAction("there is no JSON object in the reply")
        found, end = _decode(reply, start)
        another = reply.find("{", end)
        if another >= 0 and _names_function(reply, another):
            raise ManyActions("there is more than one JSON object in the reply")
        name, arguments = _function_of(found)
        return grammar.from_call(name, arguments)


def _decode(text: str, start: int) -> tuple[Any, int]:
    if len(text) - start > MAX_ACTION_CHARS:
        raise BadArguments(f"the JSON is longer than {MAX_ACTION_CHARS} characters")
    try:
        return _JSON.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"the JSON cannot be read: {str(error)[:200]}") from None


def _names_function(text: str, start: int) -> bool:
    try:
        _function_of(_decode(text, start)[0])
    except ActionError:
        return False
    return True


def _function_of(found: Any) -> tuple[str, Any]:
    """Return name and arguments from any of the shapes in use: AgentGym's, OpenAI's, the open models'."""
    if isinstance(found, Mapping) and isinstance(found.get("function"), Mapping):
        found = found["function"]
    if not isinstance(found, Mapping):
        raise NoAction("there is no JSON object in the reply")
    name = found.get("function_name", found.get("name"))
    if not isinstance(name, str):
        raise NoAction("the JSON object has no `function_name`")
    arguments = found.get("arguments", found.get("parameters", {}))
    if isinstance(arguments, str):
        arguments, _ = _decode(arguments, 0)
    return name, arguments


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_JSON = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


class CodeAsAction(Format):
    """One Python call, read with :mod:`ast` and never run."""

    name = "code_as_action"
    _rule = (
        "Reply with one Python code block that calls exactly one of the functions once, with plain values as "
        "arguments. Write what you think as a comment above the call."
    )

    def _actions(self, grammar: Grammar) -> str:
        lines = []
        for example in grammar.examples:
            arguments = ", ".join(grammar.signature(example.name()))
            lines.append(f"- {example.name()}({arguments}) - {example.doc()} Example: {_call(example)}")
        return "The functions:\n" + "\n".join(lines)

    def _wrap(self, action: Action, thought: str) -> str:
        comment = "".join(f"# {line}\n" for line in thought.splitlines())
        return f"```python\n{comment}{_call(action)}\n```"

    def parse(self, reply: str, grammar: Grammar) -> Reading:
        """Read the one call in the code."""
        code = _unfence(_answer(reply)).strip()
        if len(code) > MAX_ACTION_CHARS:
            raise BadArguments(f"the code is longer than {MAX_ACTION_CHARS} characters")
        try:
            statements = ast.parse(code).body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise NoAction("the reply is not Python") from None
        statements = [s for s in statements if not _is_string(s)]
        if not statements:
            raise NoAction("there is no call in the reply")
        if len(statements) > 1:
            raise ManyActions("there is more than one statement in the reply")
        call = statements[0].value if isinstance(statements[0], ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise NoAction("the statement is not a plain call of one of the functions")
        return grammar.from_call(call.func.id, _literal_arguments(call, grammar.signature(call.func.id)))


def _is_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _literal_arguments(call: ast.Call, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments of a call by name; only literals are values."""
    if names and len(call.args) > len(names):
        raise BadArguments(f"{len(call.args)} arguments were given, the function has {len(names)}.")
    given = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in given:
            raise BadArguments("an argument is given twice, or unpacked")
        given[keyword.arg] = keyword.value
    try:
        return {name: ast.literal_eval(node) for name, node in given.items()}
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise BadArguments("an argument is not a plain value") from None


def _call(action: Action) -> str:
    return f"{action.name()}({', '.join(f'{k}={v!r}' for k, v in action.to_json().items())})"


class AgentGymFormat(Format):
    """Reads replies exactly as AgentGym's own client does, for scores that compare with published ones.

    Args:
        inner: The format that writes the instructions.
        reader: AgentGym's rule for the environment: takes a reply and returns the action it would send.
    """

    name = "agentgym"

    def __init__(self, inner: Format, reader: Callable[[str], str]) -> None:
        self.inner = inner
        self.reader = reader

    @property
    def _rule(self) -> str:
        return self.inner._rule  # noqa: SLF001 - the same family

    def _actions(self, grammar: Grammar) -> str:
        return self.inner._actions(grammar)  # noqa: SLF001 - the same family

    def _wrap(self, action: Action, thought: str) -> str:
        return self.inner._wrap(action, thought)  # noqa: SLF001 - the same family

    def render(self, action: Action, thought: str = "") -> str:
        """Return the reply by which a model would give an action."""
        return self.inner.render(action, thought)

    def parse(self, reply: str, grammar: Grammar) -> Reading:
        """Return the words AgentGym's client would send, known to the grammar or not."""
        return Verbatim(self.reader(reply))


FORMATS: dict[str, Format] = {
    f.name: f for f in (ReAct(), FunctionCalling(), CodeAsAction(), Tags(), ADaPT(), Bare())
}
"""All formats by name."""


def get_format(name: str) -> Format:
    """Return a format by its name.

    Raises:
        BadOption: There is none of that name.
    """
    try:
        return FORMATS[name]
    except (KeyError, TypeError):
        raise BadOption(f"action_format={name!r} is not one of {sorted(FORMATS)}") from None


def _answer(reply: str) -> str:
    """Return a reply without its thinking block, without line ends of another system, up to its end mark."""
    end = _END_OF_TURN.search(reply)
    if end:
        reply = reply[: end.start()]
    _, closed, answer = reply.rpartition("</think>")
    if not closed and "<think>" in answer:
        raise NoAction("the reply ends inside `<think>`")
    answer = answer.replace("\r\n", "\n")
    stop = len(answer.rstrip())
    while answer.endswith("</s>", 0, stop):
        stop -= len("</s>")
        while stop and answer[stop - 1].isspace():
            stop -= 1
    return answer[:stop]


def _first_two(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return at most two matches: whether there is a second is all that is asked."""
    found = []
    for match in pattern.finditer(text):
        found.append(match)
        if len(found) > 1:
            break
    return found


def _unfence(text: str) -> str:
    """Return what stands inside a code fence, or the text itself where there is none.

    Raises:
        ManyActions: There are several fences.
        NoAction: The fence is not closed.
    """
    _, fence, rest = text.partition("```")
    if not fence:
        return text
    inside, fence, after = rest.partition("```")
    if not fence:
        raise NoAction("the code block is not closed")
    if "```" in after:
        raise ManyActions("there is more than one code block in the reply")
    first, newline, others = inside.partition("\n")
    return others if newline and " " not in first.strip() and others.strip() else inside


def _unwrap(line: str) -> str:
    """Return a line without the quotes, backticks or asterisks around it."""
    for _ in range(_UNWRAP_ROUNDS):
        line = line.strip()
        if len(line) < 2 or _PAIRS.get(line[0]) != line[-1]:  # noqa: PLR2004 - a pair is two
            break
        line = line[1:-1]
    return line.strip()


def _one_action(block: str, grammar: Grammar) -> Reading:
    """Read the one action in a block of text: its first line, when no other line is an action too."""
    if len(block) > MAX_ACTION_CHARS:
        raise BadArguments(f"the action is longer than {MAX_ACTION_CHARS} characters")
    lines = [unwrapped for line in _unfence(block).splitlines() if (unwrapped := _unwrap(line))]
    if not lines:
        raise NoAction("the place for the action is empty")
    if any(grammar.knows(line) for line in lines[1:]):
        raise ManyActions("there is more than one action in the reply")
    return grammar.parse(lines[0])
