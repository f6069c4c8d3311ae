"""From tasks to the files that verl trains on.

::

    items = read_items(Path("webshop_train.json"))
    division = divide(items, val=0.1, seed=0)
    kwargs = {"action_format": "react"}
    recipes = {"WebShop": Recipe(kwargs, own_prompt(find("WebShop"), kwargs))}
    files = {"train": rows(division.train, recipes), "val": rows(division.val, recipes)}
    write(Path("data/webshop"), files, schema())

Nothing here imports pyarrow before a file is written.
"""

from __future__ import annotations

from agentgym_gym.data.items import Item, Seeds, items_of, read_items, read_prompts
from agentgym_gym.data.parquet import write
from agentgym_gym.data.rl import Recipe, own_prompt, rows, schema
from agentgym_gym.data.split import Division, divide, parse_val

__all__ = [
    "Division",
    "Item",
    "Recipe",
    "Seeds",
    "divide",
    "items_of",
    "own_prompt",
    "parse_val",
    "read_items",
    "read_prompts",
    "rows",
    "schema",
    "write",
]
