"""verl's FSDP engines on a CPU: the policy with its reference, and the critic.

verl registers its engines only for cuda and npu, and two of their methods always use features of a GPU. The
subclasses here replace those features during one call; no other caller is affected.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch.distributed.fsdp import CPUOffloadPolicy
from verl.utils import model as verl_model
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp import transformer_impl
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead, FSDPEngineWithValueHead

__all__ = ["CpuEngine", "CpuValueEngine", "register"]


@contextlib.contextmanager
def replaced(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    """Temporarily replace an attribute of a module; do nothing if it has no such attribute."""
    if not hasattr(module, name):
        yield
        return
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def without_pinning(**options: Any) -> CPUOffloadPolicy:
    """Return the policy that keeps a reference's parameters in main memory, without pinning it.

    verl requests pinned memory, which torch supports only with an accelerator.
    """
    return CPUOffloadPolicy(**(options | {"pin_memory": False}))


def load_value_model(
    attention: str, *, local_path: str, torch_dtype: Any, model_config: Any, **options: Any
) -> Any:
    """Load a model with a value head for each token, as verl does but with a given attention implementation.

    verl's own function uses flash attention 2 and ignores ``override_config.attn_implementation``.
    """
    from transformers import AutoModelForTokenClassification

    return AutoModelForTokenClassification.from_pretrained(
        local_path, torch_dtype=torch_dtype, config=model_config, attn_implementation=attention, **options
    )


class CpuEngine(FSDPEngineWithLMHead):
    """verl's engine of the policy and of its reference."""

    def _build_fsdp_module(self, module: Any) -> Any:
        with replaced(transformer_impl, "CPUOffloadPolicy", without_pinning):
            return super()._build_fsdp_module(module)


class CpuValueEngine(FSDPEngineWithValueHead):
    """verl's engine of the critic."""

    def _build_module(self) -> Any:
        attention = self.model_config.override_config.get("attn_implementation", "sdpa")
        load = functools.partial(load_value_model, attention)
        # verl 0.7 has that function but does not use it: it loads by the model's architecture.
        with replaced(verl_model, "load_valuehead_model", load):
            return super()._build_module()

    def prepare_model_outputs(self, *args: Any, **kwargs: Any) -> Any:
        """Return the values of a micro-batch, one for each token."""
        outputs = super().prepare_model_outputs(*args, **kwargs)
        values = outputs["values"]
        if values.dim() == 3:  # noqa: PLR2004 - verl 0.7 puts each value of a padded sequence into a list
            flat = values.values().squeeze(-1)
            outputs["values"] = torch.nested.nested_tensor_from_jagged(flat, values.offsets())
        return outputs


def register() -> None:
    """Register both engines for the device ``cpu``."""
    engines = {"language_model": CpuEngine, "value_model": CpuValueEngine}
    for model_type, engine in engines.items():
        EngineRegistry.register(model_type=model_type, backend=["fsdp", "fsdp2"], device="cpu")(engine)
