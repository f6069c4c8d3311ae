"""Fine-tuning on whole games: verl's own trainer, by the folder that `agentgym verl sft` writes."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from importlib import metadata

import pytest

import needs
import programs
from verl_run import compose_all

pytest.importorskip("verl", reason=needs.reason("verl"))

import torch
from omegaconf import OmegaConf
from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

from agentgym_gym.data import Message, Trajectory, read_trajectories, sft_rows, sft_schema, write
from verl_bridge.cpu.sft import with_overrides
from verl_bridge.recipes import SFT_PRESETS, VERSIONS, SftRecipe, check, write_sft
from verl_bridge.sft_dataset import GameDataset
from verl_bridge.tokens import UnstableTemplate

INSTALLED = metadata.version("verl")
MINOR = ".".join(INSTALLED.split(".")[:2])
ENVIRONMENT = programs.environment()
CHOICES = list(itertools.product(SFT_PRESETS, (True, False), (True, False)))

pytestmark = [
    pytest.mark.skipif(MINOR not in VERSIONS, reason=f"recipes are not written for {INSTALLED}"),
    pytest.mark.filterwarnings("default"),  # verl, torch and the packages they bring warn of one another
]

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# As Qwen3's does: the last reply of a conversation, behind the user's last message, begins with a thought.
THINKS = CHATML.replace(
    "{{ m['content'] }}",
    "{% if m['role'] == 'assistant' and loop.last and loop.index0 > 0 %}<think>\n\n</think>\n\n{% endif %}"
    "{{ m['content'] }}",
)
SHIFTS = CHATML.replace("{{ m['content'] }}", "{{ m['content'] }}{{ loop.index0 }}")


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    """What verl says of the folder of every choice; one process asks for all."""
    place = tmp_path_factory.mktemp("recipes")
    folders = {}
    for choice in CHOICES:
        preset, validation, spare = choice
        folders[choice] = place / "-".join(map(str, choice))
        recipe = SftRecipe(
            verl=MINOR,
            preset=preset,
            validation=validation,
            offload=spare and MINOR != "0.7",
            checkpointing=spare,
            max_length=16_384 if spare else 8_192,
        )
        write_sft(recipe, folders[choice])
    return compose_all(folders)


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: "-".join(map(str, choice)))
def test_verl_composes_it_and_knows_all_of_it(composed, choice):
    folder, answer = composed[choice]
    preset, validation, spare = choice
    assert (answer["error"], answer["unknown"], answer["refused"]) == (None, [], None)
    assert answer["classes"] == {"GameDataset of pkg://verl_bridge.sft_dataset": None}
    config = answer["config"]
    assert config["data"]["train_files"] == f"{folder}/data/train.parquet"
    assert config["data"]["val_files"] == (f"{folder}/data/val.parquet" if validation else None)
    assert config["data"]["train_batch_size"] == SFT_PRESETS[preset].batch
    assert config["data"]["max_token_len_per_gpu"] >= config["data"]["max_length"]
    assert config["optim"]["lr"] == 1e-5
    assert config["engine"]["offload_policy"] is (spare and MINOR != "0.7")
    assert config["model"]["enable_gradient_checkpointing"] is spare
    assert config["checkpoint"]["save_contents"] == ["model", "optimizer", "extra", "hf_model"]
    assert config["trainer"]["default_local_dir"] == f"{folder}/checkpoints"


def test_the_script_hands_the_settings_to_verl(tmp_path):
    """As far as a machine without a GPU goes: verl's own main prints what it would train by."""
    folder = tmp_path / "a folder"
    write_sft(SftRecipe(verl=MINOR, gpus=2, validation=True), folder)
    variables = {"PYTHON": sys.executable, "WANDB_API_KEY": "x", "GPUS": "1"}
    ended = subprocess.run(
        ["bash", str(folder / "run.sh"), "trainer.total_epochs=3", "--cfg", "job"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        cwd="/",
        env={**ENVIRONMENT, **variables},
    )
    assert ended.returncode == 0, ended.stderr[-3_000:]
    said = " ".join(ended.stdout.split()) + " "  # long lines are broken
    assert f"folder: {folder} " in said
    assert "total_epochs: 3 " in said
    assert "n_gpus_per_node: 1 " in said
    assert "- console - wandb " in said


def test_settings_for_a_cpu_are_where_hydra_reads_them():
    own = ["--config-path", "/a=b", "--config-name", "config", "folder='/a=b'", "+a.b=1", "--cfg", "job"]
    assert with_overrides(own, ["x=1"]) == [*own[:4], "x=1", *own[4:]]
    assert with_overrides(["--cfg", "job"], ["x=1"]) == ["--cfg", "job", "x=1"]
    assert with_overrides(["~a=1", "b=2"], ["x=1"]) == ["x=1", "~a=1", "b=2"]


# the dataset

MESSAGES = (
    Message("system", "You are in a maze."),
    Message("user", "There are walls."),
    Message("assistant", "move up", loss=True),
    Message("user", "There are none."),
    Message("assistant", "move left", loss=False),
    Message("user", "A wall."),
    Message("assistant", "move down"),
    Message("user", "Success"),
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    from verl_bridge.cpu.tiny import make_tiny

    return make_tiny(tmp_path_factory.mktemp("tiny"), [said.content for said in MESSAGES] * 9)


@pytest.fixture
def tokenizer(tiny):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny)


@pytest.fixture
def row(tokenizer, tmp_path):
    """Returns the row that a dataset makes of a game, by the name of its class."""

    def read(name, *messages, template=CHATML, history="all", **settings):
        tokenizer.chat_template = template
        game = Trajectory("agentgym/Maze-v0", 3, messages, 1.0, success=True)
        path = write(
            tmp_path / "sft", {"train": sft_rows([game], history=history)}, sft_schema(), force=True
        )["train"]
        config = OmegaConf.create({"pad_mode": "no_padding", "max_length": 512, **settings})
        dataset = {"own": MultiTurnSFTDataset, "ours": GameDataset}[name]
        return dataset(str(path), tokenizer, config)[-1 if history != "all" else 0]

    return read


def learned(tokenizer, found):
    return tokenizer.decode(found["input_ids"][found["loss_mask"].bool()])


def test_a_reply_that_is_not_to_be_learned_is_not(row, tokenizer):
    ours, own = row("ours", *MESSAGES), row("own", *MESSAGES)
    assert tokenizer.decode(own["input_ids"]) == tokenizer.decode(ours["input_ids"]) + "\n"
    assert learned(tokenizer, own).split("<|im_end|>\n") == ["move up", "move left", "move down", ""]
    assert learned(tokenizer, ours).split("<|im_end|>") == ["move up", "move down", ""]


@pytest.mark.parametrize("template", [CHATML, THINKS])
def test_of_a_turn_only_the_last_reply_is_learned(row, tokenizer, template):
    game = [*MESSAGES[:4], Message("assistant", "<think>\nI go.\n</think>\n\nmove left"), *MESSAGES[5:]]
    ours = row("ours", *game, template=template, history="turns:1")
    assert learned(tokenizer, ours) == "move down<|im_end|>"
    text = tokenizer.decode(ours["input_ids"])
    assert ("move up" in text, "I go" in text, "move left" in text) == (False, False, True)
    if template == CHATML:
        own = row("own", *game, history="turns:1")
        assert learned(tokenizer, own) == "move left<|im_end|>\nmove down<|im_end|>\n"


def test_a_thinking_template_does_not_stop_it(row, tokenizer):
    with pytest.raises(AssertionError, match="each turn separately"):
        row("own", *MESSAGES, template=THINKS)
    ours, plain = row("ours", *MESSAGES, template=THINKS), row("ours", *MESSAGES)
    assert torch.equal(ours["input_ids"], plain["input_ids"])
    assert torch.equal(ours["loss_mask"], plain["loss_mask"])
    with pytest.raises(UnstableTemplate, match="depends on how many came before"):
        row("ours", *MESSAGES, template=SHIFTS)


OPENS = CHATML.replace("%}<|im_start|>assistant\n", "%}<|im_start|>assistant\n<think>\n")
NO_SYSTEM = CHATML.replace("messages %}", "messages if m['role'] != 'system' %}")
NO_THOUGHTS = CHATML.replace("m['content']", "m['content'].split('</think>')[-1]")
THOUGHT = "<think>no wall</think>move up"


@pytest.mark.parametrize(
    ("template", "reply", "prompt", "emitted"),
    [
        (OPENS, THOUGHT, "You are in a maze.", "no wall</think>move up<|im_end|>"),
        (OPENS, "move up", "You are in a maze.", "\n</think>\n\nmove up<|im_end|>"),
        (NO_SYSTEM, THOUGHT, "You are in a maze.\n\nThere are walls.", f"{THOUGHT}<|im_end|>"),
        (NO_THOUGHTS, THOUGHT, "You are in a maze.", f"{THOUGHT}<|im_end|>"),
    ],
)
def test_nothing_is_lost_that_a_template_leaves_out(template, reply, prompt, emitted, row, tokenizer):
    messages = (*MESSAGES[:2], Message("assistant", reply))
    ours = row("ours", *messages, template=template)
    assert prompt in tokenizer.decode(ours["input_ids"])
    assert learned(tokenizer, ours) == emitted


def test_rows_are_padded_and_cut_as_verls_own(row):
    plain = [Message(said.role, said.content) for said in MESSAGES]
    for pad_mode, truncation, length in itertools.product(
        ("right", "no_padding"), ("left", "right", "error"), (40, 512)
    ):
        settings = {"pad_mode": pad_mode, "truncation": truncation, "max_length": length}
        if length == 40 and truncation == "error":
            with pytest.raises(ValueError, match=r"data\.max_length is 40"):
                row("ours", *plain, **settings)
            continue
        ours, own = row("ours", *plain, **settings), row("own", *plain, **settings)
        assert ours.keys() == own.keys()
        assert {key: (value.shape, value.dtype) for key, value in ours.items() if pad_mode == "right"} == {
            key: (value.shape, value.dtype) for key, value in own.items() if pad_mode == "right"
        }
        if truncation != "left":  # verl's ends with the line end after the last reply
            same = min(length, len(ours["input_ids"])) - 1 if pad_mode == "no_padding" else 40
            assert torch.equal(ours["input_ids"][:same], own["input_ids"][:same])
            assert torch.equal(ours["position_ids"][:same], own["position_ids"][:same])


def test_a_sample_of_rows_is_the_one_that_verl_takes(tokenizer, tmp_path):
    tokenizer.chat_template = CHATML
    games = [
        Trajectory("agentgym/Maze-v0", at, (Message("user", f"o{at}"), Message("assistant", "r")), 1.0)
        for at in range(9)
    ]
    path = write(tmp_path / "sft", {"train": sft_rows(games)}, sft_schema())["train"]
    for shuffle, seed in ((False, None), (True, 3)):
        settings = {"pad_mode": "no_padding", "shuffle": shuffle, "seed": seed}
        datasets = [
            dataset(str(path), tokenizer, OmegaConf.create(settings), max_samples=4)
            for dataset in (MultiTurnSFTDataset, GameDataset)
        ]
        own, ours = ([tokenizer.decode(row["input_ids"]).strip() for row in each] for each in datasets)
        assert ours == own
        assert len(ours) == 4


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ((*MESSAGES[:2], Message("assistant", "OK.", loss=False)), "no reply to be learned"),
        ((*MESSAGES[:3], *MESSAGES[2:]), "not assistant and assistant"),
        ((*MESSAGES[:4], *MESSAGES[3:]), "not user and assistant"),
    ],
)
def test_a_row_that_is_no_conversation_is_an_error(messages, problem, row):
    with pytest.raises(ValueError, match=problem):
        row("ours", *messages)


