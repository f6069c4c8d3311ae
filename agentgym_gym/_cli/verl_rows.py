"""Parse the options of ``agentgym verl init`` for each environment, and create the rows of its tasks."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

from agentgym_gym import data
from agentgym_gym._addresses import parse_urls
from agentgym_gym._cli.console import out, print_table
from agentgym_gym._cli.environments import ENV_TIMEOUT, require_text
from agentgym_gym._cli.options import text_of
from agentgym_gym._cli.resolve_env import all_by_name, by_name, json_object, resolve
from agentgym_gym._cli.training_tasks import describe_tasks
from agentgym_gym._text import redact
from agentgym_gym.data._items import training_items, validation_items
from agentgym_gym.errors import AgentGymError, BadOption, MissingExtra
from agentgym_gym.evaluate._tasks import is_tasks
from agentgym_gym.rollout import Pool

if TYPE_CHECKING:
    from agentgym_gym._cli.resolve_env import Chosen
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.rollout import EnvFacts
    from verl_bridge.recipes import EnvChoice, RlRecipe, Share

__all__ = [
    "EnvSelection",
    "TaskRows",
    "env_arguments",
    "print_shares",
    "read_options",
    "rows_of",
    "with_turn_limits",
]

TEST_TASKS = 8
"""The number of validation tasks for the preset ``test``."""

TASKS_PER_VALIDATION_TASK = 10
"""One in N tasks is for validation with the presets ``train`` and ``full``."""

MAX_VALIDATION_TASKS = 100
"""The maximum number of validation tasks per environment if there are several environments."""

TEST_STEPS = 8
"""The maximum number of training steps for the preset ``test``."""


@dataclass(frozen=True)
class EnvSelection:
    """The options of one environment.

    Attributes:
        chosen: The environment.
        weight: Relative weight of the environment in the training tasks.
        env_kwargs: Arguments of the environment, including its servers.
        tasks: The task selection; None for the default of the preset.
        val: The number of validation tasks; None for the default of the preset.
        split: The split of the tasks to train on; None for the training split.
        val_split: The split of the validation tasks; None for ``dev``, or training tasks that are kept out.
        system_prompt: The system prompt; None for the environment's own.
        isolate: Where each environment runs; None for the default.
        success_at: The return that counts as success if the environment reports none; None for the default.
    """

    chosen: Chosen
    weight: float
    env_kwargs: Mapping[str, Any]
    tasks: str | None
    val: int | None
    split: str | None
    system_prompt: str | None
    isolate: str | None = None
    success_at: float | None = None
    val_split: str | None = None


def read_options(
    envs: Sequence[str],
    *,
    server: Sequence[str] | None,
    env_kwargs: Sequence[str] | None,
    tasks: Sequence[str] | None,
    val: Sequence[str] | None,
    split: Sequence[str] | None,
    system_prompt: Sequence[str] | None,
    isolate: Sequence[str] | None = None,
    success_at: Sequence[str] | None = None,
    val_split: Sequence[str] | None = None,
    native_tools: bool = False,
) -> list[EnvSelection]:
    """Parse the options of ``agentgym verl init`` for each environment.

    Args:
        envs: The values of ``--env``: ``ID`` or ``ID=WEIGHT``.
        server: The values of ``--server``: ``URL`` or ``NAME=URL``. The other options have the same form.
        env_kwargs: JSON objects.
        tasks: Task selections.
        val: Numbers of validation tasks.
        split: Splits.
        system_prompt: Files.
        isolate: Isolation modes.
        success_at: Returns.
        val_split: Splits for validation.
        native_tools: Whether the model calls tools, for which AgentGym's environments have the action format
            ``tool_calls``.

    Raises:
        AgentGymError: The value of an option is invalid; the message names the option.
    """
    weighted = [_weighted(each) for each in envs]
    chosen = {each.source.name: each for each, _ in weighted}
    if len(chosen) < len(weighted):
        named = [each.source.name for each, _ in weighted]
        twice = next(name for name in named if named.count(name) > 1)
        raise BadOption(f"--env is given twice for {twice}")
    names = list(chosen)
    servers = all_by_name("--server", server, names)
    arguments = by_name("--env-kwargs", env_kwargs, names)
    ids, splits = by_name("--tasks", tasks, names), by_name("--split", split, names)
    numbers, files = by_name("--val", val, names), by_name("--system-prompt", system_prompt, names)
    isolations = by_name("--isolate", isolate, names)
    thresholds = by_name("--success-at", success_at, names)
    val_splits = by_name("--val-split", val_split, names)
    return [
        EnvSelection(
            each,
            weight,
            _arguments(
                each.environment,
                json_object(arguments.get(name, "{}")),
                servers.get(name),
                native_tools=native_tools,
            ),
            ids.get(name),
            _number(numbers[name]) if name in numbers else None,
            splits.get(name),
            text_of(Path(files[name])) if name in files else None,
            isolations.get(name),
            _return(thresholds[name]) if name in thresholds else None,
            val_splits.get(name),
        )
        for (name, each), (_, weight) in zip(chosen.items(), weighted, strict=True)
    ]


def _weighted(text: str) -> tuple[Chosen, float]:
    name, equals, weight = text.partition("=")
    if not equals:
        return resolve(name), 1.0
    try:
        number = float(weight)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise BadOption(
            f"--env {text!r:.80}: the weight {weight!r:.40} should be a positive number, such as 2 or 0.5"
        )
    return resolve(name), number


def _arguments(
    environment: Environment | None,
    env_kwargs: dict[str, Any],
    servers: Sequence[str] | None,
    *,
    native_tools: bool,
) -> dict[str, Any]:
    if environment and "headers" in env_kwargs:
        raise BadOption(
            f"--env-kwargs contains headers; set {environment.headers_variable} where the training runs"
        )
    if environment and native_tools:
        env_kwargs = {"action_format": "tool_calls"} | env_kwargs
    return env_kwargs | ({"server": _servers(environment, servers)} if servers else {})


def _servers(environment: Environment | None, values: Sequence[str]) -> list[str]:
    if environment is None:
        raise BadOption("--server is only for AgentGym's environments; for others, give --env-kwargs")
    urls = [url for value in values for url in parse_urls(value, "--server")]
    if any(redact(url) != url for url in urls):
        raise BadOption(f"--server contains a password; set {environment.variable} where the training runs")
    return urls


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise BadOption(f"--val {text!r:.40} should be a number of tasks, from 1")
    return int(text)


def _return(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadOption(f"--success-at {text!r:.40} should be a number, such as 1 or 0.5")
    return number


def env_arguments(selections: Sequence[EnvSelection]) -> dict[str, Any]:
    """Return the arguments of a recipe that specify its environment, or several environments.

    Raises:
        ValueError: An id is invalid.
    """
    if len(selections) == 1:
        (only,) = selections
        return {
            "env_id": only.chosen.name,
            "env_kwargs": only.env_kwargs,
            "isolate": only.isolate,
            "success_at": only.success_at,
        }
    from verl_bridge.recipes import EnvChoice  # noqa: PLC0415 - no other command needs this import

    return {
        "envs": [
            EnvChoice(each.chosen.name, each.env_kwargs, each.weight, each.isolate, each.success_at)
            for each in selections
        ]
    }


def with_turn_limits(recipe: RlRecipe, selections: Sequence[EnvSelection]) -> RlRecipe:
    """Return a recipe that passes the turn limit to each environment as an argument.

    AgentGym's environments have a default limit, which might end episodes sooner. An environment of another
    library needs an argument only if its limit is below that of the loop, which is the highest of all.
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
        BadOption: There are too few tasks, the weight of an environment leaves it without rows, or the
            observations of another library's environment are not text.
        MissingExtra: pyarrow is not installed.
        ValueError: An environment of another library cannot be created.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra("Writing the tasks", extra="data", module="pyarrow")
    from verl_bridge.recipes._shares import repeat_to  # noqa: PLC0415 - no other command needs this import

    selections = [
        each if each.chosen.environment else dataclasses.replace(each, system_prompt=_prompt(env, each))
        for env, each in zip(recipe.environments, selections, strict=True)
    ]
    if recipe.several:
        return _weighted_rows(recipe, selections)
    (only,) = selections
    train, val = _split_tasks(recipe, only)
    notes = [*_notes(only, train, val), *_notes_on_paper(recipe, only)]
    train = repeat_to(train, max(len(train), recipe.size.batch))  # verl makes no step of less than a batch
    return TaskRows({"train": _rows(recipe, 0, only, train), "val": _rows(recipe, 0, only, val)}, notes=notes)


