"""Every recipe composes by the verl that is installed, which knows each of its settings."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from importlib import metadata

import pyarrow.parquet as pq
import pytest

import inside_bridge
import needs
import programs
from chat_templates import FAMILIES, tokenizer_of
from check_mistakes import config
from checked import checked, write_tasks
from recipe_choices import GROUPED, TEXTCRAFT, of_verl
from verl_run import compose_all

pytest.importorskip("verl", reason=needs.reason("verl"))

from verl_bridge.recipes import (
    ALGORITHMS,
    LIKE,
    VERSIONS,
    RlRecipe,
    check,
    published_by,
    seeded,
    write,
    write_rows,
)

INSTALLED = metadata.version("verl")
MINOR = ".".join(INSTALLED.split(".")[:2])
CHOICES = {"-".join(map(str, choices.values())): choices for choices in of_verl(MINOR)}
# Of environments with the same settings, whose values differ, one.
PAPERS = [
    *{
        (like, *paper.settings): (like, env, "full")
        for like in LIKE
        for env, paper in published_by(like).items()
    }.values()
]
PAPERS += [(like, next(iter(published_by(like))), preset) for like in LIKE for preset in ("test", "train")]
DEFAULTS = {"algorithm": "grpo", "engine": "sglang", "integration": "agent-loop"}
ENVIRONMENT = programs.environment()
NO_ENGINE = r"None|ValueError: vllm version None not supported"

pytestmark = pytest.mark.skipif(MINOR not in VERSIONS, reason=f"recipes are not written for {INSTALLED}")


def recipe(**choices):
    return RlRecipe(verl=MINOR, **{"env_id": TEXTCRAFT, **choices})


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    """What verl makes of the folder of every choice and paper; one process composes all."""
    place = tmp_path_factory.mktemp("recipes")
    recipes = {name: recipe(**choices) for name, choices in CHOICES.items()}
    for like, env, preset in PAPERS:
        recipes[like, env, preset] = recipe(env_id=f"agentgym_gym:{env}", like=like, preset=preset)
    folders = {name: place / str(number) for number, name in enumerate(recipes)}
    for name, folder in folders.items():
        write(recipes[name], folder)
    return compose_all(folders)


@pytest.mark.parametrize("name", [*CHOICES, *PAPERS], ids=str)
def test_nothing_is_wrong_with_it(composed, monkeypatch, name):
    """Whatever needs the engine is skipped, with the engine's name."""
    folder, answer = composed[name]
    inside_bridge.take_composed(monkeypatch, {folder: answer})
    findings, _ = check(folder)
    wrong = {each.check for each in findings if each.status == "problem"}
    assert wrong <= {"data"}, findings  # which is not written here
    assert [each.status for each in findings if each.check == "numbers"] == ["ok"], findings
    assert any("composes them and has each one" in each.text for each in findings)
    absent = {
        each.text.split(" is not installed")[0]
        for each in findings
        if each.status == "skipped" and "is not installed here" in each.text
    }
    choices = CHOICES.get(name, {})
    needed = {"vllm": "lora" in choices and choices.get("engine") == "vllm"}
    needed["cupy"] = choices.get("trainer") == "separate_async"
    assert absent & set(needed) == {
        each for each in needed if needed[each] and importlib.util.find_spec(each) is None
    }


@pytest.mark.parametrize("name", CHOICES)
def test_verl_composes_it_and_knows_all_of_it(composed, name):
    folder, answer = composed[name]
    choices = DEFAULTS | CHOICES[name]
    algorithm, preset = choices["algorithm"], choices["preset"]
    interaction = choices["integration"] == "interaction"
    assert (answer["error"], answer["unknown"]) == (None, [])
    # verl asks for the version of the engine, which is not installed here.
    assert re.match(NO_ENGINE if "lora" in choices else "None", str(answer["refused"]))
    names = ["agent loop gym_env", *["interaction gym_env", "reward pkg://verl_bridge.reward"] * interaction]
    assert answer["classes"] == dict.fromkeys(names)
    config = answer["config"]
    actor, rollout = config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["rollout"]
    assert config["algorithm"]["adv_estimator"] == ALGORITHMS[algorithm]
    assert rollout["name"] == choices["engine"]
    grouped = algorithm in GROUPED
    batch = {"test": 8, "full": 128, "train": 32 if grouped else 256}[preset]
    assert config["data"]["train_batch_size"] == batch
    assert config["trainer"]["total_epochs"] == {"test": 1, "full": 15, "train": 300}[preset]
    groups = {"test": 2, "full": 4, "train": 8}[preset] if grouped else 1
    assert (rollout["n"], actor["rollout_n"]) == (groups, groups)
    assert actor["use_kl_loss"] is (choices.get("kl_coef") != 0)
    if actor["use_kl_loss"]:
        assert (actor["kl_loss_coef"], actor["kl_loss_type"]) == (1e-3, "low_var_kl")
    if MINOR == "0.9":
        assert config["trainer"]["use_v1"] is (algorithm != "remax")
    if "offload" in choices:
        assert actor["fsdp_config"]["param_offload"] is choices["offload"]
    assert config["data"]["train_files"] == f"{folder}/data/train.parquet"
    assert rollout["agent"]["agent_loop_config_path"] == f"{folder}/agent_loop.yaml"
    assert rollout["agent"]["default_agent_loop"] == ("tool_agent" if interaction else "gym_env")
    assert config["reward"]["custom_reward_function"]["path"] == (
        "pkg://verl_bridge.reward" if interaction else None
    )
    assert rollout["response_length"] == config["data"]["max_response_length"]


