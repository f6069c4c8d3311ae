"""The report of `make smollm`, and the page with the results that were kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE, PAGES = ROOT / "examples" / "pretrained", ROOT / "docs" / "training"
RECORD = ROOT / "docs" / "records" / "pretrained.md"


@pytest.fixture
def report(monkeypatch):
    """The module of the example that writes the tables."""
    monkeypatch.syspath_prepend(EXAMPLE)
    import smollm_report

    return smollm_report


@pytest.mark.parametrize(("kept", "count"), [("pretrained", 3), ("pretrained_alfworld", 2)])
def test_the_tables_of_the_page_match_the_kept_results(report, kept, count):
    results = [json.loads(line) for line in (PAGES / f"{kept}.jsonl").read_text("utf-8").splitlines()]
    page = (PAGES / "pretrained.md").read_text("utf-8") + RECORD.read_text("utf-8")
    tables = report.tables(results).split("\n\n")
    assert len(tables) == count
    assert [table for table in tables if table.strip() not in page] == []


def test_a_resumed_training_keeps_what_its_first_part_wrote(report, tmp_path):
    from commands import rename_earlier

    metrics = tmp_path / "grpo-0-metrics.jsonl"
    for steps, success in (((1, 2, 3), 0.0), ((3, 4), 0.5), ((5,), 1.0)):
        rename_earlier(metrics)
        logged = [{"step": step, "data": {"env/agentgym/TextCraft-v0/success": success}} for step in steps]
        metrics.write_text("".join(f"{json.dumps(line)}\n" for line in logged))
    curve = report.curve_of(report.attempts(metrics))
    assert [point["step"] for point in curve] == [1, 2, 3, 4, 5]
    assert [point["success"] for point in curve] == [0.0, 0.0, 0.5, 0.5, 1.0]
    log = tmp_path / "sft.log"
    for text in (
        "step:1 - train/loss:2.5 - train/lr:1\nstep:2 - train/loss:2.0 -\n",
        "step:2 - train/loss:1.5 -\n",
    ):
        rename_earlier(log)
        log.write_text(text)
    assert report.losses_of(report.attempts(log)) == [2.5, 1.5]
