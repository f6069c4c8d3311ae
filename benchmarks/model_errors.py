"""Seconds until ``agentgym eval`` names what a model server does, for the servers of docs/model_errors.md.

Each server answers on a real socket. ``agentgym eval`` runs in its own process, without a terminal, with all
timeouts at their defaults. The time starts with the first request to the server, and ends with the first
line that names the trouble. Errors of the model have no line: the table at the end counts them.

Prints JSON: the seconds and the line by the behaviour. With ``--write``, it writes the seconds to
docs/records/model_servers.json, from which the page is generated. Run it with ``python
benchmarks/model_errors.py``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from _common import report, usually

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

fake_server, model_servers = (import_module(name) for name in ("fake_server", "model_servers"))

LONGEST = 60.0
RECORD = ROOT / "docs" / "records" / "model_servers.json"
_LINES = {"server": "retrying", "conversation": "fault: ConversationRejected"}


def measure(behaviour: Any) -> dict[str, Any]:
    """Return the seconds until the trouble is named, and the line."""
    with tempfile.TemporaryDirectory() as folder, fake_server.FakeServer(behaviour.server()) as server:
        times: list[float] = []
        respond = server.answer

        def answer(request: Any) -> Any:
            times.append(time.monotonic())
            return respond(request)

        server.answer = answer
        command = [sys.executable, "-m", "agentgym_gym", "eval", "TextCraft", "--tasks", "0:4"]
        command += ["--model", "m", "--base-url", f"{server.url}/v1"]
        command += ["--max-turns", "3", "--concurrency", "1", "--out", f"{folder}/run"]
        variables = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "1000", "OPENAI_API_KEY": "sk-none"}
        run = subprocess.Popen(  # noqa: S603 - the command under test
            [*command, *behaviour.options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=variables,
        )
        limit = threading.Timer(LONGEST, run.kill)
        limit.start()
        named = _LINES.get(behaviour.cause, behaviour.printed)
        seconds, line = None, ""
        for line in run.stdout or ():
            if named in line:
                seconds = round(time.monotonic() - times[0], 1)
                break
        limit.cancel()
        run.kill()
        run.communicate()  # closes the pipe
    clean = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", line.strip())
    return {"seconds": seconds, "line": clean if seconds is not None else None}


def main() -> None:
    """Measure all behaviours whose trouble is named, or two with ``--quick``."""
    behaviours = [each for group in model_servers.BEHAVIOURS.values() for each in group]
    named = [each for each in behaviours if each.cause != "model" and each.printed]
    rows = {each.name: measure(each) for each in usually(named, quick=named[:1] + named[-1:])}
    if "--write" in sys.argv:
        seconds = {name: row["seconds"] for name, row in rows.items()}
        RECORD.write_text(json.dumps(seconds, indent=2, ensure_ascii=False) + "\n", "utf-8")
    report(benchmark="model_errors", cpus=os.cpu_count(), rows=rows)


if __name__ == "__main__":
    main()
