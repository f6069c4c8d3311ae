"""Episodes with a row for each turn as one row each, so that every estimator sees what it always sees.

verl's estimators compare rows. With ``rows: turn`` an episode has one row for each turn, and verl copies its
score to all of them: long episodes would count more often in the mean and the deviation of their group, and
a discount would end with each turn. Here the responses of an episode are joined in the order of its turns,
with the score at the last token. The estimator's result is then taken apart again.

Losses are means over rows or tokens, so an episode of many turns would also have more weight in the update.
:func:`weigh` therefore scales its advantages. The clipped losses of verl are homogeneous in the advantage, so
that this scales its part of the loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from verl_bridge._credit.sessions import sessions_of
from verl_bridge._credit.turn_rewards import COLUMN, join_turns

__all__ = ["JoinedRows", "weigh"]

ROW_MEAN = "seq-mean-token-mean"
"""verl's mode of aggregation in which each row has the same weight, long or short."""


class _Part(NamedTuple):
    """The place of a row in its episode.

    Attributes:
        row: Its index in the batch.
        start: Index of its first token in the joined response.
        length: Its number of tokens.
    """

    row: int
    start: int
    length: int


class JoinedRows:
    """A batch whose rows are joined to one row for each episode.

    Args:
        data: A ``DataProto`` with ``response_mask`` and other tensors of the shape batch by response length.
        keys: verl's key of each row.

    Attributes:
        data: The ``DataProto`` of the episodes. Tensors of other shapes, and columns, are those of the last
            row of each.
    """

    def __init__(self, data: Any, keys: Sequence[str]) -> None:
        self._whole = data
        batch, width = data.batch, data.batch["response_mask"].shape[1]
        lengths = _lengths(batch)
        self._parts: list[list[_Part]] = []
        for rows in sessions_of(keys):
            starts = np.cumsum([0, *(lengths[row] for row in rows)])
            self._parts.append(
                [_Part(row, int(start), lengths[row]) for row, start in zip(rows, starts, strict=False)]
            )
        lasts = [parts[-1].row for parts in self._parts]
        self.data = data.select_idxs(np.array(lasts))
        by_token = {name for name, tensor in batch.items() if tensor.shape[1:2] == (width,)}
        joined = {name: self._join(batch[name]) for name in by_token}
        self._only_last_score(joined)
        others = {name: tensor for name, tensor in self.data.batch.items() if name not in by_token}
        columns = dict(self.data.non_tensor_batch)
        if COLUMN in data.non_tensor_batch:
            columns[COLUMN] = self._turns(data.non_tensor_batch[COLUMN])
        self.data = type(data).from_dict(
            tensors={**others, **joined}, non_tensors=columns, meta_info=data.meta_info
        )

    def split(self, names: Sequence[str] = ("advantages", "returns")) -> Any:
        """Take tensors of the episodes apart, and return the batch with them."""
        whole = self._whole
        for name in names:
            joined = self.data.batch[name]
            rows = torch.zeros_like(whole.batch["response_mask"], dtype=joined.dtype)
            for episode, parts in enumerate(self._parts):
                for part in parts:
                    rows[part.row, : part.length] = joined[episode, part.start : part.start + part.length]
            whole.batch[name] = rows
        return whole

    def _join(self, tensor: torch.Tensor) -> torch.Tensor:
        width = max(parts[-1].start + parts[-1].length for parts in self._parts)
        joined = tensor.new_zeros(len(self._parts), width, *tensor.shape[2:])
        for episode, parts in enumerate(self._parts):
            for part in parts:
                joined[episode, part.start : part.start + part.length] = tensor[part.row, : part.length]
        return joined

    def _only_last_score(self, joined: Mapping[str, torch.Tensor]) -> None:
        """Remove the copies of the score from all rows but the last; a KL term stays at its tokens."""
        scores, rewards = joined["token_level_scores"], joined["token_level_rewards"]
        for episode, parts in enumerate(self._parts):
            last = parts[-1].start
            rewards[episode, :last] -= scores[episode, :last]
            scores[episode, :last] = 0

    def _turns(self, records: Sequence[Any]) -> Any:
        turns = np.empty(len(self._parts), dtype=object)
        for episode, parts in enumerate(self._parts):
            own = [(part.start, records[part.row]) for part in parts]
            turns[episode] = None if any(record is None for _, record in own) else join_turns(own)
        return turns


def weigh(data: Any, keys: Sequence[str], loss_agg_mode: str) -> None:
    """Scale advantages so that each episode has the same weight in the loss of a step.

    With N episodes, the tokens of episode i have the weight 1 / (N T_i), where T_i is the number of its
    tokens: an episode of one turn and one of fifty count the same. Without faults and with episodes of equal
    length, nothing changes.

    Args:
        data: A ``DataProto`` with ``advantages`` and ``response_mask``, both batch by response length.
        keys: verl's key of each row.
        loss_agg_mode: verl's mode of aggregation, ``actor.loss_agg_mode``.
    """
    mask = data.batch["response_mask"]
    tokens = mask.sum(dim=-1).double()
    sessions = [rows for rows in sessions_of(keys) if float(tokens[rows].sum()) > 0]
    scale = torch.zeros(len(mask), dtype=torch.float64, device=mask.device)
    played = (tokens > 0).sum()
    for rows in sessions:
        own = tokens[rows].sum()
        if loss_agg_mode == ROW_MEAN:
            scale[rows] = played * tokens[rows] / (len(sessions) * own)
        else:
            scale[rows] = tokens.sum() / (len(sessions) * own)
    advantages = data.batch["advantages"]
    data.batch["advantages"] = (advantages.double() * scale[:, None]).to(advantages.dtype)


def _lengths(batch: Mapping[str, torch.Tensor]) -> list[int]:
    """Return the number of tokens of each row: up to the last that has a mask or a reward."""
    used = batch["response_mask"].bool() | (batch["token_level_rewards"] != 0)
    used |= batch["token_level_scores"] != 0
    places = torch.arange(1, used.shape[1] + 1, device=used.device)
    return [max(1, int(length)) for length in (used * places).amax(dim=1).tolist()]