def test_the_check_tries_the_template(tiny, tokenizer, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(tiny, model)
    write_sft(SftRecipe(str(model), verl=MINOR, batch=1, gpus=1), tmp_path / "sft")
    game = Trajectory("agentgym/Maze-v0", 3, MESSAGES, 1.0, success=True)
    write(tmp_path / "sft/data", {"train": sft_rows([game])}, sft_schema())
    findings, _ = check(tmp_path / "sft")
    assert [each for each in findings if each.status != "ok"] == []
    (said,) = (each.text for each in findings if each.check == "lengths")
    text = tokenizer.apply_chat_template(
        [{"role": said.role, "content": said.content} for said in MESSAGES[:-1]], tokenize=False
    )
    length = len(tokenizer(text.removesuffix("\n"))["input_ids"])
    assert f"has {length} of 8192 tokens" in said

    config = tmp_path / "sft/config.yaml"
    written = config.read_text()
    config.write_text(written.replace("max_length: 8192", f"max_length: {length - 1}"))
    findings, _ = check(tmp_path / "sft")
    problems = {each.check: each.text for each in findings if each.status == "problem"}
    assert set(problems) == {"lengths"}
    assert "1 of 1 games have more than" in problems["lengths"]
    assert "verl stops at the first" in problems["lengths"]

    config.write_text(written)
    tokenizer.chat_template = SHIFTS
    tokenizer.save_pretrained(model)
    findings, _ = check(tmp_path / "sft")
    problems = {each.check: each.text for each in findings if each.status == "problem"}
    assert set(problems) == {"dataset", "lengths"}
    assert all("depends on how many came before" in text for text in problems.values())


# a training


def trains(test):
    """Mark a test that takes a minute: with the oldest verl, only `make trainings` runs it."""
    return pytest.mark.slow(test) if MINOR == "0.7" else test


def run(*command, **variables):
    environment = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(
        list(map(str, command)),
        env=environment | {"HF_HUB_OFFLINE": "1"} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert ended.returncode == 0, ended.stdout[-3_000:] + ended.stderr[-3_000:]
    return ended.stdout


def trained_on(name, action_format, folder):
    """Fine-tune a tiny model on an oracle's games; return the folder, and what was said."""
    from verl_bridge.cpu.tiny import make_tiny

    agentgym = (sys.executable, "-m", "agentgym_gym")
    run(*agentgym, "eval", name, "--agent", "oracle", "--tasks", "0:16", "--out", folder / "games")
    # In place of Python: it starts Python for all but the evaluation, as no engine is installed here.
    python = folder / "python"
    python.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "if 'agentgym_gym' in sys.argv:\n"
        f"    json.dump(sys.argv[1:], open({str(folder / 'evaluation.json')!r}, 'w'))\n"
        f"else:\n    os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])\n"
    )
    python.chmod(0o755)
    recipe = ("--model", folder / "tiny", "--gpus", "1", "--learning-rate", "0.003", "--epochs", "4")
    evaluation = ("--eval", name, "--eval-tasks", "0:2", "--eval-engine", "transformers")
    out = ("--out", folder / "sft", "--action-format", action_format)
    run(*agentgym, "verl", "sft", folder / "games", *recipe, *evaluation, *out)
    games = read_trajectories(folder / "sft/data/train.parquet")
    texts = [said.content for game in games for said in game.messages]
    make_tiny(folder / "tiny", [line for text in texts for line in text.splitlines()], vocabulary=1_024)
    script = ("bash", folder / "sft/run.sh", "trainer.resume_mode=disable")
    said = run(*script, PYTHON=str(python), VERL_USE_EXTERNAL_MODULES="verl_bridge.cpu")
    return folder, said


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model that was trained on Maze in ReAct, and what was said."""
    return trained_on("Maze", "react", tmp_path_factory.mktemp("maze"))


@trains
def test_a_model_learns_games_by_the_script(trained):
    """In ReAct: the loss falls, transformers loads what was saved, and the evaluation gets it."""
    held_to_what_was_trained(*trained)


@pytest.mark.slow
def test_a_model_learns_games_in_adapt(tmp_path):
    folder, said = trained_on("TextCraft", "adapt", tmp_path)
    held_to_what_was_trained(folder, said)
    games = read_trajectories(folder / "sft/data/train.parquet")
    replies = [each.content for game in games for each in game.messages if each.role == "assistant"]
    assert all(re.fullmatch(r"(> think: .*\n)?> .*", reply) for reply in replies)


def held_to_what_was_trained(folder, said):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    games = folder / "sft/data/train.parquet"
    tokenizer = AutoTokenizer.from_pretrained(folder / "tiny")
    options = OmegaConf.create({"pad_mode": "no_padding", "max_length": 8_192})
    for found, game in zip(
        GameDataset(str(games), tokenizer, options), read_trajectories(games), strict=True
    ):
        replies = [each.content for each in game.messages if each.role == "assistant"]
        assert learned(tokenizer, found) == "".join(f"{reply}<|im_end|>" for reply in replies)
    losses = [float(each) for each in re.findall(r"train/loss:([0-9.]+)", said)]
    assert len(losses) == 8  # 16 games in batches of 8, 4 times
    assert losses[-1] < losses[0] - 0.5
    checkpoints = folder / "sft/checkpoints"
    assert (checkpoints / "latest_checkpointed_iteration.txt").read_text() == "8"
    saved = checkpoints / "global_step_8/huggingface"
    model = AutoModelForCausalLM.from_pretrained(saved, dtype=torch.float32)
    before = AutoModelForCausalLM.from_pretrained(folder / "tiny", dtype=torch.float32)
    assert not torch.equal(model.lm_head.weight, before.lm_head.weight)
    assert AutoTokenizer.from_pretrained(saved)("move up")["input_ids"] == tokenizer("move up")["input_ids"]
    evaluation = json.loads((folder / "evaluation.json").read_text())
    assert evaluation[:2] == ["-m", "agentgym_gym"]
    words = dict(zip(evaluation[4::2], evaluation[5::2], strict=False))
    assert words["--model-path"] == "checkpoints/global_step_8"
    assert words["--launch"] == "transformers"


@trains
def test_sharded_checkpoints_are_merged_once(trained, tmp_path):
    """By `agentgym eval`."""
    from transformers import AutoModelForCausalLM

    folder, _ = trained
    saved = folder / "sft/checkpoints/global_step_8"
    pieces = tmp_path / "global_step_8/actor"  # as its trainers of RL have it
    shutil.copytree(saved, pieces)
    (pieces / "huggingface/model.safetensors").unlink()
    command = [
        sys.executable,
        "-m",
        "agentgym_gym",
        "eval",
        "Maze",
        "--tasks",
        "0:1",
        "--launch",
        "transformers",
    ]
    for told in (True, False):
        # It ends with an error, as no engine is installed here; before that it has looked for the model.
        done = subprocess.run(
            [*command, "--model-path", str(pieces.parent), "--out", str(tmp_path / "run")],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert done.returncode == 2
        assert (f"Merged into {pieces}/merged." in done.stderr) is told, done.stderr
    merged = AutoModelForCausalLM.from_pretrained(pieces / "merged", dtype=torch.float32).state_dict()
    whole = AutoModelForCausalLM.from_pretrained(saved / "huggingface", dtype=torch.float32).state_dict()
    assert merged.keys() == whole.keys()
    for name, tensor in whole.items():
        assert torch.equal(merged[name], tensor.bfloat16().float()), name  # the merger rounds
