"""Writing the folder of a recipe."""

from __future__ import annotations

import json
import shlex
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from verl_bridge._replays import FAULT_BUDGET
from verl_bridge.recipes._papers import about
from verl_bridge.recipes._recipe import MODULES
from verl_bridge.recipes._settings import LOOP, settings, to_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_bridge.recipes._recipe import Recipe
    from verl_bridge.recipes._shares import Share

__all__ = ["RELEASES", "put", "render", "template", "write"]

_HEAD = """\
# verl $verl: $algorithm in $env_ids, generating with $engine.
# Only what differs from verl's own ppo_trainer.yaml, and what you may want to see. `bash run.sh` starts it.
hydra:
  searchpath:
    - pkg://verl.trainer.config

defaults:
  - ppo_trainer
  - _self_

# Where this folder is; run.sh says it.
folder: .
"""

_LOOP = """\
# The loop that plays. $about
- name: $loop
  _target_: verl_bridge.agent_loop.GymAgentLoop$environment
  # Replies in an episode, and tokens of a reply, at most.$sources
  $limit
  max_tokens_per_turn: $reply
  # Seconds for which an episode is played anew after the environment, not the agent, failed; 0 for never.
  fault_budget: $fault_budget
  # Folder beside this file, to which each episode is written as it ends: `agentgym report` shows it.
  episodes_dir: $episodes
"""

_TOOL_LOOP = """\
# verl's own loop, which speaks to interactions, under the name that the rows ask for.
- name: $loop
  _target_: verl.experimental.agent_loop.tool_agent_loop.ToolAgentLoop
"""

_INTERACTION = """\
# $about
interaction:
  - name: $loop
    class_name: verl_bridge.interaction.GymInteraction
    config:$environment
      # Replies in an episode at most.
      max_turns: $turns
      # Seconds for which an episode that cannot begin is tried anew; 0 for never.
      fault_budget: $fault_budget
"""


def render(recipe: Recipe, *, shares: Sequence[Share] = ()) -> dict[str, str]:
    """Return the text of each file of a recipe's folder by its name.

    Args:
        recipe: The recipe.
        shares: What the rows hold of each of several environments.
    """
    lengths = recipe.lengths
    interaction = recipe.integration == "interaction"
    ids = [env.env_id for env in recipe.environments]
    values: dict[str, Any] = {
        "about": _ROWS_SAY if recipe.several else _ROWS_FIRST,
        "algorithm": recipe.algorithm,
        "engine": recipe.engine,
        "environment": "" if recipe.several else _environment(recipe, " " * (6 if interaction else 2)),
        "episodes": EPISODES,
        "fault_budget": f"{FAULT_BUDGET:g}",
        "limit": _limit(recipe),
        "loop": LOOP,
        "reply": lengths.reply,
        "sources": _sources(recipe),
        "turns": lengths.turns,
        "verl": recipe.verl,
    }
    plain = values | {
        "env_ids": ", ".join(ids),
        "environments": " and ".join(f"`{env_id}`" for env_id in ids),
        "shares": _about_shares(shares),
        "watch": "" if interaction else _WATCH,
        "gpus": recipe.gpus,
        "model": recipe.model,
        "modules": _about_modules(recipe.algorithm),
        "name": recipe.name,
        "package": shlex.quote(f"verl=={RELEASES[recipe.verl]}"),
        "integration": _INTERACTION_ROW if interaction else "",
        "like": f"\n{about(recipe.like, recipe.published.source)}\n"
        if recipe.published and recipe.like
        else "",
    }
    files = {
        "config.yaml": Template(_HEAD).substitute(plain) + to_yaml(settings(recipe)),
        "agent_loop.yaml": Template(_TOOL_LOOP if interaction else _LOOP).substitute(values),
        "run.sh": Template(template("run.sh")).substitute(plain),
        "README.md": Template(template("README.md")).substitute(plain),
    }
    if interaction:
        files["interaction.yaml"] = Template(_INTERACTION).substitute(values)
    return files


def _sources(recipe: Recipe) -> str:
    """Return comments that say where the published ones of the loop's limits come from."""
    if recipe.published is None:
        return ""
    values = {"turns": recipe.stages, "every": recipe.turns_every, "reply": recipe.lengths.reply}
    cited = [recipe.published.cite(name, value) for name, value in values.items()]
    if len(recipe.stages) < 2:  # noqa: PLR2004 - one limit is always the same
        del cited[1]
    return "".join(f"\n  # {line}" for line in cited if line)


