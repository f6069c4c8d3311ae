"""`agentgym view`."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request

import pytest

import programs
from report_runs import episode, write_run


@pytest.mark.slow  # a process
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent as a signal")
def test_it_prints_its_address_and_ends_quietly(tmp_path):
    folder = write_run(tmp_path / "a", [episode(0)])
    command = [sys.executable, "-m", "agentgym_gym", "view", str(folder), "--watch", "--title", "Mine"]
    process = programs.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert line.startswith(f"Watching {folder} on http://127.0.0.1:")
    url = line.split(" on ")[1].split()[0]
    with urllib.request.urlopen(url) as response:  # noqa: S310 - http
        assert "<title>Mine</title>" in response.read().decode()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 0
