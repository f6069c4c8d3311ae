"""The help of commands with many options: the groups of the options, and the examples at its end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

__all__ = ["EVAL", "VALIDATE", "HelpLayout"]


@dataclass(frozen=True)
class HelpLayout:
    """The groups and examples of a command.

    Attributes:
        groups: Names of the fields of the command's options, by the title of their group.
        examples: Commands.
    """

    groups: Mapping[str, Collection[str]]
    examples: Collection[str]

    @property
    def epilog(self) -> str:
        """The examples as the end of the help. The backspace keeps typer from wrapping them."""
        return "\n".join(["\b", "Examples:", *(f"  {each}" for each in self.examples)])


_ENVIRONMENT = (
    *("server", "action_format", "parser", "on_unknown", "max_turns", "timeout"),
    *("header", "isolate", "success_at", "env_timeout", "env_kwargs"),
)

EVAL = HelpLayout(
    groups={
        "Agent or model": (
            *("agent", "model", "base_url", "api_key_variable"),
            *("launch", "model_path", "engine_arguments", "engine_python"),
        ),
        "Tasks": (
            *("protocol", "items", "tasks", "split", "positions"),
            *("limit", "sample", "samples", "seed"),
        ),
        "Run": ("out", "resume", "retry_faulted", "concurrency", "ray", "dry_run", "yes"),
        "Prompt and replies of a model": (
            *("system_prompt", "prompt", "tools", "history", "keep_reasoning", "max_tokens"),
            *("temperature", "top_p", "stop", "sampling", "on_cut_reply", "model_timeout", "retry_seconds"),
        ),
        "Cost and limits": ("prices", "max_cost", "max_tokens_total", "requests_per_minute"),
        "Environment": _ENVIRONMENT,
    },
    examples=(
        "agentgym eval TextCraft --agent oracle --limit 50",
        "agentgym eval WebShop --model tiny --base-url http://127.0.0.1:8000/v1",
        "agentgym eval WebShop --model-path tiny --launch vllm --protocol quick",
        "agentgym eval WebShop --launch vllm --model-path 'ckpts/*' --sample 100",
    ),
)

VALIDATE = HelpLayout(
    groups={
        "Tasks": ("gold", "tasks", "split"),
        "Run": ("out", "resume", "concurrency", "json"),
        "Environment": _ENVIRONMENT,
    },
    examples=(
        "agentgym validate TextCraft",
        "agentgym validate my_module:my/Env-v0 --gold my_module:Solver --tasks 0:50",
    ),
)
