"""The same words around an action give the same verdict in all environments of a format.

A frame is the text around an action. Whether the action is read, or with which kind of error it is refused,
depends on the frame and the format only. Left out are frames that look like the action, and frames
without a mark in the three environments whose actions carry marks of their own.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import settings

from agentgym_gym import FORMATS, errors
from agentgym_gym.formats import get_format
from every_format import ENVIRONMENTS, MARKED, verdict
from wrappings import INSIDE, LABELS, filled

FULL = settings.default.max_examples >= 25  # HYPOTHESIS_PROFILE=full
PROSE = (
    ("", ""),
    ("I have not got any:\n", ""),
    ("", "\n\nBut I may need more."),
    ("I must not send this yet:\n", "\n\nWait, no."),
    ("If the door is locked, I would write:\n\n", "\n\nShould I?"),
    ("1. First I look around\n", "\n\n- Then I go on"),
    ("抱歉，格式错了：\n", "\n\n🙂"),
    ("## Plan\n\nplanks, plant, plane\n---\n", "\n\n---"),
)
MARKED_FRAMES = tuple(dict.fromkeys(itertools.chain(*(INSIDE[name] for name in INSIDE if name != "bare"))))
# «other» is another action as the format teaches it, «same» the action as it does, «nonsense» no action.
SEVERAL = (
    *(
        "«same»\n\n«other»",
        "«other»\n\n«same»",
        "«same»\n\n«same»",
        "«same»\n\nThen:\n\n«other»\n\nThat is all.",
    ),
    *("Action: «nonsense»\n\nAction: «text»", "Action: «text»\n\nAction: «nonsense»", "Action: «nonsense»"),
    *(
        "Action:\n\nAction:\n«text»",
        "<action></action>\n\n<action>«text»</action>",
        "<action>«nonsense»</action>",
    ),
    *(
        "<action>«nonsense»</action>\n<action>«text»</action>",
        "<action>«text»</action>\n\n<action>«text»</action>",
    ),
    *("Action: «nonsense»\nAction Input: {}", '{"name": "frobnicate", "arguments": {}}'),
    *('<tool_call>{"name": "frobnicate", "arguments": {}}</tool_call>', "```python\nfrobnicate()\n```"),
    *(
        "```python\n«code»\n«code»\n```",
        "```python\nif True:\n    «code»\n```",
        "```python\nprint(«code»)\n```",
    ),
    *(
        "<tool_call>«native»</tool_call>\n<tool_call>«native»</tool_call>",
        "«native»\n«native»",
        "> «nonsense»",
    ),
    *("Observation: a door\n\n«same»", "«same»\n\nObservation: a door\n\n«other»", "User: go on\n«same»"),
    *(
        "<think>\n«same»\n</think>",
        "<think>\n«other»\n</think>\n«same»",
        "<think>\n«same»",
        "<|im_end|>\n«same»",
    ),
    *("«same»<|im_end|>\n«other»", "<!--\n«same»\n-->", "~~Action: «line»~~", "~~old~~\n\n«same»"),
    *('{"action": "«line»"}', '{"thought": "I know.", "action": "«line»"}'),
    *('{"name": "«name»"', '{"name": "«name»", "arguments": {', "<tool_call>\n</tool_call>", "{}", "[]"),
    *(
        "Action:",
        "<action></action>",
        "<action>",
        ">",
        "```python\n```",
        "Action Input: {}",
        "Thought: I know.",
    ),
    *("`<action>` comes next.\n\n«same»", "The tags are `<action>` and `</action>`.", "«same»\n</tool_call>"),
    *(
        "Action: «closed» (so that I go on)",
        "Action: «closed». Then I go on.",
        "Action: «closed» # so I go on",
    ),
    *("Action: «closed»; then I go on", "Action: «closed» // I go on", "Action: «closed» — then I go on"),
    *("I go on. Action: «closed»", "I go on, action: «closed»", "I take the action: «closed»"),
    *("Action: («closed»)", "Action: [«closed»]", "Action: “«closed»”", "Action:\n\n\n«closed»\n\nDone."),
)
OPEN = frozenset({"Action:", "<action>", ">", "<think>\n«same»"})  # the lines after it belong to it
EMPTY = frozenset(
    {"```python\n```", "```python\nfrobnicate()\n```"}
)  # fences without a call of the environment
UNMARKED = (
    *(
        "«line»",
        "I go on:\n«line»",
        "«line»\n\nI go on.",
        "I would do: «line»",
        "«line» is next.",
        "`«line»`",
    ),
    *("Should I do «line»?", "1. «line»\n2. Then I go on", "- «line»", "**«line»**", '"«line»"', "(«line»)"),
    *("", " ", "I do not know.", "frobnicate the gate", "Frobnicate!", "I give up.", "抱歉。"),
)
NONSENSE = "frobnicate the gate"
# By environment, an action after which a line may go on: it ends with no name or text of any length.
CLOSED = {
    "TextCraft": "inventory",
    "BabyAI": "turn left",
    "ALFWorld": "inventory",
    "SciWorld": "look around",
    "WebShop": "click[buy now]",
    "WebArena": "click [164]",
}


def frames(action_format):
    """Return the frames, each with whether the format sees a mark in it."""
    found, name = {}, action_format.name
    for number, template in enumerate((*MARKED_FRAMES, *SEVERAL)):
        labels = LABELS[::5] if FULL and "«label»" in template else LABELS[:1]
        around = PROSE[number % 2 :: 2] if FULL else (PROSE[number % len(PROSE)],)
        for label, (before, behind) in itertools.product(labels, around):
            frame = f"{before}{template}{'' if template in OPEN else behind}".replace("«label»", label)
            found[frame] = _is_marked(template, name)
    found.update(dict.fromkeys(UNMARKED, False))
    return found


def _is_marked(template, name):
    """Return whether a format sees a mark in a template, but for marks that an action itself carries."""
    if name == "bare" and ("«same»" in template or "«other»" in template):
        return False
    return template not in EMPTY and (
        name == "adapt" or not template.lstrip("`\n ").startswith((">", "think:"))
    )


def reply_of(frame, environment, action_format, action, other):
    """Return the frame around an action, or None where it has none in this environment."""
    if "«closed»" in frame:
        if environment.name not in CLOSED and environment.name != "Maze":
            return None
        action = environment.grammar.parse(CLOSED.get(environment.name, "move right"))
        return frame.replace("«closed»", str(action)), action
    if "«other»" in frame and action == other:
        return None
    filled_frame = filled(frame, action)
    if filled_frame is None or ('"«line»"' in frame and '"' in str(action)):
        return None
    taught = (("same", action), ("other", other))
    for piece, each in taught:
        if f"«{piece}»" in filled_frame:
            written = action_format.render(each).replace("<think>", "").replace("</think>", "")
            filled_frame = filled_frame.replace(f"«{piece}»", written)
    return filled_frame.replace("«nonsense»", NONSENSE), action


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FORMATS, "tool_calls"])
def test_read_alike_in_all_environments(name):
    action_format, failures, count = get_format(name), [], 0
    for frame, marked in frames(action_format).items():
        verdicts = defaultdict(list)
        for environment in ENVIRONMENTS:
            if environment.name in MARKED and not marked:
                continue
            for action, other in _pairs(environment):
                made = reply_of(frame, environment, action_format, action, other)
                if made is not None:
                    reply, wanted = made
                    found = verdict(action_format, reply, environment.grammar, wanted)
                    verdicts[found.partition(":")[0]].append((environment.name, reply))
                    count += 1
        if len(verdicts) > 1:
            failures.append((frame, verdicts))
    assert count > 1_000
    assert not failures, _told(failures, len(frames(action_format)))


def _pairs(environment):
    """Return actions, each with another one of the grammar."""
    examples = environment.grammar.examples
    others = [*examples[1:], environment.grammar.sample(np.random.default_rng(3))]
    pairs = list(zip(examples, others, strict=True))
    return pairs[:2] if FULL else pairs[:1]


def _told(failures, of):
    lines = [f"{len(failures)} of {of} frames"]
    for frame, verdicts in failures[:40]:
        lines.append(f"{frame!r}:")
        for found, replies in sorted(verdicts.items(), key=lambda item: len(item[1])):
            names = sorted({environment for environment, _ in replies})
            lines.append(f"    {found}: {', '.join(names)}, such as {replies[0][1]!r:.200}")
    return "\n".join(lines)


def test_nonsense_is_not_an_action():
    for environment in ENVIRONMENTS:
        with pytest.raises(errors.UnknownAction):
            environment.grammar.parse(NONSENSE)
