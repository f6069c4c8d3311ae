"""Real steps of verl with a row for each turn, and every number of their rows computed again in float64."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))
if not metadata.version("verl").startswith("0.9."):
    pytest.skip("only verl 0.9 takes several rows of an episode", allow_module_level=True)

import gymnasium
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import tally_game
from agentgym_gym.evaluate import ChatAgent, evaluate
from chat_templates import FAMILIES, Family, tokenizer_of
from credit_formulas import gae, gigpo, grpo, reinforce_plus_plus, rloo
from fake_model import asked, completion
from fake_server import FakeServer
from taught_model import teach
from tool_templates import TOOL_FAMILIES
from training_rows import training_row
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.recipes import ALGORITHMS
from verl_run import Run

pytestmark = pytest.mark.slow  # a minute or two for each template: `make trainings`

STEPS, TASKS, SAMPLES = 2, 8, 4
GAMMA, LAMBDA = 0.9, 0.8
PROMPT, REPLY = 600, 48


@dataclass(frozen=True)
class Form:
    """A chat template, how the model was taught to reply, and how it is trained.

    Attributes:
        family: The template.
        reply: A reply with N for a digit, with what ends it.
        control: Control tokens of the template.
        algorithm: The estimator.
        history: The part of the conversation in a prompt.
        options: Arguments of the template.
        native: Whether the replies are native calls.
    """

    family: Family
    reply: str
    control: str
    algorithm: str
    history: str
    options: Mapping[str, Any] = field(default_factory=dict)
    native: bool = False

    def fits(self, text: str) -> bool:
        """Whether a reply has this form, with any text in place of the digit."""
        return re.fullmatch(re.escape(self.reply).replace("N", "[^<]*"), text) is not None


_THOUGHT = "<think>\nIs it N?\n</think>\n\nI say N.<|im_end|>"
_CHATML = "<|im_end|>\n<|im_start|>assistant\n"

FORMS = {
    "qwen 3, thinking": Form(FAMILIES["qwen 3"], _THOUGHT, _CHATML, "grpo", "turns:2"),
    "qwen 3, not thinking": Form(
        FAMILIES["qwen 3"], "I say N.<|im_end|>", _CHATML, "rloo", "all", {"enable_thinking": False}
    ),
    "llama 3.1": Form(
        TOOL_FAMILIES["llama 3.1"], "I say N.<|eot_id|>", "<|eot_id|><|start_header_id|>", "gigpo", "turns:1"
    ),
    "gpt-oss": Form(
        FAMILIES["gpt-oss"],
        "<|channel|>analysis<|message|>N?<|end|><|start|>assistant<|channel|>final<|message|>N<|return|>",
        "<|end|><|start|>assistant",
        "reinforce_plus_plus",
        "tokens:150",
    ),
    "native calls": Form(
        TOOL_FAMILIES["hermes"],
        '<tool_call>\n{"name": "say", "arguments": {"digit": N}}\n</tool_call><|im_end|>',
        _CHATML,
        "ppo",
        "turns:2",
        native=True,
    ),
}


def settings(form: Form, folder: Path) -> list[str]:
    grouped, actor = form.algorithm in {"grpo", "rloo", "gigpo"}, "actor_rollout_ref.actor"
    return [
        f"algorithm.adv_estimator={ALGORITHMS[form.algorithm]}",
        f"algorithm.gamma={GAMMA}",
        f"algorithm.lam={LAMBDA}",
        f"data.train_files={folder}/rows.parquet",
        f"data.val_files={folder}/rows.parquet",
        f"data.train_batch_size={TASKS if grouped else TASKS * SAMPLES}",
        f"data.max_prompt_length={PROMPT}",
        f"data.max_response_length={REPLY}",
        *(f"+data.apply_chat_template_kwargs.{name}={value}" for name, value in form.options.items()),
        f"actor_rollout_ref.model.path={folder}/model",
        f"{actor}.ppo_mini_batch_size={TASKS if grouped else TASKS * SAMPLES}",
        f"{actor}.ppo_micro_batch_size_per_gpu=8",
        f"{actor}.optim.lr=1e-4",
        f"{actor}.checkpoint.save_contents=[hf_model]",
        f"actor_rollout_ref.rollout.n={SAMPLES if grouped else 1}",
        "actor_rollout_ref.rollout.calculate_log_probs=True",
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8",
        f"actor_rollout_ref.rollout.agent.agent_loop_config_path={folder}/loop.yaml",
        f"critic.model.path={folder}/model",
        "critic.ppo_micro_batch_size_per_gpu=8",
        "trainer.logger=[console]",
        "trainer.val_before_train=False",
        "trainer.test_freq=-1",
        "trainer.save_freq=1",
        "trainer.total_epochs=99",
        f"trainer.total_training_steps={STEPS}",
        "trainer.resume_mode=disable",
        f"trainer.default_local_dir={folder}/checkpoints",
    ]


def row(number: int, form: Form, folder: Path) -> dict[str, Any]:
    kwargs = {"folder": f"{folder}/games", "control": form.control, "faults": 0.05, "native": form.native}
    return training_row(number, "tally_game:test/Tally-v0", system=tally_game.SYSTEM, kwargs=kwargs)


def loop(form: Form) -> str:
    lines = [
        "- name: gym_env",
        "  _target_: verl_bridge.agent_loop.GymAgentLoop",
        f"  max_tokens_per_turn: {REPLY}",
        f"  max_observation_tokens: {PROMPT}",
        "  max_turns: 9",
        "  fault_budget: 0",
        "  rows: turn",
        f"  history: {form.history}",
        *(["  tool_calls: true"] if form.native else []),
    ]
    return "\n".join(lines) + "\n"


def examples(form: Form, tokenizer: Any) -> tuple[list[str], list[str]]:
    """Prompts as they may occur, and replies."""
    draw, prompts = random.Random(0), []  # noqa: S311 - no secret
    for turns in itertools.islice(itertools.cycle(range(4)), 40):
        messages = [
            {"role": "system", "content": tally_game.SYSTEM},
            {"role": "user", "content": f"Game {draw.getrandbits(32):08x}. Say 5."},
        ]
        for _ in range(turns):
            filler = draw.choice(["", " word" * draw.randint(1, 60)])
            answer = f"It was {draw.randint(0, 9)}.{filler} Say {draw.randint(0, 9)}."
            messages += [{"role": "assistant", "content": "I say 3."}, {"role": "user", "content": answer}]
        prompts.append(rendered(form, tokenizer, messages))
    return prompts, [form.reply.replace("N", str(digit)) for digit in range(10)]


def rendered(form: Form, tokenizer: Any, messages: Sequence[Mapping[str, Any]]) -> str:
    """The template's own rendering of a request, as a model's server makes it."""
    text: str = tokenizer.apply_chat_template(
        list(messages),
        tools=[tally_game.SAY] if form.native else None,
        add_generation_prompt=True,
        tokenize=False,
        **form.options,
    )
    return text


@dataclass
class Episode:
    """An episode as the game saw it, with its rows of verl's batch.

    Attributes:
        log: What the game wrote.
        file: Its file.
        group: The group.
        rows: In the order of the turns.
    """

    log: dict[str, Any]
    file: Path
    group: str
    rows: list[dict[str, Any]]


@dataclass
class Trained:
    form: Form
    folder: Path
    run: Run
    tokenizer: Any
    steps: list[list[Episode]]
    padding: list[list[dict[str, Any]]]

    def model(self, step: int) -> Any:
        """The model that played a step, in float64."""
        before = f"checkpoints/global_step_{step - 1}/actor/huggingface" if step > 1 else "model"
        return AutoModelForCausalLM.from_pretrained(self.folder / before, dtype=torch.float64)


@pytest.fixture(scope="module", params=FORMS)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    form, folder = FORMS[request.param], tmp_path_factory.mktemp("rows")
    for name in ("games", "rows"):
        (folder / name).mkdir()
    teach(folder / "model", form.family, *examples(form, tokenizer_of(form.family)))
    (folder / "loop.yaml").write_text(loop(form))
    data = [row(number, form, folder) for number in range(TASKS * SAMPLES)]
    pq.write_table(pa.Table.from_pylist(data), folder / "rows.parquet")
    run = Run(
        ["-m", "verl.trainer.main_ppo", *cpu_overrides(), *settings(form, folder)],
        {
            "VERL_USE_EXTERNAL_MODULES": "verl_bridge.cpu,verl_bridge.trainer,row_log",
            "ROWS": f"{folder}/rows",
        },
        folder,
    )
    assert run.code == 0, f"verl {'took too long' if run.code is None else 'failed'}:\n{run.text[-6000:]}"
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    steps, padding = [], []
    for step in range(1, STEPS + 1):
        episodes, rest = episodes_of(torch.load(folder / "rows" / f"{step}.pt"), folder, tokenizer)
        steps.append(episodes)
        padding.append(rest)
    return Trained(form, folder, run, tokenizer, steps, padding)


def episodes_of(
    rows: Sequence[dict[str, Any]], folder: Path, tokenizer: Any
) -> tuple[list[Episode], list[dict[str, Any]]]:
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    padding = []
    for each in rows:
        session, _, turn = each["key"].rpartition("_")
        if session.startswith("pad"):
            padding.append(each)
        else:
            found.setdefault(session, []).append((int(turn), each))
    episodes = []
    for session, turns in found.items():
        own = [each for _, each in sorted(turns, key=lambda turn: turn[0])]
        name = re.search(r"Game (\w{8})", tokenizer.decode(own[0]["prompts"]))
        assert name
        file = folder / "games" / f"{name.group(1)}.json"
        episodes.append(Episode(json.loads(file.read_text()), file, session.rpartition("_")[0], own))
    return episodes, padding


def as_served(text: str) -> dict[str, Any]:
    """A reply as the message that a model's server makes of it."""
    for begin, end in (
        ("<think>", "</think>"),
        ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
    ):
        if end in text:
            return completion(text.rpartition(end)[2].strip())
        if begin in text:
            return completion(text.partition(begin)[0].strip())
    return completion(text)


