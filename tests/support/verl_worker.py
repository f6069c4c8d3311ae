"""verl's real agent loop worker, in the process, with a model that says what it is told to."""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import json
import pickle
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import needs

if needs.path_of("verl") is None:
    pytest.skip(needs.reason("verl"), allow_module_level=True)

from chat_templates import FAMILIES, tokenizer_of
from tool_templates import TOOL_FAMILIES

with warnings.catch_warnings():
    # What verl and its own dependencies warn of when they are imported is not ours to repair.
    warnings.simplefilter("ignore")
    import numpy as np
    import torch
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    from verl.experimental.agent_loop import agent_loop
    from verl.protocol import DataProto
    from verl.workers.rollout.replica import TokenOutput

PROMPT, RESPONSE = 512, 384

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEMPLATES = {
    "chatml": CHATML,
    "default_system": (
        "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nBe of help.<|im_end|>\n{% endif %}"
        + CHATML
    ),
    # Ends its turns by a token with nothing after it, and begins with one of its own.
    "headers": (
        "<|begin|>{% for m in messages %}<|header|>{{ m['role'] }}<|/header|>\n\n"
        "{{ m['content'] | trim }}<|eot|>{% endfor %}"
        "{% if add_generation_prompt %}<|header|>assistant<|/header|>\n\n{% endif %}"
    ),
    # Takes out of a reply what was thought, once a user's message follows.
    "thinking": (
        "{% set n = namespace(user=0) %}{% for m in messages %}{% if m['role'] == 'user' %}"
        "{% set n.user = loop.index0 %}{% endif %}{% endfor %}"
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
        "{% if m['role'] == 'assistant' and loop.index0 < n.user %}"
        "{{ m['content'].split('</think>')[-1].lstrip() }}"
        "{% elif m['role'] == 'assistant' and '<think>' not in m['content'] %}<think>\n\n</think>\n\n"
        "{{ m['content'] }}{% else %}{{ m['content'] }}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
}
NO_SYSTEM = (
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{% endfor %}" + CHATML
)
"""Takes no system message, and no two messages of the user in a row."""

_OTHERS = {"no_system": NO_SYSTEM, "tools": TOOL_FAMILIES["hermes"].template}
END = {
    "no_system": "<|im_end|>",
    "tools": "<|im_end|>",
    "chatml": "<|im_end|>",
    "default_system": "<|im_end|>",
    "headers": "<|eot|>",
    "thinking": "<|im_end|>",
}
SPECIAL = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin|>", "<|header|>", "<|/header|>", "<|eot|>"),
]


FAMILY = "family "
"""Before the name of a family of templates, in place of the name of a template of this module."""


def make_model(template: str, folder: Path) -> None:
    """Write a tiny random model with a tokenizer of a given template."""
    tokenizer = _tokenizer(template)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=4096,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)


def _tokenizer(template: str) -> Any:
    if template.startswith(FAMILY):
        made = tokenizer_of(FAMILIES[template.removeprefix(FAMILY)])
        made.pad_token = made.eos_token
        return made
    bpe = Tokenizer(models.BPE(unk_token=None))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    words = ["system user assistant", "Thought: I go. Action: get 1 oak log", "count up to the number"] * 20
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        words, trainers.BpeTrainer(vocab_size=360, initial_alphabet=alphabet, special_tokens=SPECIAL)
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token=END[template],
        pad_token=SPECIAL[0],
        additional_special_tokens=SPECIAL,
        chat_template=_OTHERS.get(template) or TEMPLATES[template],
        model_max_length=100_000,
    )


class ScriptedModel:
    """Replies by scripts: the n-th conversation by the n-th, each reply text to be encoded, or tokens.

    A text ends by the template's end token, unless the limit of tokens is met first, as on a real server. An
    exception in a script is raised.
    """

    def __init__(self, tokenizer: Any, *scripts: Any, logprobs: bool = True) -> None:
        self.tokenizer, self.scripts, self.logprobs = tokenizer, scripts, logprobs
        self.asked: dict[str, list[tuple[list[int], dict[str, Any]]]] = {}
        self.said: dict[str, list[list[int]]] = {}

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **images: Any
    ) -> Any:
        asked = self.asked.setdefault(request_id, [])
        said = self.said.setdefault(request_id, [])
        script = self.scripts[list(self.asked).index(request_id) % len(self.scripts)]
        reply = script(self.tokenizer.decode(prompt_ids)) if callable(script) else script[len(asked)]
        asked.append((list(prompt_ids), dict(sampling_params)))
        await asyncio.sleep(0)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, str):
            reply = [*self.tokenizer.encode(reply, add_special_tokens=False), self.tokenizer.eos_token_id]
        reply = reply[: sampling_params.get("max_tokens")]
        said.append(reply)
        logprobs = [-(1.0 + place) for place in range(len(reply))] if self.logprobs else None
        steps = {"min_global_steps": 2 + len(asked), "max_global_steps": 2 + len(asked)}
        return TokenOutput(token_ids=reply, log_probs=logprobs, extra_fields=steps)


