"""One Java process with many simulators, each of which plays one task at a time.

The simulator keeps two things outside its objects: a random generator and a counter of object ids. Both are
saved and restored when another simulator of the process takes its turn, so no task affects another.

The simulator collects things in hash sets, whose order depends on the identity hashes of objects, and so do
its texts and, where heat spreads, its physics. `_HASHES` makes these hashes constant. The order of a set then
depends on the order of insertion only, and a task is the same in any process.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_gym.errors import SetupError
from agentgym_servers.sciworld._java import find_java, java_error, missing_java

__all__ = [
    "MAX_MOVES",
    "SIMPLIFICATIONS",
    "JavaProcess",
    "Simulator",
    "SimulatorError",
    "SimulatorExited",
    "SimulatorReply",
]

MAX_MOVES = 100
"""The number of moves after which the package ends an episode."""

SIMPLIFICATIONS = (
    *("teleportAction", "selfWateringFlowerPots", "openContainers", "openDoors", "noElectricalAction"),
    "easy",
)
"""The simplifications of ScienceWorld's rules; ``easy`` is all of the others that a task allows."""

_HASHES = ("-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2")
_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",  # another Java than OpenJDK lacks some of these
    *_HASHES,
    "-XX:+UseSerialGC",  # one simulator runs at a time, and other collectors use more memory
    "-XX:TieredStopAtLevel=1",  # the second compiler takes more time than it saves in a few thousand steps
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
)
_SCRAMBLE = 0x5DEECE66D  # `java.util.Random.setSeed` combines its argument with this number


class SimulatorError(Exception):
    """The simulator raised an error; the message is its first line."""


class SimulatorExited(Exception):
    """The Java process has exited, or was killed."""


@dataclass(frozen=True)
class SimulatorReply:
    """The result of an action.

    Attributes:
        observation: The text.
        score: The score so far: at most 100; below 0 if the task has failed.
        completed: Whether the simulator ended the task.
        moves: The number of moves so far; some actions cost none.
    """

    observation: str
    score: int
    completed: bool
    moves: int


class JavaProcess:
    """A Java process with simulators; for one thread at a time.

    It ends when its standard input is closed, so it also ends if this process is killed.

    Args:
        heap_mb: Maximum size of its heap, in MB.
        wait_seconds: Maximum seconds for an answer. A step takes some milliseconds and a search for a
            solution some seconds, but the machine may be busy.

    Raises:
        SetupError: Java or a package is missing, or this Java cannot run the simulator.
    """

    def __init__(self, heap_mb: int, *, wait_seconds: float = 120.0) -> None:
        self._process, port, token = _start(heap_mb)
        try:
            self._gateway = _connect(port, token, wait_seconds)
            self._jvm: Any = self._gateway.jvm
            self._silence()
            self._random: Any = self._singleton("scala.util.Random$").self()
            self._ids: Any = self._singleton("util.UniqueIdentifier$")
            self._paths: Any = self._singleton("scienceworld.goldagent.PathFinder$")
            self._bytes: Any = self._jvm.java.io.ByteArrayOutputStream()
            self._objects: Any = self._jvm.java.io.ObjectOutputStream(self._bytes)
        except BaseException:
            self.close()
            raise
        self._current: Simulator | None = None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def simulator(self, simplifications: str = "") -> Simulator:
        """Return a new simulator, without a task.

        Args:
            simplifications: Names of `SIMPLIFICATIONS` with commas between them.
        """
        java = self._jvm.scienceworld.runtime.pythonapi.PythonInterface()
        return Simulator(self, java, simplifications)

    def join(self, texts: Any) -> str:
        """Return a list of Java as one text, in one call; its items are separated by line feeds."""
        joined: str = self._jvm.java.lang.String.join("\n", texts)
        self._gateway.detach(texts)
        return joined

    def switch(self, simulator: Simulator, *, restore: bool) -> None:
        """Make a simulator the current one.

        Args:
            simulator: The simulator.
            restore: Whether to restore its random generator and its counter; a new task sets both.
        """
        if simulator is self._current:
            return
        if self._current is not None:
            self._current.globals = self._seed(), self._ids.count()
        self._current = simulator
        if restore:
            seed, count = simulator.globals
            self._random.setSeed(seed ^ _SCRAMBLE)
            getattr(self._ids, "count_$eq")(count)

    def forget_paths(self) -> None:
        """Forget the paths of earlier searches, which the simulator would also use for other tasks."""
        self._paths.precomputedExhaustivePaths().clear()

    def close(self) -> None:
        """End the process."""
        gateway = getattr(self, "_gateway", None)
        if gateway is not None:
            with contextlib.suppress(Exception):
                gateway.close()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _seed(self) -> int:
        """Return the state of the random generator, which Java shows only by serialization."""
        self._bytes.reset()
        self._objects.reset()
        self._objects.writeObject(self._random)
        self._objects.flush()
        serialized: bytes = self._bytes.toByteArray()
        return int.from_bytes(serialized[-9:-1], "big")  # the last field, before the mark of its end

    def _singleton(self, name: str) -> Any:
        return self._jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)

    def _silence(self) -> None:
        """Discard the simulator's long output. Must precede its first use of the console."""
        java = self._jvm.java
        nothing = java.io.PrintStream(java.io.FileOutputStream(os.devnull))
        java.lang.System.setOut(nothing)
        java.lang.System.setErr(nothing)


