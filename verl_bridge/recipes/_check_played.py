"""Play whole episodes, and estimate from them the tokens of an episode in training."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from verl_bridge.recipes._finding import Finding, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._check_episodes import Case

__all__ = ["EPISODES", "PERCENTILE", "PlayedEpisode", "ReplySource", "percentile_tokens", "play_whole"]

EPISODES = 2
"""Whole episodes of each environment."""

PERCENTILE = 0.9
"""The share of episodes that should fit."""


class ReplySource(Protocol):
    """Plays one episode. Both methods may be coroutine functions.

    Attributes:
        name: The name in findings, such as ``"oracle"``.
    """

    name: str

    def begin(self, env: Any, observation: str, info: Mapping[str, Any]) -> Any:
        """Begin an episode."""

    def reply(self, observation: str, info: Mapping[str, Any]) -> Any:
        """Return the next reply as text, or None to give up."""


@dataclass
class PlayedEpisode:
    """An episode, or its beginning if the time was up.

    Attributes:
        player: The name of the player.
        replies: The replies.
        observations: The observations after them.
        fault: Kind and message of the fault that ended it, or empty.
    """

    player: str
    replies: list[str] = field(default_factory=list)
    observations: list[str] = field(default_factory=list)
    fault: str = ""


async def play_whole(
    cases: Sequence[Case],
    makers: Sequence[Callable[[], ReplySource]],
    *,
    timeout: float,
    max_turns: int | None,
) -> tuple[list[Finding], list[PlayedEpisode]]:
    """Play episodes one after another.

    Args:
        cases: The tasks; the last is repeated.
        makers: Each makes the player of an episode; the last is repeated. Without any, nothing is played.
        timeout: Seconds for each call of the environment, and for all episodes. Episodes that are not
            finished by then are returned as far as they were played.
        max_turns: Turn limit of the training.

    Returns:
        The findings, and the episodes with at least one turn.
    """
    played: list[PlayedEpisode] = []

    async def play_all() -> None:
        for at in range(EPISODES if makers else 0):
            case, maker = cases[min(at, len(cases) - 1)], makers[min(at, len(makers) - 1)]
            await _play_one(case, maker(), played, timeout, max_turns)

    try:
        await asyncio.wait_for(play_all(), timeout)
    except (asyncio.TimeoutError, TimeoutError):
        pass
    except Exception as error:  # noqa: BLE001 - a player of any library; the other checks do not need it
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        text = f"{cases[0].task.env_id}: no whole episode could be played: {reason}"
        return [
            warning("episodes", text, "the lengths below are estimates from answers to empty replies")
        ], []
    findings = [
        warning(
            "episodes",
            f"{cases[0].task.env_id} faulted in turn {len(one.replies)} of {one.player}: {one.fault}",
            "such episodes are excluded from training: repair the environment, or its server",
        )
        for one in played
        if one.fault
    ]
    return findings, [one for one in played if one.observations]


async def _play_one(
    case: Case, player: ReplySource, played: list[PlayedEpisode], timeout: float, max_turns: int | None
) -> None:
    task = case.task
    episode = task.episode(timeout=timeout, max_turns=max_turns)
    async with episode:
        if episode.over:
            return  # the check of the environment reports it
        record = PlayedEpisode(player.name)
        played.append(record)
        number = task.options.get("task_id", task.seed)
        task_id = {} if number is None else {"task_id": number}
        await _call(player.begin, episode.env, episode.observation, {**episode.info, **task_id})
        while not episode.over:
            reply = await _call(player.reply, episode.observation, {**episode.info, **task_id})
            if reply is None:
                return
            record.replies.append(reply)
            await episode.step(reply)
            if episode.fault is not None:
                record.fault = f"{episode.fault['kind']}: {episode.fault['message']}"
                return
            record.observations.append(episode.observation)


async def _call(method: Callable[..., Any], *arguments: Any) -> Any:
    if inspect.iscoroutinefunction(method):
        return await method(*arguments)
    result = await asyncio.to_thread(method, *arguments)
    return await result if inspect.isawaitable(result) else result


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

    In training, most episodes of a model that is still learning use all turns. So an episode that ended early
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
