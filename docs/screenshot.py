"""Take docs/report.png and docs/report-matrix.png: the report of an oracle and a random agent, in Chromium.

Run it with ``make screenshot``. It plays the episodes first, on local servers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from agentgym_gym.evaluate import write_report
from agentgym_servers._browser.executable import find_chromium, missing_chromium

DOCS = Path(__file__).resolve().parent
LARGEST = 300_000
"""Maximum bytes of a picture."""

OPEN = "#run=0&task=2&sample=0"
"""The episode that is open in the picture: one of the oracle in TextCraft."""


def play(folder: Path) -> list[Path]:
    """Play the runs for the picture; return their folders."""
    folders = []
    for name in ("TextCraft", "Maze"):
        for agent in ("oracle", "random"):
            folders.append(folder / f"{name.lower()}-{agent}")
            command = ["-m", "agentgym_gym", "eval", name, "--agent", agent, "--tasks", "0:25"]
            run([sys.executable, *command, "--out", str(folders[-1])], check=True)  # noqa: S603 - our own
    return folders


def take(page: Path, folder: Path) -> list[Path]:
    """Take the pictures of a report, and return their files.

    Raises:
        SystemExit: There is no Chromium.
    """
    missing = missing_chromium()
    if missing is not None:
        raise SystemExit(f"error: {missing}")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=sandbox)
        tab = browser.new_page(viewport={"width": 1500, "height": 1150}, device_scale_factor=1.2)
        tab.goto(page.as_uri() + OPEN)
        tab.wait_for_selector("#episode .conversation")
        tab.keyboard.press("m")  # the map, so that all tasks are in the picture
        tab.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        tab.screenshot(path=folder / "report.png")
        tab.goto(page.as_uri())
        tab.set_viewport_size({"width": 1200, "height": 560})
        tab.click("#tab-matrix")
        tab.screenshot(path=folder / "report-matrix.png")
        browser.close()
    return [folder / "report.png", folder / "report-matrix.png"]


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.html"
        write_report(play(Path(scratch)), report)
        pictures = take(report, DOCS)
    for picture in pictures:
        size = picture.stat().st_size
        if size > LARGEST:
            raise SystemExit(f"error: {picture} has {size:,} bytes, more than {LARGEST:,}")
