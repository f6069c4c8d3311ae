"""Transfer of weights to separate rollout servers on a CPU: verl 0.9's checkpoint engine without NCCL.

verl's own engines for this need CUDA, an NPU or RDMA. This one sends whole tensors through torch's TCP store,
which the trainer's first process opens for each update. It is meant for tiny models.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import TCPStore
from verl.checkpoint_engine import CheckpointEngine

__all__ = ["StoreTransfer"]

_HOST = "127.0.0.1"  # verl_bridge.cpu trains on one machine
_WEIGHTS = "weights"
_TIMEOUT = timedelta(minutes=5)


class StoreTransfer(CheckpointEngine):
    """One side of the transfer.

    Args:
        bucket_size: unused; verl passes the size of a transfer in bytes.
        is_master: whether this is the trainer's first process, which sends.
    """

    def __init__(self, bucket_size: int, is_master: bool = False) -> None:
        self._is_master = is_master
        self._store: TCPStore | None = None

    def prepare(self) -> dict[str, Any]:
        """Open the store in the sending process, and return its port."""
        if not self._is_master:
            return {}
        self._store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False, timeout=_TIMEOUT)
        return {"port": self._store.port}

    @classmethod
    def build_topology(
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: list[dict[str, Any]]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """Return the arguments of :meth:`init_process_group` for the trainer's and the servers' processes."""
        port = metadata[0]["port"]
        return {"port": [port] * actor_wg_world_size}, {"port": [port] * rollout_world_size}

    def init_process_group(self, port: int) -> None:
        """Connect to the store of the sending process."""
        if self._store is None:
            self._store = TCPStore(_HOST, port, is_master=False, timeout=_TIMEOUT)

    async def send_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]], global_steps: int | None = None
    ) -> None:
        """Send all weights; each process of the trainer has a complete copy of them."""
        whole = {name: tensor.detach().to("cpu").contiguous().clone() for name, tensor in weights}
        if self._is_master and self._store is not None:
            file = io.BytesIO()
            torch.save(whole, file)
            self._store.set(_WEIGHTS, file.getvalue())

    def receive_weights(self, global_steps: int | None = None) -> Iterator[tuple[str, torch.Tensor]]:
        """Wait for the weights, and return their names and tensors."""
        if self._store is not None:  # verl has called init_process_group
            yield from torch.load(io.BytesIO(self._store.get(_WEIGHTS)), weights_only=True).items()

    def finalize(self) -> None:
        """Close the store."""
        self._store = None
