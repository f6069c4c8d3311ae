"""Whether an environment keeps the contract of `gymnasium.Env`: types, rewards, ends, resets and closes."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from agentgym_gym.rollout._check_results import flag, number
from agentgym_gym.rollout._env_facts import attribute_of
from agentgym_gym.testing._audit.bulk import action_pool, fault_note, many_tasks, play_at_once
from agentgym_gym.testing._audit.episodes import ActionSequence, Trace, shown_value
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.limits import declared_limit
from agentgym_gym.testing._audit.programs import actions_text, program, reset_call
from agentgym_gym.testing._audit.shrinking import Case, shrink
from agentgym_gym.testing._audit.subject import reset_arguments

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.subject import OpenEnv, Subject

__all__ = ["check_close", "check_ends", "check_interface", "check_reset", "check_rewards"]

_MOST_EPISODES = 2000
"""Episodes whose rewards are checked."""

_BATCH_SECONDS = 0.25

_NO_LIMIT_TURNS = 2000
"""Turns after which an episode without a declared limit counts as endless."""

_AFTER_END = 3
"""Steps after the end of an episode."""


# --- interface ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _WrongValue:
    """A returned value that breaks the contract.

    Attributes:
        kind: Which value.
        text: The violation in words, after "reset" or "step".
        condition: The Python condition on `answer` that it violates.
    """

    kind: str
    text: str
    condition: str


_INTERFACE_ADVICE = {
    "tuple": "return (observation, info) from reset, and (observation, reward, terminated, truncated, info) "
    "from step",
    "info": "return a dict as the info, an empty one if there is nothing to report",
    "observation": "return observations that observation_space contains, or declare the space that they have",
    "reward": "return the reward as a float",
    "terminated": "return terminated as a bool",
    "truncated": "return truncated as a bool",
}


async def check_interface(subject: Subject) -> Checked:
    """Check the types of all returned values, and run gymnasium's own checker."""
    traces = [trace for trace in await subject.explored(failed=True) if not trace.timed_out]
    found: dict[str, Defect] = {}
    notes: list[str] = []
    played = 0
    async with subject.open(make=subject.make_plain) as env:
        for trace in traces:
            if subject.enough(played) or len(found) == 3:  # noqa: PLR2004
                break
            played += 1
            await _check_values(subject, env, trace, found)
        space = attribute_of(env.env, "observation_space")
        if isinstance(space, spaces.Text) and any(
            isinstance(trace.observation, str) and trace.observation not in space for trace in traces
        ):
            notes.append("observations have characters, or a length, that observation_space does not contain")
    if not found:
        async with subject.open(make=subject.make_plain) as env:
            defect, note = await _gymnasium_defect(subject, env)
            if defect is not None:
                found["check_env"] = defect
            notes += [note] if note else []
    return Checked(list(found.values()), {"episodes": played}, "; ".join(notes))


async def _check_values(subject: Subject, env: OpenEnv, trace: Trace, found: dict[str, Defect]) -> None:
    space = attribute_of(_plain(env.env), "observation_space")
    actions: list[str] = []

    try:
        answer = await env.run(lambda one: _plain(one).reset(**reset_arguments(subject.facts, trace.task)))
        wrong = list(_wrong_reset(answer, space))
        for action in trace.sequence.actions:
            if wrong:
                break
            native = subject.native(action)
            actions.append(action)
            answer = await env.run(lambda one, native=native: _plain(one).step(native))  # type: ignore[misc]
            wrong = list(_wrong_step(answer, space))
            if wrong or answer[2] or answer[3]:
                break
    except Exception:  # noqa: BLE001 - `texts` and `reset` report exceptions
        return
    for each in wrong:
        if each.kind not in found:
            found[each.kind] = await _wrong_value_defect(subject, trace.task, actions, each)


