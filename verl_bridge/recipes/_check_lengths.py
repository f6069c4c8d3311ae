"""Check a recipe's token limits against the model and the observations of its environments."""

from __future__ import annotations

import importlib
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from verl_bridge._loop_arguments import loop_errors
from verl_bridge._observations import LEAST, default_limit
from verl_bridge._reasoning import MARKS
from verl_bridge.recipes._check_played import percentile_tokens
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning
from verl_bridge.recipes._recipe import turn_limit_of
from verl_bridge.tokens import TokenizedChat, UnstableTemplate

if TYPE_CHECKING:
    from verl_bridge.recipes._check_played import PlayedEpisode
    from verl_bridge.recipes._check_tasks import FirstPrompt
    from verl_bridge.recipes._view import View

__all__ = ["CHARACTERS", "check_lengths", "context_length", "estimate_tokens", "tokenizer_of"]

USUAL_REPLY = 100
"""Assumed tokens of a reply: a thought of a few sentences, and an action."""

CHARACTERS = 3.5
"""Assumed characters of a token, if there is no tokenizer."""

Conversations: TypeAlias = "dict[tuple[bool, str], TokenizedChat]"
"""Conversations by whether they begin with a system message, and by their tools as JSON."""

_LIMITS = ("max_turns", "horizon", "max_tokens_per_turn", "max_observation_tokens")

THINKING_REPLY = 2_048
"""Tokens that a reply of a thinking model may need at least."""


def check_lengths(view: View, starts: list[FirstPrompt]) -> Iterator[Finding]:
    """Check whether prompts and whole episodes fit.

    Args:
        view: The folder.
        starts: The first prompts of the environments.
    """
    prompt = view.number("data.max_prompt_length", 512)
    response = view.number("data.max_response_length", 512)
    yield from _of_model(view, prompt + response)
    path = view.get("actor_rollout_ref.model.path", "")
    tokenizer, why = tokenizer_of(str(view.get("actor_rollout_ref.model.tokenizer_path") or path))
    if why:
        yield skipped(
            "lengths",
            f"{why}: a token is assumed to be {CHARACTERS} characters",
            "check again when it is available",
        )
    else:
        yield from _of_thinking(view, tokenizer)
    if not starts:
        yield skipped("lengths", "no episode could be started: prompts were not measured")
        return
    native = view.arguments().get("tool_calls") is True
    yield from _of_tools(starts, native=native)
    if not native:
        starts = [replace(start, tools=[]) for start in starts]
    conversations: Conversations = {}
    if tokenizer is not None:
        templates = list(_templates(view, tokenizer, starts, conversations))
        yield from templates
        if any(finding.status == "problem" for finding in templates):
            return
    of: dict[str, list[FirstPrompt]] = defaultdict(list)
    for start in starts:
        of[start.task.env_id].append(start)
    for own in of.values():
        yield from _prompts(own, conversations, prompt)
    yield from _episodes(view, of, conversations, response)


def _templates(
    view: View, tokenizer: Any, starts: list[FirstPrompt], conversations: Conversations
) -> Iterator[Finding]:
    """Check whether the chat template supports conversations; add those it supports to `conversations`."""
    options = view.get("data.apply_chat_template_kwargs") or {}
    for key, start in {_kind(start): start for start in starts}.items():
        try:
            made = TokenizedChat(tokenizer, options, system=_has_system(start), tools=start.tools)
            conversations[key] = made
        except UnstableTemplate as error:
            yield problem("chat template", str(error), "set another chat template, or use another model")
            return
        if made.merges_system:
            yield warning(
                "chat template",
                f"the system message is put into the first user message, because {made.reason}",
                "nothing, if the model will be used in this way later",
            )
        else:
            also = ", with calls of the tools" if start.tools else ""
            yield ok("chat template", f"it supports continuing a conversation{also}")
    if not view.has_interactions:
        return
    try:  # as in the constructor of verl 0.7's loop
        tokenizer.apply_chat_template([{"role": "user", "content": ""}] * 2, tokenize=False, **options)
    except Exception as error:  # noqa: BLE001 - a template may raise anything
        yield problem(
            "chat template",
            f"verl's own loop cannot start with it: {error}",
            "use the agent loop verl_bridge.agent_loop.GymAgentLoop",
        )


