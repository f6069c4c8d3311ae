"""A tiny model with random weights, and a tokenizer trained on the texts of one environment.

``python -m verl_bridge.cpu.tiny FOLDER --text FILE --phrase PHRASE`` makes one from the lines of a file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

END, BEGIN, PAD = "<|im_end|>", "<|im_start|>", "<|endoftext|>"

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
"""ChatML, as Qwen's, without tools and without a default system message."""

_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen2 splits text before it applies merges. transformers 5 loads any Qwen2 folder with this rule and
ignores a saved one. Merges learned with another rule would then never apply."""


def make_tiny(
    folder: str | Path,
    texts: Iterable[str],
    phrases: Sequence[str] = (),
    *,
    hidden: int = 64,
    layers: int = 2,
    vocabulary: int = 512,
    context: int = 2048,
    seed: int = 0,
) -> Path:
    """Save a Qwen2-style model of random weights and its tokenizer, with a ChatML template.

    Args:
        folder: created if it does not exist.
        texts: training texts of the tokenizer: observations, prompts, replies.
        phrases: each becomes one token; choose phrases that recur word for word. This makes episodes several
            times shorter.
        hidden: width; a multiple of 8.
        layers: number of layers.
        vocabulary: maximum number of tokens, without the phrases.
        context: maximum tokens of prompt and reply together.
        seed: random seed of the weights.

    Returns:
        The folder.

    Raises:
        ValueError: the vocabulary is too small, the width is not a multiple of 8, or the tokenizer does not
            read a phrase as one token.
    """
    if vocabulary < 256 + 3 or hidden % 8:
        raise ValueError(f"vocabulary={vocabulary} must be 259 or more, and hidden={hidden} a multiple of 8")
    import torch
    from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

    folder = Path(folder)
    tokenizer = _train(list(texts), phrases, vocabulary, context)
    tokenizer.save_pretrained(folder)
    _support_transformers_4(folder)
    end, pad = tokenizer.convert_tokens_to_ids([END, PAD])
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=pad,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(config)
    model.generation_config = GenerationConfig(eos_token_id=[end, pad], pad_token_id=pad)
    model.save_pretrained(folder)
    _check(folder, phrases)
    return folder


def _train(texts: list[str], phrases: Sequence[str], vocabulary: int, context: int) -> Any:
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        trainers,
    )
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.normalizer = normalizers.NFC()
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[PAD, BEGIN, END],
        show_progress=False,
    )
    core.train_from_iterator([*texts, "system\nuser\nassistant\n"], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[BEGIN, END],
        chat_template=CHAT_TEMPLATE,
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.add_tokens([AddedToken(phrase, normalized=False) for phrase in phrases])
    return tokenizer


def _support_transformers_4(folder: Path) -> None:
    """Write the tokenizer's class and special tokens in the form that both 4 and 5 read; 5 has its own."""
    file = folder / "tokenizer_config.json"
    config = json.loads(file.read_text("utf-8"))
    for name in ("backend", "extra_special_tokens"):
        config.pop(name, None)
    config.update(tokenizer_class="PreTrainedTokenizerFast", additional_special_tokens=[BEGIN, END])
    file.write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def _check(folder: Path, phrases: Sequence[str]) -> None:
    """Load the tokenizer as verl does, and check that each phrase is one token and decodes to itself."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    for text in (*phrases, BEGIN, END):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) != 1 or tokenizer.decode(ids) != text:
            raise ValueError(
                f"the phrase {text!r} is encoded as {len(ids)} tokens: remove the phrases that it contains"
            )


def main() -> None:
    """Create a model and its tokenizer from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m verl_bridge.cpu.tiny", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="folder for the model and its tokenizer")
    parser.add_argument("--text", type=Path, required=True, help="file of training texts for the tokenizer")
    parser.add_argument(
        "--phrase", action="append", default=[], help="phrase encoded as one token; repeatable"
    )
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    make_tiny(
        args.folder,
        args.text.read_text(encoding="utf-8").splitlines(),
        args.phrase,
        hidden=args.hidden,
        layers=args.layers,
        vocabulary=args.vocabulary,
        seed=args.seed,
    )


if __name__ == "__main__":
    main()
