"""The room for tokens: a reply always has some, and reasoning that is taken out leaves its own."""

from __future__ import annotations

import json

import pytest

from verl_worker import ScriptedModel


def row(**kwargs):
    return {
        "env_id": "counting_env:bridge/Count-v0",
        "env_kwargs": json.dumps(kwargs),
        "reset_options": json.dumps({"start": 0}),
        "seed": None,
    }


def scripted(*replies):
    models = []

    def make(tokenizer):
        models.append(ScriptedModel(tokenizer, list(replies)))
        return models[-1]

    make.models = models
    return make


def prompt_length(played):
    width = played.batch.batch["prompts"].shape[1]
    return int(played.batch.batch["attention_mask"][0, :width].sum())


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_first_prompt_leaves_room_for_a_reply_in_the_context_of_the_model(play, more):
    """The context is as long as the prompt may be, one token shorter, or one longer."""
    rules = "word " * 80
    length = prompt_length(play(scripted("1", "2", "3"), [row(rules=rules)]))
    model = scripted("1", "2", "3")
    played = play(model, [row(rules=rules)], prompt_length=length, max_model_len=length + more)
    ((prompt, params), *_) = next(iter(model.models[0].asked.values()))
    assert params["max_tokens"] >= 1
    assert len(prompt) + params["max_tokens"] <= length + more
    assert ("characters left out" in played.prompt(0)) is (more < 1)


def test_reasoning_that_is_taken_out_leaves_its_room_to_the_next_turns(play):
    thought = f"<think>{'hm ' * 60}</think>\n\n1"
    model = scripted(thought, "2")
    play(model, [row(goal=2)], drop_reasoning=True, response_length=2_000)
    (first, _) = next(iter(model.models[0].said.values()))
    played = play(scripted(thought, "2"), [row(goal=2)], drop_reasoning=True, response_length=len(first) + 1)
    assert played.record(0)["cut"] == 0
    assert played.score(0) == 2.0
    assert len(played.ids(0)) < len(first)
