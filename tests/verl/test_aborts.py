"""Episodes whose generation verl aborts and resumes under other weights, as its asynchronous trainers do.

verl's own worker and client play them, over the rollout server for a CPU with its real model.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import time
from collections import Counter, defaultdict
from importlib import metadata
from types import SimpleNamespace

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))
if metadata.version("verl") < "0.9":
    pytest.skip("only verl 0.9 has asynchronous trainers", allow_module_level=True)

import torch

import ledger_env
from aborting_server import AbortingServer
from agentgym_gym.rollout import close_all
from game_server import GameServer
from ledger_env import TURNS
from verl_bridge.cpu.generator import Generator
from verl_worker import TokenOutput

REPLY = 6
"""Maximum tokens of a reply."""


@pytest.fixture(autouse=True)
def _new_ledger():
    ledger_env.clear()


@pytest.fixture(autouse=True)
def _resumed_at_once(monkeypatch):
    """Have verl's client wait a hundredth of a second, and not one, before it resumes a reply."""
    client = importlib.import_module("verl.workers.rollout.llm_server")
    sleep = asyncio.sleep
    quick = SimpleNamespace(**{**vars(asyncio), "sleep": lambda seconds: sleep(seconds / 100)})
    monkeypatch.setattr(client, "asyncio", quick)


@pytest.fixture
def aborting(model_folder):
    """Makes a server in the event loop of the episodes, which is then in ``servers``."""

    def of(every, *, rejects=False, seed=3):
        def client(_):
            of.servers.append(AbortingServer(model_folder("chatml"), every=every, rejects=rejects, seed=seed))
            return of.servers[-1].client()

        return client

    of.servers = []
    return of


