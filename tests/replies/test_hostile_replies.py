"""A hundred thousand hostile texts, drawn by a seed, raise nothing but `ActionError`.

Quicker than by hypothesis, and each run reads the same ones. All of them are read by
`make properties`; with HYPOTHESIS_PROFILE=thorough by every format.
"""

from __future__ import annotations

import contextlib
import random
import sys

import pytest

from agentgym_gym import errors
from agentgym_gym.testing.strategies import MARKS
from clock import at_most
from every_format import ENVIRONMENTS, EVERY_FORMAT, THOROUGH, each_environment, read
from unmarked import SENTENCES
from wrappings import BEFORE, BEHIND, INSIDE, INVENTED, filled

TEXTS = 100_000


def hostile(environment, draw):
    """Return a text that looks much like a reply: marks and replies, cut, doubled and put together."""
    actions = environment.grammar.examples
    templates = [template for inside in INSIDE.values() for template in inside]
    kinds = (
        lambda: draw.choice(MARKS),
        lambda: draw.choice(SENTENCES) + draw.choice(("\n", " ", "")),
        lambda: draw.choice(EVERY_FORMAT).render(draw.choice(actions)),
        lambda: filled(draw.choice(templates), draw.choice(actions)) or "",
        lambda: draw.choice((*BEFORE, *BEHIND, *INVENTED)),
        lambda: str(draw.choice(actions)),
        lambda: chr(
            draw.choice((draw.randrange(32), draw.randrange(0x3000), draw.randrange(sys.maxunicode + 1)))
        ),
        lambda: draw.choice(MARKS) * draw.randrange(2, 60),
        lambda: _damaged(draw.choice(EVERY_FORMAT).render(draw.choice(actions)), draw),
    )
    text = "".join(draw.choice(kinds)() for _ in range(draw.randrange(1, 9)))
    return _damaged(text, draw) if draw.random() < 0.3 else text


def _damaged(text, draw):
    """Return a text with a piece of it left out, doubled, turned round or replaced by a mark."""
    start, end = sorted(draw.randrange(len(text) + 1) for _ in range(2))
    piece = text[start:end]
    return (
        text[:start]
        + draw.choice(("", piece * 2, piece[::-1], draw.choice(MARKS), piece.upper()))
        + text[end:]
    )


@pytest.mark.exhaustive
@each_environment
def test_hostile_text_is_read_or_refused(environment):
    """Every text is read in one format in turn, and as AgentGym's own client does."""
    check(environment, -(-TEXTS // len(ENVIRONMENTS)))


@each_environment
def test_some_hostile_text_is_read_or_refused(environment):
    check(environment, 20)


def check(environment, count):
    draw = random.Random(f"{environment.name} 0")  # noqa: S311 - the same in each run, and no secret
    for number in range(count):
        text = hostile(environment, draw)
        for action_format in EVERY_FORMAT if THOROUGH else (EVERY_FORMAT[number % len(EVERY_FORMAT)],):
            try:
                with at_most(5):
                    read(action_format, text, environment.grammar)
            except Exception as error:
                raise AssertionError(f"{action_format.name}, text {number}: {text!r}") from error
        for reader in environment.agentgym_readers.values():
            with contextlib.suppress(errors.ActionError):
                reader(text)
