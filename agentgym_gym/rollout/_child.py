"""Main loop of the process of an environment: see `agentgym_gym.rollout._process`."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import socket
from typing import Any

from agentgym_gym.errors import AgentGymError, ArgumentName, BadOption
from agentgym_gym.rollout._call_thread import as_exception
from agentgym_gym.rollout._env_facts import attribute_of, describe_env
from agentgym_gym.rollout._plain_data import NotPlain, encode
from agentgym_gym.rollout._process import HEADER
from agentgym_gym.rollout._specs import Unregistered
from agentgym_gym.rollout._workers import BlockingEnv

__all__ = ["main"]


def main(descriptor: int) -> None:
    """Serve one environment until it is closed or the parent process ends.

    Args:
        descriptor: The socket for requests and replies.
    """
    os.set_inheritable(descriptor, False)  # programs that the environment starts must not hold it open
    os.dup2(2, 1)  # the output of the environment goes to standard error
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rb") as requests:
        env: Any = None
        while head := requests.read(HEADER.size):
            content = requests.read(*HEADER.unpack(head))
            name, argument = pickle.loads(content)  # noqa: S301 - of the parent process
            try:
                if name == "make":
                    env, value = _make(argument)
                else:
                    value = _call(env, name, argument)
                reply = _result(value)
            except BaseException as error:  # noqa: BLE001 - sys.exit of an environment is a fault of its episode
                reply = _error(error)
            text = json.dumps(reply).encode()
            connection.sendall(HEADER.pack(len(text)) + text)
            if name == "close":
                os._exit(0)
    os._exit(1)  # the parent process has ended: wait for no thread of the environment


def _make(pickled: bytes) -> tuple[Any, Any]:
    try:
        make_env, memory_limit = pickle.loads(pickled)  # noqa: S301 - of our own process
    except (AttributeError, ImportError) as error:  # defined in a script or a notebook
        raise BadOption(
            "isolate",
            "process",
            problem=f"cannot import the maker of the environment: {error}; define it in a module, or use the "
            "environment's id with its module",
        ) from error
    if memory_limit is not None:
        import resource  # noqa: PLC0415 - not on every system

        resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
    env = make_env()
    facts = describe_env(env)
    return (BlockingEnv(env) if facts.awaited else env), dataclasses.asdict(facts)


def _call(env: Any, name: str, argument: Any) -> Any:
    match name:
        case "reset":
            return env.reset(**argument)
        case "step":
            return env.step(argument)
        case "close":
            env.close()
            return None
        case _:
            found = attribute_of(env, argument)
            if found is None:
                raise _Missing(f"the environment has no attribute {argument!r}")
            try:
                encode(found)
            except NotPlain as error:
                raise _Missing(f"{argument!r} of the environment cannot leave its process: {error}") from None
            return found


class _Missing(Exception):
    """The environment has no such attribute, or one that cannot be sent."""


def _result(value: Any) -> dict[str, Any]:
    """Return the reply with a return value, without the entries of mappings that cannot be sent."""
    dropped: list[str] = []
    content = encode(value, dropped)
    return {"value": content, "dropped": dropped}


def _error(error: BaseException) -> dict[str, Any]:
    """Return the reply with an exception: its kind and text, and the parts of an error of this library."""
    error = as_exception(error)
    if isinstance(error, _Missing):
        return {"missing": str(error)}
    reply: dict[str, Any] = {"error": type(error).__name__, "message": _text(error)}
    if hasattr(error, "transient"):
        reply["transient"] = error.transient is not False
    if isinstance(error, (AgentGymError, Unregistered)):
        reply["parts"] = [[isinstance(part, ArgumentName), str(part)] for part in error.args]
        reply["fields"] = encode(vars(error), [])
    elif isinstance(kind := getattr(error, "kind", None), str):
        reply["error"] = kind
    return reply


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - of any library
        return "(its text cannot be read)"
