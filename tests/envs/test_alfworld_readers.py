"""ALFWorld: replies read as AgentGym's own client reads them."""

from __future__ import annotations

import json

import pytest

from agentgym_gym import errors
from agentgym_gym.envs.alfworld import ALFWORLD

REACT = ALFWORLD.agentgym_readers["react"]
CALL = ALFWORLD.agentgym_readers["function_calling"]
CODE = ALFWORLD.agentgym_readers["code_as_action"]


def called(name, arguments):
    return json.dumps({"thought": "t", "function_name": name, "arguments": arguments})


@pytest.mark.parametrize(
    ("reader", "reply", "sent"),
    [
        (REACT, "Action: look\nAction: go to desk 1", "go to desk 1"),
        (REACT, "Action: look</s>", "loo"),
        (REACT, "Action: look</s></s>", "look</s"),
        (REACT, "Action:", ""),
        (REACT, "look", ""),
        (REACT, " click[look] ", "click[look]"),
        (CALL, called("take", {}), "take"),
        (CALL, called("take", []), "take"),
        (CALL, called("take", ""), "take"),
        (CALL, called("take", {"obj": "mug 1"}), "take mug 1"),
        (CALL, called("take", {"recep": 1, "obj": None}), "take None from 1"),
        (CALL, called(" toggle\n", {"obj": "desklamp 1"}), "toggle desklamp 1"),
        (CALL, called("examine", {"obj": "lamp 1", "recep": "book 1"}), "examine book 1 with lamp 1"),
        (CALL, f"See: {called('look', {})} </s>", "look"),
        (CALL, '"thought": "", "function_name": "look", "arguments": []', "look"),
        (CODE, "```\ntake('mug 1', recep='desk 1')\n```\n</s>", "take mug 1 from desk 1"),
        (CODE, "toggle(recep='desklamp 1')", "toggle desklamp 1"),
        (CODE, "examine('book 1', 'lamp 1')", "examine book 1 with lamp 1"),
        (CODE, "examine('book 1', '')", "examine book 1"),
        (CODE, "# why\nlook()", "look"),
        (CODE, "open(1)", "open 1"),
        (CODE, "'go to desk 1'", "go to desk 1"),
    ],
)
def test_texts_that_agentgyms_client_sends(reader, reply, sent):
    assert reader(reply) == sent


@pytest.mark.parametrize(
    ("reader", "reply", "kind"),
    [
        (CALL, called("take", {"recep": "desk 1"}), errors.BadArguments),
        (CALL, called("take", {"obj": "mug 1", "from": "desk 1"}), errors.BadArguments),
        (CALL, called("look", {"obj": "mug 1"}), errors.BadArguments),
        (CALL, called("look", None), errors.BadArguments),
        (CALL, called("open", "d"), errors.BadArguments),
        (CALL, called("open", 0), errors.BadArguments),
        (CALL, called("go_to", {"recep": "desk 1"}), errors.UnknownAction),
        (CALL, called(1, {}), errors.NoAction),
        (CALL, called("look", {}) * 2, errors.NoAction),
        (CALL, "[" * 100_000, errors.NoAction),
        (
            CALL,
            '{"thought": "", "function_name": "open", "arguments": {"recep": ' + "[" * 50_000,
            errors.NoAction,
        ),
        (CALL, '{"thought": ' + "1" * 5_000, errors.NoAction),
        (CODE, "take('mug 1')", errors.BadArguments),
        (CODE, "take('mug 1', 'desk 1', 'x')", errors.BadArguments),
        (CODE, "take('mug 1', obj='desk 1')", errors.BadArguments),
        (CODE, "toggle(obj='desklamp 1')", errors.BadArguments),
        (CODE, "open(__import__('os').getcwd())", errors.BadArguments),
        (CODE, "look" + "()" * 9_000, errors.BadArguments),
        (CODE, "eval('1')", errors.UnknownAction),
        (CODE, "look(), look()", errors.NoAction),
        (CODE, "b'go to desk 1'", errors.NoAction),
        (CODE, "(" * 9_000, errors.NoAction),
        (CODE, "", errors.NoAction),
    ],
)
def test_replies_that_agentgyms_client_does_not_send(reader, reply, kind):
    with pytest.raises(kind) as raised:
        reader(reply)
    assert type(raised.value) is kind
