"""The command line of each engine, and whether the engine is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from agentgym_gym.errors import BadOption, SetupError

__all__ = [
    "KINDS",
    "Kind",
    "check_arguments",
    "command_line",
    "engine_variables",
    "find_python",
    "find_version",
    "served_name",
]

Kind = Literal["sglang", "vllm", "transformers"]

KINDS: tuple[Kind, ...] = get_args(Kind)

PROBE_SECONDS = 60.0
"""How long a Python may take to say what is installed for it; it may lie on a slow network file system."""

_TAKEN = {
    "host": "the engine listens on 127.0.0.1",
    "port": "a free port is taken",
    "model": "the model is given by its path",
    "model-path": "the model is given by its path",
    "force-model": "the model is given by its path",
    "served-model-name": "the model is called what its path is",
    "non-blocking": "the engine has a process of its own",
}
_KEY = "the engine listens on 127.0.0.1 alone and needs no key, and users of this machine see command lines"
_TLS = "the engine is asked over plain HTTP on 127.0.0.1"
_ELSEWHERE = "the engine is asked over HTTP at /v1"

_RESERVED = {
    **_TAKEN,
    **dict.fromkeys(("api-key", "admin-api-key"), _KEY),
    "hf-token": "users of this machine see command lines: set the variable HF_TOKEN",
    **dict.fromkeys(("ssl-keyfile", "ssl-certfile", "ssl-ca-certs", "ssl-keyfile-password"), _TLS),
    **dict.fromkeys(
        ("uds", "root-path", "fastapi-root-path", "grpc", "grpc-mode", "smg-grpc-mode"), _ELSEWHERE
    ),
}
"""Options that are not passed on, of any engine, and why."""


@dataclass(frozen=True)
class _Engine:
    """What is known of one engine.

    Attributes:
        imports: Modules that its server needs.
        install: What pip is to install.
        oldest: The oldest version whose command line is known.
    """

    imports: tuple[str, ...]
    install: str
    oldest: tuple[int, int]


_ENGINES: dict[Kind, _Engine] = {
    "sglang": _Engine(("sglang", "torch"), "sglang", (0, 4)),
    "vllm": _Engine(("vllm", "torch"), "vllm", (0, 9)),
    "transformers": _Engine(
        ("transformers", "torch", "accelerate", "fastapi", "uvicorn", "openai", "pydantic"),
        "transformers[serving]",
        (5, 5),  # the first to take the model as an argument
    ),
}


def command_line(
    kind: Kind, model: str, port: int, arguments: Sequence[str] = (), *, python: str = "python"
) -> list[str]:
    """Return the command that starts an engine's server, which speaks OpenAI's chat protocol at ``/v1``.

    What is set here stands behind the arguments that are passed on, since the last one counts.

    Args:
        kind: The engine.
        model: The folder of the model.
        port: Where to listen, on 127.0.0.1.
        arguments: Options of the engine itself.
        python: The Python that the engine is installed for.
    """
    listen = ["--host", "127.0.0.1", "--port", str(port)]
    name = served_name(kind, model)
    if kind == "vllm":
        module = ["vllm.entrypoints.cli.main", "serve", model]
        return [python, "-m", *module, *arguments, *listen, "--served-model-name", name]
    if kind == "sglang":
        served = ["--model-path", model, "--served-model-name", name]
        return [python, "-m", "sglang.launch_server", *arguments, *served, *listen]
    return [python, "-m", "transformers.cli.transformers", "serve", model, *arguments, *listen]


def served_name(kind: Kind, model: str) -> str:
    """Return what a request calls the model: its path, in which sglang takes no colon."""
    return model.replace(":", "_") if kind == "sglang" else model


def check_arguments(kind: str, model: str, arguments: Sequence[str]) -> None:
    """Check what the caller says, before anything is started.

    Args:
        kind: The engine.
        model: The path of the model.
        arguments: Options of the engine itself.

    Raises:
        BadOption: There is no such engine, it cannot take the path, or an option is not for the caller.
    """
    if kind not in KINDS:
        raise BadOption(f"engine {kind!r:.80} is not one of {', '.join(map(repr, KINDS))}")
    if isinstance(arguments, str) or not all(isinstance(each, str) for each in arguments):
        raise BadOption("the arguments of an engine are a list of texts, such as ['--dtype', 'float16']")
    if kind == "transformers" and ("@" in model or model.startswith("-")):
        raise BadOption(
            f"transformers reads what follows an '@' in {model!r:.300} as a revision, and what begins "
            "with '-' as an option: rename the folder, or give another path to it"
        )
    for argument in arguments:
        name = re.split(r"[=.]", argument.replace("_", "-"), maxsplit=1)[0]
        # argparse takes the beginning of an option's name for the whole.
        for reserved, why in _RESERVED.items():
            if name.startswith("--") and len(name) > len("--") and f"--{reserved}".startswith(name):
                raise BadOption(f"the option {name!r:.80} is not passed on to {kind}: {why}")


def find_python(python: str | None) -> str:
    """Return the Python that an engine is run by.

    Args:
        python: A name or a path; None for the Python that runs this.

    Raises:
        BadOption: There is no such program.
    """
    found = shutil.which(python or sys.executable)
    if found is None:
        raise BadOption(f"there is no Python that can be run at {python or sys.executable!r:.300}")
    return found


# Prints the version, None where there is none, and which of the modules are missing. Imports none of them.
_PROBE = """
import importlib.metadata, importlib.util, json, sys
name, *modules = sys.argv[1:]
try:
    version = importlib.metadata.version(name)
except importlib.metadata.PackageNotFoundError:
    version = None
missing = [each for each in modules if importlib.util.find_spec(each) is None]
print(json.dumps([version, missing]))
"""


def find_version(kind: Kind, python: str) -> str:
    """Return the version of an engine, "unknown" where it is installed under another name.

    Args:
        kind: The engine.
        python: The Python that it should be installed for.

    Raises:
        SetupError: It is not installed there, or is too old; the message says what to install.

    """
    engine = _ENGINES[kind]
    said = ""
    try:
        run = subprocess.run(  # noqa: S603 - the Python that the caller named
            [python, "-c", _PROBE, kind, *engine.imports],
            env=engine_variables(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
        said = run.stderr.decode(errors="replace").strip()
        version, missing = json.loads(run.stdout.splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError, TypeError) as error:
        raise SetupError(f"{python} does not run as a Python: {said[-300:] or error}") from error
    how = f"Install it there: {python} -m pip install '{engine.install}'. Or name another Python that has it"
    if missing:
        lacks = ", ".join(missing)
        raise SetupError(f"the engine {kind} cannot be started by {python}, which lacks: {lacks}. {how}")
    if version is None:  # a build under another name
        return "unknown"
    if _numbers(version) < engine.oldest:
        needed = ".".join(map(str, engine.oldest))
        raise SetupError(
            f"{kind} {version} is installed for {python}, and {needed} or newer is needed. {how}"
        )
    return str(version)


def engine_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of an engine: the user's, with what a server of our own needs.

    Args:
        variables: The user's.
    """
    # With this one set, vLLM would answer nobody who does not send the key.
    given = {name: value for name, value in variables.items() if name != "VLLM_API_KEY"}
    return {
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",  # transformers would ask PyPI for a newer version first
        "PYTHONUNBUFFERED": "1",  # what it says is in its log at once
        **given,
        "PYTHONSAFEPATH": "1",  # not a namesake of one of its modules in the current folder
    }


def _numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(number) for number in re.findall(r"[0-9]{1,9}", version)[:2])
