"""Create the rows of the tasks of ``agentgym verl init``."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium

from agentgym_gym import data
from agentgym_gym.commands import out, print_table
from agentgym_gym.errors import BadOption, MissingExtra
from agentgym_gym.rollout import Pool
from verl_bridge._commands.selections import validation_of
from verl_bridge._commands.task_notes import describe_tasks
from verl_bridge.recipes import Share, seeded
from verl_bridge.recipes._env_shares import apportion, interleave, repeat_to
from verl_bridge.tasks import ENV_TIMEOUT

if TYPE_CHECKING:
    from agentgym_gym.rollout import EnvFacts
    from verl_bridge._commands.selections import EnvSelection
    from verl_bridge.recipes import EnvChoice, RlRecipe

__all__ = ["TaskRows", "print_shares", "rows_of", "with_turn_limits"]

TEST_TASKS = 8
"""The number of validation tasks for the preset ``test``."""

TASKS_PER_VALIDATION_TASK = 10
"""One in N tasks is for validation with the presets ``train`` and ``full``."""

MAX_VALIDATION_TASKS = 100
"""The maximum number of validation tasks per environment if there are several environments."""

TEST_STEPS = 8
"""The maximum number of training steps for the preset ``test``."""


def with_turn_limits(recipe: RlRecipe, selections: Sequence[EnvSelection]) -> RlRecipe:
    """Return a recipe that passes the turn limit to each environment as an argument.

    AgentGym's environments have a default limit, which might end episodes sooner. An environment of another
    library needs an argument only if its limit is below the loop's, which is the highest of all.
    """
    envs = []
    for env, each in zip(recipe.environments, selections, strict=True):
        turns, own = recipe.lengths_of(env).turns, dict(env.env_kwargs)
        if each.chosen.environment is not None:
            own.setdefault("max_turns", turns)
        elif turns < recipe.lengths.turns:
            registered = gymnasium.spec(each.chosen.id).max_episode_steps
            own.setdefault("max_episode_steps", min(registered or turns, turns))
        envs.append(dataclasses.replace(env, env_kwargs=own))
    if recipe.several:
        return dataclasses.replace(recipe, envs=envs)
    return dataclasses.replace(recipe, env_kwargs=envs[0].env_kwargs)


@dataclass(frozen=True)
class TaskRows:
    """The tasks of a recipe.

    Attributes:
        parts: The rows by ``"train"`` and ``"val"``.
        shares: The rows of each of several environments.
        notes: Lines about the splits of the tasks.
    """

    parts: Mapping[str, list[dict[str, Any]]]
    shares: Sequence[Share] = ()
    notes: Sequence[str] = ()


def rows_of(recipe: RlRecipe, selections: Sequence[EnvSelection]) -> TaskRows:
    """Return the rows of a recipe.

    Args:
        recipe: The recipe.
        selections: The options of each environment in the recipe.

    Raises:
        BadOption: There are too few tasks, the weight of an environment leaves it without rows, or another
            library's environment cannot be created or has observations that are not text.
        MissingExtra: pyarrow is not installed.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra("Writing the tasks", extra="data", module="pyarrow")
    selections = [
        each if each.chosen.environment else dataclasses.replace(each, system_prompt=_prompt(env, each))
        for env, each in zip(recipe.environments, selections, strict=True)
    ]
    if recipe.several:
        return _weighted_rows(recipe, selections)
    (only,) = selections
    train, val = _split_tasks(recipe, only)
    notes = [*_notes(only, train, val), *_notes_on_paper(recipe, only)]
    train = repeat_to(train, max(len(train), recipe.size.batch))  # verl never runs a partial batch
    return TaskRows({"train": _rows(recipe, 0, only, train), "val": _rows(recipe, 0, only, val)}, notes=notes)


def _notes(each: EnvSelection, train: Sequence[int], val: Sequence[int]) -> Iterable[str]:
    environment = each.chosen.environment
    return [] if environment is None else describe_tasks(environment, train, val)


def _notes_on_paper(recipe: RlRecipe, each: EnvSelection) -> Iterator[str]:
    """Yield how the tasks relate to the tasks of the paper whose settings a recipe has."""
    if recipe.published is None:
        return
    if _is_published(recipe, each):
        yield f"The tasks of {each.tasks} count as the tasks of {recipe.like}, of any split."
    else:
        yield f"{recipe.like} trained on {recipe.published.tasks}"


def _is_published(recipe: RlRecipe, each: EnvSelection) -> bool:
    """Return whether the tasks come from the item file of the paper whose settings a recipe has."""
    return recipe.like is not None and each.tasks is not None and not data.is_tasks(each.tasks)


def _prompt(env: EnvChoice, each: EnvSelection) -> str | None:
    """Return the system prompt for an environment of another library.

    To check the environment, this creates and resets it with the isolation that training will use.

    Raises:
        SetupError: The environment cannot be created, or its observations are not text.
    """
    facts = asyncio.run(_facts(env))
    return each.system_prompt or facts.system_prompt


async def _facts(env: EnvChoice) -> EnvFacts:
    isolate: Any = env.isolate  # checked by the recipe
    async with Pool(env.env_id, env.env_kwargs, isolate=isolate, timeout=ENV_TIMEOUT) as pool:
        return await pool.text_facts()


