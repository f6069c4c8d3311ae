"""A tiny model learns Maze by verl's own trainers, on a CPU: ``make train-demo``.

A model of random weights is fine-tuned on the oracle's games from five of the 25 starts (verl's SFTTrainer),
then trained by GRPO on all of them over HTTP (``verl.trainer.main_ppo``, unpatched), and measured before and
after. ``python train.py --seed 0 --out runs/maze``; docs/training/maze.md says what came of it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import recipe as r
from measure import env_kwargs

from agentgym_gym import AgentGymEnv, find
from agentgym_gym.data import Recipe, items_of, rows, schema, write
from agentgym_gym.oracles.maze import MazeOracle
from agentgym_gym.servers.local import LocalServer
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.cpu.tiny import make_tiny

HERE = Path(__file__).resolve().parent
LOOP = f"""\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  max_tokens_per_turn: {r.REPLY_TOKENS}
"""


class Seed:
    """All that is done for one seed, each stage in a process of its own, in one folder."""

    def __init__(self, seed: int, folder: Path, url: str) -> None:
        self.seed = seed
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True)
        self.url = url
        self.began = time.monotonic()

    def run(self) -> dict[str, Any]:
        """Do all of it; return what was measured."""
        games = [self.game(start) for start in r.SHOWN_STARTS]
        texts = [message["content"] for game in games for message in game]
        make_tiny(self.folder / "tiny", [*texts, *self.advice()], r.PHRASES, seed=self.seed)
        self.fine_tune(games)
        self.say("fine-tuned")
        before = self.measure("sft")
        self.say(f"success {before['success']:.3f}, invalid replies {before['invalid']:.3f}")
        self.learn()
        self.say("trained")
        after = self.measure("grpo")
        self.say(f"success {after['success']:.3f}, invalid replies {after['invalid']:.3f}")
        minutes = round((time.monotonic() - self.began) / 60, 1)
        result = {"seed": self.seed, "minutes": minutes, "before": before, "after": after}
        (self.folder / "result.json").write_text(json.dumps(result) + "\n")
        return result

    def game(self, start: int) -> list[dict[str, str]]:
        """Return the messages of the oracle's game from a start."""
        env = AgentGymEnv("Maze", **env_kwargs(self.url))
        observation, info = env.reset(options={"task_id": start})
        messages = [{"role": "system", "content": r.SYSTEM}]
        oracle, over = MazeOracle(), False
        oracle.reset(env, observation, info)
        while not over:
            move = oracle.act(observation, info)
            messages += [
                {"role": "user", "content": observation},
                {"role": "assistant", "content": str(move)},
            ]
            observation, _, terminated, truncated, info = env.step(str(move))
            over = terminated or truncated
        env.close()
        return messages

    def advice(self) -> list[str]:
        """Return what the environment answers to replies that are no move."""
        env = AgentGymEnv("Maze", **env_kwargs(self.url))
        env.reset(options={"task_id": 0})
        said = [env.step(reply)[0] for reply in ("", "move", "go up", "move up move down")]
        env.close()
        return said

    def fine_tune(self, games: list[list[dict[str, str]]]) -> None:
        """Show the oracle's games to the model, by verl's SFTTrainer."""
        rows = [{"messages": game} for game in games] * r.SFT_REPEATS
        _write_parquet(rows, self.folder / "games.parquet")
        steps = len(rows) // r.SFT_BATCH * r.SFT_EPOCHS
        self.call(
            "sft",
            *("-m", "verl_bridge.cpu.sft"),
            f"model.path={self.folder}/tiny",
            f"data.train_files={self.folder}/games.parquet",
            f"data.train_batch_size={r.SFT_BATCH}",
            f"data.micro_batch_size_per_gpu={r.SFT_BATCH}",
            f"data.max_length={r.PROMPT_LENGTH + r.RESPONSE_LENGTH}",
            f"optim.lr={r.SFT_LEARNING_RATE}",
            "optim.lr_warmup_steps_ratio=0",
            "trainer.logger=[console]",
            f"trainer.seed={self.seed}",
            f"trainer.total_epochs={r.SFT_EPOCHS}",
            f"trainer.save_freq={steps}",
            "trainer.test_freq=-1",
            "trainer.resume_mode=disable",
            f"trainer.default_local_dir={self.folder}/sft_checkpoints",
        )
        self.merge(self.folder / "sft_checkpoints" / f"global_step_{steps}", "sft")

    def learn(self) -> None:
        """Train by GRPO over the server, by verl's own trainer."""
        (self.folder / "loop.yaml").write_text(LOOP)
        recipe = Recipe(env_kwargs(self.url), r.SYSTEM)
        tasks = list(rows(items_of(find("Maze")), {"Maze": recipe}))
        write(self.folder, {"train": tasks, "val": tasks}, schema())
        episodes = r.PROMPTS * r.ROLLOUTS
        self.call(
            "grpo",
            *("-m", "verl.trainer.main_ppo", *cpu_overrides()),
            "algorithm.adv_estimator=grpo",
            "algorithm.rollout_correction.bypass_mode=True",  # the server's log-probs are the trainer's
            f"data.train_files={self.folder}/train.parquet",
            f"data.val_files={self.folder}/val.parquet",
            f"data.train_batch_size={r.PROMPTS}",
            f"data.max_prompt_length={r.PROMPT_LENGTH}",
            f"data.max_response_length={r.RESPONSE_LENGTH}",
            f"data.seed={self.seed}",
            f"actor_rollout_ref.model.path={self.folder}/sft",
            f"actor_rollout_ref.actor.ppo_mini_batch_size={r.MINI_BATCH}",
            f"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu={episodes // 4}",
            f"actor_rollout_ref.actor.optim.lr={r.LEARNING_RATE}",
            f"actor_rollout_ref.actor.optim.lr_warmup_steps={r.WARMUP_STEPS}",
            f"actor_rollout_ref.rollout.n={r.ROLLOUTS}",
            f"actor_rollout_ref.rollout.seed={self.seed}",
            "actor_rollout_ref.rollout.calculate_log_probs=True",
            f"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu={episodes // 4}",
            f"actor_rollout_ref.rollout.agent.agent_loop_config_path={self.folder}/loop.yaml",
            "actor_rollout_ref.rollout.val_kwargs.n=4",
            "actor_rollout_ref.rollout.val_kwargs.do_sample=True",
            "actor_rollout_ref.rollout.val_kwargs.temperature=1.0",
            "trainer.logger=[console,file]",
            "trainer.val_before_train=True",
            f"trainer.test_freq={r.VALIDATE_EVERY}",
            f"trainer.save_freq={r.GRPO_STEPS}",
            "trainer.total_epochs=1000",
            f"trainer.total_training_steps={r.GRPO_STEPS}",
            "trainer.resume_mode=disable",
            f"trainer.default_local_dir={self.folder}/checkpoints",
        )
        self.merge(self.folder / "checkpoints" / f"global_step_{r.GRPO_STEPS}" / "actor", "grpo")

    def merge(self, checkpoint: Path, name: str) -> None:
        """Make a model folder of a checkpoint, by verl's own tool."""
        self.call(
            f"{name}_merge",
            *("-m", "verl.model_merger", "merge", "--backend", "fsdp"),
            *("--local_dir", str(checkpoint), "--target_dir", str(self.folder / name)),
        )

    def measure(self, name: str) -> dict[str, Any]:
        """Play all starts with a model; the random numbers are others than those of the training."""
        arguments = (str(HERE / "measure.py"), str(self.folder / name), self.url, str(1_000 + self.seed))
        self.call(f"{name}_measure", *arguments)
        said = (self.folder / f"{name}_measure.log").read_text().splitlines()
        result: dict[str, Any] = json.loads(next(line for line in said if line.startswith("{")))
        return result

    def call(self, name: str, *arguments: str) -> None:
        """Run a Python program; what it prints goes into a log.

        Raises:
            SystemExit: It failed; the end of its log is shown.
        """
        log = self.folder / f"{name}.log"
        env = os.environ | {
            "VERL_USE_EXTERNAL_MODULES": "verl_bridge.cpu",
            "VERL_FILE_LOGGER_PATH": str(self.folder / "metrics.jsonl"),
            "HF_HUB_OFFLINE": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "TOKENIZERS_PARALLELISM": "false",
        }
        with log.open("w") as out:
            ended = subprocess.run(  # noqa: S603 - our own programs and verl's
                [sys.executable, *arguments],
                cwd=self.folder,
                env=env,
                stdout=out,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if ended.returncode:
            raise SystemExit(f"{name} failed; the end of {log}:\n{log.read_text(errors='replace')[-3_000:]}")

    def say(self, what: str) -> None:
        """Print how far it is."""
        minutes = (time.monotonic() - self.began) / 60
        print(f"seed {self.seed}, {minutes:4.1f} min: {what}", flush=True)


def _write_parquet(rows: list[dict[str, Any]], path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    pq.write_table(pa.Table.from_pylist(rows), path)


def main() -> None:
    """Train each seed that is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, action="append", help="may be given again; 0 by default")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/maze"), help="a folder for each seed goes there"
    )
    given = parser.parse_args()
    server = LocalServer("maze")
    url = server.start()
    try:
        for seed in given.seed or [0]:
            print(json.dumps(Seed(seed, given.out / f"seed_{seed}", url).run()))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
