"""Whether a failing server gives named faults and no score."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agentgym_gym.rollout._check_results import stated_success
from agentgym_gym.rollout._env_facts import attribute_of
from agentgym_gym.testing._audit.findings import Checked, Defect, NotApplicable
from agentgym_gym.testing._audit.programs import program, reset_call
from agentgym_gym.testing._audit.scores import SENSELESS
from agentgym_gym.testing._audit.setup import GymMaker
from agentgym_gym.testing._faults import KINDS
from agentgym_gym.testing._proxy import FaultyProxy

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.subject import OpenEnv, Subject
    from agentgym_gym.testing._faults import Kind

__all__ = ["check_faults"]

_TIMEOUT = 1.0
"""Timeout in seconds of a step whose reply is late or missing."""


async def check_faults(subject: Subject) -> Checked:
    """Play through a proxy that makes a step of each episode fail, one kind of fault after another."""
    async with subject.open() as env:
        servers = attribute_of(env.env, "servers")
    if not isinstance(subject.make_plain, GymMaker) or not isinstance(servers, tuple) or not servers:
        raise NotApplicable("the environment is not a client of a server")
    checked: list[str] = []
    with FaultyProxy(servers[0], 0.0, stages=["step"], delay=2 * _TIMEOUT) as proxy:
        own = {"server": proxy.url, "timeout": {"step": _TIMEOUT}}
        make = replace(subject.make_plain, env_kwargs={**subject.make_plain.env_kwargs, **own})
        async with subject.open(make=make) as env:
            for kind in KINDS:
                if subject.enough(len(checked), len(KINDS)):
                    break
                checked.append(kind)
                if text := await _fault_problem(subject, env, proxy, kind):
                    return Checked([await _defect(subject, kind, text)], {"kinds": checked})
    return Checked(measured={"kinds": checked})


async def _fault_problem(subject: Subject, env: OpenEnv, proxy: FaultyProxy, kind: Kind) -> str:
    """Play an episode whose step fails, and another one; return what is wrong, or an empty text."""
    task = subject.tasks[0]
    proxy.faults.kinds, proxy.faults.share = (kind,), 0.0
    trace, action = await env.begin(task), _action(subject)
    if trace.faulted:
        return f"the reset before it failed: {trace.error}"
    proxy.faults.share = 1.0
    trace = await env.step(action)
    proxy.faults.share = 0.0
    if not proxy.injected[kind]:  # nothing was sent
        return ""
    if not trace.faulted:
        return 'info["fault"] is missing'
    if trace.returned or stated_success(trace.last_info.get("success")):
        return f"the episode has the score {trace.returned:g}"
    if not trace.over:
        return "the episode does not end"
    await env.begin(task)
    trace = await env.step(action)
    return f"the next episode fails, too: {trace.error or trace.last_info['fault']}" if trace.faulted else ""


def _action(subject: Subject) -> str:
    """Return an action that is sent to the server."""
    return subject.choices.sample(subject.rng(6)) or SENSELESS


async def _defect(subject: Subject, kind: Kind, text: str) -> Defect:
    expression = subject.source.expression.removesuffix(")")
    lines = [
        "from agentgym_gym.testing import FaultyProxy",
        "server = make().get_wrapper_attr('servers')[0]",
        f"with FaultyProxy(server, 1.0, kinds=[{kind!r}], stages=['step'], delay={2 * _TIMEOUT}) as proxy:",
        f"    env = {expression}, server=proxy.url, timeout={{'step': {_TIMEOUT}}})",
        f"    env.{reset_call(subject, subject.tasks[0])}",
        f"    _, reward, terminated, truncated, info = env.step({_action(subject)!r})",
        '    assert info.get("fault") and not reward and truncated, "a fault of the server is not named"',
    ]
    return Defect(
        f"a step with the fault {kind!r}: {text}",
        'end the episode as truncated with the reward 0 and info["fault"]',
        (subject.tasks[0],),
        await program(subject, lines),
    )
