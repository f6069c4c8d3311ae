"""``agentgym verl``: create and validate folders for training with verl."""

from __future__ import annotations

import typer

from verl_bridge._commands.check import check
from verl_bridge._commands.init import init
from verl_bridge._commands.sft import sft

__all__ = ["verl"]

verl = typer.Typer(no_args_is_help=True, help="Write and check folders for training with verl.")
verl.command("init")(init)
verl.command("check")(check)
verl.command("sft")(sft)
