"""The words around a marked action change nothing in any format."""

# ruff: noqa: RUF001 - models write these characters, too

from __future__ import annotations

import pytest

from agentgym_gym import FORMATS, find

GRAMMAR = find("TextCraft").grammar
ACTION = GRAMMAR.parse("get 1 stick")
CALL = '{"function_name": "get", "arguments": {"count": 1, "item": "stick"}}'
WRITTEN = {
    "react": "\nAction: get 1 stick",
    "tags": "<action>get 1 stick</action>",
    "adapt": "\n> get 1 stick",
    "function_calling": f"<tool_call>{CALL}</tool_call>",
    "code_as_action": "\n```python\nget(1, 'stick')\n```",
}
BEFORE = (
    *("A sketch:", "The prompt says:", "My old answer:", "An invalid call:", "This fails:"),
    *("For example,", "I was asked to", "I need permission to", "It is tempting to", "I may", "What if I"),
    *("I will, when I am done,", "My first thought was:", "Please confirm:", "The last action was:"),
    *("Do not do this.", "Here is what I never do:", "Next turn I will", "Had I the logs, I would", "Usage:"),
    *("Je ferais", "Ich würde", "No voy a", "Если нужно,", "如果可以，", "もし必要なら、", "例如："),
    *("Now I do:", "So:", "Therefore:", "Next:", "Entonces:", "Here is my action:", "I don't need more, so:"),
    "If I go up I hit the wall, so I take a stick:",
    "The next command is:",
    "I have no stick.\nSo I take one:",
    "我没有木棍。现在获取：",
)
AFTER = (
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
    *("\nThis gives me a stick.", "\nI wait for the result.", "\nWait for the observation.", " (I need one)"),
    *("\nNo other item is needed.", "\nInstead of guessing, this gets one.", "\nIf I get it, I can craft."),
    *(" – one is enough for a torch", " because I need it", "\nWhat comes next?"),
)


@pytest.mark.parametrize("name", WRITTEN)
def test_words_around_a_marked_action_change_nothing(name):
    replies = [f"{words} {WRITTEN[name]}" for words in BEFORE]
    replies += [f"I need one.\n{WRITTEN[name].strip()}{words}" for words in AFTER if _is_after(name, words)]
    assert [reply for reply in replies if FORMATS[name].parse(reply, GRAMMAR) != ACTION] == []


def _is_after(name, words):
    """Return whether words come after the action: on the same line they do where a sign closes it."""
    return words[0] == "\n" or name not in {"react", "adapt"} or words.startswith((" –", " - ", " ("))


AROUND = [
    "I could reply {} now, but I lack a log.",
    "I will not call\n{}\nyet",
    "Do not run this: {}",
    "For example:\n{}",
    "The format is:\n\n{}",
    "If I had a log, I would reply:\n{}",
    "Once I have the planks: {}",
    "My plan is:\n1. {}\n2. craft planks",
    "Should I call {}?",
    "Shall I run {} for you?",
    "I was going to send {} before.",
    "You told me to answer {} and I refuse.",
    "Here is what I will not do:\n{}",
    "{}\nOn second thought, no.",
    "{}\n\nActually, I need wood first.",
    "{}\nNo, wait.",
    "{}\n\nThis is only an illustration.",
    "{} is what I would do.",
    "{}\n\nThat was the previous call.",
    "User: {}",
    "<!-- {} -->",
    "~~{}~~",
    "{}\nThe above should be ignored.",
    "{}\n\nEdit: I meant another one.",
    "{} <- an example",
    "The prompt says:\n{}",
    "Bad: {}",
    "Please confirm: {}",
    "例如：{}",
    "不要调用 {}",
]


CODE = {
    "function_calling": (CALL, f"```json\n{CALL}\n```"),
    "code_as_action": ("```python\nget(1, 'stick')\n```",),
}


@pytest.mark.parametrize(("name", "code"), [(name, code) for name in CODE for code in CODE[name]])
def test_words_around_a_call_change_nothing(name, code):
    replies = [words.replace("{}", code) for words in AROUND]
    assert [reply for reply in replies if FORMATS[name].parse(reply, GRAMMAR) != ACTION] == []
