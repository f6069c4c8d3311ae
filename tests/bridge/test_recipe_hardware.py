"""Recipes for GPUs: nodes and their scripts, sequence parallelism, fused kernels, lengths of the engine."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess

import pytest
import yaml

from checked import checked
from number_mistakes import NumberMistake
from verl_bridge.recipes import VERSIONS, RlRecipe, write
from verl_bridge.recipes._amount import amount_of, describe

CRAFT = "agentgym_gym:agentgym/TextCraft-v0"
SCRIPTS = ("run.sh", "submit.sh", "slurm.sh")


def recipe(**choices):
    return RlRecipe(CRAFT, **{"preset": "train", **choices})


@pytest.fixture
def settings(tmp_path):
    """Returns the settings that are written for choices."""

    def written(**choices):
        write(recipe(**choices), tmp_path, force=True)
        return yaml.safe_load((tmp_path / "config.yaml").read_text())

    return written


@pytest.fixture
def model(tmp_path):
    """Returns a folder with the configuration of a model of 1.5B with 12 attention heads and 2 key heads."""

    def made(**changes):
        config = {
            "hidden_size": 1_536,
            "num_hidden_layers": 28,
            "num_attention_heads": 12,
            "num_key_value_heads": 2,
            "vocab_size": 151_936,
            "intermediate_size": 8_960,
            "model_type": "qwen2",
        }
        folder = tmp_path / "model"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config | changes))
        return str(folder)

    return made


def estimate_of(**choices):
    """Returns the lines that `init` prints about memory."""
    made = recipe(**choices)
    return "\n".join(describe(made, amount_of(made, 96, 96)))


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_are_written_only_for_several(settings, version):
    assert "nnodes" not in settings(verl=version, gpus=8)["trainer"]
    trainer = settings(verl=version, gpus=8, nodes=2)["trainer"]
    assert (trainer["nnodes"], trainer["n_gpus_per_node"]) == (2, 8)


def test_the_gpus_of_all_nodes_share_the_model():
    one, two = (recipe(gpus=8, nodes=nodes).sizing for nodes in (1, 2))
    assert (one.gpus, two.gpus) == (8, 16)


def test_a_copy_of_the_model_in_the_engine_stays_on_a_node(settings):
    choices = {"model": "Qwen/Qwen2.5-72B-Instruct", "gpus": 4, "nodes": 4}
    assert settings(**choices)["actor_rollout_ref"]["rollout"]["tensor_model_parallel_size"] == 4


def test_of_several_nodes_each_trains_or_generates(settings):
    written = settings(trainer="separate_async", nodes=4, gpus=4, rollout_gpus=8)
    trainer, rollout = written["trainer"], written["actor_rollout_ref"]["rollout"]
    assert (trainer["nnodes"], trainer["n_gpus_per_node"]) == (2, 4)
    assert (rollout["nnodes"], rollout["n_gpus_per_node"]) == (2, 4)


def test_engines_on_gpus_of_their_own_get_what_fits_there(settings):
    def shares(**choices):
        rollout = settings(trainer="separate_async", gpus=8, **choices)["actor_rollout_ref"]["rollout"]
        return rollout["gpu_memory_utilization"], rollout["standalone_gpu_memory_utilization"]

    shared, separate = shares(model="Qwen/Qwen2.5-7B-Instruct", offload=False)
    assert shared < separate == 0.85  # 68 of 80 GB, with 6 GB for CUDA and NCCL, and 5 % left free
    assert shares(gpu_memory=141)[1] == 0.9


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"nodes": 2, "gpus": 3}, "nodes times gpus=6 does not divide"),
        (
            {"nodes": 2, "gpus": 4, "trainer": "separate_async", "rollout_gpus": 2},
            "rollout_gpus=2 should be a multiple of gpus=4",
        ),
        ({"nodes": 2, "env_kwargs": {"server": "http://localhost:36001"}}, "is a loopback address"),
        (
            {"nodes": 2, "env_kwargs": {"server": ["http://10.0.0.1:36001", "http://127.0.0.2:36001"]}},
            "server='http://127.0.0.2:36001' is a loopback address",
        ),
        ({"sequence_parallel": 3}, "does not divide the 4 GPUs"),
        ({"sequence_parallel": 4, "trainer": "separate_async"}, "does not divide the 2 GPUs"),
        ({"fused_kernels": True, "verl": "0.7"}, "use verl 0.8 or 0.9"),
    ],
)
def test_contradicting_choices_are_errors(choices, message):
    with pytest.raises(ValueError, match=message):
        recipe(**choices)


def test_one_node_reaches_its_loopback_address():
    recipe(env_kwargs={"server": "http://127.0.0.1:36001"})
    recipe(env_kwargs={"server": "http://10.0.0.1:36001"}, nodes=2)


@pytest.mark.parametrize(
    ("variable", "env_kwargs", "found"),
    [
        ("http://127.0.0.1:36001", {}, "http://127.0.0.1:36001 of AGENTGYM_TEXTCRAFT_URL"),
        ("http://127.0.0.1:36001", {"server": "http://10.0.0.1:36001"}, ""),
        ("http://10.0.0.1:36001", {}, ""),
    ],
)
def test_a_variable_may_name_a_loopback_address(monkeypatch, tmp_path, variable, env_kwargs, found):
    """`run.sh` sends the variable to all nodes."""
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", variable)
    mistake = NumberMistake({"trainer.nnodes": 2}, "", env_kwargs=env_kwargs)
    said = " ".join(each.text for each in checked(mistake.make(tmp_path / "run"), "numbers", timeout=1))
    assert (f"server={found} is a loopback address" in said) == bool(found), said


def test_sequences_are_divided_by_the_heads_of_the_model(model):
    for share in (2, 4):
        recipe(model=model(), gpus=8, sequence_parallel=share)
    with pytest.raises(ValueError, match="12 attention heads"):
        recipe(model=model(), gpus=8, sequence_parallel=8)
    with pytest.raises(ValueError, match="3 key heads"):
        recipe(model=model(num_key_value_heads=3), gpus=8, sequence_parallel=2)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_policy_and_the_critic_share_sequences(settings, version):
    written = settings(verl=version, algorithm="ppo", sequence_parallel=2)
    critic = written["critic"]["model"]["fsdp_config"] if version == "0.7" else written["critic"]["fsdp"]
    assert written["actor_rollout_ref"]["actor"]["ulysses_sequence_parallel_size"] == 2
    assert critic["ulysses_sequence_parallel_size"] == 2


def test_gpus_that_share_a_sequence_need_memory_for_a_part_of_it(settings):
    """verl multiplies the token limit of a GPU by the GPUs that share a sequence."""
    choices = {"model": "Qwen/Qwen2.5-7B-Instruct", "gpu_memory": 40, "fused_kernels": False}
    whole, part = (settings(**choices, sequence_parallel=share) for share in (1, 4))
    data = whole["data"]
    longest = data["max_prompt_length"] + data["max_response_length"]
    limits = [written["actor_rollout_ref"]["actor"]["ppo_max_token_len_per_gpu"] for written in (whole, part)]
    assert limits[0] >= longest
    assert longest <= 4 * limits[1]
    assert limits[1] < longest
    assert (
        "does not fit by this estimate; use more --gpus, --lora 32, fewer --turns, --sequence-parallel 2"
        in estimate_of(**choices)
    )
    assert "does not fit" not in estimate_of(**choices, sequence_parallel=4)


def test_fused_kernels_are_chosen_where_whole_logits_leave_no_room(settings):
    def fused(**choices):
        model = settings(**choices)["actor_rollout_ref"]["model"]
        return model.get("use_fused_kernels", False)

    small = {"gpu_memory": 40}
    assert not fused()
    assert "two episodes fit" in estimate_of()
    assert fused(**small)
    assert "whole ones would need offload" in estimate_of(**small)
    assert not fused(**small, fused_kernels=False)
    assert "--no-fused-kernels" in estimate_of(**small, fused_kernels=False)
    assert fused(fused_kernels=True)
    assert not fused(**small, preset="test")


def test_fused_kernels_are_chosen_only_for_models_whose_logits_are_plain(settings, model):
    small = {"gpu_memory": 24, "gpus": 2}
    assert settings(**small, model=model())["actor_rollout_ref"]["model"]["use_fused_kernels"] is True
    capped = model(model_type="gemma2")
    assert "use_fused_kernels" not in settings(**small, model=capped)["actor_rollout_ref"]["model"]
    assert "not known to fit" in estimate_of(**small, model=capped)
    for name in ("google/gemma-2-2b-it", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen2.5-VL-3B-Instruct"):
        assert not recipe(model=name).can_fuse
    for name in ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen3-4B", "meta-llama/Llama-3.1-8B"):
        assert recipe(model=name).can_fuse
    assert not recipe(sequence_parallel=2, verl="0.7").can_fuse


@pytest.mark.parametrize(("engine", "more"), [("vllm", 0), ("sglang", 1)])
@pytest.mark.parametrize("choices", [{}, {"rows": "turn", "history": "turns:4"}, {"like": "agentgym-rl"}])
def test_the_engine_has_room_for_the_longest_row(settings, engine, more, choices):
    written = settings(engine=engine, **choices)
    longest = written["data"]["max_prompt_length"] + written["data"]["max_response_length"]
    length = written["actor_rollout_ref"]["rollout"]["max_model_len"]
    assert length >= longest + more if "like" in choices else length == longest + more


@pytest.mark.parametrize("loss", ["gspo", "clip-higher", "cispo"])
@pytest.mark.parametrize("preset", ["test", "train", "full"])
def test_a_policy_loss_sets_its_clipping(settings, loss, preset):
    actor = settings(policy_loss=loss, preset=preset)["actor_rollout_ref"]["actor"]
    clip = {"gspo": (3e-4, 4e-4), "clip-higher": (0.2, 0.28), "cispo": (10.0, 0.2)}[loss]
    assert (actor["clip_ratio_low"], actor["clip_ratio_high"]) == clip
    assert actor.get("policy_loss", {}).get("loss_mode") == (None if loss == "clip-higher" else loss)
    rows = loss == "gspo" or preset == "train"
    assert actor.get("loss_agg_mode") == ("seq-mean-token-mean" if rows else None)
    assert recipe(policy_loss=loss).name != recipe().name


def test_only_several_nodes_get_scripts_to_start_ray(tmp_path):
    write(recipe(nodes=2), tmp_path)
    for name in SCRIPTS:
        subprocess.run(["bash", "-n", tmp_path / name], check=True)  # noqa: S607
        assert os.access(tmp_path / name, os.X_OK)
    assert "#SBATCH --nodes=2\n" in (tmp_path / "slurm.sh").read_text()
    assert "sbatch slurm.sh" in (tmp_path / "README.md").read_text()
    write(recipe(), tmp_path, force=True)
    assert not {"submit.sh", "slurm.sh"} & {file.name for file in tmp_path.iterdir()}
    assert "Slurm" not in (tmp_path / "README.md").read_text()


def program(path, text):
    path.write_text(f"#!/usr/bin/env bash\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def folder(tmp_path):
    """Returns a folder with spaces and quotes in its name, and the environment of its scripts."""
    folder = tmp_path / "it's a folder"
    write(recipe(nodes=2), folder)
    shows = program(tmp_path / "shows", 'printf "%s\\0" "$@"')
    urls = {"AGENTGYM_TEXTCRAFT_URL": "http://10.0.0.1:1", "AGENTGYM_TEXTCRAFT_HEADERS": "secret"}
    return folder, {"PATH": os.environ["PATH"], "PYTHON": shows, "RAY": shows, "PYTHONPATH": "it's"} | urls


def output_of(script, env, *arguments):
    ended = subprocess.run(
        ["bash", script, *arguments],  # noqa: S607
        env=env,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ended.stdout.split("\0")[:-1]


def test_all_nodes_get_the_modules_and_servers_but_no_secrets(folder):
    folder, env = folder
    given = output_of(folder / "run.sh", env, "trainer.total_epochs=2")
    sent = "++ray_kwargs.ray_init.runtime_env.env_vars."
    assert f"{sent}AGENTGYM_TEXTCRAFT_URL='http://10.0.0.1:1'" in given
    assert any(each.startswith(f"{sent}PYTHONPATH='it\\'s:") for each in given)
    assert f"{sent}VERL_USE_EXTERNAL_MODULES='verl_bridge.trainer'" in given
    assert not any("secret" in each for each in given)
    assert given[-1] == "trainer.total_epochs=2"


def test_a_job_runs_the_script_of_its_folder(folder):
    folder, env = folder
    given = output_of(folder / "submit.sh", env, "trainer.total_epochs=2")
    job, entry = given[: given.index("--")], given[given.index("--") + 1 :]
    assert job == ["job", "submit", "--address", "http://127.0.0.1:8265"]
    assert entry == [
        "env",
        f"PYTHON={env['PYTHON']}",
        "AGENTGYM_TEXTCRAFT_URL=http://10.0.0.1:1",
        "bash",
        str(folder / "run.sh"),
        "trainer.total_epochs=2",
    ]


def test_slurm_starts_ray_on_each_node_before_the_training(folder, tmp_path):
    folder, env = folder
    log = tmp_path / "log"
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    program(bin_ / "scontrol", "printf '%s\\n' first second")
    program(
        bin_ / "srun",
        'for each in "$@"; do case "$each" in --nodelist=*) node=${each#*=} ;; -*) ;; *) break ;; esac; '
        'shift; done; [[ $1 == hostname ]] && { echo "10.0.0.7 fe80::1"; exit; }\n'
        f'printf "%s %s\\n" "$node" "${{*//$\'\\n\'/ }}" >>{shlex.quote(str(log))}',
    )
    env |= {
        "PATH": f"{bin_}:{env['PATH']}",
        "SLURM_SUBMIT_DIR": str(folder),
        "SLURM_JOB_NODELIST": "nodes[1-2]",
        "RAY": "ray",
        "PYTHON": "python",
    }
    output_of(shutil.copy(folder / "slurm.sh", tmp_path / "spooled"), env, "a=1")
    lines = log.read_text().splitlines()
    assert sum("ray start" in line for line in lines) == 2
    head = next(line for line in lines if "--head" in line)
    assert head.startswith("first ray start --block --head --node-ip-address=10.0.0.7 --port=6379")
    assert any(line.startswith("second ray start --block --address=10.0.0.7:6379") for line in lines)
    assert any(line.startswith("first python -c") and line.endswith("10.0.0.7:6379 2") for line in lines)
    assert f"first env PYTHON=python bash {folder}/run.sh a=1" in lines
