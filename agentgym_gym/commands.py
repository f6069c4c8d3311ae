"""Commands of other packages: their options, their environments and their output.

A package adds commands to ``agentgym`` by entry points of the group ``agentgym.commands``:

- An entry point has the name of its command; ``data.rl`` is the command ``rl`` of the group ``data``.
- Its object is a function, which typer turns into a command, or a ``typer.Typer``, which becomes a group.
- If the command raises an `agentgym_gym.errors.AgentGymError`, it prints one line and exits with 2. The
  arguments of this library in the message get the names of the command's options.

A function of a dataclass becomes a command by :func:`command`, with an option for each field:

>>> from dataclasses import dataclass
>>> from typing import Annotated
>>> from agentgym_gym.commands import Option, command, out, resolve
>>> @dataclass(frozen=True, kw_only=True)
... class GreetOptions:
...     env: Annotated[str, Option("environment", positional=True, completes="environment")]
...     times: Annotated[int, Option("number of greetings", least=1)] = 1
>>> @command(GreetOptions, examples=["agentgym greet TextCraft"])
... def greet(options: GreetOptions) -> None:
...     "Greet an environment."
...     for _ in range(options.times):
...         out.print(f"Hello, {resolve(options.env).id}.")

This module needs the extra ``cli``.
"""

from __future__ import annotations

from agentgym_gym._addresses import configured, parse_urls
from agentgym_gym._cli.completion import complete_env, complete_split
from agentgym_gym._cli.console import clean, out, print_json, print_table
from agentgym_gym._cli.declared import GivenOptions, command, json_object
from agentgym_gym._cli.options import TASKS_HELP, AgentGymOptions, Force, Json, ValidationSize
from agentgym_gym._cli.per_environment import PerEnvironment, file_text, read_per_environment
from agentgym_gym._cli.reformat import convert
from agentgym_gym._cli.trajectories import FineTuningOptions, SourceFormatOption, print_summary
from agentgym_gym.evaluate._probe import probe
from agentgym_gym.evaluate._resolve import (
    Chosen,
    find_modules_here,
    refuse_agentgym_options,
    refuse_twice,
    resolve,
)
from agentgym_gym.evaluate._selection import count_by_split
from agentgym_gym.options import Option

__all__ = [
    "TASKS_HELP",
    "AgentGymOptions",
    "Chosen",
    "FineTuningOptions",
    "Force",
    "GivenOptions",
    "Json",
    "Option",
    "PerEnvironment",
    "SourceFormatOption",
    "ValidationSize",
    "clean",
    "command",
    "complete_env",
    "complete_split",
    "configured",
    "convert",
    "count_by_split",
    "file_text",
    "find_modules_here",
    "json_object",
    "out",
    "parse_urls",
    "print_json",
    "print_summary",
    "print_table",
    "probe",
    "read_per_environment",
    "refuse_agentgym_options",
    "refuse_twice",
    "resolve",
]
