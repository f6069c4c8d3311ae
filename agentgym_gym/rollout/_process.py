"""Run an environment in a spawned process: a crash, ``sys.exit`` or hang is a fault of only one episode.

The process reads pickled requests from a socket and replies with plain data, which is never unpickled: see
`agentgym_gym.rollout._plain_data`. Output of the environment goes to standard error. A guard process between
the two, `agentgym_gym._guard`, ends the process and everything that it has started when the environment is
closed or crashes, and when this program ends in any way.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from agentgym_gym import _guard, errors
from agentgym_gym._lifecycle import after_fork_in_child
from agentgym_gym._logging import logger
from agentgym_gym.errors import AgentGymError, ArgumentName, BadOption
from agentgym_gym.rollout._env_facts import EnvFacts
from agentgym_gym.rollout._plain_data import decode
from agentgym_gym.rollout._specs import Unregistered
from agentgym_gym.rollout._workers import CLOSE_SECONDS, ThreadWorker

__all__ = ["HEADER", "EnvProcessDied", "ProcessEnv", "ProcessWorker", "RemoteError"]

HEADER = struct.Struct("!Q")
"""The length of the content of a message, which precedes it."""

_MAX_BYTES = 2**30  # of a reply
_READ_BYTES = 2**16
_CHECK_SECONDS = 0.5  # between checks that the process is alive, while a call waits
_EXIT_SECONDS = 2.0 + _guard.KILL_SECONDS  # timeout for the exit of a process whose environment is closed


class EnvProcessDied(RuntimeError):
    """The process of an environment exited during a call."""


class RemoteError(RuntimeError):
    """An exception of another process that is not of this library.

    Attributes:
        kind: The name of its class.
        transient: Its attribute ``transient``; missing if it has none.
    """

    def __init__(self, kind: str, message: str, **transient: bool) -> None:
        super().__init__(message)
        self.kind = kind
        vars(self).update(transient)


class ProcessEnv:
    """An environment in a separate process, with blocking methods.

    Other attributes are read in the process and returned as copies, if they are plain data or spaces.

    Args:
        make_env: Creates the environment in the process; must be picklable.
        memory_limit: Maximum address space of the process in bytes; None for no limit.

    Attributes:
        facts: The properties of the environment.

    Raises:
        BadOption: ``make_env`` cannot be sent to another process.
        EnvProcessDied: The process exited.
        Exception: The error of the environment's constructor.
    """

    facts: EnvFacts

    def __init__(self, make_env: Callable[[], Any], *, memory_limit: int | None = None) -> None:
        self._lock = threading.RLock()
        self._spaces: dict[str, Any] = {}
        try:
            pickled = pickle.dumps((make_env, memory_limit))
        except Exception as error:
            raise BadOption(
                "isolate",
                "process",
                problem=f"cannot send {make_env!r:.200} to another process: {error}; use a function of a "
                "module, or the environment's id with its module",
            ) from error
        self._process, self._connection = _start()
        self._received = bytearray()
        _live.add(self)
        try:
            self.facts = EnvFacts(**self._call("make", pickled))
        except BaseException:
            self.kill()
            self._wait_for_exit()
            raise

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._call("get", name)

    @property
    def unwrapped(self) -> ProcessEnv:
        """This object: the wrappers are in the other process."""
        return self

    @property
    def action_space(self) -> Any:
        """A copy of the action space."""
        return self._space("action_space")

    @property
    def observation_space(self) -> Any:
        """A copy of the observation space."""
        return self._space("observation_space")

    def get_wrapper_attr(self, name: str) -> Any:
        """Return a copy of an attribute of a wrapper or of the environment."""
        return self._call("get", name)

    def reset(self, **arguments: Any) -> Any:
        """Call ``reset`` of the environment."""
        return self._call("reset", arguments)

    def step(self, action: Any) -> Any:
        """Call ``step`` of the environment."""
        return self._call("step", action)

    def close(self) -> None:
        """Close the environment, and stop the process and everything that it has started.

        Raises:
            TimeoutError: The environment was not closed in time; its process was killed.
        """
        try:
            if self._process.poll() is None:
                self._call("close", None, seconds=CLOSE_SECONDS)
        finally:
            self._wait_for_exit()

    def kill(self) -> None:
        """Stop the process without closing the environment or waiting; callable from any thread."""
        self._process.terminate()  # the guard, which kills the others

    def _space(self, name: str) -> Any:
        if name not in self._spaces:
            self._spaces[name] = self._call("get", name)
        return self._spaces[name]

    def _call(self, name: str, argument: Any, *, seconds: float | None = None) -> Any:
        with self._lock:
            content = pickle.dumps((name, argument), protocol=pickle.HIGHEST_PROTOCOL)
            deadline = None if seconds is None else time.monotonic() + seconds
            try:
                self._send(HEADER.pack(len(content)) + content)
                reply = self._reply(deadline)
            except TimeoutError:
                self.kill()
                raise TimeoutError(f"no answer from the environment in {seconds:g} s") from None
            except (OSError, EOFError):
                raise EnvProcessDied(self._exit_reason()) from None
        if "missing" in reply:
            raise AttributeError(reply["missing"])
        if "error" in reply:
            raise _error_of(reply)
        self._report_dropped(reply["dropped"])
        return reply["value"]

    def _send(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            try:
                rest = rest[self._connection.send(rest) :]
            except TimeoutError:
                self._check_alive()

    def _reply(self, deadline: float | None) -> dict[str, Any]:
        (length,) = HEADER.unpack(self._receive(HEADER.size, deadline))
        problem = f"it is {length} bytes long, and at most {_MAX_BYTES} are read"
        if length <= _MAX_BYTES:
            content = self._receive(length, deadline)
            try:
                reply = decode(content)
            except ValueError as error:
                problem = str(error)
            else:
                if isinstance(reply, dict) and not reply.keys().isdisjoint({"missing", "error", "value"}):
                    return reply
                problem = "it is not a reply"
        self.kill()
        raise EnvProcessDied(f"the environment's process sent an invalid reply: {problem:.300}")

    def _receive(self, size: int, deadline: float | None) -> bytes:
        while len(self._received) < size:
            try:
                part = self._connection.recv(_READ_BYTES)
            except TimeoutError:
                if deadline is not None and time.monotonic() > deadline:
                    raise
                self._check_alive()
                continue
            if not part:
                raise EOFError
            self._received += part
        content = bytes(self._received[:size])
        del self._received[:size]
        return content

    def _check_alive(self) -> None:
        """Raise EOFError if the process has ended: one that it has started may keep the connection open."""
        if self._process.poll() is not None:
            raise EOFError

    def _exit_reason(self) -> str:
        self._wait_for_exit()
        code = self._process.returncode
        number = -code if code < 0 else code - 128  # the guard reports a signal as a shell does
        if number in {each.value for each in signal.Signals}:
            return f"the environment's process was killed by {signal.Signals(number).name}"
        return f"the environment's process exited with code {code}"

    def _wait_for_exit(self) -> None:
        """Close the connections and wait for the processes to exit."""
        self._disconnect()
        try:
            self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode == -signal.SIGKILL:  # the guard was killed: the others may be left
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _disconnect(self) -> None:
        self._connection.close()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _report_dropped(self, names: Any) -> None:
        new = sorted({str(name) for name in names} - _reported)
        if new and len(_reported) < _MAX_REPORTED:
            _reported.update(new)
            logger.warning(
                "%s: info has values that cannot leave the environment's process, and they are left out: %s. "
                "Use numbers, text, lists, mappings or arrays of numbers",
                self.facts.env_id,
                ", ".join(new),
            )


class ProcessWorker(ThreadWorker):
    """An environment in a process, called from a dedicated thread.

    Args:
        make_env: Creates the environment.
        timeout: As for `ThreadWorker`.
        memory_limit: As for `ProcessEnv`.
    """

    def __init__(
        self, make_env: Callable[[], Any], timeout: float | None = None, memory_limit: int | None = None
    ) -> None:
        super().__init__(make_env, timeout)
        self._memory_limit = memory_limit
        self._interrupted = False

    def _make(self) -> None:
        env = ProcessEnv(self._make_env, memory_limit=self._memory_limit)
        self.env, self.facts = env, env.facts
        if self._interrupted:
            env.kill()

    def _interrupt(self) -> None:
        self._interrupted = True
        if self.env is not None:
            self.env.kill()


def _error_of(reply: Mapping[str, Any]) -> Exception:
    """Return the exception of a reply: of its own class if this library has it, or else a `RemoteError`."""
    kind, message = str(reply["error"]), str(reply.get("message", ""))
    found = _KINDS.get(kind) if "parts" in reply else None
    if found is not None:
        parts = [ArgumentName(text) if is_name else str(text) for is_name, text in reply["parts"]]
        error: Exception = found.__new__(found, *parts)  # the constructor may need other arguments
        vars(error).update(reply.get("fields", {}))
        return error
    transient = {"transient": bool(reply["transient"])} if "transient" in reply else {}
    return RemoteError(kind, message, **transient)


def _start() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the process of an environment under its guard; return the guard and the connection."""
    path = [os.path.abspath(folder) for folder in sys.path]  # noqa: PTH100 - '' is the current folder
    own, other = socket.socketpair()
    own.settimeout(_CHECK_SECONDS)
    program = f"from agentgym_gym.rollout._child import main; main({other.fileno()})"
    with other:
        try:
            process = subprocess.Popen(  # noqa: S603 - this interpreter and our own module
                # Isolated mode imports no file of the working directory. The environment gets all variables.
                [sys.executable, "-I", "-S", _guard.__file__, "0", sys.executable, "-c", program],
                stdin=subprocess.PIPE,  # never written to; the guard stops when it closes
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
                pass_fds=[other.fileno()],
                start_new_session=True,  # Ctrl-C at the terminal reaches only this process
            )
        except BaseException:
            own.close()
            raise
    return process, own


_KINDS: dict[str, type[Exception]] = {
    name: kind
    for name, kind in {name: getattr(errors, name) for name in errors.__all__}.items()
    if isinstance(kind, type) and issubclass(kind, AgentGymError)
} | {Unregistered.__name__: Unregistered}
"""The classes of errors that are the same on both sides."""

_MAX_REPORTED = 1000
_reported: set[str] = set()  # names of entries that were left out, each reported once

_live: weakref.WeakSet[ProcessEnv] = weakref.WeakSet()


def _disconnect_after_fork() -> None:
    """Close the connections in a forked child: the processes belong to its parent."""
    for env in list(_live):
        env._disconnect()  # noqa: SLF001 - our own
        env._process.returncode = 0  # noqa: SLF001 - not our child: stops `Popen` from waiting and warning


after_fork_in_child(_disconnect_after_fork)