def ledger_rows(count):
    return [
        {
            "env_id": "ledger_env:test/Ledger-v0",
            "env_kwargs": json.dumps({"task": task}),
            "reset_options": "{}",
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


def take(pieces, before, tokens, logprobs):
    """Take the pieces of a reply out of what the server returned: together they are the reply."""
    taken, at = [], 0
    while at < len(tokens):
        # An aborted request without a token is sent again with the same prompt.
        *empty, piece = pieces.pop((*before, *tokens[:at]))
        assert all(other.aborted and not other.tokens for other in empty)
        taken += empty
        end = at + len(piece.tokens)
        assert piece.tokens == tokens[at:end]
        assert piece.log_probs == pytest.approx(logprobs[at:end], rel=1e-6)  # verl keeps them as float32
        assert piece.aborted or end == len(tokens)
        taken.append(piece)
        at = end
    return taken


@pytest.mark.parametrize("rejects", [False, True])
@pytest.mark.parametrize("episodes", [150, pytest.param(500, marks=pytest.mark.slow)])
def test_each_token_and_each_step_is_counted_once(
    play, aborting, model_folder, episodes, rejects, report_at_end
):
    started = time.monotonic()
    client = aborting(8, rejects=rejects)
    played = play(client, ledger_rows(episodes), max_tokens_per_turn=REPLY)
    (server,) = aborting.servers
    pieces = defaultdict(list)
    for piece in server.pieces:
        pieces[tuple(piece.prompt)].append(piece)
    resumed, spanning, taken = 0, 0, []
    for i in range(episodes):
        replies = replies_of(played, i)
        of_replies = [take(pieces, *reply) for reply in replies]
        assert all(1 <= len(tokens) <= REPLY for _, tokens, _ in replies)
        # One step for each reply, with the text of the reply.
        said = [played.tokenizer.decode(tokens, skip_special_tokens=True) for _, tokens, _ in replies]
        assert ledger_env.actions[i] == said
        assert (len(said), played.score(i), played.record(i)["fault"]) == (TURNS, TURNS, 0)
        versions = [piece.version for of_reply in of_replies for piece in of_reply]
        span = played.field(i, "min_global_steps"), played.field(i, "max_global_steps")
        assert span == (min(versions), max(versions))
        spanning += span[0] < span[1]
        drawn = [[piece for piece in of_reply if piece.tokens] for of_reply in of_replies]
        resumed += sum(len(of_reply) > 1 for of_reply in drawn)
        taken += [piece for of_reply in drawn for piece in of_reply]
    # Nothing that the server drew is lost. Each environment was given back: no other is closed here.
    assert not [piece for left in pieces.values() for piece in left if piece.tokens]
    close_all()
    assert ledger_env.made == ledger_env.closed == Counter(range(episodes))
    assert resumed >= episodes / 5
    assert spanning >= episodes / 5
    check_log_probs(server, model_folder("chatml"), taken[:: max(1, len(taken) // 200)])
    report_at_end(
        f"{episodes} episodes {'with' if rejects else 'without'} rejected requests: "
        f"{len(server.weights) - 1} aborts, {resumed} replies resumed, {spanning} episodes over several "
        f"weights, {time.monotonic() - started:.0f} s"
    )


def check_log_probs(server, folder, pieces):
    """Compare log-probabilities with those of the weights that drew the tokens, by one forward pass each."""
    model = Generator.load(str(folder))._model
    for version in {piece.version for piece in pieces}:
        model.load_state_dict(server.weights[version])
        for piece in (piece for piece in pieces if piece.version == version):
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([piece.prompt + piece.tokens])).logits[0]
            logs = logits[len(piece.prompt) - 1 : -1].log_softmax(-1)
            drawn = logs.gather(-1, torch.tensor(piece.tokens)[:, None])[:, 0]
            assert piece.log_probs == pytest.approx(drawn.tolist(), abs=1e-4)


@pytest.mark.parametrize("room", [20, 40])
def test_a_resumed_reply_keeps_to_the_limits_of_the_first_request(play, aborting, room):
    """Of the context too: the tokens before an abort are a prompt when it is resumed."""
    played = play(aborting(2), ledger_rows(16), max_model_len=room + 20, max_tokens_per_turn=room)
    for i in range(16):
        replies = replies_of(played, i)
        assert replies
        assert all(len(before) + len(tokens) <= room + 20 for before, tokens, _ in replies)
        assert all(len(tokens) <= room for _, tokens, _ in replies)


def test_cancelled_episodes_give_their_environments_back(play, aborting):
    """A group that verl drops, and the end of a run, cancel episodes wherever they are."""
    with GameServer() as games:
        kwargs = json.dumps({"server": games.url, "action_format": "bare"})
        env = {"env_id": "agentgym_gym:agentgym/TextCraft-v0", "env_kwargs": kwargs, "seed": None}
        rows = [{**env, "reset_options": json.dumps({"task_id": task})} for task in range(100)]
        client = aborting(6)

        def cancelled(tokenizer):
            made = client(tokenizer)
            aborting.servers[0].after = 150, asyncio.current_task().cancel
            return made

        with pytest.raises(asyncio.CancelledError):
            play(cancelled, rows, max_tokens_per_turn=REPLY)
        close_all()
        assert games.most > 0
        assert not games.open


class NotResumed:
    """A server whose second reply is aborted, and a client that does not resume it."""

    def __init__(self, tokenizer, reason):
        self.replies = [[*tokenizer.encode("1"), tokenizer.eos_token_id], tokenizer.encode("2")]
        self.reasons = ["completed", reason]

    async def generate(self, request_id, *, prompt_ids, sampling_params, **_):
        reply = self.replies.pop(0)
        return TokenOutput(token_ids=reply, log_probs=[-1.0] * len(reply), stop_reason=self.reasons.pop(0))


@pytest.mark.parametrize("reason", ["aborted", "abort"])
def test_a_part_of_a_reply_does_not_reach_the_environment(play, reason):
    played = play(lambda tokenizer: NotResumed(tokenizer, reason), ledger_rows(1))
    assert ledger_env.actions[0] == ["1"]
    assert played.labels(0)["fault_kind"] == "Aborted"
    assert played.masked_in(0) == []
    close_all()
    assert ledger_env.closed == {0: 1}


def test_a_server_that_does_not_know_its_step_does_not_hide_the_trainers(play):
    class Unknown(NotResumed):
        async def generate(self, *args, **kwargs):
            output = await super().generate(*args, **kwargs)
            output.extra_fields |= {"min_global_steps": None, "max_global_steps": None}
            return output

    played = play(lambda tokenizer: Unknown(tokenizer, "aborted"), ledger_rows(1))
    assert (played.field(0, "min_global_steps"), played.field(0, "max_global_steps")) == (8, 8)