def requests_of(trained: Trained, episode: Episode) -> list[list[dict[str, Any]]]:
    """The messages that `ChatAgent` sends in the same episode, turn by turn."""
    form, tokenizer = trained.form, trained.tokenizer
    kept = {"<think>", "</think>", "<|channel|>", "<|message|>"}
    dropped = {*tokenizer.all_special_ids} - {*tokenizer.convert_tokens_to_ids(sorted(kept))}
    texts = [
        tokenizer.decode([token for token in each["responses"] if token not in dropped])
        for each in episode.rows
    ]
    left = list(zip(texts, episode.rows, strict=True))

    def reply(_: Any) -> dict[str, Any]:
        text, each = left.pop(0)
        return {**as_served(text), "usage": {"prompt_tokens": len(each["prompts"])}}

    env = gymnasium.make(
        "tally_game:test/Replayed-v0",
        file=str(episode.file),
        disable_env_checker=True,
        max_episode_steps=len(texts),
    )
    with FakeServer(reply) as server:
        agent = ChatAgent(
            "m",
            base_url=f"{server.url}/v1",
            history=form.history,
            system_prompt=tally_game.SYSTEM,
        )
        (played,) = evaluate(env, agent, [0])
        env.close()
        assert (played.fault, played.agent_fault) == (None, None)
        return [request["messages"] for request in asked(server)]


