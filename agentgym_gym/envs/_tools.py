"""Shared parts of AgentGym's five tool servers: action syntax, wire protocol and parser.

The servers look for ``Action: NAME with Action Input: {…}`` and pass the input to Python's ``eval``, so this
library sends only literals that it wrote itself. Any text that contains "finish" ends the episode. The reward
is the total reached so far, not the gain of the step, and a server continues to pay rewards after the episode
ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from agentgym_gym._json import NotJson, decode
from agentgym_gym._template_text import fields_of, names_of
from agentgym_gym._text import shown
from agentgym_gym.actions import MAX_ACTION_CHARS, Action, Style
from agentgym_gym.calls import Body, Call, Flow
from agentgym_gym.envs._json_arguments import Value, literal
from agentgym_gym.errors import BadArguments, BadReply, ClientAnswer, EnvironmentFailed
from agentgym_gym.literals import expression, plain_value
from agentgym_gym.wire import Outcome, Score, Seen, Start, Wire, look

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "LOCAL_QUIRKS",
    "QUIRKS",
    "CheckValidActions",
    "Finish",
    "GetUserCurrentDate",
    "GetUserCurrentLocation",
    "Tool",
    "ToolWire",
    "launch_of",
    "read_as_agentgym",
]

_OPENING = r"[\s>*`\"'\[(-]{0,64}(?:action\s*[:：][\s*]*)?(?P<name>\w+)"
_NAME = re.compile(_OPENING, re.IGNORECASE)
_HEAD = re.compile(
    _OPENING
    + r"(?:[\s*`]*(?:with\s+)?(?:(?:action|tool|function)[\s_]+)?(?:input|arguments|args|parameters)\b"
    r"|[\s*`]+with\b)?"
    r"(?:[\s*`:：]|(?<=```)(?:json|python|py)\b)*",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"(?:\(\s*\)|\{\s*\}|none)?[\s.*`\"'\])]*", re.IGNORECASE)
_MARKUP = " \t\n`*_\"')].;"  # characters to strip around an action
_BRACES = frozenset("{｛")
_SHORT = 100  # characters: ten such arguments fit the limit even if every character becomes ``\\U0001f600``
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class _ToolStyle(Style):
    """Style of an action that ends with its argument object, or at the end of the line if it has none."""

    def end(self, text: str, start: int, limit: int) -> int:
        """Return the position where the argument object or the line ends."""
        head = _HEAD.match(text, start, limit)
        if head is not None and text[head.end() : head.end() + 1] in _BRACES:
            try:
                return decode(text, head.end())[1]
            except NotJson:
                return limit
        line = text.find("\n", start, limit)
        return limit if line < 0 else line


class Tool(Action):
    """An action that calls a function of a tool: ``NAME with Action Input: {"argument": value}``.

    Two are equal where they are written alike, so that 1, 1.0 and True differ. Its classes are dataclasses
    that do not define ``__eq__``.

    Class attributes:
        function: The function's name; by default the name of the class, with underscores.
    """

    style: ClassVar[Style] = _ToolStyle(lines=False, verbatim=True, beside_label=True, opening=_NAME)
    function: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "function" not in cls.__dict__:
            cls.function = _CAMEL.sub("_", cls.__name__).lower()
        cls.template = f"{cls.function} with Action Input: "

    def __post_init__(self) -> None:
        self._check_fields()
        if not self._is_surely_short() and len(str(self)) > MAX_ACTION_CHARS - len("Action: "):
            raise BadArguments(f"an action may have at most {MAX_ACTION_CHARS} characters")

    def _is_surely_short(self) -> bool:
        """Return whether the action fits the length limit under any escaping, without serializing it."""
        return all(
            isinstance(value, (int, float)) or value is None or (type(value) is str and len(value) < _SHORT)
            for value in self.__dict__.values()
        )

    def __str__(self) -> str:
        return f"{self.function} with Action Input: {literal(self.to_json())}"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and str(other) == str(self)

    def __hash__(self) -> int:
        return hash((type(self), str(self)))

    @classmethod
    def head(cls) -> str:
        """Return the function's name."""
        return cls.function

    @classmethod
    def openings(cls) -> frozenset[str]:
        """Return the function's name in lower case."""
        return frozenset({cls.function.lower()})

    @classmethod
    def begins(cls, text: str) -> bool:
        """Return whether the text starts with the function's name, regardless of case."""
        head = _HEAD.match(text)
        return head is not None and head["name"].lower() == cls.function.lower()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a call; its argument object may be JSON or a Python literal, and is never executed.

        Raises:
            BadArguments: The text does not match, or a value is not valid for its field.
        """
        start = len(cls.template)
        if not text.startswith(cls.template) or text[start : start + 1] != "{":  # not as in the prompt
            head = _HEAD.match(text)
            if head is None or head["name"].lower() != cls.function.lower():
                raise cls._unfit(text)
            start = head.end()
        if text[start : start + 1] not in _BRACES:
            if any(f.required for f in fields_of(cls)) or not _NOTHING.fullmatch(text, start):
                raise cls._unfit(text)
            return cls()
        try:
            found, end = decode(text, start)
        except NotJson as error:
            raise BadArguments(
                f"the Action Input is not a JSON object ({error}): {shown(text[start:])}"
            ) from None
        if rest := text[end:].strip(_MARKUP):
            raise BadArguments(f"{cls.function}: the Action Input ends before {shown(rest)}")
        return cls.from_json(found)

    @classmethod
    def _unfit(cls, text: str) -> BadArguments:
        return BadArguments(f"expected {cls.usage()!r}, got {shown(text)}")

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Create the call from a mapping of arguments; their names are matched regardless of case.

        Raises:
            BadArguments: An argument is missing, unknown or invalid.
        """
        if isinstance(value, (dict, Mapping)) and value.keys() != names_of(cls):
            names = {f.key.lower(): f.key for f in fields_of(cls)}
            meant = {name: names.get(str(name).lower(), name) for name in value}
            if len(set(meant.values())) == len(meant):
                value = {meant[name]: given for name, given in value.items()}
        return super().from_json(value)

    def to_json(self) -> dict[str, Any]:
        """Return the arguments as JSON values, without omitted ones."""
        known, given = fields_of(type(self)), super().to_json()
        return {f.key: given[f.key] for f in known if f.required or given[f.key] is not None}

    @classmethod
    def usage(cls) -> str:
        """Return the syntax of the call with all arguments, followed by the list of optional ones, if any."""
        known = fields_of(cls)
        written = ", ".join(f'"{f.key}": <{f.key}>' for f in known)
        optional = ", ".join(f'"{f.key}"' for f in known if not f.required)
        may = f" (may be left out: {optional})" if optional else ""
        return f"{cls.function} with Action Input: {{{written}}}{may}"


