"""Train with verl on a CPU, to prove an environment, its rewards and its masks before a GPU is rented.

``VERL_USE_EXTERNAL_MODULES=verl_bridge.cpu`` makes verl load this package in each of its processes, and then
alone does the import do anything: see ``plugin.install``. ``docs/training/cpu.md`` is the page to start at.
"""

import os

NAME = "verl_bridge.cpu"


def asked_for() -> bool:
    """Whether VERL_USE_EXTERNAL_MODULES names this package."""
    return NAME in os.environ.get("VERL_USE_EXTERNAL_MODULES", "").replace(" ", "").split(",")


if asked_for():
    from verl_bridge.cpu._plugin import install

    install()
