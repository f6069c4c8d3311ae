"""verl's fused kernels: log-probabilities and entropy from hidden states, without the logits of all tokens.

``actor_rollout_ref.model.use_fused_kernels`` replaces the model's output layer by one that computes logits in
chunks of 512 tokens, in fp32, and again for the gradient. To an update with recomputed activations, which has
8 P operations for each token, this adds 2 V h: 2 to 3 % for a model of 3B. The peak of memory was measured
with verl's own functions on a CPU (tests/verl/test_fused_kernels.py).

verl's chunked entropy (``entropy_from_logits_with_chunking``) is no alternative. It saves much memory only
where verl computes an entropy without its gradient, and the logits themselves remain.
"""

from __future__ import annotations

import re

__all__ = ["CHUNK", "problem_of", "supports"]

CHUNK = 512
"""Tokens of a chunk: verl's FusedLinearForPPO."""

_MODELS = re.compile(r"qwen-?(2|2\.5|3)-(?!.*(-a\d|vl|omni))|llama-?[23]|mistral-7b|smollm", re.IGNORECASE)
"""Names of models whose logits are the plain product that verl's kernels compute.

Models with a cap or a scale of their logits (Gemma 2, Cohere, Granite) get wrong probabilities.
"""

_TYPES = frozenset({"qwen2", "qwen3", "llama", "mistral"})
"""``model_type`` in config.json of the same models."""


def supports(model: str, model_type: str = "") -> bool:
    """Return whether the kernels are known to compute a model's probabilities.

    Args:
        model: Its name or path.
        model_type: The type in its config.json; empty if there is none.
    """
    if model_type:
        return model_type in _TYPES
    return _MODELS.search(model.rstrip("/").rpartition("/")[2]) is not None


def problem_of(verl: str) -> str:
    """Return why a version of verl cannot use them, or an empty text.

    Args:
        verl: The version of verl.
    """
    if verl == "0.7":
        return "rounds log-probabilities to bfloat16 in verl 0.7: use verl 0.8 or 0.9"
    return ""
