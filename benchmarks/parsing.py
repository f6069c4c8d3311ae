"""The time to parse a reply of 1 kB beside one regular expression, and that of a hostile reply of 16 kB.

The first: every action of every environment, in the format ``react``.

Each reply has 1,024 characters: a thought of several paragraphs and a list, then the action. The
environment's grammar parses it into a typed action. It is interleaved with the regular
expression with which many agents split a ReAct reply, and which has no grammar. An environment's result is
the ratio of the two, the median over its actions.

The second: replies of 16,384 characters that repeat text which a parser might scan again and again, in every
format and environment. The result is the longest time of each format, in milliseconds.

Prints JSON: microseconds and ratios, of the environments and of the slowest single action. Run it with
``python benchmarks/parsing.py``.
"""

from __future__ import annotations

import contextlib
import re
import statistics
from typing import Any

from _common import interleave, report, seconds, usually

from agentgym_gym import FORMATS, Action, Grammar, environments, errors

CHARACTERS = 1_024
TIMES = usually(500, quick=5)
BAR, WORST_BAR = 0.75, 1.1
LONG, LONG_BAR_MS = 16_384, 20
HOSTILE = (
    *(
        "<",
        "{",
        "[",
        "`",
        "```\n",
        "* ",
        "word\n",
        " \n",
        "\u200b",
        "Action:",
        "Action:\n",
        "<think></think>",
    ),
    *("a=1,", '{"a":', "- ", "1. ", "f(a=1)\n", "```a```f(1)\n", "<tool_call>{", "not ", "Observation:\n"),
    *("[a](b) ", "SELECT a;\n", "动作：not ", "> move up\n"),
)
REACT = FORMATS["react"]
USUAL = re.compile(r"Thought:\s*(.*?)\s*Action:\s*(.*)", re.DOTALL)

THOUGHT = """\
The last observation shows that the step before worked, so the part that I need first is in place now. \
Before I continue I compare it with the goal once more: the goal names one thing, and by the rules all \
else is a means to it.

What I still lack is listed in the first message. Two of the parts are available at once; the third must be \
made from others, and for that I need to know what I hold. I could guess, but a wrong guess costs a turn.

1. Look at what I have, since the numbers matter.
2. Get the part that nothing else depends on.
3. Put the parts together, in the order in which they are listed.

It would be tempting to skip the first point. However, I have made that mistake earlier: the environment \
answered that something was missing, and I did not know what. So I take the safe road, one action at a time, \
and read each answer with care before I decide about the next. There are turns enough for that, if I do not \
waste any: nine are left, and by my count the goal is six away. So to the first point."""


def reply_with(action: Action) -> str:
    """Return a reply of a fixed total length."""
    spare = CHARACTERS - len(REACT.render(action))
    reply = REACT.render(action, THOUGHT[: spare - 1] + ".")
    if len(reply) != CHARACTERS:
        raise RuntimeError(f"the reply has {len(reply)} characters")
    return reply


def times(action: Action, grammar: Grammar) -> tuple[float, float]:
    """Return the median times of the grammar and of the regular expression, in seconds."""
    reply = reply_with(action)
    if REACT.parse(reply, grammar) != action:
        raise RuntimeError(f"{action} is read as something else")
    took = interleave(
        {
            "ours": lambda: seconds(lambda: REACT.parse(reply, grammar)),
            "usual": lambda: seconds(lambda: USUAL.search(reply)),
        },
        TIMES,
    )
    return statistics.median(took["ours"]), statistics.median(took["usual"])


def slowest_of_hostile(name: str) -> dict[str, Any]:
    """Return the slowest hostile reply of a format: the best of five times, in milliseconds."""

    def milliseconds(reply: str, grammar: Grammar) -> float:
        def read() -> None:
            with contextlib.suppress(errors.ActionError):
                FORMATS[name].parse(reply, grammar)

        return min(seconds(read) for _ in range(usually(5, quick=1))) * 1e3

    took, part, environment = max(
        (milliseconds((lead + part * LONG)[:LONG], environment.grammar), part, environment.name)
        for environment in environments()
        if environment.grammar.examples
        for lead in ("", FORMATS[name].example(environment.grammar))
        for part in usually(HOSTILE, quick=HOSTILE[:2])
    )
    return {"ms": round(took, 1), "of": part, "environment": environment}


def main() -> None:
    """Measure and print."""
    took = {
        environment.name: {str(each): times(each, environment.grammar) for each in examples}
        for environment in environments()
        if (examples := environment.grammar.examples)
    }
    median_us = {
        name: round(statistics.median(ours for ours, _ in each.values()) * 1e6, 1)
        for name, each in took.items()
    }
    ratios = {
        name: statistics.median(ours / usual for ours, usual in each.values()) for name, each in took.items()
    }
    overall, worst = statistics.median(ratios.values()), max(ratios, key=lambda name: ratios[name])
    slowest = max((ours, name, action) for name, each in took.items() for action, (ours, _) in each.items())
    expression = statistics.median(usual for each in took.values() for _, usual in each.values())
    hostile = {name: slowest_of_hostile(name) for name in FORMATS}
    worst_ms = max(each["ms"] for each in hostile.values())
    report(
        benchmark="parsing",
        characters=CHARACTERS,
        median_us=median_us,
        regular_expression_us=round(expression * 1e6, 1),
        median_of_all={"ratio": round(overall, 2), "at_most": BAR, "met": overall <= BAR},
        worst_environment={
            "name": worst,
            "ratio": round(ratios[worst], 2),
            "at_most": WORST_BAR,
            "met": ratios[worst] <= WORST_BAR,
        },
        characters_of_hostile=LONG,
        hostile_ms=hostile,
        worst_hostile={"ms": worst_ms, "at_most": LONG_BAR_MS, "met": worst_ms <= LONG_BAR_MS},
        worst_action={"us": round(slowest[0] * 1e6, 1), "environment": slowest[1], "action": slowest[2]},
    )


if __name__ == "__main__":
    main()