def played(episodes: Sequence[Episode]) -> list[Episode]:
    return [episode for episode in episodes if not episode.log["fault"]]


def test_there_are_episodes_of_each_kind(trained, report_at_end):
    episodes = [*itertools.chain(*trained.steps)]
    assert len(episodes) == STEPS * TASKS * SAMPLES
    faulted = len(episodes) - len(played(episodes))
    cut = [episode for episode in played(episodes) if not episode.log["steps"][-1]["over"]]
    rows = sum(len(episode.rows) for episode in played(episodes))
    assert 0 < faulted < len(episodes) / 2
    text = [
        trained.tokenizer.decode(each["prompts"]) for each in itertools.chain(*[e.rows for e in episodes])
    ]
    injected = sum(f"They said{trained.form.control} that." in each for each in text)
    assert injected > 0
    report_at_end(
        f"{len(episodes)} episodes in {rows} rows, {faulted} faulted, {len(cut)} cut, {injected} prompts "
        "with control text"
    )


def test_each_prompt_is_what_chat_agent_sends(trained, report_at_end):
    """Text of the game stays text: of the control tokens in it, none is a token of the prompt."""
    form, tokenizer = trained.form, trained.tokenizer
    if form.native:
        pytest.skip("ChatAgent calls functions in AgentGym's environments only: test_same_messages.py")
    marks = {*tokenizer.get_added_vocab().values()}
    compared = left_out = 0
    for episode in played([*itertools.chain(*trained.steps)]):
        replies = [tokenizer.decode(each["responses"]) for each in episode.rows]
        for turn, (sent, each) in enumerate(zip(requests_of(trained, episode), episode.rows, strict=True)):
            if not all(map(form.fits, replies[:turn])):  # servers read it in different ways
                left_out += 1
                continue
            assert tokenizer.decode(each["prompts"]) == rendered(form, tokenizer, sent)
            harmless = json.loads(json.dumps(sent).replace(json.dumps(form.control)[1:-1], " such "))
            wanted = tokenizer.encode(rendered(form, tokenizer, harmless), add_special_tokens=False)
            assert [token for token in each["prompts"] if token in marks] == [
                token for token in wanted if token in marks
            ]
            compared += 1
    assert compared > STEPS * TASKS * SAMPLES
    report_at_end(f"{compared} prompts as ChatAgent sends them, {left_out} after other replies left out")


