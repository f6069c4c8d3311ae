"""One real step of verl's own trainer, on a CPU, over an environment that keeps a record of what it paid."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest

import forked
import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

import torch
from transformers import AutoModelForCausalLM

from guessing_env import TEXTS
from guessing_training import ROLLOUTS, ROWS, lines, row, step_of
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.cpu.tiny import make_tiny
from verl_run import Run, measured

HERE = Path(__file__).resolve().parent
VERL = metadata.version("verl")
SENT_AS = torch.bfloat16 if VERL.startswith(("0.7.", "0.8.")) else torch.float32
"""verl 0.7 and 0.8 round the weights that they send."""

LOOP = """\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  max_tokens_per_turn: 8
"""

INTERACTION = """\
interaction:
  - name: gym_env
    class_name: verl_bridge.interaction.GymInteraction
    config: {}
"""

INTEGRATIONS = [
    "agent_loop",
    # tests/verl/test_interaction.py has it in the worker, with the same rewards
    *([pytest.param("interaction", marks=pytest.mark.slow)] if VERL.startswith("0.7.") else []),
]
"""How episodes come to verl."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("tiny"), TEXTS * 20, TEXTS)


def terse(tiny: Path, folder: Path) -> Path:
    """Copy the model, with an eighth of all tokens to end a reply: verl's own loop has no other end to it."""
    shutil.copytree(tiny, folder)
    settings = json.loads((folder / "generation_config.json").read_text())
    size = json.loads((folder / "config.json").read_text())["vocab_size"]
    settings["eos_token_id"] += [
        token for token in range(0, size, 8) if token not in settings["eos_token_id"]
    ]
    (folder / "generation_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module", params=INTEGRATIONS)
