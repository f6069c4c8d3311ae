"""Check a built distribution: ``make dist`` runs it with the Python into which the wheel is installed.

It compares the wheel with the packages in this repository, and runs the first Python block of the README
outside the checkout. ``python docs/check_dist.py WHEEL``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from figures import PACKAGES, ROOT


def missing_files(wheel: Path) -> set[str]:
    """Return the tracked files of the packages that a wheel lacks, such as modules, data and templates."""
    tracked = subprocess.run(  # noqa: S603 - no foreign input
        ["git", "ls-files", *PACKAGES],  # noqa: S607 - git of the user's path
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    licence = {name for name in names if name.endswith("licenses/LICENSE")}
    return (set(tracked) - names) | (set() if licence else {"LICENSE"})


def first_block() -> str:
    """Return the first Python block of the README."""
    match = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    if match is None:
        raise SystemExit("README.md has no Python block")
    return match[1]


def main(wheel: Path) -> None:
    """Exit with a message if a check fails."""
    missing = missing_files(wheel)
    if missing:
        raise SystemExit(f"{wheel.name} lacks {len(missing)} files: {', '.join(sorted(missing)[:10])}")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(  # noqa: S603 - our own README
            [sys.executable, "-c", first_block()], cwd=folder, check=False, capture_output=True, text=True
        )
    if done.returncode:
        raise SystemExit(f"the first block of the README failed:\n{done.stderr}")
    print(
        f"{wheel.name}: complete, and the first block of the README runs on Python {sys.version.split()[0]}"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
