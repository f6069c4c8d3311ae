"""Writes a defect as a short Python program, and runs it: a program that does not fail is not reported."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.episodes import ActionSequence
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["MOST_LINES", "actions_text", "equal_lines", "play_lines", "program", "reset_call"]

MOST_LINES = 10
"""Maximum number of lines of a program."""

_SECONDS = 60.0


def reset_call(subject: Subject, task: int | str) -> str:
    """Return the call that begins an episode: ``reset(seed=3)`` or ``reset(options={"task_id": 3})``."""
    option = subject.facts.task_option
    return f"reset(seed={task})" if option is None else f"reset(options={{{option!r}: {task}}})"


def actions_text(subject: Subject, sequence: ActionSequence) -> str:
    """Return the actions of a sequence as a Python list, in the form that the environment itself takes.

    Texts that are not actions are left out: `TextAdapter` does not pass them on.
    """
    literals = []
    for action in sequence.actions:
        with contextlib.suppress(ValueError, RecursionError):
            literals.append(subject.native_literal(action))
    return f"[{', '.join(literals)}]"


def play_lines(subject: Subject, sequence: ActionSequence) -> list[str]:
    """Return the function of a program that plays a sequence and returns what was returned, as text."""
    reset, actions = reset_call(subject, sequence.task), actions_text(subject, sequence)
    played = f"[env.{reset}[0], *(env.step(action)[:4] for action in {actions})]"
    return ["def play(env):", f"    return str({played})"]


def equal_lines(one: str, other: str, message: str, *, raises: bool = False) -> list[str]:
    """Return the end of a program, which asserts that two values are equal.

    Args:
        one: The first expression.
        other: The second one.
        message: The message of the assertion.
        raises: Whether the defect is that an exception is raised.
    """
    line = f"assert {one} == {other}, {message!r}"
    if not raises:
        return [line]
    return [
        "try:",
        f"    {line}",
        "except Exception as error:",
        f"    raise AssertionError({message!r}) from error",
    ]


async def program(subject: Subject, lines: Sequence[str], *, first: Sequence[str] = ()) -> str:
    """Return a program that shows a defect, or an empty text if it does not fail.

    Args:
        subject: The audited environment.
        lines: The lines after the imports; ``make()`` makes the environment. The last one asserts what the
            environment violates, with a message.
        first: The lines before the imports.
    """
    source = subject.source
    if not source.expression:
        return ""
    made = [*source.imports, f"make = lambda: {source.expression}"]
    text = "\n".join([*first, *(made if "make()" in "".join(lines) else ()), *lines]) + "\n"
    waits = not subject.facts.awaited or "asyncio" in text
    if len(text.splitlines()) > MOST_LINES or not waits:
        return ""
    return text if await _fails(text, *subject.origin) else ""


async def _fails(text: str, folder: str, variables: Mapping[str, str]) -> bool:
    """Return whether a program raises AssertionError, in a process of its own."""
    paths = [folder, *sys.path]
    variables = {**variables, "PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, paths)))}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", text),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=variables,
        cwd=folder,
    )
    try:
        _, errors = await asyncio.wait_for(process.communicate(), _SECONDS)
    except asyncio.TimeoutError:
        return False
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode == 1 and b"AssertionError" in errors
