"""Report the stages of ``smollm.py``: ``python smollm_report.py runs/smollm FOLDER``.

It prints tables and writes ``pretrained.jsonl`` with the results of each stage, ``pretrained.png``, and
``pretrained_games.md`` with ten games, or the same with another ``--name``. ``python smollm_report.py
pretrained.jsonl FOLDER`` draws ``pretrained.png`` from the kept results.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from smollm_recipe import (
    ENDED,
    RECIPES,
    SmolLM,
    attempts,
    change_between,
    curve,
    figures_of,
    print_steps,
    rate,
)

from agentgym_gym.evaluate import RunResult, find_runs, read_run

TITLES = {each.name: each.title for recipe in RECIPES.values() for each in recipe.evaluations}
COLUMNS = {"zero-shot": "zero-shot (95 %)", "after-sft": "fine-tuned (95 %)"}
SPEAKERS = {"user": "Environment", "assistant": "Model"}
GAMES = {
    "TextCraft-kept-out": 4,
    "TextCraft-new-families": 4,
    "SQLGym-dev": 3,
    "BabyAI-test": 3,
    "ALFWorld-test_unseen": 10,
}
"""Games of the fine-tuned model that are shown, or of the first seed of GRPO if it played the tasks."""


def stages_of(folder: Path) -> list[dict[str, Any]]:
    """Return the results of each stage that has ended.

    Args:
        folder: The folder of the stages.

    Raises:
        SystemExit: There is none.

    Returns:
        For each stage ``stage`` and ``minutes``; for an evaluation also ``evaluations`` by name; for
        fine-tuning ``loss`` of each step; for GRPO ``curve``; for an evaluation after it ``changes`` since
        fine-tuning. After several seeds of GRPO, ``after-grpo`` has the ``changes`` of all their episodes
        together.
    """
    results = []
    marks = sorted(folder.glob(f"*/{ENDED}"), key=lambda mark: (mark.stat().st_mtime, mark.parent.name))
    ended = [mark.parent for mark in marks]
    played = {stage.name: runs_of(stage) for stage in ended if stage.name.startswith(("zero-shot", "after-"))}
    for stage in ended:
        result: dict[str, Any] = {"stage": stage.name}
        result["minutes"] = float((stage / ENDED).read_text().split()[0])
        if stage.name == "sft":
            result["loss"] = losses_of(attempts(folder / "sft.log"))
        elif stage.name.startswith("grpo-"):
            result["curve"] = curve_of(attempts(folder / f"{stage.name}-metrics.jsonl"))
            # Of a run that was resumed, the mark has the last part only.
            result["minutes"] = round(sum(point["seconds"] for point in result["curve"]) / 60, 1)
        elif stage.name in played:
            runs = played[stage.name]
            result["evaluations"] = {name: figures_of(run) for name, run in runs.items()}
            if stage.name.startswith("after-grpo-") and "after-sft" in played:
                result["changes"] = changes_between(played["after-sft"], runs)
        results.append(result)
    if not results:
        raise SystemExit(f"{folder} has no stage that ended: give the --out of smollm.py")
    seeds = [runs for stage, runs in played.items() if stage.startswith("after-grpo-")]
    if len(seeds) > 1 and "after-sft" in played:
        together = {
            name: replace(run, records=tuple(record for runs in seeds for record in runs[name].records))
            for name, run in seeds[0].items()
        }
        changes = changes_between(played["after-sft"], together)
        results.append({"stage": "after-grpo", "changes": changes})
    return results


def losses_of(logs: list[Path]) -> list[float]:
    """Return the loss of each step of fine-tuning; a step that was repeated counts once."""
    losses: dict[int, float] = {}
    for log in logs:
        found = re.findall(r"step:(\d+) - .*train/loss:([\d.e-]+)", log.read_text(errors="replace"))
        losses |= {int(step): round(float(loss), 4) for step, loss in found}
    return [losses[step] for step in sorted(losses)]


def curve_of(metrics: list[Path]) -> list[dict[str, float]]:
    """Return the curve of GRPO; a step that was repeated counts once."""
    points = {point["step"]: point for file in metrics for point in curve(file, "TextCraft")}
    return [points[step] for step in sorted(points)]


def runs_of(stage: Path) -> dict[str, RunResult]:
    """Return the runs of an evaluation by name."""
    return {path.name: read_run(path) for path in find_runs(stage)}


def changes_between(before: Mapping[str, RunResult], after: Mapping[str, RunResult]) -> dict[str, Any]:
    """Return the changes in success from one model to another by the name of the evaluation."""
    return {name: change_between(before[name], run) for name, run in after.items()}


def tables(results: list[dict[str, Any]]) -> str:
    """Return the tables of docs/training/pretrained.md."""
    by_stage = {result["stage"]: result for result in results}
    columns = {title: by_stage[stage]["evaluations"] for stage, title in COLUMNS.items() if stage in by_stage}
    lines = [row("tasks", *columns), row(*["---"] * (len(columns) + 1))]
    for name, title in TITLES.items():
        cells = [
            f"{rate(runs[name])}, {runs[name]['episodes']} episodes" if name in runs else ""
            for runs in columns.values()
        ]
        if any(cells):
            lines.append(row(title, *cells))
    fine_tuned = by_stage.get("after-sft", {}).get("evaluations", {})
    after = sorted(stage for stage in by_stage if stage.startswith("after-grpo-") and fine_tuned)
    if after:
        lines += ["", row("tasks", "seed", "fine-tuned", "after GRPO", "change", "p"), row(*["---"] * 6)]
    together = by_stage.get("after-grpo", {}).get("changes", {})
    for name, title in TITLES.items():
        for stage in after:
            found, change = by_stage[stage]["evaluations"].get(name), by_stage[stage]["changes"].get(name)
            if found is not None:
                seed = stage.removeprefix("after-grpo-")
                lines.append(row(title, seed, rate(fine_tuned[name]), rate(found), *difference(change)))
        if name in together:
            lines.append(row(title, "all", "", "", *difference(together[name])))
    lines += ["", row("stage", "minutes"), row("---", "---")]
    lines += [
        row(f"`{stage}`", f"{result['minutes']:.0f}")
        for stage, result in by_stage.items()
        if "minutes" in result
    ]
    return "\n".join(lines) + "\n"


def row(*cells: Any) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


def difference(change: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return a difference with its interval, and its p-value."""
    if change is None:
        return "", ""
    return rate(change, "+"), "< 0.001" if change["p"] < 0.001 else f"{change['p']:.3f}"  # noqa: PLR2004


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Draw success by stage, the loss of fine-tuning and the success in training of GRPO."""
    import matplotlib as mpl  # noqa: PLC0415 - slow to import

    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (stages, loss, learning) = plt.subplots(
        1, 3, figsize=(12, 4), layout="constrained", width_ratios=(1.6, 1, 1)
    )
    draw_stages(stages, results)
    batch, episodes = SmolLM.sft_batch, SmolLM.prompts * SmolLM.rollouts
    for result in results:
        if losses := result.get("loss"):
            windows = [mean(losses[at : at + 8]) for at in range(0, len(losses), 8)]
            loss.plot([batch * (8 * at + 4) for at in range(len(windows))], windows)
        if points := [point for point in result.get("curve", []) if "success" in point]:
            learning.plot(
                [episodes * point["step"] for point in points],
                [point["success"] for point in points],
                label=result["stage"].replace("grpo-", "seed "),
            )
    loss.set(title="fine-tuning", xlabel="games read", ylabel="loss, mean of 8 steps", yscale="log")
    learning.set(title="GRPO, training tasks", xlabel="episodes played", ylabel="success", ylim=(0, 1))
    if learning.lines:
        learning.legend()
    for axes in (stages, loss, learning):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def draw_stages(axes: Any, results: list[dict[str, Any]]) -> None:
    """Draw the success rates of the evaluations, with intervals."""
    evaluations = {result["stage"]: result["evaluations"] for result in results if "evaluations" in result}
    stages = [name for name in COLUMNS if name in evaluations]
    stages += sorted(name for name in evaluations if name.startswith("after-grpo-"))
    titles = {name: TITLES[name] for name in TITLES if any(name in runs for runs in evaluations.values())}
    for place, (name, title) in enumerate(titles.items()):
        played = [stage for stage in stages if name in evaluations[stage]]
        found = [evaluations[stage][name] for stage in played]
        at = [stages.index(stage) + 0.09 * (place - 2) for stage in played]
        rates = [each["success"] for each in found]
        below = [each["success"] - each["interval"][0] for each in found]
        above = [each["interval"][1] - each["success"] for each in found]
        axes.errorbar(at, rates, yerr=(below, above), fmt="o", capsize=2, label=title)
    axes.set_xticks(range(len(stages)), [name.removeprefix("after-") for name in stages])
    axes.set(title="tasks never played in training", ylabel="success (95 %)", ylim=(0, 1))
    axes.legend(fontsize="small")


def games(folder: Path) -> str:
    """Return ten random games as Markdown.

    Args:
        folder: The folder of the stages.
    """
    parts = [
        "# Ten games of the pretrained model\n\nDrawn by a fixed seed, from tasks never played in training.\n"
    ]
    for name, count in GAMES.items():
        if not (folder / "after-sft" / name).exists():
            continue
        trained = folder / "after-grpo-0"
        last = (trained / ENDED).exists() and (trained / name).exists()
        run = read_run((trained if last else folder / "after-sft") / name)
        for record in random.Random(0).sample(run.records, count):  # noqa: S311
            parts.append(
                f"\n## {TITLES[name]}, task {record.task_id}: {'won' if record.success else 'lost'}\n"
            )
            parts += [block(SPEAKERS[each["role"]], each["content"]) for each in record.messages]
    return "".join(parts)


def block(speaker: str, text: str) -> str:
    """Return a message as Markdown, in a fence that is longer than any in it."""
    fence = "`" * (1 + max([2, *map(len, re.findall("`+", text))]))
    return f"\n{speaker}:\n\n{fence}text\n{text}\n{fence}\n"


def main() -> None:
    """Report a folder of stages, or draw kept results again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("stages", type=Path, help="the --out of smollm.py, or kept results")
    parser.add_argument("folder", type=Path, help="folder of the written files")
    parser.add_argument("--name", default="pretrained", help="what their names begin with")
    args = parser.parse_args()
    source, folder = args.stages, args.folder
    folder.mkdir(parents=True, exist_ok=True)
    if not source.is_file():
        results = stages_of(source)
        print(tables(results))
        print_steps([result["curve"] for result in results if "curve" in result])
        (folder / f"{args.name}.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))
        if (source / "after-sft" / ENDED).exists():
            (folder / f"{args.name}_games.md").write_text(games(source), "utf-8")
    else:
        results = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    draw(results, folder / f"{args.name}.png")


if __name__ == "__main__":
    main()
