"""An agent that uses a model through the OpenAI chat completions API."""

from __future__ import annotations

from agentgym_gym.evaluate._chat.agent import ChatAgent
from agentgym_gym.evaluate._chat.prompt import ChatPrompt
from agentgym_gym.rollout._history import History

__all__ = ["ChatAgent", "ChatPrompt", "History"]
