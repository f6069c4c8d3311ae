"""Convert tasks and trajectories to the files that verl trains on.

::

    from pathlib import Path

    from agentgym_gym.catalogue import find
    from agentgym_gym.data import Recipe, divide, items_of, own_prompt, rows, schema, write

    environment = find("WebShop")
    items = items_of(environment, split="train")  # or read_items(Path("webshop_train.json"))
    division = divide(items, val=0.1, seed=0)
    kwargs = {"action_format": "react"}
    recipes = {"WebShop": Recipe(kwargs, own_prompt(environment, kwargs))}
    files = {"train": rows(division.train, recipes), "val": rows(division.val, recipes)}
    write(Path("data/webshop"), files, schema())

Trajectories can be read from runs, AgentGym files or parquet rows, and written as rows for fine-tuning::

    from agentgym_gym import AgentGymEnv
    from agentgym_gym.data import read_trajectories, select, sft_rows, sft_schema
    from agentgym_gym.evaluate import RunFolder, evaluate, load_oracle

    env = AgentGymEnv("TextCraft")
    with RunFolder(Path("runs/oracle"), {"system_prompt": env.system_prompt}) as folder:
        evaluate(env, load_oracle(env.environment), range(5), on_episode=folder.add)
    env.close()
    chosen = select(read_trajectories(Path("runs/oracle")), successful=True)
    write(Path("data/sft"), {"train": sft_rows(chosen.kept)}, sft_schema())
    write(Path("data/turns"), {"train": sft_rows(chosen.kept, history="turns:2")}, sft_schema())

pyarrow is imported only when a parquet file is read or written.
"""

from __future__ import annotations

from agentgym_gym.data._agenttraj import write_agenttraj
from agentgym_gym.data._parquet import write
from agentgym_gym.data._reformat import Reformatted, SourceFormat, Unparsed, reformat
from agentgym_gym.data._rl import Recipe, own_prompt, rows, schema
from agentgym_gym.data._sft import sft_rows, sft_schema
from agentgym_gym.data._sources import read_trajectories
from agentgym_gym.data._split import Division, divide, parse_val
from agentgym_gym.data._trajectories import (
    Message,
    Selected,
    Trajectory,
    select,
)
from agentgym_gym.evaluate._items import (
    Item,
    Seeds,
    items_of,
    read_items,
    read_prompts,
    training_items,
    validation_items,
)
from agentgym_gym.evaluate._tasks import is_tasks

__all__ = [
    "Division",
    "Item",
    "Message",
    "Recipe",
    "Reformatted",
    "Seeds",
    "Selected",
    "SourceFormat",
    "Trajectory",
    "Unparsed",
    "divide",
    "is_tasks",
    "items_of",
    "own_prompt",
    "parse_val",
    "read_items",
    "read_prompts",
    "read_trajectories",
    "reformat",
    "rows",
    "schema",
    "select",
    "sft_rows",
    "sft_schema",
    "training_items",
    "validation_items",
    "write",
    "write_agenttraj",
]
