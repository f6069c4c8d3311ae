"""The pages on scaling out, on migrating and on failures are true."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentgym_gym import AgentGymEnv
from agentgym_gym.errors import ServerError, ServerUnreachable, WrongServer
from agentgym_gym.testing import PROPERTIES
from doc_blocks import blocks_of, run_in_shell, run_python
from fake_server import FakeServer
from ports import reserved_ports

ROOT = Path(__file__).resolve().parents[2]
SCALE, MIGRATING, FAQ = (
    (ROOT / "docs" / name).read_text("utf-8") for name in ("scale.md", "migrating.md", "faq.md")
)

HELD_BY = {
    "The original WebShop cannot be installed": ["servers/test_webshop_official.py::test_it_is_served"],
    "An environment is not found, although it was just created": [
        "test_restarted_servers.py::test_the_environment_of_another_is_not_played"
    ],
    "`Namespace agentgym not found`": [
        "test_import.py::test_making_an_env_without_the_import_is_refused_by_gymnasium",
        "test_import.py::test_making_an_env_by_its_prefix_imports_the_library",
    ],
    "``Cannot use `vector_entry_point` vectorization mode with the wrappers argument``": [
        "test_vector.py::test_wrappers_of_each_environment_need_a_mode_of_gymnasiums",
        "test_vector.py::test_wrappers_of_a_vector_keep_the_event_loop",
    ],
    "`Too many open files`": ["test_vector.py::test_a_vector_beyond_the_limit_of_descriptors_is_named"],
    "The evaluation hangs at the last tasks": [
        "test_vector.py::test_a_dead_server_ends_one_episode_and_the_others_go_on",
        "evaluate/test_chat_faults.py::test_the_time_limit_is_a_deadline",
    ],
    "The score is 0 everywhere": [
        "test_env.py::test_a_reply_that_cannot_be_read_costs_a_turn_and_stays_here",
        "evaluate/test_metrics.py::test_unreadable_replies_are_a_share_of_all",
    ],
    'What is "score", and what is "success rate"?': ["evaluate/test_metrics.py::test_success_is_not_score"],
    "Which tasks were played? Are any repeated?": [
        "test_env.py::test_reset_returns_the_task",
        "test_env.py::test_a_seed_draws_the_same_tasks",
    ],
    "My results differ from a paper's": ["contract/test_parsers.py::test_the_parser_like_agentgyms"],
    "The run trains, but no environment is played": ["cli/test_verl_check.py::test_a_mistake_is_found"],
    "The batch sizes do not divide evenly": [
        "bridge/test_written.py::test_check_finds_nothing_in_folders_of_init"
    ],
    "Rows vanish, or the data are empty": ["cli/test_verl.py::test_check_measures_every_prompt"],
    "`Inconsistent training and inference tokenization detected`": [
        "verl/test_tokens.py::test_no_token_of_the_model_is_encoded_again"
    ],
    "`System role not supported`": [
        "verl/test_agent_loop.py::test_a_template_without_a_system_role_is_trained_on"
    ],
    "Episodes end early without a warning": [
        "verl/test_agent_loop.py::test_an_observation_that_leaves_no_room_for_a_reply_ends_the_episode",
        "bridge/test_episode_log.py::test_few_warnings_of_cut_episodes",
    ],
    "A server failed and stopped the training": [
        "verl/test_agent_loop.py::test_an_episode_is_retried_until_the_environment_is_back",
        "bridge/test_metrics.py::test_the_error_of_a_step_names_servers_faults_and_tries",
    ],
    "A failed episode scores 0, better than a lost one": ["verl/test_advantage.py::test_cases_with_numbers"],
    "The reward does not rise": ["evaluate/test_metrics.py::test_estimates_for_k_episodes_of_a_task"],
    "How do I evaluate a checkpoint?": [
        "evaluate/test_engines.py::test_a_model_that_verl_saved_is_found",
        "evaluate/test_engines.py::test_a_folder_without_a_checkpoint_is_reported_with_its_contents",
    ],
}
"""The tests of each answer, by its question; the tests of the others are in this file."""

HERE = {
    "Nothing listens: `Connection refused`",
    "The port answers, but episodes make no sense",
    "`Failed to create environment: <Response [500]>`",
}

NAMED = """
    start_webshop_server.sh agentenv_webshop.launch agentenv_webshop:app curl
    test_webshop_interaction.py webshop_multiturn_w_interaction.py --input_file --local_save_dir
    --num_samples verl.trainer.main_ppo --config-path --config-name run_webshop_grpo_test.sh
    run_webshop_grpo_train.sh run_textcraft_grpo_train.sh run_lightweight_eval.sh MODEL_PATH MAX_SAMPLES
    NUM_SAMPLES_PER_TASK run_textcraft_eval.sh run_textcraft_eval_vllm.sh eval_textcraft_qwen3_1.7b.py
    batch_eval_all_models.sh run_textcraft_qwen3_17b_sft.sh convert_fsdp_checkpoints.sh
    convert_gemini_adapt_to_sft.py convert_agentgym_data.py batch_convert_agentgym_data.sh ulimit
    BaseInteraction AgentGymBaseInteraction WebshopInteraction TextCraftInteraction start_interaction
    generate_response calculate_score finalize_interaction _target_ class_name env_server_base timeout
    max_retries searchpath train_files val_files max_prompt_length max_response_length train_batch_size
    return_raw_chat model.path rollout.name temperature top_p prompt_length response_length
    multi_turn.enable max_user_turns max_assistant_turns interaction_config_path default_agent_loop
    num_workers adv_estimator total_epochs save_freq test_freq project_name experiment_name
    n_gpus_per_node micro_batch_size learning_rate rollout_n param_offload optimizer_offload model_dtype
    enable_gradient_checkpointing enable_activation_offloading data_source prompt ability reward_model
    extra_info.index interaction_kwargs.name interaction_kwargs.session_id training_metrics.json
    WebarenaEnvClient WebarenaTask client.step client.reset client.close client.observe run.py
    TeacherForcingAgent PromptAgent prompt_constructor.py environment_docker webarena_train.json
    main_ppo ray_trainer.py core_algos.py metric_utils.py ppo_trainer.yaml rounds_ctrl reward_manager
    reward_score agent_vllm_rollout schemas.py init_env_client task_name env_addr webarena_train.sh
