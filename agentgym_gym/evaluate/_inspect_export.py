"""Exports runs as inspect_ai logs, for ``inspect view`` and other tools that read them."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym._files import replaces
from agentgym_gym._text import redact, scrub
from agentgym_gym.errors import ArgumentName, BadFile, MissingExtra, SetupError
from agentgym_gym.evaluate._figures.metrics import Summary, summarise

if TYPE_CHECKING:
    from agentgym_gym.evaluate._runs import RunResult
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["MOST_EPISODES", "export_to_inspect"]

MOST_EPISODES = 1_000
"""Maximum number of episodes in a log, because inspect_ai builds a log in memory."""

_PYTHON_3_11 = 0x030B0000
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def export_to_inspect(runs: Sequence[RunResult], out: Path, *, overwrite: bool = False) -> list[Path]:
    """Write runs as inspect_ai logs: one log for each run, or several with at most `MOST_EPISODES` each.

    Args:
        runs: The runs. The samples of one task become inspect_ai's epochs, from 1.
        out: The folder for the logs; created if it does not exist.
        overwrite: Whether to overwrite existing logs. The log names of a run are always the same.

    Returns:
        The paths of the logs, in the order of the runs.

    Raises:
        MissingExtra: inspect_ai is not installed.
        BadOption: A run has no episodes, a log already exists, or the folder is not writable. Nothing is
            written then, unless the disk fails during the export.
        SetupError: This Python is too old for inspect_ai.
    """
    if sys.hexversion < _PYTHON_3_11:
        raise SetupError("an export to inspect_ai needs Python 3.11 or newer, as inspect_ai does")
    try:
        from agentgym_gym.evaluate import _inspect_samples  # noqa: F401, PLC0415 - it imports inspect_ai
    except ImportError as error:
        raise MissingExtra("an export to inspect_ai", extra="inspect", module="inspect_ai") from error

    logs = [log for run in runs for log in _logs(run, out)]
    if not overwrite:
        existing = next((log.path for log in logs if log.path.exists()), None)
        if existing is not None:
            raise BadFile(
                f"{existing} exists and is not overwritten: set ",
                ArgumentName("overwrite"),
                ", or choose another folder",
                path=existing,
            )
    try:
        out.mkdir(parents=True, exist_ok=True)
        for log in logs:
            log.write()
    except OSError as error:
        raise BadFile(f"cannot write to {out}: {error.strerror or error}", path=out) from error
    return list(dict.fromkeys(log.path for log in logs))


def _logs(run: RunResult, out: Path) -> Iterator[_Log]:
    """Yield the logs of a run.

    Raises:
        BadOption: The run has no episodes.
    """
    if not run.records:
        raise BadFile(f"{run.path} has no episodes to export", path=run.path)
    parts = list(_parts(run.records))
    for number, part in enumerate(parts):
        yield _Log(run, part, number, len(parts), out)


def _parts(records: Sequence[EpisodeRecord]) -> Iterator[Sequence[EpisodeRecord]]:
    """Split records into parts. The samples of a task stay in one part unless there are too many."""
    start = 0
    while start < len(records):
        end = min(start + MOST_EPISODES, len(records))
        if end < len(records) and records[end].task_id == records[end - 1].task_id:
            first = next(at for at in range(start, end) if records[at].task_id == records[end].task_id)
            end = first if first > start else end
        yield records[start:end]
        start = end


class _Log:
    """One log: a run or a part of a run."""

    def __init__(
        self, run: RunResult, records: Sequence[EpisodeRecord], number: int, parts: int, out: Path
    ) -> None:
        self._run = run
        self._records = records
        self._number = number
        self._parts = parts
        folder = run.path.resolve()
        self._run_name = hashlib.sha256(str(folder).encode("utf-8", "surrogatepass")).hexdigest()[:12]
        self._name = f"{self._run_name}-{number + 1}"
        slug = re.sub(r"[^A-Za-z0-9.-]+", "-", folder.name).strip("-.") or "run"
        part = f"-{number + 1}-of-{parts}" if parts > 1 else ""
        self.path = out / f"run-{slug}-{self._run_name}{part}.eval"

    def write(self) -> None:
        """Write the log atomically: to a temporary file, which is renamed when it is complete."""
        from inspect_ai.log import write_eval_log  # noqa: PLC0415 - an extra

        with replaces(self.path) as part:
            write_eval_log(self._log(), part, format="eval")

    def _log(self) -> Any:
        from inspect_ai.log import EvalLog, EvalPlan, EvalStats  # noqa: PLC0415 - an extra

        from agentgym_gym.evaluate._inspect_samples import sample_of, usage_of  # noqa: PLC0415 - also an extra

        began, ended = _times(self._run)
        prompt = self._run.facts.get("system_prompt")
        prompt = prompt if isinstance(prompt, str) else None
        usage = usage_of(tuple(step for record in self._records for step in record.steps))
        return EvalLog(
            status="success" if self._run.facts.get("finished", True) else "cancelled",
            eval=self._spec(began),
            plan=EvalPlan(name="plan"),
            results=self._results(),
            stats=EvalStats(
                started_at=began.isoformat(timespec="seconds"),
                completed_at=ended.isoformat(timespec="seconds"),
                model_usage={} if usage is None else {scrub(self._run.agent): usage},
            ),
            samples=[sample_of(record, began, prompt, self._name) for record in self._records],
        )

    def _spec(self, began: datetime) -> Any:
        from inspect_ai.log import EvalConfig, EvalDataset, EvalRevision, EvalSpec  # noqa: PLC0415 - an extra

        from agentgym_gym.evaluate._inspect_samples import plain_json  # noqa: PLC0415 - also an extra

        facts: dict[str, Any] = _without_passwords(plain_json(self._run.facts))
        options, git = facts.get("options"), facts.get("git")
        tasks = list(dict.fromkeys(record.task_id for record in self._records))
        commit = git.get("commit") if isinstance(git, dict) else None
        arguments = {name: facts[name] for name in ("tasks", "samples", "seed") if name in facts}
        return EvalSpec(
            eval_id=self._name,
            run_id=self._run_name,
            created=began.isoformat(timespec="seconds"),
            task=scrub(self._run.env_id),
            task_display_name=scrub(
                f"{self._run.env_label}{f', protocol {self._run.protocol}' if self._run.protocol else ''}"
            ),
            task_id=self._name,
            task_args={**arguments, **(options if isinstance(options, dict) else {})},
            dataset=EvalDataset(name=scrub(self._run.env_id), samples=len(tasks), sample_ids=tasks),
            model=scrub(self._run.agent),
            config=EvalConfig(epochs=max(record.sample for record in self._records) + 1),
            revision=EvalRevision(type="git", origin="", commit=commit, dirty=bool(git.get("dirty")))
            if isinstance(git, dict) and isinstance(commit, str)
            else None,
            packages=_texts(facts.get("versions")),
            metadata={
                **{name: value for name, value in facts.items() if name not in _OWN_FIELDS},
                "world": self._run.world,
                "part": self._number + 1,
                "parts": self._parts,
            },
            scorers=[{"name": "success"}, {"name": "score"}],
            viewer=_viewer(),
        )

    def _results(self) -> Any:
        """Return the metrics of the episodes in this log. The metadata has the metrics of the whole run."""
        from inspect_ai.log import EvalMetric, EvalResults, EvalScore, HeadlineMetric  # noqa: PLC0415

        scored = [record for record in self._records if record.scored]
        reported = [record for record in scored if record.success is not None]
        summary = summarise(scored)
        figures = {
            "success": ("accuracy", summary.success_rate, len(reported)),
            "score": ("mean", summary.mean_score, len(scored)),
        }
        return EvalResults(
            total_samples=len(self._records),
            completed_samples=len(scored),
            scores=[
                EvalScore(
                    name=name,
                    scorer=name,
                    scored_samples=count,
                    unscored_samples=len(self._records) - count,
                    metrics={metric: EvalMetric(name=metric, value=float("nan") if value is None else value)},
                )
                for name, (metric, value, count) in figures.items()
            ],
            headline=HeadlineMetric(scorer="success", score="success", metric="accuracy"),
            metadata={
                "summary": _figures(self._records),
                **({"summary_of_the_run": _figures(self._run.records)} if self._parts > 1 else {}),
            },
        )


_OWN_FIELDS = {"system_prompt", "versions", "options", "tasks", "samples", "seed"}
"""Facts of a run that have their own fields in a log."""


def _figures(records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    from agentgym_gym.evaluate._inspect_samples import plain_json  # noqa: PLC0415 - it imports inspect_ai

    summary: Summary = summarise(records)
    figures: dict[str, Any] = plain_json(summary.to_json())
    return figures


def _viewer() -> Any:
    from inspect_ai.viewer import TaskSamplesColumn, TaskSamplesView, ViewerConfig  # noqa: PLC0415 - an extra

    score = TaskSamplesColumn.score
    names = ("sampleId", "epoch", "input")
    more = ("tokens", "duration", "limit", "error")
    return ViewerConfig(
        trust_content=False,  # text from models and servers: never rendered or linked
        task_samples_view=TaskSamplesView(
            name="agentgym",
            columns=[
                *(TaskSamplesColumn(id=name) for name in names),
                score("success"),
                score("score"),
                *(TaskSamplesColumn(id=name) for name in more),
            ],
        ),
    )


def _times(run: RunResult) -> tuple[datetime, datetime]:
    """Return the start and end time of a run, or the folder's modification time if they are unknown."""
    try:
        ended = datetime.fromisoformat(str(run.facts["written"]))
        ended = ended if ended.tzinfo else ended.replace(tzinfo=timezone.utc)
        began = ended - timedelta(seconds=float(run.facts.get("wall_seconds", 0.0)))
    except (KeyError, ValueError, TypeError, OverflowError):
        began = ended = datetime.fromtimestamp(run.path.stat().st_mtime, timezone.utc)
    return began, ended


def _texts(versions: Any) -> dict[str, str]:
    if not isinstance(versions, Mapping):
        return {}
    return {str(name): version for name, version in versions.items() if isinstance(version, str)}


def _without_passwords(value: Any) -> Any:
    """Return facts without headers and passwords in URLs."""
    if isinstance(value, dict):
        return {name: _without_passwords(each) for name, each in value.items() if name != "headers"}
    if isinstance(value, list):
        return [_without_passwords(each) for each in value]
    return redact(value) if isinstance(value, str) and _URL.match(value) else value
