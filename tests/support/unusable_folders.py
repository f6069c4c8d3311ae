"""Ways in which there is no folder to write leases to: ``way(monkeypatch, tmp_path)`` sets one up."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from inside import capacity


def full(*_args, **_options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_folder(monkeypatch, tmp_path):
    """There is not even a folder for temporary files."""
    monkeypatch.setattr(capacity, "FOLDER", None)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "nowhere")])


def a_file_in_its_place(monkeypatch, tmp_path):
    capacity.FOLDER.parent.mkdir(parents=True, exist_ok=True)
    capacity.FOLDER.touch()


def a_read_only_file_system(monkeypatch, tmp_path):
    monkeypatch.setattr(capacity, "FOLDER", Path("/proc/self/agentgym"))  # where not even root can write
