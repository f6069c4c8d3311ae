"""Report all seeds as a table, ``maze.jsonl`` and ``maze.png``: ``python report.py RUNS FOLDER``.

``python report.py credit.jsonl FOLDER`` draws ``credit.png`` from the kept records of ``maze.jsonl``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean
from typing import Any

_OF_STEP = ("success", "turns", "parse_errors", "faults", "cut")
"""Metrics of the episodes of each step; the first three are means, the others are counts."""

_EARLIER = {"algorithm": "grpo", "rows": "episode", "episodes_a_step": 128}
"""Of records from before the comparison of algorithms and of rows, which do not have these keys."""


def curve(metrics: Path, env: str = "Maze") -> list[dict[str, float]]:
    """Return the curve of GRPO from verl's own log, one entry for each step.

    Args:
        metrics: The file of verl's file logger.
        env: The environment.

    Returns:
        ``step``; for its training episodes, which were played with the weights before it: ``success``,
        ``turns`` and ``parse_errors`` (means of the unfaulted ones), ``faults`` and ``cut`` (counts);
        ``seconds``; ``tokens``, in all rows of the step; and ``validation``, the success of 100 episodes from
        held-out starts with the weights after it, if there was one.
    """
    points = []
    for line in metrics.read_text().splitlines():
        logged = json.loads(line)
        values = {name: logged["data"].get(f"env/agentgym/{env}-v0/{name}") for name in _OF_STEP}
        values["validation"] = logged["data"].get(f"val-env/agentgym/{env}-v0/success")
        values["tokens"] = logged["data"].get("perf/total_num_tokens")
        values["seconds"] = logged["data"].get("timing_s/step")
        numbers = {name: round(value, 4) for name, value in values.items() if value is not None}
        points.append({"step": logged["step"], **numbers})
    return points


def report(runs: Path, folder: Path) -> None:
    """Print the table of all seeds in a folder, and write ``maze.jsonl`` and ``maze.png`` to another one.

    Raises:
        SystemExit: There is none.
    """
    results = [json.loads(path.read_text()) for path in runs.glob("seed_*/*/result.json")]
    if not results:
        raise SystemExit(f"{runs} has no seed_*/*/result.json: give the --out of train.py")
    results.sort(key=lambda result: (result["algorithm"] != "grpo", _name(result), result["seed"]))
    print("way        seed  before  all steps  after   gain  invalid before  after  minutes")
    for result in results:
        before, after = result["before"], result["after"]
        steps = mean(point["success"] for point in result["curve"] if "success" in point)
        print(
            f"{_name(result):9}  {result['seed']:4}"
            f"  {before['success']:6.3f}  {steps:9.3f}  {after['success']:5.3f}  {_gain(result):+.3f}"
            f"  {before['invalid']:14.3f}  {after['invalid']:5.3f}  {result['minutes']:7.1f}"
        )
    for name in dict.fromkeys(map(_name, results)):
        own = [result for result in results if _name(result) == name]
        gains = [_gain(result) for result in own]
        print(f"{name}: mean gain {mean(gains):+.3f}, smallest {min(gains):+.3f}")
        print_steps([result["curve"] for result in own])
    (folder / "maze.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))
    _draw(results, folder / "maze.png")


def print_steps(curves: list[list[dict[str, float]]]) -> None:
    """Print the metrics of each step: means over the seeds, and sums of counts."""
    print("step  success  turns  parse errors  faults  cut")
    steps = sorted({int(point["step"]) for curve in curves for point in curve if "success" in point})
    for step in steps:
        points = [point for curve in curves for point in curve if point["step"] == step]
        found = {name: [point[name] for point in points if name in point] for name in _OF_STEP}
        means = [f"{mean(found[name]):.3f}" if found[name] else "-" for name in _OF_STEP[:3]]
        counts = [f"{sum(found[name]):.0f}" if found[name] else "-" for name in _OF_STEP[3:]]
        print(f"{step:4}  {means[0]:>7}  {means[1]:>5}  {means[2]:>12}  {counts[0]:>6}  {counts[1]:>3}")


def _name(result: dict[str, Any]) -> str:
    rows = "" if result["rows"] == "episode" else f", rows: {result['rows']}"
    return f"{result['algorithm']}{rows}"


def _gain(result: dict[str, Any]) -> float:
    gain: float = result["after"]["success"] - result["before"]["success"]
    return gain


def _draw(results: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - slow to import

    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    names = list(dict.fromkeys(map(_name, results)))
    for number, result in enumerate(results):
        # A colour for each seed, or for each way to train if there are several.
        several = len(names) > 1
        colour = f"C{names.index(_name(result)) if several else number}"
        label = f"{_name(result)}, seed {result['seed']}" if several else f"seed {result['seed']}"
        learned = [point for point in result["curve"] if "success" in point]
        episodes = [point["step"] * result["episodes_a_step"] for point in learned]
        axes.plot(episodes, [point["success"] for point in learned], color=colour, alpha=0.5, linewidth=1)
        ends = [result["before"]["success"], result["after"]["success"]]
        marker = "os^Dv"[result["seed"] % 5] if several else "o"
        axes.plot([0, episodes[-1]], ends, marker, color=colour, label=label)
    axes.set(
        xlabel="episodes played", ylabel="success", ylim=(0, 1), title="Maze, a model of 129,000 parameters"
    )
    axes.grid(alpha=0.3)
    axes.legend(title="markers: measured before and after", fontsize="small")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Report a folder of runs, or draw kept records again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("runs", type=Path, help="the --out of train.py, or kept records")
    parser.add_argument("folder", type=Path, help="folder of the written files")
    args = parser.parse_args()
    if args.runs.is_file():
        lines = args.runs.read_text().splitlines()
        _draw([_EARLIER | json.loads(line) for line in lines], args.folder / f"{args.runs.stem}.png")
    else:
        report(args.runs, args.folder)


if __name__ == "__main__":
    main()
