"""Check whether the chat template supports the conversations with the environments, and their tools."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_gym.errors import BadOption
from agentgym_gym.rollout import History
from verl_bridge.recipes._finding import Finding, Missing, ok, problem, warning
from verl_bridge.tokens import TokenizedChat, UnstableTemplate

if TYPE_CHECKING:
    from verl_bridge.recipes._check_episodes import Played
    from verl_bridge.recipes._verl_settings import RlSettings

__all__ = [
    "Counted",
    "TriedTemplate",
    "check_summaries",
    "check_template",
    "check_tools",
    "count_tokens",
    "try_template",
]


class Counted(NamedTuple):
    """An environment, and the conversation that counts its tokens; None without a tokenizer."""

    played: Played
    conversation: TokenizedChat | None


class TriedTemplate(NamedTuple):
    """How the chat template supports the conversations with the environments.

    Attributes:
        counted: The environments with their conversations; environments of one kind share one.
        error: Why the template does not support one; empty if it supports all.
        advice: The remedy.
    """

    counted: Sequence[Counted]
    error: str = ""
    advice: str = ""


def try_template(tokenizer: Any, settings: RlSettings, started: Sequence[Played]) -> TriedTemplate:
    """Make the conversations with the environments.

    Args:
        tokenizer: The tokenizer of the model.
        settings: The settings.
        started: The environments.
    """
    options = settings.template_options or {}
    counted: list[Counted] = []
    of_kind: dict[tuple[bool, str], TokenizedChat] = {}
    for played in started:
        # The template has to support a system message, and the tools.
        system, tools = any(message.get("role") == "system" for message in played.system), played.first.tools
        kind = system, json.dumps(tools, sort_keys=True)
        try:
            if kind not in of_kind:
                of_kind[kind] = TokenizedChat(tokenizer, options, system=system, tools=tools)
        except UnstableTemplate as error:
            return TriedTemplate(counted, str(error), "set another chat template, or use another model")
        counted.append(Counted(played, of_kind[kind]))
    if not settings.interactions:
        return TriedTemplate(counted)
    try:  # as in the constructor of verl 0.7's loop
        tokenizer.apply_chat_template([{"role": "user", "content": ""}] * 2, tokenize=False, **options)
    except Exception as error:  # noqa: BLE001 - a template may raise anything
        text = f"verl's own loop cannot start with it: {error}"
        return TriedTemplate(counted, text, "use the agent loop verl_bridge.agent_loop.GymAgentLoop")
    return TriedTemplate(counted)


def count_tokens(
    started: Sequence[Played] | None = None, tried_template: TriedTemplate | None = None
) -> Sequence[Counted] | Missing:
    """Return the environments with what counts their tokens, if the chat template supports all of them."""
    if started is None:
        return Missing("no episode could be started")
    if tried_template is None:
        return [Counted(played, None) for played in started]
    return Missing() if tried_template.error else tried_template.counted


def check_tools(started: Sequence[Played], arguments: Mapping[str, Any]) -> Iterator[Finding]:
    """Check whether the action format of each environment agrees with ``tool_calls`` of the loop."""
    native = arguments.get("tool_calls") is True
    for played in started:
        (place, task), taught = played.case, played.first.action_format
        named = f"{place}: {task.env_id}"
        if native and not played.first.tools:
            yield problem(
                "tool calls",
                f"{named} has no attribute tools, and the loop has tool_calls: true",
                "delete tool_calls in the yaml of the loop, or use an environment with tools",
            )
        elif native and taught not in {None, "tool_calls"}:
            yield problem(
                "tool calls",
                f"{named} has action_format={taught!r}, whose prompt contradicts the model's own notation",
                "set action_format to tool_calls in env_kwargs, and write the rows again",
            )
        elif not native and taught == "tool_calls":
            yield problem(
                "tool calls",
                f"{named} has action_format='tool_calls', whose prompt lists no actions, and the model gets "
                "no tools",
                "set tool_calls: true in the yaml of the loop, or action_format to function_calling",
            )


def check_summaries(started: Sequence[Played], arguments: Mapping[str, Any]) -> Iterator[Finding]:
    """Check whether each environment has the summaries that the history requires."""
    text = str(arguments.get("history", "all"))
    try:
        history = History.parse(text)
        if history.summary is None or history.summarizer() is not None:
            return
    except BadOption:  # a finding of another check
        return
    for played in started:
        place, task = played.case
        if not played.first.summarizes and not math.isnan(played.first.step_seconds):
            yield warning(
                "history",
                f'{place}: {task.env_id} has no info["history_summary"] in its first turns, which '
                f"history={text!r} requires",
                "return it from the environment, or give a function by summary:module:function",
            )


def check_template(tried_template: TriedTemplate) -> Iterator[Finding]:
    """Check whether the chat template supports the conversations with the environments."""
    of_kind = {id(each.conversation): each for each in tried_template.counted}
    for played, conversation in of_kind.values():
        if conversation is None:
            continue
        if conversation.merges_system:
            yield warning(
                "chat template",
                f"the system message is put into the first user message, because {conversation.reason}",
                "nothing, if the model will be used in this way later",
            )
        else:
            also = ", with calls of the tools" if played.first.tools else ""
            yield ok("chat template", f"it supports continuing a conversation{also}")
    if tried_template.error:
        yield problem("chat template", tried_template.error, tried_template.advice)
