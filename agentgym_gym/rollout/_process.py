"""Run an environment in a spawned process: a crash, ``sys.exit`` or hang is a fault of only one episode.

The process reads pickled requests from its standard input and writes pickled replies to its standard output.
Output of the environment goes to standard error. The process exits when its standard input is closed, so it
never outlives its parent.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from agentgym_gym._lifecycle import after_fork_in_child
from agentgym_gym.errors import BadOption
from agentgym_gym.rollout._workers import ThreadWorker

if TYPE_CHECKING:
    from agentgym_gym.rollout._env_facts import EnvFacts

__all__ = ["EnvProcessDied", "ProcessEnv", "ProcessWorker", "RemoteError", "read_message", "write_message"]

PipeMessage: TypeAlias = "tuple[str, Any]"

_LENGTH = struct.Struct("!Q")
_EXIT_SECONDS = 2.0  # timeout for the exit of a process whose environment is closed


class EnvProcessDied(RuntimeError):
    """The process of an environment exited during a call."""


class RemoteError(RuntimeError):
    """An exception of another process that cannot be unpickled in this one.

    Attributes:
        kind: The name of its class.
        transient: Its attribute ``transient``; None if it has none.
    """

    def __init__(self, kind: str, message: str, transient: bool | None = None) -> None:
        super().__init__(message)
        self.kind, self.transient = kind, transient
        self._arguments = (kind, message, transient)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteError, self._arguments


class ProcessEnv:
    """An environment in a separate process, with blocking methods.

    Other attributes are read in the process and returned as copies.

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
        self._process = _start()
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101, PT018 - pipes
        self._input: IO[bytes] = self._process.stdin
        self._output: IO[bytes] = self._process.stdout
        _live.add(self)
        try:
            self.facts = self._call("make", pickled)
        except BaseException:
            self.kill()
            self._disconnect()
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
        """Close the environment and stop the process."""
        try:
            if self._process.poll() is None:
                self._call("close", None)
        finally:
            self._wait_for_exit()

    def kill(self) -> None:
        """Kill the process without closing the environment; callable from any thread."""
        self._process.kill()
        self._process.wait()

    def _space(self, name: str) -> Any:
        if name not in self._spaces:
            self._spaces[name] = self._call("get", name)
        return self._spaces[name]

    def _call(self, name: str, argument: Any) -> Any:
        with self._lock:
            try:
                write_message(self._input, (name, argument))
                kind, value = read_message(self._output)
            except (OSError, EOFError, ValueError):  # ValueError: the pipe is closed
                raise EnvProcessDied(self._exit_reason()) from None
        if kind == "error":
            raise value
        return value

    def _exit_reason(self) -> str:
        self._wait_for_exit()
        code = self._process.returncode
        if code is not None and code < 0:
            return f"the environment's process was killed by {signal.Signals(-code).name}"
        return f"the environment's process exited with code {code}"

    def _wait_for_exit(self) -> None:
        """Close the pipes and wait for the process to exit."""
        self._disconnect()
        try:
            self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def _disconnect(self) -> None:
        for pipe in (self._input, self._output):
            with contextlib.suppress(OSError):  # data was buffered for a process that has exited
                pipe.close()


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


def write_message(pipe: IO[bytes], message: PipeMessage) -> None:
    """Write a message to a pipe.

    Raises:
        OSError: The other process has exited.
    """
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(content)) + content)
    pipe.flush()


def read_message(pipe: IO[bytes]) -> PipeMessage:
    """Read a message from a pipe.

    Raises:
        EOFError: The other process has exited.
    """
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    content = pipe.read(length)
    if len(content) < length:
        raise EOFError
    message: PipeMessage = pickle.loads(content)  # noqa: S301 - the other side is our own process
    return message


def _start() -> subprocess.Popen[bytes]:
    path = [os.path.abspath(folder) for folder in sys.path]  # noqa: PTH100 - '' is the current folder
    return subprocess.Popen(
        [sys.executable, "-c", "from agentgym_gym.rollout._child import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
    )


_live: weakref.WeakSet[ProcessEnv] = weakref.WeakSet()


def _disconnect_after_fork() -> None:
    """Close the pipes in a forked child: the processes belong to its parent."""
    for env in list(_live):
        env._disconnect()  # noqa: SLF001 - our own


after_fork_in_child(_disconnect_after_fork)