def _of_tools(starts: list[FirstPrompt], *, native: bool) -> Iterator[Finding]:
    """Check whether the action format of each environment agrees with ``tool_calls`` of the loop."""
    for start in starts:
        named, taught = f"{start.place}: {start.task.env_id}", start.action_format
        if native and not start.tools:
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


def _kind(start: FirstPrompt) -> tuple[bool, str]:
    """Return what the chat template has to support: a system message, and the tools as JSON."""
    return _has_system(start), json.dumps(start.tools, sort_keys=True)


def _has_system(start: FirstPrompt) -> bool:
    return any(message.get("role") == "system" for message in start.system)


def _prompts(starts: list[FirstPrompt], conversations: Conversations, limit: int) -> Iterator[Finding]:
    lengths = [(*_prompt_length(start, conversations, limit), start) for start in starts]
    # Among prompts that are too long, those whose observation cannot be shortened come first.
    longest, cut, start = max(lengths, key=lambda each: (each[0] > limit and not each[1], each[0]))
    text = (
        f"{start.place}: the system prompt and the first observation of {start.task.env_id} have "
        f"{longest} tokens"
    )
    if longest <= limit:
        yield ok("prompt length", f"{text} of {limit}")
        return
    finding = problem if conversations and not cut else warning
    then = ": the observation will be shortened in the middle" if cut else ""
    yield finding(
        "prompt length",
        f"{text}, and {limit} are allowed{then}",
        f"set data.max_prompt_length above {longest}",
    )


def _prompt_length(start: FirstPrompt, conversations: Conversations, limit: int) -> tuple[int, bool]:
    """Return the tokens of the first prompt, and whether it fits with a shortened observation."""
    first, conversation = start.observations[0], conversations.get(_kind(start))
    if conversation is None:
        tools = {"role": "system", "content": json.dumps(start.tools) if start.tools else ""}
        return estimate_tokens([tools, *start.system, {"role": "user", "content": first}]), False
    tokens, shown = conversation.begin(start.system, first, limit)
    cut = len(tokens) <= limit and LEAST <= shown < len(first)
    return len(conversation.begin(start.system, first)[0]), cut


def _episodes(
    view: View, of: Mapping[str, list[FirstPrompt]], conversations: Conversations, limit: int
) -> Iterator[Finding]:
    given = view.arguments()
    if any(loop_errors({name: given[name] for name in _LIMITS if name in given})):
        return  # the check of the loop reports them
    turns, reply = view.turn_limit(), given.get("max_tokens_per_turn")
    if reply is not None and reply > limit:
        yield problem(
            "response length",
            f"a reply may have {reply} tokens, and all replies together {limit}",
            "raise data.max_response_length to the length of an episode",
        )
        return
    most = given.get("max_observation_tokens") or default_limit(limit)
    answer = min(USUAL_REPLY, reply or USUAL_REPLY)
    for env_id, starts in of.items():
        conversation = conversations.get(_kind(starts[0]))
        own = max((turn_limit_of(start.task.env_kwargs) or math.inf for start in starts), default=math.inf)
        named = f"{env_id}: " if len(of) > 1 else ""
        yield from _of_environment(
            starts, conversation, named, min(turns or math.inf, own), (answer, reply, most, limit)
        )


def _of_environment(
    starts: list[FirstPrompt],
    conversation: TokenizedChat | None,
    named: str,
    turns: float,
    tokens: tuple[int, int | None, int, int],
) -> Iterator[Finding]:
    """Compare the episodes of one environment with the token limits.

    Args:
        starts: Its first prompts.
        conversation: Counts tokens; without it, they are estimated.
        named: Prefix of the findings.
        turns: Its turn limit, or infinity.
        tokens: Those of a reply; the limits of a reply, of an observation and of all.
    """
    answer, _, most, limit = tokens
    if turns == math.inf:
        text = f"{named}no turn limit is set"
        yield warning("response length", text, "set max_turns in the yaml of the loop")
        return

    def count(text: str) -> int:
        if conversation is None:
            return estimate_tokens([{"role": "user", "content": text}])
        return len(conversation.after([], text))

    later = [text for start in starts for text in start.observations[1:] or start.observations]
    later += [text for start in starts for episode in start.episodes for text in episode.observations]
    lengths = [count(text) for text in later]
    usual = math.ceil(statistics.median(min(length, most) for length in lengths))
    if max(lengths) > most:
        yield warning(
            "observation length",
            f"{named}one has {max(lengths)} tokens, and {most} are allowed: its middle will be omitted",
            f"set max_observation_tokens in the yaml of the loop above {max(lengths)}",
        )
    whole = [episode for start in starts for episode in start.episodes]
    if whole:
        yield _of_whole_episodes(whole, count, named, turns, tokens)
        return
    needed = int(turns) * (usual + answer)
    sum_ = f"{named}{turns} turns of {answer} tokens, with observations of {usual}, are {needed}"
    if needed <= limit:
        yield ok("response length", f"{sum_} of {limit}")
    else:
        yield warning(
            "response length",
            f"{sum_}, and {limit} are allowed: long episodes will be cut off",
            f"set data.max_response_length to about {needed}, or fewer turns",
        )


