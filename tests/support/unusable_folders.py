"""Ways in which there is no folder to write leases to: ``way(monkeypatch, tmp_path)`` sets one up."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from inside import folder_of_files, keep_files_in


def full(*_args, **_options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_folder(monkeypatch, tmp_path):
    """There is not even a folder for temporary files."""
    keep_files_in(None, monkeypatch)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "nowhere")])


def a_file_in_its_place(monkeypatch, tmp_path):
    folder_of_files().parent.mkdir(parents=True, exist_ok=True)
    folder_of_files().touch()


def a_read_only_file_system(monkeypatch, tmp_path):
    keep_files_in(Path("/proc/self/agentgym"), monkeypatch)  # where not even root can write
