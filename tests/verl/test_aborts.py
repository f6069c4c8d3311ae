"""Episodes whose generation verl aborts and resumes under other weights, as its asynchronous trainers do.

verl's own worker and client play them, over the rollout server for a CPU and an environment server on a real
socket, which has a record of each step.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from importlib import metadata

import pytest

pytest.importorskip("verl", reason="verl is not installed: see docs/training/cpu.md")
if metadata.version("verl") < "0.9":
    pytest.skip("only verl 0.9 has asynchronous trainers", allow_module_level=True)

import torch

from aborting_server import AbortingServer
from game_server import WIN, GameServer
from verl_bridge.cpu.generator import Generator

EPISODES = 1_000
REPLY = 6
"""Maximum tokens of a reply."""


class RecordingServer(GameServer):
    """Records the actions of each task, and which environments were closed."""

    def __init__(self):
        super().__init__()
        self.actions, self.closed = defaultdict(list), Counter()

    def _play(self, path, request):
        game = self.open.get(request.json.get("id"), [None])
        if path == "/step":
            self.actions[game[0]].append(request.json["action"])
        if path == "/close":
            self.closed[game[0]] += 1
        return super()._play(path, request)


def rows(url, count):
    return [
        {
            "env_id": "agentgym_gym:agentgym/TextCraft-v0",
            "env_kwargs": json.dumps({"server": url, "action_format": "bare"}),
            "reset_options": json.dumps({"task_id": task}),
            "seed": None,
        }
        for task in range(count)
    ]


def replies_of(played, i):
    """The tokens and log-probabilities of each reply of an episode, and the tokens before it."""
    tokens, mask, logprobs = played.ids(i), played.mask(i), played.logprobs(i)
    prompt = played.tokenizer.encode(played.prompt(i), add_special_tokens=False)
    found, at = [], 0
    while at < len(tokens):
        end = next((n for n in range(at, len(tokens)) if mask[n] != mask[at]), len(tokens))
        if mask[at]:
            found.append((prompt + tokens[:at], tokens[at:end], logprobs[at:end]))
        at = end
    return found


@pytest.mark.parametrize("rejects", [False, True])
def test_each_token_and_each_step_is_counted_once(play, model_folder, rejects, report_at_end):
    servers = []

    def client(_):
        servers.append(AbortingServer(model_folder("chatml"), every=40, rejects=rejects, seed=3))
        return servers[-1].client()

    with RecordingServer() as games:
        played = play(client, rows(games.url, EPISODES), max_tokens_per_turn=REPLY)
    (server,) = servers
    assert len(played) == EPISODES
    # Each token once: what the server returned for a reply, in its order, is the reply in the episode.
    pieces = defaultdict(list)
    for piece in server.pieces:
        pieces[tuple(piece.prompt)].append(piece)
    resumed = spans = 0
    checked = []
    for i in range(EPISODES):
        turns = replies_of(played, i)
        versions = []
        for before, tokens, logprobs in turns:
            assert 1 <= len(tokens) <= REPLY
            at = 0
            while at < len(tokens) or at == 0:
                piece, *others = pieces.pop((*before, *tokens[:at]))
                # An aborted request without a token is sent again with the same prompt.
                while not piece.tokens:
                    piece, *others = others
                assert not others
                end = at + len(piece.tokens)
                assert (tokens[at:end], logprobs[at:end]) == (piece.tokens, pytest.approx(piece.log_probs))
                versions.append(piece.version)
                checked.append(piece)
                resumed += at > 0
                at = end
        assert played.field(i, "min_global_steps") == min(versions)
        assert played.field(i, "max_global_steps") == max(versions)
        spans += min(versions) < max(versions)
        # One step for each reply, which the server got as it was drawn.
        said = [played.tokenizer.decode(tokens, skip_special_tokens=True) for _, tokens, _ in turns]
        assert games.actions[i] == said
        assert played.record(i)["turns"] == len(said) == WIN
    assert not any(piece.tokens for rest in pieces.values() for piece in rest)
    assert not games.open
    assert games.closed == Counter(range(EPISODES))
    assert resumed > 100
    assert spans > 100
    report_at_end(f"{EPISODES} episodes: {len(server.weights) - 1} aborts, {resumed} replies resumed")