def _plain(env: Any) -> Any:
    """Return an environment without gymnasium's own checks, which expect values of the right types."""
    while isinstance(env, (OrderEnforcing, PassiveEnvChecker, TimeLimit)):
        env = env.env
    return env


def _way_to_plain(make: Callable[[], Any]) -> str:
    """Return the attributes that lead from an environment to `_plain` of it, for a program."""
    env, way = make(), ""
    try:
        plain, unwrapped = _plain(env), getattr(env, "unwrapped", None)
        while env is not plain:
            env, way = env.env, f"{way}.env"
    finally:
        env.close()
    return ".unwrapped" if way and plain is unwrapped else way


def _wrong_reset(answer: Any, space: Any) -> Iterator[_WrongValue]:
    if not isinstance(answer, tuple) or len(answer) != 2:  # noqa: PLR2004
        text = f"returns {shown_value(answer)} instead of an observation and an info"
        yield _WrongValue("tuple", text, "isinstance(answer, tuple) and len(answer) == 2")
        return
    yield from _wrong_parts(answer, space)


def _wrong_step(answer: Any, space: Any) -> Iterator[_WrongValue]:
    if not isinstance(answer, tuple) or len(answer) != 5:  # noqa: PLR2004
        size = f"{len(answer)} values" if isinstance(answer, tuple) else shown_value(answer)
        yield _WrongValue(
            "tuple", f"returns {size} instead of 5 values", "isinstance(answer, tuple) and len(answer) == 5"
        )
        return
    try:
        number("reward", answer[1])
    except (TypeError, OverflowError):
        text = f"returns the reward {_typed(answer[1])}, which is not a number"
        yield _WrongValue("reward", text, "hasattr(answer[1], 'real')")
    for at, name in ((2, "terminated"), (3, "truncated")):
        try:
            flag(name, answer[at])
        except TypeError:
            text = f"returns {_typed(answer[at])} as {name}, which is not a bool"
            yield _WrongValue(name, text, f"type(answer[{at}]).__name__ in ('bool', 'bool_')")
    yield from _wrong_parts(answer, space)


def _wrong_parts(answer: tuple[Any, ...], space: Any) -> Iterator[_WrongValue]:
    if not isinstance(answer[-1], Mapping):
        text = f"returns {_typed(answer[-1])} as the info, which is not a dict"
        yield _WrongValue("info", text, "isinstance(answer[-1], dict)")
    if isinstance(space, spaces.Text) and not isinstance(answer[0], str):
        text = f"returns the observation {_typed(answer[0])}, and observation_space declares text"
        yield _WrongValue("observation", text, "isinstance(answer[0], str)")
    elif isinstance(space, gymnasium.Space) and not isinstance(space, spaces.Text):
        try:
            contained = space.contains(answer[0])
        except Exception:  # noqa: BLE001 - a space of any library
            contained = False
        if not contained:
            text = f"returns the observation {_typed(answer[0])}, which is not in {shown_value(space)}"
            yield _WrongValue("observation", text, "env.observation_space.contains(answer[0])")


def _typed(value: Any) -> str:
    return f"{shown_value(value)} of type {type(value).__name__}"


async def _wrong_value_defect(
    subject: Subject, task: int, actions: Sequence[str], wrong: _WrongValue
) -> Defect:
    sequence = ActionSequence(task, tuple(actions))
    lines = [f"env = make(){_way_to_plain(subject.make_plain)}", f"answer = env.{reset_call(subject, task)}"]
    if actions:
        lines += [f"for action in {actions_text(subject, sequence)}:", "    answer = env.step(action)"]
    name = f"step in turn {len(actions)}" if actions else "reset"
    lines.append(f"assert {wrong.condition}, answer")
    return Defect(
        f"in task {task}, {name} {wrong.text}",
        _INTERFACE_ADVICE[wrong.kind],
        (task,),
        await program(subject, lines),
    )