def trained(request: pytest.FixtureRequest, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One step of training and its checkpoint."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("run")
    integration = request.param
    (folder / "tiny").symlink_to(tiny if integration == "agent_loop" else terse(tiny, folder / "terse"))
    (folder / "loop.yaml").write_text(LOOP)
    (folder / "interaction.yaml").write_text(INTERACTION)
    rows = [row(number, integration) for number in range(ROWS)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    arguments = ["-m", "verl.trainer.main_ppo", *cpu_overrides(), *step_of(folder, integration)]
    run = Run(arguments, {"GUESSING_LOG": f"{folder}/paid.jsonl"}, folder)
    assert run.code == 0, f"verl {'took too long' if run.code is None else 'failed'}:\n{run.text[-6000:]}"
    return run


def test_the_page_shows_this_step():
    page = (HERE.parents[1] / "docs" / "training" / "cpu.md").read_text()
    command = page.split("-m verl.trainer.main_ppo ")[1].split("```")[0].replace("\\\n", " ")
    shown = shlex.split(command.replace("$(python -m verl_bridge.cpu.overrides)", ""))
    assert shown == step_of("$PWD")
    assert LOOP in page


def test_one_step_of_training(trained, report_at_end):
    metrics = measured(trained)
    assert metrics["actor/grad_norm"] > 0
    report_at_end(
        f"one step of verl {VERL} on the CPU: {trained.seconds:.0f} s, {trained.peak / 2**30:.1f} GiB at most"
    )


def test_rewards_are_what_the_environment_paid(trained):
    folder = trained.log.parent
    paid = [sum(episode["paid"]) for episode in lines(folder / "paid.jsonl")]
    assert len(paid) == ROWS * ROLLOUTS
    assert Counter(line["score"] for line in lines(folder / "rollouts" / "1.jsonl")) == Counter(paid)
    assert measured(trained)["critic/score/mean"] == pytest.approx(sum(paid) / len(paid))


def saved(trained: Run) -> Path:
    return next((trained.log.parent / "checkpoints").glob("**/global_step_1/actor"))


def model_of(folder: Path) -> dict[str, torch.Tensor]:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()


def checkpoint_of(trained: Run) -> dict[str, torch.Tensor]:
    """The trainer's own weights after the step, in float32."""
    (shard,) = saved(trained).glob("model_world_size_1_rank_0.pt")
    shards = torch.load(shard, weights_only=False)  # DTensors, written by the run before
    return {name: tensor.to_local() for name, tensor in shards.items()}


def largest_change(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> float:
    assert before.keys() == after.keys()
    return max(float((after[name] - tensor).abs().max()) for name, tensor in before.items())


def test_the_server_takes_the_weights_that_were_trained(trained, tiny):
    """It says how much each update changed: first nothing, then what the checkpoint says."""
    taken = re.findall(r"weights of step (\w+) loaded, (\d+) tensors, largest change (\S+)", trained.text)
    steps, tensors, changes = zip(*taken, strict=True)
    assert [int(step) for step in steps] == [0, 1]
    loaded = model_of(tiny)
    start, end = (
        {name: tensor.to(SENT_AS).float() for name, tensor in weights.items()}
        for weights in (loaded, checkpoint_of(trained))
    )
    assert set(tensors) == {str(len(loaded))}
    assert float(changes[0]) == pytest.approx(largest_change(loaded, start), rel=1e-3)
    assert 0 < float(changes[1]) == pytest.approx(largest_change(start, end), rel=1e-3)


def test_the_checkpoint_can_be_merged(trained, tmp_path):
    """By verl's own tool, which rounds to bfloat16."""
    merge = ["-m", "verl.model_merger", "merge", "--backend", "fsdp"]
    command = [sys.executable, *merge, "--local_dir", saved(trained), "--target_dir", tmp_path]
    forked.run_module(command, env={**os.environ, "HF_HUB_OFFLINE": "1"}, check=True)
    rounded = {name: tensor.bfloat16().float() for name, tensor in checkpoint_of(trained).items()}
    assert largest_change(rounded, model_of(tmp_path)) == 0


def test_the_trainer_finds_the_log_probs_that_the_server_gave(trained):
    """The tokens that were sampled are those that are trained on, in their places, by the same weights."""
    metrics = measured(trained)
    assert metrics["training/rollout_actor_probs_pearson_corr"] > 0.99
    if torch.float32 == SENT_AS:
        assert metrics["training/rollout_probs_diff_max"] < 1e-6


def test_no_process_is_left(trained):
    assert not trained.left


@pytest.mark.slow  # tests/verl/test_sft.py trains by the script, which starts the same module
def test_supervised_fine_tuning(tiny, tmp_path, report_at_end):
    """By verl's own trainer, through the entry of the bridge: the loss falls."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    said = [("user", TEXTS[1]), ("assistant", "5"), ("user", TEXTS[3]), ("assistant", "7")]
    messages = [{"role": role, "content": text} for role, text in [("system", TEXTS[0]), *said]]
    pq.write_table(pa.Table.from_pylist([{"messages": messages}] * 16), tmp_path / "games.parquet")
    arguments = [
        *("-m", "verl_bridge.cpu.sft"),
        f"model.path={tiny}",
        f"data.train_files={tmp_path}/games.parquet",
        "data.train_batch_size=8",
        "data.micro_batch_size_per_gpu=8",
        "data.max_length=128",
        "optim.lr=3e-3",
        "optim.lr_warmup_steps_ratio=0",
        "trainer.logger=[console]",
        "trainer.total_epochs=8",
        "trainer.save_freq=16",
        "trainer.test_freq=-1",
        "trainer.resume_mode=disable",
        f"trainer.default_local_dir={tmp_path}/checkpoints",
    ]
    run = Run(arguments, {}, tmp_path)
    assert run.code == 0, f"verl {'took too long' if run.code is None else 'failed'}:\n{run.text[-6000:]}"
    losses = [measured(run, step)["train/loss"] for step in range(1, 17)]
    assert losses[-1] < losses[0] / 2
    assert not run.left
    assert list((tmp_path / "checkpoints" / "global_step_16").glob("model_world_size_1_rank_0.pt"))
    fall = f"loss {losses[0]:.2f} to {losses[-1]:.2f}"
    report_at_end(f"16 steps of fine-tuning, verl {VERL} on the CPU: {run.seconds:.0f} s, {fall}")