def count_row(start: int = 0, **kwargs: Any) -> dict[str, Any]:
    """Return the task of counting from a number, by an environment with these arguments."""
    return {
        "env_id": "counting_env:bridge/Count-v0",
        "env_kwargs": json.dumps(kwargs),
        "reset_options": json.dumps({"start": start}),
        "seed": None,
    }


def scripted(*scripts: Any, **options: Any) -> Any:
    """Return a maker of models with these scripts; its attribute `models` lists those that it made."""
    models: list[ScriptedModel] = []

    def make(tokenizer: Any) -> ScriptedModel:
        models.append(ScriptedModel(tokenizer, *scripts, **options))
        return models[-1]

    make.models = models  # type: ignore[attr-defined]
    return make


class Played:
    """What the worker made of a batch, without padding."""

    def __init__(self, tokenizer: Any, batch: Any) -> None:
        self.tokenizer, self.batch = tokenizer, batch

    def __len__(self) -> int:
        return len(self.batch)

    def prompt_ids(self, i: int) -> list[int]:
        width = self.batch.batch["prompts"].shape[1]
        kept = self.batch.batch["attention_mask"][i, :width].bool()
        return self.batch.batch["prompts"][i][kept].tolist()

    def prompt(self, i: int) -> str:
        return self.tokenizer.decode(self.prompt_ids(i))

    def ids(self, i: int) -> list[int]:
        width = self.batch.batch["prompts"].shape[1]
        return self.batch.batch["responses"][i][self.batch.batch["attention_mask"][i, width:].bool()].tolist()

    def mask(self, i: int) -> list[int]:
        return self.batch.batch["response_mask"][i, : len(self.ids(i))].tolist()

    def logprobs(self, i: int) -> list[float]:
        return self.batch.batch["rollout_log_probs"][i, : len(self.ids(i))].tolist()

    def masked_in(self, i: int) -> list[int]:
        return [token for token, own in zip(self.ids(i), self.mask(i), strict=True) if own]

    def text(self, i: int) -> str:
        return self.prompt(i) + self.tokenizer.decode(self.ids(i))

    def score(self, i: int) -> float:
        scores = self.batch.batch["rm_scores"][i]
        assert scores.nonzero().flatten().tolist() in ([], [len(self.ids(i)) - 1])
        return scores.sum().item()

    def turns(self, i: int) -> int:
        return int(self.batch.non_tensor_batch["__num_turns__"][i])

    def field(self, i: int, name: str) -> Any:
        return self.batch.non_tensor_batch[name][i]

    def record(self, i: int) -> dict[str, float]:
        assert sorted(self.batch.meta_info["reward_extra_keys"]) == sorted((*KEYS, *COUNTS, *LABELS))
        return {key: float(self.batch.non_tensor_batch[key][i]) for key in KEYS}

    def labels(self, i: int) -> dict[str, str]:
        return {key: str(self.batch.non_tensor_batch[key][i]) for key in LABELS}


KEYS = ("return", "success", "turns", "invalid_actions", "fault", "cut", "replays")
COUNTS = ("parse_errors", "ignored_actions", "retries", "turn_limit")
LABELS = ("env_id", "env_task", "env_server", "fault_kind", "fault_message", "env_timing")

_numbers = itertools.count()


