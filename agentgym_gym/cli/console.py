"""What all commands share: where they print, and how an error ends them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from agentgym_gym.errors import AgentGymError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ERROR", "Group", "clean", "err", "out", "print_json", "report"]

out = Console(highlight=False, markup=False, emoji=False)
err = Console(highlight=False, markup=False, emoji=False, stderr=True)

ERROR = 2
"""Exit status where a command could not do its work; 1 is for one that did and found something wrong."""

# Whole sequences, or else the letters behind the escape would be left on the screen.
_ESCAPES = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Return text that a server sent without what a terminal would obey instead of show."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def report(problem: object) -> None:
    """Print an error as one red line on standard error."""
    line = " ".join(clean(str(problem)).split())
    err.print(Text(f"error: {line}", style="red"), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a JSON value and nothing around it."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


class Group(TyperGroup):
    """Ends a command that raised one of this library's errors with the error's line and no traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        run: Callable[[Any], Any] = super().invoke
        try:
            return run(ctx)
        except AgentGymError as error:
            report(error)
            raise typer.Exit(ERROR) from None
