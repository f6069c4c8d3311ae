"""Ways in which models write an action, and what the default parser makes of each."""

from __future__ import annotations

from agentgym_gym.errors import ActionError, ManyActions, NoAction

__all__ = ["MARKED", "WAYS"]

WAYS: dict[str, type[ActionError] | None] = {
    "Thought:\nI think.\n\nAction:\n{action}": None,
    "Thought: I think.\nAction: {action}": None,
    "Action: {action}": None,
    "Action:{action}": None,
    "  Action:   {action}   ": None,
    "Thought:\nx\n\nAction:\n\n{action}": None,
    "thought: x\naction: {action}": None,
    "思考：好\n\nAction:\n{action}": None,
    "<think>x</think>\nAction:\n{action}": None,
    "Thought:\nmy Action: is good\n\nAction:\n{action}": None,
    "Thought:\nx\n\nAction:\n{action}\nObservation: done": None,
    "Thought:\nx\n\nAction:\n{action}</s>": None,
    "Thought:\nx\n\nAction:\n{action}<|im_end|>": None,
    'Thought:\nx\n\nAction:\n"{action}"': None,
    "Thought:\nx\n\nAction:\n`{action}`": None,
    "Thought:\nx\n\nAction:\n```\n{action}\n```": None,
    "Thought:\nx\n\nAction:\n**{action}**": None,
    "Thought:\nx\n\nAction:\n{ACTION}": None,
    "Thought:\nx\r\n\r\nAction:\r\n{action}\r\n": None,
    "Thought:\nx\n\nAction:\n{action}\n\nAction:\n{action}": ManyActions,
    "Thought:\nx\n\nAction:\n{action}\n{next}": ManyActions,
    "{action}": NoAction,
    "": NoAction,
    "Thought:\nonly a thought": NoAction,
    "[[ {action} ]]": NoAction,
    "> think: x\n> {action}": NoAction,
    "<action>{action}</action>": NoAction,
}
"""A template of a reply in the format ``react``: the kind of error, or None where the action is read."""

MARKED = frozenset({"{action}", "[[ {action} ]]", "> think: x\n> {action}", "<action>{action}</action>"})
"""Those that are read all the same where an action shows by itself that it is one."""