async def _gymnasium_defect(  # noqa: PLR0911 - a reason each
    subject: Subject, env: OpenEnv
) -> tuple[Defect | None, str]:
    """Return the defect that `check_env` finds, and the reason why it was not run."""
    if subject.facts.awaited:
        return None, "gymnasium's check_env needs methods that are not coroutine functions"
    made = getattr(env.env, "unwrapped", None)
    if _plain(env.env) is not made:
        return None, "gymnasium's check_env needs an environment without wrappers of its own"
    declared = [attribute_of(made, name) for name in ("observation_space", "action_space")]
    if not isinstance(made, gymnasium.Env) or not all(isinstance(each, gymnasium.Space) for each in declared):
        return None, "gymnasium's check_env needs a gymnasium.Env with spaces"
    try:
        await env.run(lambda one: one.unwrapped.reset(seed=0))
    except Exception as error:  # noqa: BLE001 - such as options that are required
        return None, f"gymnasium's check_env needs reset(seed=0), which raises {_problem_text(error)}"
    try:
        problem = await env.run(_gymnasium_problem)
    except TimeoutError:
        return None, f"gymnasium's check_env did not finish in {subject.timeout:g} s"
    if not problem:
        return None, ""
    relax = "env.observation_space.contains = lambda value: isinstance(value, str)"
    lines = [
        "from gymnasium.utils.env_checker import check_env",
        "env, problem = make().unwrapped, None",
        *([relax] if isinstance(made.observation_space, spaces.Text) else []),
        "try:",
        "    check_env(env, skip_render_check=True, skip_close_check=True)",
        "except Exception as error:",
        "    problem = error",
        "assert problem is None, problem",
    ]
    advice = "repair it until gymnasium.utils.env_checker.check_env(env.unwrapped) passes"
    return Defect(f"gymnasium's check_env fails: {problem}", advice, (), await program(subject, lines)), ""


