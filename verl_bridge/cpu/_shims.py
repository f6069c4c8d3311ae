"""Features that torch and verl lack on a CPU: memory calls, a process group, four functions of flash-attn.

Nothing that exists already is replaced.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import types
from typing import Any

_ZERO = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
_NOTHING = ("ipc_collect", "reset_peak_memory_stats", "reset_accumulated_memory_stats")


def add_memory_calls() -> None:
    """Add to ``torch.cpu`` the calls that verl makes on any accelerator and that torch has only for CUDA.

    All memory is reported as 0 bytes: verl only prints it. ``empty_cache`` is :func:`return_free_memory`. The
    random state is the CPU's own; checkpoints contain it.
    """
    import torch

    calls: dict[str, Any] = {
        **dict.fromkeys(_ZERO, lambda *_args, **_kwargs: 0),
        **dict.fromkeys(_NOTHING, lambda *_args, **_kwargs: None),
        "empty_cache": return_free_memory,
        "mem_get_info": lambda *_args, **_kwargs: (0, 0),
        "get_rng_state": lambda *_args, **_kwargs: torch.get_rng_state(),
        "set_rng_state": lambda state, *_args, **_kwargs: torch.set_rng_state(state),
    }
    for name, call in calls.items():
        if not hasattr(torch.cpu, name):
            setattr(torch.cpu, name, call)


def return_free_memory() -> None:
    """Return the memory that malloc keeps for reuse to the operating system, where glibc is the C library.

    Otherwise activations stay resident during the rollout, and the KV cache during the training step:
    gigabytes each.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def open_gloo_group() -> None:
    """Open torch's process group with gloo, in a process that has a rank and no group yet.

    verl would open it with the backends ``cpu:gloo,cpu:gloo`` (0.9) or ``cpu:gloo,cpu:nccl`` (0.7), which
    torch rejects because one device is named twice. If a group exists already, verl uses it.
    """
    import torch.distributed as dist

    if "RANK" in os.environ and "MASTER_ADDR" in os.environ and not dist.is_initialized():
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group("gloo", rank=rank, world_size=size)


def replace_flash_attn() -> None:
    """Make ``from flash_attn.bert_padding import ...`` work without flash-attn.

    verl 0.7 uses four of its functions to pad and unpad on any device; verl 0.9 has its own. Only that module
    is put into ``sys.modules``, so code that checks for ``flash_attn`` to use its kernels still finds none.
    """
    name = "flash_attn.bert_padding"
    if name in sys.modules or importlib.util.find_spec("flash_attn"):
        return
    module = types.ModuleType(name, "A replacement in plain torch, by verl_bridge.cpu.")
    for function in (index_first_axis, pad_input, unpad_input, rearrange):
        setattr(module, function.__name__, function)
    sys.modules[name] = module


def index_first_axis(values: Any, indices: Any) -> Any:
    """Return the rows of ``values`` at ``indices``."""
    return values[indices]


def pad_input(values: Any, indices: Any, batch: int, length: int) -> Any:
    """Return rows of tokens at their places in a zero-padded batch: the inverse of ``unpad_input``."""
    padded = values.new_zeros(batch * length, *values.shape[1:])
    padded[indices] = values
    return padded.unflatten(0, (batch, length))


def unpad_input(values: Any, mask: Any, unused_mask: Any = None) -> tuple[Any, Any, Any, int, Any]:
    """Return the tokens of a batch that the masks keep, in one row.

    Returns:
        The tokens; their indices in the flattened batch; the start of each sequence among them, and the end
        of the last; the longest sequence, in tokens; how many tokens of each sequence the first mask
        keeps.
    """
    import torch

    kept = mask if unused_mask is None else mask + unused_mask
    indices = kept.flatten().nonzero().flatten()
    lengths = kept.sum(dim=1, dtype=torch.int32)
    starts = torch.zeros(len(lengths) + 1, dtype=torch.int32, device=lengths.device)
    starts[1:] = lengths.cumsum(dim=0)
    used = mask.sum(dim=1, dtype=torch.int32)
    return values.flatten(0, 1)[indices], indices, starts, int(lengths.max()), used


def rearrange(*args: Any, **kwargs: Any) -> Any:
    """Call the function of einops, which flash-attn re-exports."""
    import einops

    return einops.rearrange(*args, **kwargs)
