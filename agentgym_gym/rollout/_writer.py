"""A folder of episodes, written during the run as one line of JSON for each.

``agentgym report FOLDER`` shows the folder at any time. Each process writes its own file,
``episodes-TIME-MACHINE-PROCESS-….jsonl``, so processes on several machines may share a folder. A process that
is killed leaves at most one incomplete line, at the end of its file. ``run-ENVIRONMENT.json`` contains the
facts that the episodes of an environment share.

If an episode cannot be written, it is dropped and a warning is logged once: a disk failure never ends a
training.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym._files import replaces
from agentgym_gym._logging import logger
from agentgym_gym.rollout._records import EpisodeRecord

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["MOST_WAITING", "PATIENCE", "EpisodeWriter", "LineFile", "writer_at"]

PATIENCE = 5.0
"""Seconds that `EpisodeWriter.write` waits for the disk; the thread then finishes in the background."""

MOST_WAITING = 256
"""Maximum number of episodes that wait for a slow disk; further ones are dropped."""


class LineFile:
    """An append-only file of JSON lines; a line that could not be written completely is removed.

    Args:
        path: The file.
        new: Whether the file must not exist yet.

    Raises:
        OSError: The file cannot be opened.
    """

    def __init__(self, path: Path, *, new: bool = False) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_EXCL if new else 0)
        self._file: int | None = os.open(path, flags, 0o666)

    @property
    def closed(self) -> bool:
        """Whether writing is impossible: the file was closed, or an incomplete line could not be removed."""
        return self._file is None

    def append(self, value: Mapping[str, Any]) -> None:
        """Write a value as one line.

        Raises:
            OSError: The line cannot be written.
            ValueError: The value is not JSON, or the file is closed.
        """
        line = _encoded(value) + b"\n"
        if self._file is None:
            raise ValueError("the file is closed")
        size = os.fstat(self._file).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError:
            try:
                os.ftruncate(self._file, size)
            except OSError:  # the incomplete line must remain the last one of this file
                self.close()
            raise

    def close(self) -> None:
        """Close the file. Repeated calls have no effect."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


class EpisodeWriter:
    """Appends episodes to a file of this process, in a separate thread.

    Args:
        path: The folder; created when the first episode is written.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="agentgym-episodes")
        self._waiting: set[Future[None]] = set()
        self._file: LineFile | None = None
        self._described: set[str] = set()
        self._warned = False

    async def write(
        self, record: EpisodeRecord | Callable[[], EpisodeRecord], facts: Mapping[str, Any] | None = None
    ) -> None:
        """Write an episode. Returns when it is written, or after `PATIENCE` seconds.

        Args:
            record: The episode, or a function that creates its record in the thread.
            facts: Facts that the episodes of the environment share, as JSON: reports show ``env_id``,
                ``agent`` and ``system_prompt``. By default the first two.
        """
        if len(self._waiting) >= MOST_WAITING:
            self._warn(TimeoutError(f"{MOST_WAITING} episodes wait to be written"))
            return
        written = self._thread.submit(self._write, record, facts)
        self._waiting.add(written)
        written.add_done_callback(self._waiting.discard)
        await asyncio.wait({asyncio.wrap_future(written)}, timeout=PATIENCE)

    def close(self) -> None:
        """Write the pending episodes and close the file. Repeated calls have no effect; later writes fail."""
        self._thread.shutdown()
        if self._file is not None:
            self._file.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def _write(
        self, record: EpisodeRecord | Callable[[], EpisodeRecord], facts: Mapping[str, Any] | None
    ) -> None:
        try:
            episode = record if isinstance(record, EpisodeRecord) else record()
            self.path.mkdir(parents=True, exist_ok=True)
            self._describe(episode, facts)
            if self._file is None or self._file.closed:
                self._file = LineFile(self.path / f"episodes-{_file_name()}.jsonl", new=True)
            self._file.append(episode.to_json())
        except Exception as error:  # noqa: BLE001 - a record never ends a training
            self._warn(error)

    def _describe(self, episode: EpisodeRecord, facts: Mapping[str, Any] | None) -> None:
        """Write the facts that the episodes of an environment share, unless the file exists."""
        env_id = episode.env_id
        if env_id in self._described:
            return
        path = self.path / f"run-{_slug(env_id)}.json"
        if not path.exists():
            shared = {"env_id": env_id, "agent": episode.agent} if facts is None else dict(facts)
            with replaces(path) as part:
                part.write_bytes(_encoded({"run": shared}) + b"\n")
        self._described.add(env_id)

    def _warn(self, error: BaseException) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(
                "an episode could not be written to %s (%s: %s); later episodes are still tried, and this "
                "warning is shown once",
                self.path,
                type(error).__name__,
                error,
            )


@functools.cache
def writer_at(path: Path) -> EpisodeWriter:
    """Return the writer of a folder, shared by all episodes of this process."""
    return EpisodeWriter(path)


def _encoded(value: Mapping[str, Any]) -> bytes:
    """Serialize a value as one line of JSON, without a line break.

    Raises:
        ValueError: The value is not JSON.
    """
    # A model may write half of a surrogate pair, and JSON parsers accept it.
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")


def _file_name() -> str:
    began = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{began}-{_slug(socket.gethostname())}-{os.getpid()}-{secrets.token_hex(3)}"


def _slug(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text)[:80]
