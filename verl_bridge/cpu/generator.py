"""Generate replies to many prompts at once, with transformers. Independent of verl and Ray."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from verl_bridge.cpu._attention import GROUPED
from verl_bridge.cpu._prefixes import Attended, Prefixes, joined, of_row
from verl_bridge.cpu.sampling import Sampling, draw, log_distribution


@dataclass(frozen=True)
class Request:
    """A prompt with its sampling parameters.

    Args:
        prompt: token ids, at least one.
        sampling: sampling parameters; ``max_tokens`` must be set.
        seed: random seed of this reply.
    """

    prompt: tuple[int, ...]
    sampling: Sampling
    seed: int


@dataclass
class GeneratedReply:
    """Generated token ids, including the one that ended the reply, and the log-probability of each.

    An aborted reply has the tokens so far.
    """

    token_ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    aborted: bool = False


class Generator:
    """A model that generates replies to batches of prompts, left-padded to one length, with a KV cache.

    A prompt that occurs several times in a batch is read once. A prompt that continues an earlier one and its
    reply is read from the end of that reply.

    Args:
        model: a causal language model of transformers.
    """

    def __init__(self, model: Any) -> None:
        self._model = model.eval()
        self._prefixes = Prefixes()
        self.stop_ids = stop_ids(model)
        self.context = int(model.config.max_position_embeddings)

    @classmethod
    def load(cls, folder: str, dtype: torch.dtype = torch.float32) -> Generator:
        """Load the model in a folder.

        Args:
            folder: the folder.
            dtype: the type of the weights and of the computation.
        """
        from transformers import AutoModelForCausalLM

        return cls(AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation=GROUPED))

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> float:
        """Load new weights.

        Returns:
            The largest absolute change of any parameter.

        Raises:
            ValueError: names or shapes are not the model's, or are missing.
        """
        own: dict[str, torch.Tensor] = self._model.state_dict()
        unknown = sorted(weights.keys() - own.keys())
        if unknown:
            raise ValueError(f"weights that the rollout model does not have: {', '.join(unknown)}")
        sent = {own[name].data_ptr() for name in weights}  # tied weights share one tensor under two names
        missing = sorted(name for name, tensor in own.items() if tensor.data_ptr() not in sent)
        if missing:
            raise ValueError(f"weights of the rollout model that were not sent: {', '.join(missing)}")
        self._prefixes.clear()
        largest = 0.0
        for name, tensor in weights.items():
            if tensor.shape != own[name].shape:
                raise ValueError(f"{name} has the shape {tuple(tensor.shape)}, not {tuple(own[name].shape)}")
            new = tensor.detach().to(device="cpu", dtype=own[name].dtype)
            largest = max(largest, float((new - own[name]).abs().max()))
            own[name].copy_(new)
        return largest

    @torch.inference_mode()
    def generate(
        self, requests: Sequence[Request], aborting: Callable[[], bool] = lambda: False
    ) -> list[GeneratedReply]:
        """Generate replies to all requests as one batch. Each reply is independent of the others.

        Args:
            requests: the prompts.
            aborting: called before each token; if it returns true, all unfinished replies are aborted.
        """
        replies = [GeneratedReply() for _ in requests]
        generators = [torch.Generator().manual_seed(request.seed) for request in requests]
        rows = list(range(len(requests)))  # the request in each row of the batch
        read = self._read({request.prompt for request in requests})
        cache, known = joined([read[request.prompt] for request in requests])
        tokens, new = _left_padded(
            [request.prompt[int(row.sum()) :] for request, row in zip(requests, known, strict=True)]
        )
        mask = torch.cat([known, new], dim=-1)
        positions = (mask.cumsum(dim=-1) - 1).clamp(min=0)[:, known.shape[1] :]
        while rows:
            if aborting():
                for row in rows:
                    replies[row].aborted = True
                break
            output = self._model(
                input_ids=tokens,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache = output.past_key_values
            samplings = [requests[row].sampling for row in rows]
            logs = log_distribution(output.logits[:, -1], samplings)
            drawn = draw(logs, samplings, [generators[row] for row in rows])
            log_probs = logs.gather(-1, drawn[:, None])
            for row, token, log_prob in zip(rows, drawn.tolist(), log_probs[:, 0].tolist(), strict=True):
                replies[row].token_ids.append(token)
                replies[row].log_probs.append(log_prob)
            over = [self._over(requests[row], replies[row]) for row in rows]
            for index in (index for index, ended in enumerate(over) if ended):
                text = (*requests[rows[index]].prompt, *replies[rows[index]].token_ids[:-1])
                self._prefixes.put(text, of_row(cache, index, mask[index]))
            running = [index for index, ended in enumerate(over) if not ended]
            if len(running) < len(rows):
                rows = [rows[index] for index in running]
                kept = torch.tensor(running, dtype=torch.long)
                cache.batch_select_indices(kept)
                drawn, mask, positions = drawn[kept], mask[kept], positions[kept]
            tokens = drawn[:, None]
            positions = positions[:, -1:] + 1
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=-1)
        return replies

    def _read(self, prompts: Collection[tuple[int, ...]]) -> dict[tuple[int, ...], Attended]:
        """Read all but the last token of each prompt, from where an earlier reply ended."""
        read = {prompt: self._prefixes.take(prompt) or [] for prompt in prompts}
        unread = [prompt for prompt, attended in read.items() if not attended and len(prompt) > 1]
        if unread:
            tokens, mask = _left_padded([prompt[:-1] for prompt in unread])
            positions = (mask.cumsum(dim=-1) - 1).clamp(min=0)
            cache = self._model(
                input_ids=tokens,
                attention_mask=mask,
                position_ids=positions,
                use_cache=True,
                logits_to_keep=1,
            ).past_key_values
            read.update((prompt, of_row(cache, row, mask[row])) for row, prompt in enumerate(unread))
        return read

    def _over(self, request: Request, reply: GeneratedReply) -> bool:
        last, sampling = reply.token_ids[-1], request.sampling
        stopped = last in self.stop_ids or last in sampling.stop_token_ids
        return stopped or len(reply.token_ids) == sampling.max_tokens


def stop_ids(model: Any) -> frozenset[int]:
    """Return each id that ends a reply, from the generation config, or else from the model."""
    named = getattr(model.generation_config, "eos_token_id", None)
    if named is None:
        named = model.config.eos_token_id
    if named is None:
        return frozenset()
    return frozenset(int(token) for token in (named if isinstance(named, Iterable) else [named]))


def _left_padded(prompts: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the prompts as one left-padded tensor, and its attention mask."""
    longest = max(len(prompt) for prompt in prompts)
    tokens = torch.zeros(len(prompts), longest, dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for row, prompt in enumerate(prompts):
        tokens[row, longest - len(prompt) :] = torch.tensor(prompt)
        mask[row, longest - len(prompt) :] = 1
    return tokens, mask