def _gymnasium_problem(env: Any) -> str:
    """Return the exception of `check_env`, or its warning about the seed, or an empty text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _relax(env.unwrapped)
            check_env(env.unwrapped, skip_render_check=True, skip_close_check=True)
        except Exception as error:  # noqa: BLE001 - of the checker, or of the environment
            return _problem_text(error)
    texts = [" ".join(str(each.message).split()) for each in caught]
    return next((text[:200] for text in texts if "default seed argument" in text), "")


def _relax(env: Any) -> None:
    """Let a text space contain all texts: its default has letters and digits only, and few declare others."""
    if isinstance(env.observation_space, spaces.Text):
        env.observation_space = copy.deepcopy(env.observation_space)
        env.observation_space.contains = lambda value: isinstance(value, str)


def _problem_text(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


# --- rewards -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ranges:
    reward: tuple[float, float] | None
    score: tuple[float, float] | None

    def problems(self, trace: Trace) -> Iterator[tuple[str, str]]:
        """Return the kinds of the violations of an episode, with sentences."""
        if trace.faulted:
            return
        for turn, step in enumerate(trace.transitions, 1):
            value = _number(step.reward)
            if not math.isfinite(value):
                yield "finite", f"in task {trace.task}, the reward of turn {turn} is {value}"
            elif self.reward is not None and not _within(value, self.reward):
                low, high = self.reward
                text = f"the reward of turn {turn} is {value:g}, outside of reward_range: {low:g} to {high:g}"
                yield "reward", f"in task {trace.task}, {text}"
        if self.score is not None and not _within(trace.returned, self.score):
            low, high = self.score
            text = f"the rewards of {len(trace.transitions)} turns add up to {trace.returned:g}"
            yield "score", f"in task {trace.task}, {text}, outside of score_range: {low:g} to {high:g}"


async def check_rewards(subject: Subject) -> Checked:
    """Check the rewards of many episodes: the explored ones and cheap random ones."""
    explored = [*await subject.solved(), *await subject.explored()]
    pool, rng, tasks, played = await action_pool(subject), subject.rng(2), many_tasks(subject), 0
    most = _MOST_EPISODES * (10 if subject.thorough else 1)
    found: dict[str, tuple[Trace, int]] = {}

    def look(trace: Trace) -> None:
        nonlocal played
        played += 1
        for kind, _ in ranges.problems(trace):
            found.setdefault(kind, (trace, played))

    def batch(one: Any) -> None:
        """Play episodes for a moment."""
        until = time.monotonic() + _BATCH_SECONDS
        while time.monotonic() < until and not found:
            actions = (pool[at] for at in rng.integers(len(pool), size=subject.longest))
            look(play_at_once(one, subject.facts, next(tasks), actions))

    async with subject.open() as env:
        ranges = await env.run(lambda one: _declared_ranges(one, subject))
        for trace in explored:
            look(trace)
        ends = subject.seconds_left / 3
        while not found and played < most and subject.seconds_left > ends:
            try:
                await env.run(batch)
            except Exception:  # noqa: BLE001 - a timeout; `texts` and `speed` report it
                break
    defects = [await _reward_defect(subject, ranges, kind, *found[kind]) for kind in found]
    return Checked(defects, {"episodes": played}, fault_note(explored))


def _declared_ranges(env: Any, subject: Subject) -> _Ranges:
    metadata = attribute_of(env, "metadata")
    declared = {
        name: _pair(attribute_of(env, name))
        or _pair(metadata.get(name) if isinstance(metadata, Mapping) else None)
        for name in ("reward_range", "score_range")
    }
    score = subject.environment.score_range if subject.environment is not None else declared["score_range"]
    return _Ranges(declared["reward_range"], score)


def _pair(value: Any) -> tuple[float, float] | None:
    try:
        low, high = (float(each) for each in value)
    except (TypeError, ValueError):
        return None
    return (low, high) if low <= high else None


def _number(reward: Any) -> float:
    """Return a reward as a number; 0 if it is none, which is a defect of `interface`."""
    try:
        return float(reward)
    except (TypeError, ValueError):
        return 0.0
    except OverflowError:
        return math.inf


def _within(value: float, limits: tuple[float, float]) -> bool:
    return limits[0] - 1e-6 <= value <= limits[1] + 1e-6


async def _reward_defect(subject: Subject, ranges: _Ranges, kind: str, trace: Trace, number: int) -> Defect:
    async def fails(case: Case) -> str:
        return dict(ranges.problems(await subject.play(case[0]))).get(kind, "")

    text = dict(ranges.problems(trace))[kind]
    (sequence,), shrunk = await shrink((trace.sequence,), fails, seconds=max(0.5, subject.seconds_left / 2))
    condition = {
        "finite": "all(abs(reward) < float('inf') for reward in rewards)",
        "reward": f"all({ranges.reward and ranges.reward[0]} - 1e-6 <= reward <= "
        f"{ranges.reward and ranges.reward[1]} + 1e-6 for reward in rewards)",
        "score": f"{ranges.score and ranges.score[0]} - 1e-6 <= sum(rewards) <= "
        f"{ranges.score and ranges.score[1]} + 1e-6",
    }[kind]
    play = f"rewards = [env.step(action)[1] for action in {actions_text(subject, sequence)}]"
    lines = [
        "env = make()",
        f"env.{reset_call(subject, sequence.task)}",
        play,
        f"assert {condition}, rewards",
    ]
    if not shrunk:  # it depends on the number of the episode, or on chance
        loop = [f"for _ in range({2 * number + 100}):", *lines[1:]]
        lines = [lines[0], loop[0], *(f"    {line}" for line in loop[1:])]
        text = f"after {number} episodes, {text}"
    advice = {
        "finite": "never return NaN or infinity: one such reward makes the gradient of a whole batch NaN",
        "reward": "keep rewards within reward_range, or declare the range that they have",
        "score": "keep the sum of the rewards within score_range, or declare the range that it has",
    }[kind]
    return Defect(shrunk or text, advice, (sequence.task,), await program(subject, lines))


# --- ends --------------------------------------------------------------------------------------------


async def check_ends(subject: Subject) -> Checked:
    """Step after the end of explored episodes, and look for an episode that never ends."""
    traces = (*await subject.solved(), *await subject.explored())
    explored = [trace for trace in traces if not trace.error and not trace.faulted]
    limits = _time_limits(subject)
    over = [trace for trace in explored if trace.over]
    ended = [each for each in over if each.transitions[-1].terminated or len(each.transitions) not in limits]
    found: dict[str, Defect] = {}
    played = 0
    async with subject.open() as env:
        for trace in ended:
            if subject.enough(played) or len(found) == 2:  # noqa: PLR2004
                break
            played += 1
            actions = trace.sequence.actions
            further = (actions[-1], actions[0], *(await action_pool(subject))[:1])[:_AFTER_END]
            sequence = ActionSequence(trace.task, (*actions, *further))
            for kind, _ in _after_end(await _play_on(env, sequence)):
                if kind not in found:
                    found[kind] = await _end_defect(subject, sequence, kind)
    notes = [fault_note(await subject.explored()), await _endless(subject, found, some_end=bool(over))]
    return Checked(list(found.values()), {"episodes": played}, "; ".join(filter(None, notes)))


def _time_limits(subject: Subject) -> set[int]:
    """Return the limit of gymnasium's wrapper `TimeLimit`, which does not stop later steps."""
    try:
        spec = gymnasium.spec(subject.facts.env_id)
    except gymnasium.error.Error:
        return set()
    return {spec.max_episode_steps} if spec.max_episode_steps else set()


