"""The benchmarks run, and report for each bar whether it is met. Measure on a quiet machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import needs

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
BARS = {
    "bridge_turn": [],  # verl is not installed where these tests run
    "concurrent_episodes": [],
    "evaluation": ["replay", "oracle"],
    "failing_servers": [],
    "heavy_tails": ["faster_by_the_mean"],
    "household": [],  # TextWorld is not installed where these tests run
    "importing": ["beside_gymnasium"],
    "isolation": ["thread_ms", "process_ms"],
    "local_servers": [
        "WebShop_step",
        "BabyAI_step",
        "ALFWorld_step",
        "ALFWorld_steps_a_second",
        "ALFWorld_memory",
    ],
    "memory": ["theirs_beside_ours"],
    "model_errors": [],
    "model_requests": [
        "share_of_the_ideal",
        "beside_openai",
        "beside_openai_all_at_once",
        "beside_httpx",
        "beside_httpx_all_at_once",
    ],
    "parsing": ["median_of_all", "worst_environment", "worst_hostile"],
    "sciworld": ["step", "memory"],
    "side_by_side": [
        "share_of_the_limit_64",
        "beside_aiohttp_64_in_rounds",
        "beside_aiohttp_256",
        "beside_httpx_256",
        "beside_aiohttp_1024",
    ],
    "sql_fairness": ["eight_environments", "one_environment"],
    "miniwob": ["steps_a_second", "at_32_beside_8"],
    "webarena": ["steps_a_second", "at_32_beside_8", "delay_by_hung_pages"],
    "step_latency": ["beside_http_client", "faster_than_requests"],
}
QUICK = set(BARS) - {
    "failing_servers",
    "local_servers",
    "memory",
    "miniwob",
    "model_errors",
    "model_requests",
    "parsing",
    "sciworld",
    "side_by_side",
    "sql_fairness",
    "webarena",
}
"""The ones that `make test` runs; `make bench` runs all."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[
                *([pytest.mark.needs(*needs.needs_of_server(name))] if name in needs.OTHER_PROGRAMS else []),
                *([] if name in QUICK else [pytest.mark.exhaustive]),
            ],
        )
        for name in BARS
    ],
)
def test_a_benchmark_prints_one_line_with_its_bars(name):
    command = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py"), "--quick"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
    (line,) = ended.stdout.splitlines()
    result = json.loads(line)
    assert result["benchmark"] == name
    held = {key: value["met"] for key, value in result.items() if isinstance(value, dict) and "met" in value}
    assert list(held) == BARS[name]
    assert all(isinstance(met, bool) for met in held.values())


def test_every_benchmark_is_in_the_table():
    names = {path.stem for path in FOLDER.glob("[a-z]*.py")} - {"soak", "restarts"}
    table = (FOLDER / "README.md").read_text("utf-8")
    assert {name for name in names if f"`{name}.py`" in table} == names


@pytest.mark.slow
def test_a_limit_of_open_files_that_is_too_low_is_named():
    command = ["sh", "-c", 'ulimit -n 600 && exec "$0" "$@"', sys.executable, str(FOLDER / "side_by_side.py")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 1
    assert "the hard limit of RLIMIT_NOFILE is 600" in ended.stderr.splitlines()[-1]
