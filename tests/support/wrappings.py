"""Markup that models write around an action, by format: templates, and a function that fills them.

A template names a piece of the action between guillemets: ``«text»`` is the action as the environment writes
it (in a fence where it has one), ``«line»`` the same without its fence, ``«json»`` the object that the format
function_calling teaches, ``«native»`` the object of native calls, ``«name»`` and ``«arguments»`` its parts,
``«code»`` the call, and ``«label»`` the word for Action in each language.
"""

from __future__ import annotations

import json
from functools import cache

from agentgym_gym import FORMATS

LABELS = (
    *("Action", "ACTION", "action", "动作", "行动", "行動", "アクション", "행동", "Aktion", "Azione"),
    *("Acción", "Ação", "Действие"),
)

_LABELLED = (
    *("«label»: «text»", "«label»:\n«text»", "«label»:\n\n«text»", "«label»:«text»", "«label»：«text»"),
    *("**«label»:** «text»", "**«label»**: «text»", "**«label»:**\n«text»", "__«label»:__ «text»"),
    *("*«label»*: «text»", "`«label»:` «text»", "## «label»\n«text»", "### «label»:\n\n«text»"),
    *("# «label»: «text»", "**«label»**\n«text»", "[«label»] «text»", "<b>«label»:</b> «text»"),
)
_ENGLISH = (
    *("Action = «text»", "Action → «text»", "Action -> «text»", "Action - «text»", "Action — «text»"),
    *("Final Action: «text»", "Next action: «text»", "My action: «text»", "The action: «text»"),
    *("Chosen Action: «text»", "Selected Action: «text»", "The next action is: «text»", "Actions: «text»"),
    *("Action 1: «text»", "Action 12:\n«text»", "My next action:\n«text»", "**Final Action:**\n\n«text»"),
    *("- Action: «text»", "* Action: «text»", "1. Action: «text»", "- **Action:** «text»"),
    *(
        "  Action: «text»",
        "Action: NAME? No.\nAction: «text»",
        "Action:\nAction: «text»",
        "Action:\n1. «line»",
    ),
    *("Action:\n- «line»", "Action: **«line»**", "Action: `«line»`", "Action:\n`«line»`", 'Action: "«line»"'),
    *("Action: “«line»”", "Action: '«line»'", "**Action: «line»**", "> Action: «line»", "Action: «line»."),
    *("Action: «line»<br>", "Action:\n```\n«line»\n```", "Action:\n```text\n«line»\n```"),
    *("Action: ```\n«line»\n```", "```\nAction: «line»\n```", "<p>Action: «line»</p>"),
    *("Thought: I know.\nAction: «text»", "Action: «name»\nAction Input: «arguments»"),
    *("Action:\n«name»\nAction Input:\n«arguments»", "**Action:** «name»\n**Action Input:** «arguments»"),
    *("I am at the door. Action: «line»", "Is it so? Action: «line»"),
)
_TAGGED = (
    *("<action>«text»</action>", "<action>\n«text»\n</action>", "<ACTION>«text»</ACTION>"),
    *("<action> «text» </action>", "**<action>«text»</action>**", "`<action>«line»</action>`"),
    *(
        "```\n<action>«line»</action>\n```",
        "```xml\n<action>«line»</action>\n```",
        "> <action>«line»</action>",
    ),
    *("- <action>«line»</action>", "1. <action>«line»</action>", "<action>`«line»`</action>"),
    *('<action>"«line»"</action>', "<action>**«line»**</action>", "<action>\n```\n«line»\n```\n</action>"),
    *("I go: <action>«line»</action> is next.", "<p><action>«line»</action></p>", "<action>«line».</action>"),
    *("<action></action>\n<action>«line»</action>", "The tag `<action>` is next.\n<action>«line»</action>"),
)
_CALLS = (
    *("«json»", "```json\n«json»\n```", "```\n«json»\n```", "~~~json\n«json»\n~~~", "«native»"),
    *("```json\n«native»\n```", "- «json»", "**«native»**", "I call «native» now."),
    *("<tool_call>\n«native»\n</tool_call>", "<tool_call>«native»</tool_call>", "<tool_call>\n«native»"),
    *("[TOOL_CALLS] [«native»]", "[TOOL_CALLS][«native»]", "<|tool_call|>[«native»]"),
    *("<|python_tag|>«native»", "<function_call>«native»</function_call>"),
    "<|channel|>commentary to=functions.«name» <|constrain|>json<|message|>«arguments»<|call|>",
    (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.«name»:0<|tool_call_argument_begin|>"
        "«arguments»<|tool_call_end|><|tool_calls_section_end|>"
    ),
    (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>«name»\n```json\n«arguments»\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    '{"tool_calls": [{"type": "function", "function": «native»}]}',
    '{"function_name": "«name»", "arguments": «arguments»}',
)
_CODE = (
    *("```python\n«code»\n```", "```py\n«code»\n```", "```Python\n«code»\n```", "```\n«code»\n```"),
    *("~~~python\n«code»\n~~~", "```python\n\n«code»\n\n```", "```python\n# next\n«code»  # so\n```"),
    *("```python\n«code»", "**Next**\n```python\n«code»\n```", "````python\n«code»\n````"),
    *("```tool_code\n«code»\n```", "```python\n«code»;\n```"),
)
_ADAPT = (
    *("> «text»", ">«text»", "> think: I know.\n> «text»", "  > «text»", "> `«line»`", '> "«line»"'),
    *("> **«line»**", "> «line».", "```\n> «line»\n```", "think: I know.\n> «line»", ">  «line»"),
)
_WHOLE = (
    *("«text»", "\n\n«text»\n\n", "«line»", "`«line»`", "**«line»**", '"«line»"', "“«line»”", "«line»."),
    *("```\n«line»\n```", "```text\n«line»\n```", "*«line»*", "'«line»'", "`«line»`.", "**`«line»`**"),
)

INSIDE = {
    "react": (*_LABELLED, *_ENGLISH),
    "tags": _TAGGED,
    "function_calling": _CALLS,
    "tool_calls": _CALLS,
    "code_as_action": _CODE,
    "adapt": _ADAPT,
    "bare": _WHOLE,
}
"""By format, templates that the format reads between any lines."""

BEFORE = (
    *("", "<think>\nHm. «draft»\n</think>\n\n", "<think></think>", "<think>\n\n</think>\n\n"),
    *(
        "<thinking>Hm.\n«draft»</thinking>\n",
        "Hm. So it is.\n«draft»\n</think>\n",
        "[THINK]Hm. «draft»[/THINK]",
    ),
    *(
        "◁think▷Hm.\n«draft»◁/think▷",
        "<seed:think>Hm.\n«draft»</seed:think>",
        "<reasoning>\nHm.\n</reasoning>\n",
    ),
    "<|channel|>analysis<|message|>Hm.\n«draft»<|end|><|start|>assistant<|channel|>final<|message|>",
    *(
        "```thinking\nHm. So.\n```\n",
        "<think>One.</think>\n<think>Two.\n«draft»</think>\n",
        "\ufeff",
        "\n\n \n",
    ),
)
"""Closed reasoning, with a draft of another action; and nothing."""

BEHIND = (
    *("", "\n\n", "</s>", "<|im_end|>", "<|im_end|>\n", "<|eot_id|>", "<|endoftext|>", "<end_of_turn>\n"),
    *("<｜end▁of▁sentence｜>", "<|end|>", "<|eom_id|>", "</s></s>", "\n<|im_end|>\n<|endoftext|>"),
    "<|im_end|>\n<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n«draft»",
    "</s>\n«draft»",
    "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nGo on.<|eot_id|>\n«draft»",
)
"""The end of a turn, with text that a model writes after it."""

INVENTED = (
    *("\nObservation: You see a door.\n\n«draft»", "\n\nObservation:\nYou see a door.\n\n«draft»"),
    *(
        "\n**Observation:** A door.\n«draft»",
        "\n### Observation\nA door.\n«draft»",
        "\nOBSERVATION: A.\n«draft»",
    ),
    *("\n\n- Observation: A door.\n«draft»", "\n观察：门。\n«draft»", "\nBeobachtung: Eine Tür.\n«draft»"),
    *(
        "\nUser: Go on.\n«draft»",
        "\nHuman: Go on.\n\n«draft»",
        "\n### User\nGo on.\n«draft»",
        "\nuser\nGo on.\n«draft»",
    ),
    *("\n<tool_response>\nA door.\n</tool_response>\n«draft»", "\n**User:** Go on.\n«draft»"),
    "\nObservation: A door.\nThought: I go on.\n«draft»\nObservation: Another door.",
)
"""A turn that the model invents after its action, and another action after that."""


@cache
def pieces(action):
    """Return the pieces of an action by name; ``line`` is missing where the action has several lines."""
    arguments = action.to_json()
    found = {
        "text": FORMATS["bare"].render(action),
        "json": FORMATS["function_calling"].render(action),
        "native": json.dumps({"name": action.name(), "arguments": arguments}),
        "name": action.name(),
        "arguments": json.dumps(arguments),
        "code": "\n".join(FORMATS["code_as_action"].render(action).splitlines()[1:-1]),
    }
    if len(str(action).splitlines()) == 1:
        found["line"] = str(action)
    return found


def filled(template, action, label="Action"):
    """Return a template with its pieces; None where the action would run into the text around it."""
    found = {**pieces(action), "label": label}
    if "«line»" in template and "line" not in found:
        return None
    if any(_is_lost(template, piece, text) for piece, text in found.items() if f"«{piece}»" in template):
        return None
    for piece, text in found.items():
        template = template.replace(f"«{piece}»", text)
    return template


def _is_lost(template, piece, text):
    start, _, end = template.partition(f"«{piece}»")
    before, after = start.rpartition("\n")[2], end.partition("\n")[0]
    if piece == "line":
        around = {c for c in before[-2:] + after[:2] if c in "`*'\"“”_"}
        return (
            any(c in text for c in around)
            or ("```" in template and "```" in text)
            or (after.startswith(".") and _ends_elsewhere(text))
            or text != text.strip(" .`*'\"_-#:")
        )
    if (
        piece == "text" and "\n" in text
    ):  # a fence begins after a label, but no line of markdown goes on in it
        return after.strip(" ") != "" and not after.startswith("<")
    return piece == "native" and "*" in before and "*" in text


def _ends_elsewhere(text):
    """Return whether a full stop after a text may be part of it: SQL is no action of one line."""
    return text.endswith((".", "!", "?")) or text.upper().startswith(("SELECT", "WITH", "("))
