"""Print the end of ``agentgym eval``: metrics, requests, faults, and the command that continues."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentgym_gym._cli.console import ARGUMENTS, clean, out
from agentgym_gym._cli.progress import duration
from agentgym_gym._cli.table_formats import print_run, print_runs
from agentgym_gym._text import redact_within
from agentgym_gym.evaluate._protocols.applied import protocol_text, refused_fields
from agentgym_gym.evaluate._table import table_of

if TYPE_CHECKING:
    from pathlib import Path

    from agentgym_gym.evaluate import RunResult

__all__ = ["continue_command", "print_closing", "print_results"]

_COMMON_ENDINGS = frozenset({"terminated", "truncated", "fault", "agent_fault"})


def print_results(results: Sequence[RunResult]) -> None:
    """Print the metrics of runs, one row per run.

    Args:
        results: The results of the runs. If there are several, their folders have the same parent.
    """
    summaries = [result.summary for result in results]
    table = table_of(results, summaries)
    if len(results) == 1:
        print_run(table.rows[0])
    else:
        print_runs(table)
    for result, summary in zip(results, summaries, strict=True):
        prefix = "" if len(results) == 1 else f"{clean(f'{result.env_label} by {result.agent}')}: "
        for kind, count in [*summary.faults.items(), *summary.agent_faults.items()]:
            out.print(f"{prefix}{count} ended by {kind}; not scored.")
        for ending, count in summary.endings.items():
            if ending not in _COMMON_ENDINGS:
                out.print(f"{prefix}{count} ended by {ending}.")
        if summary.samples > 1:
            solved = summary.solved
            out.print(
                f"{prefix}Tasks solved never {len(solved.never)}, sometimes {len(solved.sometimes)}, always "
                f"{len(solved.always)}.",
            )
    out.print(f"Written to {results[0].path if len(results) == 1 else results[0].path.parent}.")


_MOST = 300  # characters of a message
_MOST_SERVERS = 3
_FLAGS = ("--resume", "--retry-faulted", "--yes")


def print_closing(
    results: Sequence[RunResult],
    seconds: float,
    *,
    raised: str = "",
    out: Path | None = None,
) -> None:
    """Print what follows the metrics of the runs.

    Args:
        results: The results of the runs.
        seconds: Wall-clock seconds of the command.
        raised: The option of the budget that ended the command; empty if none did.
        out: The output folder, if the command does not name it.
    """
    for result in results:
        run = result.facts
        prefix = f"{run['env_id'].rpartition('/')[2]} by {run['agent']}: " if len(results) > 1 else ""
        if protocol := protocol_text(run):
            _print(f"{prefix}Protocol {protocol}; its metric is {run['protocol']['metric']}.")
        if text := run["selection"]["text"]:
            _print(f"{prefix}{text[0].upper()}{text[1:]}.")
        for refused in refused_fields(run):
            _print(f"{prefix}The model server refused a part of the requests: {refused}.")
        for line in filter(None, (_model_requests(run), _env_requests(run, result.summary.counters))):
            _print(f"{prefix}{line}")
        for line in _fault_lines(result):
            _print(f"{prefix}{line}")
        for ending, advice in _ADVICE.items():
            if ending in result.summary.endings:
                _print(f"{prefix}{ending}: {advice}.")
    _print(f"Wall time {duration(seconds)}.")
    faulted = any(result.summary.faulted for result in results)
    if faulted or not all(result.finished for result in results):
        larger = f" with a larger {raised}" if raised else ""
        _print(f"Continue{larger}: {continue_command(retry_faulted=faulted, raised=raised, out=out)}")


_ADVICE = {"reply_cut": "raise --max-tokens, or give --on-cut-reply play"}
"""Advice for episodes that the token limit ended, by ending."""


def _fault_lines(result: RunResult) -> list[str]:
    """Return a line for each kind of fault, with its most frequent message."""
    messages: dict[str, Counter[str]] = {}
    for record in result.records:
        fault = record.fault or record.agent_fault
        if fault is not None:
            messages.setdefault(fault["kind"], Counter())[fault["message"]] += 1
    lines = []
    for kind, counts in sorted(messages.items()):
        ((message, count),) = counts.most_common(1)
        lines.append(f"{kind}, {count} of {counts.total()}: {_one_line(message)}")
    return lines


def continue_command(*, retry_faulted: bool, raised: str = "", out: Path | None = None) -> str:
    """Return the command that continues the current one, without the values of secrets.

    Args:
        retry_faulted: Whether it retries faulted episodes.
        raised: An option whose value has to be raised; the command has ``N`` in its place.
        out: The output folder to add as ``--out``.
    """
    words, before = list[str](), ""  # before: the option whose value follows
    for word in ARGUMENTS.get():
        name, equals, value = word.partition("=")
        if before == "--header":
            words.append(_hidden(word))
        elif before and before == raised:
            pass
        elif name == "--header":
            words += [name, *([_hidden(value)] if equals else [])]
        elif word not in _FLAGS and not (raised and name == raised):
            words.append(redact_within(word))
        takes_value = name in {"--header", raised} and not equals and not before
        before = name if takes_value else ""
    if raised:
        words += [raised, "N"]
    if out is not None:
        words += ["--out", str(out)]
    words += ["--resume", *(["--retry-faulted"] if retry_faulted else [])]
    return shlex.join(["agentgym", "eval", *words])


def _hidden(header: str) -> str:
    return f"{header.partition(':')[0]}: ***"


def _model_requests(run: Mapping[str, Any]) -> str:
    usage = run.get("usage")
    if not usage:
        return ""
    url = (run.get("agent_settings") or {}).get("base_url") or "its engine"
    line = f"{usage['requests']} requests to the model {run['agent']} at {url}"
    if usage["retries"]:
        line += f"; {usage['retries']} of them retries"
    return line + "."


def _env_requests(run: Mapping[str, Any], counters: Mapping[str, Any]) -> str:
    if not counters["requests"]:
        return ""
    urls = run.get("server") or []
    more = f" and {len(urls) - _MOST_SERVERS} more" if len(urls) > _MOST_SERVERS else ""
    where = f" at {', '.join(urls[:_MOST_SERVERS])}{more}" if urls else ""
    parts = [f"{counters['requests']} requests to the environment {run['env_id'].rpartition('/')[2]}{where}"]
    if counters["retries"]:
        parts.append(f"{counters['retries']} of them retries")
    if counters["reconnects"]:
        parts.append(f"{counters['reconnects']} reconnects")
    if counters["faults"]:
        parts.append("faults: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counters["faults"].items())))
    if counters["queued"]:
        parts.append(f"{counters['queued']:.1f} seconds queued")
    if counters["uncounted"]:
        parts.append(f"{counters['uncounted']} of {counters['episodes']} episodes not counted")
    return "; ".join(parts) + "."


def _one_line(text: str) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= _MOST else f"{line[:_MOST]}…"


def _print(line: str) -> None:
    out.print(clean(line))
