"""Every recipe composes by the verl that is installed, which knows each of its settings."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import inside_bridge
import needs
import programs
from chat_templates import FAMILIES, tokenizer_of
from check_mistakes import config
from checked import checked, write_tasks
from verl_run import compose_all

pytest.importorskip("verl", reason=needs.reason("verl"))

from verl_bridge.recipes import (
    ALGORITHMS,
    INTEGRATIONS,
    LIKE,
    PRESETS,
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
INTEGRATIONS_HERE = INTEGRATIONS if MINOR == "0.7" else INTEGRATIONS[:1]
ALGORITHMS_HERE = [name for name in ALGORITHMS if not (name == "remax" and MINOR == "0.7")]
ENGINES = ("sglang", "vllm")
# Each algorithm with each preset and each engine: verl takes seconds to compose one.
CHOICES = [
    (algorithm, ENGINES[(number + place) % 2], preset, integration, number % 3 > 0)
    for number, (preset, integration) in enumerate(itertools.product(PRESETS, INTEGRATIONS_HERE))
    for place, algorithm in enumerate(ALGORITHMS_HERE)
    # The interaction records no turns; the preset does not change how it is named.
    if integration == "agent-loop" or (preset == "test" and algorithm != "gigpo")
]
# Of environments with the same settings, whose values differ, one.
PAPERS = [
    *{
        (like, *paper.settings): (like, env, "full")
        for like in LIKE
        for env, paper in published_by(like).items()
    }.values()
]
PAPERS += [(like, next(iter(published_by(like))), preset) for like in LIKE for preset in ("test", "train")]
ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = programs.environment()

pytestmark = pytest.mark.skipif(MINOR not in VERSIONS, reason=f"recipes are not written for {INSTALLED}")


def recipe(**choices):
    return RlRecipe("agentgym_gym:agentgym/TextCraft-v0", verl=MINOR, **choices)


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    """What verl says of the folder of every choice; one process asks for all."""
    place = tmp_path_factory.mktemp("recipes")
    folders = {}
    for choice in CHOICES:
        algorithm, engine, preset, integration, spare = choice
        folders[choice] = place / "-".join(map(str, choice))
        made = recipe(
            algorithm=algorithm,
            engine=engine,
            preset=preset,
            integration=integration,
            offload=spare,
            checkpointing=spare,
        )
        write(made, folders[choice])
    for choice in PAPERS:
        like, env, preset = choice
        folders[choice] = place / "-".join((like, env.rpartition("/")[2], preset))
        write(RlRecipe(f"agentgym_gym:{env}", verl=MINOR, like=like, preset=preset), folders[choice])
    return compose_all(folders)


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: "-".join(map(str, choice)))
def test_verl_composes_it_and_knows_all_of_it(composed, choice):
    folder, answer = composed[choice]
    algorithm, engine, preset, integration, spare = choice
    assert answer["error"] is None
    assert answer["unknown"] == []
    assert answer["refused"] is None
    config = answer["config"]
    actor, rollout = config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["rollout"]
    assert config["algorithm"]["adv_estimator"] == ALGORITHMS[algorithm]
    assert rollout["name"] == engine
    grouped = algorithm in {"grpo", "rloo", "gigpo"}
    batch = {"test": 8, "full": 128, "train": 32 if grouped else 256}[preset]
    assert config["data"]["train_batch_size"] == batch
    assert config["trainer"]["total_epochs"] == {"test": 1, "full": 15, "train": 300}[preset]
    groups = {"test": 2, "full": 4, "train": 8}[preset] if grouped else 1
    assert (rollout["n"], actor["rollout_n"]) == (groups, groups)
    assert actor["optim"]["lr"] == (1e-6 if preset == "train" else 5e-7)
    assert (actor["use_kl_loss"], actor["kl_loss_coef"], actor["kl_loss_type"]) == (True, 1e-3, "low_var_kl")
    if MINOR == "0.9":
        assert config["trainer"]["use_v1"] is (algorithm != "remax")
    assert actor["fsdp_config"]["param_offload"] is spare
    assert config["data"]["train_files"] == f"{folder}/data/train.parquet"
    assert rollout["agent"]["agent_loop_config_path"] == f"{folder}/agent_loop.yaml"
    interaction = integration == "interaction"
    assert rollout["agent"]["default_agent_loop"] == ("tool_agent" if interaction else "gym_env")
    assert config["reward"]["custom_reward_function"]["path"] == (
        "pkg://verl_bridge.reward" if interaction else None
    )
    assert rollout["response_length"] == config["data"]["max_response_length"]


@pytest.mark.parametrize("choice", PAPERS, ids="-".join)
def test_published_settings_compose(composed, choice):
    _, answer = composed[choice]
    like, env, preset = choice
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


@pytest.mark.skipif(MINOR != "0.7", reason="verl 0.8 and later can do it")
def test_remax_is_refused_with_the_reason(tmp_path):
    with pytest.raises(ValueError, match="cannot do ReMax"):
        recipe(algorithm="remax")


def test_without_kl_there_is_no_reference(tmp_path):
    write(recipe(kl_coef=0), tmp_path)
    text = (tmp_path / "config.yaml").read_text()
    assert "use_kl_loss: false" in text
    assert not re.search(r"^  ref:", text, re.MULTILINE)


def test_ppo_has_a_critic_of_the_same_model(composed):
    for (algorithm, _, preset, *_, spare), (_, answer) in (
        (choice, answer) for choice, answer in composed.items() if len(choice) > 3
    ):
        if algorithm == "ppo":
            critic = answer["config"]["critic"]
            assert critic["model"]["path"] == "Qwen/Qwen2.5-3B-Instruct"
            assert critic["ppo_micro_batch_size_per_gpu"] == (None if preset == "train" else 2)
            engine = critic["model"]["fsdp_config"] if MINOR == "0.7" else critic["fsdp"]
            assert engine["optimizer_offload"] is spare


@pytest.mark.skipif(MINOR != "0.7", reason="verl 0.8 deleted interactions")
def test_what_the_interaction_names_is_there(composed):
    seen = [
        answer["classes"]
        for (*_, integration, _), (_, answer) in composed.items()
        if integration == "interaction"
    ]
    assert seen
    for classes in seen:
        assert set(classes) == {
            "agent loop gym_env",
            "interaction gym_env",
            "reward pkg://verl_bridge.reward",
        }
        assert set(classes.values()) == {None}


def test_the_agent_loop_is_there(composed):
    classes = [
        answer["classes"]
        for (*_, integration, _), (_, answer) in composed.items()
        if integration == "agent-loop"
    ]
    assert classes == [{"agent loop gym_env": None}] * len(classes)


def test_an_unknown_setting_is_found(tmp_path, monkeypatch):
    """By a process that imports verl, as everywhere else."""
    inside_bridge.compose_by(monkeypatch, subprocess.run)
    write(recipe(), tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text().replace("train_batch_size", "train_batchsize"))
    findings, _ = check(tmp_path)
    (found,) = (f for f in findings if "train_batchsize" in f.text)
    assert found.status == "problem"


def test_what_verl_refuses_is_found(tmp_path):
    write(recipe(), tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text().replace("ppo_mini_batch_size: 8", "ppo_mini_batch_size: 16"))
    findings, _ = check(tmp_path)
    refused = [f for f in findings if f.text.startswith(f"verl {INSTALLED} rejects")]
    assert len(refused) == 1
    assert "must be >=" in refused[0].text


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
    env_id = "agentgym_gym:agentgym/TextCraft-v0"
    write(recipe(model=str(model)), folder)
    write_rows(folder / "data/train.parquet", seeded(env_id, range(8), "word " * 100))
    write_rows(folder / "data/val.parquet", seeded(env_id, range(8, 10), "word " * 100))
    findings, view = check(folder)
    (prompt,) = (f for f in findings if f.check == "prompt length")
    first = next(iter(view.rows["train"]))
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


NO_ENGINE = r"None|ValueError: vllm version None not supported"
OPTIONS = {
    "off": {"model": "Qwen/Qwen3-4B"},
    "hide": {"model": "Qwen/Qwen3-4B-Thinking-2507"},
    "keep": {"model": "Qwen/Qwen3-4B", "thinking": "keep"},
    "lora": {"lora": 32, "engine": "vllm"},
    "lora, sglang": {"lora": 16},
    "lora, ppo": {"lora": 16, "engine": "vllm", "algorithm": "ppo"},
    "correction": {"rollout_correction": True},
    "colocate_async": {"trainer": "colocate_async"},
    "separate_async": {"trainer": "separate_async"},
    "all": {
        "model": "Qwen/Qwen3-8B",
        "lora": 32,
        "engine": "vllm",
        "rollout_correction": True,
        "thinking": "hide",
        "seed": 3,
        "gpu_memory": 48,
    },
}


@pytest.fixture(scope="module")
def options_composed(tmp_path_factory):
    """What verl says of preset train with each option, or why it was refused."""
    place, folders, refused = tmp_path_factory.mktemp("options"), {}, {}
    for number, (name, options) in enumerate(OPTIONS.items()):
        try:
            write(recipe(preset="train", gpus=8, **options), place / str(number))
        except ValueError as error:
            refused[name] = str(error)
        else:
            folders[name] = place / str(number)
    return compose_all(folders), refused


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_composes_or_is_refused_with_the_reason(options_composed, name):
    composed, refused = options_composed
    if (name, MINOR) == ("lora, sglang", "0.7"):
        assert "verl 0.7 passes no adapters to sglang: use --engine='vllm'" in refused[name]
        return
    if "trainer" in OPTIONS[name] and MINOR != "0.9":
        assert f"verl {MINOR} has no --trainer='{name}': use verl 0.9" in refused[name]
        return
    (folder, answer), options = composed[name], OPTIONS[name]
    assert (answer["error"], answer["unknown"]) == (None, [])
    # verl asks for the engine's version, which is not installed here.
    assert re.match(NO_ENGINE if "lora" in options else "None", str(answer["refused"]))
    config = answer["config"]
    model, rollout = config["actor_rollout_ref"]["model"], config["actor_rollout_ref"]["rollout"]
    assert model["lora_rank"] == options.get("lora", 0)
    if "lora" in options:
        assert (model["lora_alpha"], model["target_modules"]) == (options["lora"], "all-linear")
        assert (rollout["load_format"], rollout["layered_summon"]) == ("safetensors", True)
        assert config["actor_rollout_ref"]["actor"]["optim"]["lr"] == 3e-5
    correction = config["algorithm"]["rollout_correction"]
    if "rollout_correction" in options or "trainer" in options:
        assert rollout["calculate_log_probs"] is True
        assert (correction["rollout_is"], correction["rollout_is_threshold"]) == ("token", 2.0)
        assert correction["bypass_mode"] is False
    else:
        assert correction["rollout_is"] is None
    if "trainer" in options:
        assert config["trainer"]["v1"]["trainer_mode"] == options["trainer"]
        assert config["trainer"]["use_v1"] is True
    if name == "separate_async":
        updates = config["trainer"]["v1"]["separate_async"]["parameter_sync_step"]
        mini = config["actor_rollout_ref"]["actor"]["ppo_mini_batch_size"]
        assert config["data"]["train_batch_size"] == updates * mini
        assert (config["trainer"]["n_gpus_per_node"], rollout["n_gpus_per_node"], rollout["nnodes"]) == (
            4,
            4,
            1,
        )
    switch = {"enable_thinking": False} if name == "off" else {}
    assert config["data"]["apply_chat_template_kwargs"] == switch
    loop = (folder / "agent_loop.yaml").read_text()
    assert ("hide_reasoning: true" in loop) is (name in {"hide", "all"})
    assert ("max_tokens_per_turn: 2048" in loop) is (name in {"hide", "keep", "all"})
    assert config["data"]["seed"] == options.get("seed")


@pytest.mark.parametrize("algorithm", ALGORITHMS_HERE)
def test_preset_train_fills_micro_batches_by_tokens(composed, algorithm):
    """At least one whole episode in each: verl stops at a longer one."""
    choice = next(each for each in CHOICES if (each[0], *each[2:4]) == (algorithm, "train", "agent-loop"))
    _, answer = composed[choice]
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
    if algorithm == "ppo":
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
