"""The real ``transformers serve`` with a tiny model of random weights, on the CPU: see noxfile.py."""

from __future__ import annotations

import http.client
import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import needs
from agentgym_gym.evaluate import Engine
from process_tree import descendants

needs.skip_without("torch", "transformers", "openai", "uvicorn", "fastapi")

MESSAGES = [{"role": "system", "content": "Find the goal."}, {"role": "user", "content": "You are at 5, 6."}]


@pytest.fixture(scope="module")
def engine(model, tmp_path_factory):
    log = tmp_path_factory.mktemp("logs") / "transformers.log"
    before = descendants(os.getpid())
    with Engine(
        "transformers", str(model), arguments=["--device", "cpu"], log=log, start_seconds=240
    ) as engine:
        yield engine
    assert not engine.is_alive()
    assert descendants(os.getpid()) == before


def complete(engine: Engine, **given) -> dict:
    host = engine.base_url.removeprefix("http://").removesuffix("/v1")
    connection = http.client.HTTPConnection(host, timeout=120)
    body = {"model": engine.model, "messages": MESSAGES, "max_tokens": 12, "temperature": 0, **given}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    said = reply.read()
    connection.close()
    assert reply.status == 200, (said, engine.log_tail())
    return json.loads(said)


def test_it_completes_a_chat_and_greedily_the_same_again(engine):
    first = complete(engine)
    (choice,) = first["choices"]
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"]
    assert choice["finish_reason"] in {"stop", "length"}
    assert 0 < first["usage"]["completion_tokens"] <= 12
    assert first["usage"]["prompt_tokens"] > 10
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: complete(engine), range(16)))
    assert {reply["choices"][0]["message"]["content"] for reply in replies} == {choice["message"]["content"]}


def test_it_samples_where_the_model_sets_it_only_by_the_seed_of_a_request(engine):
    def sample(**given):
        return complete(engine, temperature=1, **given)["choices"][0]["message"]["content"]

    assert sample(seed=1) == sample(seed=1)
    assert len({sample() for _ in range(5)}) > 1


def test_a_started_engine_is_described(engine, model):
    from transformers import __version__

    said = engine.describe()
    assert (said["engine"], said["version"]) == ("transformers", __version__)
    assert said["command"][1:5] == ["-m", "transformers.cli.transformers", "serve", str(model)]
    assert engine.model == str(model)
