"""Bridge from any text ``gymnasium.Env`` to verl; docs/training/bridge.md explains its use.

It needs verl. Of ``agentgym_gym`` it imports only the rollout runtime, ``agentgym_gym.rollout``; its commands
``agentgym verl`` and ``agentgym data rl`` import other public modules, too.
"""
