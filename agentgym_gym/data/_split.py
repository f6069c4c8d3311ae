"""Divide items into a training and a validation split."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    from agentgym_gym.evaluate._items import Item

__all__ = ["Division", "divide", "parse_val"]


@dataclass(frozen=True)
class Division:
    """Items in two disjoint splits.

    Attributes:
        train: The training items, shuffled.
        val: The validation items.
        duplicates: The number of duplicate items that were dropped.
    """

    train: Sequence[Item]
    val: Sequence[Item]
    duplicates: int


def divide(
    items: Iterable[Item],
    *,
    val: float = 0,
    seed: int = 0,
    num_samples: int | None = None,
    validation: Iterable[Item] = (),
) -> Division:
    """Shuffle items and split off a validation set with about the same share of each environment.

    The order depends only on the seed and the set of items, not on the files, the input order or the machine.
    A smaller sample is a subset of a larger one.

    Args:
        items: The items. Duplicates are dropped.
        val: Size of the validation split: a number of items as an integer, or a share as a float below 1.
        seed: Seed of the shuffle, which determines the sample and the validation split.
        num_samples: Number of items to sample, including validation items; all by default.
        validation: Items for validation only. The validation items of their environments are drawn from
            them, and never trained on.

    Raises:
        BadOption: There are fewer items than ``num_samples``, too few for validation, or no training items
            would remain.
    """
    originals, pool = list(items), list(validation)
    chosen = _shuffled({item.key: item for item in originals}.values(), seed)
    duplicates = len(originals) - len(chosen)
    if num_samples is not None:
        if not 1 <= num_samples <= len(chosen):
            raise BadOption("num_samples", num_samples, f"from 1 to {len(chosen)}, the number of items")
        chosen = chosen[:num_samples]
    size = val if isinstance(val, int) else _share(val, len(chosen))
    if size < 0:
        raise BadOption("val", val, "a number of items or a share, at least 0")
    pooled = {item.environment.name for item in pool}
    own = [item for item in chosen if item.environment.name not in pooled]
    kept_out = own[: size if not pool else round(size * len(own) / len(chosen))]
    drawn = _shuffled({item.key: item for item in pool}.values(), seed)[: size - len(kept_out)]
    if isinstance(val, int) and pool and len(kept_out) + len(drawn) < size:
        raise BadOption("val", val, problem=f"is more than the {len(pool)} items for validation only")
    out = {item.key for item in (*kept_out, *drawn)}
    if num_samples is not None:  # which counts the items for validation
        out |= {item.key for item in [each for each in chosen if each.key not in out][: len(drawn)]}
    train = [item for item in chosen if item.key not in out]
    if not train:
        raise BadOption(
            "val", val, problem=f"of {len(chosen)} items leaves none for training; pass 0 for no validation"
        )
    return Division(train, [*kept_out, *drawn], duplicates)


def parse_val(text: str) -> float:
    """Parse the size of a validation split: ``"50"`` is a number of items, ``"0.1"`` and ``"10%"`` shares.

    Raises:
        BadOption: The text is neither a number of items nor a share.
    """
    if re.fullmatch(r"[0-9]{1,9}", text):
        return int(text)
    match = re.fullmatch(r"([0-9]{0,2}\.[0-9]{1,9})|([0-9]{1,2}(?:\.[0-9]{1,9})?)%", text)
    share = 1.0 if match is None else float(match[1]) if match[1] else float(match[2]) / 100
    if share >= 1:
        raise BadOption(
            "val", text, problem="is neither a number of items, such as 50, nor a share, such as 0.1 or 10%"
        )
    return share


def _share(share: float, items: int) -> int:
    if not 0 <= share < 1:
        raise BadOption("val", share, "a share of at least 0.0 and below 1.0")
    return max(1, round(share * items)) if share else 0


def _shuffled(items: Iterable[Item], seed: int) -> list[Item]:
    """Shuffle items so that every prefix contains the environments in proportion."""
    by_environment: dict[str, list[tuple[bytes, Item]]] = defaultdict(list)
    for item in items:
        digest = hashlib.sha256(f"{seed} {item.environment.name} {item.task_id}".encode()).digest()
        by_environment[item.environment.name].append((digest, item))
    ranked: list[tuple[float, bytes, Item]] = []
    for pairs in by_environment.values():
        pairs.sort(key=lambda pair: pair[0])
        ranked += [((at + 0.5) / len(pairs), digest, item) for at, (digest, item) in enumerate(pairs)]
    return [item for *_, item in sorted(ranked, key=lambda entry: entry[:2])]