def _weighted_rows(recipe: RlRecipe, selections: Sequence[EnvSelection]) -> TaskRows:
    """Return the rows of several environments in proportion to their weights, in whole batches."""
    splits = [_split_tasks(recipe, each) for each in selections]
    batch = recipe.size.batch
    total = sum(len(train) for train, _ in splits)
    if recipe.preset == "test" and all(each.tasks is None for each in selections):
        total = min(total, batch * TEST_STEPS)
    total = max(total, batch)
    counts = apportion(total - total % batch, [each.weight for each in selections])
    most = max(len(val) for _, val in splits)
    rows_by_part: dict[str, list[list[dict[str, Any]]]] = {"train": [], "val": []}
    shares: list[Share] = []
    for at, (each, (train, val), count) in enumerate(zip(selections, splits, counts, strict=True)):
        if not count:
            raise BadOption(
                f"the weight {each.weight:g} of {each.chosen.id} gives it none of {sum(counts)} rows: "
                "raise the weight"
            )
        rows_by_part["train"].append(_rows(recipe, at, each, repeat_to(train, count)))
        # The same number of episodes for each environment, so that all success rates are equally precise.
        repeated = repeat_to(val, most) if recipe.preset == "train" else val
        rows_by_part["val"].append(_rows(recipe, at, each, repeated))
        shares.append(Share(each.chosen.id, each.weight, count, min(count, len(train)), len(train), len(val)))
    parts = {part: _with_index(interleave(rows)) for part, rows in rows_by_part.items()}
    notes = [line for each, tasks in zip(selections, splits, strict=True) for line in _notes(each, *tasks)]
    return TaskRows(parts, shares, notes)


def _with_index(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for index, row in enumerate(rows):
        row["extra_info"]["index"] = index
    return rows


def _split_tasks(recipe: RlRecipe, each: EnvSelection) -> tuple[list[int], list[int]]:
    """Return the training tasks and the validation tasks of an environment."""
    few = recipe.preset == "test" and each.tasks is None
    limit = recipe.size.batch * TEST_STEPS + TEST_TASKS if few else None
    if each.chosen.environment is None:
        seeds = each.chosen.tasks(each.tasks or (f"0:{limit}" if limit else "all"), each.split)
        val = _for_validation(recipe, each, len(seeds))
        return seeds[val:], seeds[:val]
    items = data.training_items(each.chosen.environment, each.tasks or "all", each.split)
    only_val = validation_of(each.chosen.environment, items, each.val_split)
    count = min(limit or len(items), len(items))
    division = data.divide(
        items,
        val=_for_validation(recipe, each, count, len(only_val)),
        num_samples=count if few else None,
        validation=only_val,
    )
    return [item.task_id for item in division.train], [item.task_id for item in division.val]


def _for_validation(recipe: RlRecipe, each: EnvSelection, count: int, only_val: int = 0) -> int:
    """Return the number of validation tasks.

    Args:
        recipe: The recipe.
        each: The options of the environment.
        count: The number of tasks to train on, from which the validation tasks are kept out.
        only_val: The number of tasks for validation only; if there are any, none is kept out.
    """
    default = TEST_TASKS if recipe.preset == "test" else max(1, count // TASKS_PER_VALIDATION_TASK)
    most = (
        MAX_VALIDATION_TASKS
        if recipe.several
        else recipe.val_episodes
        if recipe.preset == "train"
        else default
    )
    val = each.val or min(default, most, only_val or default)
    if val >= count and not only_val:
        of = f" of {each.chosen.id}" if recipe.several else ""
        raise BadOption(
            f"{val} of {count} tasks{of} for validation leave none for training: give more --tasks, or a "
            "smaller --val"
        )
    return val


def _rows(recipe: RlRecipe, at: int, each: EnvSelection, tasks: Sequence[int]) -> list[dict[str, Any]]:
    """Return the rows of some tasks; a single environment's arguments are in the loop's YAML instead."""
    rows = _rows_of_tasks(recipe, at, each, tasks)
    for row in rows:
        if recipe.several:
            row["extra_info"]["interaction_kwargs"] |= recipe.environments[at].runtime
        if _is_published(recipe, each):
            row["extra_info"]["tasks_of"] = recipe.like  # for `agentgym verl check`
    return rows


def _rows_of_tasks(
    recipe: RlRecipe, at: int, each: EnvSelection, tasks: Sequence[int]
) -> list[dict[str, Any]]:
    env = recipe.environments[at]
    kwargs = env.env_kwargs if recipe.several else {}
    if each.chosen.environment is None:
        return seeded(env.env_id, tasks, each.system_prompt, kwargs)
    environment = each.chosen.environment
    prompt = each.system_prompt or data.own_prompt(environment, env.env_kwargs)
    settings = data.Recipe(kwargs, prompt, each.chosen.module)
    return [*data.rows([data.Item(environment, task) for task in tasks], {environment.name: settings})]


def print_shares(shares: Sequence[Share]) -> None:
    """Print the numbers of rows and tasks of each environment."""
    table = [
        (share.env_id, f"{share.weight:g}", f"{share.rows:,}", share.note, f"{share.val:,}")
        for share in shares
    ]
    print_table(("environment", "weight", "train", "tasks", "val"), table, left={"environment"})
    out.print(
        f"{sum(share.rows for share in shares):,} rows for training, in whole batches, so an epoch uses all.",
    )
