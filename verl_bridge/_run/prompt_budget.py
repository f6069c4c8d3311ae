"""Fit prompts and observations for verl 0.7's interaction into the remaining tokens.

Only :mod:`verl_bridge.interaction` uses this. verl's tool agent loop renders and encodes the messages itself.
It checks neither their control tokens nor their length: an observation longer than the rest of the response
goes to the generation server, which rejects it and so ends the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentgym_gym.rollout import drop_blank_system
from verl_bridge._tokens.chat_template import shared_chat
from verl_bridge._tokens.control import ControlTokens
from verl_bridge._tokens.limits import TokenLimits
from verl_bridge._tokens.observations import LEAST, cut_in_the_middle, default_limit, encode_within
from verl_bridge._tokens.reasoning import span
from verl_bridge.tokens import TokenizedChat, UnstableTemplate

__all__ = ["PromptBudget"]

_control_tokens: dict[int, tuple[Any, ControlTokens]] = {}  # keeps the tokenizer, so that its id is unique


class PromptBudget:
    """Fits the texts of one episode to the token limits of verl's loop.

    Args:
        loop: verl's ``ToolAgentLoop``, or None if it was not found. Then texts stay unchanged.
        state: Its ``AgentData``, or None before there is one.
    """

    def __init__(self, loop: Any = None, state: Any = None) -> None:
        self._loop = loop
        self._state = state
        self._tokenizer: Any = getattr(loop, "tokenizer", None)
        self._options = dict(getattr(loop, "apply_chat_template_kwargs", None) or {})

    def begin(self, messages: list[Any], observation: str) -> str:
        """Append the first observation to the messages.

        Args:
            messages: The loop's messages, edited in place. A blank system message is removed; one that the
                chat template does not support is merged into the user message after it.
            observation: The first observation.

        Returns:
            Why the prompt is too long even with a shortened observation, which was then not appended; empty
            if it fits.
        """
        messages[:] = drop_blank_system(messages)
        conversation = self._conversation(messages)
        if conversation is not None:
            messages[:] = conversation.prepared(messages)
        text = self._escape(observation)
        if self._tokenizer is None:
            messages.append({"role": "user", "content": text})
            return ""

        def encode(content: str) -> list[int]:
            return self._encode([*messages, {"role": "user", "content": content}])

        limits = TokenLimits(self._loop.rollout_config)
        tokens, keep = encode_within(text, limits.of_prompt.tokens, encode)
        fits = len(tokens) <= limits.of_prompt.tokens and keep >= min(LEAST, len(text))
        messages.append({"role": "user", "content": cut_in_the_middle(text, keep) if fits else ""})
        return "" if fits else limits.explain(len(encode(text)))

    def after(self, observation: str, most: int | None) -> tuple[str, str | None]:
        """Return an observation that fits, and the setting that leaves no room for a reply after it.

        Args:
            observation: The observation.
            most: Its maximum number of tokens; None for a quarter of the response length.
        """
        text = self._escape(observation)
        if self._tokenizer is None or self._state is None:
            return text, None
        limits = TokenLimits(self._loop.rollout_config)
        before = len(self._loop.system_prompt)  # which verl cuts off again

        def encode(content: str) -> list[int]:
            return self._encode([{"role": "user", "content": content}])[before:]

        tokens, keep = encode_within(
            text, len(encode("")) + (most or default_limit(limits.response_length)), encode
        )
        room, setting = limits.room(len(self._state.prompt_ids), len(self._state.response_mask))
        # The loop ignores a reply that fills the response, so there must be room for more than one token.
        return cut_in_the_middle(text, keep), setting if len(tokens) + 2 > room else None

    def reply(self, text: str, messages: Sequence[Any], *, hide_reasoning: bool) -> str:
        """Return the reply with its reasoning marked, or without its reasoning.

        Args:
            text: The reply as decoded by verl.
            messages: The loop's messages.
            hide_reasoning: Whether to remove the reasoning.
        """
        conversation, tokens = self._conversation(messages), getattr(self._state, "response_ids", None)
        if conversation is not None and tokens:
            return conversation.answer(tokens) if hide_reasoning else conversation.text(tokens)
        start, end = span(text) if hide_reasoning else (0, len(text))
        return text[start:end]

    def _conversation(self, messages: Sequence[Any]) -> TokenizedChat | None:
        if self._tokenizer is None:
            return None
        system = any(message.get("role") == "system" for message in messages)
        try:
            return shared_chat(TokenizedChat, self._tokenizer, self._options, system=system)
        except UnstableTemplate:  # verl's loop may still support the template
            return None

    def _escape(self, text: str) -> str:
        if self._tokenizer is None:
            return text
        cached = _control_tokens.get(id(self._tokenizer))
        if cached is None:
            cached = _control_tokens[id(self._tokenizer)] = self._tokenizer, ControlTokens(self._tokenizer)
        return cached[1].escape(text)

    def _encode(self, messages: Sequence[Any]) -> list[int]:
        rendered = self._tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=True, tokenize=False, **self._options
        )
        return [int(token) for token in self._tokenizer.encode(rendered, add_special_tokens=False)]
