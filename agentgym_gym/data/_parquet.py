"""Write parquet files, either all of them or none."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentgym_gym._files import hidden_part, sync_to_disk
from agentgym_gym.errors import ArgumentName, BadFile, BadOption, MissingExtra

__all__ = ["require_pyarrow", "write"]

_NAMES = ("train", "val")

_BATCH = 10_000  # rows per row group, and in memory at a time


def write(
    folder: Path, files: Mapping[str, Iterable[Mapping[str, Any]]], schema: Any, *, force: bool = False
) -> dict[str, Path]:
    """Write ``train.parquet``, ``val.parquet`` or both.

    The files are written under temporary names. When all are complete, existing files are removed and the new
    ones renamed. A new file is therefore never next to an old one, which may contain the same rows.

    Args:
        folder: The target folder; created if it does not exist.
        files: The rows, by ``"train"`` and ``"val"``.
        schema: The columns, a ``pyarrow.Schema``.
        force: Whether to replace existing files.

    Returns:
        The paths of the written files.

    Raises:
        BadOption: A file exists and ``force`` is false, or the folder cannot be written to.
        MissingExtra: pyarrow is not installed.
    """
    unknown = sorted(set(files) - set(_NAMES))
    if unknown:
        raise BadOption(f"files may be {' and '.join(_NAMES)}, not {unknown}")
    targets = _paths(folder, force=force)
    parts = {name: hidden_part(targets[name]) for name in files}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, part in parts.items():
            _write(part, files[name], schema)
        for target in targets.values():
            target.unlink(missing_ok=True)
        for name, part in parts.items():
            part.replace(targets[name])
    except OSError as error:
        raise BadFile(f"cannot write to {folder}: {error.strerror or error}", path=folder) from error
    finally:
        for part in parts.values():
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
    return {name: targets[name] for name in files}


def _paths(folder: Path, *, force: bool) -> dict[str, Path]:
    """Return the path of each possible file, after checking that no existing file would be overwritten."""
    paths = {name: folder / f"{name}.parquet" for name in _NAMES}
    existing = [str(path) for path in paths.values() if path.exists()]
    if existing and not force:
        verb = "exists" if len(existing) == 1 else "exist"
        raise BadFile(
            f"{' and '.join(existing)} {verb}; choose another folder, or set ",
            ArgumentName("force"),
            path=folder,
        )
    return paths


def _write(path: Path, rows: Iterable[Mapping[str, Any]], schema: Any) -> None:
    pyarrow = require_pyarrow()
    with path.open("wb") as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for batch in _batches(rows):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))
    sync_to_disk(path)


def _batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    remaining = iter(rows)
    while batch := list(itertools.islice(remaining, _BATCH)):
        yield batch


def require_pyarrow() -> Any:
    """Return pyarrow.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise MissingExtra("Reading and writing parquet", extra="data", module="pyarrow") from error
    return pyarrow
