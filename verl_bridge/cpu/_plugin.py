"""Register the CPU components in verl, in this process. verl's files are not changed."""

from __future__ import annotations

import importlib.util

from verl_bridge.cpu import _shims

ROLLOUT = "transformers"
"""The value of ``actor_rollout_ref.rollout.name`` that selects the rollout server of this package."""

_installed = False


def install() -> None:
    """Register the platform (verl 0.9), the engines and the rollout server, and install the shims.

    May be called again, and also while verl itself is still being imported, as it imports its external
    modules.

    Raises:
        RuntimeError: VERL_PLATFORM names another platform, or (verl 0.7) torch sees a GPU.
    """
    global _installed  # noqa: PLW0603 -- one process, one verl
    if _installed:
        return
    _shims.add_memory_calls()
    _shims.replace_flash_attn()
    newest = importlib.util.find_spec("verl.plugin") is not None  # verl 0.9
    if newest:  # it has platforms
        from verl_bridge.cpu._platform import use_cpu_platform

        use_cpu_platform()
    else:  # verl 0.7 uses torch directly
        _reject_gpu()
        _shims.open_gloo_group()
    _register_engines()
    _register_rollout()
    if newest:  # it has asynchronous trainers
        _register_transfer()
    _installed = True


def _reject_gpu() -> None:
    import torch

    if torch.cuda.is_available():
        raise RuntimeError(
            "verl_bridge.cpu is selected, but this verl would use the GPU that torch finds: set "
            "CUDA_VISIBLE_DEVICES= and RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES=1, or deselect the module"
        )


def _register_engines() -> None:
    from verl_bridge.cpu import _engines

    _engines.register()


def _register_rollout() -> None:
    from verl.workers.rollout import base, replica

    def load() -> object:
        from verl_bridge.cpu._rollout import CpuReplica

        return CpuReplica

    replica.RolloutReplicaRegistry.register(ROLLOUT, load)
    # A private table: verl has no other way to name the class that sends the weights.
    base._ROLLOUT_REGISTRY[(ROLLOUT, "async")] = "verl_bridge.cpu._rollout.WeightSender"  # noqa: SLF001


def _register_transfer() -> None:
    from verl.checkpoint_engine import CheckpointEngineRegistry

    from verl_bridge.cpu._transfer import StoreTransfer

    CheckpointEngineRegistry.register(ROLLOUT)(StoreTransfer)
