"""Sequence parallelism (Ulysses): several GPUs share each sequence in training."""

from __future__ import annotations

from agentgym_gym.errors import BadOption

__all__ = ["check_sequence_parallel", "shares_heads"]


def shares_heads(share: int, heads: int, key_heads: int) -> bool:
    """Return whether GPUs can share the heads of a model, as verl asserts.

    Source: ``verl/models/transformers/monkey_patch.py``.

    Args:
        share: GPUs that share a sequence.
        heads: Attention heads of the model.
        key_heads: Its key heads.
    """
    return heads % share == 0 and (key_heads % share == 0 or share % key_heads == 0)


def check_sequence_parallel(share: int, gpus: int, heads: tuple[int, int] | None) -> None:
    """Check whether GPUs can share sequences.

    Args:
        share: GPUs that share a sequence.
        gpus: GPUs that train.
        heads: Attention heads and key heads of the model; None if they are unknown.

    Raises:
        BadOption: The GPUs or the heads cannot be divided.
    """
    if gpus % share:
        problem = f"does not divide the {gpus} GPUs that train"
        raise BadOption("sequence_parallel", share, problem=problem)
    if heads is not None and not shares_heads(share, *heads):
        problem = (
            f"does not fit the model's {heads[0]} attention heads and {heads[1]} key heads: verl requires a "
            "divisor of the first, and a divisor or a multiple of the second"
        )
        raise BadOption("sequence_parallel", share, problem=problem)
