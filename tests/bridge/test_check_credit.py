"""The check of credit by turn, for settings as they are written; without verl."""

from __future__ import annotations

import pytest
import yaml

from verl_bridge.recipes._check_credit import check_credit
from verl_bridge.recipes._view import View


def findings(folder, algorithm, arguments, *, interaction=False):
    """Return the statuses and texts of the findings for an agent loop, or an interaction."""
    entry = {"name": "gym_env", "env_id": "bridge/Count-v0", **arguments}
    whole, key = [entry], "agent"
    if interaction:
        config = {"name": "gym_env", "class_name": "verl_bridge.interaction.GymInteraction", "config": entry}
        whole, key = {"interaction": [config]}, "multi_turn"
    (folder / "loop.yaml").write_text(yaml.safe_dump(whole))
    name = "interaction_config_path" if interaction else "agent_loop_config_path"
    rollout = {key: {name: "loop.yaml"}}
    raw = {"algorithm": algorithm, "actor_rollout_ref": {"rollout": rollout}}
    return [(finding.status, finding.text) for finding in check_credit(View(folder, raw))]


@pytest.mark.parametrize("algorithm", [{}, {"adv_estimator": "grpo"}, {"adv_estimator": "own"}])
def test_without_credit_by_turn_there_is_no_finding(tmp_path, algorithm):
    assert findings(tmp_path, algorithm, {"turn_rewards": False}) == []


@pytest.mark.parametrize("settings", [{}, {"gamma": 1, "gym_gigpo_omega": 0}, {"gym_gigpo_omega": None}])
def test_gigpo_with_numbers_is_right(tmp_path, settings):
    ((status, text),) = findings(tmp_path, {"adv_estimator": "gym_gigpo", **settings}, {})
    assert status == "ok"
    assert "gym_gigpo compares turns of the same state" in text


@pytest.mark.parametrize("estimator", ["gae", "grpo"])
def test_interactions_pass_no_turn_rewards(tmp_path, estimator):
    found = findings(tmp_path, {"adv_estimator": estimator}, {"turn_rewards": True}, interaction=True)
    assert found == [("problem", "interactions pass no turn_rewards to verl")]
