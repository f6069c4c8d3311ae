"""Metrics of runs: success and score with confidence intervals, pass@k, tokens, cost, and comparisons."""

from __future__ import annotations

from agentgym_gym.evaluate._figures.compare import Comparison, Paired, compare_runs
from agentgym_gym.evaluate._figures.metrics import Summary, summarise
from agentgym_gym.evaluate._figures.prices import Price, price_of, read_prices

__all__ = [
    "Comparison",
    "Paired",
    "Price",
    "Summary",
    "compare_runs",
    "price_of",
    "read_prices",
    "summarise",
]
