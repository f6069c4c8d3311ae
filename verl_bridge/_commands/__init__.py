"""The commands ``agentgym verl`` and ``agentgym data rl``, which ``agentgym`` finds by their entry points."""
