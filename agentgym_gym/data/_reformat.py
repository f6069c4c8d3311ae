"""Trajectories put into another action format: each reply is read, and written anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from agentgym_gym._tool_calls import called_action
from agentgym_gym.actions import Action, Thought, ToolCall
from agentgym_gym.catalogue import find
from agentgym_gym.data._rl import own_prompt
from agentgym_gym.data._trajectories import Message, Trajectory, as_system
from agentgym_gym.errors import ActionError, BadOption
from agentgym_gym.formats import Bare, ToolCalls, get_format
from agentgym_gym.formats.react import ReActOnOneLine

if TYPE_CHECKING:
    from agentgym_gym._options import FormatName
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.formats import ParsedReply

__all__ = ["Reformatted", "SourceFormat", "Unparsed", "reformat"]

SourceFormat: TypeAlias = Literal[
    "react", "function_calling", "code_as_action", "tags", "adapt", "bare", "tool_calls", "agentgym"
]
"""How replies are read: by a format, or as AgentGym's own client reads its ReAct."""

_OF_A_CALL = "tool_calls"


@dataclass(frozen=True)
class Unparsed:
    """A reply that could not be put into the other format.

    Attributes:
        kind: The kind of the parse error; ``OnlyThought`` where the reply only thinks, for which the other
            format has no form; ``ThoughtNotKept`` where the other format would lose or misread the thought.
        source: The file and the entry.
        turn: Which reply of the trajectory, from 1.
        reply: What it says.
    """

    kind: str
    source: str
    turn: int
    reply: str

    def __str__(self) -> str:
        return f"{self.source}, turn {self.turn}: {self.kind}: {self.reply!r:.120}"


@dataclass(frozen=True)
class Reformatted:
    """What became of a trajectory.

    Attributes:
        trajectory: The trajectory in the other format; None where it is left out.
        unparsed: The replies that could not be put into it.
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
    """Put a trajectory into another action format.

    Each reply is read by the one format, and its action and its thought are written in the other. The format
    ``bare`` has no place for a thought. The system prompt becomes the environment's own for the new format;
    AgentGym's two first messages become one, as `as_system` says. What the environment said stays as it is.

    Args:
        trajectory: The trajectory.
        environment: Its environment.
        source_format: The format that its replies are read in. Function calls that a run keeps apart from the
            text are read where it is ``"tool_calls"``.
        target_format: The format that they are written in.
        keep_unparsed: Whether a trajectory with a reply that cannot be read is kept, with that reply word for
            word; by default it is left out.

    Raises:
        BadOption: The trajectory is of another environment, there is no such format, or AgentGym's parser
            does not read the environment in ReAct.
    """
    if find(trajectory.env_id).name != environment.name:
        raise BadOption(f"{trajectory.source}: it is of {trajectory.env_id}, not of {environment.name}")
    reading, target = _Reading(environment, source_format), get_format(target_format)
    messages: list[Message] = []
    unparsed: list[Unparsed] = []
    turn = 0
    for said in as_system(trajectory).messages:
        if said.role != "assistant":
            messages.append(said)
            continue
        turn += 1
        extra = {key: value for key, value in said.extra.items() if key != _OF_A_CALL}
        try:
            messages.append(replace(said, content=reading.written(said, target_format), extra=extra))
        except ActionError as error:
            kind = error.kind
        except _NotWritten as error:
            kind = str(error)
        else:
            continue
        unparsed.append(Unparsed(kind, trajectory.source, turn, said.content))
        messages.append(said)
    if unparsed and not keep_unparsed:
        return Reformatted(None, tuple(unparsed))
    prompt = _prompt(environment.name, target_format)
    if messages and messages[0].role == "system":
        messages[0] = replace(messages[0], content=prompt)
    else:
        messages.insert(0, Message("system", prompt))
    changed = replace(trajectory, messages=tuple(messages), action_format=target.name)
    return Reformatted(changed, tuple(unparsed))


class _NotWritten(Exception):
    """A reply was read and cannot be written in the other format; the message is the kind."""


class _Reading:
    """How the replies of an environment are read in one format."""

    def __init__(self, environment: Environment, source_format: SourceFormat) -> None:
        self._grammar = environment.grammar
        self._agentgym = environment.agentgym_readers.get("react") if source_format == "agentgym" else None
        if source_format == "agentgym" and self._agentgym is None:
            raise BadOption(f"parser='agentgym' does not read {environment.name} in ReAct")
        self._format = ReActOnOneLine() if source_format == "agentgym" else get_format(source_format)

    def written(self, said: Message, target_format: FormatName) -> str:
        """Return a reply in another format.

        Raises:
            ActionError: It cannot be read.
            _NotWritten: It cannot be written.
        """
        target = get_format(target_format)
        action = self._action(said)
        if not isinstance(action, Action):
            if target.name != self._format.name:
                raise _NotWritten("OnlyThought")
            return said.content  # as the format has it
        thought = self._format.thought_of(said.content, action)
        try:
            written = target.render(action, thought)
            same = target.parse(written, self._grammar) == action
        except (BadOption, ActionError):
            same = False
        if not same or not (
            isinstance(target, Bare) or target.thought_of(written, action).split() == thought.split()
        ):
            raise _NotWritten("ThoughtNotKept")
        return written

    def _action(self, said: Message) -> Action | Thought:
        read = self._read(said)
        if not isinstance(read, Action | Thought):
            raise _NotWritten("UnknownAction")  # a format of the user's own may read what no grammar knows
        return read

    def _read(self, said: Message) -> ParsedReply:
        calls = said.extra.get(_OF_A_CALL)
        if isinstance(self._format, ToolCalls) and isinstance(calls, list) and calls:
            made = [each if isinstance(each, Mapping) else {} for each in calls]
            return called_action(
                [ToolCall(str(each.get("name", "")), each.get("arguments") or {}) for each in made],
                self._grammar,
            ).action
        if self._agentgym is not None:
            words = self._agentgym(said.content)
            # The servers of the tools are sent the whole reply, and read it by themselves.
            if words != said.content or self._grammar.knows(words):
                return self._grammar.parse(words)
        return self._format.parse(said.content, self._grammar)


@cache
def _prompt(name: str, action_format: FormatName) -> str:
    return own_prompt(find(name), {"action_format": action_format})
