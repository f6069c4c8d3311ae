"""The CPU as a platform of verl 0.9. verl 0.7 has no platforms and uses torch directly."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from types import ModuleType
from typing import cast

import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry, set_platform

from verl_bridge.cpu._shims import open_gloo_group, return_free_memory

NAME = "cpu"


@PlatformRegistry.register(platform=NAME)
class CpuPlatform(PlatformBase):
    """One device, torch's own random numbers, gloo between processes, and no profiler."""

    @property
    def device_name(self) -> str:
        return NAME

    @property
    def vendor_name(self) -> str:
        return NAME

    @property
    def device_module(self) -> ModuleType:
        return cast("ModuleType", torch.cpu)

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        return False  # never detected automatically; use_cpu_platform() sets it

    def current_device(self) -> str:
        return NAME  # torch accepts it in place of a GPU's index

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        pass

    def synchronize(self, device_index: int | None = None) -> None:
        pass

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        pass

    def empty_cache(self) -> None:
        return_free_memory()

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        open_gloo_group()  # verl reads the name just before it would open the group
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"  # Ray sets it for the nominal GPU

    @contextlib.contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None:
        pass

    def profiler_stop(self) -> None:
        pass

    def ray_resource_name(self) -> str:
        return "GPU"  # verl counts only GPU and NPU, so Ray is configured with a nominal GPU

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> None:
        return None


def use_cpu_platform() -> None:
    """Set the CPU as the platform of this process.

    Raises:
        RuntimeError: VERL_PLATFORM names another platform.
    """
    platform = os.environ.get("VERL_PLATFORM", NAME).strip().lower()
    if platform != NAME:
        raise RuntimeError(
            f"VERL_USE_EXTERNAL_MODULES selects verl_bridge.cpu, but VERL_PLATFORM={platform} selects "
            "another platform: unset one of the two"
        )
    set_platform(CpuPlatform())
