"""The transport, in an environment and in httpx's own client."""

from __future__ import annotations

import contextlib
import json

import httpx
import pytest

from agentgym_gym import AgentGymEnv, errors
from agentgym_gym.testing import KINDS, SEEN_AS, FaultyTransport

GET = "Action: get 1 oak logs"


class Ids(httpx.HTTPTransport):
    """A transport that keeps the ids of the environments that requests named."""

    def __init__(self):
        super().__init__(verify=False)
        self.named = []

    def handle_request(self, request):
        if request.content:
            self.named.append(json.loads(request.content).get("id"))
        return super().handle_request(request)


@pytest.fixture
def through(textcraft_url):
    """Makes a transport to the real server, and an environment that goes through it."""
    with contextlib.ExitStack() as stack:

        def make(share=0.0, timeout=300, inner=None, **faults):
            inner = inner or httpx.HTTPTransport(verify=False)
            transport = stack.enter_context(FaultyTransport(inner, share, **faults))
            env = AgentGymEnv(
                "TextCraft",
                server=textcraft_url,
                http_client=httpx.Client(transport=transport),
                timeout=timeout,
            )
            stack.callback(env.close)
            return transport, env

        yield make


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_seen_as_its_fault(through, kind, arrives):
    transport, env = through(inner=(ids := Ids()), kinds=[kind], stages=["step"], delay=1_000)
    env.reset(options={"task_id": 0})
    env_id = ids.named[-1]
    transport.faults.share = 1
    assert env.step(GET)[4]["fault"]["kind"] == SEEN_AS[kind]
    assert transport.injected == {kind: 1}
    step = {"id": env_id, "action": "inventory"}
    reply = httpx.post(f"{env.servers[0]}/step", json=step, verify=False).json()  # noqa: S501 - http
    assert ("oak logs" in reply["observation"]) == arrives
    transport.faults.share = 0
    env.reset(options={"task_id": 0})
    assert "fault" not in env.step(GET)[4]


def test_a_late_reply_within_the_timeout_counts(through):
    transport, env = through(1, kinds=["delay"], delay=0.01)
    observation, _ = env.reset(options={"task_id": 0})
    transport.faults.share = 0
    assert env.reset(options={"task_id": 0})[0] == observation


def test_down_is_as_if_the_server_were_gone(through):
    transport, env = through()
    with transport.down(), pytest.raises(errors.ServerUnreachable) as caught:
        env.reset(options={"task_id": 0})
    assert caught.value.refused is None  # as with any client that is handed in: a proxy may have refused
    env.reset(options={"task_id": 0})


def test_it_is_a_transport_of_httpx():
    def answer(request):
        headers = {"X-Own": "yes", "Content-Encoding": "gzip"}
        return httpx.Response(200, headers=headers, content=b"\x1f\x8b\x08" + bytes(7) + b"\x03" + bytes(9))

    transport = FaultyTransport(httpx.MockTransport(answer), 1, kinds=["delay"], delay=0)
    with httpx.Client(transport=transport) as client:
        response = client.get("http://elsewhere.test/observation")
        assert (response.headers["x-own"], response.content) == ("yes", b"")
        transport.faults.kinds = ("error",)
        assert client.get("http://elsewhere.test/").status_code == 500


# ------------------------------------------------------------------------------------------------- draws


def faults_of(share, **options):
    return FaultyTransport(httpx.MockTransport(lambda request: httpx.Response(200)), share, **options).faults


def drawn(calls=2_000, **options):
    faults = faults_of(0.2, **options)
    return [faults.draw("step") for _ in range(calls)], faults


def test_a_seed_and_a_sequence_of_calls_make_the_faults():
    one, _ = drawn(seed=3)
    assert one == drawn(seed=3)[0]
    assert one != drawn(seed=4)[0]


def test_faults_have_the_given_share_and_all_kinds():
    kinds, faults = drawn(kinds=[*KINDS, "lost"])
    assert 300 < sum(faults.injected.values()) < 500
    assert set(faults.injected) == set(KINDS)
    assert faults.injected["lost"] == max(faults.injected.values())
    assert sum(kind is not None for kind in kinds) == sum(faults.injected.values())
    assert set(drawn(kinds=["reset"])[0]) == {None, "reset"}
    assert faults.calls == {"step": 2_000}


def test_calls_of_other_stages_do_not_change_the_draws():
    faults = faults_of(0.5, stages=["step"])
    alone = faults_of(0.5, stages=["step"])
    for _ in range(100):
        assert faults.draw("close") is None
        assert faults.draw("step") == alone.draw("step")


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        ("/", "identify"),
        ("/openapi.json", "identify"),
        ("/create", "create"),
        ("/maze/reset", "reset"),
        ("/step?id=3", "step"),
        ("/close", "close"),
        ("/observation?env_idx=1", "observe"),
        ("/list_envs", "observe"),
    ],
)
def test_a_path_has_a_stage(path, stage):
    transport = FaultyTransport(httpx.MockTransport(lambda request: httpx.Response(200)), 0)
    with httpx.Client(transport=transport, base_url="http://elsewhere.test") as client:
        client.get(path)
    assert transport.faults.calls == {stage: 1}
