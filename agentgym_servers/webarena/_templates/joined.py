"""Tasks made of several: changes of one site and then a task of another, as longer tasks of WebArena are.

Only sites that share no data are joined, so that no part changes the answer or the check of another one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from agentgym_servers.webarena._templates.steps import goto
from agentgym_servers.webarena._templates.template import TEMPLATES, Made, TaskTemplate

__all__ = ["MOST_STEPS", "join", "joinable"]

MOST_STEPS = 14
"""The maximum length of a solution, one turn below AgentGym's limit: an element may need a scroll."""

_DATA = {"shopping": "shop", "shopping_admin": "shop", "reddit": "forum", "gitlab": "code"}
"""The data of a site, unless no other site has the same."""


@functools.cache
def joinable(sites: frozenset[str]) -> Sequence[TaskTemplate]:
    """Return the templates whose sites share no data with others."""
    taken = {_DATA.get(site, site) for site in sites}
    return [each for each in TEMPLATES if taken.isdisjoint(_DATA.get(site, site) for site in each.sites)]


def join(parts: Sequence[tuple[TaskTemplate, Made]]) -> Made | None:
    """Return the task to do several tasks one after another; None if they do not go together.

    All but the last one must be changes of pages that have an address, as an answer, an address and the page
    that is shown last belong to the end.

    Args:
        parts: The tasks, each with its template.
    """
    *changes, (last_template, last) = parts
    if not changes:
        return last
    if any(made.check["eval_types"] != ["program_html"] or _is_last(made) for _, made in changes):
        return None
    steps = [*changes[0][1].steps[:-1]]
    for template, made in (*changes[1:], (last_template, last)):
        steps += [goto(f"__{template.sites[0].upper()}__/"), *made.steps[:-1]]
    steps.append(last.steps[-1])
    if len(steps) > MOST_STEPS:
        return None
    # The page that is shown last is checked before others are opened.
    ordered = (last, *(made for _, made in changes))
    check = {
        **last.check,
        "eval_types": list(dict.fromkeys([*last.check["eval_types"], "program_html"])),
        "program_html": [each for made in ordered for each in made.check["program_html"]],
    }
    intent = " Then: ".join(made.intent for _, made in parts)
    return Made(intent, check, tuple(steps))


def _is_last(made: Made) -> bool:
    return any(each["url"] == "last" for each in made.check["program_html"])
