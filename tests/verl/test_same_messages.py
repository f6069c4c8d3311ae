"""A model in training is given the tokens that it is given in an evaluation, turn by turn."""

from __future__ import annotations

import asyncio
import copy
import importlib
from types import SimpleNamespace

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")

from agentgym_gym import find
from agentgym_gym.data import Item, Recipe, own_prompt, rows
from agentgym_gym.evaluate import ChatAgent
from agentgym_gym.evaluate._chat import agent as chat_agent
from agentgym_gym.evaluate._chat.client import CompletionResult
from agentgym_gym.evaluate._chat.reply import Completion
from agentgym_gym.evaluate._episode import AgentEpisode, call_here
from agentgym_gym.rollout import Pool, drop_blank_system
from chat_templates import FAMILIES, tokenizer_of
from verl_bridge import recipes
from verl_bridge.tasks import EnvTask
from verl_bridge.tokens import TokenizedChat

_LOOK = "Thought:\nI look.\n\nAction:\ninventory"

REPLIES = {
    "agentgym": [_LOOK, "what?", _LOOK],
    "wrapper": ["4", "what?", "5", "5"],
    "none": ["4", "what?", "5", "5"],
}
"""By where the system prompt is: in an AgentGym environment, in a wrapper, nowhere."""

REWRITING = {"deepseek r1", "glm 4.5", "gpt-oss", "llama 2", "openchat", "vicuna"}
"""Templates that write earlier replies differently from the tokens of the model, which training keeps."""


@pytest.fixture
def row(textcraft_url):
    """Makes the row of a task, as the commands write it."""

    def make(kind):
        if kind == "agentgym":
            environment, kwargs = find("TextCraft"), {"server": textcraft_url}
            recipe = Recipe(kwargs, own_prompt(environment, kwargs))
            (made,) = rows([Item(environment, 3)], {environment.name: recipe})
        else:
            env_id = f"counting_env:bridge/{'Instructed' if kind == 'wrapper' else 'Count'}-v0"
            (made,) = recipes.seeded(env_id, [3], recipes.own_prompt(env_id, {}))
        return made

    return make


@pytest.fixture
def evaluated(monkeypatch):
    """Plays the task of a row as an evaluation does; returns the messages of each request to the model."""

    def play(row, replies):
        sent = []

        class Client:
            """Stands for the connection to a model's server."""

            def __init__(self, *args, **kwargs):
                pass

            def clone(self):
                return self

            async def complete(self, request, *args):
                sent.append(copy.deepcopy(request["messages"]))
                return CompletionResult(Completion(content=replies[len(sent) - 1]), "", 0)

            async def close(self):
                pass

        monkeypatch.setattr(chat_agent, "ChatClient", Client)
        task = EnvTask.of(row)
        number = row["extra_info"]["interaction_kwargs"]["seed"]
        number = task.options.get("task_id", number)

        async def work():
            pool = Pool(task.env_id, task.env_kwargs)
            try:
                agent = ChatAgent("m", base_url="http://127.0.0.1:1")
                turns = SimpleNamespace(name="m", reset=agent.reset, act=limited(agent.act, len(replies)))
                await AgentEpisode(pool, turns, call_here).play(number)
            finally:
                await pool.close()

        asyncio.run(work())
        return sent

    return play


def limited(act, most):
    """Return a method of an agent that gives up after some turns."""
    left = list(range(most))

    async def limited_act(observation, info):
        return await act(observation, info) if left and left.pop(0) is not None else None

    return limited_act


def trained(row, replies, tokenizer):
    """Play the task of a row as the agent loop does; return the tokens that each reply follows."""
    task, messages = EnvTask.of(row), drop_blank_system(row["prompt"])
    conversation = TokenizedChat(tokenizer, system=bool(messages))

    async def work():
        prompts = []
        async with task.episode() as episode:
            tokens, _ = conversation.begin(messages, episode.observation)
            for text in replies:
                prompts.append(tokens)
                reply = [*tokenizer.encode(text, add_special_tokens=False), conversation.end_token]
                turn = await episode.step(conversation.text(reply))
                tokens = [*tokens, *reply, *conversation.after(reply, turn.observation)]
        return prompts

    return asyncio.run(work())


def rendered(tokenizer, messages):
    """Return the tokens of a request, as a model's server makes them."""
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return tokenizer.encode(text, add_special_tokens=False)


@pytest.mark.parametrize("kind", REPLIES)
def test_training_and_evaluation_give_a_model_the_same_tokens(row, evaluated, kind):
    made = row(kind)
    requests = evaluated(made, REPLIES[kind])
    assert len(requests) == len(REPLIES[kind])
    assert [each[0]["role"] for each in requests] == ["user" if kind == "none" else "system"] * len(requests)
    different = []
    for name, family in FAMILIES.items():
        if kind != "none" and not family.system:
            continue  # a model with this template cannot be sent a system prompt
        tokenizer = tokenizer_of(family)
        turns = 1 if name in REWRITING else len(requests)
        expected = [rendered(tokenizer, each) for each in requests[:turns]]
        if trained(made, REPLIES[kind], tokenizer)[:turns] != expected:
            different.append(name)
    assert different == []


@pytest.mark.parametrize("template", ["chatml", "default_system", "headers"])
@pytest.mark.parametrize("kind", REPLIES)
def test_so_does_the_agent_loop(row, evaluated, play, kind, template):
    made, replies, models = row(kind), REPLIES[kind], []

    def make(tokenizer):
        models.append(importlib.import_module("verl_worker").ScriptedModel(tokenizer, replies))
        return models[-1]

    played = play(
        make,
        [made["extra_info"]["interaction_kwargs"]],
        template=template,
        system=[each["content"] for each in made["prompt"]],
        max_turns=len(replies),
        prompt_length=4_096,
        response_length=2_048,
    )
    (asked,) = models[0].asked.values()
    requests = evaluated(made, replies)
    assert [tokens for tokens, _ in asked] == [rendered(played.tokenizer, each) for each in requests]
