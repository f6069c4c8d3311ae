"""Mistakes made in a written training folder, and what `agentgym verl check` finds of each."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verl_bridge.recipes import Finding, RlRecipe, seeded, write, write_rows

TEXTCRAFT = "agentgym_gym:agentgym/TextCraft-v0"


@dataclass(frozen=True)
class Mistake:
    """A mistake in a folder in which nothing else is wrong.

    Attributes:
        text: What is written in the folder, as in the docs.
        make: Makes it in a folder.
        check: The name of the check that finds it.
        finding: A part of the finding's text.
        status: The status of the finding.
        advice: A part of its advice.
        with_verl: The attributes that differ where verl is installed.
        needs_verl: Whether it is only found where verl is installed.
        version: The only version of verl that has it, or empty for all.
        rows: Whether it is found by reading or playing tasks; the other checks are made without tasks.
        also: The checks of further problems that come of it.
        arguments: The arguments of the loop that its constructor does not accept either.
        interaction: Whether it is made in a folder that plays through interactions.
    """

    text: str
    make: Callable[[Path], object]
    check: str
    finding: str
    status: str = "problem"
    advice: str = ""
    with_verl: Mapping[str, Any] = field(default_factory=dict)
    needs_verl: bool = False
    version: str = ""
    rows: bool = False
    also: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    interaction: bool = False

    def make_in(self, folder: Path) -> None:
        """Make the mistake, in a folder without tasks unless they are needed."""
        if not self.rows:
            shutil.rmtree(folder / "data")
        self.make(folder)

    def assert_found(self, findings: Collection[Finding]) -> None:
        """Assert that one finding names the mistake, and that there is no other problem."""
        ours = [each for each in findings if (each.check, each.status) == (self.check, self.status)]
        found = [each for each in ours if self.finding in each.text]
        assert len(found) == 1, findings
        assert found[0].advice
        assert self.advice in found[0].advice
        others = {each.check for each in findings if each.status == "problem" and each is not found[0]}
        assert others <= {*self.also, *(() if self.rows else ("data",))}, findings

    def beside_verl(self) -> Mistake:
        """Return the mistake as it is found where verl is installed, which may also reject the settings."""
        return dataclasses.replace(self, **{"also": (*self.also, "settings"), **self.with_verl})


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


def make_folder(folder: Path, url: str, version: str = "0.9", *, interaction: bool = False) -> Path:
    """Write a folder in which nothing is wrong."""
    integration = "interaction" if interaction else "agent-loop"
    environment = {"server": [url], "max_turns": 20}
    write(
        RlRecipe(TEXTCRAFT, verl=version, preset="test", integration=integration, env_kwargs=environment),
        folder,
    )
    for part, tasks in {"train": range(8), "val": range(8, 10)}.items():
        rows = seeded(TEXTCRAFT, tasks, "Craft it.")
        for row, task in zip(rows, tasks, strict=True):
            options = {"seed": None, "reset_options": json.dumps({"task_id": task})}
            row["extra_info"]["interaction_kwargs"] |= options
        write_rows(folder / f"data/{part}.parquet", rows)
    config(SIZES)(folder)
    if not interaction:
        loop(LOOP)(folder)
    return folder


def replace(name: str, old: str, new: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        text = (folder / name).read_text("utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), "utf-8")

    return make


def external(modules: str) -> Callable[[Path], object]:
    """Have run.sh load these modules in place of `verl_bridge.trainer`."""
    return replace("run.sh", 'MODULES="verl_bridge.trainer', f'MODULES="{modules}')


def delete(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def config(settings: Mapping[str, Any]) -> Callable[[Path], object]:
    """Change settings, by their dotted keys."""
    import yaml

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
    import yaml

    def make(folder: Path) -> None:
        file = folder / "agent_loop.yaml"
        (entry,) = yaml.safe_load(file.read_text("utf-8"))
        entry.update(arguments)
        entry.pop(without, None)
        file.write_text(yaml.safe_dump([entry], sort_keys=False), "utf-8")

    return make


def rows(part: str, change: Callable[[list[dict[str, Any]]], object]) -> Callable[[Path], object]:
    """Change the rows of a part."""
    from pyarrow import parquet

    def make(folder: Path) -> None:
        file = folder / f"data/{part}.parquet"
        changed = parquet.read_table(file).to_pylist()
        change(changed)
        write_rows(file, changed)

    return make


def row(part: str, index: int = 0, **kwargs: object) -> Callable[[Path], object]:
    """Change the arguments of a row."""
    return rows(part, lambda read: read[index]["extra_info"]["interaction_kwargs"].update(kwargs))


def both(*makes: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [make(folder) for make in makes]


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


def episodes(folder: Path) -> None:
    (folder / "episodes").mkdir()
    (folder / "episodes/episodes.jsonl").write_text("{}\n")


def another_environment(folder: Path) -> None:
    """Have a row name an environment that the server of the folder does not have."""
    import yaml

    (entry,) = yaml.safe_load((folder / "agent_loop.yaml").read_text("utf-8"))
    server = json.dumps({"server": entry["env_kwargs"]["server"]})
    row("val", env_id="agentgym_gym:agentgym/BabyAI-v0", env_kwargs=server)(folder)


WHOLE = ("config.json", "model.safetensors")
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
ESTIMATOR = "algorithm.adv_estimator"

DOCS = Path(__file__).resolve().parents[2] / "docs/training/check.md"


def table_of_docs() -> dict[str, tuple[str, str]]:
    """Return the status and the finding of each mistake in the docs, by its text."""
    text = DOCS.read_text("utf-8")
    table = text[text.index("| mistake |") :].split("\n\n")[0].splitlines()[2:]
    rows = (line.strip("| ").split(" | ") for line in table)
    return {mistake: (status, finding) for mistake, status, finding in rows}


TABLE = table_of_docs()


def mistakes() -> Iterator[Mistake]:
    """Yield the mistakes of the docs, in their order."""
    yield from names_in_values()
    yield from sizes()
    yield from asynchronous_trainers()
    yield from arguments_of_the_loop()
    yield from credit_by_turn()
    yield from groups_with_signal()
    yield from models_and_lengths()
    yield from tasks_and_earlier_runs()


def further_mistakes() -> Iterator[Mistake]:
    """Yield mistakes that the docs do not list."""
    yield from types()
    yield from further_arguments()
    yield from files()
    yield from further_rows()
    yield from interactions()


def documented(text: str, check: str, make: Callable[[Path], object], **more: Any) -> Mistake:
    """Return a mistake whose status and finding are in the docs."""
    status, finding = TABLE[text]
    return Mistake(text, make, check, finding, status, **more)


def setting(group: str, name: str, value: Any, check: str, **more: Any) -> Mistake:
    """Return the mistake of a setting, whose group the docs leave out."""
    shown = f"[{', '.join(value)}]" if isinstance(value, list) else value
    return documented(f"`{name}: {shown}`", check, config({f"{group}.{name}": value}), **more)


def argument(text: str, finding: str = "", **arguments: Any) -> Mistake:
    """Return a mistake that the constructor of the loop finds, too."""
    of_loop = Mistake(text, loop(arguments), "loop", finding or TABLE[text][1], arguments=arguments)
    return dataclasses.replace(of_loop, rows="horizon" in arguments)  # its highest limit is read in play


def names_in_values() -> Iterator[Mistake]:
    misspelt = config({"data.train_batchsize": 8})
    near = "did you mean data.train_batch_size?"
    yield documented("`data.train_batchsize: 8`", "settings", misspelt, advice=near, needs_verl=True)
    for group, name, value in (
        ("algorithm", "adv_estimator", "gprpo"),
        ("algorithm", "adv_estimator", "gym_grpo"),
        ("algorithm", "adv_estimator", "reinforce++"),
        (ACTOR, "loss_agg_mode", "token_mean"),
        (ACTOR, "policy_loss.loss_mode", "gpso"),
        (ACTOR, "kl_loss_type", "low_var"),
        ("actor_rollout_ref", "rollout.name", "slang"),
        ("actor_rollout_ref", "actor.strategy", "fsdp3"),
        (ACTOR, "optim.optimizer", "AdanW"),
        ("trainer", "logger", ["console", "wanbd"]),
        ("trainer", "resume_mode", "always"),
        ("trainer", "v1.trainer_mode", "seperate_async"),
    ):
        version = "0.9" if name.startswith("v1") else ""
        yield setting(group, name, value, "values", needs_verl=True, version=version)
    nowhere = external("verl_bridge.triner")
    yield documented("`verl_bridge.triner` in `run.sh`", "values", nowhere, needs_verl=True)
    yield documented("no `verl_bridge.trainer` in `run.sh`", "values", external(""))


def sizes() -> Iterator[Mistake]:
    batch = "train_batch_size"
    for value in ("many", 8.5):
        yield setting("data", batch, value, "values", advice=f"{batch}: 8, as agentgym verl init")
    yield setting(ACTOR, "ppo_mini_batch_size", 16, "sizes")
    yield setting(ACTOR, "ppo_micro_batch_size_per_gpu", 3, "sizes")
    yield documented("`rollout.n: 1` with GRPO", "sizes", config({f"{ROLLOUT}.n": 1}))
    yield setting("trainer", "n_gpus_per_node", 3, "sizes", also=("sizes",))
    yield setting("trainer", "n_gpus_per_node", 0, "values")
    yield setting(ROLLOUT, "tensor_model_parallel_size", 3, "sizes")


def asynchronous_trainers() -> Iterator[Mistake]:
    v1, sampler = "trainer.v1", "trainer.v1.sampler"
    backend, step = f"{ROLLOUT}.checkpoint_engine.backend", f"{v1}.separate_async.parameter_sync_step"
    separate = {
        f"{v1}.trainer_mode": "separate_async",
        step: 1,
        f"{ROLLOUT}.nnodes": 1,
        f"{ROLLOUT}.n_gpus_per_node": 4,
        backend: "nixl",
    }
    colocated = {f"{v1}.trainer_mode": "colocate_async"}
    waiting = "`sampler.max_off_policy_strategy: wait` with a `fault_budget`"
    settings: dict[str, dict[str, Any]] = {
        "`separate_async.parameter_sync_step: 4` with one update a step": {**separate, step: 4},
        "`separate_async` with `rollout.nnodes: 0`": {**separate, f"{ROLLOUT}.nnodes": 0},
        "`separate_async` with `checkpoint_engine.backend: naive`": {**separate, backend: "naive"},
        "`separate_async` with `model.lora_rank: 8`": {**separate, "actor_rollout_ref.model.lora_rank": 8},
        "`sampler.max_off_policy_threshold: 1`": {**colocated, f"{sampler}.max_off_policy_threshold": 1},
        "`sampler.max_off_policy_strategy: stop`": {
            **colocated,
            f"{sampler}.max_off_policy_strategy": "stop",
        },
        waiting: {**colocated, f"{sampler}.max_off_policy_strategy": "wait"},
        "an asynchronous trainer without `rollout_correction.rollout_is`": colocated,
        "an asynchronous trainer with `use_v1: false`": {**colocated, "trainer.use_v1": False},
    }
    for text, changed in settings.items():
        yield documented(text, "trainer", config(changed), version="0.9")


def arguments_of_the_loop() -> Iterator[Mistake]:
    misspelt = loop({"max_token_per_turn": 512}, without="max_tokens_per_turn")
    yield documented("`max_token_per_turn: 512`", "loop", misspelt)
    yield argument("`max_tokens_per_turn: 0`", max_tokens_per_turn=0)
    yield argument('`max_turns: "20"`', max_turns="20")
    yield argument("`fault_budget: ten minutes`", fault_budget="ten minutes")
    horizon = {"turns": [10, 20], "every": 50}
    yield argument("`horizon` beside `max_turns`", max_turns=20, horizon=horizon)
    yield argument("`isolate: proces`", isolate="proces")
    target = "verl_bridge.agent_lop.GymAgentLoop"
    yield documented(f"`_target_: {target}`", "import", loop({"_target_": target}))
    native = loop({"tool_calls": True})
    yield documented("`tool_calls: true` with another `action_format`", "tool calls", native, rows=True)
    text = "`action_format: tool_calls` without `tool_calls: true`"
    calls = row("train", env_kwargs=json.dumps({"action_format": "tool_calls"}))
    yield documented(text, "tool calls", calls, rows=True)


def credit_by_turn() -> Iterator[Mistake]:
    gigpo, omega = config({ESTIMATOR: "gym_gigpo"}), "algorithm.gym_gigpo_omega"
    yield documented("`turn_rewards: true` with GRPO", "credit", loop({"turn_rewards": True}))
    yield argument("`turn_rewards: true` with `drop_reasoning: true`", turn_rewards=True, drop_reasoning=True)
    yield argument(
        "`invalid_action_penalty` with `drop_reasoning: true`",
        invalid_action_penalty=0.1,
        drop_reasoning=True,
    )
    yield argument("`rows: turn` with `drop_reasoning: true`", rows="turn", drop_reasoning=True)
    yield argument("`history: turns:2` without `rows: turn`", history="turns:2")
    text = "`adv_estimator: gym_gigpo` with `drop_reasoning: true`"
    yield documented(text, "credit", both(gigpo, loop({"drop_reasoning": True})))
    much = both(gigpo, config({omega: "much"}))
    yield documented("`gym_gigpo_omega: much`", "values", much, with_verl={"check": "credit"})
    much = both(gigpo, config({"algorithm.gamma": "much"}))
    yield documented("`gamma: much` with `adv_estimator: gym_gigpo`", "values", much)
    yield documented("`gym_gigpo_omega: 0.5` with GRPO", "credit", config({omega: 0.5}))
    values = config({ESTIMATOR: "gym_turn_gae"})
    yield documented("`adv_estimator: gym_turn_gae` without `critic.enable: true`", "credit", values)
    text = "`adv_estimator: gym_gigpo` without `verl_bridge.trainer` in `run.sh`"
    yield documented(text, "values", both(gigpo, external("")))


def groups_with_signal() -> Iterator[Mistake]:
    group = "algorithm.filter_groups"
    enabled = {f"{group}.enable": True, f"{group}.metric": "reward"}
    settings: dict[str, dict[str, Any]] = {
        "`filter_groups` with `metric: null`": {f"{group}.metric": None},
        "`filter_groups` with `metric: acc`": {f"{group}.metric": "acc"},
        "`filter_groups` with `max_inflight_gen_batches: 0`": {f"{group}.max_inflight_gen_batches": 0},
        "`filter_groups` with `max_num_gen_batches: 10`": {f"{group}.max_num_gen_batches": 10},
        "`filter_groups` with PPO and `rollout.n: 1`": {
            ESTIMATOR: "gae",
            f"{ROLLOUT}.n": 1,
            "critic.model.path": "${actor_rollout_ref.model.path}",
            "critic.ppo_micro_batch_size_per_gpu": 2,
        },
        "`filter_groups` with `use_v1: false`": {"trainer.use_v1": False},
    }
    for text, changed in settings.items():
        yield documented(text, "groups", config(enabled | changed), version="0.9")


def models_and_lengths() -> Iterator[Mistake]:
    nowhere = config({"actor_rollout_ref.model.path": "/models/qwen"})
    yield documented("a model path that does not exist", "model", nowhere)
    yield documented("a model folder without `config.json`", "model", model("model.safetensors"))
    yield documented("a model folder without a tokenizer", "model", model(*WHOLE))
    small = model(*WHOLE, "tokenizer.json", context=4096)
    yield documented("a model with a context of 4,096 tokens", "model", small)
    tokenized = {"rows": True, "needs_verl": True}
    thinking = model(*WHOLE, template="CHATML{# enable_thinking #}")
    yield documented("a thinking model with 512 tokens a reply", "thinking", thinking, **tokenized)
    refusing = model(*WHOLE, template="{{ raise_exception('no') }}")
    yield documented("a chat template that rejects user messages", "chat template", refusing, **tokenized)
    for length in (256, 1000):
        yield setting("data", "max_response_length", length, "response length", rows=True)


def tasks_and_earlier_runs() -> Iterator[Mistake]:
    def task(number: int, part: str = "train") -> Callable[[Path], object]:
        return row(part, reset_options=json.dumps({"task_id": number}))

    yield documented("a row with task 999999", "tasks", task(999999), rows=True, also=("environment",))
    text = "a row of `train` with a task of the split `test`"
    yield documented(text, "tasks", task(444), rows=True)
    yield documented("a row with a task that cannot be won", "tasks", task(422), rows=True)
    yield documented("a task in both `train` and `val`", "validation", task(3, "val"), rows=True)
    misspelt = "agentgym_gym:agentgym/TextCarft-v0"
    yield documented(f"`env_id: {misspelt}`", "environment", row("val", env_id=misspelt), rows=True)
    yield documented("checkpoints of an earlier training", "checkpoints", checkpoint)


def types() -> Iterator[Mistake]:
    def of_type(key: str, value: Any, type_: str, advice: str, **more: Any) -> Mistake:
        text = "null" if value is None else repr(value)
        finding = f"{key}={text} should be {type_}"
        return Mistake(f"{key}: {text}", config({key: value}), "values", finding, advice=advice, **more)

    integer, default = "an integer from 1", "1, verl's default"
    epochs, batch = f"{ACTOR}.ppo_epochs", "data.train_batch_size"
    yield of_type(epochs, "many", integer, f"to {integer}", with_verl={"advice": default})
    yield of_type(epochs, [3], integer, f"{epochs}: 3")
    yield of_type(batch, "8", integer, f"{batch}: 8")
    length = "data.max_response_length"
    yield of_type(length, None, integer, f"{length}: 6144, as agentgym verl init")
    yield of_type(f"{ROLLOUT}.n", 0, integer, f"{ROLLOUT}.n: 2, as agentgym verl init")
    yield of_type("trainer.nnodes", 0, integer, f"to {integer}", with_verl={"advice": default})
    yield of_type(
        f"{ROLLOUT}.agent.num_workers", 0, integer, f"to {integer}", with_verl={"advice": "8, verl's default"}
    )
    yield of_type(
        "trainer.save_freq", "never", f"{integer}, or -1 for never", "save_freq: -1, as agentgym verl init"
    )
    yield of_type(f"{ACTOR}.optim.lr", "fast", "a number", "lr: 5.0e-07, as agentgym verl init")
    yield of_type(f"{ACTOR}.use_kl_loss", "true", "true or false", "use_kl_loss: true")
    yield of_type(f"{ROLLOUT}.name", ["vllm"], "a text", 'name: "vllm"')
    yield of_type("algorithm", 5, "a group of settings", "to a group of settings")
    yield of_type(f"{ROLLOUT}.temperature", [0.7], "a number", "0.7", needs_verl=True)
    yield of_type(
        f"{ROLLOUT}.val_kwargs", 3, "a group of settings", "to a group of settings", needs_verl=True
    )
    threshold = "trainer.v1.sampler.max_off_policy_threshold"
    stale = config({"trainer.v1.trainer_mode": "colocate_async", threshold: 0})
    yield Mistake(f"{threshold}: 0", stale, "trainer", f"{threshold}=0 should be {integer}", version="0.9")


def further_arguments() -> Iterator[Mistake]:
    integer = "should be an integer from 1, or null: write"
    for name, value, finding in (
        ("env_id", 3, "should be text"),
        ("env_kwargs", [1], "should be a mapping"),
        ("reset_options", "{", "is not JSON"),
        ("success_at", "high", "should be a number"),
        ("max_turns", 0, f"{integer} max_turns: null for no limit"),
        ("max_turns", True, integer),
        ("max_observation_tokens", 12.5, integer),
        ("hide_reasoning", "no", "should be true or false"),
        ("drop_reasoning", 1, "should be true or false"),
        ("turn_rewards", "yes", "should be true or false"),
        ("invalid_action_penalty", -0.1, "should be a number from 0"),
        ("format_penalty", "much", "should be a number from 0"),
        *(
            ("fault_budget", seconds, "should be a number of seconds from 0")
            for seconds in (-1, True, math.nan, math.inf)
        ),
        ("env_timeout", 0, "should be a number of seconds above 0"),
        ("episodes_dir", "", "should be text"),
        ("rows", "both", "should be one of episode, turn"),
    ):
        yield argument(f"{name}: {value!r}", f"{name}={value!r} {finding}", **{name: value})
    text = "history='last' should be one of"
    yield argument("rows: turn, history: last", text, rows="turn", history="last")
    no_number = "turns should be a number, or a list of numbers"
    yield argument("half a turn", no_number, max_turns=None, horizon={"turns": 5.5})
    every = "several turn limits require every"
    yield argument("turn limits without steps", every, max_turns=None, horizon={"turns": [10, 20]})


def files() -> Iterator[Mistake]:
    no_weights = model("config.json", "tokenizer.json")
    yield Mistake("a model folder without weights", no_weights, "model", "has no weights")
    yield Mistake("no config", delete("config.yaml"), "settings", "cannot read")
    yield Mistake("no YAML", replace("config.yaml", "data:\n", "data: [\n"), "settings", "is not YAML")
    old = "custom_reward_function"
    reward = config({old: {"path": "mine.py"}})
    yield Mistake(f"old {old}", reward, "settings", f"{old} is an old name")
    batch = config({f"{ACTOR}.ppo_mini_batch_size": 16})
    least = "must be >="
    yield Mistake("a batch that verl rejects", batch, "settings", least, needs_verl=True, also=("sizes",))
    yield Mistake("no loop", delete("agent_loop.yaml"), "loop", "cannot read")
    form = replace("agent_loop.yaml", "_target_", "target")
    yield Mistake("loop of another form", form, "loop", "should hold a list")
    yield Mistake("loop of another name", loop({"name": "mine"}), "loop", "selects 'gym_env'")
    none = config({f"{ROLLOUT}.agent.default_agent_loop": None})
    yield Mistake("loop not selected", none, "loop", "plays no environment")
    yield Mistake("earlier episodes", episodes, "checkpoints", "reports will mix both", "warning")
    last = "latest_checkpointed_iteration.txt"
    unnamed = both(checkpoint, delete(f"checkpoints/{last}"))
    yield Mistake(f"no {last}", unnamed, "checkpoints", f"no {last}: verl starts from step 1", "warning")


def further_rows() -> Iterator[Mistake]:
    def of_rows(text: str, make: Callable[[Path], object], check: str, finding: str, **more: Any) -> Mistake:
        return Mistake(text, make, check, finding, rows=True, **more)

    def each(change: Callable[[dict[str, Any]], object], part: str = "train") -> Callable[[Path], object]:
        return rows(part, lambda read: [change(row) for row in read])

    yield of_rows("no data", delete("data/train.parquet"), "data", "cannot read")
    no_parquet = lambda folder: (folder / "data/val.parquet").write_text("x")  # noqa: E731
    yield of_rows("not Parquet", no_parquet, "data", "cannot read")
    yield of_rows("too few rows", rows("train", lambda read: read.pop()), "data", "train has 7 rows")
    unnamed = each(lambda row: row.pop("agent_name"), "val")
    yield of_rows("no agent_name", unnamed, "data", "no agent_name")
    text = each(lambda row: row.update(prompt="Craft it."))
    yield of_rows("prompt is text", text, "data", "data/train.parquet, row 0: prompt should be a list")
    no_task = each(lambda row: row["extra_info"].pop("interaction_kwargs"))
    yield of_rows("no interaction_kwargs", no_task, "data", "should hold interaction_kwargs")
    unscored = each(lambda row: row["reward_model"].pop("ground_truth"))
    yield of_rows("no ground truth", unscored, "data", "ground_truth")
    other_loop = each(lambda row: row.update(agent_name="single_turn_agent"))
    yield of_rows("a loop that plays nothing", other_loop, "loop", "plays no environment")
    tools = rows("train", lambda read: read[0].update(agent_name="tool_agent"))
    yield of_rows("tools without interaction", tools, "loop", "no interaction is set")
    turns = row("val", env_kwargs='{"max_turns": -1}')
    yield of_rows("wrong option", turns, "environment", "max_turns=-1")
    half = row("train", 4, reset_options="{")
    where = "data/train.parquet, row 4: reset_options='{' is not JSON"
    yield of_rows("not JSON", half, "environment", where)
    down = row("val", env_kwargs='{"server": "http://127.0.0.1:9"}')
    yield of_rows("server down", down, "server", "could not connect", also=("environment",))
    yield of_rows("wrong server", another_environment, "environment", "BabyAI", also=("server",))
    short = config({"data.max_prompt_length": 20})
    yield of_rows("max_prompt_length: 20", short, "prompt length", "and 20 are allowed", status="warning")


def interactions() -> Iterator[Mistake]:
    def mistake(text: str, make: Callable[[Path], object], check: str, finding: str, **more: Any) -> Mistake:
        return Mistake(text, make, check, finding, version="0.7", interaction=True, **more)

    limit = config({f"{ROLLOUT}.multi_turn.max_assistant_turns": 1})
    yield mistake("max_assistant_turns: 1", limit, "loop", "leaves no turn")
    yield mistake("no scorer", config({"reward.custom_reward_function.path": None}), "reward", "no scorer")
    name = replace("interaction.yaml", "name: gym_env", "name: mine")
    yield mistake("another interaction", name, "loop", "select the interaction 'gym_env'", rows=True)
    form = replace("interaction.yaml", "class_name", "_target_")
    yield mistake("interaction of another form", form, "loop", "name and class_name under interaction")
    turns = "max_turns: 20\n"
    rewards = replace("interaction.yaml", turns, f"{turns}      turn_rewards: true\n")
    unknown = {"also": ("import", "model")}  # verl makes the interaction, and its PPO has a critic
    for estimator in ("gae", "grpo"):
        make = both(rewards, config({ESTIMATOR: estimator}))
        text = f"turn_rewards of an interaction with {estimator}"
        yield mistake(text, make, "credit", "no turn_rewards", with_verl=unknown)


MISTAKES = tuple(mistakes())
MORE_MISTAKES = tuple(further_mistakes())
