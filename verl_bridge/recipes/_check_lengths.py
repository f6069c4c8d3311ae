"""Check the token limits: the model's context, prompts, replies, and whole episodes of each environment."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_gym.rollout import History
from verl_bridge._run.loop_arguments import loop_errors
from verl_bridge._tokens.observations import LEAST, default_limit
from verl_bridge._tokens.reasoning import MARKS
from verl_bridge.recipes._choices import turn_limit_of
from verl_bridge.recipes._finding import Finding, ok, problem, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._check_episodes import Played, PlayedEpisode
    from verl_bridge.recipes._check_template import Counted
    from verl_bridge.recipes._verl_settings import RlSettings
    from verl_bridge.tokens import TokenizedChat

__all__ = [
    "ESTIMATED",
    "check_context",
    "check_prompts",
    "check_responses",
    "check_thinking",
    "estimate_tokens",
]

USUAL_REPLY = 100
"""Assumed tokens of a reply: a thought of a few sentences, and an action."""

CHARACTERS = 3.5
"""Assumed characters of a token, if there is no tokenizer."""

THINKING_REPLY = 2_048
"""Tokens that a reply of a thinking model may need at least."""

ESTIMATED = f"a token is assumed to be {CHARACTERS} characters"
"""How the lengths are known without a tokenizer."""

PERCENTILE = 0.9
"""The share of episodes that should fit."""

_LIMITS = ("max_turns", "horizon", "max_tokens_per_turn", "max_observation_tokens")


def check_context(context: int | None, settings: RlSettings) -> Iterator[Finding]:
    """Check whether prompts and responses fit in the context of the model."""
    needed = settings.prompt + settings.response
    if context is not None and context < needed:
        yield problem(
            "model",
            f"its context has {context} tokens, and prompt and response may have {needed}",
            "set a smaller data.max_response_length, or use a model with a longer context",
        )
    else:
        yield ok("model", f"prompt and response of {needed} tokens fit in its context, {context}")


def check_thinking(tokenizer: Any, settings: RlSettings, arguments: Mapping[str, Any]) -> Iterator[Finding]:
    """Warn if a model thinks, and its replies are too short for it."""
    template = str(tokenizer.chat_template)
    if "enable_thinking" not in template and not any(begin in template for begin, _ in MARKS):
        return
    if (settings.template_options or {}).get("enable_thinking") is False:
        return
    reply = arguments.get("max_tokens_per_turn")
    allowed = min(reply, settings.response) if type(reply) is int else settings.response
    if allowed < THINKING_REPLY:
        off = "set data.apply_chat_template_kwargs.enable_thinking: false, or "
        yield warning(
            "thinking",
            f"the model's chat template supports thinking, and a reply may have only {allowed} tokens: "
            "a thought that is cut off has no action",
            f"{off if 'enable_thinking' in template else ''}set max_tokens_per_turn to {THINKING_REPLY} or "
            "more in the yaml of the loop",
        )


def check_prompts(counted: Sequence[Counted], settings: RlSettings) -> Iterator[Finding]:
    """Check whether the longest prompt of each environment fits."""
    limit = settings.prompt
    for of_environment in _by_environment(counted).values():
        lengths = [(*_prompt_length(each, limit), each) for each in of_environment]
        # Among prompts that are too long, those whose observation cannot be shortened come first.
        longest, cut, (played, conversation) = max(
            lengths, key=lambda each: (each[0] > limit and not each[1], each[0])
        )
        place, task = played.case
        text = f"{place}: the system prompt and the first observation of {task.env_id} have {longest} tokens"
        if longest <= limit:
            yield ok("prompt length", f"{text} of {limit}")
            continue
        finding = problem if conversation is not None and not cut else warning
        then = ": the observation will be shortened in the middle" if cut else ""
        yield finding(
            "prompt length",
            f"{text}, and {limit} are allowed{then}",
            f"set data.max_prompt_length above {longest}",
        )


def _by_environment(counted: Sequence[Counted]) -> dict[str, list[Counted]]:
    of: dict[str, list[Counted]] = defaultdict(list)
    for each in counted:
        of[each.played.case.task.env_id].append(each)
    return of


def _prompt_length(counted: Counted, limit: int) -> tuple[int, bool]:
    """Return the tokens of the first prompt, and whether it fits with a shortened observation."""
    played, conversation = counted
    first = played.first.observations[0]
    if conversation is None:
        tools = {"role": "system", "content": json.dumps(played.first.tools) if played.first.tools else ""}
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
        response: Maximum tokens of these turns after the first prompt.
        setting: The setting of verl that limits them.
        before: Tokens of the first prompt, if the setting limits these too.
    """

    turns: float
    answer: int
    reply: int | None
    observation: int
    response: int
    setting: str = "data.max_response_length"
    before: int = 0


def check_responses(
    counted: Sequence[Counted],
    settings: RlSettings,
    arguments: Mapping[str, Any],
    turn_limit: int | None,
) -> Iterator[Finding]:
    """Check whether the episodes of each environment fit."""
    if any(loop_errors({name: arguments[name] for name in _LIMITS if name in arguments})):
        return  # the check of the loop reports them
    limit, reply = settings.response, arguments.get("max_tokens_per_turn")
    by_turn = arguments.get("rows") == "turn"
    if reply is not None and reply > limit:
        together = "a row" if by_turn else "all replies together"
        yield problem(
            "response length",
            f"a reply may have {reply} tokens, and {together} {limit}",
            f"raise data.max_response_length to the length of {'a reply' if by_turn else 'an episode'}",
        )
        return
    most = arguments.get("max_observation_tokens")
    most = most or default_limit(settings.prompt if by_turn else limit)
    history = History.parse(str(arguments.get("history", "all"))) if by_turn else None
    environments = _by_environment(counted)
    for env_id, of_environment in environments.items():
        played = [each.played for each in of_environment]
        own = max(turn_limit_of(each.case.task.env_kwargs) or math.inf for each in played)
        limits = _Limits(
            min(turn_limit or math.inf, own), min(USUAL_REPLY, reply or USUAL_REPLY), reply, most, limit
        )
        if history is not None:
            limits = _of_turns(limits, history, of_environment, settings.prompt)
        named = f"{env_id}: " if len(environments) > 1 else ""
        yield from _of_environment(played, of_environment[0].conversation, named, limits)


def _of_turns(limits: _Limits, history: History, counted: Sequence[Counted], prompt: int) -> _Limits:
    """Return the limits of the turns in a prompt, in place of those of an episode.

    Args:
        limits: The limits of an episode.
        history: The part of the conversation in a prompt.
        counted: The first prompts.
        prompt: Maximum tokens of a prompt.
    """
    first = max(_prompt_length(each, prompt)[0] for each in counted)
    turns = limits.turns - 1 if history.turns is None else min(limits.turns - 1, history.turns)
    room = prompt - first
    return limits._replace(turns=max(turns, 1), response=room, setting="data.max_prompt_length", before=first)


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
    later = [text for each in played for text in each.first.observations[1:] or each.first.observations]
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
            f"set {limits.setting} to about {needed + limits.before}, or fewer turns{fewer}",
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
