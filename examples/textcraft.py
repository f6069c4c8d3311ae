"""Play one TextCraft task with typed actions, and show how invalid replies are handled.

Run it with ``python examples/textcraft.py``; it starts a local server itself.
"""

from __future__ import annotations

import gymnasium

import agentgym_gym  # noqa: F401 - the import registers the environments
from agentgym_gym.envs.textcraft import Craft, Ingredient


def main() -> None:
    """Play the task."""
    env = gymnasium.make("agentgym/TextCraft-v0", action_format="tags", render_mode="ansi")

    # The goal of a task number depends on the server, so look for one.
    for task_id in range(544):
        _, info = env.reset(options={"task_id": task_id})
        if info["goal"] == "emerald block":
            break

    # Replies of a model: one valid, two invalid.
    for reply in (
        "<think>Nine emeralds make a block.</think>\n<action>get 9 emerald</action>",
        "I would rather have a diamond.",
        "<action>get 9 emerald</action> <action>inventory</action>",
    ):
        _, reward, _, _, info = env.step(reply)
        print(f"{reward=} action={info['action']!r} parse_error={info.get('parse_error')}")

    # The last step as a typed action.
    _, reward, terminated, _, info = env.step(Craft(1, "emerald block", (Ingredient(9, "emerald"),)))
    print(f"{reward=} {terminated=} success={info['success']} turns={info['turn']}")
    print(env.render())
    env.close()


if __name__ == "__main__":
    main()
