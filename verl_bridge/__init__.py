"""The bridge from any text ``gymnasium.Env`` to verl. docs/training/bridge.md says how.

It knows gymnasium and verl, and never imports ``agentgym_gym``.
"""
