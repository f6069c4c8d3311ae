"""The prompts of an episode: one conversation that is continued, or a prompt for each turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentgym_gym.rollout import Conversation, History
from verl_bridge._tokens.observations import cut_in_the_middle, encode_within

if TYPE_CHECKING:
    from agentgym_gym.rollout import Episode
    from verl_bridge._run.rollout_output import RolloutOutput
    from verl_bridge._tokens.chat_template import ChatTemplate
    from verl_bridge._tokens.limits import TokenLimits
    from verl_bridge._tokens.rendered import RenderedChat
    from verl_bridge.tokens import TokenizedChat

__all__ = ["ContinuedPrompt", "Prompts", "TurnPrompts"]


class Prompts(ABC):
    """Builds the prompts of one episode.

    Attributes:
        chat: The chat template, which also reads replies.
        end_token: The token that ends the model's turns, or None if there is none.
        characters: About how many characters the next prompt encodes in addition to its observation.
        omitted_turns: Number of earlier turns that the prompt omits.
        calls_function: Whether a prompt may call a function of the user, for a summary.
    """

    chat: ChatTemplate
    end_token: int | None
    characters = 0
    omitted_turns = 0
    calls_function = False

    @abstractmethod
    def begin(self, observation: str, limit: int | None) -> tuple[list[int], int]:
        """Return the first prompt.

        Args:
            observation: The first observation, which is shortened in the middle if the prompt is too long.
            limit: Maximum tokens of the prompt; None for no limit.

        Returns:
            The tokens, and how many characters of the observation they contain. There are more tokens than
            `limit` only if the row's messages by themselves have too many.

        Raises:
            UnstableTemplate: The template rejects the messages.
        """

    @abstractmethod
    def continue_with(self, rollout: RolloutOutput, reply: list[int], episode: Episode) -> str | None:
        """Prepare a rollout for the next reply.

        Args:
            rollout: The rollout, which ends with the reply.
            reply: The tokens of the last reply.
            episode: The episode after the turn of the reply.

        Returns:
            None, or the setting that leaves no room for another reply.

        Raises:
            UnstableTemplate: The template rejects the messages.
            BadOption: The summary of the history is not available.
        """


class ContinuedPrompt(Prompts):
    """One conversation as a row: each prompt is the row so far, and an observation is appended to it.

    Args:
        chat: Continues the conversation.
        messages: The messages of the row.
        limits: The limits of the row.
        observation_limit: Maximum tokens of an observation after the first; a longer one is shortened in the
            middle.
        drop_reasoning: Whether the reasoning of a reply is removed when the next prompt is built.
    """

    def __init__(
        self,
        chat: TokenizedChat,
        messages: Sequence[Mapping[str, Any]],
        limits: TokenLimits,
        *,
        observation_limit: int,
        drop_reasoning: bool,
    ) -> None:
        self.chat: TokenizedChat = chat
        self.end_token = chat.end_token
        self._messages, self._limits = messages, limits
        self._observation_limit, self._drop = observation_limit, drop_reasoning

    def begin(self, observation: str, limit: int | None) -> tuple[list[int], int]:
        """Return the first prompt."""
        return self.chat.begin(self._messages, observation, limit)

    def continue_with(self, rollout: RolloutOutput, reply: list[int], episode: Episode) -> str | None:
        """Append an observation to the row."""
        chat, drop, step = self.chat, self._drop, episode.steps[-1]
        kept = chat.without_reasoning(reply) if drop else reply
        opened = chat.opened if drop and rollout.shown else []  # the first are in the prompt
        freed = len(reply) - len(kept) + len(opened)
        calls, played = 1 + len(step.get("ignored_actions", ())), step.get("played_call", 0)
        between = chat.after(kept, episode.observation, self._observation_limit, calls=calls, played=played)
        response = len(rollout.response)
        room = self._limits.room(len(rollout.prompt) + response, response)
        if len(between) >= room.tokens + freed:
            return room.setting
        if drop:
            rollout.replace_last(reply, kept, chat.opened)
        rollout.append_observation(between)
        return None


class TurnPrompts(Prompts):
    """A row for each turn: each prompt is rendered from the messages that the history policy keeps.

    These are the messages that `ChatAgent` sends with the same policy.

    Args:
        chat: Encodes the messages.
        messages: The messages of the row.
        limits: The limits of a row.
        history: The part of the conversation in a prompt.
        observation_limit: As for `ContinuedPrompt`.
    """

    def __init__(
        self,
        chat: RenderedChat,
        messages: Sequence[Mapping[str, Any]],
        limits: TokenLimits,
        *,
        history: History,
        observation_limit: int,
    ) -> None:
        self.chat: RenderedChat = chat
        self.end_token = chat.end_token
        self._messages, self._limits = messages, limits
        self._observation_limit = observation_limit
        self._turn = 0
        self._conversation = Conversation(history, [], clean=chat.hide, restore=chat.restore)
        self.calls_function = history.summary is not None

    def begin(self, observation: str, limit: int | None) -> tuple[list[int], int]:
        """Return the first prompt."""
        chat, messages = self.chat, self._messages
        tokens, kept = encode_within(
            observation, limit, lambda text: chat.encode(chat.opening(messages, text))
        )
        self._conversation.head = chat.opening(messages, cut_in_the_middle(observation, kept))
        return tokens, kept

    def continue_with(self, rollout: RolloutOutput, reply: list[int], episode: Episode) -> str | None:
        """Begin the row of the next turn."""
        message, ids = self.chat.reply_message(reply, self._turn)
        self._turn += 1
        step = episode.steps[-1]
        text = self.chat.shortened(episode.observation, self._observation_limit)
        conversation = self._conversation
        conversation.counted(step["prompt_tokens"])
        conversation.add_reply(message)
        conversation.add_answer(self.chat.answers(text, ids, step.get("played_call", 0)), episode.info)
        sent = conversation.to_send()
        self.omitted_turns = conversation.omitted
        prompt = self.chat.encode(sent)
        if len(prompt) > self._limits.of_prompt.tokens:
            return f"{self._limits.of_prompt.setting}={self._limits.of_prompt.tokens}"
        self.characters = sum(len(str(each.get("content"))) for each in sent)
        rollout.begin_row(prompt)
        return None
