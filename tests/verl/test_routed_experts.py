"""The experts of a mixture that verl's router replay needs of all episodes of a batch."""

from __future__ import annotations

import json

import numpy as np

from verl_worker import ScriptedModel

LAYERS, EXPERTS = 3, 2


class Routed(ScriptedModel):
    """A server that returns the experts of each token of a prompt and its reply."""

    async def generate(self, request_id, *, prompt_ids, **more):
        output = await super().generate(request_id, prompt_ids=prompt_ids, **more)
        tokens = len(prompt_ids) + len(output.token_ids)
        output.routed_experts = np.full((tokens, LAYERS, EXPERTS), 7, dtype=np.uint8)
        return output


def row(*faults):
    return {
        "env_id": "counting_env:bridge/Count-v0",
        "env_kwargs": json.dumps({"faults": faults}),
        "reset_options": "{}",
        "seed": None,
    }


def test_an_episode_without_a_reply_has_some_too(play):
    rows = [row(), row("reset")]
    for batch in (rows[:1], rows):  # a server has replied before
        played = play(lambda tokenizer: Routed(tokenizer, ["1", "2", "3"]), batch)
    experts, kept = played.batch.batch["routed_experts"], played.batch.batch["attention_mask"].bool()
    assert experts.shape[2:] == (LAYERS, EXPERTS)
    assert experts[0][kept[0]].unique().tolist() == [7]
    assert experts[1].unique().tolist() == [0]
    assert played.record(1)["fault"] == 1
