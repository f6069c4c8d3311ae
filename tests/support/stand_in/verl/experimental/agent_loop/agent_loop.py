"""Stand-ins for the names of verl that the agent loop imports, to play episodes without verl."""

from __future__ import annotations

from types import SimpleNamespace


class AgentLoopBase:
    """Stores the arguments of an agent loop under verl's names."""

    def __init__(self, rollout_config, server_manager, tokenizer, estimator="grpo"):
        self.config = SimpleNamespace(algorithm=SimpleNamespace(adv_estimator=estimator))
        self.rollout_config = rollout_config
        self.server_manager = server_manager
        self.tokenizer = tokenizer
        self.apply_chat_template_kwargs = {}


class AgentLoopWorker:
    """Has the method that `verl_bridge.trainer` wraps."""

    async def _run_agent_loop(self, trajectory):
        raise NotImplementedError


class AgentLoopMetrics(SimpleNamespace):
    pass


class AgentLoopOutput(SimpleNamespace):
    pass