async def _play_on(env: OpenEnv, sequence: ActionSequence) -> Trace:
    """Play all actions, also after the end."""
    trace = await env.begin(sequence.task)
    for action in sequence.actions:
        if trace.error:
            break
        trace = await env.step(action)
    return trace


def _end(trace: Trace) -> int | None:
    return next((turn for turn, step in enumerate(trace.transitions, 1) if step.ends), None)


def _after_end(trace: Trace) -> Iterator[tuple[str, str]]:
    end = _end(trace)
    for turn, step in enumerate(trace.transitions[end:] if end else (), (end or 0) + 1):
        where = f"in task {trace.task}, the episode ends in turn {end}, and turn {turn} after it"
        if step.value:
            yield "pays", f"{where} ({shown_value(step.action, 40)}) pays {step.value:g}"
        if not step.ends:
            yield (
                "lives",
                f"{where} ({shown_value(step.action, 40)}) returns neither terminated nor truncated",
            )


async def _end_defect(subject: Subject, sequence: ActionSequence, kind: str) -> Defect:
    turns = 0

    async def fails(case: Case) -> str:
        nonlocal turns
        async with subject.open() as env:
            trace = await _play_on(env, case[0])
        turns = _end(trace) or turns
        return dict(_after_end(trace)).get(kind, "")

    (sequence,), text = await shrink((sequence,), fails, seconds=max(0.5, subject.seconds_left / 3))
    await fails((sequence,))
    condition = {"pays": "not any(answer[1] for answer in", "lives": "all(any(answer[2:4]) for answer in"}[
        kind
    ]
    lines = [
        "env, answers = make(), []",
        f"env.{reset_call(subject, sequence.task)}",
        "try:",
        f"    answers.extend(env.step(action) for action in {actions_text(subject, sequence)})",
        "except Exception:",
        "    pass",
        f'assert {condition} answers[{turns}:]), f"the episode ended in turn {turns}: {{answers[{turns}:]}}"',
    ]
    advice = "in a step after the end, raise gymnasium.error.ResetNeeded, or return reward 0 and the same end"
    return Defect(text, advice, (sequence.task,), await program(subject, lines))


