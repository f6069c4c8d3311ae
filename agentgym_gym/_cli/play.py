"""``agentgym play``: play an environment yourself."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from gymnasium.utils.seeding import np_random

from agentgym_gym._base_env import BaseTextEnv
from agentgym_gym._cli.console import ERROR, clean, report
from agentgym_gym._cli.declared import command, json_object
from agentgym_gym._cli.options import EnvKwargs, Header, Name, headers_of
from agentgym_gym._env_options import FORMAT_NAMES, FormatName, Server
from agentgym_gym.evaluate._items import SEEDS
from agentgym_gym.evaluate._probe import probe
from agentgym_gym.evaluate._resolve import resolve
from agentgym_gym.evaluate._runner import play_episode
from agentgym_gym.evaluate._world import in_world, world_label
from agentgym_gym.options import Option
from agentgym_gym.rollout._env_facts import system_prompt_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import gymnasium

    from agentgym_gym.evaluate._resolve import Chosen

__all__ = ["PlayOptions", "play"]

_QUIT_WORDS = frozenset({"quit", "exit"})


@dataclass(frozen=True, kw_only=True)
class PlayOptions:
    """The options of ``agentgym play``."""

    name: Name
    task: Annotated[
        int | None,
        Option("task id, or seed if tasks are not numbered", default="random", argument="task_id"),
    ] = None
    seed: Annotated[int | None, Option("random seed of the drawn task", least=0)] = None
    server: Server = None
    action_format: Annotated[
        FormatName | None,
        Option(f"action format: {FORMAT_NAMES}", metavar="FORMAT", default="bare"),
    ] = None
    env_kwargs: EnvKwargs = "{}"
    header: Header = None


@command(PlayOptions)
def play(options: PlayOptions) -> None:
    """Play an environment yourself, one line per turn.

    To leave, enter "quit" or end the input.

    Other users of this machine can see --header in the list of processes. To hide it, set the variable
    AGENTGYM_<NAME>_HEADERS to a JSON object instead.
    """
    chosen, more = resolve(options.name), json_object(options.env_kwargs)
    action_format = options.action_format
    if chosen.environment is not None and "action_format" not in more:
        action_format = action_format or "bare"
    headers = headers_of(options.header)
    own = {"server": options.server, "action_format": action_format, "headers": headers or None}
    env = chosen.make(more, own, None)
    with contextlib.closing(env):
        task = options.task
        if task is None:
            numbers = chosen.environment.split(None) if chosen.environment else range(SEEDS)
            task = numbers[int(np_random(options.seed)[0].integers(len(numbers)))]
        record = play_episode(env, _Player(chosen, headers), task)
    if record.messages and (record.terminated or record.truncated):
        typer.echo(clean(record.messages[-1]["content"]) + "\n")
    if record.fault is not None:
        report(f"the environment failed, so the episode has no score: {record.fault['message']}")
        raise typer.Exit(1 if record.messages else ERROR)
    solved = {None: "", True: ": solved", False: ": not solved"}[record.success]
    typer.echo(f"Score {record.score:g} after {record.turns} turns{solved}.")


class _Player:
    """The user at the terminal, as an agent."""

    name = "player"

    def __init__(self, chosen: Chosen, headers: Mapping[str, str]) -> None:
        self._chosen = chosen
        self._headers = headers

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Show the environment with its world, and its system prompt, if it has one."""
        world = self._world(env, info.get("served_by"))
        typer.echo(f"{clean(in_world(self._chosen.id, world))}\n")
        prompt = system_prompt_of(env)
        start = "" if prompt is None else f"{clean(prompt)}\n\n"
        typer.echo(f"{start}Task {info['task_id']}:\n")

    def _world(self, env: gymnasium.Env[str, Any], served_by: str | None) -> str | None:
        """Return the label of the world, or None for an environment of another library."""
        environment = self._chosen.environment
        own: Any = env.unwrapped
        if environment is None or not isinstance(own, BaseTextEnv):
            return None
        if served_by is not None:
            return world_label(served_by)
        return probe(own.servers[0], environment, self._headers).world

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """Show the observation and read a reply."""
        typer.echo(clean(observation) + "\n")
        return _read_line()


def _read_line() -> str | None:
    """Return the next line that the player enters, or None to leave."""
    while True:
        try:
            line = input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            typer.echo()
            return None
        if line.lower() in _QUIT_WORDS:
            return None
        if line:
            return line
