"""Convert trajectories to another action format by parsing and rendering each reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from agentgym_gym._tool_calls import called_action
from agentgym_gym.actions import Action, Thought, ToolCall
from agentgym_gym.catalogue import find
from agentgym_gym.data._rl import own_prompt
from agentgym_gym.data._trajectories import Message, Trajectory, as_system, with_prompt
from agentgym_gym.errors import ActionError, BadOption
from agentgym_gym.formats import Bare, ToolCalls, get_format
from agentgym_gym.formats._react_on_one_line import ReActOnOneLine

if TYPE_CHECKING:
    from agentgym_gym._env_options import FormatName
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.formats import ParsedReply

__all__ = ["Reformatted", "SourceFormat", "Unparsed", "reformat"]

SourceFormat: TypeAlias = Literal[
    "react", "function_calling", "code_as_action", "tags", "adapt", "bare", "tool_calls", "agentgym"
]
"""The parser of the replies: an action format, or ``agentgym`` for the ReAct parser of AgentGym's client."""

_CALLS_KEY = "tool_calls"


@dataclass(frozen=True)
class Unparsed:
    """A reply that could not be converted to the target format.

    Attributes:
        kind: The kind of the parse error; ``OnlyThought`` if the reply has no action, which the target format
            cannot express; ``ThoughtNotKept`` if the target format would lose or misread the thought.
        source: The file and the entry.
        turn: The number of the reply in the trajectory, from 1.
        reply: The text of the reply.
    """

    kind: str
    source: str
    turn: int
    reply: str

    def __str__(self) -> str:
        return f"{self.source}, turn {self.turn}: {self.kind}: {self.reply!r:.120}"


@dataclass(frozen=True)
class Reformatted:
    """The result of converting a trajectory.

    Attributes:
        trajectory: The trajectory in the target format; None if it was skipped.
        unparsed: The replies that could not be converted.
    """

    trajectory: Trajectory | None
    unparsed: tuple[Unparsed, ...]


def reformat(
    trajectory: Trajectory,
    environment: Environment,
    source_format: SourceFormat,
    target_format: FormatName,
    *,
    keep_unparsed: bool = False,
) -> Reformatted:
    """Convert a trajectory to another action format.

    Each reply is parsed in the source format; its action and thought are rendered in the target format. The
    format ``bare`` drops the thought. The system prompt is replaced by the environment's prompt for the
    target format. `as_system` merges AgentGym's first two messages into one. The environment's messages are
    not changed.

    Args:
        trajectory: The trajectory.
        environment: The environment of the trajectory.
        source_format: The format of the replies. With ``"tool_calls"``, function calls are read from
            ``extra``, where a run stores them.
        target_format: The format to write.
        keep_unparsed: Whether to keep a trajectory with a reply that cannot be converted, with that reply
            unchanged. By default, such a trajectory is skipped.

    Raises:
        BadOption: The trajectory is of another environment, the format does not exist, or AgentGym has no
            ReAct parser for the environment.
    """
    if find(trajectory.env_id).name != environment.name:
        raise BadOption(
            f"{trajectory.source}: the environment is {trajectory.env_id}; expected {environment.name}"
        )
    converter, target = _ReplyConverter(environment, source_format), get_format(target_format)
    messages: list[Message] = []
    unparsed: list[Unparsed] = []
    turn = 0
    for message in as_system(trajectory).messages:
        if message.role != "assistant":
            messages.append(message)
            continue
        turn += 1
        extra = {key: value for key, value in message.extra.items() if key != _CALLS_KEY}
        try:
            messages.append(replace(message, content=converter.convert(message, target_format), extra=extra))
        except ActionError as error:
            kind = error.kind
        except _NotConverted as error:
            kind = str(error)
        else:
            continue
        unparsed.append(Unparsed(kind, trajectory.source, turn, message.content))
        messages.append(message)
    if unparsed and not keep_unparsed:
        return Reformatted(None, tuple(unparsed))
    changed = replace(trajectory, messages=tuple(messages), action_format=target.name)
    return Reformatted(with_prompt(changed, _prompt(environment.name, target_format)), tuple(unparsed))


class _NotConverted(Exception):
    """A reply was parsed but cannot be written in the target format; the message is the kind."""


class _ReplyConverter:
    """Converts the replies of one environment from one format."""

    def __init__(self, environment: Environment, source_format: SourceFormat) -> None:
        self._grammar = environment.grammar
        self._agentgym = environment.agentgym_readers.get("react") if source_format == "agentgym" else None
        if source_format == "agentgym" and self._agentgym is None:
            raise BadOption(
                "parser", "agentgym", problem=f"does not support replies of {environment.name} in ReAct"
            )
        self._format = ReActOnOneLine() if source_format == "agentgym" else get_format(source_format)

    def convert(self, message: Message, target_format: FormatName) -> str:
        """Return a reply in another format.

        Raises:
            ActionError: The reply cannot be parsed.
            _NotConverted: The reply cannot be written in the target format.
        """
        target = get_format(target_format)
        action = self._action(message)
        if not isinstance(action, Action):
            if target.name != self._format.name:
                raise _NotConverted("OnlyThought")
            return message.content  # already in the target format
        thought = self._format.thought_of(message.content, action)
        try:
            written = target.render(action, thought)
            same = target.parse(written, self._grammar) == action
        except (BadOption, ActionError):
            same = False
        if not same or not (
            isinstance(target, Bare) or target.thought_of(written, action).split() == thought.split()
        ):
            raise _NotConverted("ThoughtNotKept")
        return written

    def _action(self, message: Message) -> Action | Thought:
        parsed = self._parse(message)
        if not isinstance(parsed, Action | Thought):
            raise _NotConverted("UnknownAction")  # a custom format may return an action outside the grammar
        return parsed

    def _parse(self, message: Message) -> ParsedReply:
        calls = message.extra.get(_CALLS_KEY)
        if isinstance(self._format, ToolCalls) and isinstance(calls, list) and calls:
            mappings = [call if isinstance(call, Mapping) else {} for call in calls]
            return called_action(
                [ToolCall(str(call.get("name", "")), call.get("arguments") or {}) for call in mappings],
                self._grammar,
            ).action
        if self._agentgym is not None:
            text = self._agentgym(message.content)
            # AgentGym sends whole replies to the tool servers, which parse them.
            if text != message.content or self._grammar.knows(text):
                return self._grammar.parse(text)
        return self._format.parse(message.content, self._grammar)


@cache
def _prompt(name: str, action_format: FormatName) -> str:
    return own_prompt(find(name), {"action_format": action_format})
