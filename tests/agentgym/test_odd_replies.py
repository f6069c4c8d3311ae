"""AgentGym's own clients and our environments with AgentGym's parser read junk and odd replies alike.

Each reply is played on both, and then the first reply of a victory, if the game continues: this compares also
the state that the reply left. The table of docs/environment.md lists the differences: DIFFERENCES names the
replies for each, and all other replies are equal.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import needs
from agentgym_checkout import import_or_skip
from agentgym_gym import find
from agentgym_gym.testing import strategies as drawn
from agentgym_pair import NAMES, first_reply, sample

import_or_skip("agentenv.envs")

FORMATS = [
    pytest.param(name, each, marks=pytest.mark.needs(*needs.needs_of_server(name)))
    for name in NAMES
    for each in find(name).agentgym_readers
]

ODD = {
    "empty": "",
    "blank": " \n\t ",
    "prose": "I am not sure what to do next. Let me think about it for a while.",
    "no label": "{action}",
    "a label and nothing": "Thought:\nI wait.\n\nAction:",
    "a label and blank lines": "Action:\n\n\n{action}",
    "twice the same label": "Action: {action}\nAction: {action}",
    "an empty label first": "Action:\nAction: {action}",
    "two different actions": "Action: look around\n\nAction: {action}",
    "two labels on a line": "Action: Action: {action}",
    "a label in lower case": "action: {action}",
    "a label in capitals": "ACTION: {action}",
    "a full-width colon": "Action：{action}",
    "a label in another language": "行动：{action}",
    "a bold label": "**Action:** {action}",
    "a heading": "### Action:\n{action}",
    "an action in backticks": "Action: `{action}`",
    "an action in quotes": 'Action: "{action}"',
    "an action in brackets": "Action: [{action}]",
    "a full stop": "Action: {action}.",
    "prose after the action": "Action: {action} (this should work)",
    "a fence": "Action:\n```\n{action}\n```",
    "a fence without a label": "```\n{action}\n```",
    "a fence that stays open": "Action:\n```\n{action}",
    "two fences": "```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```",
    "code": "```python\n# I look around.\nlook(around=True)\n```",
    "code that would run": "```python\n__import__('os').getcwd()\n```",
    "code with a sum": '```python\nsearch("a" + "b")\n```',
    "code with a loop": "```python\nfor n in range(3):\n    search('a')\n```",
    "a text as code": "'{action}'",
    "a number": "42",
    "JSON": '{"thought": "I try.", "function_name": "search", "arguments": {"keywords": "a red lamp"}}',
    "JSON of an unknown function": '{"thought": "", "function_name": "fly", "arguments": {}}',
    "JSON without arguments": '{"thought": "", "function_name": "click"}',
    "JSON that is cut": '{"thought": "", "function_name": "click", "arguments": {"item": "b',
    "a native call": '<tool_call>\n{"name": "search", "arguments": {"keywords": "a"}}\n</tool_call>',
    "tags": "<think>I try.</think>\n<action>{action}</action>",
    "reasoning that stays open": "<think>{reply}",
    "reasoning with an action": "<think>Action: {action}</think>\nI give up.",
    "an end mark": "{reply}</s>",
    "an end mark after a space": "{reply} </s>",
    "two end marks": "{reply}</s></s>",
    "only an end mark": "</s>",
    "a letter and an end mark": "x</s>",
    "another end mark": "{reply}<|im_end|>",
    "an invented turn": "{reply}\nObservation: You have won.\n\nThought: I am done.",
    "an invented turn and an action": "{reply}\nObservation: You have won.\nAction: {action}",
    "a role mark": "{reply}<|im_end|>\n<|im_start|>user\nGo on.",
    "capitals": "Action: {capitals}",
    "non-ASCII": "Thought: ça va 你好\nAction: {action} é\U0001f600",
    "letters that look alike": "Action: m\u043eve u\u0440",
    "full-width letters": "Action: \uff4d\uff4f\uff56\uff45\u3000\uff55\uff50",
    "a soft hyphen": "Action: {action}\u00ad",
    "a byte order mark": "\ufeff{reply}",
    "right to left": "Action: \u202e{action}",
    "carriage returns": "Thought: a\r\n\r\nAction:\r\n{action}\r\n",
    "line separators": "Thought: a\u2028Action:\u2028{action}\u2029",
    "control characters": "Action: \x1b[31m{action}\x1b[0m\x07\x0b\x0c\x85",
    "a NUL": "Action: {action}\x00",
    "half of a surrogate pair": "Action: {action}\ud800",
    "tabs": "Action:\t{action}\t",
    "very long": "Action: " + "very " * 30_000,
    "a very long word": "Action: " + "a" * 30_000,
    "a very long thought": "Thought: " + "well " * 30_000 + "\n\nAction:\n{action}",
    "very many lines": "\n" * 30_000 + "{reply}",
    "many digits": "Action: get " + "9" * 700 + " stick",
    "a word that ends a tool's episode": "I would finish here.",
    "finish and nothing": "Action: finish",
    "finish with an unknown answer": 'Action: finish with Action Input: {"answer": "nothing of the kind"}',
    "finish with a JSON word": 'Action: finish with Action Input: {"answer": true}',
    "finish with a sum": 'Action: finish with Action Input: {"answer": 25 + 5}',
    "finish with a call": 'Action: finish with Action Input: {"answer": open("/etc/hostname").read()}',
    "finish without a brace": "Action: finish with Action Input: 12",
    "an input that is cut": 'Action: finish with Action Input: {"answer": "a',
    "an unknown tool": "Action: fly with Action Input: {}",
    "a tool with a wrong argument": 'Action: get_user_current_date with Action Input: {"colour": "red"}',
    "an input on a line of its own": "Action: get_user_current_date\nAction Input: {}",
    "a search in tags": "<search>the tallest tower</search>",
    "a search for nothing": "<search></search>",
    "a search that stays open": "<search>the tallest tower",
    "a wrong answer in tags": "<answer>nothing of the kind</answer>",
    "an answer and a search": "<answer>a</answer><search>b</search>",
    "a search in brackets": "search[a red lamp]",
    "a search for a mark": "Action: search[<a>]",
    "a click on nothing": "Action: click[]",
    "a click on a missing button": "Action: click[fly away]",
    "a purchase": "Action: click[buy now]",
    "a statement with no rows": "```sql\nSELECT 1 WHERE 0\n```",
    "a statement that changes": "```sql\nDROP TABLE students\n```",
    "two statements": "```sql\nSELECT 1; SELECT 2\n```",
    "a statement with a mistake": "```sql\nSELEC 1\n```",
    "no statement": "```sql\n```",
    "five letters of no word": "Action:\nq x q x z",
    "five letters together": "Action: robin",
    "six letters": "Action: r o b i n s",
    "a step of the maze in capitals": "Action: MOVE UP",
    "markup": "<b>{action}</b><br/>&amp;{{vocab}}",
    "braces": "Action: {} {0} {action} %s %d \\n",
}

TOO_LONG, DIGITS, UNSEARCHABLE, UNREAD, NUL, ENDED = "too long", "digits", "search", "not run", "NUL", "ended"

BEGINNINGS = {
    "Your reply was not carried out: the action is longer than 16384 characters.": TOO_LONG,
    "Your reply was not carried out: no number may have more than 600 digits.": DIGITS,
    "Your reply was not carried out: the server cannot search for ": UNSEARCHABLE,
    "Your reply was not carried out: an SQL statement cannot hold the character NUL.": NUL,
    "Invalid Action.\n\n": UNREAD,
}
"""How the observation here begins where AgentGym's client sends the reply or raises an error."""

