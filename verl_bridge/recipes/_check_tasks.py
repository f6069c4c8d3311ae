"""Check a recipe's data: verl must be able to read it, and each environment must be playable."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentgym_gym.rollout import close_all, drop_blank_system
from verl_bridge.recipes._check_episodes import Case, examine
from verl_bridge.recipes._check_played import play_whole
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning
from verl_bridge.tasks import EnvTask

if TYPE_CHECKING:
    from verl_bridge.recipes._check_played import PlayedEpisode, ReplySource
    from verl_bridge.recipes._view import View

__all__ = [
    "FirstPrompt",
    "check_shares",
    "check_split_leakage",
    "play_first_turns",
    "read_rows",
]

MAX_STARTS = 16
"""Maximum number of environments, with different arguments, that are started with one task each."""

_COLUMNS = ("prompt", "agent_name", "data_source", "reward_model", "extra_info")


@dataclass
class FirstPrompt:
    """The beginning of an episode.

    Attributes:
        task: The task of the episode.
        place: Where its row is.
        system: The messages of the row; the longest among the rows with the same environment and arguments.
        observations: The first observation, and the responses to empty replies.
        other: Another task of the same environment, if there is one.
        episodes: Whole episodes of the environment, or their beginnings.
        tools: The functions that the model may call.
        action_format: The name of the format of replies, if the environment has one.
    """

    task: EnvTask
    place: str
    system: list[dict[str, Any]]
    observations: list[str] = field(default_factory=list)
    other: Case | None = None
    episodes: list[PlayedEpisode] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    action_format: str | None = None


def read_rows(view: View) -> Iterator[Finding]:
    """Read the rows into the view, and check whether verl and the bridge can read them."""
    try:
        importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        yield skipped("data", "pyarrow is not installed here: not read", "pip install 'pyarrow>=14'")
        return
    minimum = {"train": view.number("data.train_batch_size", 1024), "val": 1}
    for part, needed in minimum.items():
        if not view.paths(f"data.{part}_files"):
            yield problem("data", f"no data.{part}_files are set", f"set data.{part}_files to a parquet file")
            continue
        error = view.load_rows(part)
        if error:
            yield problem("data", error, "write it; see README.md")
        else:
            yield from _check_rows(view, part, view.rows[part], needed)


def _check_rows(view: View, part: str, rows: list[dict[str, Any]], needed: int) -> Iterator[Finding]:
    if len(rows) < needed:
        yield problem(
            "data",
            f"{part} has {len(rows)} rows, and verl drops incomplete batches of {needed}: nothing is left",
            "write more rows, or set a smaller data.train_batch_size",
        )
    for index, row in enumerate(rows):
        wrong = _row_error(row)
        if wrong:
            yield problem(
                "data",
                f"{view.location(part, index)}: {wrong}",
                "write it again; see docs/training/recipes.md",
            )
            return
    if len(rows) >= needed:
        yield ok("data", f"{part} has {len(rows)} rows with all required columns")


def _row_error(row: Mapping[str, Any]) -> str | None:
    missing = [column for column in _COLUMNS if row.get(column) is None]
    if missing:
        return f"there is no {missing[0]}"
    prompt, extra, scored = row["prompt"], row["extra_info"], row["reward_model"]
    messages = prompt if isinstance(prompt, list) else []
    texts = all(isinstance(m, Mapping) and _is_text(m.get("role"), m.get("content")) for m in messages)
    rules = {
        f"prompt should be a list of messages with role and content as text, not {prompt!r:.80}": (
            bool(messages) and texts
        ),
        f"agent_name should be text, not {row['agent_name']!r:.80}": _is_text(row["agent_name"]),
        "reward_model should hold a ground_truth, if only an empty one": (
            isinstance(scored, Mapping) and scored.get("ground_truth") is not None
        ),
        "extra_info should hold interaction_kwargs": (
            isinstance(extra, Mapping) and isinstance(extra.get("interaction_kwargs"), Mapping)
        ),
    }
    return next((wrong for wrong, fits in rules.items() if not fits), None)


def _is_text(*values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def check_split_leakage(view: View) -> Iterator[Finding]:
    """Check whether tasks of the validation split are also trained on."""
    if not {"train", "val"} <= set(view.rows):
        return
    keys = {part: [_key(row) for row in rows] for part, rows in view.rows.items()}
    both = set(keys["train"]) & set(keys["val"]) - {None}
    drawn = sum(key is None for part in keys.values() for key in part)
    if both:
        yield problem(
            "validation",
            f"{len(both)} of the tasks in val are in train too, such as {min(map(str, both)):.200}",
            "split the tasks again: success on trained tasks does not measure generalization",
        )
    elif drawn:
        yield warning(
            "validation",
            f"{drawn} rows have neither seed nor reset_options: the environment chooses their tasks",
            "give each row a seed, or the options of its reset",
        )
    else:
        yield ok("validation", "no task is in both train and val")


def _key(row: Mapping[str, Any]) -> str | None:
    try:
        task = EnvTask.of(row, env_id="unnamed")
    except (ValueError, AttributeError):
        return None
    if task.seed is None and not task.options:
        return None
    return json.dumps([task.env_id, task.options, task.seed], sort_keys=True, default=str)


def check_shares(view: View) -> Iterator[Finding]:
    """Report the rows of each environment, if there are several."""
    of = {part: _tasks_of(view, rows) for part, rows in view.rows.items()}
    trained = of.get("train", {})
    if len(trained) < 2:  # noqa: PLR2004 - one has all of them
        return
    for part, tasks in of.items():
        total = sum(map(len, tasks.values()))
        parts = [
            f"{env_id} {len(keys) / total:.1%} ({_times(keys)})" for env_id, keys in sorted(tasks.items())
        ]
        yield ok("shares", f"{part}: {', '.join(parts)}")
    missing = sorted(set(trained) - set(of["val"])) if "val" in of else []
    if missing:
        yield warning(
            "shares",
            f"val has no task of {', '.join(missing)}: learning there is not measured",
            "write tasks of each environment into val",
        )


def _tasks_of(view: View, rows: Iterable[Mapping[str, Any]]) -> dict[str, list[str | None]]:
    """Return the tasks of rows by the id of their environment; invalid rows are reported elsewhere."""
    found: dict[str, list[str | None]] = defaultdict(list)
    env_id = view.arguments().get("env_id")
    for row in rows:
        with contextlib.suppress(ValueError, AttributeError):
            found[EnvTask.of(row, env_id=env_id).env_id].append(_key(row))
    return found


def _times(keys: list[str | None]) -> str:
    """Return the number of rows and of different tasks as text."""
    counts = Counter(key for key in keys if key is not None)
    again = f" of {len(counts)} tasks" if counts and len(counts) < len(keys) else ""
    return f"{len(keys)} row{'s' if len(keys) > 1 else ''}{again}"


def play_first_turns(
    view: View,
    timeout: float,
    players: Callable[[str], Sequence[Callable[[], ReplySource]]] | None = None,
) -> tuple[list[Finding], list[FirstPrompt]]:
    """Play a task of each environment, as the loop would.

    Args:
        view: The folder, with its rows.
        timeout: Seconds for each call of an environment.
        players: Returns the makers of players for whole episodes of an environment by its id.
    """
    given = view.arguments()
    names = ("env_id", "env_kwargs", "reset_options", "isolate", "success_at")
    defaults = {name: given.get(name) for name in names}
    findings: list[Finding] = []
    starts: dict[str, FirstPrompt] = {}
    for part, rows in view.rows.items():
        for index, row in enumerate(rows):
            try:
                task = EnvTask.of(row, **defaults)
            except (ValueError, AttributeError) as error:
                text = f"{view.location(part, index)}: {error}"
                findings.append(problem("environment", text, "write the row again"))
                break
            prompt = row.get("prompt")
            messages = prompt if isinstance(prompt, list) else []
            known = [message for message in messages if isinstance(message, Mapping) and "content" in message]
            shown = [dict(message) for message in drop_blank_system(known)]  # as in the agent loop
            start = FirstPrompt(task, view.location(part, index), shown)
            roles = [message.get("role") for message in known]
            key = json.dumps([task.env_id, task.env_kwargs, roles], sort_keys=True, default=str)
            if key not in starts or _characters(start) > _characters(starts[key]):
                start.other = Case(starts[key].place, starts[key].task) if key in starts else None
                starts[key] = start
            elif starts[key].other is None and task != starts[key].task:
                starts[key].other = Case(start.place, task)
    chosen = _interleave(starts.values())[:MAX_STARTS]
    if len(chosen) < len(starts):
        left = f"{len(starts) - len(chosen)} of {len(starts)} environments with different arguments"
        findings.append(skipped("environment", f"{left} were not started"))
    if chosen:
        findings += asyncio.run(_play(chosen, timeout, players or (lambda _: ()), view.turn_limit()))
    return findings, [start for start in chosen if start.observations]


def _interleave(starts: Iterable[FirstPrompt]) -> list[FirstPrompt]:
    """Return the first of each environment, then the second of each, and so on."""
    of: dict[str, list[FirstPrompt]] = defaultdict(list)
    for start in starts:
        of[start.task.env_id].append(start)
    rounds = itertools.zip_longest(*of.values())
    return [start for each in rounds for start in each if start is not None]


def _characters(start: FirstPrompt) -> int:
    return sum(len(str(message["content"])) for message in start.system)


async def _play(
    starts: list[FirstPrompt],
    timeout: float,
    players: Callable[[str], Sequence[Callable[[], ReplySource]]],
    max_turns: int | None,
) -> list[Finding]:
    """Play the task of each start; the first of each environment also beside another one, and to its end."""
    findings: list[Finding] = []
    examined: set[str] = set()
    try:
        for start in starts:
            first = start.task.env_id not in examined
            examined.add(start.task.env_id)
            case = Case(start.place, start.task)
            found, trial = await examine(case, timeout, other=start.other, at_once=first)
            start.observations, start.tools = trial.observations, trial.tools
            start.action_format = trial.action_format
            findings += found
            if first and not trial.fault and all(finding.status != "problem" for finding in found):
                cases = [case, *([start.other] if start.other else [])]
                found, start.episodes = await play_whole(
                    cases, players(start.task.env_id), timeout=timeout, max_turns=max_turns
                )
                findings += found
    finally:
        await asyncio.to_thread(close_all)
    return findings