def play(
    model_folder: Callable[[str], Path],
    tmp_path: Path,
    model: Callable[[Any], ScriptedModel],
    rows: list[dict[str, Any]],
    /,
    *,
    template: str = "chatml",
    system: str | list[str | None] | None = "You play a game.",
    prompt_length: int = PROMPT,
    response_length: int = RESPONSE,
    validate: bool = False,
    max_model_len: int | None = None,
    calculate_log_probs: bool = True,
    integration: str = "agent loop",
    turns: int | None = None,
    step: int = 9,
    overrides: Sequence[str] = (),
    **loop: Any,
) -> Played:
    """Play rows, mappings of ``interaction_kwargs``, in verl's own worker.

    By the integration ``interaction`` verl's own loop plays them, of at most so many `turns`, and `loop` is
    the config of the interaction. A faulted episode is not played anew unless `loop` says so. `overrides` are
    further settings of verl.
    """
    loop = {"fault_budget": 0, **loop}
    name = f"gym_env_{next(_numbers)}"  # verl keeps what was registered
    config = tmp_path / f"{name}.yaml"
    folder = model_folder(template)
    if integration == "interaction":
        name, by_integration = "tool_agent", _interaction(config, turns, loop)
    else:
        target = "verl_bridge.agent_loop.GymAgentLoop"
        config.write_text(json.dumps([{"name": name, "_target_": target, **loop}]))
        by_integration = [f"actor_rollout_ref.rollout.agent.agent_loop_config_path={config}"]
    overrides = [
        *overrides,
        f"actor_rollout_ref.model.path={folder}",
        "actor_rollout_ref.rollout.name=vllm",
        f"actor_rollout_ref.rollout.prompt_length={prompt_length}",
        f"actor_rollout_ref.rollout.response_length={response_length}",
        f"actor_rollout_ref.rollout.calculate_log_probs={calculate_log_probs}",
        *by_integration,
    ]
    if max_model_len is not None:
        overrides.append(f"actor_rollout_ref.rollout.max_model_len={max_model_len}")
    settings = OmegaConf.merge(_defaults(), OmegaConf.from_dotlist(overrides))
    count = len(rows)
    systems = system if isinstance(system, list) else [system] * count
    openings = [[{"role": "system", "content": told}] if told is not None else [] for told in systems]
    batch = DataProto.from_single_dict(
        {
            "dummy": torch.zeros(count, 1, dtype=torch.uint8),
            "raw_prompt": _objects(openings),
            "agent_name": _objects([name] * count),
            "index": _objects(range(count)),
            "global_steps": _objects([step] * count),
            "data_source": _objects(["test"] * count),
            "reward_model": _objects([{"style": "rule", "ground_truth": ""}] * count),
            "extra_info": _objects(
                [{"index": i, "interaction_kwargs": {"name": "gym_env", **row}} for i, row in enumerate(rows)]
            ),
        }
    )
    batch.meta_info |= {"validate": validate, "global_steps": step}

    async def work() -> Played:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        worker = _worker(settings, model(tokenizer))
        return Played(tokenizer, await worker.generate_sequences(batch))

    return asyncio.run(work())


@functools.cache
def _defaults() -> Any:
    """Return verl's own settings, which take it a third of a second to compose."""
    with initialize_config_module("verl.trainer.config", version_base=None):
        defaults = compose("ppo_trainer")
    OmegaConf.set_struct(defaults.data.apply_chat_template_kwargs, False)
    return defaults


def _worker(settings: Any, model: ScriptedModel) -> Any:
    made = agent_loop.AgentLoopWorker
    made = made.__ray_metadata__.modified_class if hasattr(made, "__ray_metadata__") else made
    if "servers" not in inspect.signature(made.__init__).parameters:
        return made(settings, model, None, [_RewardWorker(settings)])

    class Worker(made):  # verl 0.7.1 makes its client itself unless one is there
        def __init__(self, *args: Any) -> None:
            self.server_manager = model
            super().__init__(*args)

    return Worker(settings, [], None, [_RewardWorker(settings)])


def _interaction(config: Path, turns: int | None, options: dict[str, Any]) -> list[str]:
    """Write the yaml of the interaction; return the overrides that select it."""
    target = "verl_bridge.interaction.GymInteraction"
    item = {"name": "gym_env", "class_name": target, "config": options}
    config.write_text(json.dumps({"interaction": [item]}))
    multi_turn = "actor_rollout_ref.rollout.multi_turn"
    limits = [f"{multi_turn}.max_{who}_turns={turns}" for who in ("user", "assistant")]
    return [
        f"{multi_turn}.enable=True",
        f"{multi_turn}.interaction_config_path={config}",
        *(limits if turns is not None else []),
        "reward.custom_reward_function.path=pkg://verl_bridge.reward",
        "reward.custom_reward_function.name=compute_score",
    ]


class _RewardWorker:
    """verl's real reward worker, in this process, called as an actor is."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings
        self.compute_score = self

    async def remote(self, data: Any) -> Any:
        from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

        # In verl it is another process.
        return await RewardLoopWorker(self._settings).compute_score(pickle.loads(pickle.dumps(data)))  # noqa: S301


def _objects(values: Any) -> Any:
    values = list(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
