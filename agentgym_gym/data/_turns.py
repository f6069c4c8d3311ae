"""Conversations of one turn: the messages that a history policy shows a model, and its reply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from agentgym_gym.data._trajectories import Message, Trajectory, as_context
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import History
from agentgym_gym.evaluate._chat.reply import ChatToolCall, text_of, without_thinking
from agentgym_gym.evaluate._chat.request_form import filled
from agentgym_gym.rollout import Conversation

__all__ = ["parse_policy", "per_turn"]

_HISTORY = "history"


def parse_policy(history: History | str) -> History:
    """Return the history policy of rows.

    Raises:
        BadOption: The text is not a policy, its function cannot be imported, or it requires summaries of the
            environment, which no source has.
    """
    policy = History.parse(history)
    if policy.summary is not None and policy.summarizer() is None:
        problem = (
            "requires the summaries of the environment, which are not recorded: use summary:module:function, "
            "or no summary"
        )
        raise BadOption(_HISTORY, str(policy), problem=problem)
    return policy


def per_turn(trajectory: Trajectory, history: History | str) -> Iterator[Trajectory]:
    """Divide a trajectory into a conversation for each reply that is to be trained on.

    A conversation has the messages that `ChatAgent` sends with the policy before the reply, and the reply.
    Earlier replies have no reasoning, and are excluded from training, as are the examples of a prompt.
    Function calls are text, as the model writes them without native tool calls.

    Args:
        trajectory: The trajectory. A conversation of one turn by the same policy is returned unchanged.
        history: The policy: a `History`, or its text such as ``"turns:4"``. ``"all"`` returns the trajectory
            unchanged.

    Raises:
        BadOption: The policy is invalid, or the trajectory lacks what it needs: an observation before the
            first reply, or the token counts of its requests for ``tokens:N``; or it is a conversation of one
            turn by another policy.
    """
    policy = parse_policy(history)
    written = trajectory.extra.get(_HISTORY)
    if policy == History() or written == str(policy):
        yield trajectory
        return
    if written is not None:
        problem = f"differs from the one of {_where(trajectory)}, which is a turn with the history {written}"
        raise BadOption(_HISTORY, str(policy), problem=problem)
    yield from _turns(trajectory, policy, _Counts(trajectory, policy))


class _Counts:
    """The token counts of the requests with a policy.

    Raises:
        BadOption: The policy limits tokens, and the trajectory has no counts for it.
    """

    def __init__(self, trajectory: Trajectory, policy: History) -> None:
        counts, text = trajectory.counts, str(policy)
        self._tokens: Sequence[int] = ()
        if policy.tokens is None:
            return
        if counts is None:
            problem = (
                f"limits tokens, and {_where(trajectory)} has no token counts of a model server for these "
                "messages: give a run of a model, without options that change its messages, or use turns:K"
            )
            raise BadOption(_HISTORY, text, problem=problem)
        self._as_played = counts.history == text
        if not self._as_played and (counts.history != "all" or policy.summary is not None):
            problem = (
                f"limits tokens, and {_where(trajectory)} has the counts of requests with the history "
                f"{counts.history}: play with {text}, or use turns:K"
            )
            raise BadOption(_HISTORY, text, problem=problem)
        self._tokens = counts.tokens

    def of_request(self, turn: int, omitted: int) -> int | None:
        """Return the tokens of a request; None if the policy does not depend on them."""
        if turn >= len(self._tokens):
            return None
        tokens = self._tokens[turn]
        # The size of a turn is the difference between the requests before and after it.
        return tokens if self._as_played else tokens - (self._tokens[omitted] - self._tokens[0])


def _turns(trajectory: Trajectory, policy: History, counts: _Counts) -> Iterator[Trajectory]:
    head = _opening(trajectory.messages)
    if not head or head[-1].role != "user":
        problem = f"requires an observation before the first reply, which {_where(trajectory)} lacks"
        raise BadOption(_HISTORY, str(policy), problem=problem)
    conversation = Conversation(policy, [_sent(each) for each in head])
    played = trajectory.messages[len(head) :]
    starts = [at for at, each in enumerate(played) if each.role == "assistant"]
    turn = 0
    for at, message in enumerate(played):
        if message.role != "assistant":
            conversation.add(_sent(message), {})
            continue
        sent = filled(conversation.to_send())
        tokens = counts.of_request(turn, conversation.omitted)
        if tokens is not None:
            conversation.counted(tokens)
        earlier = map(_earlier, played[starts[conversation.omitted] : at])
        context = [
            replace(each, content=shown["content"])
            for each, shown in zip([*head, *earlier], sent, strict=True)
        ]
        conversation.add_reply({"role": "assistant", "content": _history_text(message)})
        turn += 1
        if message.loss is not False:
            yield replace(
                trajectory,
                messages=(*context, message),
                extra={**trajectory.extra, _HISTORY: str(policy), "turn": turn},
                source=f"{_where(trajectory)}, turn {turn}",
                counts=None,
            )


def _opening(messages: Sequence[Message]) -> list[Message]:
    """Return the messages before the first reply of the game, with examples and the answer to a prompt."""
    for at, message in enumerate(messages):
        if message.role == "assistant" and message.loss is not False:
            return list(messages[:at])
    return list(messages)


def _earlier(message: Message) -> Message:
    return as_context(message) if message.role == "assistant" else message


def _sent(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.content}


def _history_text(reply: Message) -> str:
    """Return a reply as the text of later requests: without its reasoning."""
    calls = [ChatToolCall(each["name"], each["arguments"]) for each in reply.extra.get("tool_calls", ())]
    written = text_of("", calls)
    if not calls or not reply.content.endswith(written):
        return without_thinking(reply.content)
    return text_of(without_thinking(reply.content.removesuffix(written).removesuffix("\n")), calls)


def _where(trajectory: Trajectory) -> str:
    return trajectory.source or str(trajectory.key)
