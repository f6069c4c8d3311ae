"""Sequence parallelism (Ulysses): several GPUs share each sequence in training."""

from __future__ import annotations

from agentgym_gym.errors import BadOption

__all__ = ["check_sequence_parallel"]


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
    # As verl asserts in models/transformers/monkey_patch.py.
    if heads is not None and (heads[0] % share or (heads[1] % share and share % heads[1])):
        problem = (
            f"does not fit the model's {heads[0]} attention heads and {heads[1]} key heads: verl requires a "
            "divisor of the first, and a divisor or a multiple of the second"
        )
        raise BadOption("sequence_parallel", share, problem=problem)
