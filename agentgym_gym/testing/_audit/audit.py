"""Runs the checks of an audit within a time budget, and keeps their results."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym._text import redact
from agentgym_gym.errors import BadFile, BadOption, MissingExtra
from agentgym_gym.rollout._check_results import fault_of
from agentgym_gym.testing._audit.findings import Defect, NotApplicable, PropertyResult
from agentgym_gym.testing._audit.properties import PROPERTIES, Property
from agentgym_gym.testing._audit.report import Audit
from agentgym_gym.testing._audit.setup import subject_of

if TYPE_CHECKING:
    from agentgym_gym.evaluate import Agent
    from agentgym_gym.testing._audit.findings import Checked
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["BUDGET", "RESULTS", "audit"]

BUDGET = 100.0
"""Seconds of an audit, by default."""

THOROUGH = 1800.0
"""Seconds of a thorough audit, by default."""

RESULTS = "audit.jsonl"
"""The file with the results of an audit, in its folder."""

_EXPLORING = 0.05
"""The share of the budget for the episodes that several properties use."""

_GRACE = 3.0
"""A check is stopped after this multiple of its share of the time, plus the timeout of a call."""


def audit(
    env: str | Callable[[], Any],
    env_kwargs: Mapping[str, Any] | None = None,
    *,
    solver: str | Callable[[], Agent] | None = None,
    actions: Sequence[str] = (),
    tasks: str | Sequence[int] | None = None,
    split: str | None = None,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    budget: float | None = None,
    thorough: bool = False,
    seed: int = 0,
    timeout: float = 30.0,
    folder: Path | None = None,
    resume: bool = False,
    on_result: Callable[[PropertyResult], object] | None = None,
) -> Audit:
    """Check whether an environment is fit to train and to test on.

    Args:
        env: The name or id of an environment such as ``"TextCraft"`` or ``"my_module:my/Env-v0"``, the URL of
            a server with AgentGym's protocol, or a function that makes an environment.
        env_kwargs: Arguments of ``gymnasium.make``, such as ``server`` and ``headers``; only with a name, an
            id or a URL. No file or program has the headers.
        solver: Makes an agent that plays known solutions, or ``"oracle"``, ``"replay:PATH"`` of a run or
            ``"MODULE:NAME"``; by default the environment's oracle, if any.
        actions: Actions to draw from; by default the environment's own.
        tasks: Numbers of the tasks to play, or a text such as ``"0:50"``; by default some of each split, or
            seeds.
        split: The split of the tasks; by default all.
        only: Names of the properties to check; empty for all.
        skip: Names of properties not to check.
        budget: Time in seconds; by default 100, and 1,800 if thorough.
        thorough: Whether to play all tasks, and more episodes of each property.
        seed: Seed of everything that is drawn.
        timeout: Timeout of each call of the environment, in seconds.
        folder: Folder that keeps the results; by default they are not kept.
        resume: Whether to keep the results in the folder, and check the other properties.
        on_result: Called with the result of each property as soon as it is known.

    Raises:
        MissingExtra: hypothesis is not installed.
        UnknownEnvironment: The environment does not exist.
        BadOption: An argument is invalid, or the environment cannot be created.

    Example:
        In a test::

            from agentgym_gym.testing import audit

            def test_my_env():
                audit("TextCraft", only=["replay"], budget=5).check()
    """
    if importlib.util.find_spec("hypothesis") is None:
        raise MissingExtra("An audit", extra="testing", module="hypothesis")
    properties = _selected(only, skip)
    if budget is None:
        budget = THOROUGH if thorough else BUDGET
    if not 0 < budget < math.inf:
        raise BadOption("budget", budget, "a positive number of seconds")
    subject = subject_of(
        env,
        env_kwargs,
        solver=solver,
        actions=actions,
        tasks=tasks,
        split=split,
        seed=seed,
        thorough=thorough,
        timeout=timeout,
    )
    about = {
        "env_kwargs": _recorded(env_kwargs or {}),
        "tasks": list(subject.tasks),
        "seed": seed,
        "thorough": thorough,
        "budget": budget,
    }
    kept = _Kept(folder, {"env_id": subject.facts.env_id, **about}, resume=resume)
    began = time.monotonic()
    work = _check_all(subject, properties, began + budget, kept, on_result)
    results = _run(work)
    return Audit(subject.facts.env_id, results, time.monotonic() - began, about)


def _recorded(env_kwargs: Mapping[str, Any]) -> Any:
    """Return arguments as JSON values, without headers and passwords."""
    texts = {
        name: redact(value) if name == "server" and isinstance(value, str) else value
        for name, value in env_kwargs.items()
        if name != "headers"
    }
    return json.loads(json.dumps(texts, default=str))


def _run(work: Any) -> Any:
    """Run a coroutine, in a thread if this one has a running event loop."""
    if asyncio._get_running_loop() is None:  # noqa: SLF001 - the public function raises without one
        return asyncio.run(work)
    with ThreadPoolExecutor(1, thread_name_prefix="agentgym-audit") as threads:
        return threads.submit(asyncio.run, work).result()


def _selected(only: Collection[str], skip: Collection[str]) -> list[Property]:
    names = [each.name for each in PROPERTIES]
    for argument, given in (("only", only), ("skip", skip)):
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise BadOption(argument, unknown[0], f"one of {', '.join(names)}")
    return [each for each in PROPERTIES if (not only or each.name in only) and each.name not in skip]


async def _check_all(
    subject: Subject,
    properties: Sequence[Property],
    ends: float,
    kept: _Kept,
    on_result: Callable[[PropertyResult], object] | None,
) -> tuple[PropertyResult, ...]:
    results = []
    left = [each for each in properties if each.name not in kept.results]
    subject.deadline = time.monotonic() + max(0.0, ends - time.monotonic()) * _EXPLORING
    with contextlib.suppress(Exception):  # an environment may raise anything; the checks report it
        await asyncio.wait_for(subject.explored(failed=True), subject.seconds_left + subject.timeout)
    for each in properties:
        result = kept.results.get(each.name)
        if result is None:
            share = each.share / sum(other.share for other in left)
            left.remove(each)
            result = await _check(subject, each, (ends - time.monotonic()) * share)
            kept.add(result)
        results.append(result)
        if result.status == "failed":
            subject.failed.add(each.name)
        if on_result is not None:
            on_result(result)
    return tuple(results)


async def _check(subject: Subject, of: Property, seconds: float) -> PropertyResult:
    began = time.monotonic()
    if seconds <= 0:
        return PropertyResult(of.name, of.severity, "skipped", "the time budget is used: raise --budget")
    subject.deadline = began + seconds
    try:
        checked = await asyncio.wait_for(of.check(subject), seconds * _GRACE + subject.timeout)
    except NotApplicable as error:
        reason = str(error)
    except (asyncio.TimeoutError, TimeoutError):
        reason = f"the check did not finish in {time.monotonic() - began:.0f} s"
    except Exception as error:  # noqa: BLE001 - an environment may raise anything
        fault = fault_of(error)
        reason = f"the check could not go on: {fault['kind']}: {fault['message']}"
    else:
        return _result(of, checked, time.monotonic() - began)
    return PropertyResult(of.name, of.severity, "skipped", reason, seconds=time.monotonic() - began)


def _result(of: Property, checked: Checked, seconds: float) -> PropertyResult:
    if checked.measured.get("episodes") == 0 and not checked.defects:
        reason = checked.note or "there was no episode to check, or no time: raise --budget"
        return PropertyResult(of.name, of.severity, "skipped", reason, seconds=seconds)
    failed = any(not defect.known for defect in checked.defects)
    return PropertyResult(
        of.name,
        of.severity,
        "failed" if failed else "passed",
        checked.note,
        tuple(checked.defects),
        checked.measured,
        seconds,
    )


class _Kept:
    """The results in a folder.

    Args:
        folder: The folder; None to keep nothing.
        about: The environment and the settings.
        resume: Whether to read the results of an earlier audit.

    Raises:
        BadOption: The folder has the results of another audit, or of this one and ``resume`` is false.
        BadFile: The file cannot be read.
    """

    def __init__(self, folder: Path | None, about: Mapping[str, Any], *, resume: bool) -> None:
        self.results: dict[str, PropertyResult] = {}
        self._path = None if folder is None else folder / RESULTS
        if self._path is None:
            if resume:
                raise BadOption("resume", problem="needs the folder of the earlier audit")
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._read(self._path, about, resume=resume)
        else:
            self._path.write_text(json.dumps(about) + "\n", encoding="utf-8")

    def add(self, result: PropertyResult) -> None:
        """Keep a result."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(result)) + "\n")

    def _read(self, path: Path, about: Mapping[str, Any], *, resume: bool) -> None:
        try:
            first, *lines = path.read_text(encoding="utf-8").splitlines()
            earlier, results = json.loads(first), [_from_json(json.loads(line)) for line in lines if line]
        except (ValueError, TypeError, KeyError) as error:
            raise BadFile(f"{path} is not the file of an audit: {error}", path=path) from error
        if not resume:
            raise BadOption(f"{path.parent} has an audit: give --resume, or another folder")
        if {**earlier, "budget": 0} != {**about, "budget": 0}:
            raise BadOption(f"{path.parent} has an audit with other settings: give another folder")
        self.results = {each.name: each for each in results if each.status != "skipped"}


def _from_json(entry: dict[str, Any]) -> PropertyResult:
    defects = tuple(Defect(**{**defect, "tasks": tuple(defect["tasks"])}) for defect in entry.pop("defects"))
    return PropertyResult(**entry, defects=defects)