TOOLS = ("Weather", "Movie", "Academia", "Sheet", "TODOList")

RUN_THERE = (
    *("code that would run", "code with a sum", "a number"),
    *("JSON", "JSON of an unknown function", "JSON without arguments"),
)
"""Expressions of Python that AgentGym's client evaluates; it raises an error where the value is no text."""

DIFFERENCES = {
    **{(name, "react"): {"very long": TOO_LONG, "a very long word": TOO_LONG} for name in NAMES},
    # Of a long reply, the part that the server parses is sent.
    **{(name, "react"): {} for name in TOOLS},
    ("WebArena", "react"): {"a very long thought": TOO_LONG, "very many lines": TOO_LONG},
    ("SearchQA", "react"): {"a wrong answer in tags": ENDED, "an answer and a search": ENDED},
    **{(name, "function_calling"): {} for name in ("ALFWorld", "SciWorld", "WebShop")},
    **{
        (name, "code_as_action"): dict.fromkeys(RUN_THERE, UNREAD)
        for name in ("ALFWorld", "SciWorld", "WebShop")
    },
}
for name in ("ALFWorld", "SciWorld"):  # whose clients have no function `search`
    del DIFFERENCES[name, "code_as_action"]["code with a sum"]
DIFFERENCES["TextCraft", "react"]["many digits"] = DIGITS
DIFFERENCES["WebShop", "react"]["a search for a mark"] = UNSEARCHABLE


