"""A pretrained model learns tasks that it has not seen: ``make smollm``; docs/training/pretrained.md.

``python smollm.py --out runs/smollm`` writes SmolLM2-135M-Instruct as a checkpoint, lets oracles play
training tasks, fine-tunes the model on these games with verl, trains it further in TextCraft by GRPO with
verl, and evaluates it before and after each of these on tasks that were never played. Each stage has a
folder, and is skipped if it has ended. A stage that was interrupted is resumed: games and evaluations by
their episodes, fine-tuning and GRPO from their last checkpoint. ``--recipe smollm-alfworld`` does the same in
ALFWorld, without GRPO, and ``--recipe smollm-sqlgym`` in SQLGym, with GRPO on groups with signal.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from smollm_recipe import (
    ENDED,
    RECIPES,
    Commands,
    Evaluation,
    SmolLM,
    grpo_settings,
    keep_recipe,
    sft_settings,
)

from agentgym_gym.catalogue import find
from agentgym_gym.evaluate import read_run
from verl_bridge.cpu.overrides import cpu_overrides

HERE = Path(__file__).resolve().parent
PIPELINE = HERE.parent / "pipeline"
BF16 = "{param_dtype:bf16,reduce_dtype:fp32,buffer_dtype:fp32}"
"""Computation in bfloat16 with weights in float32: three times as fast here as in float32."""

RESUMED = ("--resume", "--retry-faulted")
"""Options of agentgym eval; without an earlier run in the folder they have no effect."""

KEPT = 2
"""Checkpoints that a training keeps. verl would delete a single one before it records the next as latest."""

LOOP = """\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  max_tokens_per_turn: {tokens}
  episodes_dir: {episodes}
