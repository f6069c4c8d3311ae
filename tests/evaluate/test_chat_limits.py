"""The limits of requests to a model's server: budget, rate, and concurrency that follows HTTP 429."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading

import pytest

from agentgym_gym import errors
from agentgym_gym.evaluate import ChatAgent, Price
from fake_model import Lines, asked, completion, refused, replies
from fake_server import FakeServer, as_json

USAGE = {"prompt_tokens": 100, "completion_tokens": 20}


@pytest.mark.parametrize(
    ("options", "requests"),
    [
        ({"max_tokens_total": 1}, 1),
        ({"max_tokens_total": 240}, 2),
        ({"max_tokens_total": 241}, 3),
        ({"max_cost": 0.0005, "price": Price(1.0, 5.0)}, 3),  # 0.0002 each
    ],
)
def test_no_request_follows_a_budget_that_is_used_up(model, options, requests):
    server, agent = model(completion(usage=USAGE), **options)
    with pytest.raises(errors.SetupError, match=r"budget used up: .*max_"):
        replies(agent, 10)
    assert len(asked(server)) == requests
    with pytest.raises(errors.SetupError, match="budget"):
        replies(agent.clone())
    assert len(asked(server)) == requests
    usage = agent.limits.usage
    assert (usage.requests, usage.prompt_tokens, usage.completion_tokens) == (
        requests,
        100 * requests,
        20 * requests,
    )


def test_cached_prompts_cost_their_own_price(model):
    cached = {**USAGE, "prompt_tokens_details": {"cached_tokens": 60}}
    _, agent = model(completion(usage=cached), max_cost=1, price=Price(10.0, 100.0, cached_input=1.0))
    replies(agent)
    assert agent.limits.usage.cost == pytest.approx((40 * 10 + 60 + 20 * 100) / 1e6)


def test_a_budget_requires_token_counts(model):
    server, agent = model(completion(), max_tokens_total=1000)
    with pytest.raises(errors.BadOption, match="reports no token counts"):
        replies(agent, 3)
    assert len(asked(server)) == 1


def test_retries_are_requests(model):
    _, agent = model(refused("503 Busy", {}, "Retry-After: 0"), completion(usage=USAGE))
    replies(agent)
    assert (agent.limits.usage.requests, agent.limits.usage.retries) == (2, 1)


def test_clones_share_the_limits_and_other_processes_do_not(model):
    _, agent = model(completion(usage=USAGE), requests_per_minute=60_000)
    replies(agent.clone())
    assert agent.limits.usage.requests == 1
    assert copy.copy(agent).limits is agent.limits
    apart = pickle.loads(pickle.dumps(agent))  # noqa: S301 - our own
    assert apart.limits is not agent.limits
    replies(apart)
    assert agent.limits.usage.requests == 1


def run(work):
    return asyncio.run(work)


def new_gate(**options):
    """Return what admits the requests of an agent."""
    return ChatAgent("m", base_url="http://h/v1", **options).limits.gate


def test_the_concurrency_goes_down_on_429_and_up_again():
    async def work():
        gate = new_gate()
        admitted = [await gate.enter() for _ in range(10)]
        gate.leave(admitted.pop(), 429)
        assert gate.limit == pytest.approx(7)
        while admitted:
            gate.leave(admitted.pop(), 429)  # of requests that were sent before the first 429
        assert gate.limit == pytest.approx(7)
        waiting = [asyncio.ensure_future(gate.enter()) for _ in range(10)]
        await asyncio.sleep(0)
        assert (gate.in_flight, gate.waiting) == (7, 3)
        gate.leave(waiting[0].result(), 200)
        await asyncio.sleep(0)
        assert (gate.in_flight, gate.waiting) == (7, 2)
        for number in range(1, 7):
            gate.leave(waiting[number].result(), 200)
        await asyncio.sleep(0)
        assert gate.limit > 7.9  # one more per round trip
        for each in waiting[7:]:
            gate.leave(each.result(), 500)  # a fault, and no sign of overload
        for _ in range(30):
            gate.leave(await gate.enter(), 200)
        assert gate.limit == float("inf")  # above the highest concurrency so far
        assert gate.lowest == pytest.approx(7)

    run(work())


def test_the_limit_is_at_least_one():
    async def work():
        gate = new_gate()
        for _ in range(20):
            gate.leave(await gate.enter(), 429)
        assert gate.limit == 1
        gate.leave(await gate.enter(), None)
        assert gate.in_flight == 0

    run(work())


@pytest.mark.parametrize("admitted_first", [False, True])
def test_a_cancelled_request_frees_its_place(admitted_first):
    async def work():
        gate = new_gate()
        gate.leave(await gate.enter(), 429)  # the limit is 1
        first = await gate.enter()
        waiting = [asyncio.ensure_future(gate.enter()) for _ in range(2)]
        await asyncio.sleep(0)
        if admitted_first:
            gate.leave(first, None)
        waiting[0].cancel()
        await asyncio.gather(waiting[0], return_exceptions=True)
        if not admitted_first:
            gate.leave(first, None)
        await asyncio.wait_for(waiting[1], 30)
        assert (gate.in_flight, gate.waiting) == (1, 0)

    run(work())


def test_a_rate_spaces_the_requests(monkeypatch):
    """The gate computes the times; no request is sent."""
    waits = []

    async def note(seconds):
        waits.append(seconds)

    async def work():
        gate = new_gate(requests_per_minute=0.06)
        for _ in range(4):
            await gate.enter()

    monkeypatch.setattr(asyncio, "sleep", note)
    run(work())
    assert waits == pytest.approx([1000, 2000, 3000], rel=0.1)


class Limited:
    """A server that answers 429 to every request above a number at once.

    Attributes:
        most: That number.
        rejected: The number of requests that got 429.
        peaks: The requests in progress at the beginning of each accepted one.
    """

    def __init__(self, most):
        self.most, self.rejected, self.peaks, self._now = most, 0, [], 0
        self._lock = threading.Lock()

    def __call__(self, request):
        with self._lock:
            self._now += 1
            accepted = self._now <= self.most
            self.rejected += not accepted
            if accepted:
                self.peaks.append(self._now)
        return lambda connection: self._reply(connection, accepted)

    def _reply(self, connection, accepted):
        connection.wait(0.02 if accepted else 0.001)
        with self._lock:
            self._now -= 1
        if accepted:
            connection.send(as_json(completion(usage=USAGE)))
        else:
            connection.send(refused("429 Busy", {"error": {"message": "too many"}}, "Retry-After: 0"))


def test_a_server_that_accepts_few_requests_at_once(started):
    """No episode is lost, most requests are accepted, and the concurrency rises when the server permits."""
    limited = Limited(4)
    server = started(FakeServer(limited))
    agent = ChatAgent("m", base_url=f"{server.url}/v1", retry_seconds=120)

    async def play(one, turns):
        await one.reset(Lines(), "o0", {"task_id": 0})
        for turn in range(turns):
            await one.act(f"o{turn}", {})
        await one.close()

    async def work(turns):
        await asyncio.gather(*(play(agent.clone(), turns) for _ in range(16)))

    run(work(10))
    assert agent.limits.gate.rejected == limited.rejected > 0
    assert agent.limits.gate.lowest < 5
    assert len(limited.peaks) == 160
    assert limited.rejected < 160
    limited.most = 100
    run(work(20))
    assert len(limited.peaks) == 480
    assert max(limited.peaks[-100:]) > 4
