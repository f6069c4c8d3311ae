"""Evaluation over many tasks: agents, the runner, the episode log and the metrics.

A `Run` is an agent in an environment. `play` plays it, and so does ``agentgym eval``, which only makes runs
and prints their results. Its folder has ``episodes.jsonl``, to which each episode adds a line when it
ends, and ``summary.json``::

    from agentgym_gym.evaluate import Run, play

    (result,) = play(Run("TextCraft", "oracle", tasks="0:10"))
    print(result.summary.success_rate)

A faulted episode carries no information about the agent. It is counted, but excluded from every average.
"""

from __future__ import annotations

from agentgym_gym.evaluate._agents import Agent, AgentReply, RandomAgent, ReplayAgent, load_oracle
from agentgym_gym.evaluate._chat.agent import ChatAgent
from agentgym_gym.evaluate._chat.prompt import ChatPrompt
from agentgym_gym.evaluate._compare import Comparison, compare_runs
from agentgym_gym.evaluate._engines.engine import Engine, checkpoints
from agentgym_gym.evaluate._figures.metrics import Summary, summarise
from agentgym_gym.evaluate._figures.prices import Price, price_of, read_prices
from agentgym_gym.evaluate._folder import RunFolder
from agentgym_gym.evaluate._play import play, play_async
from agentgym_gym.evaluate._policies import NullAgent
from agentgym_gym.evaluate._protocols.applying import protocol_runs
from agentgym_gym.evaluate._report import Report, write_report
from agentgym_gym.evaluate._rescore import DIVERGED, Rescored, ScoreRule, rescore
from agentgym_gym.evaluate._run import ChatOptions, Run, RunLimits
from agentgym_gym.evaluate._runner import evaluate, evaluate_async
from agentgym_gym.evaluate._runs import RunResult, RunResults, find_runs, read_run
from agentgym_gym.evaluate._trainings import read_training
from agentgym_gym.evaluate._validate import Validation, validate
from agentgym_gym.rollout._history import History
from agentgym_gym.rollout._records import EpisodeRecord, StepRecord, read_records

__all__ = [
    "DIVERGED",
    "Agent",
    "AgentReply",
    "ChatAgent",
    "ChatOptions",
    "ChatPrompt",
    "Comparison",
    "Engine",
    "EpisodeRecord",
    "History",
    "NullAgent",
    "Price",
    "RandomAgent",
    "ReplayAgent",
    "Report",
    "Rescored",
    "Run",
    "RunFolder",
    "RunLimits",
    "RunResult",
    "RunResults",
    "ScoreRule",
    "StepRecord",
    "Summary",
    "Validation",
    "checkpoints",
    "compare_runs",
    "evaluate",
    "evaluate_async",
    "find_runs",
    "load_oracle",
    "play",
    "play_async",
    "price_of",
    "protocol_runs",
    "read_prices",
    "read_records",
    "read_run",
    "read_training",
    "rescore",
    "summarise",
    "validate",
    "write_report",
]