async def _endless(subject: Subject, found: dict[str, Defect], *, some_end: bool) -> str:
    """Play beyond the declared limit, which may add a defect; without a limit, return a note."""
    pool, rng, task = await action_pool(subject), subject.rng(3), subject.tasks[0]
    until = time.monotonic() + max(0.2, min(subject.seconds_left / 2, subject.timeout / 2))
    async with subject.open() as env:
        limit = await env.run(lambda one: declared_limit(one, subject))
        turns = 10 * limit if limit else _NO_LIMIT_TURNS
        plays = [[action] * turns for action in pool[:4]]
        if not limit:
            plays = [] if some_end else [[pool[at] for at in rng.integers(len(pool), size=turns)]]
        endless = []
        for actions in plays:
            timely = itertools.takewhile(lambda _: time.monotonic() < until, actions)
            trace = await env.run(partial(play_at_once, facts=subject.facts, task=task, actions=timely))
            if not trace.over and len(trace.transitions) == turns:
                endless.append(actions[0])
    if not endless:
        return ""
    if not limit:
        text = f"in task {task}, an episode of {turns} random actions has no end"
        return f"{text}, and no turn limit is declared: register it with max_episode_steps"
    lines = [
        "env = make()",
        f"env.{reset_call(subject, task)}",
        f"for _ in range({turns}):",
        f"    if any(env.step({_literal(subject, ActionSequence(task, (endless[0],)))})[2:4]):",
        "        break",
        "else:",
        f'    raise AssertionError("the episode has no end after {turns} turns")',
    ]
    found["endless"] = Defect(
        f"in task {task}, an episode of {turns} times {shown_value(endless[0], 40)} has no end, "
        f"and the declared limit is {limit} turns",
        "count the turns in step, and return truncated at the limit",
        (task,),
        await program(subject, lines),
    )
    return ""


# --- reset -------------------------------------------------------------------------------------------


