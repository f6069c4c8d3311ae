"""What the seeds came to, as a table, ``maze.jsonl`` and ``maze.png``: ``python report.py RUNS FOLDER``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import mean
from typing import Any

_SCORE, _HELD = "critic/score/mean", "val-core/agentgym/Maze-v0/reward/mean@4"


def curve(metrics: Path) -> list[dict[str, float]]:
    """Return, for each step of GRPO, what verl's own log says.

    Args:
        metrics: Written by verl's file logger.

    Returns:
        ``step``; ``success`` of the episodes it learned from (with nothing but success there is a reward),
        which the weights before this step played; ``seconds``; and ``validation``, of 100 episodes by the
        weights after it, where there was one.
    """
    points = []
    for line in metrics.read_text().splitlines():
        logged = json.loads(line)
        said = {
            "success": logged["data"].get(_SCORE),
            "validation": logged["data"].get(_HELD),
            "seconds": logged["data"].get("timing_s/step"),
        }
        numbers = {name: round(value, 4) for name, value in said.items() if value is not None}
        points.append({"step": logged["step"], **numbers})
    return points


def report(runs: Path, folder: Path) -> None:
    """Print the table of all seeds below a folder, and write ``maze.jsonl`` and ``maze.png`` into another."""
    results = [json.loads(path.read_text()) for path in runs.glob("seed_*/result.json")]
    results.sort(key=lambda result: result["seed"])
    print("seed  before  after   gain  invalid before  after  minutes")
    for result in results:
        before, after = result["before"], result["after"]
        print(
            f"{result['seed']:4}  {before['success']:6.3f}  {after['success']:5.3f}  {_gain(result):+.3f}"
            f"  {before['invalid']:14.3f}  {after['invalid']:5.3f}  {result['minutes']:7.1f}"
        )
    print(f"mean gain {mean(map(_gain, results)):+.3f}, smallest {min(map(_gain, results)):+.3f}")
    (folder / "maze.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))
    _draw(results, folder / "maze.png")


def _gain(result: dict[str, Any]) -> float:
    gain: float = result["after"]["success"] - result["before"]["success"]
    return gain


def _draw(results: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - slow to import

    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for number, result in enumerate(results):
        colour = f"C{number}"
        learned = [point for point in result["curve"] if "success" in point]
        steps = [point["step"] for point in learned]
        axes.plot(steps, [point["success"] for point in learned], color=colour, alpha=0.5, linewidth=1)
        ends = [result["before"]["success"], result["after"]["success"]]
        axes.plot([0, steps[-1]], ends, "o", color=colour, label=f"seed {result['seed']}")
    axes.set(
        xlabel="step of GRPO", ylabel="success", ylim=(0, 1), title="Maze, a model of 129,000 parameters"
    )
    axes.grid(alpha=0.3)
    axes.legend(title="dots: measured before and after", fontsize="small")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    report(Path(sys.argv[1]), Path(sys.argv[2]))
