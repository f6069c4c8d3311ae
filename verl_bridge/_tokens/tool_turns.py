"""Native tool calls in a chat template: how a call begins, and the text between a call and the next reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentgym_gym.rollout import NOT_CARRIED_OUT
from verl_bridge._tokens import reasoning
from verl_bridge._tokens.chat_template import REPLY, UnstableTemplate
from verl_bridge._tokens.turn_frame import PROBE, TRIMS, TurnFrame

if TYPE_CHECKING:
    from verl_bridge._tokens.control import ControlTokens

__all__ = ["ToolTurns"]

_ARGUMENT, _NAME, _RESULT = "Argument-2d1b", "Name-83c5", "Result-6ef0"
"""Placeholders for texts in the made-up conversation."""

_INSTEAD = "use action_format='function_calling' without native tool calls"


class ToolTurns:
    """The turns of a conversation in which the model calls functions.

    Args:
        render: Renders messages that follow the opening of a conversation, with the tools.
        header: The template's text between the opening and a reply.
        control: Encodes the texts.
        end: The text that ends the model's turns.

    Attributes:
        control_ids: The control tokens of a call, which a parser of the reply needs as text.

    Raises:
        UnstableTemplate: The template has no calls, or its text after a call depends on the call.
    """

    def __init__(
        self,
        render: Callable[[Sequence[Mapping[str, Any]]], str],
        header: str,
        control: ControlTokens,
        end: str,
    ) -> None:
        self._render, self._control, self._end = render, control, end
        self._frames: dict[tuple[int, int], TurnFrame] = {}
        self._content: str | None = ""
        whole = render(self._turn(1))
        if _NAME not in whole:  # some templates take a message for text if its content is text
            self._content = None
            whole = render(self._turn(1))
        if any(whole.count(text) != 1 for text in (_NAME, _ARGUMENT, _RESULT)) or header not in whole:
            raise UnstableTemplate(
                "the chat template does not write a function call and its result once and unchanged: it "
                f"makes {whole!r:.600}; {_INSTEAD}"
            )
        call = whole.partition(header)[2].partition(self._end)[0]
        before_name = call.partition(_NAME)[0]
        start, stop = reasoning.span(before_name)
        words = before_name[start:stop].split()
        # JSON may be written in several ways, so only the text before its first key counts.
        self._mark = words[0].partition('"')[0] if words else ""
        if not self._mark:
            raise UnstableTemplate(
                f"the chat template writes a call without a mark: it makes {call!r:.400}; {_INSTEAD}"
            )
        self.control_ids = frozenset(control.encode(control.mark(call))) & control.ids
        self.frame(1, 0)

    def is_call(self, reply: str) -> bool:
        """Return whether a reply has a call in the notation of the template."""
        return self._mark in reply

    def frame(self, calls: int, played: int) -> TurnFrame:
        """Return the text between a reply and the next one, with a result for each of its calls.

        Args:
            calls: Number of calls in the reply.
            played: Position of the executed one, whose result is the observation.
        """
        key = calls, min(played, calls - 1)
        if key not in self._frames:
            self._frames[key] = self._frame(*key)
        return self._frames[key]

    def _frame(self, calls: int, played: int) -> TurnFrame:
        after_call = self._after_call(self._turn(calls, played))
        other = self._turn(calls, played, name="other", call_id="b2c3d4e5f")
        if self._after_call([*self._turn(calls, played), *other]) != after_call:
            raise UnstableTemplate(
                "the chat template's text between a call and the next reply depends on the call, or on "
                f"earlier ones: {after_call!r:.300}; {_INSTEAD}"
            )
        before, _, after = after_call.partition(_RESULT)
        probed = self._after_call(self._turn(calls, played, result=PROBE))
        trim = next((trim for trim in TRIMS if probed == before + trim(PROBE) + after), None)
        if trim is None:
            raise UnstableTemplate(f"the chat template changes results of calls: it makes {probed!r:.400}")
        frame = TurnFrame(self._control, REPLY, self._end + before, after, trim)
        frame.closing = frame.encode("")[:1]
        if frame.joins or self._control.encode(self._control.mark(self._end)) != frame.closing:
            raise UnstableTemplate("the chat template does not end calls with one control token")
        return frame

    def _after_call(self, turns: Sequence[Mapping[str, Any]]) -> str:
        """Return the text after the token that ends the last turn with calls."""
        return self._render(turns).rpartition(_ARGUMENT)[2].partition(self._end)[2]

    def _turn(
        self,
        calls: int,
        played: int = 0,
        *,
        result: str = _RESULT,
        name: str = _NAME,
        call_id: str = "a1b2c3d4e",
    ) -> list[Mapping[str, Any]]:
        """Return a message with calls, and the messages with their results."""
        made = [
            {
                "id": f"{call_id[:-1]}{number}",  # nine letters and digits, as Mistral's templates require
                "type": "function",
                "function": {"name": name, "arguments": {"argument": _ARGUMENT}},
            }
            for number in range(calls)
        ]
        results = [NOT_CARRIED_OUT] * calls
        results[played] = result
        return [
            {"role": "assistant", "content": self._content, "tool_calls": made},
            *(
                {"role": "tool", "tool_call_id": call["id"], "content": text}
                for call, text in zip(made, results, strict=True)
            ),
        ]
