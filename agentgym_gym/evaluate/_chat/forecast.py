"""Estimate the tokens of a model from episodes that another agent played."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_gym.rollout._history import Conversation, History, Message, estimate

if TYPE_CHECKING:
    from agentgym_gym.rollout import EpisodeRecord

__all__ = ["Forecast", "forecast"]


@dataclass(frozen=True)
class Forecast:
    """Estimated tokens of an average episode.

    Attributes:
        episodes: Number of episodes behind the estimate.
        turns: Mean number of replies.
        prompt: Mean number of prompt tokens; each turn sends the history again.
        completion: Mean number of tokens of the replies.
    """

    episodes: int
    turns: float
    prompt: float
    completion: float


def forecast(
    records: Iterable[EpisodeRecord], before: Sequence[Message], history: History, overhead: int = 0
) -> Forecast | None:
    """Return the tokens that a model would use with the same replies.

    Args:
        records: The episodes. Faulted ones are ignored.
        before: The messages before the first observation.
        history: The part of the conversation that the model receives.
        overhead: Tokens of each request besides the messages, for the tools.

    Returns:
        The estimate; None if there is no scored episode with a reply.
    """
    played = [record for record in records if record.scored and record.replies]
    if not played:
        return None
    prompt = completion = turns = 0
    for record in played:
        conversation = Conversation(history, list(before), overhead)
        for message in record.messages:
            if message["role"] == "assistant":
                prompt += estimate(conversation.to_send()) + overhead
                completion += estimate([message])
                turns += 1
                conversation.add_reply(message)
            elif conversation.empty:
                conversation.head.append(message)
            else:
                conversation.add_answer([message])
    count = len(played)
    return Forecast(count, turns / count, prompt / count, completion / count)
