"""Sample the next token with the parameters that verl sends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "repetition_penalty": (1, None),
    "presence_penalty": (0, None),
    "frequency_penalty": (0, None),
    "min_p": (0, None),
    "n": (1, None),
    "ignore_eos": (False, None),
    "stop": (None, [], ""),
}
"""Unsupported parameters, with the values that turn them off."""


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters of one reply.

    Args:
        temperature: sampling temperature; 0 is greedy.
        top_p: nucleus sampling threshold: keep the smallest set of most likely tokens with this total
            probability; 1 keeps all.
        top_k: number of most likely tokens to keep, applied before top_p; 0 or less keeps all.
        max_tokens: maximum number of tokens; None leaves it to the server.
        stop_token_ids: ids that end the reply, besides the model's own.
        logprobs: whether to return log-probabilities.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    max_tokens: int | None = None
    stop_token_ids: frozenset[int] = field(default_factory=frozenset)
    logprobs: bool = False

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Sampling:
        """Read the sampling parameters that verl sends.

        Raises:
            ValueError: a parameter is unsupported or out of range; its name is in the message.
        """
        rest = {key: value for key, value in params.items() if value is not None}
        temperature, top_p = float(rest.pop("temperature", 1.0)), float(rest.pop("top_p", 1.0))
        limits = {int(rest.pop(key)) for key in ("max_tokens", "max_new_tokens") if key in rest}
        sampling = cls(
            temperature=temperature,
            top_p=top_p,
            top_k=int(rest.pop("top_k", -1)),
            max_tokens=min(limits) if limits else None,
            stop_token_ids=frozenset(int(token) for token in rest.pop("stop_token_ids", ())),
            # vLLM's 0 requests the sampled token's only; verl's False requests none.
            logprobs=rest.pop("logprobs", False) is not False,
        )
        for key, value in rest.items():
            if key not in _NEUTRAL or value not in _NEUTRAL[key]:
                raise ValueError(f"the CPU rollout server does not support {key}={value!r}: remove it")
        if not (math.isfinite(temperature) and temperature >= 0):
            raise ValueError(f"temperature must be 0 or more, not {temperature}")
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {top_p}")
        if limits and min(limits) < 1:
            raise ValueError(f"max_tokens must be 1 or more, not {min(limits)}: there is no room for a reply")
        return sampling


def log_distribution(logits: torch.Tensor, samplings: Sequence[Sampling]) -> torch.Tensor:
    """Return each row's log-probabilities after temperature, top_k and top_p.

    verl calls this ``processed_logprobs``, its default. A greedy row (temperature 0) has the model's own at
    temperature 1, because the log-probability of a certain token would always be 0.

    Args:
        logits: of the next token, rows by vocabulary.
        samplings: one for each row.
    """
    temperatures = torch.tensor([sampling.temperature or 1.0 for sampling in samplings])
    logs = torch.log_softmax(logits.float() / temperatures[:, None], dim=-1)
    vocabulary = logs.shape[-1]
    cut = [
        row for row, s in enumerate(samplings) if s.temperature and (s.top_p < 1 or 0 < s.top_k < vocabulary)
    ]
    if not cut:
        return logs
    order = logs[cut].argsort(dim=-1, descending=True)
    ranked = logs[cut].gather(-1, order)
    keep = torch.tensor([samplings[row].top_k for row in cut])
    keep[keep <= 0] = vocabulary
    ranked[torch.arange(vocabulary) >= keep[:, None]] = -torch.inf
    ranked = ranked.log_softmax(dim=-1)
    before = ranked.exp().cumsum(dim=-1) - ranked.exp()
    share = torch.tensor([samplings[row].top_p for row in cut])
    dropped = (before >= share[:, None]) & (share[:, None] < 1)
    dropped[:, 0] = False
    ranked[dropped] = -torch.inf
    ranked = ranked.log_softmax(dim=-1)
    logs[cut] = torch.empty_like(ranked).scatter(-1, order, ranked)
    return logs


def draw(
    logs: torch.Tensor, samplings: Sequence[Sampling], generators: Sequence[torch.Generator]
) -> torch.Tensor:
    """Sample one token id for each row, each with its own generator, so that rows are independent."""
    sums = logs.double().exp().cumsum(dim=-1)
    thresholds = (
        torch.stack([torch.rand((), generator=generator) for generator in generators]).double() * sums[:, -1]
    )
    drawn = torch.searchsorted(sums, thresholds[:, None], right=True).squeeze(-1)
    greedy = torch.tensor([sampling.temperature == 0 for sampling in samplings])
    return torch.where(greedy, logs.argmax(dim=-1), drawn)
