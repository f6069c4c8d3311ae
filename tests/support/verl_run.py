"""verl's own trainer as a process of its own, on a CPU."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import forked
import programs

HERE = Path(__file__).resolve().parent
LIMIT_S = 1500


class Run:
    """verl as a process of its own, with a folder for Ray by which all its processes are known."""

    def __init__(self, arguments: list[str], variables: dict[str, str], folder: Path):
        self.ray = Path(tempfile.mkdtemp(prefix="vb", dir="/tmp"))  # Ray's sockets must have short paths
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment |= {
            "RAY_TMPDIR": str(self.ray),
            "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(HERE)]),
            "VERL_USE_EXTERNAL_MODULES": "verl_bridge.cpu",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",  # at Ray's low priority, other programs leave it too little time
            "RAY_DEDUP_LOGS": "0",  # Ray would print lines that differ in numbers only once
            "HF_HUB_OFFLINE": "1",
            **variables,
        }
        self.log, self.peak, self.code = folder / "log.txt", 0, None
        started = time.monotonic()
        with self.log.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        done = threading.Event()
        watch = threading.Thread(target=self._watch, args=(done,))
        watch.start()
        try:
            self.code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self.seconds = time.monotonic() - started
            done.set()
            watch.join()
            self.left = self._end(process)

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(1):
            self.peak = max(self.peak, sum(_memory(process) for process in self._processes()))

    def _processes(self) -> list[int]:
        mark = f"RAY_TMPDIR={self.ray}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:  # it has ended, or is another's
                continue
        return found

    def _end(self, process: subprocess.Popen[bytes]) -> list[int]:
        """Wait for what is going away by itself; end the rest; return what had to be ended."""
        patience = time.monotonic() + 90  # Ray ends slowly beside other tests
        while self.code is not None and self._processes() and time.monotonic() < patience:
            time.sleep(0.5)
        left = self._processes()
        for number in left:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait(30)
        printed = sorted(self.ray.glob("ray/session_2*/logs/worker-*.out"))
        self.workers = "".join(file.read_text(errors="replace") for file in printed)
        shutil.rmtree(self.ray, ignore_errors=True)
        return left

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;]*m", "", self.log.read_text(errors="replace"))


def _memory(process: int) -> int:
    """Bytes; shared pages are counted in parts."""
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return int(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE).group(1)) << 10 if "Pss:" in rollup else 0


def row(environment: str, task: int, url: str, *, told: str, **kwargs: object) -> dict[str, object]:
    """A row of a task of AgentGym's, in the format `bare` unless ``kwargs`` say otherwise."""
    return {
        "prompt": [{"role": "system", "content": told}],
        "agent_name": "gym_env",
        "data_source": f"agentgym/{environment}-v0",
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {
            "index": task,
            "interaction_kwargs": {
                "name": "gym_env",
                "env_id": f"agentgym_gym:agentgym/{environment}-v0",
                "env_kwargs": json.dumps({"server": url, "action_format": "bare", **kwargs}),
                "reset_options": json.dumps({"task_id": task}),
                "seed": None,
            },
        },
    }


def measured(run: Run, step: int = 1) -> dict[str, float]:
    """What verl printed of a step.

    Where a run ends at once, Ray may not pass a worker's last lines on: its files have them.
    """
    (line,) = set(re.findall(rf"(?<!\w)step:{step} - (.*)", f"{run.text}\n{run.workers}"))
    number = r"(?:np\.(?:float|int)\d+\()?(-?[\d.]+(?:e[-+]?\d+)?)\)?"
    return {key: float(value) for key, value in re.findall(rf"([\w/@.\-]+):{number}", line)}


def compose(*folders: Path, overrides: Sequence[str] = (), **variables: str) -> dict[Path, Any]:
    """Return what verl makes of the settings of folders, all in one process.

    Args:
        folders: The folders of recipes.
        overrides: Further settings, as given to ``run.sh``.
        variables: Variables of the process beside those of this one.
    """
    command = [sys.executable, "-m", "verl_bridge.recipes._compose", *map(str, folders), "--", *overrides]
    ended = forked.run_module(command, check=True, env=programs.environment() | variables)
    return dict(zip(folders, map(json.loads, ended.stdout.splitlines()), strict=True))


def compose_all(folders: Mapping[Any, Path]) -> dict[Any, tuple[Path, Any]]:
    """Return each folder with what verl makes of it, by the keys of the folders."""
    composed = compose(*folders.values())
    return {key: (folder, composed[folder]) for key, folder in folders.items()}
