"""Main loop of the child process of an environment: see `agentgym_gym.rollout._process`."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import sys
import threading
from typing import IO, Any

from agentgym_gym.errors import BadOption
from agentgym_gym.rollout._call_thread import as_exception
from agentgym_gym.rollout._env_facts import attribute_of, describe_env
from agentgym_gym.rollout._process import PipeMessage, RemoteError, read_message, write_message
from agentgym_gym.rollout._workers import BlockingEnv

__all__ = ["main"]


def main() -> None:
    """Serve one environment until it is closed or the parent process ends."""
    with contextlib.suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is for the parent process
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # redirect the environment's output to standard error
    requests: queue.SimpleQueue[PipeMessage] = queue.SimpleQueue()
    source = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    threading.Thread(target=_read, args=(source, requests), daemon=True).start()
    env: Any = None
    while True:
        name, argument = requests.get()
        try:
            if name == "make":
                env, value = _make(argument)
            else:
                value = _call(env, name, argument)
        except BaseException as error:  # noqa: BLE001 - sys.exit of an environment is a fault of its episode
            _reply(replies, "error", _portable(error))
        else:
            _reply(replies, "ok", value)
        if name == "close":
            replies.flush()
            os._exit(0)


def _read(source: IO[bytes], requests: queue.SimpleQueue[PipeMessage]) -> None:
    """Queue the requests; exit when the parent process has ended, even during a call."""
    try:
        while True:
            requests.put(read_message(source))
    finally:
        os._exit(1)


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
    return (BlockingEnv(env) if facts.awaited else env), facts


def _call(env: Any, name: str, argument: Any) -> Any:
    match name:
        case "reset":
            return env.reset(**argument)
        case "step":
            return env.step(argument)
        case "close":
            return env.close()
        case _:
            found = attribute_of(env, argument)
            if found is None:
                raise AttributeError(f"the environment has no attribute {argument!r}")
            return found


def _reply(pipe: IO[bytes], kind: str, value: Any) -> None:
    try:
        write_message(pipe, (kind, value))
    except OSError:
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 - an object that cannot be pickled
        try:
            write_message(pipe, (kind, _without_unpicklable(value)))
        except Exception:  # noqa: BLE001 - the other values cannot be pickled either
            write_message(pipe, ("error", TypeError(f"the value cannot be sent to another process: {error}")))


def _without_unpicklable(answer: Any) -> Any:
    """Return the result of a reset or step with only the picklable entries of its info."""
    *others, info = answer
    return (*others, {key: value for key, value in info.items() if _is_picklable(value)})


def _is_picklable(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # noqa: BLE001 - any library's object
        return False
    return True


def _portable(error: BaseException) -> Exception:
    """Return an exception that the parent process can unpickle: the original one if possible."""
    error = as_exception(error)
    with contextlib.suppress(Exception):
        if type(pickle.loads(pickle.dumps(error))) is type(error):  # noqa: S301 - just written
            return error
    return RemoteError(type(error).__name__, str(error), getattr(error, "transient", None))
