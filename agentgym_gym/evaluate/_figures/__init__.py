"""Metrics of episodes: success and score with confidence intervals, pass@k, tokens and cost."""
