"""The tokens of an episode: templates, observations and their limits."""
