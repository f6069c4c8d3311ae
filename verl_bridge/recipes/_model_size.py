"""The size of a model, from its configuration or its name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ModelSize", "model_size"]

_VOCABULARY = 151_936  # of Qwen2 and Qwen3: the default of transformers' Qwen3Config
_WIDTH_TO_DEPTH = 96  # hidden size by layers, between the 71 and 114 of Qwen3-4B and Qwen3-8B
_IN_NAME = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)


@dataclass(frozen=True)
class ModelSize:
    """The size of a model.

    Attributes:
        parameters: Number of parameters.
        layers: Number of layers.
        hidden: Hidden size.
        vocabulary: Number of tokens.
        key_width: Key heads by their size: the width of the keys in the KV cache.
        source: How the size is known.
        heads: Attention heads, and key heads; None if they are unknown.
        type: ``model_type`` in its config.json; empty if it is unknown.
    """

    parameters: float
    layers: int
    hidden: int
    vocabulary: int
    key_width: int
    source: str
    heads: tuple[int, int] | None = None
    type: str = ""


def model_size(model: str) -> ModelSize | None:
    """Return the size of a model, from its ``config.json`` or from its name; None if neither has it.

    Args:
        model: A local folder, or a name such as ``Qwen/Qwen3-4B``.
    """
    try:
        config = json.loads((Path(model) / "config.json").read_text("utf-8"))
        return _from_config(config)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # no folder, or not of a dense language model
    match = _IN_NAME.search(model.rstrip("/").rpartition("/")[2])
    if match is None or not float(match[1]):
        return None
    parameters = float(match[1]) * 1e9
    layers = max(1, round((parameters / (12 * _WIDTH_TO_DEPTH**2)) ** (1 / 3)))
    hidden = round(math.sqrt(parameters / (12 * layers)))
    source = f"{match[1]}B in its name; layers, hidden size and vocabulary are assumed"
    return ModelSize(parameters, layers, hidden, _VOCABULARY, hidden // 4, source)


def _from_config(config: Mapping[str, Any]) -> ModelSize:
    config = config.get("text_config") or config  # of a model that also sees images
    hidden, layers, heads = (
        int(config[key]) for key in ("hidden_size", "num_hidden_layers", "num_attention_heads")
    )
    vocabulary, inner = int(config["vocab_size"]), int(config["intermediate_size"])
    head = int(config.get("head_dim") or hidden // heads)
    key_heads = int(config.get("num_key_value_heads") or heads)
    keys = head * key_heads
    experts = int(config.get("num_experts") or config.get("num_local_experts") or 1)
    inner = int(config.get("moe_intermediate_size") or inner) if experts > 1 else inner
    layer = 2 * hidden * heads * head + 2 * hidden * keys + 3 * hidden * inner * experts
    embeddings = vocabulary * hidden * (1 if config.get("tie_word_embeddings") else 2)
    return ModelSize(
        layer * layers + embeddings,
        layers,
        hidden,
        vocabulary,
        keys,
        "its config.json",
        heads=(heads, key_heads),
        type=str(config.get("model_type", "")),
    )
