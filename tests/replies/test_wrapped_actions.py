"""Every action is read with markdown, fences, labels, reasoning and invented turns around it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import settings

from every_format import MARKED, each_pair_and_native, failed, verdict
from wrappings import BEFORE, BEHIND, INSIDE, INVENTED, LABELS, filled

FULL = settings.default.max_examples >= 25  # HYPOTHESIS_PROFILE=full
PROSE = (("", ""), ("I look around:\n", "\n\nBut I may need more."), ("Wait, no.\n\n", "\n\n"))


def actions_of(environment):
    """Return the examples of a grammar, and some samples of it in the full profile."""
    drawn = np.random.default_rng(1)
    return (*environment.grammar.examples, *(environment.grammar.sample(drawn) for _ in range(20 * FULL)))


def check(environment, action_format, replies):
    """Check that each of these replies is read as its action."""
    failures = [
        (found, reply)
        for action, reply in replies
        if (found := verdict(action_format, reply, environment.grammar, action)) != "read"
    ]
    assert not failures, failed(failures, len(replies))


@each_pair_and_native
def test_wrapped_as_models_write_it(environment, action_format):
    actions, replies = itertools.cycle(actions_of(environment)), []
    templates = INSIDE[action_format.name]
    for _ in range(4 if FULL else 1):
        for template in templates:
            labels = LABELS if "«label»" in template else ("Action",)
            for label, (before, behind) in itertools.product(labels, PROSE):
                action = next(actions)
                reply = filled(template, action, label)
                if reply is not None and _fits(action_format, template, before, behind):
                    replies.append((action, f"{before}{reply}{behind}"))
    assert len(replies) >= len(templates) / 3
    check(environment, action_format, replies)


def _fits(action_format, template, before, behind):
    unclosed = (
        template.endswith(("<tool_call>\n«native»", "```python\n«code»")) or "<|python_tag|>" in template
    )
    alone = action_format.name == "bare" or template.startswith('{"tool_calls"')
    return not (alone and (before or behind)) and not (unclosed and behind)


def _around(environment, action_format, pairs):
    """Return actions as taught with each pair around them, in turn; drafts are of another."""
    actions, replies = actions_of(environment), []
    turn = itertools.cycle(range(len(actions)))
    for before, behind in pairs:
        for number in itertools.islice(turn, 4 if FULL else 2):
            action = actions[number]
            others = (a for a in actions[number:] + actions[:number] if a != action)
            draft = action_format.render(next(others, action))
            draft = draft.replace("<think>", "").replace("</think>", "")  # of the format tags
            reply = before + action_format.render(action) + behind
            replies.append((action, reply.replace("«draft»", draft)))
    return replies


@each_pair_and_native
def test_after_reasoning_and_before_the_end_of_the_turn(environment, action_format):
    pairs = [*((before, "") for before in BEFORE), *(("", behind) for behind in BEHIND)]
    pairs += zip(BEFORE, BEHIND, strict=False)
    if FULL:
        pairs += itertools.product(BEFORE, BEHIND)
    check(environment, action_format, _around(environment, action_format, pairs))


@each_pair_and_native
def test_before_an_invented_turn(environment, action_format):
    if action_format.name == "bare" and environment.name not in MARKED:
        pytest.skip("a reply of several lines is no bare action")
    pairs = list(itertools.product(BEFORE if FULL else ("", BEFORE[1]), INVENTED))
    check(environment, action_format, _around(environment, action_format, pairs))
