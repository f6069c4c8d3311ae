"""`agentgym report`."""

from __future__ import annotations

import json

from report_runs import episode, write_run


def test_report(run, tmp_path):
    for name in ("a", "b"):
        write_run(tmp_path / "runs" / name, [episode(task) for task in range(3)])
    out = tmp_path / "report.html"
    result = run("report", tmp_path / "runs", "--out", out, "--title", "Two <runs>")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"Written to {out}: 2 runs, 6 episodes, 0.1 MB.\n"
    assert "<title>Two &lt;runs&gt;</title>" in out.read_text("utf-8")


def test_a_record_that_cannot_be_read_is_named_by_its_line(run, tmp_path):
    folder = write_run(tmp_path / "a", [episode(0)])
    (folder / "episodes.jsonl").write_text(json.dumps({"env_id": 3}) + "\n")
    result = run("report", folder, "--out", tmp_path / "report.html")
    assert result.exit_code == 2
    assert "line 1: 'env_id' cannot be 3" in result.stderr
    assert not (tmp_path / "report.html").exists()
