"""Any action of any environment can be given as a function call."""

from __future__ import annotations

import json

import numpy as np
import pytest

import agentgym_gym
from agentgym_gym import ReplySpace, ToolCall
from agentgym_gym._tool_calls import called_action, given
from agentgym_gym.formats import get_format


@pytest.mark.parametrize("environment", agentgym_gym.environments(), ids=lambda each: each.name)
def test_any_action_survives_as_a_call(environment):
    grammar, rng = environment.grammar, np.random.default_rng(0)
    space = ReplySpace(get_format("tool_calls"), grammar)
    for action in [*grammar.examples, *(grammar.sample(rng) for _ in range(20))]:
        for arguments in (action.to_json(), json.dumps(action.to_json())):
            call = {"name": action.name(), "arguments": arguments}
            assert given(call, grammar) == (ToolCall(action.name(), arguments),)
            assert called_action(given(call, grammar), grammar) == action
            assert space.contains({"id": "1", "type": "function", "function": call})
