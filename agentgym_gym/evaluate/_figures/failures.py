"""Failures by kind: how unsolved episodes ended, and what the agent did in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["ENDINGS", "FAILURES", "count_failures", "failures_of"]

ENDINGS = {
    "turn_limit": "the turn limit ended the episode",
    "context_overflow": "the context of the model overflowed",
    "reply_cut": "the token limit cut a reply",
    "gave_up": "the agent ended the episode",
    "wrong_purchase": "the agent bought another product than the goal requires",
    "wrong_answer": "the agent gave a final answer, and it is wrong or incomplete",
    "ended_unsolved": "the environment ended the episode after another action",
    "other_ending": "the agent ended the episode with its own ending",
}
"""How an unsolved episode ended, with definitions. An episode has exactly one of these kinds."""

FAILURES = {
    **ENDINGS,
    "parse_error": "at least one reply has no valid action",
    "repeated_action": "the same action got the same observation three times in a row",
    "loop": "a sequence of two to six actions got the same observations three times in a row",
}
"""All kinds of failures, with definitions."""

_BY_AGENT = frozenset({"context_overflow", "reply_cut", "gave_up"})
_PURCHASE = re.compile(r"click\[\s*buy now\s*\]", re.IGNORECASE)
_ANSWER = re.compile(r"(?:action:\s*)?<?(?:finish|answer|submit|stop)\b", re.IGNORECASE)
_TIMES = 3
_LONGEST_LOOP = 6

_Turn: TypeAlias = "tuple[str, str | None] | None"


def failures_of(record: EpisodeRecord) -> tuple[str, ...]:
    """Return the kinds of failures of an episode, in the order of `FAILURES`.

    Returns:
        One ending, and any number of other kinds; nothing if the episode is solved, if a fault ended it, or
        if the environment does not report success.
    """
    if not record.scored or record.success is not False:
        return ()
    turns = _turns(record)
    found = {_ending(record)}
    if record.parse_errors:
        found.add("parse_error")
    if _repeats(turns, 1):
        found.add("repeated_action")
    if any(_repeats(turns, length) for length in range(2, _LONGEST_LOOP + 1)):
        found.add("loop")
    return tuple(kind for kind in FAILURES if kind in found)


def count_failures(records: Iterable[EpisodeRecord]) -> dict[str, int]:
    """Return the number of episodes by kind of failure, without kinds that no episode has."""
    counts = Counter(kind for record in records for kind in failures_of(record))
    return {kind: counts[kind] for kind in FAILURES if counts[kind]}


def _ending(record: EpisodeRecord) -> str:
    if record.ending == "truncated":
        return "turn_limit"
    if record.ending in _BY_AGENT:
        return record.ending
    if record.ending != "terminated":
        return "other_ending"
    action = next((step["action"] for step in reversed(record.steps) if step.get("action")), None)
    last = (action or (record.replies[-1] if record.replies else "")).strip()
    if _PURCHASE.search(last):
        return "wrong_purchase"
    return "wrong_answer" if _ANSWER.match(last) else "ended_unsolved"


def _turns(record: EpisodeRecord) -> list[_Turn]:
    """Return the action and the following observation of each turn; None for a turn without an action.

    In files of earlier versions, which have no actions, the replies replace them.
    """
    replies: list[tuple[str, str | None]] = []
    for message, following in zip_longest(record.messages, record.messages[1:]):
        if message["role"] == "assistant":
            replies.append((message["content"], None if following is None else following["content"]))
    turns: list[_Turn] = []
    for i, (reply, observation) in enumerate(replies):
        action = record.steps[i].get("action") if i < len(record.steps) else reply
        turns.append(None if action is None else (action, observation))
    return turns


def _repeats(turns: Sequence[_Turn], length: int) -> bool:
    """Return whether a sequence of turns of this length occurs three times in a row.

    A longer sequence does not consist of equal turns, which are a repeated action.
    """
    same = 0
    for i in range(length, len(turns)):
        same = same + 1 if turns[i] is not None and turns[i] == turns[i - length] else 0
        if same >= length * (_TIMES - 1) and (length == 1 or len(set(turns[i - length + 1 : i + 1])) > 1):
            return True
    return False