def _of_whole_episodes(
    episodes: list[PlayedEpisode],
    count: Callable[[str], int],
    named: str,
    turns: float,
    tokens: tuple[int, int | None, int, int],
) -> Finding:
    answer, reply_limit, most, limit = tokens
    needed = percentile_tokens(
        episodes, count, turns=turns, reply=answer, reply_limit=reply_limit, observation_limit=most
    )
    players = " and ".join(dict.fromkeys(episode.player for episode in episodes))
    text = (
        f"{named}90 % of the episodes have at most some {needed} tokens, by {len(episodes)} "
        f"episodes of {players} up to {turns:g} turns with replies of {answer} or more"
    )
    if needed <= limit:
        return ok("response length", f"{text}; {limit} are allowed")
    return warning(
        "response length",
        f"{text}, and {limit} are allowed: long episodes will be cut off",
        f"set data.max_response_length to about {needed}, or fewer turns, or smaller observations",
    )


def _of_thinking(view: View, tokenizer: Any) -> Iterator[Finding]:
    """Warn if a model thinks, and its replies are too short for it."""
    template = str(tokenizer.chat_template)
    if "enable_thinking" not in template and not any(begin in template for begin, _ in MARKS):
        return
    options = view.get("data.apply_chat_template_kwargs") or {}
    if options.get("enable_thinking") is False:
        return
    reply = view.arguments().get("max_tokens_per_turn")
    limit = view.number("data.max_response_length", 512)
    allowed = min(reply, limit) if type(reply) is int else limit
    if allowed < THINKING_REPLY:
        off = "set data.apply_chat_template_kwargs.enable_thinking: false, or "
        yield warning(
            "thinking",
            f"the model's chat template supports thinking, and a reply may have only {allowed} tokens: "
            "a thought that is cut off has no action",
            f"{off if 'enable_thinking' in template else ''}set max_tokens_per_turn to {THINKING_REPLY} or "
            "more in the yaml of the loop",
        )


def _of_model(view: View, needed: int) -> Iterator[Finding]:
    limit, why = context_length(str(view.get("actor_rollout_ref.model.path", "")))
    if why:
        yield skipped("model", why)
    elif limit is not None and limit < needed:
        yield problem(
            "model",
            f"its context has {limit} tokens, and prompt and response may have {needed}",
            "set a smaller data.max_response_length, or use a model with a longer context",
        )
    else:
        yield ok("model", f"prompt and response of {needed} tokens fit in its context, {limit}")


def context_length(model: str) -> tuple[int | None, str]:
    """Return the model's context length from its settings, or why it is unknown."""
    file = Path(model).expanduser() / "config.json"
    try:
        limit = json.loads(file.read_text("utf-8")).get("max_position_embeddings")
    except (OSError, ValueError, AttributeError):
        return None, f"{file.parent} is not a folder with a model: its context length was not checked"
    return limit if isinstance(limit, int) else None, ""


def tokenizer_of(name: str) -> tuple[Any, str]:
    """Return a model's tokenizer, or why there is none.

    Args:
        name: Path of the folder, or a name on the hub; nothing is downloaded.
    """
    try:
        transformers = importlib.import_module("transformers")
    except ModuleNotFoundError:
        return None, "transformers is not installed here"
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(Path(name).expanduser()), local_files_only=True
        )
        if not tokenizer.chat_template:
            return None, f"the tokenizer of {name} has no chat template"
    except Exception as error:  # noqa: BLE001 - the error depends on which files of the model exist
        return None, f"the tokenizer of {name} cannot be loaded here ({type(error).__name__})"
    return tokenizer, ""


def estimate_tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    """Estimate the tokens of messages without a tokenizer."""
    return sum(math.ceil(len(message["content"]) / CHARACTERS) for message in messages)
