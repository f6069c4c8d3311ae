"""A model behind OpenAI's chat protocol as an agent."""

from __future__ import annotations

from agentgym_gym.evaluate.chat.agent import ChatAgent
from agentgym_gym.evaluate.chat.prompt import ChatPrompt
from agentgym_gym.rollout.messages import History

__all__ = ["ChatAgent", "ChatPrompt", "History"]
