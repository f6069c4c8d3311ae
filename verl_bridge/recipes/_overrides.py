"""Overrides of settings, as ``run.sh`` passes them to verl: ``key=value``, ``+key=value`` and ``~key``."""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from agentgym_gym.errors import BadOption

__all__ = ["check_override", "override_settings"]

_OVERRIDE = re.compile(r"(?P<mark>\+{0,2}|~)(?P<key>[\w@/-]+(?:\.[\w@/-]+)*)(?:=(?P<value>.*))?", re.DOTALL)


def check_override(text: str) -> None:
    """Raise an error if a text is not an override.

    Raises:
        BadOption: It has another form.
    """
    match = _OVERRIDE.fullmatch(text)
    if match is None or (match["value"] is None and match["mark"] != "~"):
        raise BadOption(
            f"{text!r:.80} is not an override; write KEY=VALUE as for run.sh, such as trainer.total_epochs=2"
        )


def override_settings(settings: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Return settings with overrides; values are read as YAML, which suffices where verl is not installed.

    Args:
        settings: The contents of ``config.yaml``.
        overrides: The overrides, in hydra's syntax.

    Raises:
        ModuleNotFoundError: PyYAML is not installed.
    """
    yaml = importlib.import_module("yaml")
    result = copy.deepcopy(dict(settings))
    for text in overrides:
        match = _OVERRIDE.fullmatch(text)
        if match is None:
            continue
        *groups, last = match["key"].split(".")
        node = result
        for group in groups:
            inner = node.get(group)
            if not isinstance(inner, dict):
                inner = node[group] = {}
            node = inner
        if match["mark"] == "~":
            node.pop(last, None)
            continue
        try:
            node[last] = yaml.safe_load(match["value"] or "null")
        except yaml.YAMLError:
            node[last] = match["value"]
    return result
