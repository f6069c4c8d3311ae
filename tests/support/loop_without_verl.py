"""The agent loop over a stand-in of verl, whose replies a test chooses."""

from __future__ import annotations

import asyncio
import functools
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import needs

STAND_IN = Path(__file__).with_name("stand_in")
START, END = "<|im_start|>", "<|im_end|>"
LENGTHS = {"prompt_length": 1 << 20, "response_length": 1 << 22}


@functools.cache
def loop_class() -> Any:
    """Return `GymAgentLoop`; other tests find neither the stand-in nor what was imported over it."""
    pytest.importorskip("jinja2", reason=needs.reason("jinja2"))
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in before if name.partition(".")[0] == "verl"]:
            patch.delitem(sys.modules, name)
        patch.delitem(sys.modules, "verl_bridge.agent_loop", raising=False)
        patch.setattr(sys, "path", [str(STAND_IN), *sys.path])
        found = importlib.import_module("verl_bridge.agent_loop").GymAgentLoop
        for name in sys.modules.keys() - before:
            if name.partition(".")[0] == "verl" or hasattr(sys.modules[name], "AgentLoopOutput"):
                del sys.modules[name]
    return found


class Characters:
    """A tokenizer whose tokens are characters, and the two marks of its chat template."""

    chat_template = "chatml"
    name_or_path = "characters"
    unk_token, unk_token_id = None, None
    eos_token_id, all_special_ids = 1, [0, 1]
    added_tokens_decoder = {  # noqa: RUF012 - as transformers has it
        0: SimpleNamespace(content=START, special=True),
        1: SimpleNamespace(content=END, special=True),
    }

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        parts = re.split(r"(<\|im_start\|>|<\|im_end\|>)", text)
        marks = {START: [0], END: [1]}
        return [token for part in parts for token in marks.get(part) or [ord(letter) + 2 for letter in part]]

    def decode(self, tokens: list[int], **options: Any) -> str:
        return "".join((START, END)[token] if token < 2 else chr(token - 2) for token in tokens)

    def apply_chat_template(self, messages: Any, *, add_generation_prompt: bool, tokenize: bool) -> str:
        written = [f"{START}{message['role']}\n{message['content']}{END}\n" for message in messages]
        return "".join([*written, f"{START}assistant\n" if add_generation_prompt else ""])


class ScriptedServer:
    """Generates the replies of a policy, which is given the messages after the system's."""

    def __init__(self, policy: Callable[[list[dict[str, str]]], str], tokenizer: Characters) -> None:
        self.policy = policy
        self.tokenizer = tokenizer

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: Any) -> Any:
        await asyncio.sleep(0.01)
        reply = self.policy(messages_of(self.tokenizer.decode(prompt_ids)))
        return SimpleNamespace(token_ids=[*self.tokenizer.encode(reply), 1], log_probs=None, extra_fields={})


class Settings(dict[str, Any]):
    """Settings by attribute, as omegaconf has them."""

    __getattr__ = dict.__getitem__


def messages_of(text: str) -> list[dict[str, str]]:
    """Return the messages of a conversation, without the system's and without the generation prompt."""
    text = text.removesuffix(f"{START}assistant\n")
    turns = [turn.partition("\n") for turn in text.split(START)[1:]]
    messages = [{"role": role, "content": content.partition(END)[0]} for role, _, content in turns]
    return [message for message in messages if message["role"] != "system"]


def agent_loop(
    policy: Callable[[list[dict[str, str]]], str], *, folder: Path | None = None, **arguments: Any
) -> Any:
    """Return the loop of a policy, which generates the replies.

    Args:
        policy: Returns the reply to messages.
        folder: The folder of the loop's yaml.
        arguments: Arguments of the loop; limits of tokens are settings of verl.
    """
    lengths = {name: arguments.pop(name, length) for name, length in LENGTHS.items()}
    yaml = {} if folder is None else {"agent_loop_config_path": str(folder / "agent_loop.yaml")}
    tokenizer = Characters()
    return loop_class()(
        Settings(lengths, agent=yaml), ScriptedServer(policy, tokenizer), tokenizer, **arguments
    )


def replies(*texts: str) -> Callable[[list[dict[str, str]]], str]:
    """Return a policy with a reply for each turn; the last is repeated."""
    return lambda messages: texts[min(len(messages) // 2, len(texts) - 1)]


def row_of(
    env_id: str, env_kwargs: Any = None, reset_options: Any = None, **arguments: Any
) -> dict[str, Any]:
    """Return a row of verl's for a task, without a prompt."""
    task = {
        "env_id": env_id,
        "env_kwargs": env_kwargs or {},
        "reset_options": reset_options or {},
        **arguments,
    }
    return {"raw_prompt": [], "extra_info": {"interaction_kwargs": task}}


async def play(row: Mapping[str, Any], *texts: str, **arguments: Any) -> Any:
    """Return what the loop returns for a row, played with a reply for each turn."""
    return await agent_loop(replies(*texts), **{"fault_budget": 0, **arguments}).run({}, **row)


def record_of(output: Any) -> dict[str, Any]:
    """Return the numbers and labels of an episode that verl carries to its metrics."""
    record: dict[str, Any] = output.extra_fields["reward_extra_info"]
    return record