class Simulator:
    """A simulator of a Java process, which plays one task at a time.

    Attributes:
        globals: The state of the random generator and the counter of ids, while it is not the current one.
    """

    def __init__(self, process: JavaProcess, java: Any, simplifications: str = "") -> None:
        self._process = process
        self._java = java
        self.simplifications = simplifications
        self.globals = (0, 0)

    def load(self, task: str, variation: int) -> str:
        """Start a task and return its description.

        Raises:
            SimulatorError: The simulator raised an error.
            SimulatorExited: The Java process has exited.
        """
        with _errors(self._process):
            self._process.switch(self, restore=False)
            self._java.load(task, variation, self.simplifications, False)
            # The list of all tasks takes 11 MB of a simulator's 11.3; the next `load` makes it again.
            getattr(self._java, "taskMaker_$eq")(None)
            description: str = self._java.getTaskDescription()
            return description

    def gold_path(self, task: str, variation: int) -> list[str]:
        """Start a task, and return the actions that win it by the simulator's own search.

        They depend on the task only, not on earlier searches of the process.
        """
        with _errors(self._process):
            self._process.switch(self, restore=False)
            self._process.forget_paths()
            self._java.load(task, variation, "", True)
            return self._process.join(self._java.getGoldActionSequence()).splitlines()

    def step(self, action: str) -> SimulatorReply:
        """Play an action.

        Raises:
            SimulatorError: The simulator raised an error.
            SimulatorExited: The Java process has exited.
        """
        with _errors(self._process):
            self._process.switch(self, restore=True)
            observation: str = self._java.step(action)
            score = round(100 * self._java.getScore())
            return SimulatorReply(observation, score, self._java.getCompleted(), self._java.getNumMoves())

    def text(self, method: str, *args: Any) -> str:
        """Return the result of a method that returns a text."""
        with _errors(self._process):
            self._process.switch(self, restore=True)
            result: str = getattr(self._java, method)(*args)
            return result

    def texts(self, method: str) -> list[str]:
        """Return the result of a method that returns a list of texts."""
        with _errors(self._process):
            self._process.switch(self, restore=True)
            joined = self._process.join(getattr(self._java, method)())
            return joined.split("\n") if joined else []


@contextlib.contextmanager
def _errors(process: JavaProcess) -> Iterator[None]:
    """Raise errors of the connection to Java as errors of this module."""
    from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415 - an extra

    try:
        yield
    except Py4JJavaError as error:
        raise SimulatorError(str(error.java_exception.toString()).partition("\n")[0]) from error
    except (Py4JError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise SimulatorExited(f"the Java process {process.pid} does not answer: {reason}") from error


def _start(heap_mb: int) -> tuple[subprocess.Popen[bytes], int, str]:
    """Start Java; return the process, the port it listens on, and the password of its connections."""
    java = find_java()
    if java is None:
        raise missing_java() or SetupError("Java was removed while the server started: start it again")
    from py4j.java_gateway import find_jar_path  # noqa: PLC0415 - an extra
    from scienceworld.constants import BASEPATH, JAR_PATH  # noqa: PLC0415 - an extra

    command = [java, *_OPTIONS, f"-Xmx{heap_mb}m", "-classpath", os.pathsep.join((find_jar_path(), JAR_PATH))]
    command += ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
    process = subprocess.Popen(  # noqa: S603 - Java, and files of installed packages
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(BASEPATH),  # where the simulator looks for a file of type numbers
        start_new_session=True,  # Ctrl-C in a terminal is for the server, which ends this process
    )
    stdout: Any = process.stdout
    port, token = stdout.readline(), stdout.readline()
    if token:
        return process, int(port), token.decode().rstrip("\r\n")
    _, message = process.communicate()
    lines = message.decode(errors="replace").strip().splitlines() or ["no message"]
    raise java_error(f"{java} did not start the simulator ({lines[0]:.200})")


def _connect(port: int, token: str, wait_seconds: float) -> Any:
    from py4j.java_gateway import GatewayParameters, JavaGateway  # noqa: PLC0415 - an extra

    # Without memory management, because it sends a request for each object that Python drops.
    parameters = GatewayParameters(
        port=port, auth_token=token, read_timeout=wait_seconds, enable_memory_management=False
    )
    return JavaGateway(gateway_parameters=parameters)
