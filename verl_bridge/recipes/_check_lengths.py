"""Check a recipe's token limits against the model and the observations of its environments."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_bridge._run.loop_arguments import loop_errors
from verl_bridge._tokens.observations import LEAST, default_limit
from verl_bridge.recipes._choices import turn_limit_of
from verl_bridge.recipes._finding import Finding, ok, problem, warning
from verl_bridge.tokens import TokenizedChat, UnstableTemplate

if TYPE_CHECKING:
    from verl_bridge.recipes._check_files import Settings
    from verl_bridge.recipes._check_played import Played, PlayedEpisode

__all__ = [
    "ESTIMATED",
    "Conversations",
    "TriedTemplate",
    "check_prompts",
    "check_responses",
    "check_template",
    "check_tools",
    "estimate_tokens",
    "percentile_tokens",
    "try_template",
]

USUAL_REPLY = 100
"""Assumed tokens of a reply: a thought of a few sentences, and an action."""

CHARACTERS = 3.5
"""Assumed characters of a token, if there is no tokenizer."""

ESTIMATED = f"a token is assumed to be {CHARACTERS} characters"
"""How the lengths are known without a tokenizer."""

PERCENTILE = 0.9
"""The share of episodes that should fit."""

Conversations: TypeAlias = "Mapping[tuple[bool, str], TokenizedChat]"
"""Conversations by whether they begin with a system message, and by their tools as JSON."""

_LIMITS = ("max_turns", "horizon", "max_tokens_per_turn", "max_observation_tokens")


class TriedTemplate(NamedTuple):
    """How the chat template supports the conversations with the environments.

    Attributes:
        conversations: Those that it supports.
        error: Why it does not support one; empty if it supports all.
        advice: The remedy.
    """

    conversations: Conversations
    error: str = ""
    advice: str = ""


def try_template(tokenizer: Any, settings: Settings, started: Sequence[Played]) -> TriedTemplate:
    """Make the conversations with the environments.

    Args:
        tokenizer: The tokenizer of the model.
        settings: The settings.
        started: The environments.
    """
    options = settings.get("data.apply_chat_template_kwargs") or {}
    conversations: dict[tuple[bool, str], TokenizedChat] = {}
    for played in started:
        kind = _kind(played)
        try:
            if kind not in conversations:
                conversations[kind] = TokenizedChat(
                    tokenizer, options, system=kind[0], tools=played.single.tools
                )
        except UnstableTemplate as error:
            return TriedTemplate(conversations, str(error), "set another chat template, or use another model")
    if not settings.has_interactions:
        return TriedTemplate(conversations)
    try:  # as in the constructor of verl 0.7's loop
        tokenizer.apply_chat_template([{"role": "user", "content": ""}] * 2, tokenize=False, **options)
    except Exception as error:  # noqa: BLE001 - a template may raise anything
        text = f"verl's own loop cannot start with it: {error}"
        return TriedTemplate(conversations, text, "use the agent loop verl_bridge.agent_loop.GymAgentLoop")
    return TriedTemplate(conversations)


def _kind(played: Played) -> tuple[bool, str]:
    """Return what the chat template has to support: a system message, and the tools as JSON."""
    system = any(message.get("role") == "system" for message in played.system)
    return system, json.dumps(played.single.tools, sort_keys=True)


def check_tools(started: Sequence[Played], arguments: Mapping[str, Any]) -> Iterator[Finding]:
    """Check whether the action format of each environment agrees with ``tool_calls`` of the loop."""
    native = arguments.get("tool_calls") is True
    for played in started:
        (place, task), taught = played.case, played.single.action_format
        named = f"{place}: {task.env_id}"
        if native and not played.single.tools:
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


def check_template(tried_template: TriedTemplate) -> Iterator[Finding]:
    """Check whether the chat template supports the conversations with the environments."""
    for (_, tools), conversation in tried_template.conversations.items():
        if conversation.merges_system:
            yield warning(
                "chat template",
                f"the system message is put into the first user message, because {conversation.reason}",
                "nothing, if the model will be used in this way later",
            )
        else:
            also = ", with calls of the tools" if tools != "[]" else ""
            yield ok("chat template", f"it supports continuing a conversation{also}")
    if tried_template.error:
        yield problem("chat template", tried_template.error, tried_template.advice)


def check_prompts(
    started: Sequence[Played], conversations: Conversations, settings: Settings
) -> Iterator[Finding]:
    """Check whether the longest prompt of each environment fits."""
    limit = settings.number("data.max_prompt_length", 512)
    for played in _by_environment(started).values():
        lengths = [(*_prompt_length(each, conversations, limit), each) for each in played]
        # Among prompts that are too long, those whose observation cannot be shortened come first.
        longest, cut, at = max(lengths, key=lambda each: (each[0] > limit and not each[1], each[0]))
        place, task = at.case
        text = f"{place}: the system prompt and the first observation of {task.env_id} have {longest} tokens"
        if longest <= limit:
            yield ok("prompt length", f"{text} of {limit}")
            continue
        finding = problem if conversations and not cut else warning
        then = ": the observation will be shortened in the middle" if cut else ""
        yield finding(
            "prompt length",
            f"{text}, and {limit} are allowed{then}",
            f"set data.max_prompt_length above {longest}",
        )


def _by_environment(started: Sequence[Played]) -> dict[str, list[Played]]:
    of: dict[str, list[Played]] = defaultdict(list)
    for played in started:
        of[played.case.task.env_id].append(played)
    return of


def _prompt_length(played: Played, conversations: Conversations, limit: int) -> tuple[int, bool]:
    """Return the tokens of the first prompt, and whether it fits with a shortened observation."""
    first, conversation = played.single.observations[0], conversations.get(_kind(played))
    if conversation is None:
        tools = {"role": "system", "content": json.dumps(played.single.tools) if played.single.tools else ""}
        return estimate_tokens([tools, *played.system, {"role": "user", "content": first}]), False
    tokens, shown = conversation.begin(played.system, first, limit)
    cut = len(tokens) <= limit and LEAST <= shown < len(first)
    return len(conversation.begin(played.system, first)[0]), cut


class _Limits(NamedTuple):
    """The limits of an environment's episodes.

    Attributes:
        turns: The turn limit, or infinity.
        answer: Assumed tokens of a reply.
        reply: Maximum tokens of a reply, or None.
        observation: Maximum tokens of an observation.
        response: Maximum tokens of an episode after the prompt.
    """

    turns: float
    answer: int
    reply: int | None
    observation: int
    response: int


def check_responses(
    started: Sequence[Played],
    conversations: Conversations,
    settings: Settings,
    arguments: Mapping[str, Any],
    turn_limit: int | None,
) -> Iterator[Finding]:
    """Check whether the episodes of each environment fit."""
    if any(loop_errors({name: arguments[name] for name in _LIMITS if name in arguments})):
        return  # the check of the loop reports them
    limit, reply = settings.number("data.max_response_length", 512), arguments.get("max_tokens_per_turn")
    if reply is not None and reply > limit:
        yield problem(
            "response length",
            f"a reply may have {reply} tokens, and all replies together {limit}",
            "raise data.max_response_length to the length of an episode",
        )
        return
    most = arguments.get("max_observation_tokens") or default_limit(limit)
    environments = _by_environment(started)
    for env_id, played in environments.items():
        own = max(turn_limit_of(each.case.task.env_kwargs) or math.inf for each in played)
        limits = _Limits(
            min(turn_limit or math.inf, own), min(USUAL_REPLY, reply or USUAL_REPLY), reply, most, limit
        )
        named = f"{env_id}: " if len(environments) > 1 else ""
        yield from _of_environment(played, conversations.get(_kind(played[0])), named, limits)


def _of_environment(
    played: Sequence[Played], conversation: TokenizedChat | None, named: str, limits: _Limits
) -> Iterator[Finding]:
    """Compare the episodes of one environment with the token limits.

    Args:
        played: Its episodes.
        conversation: Counts tokens; without it, they are estimated.
        named: Prefix of the findings.
        limits: The limits.
    """
    if limits.turns == math.inf:
        text = f"{named}no turn limit is set"
        yield warning("response length", text, "set max_turns in the yaml of the loop")
        return

    def count(text: str) -> int:
        if conversation is None:
            return estimate_tokens([{"role": "user", "content": text}])
        return len(conversation.after([], text))

    whole = [episode for each in played for episode in each.episodes if episode.observations]
    later = [text for each in played for text in each.single.observations[1:] or each.single.observations]
    later += [text for episode in whole for text in episode.observations]
    lengths = [count(text) for text in later]
    if max(lengths) > limits.observation:
        yield warning(
            "observation length",
            f"{named}one has {max(lengths)} tokens, and {limits.observation} are allowed: its middle will be "
            "omitted",
            f"set max_observation_tokens in the yaml of the loop above {max(lengths)}",
        )
    if whole:
        needed, text = _of_whole_episodes(whole, count, limits)
        fits, fewer = f"{named}{text}; {limits.response} are allowed", ", or smaller observations"
    else:
        usual = math.ceil(statistics.median(min(length, limits.observation) for length in lengths))
        needed = int(limits.turns) * (usual + limits.answer)
        text = f"{limits.turns} turns of {limits.answer} tokens, with observations of {usual}, are {needed}"
        fits, fewer = f"{named}{text} of {limits.response}", ""
    if needed <= limits.response:
        yield ok("response length", fits)
    else:
        yield warning(
            "response length",
            f"{named}{text}, and {limits.response} are allowed: long episodes will be cut off",
            f"set data.max_response_length to about {needed}, or fewer turns{fewer}",
        )


def _of_whole_episodes(
    episodes: Sequence[PlayedEpisode], count: Callable[[str], int], limits: _Limits
) -> tuple[int, str]:
    """Return the estimated tokens of an episode, and the estimate in words."""
    needed = percentile_tokens(
        episodes,
        count,
        turns=limits.turns,
        reply=limits.answer,
        reply_limit=limits.reply,
        observation_limit=limits.observation,
    )
    players = " and ".join(dict.fromkeys(episode.player for episode in episodes))
    return needed, (
        f"90 % of the episodes have at most some {needed} tokens, by {len(episodes)} episodes of {players} "
        f"up to {limits.turns:g} turns with replies of {limits.answer} or more"
    )


def percentile_tokens(
    episodes: Sequence[PlayedEpisode],
    count: Callable[[str], int],
    *,
    turns: float,
    reply: int,
    reply_limit: int | None,
    observation_limit: int,
) -> int:
    """Estimate how many tokens 90 % of the episodes have at most.

    In training, most episodes of a model that is still learning use all turns: an episode that ended early
    counts as one that continued in the same way up to the turn limit.

    Args:
        episodes: The episodes.
        count: Returns the tokens of a text.
        turns: The turn limit; infinity counts each episode as it ended.
        reply: Tokens that a model's reply has at least, because it writes a thought too.
        reply_limit: Maximum tokens of a reply, or None.
        observation_limit: Maximum tokens of an observation.
    """
    lengths = []
    for episode in episodes:
        replies = [max(reply, count(text)) for text in episode.replies[: len(episode.observations)]]
        total = sum(min(tokens, reply_limit or tokens) for tokens in replies)
        total += sum(min(count(text), observation_limit) for text in episode.observations)
        played = len(episode.observations)
        lengths.append(total if turns == math.inf else total * max(turns, played) / played)
    lengths.sort()
    at = PERCENTILE * (len(lengths) - 1)
    low = lengths[math.floor(at)]
    return math.ceil(low + (lengths[math.ceil(at)] - low) * (at - math.floor(at)))


def estimate_tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    """Estimate the tokens of messages without a tokenizer."""
    return sum(math.ceil(len(message["content"]) / CHARACTERS) for message in messages)
