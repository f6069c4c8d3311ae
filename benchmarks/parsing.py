"""The time to parse a reply of 1 kB, and a hostile one of 16 kB.

The first: every action of every environment, in the format ``react``.

Each reply has 1,024 characters: a thought of several paragraphs and a list, then the action. The
environment's grammar parses it into a typed action. An environment's result is the median over its actions.

The second: replies of 16,384 characters that repeat text which a parser might scan again and again, in every
format and environment. The result is the longest time of each format, in milliseconds.

Prints JSON: microseconds, of the environments and of the slowest single action. Run it with
``python benchmarks/parsing.py``.
"""

from __future__ import annotations

import contextlib
import statistics
from typing import Any

from _common import report, seconds, usually

from agentgym_gym import FORMATS, Action, Grammar, environments, errors

CHARACTERS = 1_024
TIMES = usually(500, quick=5)
BAR_US, WORST_BAR_US = 13, 18.2
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

THOUGHT = """\
The last observation says that the step before worked, so what I asked for is there now. Before I go on I \
compare it with the goal once more: the goal names one thing, and the rules say that all else is a means to \
it.

What I still lack is listed in the first message. Two of the parts can be had at once; the third has to be \
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


def microseconds(action: Action, grammar: Grammar) -> float:
    """Return the median time to parse a reply with an action."""
    reply = reply_with(action)
    if REACT.parse(reply, grammar) != action:
        raise RuntimeError(f"{action} is read as something else")
    return statistics.median(seconds(lambda: REACT.parse(reply, grammar)) for _ in range(TIMES)) * 1e6


def slowest_of_hostile(name: str) -> dict[str, Any]:
    """Return the slowest hostile reply of a format: the best of three times, in milliseconds."""

    def milliseconds(reply: str, grammar: Grammar) -> float:
        def read() -> None:
            with contextlib.suppress(errors.ActionError):
                FORMATS[name].parse(reply, grammar)

        return min(seconds(read) for _ in range(usually(3, quick=1))) * 1e3

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
        environment.name: {str(each): microseconds(each, environment.grammar) for each in examples}
        for environment in environments()
        if (examples := environment.grammar.examples)
    }
    median = {name: statistics.median(each.values()) for name, each in took.items()}
    overall, worst = statistics.median(median.values()), max(median, key=lambda name: median[name])
    slowest = max((us, name, action) for name, each in took.items() for action, us in each.items())
    hostile = {name: slowest_of_hostile(name) for name in FORMATS}
    worst_ms = max(each["ms"] for each in hostile.values())
    report(
        benchmark="parsing",
        characters=CHARACTERS,
        median_us={name: round(us, 1) for name, us in median.items()},
        median_of_all={"us": round(overall, 1), "at_most": BAR_US, "met": overall <= BAR_US},
        worst_environment={
            "name": worst,
            "us": round(median[worst], 1),
            "at_most": WORST_BAR_US,
            "met": median[worst] <= WORST_BAR_US,
        },
        characters_of_hostile=LONG,
        hostile_ms=hostile,
        worst_hostile={"ms": worst_ms, "at_most": LONG_BAR_MS, "met": worst_ms <= LONG_BAR_MS},
        worst_action={"us": round(slowest[0], 1), "environment": slowest[1], "action": slowest[2]},
    )


if __name__ == "__main__":
    main()
