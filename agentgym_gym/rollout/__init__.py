"""Rollouts of text environments, as evaluation and training run them."""
