"""Fill in the templates of ``templates/``.

A template is the file to be written, with ``<name>`` for each value and conditions around the lines that
only some recipes have::

    #if reference
    kl_loss_coef: <kl_coef>
    #else
    use_kl_loss: false
    #end

``#if not name`` is the opposite; conditions can be nested. Lines that begin with ``##`` are notes for
readers of the template.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import resources
from typing import Any, NamedTuple

__all__ = ["fill", "lay_over", "read_template", "scalar"]

WIDTH = 100
"""Maximum characters of a line of comments."""

_CONDITION = re.compile(r"\s*#(if not|if|else|end)\b\s*(\w*)\s*")
_NAME = re.compile(r"<(\w+)>")
_VALUE = re.compile(r"(\s*\w+: )<(\w+)>")
_SETTING = re.compile(r"( *)(\w+):(?: (.*))?")
_HEAD = "folder: .\n"
"""The end of the header before verl's own settings."""


def read_template(name: str) -> str:
    """Return the text of a template.

    Args:
        name: Its path in ``templates/``.
    """
    file = resources.files("verl_bridge.recipes") / "templates"
    for part in name.split("/"):
        file /= part
    return file.read_text("utf-8")


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Return the text of a template with its values.

    If the whole value of a YAML key is a placeholder, its value is written as YAML; anywhere else, as text.

    Args:
        template: The text of the template.
        values: The values by name. A condition is true unless its value is None, False or empty.

    Raises:
        KeyError: The template has a name that is not among the values.
    """
    return "\n".join(_filled(line, values) for line in _chosen(template.split("\n"), values))


def _filled(line: str, values: Mapping[str, Any]) -> str:
    whole = _VALUE.fullmatch(line)
    if whole is not None:
        return whole[1] + scalar(values[whole[2]])
    return _NAME.sub(lambda name: str(values[name[1]]), line)


def _chosen(lines: Iterable[str], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines whose conditions are all true."""
    kept: list[bool] = []
    for line in lines:
        condition = _CONDITION.fullmatch(line)
        if condition is None:
            if all(kept) and not line.startswith("##"):
                yield line
        elif condition[1] == "else":
            kept[-1] = not kept[-1]
        elif condition[1] == "end":
            kept.pop()
        else:
            value = values[condition[2]]
            empty = value is None or value is False or value == ""
            kept.append(empty == (condition[1] == "if not"))


def scalar(value: Any) -> str:
    """Return a value as YAML in one line."""
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text else f"{value:.1e}"  # without a point, YAML reads 5e-07 as text
    return json.dumps(value, ensure_ascii=False)


class _Setting(NamedTuple):
    """A line of YAML: its value as written, and the comment above it."""

    value: str
    comment: str


def lay_over(text: str, more: Mapping[str, Any], cite: Callable[[str, str], str]) -> str:
    """Return a filled ``config.yaml`` with more settings, each at the end of its group, and with sources.

    Comments are wrapped again, because values and sources change their lengths.

    Args:
        text: The filled template.
        more: Additional settings, by their dotted keys.
        cite: Returns the source of a setting by its key and its value as YAML; empty for none.
    """
    head, mark, body = text.partition(_HEAD)
    tree = _parsed(body.splitlines())
    for key, value in more.items():
        *groups, last = key.split(".")
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
        node.setdefault(last, _Setting(scalar(value), ""))
    return head + mark + "\n".join(_lines(tree, "", cite)) + "\n"


def _parsed(lines: Iterable[str]) -> dict[str, Any]:
    """Parse mappings of YAML, with each value in one line."""
    tree: dict[str, Any] = {}
    groups, comment = [tree], ""
    for line in lines:
        match = _SETTING.fullmatch(line)
        if match is None:
            comment += line.strip().removeprefix("#")
            continue
        depth = len(match[1]) // 2
        del groups[depth + 1 :]
        if match[3] is None:
            groups.append(groups[depth].setdefault(match[2], {}))
        else:
            groups[depth][match[2]] = _Setting(match[3], comment.strip())
        comment = ""
    return tree


def _lines(tree: Mapping[str, Any], at: str, cite: Callable[[str, str], str]) -> Iterator[str]:
    pad = "  " * at.count(".")
    for name, value in tree.items():
        if isinstance(value, _Setting):
            comment = f"{value.comment} {cite(at + name, value.value)}".strip()
            yield from textwrap.wrap(
                comment,
                WIDTH,
                initial_indent=f"{pad}# ",
                subsequent_indent=f"{pad}# ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            yield f"{pad}{name}: {value.value}"
        else:
            yield from [*([""] if not at else []), f"{pad}{name}:"]
            yield from _lines(value, f"{at}{name}.", cite)
