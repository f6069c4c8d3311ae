"""The local SearchQA server: `server` speaks AgentGym's protocol, `world` makes what it plays from a seed."""
