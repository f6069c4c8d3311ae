"""Print the results of all seeds, by environment: ``python seed_results.py runs/pipeline``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from joint_recipe import HELD_OUT

from agentgym_gym.evaluate import RunResult, compare_runs, find_runs, read_run, summarise


def runs_by_tasks(folder: Path) -> dict[str, RunResult]:
    """Return the runs of a folder by their tasks: ``Maze, trained`` and ``Maze, held out``."""
    parts = {}
    for run in map(read_run, find_runs(folder)):
        name = run.env_id.removeprefix("agentgym/").removesuffix("-v0")
        for title, held_out in ((f"{name}, trained", False), (f"{name}, held out", True)):
            records = tuple(each for each in run.records if (each.task_id in HELD_OUT[name]) is held_out)
            parts[title] = replace(run, records=records)
    return parts


def trained_success(folder: Path) -> dict[str, float]:
    """Return the success rate on the trained tasks of each environment.

    Raises:
        RuntimeError: No episode was scored.
    """
    runs = runs_by_tasks(folder)
    rates = {name: summarise(runs[f"{name}, trained"].records).success_rate for name in HELD_OUT}
    known = {name: rate for name, rate in rates.items() if rate is not None}
    if known.keys() != rates.keys():
        raise RuntimeError(f"in {folder}, faults ended every episode of an environment")
    return known


def keep(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write ``result.json``: the evaluation results of a seed, and facts about it.

    Args:
        folder: The folder of the seed.
        facts: Facts to add.
    """
    before, after = (runs_by_tasks(folder / name) for name in ("before", "after"))
    environments = {}
    for name in before:
        environments[name] = {
            "before": figures_of(before[name]),
            "after": figures_of(after[name]),
            "change": change_between(before[name], after[name]),
        }
    (folder / "result.json").write_text(json.dumps({**facts, "environments": environments}) + "\n")


def figures_of(run: RunResult) -> dict[str, Any]:
    """Return the evaluation results of a run."""
    summary = summarise(run.records)
    return {
        "episodes": summary.scored,
        "faults": summary.faulted,
        "success": summary.success_rate,
        "interval": summary.success_interval,
        "parse_errors": summary.parse_error_share,
        "turns": summary.mean_turns,
    }


def change_between(before: RunResult, after: RunResult) -> dict[str, Any]:
    """Return the difference in success of two runs with the same tasks."""
    change = compare_runs(before, after, names=("before", "after")).success
    return {"success": change.difference, "interval": change.interval, "p": change.p_value}


def print_outcomes(runs: Path) -> None:
    """Print the table of all seeds in a folder, and write ``pipeline.jsonl`` there.

    Raises:
        SystemExit: There is none.
    """
    results = [json.loads(path.read_text()) for path in runs.glob("seed_*/result.json")]
    if not results:
        raise SystemExit(f"{runs} has no seed_*/result.json: give the --out of pipeline.py")
    results.sort(key=lambda result: result["seed"])
    (runs / "pipeline.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))
    print(
        "environment          seed  before (95 %)       after (95 %)        change (95 %)           "
        "p      minutes"
    )
    for name in results[0]["environments"]:
        changes = []
        for result in results:
            found = result["environments"][name]
            change = found["change"]
            changes.append(change["success"])
            print(
                f"{name:19}  {result['seed']:4}  {rate(found['before'])}  {rate(found['after'])}"
                f"  {rate(change, '+'):22}  {change['p']:.4f}  {result['minutes']:7.1f}"
            )
        print(f"{name:19}  mean change {mean(changes):+.3f}, smallest {min(changes):+.3f}")


def rate(figures: Mapping[str, Any], sign: str = "") -> str:
    """Return a success rate, or a difference, with its interval."""
    interval = figures["interval"]
    shown = "{:{s}.2f} to {:{s}.2f}".format(*interval, s=sign) if interval else "none"
    return f"{figures['success']:{sign}.3f} ({shown})"


def main() -> None:
    """Print the results of the folder on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("runs", type=Path, help="the --out of pipeline.py")
    print_outcomes(parser.parse_args().runs)


if __name__ == "__main__":
    main()
