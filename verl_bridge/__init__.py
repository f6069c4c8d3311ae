"""The bridge from any text ``gymnasium.Env`` to verl. Nothing is in it yet: see CHANGELOG.md for what is.

It knows gymnasium and verl, and never imports ``agentgym_gym``.
"""
