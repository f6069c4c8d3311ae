"""Maze and TextCraft by one model: oracle data, fine-tuning, GRPO, evaluation, report: ``make pipeline``.

``python pipeline.py --seed 0 --out runs/pipeline`` does all of it on a CPU, with commands that it prints.
They run in this folder. docs/training/pipeline.md reports the results.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from joint_recipe import (
    FULL,
    HELD_OUT,
    QUICK,
    TURNS,
    Commands,
    JointRecipe,
    folders_of,
    grpo_settings,
    keep_recipe,
    sft_settings,
)
from seed_results import keep, print_outcomes, trained_success

from verl_bridge.cpu.overrides import cpu_overrides

HERE = Path(__file__).resolve().parent
LOOP = """\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  max_tokens_per_turn: 8
  episodes_dir: episodes
"""
PLAYED = ["--action-format=bare", "--on-unknown=refuse"]


class Seed(Commands):
    """The run of one seed, each step a command, in one folder.

    Args:
        seed: Random seed of the model's weights, the order of the data and all sampling.
        folder: The folder to create.
        recipe: The numbers.
    """

    def __init__(self, seed: int, folder: Path, recipe: JointRecipe) -> None:
        super().__init__(HERE, folder)
        self.seed = seed
        self.recipe = recipe
        folder.mkdir()

    def run(self) -> None:
        """Run all steps."""
        at = self.folder
        self.announce(f"seed {self.seed}: an oracle plays")
        self.agentgym("eval", "oracle.toml", f"--out={at}/oracle")
        for runs, out in (("oracle", "games"), ("oracle/TextCraft-v0-oracle", "crafts")):
            self.agentgym("data", "sft", f"{at}/{runs}", "--successful", "--val=0", f"--out={at}/{out}")
        # The model must be able to write what the held-out tasks need; it is not trained on these episodes.
        ids = ",".join(map(str, HELD_OUT["TextCraft"]))
        words = ("TextCraft", f"--tasks={ids}", "--agent=oracle", *PLAYED, f"--out={at}/words")
        self.agentgym("eval", *words)
        texts = (f"{at}/oracle", f"{at}/words")
        self.python("tiny_model.py", *texts, f"--out={at}/tiny", f"--seed={self.seed}")
        self.announce(f"seed {self.seed}: fine-tuning")
        self.fine_tune()
        shown, step = self.choose()
        self.play("before", shown, self.recipe.samples, 1_000)
        self.announce(f"seed {self.seed}: GRPO")
        trained = self.learn(shown)
        self.play("after", trained, self.recipe.samples, 1_000)
        self.announce(f"seed {self.seed}: report")
        whole = [f"{at}/before", f"{at}/after", f"{at}/episodes", f"--out={at}/report.html"]
        self.agentgym("report", *whole, f"--title=Maze and TextCraft, seed {self.seed}")
        self.agentgym("compare", f"{at}/before", f"{at}/after")
        keep(self.path, {"seed": self.seed, "minutes": self.minutes, "sft_steps": step})

    def fine_tune(self) -> None:
        """Fine-tune the model on the games with verl's SFTTrainer."""
        at = self.folder
        crafts = [at / "crafts" / "train.parquet"] * (self.recipe.craft_weight - 1)
        games = [at / "games" / "train.parquet", *crafts]
        settings = sft_settings(self.recipe, model=at / "tiny", games=games, seed=self.seed, out=at / "sft")
        self.python("-m", "verl_bridge.cpu.sft", *settings, f"hydra.run.dir={at}/hydra/sft", log="sft")

    def choose(self) -> tuple[Path, int]:
        """Return the first checkpoint that meets the stopping rule, and its step."""
        r, step = self.recipe, self.recipe.sft_from
        while True:
            model = self.folder / "sft" / f"global_step_{step}" / "huggingface"
            self.play(f"looks/{step}", model, r.look_samples, 2_000)
            found = trained_success(self.path / "looks" / str(step))
            if step >= r.sft_steps or all(found[name] >= least for name, least in r.shown_success):
                return model, step
            step += r.sft_every

    def learn(self, model: Path) -> Path:
        """Train a model by GRPO in both environments with verl's own trainer; return the trained model."""
        at = self.folder
        self.agentgym(
            *("data", "rl", "Maze", "textcraft.json", "--val=0", f"--out={at}/tasks"),
            *PLAYED,
            *(f'--env-kwargs={name}={{"max_turns": {turns}}}' for name, turns in TURNS.items()),
        )
        (self.path / "loop.yaml").write_text(LOOP)
        self.python(
            *("-m", "verl.trainer.main_ppo", *cpu_overrides()),
            *grpo_settings(
                self.recipe,
                model=model,
                tasks=at / "tasks" / "train.parquet",
                loop=self.path / "loop.yaml",  # Ray's workers start in another folder
                seed=self.seed,
                out=at / "grpo",
            ),
            *("trainer.logger=[console]", "trainer.val_before_train=False", "trainer.test_freq=-1"),
            f"hydra.run.dir={at}/hydra/grpo",
            log="grpo",
        )
        return at / "grpo" / f"global_step_{self.recipe.steps}" / "actor" / "huggingface"

    def play(self, name: str, model: Path, samples: int, seed: int) -> None:
        """Evaluate a checkpoint; the random numbers are drawn for this evaluation only."""
        self.agentgym(
            *("eval", "checkpoint.toml", f"--samples={samples}", f"--out={self.folder}/{name}"),
            variables={"CHECKPOINT": str(model), "CHECKPOINT_SEED": str(seed + self.seed)},
        )


def main() -> None:
    """Train each seed on the command line, and report all seeds in the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, action="append", help="random seed; repeatable; default 0")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/pipeline"), help="folder for a folder of each seed"
    )
    parser.add_argument("--quick", action="store_true", help="smoke test of some minutes that learns nothing")
    args = parser.parse_args()
    recipe = QUICK if args.quick else FULL
    folders = folders_of(args.seed or [0], args.out.resolve())
    keep_recipe(args.out, recipe)
    for seed, folder in folders.items():
        Seed(seed, folder, recipe).run()
    print_outcomes(args.out)


if __name__ == "__main__":
    main()