def _limit(recipe: Recipe) -> str:
    """Return the line of the loop that limits the turns."""
    if len(recipe.stages) < 2:  # noqa: PLR2004 - one limit is always the same
        return f"max_turns: {recipe.lengths.turns}"
    return f"horizon: {{turns: {list(recipe.stages)}, every: {recipe.turns_every}}}"


def write(recipe: Recipe, folder: Path, *, shares: Sequence[Share] = (), force: bool = False) -> list[Path]:
    """Write the folder of a recipe, but for its data.

    Args:
        recipe: The recipe.
        folder: Where to; made where there is none.
        shares: What the rows hold of each of several environments.
        force: Whether to replace files that are there.

    Returns:
        The paths written.

    Raises:
        FileExistsError: One of the files is there and ``force`` is false; nothing was written.
        OSError: The folder cannot be written to.
    """
    return put(folder, render(recipe, shares=shares), (*_NAMES, *_DATA), force=force)


def put(folder: Path, files: Mapping[str, str], names: Iterable[str], *, force: bool) -> list[Path]:
    """Write the files of a recipe.

    Args:
        folder: Where to; made where there is none.
        files: Their texts by their names, ``run.sh`` among them.
        names: All that such a folder may hold.
        force: Whether to replace files that are there.

    Returns:
        The paths written.

    Raises:
        FileExistsError: One of the names is there and ``force`` is false; nothing was written.
        OSError: The folder cannot be written to.
    """
    there = [name for name in names if (folder / name).exists()]
    if there and not force:
        raise FileExistsError(f"{folder} holds {', '.join(there)}: choose another folder, or say --force")
    folder.mkdir(parents=True, exist_ok=True)
    for name in there:  # also the interaction of an earlier recipe, and its tasks
        (folder / name).unlink()
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "run.sh").chmod(0o755)
    return [folder / name for name in files]


_NAMES = ("config.yaml", "agent_loop.yaml", "interaction.yaml", "run.sh", "README.md")
_DATA = ("data/train.parquet", "data/val.parquet")

RELEASES: Mapping[str, str] = {"0.7": "0.7.1", "0.8": "0.8.0", "0.9": "0.9.1"}

EPISODES = "episodes"
"""Folder of the episodes of the training, beside the loop's yaml."""

_WATCH = f"""
Each episode is written to `{EPISODES}/` as it ends, those of validations too. While the training goes on, and
after it, this shows its figures over the training steps, and every episode:

```console
agentgym report {EPISODES} --out report.html
```
"""

_ROWS_FIRST = "What a row says of the environment goes before what stands here."
_ROWS_SAY = "The rows name the environments and give their arguments, with the turn limit of each."

_OF_SEVERAL = """\
verl draws each row of `train.parquet` once in an epoch. So an environment's share of the rows is its share of
the tasks that are trained on. Its arguments, with its turn limit, are in its rows."""

_INTERACTION_ROW = "\n| `interaction.yaml` | the interaction, by which verl's loop reaches the environment |"


def _environment(recipe: Recipe, pad: str) -> str:
    """Return the lines of the yaml that name the one environment, after a line that is not ended."""
    (env,) = recipe.environments
    named = {"env_id": env.env_id, "env_kwargs": dict(env.env_kwargs), **env.runtime}
    return "".join(f"\n{pad}{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in named.items())


def _about_shares(shares: Sequence[Share]) -> str:
    """Return the table of the environments, where there are several."""
    if not shares:
        return ""
    head = "| environment | weight | rows for training | tasks | for validation |\n|---|---|---|---|---|"
    lines = [
        f"| `{share.env_id}` | {share.weight:g} | {share.rows:,} | {share.said or 'a task each'} "
        f"| {share.val:,} |"
        for share in shares
    ]
    return f"\n{_OF_SEVERAL}\n\n" + "\n".join([head, *lines]) + "\n"


def _about_modules(algorithm: str) -> str:
    own = MODULES.get(algorithm)
    why = "# verl_bridge.trainer has verl log what happens in the environments"
    why += f"; {algorithm} is not one of verl's own." if own else "."
    others = "$" + "{VERL_USE_EXTERNAL_MODULES:+,$VERL_USE_EXTERNAL_MODULES}"
    modules = ",".join(["verl_bridge.trainer", *([own] if own else [])])
    return f'{why}\nexport VERL_USE_EXTERNAL_MODULES="{modules}{others}"'


def template(name: str) -> str:
    """Return the text of a template by its name."""
    return (resources.files("verl_bridge.recipes") / "templates" / name).read_text("utf-8")