"""


class Stages(Commands):
    """The stages, each in a folder of its own.

    Args:
        folder: The folder of all stages.
        recipe: The numbers.
        vllm: The Python of an environment with vLLM, which then generates the replies of evaluations.

    Raises:
        SystemExit: The folder has stages of another recipe.
    """

    def __init__(self, folder: Path, recipe: SmolLM, vllm: Path | None = None) -> None:
        super().__init__(HERE, folder)
        self.recipe = recipe
        self.vllm = vllm and vllm.absolute()  # not resolved: a virtual environment's Python is a link
        keep_recipe(folder, recipe)
        self.model = self.folder / "model"
        self.fine_tuned = self.folder / "sft" / "huggingface"

    def run(self, seeds: list[int], only: str | None) -> None:
        """Run the stages that have not ended.

        Args:
            seeds: The seeds of GRPO, for a recipe that has it.
            only: The stage to run; None for all.

        Raises:
            SystemExit: There is no such stage, the stage before it has not ended, or a command failed.
        """
        # Each with the stage whose results it needs.
        stages: dict[str, tuple[str | None, Callable[[], None]]] = {
            "model": (None, lambda: self.python("make_checkpoint.py", str(self.model))),
            "games": ("model", self.play_games),
            "zero-shot": (
                "model",
                lambda: self.evaluate("zero-shot", self.model, before_training=True),
            ),
            "sft": ("games", self.fine_tune),
            "after-sft": ("sft", lambda: self.evaluate("after-sft", self.fine_tuned)),
        }
        if (env := self.recipe.learns) is not None:
            for seed in seeds:
                learned, after = f"grpo-{seed}", f"after-grpo-{seed}"
                stages[learned] = "sft", partial(self.learn, seed, env)
                stages[after] = learned, partial(self.evaluate, after, self.trained(seed), env)
        if only is not None and only not in stages:
            raise SystemExit(f"--stage {only} is not one of {', '.join(stages)}")
        for name, (before, stage) in stages.items():
            mark = self.mark(name)
            if mark.exists() or only not in {None, name}:
                continue
            if before is not None and not self.mark(before).exists():
                raise SystemExit(f"--stage {name} needs the results of --stage {before}: run that first")
            self.announce(name)
            began = self.minutes
            stage()
            mark.parent.mkdir(exist_ok=True)
            mark.write_text(f"{self.minutes - began:.1f} minutes\n")

    def mark(self, stage: str) -> Path:
        """Return the file that exists if a stage has ended."""
        return self.path / stage / ENDED

    def trained(self, seed: int) -> Path:
        """Return the folder of the model that GRPO trained."""
        return self.folder / f"grpo-{seed}" / f"global_step_{self.recipe.steps}" / "actor" / "huggingface"

    def play_games(self) -> None:
        """Let the oracles play training tasks, and write the games as rows, in one file."""
        at = self.folder / "games"
        for env, count in self.recipe.games:
            tasks = self.training_tasks(env)
            if count is not None:
                tasks = random.Random(self.recipe.kept_out_seed).sample(tasks, count)  # noqa: S311
            self.agentgym(
                *("eval", env, "--agent=oracle:thoughts", f"--tasks={joined(tasks)}", f"--out={at}/{env}"),
                *RESUMED,
            )
            self.agentgym(
                *("data", "sft", f"{at}/{env}", "--successful", "--val=0", f"--out={at}/rows/{env}"),
                *(f"--system-prompt=prompts/{env}.txt", "--force"),
            )
        rows = [f"{at}/rows/{env}/train.parquet" for env, _ in self.recipe.games]
        self.python(
            "select_games.py",
            *rows,
            f"--model={self.model}",
            f"--max-length={self.max_length}",
            f"--out={at}",
        )

    def training_tasks(self, env: str) -> list[int]:
        """Return the training tasks of an environment that no evaluation keeps out."""
        kept_out = {
            task
            for each in self.recipe.evaluations
            if each.env == env
            for task in tasks_of(each, self.recipe)
        }
        return [task for task in find(env).splits["train"] if task not in kept_out]

    def tasks_to_learn(self, env: str) -> list[int]:
        """Return the tasks of GRPO."""
        recipe, games = self.recipe, read_run(self.path / "games" / env).records
        if recipe.new_tasks is None:
            return sorted(
                game.task_id for game in games if recipe.least_turns <= game.turns <= recipe.most_turns
            )
        played = {game.task_id for game in games}
        new = [task for task in self.training_tasks(env) if task not in played]
        return sorted(random.Random(recipe.kept_out_seed).sample(new, recipe.new_tasks))  # noqa: S311

    @property
    def max_length(self) -> int:
        """The maximum number of tokens of a game."""
        return self.recipe.prompt_length + self.recipe.response_length

    def fine_tune(self) -> None:
        """Fine-tune the model on the games with verl's SFTTrainer."""
        at, recipe = self.folder, self.recipe
        settings = sft_settings(
            recipe, model=self.model, games=[at / "games" / "train.parquet"], seed=1, out=at / "sft"
        )
        replaced = {
            "data.micro_batch_size_per_gpu": recipe.sft_micro_batch,
            "checkpoint.save_contents": "[hf_model,model,optimizer,extra]",
            "trainer.total_epochs": recipe.sft_epochs,
            "trainer.total_training_steps": "null",
            "trainer.resume_mode": "auto",
        }
        self.python(
            *("-m", "verl_bridge.cpu.sft"),
            *(each for each in settings if each.partition("=")[0] not in replaced),
            *(f"{key}={value}" for key, value in replaced.items()),
            f"engine.mixed_precision={BF16}",
            *("optim.lr_scheduler_type=cosine", "optim.lr_warmup_steps=5"),
            f"trainer.max_ckpt_to_keep={KEPT}",
            *("data.custom_cls.path=pkg://verl_bridge.sft_dataset", "data.custom_cls.name=GameDataset"),
            f"hydra.run.dir={at}/hydra/sft",
            log="sft",
        )
        steps = (self.path / "sft" / "latest_checkpointed_iteration.txt").read_text().strip()
        fine_tuned = HERE / self.fine_tuned
        fine_tuned.unlink(missing_ok=True)
        fine_tuned.symlink_to(f"global_step_{steps}/huggingface")

    def learn(self, seed: int, env: str) -> None:
        """Train the fine-tuned model in one environment by GRPO with verl's own trainer."""
        name, recipe = f"grpo-{seed}", self.recipe
        out, loop = self.folder / name, self.path / name / "loop.yaml"
        loop.parent.mkdir(exist_ok=True)
        self.agentgym(
            *("data", "rl", env, f"--tasks={joined(self.tasks_to_learn(env))}"),
            *("--val=0", f"--out={out}/tasks", "--force"),
            *(f"--system-prompt=prompts/{env}.txt", f"--max-turns={recipe.max_turns}"),
        )
        loop.write_text(LOOP.format(tokens=recipe.reply_tokens, episodes=loop.with_name("episodes")))
        settings = grpo_settings(
            recipe,
            model=self.fine_tuned,
            tasks=out / "tasks" / "train.parquet",
            loop=loop,  # Ray's workers start in another folder
            seed=seed,
            out=out,
        )
        actor, rollout = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
        replaced = {
            f"{actor}.ppo_micro_batch_size_per_gpu": recipe.micro_batch,
            f"{rollout}.log_prob_micro_batch_size_per_gpu": recipe.micro_batch,
            f"{actor}.checkpoint.save_contents": "[hf_model,model,optimizer,extra]",
            "trainer.save_freq": 2,
            "trainer.resume_mode": "auto",
        }
        if recipe.filter_groups:
            replaced |= {"algorithm.filter_groups.enable": True, "algorithm.filter_groups.metric": "reward"}
        self.python(
            *("-m", "verl.trainer.main_ppo", *cpu_overrides()),
            *(each for each in settings if each.partition("=")[0] not in replaced),
            *(f"{key}={value}" for key, value in replaced.items()),
            f"{actor}.fsdp_config.mixed_precision={BF16}",
            *(f"{rollout}.dtype=bfloat16", f"trainer.max_actor_ckpt_to_keep={KEPT}"),
            *("trainer.logger=[console,file]", "trainer.val_before_train=False", "trainer.test_freq=-1"),
            f"hydra.run.dir={self.folder}/hydra/grpo",
            log=name,
        )

    def evaluate(
        self, name: str, model: Path, env: str | None = None, *, before_training: bool = False
    ) -> None:
        """Evaluate a model on tasks that no training plays.

        Args:
            name: The folder of the runs.
            model: The model.
            env: The environment; None for all.
            before_training: Whether to play only the recipe's number of tasks, once each.
        """
        most = self.recipe.zero_shot_tasks if before_training else None
        variables = {
            "CHECKPOINT": str(model),
            "CHECKPOINT_TOKENS": str(self.recipe.evaluation_tokens),
            "CHECKPOINT_DTYPE": "bfloat16",
            "CHECKPOINT_PROMPTS": "prompts",
            "PYTHONPATH": os.pathsep.join([str(PIPELINE), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        for each in self.recipe.evaluations:
            if env in {None, each.env} and (each.zero_shot or not before_training):
                run = self.folder / name / each.name
                tasks = joined(tasks_of(each, self.recipe)[:most])
                self.agentgym(
                    *("eval", each.env, f"--out={run}", "--concurrency=64"),
                    *self.player(model, each.env),
                    f"--max-turns={self.recipe.evaluation_turns}",
                    *(f"--tasks={tasks}", f"--samples={1 if before_training else each.samples}"),
                    *RESUMED,
                    variables=variables,
                )

    def player(self, model: Path, env: str) -> list[str]:
        """Return the options for who plays: the agent of this recipe, or the same by vLLM."""
        if self.vllm is None:
            return ["--agent=checkpoint:Checkpoint"]
        return [
            *("--launch=vllm", f"--engine-python={self.vllm}", f"--model-path={model}"),
            "--engine-arguments=--dtype bfloat16 --max-model-len 8192 --enforce-eager",
            *("--temperature=1", f"--max-tokens={self.recipe.evaluation_tokens}", "--on-cut-reply=play"),
            f"--system-prompt=prompts/{env}.txt",
        ]


def tasks_of(evaluation: Evaluation, recipe: SmolLM) -> list[int]:
    """Return the tasks of an evaluation."""
    split = list(find(evaluation.env).split(evaluation.split))
    if not evaluation.kept_out:
        return split[: evaluation.count]
    drawn: list[int] = random.Random(recipe.kept_out_seed).sample(split, evaluation.count)  # noqa: S311
    return sorted(drawn)


def joined(tasks: list[int]) -> str:
    """Return tasks in the form of the option ``--tasks``."""
    return ",".join(map(str, tasks))


def main() -> None:
    """Run the stages of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recipe", choices=RECIPES, default="smollm", help="what to learn")
    parser.add_argument("--out", type=Path, help="folder of the stages; default runs/RECIPE")
    parser.add_argument(
        "--seed", type=int, action="append", help="seed of GRPO; repeatable; default 0, 1 and 2"
    )
    parser.add_argument("--stage", help="run only this stage")
    parser.add_argument(
        "--vllm", type=Path, metavar="PYTHON", help="play the evaluations with the vLLM of this Python"
    )
    args = parser.parse_args()
    recipe = RECIPES[args.recipe]
    if args.seed and recipe.learns is None:
        parser.error(f"--seed is the seed of GRPO, which --recipe {args.recipe} does not have")
    out = args.out or Path("runs") / args.recipe
    Stages(out.resolve(), recipe, args.vllm).run(args.seed or [0, 1, 2], args.stage)


if __name__ == "__main__":
    main()
