"""Check the numbers: each setting against its range, and settings against each other, by a table of rules."""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_bridge._run.loop_arguments import LOOP
from verl_bridge.recipes._choices import turn_limit_of
from verl_bridge.recipes._finding import Finding, ok
from verl_bridge.recipes._nodes import loopback_server
from verl_bridge.recipes._numbers import RlNumbers, SftNumbers
from verl_bridge.recipes._verl_settings import Settings, read_settings

if TYPE_CHECKING:
    from verl_bridge.recipes._check_data import Rows, RowTask
    from verl_bridge.recipes._check_loop import Loops
    from verl_bridge.recipes._model_size import ModelSize
    from verl_bridge.recipes._rule import Rule
    from verl_bridge.tasks import EnvTask

__all__ = ["check_numbers", "read_numbers", "read_sft_numbers"]

_TEMPLATE = "actor_rollout_ref.model.custom_chat_template"
_DUMPS = ("trainer.rollout_data_dir", "trainer.validation_data_dir")

_TEMPLATE_OPTIONS = ("enable_thinking", "preserve_thinking", "reasoning_effort", "thinking_budget")
"""Variables of current chat templates."""

_ANY_TEMPLATE = frozenset({"add_generation_prompt", "continue_final_message", "documents", "tools"})
"""Variables that a template has without naming them."""


def read_numbers(
    folder: Path,
    all_settings: Settings,
    loops: Loops,
    rows: Rows | None = None,
    tasks: Mapping[str, Collection[RowTask]] | None = None,
    context: int | None = None,
    size: ModelSize | None = None,
    tokenizer: Any = None,
) -> RlNumbers:
    """Return the settings that the rules compare, with facts about the folder.

    Args:
        folder: The training folder.
        all_settings: Its settings.
        loops: The definitions of what plays the environment.
        rows: The rows; None if they cannot be read here.
        tasks: The tasks of the rows; None if they cannot be read here.
        context: The context of the model in tokens, or None.
        size: The size of the model; None if it is not known.
        tokenizer: The model's tokenizer; None if it is not here.
    """
    numbers = read_settings(RlNumbers, all_settings)
    template = all_settings.get(_TEMPLATE) or getattr(tokenizer, "chat_template", None)
    played = [row.task for part in (tasks or {}).values() for row in part if row.task is not None]
    episodes = loops.arguments.get("episodes_dir")
    observation = loops.arguments.get("max_observation_tokens")
    return dataclasses.replace(
        numbers,
        **_facts(numbers, rows, context, size, template),
        own_loop=any(entry["_target_"] == LOOP for entry in loops.entries),
        turn_rows=loops.arguments.get("rows") == "turn",
        loop_turns=loops.turn_limit,
        env_turns=_longest(played),
        observation=observation if type(observation) is int else None,
        loopback=next(filter(None, (loopback_server(task) for task in played)), ""),
        no_episodes=_unwritable([folder / str(episodes)] if episodes else []),
        no_dumps=_unwritable([path for key in _DUMPS for path in all_settings.paths(key)]),
    )


def read_sft_numbers(
    all_settings: Settings,
    rows: Rows | None = None,
    context: int | None = None,
    size: ModelSize | None = None,
    tokenizer: Any = None,
) -> SftNumbers:
    """Return the same for fine-tuning."""
    numbers = read_settings(SftNumbers, all_settings)
    template = all_settings.get("model.custom_chat_template") or getattr(tokenizer, "chat_template", None)
    return dataclasses.replace(numbers, **_facts(numbers, rows, context, size, template))


def _facts(
    numbers: RlNumbers | SftNumbers,
    rows: Rows | None,
    context: int | None,
    size: ModelSize | None,
    template: Any,
) -> dict[str, Any]:
    """Return the facts that the records of both trainers have, by the names of their fields."""
    count = len(rows.parts["train"]) if rows and "train" in rows.parts else None
    if count is not None and numbers.train_samples > 0:
        count = min(count, numbers.train_samples)
    total = numbers.steps
    if total is None and count is not None and numbers.epochs is not None:
        total = count // numbers.batch * numbers.epochs
    heads, key_heads = (size.heads if size else None) or (0, 0)
    misspelt, unused = _template_errors(numbers.template_options, template)
    return {
        "total": total,
        "train_rows": count,
        "context": context,
        "heads": heads,
        "key_heads": key_heads,
        "misspelt": misspelt,
        "unused": unused,
        "no_checkpoints": _unwritable(numbers.checkpoints),
    }


def check_numbers(
    numbers: RlNumbers | SftNumbers, rules: Mapping[str, Sequence[Rule[Any]]]
) -> Iterator[Finding]:
    """Check the numbers by each rule."""
    every = [rule for of_subject in rules.values() for rule in of_subject]
    broken = [rule for rule in every if rule.wrong(numbers)]
    for rule in broken:
        yield rule.finding(numbers)
    if not broken:
        yield ok("numbers", f"lengths, sizes, ranges and unused settings: {len(every)} rules hold")


def _longest(tasks: Collection[EnvTask]) -> int | None:
    """Return the highest turn limit of the environments; None if one of them has none among its arguments."""
    limits = [turn_limit_of(task.env_kwargs) for task in tasks]
    given = [limit for limit in limits if limit is not None]
    return max(given) if given and len(given) == len(limits) else None


def _template_errors(options: Mapping[str, Any] | None, template: Any) -> tuple[str, str]:
    """Return the options of the chat template that are misspelt, and others that it does not have.

    Args:
        options: The options.
        template: The chat template; None if it is not known here.
    """
    misspelt, unused = [], []
    for name in map(str, options) if isinstance(options, Mapping) else ():
        if name in _ANY_TEMPLATE or (template and re.search(rf"\b{re.escape(name)}\b", str(template))):
            continue
        if name not in _TEMPLATE_OPTIONS and difflib.get_close_matches(name, _TEMPLATE_OPTIONS, 1, 0.8):
            misspelt.append(name)
        elif template:
            unused.append(name)
    return ", ".join(misspelt), ", ".join(unused)


def _unwritable(paths: Collection[Path]) -> str:
    """Return the first folder that can be neither written nor made, or an empty text."""
    for path in paths:
        existing = next(each for each in (path, *path.parents) if os.path.exists(each))  # noqa: PTH110 - False if it may not be read
        # Only the root of the path exists: the folder may be a mount of the machine that trains.
        if existing == Path(path.anchor):
            continue
        if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            return str(path)
    return ""
