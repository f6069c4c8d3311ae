"""The bridge from any text ``gymnasium.Env`` to verl. docs/training/bridge.md says how.

It needs verl, and of ``agentgym_gym`` only the rollout runtime, ``agentgym_gym.rollout``.
"""