async def check_reset(subject: Subject) -> Checked:
    """Reset before, in and after episodes, three times in a row, and after an error."""
    try:
        explored = await subject.explored()
    except NotApplicable as error:
        return Checked(
            [Defect(str(error), _RESET_ADVICE, subject.tasks[:1], await _reset_program(subject, ()))]
        )
    sound = [trace.sequence for trace in explored if not trace.error and trace.transitions]
    cases: list[Case] = [(ActionSequence(trace.task),) for trace in explored if not trace.transitions]
    cases += [
        (trace.sequence, trace.sequence.first(1)) for trace in explored if trace.error and trace.unplayed
    ]
    for sequence in sound:
        again = sequence.first(1)
        middle = sequence.first((len(sequence.actions) + 1) // 2)
        cases.append((sequence, again, middle, again))
        if len(cases) % 4 == 1:
            cases.append((sequence.first(0),) * 3 + (again,))

    async def fails(case: Case) -> str:
        async with subject.open() as env:
            return await _failed_reset(env, case)

    played = 0
    async with subject.open() as env:
        for case in cases:
            if subject.enough(played):
                break
            played += 1
            if not await _failed_reset(env, case) or not await fails(case):
                continue
            case = await _part_that_fails(case, fails)  # noqa: PLW2901
            case, text = await shrink(case, fails, seconds=max(0.5, subject.seconds_left / 2))  # noqa: PLW2901
            defect = Defect(
                text,
                _RESET_ADVICE,
                tuple(dict.fromkeys(each.task for each in case)),
                await _reset_program(subject, case),
            )
            return Checked([defect] if text else [], {"cases": played})
    return Checked(measured={"cases": played})


_RESET_ADVICE = "let reset build the whole state again, from any state that an episode can leave"


async def _failed_reset(env: OpenEnv, case: Case) -> str:
    """Play episodes one after another; return the sentence about the reset, or its first step, that fails."""
    for at, sequence in enumerate(case):
        before = f" after {shown_value(list(case[at - 1].actions))}" if at else ""
        trace = await env.play(sequence)
        if trace.error and not trace.transitions and not (at == 0 and trace.unplayed):
            call = (
                f"the first step ({shown_value(trace.unplayed[0], 40)}) after reset"
                if trace.unplayed
                else "reset"
            )
            return f"in task {sequence.task}, {call}{before} raises {trace.error[:160]}"
    return ""


async def _part_that_fails(case: Case, fails: Callable[[Case], Awaitable[str]]) -> Case:
    """Return the shortest run of episodes in a case that fails without the others."""
    for length in range(1, len(case)):
        for first in range(len(case) - length + 1):
            part = case[first : first + length]
            if await fails(part):
                return part
    return case


async def _reset_program(subject: Subject, case: Case) -> str:
    """Return the program for episodes that follow each other; without any, for one reset."""
    case = case or (ActionSequence(subject.tasks[0]),)
    *before, last = case

    def play(sequence: ActionSequence) -> str:
        steps = f", [env.step(action) for action in {actions_text(subject, sequence)}]"
        return f"env.{reset_call(subject, sequence.task)}{steps if sequence.actions else ''}"

    lines = ["env, problem = make(), None", *map(play, before), "try:", f"    {play(last)}"]
    lines += [
        "except Exception as error:",
        "    problem = error",
        'assert not problem, f"it raises {problem!r}"',
    ]
    return await program(subject, lines)


# --- close -------------------------------------------------------------------------------------------


async def check_close(subject: Subject) -> Checked:
    """Close before the reset, in an episode, after an error, and twice."""
    traces = [trace for trace in await subject.explored() if trace.transitions]
    sequence = traces[0].sequence if traces else ActionSequence(subject.tasks[0])
    reset, step = f"env.{reset_call(subject, sequence.task)}", f"env.step({_literal(subject, sequence)})"
    middle = [f"{reset}, {step}"] if sequence.actions else [reset]
    cases = {
        "before the first reset": [],
        "in an episode": middle,
        "after a step before the first reset": [step],
        "a second time": [*middle, "env.close()"],
    }
    defects: list[Defect] = []
    for name, lines in cases.items():
        try:
            async with subject.open() as env:
                error = await env.run(lambda one, name=name: _closed(one, subject, name, sequence))  # type: ignore[misc]
        except TimeoutError:
            error = f"TimeoutError: no answer in {subject.timeout:g} s"
        if not error:
            continue
        before = [f"    {line}" for line in lines]
        if name.startswith("after"):
            before = ["    with contextlib.suppress(Exception):", f"        {step}"]
        end = [
            "env, problem = make(), None",
            "try:",
            *before,
            "    env.close()",
            "except Exception as error:",
        ]
        end += ["    problem = error", 'assert not problem, f"close raises {problem!r}"']
        head = ["import contextlib"] if name.startswith("after") else []
        defects.append(
            Defect(
                f"close raises {error[:160]} when it is called {name}",
                "let close release only what exists, and do nothing if it was called before",
                (sequence.task,),
                await program(subject, [*head, *end]),
            )
        )
        break  # the others usually have the same cause
    return Checked(defects, {"cases": len(cases)})


def _literal(subject: Subject, sequence: ActionSequence) -> str:
    for action in sequence.actions:
        try:
            return subject.native_literal(action)
        except ValueError:  # a text that the adapter rejects
            continue
    return "None"


def _closed(env: Any, subject: Subject, when: str, sequence: ActionSequence) -> str:
    """Close the environment at a moment; return the error of that close, or an empty text."""
    if when == "after a step before the first reset":
        with contextlib.suppress(Exception):
            env.step((*sequence.actions, "")[0])
    elif when != "before the first reset":
        play_at_once(env, subject.facts, sequence.task, sequence.actions[:1])
    try:
        if when == "a second time":
            env.close()
        env.close()
    except Exception as error:  # noqa: BLE001 - an environment may raise anything
        return _problem_text(error)
    return ""
