"""Ids as AgentGym's own server gave them out."""

from __future__ import annotations

import json

import pytest

from agentgym_gym import errors
from agentgym_gym._leasing.acquire import acquire_on
from agentgym_gym._leasing.pool import LeasePool
from agentgym_gym.calls import InThread, Reply
from agentgym_gym.envs.webshop import WEBSHOP


def drive(flow, *answers):
    """Answer a flow's calls; return its result and the calls."""
    answers, asked = list(answers), []
    try:
        call = next(flow)
        while True:
            if isinstance(call, InThread):
                call = flow.send(call.function())
                continue
            asked.append(call)
            status, content = answers.pop(0)
            call = flow.send(Reply(call, status, content.encode()))
    except StopIteration as stop:
        assert not answers
        return stop.value, asked


def test_an_id_that_is_in_use_is_not_taken_twice(recordings):
    """A server of three was asked for eight, and gave out live ids again."""
    ids = [row["response_json"] for row in recordings("webshop_cap3.jsonl") if row["path"] == "/create"]
    assert len(set(ids)) == 3 < len(ids)
    pool = LeasePool(WEBSHOP, "http://shop.test")
    leases = []
    for number, each in enumerate(ids[:3]):
        told = [] if leases else [(200, '"ok"'), (404, "{}")]
        leases.append(drive(acquire_on(pool, 0), *told, (200, json.dumps(ids[:number])), (200, str(each)))[0])
    with pytest.raises(errors.ServerFull):
        drive(acquire_on(pool, 0), (200, json.dumps(ids[:3])), (200, str(ids[3])))
    drive(pool.release(leases[0]))
    assert drive(acquire_on(pool, 0), (200, json.dumps(ids[:3])))[0].env_id == ids[0]
