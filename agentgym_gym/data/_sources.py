"""Read trajectories from runs, AgentGym files or rows for fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agentgym_gym.catalogue import find
from agentgym_gym.data._agenttraj import read_agenttraj
from agentgym_gym.data._sft import read_sft
from agentgym_gym.data._trajectories import Message, RequestCounts, Role, Trajectory, as_context
from agentgym_gym.errors import BadFile, UnknownEnvironment
from agentgym_gym.evaluate import ChatPrompt, History, find_runs, read_run
from agentgym_gym.evaluate._runs import EPISODES

if TYPE_CHECKING:
    from agentgym_gym.evaluate import EpisodeRecord, RunResult, StepRecord

__all__ = ["read_trajectories"]


def read_trajectories(path: Path) -> list[Trajectory]:
    """Return the trajectories at a path, in order.

    Args:
        path: A folder with one or several runs, or an ``episodes.jsonl``; an AgentTraj file (``.json`` or
            ``.jsonl``), or a folder of them; a ``.parquet`` file of ``agentgym data sft``, or a folder of
            them.

    Raises:
        BadOption: The path does not exist, has no trajectories, or a file cannot be read. The message names
            the file and the entry.
        MissingExtra: The files are parquet, and pyarrow is not installed.
    """
    if not path.exists():
        raise BadFile(f"{path} does not exist", path=path)
    if path.name == EPISODES or (path.is_dir() and next(path.rglob(EPISODES), None) is not None):
        return [each for folder in find_runs(path) for each in _of_run(read_run(folder))]
    if path.suffix == ".parquet" or (path.is_dir() and next(path.glob("*.parquet"), None) is not None):
        return read_sft(path)
    if path.is_dir() and next(path.glob("*.json"), None) is None:
        raise BadFile(
            f"{path} contains no trajectories: it has no {EPISODES}, also in its subfolders, and no .json or "
            ".parquet file",
            path=path,
        )
    return read_agenttraj(path)


def _of_run(run: RunResult) -> list[Trajectory]:
    """Return the episodes of a run as trajectories, including faulted ones.

    The first message is the system prompt of the run, which a custom prompt may have changed. The examples of
    a custom prompt follow. Replies have ``loss=True``, except truncated replies, which were never executed.
    Function calls, and reasoning that the model server returned separately from the reply, are in ``extra``.

    Args:
        run: The run.

    Raises:
        BadOption: The run does not record the system prompt of the agent.
    """
    head = tuple(_head(run))
    action_format = _action_format(run)
    return [
        Trajectory(
            record.env_id,
            record.task_id,
            (*head, *_messages(record)),
            score=None if record.score is None else float(record.score),
            success=record.success,
            action_format=action_format,
            fault=_fault(record),
            extra={"agent": record.agent, "sample": record.sample},
            source=f"{run.path}: task {record.task_id}, sample {record.sample}",
            counts=_counts(run, record),
        )
        for record in run.records
    ]


def _head(run: RunResult) -> Iterator[Message]:
    if "system_prompt" not in run.facts:
        raise BadFile(
            f"{run.path} has no system prompt of its agent (run.system_prompt in summary.json), so its "
            "episodes cannot be used for training; play them again",
            path=run.path,
        )
    recorded = run.facts.get("agent_settings")
    settings = recorded if isinstance(recorded, dict) else {}
    recorded_prompt = settings.get("prompt")
    prompt = recorded_prompt if isinstance(recorded_prompt, dict) else {}
    chat_prompt = ChatPrompt(prompt.get("system"), tuple(prompt.get("examples") or ()))
    messages = chat_prompt.messages(settings.get("system_prompt", run.facts["system_prompt"]))
    for each in messages:
        message = Message(cast("Role", each["role"]), each["content"])
        yield as_context(message) if message.role == "assistant" else message


def _counts(run: RunResult, record: EpisodeRecord) -> RequestCounts | None:
    """Return the token counts of an episode's requests; None if one is unknown, or they have reasoning."""
    settings = run.facts.get("agent_settings")
    settings = settings if isinstance(settings, dict) else {}
    history, tokens = settings.get("history"), [step.get("prompt_tokens") for step in record.steps]
    if not isinstance(history, dict) or settings.get("keep_reasoning") or not all(tokens):
        return None
    return RequestCounts(str(History(**history)), tuple(map(int, filter(None, tokens))))


def _messages(record: EpisodeRecord) -> Iterator[Message]:
    replies = 0
    for message in record.messages:
        role = cast("Role", message["role"])
        if role != "assistant":
            yield Message(role, message["content"])
            continue
        step = record.steps[replies] if replies < len(record.steps) else None
        replies += 1
        played = replies <= record.turns  # not a truncated reply, or one that gives up
        yield Message(role, message["content"], played, _extra(step or {}))


def _extra(step: StepRecord | Mapping[str, Any]) -> dict[str, Any]:
    names = {"tool_calls": "tool_calls", "reasoning": "reasoning_content"}
    return {name: step[key] for key, name in names.items() if step.get(key)}  # type: ignore[literal-required]


def _action_format(run: RunResult) -> str | None:
    options = run.facts.get("options")
    options = options if isinstance(options, dict) else {}
    if options.get("parser") == "agentgym":
        return "agentgym"
    action_format = options.get("action_format")
    if isinstance(action_format, str):
        return action_format
    try:
        find(run.env_id)
    except UnknownEnvironment:
        return None
    return "react" if options else None  # the default format


def _fault(record: EpisodeRecord) -> str | None:
    fault = record.fault or record.agent_fault
    return None if fault is None else fault.get("kind", "a fault")
