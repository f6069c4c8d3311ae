"""``agentgym play``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any

import gymnasium
import typer

from agentgym_gym.catalogue import find
from agentgym_gym.cli.console import clean, report
from agentgym_gym.cli.options import Header, headers_of

if TYPE_CHECKING:
    from agentgym_gym.env import AgentGymEnv

__all__ = ["play"]

_LEAVE = frozenset({"quit", "exit"})


def play(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which environment: its id or its name.")],
    task: Annotated[int | None, typer.Option(help="Which task; one is drawn by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the drawing.")] = None,
    server: Annotated[
        str | None, typer.Option(help="URL of its server; by default the variable, else a local one.")
    ] = None,
    action_format: Annotated[str, typer.Option(help="How an action is written.")] = "bare",
    header: Header = None,
) -> None:
    """Play an environment yourself, one line a turn.

    "quit" or the end of input leaves.
    """
    env: AgentGymEnv = gymnasium.make(  # type: ignore[assignment]
        find(name).id,
        server=server,
        action_format=action_format,
        headers=headers_of(header),
        disable_env_checker=True,
    ).unwrapped
    with contextlib.closing(env):
        observation, info = env.reset(seed=seed, options=None if task is None else {"task_id": task})
        typer.echo(f"{clean(env.system_prompt)}\n\nTask {info['task_id']}:\n")
        info = _turns(env, observation, info)
    if "fault" in info:
        report(f"the environment failed and nothing is scored: {info['fault']['message']}")
        raise typer.Exit(1)
    solved = "solved" if info["success"] else "not solved"
    typer.echo(f"Score {info['score']:g} after {info['turn']} turns: {solved}.")


def _turns(env: AgentGymEnv, observation: str, info: dict[str, Any]) -> dict[str, Any]:
    """Play until the end or until the player leaves; return the last info."""
    over = False
    while True:
        typer.echo(clean(observation) + "\n")
        reply = None if over else _ask()
        if reply is None:
            return info
        observation, _, terminated, truncated, info = env.step(reply)
        over = terminated or truncated


def _ask() -> str | None:
    """Return what the player writes, None when they leave."""
    while True:
        try:
            line = input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            typer.echo()
            return None
        if line.lower() in _LEAVE:
            return None
        if line:
            return line
