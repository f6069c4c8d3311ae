"""The time of ``import agentgym_gym`` compared with its dependency, ``import gymnasium``.

Each import has a new interpreter, interleaved; both times include the start of Python. All modules are
compiled beforehand, into a separate folder, as for an installed package: if Python may not write compiled
files (``PYTHONDONTWRITEBYTECODE``), a package in development would be compiled at each import. The ratio is
computed for each pair, and the bar is for the median.

Prints JSON: the medians in milliseconds, and the ratio. Run it with ``python benchmarks/importing.py``.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial

from _common import at_most, interleave, ratios, report, seconds, usually

TIMES = usually(15, quick=1)
PACKAGES = ("agentgym_gym", "gymnasium")


def importing(package: str, compiled: str) -> None:
    """Import a package in a new interpreter.

    Args:
        package: Its name.
        compiled: The folder of compiled files.
    """
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
    subprocess.run([sys.executable, "-c", f"import {package}"], check=True, env=environ)  # noqa: S603 - ours


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as compiled:
        ways: dict[str, Callable[[], float]] = {
            package: partial(seconds, partial(importing, package, compiled)) for package in PACKAGES
        }
        interleave(ways, 1)  # compiles
        took = interleave(ways, TIMES)
    report(
        benchmark="importing",
        times=TIMES,
        median_ms={name: round(statistics.median(each) * 1e3, 1) for name, each in took.items()},
        beside_gymnasium=at_most(ratios(took["agentgym_gym"], took["gymnasium"]), 1.3),
    )


if __name__ == "__main__":
    main()