def texts_of(reply):
    """Yield the odd replies with the action of another reply, each with its label."""
    action = reply.rpartition("Action:")[2].strip()
    values = {"{action}": action, "{reply}": reply, "{capitals}": action.upper()}
    for label, text in ODD.items():
        for mark, value in values.items():
            text = text.replace(mark, value)  # noqa: PLW2901 - one after another
        yield label, text


def difference(theirs, ours):
    """Return the kind of a difference that is documented, or both results."""
    if theirs is not None and ours == theirs._replace(done=True):
        return ENDED
    kinds = [kind for beginning, kind in BEGINNINGS.items() if ours.observation.startswith(beginning)]
    refused = kinds and ours.reward == 0 and not ours.done
    # AgentGym's client raises its own error only where it runs code.
    return kinds[0] if refused and (theirs is not None or kinds == [UNREAD]) else (theirs, ours)


@pytest.mark.parametrize(("name", "action_format"), FORMATS)
def test_odd_replies_are_read_and_paid_alike(name, action_format, pair, report_at_end):
    both = pair(name, action_format=action_format)
    compared, differing = 0, {}
    for task in sample(name, 2):
        first = first_reply(both.env, task)
        for label, reply in texts_of(first):
            both.reset(task)
            for text in (reply, first):
                theirs, ours = both.step(text)
                compared += 1
                if theirs != ours:
                    differing[label] = difference(theirs, ours)
                if theirs != ours or ours.done:
                    break
    assert differing == DIFFERENCES[name, action_format]
    line = f"{compared} odd replies compared, {len(differing)} of {len(ODD)} differ as documented"
    report_at_end(f"{name}, {action_format}: {line}")


@pytest.mark.parametrize(("name", "action_format"), FORMATS)
def test_drawn_replies_are_read_and_paid_alike(name, action_format, pair, report_at_end):
    own = {"answers": None} if name == "SearchQA" else {}  # leaves the end of the episode to the server
    both = pair(name, action_format=action_format, **own)
    texts = (
        drawn.broken_replies(name, action_format) | drawn.mixtures(name) | drawn.replies(name, action_format)
    )
    counts = Counter()

    @settings(database=None, derandomize=True, max_examples=60)
    @given(st.sampled_from(sample(name, 20)), st.lists(texts, min_size=1, max_size=4))
    def play(task, replies):
        both.reset(task)
        for reply in replies:
            theirs, ours = both.step(reply)
            counts["compared"] += 1
            if theirs != ours:
                assert difference(theirs, ours) in {UNREAD, UNSEARCHABLE, DIGITS, NUL}
                counts["differing"] += 1
            if theirs != ours or ours.done:
                break

    play()
    line = f"{counts['compared']} drawn replies compared, {counts['differing']} differ as documented"
    report_at_end(f"{name}, {action_format}: {line}")