@pytest.mark.parametrize("name", CHOICES)
def test_an_option_is_composed(composed, name):
    folder, answer = composed[name]
    choices = DEFAULTS | CHOICES[name]
    preset, trainer, config = choices["preset"], choices.get("trainer"), answer["config"]
    actor, rollout = config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["rollout"]
    model = config["actor_rollout_ref"]["model"]
    assert model["path"] == choices.get("model", "Qwen/Qwen2.5-3B-Instruct")
    if choices["algorithm"] in {"ppo", "turn_ppo"}:
        critic = config["critic"]
        assert critic["model"]["path"] == model["path"]
        assert critic["ppo_micro_batch_size_per_gpu"] == (None if preset == "train" else 2)
        engine = critic["model"]["fsdp_config"] if MINOR == "0.7" else critic["fsdp"]
        assert "offload" not in choices or engine["optimizer_offload"] is choices["offload"]
    assert model["lora_rank"] == choices.get("lora", 0)
    if "lora" in choices:
        assert (model["lora_alpha"], model["target_modules"]) == (choices["lora"], "all-linear")
        assert (rollout["load_format"], rollout["layered_summon"]) == ("safetensors", True)
        assert actor["optim"]["lr"] == 3e-5
    else:
        assert actor["optim"]["lr"] == (1e-6 if preset == "train" else 5e-7)
    correction = config["algorithm"]["rollout_correction"]
    if "rollout_correction" in choices or trainer:
        assert rollout["calculate_log_probs"] is True
        assert (correction["rollout_is"], correction["rollout_is_threshold"]) == ("token", 2.0)
        assert correction["bypass_mode"] is False
    else:
        assert correction["rollout_is"] is None
    groups = config["algorithm"].get("filter_groups") or {"enable": False}
    assert groups["enable"] is choices.get("filter_groups", False)
    assert not groups["enable"] or groups["metric"] == "reward"
    if trainer:
        assert config["trainer"]["v1"]["trainer_mode"] == trainer
    if trainer == "separate_async":
        updates = config["trainer"]["v1"][trainer]["parameter_sync_step"]
        assert config["data"]["train_batch_size"] == updates * actor["ppo_mini_batch_size"]
        nodes, gpus = choices.get("nodes", 1), choices.get("gpus", 4)
        split = (1, gpus // 2) if nodes == 1 else (nodes // 2, gpus)  # the same for both kinds of GPUs
        for group in (config["trainer"], rollout):
            assert (group["nnodes"], group["n_gpus_per_node"]) == split
        assert rollout["standalone_gpu_memory_utilization"] > rollout["gpu_memory_utilization"]
    elif "nodes" in choices:
        assert config["trainer"]["nnodes"] == choices["nodes"]
    thinking = choices.get("thinking", "off") if "model" in choices else None
    switch = {"enable_thinking": False} if thinking == "off" else {}
    assert config["data"]["apply_chat_template_kwargs"] == switch
    loop = (folder / "agent_loop.yaml").read_text()
    assert ("hide_reasoning: true" in loop) is (thinking == "hide")
    assert ("max_tokens_per_turn: 2048" in loop) is (thinking in {"hide", "keep"})
    assert config["data"]["seed"] == choices.get("seed")


@pytest.mark.parametrize("name", CHOICES)
def test_the_loss_and_the_lengths_on_gpus_are_composed(composed, name):
    choices, config = DEFAULTS | CHOICES[name], composed[name][1]["config"]
    actor, rollout = config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["rollout"]
    loss = choices.get("policy_loss", "vanilla")
    assert actor["policy_loss"]["loss_mode"] == ("vanilla" if loss == "clip-higher" else loss)
    low, high = {"gspo": (3e-4, 4e-4), "clip-higher": (0.2, 0.28), "cispo": (10, 0.2)}.get(loss, (0.2, 0.2))
    assert (actor["clip_ratio_low"], actor["clip_ratio_high"]) == (low, high)
    share = choices.get("sequence_parallel", 1)
    sharing = [actor, config["actor_rollout_ref"]["ref"]]
    if choices["algorithm"] == "ppo":
        sharing.append(
            config["critic"]["model"]["fsdp_config"] if MINOR == "0.7" else config["critic"]["fsdp"]
        )
    assert [group["ulysses_sequence_parallel_size"] for group in sharing] == [share] * len(sharing)
    assert choices.get("fused_kernels") in {None, config["actor_rollout_ref"]["model"]["use_fused_kernels"]}
    needed = config["data"]["max_prompt_length"] + config["data"]["max_response_length"]
    assert rollout["max_model_len"] == needed + (choices["engine"] == "sglang")


@pytest.mark.parametrize("name", PAPERS, ids="-".join)
def test_published_settings_compose(composed, name):
    _, answer = composed[name]
    like, env, preset = name
    assert (answer["error"], answer["unknown"], answer["refused"]) == (None, [], None)
    config, paper = answer["config"], published_by(like)[env]
    actor, rollout = config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["rollout"]
    assert actor["optim"]["lr"] == 1e-6
    assert actor["kl_loss_coef"] == paper.settings["actor_rollout_ref.actor.kl_loss_coef"]
    assert actor["ppo_epochs"] == paper.get("actor_rollout_ref.actor.ppo_epochs", 1)
    batch, group = paper.settings["data.train_batch_size"], paper.settings["actor_rollout_ref.rollout.n"]
    assert config["data"]["train_batch_size"] == (8 if preset == "test" else batch)
    assert rollout["n"] == (2 if preset == "test" else group)
    steps = None if preset == "test" else paper.get("trainer.total_training_steps")
    assert config["trainer"]["total_training_steps"] == steps
    apart = ("agent_loop.", "data.max_prompt_length")
    if preset == "test":
        apart += ("data.", "trainer.", "actor_rollout_ref.rollout.n")
    settings = {key: value for key, value in paper.settings.items() if not key.startswith(apart)}
    for key, value in settings.items():
        found = config
        for part in key.split("."):
            found = found[part]
        assert found == value


@pytest.mark.skipif(MINOR == "0.7", reason="verl 0.7 has interactions")
def test_a_recipe_for_interactions_is_of_no_use_without_them(tmp_path):
    write(RlRecipe("a:b/C-v0", verl="0.7", integration="interaction"), tmp_path)
    findings, _ = check(tmp_path)
    unknown = [f for f in findings if "no setting" in f.text]
    (found,) = (f for f in unknown if "interaction_config_path" in f.text)
    assert "--integration agent-loop" in found.advice


def test_a_loop_that_is_registered_twice_is_found(tmp_path, monkeypatch):
    (tmp_path / "twice_registered.py").write_text(
        "from verl.experimental.agent_loop.agent_loop import AgentLoopBase, register\n"
        "@register('gym_env')\nclass Loop(AgentLoopBase):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "folder"
    write(recipe(), folder)
    (folder / "agent_loop.yaml").write_text(
        "- {name: gym_env, _target_: twice_registered.Loop, max_turns: 5}\n"
    )
    findings, _ = check(folder)
    (found,) = (f for f in findings if f.check == "import")
    assert found.status == "problem"
    assert "@register" in found.text


def test_prompts_are_measured_by_the_models_own_tokenizer(tmp_path, textcraft_url, monkeypatch):
    tokenizers = pytest.importorskip("tokenizers", reason=needs.reason("tokenizers"))
    transformers = pytest.importorskip("transformers", reason=needs.reason("transformers"))
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0, "<": 1}, "?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?")  # noqa: S106
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    model = tmp_path / "model"
    tokenizer.save_pretrained(model)
    (model / "config.json").write_text('{"max_position_embeddings": 4096}')
    (model / "model.safetensors").touch()  # the weights are not read
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", textcraft_url)
    folder = tmp_path / "folder"
    write(recipe(model=str(model)), folder)
    write_rows(folder / "data/train.parquet", seeded(TEXTCRAFT, range(8), "word " * 100))
    write_rows(folder / "data/val.parquet", seeded(TEXTCRAFT, range(8, 10), "word " * 100))
    findings, _ = check(folder)
    (prompt,) = (f for f in findings if f.check == "prompt length")
    first = pq.read_table(folder / "data/train.parquet").to_pylist()[0]
    assert first["prompt"][0]["content"] == "word " * 100
    assert prompt.status == "ok"
    (length,) = (int(word) for word in prompt.text.split() if word.isdigit() and word != "2048")
    assert 100 < length < 500
    (found,) = (f for f in findings if f.check == "model")
    assert (found.status, "4096" in found.text) == ("problem", True)
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("max_prompt_length: 2048", "max_prompt_length: 110"))
    findings, _ = check(folder)
    (prompt,) = (f for f in findings if f.check == "prompt length")
    assert prompt.status == "problem"