"""
"""Commands, scripts, classes, settings and columns of the set-ups that the page on migrating is for."""

WHEN = {"before": "", "after": "", "change": "+"}

OF_NO_USE = {
    *("epoch_5", "epoch_10", "webshop_rl"),  # one of several, or somebody's own name for a run
    *("data_preprocess", "my_exp", "sglang_multiturn", "My_experiment", "My_experiment.git"),  # folders
    *("Based_on-ByteDance_verl-blue", "Powered_by-AgentGym-green"),  # badges
    *("__init__", "meta_data", "log_prob", "env_server_url"),  # inside of something that is named
}
"""What those documents name besides."""


def shell(page: str, number: int = 0) -> str:
    return blocks_of(page, "console")[number]


def pasted(code: str, folder: Path) -> str:
    """Run what a page has one paste into a shell; return what was printed."""
    with reserved_ports(3) as ports:
        for named, port in zip(("36001", "36002", "36003"), ports, strict=True):
            code = code.replace(named, str(port))
        return run_in_shell(code, folder, COLUMNS="120")


@pytest.mark.slow
def test_several_servers_play_one_run(tmp_path):
    pasted(shell(SCALE), tmp_path)
    summary = json.loads((tmp_path / "runs/two/summary.json").read_text("utf-8"))
    assert (summary["scored"], summary["success_rate"]) == (40, 1.0)
    assert len(summary["run"]["server"]) == 2


@pytest.mark.slow
def test_a_server_listens_on_all_addresses(tmp_path):
    assert "Maze" in pasted(shell(SCALE, 1), tmp_path)


@pytest.mark.slow
def test_a_recipe_has_all_servers(tmp_path):
    pasted(shell(SCALE, 2), tmp_path)
    loop = (tmp_path / "runs/spread/agent_loop.yaml").read_text("utf-8")
    assert re.findall(r"http://10\.0\.0\.\d", loop) == ["http://10.0.0.5", "http://10.0.0.6"]


@pytest.mark.slow
def test_the_three_commands_to_begin_with(tmp_path):
    pasted(shell(MIGRATING), tmp_path)
    made = ("runs/first/summary.json", "data/textcraft/train.parquet", "data/textcraft/val.parquet")
    for each in (*made, "runs/craft/run.sh", "runs/craft/config.yaml", "runs/craft/agent_loop.yaml"):
        assert (tmp_path / each).exists()


def test_all_that_people_have_is_named():
    assert [name for name in NAMED.split() if name not in MIGRATING] == []


def test_all_that_the_seeds_name_is_named():
    seeds = sorted((ROOT.parent / "shared" / "seeds").glob("*.txt"))
    if not seeds:
        pytest.skip("the documents that people come from are not here")
    words = re.findall(r"[A-Za-z_][\w.\-/]*\w", "\n".join(file.read_text("utf-8") for file in seeds))
    files = {word.rpartition("/")[2] for word in words if re.search(r"\.(?:py|sh|ya?ml|json|parquet)$", word)}
    keys = {word.rpartition("/")[2].rpartition(".")[2] for word in words if "_" in word} - {
        file.rpartition(".")[2] for file in files
    }
    named = files | {key for key in keys if "_" in key}
    assert len(named) > 150
    assert sorted(name for name in named if name not in MIGRATING and name not in OF_NO_USE) == []


def test_each_row_links_to_more():
    tables, _, missing = MIGRATING.partition("## Missing features")
    rows = [line for line in tables.splitlines() if line.startswith("| ") and not line.endswith("| more |")]
    assert len(rows) > 80
    assert [row for row in rows if not re.search(r"\[[^]]+\]\([A-Za-z/]+\.md(#[a-z-]+)?\) \|$", row)] == []
    assert "](" not in missing


def test_the_figures_of_the_pipeline_match_the_kept_results():
    folder = ROOT / "docs" / "training"
    page = (folder / "pipeline.md").read_text("utf-8")
    results = [json.loads(line) for line in (folder / "pipeline.jsonl").read_text("utf-8").splitlines()]
    assert [result["seed"] for result in results] == [0, 1, 2]
    for result in results:
        assert str(round(result["minutes"])) in page
        for name, found in result["environments"].items():
            rates = [f"{found[when]['success']:{sign}.3f}" for when, sign in WHEN.items()]
            shown = r" \([^|]*\) \| ".join(map(re.escape, rates))
            assert re.search(rf"\| {name} \| {result['seed']} \| {shown} ", page)
            assert not found["before"]["faults"] + found["after"]["faults"]


def test_the_comparison_of_algorithms_is_the_one_that_was_kept():
    folder = ROOT / "docs" / "training"
    page = (folder / "credit.md").read_text("utf-8")
    results = [json.loads(line) for line in (folder / "credit.jsonl").read_text("utf-8").splitlines()]
    assert len(results) == 6
    for seed in range(3):
        cells = [str(seed)]
        for algorithm in ("grpo", "gigpo"):
            (found,) = (r for r in results if (r["algorithm"], r["seed"]) == (algorithm, seed))
            steps = [point for point in found["curve"] if "success" in point]
            assert len(steps) == 28
            assert not any(point["faults"] for point in steps)
            after, mean = found["after"], sum(point["success"] for point in steps) / len(steps)
            before = [found["before"]["success"]] * (algorithm == "grpo")
            cells += [f"{number:.3f}" for number in (*before, after["success"], mean, after["invalid"])]
        assert f"| {' | '.join(cells)} |" in page


def test_each_answer_names_a_test():
    questions = set(re.findall(r"^### (.*)$", FAQ, re.MULTILINE))
    assert questions == HELD_BY.keys() | HERE
    for test in (each for tests in HELD_BY.values() for each in tests):
        file, _, name = test.partition("::")
        tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


def test_nothing_listens(unreachable_url):
    with (
        AgentGymEnv("TextCraft", server=unreachable_url) as env,
        pytest.raises(ServerUnreachable, match=unreachable_url),
    ):
        env.reset()


def test_another_environment_listens(textcraft_url):
    with (
        AgentGymEnv("Maze", server=textcraft_url) as env,
        pytest.raises(WrongServer, match=r"Maze.*TextCraft"),
    ):
        env.reset()


def test_a_server_that_fails_inside():
    def answer(request):
        return "This is environment TextCraft." if request.path == "/" else (500, {"detail": "broken"})

    with (
        FakeServer(answer) as server,
        AgentGymEnv("TextCraft", server=server.url) as env,
        pytest.raises(ServerError, match="500"),
    ):
        env.reset()


GUIDES = [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "howto").glob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_the_commands_of_a_guide_run(page, tmp_path):
    """Blocks of `console` and `python`; blocks of `sh` need a GPU, a model or other machines."""
    text = page.read_text("utf-8")
    commands = blocks_of(text, "console")
    assert commands
    pasted("".join(commands), tmp_path)
    for code in blocks_of(text, "python"):
        subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, check=True)


@pytest.mark.slow
def test_the_walk_through_an_audit_finds_three_defects(tmp_path):
    page = (ROOT / "docs" / "audit.md").read_text("utf-8")
    printed = run_in_shell("".join(blocks_of(page, "console")), tmp_path)
    first, second, third = re.split(r"^Written to audit.html.$", printed, flags=re.MULTILINE)[:3]
    for name, part in (("replay", first), ("forgery", first), ("reuse", second)):
        if name in {each.name for each in PROPERTIES}:
            assert re.search(rf"^\d+\. {name} \(error\): ", part, re.MULTILINE), name
    assert printed.count("\nexit status 1\n") >= 1
    assert not re.search(r"^\d+\. ", third, re.MULTILINE)
    shown = {line for line in blocks_of(page, "text")[0].splitlines() if not line.endswith("…")}
    assert shown - set(first.splitlines()) == set()
    (code,) = (each for each in blocks_of(page, "python") if "result.passed" in each)
    run = run_python(code, tmp_path)
    assert (run.returncode, run.stdout) == (0, "True ['passed']\n"), run.stderr