@dataclass(frozen=True, eq=False)
class Finish(Tool):
    """Give your answer and end the task."""

    blind_answers: ClassVar[tuple[Any, ...]] = ("Yes", "No", "", "None", 0, 1, 2, 3, True, False, ())

    answer: Annotated[
        Any,
        Value("Yes", 105, 18.5, ("Homework", "Chores"), "2015-06-01", "done"),
        "the answer, of the type that the goal asks for",
    ]


@dataclass(frozen=True, eq=False)
class CheckValidActions(Tool):
    """List the functions that there are."""


@dataclass(frozen=True, eq=False)
class GetUserCurrentDate(Tool):
    """Get the user's current date."""


@dataclass(frozen=True, eq=False)
class GetUserCurrentLocation(Tool):
    """Get the city where the user is."""


# -------------------------------------------------------------------------------------------------- the wire

QUIRKS = """\
- The responses of the five tool servers (Weather, Movie, Academia, Sheet, TODOList) do not identify them: \
mind which URL belongs to which.
- AgentGym's server runs the text after `Action Input:` as Python. This library sends only plain values that \
it wrote itself. With `parser="agentgym"` any other value is not sent, and the observation is the server's \
message for a failed evaluation. Do not expose the server to anyone else.
- Any text that contains the word "finish" ends the episode. In the arguments of other actions the word is \
escaped, so that the server does not find it.
- The types of an answer count: 105 is not "105". An answer that contains the word "Invalid" is never \
scored.
- The reward is the total reached so far, not the gain of the step, and the server continues to pay after \
the end."""

LOCAL_QUIRKS = """\
- An `Action Input` is never run. It must be a plain Python value, on a line of at most 16,384 characters.
- Only `finish` ends an episode: the word in another text does not.
- Only the result at `finish` is paid, once: before it the reward is 0, and after it neither the reward nor \
`done` changes. AgentGym's server also pays if another function happens to return the answer.
- An answer that contains the word "Invalid" can be correct, and True is not the number 1.
- A negative task id is refused; AgentGym's server counts it from the end.
- Ids are never reused while the server runs. There are at most 4,096 environments, and idle ones are \
deleted after an hour. Both limits can be set."""

_GOAL = re.compile(r"accomplish the goal: (.*?)\s*(?:\nGive me one action\.)?\Z", re.DOTALL)

# Observations of a server that could not reach its web service, or was rejected there through no mistake of
# the agent.
_DOWN = re.compile(
    r"Observation: (?:ERROR \| )?(?:"
    r"\w+\((?:[\w.]+\()*HTTPS?ConnectionPool\(host="
    r"|\w*(?:ConnectionError|Timeout|SSLError|ProxyError)\("
    r"|APIError\(.{0,40}?\b(?:429|5[0-9]{2})\b"  # Google's spreadsheets
    r"|\{[^{}]{0,200}API request limit exceeded"  # Open-Meteo
    r"|\{[^{}]{0,200}\"status_code\": ?(?:7|9|10|11|24|25|43|46)\b"  # The Movie Database
    r")"
)


