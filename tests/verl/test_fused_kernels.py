"""verl's fused kernels compute what whole logits give, in the memory that the estimate has."""

from __future__ import annotations

import weakref
from importlib import metadata

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))
if metadata.version("verl").startswith("0.7."):
    pytest.skip("verl 0.7 rounds their log-probabilities, and no recipe uses them", allow_module_level=True)

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from verl.utils import torch_functional
from verl.utils.experimental.torch_functional import FusedLinearForPPO

from verl_bridge.recipes._fused_kernels import CHUNK
from verl_bridge.recipes._gpu_memory import Sizing, estimate
from verl_bridge.recipes._model_size import ModelSize

VOCABULARY, HIDDEN = 4_000, 8


class Peak(TorchDispatchMode):
    """The most bytes that tensors made in a block have at once."""

    def __init__(self):
        super().__init__()
        self.live, self.now, self.bytes = {}, 0, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self._add(tensor.untyped_storage())
        return made

    def _add(self, storage):
        key = storage._cdata
        if key not in self.live:
            self.live[key] = storage.nbytes()
            self.now += storage.nbytes()
            self.bytes = max(self.bytes, self.now)
            weakref.finalize(storage, self._drop, key)

    def _drop(self, key):
        self.now -= self.live.pop(key, 0)


def inputs(tokens, *, gradients):
    generator = torch.Generator().manual_seed(tokens)
    hidden = torch.randn(1, tokens, HIDDEN, generator=generator).to(torch.bfloat16).requires_grad_(gradients)
    weights = (
        torch.randn(VOCABULARY, HIDDEN, generator=generator).to(torch.bfloat16).requires_grad_(gradients)
    )
    return hidden, weights, torch.randint(0, VOCABULARY, (1, tokens), generator=generator)


def fused(hidden, weights, labels):
    return FusedLinearForPPO()(hidden, weights, labels)


def whole(hidden, weights, labels, entropy=torch_functional.entropy_from_logits):
    logits = (hidden @ weights.t()).squeeze(0)
    return torch_functional.logprobs_from_logits(logits, labels.squeeze(0)), entropy(logits)


def chunked(hidden, weights, labels):
    return whole(hidden, weights, labels, torch_functional.entropy_from_logits_with_chunking)


def peak(compute, tokens, *, gradients):
    """Bytes for each token of the vocabulary."""
    made = inputs(tokens, gradients=gradients)
    with Peak() as most, torch.set_grad_enabled(gradients):
        log_probs, entropy = compute(*made)
        if gradients:
            (log_probs.sum() + entropy.float().sum()).backward()
    return most.bytes / VOCABULARY


def estimated(tokens, *, gradients, kernels):
    """Bytes of the logits by the estimate, for each token of the vocabulary."""
    size = ModelSize(1e9, 10, HIDDEN, VOCABULARY, 8, "a test")
    made = estimate(size, Sizing(1, tokens, tokens, fused=kernels))
    return (made.update if gradients else made.forward)["logits"] / VOCABULARY


def test_the_memory_of_whole_logits_grows_with_the_tokens_as_estimated():
    """Of an update the estimate has less: there verl uses flash-attn, which needs a GPU."""
    grown = peak(whole, 4 * CHUNK, gradients=False) - peak(whole, 2 * CHUNK, gradients=False)
    expected = estimated(2 * CHUNK, gradients=False, kernels=False)
    assert 0.9 * expected <= grown <= 1.3 * expected


@pytest.mark.parametrize("gradients", [False, True])
def test_the_memory_of_fused_kernels_is_that_of_a_chunk(gradients):
    few, many = (peak(fused, tokens, gradients=gradients) for tokens in (2 * CHUNK, 6 * CHUNK))
    expected = estimated(2 * CHUNK, gradients=gradients, kernels=True)
    assert many - few < 0.1 * few
    assert few <= 1.5 * expected
    assert few >= 0.8 * expected


def test_chunked_entropy_is_no_alternative_in_an_update():
    """It saves much memory only without the gradient of the entropy."""
    assert peak(chunked, 16 * CHUNK, gradients=False) < 0.9 * peak(whole, 16 * CHUNK, gradients=False)
    assert peak(chunked, 16 * CHUNK, gradients=True) > 0.9 * peak(whole, 16 * CHUNK, gradients=True)


def test_fused_kernels_compute_the_same():
    made = inputs(3 * CHUNK // 2, gradients=True)
    log_probs, entropy = fused(*made)
    log_probs.sum().backward()
    gradients = [each.grad.float() for each in made[:2]]
    again = [each.detach().float().requires_grad_() for each in made[:2]]
    logits = (again[0] @ again[1].t()).squeeze(0)
    expected = logits.log_softmax(-1).gather(-1, made[2].squeeze(0)[:, None]).squeeze(-1)
    expected.sum().backward()
    torch.testing.assert_close(log_probs.squeeze(0), expected, rtol=0.02, atol=0.1)
    torch.testing.assert_close(
        entropy.squeeze(0).float(), torch_functional.entropy_from_logits(logits), rtol=0.02, atol=0.05
    )
    for got, each in zip(gradients, again, strict=True):
        assert (got - each.grad).norm() < 0.02 * each.grad.norm()
