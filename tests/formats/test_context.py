"""What the words around an action say of it counts alike, whether it is written in words or as a call."""

# ruff: noqa: RUF001 - models write these characters, too

from __future__ import annotations

import contextlib

import pytest

import agentgym_gym
from agentgym_gym import FORMATS, errors

GRAMMAR = next(e for e in agentgym_gym.environments() if e.name == "TextCraft").grammar
ACTION = GRAMMAR.parse("get 1 stick")
CALL = '{"function_name": "get", "arguments": {"count": 1, "item": "stick"}}'
WRITTEN = {
    "tags": "<action>get 1 stick</action>",
    "function_calling": f"<tool_call>{CALL}</tool_call>",
    "code_as_action": "\n```python\nget(1, 'stick')\n```",
}
LEADS_AWAY = (
    *("A sketch:", "The prompt says:", "My old answer:", "An invalid call:", "This fails:"),
    *("For example,", "I was asked to", "I need permission to", "It is tempting to", "I may", "What if I"),
    *("I will, when I am done,", "My first thought was:", "Please confirm:", "The last action was:"),
    *("Do not do this.", "Here is what I never do:", "Next turn I will", "Had I the logs, I would", "Usage:"),
    *("Je ferais", "Ich würde", "No voy a", "Если нужно,", "如果可以，", "もし必要なら、", "例如："),
)
LEADS_TO_IT = (
    *("Now I do:", "So:", "Therefore:", "Next:", "Entonces:", "Here is my action:", "I don't need more, so:"),
    "If I go up I hit the wall, so I take a stick:",
    "The next command is:",
    "I have no stick.\nSo I take one:",
    "我没有木棍。现在获取：",
)
TAKES_BACK = (
    *("\nHowever, not now.", "\nOr maybe craft.", "\nThen again, no.", "\nThis must not be executed."),
    *(
        "\nIt is how we would call.",
        "\nActually craft first.",
        "\nThe above is an example.",
        "\nNo I should not",
    ),
    *("\nWait, no.", "\nThis was what I wrote before.", "\nShould I do it?", "\nMy bad.", "\nYou decide."),
    *("\nNon, attendez.", "\nDas war ein Fehler.", "\nПодожди", "\n不对", "\n待って、違う", "\n잠깐"),
    *(" is what I would do.", " if I had logs.", " – this would fail", " (not yet)", ", which failed", "?"),
    *(" - an alternative is craft", ", as I said, is a wall.", " never worked", " (just an example)", " x2"),
)
LEAVES_IT = (
    *("\nThis gives me a stick.", "\nI wait for the result.", "\nWait for the observation.", " (I need one)"),
    *("\nNo other item is needed.", "\nInstead of guessing, this gets one.", "\nIf I get it, I can craft."),
    *(" – one is enough for a torch", " because I need it", "\nWhat comes next?"),
)


def reads(name, reply):
    """Return whether the action is read; no other may be."""
    with contextlib.suppress(errors.ActionError):
        assert FORMATS[name].parse(reply, GRAMMAR) == ACTION, reply
        return True
    return False


@pytest.mark.parametrize("name", WRITTEN)
def test_words_that_make_a_mention_of_an_action_count_in_every_format(name):
    played = [lead for lead in LEADS_AWAY if reads(name, f"{lead} {WRITTEN[name]}")]
    played += [rest for rest in TAKES_BACK if reads(name, f"I need one.\n{WRITTEN[name].strip()}{rest}")]
    assert played == []


@pytest.mark.parametrize("name", WRITTEN)
def test_words_that_say_what_an_action_is_for_hide_it_in_no_format(name):
    refused = [lead for lead in LEADS_TO_IT if not reads(name, f"{lead} {WRITTEN[name]}")]
    refused += [rest for rest in LEAVES_IT if not reads(name, f"I need one.\n{WRITTEN[name].strip()}{rest}")]
    assert refused == []
