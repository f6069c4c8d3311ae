"""Whether playing changes what it should not: the state of the process, and values that were returned."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agentgym_gym.testing._audit.episodes import ActionSequence, shown_value
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.processes import pickled_maker
from agentgym_gym.testing._audit.programs import actions_text, program, reset_call
from agentgym_gym.testing._audit.shrinking import Case, shrink
from agentgym_gym.testing._audit.subject import TextMaker, copied
from agentgym_gym.testing._audit.watching import STATES, WatchedMaker

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.subject import Subject

__all__ = ["check_global_state", "check_snapshots"]

_EPISODES = 6
_MOST_DEFECTS = 3

_STATE_ADVICE = {
    "the global generator of random": "draw from self.np_random, or from a random.Random of the instance",
    "the global generator of numpy": "draw from self.np_random",
    "the working directory": "use absolute paths instead of os.chdir",
    "os.environ": "pass settings as arguments instead of variables",
    "the signal handlers": "install no signal handler in an environment",
    "warnings.filters": "use warnings.catch_warnings around the call that warns",
    "the level of the root logger": "set the level of a logger of the package, not of the root logger",
    "sys.path": "install the package instead of inserting its folder into sys.path",
}


async def check_global_state(subject: Subject) -> Checked:
    """Compare the global state of a process of its own before and after each call."""
    sequence = max(
        (trace.sequence for trace in (await subject.explored())[:_EPISODES] if not trace.faulted),
        key=lambda each: len(each.actions),
        default=None,
    )
    if sequence is None:
        raise NotApplicable("no episode is free of faults and timeouts")
    option = subject.facts.task_option
    reset: dict[str, Any] = (
        {"seed": sequence.task} if option is None else {"options": {option: sequence.task}}
    )
    maker = WatchedMaker(pickled_maker(subject), reset, sequence.actions, *subject.origin)
    try:
        async with subject.open(process=True, make=maker) as env:
            await env.play(sequence)
            changes = env.env.get_wrapper_attr("changes")
    except Exception as error:
        raise NotApplicable(f"another process cannot make the environment: {error}") from error
    defects = [await _changed(subject, sequence, *change) for change in changes[:_MOST_DEFECTS]]
    return Checked(defects, {"calls": len(sequence.actions) + 2})


async def _changed(subject: Subject, sequence: ActionSequence, name: str, value: str, call: int) -> Defect:
    call_name = ("the constructor", "reset")[call] if call < 2 else f"step {call - 1}"  # noqa: PLR2004
    played = sequence.first(max(0, call - 1))
    before, made = f"before = {STATES[name]}", "env = make()"
    compared = "sys.path[:len(before)]" if name == "sys.path" else STATES[name]
    lines = [before, made] if call == 0 else [made, before]
    if call > 0:
        lines.append(f"env.{reset_call(subject, played.task)}")
    if played.actions:
        lines.append(f"for action in {actions_text(subject, played)}: env.step(action)")
    lines.append(f"assert {compared} == before, {f'playing changes {name}'!r}")
    module = STATES[name].removeprefix("str(").removeprefix("dict(").removeprefix("list(").removeprefix("[")
    return Defect(
        f"{call_name} changes {name}{f': {value}' if value else ''}",
        _STATE_ADVICE[name],
        (sequence.task,),
        await program(subject, lines, first=[f"import {module.split('.')[0]}"]),
    )


@dataclass(frozen=True)
class _Kept:
    """A returned observation or info.

    Attributes:
        where: Its name and the call that returned it.
        value: The object.
        copy: A copy of it.
        plain: Its values when it was returned.
    """

    where: str
    value: Any
    copy: Any
    plain: Any

    @property
    def change(self) -> str:
        """The values then and now in a sentence, or an empty text."""
        if _plain(self.value) == self.plain:
            return ""
        then, now = self.copy, self.value
        if isinstance(then, Mapping) and isinstance(now, Mapping):
            keys = [key for key in {**then, **now} if _plain(then.get(key)) != _plain(now.get(key))]
            then, now = ({key: each[key] for key in keys if key in each} for each in (then, now))
        return f"{self.where} was {shown_value(then)} and is then {shown_value(now)}"


async def check_snapshots(subject: Subject) -> Checked:
    """Keep what is returned, and compare it after later steps, the next reset and steps of another copy."""
    played, defects = 0, list[Defect]()
    alone = "copies" in subject.failed or (subject.facts.capacity or 2) < 2  # noqa: PLR2004
    explored = [trace.sequence for trace in await subject.explored() if not trace.faulted]
    if not explored:
        raise NotApplicable("no episode is free of faults and timeouts")
    for event in ("later steps", "the next reset", "steps of another copy")[: 2 if alone else 3]:

        async def fails(case: Case, event: str = event) -> str:
            return await _kept_change(subject, case[0], event)

        for sequence in explored[:_EPISODES]:
            if subject.enough(played) or defects:
                break
            played += 1
            if not await fails((sequence,)):
                continue
            (case,), text = await shrink((sequence,), fails, seconds=max(1.0, subject.seconds_left / 2))
            if text:
                defects.append(await _changing(subject, case, text, event))
                break
    return Checked(defects, {"episodes": played})


async def _kept_change(subject: Subject, sequence: ActionSequence, event: str) -> str:
    kept: list[_Kept] = []
    make = subject.make_plain if subject.source.adapted else subject.make
    maker = TextMaker(lambda: _recorded(make(), kept), subject.source.adapted)
    async with subject.open(make=maker) as env:
        await env.play(sequence)
        if event != "later steps":  # only what the event changes
            kept[:] = [replace(each, copy=copied(each.value), plain=_plain(each.value)) for each in kept]
        watched = list(kept)
        if event == "the next reset":
            await env.begin(sequence.task)
        elif event == "steps of another copy":
            with contextlib.suppress(Exception):  # `copies` reports that it cannot be made
                async with subject.open() as other:
                    await other.play(sequence)
        text = next(filter(None, (each.change for each in watched)), "")
    return f"{text}, after {event}" if text else ""


async def _changing(subject: Subject, sequence: ActionSequence, text: str, event: str) -> Defect:
    reset, actions = reset_call(subject, sequence.task), actions_text(subject, sequence)
    play = f"for action in {actions}: kept.append(env.step(action)), texts.append(str(kept[-1]))"
    later = {
        "later steps": [],
        "the next reset": [f"env.{reset}"],
        "steps of another copy": [
            "other = make()",
            f"other.{reset}",
            f"for action in {actions}: other.step(action)",
        ],
    }[event]
    lines = [
        "env = make()",
        f"kept = [env.{reset}]",
        "texts = [str(kept[0])]",
        *([play] if sequence.actions else []),
        *later,
        "assert [str(each) for each in kept] == texts, 'a returned observation or info changes later'",
    ]
    return Defect(
        text,
        "return a new object or a copy in each call, such as self._grid.copy() or dict(self._info)",
        (sequence.task,),
        await program(subject, lines),
    )


def _recorded(env: Any, kept: list[_Kept]) -> Any:
    """Let an environment note what it returns."""

    def note(result: Any, call: str) -> Any:
        if isinstance(result, tuple) and result:
            parts = {"the observation": result[0], "the info": result[-1]}
            kept.extend(
                _Kept(f"{name} of {call}", each, copied(each), _plain(each)) for name, each in parts.items()
            )
        return result

    def recording(call: Callable[..., Any], name: Callable[[], str]) -> Callable[..., Any]:
        def play(*args: Any, **kwargs: Any) -> Any:
            return note(call(*args, **kwargs), name())

        async def play_awaited(*args: Any, **kwargs: Any) -> Any:
            return note(await call(*args, **kwargs), name())

        return play_awaited if inspect.iscoroutinefunction(call) else play

    try:
        env.reset = recording(env.reset, lambda: "the reset")
        env.step = recording(env.step, lambda: f"turn {len(kept) // 2}")
    except AttributeError as error:
        raise NotApplicable("its methods cannot be replaced") from error
    return env


def _plain(value: Any, depth: int = 0) -> Any:
    """Return the values of an object in a form that can be compared; None for other objects."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, str(value.dtype), value.tobytes()
    if value is None or isinstance(value, (str, bytes, int, float, complex, np.generic)):
        return repr(value)
    if depth > 8 or not isinstance(value, Collection):  # noqa: PLR2004 - it may contain itself
        return None
    try:
        if isinstance(value, Mapping):
            return {repr(key): _plain(item, depth + 1) for key, item in value.items()}
        plain = [_plain(item, depth + 1) for item in value]
    except Exception:  # noqa: BLE001 - a collection of any library
        return None
    return sorted(map(repr, plain)) if isinstance(value, AbstractSet) else plain
