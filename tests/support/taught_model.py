"""A tiny model with the chat template of a family, taught in seconds to reply mostly in a certain form."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, GenerationConfig, Qwen2Config, Qwen2ForCausalLM

from chat_templates import Family, tokenizer_of

CONTEXT = 2048
STEPS, BATCH, RATE = 300, 8, 2e-3


def teach(folder: Path, family: Family, prompts: Sequence[str], replies: Sequence[str]) -> Any:
    """Save a model and its tokenizer, and return the tokenizer as verl loads it.

    Args:
        folder: The folder.
        family: The chat template and its tokens.
        prompts: Rendered prompts.
        replies: Replies to any of them, with the token that ends them.
    """
    tokenizer = tokenizer_of(family)
    tokenizer.pad_token = family.eos
    tokenizer.save_pretrained(folder)
    _support_transformers_4(folder / "tokenizer_config.json")
    loaded = AutoTokenizer.from_pretrained(folder)
    text = prompts[0] + replies[0]
    assert loaded.encode(text, add_special_tokens=False) == tokenizer.encode(text, add_special_tokens=False)
    ends = loaded.convert_tokens_to_ids([family.end, family.eos])
    config = Qwen2Config(
        vocab_size=len(loaded),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=ends[1],
        pad_token_id=ends[1],
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several, which wait for each other, take minutes on a busy machine
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Qwen2ForCausalLM(config)
        _train(model, loaded, prompts, replies)
    torch.set_num_threads(threads)
    stops = sorted({ends[1]} if family.end in replies[0][: -len(family.end)] else {*ends})
    model.generation_config = GenerationConfig(eos_token_id=stops, pad_token_id=ends[1])
    model.save_pretrained(folder)
    return loaded


def _support_transformers_4(file: Path) -> None:
    config = json.loads(file.read_text())
    for name in ("backend", "extra_special_tokens"):
        config.pop(name, None)
    file.write_text(json.dumps({**config, "tokenizer_class": "PreTrainedTokenizerFast"}))


def _train(model: Any, tokenizer: Any, prompts: Sequence[str], replies: Sequence[str]) -> None:
    draw = random.Random(0)  # noqa: S311 - no secret
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    for _ in range(STEPS):
        rows = []
        for _ in range(BATCH):
            prompt, reply = (
                tokenizer.encode(draw.choice(texts), add_special_tokens=False) for texts in (prompts, replies)
            )
            rows.append((prompt, reply))
        width = max(len(prompt) + len(reply) for prompt, reply in rows)
        ids = torch.zeros(BATCH, width, dtype=torch.long)
        labels = torch.full((BATCH, width), -100)
        for row, (prompt, reply) in enumerate(rows):
            ids[row, : len(prompt) + len(reply)] = torch.tensor([*prompt, *reply])
            labels[row, len(prompt) : len(prompt) + len(reply)] = torch.tensor(reply)
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