@pytest.mark.parametrize(
    ("name", "interaction", "status", "text"),
    [
        ("phi 3", False, "ok", "supports continuing"),
        (
            "gemma",
            False,
            "warning",
            "put into the first user message, because .* rejects messages of system",
        ),
        ("gemma", True, "problem", "verl's own loop cannot start with it"),
        ("refuses", False, "problem", "rejects messages of user"),
    ],
)
def test_the_chat_template_is_checked_as_training_will_use_it(name, interaction, status, text, tmp_path):
    made = tokenizer_of(FAMILIES["gemma" if name == "refuses" else name])
    if name == "refuses":
        made.chat_template = "{{ raise_exception('no') }}"
    model = tmp_path / "model"
    made.save_pretrained(model)
    (model / "config.json").write_text('{"max_position_embeddings": 100000}')
    folder = write_tasks(
        tmp_path / "run", "counting_env:bridge/Count-v0", interaction=interaction, max_turns=2
    )
    config({"actor_rollout_ref.model.path": str(model)})(folder)
    findings = checked(folder, "chat template", "prompt length")
    assert any(
        f.status == status and re.search(text, f.text) for f in findings if f.check == "chat template"
    ), findings
    assert [f.status for f in findings if f.check == "prompt length"] == ["ok"] * (status != "problem")


