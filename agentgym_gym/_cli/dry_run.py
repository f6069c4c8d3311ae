"""Print what ``agentgym eval`` would play and cost, without a request to a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agentgym_gym._cli.console import clean, out
from agentgym_gym._draw import draw
from agentgym_gym.evaluate._agents import load_oracle
from agentgym_gym.evaluate._episode_workers import Job
from agentgym_gym.evaluate._figures.prices import Price, read_prices
from agentgym_gym.evaluate._prepared import PreparedRun, prepare
from agentgym_gym.evaluate._runner import episodes_of, play_jobs
from agentgym_gym.rollout._history import Conversation, History, Message, estimate

if TYPE_CHECKING:
    from agentgym_gym.evaluate import Run, RunLimits
    from agentgym_gym.evaluate._env_setup import EnvSetup
    from agentgym_gym.rollout import EpisodeRecord

__all__ = ["preview"]

_ORACLE_TASKS = 10


def preview(runs: Sequence[Run], limits: RunLimits) -> None:
    """Print the episodes of each run, and the estimated tokens and cost of each model.

    The estimate is from ten tasks that the oracle plays, where the environment has an oracle.

    Args:
        runs: The runs.
        limits: The limits that they share.
    """
    prepared = prepare(runs)
    prices = None if limits.prices is None else read_prices(limits.prices)
    oracles: dict[int, _OracleEpisodes] = {}
    for each in prepared:
        episodes = len(each.episodes)
        samples = f"; {each.samples} samples of each" if each.samples > 1 else ""
        under = "" if each.protocol is None else f"; protocol {each.protocol.text}"
        _print(
            f"{each.env.name} by {each.agent.name}: {_count(episodes, 'episode')} "
            f"({each.env.selection.text}{samples}{under})"
        )
        if each.agent.is_model:
            oracle = oracles.setdefault(id(each.env), _OracleEpisodes(each.env, limits.concurrency))
            _print_estimate(each, oracle, episodes, prices)
    total = sum(len(each.episodes) for each in prepared)
    _print(f"{_count(total, 'episode')} in total. Nothing was written, and no request was sent to a model.")


class _OracleEpisodes:
    """Episodes of the oracle, played once for each kind of action.

    Args:
        environment: The environment.
        concurrency: Maximum number of concurrent episodes.
    """

    def __init__(self, environment: EnvSetup, concurrency: int) -> None:
        self.environment = environment
        self._concurrency = concurrency
        self._records: dict[bool, list[EpisodeRecord]] = {}

    def forecast(self, prepared: PreparedRun) -> _Forecast | None:
        """Return the estimate for a model; None if there is no oracle, or all its episodes faulted."""
        environment, known = self.environment, self.environment.chosen.environment
        if known is None or known.oracle is None:
            return None
        tools = prepared.agent.uses_tools
        if tools not in self._records:
            self._records[tools] = self._play(tools=tools)
        before = prepared.agent.messages_before(environment.facts(tools=tools)["system_prompt"])
        schemas = environment.tool_schemas if tools else []
        overhead = estimate([{"role": "system", "content": json.dumps(schemas)}]) if schemas else 0
        history = History.parse(prepared.agent.history)
        if history.summary is not None and history.summarizer() is None:
            history = replace(history, summary=None)  # records have no info, so no summary of the environment
        return _forecast(self._records[tools], before, history, overhead)

    def _play(self, *, tools: bool) -> list[EpisodeRecord]:
        environment, known = self.environment, self.environment.chosen.environment
        tasks = draw(environment.tasks, min(_ORACLE_TASKS, len(environment.tasks)))
        records: list[EpisodeRecord] = []
        job = Job(
            environment.maker(tools=tools),
            lambda: load_oracle(known),  # type: ignore[arg-type] # not None, or there is no oracle
            episodes_of(tasks, 1),
            records.append,
            environment.shared_servers,
            isolate=environment.isolate,
        )
        asyncio.run(play_jobs([job], concurrency=self._concurrency))
        return records


def _print_estimate(
    run: PreparedRun, oracle: _OracleEpisodes, episodes: int, prices: Mapping[str, Price] | None
) -> None:
    expected = oracle.forecast(run)
    if expected is None:
        _print("  tokens and cost: unknown, because no oracle plays this environment")
        return
    prompt, completion = round(expected.prompt * episodes), round(expected.completion * episodes)
    _print(
        f"  tokens: about {prompt:,} in prompts and {completion:,} in replies, if the model replies like the "
        f"oracle (mean of {_count(expected.episodes, 'episode')}: {expected.turns:.1f} turns); reasoning, "
        "failed attempts and summaries by the environment add to this"
    )
    if prices is None:
        return
    price = run.agent.price(prices)
    if price is None:
        _print(f"  cost: unknown, because the price file has no price of {run.agent.name}")
    else:
        _print(f"  cost: about {price.of(prompt, completion):.2f}, without cached prompts")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _print(line: str) -> None:
    out.print(clean(line))


@dataclass(frozen=True)
class _Forecast:
    """Estimated tokens of an average episode.

    Attributes:
        episodes: Number of episodes behind the estimate.
        turns: Mean number of replies.
        prompt: Mean number of prompt tokens; each turn sends the history again.
        completion: Mean number of tokens of the replies.
    """

    episodes: int
    turns: float
    prompt: float
    completion: float


def _forecast(
    records: Iterable[EpisodeRecord], before: Sequence[Message], history: History, overhead: int = 0
) -> _Forecast | None:
    """Return the tokens that a model would use with the same replies.

    Args:
        records: The episodes. Faulted ones are ignored.
        before: The messages before the first observation.
        history: The part of the conversation that the model receives.
        overhead: Tokens of each request besides the messages, for the tools.

    Returns:
        The estimate; None if there is no scored episode with a reply.
    """
    played = [record for record in records if record.scored and record.replies]
    if not played:
        return None
    prompt = completion = turns = 0
    for record in played:
        conversation = Conversation(history, list(before), overhead)
        for message in record.messages:
            if message["role"] == "assistant":
                prompt += estimate(conversation.to_send()) + overhead
                completion += estimate([message])
                turns += 1
            conversation.add(message, {})
    count = len(played)
    return _Forecast(count, turns / count, prompt / count, completion / count)