def _notes(each: EnvSelection, train: Sequence[int], val: Sequence[int]) -> Iterable[str]:
    environment = each.chosen.environment
    return [] if environment is None else describe_tasks(environment, train, val)


def _notes_on_paper(recipe: RlRecipe, each: EnvSelection) -> Iterator[str]:
    """Yield how the tasks relate to those of the paper whose settings a recipe has."""
    if recipe.published is None:
        return
    if _is_published(recipe, each):
        yield f"The tasks of {each.tasks} count as those of {recipe.like}, of any split."
    else:
        yield f"{recipe.like} trained on {recipe.published.tasks}"


def _is_published(recipe: RlRecipe, each: EnvSelection) -> bool:
    """Return whether the tasks come from the item file of the paper whose settings a recipe has."""
    return recipe.like is not None and each.tasks is not None and not is_tasks(each.tasks)


def _prompt(env: EnvChoice, each: EnvSelection) -> str | None:
    """Return the system prompt for an environment of another library.

    To check the environment, this creates and resets it with the isolation that training will use.

    Raises:
        SetupError: The observations are not text.
        ValueError: The environment cannot be created.
    """
    try:
        facts = asyncio.run(_facts(env))
    except AgentGymError:
        raise
    except Exception as error:  # a foreign constructor may raise anything
        kind = getattr(error, "kind", type(error).__name__)
        raise ValueError(f"cannot create the environment {env.env_id!r}: {kind}: {error}") from error
    return each.system_prompt or facts.system_prompt


async def _facts(env: EnvChoice) -> EnvFacts:
    isolate: Any = env.isolate  # checked by the recipe
    async with Pool(env.env_id, env.env_kwargs, isolate=isolate, timeout=ENV_TIMEOUT) as pool:
        await require_text(pool, 0)
        return await pool.facts()


def _weighted_rows(recipe: RlRecipe, selections: Sequence[EnvSelection]) -> TaskRows:
    """Return the rows of several environments in proportion to their weights, in whole batches."""
    # No other command needs this import.
    from verl_bridge.recipes._shares import Share, apportion, interleave, repeat_to  # noqa: PLC0415

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
        # As many episodes of each environment, so that no success rate is known worse than another.
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
    items = training_items(each.chosen.environment, each.tasks or "all", each.split)
    only_val = validation_items(each.chosen.environment, items, each.val_split)
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
    from verl_bridge.recipes._recipe import MAX_VALIDATION  # noqa: PLC0415 - no other command needs this import

    default = TEST_TASKS if recipe.preset == "test" else max(1, count // TASKS_PER_VALIDATION_TASK)
    most = MAX_VALIDATION_TASKS if recipe.several else MAX_VALIDATION if recipe.preset == "train" else default
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
    from verl_bridge.recipes import seeded  # noqa: PLC0415 - no other command needs this import

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