def test_the_script_hands_the_settings_to_verl(tmp_path):
    """As far as a machine without a GPU goes: verl's own main prints what it would train by."""
    folder = tmp_path / "a folder"
    write(recipe(preset="full"), folder)
    ended = subprocess.run(
        ["bash", str(folder / "run.sh"), "trainer.total_epochs=3", "--cfg", "job"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        cwd="/",
        env=ENVIRONMENT | {"PYTHON": sys.executable, "WANDB_API_KEY": "x"},
    )
    assert ended.returncode == 0, ended.stderr[-3_000:]
    assert f"folder: {folder} " in " ".join(ended.stdout.split()) + " "  # long lines are broken
    assert "total_epochs: 3" in ended.stdout
    assert "train_batch_size: 128" in ended.stdout
    assert "  - wandb" in ended.stdout


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, each in CHOICES.items()
        if {"algorithm", "integration"} <= set(each) and each["preset"] == "train"
    ],
)
def test_preset_train_fills_micro_batches_by_tokens(composed, name):
    """At least one whole episode in each: verl stops at a longer one."""
    _, answer = composed[name]
    config = answer["config"]
    of = config["actor_rollout_ref"]
    episode = config["data"]["max_prompt_length"] + config["data"]["max_response_length"]
    assert of["actor"]["use_dynamic_bsz"] is True
    limits = [
        of["actor"]["ppo_max_token_len_per_gpu"],
        of["rollout"]["log_prob_max_token_len_per_gpu"],
        of["ref"]["log_prob_max_token_len_per_gpu"],
    ]
    assert of["rollout"]["log_prob_use_dynamic_bsz"] is of["ref"]["log_prob_use_dynamic_bsz"] is True
    if CHOICES[name]["algorithm"] in {"ppo", "turn_ppo"}:
        critic = config["critic"]
        assert critic["use_dynamic_bsz"] is True
        limits += [critic["ppo_max_token_len_per_gpu"], critic["forward_max_token_len_per_gpu"]]
    assert min(limits) >= episode
    assert of["actor"]["loss_agg_mode"] == "seq-mean-token-mean"
    assert config["trainer"]["total_training_steps"] == 300
    assert config["trainer"]["save_freq"] == config["trainer"]["test_freq"] == 25
    assert config["trainer"]["max_actor_ckpt_to_keep"] is None
    val = of["rollout"]["val_kwargs"]
    assert (val["do_sample"], val["temperature"], val["n"]) == (True, 1.0, 1)
    assert config["trainer"]["default_local_dir"].endswith("/checkpoints")
