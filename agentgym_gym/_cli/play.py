"""``agentgym play``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any

import typer
from gymnasium.utils.seeding import np_random

from agentgym_gym._cli.console import ERROR, clean, report
from agentgym_gym._cli.options import Header, headers_of
from agentgym_gym._cli.resolve_env import EnvKwargs, Name, json_object, resolve
from agentgym_gym._options import FormatName  # noqa: TC001 - typer reads it at run time
from agentgym_gym.data._items import SEEDS
from agentgym_gym.evaluate._runner import play_episode
from agentgym_gym.rollout._env_facts import system_prompt_of

if TYPE_CHECKING:
    import gymnasium

__all__ = ["play"]

_LEAVE = frozenset({"quit", "exit"})


def play(
    name: Name,
    task: Annotated[
        int | None,
        typer.Option(help="Which task, or which seed where it numbers none; one is drawn by default."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the drawing.")] = None,
    server: Annotated[
        str | None, typer.Option(help="URL of its server; by default the variable, else a local one.")
    ] = None,
    action_format: Annotated[
        FormatName | None,
        typer.Option(
            metavar="FORMAT",
            help="How an action is written: react, function_calling, code_as_action,"
            " tags, adapt, bare or tool_calls; by default bare.",
        ),
    ] = None,
    env_kwargs: EnvKwargs = "{}",
    header: Header = None,
) -> None:
    """Play an environment yourself, one line a turn.

    "quit" or the end of input leaves.
    """
    chosen, more = resolve(name), json_object(env_kwargs)
    if chosen.environment is not None and "action_format" not in more:
        action_format = action_format or "bare"
    asked = {"server": server, "action_format": action_format, "headers": headers_of(header) or None}
    env = chosen.make(more, asked, None)
    with contextlib.closing(env):
        if task is None:
            numbers = chosen.environment.split(None) if chosen.environment else range(SEEDS)
            task = numbers[int(np_random(seed)[0].integers(len(numbers)))]
        record = play_episode(env, _Player(), task)
    if record.messages and (record.terminated or record.truncated):
        typer.echo(clean(record.messages[-1]["content"]) + "\n")
    if record.fault is not None:
        report(f"the environment failed and nothing is scored: {record.fault['message']}")
        raise typer.Exit(1 if record.messages else ERROR)
    solved = {None: "", True: ": solved", False: ": not solved"}[record.success]
    typer.echo(f"Score {record.score:g} after {record.turns} turns{solved}.")


class _Player:
    """The user at the terminal, as an agent."""

    name = "player"

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Show the system prompt of the environment, if it has one."""
        prompt = system_prompt_of(env)
        start = "" if prompt is None else f"{clean(prompt)}\n\n"
        typer.echo(f"{start}Task {info['task_id']}:\n")

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """Show the observation and read a reply."""
        typer.echo(clean(observation) + "\n")
        return _ask()


def _ask() -> str | None:
    """Return the next line that the player enters, or None to leave."""
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
