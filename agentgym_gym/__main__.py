"""The console script ``agentgym``, also ``python -m agentgym_gym``."""

from __future__ import annotations

import contextlib
import errno
import io
import sys

from agentgym_gym.errors import MissingExtra

__all__ = ["main"]

_INTERRUPTED = 130  # the exit status that shells use after SIGINT


def main() -> None:
    """Run the command line; it ends the process with an exit status."""
    try:
        from agentgym_gym._cli import app  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in {"typer", "rich"}:
            raise
        sys.stderr.write(f"error: {MissingExtra('The command line', extra='cli', module=module)}\n")
        sys.exit(2)
    except KeyboardInterrupt:  # Ctrl-C during the imports, which take a second
        sys.exit(_INTERRUPTED)
    # If the terminal cannot encode a character, print a question mark instead of raising an error.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
    try:
        app(prog_name="agentgym")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.stderr.write(f"error: cannot write the output: {error.strerror}; free some space\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
