"""How the next token is drawn: the parameters that verl sends, and the distribution they mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

_MEANS_NOTHING: dict[str, tuple[Any, ...]] = {
    "repetition_penalty": (1, None),
    "presence_penalty": (0, None),
    "frequency_penalty": (0, None),
    "min_p": (0, None),
    "n": (1, None),
    "ignore_eos": (False, None),
    "stop": (None, [], ""),
}
"""Parameters that are not honoured, with the values by which they ask for nothing."""


@dataclass(frozen=True)
class Sampling:
    """How one reply is drawn.

    Args:
        temperature: what logits are divided by; 0 takes the likeliest token.
        top_p: the smallest set of likeliest tokens whose probabilities sum to this is kept; 1 keeps all.
        top_k: how many of the likeliest tokens are kept, before top_p; 0 or less keeps all.
        max_tokens: at most so many tokens; None leaves it to the server.
        stop_token_ids: ids that end the reply beside the model's own.
        logprobs: whether the log-probabilities are wanted.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    max_tokens: int | None = None
    stop_token_ids: frozenset[int] = field(default_factory=frozenset)
    logprobs: bool = False

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Sampling:
        """Read what verl sends.

        Raises:
            ValueError: a parameter has no meaning here, or is out of range; its name is in the message.
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
            # vLLM's 0 is "of the sampled token", and verl's False "not wanted".
            logprobs=rest.pop("logprobs", False) is not False,
        )
        for key, value in rest.items():
            if key not in _MEANS_NOTHING or value not in _MEANS_NOTHING[key]:
                raise ValueError(f"the CPU rollout server cannot honour {key}={value!r}: leave it out")
        if not (math.isfinite(temperature) and temperature >= 0):
            raise ValueError(f"temperature must be 0 or more, not {temperature}")
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {top_p}")
        if limits and min(limits) < 1:
            raise ValueError(f"max_tokens must be 1 or more, not {min(limits)}: there is no room for a reply")
        return sampling


def log_distribution(logits: torch.Tensor, samplings: Sequence[Sampling]) -> torch.Tensor:
    """Log-probabilities by which each row's token is drawn: after temperature, top_k and top_p.

    That is what verl calls ``processed_logprobs``, its default. A greedy row (temperature 0) is given the
    model's own at temperature 1, as the log-probability of a certainty would say nothing.

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


def draw(logs: torch.Tensor, samplings: Sequence[Sampling], dice: Sequence[torch.Generator]) -> torch.Tensor:
    """One token id for each row, each row by its own dice, so that it matters to none who is in the batch."""
    sums = logs.double().exp().cumsum(dim=-1)
    points = torch.stack([torch.rand((), generator=die) for die in dice]).double() * sums[:, -1]
    drawn = torch.searchsorted(sums, points[:, None], right=True).squeeze(-1)
    greedy = torch.tensor([sampling.temperature == 0 for sampling in samplings])
    return torch.where(greedy, logs.argmax(dim=-1), drawn)
