"""Whether the actions that a prompt or an info offers are accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import ActionError, BadOption
from agentgym_gym.testing._audit.choices import admissible
from agentgym_gym.testing._audit.episodes import ActionSequence, Trace, Transition, shown_value
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.programs import actions_text, program, reset_call
from agentgym_gym.testing._audit.scores import SENSELESS, played_traces, require_text_actions
from agentgym_gym.testing._audit.shrinking import Case, shrink

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.subject import OpenEnv, Subject

__all__ = ["check_legal", "check_prompt"]

_SAMPLES = 200
_EPISODES = 24
_FEWEST = 8
"""States in which an action has to be refused before the prompt is wrong."""

_MOST_OFFERS = 40
_MOST_LISTED = 8

_LIST = re.compile(
    r"(?:\b(?:actions|commands|moves|verbs|choose from|one of|you can)\b[^\n:.]{0,40}):[ \t]*(?P<line>[^\n]*)"
    r"(?P<items>(?:\n+[ \t]*(?:[-*•]|\d+[.)])[ \t]+[^\n]+)*)(?P<lines>(?:\n[^\n]{1,90})*)",
    re.IGNORECASE,
)
_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+(.+)$", re.MULTILINE)
_EXAMPLE = re.compile(r"(?:for example|such as|e\.g\.)[:,]?[ \t]*([^\n,;.]+)", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\b[A-Z][A-Z_]+\b")
_PLAIN = re.compile(r"[a-z][a-z0-9_-]*(?: [a-z0-9_-]+){0,3}", re.IGNORECASE)
_REFUSAL = re.compile(
    r"invalid|unknown|not (?:a |an )?(?:valid|known|recogni[sz]ed|understood|allowed|legal|possible|action)"
    r"|(?:don't|do not|didn't|can't|cannot) (?:understand|recogni[sz]e|do (?:that|this))"
    r"|no such (?:action|command)|illegal"
    r"|nothing happens",
    re.IGNORECASE,
)
_IDLE = re.compile(r"\b(?:wait|noop|no-op|none|pass|stay|rest|stop|look|examine|inventory)\b", re.IGNORECASE)
"""Admissible actions that may change nothing."""


_UNKNOWN = re.compile(
    r"invalid|unknown|not (?:a |an )?(?:valid|known|recogni[sz]ed|understood|action)"
    r"|(?:don't|do not|didn't|can't|cannot) (?:understand|recogni[sz]e|parse|do (?:that|this))"
    r"|no such (?:action|command)",
    re.IGNORECASE,
)


async def check_prompt(subject: Subject) -> Checked:
    """Read rendered actions back, and play the actions that the system prompt lists."""
    grammar, action_format = subject.choices.grammar, subject.choices.action_format
    if grammar is not None and action_format is not None:
        return _read_back(subject, grammar, action_format)
    require_text_actions(subject)
    samples, listed = _samples(subject), _listed(subject.facts.system_prompt or "")
    if not samples and not listed:
        raise NotApplicable("the prompt lists no actions in a form that can be read")
    refused = await _refused_everywhere(subject, [*samples, *listed])
    measured = {"samples": len(samples), "listed": len(listed)}
    if samples and all(text in refused for text in samples):
        chosen, reason = samples[:1], "every sample of the action space"
    elif all(text in refused for text in listed) and not await _are_plain(subject):
        chosen, reason = [], ""
    else:
        chosen, reason = (
            [text for text in listed if text in refused],
            "an action that the system prompt lists",
        )
    return Checked(
        [await _prompt_defect(subject, reason, text, refused[text]) for text in chosen[:3]], measured
    )


async def _are_plain(subject: Subject) -> bool:
    """Return whether the known solutions are plain words, so that the prompt requires no form of actions."""
    actions = [step.action for trace in await subject.solved() for step in trace.transitions]
    return bool(actions) and all(_PLAIN.fullmatch(action) for action in actions)


def _read_back(subject: Subject, grammar: Any, action_format: Any) -> Checked:
    """Compare actions with what the format reads after it rendered them."""
    rng = subject.rng(2)
    for action in (*grammar.examples, *(grammar.sample(rng) for _ in range(_SAMPLES))):
        try:
            read = action_format.parse(action_format.render(action), grammar)
        except (ActionError, BadOption) as error:
            read = error
        if read != action:
            text = f"the action {shown_value(str(action))} is read as {shown_value(str(read))}"
            return Checked([Defect(text, "repair the action's template or the format")])
    return Checked(measured={"read_back": len(grammar.examples) + _SAMPLES})


def _samples(subject: Subject) -> list[str]:
    rng = subject.rng(3)
    drawn = [subject.choices.sample(rng) for _ in range(8)]
    return list(dict.fromkeys(text for text in drawn if text))


def _listed(prompt: str) -> list[str]:
    """Return the actions of lists that begin with words such as "actions are:", without placeholders."""
    found: list[str] = []
    for match in _LIST.finditer(prompt):
        line = re.split(r"\.(?:\s|$)", match["line"])[0]
        parts = re.split(r",\s*(?:and |or )?|\s+(?:and|or)\s+|;", line) if line.strip() else []
        items = [re.split(r"\s[-–:(]|:|\s=", item)[0] for item in _ITEM.findall(match["items"])]
        lines = match["lines"].splitlines() if not line.strip() and not items else []
        items += [re.split(r"\s[-–(]|[:,]|\s=", each)[0] for each in lines]
        items += _EXAMPLE.findall("\n".join(lines))
        texts = [part.strip().strip("`'\"“”") for part in (*parts, *items)]
        texts = [text for text in texts if not _PLACEHOLDER.search(text)]
        texts = [text for text in texts if _PLAIN.fullmatch(text)]
        found += texts if len(texts) > 1 else []
    return list(dict.fromkeys(found))


async def _refused_everywhere(subject: Subject, actions: Sequence[str]) -> dict[str, list[ActionSequence]]:
    """Play actions in random order, each after a senseless text.

    Returns:
        The actions that always got the answer of the senseless text, with the sequences that end with it.
    """
    tried: dict[str, list[ActionSequence]] = {action: [] for action in actions}
    accepted = {step.action for trace in await subject.solved() for step in trace.transitions}
    async with subject.open() as env:
        for number in range(_EPISODES):
            rng, trace = subject.rng(4, number), await env.begin(subject.tasks[number % len(subject.tasks)])
            for _ in range(subject.longest // 2):
                if trace.over or subject.seconds_left < 0:
                    break
                action = actions[int(rng.integers(len(actions)))]
                trace = await env.step(SENSELESS)
                control = trace.transitions[-1] if trace.transitions and not trace.over else None
                if control is None:
                    break
                before, trace = trace.sequence, await env.step(action)
                if trace.faulted:
                    break
                if _is_refused(trace.transitions[-1], control) and _is_unknown(control):
                    tried[action].append(before)
                else:
                    accepted.add(action)
    return {
        action: states
        for action, states in tried.items()
        if len(states) >= _FEWEST and action not in accepted
    }


async def _played(env: OpenEnv, state: ActionSequence, action: str) -> Transition | None:
    """Return the step of an action in a state; None if the environment fails or the episode is over."""
    trace = await env.play(replace(state, actions=(*state.actions, action)))
    return (
        trace.transitions[-1] if len(trace.transitions) > len(state.actions) and not trace.faulted else None
    )


def _is_refused(step: Transition, control: Transition | None) -> bool:
    """Return whether an action gets the answer of a senseless text, which names it as invalid."""
    if control is None or not _states_refusal(control) or step.value > max(0.0, control.value):
        return False
    return _states_refusal(step) and _without(step) == _without(control)


def _states_refusal(step: Transition) -> bool:
    info = step.info if isinstance(step.info, Mapping) else {}
    if info.get("parse_error") or info.get("invalid_action"):
        return True
    return isinstance(step.observation, str) and bool(_REFUSAL.search(step.observation))


def _is_unknown(step: Transition) -> bool:
    """Return whether an answer denies that a text is an action at all."""
    info = step.info if isinstance(step.info, Mapping) else {}
    return bool(info.get("parse_error")) or bool(_UNKNOWN.search(str(step.observation)))


def _without(step: Transition) -> str:
    """Return an observation without the action and without numbers, such as the turns left."""
    return re.sub(r"\d+", "", str(step.observation).replace(step.action, "…"))


async def _prompt_defect(
    subject: Subject, reason: str, action: str, states: Sequence[ActionSequence]
) -> Defect:
    state = min(states, key=lambda each: len(each.actions)).first(0)
    return Defect(
        f"{reason}, {shown_value(action)}, is refused in each of {len(states)} states",
        "let the prompt and the parser be generated from one list of actions",
        tuple(dict.fromkeys(each.task for each in states)),
        await program(subject, _refusal_lines(subject, state, action)),
    )


def _refusal_lines(subject: Subject, state: ActionSequence, action: str) -> list[str]:
    """Return the lines of a program that asserts that an action is answered unlike a senseless text."""
    listed = action in (subject.facts.system_prompt or "")
    repaired = "action not in make().get_wrapper_attr('system_prompt') or " if listed else ""
    return [
        "def answer(env, action):",
        f"    env.{reset_call(subject, state.task)}",
        f"    steps = [env.step(each) for each in [*{actions_text(subject, state)}, action]]",
        '    return str(steps[-1][0]).replace(action, "")',
        f"action, senseless = {action!r}, {subject.choices.reply(SENSELESS)!r}",
        f'assert {repaired}answer(make(), action) != answer(make(), senseless), "the action is refused"',
    ]


async def check_legal(subject: Subject) -> Checked:
    """Play the actions that each info lists as admissible, and each kind of the grammar's actions."""
    require_text_actions(subject)
    traces = await played_traces(subject)
    offers = [offer for trace in traces for offer in _offers(trace)]
    never = _never_accepted(subject, traces)
    if not offers and never is None:
        raise NotApplicable("the environment lists no admissible actions and has no grammar")
    played, accepted = 0, False
    refused: list[tuple[ActionSequence, str]] = []
    senseless = subject.choices.reply(SENSELESS)
    async with subject.open() as env:
        for state, texts in offers[:: len(offers) // _MOST_OFFERS + 1]:
            for text in texts[:: len(texts) // _MOST_LISTED + 1]:
                if subject.seconds_left < 0 or (accepted and refused):
                    break
                step = await _played(env, state, subject.choices.reply(text))
                played += 1
                if step is None:
                    continue
                if not _states_refusal(step):
                    accepted = True
                elif not _IDLE.search(text) and _is_refused(step, await _played(env, state, senseless)):
                    refused.append((state, text))
    measured = {"admissible_played": played}
    if refused and accepted:
        return Checked([await _legal_defect(subject, *refused[0])], measured)
    notes = [f"never accepted in the explored episodes: {', '.join(never)}"] if never else []
    if refused:
        notes.append("the listed actions require a form that is unknown to the audit")
    return Checked((), measured, "; ".join(notes))


def _offers(trace: Trace) -> Iterator[tuple[ActionSequence, Sequence[str]]]:
    """Yield the states of an episode with the actions that their info lists."""
    infos = [trace.info, *(step.info for step in trace.transitions if not step.ends)]
    for turn, info in enumerate(infos):
        if texts := admissible(info):
            yield trace.sequence.first(turn), texts


def _never_accepted(subject: Subject, traces: Sequence[Trace]) -> list[str] | None:
    """Return the names of the grammar's actions that no step carried out; None without a grammar."""
    grammar = subject.choices.grammar
    if grammar is None:
        return None
    played = set()
    for step in (step for trace in traces for step in trace.transitions):
        text = step.info.get("action") if isinstance(step.info, Mapping) else None
        if isinstance(text, str) and not _states_refusal(step) and grammar.knows(text):
            played.add(type(grammar.parse(text)))
    return [action.name() for action in grammar.actions if action not in played]


async def _legal_defect(subject: Subject, state: ActionSequence, text: str) -> Defect:
    action = subject.choices.reply(text)

    async def fails(case: Case) -> str:
        async with subject.open() as env:
            trace = await env.play(case[0])
            step = await _played(env, case[0], action)
            control = await _played(env, case[0], subject.choices.reply(SENSELESS))
        listed = not trace.over and text in admissible(trace.last_info)
        return str(step.observation) if listed and step and _is_refused(step, control) else ""

    (state,), answer = await shrink((state,), fails, seconds=max(1.0, subject.seconds_left / 2))
    return Defect(
        f"task {state.task} lists {shown_value(text)} as admissible before turn {len(state.actions) + 1} and "
        f"refuses it: {shown_value(answer)}",
        "compute the list and the check of actions by one function",
        (state.task,),
        await program(subject, _legal_lines(subject, state, text)),
    )


def _legal_lines(subject: Subject, state: ActionSequence, text: str) -> list[str]:
    """Return the lines of a program that asserts that an action is not listed, or is not refused."""
    action, senseless = subject.choices.reply(text), subject.choices.reply(SENSELESS)
    return [
        "def play(env, action):",
        f"    steps = [(None, 0, False, False, env.{reset_call(subject, state.task)}[1])]",
        f"    steps += map(env.step, [*{actions_text(subject, state)}, action])",
        '    return str(steps[-2][4]), str(steps[-1][0]).replace(action, "")',
        f"info, answer = play(make(), {action!r})",
        f"refused = answer == play(make(), {senseless!r})[1]",
        f'assert not refused or {text!r} not in info, "an admissible action is refused"',
    ]