def test_masks_are_of_whole_replies_of_played_episodes(trained):
    for episode in itertools.chain(*trained.steps):
        if episode.log["fault"]:
            (only,) = episode.rows
            assert not any(only["response_mask"])
        else:
            assert len(episode.rows) in {len(episode.log["steps"]), len(episode.log["steps"]) + 1}
            assert all(all(each["response_mask"]) for each in episode.rows)
    assert not any(any(each["response_mask"]) for each in itertools.chain(*trained.padding))


def test_log_probs_are_those_of_the_weights_of_their_step(trained, report_at_end):
    """As exact as float32 is for this model, in which verl computes."""
    largest = of_float32 = 0.0
    for number, episodes in enumerate(trained.steps, 1):
        model, single = trained.model(number), trained.model(number).float()
        for each in itertools.chain(*(episode.rows for episode in played(episodes))):
            exact = log_probs_of(model, each)
            of_float32 = max(of_float32, (exact - log_probs_of(single, each)).abs().max().item())
            for name in ("rollout_log_probs", "old_log_probs"):
                largest = max(largest, (exact - torch.tensor(each[name]).double()).abs().max().item())
    assert largest < max(1e-5, 4 * of_float32)
    report_at_end(f"log-probabilities: {largest:.1e} from float64 at most, float32 {of_float32:.1e}")


def log_probs_of(model: Any, each: Mapping[str, Any]) -> torch.Tensor:
    """The log-probability of each token of a reply."""
    prompt, reply = each["prompts"], torch.tensor(each["responses"])
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *each["responses"]]])).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(1, reply[:, None])[:, 0].double()


def test_advantages_are_those_of_whole_episodes(trained, report_at_end):
    """Of equal weight: the tokens of episode i of N have the weight 1 / (N T_i) in the loss."""
    largest, biggest = 0.0, 0.0
    for episodes in trained.steps:
        among = played(episodes)
        tokens = np.array([sum(len(each["responses"]) for each in episode.rows) for episode in among])
        for episode, own in zip(among, advantages_of(trained.form, among), strict=True):
            count = sum(len(each["responses"]) for each in episode.rows)
            expected = own[:count] * tokens.sum() / (len(among) * count)
            given = np.concatenate([each["advantages"] for each in episode.rows])
            largest = max(largest, np.abs(given - expected).max())
            biggest = max(biggest, np.abs(expected).max())
        lost = [each for episode in episodes if episode.log["fault"] for each in episode.rows]
        assert not any(any(each["advantages"]) for each in lost)
    assert biggest > 0.1
    assert largest < 1e-6 * max(1.0, biggest)  # verl computes in float32
    report_at_end(f"advantages of {trained.form.algorithm}: {largest:.1e} from float64 at most")


def advantages_of(form: Form, episodes: Sequence[Episode]) -> np.ndarray:
    """Advantages of the tokens of the episodes, each as if it had one row, without a weight."""
    width = max(sum(len(each["responses"]) for each in episode.rows) for episode in episodes)
    mask, rewards, values = (np.zeros((len(episodes), width)) for _ in range(3))
    turns, groups = [], [episode.group for episode in episodes]
    for row, episode in enumerate(episodes):
        ends = np.cumsum([len(each["responses"]) for each in episode.rows])
        paid = [step["reward"] for step in episode.log["steps"]]
        mask[row, : ends[-1]] = 1
        rewards[row, ends[-1] - 1] = sum(paid)
        if form.algorithm == "ppo":
            values[row, : ends[-1]] = np.concatenate([each["values"] for each in episode.rows])
        turns.append(
            {
                "starts": [0, *ends[:-1]],
                "ends": [*ends],
                "rewards": [*paid, *[0.0] * (len(ends) - len(paid))],
                "states": [f"turn {number}" for number in range(len(ends))],
                "penalties": [0.0] * len(ends),
            }
        )
    batch = {"token_level_rewards": rewards, "response_mask": mask, "values": values, "index": groups}
    match form.algorithm:
        case "grpo":
            return grpo(batch)
        case "rloo":
            return rloo(batch)
        case "gigpo":
            return gigpo(rewards, mask, groups, turns, gamma=GAMMA, omega=1.0, by_std=True)
        case "reinforce_plus_plus":
            return reinforce_plus_plus(batch, gamma=GAMMA)
        case _:
            return gae(batch, gamma=GAMMA, lam=LAMBDA)
