"""Put games that are not too long into one file, in random order: ``python select_games.py ROWS ...``."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from transformers import AutoTokenizer

from verl_bridge.sft_dataset import GameDataset


def main() -> None:
    """Write ``train.parquet``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("rows", type=Path, nargs="+", help="files of agentgym data sft")
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument("--max-length", type=int, required=True, help="maximum tokens of a game")
    parser.add_argument("--out", type=Path, required=True, help="folder of the file")
    args = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    # The tokens of the fine-tuning, which may be more than those of the template over the whole conversation.
    settings = {"pad_mode": "no_padding", "truncation": "right", "max_length": 1 << 20}
    kept = []
    for path in args.rows:
        rows = pq.read_table(path)
        games = GameDataset(str(path), tokenizer, settings)
        lengths = [len(games[at]["input_ids"]) for at in range(len(games))]
        chosen = [
            (row, length)
            for row, length in zip(rows.to_pylist(), lengths, strict=True)
            if length <= args.max_length
        ]
        print(f"{path}: {len(chosen)} of {len(lengths)} games, {sum(length for _, length in chosen)} tokens")
        kept += [row for row, _ in chosen]
    if not kept:
        raise SystemExit(f"no game has at most {args.max_length} tokens: raise --max-length")
    random.Random(0).shuffle(kept)  # noqa: S311 - a reproducible order
    pq.write_table(pa.Table.from_pylist(kept, schema=rows.schema), args.out / "train.parquet")


if __name__ == "__main__":
    main()
