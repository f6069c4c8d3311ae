"""What ``import agentgym_gym`` costs beside ``import gymnasium, httpx``, on which it stands.

A fresh interpreter for each import, in turns, with warm caches. httpx imports rich and click for its command
line where they happen to be installed, as they are in this project's development environment; that would
flatter us, so there are two ratios, and the one without them is held against the bar.

Prints JSON: the medians in milliseconds, with the start of Python in them, and the ratios. Run it by
``python benchmarks/importing.py``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

from _common import at_most, report, seconds, usually

TIMES = usually(15, quick=1)
IMPORTS = {
    "agentgym_gym": "import agentgym_gym",
    "gymnasium_httpx": "import sys; sys.modules['click'] = None; import gymnasium, httpx",
    "gymnasium_httpx_with_its_command_line": "import gymnasium, httpx",
}


def run(program: str) -> None:
    """Run a program in an interpreter of its own."""
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - one of ours


def main() -> None:
    """Measure and print."""
    took: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for turn in range(TIMES + 1):
        for name, program in IMPORTS.items():
            each = seconds(lambda program=program: run(program))  # type: ignore[misc]
            if turn:  # the first fills the caches
                took[name].append(each)
    median = {name: statistics.median(each) for name, each in took.items()}
    bare, full = median["gymnasium_httpx"], median["gymnasium_httpx_with_its_command_line"]
    report(
        benchmark="importing",
        times=TIMES,
        median_ms={name: round(each * 1e3, 1) for name, each in median.items()},
        beside_gymnasium_and_httpx=at_most(median["agentgym_gym"] / bare, 1.3),
        with_httpx_command_line={"ratio": round(median["agentgym_gym"] / full, 3)},
    )


if __name__ == "__main__":
    main()
