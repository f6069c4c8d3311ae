"""Mistakes made in a written training folder, and what `agentgym verl check` says to each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pyarrow import parquet

from verl_bridge.recipes import RlRecipe, seeded, write, write_rows

TEXTCRAFT = "agentgym_gym:agentgym/TextCraft-v0"


@dataclass(frozen=True)
class Mistake:
    """A mistake.

    Attributes:
        text: What is written in the folder, as in the docs.
        make: Makes it in a folder.
        status: The status of the finding.
        finding: A part of its text.
        needs: ``"verl"``, ``"0.9"`` for a version of verl, or empty.
    """

    text: str
    make: Callable[[Path], object]
    status: str
    finding: str
    needs: str = ""


SIZES = {
    "algorithm.adv_estimator": "grpo",
    "data.train_batch_size": 8,
    "data.max_prompt_length": 2048,
    "data.max_response_length": 6144,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 8,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 2,
    "actor_rollout_ref.actor.use_kl_loss": True,
    "actor_rollout_ref.rollout.n": 2,
    "actor_rollout_ref.rollout.name": "sglang",
    "actor_rollout_ref.rollout.tensor_model_parallel_size": 1,
    "trainer.n_gpus_per_node": 4,
}
"""Settings that the mistakes depend on, so that the table does not change with the recipes."""

LOOP = {"max_turns": 20, "max_tokens_per_turn": 512, "fault_budget": 600}


def make_folder(folder: Path, url: str, version: str = "0.9") -> Path:
    """Write a folder in which nothing is wrong."""
    recipe = RlRecipe(TEXTCRAFT, verl=version, preset="test", env_kwargs={"server": [url], "max_turns": 20})
    write(recipe, folder)
    for part, tasks in {"train": range(8), "val": range(8, 10)}.items():
        rows = seeded(TEXTCRAFT, tasks, "Craft it.")
        for row, task in zip(rows, tasks, strict=True):
            options = {"seed": None, "reset_options": json.dumps({"task_id": task})}
            row["extra_info"]["interaction_kwargs"] |= options
        write_rows(folder / f"data/{part}.parquet", rows)
    config(SIZES)(folder)
    loop(LOOP)(folder)
    return folder


def replace(name: str, old: str, new: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        text = (folder / name).read_text("utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), "utf-8")

    return make


def config(settings: Mapping[str, Any]) -> Callable[[Path], object]:
    """Change settings, by their dotted keys."""

    def make(folder: Path) -> None:
        file = folder / "config.yaml"
        whole = yaml.safe_load(file.read_text("utf-8"))
        for key, value in settings.items():
            *groups, last = key.split(".")
            node = whole
            for group in groups:
                node = node.setdefault(group, {})
            node[last] = value
        file.write_text(yaml.safe_dump(whole, sort_keys=False), "utf-8")

    return make


def loop(arguments: Mapping[str, Any], without: str = "") -> Callable[[Path], object]:
    """Change arguments of the loop."""

    def make(folder: Path) -> None:
        file = folder / "agent_loop.yaml"
        (entry,) = yaml.safe_load(file.read_text("utf-8"))
        entry.update(arguments)
        entry.pop(without, None)
        file.write_text(yaml.safe_dump([entry], sort_keys=False), "utf-8")

    return make


def row(part: str, **kwargs: object) -> Callable[[Path], object]:
    """Change the arguments of the first row."""

    def make(folder: Path) -> None:
        file = folder / f"data/{part}.parquet"
        rows = parquet.read_table(file).to_pylist()
        rows[0]["extra_info"]["interaction_kwargs"].update(kwargs)
        write_rows(file, rows)

    return make


def model(*files: str, template: str = "", context: int = 100_000) -> Callable[[Path], object]:
    """Use a local model with some files."""

    def make(folder: Path) -> None:
        place = folder / "model"
        place.mkdir()
        if template:
            from chat_templates import FAMILIES, tokenizer_of

            made = tokenizer_of(FAMILIES["chatml"])
            made.chat_template = template.replace("CHATML", made.chat_template)
            made.save_pretrained(place)
        for name in files:
            (place / name).write_text(json.dumps({"max_position_embeddings": context}))
        config({"actor_rollout_ref.model.path": str(place)})(folder)

    return make


def checkpoint(folder: Path) -> None:
    (folder / "checkpoints/global_step_40").mkdir(parents=True)
    (folder / "checkpoints/latest_checkpointed_iteration.txt").write_text("40")


WHOLE = ("config.json", "model.safetensors")


ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
EXTERNAL = 'MODULES="verl_bridge.trainer'


def mistakes() -> Iterator[Mistake]:
    """Yield the mistakes in the order of the docs."""
    yield from names_in_values()
    yield from sizes()
    yield from asynchronous_trainers()
    yield from arguments_of_the_loop()
    yield from credit_by_turn()
    yield from models_and_lengths()
    yield from tasks_and_earlier_runs()


def names_in_values() -> Iterator[Mistake]:
    def name(text: str, key: str, value: Any, finding: str, needs: str = "verl") -> Mistake:
        return Mistake(text, config({key: value}), "problem", finding, needs)

    estimator = "algorithm.adv_estimator"
    yield name("`data.train_batchsize: 8`", "data.train_batchsize", 8, "has no setting data.train_batchsize")
    yield name("`adv_estimator: gprpo`", estimator, "gprpo", "did you mean grpo?")
    old = "gym_grpo is an old name, which verl does not know; did you mean grpo?"
    yield name("`adv_estimator: gym_grpo`", estimator, "gym_grpo", old)
    yield name("`adv_estimator: reinforce++`", estimator, "reinforce++", "did you mean reinforce_plus_plus?")
    yield name(
        "`loss_agg_mode: token_mean`", f"{ACTOR}.loss_agg_mode", "token_mean", "did you mean token-mean?"
    )
    yield name(
        "`policy_loss.loss_mode: gpso`", f"{ACTOR}.policy_loss.loss_mode", "gpso", "did you mean gspo?"
    )
    yield name("`kl_loss_type: low_var`", f"{ACTOR}.kl_loss_type", "low_var", "did you mean low_var_kl?")
    yield name("`rollout.name: slang`", f"{ROLLOUT}.name", "slang", "did you mean sglang?")
    yield name("`actor.strategy: fsdp3`", f"{ACTOR}.strategy", "fsdp3", "did you mean fsdp?")
    yield name("`optim.optimizer: AdanW`", f"{ACTOR}.optim.optimizer", "AdanW", "did you mean AdamW?")
    yield name("`logger: [console, wanbd]`", "trainer.logger", ["console", "wanbd"], "did you mean wandb?")
    yield name(
        "`resume_mode: always`", "trainer.resume_mode", "always", "is none of auto, disable, resume_path"
    )
    mode = "seperate_async"
    yield name(
        f"`v1.trainer_mode: {mode}`", "trainer.v1.trainer_mode", mode, "did you mean separate_async?", "0.9"
    )
    yield Mistake(
        "`verl_bridge.triner` in `run.sh`",
        replace("run.sh", EXTERNAL, 'MODULES="verl_bridge.triner'),
        "problem",
        "run.sh has verl import verl_bridge.triner, which fails",
        "verl",
    )
    yield Mistake(
        "no `verl_bridge.trainer` in `run.sh`",
        replace("run.sh", EXTERNAL, 'MODULES="'),
        "warning",
        "run.sh does not load verl_bridge.trainer: faulted episodes count as scores of 0",
    )


def sizes() -> Iterator[Mistake]:
    def size(text: str, key: str, value: Any, finding: str) -> Mistake:
        return Mistake(text, config({key: value}), "problem", finding)

    batch = "data.train_batch_size"
    yield size("`train_batch_size: many`", batch, "many", f"{batch}='many' should be an integer from 1")
    yield size("`train_batch_size: 8.5`", batch, 8.5, f"{batch}=8.5 should be an integer from 1")
    yield size(
        "`ppo_mini_batch_size: 16`",
        f"{ACTOR}.ppo_mini_batch_size",
        16,
        "ppo_mini_batch_size=16 is more than train_batch_size=8",
    )
    yield size(
        "`ppo_micro_batch_size_per_gpu: 3`",
        f"{ACTOR}.ppo_micro_batch_size_per_gpu",
        3,
        "cannot be divided into micro-batches of 3",
    )
    yield size(
        "`rollout.n: 1` with GRPO", f"{ROLLOUT}.n", 1, "grpo compares the samples of a prompt, but n=1"
    )
    gpus = "trainer.n_gpus_per_node"
    yield size("`n_gpus_per_node: 3`", gpus, 3, "8 prompts x 2 samples cannot be divided among 3 GPUs")
    yield size("`n_gpus_per_node: 0`", gpus, 0, f"{gpus}=0 should be an integer from 1")
    yield size(
        "`tensor_model_parallel_size: 3`",
        f"{ROLLOUT}.tensor_model_parallel_size",
        3,
        "4 GPUs cannot be divided into groups of 3 each",
    )


def asynchronous_trainers() -> Iterator[Mistake]:
    v1, sampler = "trainer.v1", "trainer.v1.sampler"
    separate = {
        f"{v1}.trainer_mode": "separate_async",
        f"{v1}.separate_async.parameter_sync_step": 1,
        f"{ROLLOUT}.nnodes": 1,
        f"{ROLLOUT}.n_gpus_per_node": 4,
        f"{ROLLOUT}.checkpoint_engine.backend": "nixl",
    }

    colocated = {f"{v1}.trainer_mode": "colocate_async"}

    def mistake(text: str, finding: str, settings: Mapping[str, Any], status: str = "problem") -> Mistake:
        return Mistake(text, config(settings), status, finding, "0.9")

    step = f"{v1}.separate_async.parameter_sync_step"
    yield mistake(
        "`separate_async.parameter_sync_step: 4` with one update a step",
        "train_batch_size=8 is not parameter_sync_step=4 x ppo_mini_batch_size=8",
        {**separate, step: 4},
    )
    yield mistake(
        "`separate_async` with `rollout.nnodes: 0`",
        "leave no GPU that only generates",
        {**separate, f"{ROLLOUT}.nnodes": 0},
    )
    backend = f"{ROLLOUT}.checkpoint_engine.backend"
    yield mistake(
        "`separate_async` with `checkpoint_engine.backend: naive`",
        "backend=naive cannot send weights to other GPUs",
        {**separate, backend: "naive"},
    )
    yield mistake(
        "`separate_async` with `model.lora_rank: 8`",
        "verl 0.9 sends separate engines the base model without the adapters",
        {**separate, "actor_rollout_ref.model.lora_rank": 8},
    )
    yield mistake(
        "`sampler.max_off_policy_threshold: 1`",
        "max_off_policy_threshold=1 drops every episode that waits",
        {**colocated, f"{sampler}.max_off_policy_threshold": 1},
    )
    yield mistake(
        "`sampler.max_off_policy_strategy: stop`",
        "max_off_policy_strategy=stop is neither drop nor wait",
        {**colocated, f"{sampler}.max_off_policy_strategy": "stop"},
    )
    yield mistake(
        "`sampler.max_off_policy_strategy: wait` with a `fault_budget`",
        "waits for late episodes, and a faulted one is retried for 600 s",
        {**colocated, f"{sampler}.max_off_policy_strategy": "wait"},
        "warning",
    )
    yield mistake(
        "an asynchronous trainer without `rollout_correction.rollout_is`",
        "replies of earlier weights are trained with as if the current ones had drawn them",
        colocated,
        "warning",
    )
    yield mistake(
        "an asynchronous trainer with `use_v1: false`",
        "trainer.v1.trainer_mode=colocate_async is ignored with trainer.use_v1=False",
        {**colocated, "trainer.use_v1": False},
        "warning",
    )


def arguments_of_the_loop() -> Iterator[Mistake]:
    def argument(text: str, name: str, value: Any, finding: str, without: str = "") -> Mistake:
        return Mistake(text, loop({name: value}, without), "problem", finding)

    yield argument(
        "`max_token_per_turn: 512`",
        "max_token_per_turn",
        512,
        "GymAgentLoop has no argument max_token_per_turn; did you mean max_tokens_per_turn?",
        "max_tokens_per_turn",
    )
    yield argument(
        "`max_tokens_per_turn: 0`",
        "max_tokens_per_turn",
        0,
        "max_tokens_per_turn=0 should be an integer from 1, or null",
    )
    yield argument(
        '`max_turns: "20"`',
        "max_turns",
        "20",
        "max_turns='20' should be an integer from 1, or null: write max_turns: 20",
    )
    yield argument(
        "`fault_budget: ten minutes`",
        "fault_budget",
        "ten minutes",
        "fault_budget='ten minutes' should be a number of seconds from 0",
    )
    yield argument(
        "`horizon` beside `max_turns`",
        "horizon",
        {"turns": [10, 20], "every": 50},
        "max_turns=20 and horizon both limit the turns",
    )
    yield argument(
        "`isolate: proces`",
        "isolate",
        "proces",
        "isolate='proces' should be one of loop, thread, process, or null",
    )
    yield argument(
        "`_target_: verl_bridge.agent_lop.GymAgentLoop`",
        "_target_",
        "verl_bridge.agent_lop.GymAgentLoop",
        "verl_bridge.agent_lop",
    )
    yield argument(
        "`tool_calls: true` with another `action_format`",
        "tool_calls",
        True,
        "has action_format='react', whose prompt contradicts the model's own notation",
    )
    yield Mistake(
        "`action_format: tool_calls` without `tool_calls: true`",
        row("train", env_kwargs=json.dumps({"action_format": "tool_calls"})),
        "problem",
        "has action_format='tool_calls', whose prompt lists no actions",
    )


def credit_by_turn() -> Iterator[Mistake]:
    estimator = "algorithm.adv_estimator"

    def both(*makes: Callable[[Path], object]) -> Callable[[Path], object]:
        return lambda folder: [make(folder) for make in makes]

    yield Mistake(
        "`turn_rewards: true` with GRPO",
        loop({"turn_rewards": True}),
        "warning",
        "turn_rewards changes nothing with grpo, which sums the rewards of an episode",
    )
    yield Mistake(
        "`turn_rewards: true` with `drop_reasoning: true`",
        loop({"turn_rewards": True, "drop_reasoning": True}),
        "problem",
        "turn_rewards and drop_reasoning exclude each other",
    )
    yield Mistake(
        "`adv_estimator: gym_gigpo` with `drop_reasoning: true`",
        both(config({estimator: "gym_gigpo"}), loop({"drop_reasoning": True})),
        "problem",
        "gym_gigpo compares the tokens of all turns",
    )
    yield Mistake(
        "`gym_gigpo_omega: much`",
        config({estimator: "gym_gigpo", "algorithm.gym_gigpo_omega": "much"}),
        "problem",
        "algorithm.gym_gigpo_omega='much' should be a number",
    )
    yield Mistake(
        "`gamma: much` with `adv_estimator: gym_gigpo`",
        config({estimator: "gym_gigpo", "algorithm.gamma": "much"}),
        "problem",
        "algorithm.gamma='much' should be a number",
    )
    yield Mistake(
        "`gym_gigpo_omega: 0.5` with GRPO",
        config({"algorithm.gym_gigpo_omega": 0.5}),
        "warning",
        "algorithm.gym_gigpo_omega is not used with grpo",
    )
    yield Mistake(
        "`adv_estimator: gym_gigpo` without `verl_bridge.trainer` in `run.sh`",
        both(config({estimator: "gym_gigpo"}), replace("run.sh", EXTERNAL, 'MODULES="')),
        "problem",
        "run.sh does not load verl_bridge.trainer, without which verl has no gym_gigpo",
    )


def models_and_lengths() -> Iterator[Mistake]:
    path, length = "actor_rollout_ref.model.path", "data.max_response_length"
    nowhere = config({path: "/models/qwen"})
    yield Mistake(
        "a model path that does not exist", nowhere, "problem", f"{path}=/models/qwen does not exist"
    )
    yield Mistake(
        "a model folder without `config.json`", model("model.safetensors"), "problem", "has no config.json"
    )
    yield Mistake("a model folder without a tokenizer", model(*WHOLE), "problem", "has no tokenizer")
    yield Mistake(
        "a model with a context of 4,096 tokens",
        model(*WHOLE, "tokenizer.json", context=4096),
        "problem",
        "its context has 4096 tokens, and prompt and response may have 8192",
    )
    yield Mistake(
        "a thinking model with 512 tokens a reply",
        model(*WHOLE, template="CHATML{# enable_thinking #}"),
        "warning",
        "the model's chat template supports thinking, and a reply may have only 512 tokens",
        "verl",
    )
    yield Mistake(
        "a chat template that rejects user messages",
        model(*WHOLE, template="{{ raise_exception('no') }}"),
        "problem",
        "rejects messages of user",
        "verl",
    )
    yield Mistake(
        "`max_response_length: 256`",
        config({length: 256}),
        "problem",
        "a reply may have 512 tokens, and all replies together 256",
    )
    yield Mistake(
        "`max_response_length: 1000`",
        config({length: 1000}),
        "warning",
        "and 1000 are allowed: long episodes will be cut off",
    )


def tasks_and_earlier_runs() -> Iterator[Mistake]:
    yield Mistake(
        "a row with task 999999",
        row("train", reset_options='{"task_id": 999999}'),
        "problem",
        "data/train.parquet, row 0: TextCraft has no task 999999",
    )
    yield Mistake(
        "a row of `train` with a task of the split `test`",
        row("train", reset_options='{"task_id": 444}'),
        "problem",
        "1 of 8 rows of train are for evaluation: 1 in test",
    )
    yield Mistake(
        "a row with a task that cannot be won",
        row("train", reset_options='{"task_id": 422}'),
        "warning",
        "1 of 8 rows of train cannot be won",
    )
    yield Mistake(
        "a task in both `train` and `val`",
        row("val", reset_options='{"task_id": 3}'),
        "problem",
        "1 of the tasks in val are in train too",
    )
    yield Mistake(
        "`env_id: agentgym_gym:agentgym/TextCarft-v0`",
        row("val", env_id="agentgym_gym:agentgym/TextCarft-v0"),
        "problem",
        "agentgym/TextCarft-v0",
    )
    yield Mistake(
        "checkpoints of an earlier training",
        checkpoint,
        "warning",
        "has the checkpoints of an earlier training, and verl resumes from its step 40",
    )


MISTAKES = tuple(mistakes())
