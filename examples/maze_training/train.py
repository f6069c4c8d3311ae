"""A tiny model learns Maze by verl's own trainers, on a CPU: ``make train-demo``.

A model of random weights is fine-tuned on the oracle's games from five of the starts (verl's SFTTrainer).
GRPO then trains it on the 20 starts of the split ``train`` over HTTP (``verl.trainer.main_ppo``, unpatched).
It is measured before and after on the split ``test``. ``python train.py --seed 0 --out runs/maze``;
docs/training/maze.md reports the results.

``--algorithm grpo --algorithm gigpo`` trains by both, each from the same fine-tuned model and with the same
random seed: docs/training/credit.md. ``--rows episode --rows turn`` does the same for the two forms of rows:
docs/training/rows.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from commands import Commands, folders_of, keep_recipe
from recipe import (
    FULL,
    HELD_OUT,
    HISTORY,
    PHRASES,
    QUICK,
    REPLY_TOKENS,
    SYSTEM,
    TRAINED,
    Recipe,
    env_kwargs,
    rows_of_turns,
)
from report import curve, report
from trainers import ALGORITHMS, grpo_settings, sft_settings

from agentgym_gym import AgentGymEnv, data, find
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.local_servers import LocalServer
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.cpu.tiny import make_tiny
from verl_bridge.recipes import write_rows

HERE = Path(__file__).resolve().parent
LOOP = f"""\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  max_tokens_per_turn: {REPLY_TOKENS}
"""


class Way(NamedTuple):
    """A way to train.

    Attributes:
        algorithm: One of `ALGORITHMS`.
        rows: ``episode`` or ``turn``.
    """

    algorithm: str
    rows: str = "episode"

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.algorithm if self.rows == "episode" else f"{self.algorithm}-{self.rows}"

    @property
    def history(self) -> str | None:
        """The part of the conversation in a prompt; None for all of it."""
        return HISTORY if self.rows == "turn" else None

    def of(self, recipe: Recipe) -> Recipe:
        """Return the recipe with the limits of its rows."""
        return recipe if self.rows == "episode" else rows_of_turns(recipe)

    @property
    def loop(self) -> str:
        """The settings of the agent loop."""
        return LOOP if self.rows == "episode" else f"{LOOP}  rows: turn\n  history: {HISTORY}\n"


class Seed(Commands):
    """The run of one seed, each stage in a separate process, in one folder.

    Args:
        seed: Random seed of the model's weights, the order of the data and all sampling.
        folder: The folder to create.
        url: URL of a Maze server.
        recipe: The numbers.
        ways: How to train; each one starts from the fine-tuned model.
    """

    def __init__(
        self, seed: int, folder: Path, url: str, recipe: Recipe, ways: Sequence[Way] = (Way("grpo"),)
    ) -> None:
        super().__init__(HERE, folder)
        self.seed = seed
        folder.mkdir()
        self.url = url
        self.recipe = recipe
        self.ways = ways
        self.env_kwargs = env_kwargs(url, recipe.turns)

    def run(self) -> None:
        """Run all stages; write the measurements to ``result.json`` in a folder of each way."""
        games = {start: self.game(start) for start in self.recipe.shown_starts}
        texts = [message["content"] for game in games.values() for message in game]
        make_tiny(self.path / "tiny", [*texts, *self.advice()], PHRASES, seed=self.seed)
        self.announce(f"seed {self.seed}: fine-tuning")
        self.fine_tune(games)
        shown = self.choose()
        self.write_tasks()
        before = {}
        for way in self.ways:
            if way.rows not in before:
                before[way.rows] = self.measure(f"before-{way.rows}", shown, way.history)
                self.announce_success(f"fine-tuned, rows: {way.rows}", before[way.rows])
            result = {
                "seed": self.seed,
                **way._asdict(),
                "sft_steps": int(shown.parent.name.rpartition("_")[2]),
                "before": before[way.rows],
                **self.improve(shown, way),
            }
            (self.path / way.name / "result.json").write_text(json.dumps(result) + "\n")

    def improve(self, model: Path, way: Way) -> dict[str, Any]:
        """Train a model; return the minutes, the curve and the measurement after it."""
        (self.path / way.name).mkdir()
        (self.path / way.name / "loop.yaml").write_text(way.loop)
        began = self.minutes
        after = self.measure(f"{way.name}/after", self.learn(model, way), way.history)
        self.announce_success(way.name, after)
        return {
            "minutes": round(self.minutes - began, 1),
            "episodes_a_step": self.recipe.prompts * self.recipe.rollouts,
            "after": after,
            "curve": curve(self.path / way.name / "train-metrics.jsonl"),
        }

    def announce_success(self, name: str, measured: dict[str, Any]) -> None:
        """Print a measurement."""
        shown = f"success {measured['success']:.3f}, invalid replies {measured['invalid']:.3f}"
        self.announce(f"seed {self.seed}, {name}: {shown}")

    def game(self, start: int) -> list[dict[str, str]]:
        """Return the messages of the oracle's game from a start."""
        env = AgentGymEnv("Maze", **self.env_kwargs)
        observation, info = env.reset(options={"task_id": start})
        messages = [{"role": "system", "content": SYSTEM}]
        oracle, over = load_oracle(find("Maze")), False
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
        """Return the environment's responses to replies that are no move."""
        env = AgentGymEnv("Maze", **self.env_kwargs)
        env.reset(options={"task_id": 0})
        advice = [env.step(reply)[0] for reply in ("", "move", "go up", "move up move down")]
        env.close()
        return advice

    def fine_tune(self, games: Mapping[int, list[dict[str, str]]]) -> None:
        """Fine-tune the model on the oracle's games by start with verl's SFTTrainer."""
        r = self.recipe
        each = -(-r.sft_steps * r.sft_batch // len(games))
        rows = [
            {"messages": game, "data_source": find("Maze").id, "task_id": start}
            for start, game in games.items()
        ]
        write_rows(self.path / "games.parquet", rows * each)
        self.python(
            *("-m", "verl_bridge.cpu.sft"),
            *sft_settings(
                r,
                model=self.folder / "tiny",
                games=[self.folder / "games.parquet"],
                seed=self.seed,
                out=self.folder / "sft",
            ),
            f"hydra.run.dir={self.folder}/hydra/sft",
            log="sft",
        )

    def choose(self) -> Path:
        """Return the first checkpoint that meets the stopping rule."""
        r = self.recipe
        checkpoints = [
            self.folder / "sft" / f"global_step_{step}" / "huggingface"
            for step in range(r.sft_from, r.sft_steps + 1, r.sft_every)
        ]
        measured = self.play(
            "choice", checkpoints, TRAINED, r.sft_episodes_a_start, 2_000, until=r.shown_success
        )
        return Path(measured[-1]["model"])

    def measure(self, name: str, model: Path, history: str | None = None) -> dict[str, Any]:
        """Play the held-out starts with a model; the random numbers are drawn for this measurement only."""
        (measured,) = self.play(name, [model], HELD_OUT, self.recipe.episodes_a_start, 1_000, history=history)
        del measured["model"]
        return measured

    def write_tasks(self) -> None:
        """Write the tasks."""
        recipes = {"Maze": data.Recipe(self.env_kwargs, SYSTEM)}
        rows = {
            part: list(data.rows(data.items_of(find("Maze"), split=split), recipes))
            for part, split in (("train", "train"), ("val", "test"))
        }
        data.write(self.path, rows, data.schema())

    def learn(self, model: Path, way: Way) -> Path:
        """Train a model over the server with verl's own trainer; return the trained model."""
        r, checkpoints = way.of(self.recipe), self.folder / way.name / "checkpoints"
        self.python(
            *("-m", "verl.trainer.main_ppo", *cpu_overrides()),
            *grpo_settings(
                r,
                model=model,
                tasks=self.folder / "train.parquet",
                validation=self.folder / "val.parquet",
                loop=self.path / way.name / "loop.yaml",  # Ray's workers start in another folder
                seed=self.seed,
                out=checkpoints,
                algorithm=way.algorithm,
            ),
            f"actor_rollout_ref.rollout.val_kwargs.n={r.validation_episodes}",
            "actor_rollout_ref.rollout.val_kwargs.do_sample=True",
            "actor_rollout_ref.rollout.val_kwargs.temperature=1.0",
            "trainer.logger=[console,file]",
            "trainer.val_before_train=True",
            f"trainer.test_freq={r.validate_every}",
            f"hydra.run.dir={self.folder}/hydra/{way.name}",
            log=f"{way.name}/train",
        )
        return checkpoints / f"global_step_{r.steps}" / "actor" / "huggingface"

    def play(
        self,
        name: str,
        models: list[Path],
        starts: Sequence[int],
        samples: int,
        seed: int,
        until: float | None = None,
        history: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the output of ``measure.py`` for some models."""
        self.python(
            *("measure.py", self.url, str(seed + self.seed), str(samples), str(self.recipe.turns)),
            ",".join(map(str, starts)),
            *([] if until is None else ["--until", str(until)]),
            *([] if history is None else ["--history", history]),
            *("--", *map(str, models)),
            log=name,
        )
        lines = (self.path / f"{name}.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


def main() -> None:
    """Train each seed on the command line, and report all seeds in the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, action="append", help="random seed; repeatable; default 0")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/maze"), help="folder for a folder of each seed"
    )
    parser.add_argument(
        "--algorithm",
        action="append",
        choices=sorted(ALGORITHMS),
        help="training algorithm; repeatable; default grpo",
    )
    parser.add_argument(
        "--rows",
        action="append",
        choices=["episode", "turn"],
        help="form of rows; repeatable; default episode",
    )
    parser.add_argument("--quick", action="store_true", help="smoke test of two minutes that learns nothing")
    args = parser.parse_args()
    recipe = QUICK if args.quick else FULL
    ways = [Way(*way) for way in itertools.product(args.algorithm or ["grpo"], args.rows or ["episode"])]
    folders = folders_of(args.seed or [0], args.out.resolve())
    keep_recipe(args.out, recipe)
    server = LocalServer("maze")
    url = server.start()
    try:
        for seed, folder in folders.items():
            Seed(seed, folder, url, recipe, list(dict.fromkeys(ways))).run()
    finally:
        server.stop()
    report(args.out, args.out)


if __name__ == "__main__":
    main()
