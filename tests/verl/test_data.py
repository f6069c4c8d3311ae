"""verl's own data set over the files that `agentgym_gym.data` writes."""

from __future__ import annotations

import json

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))
pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))

import agentgym_gym
from agentgym_gym.data import (
    Message,
    Recipe,
    Trajectory,
    divide,
    items_of,
    own_prompt,
    rows,
    schema,
    sft_rows,
    sft_schema,
    write,
)

# verl, torch and the packages they bring warn of one another.
pytestmark = pytest.mark.filterwarnings("default")

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture
def tokenizer():
    """A small tokenizer of bytes, trained here."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=alphabet, special_tokens=special, show_progress=False
    )
    made.train_from_iterator([environment.rules for environment in agentgym_gym.environments()], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, chat_template=TEMPLATE, **dict.fromkeys(("eos_token", "pad_token"), special[0])
    )


@pytest.fixture
def load(tokenizer, tmp_path, monkeypatch):
    """Loads a parquet file as the trainer does."""
    import datasets
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")

    def loaded(*files, **config):
        config = OmegaConf.create(
            {"max_prompt_length": 4096, "filter_overlong_prompts_workers": None, **config}
        )
        return RLHFDataset([str(file) for file in files], tokenizer, config)

    return loaded


@pytest.fixture
def written(tmp_path):
    """The files of two environments, and the rows that went into them."""
    recipes = {}
    items = []
    for name, kwargs in {"Maze": {"action_format": "bare"}, "TextCraft": {"max_turns": None}}.items():
        environment = agentgym_gym.find(name)
        recipes[name] = Recipe(kwargs, own_prompt(environment, kwargs))
        items += items_of(environment, "0:10")
    division = divide(items, val=4)
    parts = {"train": list(rows(division.train, recipes)), "val": list(rows(division.val, recipes))}
    return write(tmp_path / "data", parts, schema()), parts


def test_verl_yields_what_was_written(load, written):
    paths, parts = written
    for name, wanted in parts.items():
        dataset = load(paths[name])
        assert len(dataset) == len(wanted)
        for at, row in enumerate(wanted):
            got = dataset[at]
            assert got["raw_prompt"] == row["prompt"]
            assert got["extra_info"] == row["extra_info"]
            assert got["index"] == at
            assert got["interaction_kwargs"] == row["extra_info"]["interaction_kwargs"]
            assert json.loads(got["interaction_kwargs"]["reset_options"]).keys() == {"task_id"}
            columns = ("agent_name", "data_source", "ability", "reward_model")
            assert {column: got[column] for column in columns} == {column: row[column] for column in columns}


def test_rows_without_a_system_prompt_are_kept(load, tmp_path):
    """Also where verl filters by the rendered length, which needs a message."""
    environment = agentgym_gym.find("Maze")
    parts = {"train": rows(items_of(environment, "0:4"), {"Maze": Recipe({}, None)})}
    path = write(tmp_path / "data", parts, schema())["train"]
    for filtered in (True, False):
        dataset = load(path, max_prompt_length=20, filter_overlong_prompts=filtered)
        assert [each["raw_prompt"] for each in dataset] == [[{"role": "system", "content": ""}]] * 4


def test_files_can_be_put_together(load, written):
    paths, parts = written
    assert len(load(*paths.values())) == len(parts["train"]) + len(parts["val"])


def test_rows_reach_a_batch(load, written):
    from torch.utils.data import DataLoader
    from verl.utils.dataset.rl_dataset import collate_fn

    paths, parts = written
    batch = next(iter(DataLoader(load(paths["train"]), batch_size=8, collate_fn=collate_fn)))
    assert list(batch["agent_name"]) == ["gym_env"] * 8
    assert [info["interaction_kwargs"] for info in batch["extra_info"]] == [
        row["extra_info"]["interaction_kwargs"] for row in parts["train"][:8]
    ]


def test_a_prompt_that_is_too_long_for_verl_is_left_out_by_it(load, written):
    """Which is why the command prints how long they are."""
    paths, _ = written
    assert len(load(paths["train"], max_prompt_length=20)) == 0


def test_verl_trains_on_every_reply_of_a_row_and_on_nothing_else(tokenizer, tmp_path):
    """Whatever its mark: verl reads none."""
    from omegaconf import OmegaConf
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    messages = (
        Message("system", "You are in a maze."),
        Message("user", "There are walls."),
        Message("assistant", "move up", loss=True),
        Message("user", "There are none.", extra={"note": [1]}),
        Message("assistant", "move left", loss=False),
        Message("user", "Success"),
    )
    given = [
        Trajectory("agentgym/Maze-v0", 3, messages, 1.0, success=True),
        Trajectory("x/Y-v0", 0, messages),
    ]
    path = write(tmp_path / "sft", {"train": sft_rows(given)}, sft_schema())["train"]
    config = OmegaConf.create({"pad_mode": "right", "max_length": 256})
    dataset = MultiTurnSFTDataset(str(path), tokenizer, config)
    assert len(dataset) == 2
    row = dataset[0]
    text = tokenizer.decode(row["input_ids"][row["attention_mask"].bool()])
    said = "".join(f"<|{each.role}|>{each.content}<|end|>" for each in messages[:-1])
    assert text == said
    trained = tokenizer.decode(row["input_ids"][row["loss_mask"].bool()])
    assert trained == "move up<|end|>move left<|end|>"
