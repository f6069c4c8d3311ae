"""Options that several commands take, each in the same words."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["ActionFormat", "MaxTurns", "OnUnknown", "Parser", "Timeout"]

ActionFormat = Annotated[
    str,
    typer.Option(
        help="How a reply wraps its action: react, function_calling, code_as_action, tags, adapt or bare."
    ),
]

Parser = Annotated[
    str,
    typer.Option(help="Who reads a reply: default, or agentgym to read as AgentGym's own client does."),
]

OnUnknown = Annotated[
    str | None,
    typer.Option(help="What is done with an action the environment does not know: forward or refuse."),
]

MaxTurns = Annotated[
    int | None, typer.Option(min=0, help="Turn limit, 0 for none; by default AgentGym's own.")
]

Timeout = Annotated[float, typer.Option(help="Seconds allowed for each reply of the server.")]