@dataclass(frozen=True)
class ToolWire(Wire):
    """Wire protocol of a tool server: ids under ``env_idx``, bare values, failures as a bare HTTP 500.

    Attributes:
        checks_at_end: Whether the server compares the state with the goal only when the episode ends, so
            earlier rewards do not count.
    """

    greeting = "ok"
    closes = False
    routes: ClassVar[Mapping[str, tuple[str, ...]]] = {"/reset": ("env_idx", "id"), "/list_envs": ()}
    no_routes = ("/close",)

    checks_at_end: bool = False

    def create(self, task_id: int) -> Flow[int]:
        """Create an environment; the server requires a task id."""
        body = (yield Call("create", "POST", "/create", {"id": task_id})).body()
        return body.integer()

    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task."""
        body = (yield Call("reset", "POST", "/reset", {"env_idx": env_id, "id": task_id})).body()
        observation = body.text()
        goal = _GOAL.search(observation)
        return Start(observation, goal=goal[1] if goal else None)

    def render(self, action: object) -> str:
        """Return a typed action with the ``Action:`` label that the server requires, and text unchanged."""
        return f"Action: {action}" if isinstance(action, Tool) else str(action)

    def check(self, words: str) -> None:
        """Reject input that the server would evaluate unless it is a Python literal.

        The error carries the answer that the server gives when the evaluation fails.
        """
        evaluated = _evaluated(words)
        if evaluated is None:
            return
        node = expression(evaluated)
        try:
            if node is not None:
                plain_value(node)
                return
        except ValueError:
            pass
        error = BadArguments(f"the Action Input is not a plain Python value: {shown(evaluated)}")
        error.answer = _NOT_EVALUATED
        raise error

    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Execute one action."""
        body = (yield Call("step", "POST", "/step", {"env_idx": env_id, "action": action})).body()
        observation, reward = body.text("observation"), body.number("reward")
        done = body.flag("done")
        if not 0 <= reward <= 1:
            raise BadReply(f"{body.call} broke the protocol: 'reward' should be from 0 to 1, got {reward}")
        if not done and _DOWN.match(observation):
            raise EnvironmentFailed(
                f"{body.call} could not reach the service behind it: {shown(observation)}"
            )
        return Outcome(observation, reward, done)

    def recognise(self, env_id: int, seen: Seen) -> Flow[bool | None]:
        """Compare the goal, the only part of an episode that the server exposes."""
        shown = yield from look(Call("observe", "GET", "/observation", query={"env_idx": env_id}), seen)
        return shown.text() == seen.start.observation if isinstance(shown, Body) else shown

    def judge(self, start: Start, score: float, action: str, outcome: Outcome) -> Score:
        """Score the best reward so far: the server pays the total reached, not the gain of the step."""
        counts = outcome.done or not self.checks_at_end
        best = max(score, outcome.reward) if counts else score
        return Score(best, best >= 1, outcome.done, outcome.reward)


def launch_of(command: str) -> str:
    """Return the shell commands that start one of AgentGym's tool servers."""
    return f"cd agentenv-tool && source ./setup.sh && {command} --host 127.0.0.1 --port 36001"


# ------------------------------------------------------------------------ parser of AgentGym's own client

_NOT_EVALUATED = ClientAnswer(
    "Observation: ERROR | Exception(Parameters in action input are not valid, please change your action "
    "input.)\nGive me one action.",
    keeps_score=True,
)
_WITH = re.compile(r"with\s*Action Input:\s*")


def read_as_agentgym(reply: str) -> str:
    """Return the reply, which AgentGym's tool clients send unchanged, or the part that the server parses.

    The limit on the length of an action applies to the line with the action and its input: reasoning before
    that line may be longer. Without such a line, the server's reply is the same for the end of the text.
    """
    if len(reply) <= MAX_ACTION_CHARS:
        return reply
    found = _action_line(reply.removesuffix("\n"))
    return reply[-MAX_ACTION_CHARS:] if found is None else reply[found.start :]


class _ActionLine(NamedTuple):
    """Positions in a text: of the line that the server parses as an action, and of the action's input."""

    start: int
    name_end: int
    input: int


def _action_line(text: str) -> _ActionLine | None:
    """Return the positions of the action in a text without a final line break; None if there is no action.

    The server uses one line with ``with Action Input:`` whose input extends to the end of the text.
    """
    last = text.rfind("\n") + 1
    for label in _WITH.finditer(text):
        if label.end() >= last:
            before = text[: label.start()].rstrip()
            return _ActionLine(before.rfind("\n") + 1, len(before), label.end())
    return None


def _evaluated(reply: str) -> str | None:
    """Return the part of a text that the server would evaluate, or None if it would evaluate nothing.

    It is the text after the first ``with Action Input:`` that follows the first ``Action:`` in the line of
    the action.
    """
    reply = reply.removesuffix("\n")
    found = _action_line(reply)
    if found is None:
        return None
    call = f"{reply[found.start : found.name_end].lstrip()} with Action Input: {reply[found.input :]}"
    start = call.find("Action:")
    behind = _WITH.search(call, start + len("Action:")) if start >= 0 else None
    return call[behind.end() :] if behind else None
