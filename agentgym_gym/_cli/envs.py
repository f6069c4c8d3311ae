"""``agentgym envs``: list the environments and the sources of their servers."""

from __future__ import annotations

from dataclasses import dataclass

from agentgym_gym._cli.console import out, print_json, print_table
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import (
    ExtraEnvs,
    Json,
    register_envs,
)
from agentgym_gym._cli.server_sources import print_advice, source_of
from agentgym_gym.catalogue import environments
from agentgym_gym.formats import FORMATS

__all__ = ["EnvsOptions", "envs"]


@dataclass(frozen=True, kw_only=True)
class EnvsOptions:
    """The options of ``agentgym envs``."""

    env: ExtraEnvs = None
    as_json: Json = False


@command(EnvsOptions)
def envs(options: EnvsOptions) -> None:
    """List the environments and the sources of their servers."""
    register_envs(options.env)
    sources = [(environment, source_of(environment)) for environment in environments()]
    if options.as_json:
        print_json(
            [
                {
                    "id": environment.id,
                    "aliases": list(environment.ids[1:]),
                    "tasks": {
                        name: len(tasks)
                        for name, tasks in {**environment.splits, **environment.parts}.items()
                    },
                    "max_turns": environment.max_turns,
                    "score_range": list(environment.score_range),
                    "formats": list(FORMATS),
                    "variable": environment.variable,
                    "server": source.kind,
                    "server_note": source.note,
                }
                for environment, source in sources
            ]
        )
        return
    rows = []
    for environment, source in sources:
        low, high = environment.score_range
        tasks = environment.task_count
        ids, score = "\nor ".join(environment.ids), f"{low:g} to {high:g}"
        rows.append((ids, f"{tasks:,}", str(environment.max_turns), score, source.label))
    print_table(("id", "tasks", "turns", "score", "server"), rows, left={"id", "server"})
    print_advice(source for _, source in sources)
    out.print(f"Action formats: {', '.join(FORMATS)}.")
