"""Train with verl on a CPU, to test an environment, its rewards and its masks before renting a GPU.

``VERL_USE_EXTERNAL_MODULES=verl_bridge.cpu`` makes verl load this package in each of its processes. Only then
does the import have an effect, which is ``_plugin.install``. Start at ``docs/training/cpu.md``.
"""

import os

NAME = "verl_bridge.cpu"


def is_selected() -> bool:
    """Return whether VERL_USE_EXTERNAL_MODULES names this package."""
    return NAME in os.environ.get("VERL_USE_EXTERNAL_MODULES", "").replace(" ", "").split(",")


if is_selected():
    from verl_bridge.cpu._plugin import install

    install()
