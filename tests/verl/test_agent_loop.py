"""The agent loop in verl's own worker, over an environment in the process."""

from __future__ import annotations

import asyncio
import json
import re
import time

import pytest

import counting_env
from verl_bridge import replays
from verl_bridge.episodes import close_all
from verl_worker import CHATML, KEYS, TEMPLATES, ScriptedModel

COUNT = "counting_env:bridge/Count-v0"


def row(start=0, **kwargs):
    return {
        "env_id": COUNT,
        "env_kwargs": json.dumps(kwargs),
        "reset_options": json.dumps({"start": start}),
        "seed": None,
    }


def scripted(*scripts, **options):
    models = []

    def make(tokenizer):
        models.append(ScriptedModel(tokenizer, *scripts, **options))
        return models[-1]

    make.models = models
    return make


def chat(tokenizer, system, *turns, template=None):
    roles = ("user", "assistant")
    messages = [{"role": "system", "content": system}] if system else []
    messages += [{"role": roles[i % 2], "content": text} for i, text in enumerate(turns)]
    return tokenizer.apply_chat_template(messages, tokenize=False, chat_template=template)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("system", ["You play a game.", None])
def test_a_game_is_told_as_the_template_tells_it(play, template, system):
    model = scripted(["1", "<think>hm</think>2", "what?", "3"])
    played = play(model, [row()], template=template, system=system)
    # What was thought stays where it was thought, so the template that would take it out is not the measure.
    measure = CHATML if template == "thinking" else None
    whole = chat(
        played.tokenizer,
        system,
        *("Count from 0 to 3.", "1", "You are at 1.", "<think>hm</think>2", "You are at 2."),
        *("what?", "'what?' is no number.", "3"),
        template=measure,
    )
    assert whole.removesuffix("\n") == played.text(0)
    (said,) = model.models[0].said.values()
    assert played.masked_in(0) == [token for reply in said for token in reply]
    assert played.score(0) == 3.0
    assert played.record(0) == {
        "return": 3,
        "success": 1,
        "turns": 4,
        "invalid_actions": 1,
        "fault": 0,
        "replays": 0,
    }
    assert played.field(0, "turn_scores") == [1.0, 1.0, 0.0, 1.0]
    assert played.turns(0) == 8  # four of each


def test_the_model_is_asked_with_the_very_tokens_that_are_trained_on(play):
    model = scripted(["1", "2", "3"])
    played = play(model, [row()], max_tokens_per_turn=40)
    (asked,) = model.models[0].asked.values()
    assert len(asked) == 3
    for prompt, params in asked:
        assert params["max_tokens"] == 40
        whole = played.tokenizer.encode(played.prompt(0), add_special_tokens=False) + played.ids(0)
        assert whole[: len(prompt)] == prompt


def test_log_probabilities_stand_beside_their_tokens(play):
    model = scripted(["1", "2", "3"])
    played = play(model, [row()])
    said = next(iter(model.models[0].said.values()))
    expected = [-(1.0 + place) for reply in said for place in range(len(reply))]
    own = [p for p, m in zip(played.logprobs(0), played.mask(0), strict=True) if m]
    others = [p for p, m in zip(played.logprobs(0), played.mask(0), strict=True) if not m]
    assert own == expected
    assert others == [0.0] * len(others)
    assert others


def test_log_probabilities_that_nobody_asked_for_are_left_out(play):
    """So that a faulted episode, which has none, fits into a batch with the others."""
    played = play(scripted(["1", "2", "3"]), [row(), row(faults=["reset"])], calculate_log_probs=False)
    assert "rollout_log_probs" not in played.batch.batch.keys()  # noqa: SIM118 - not a dict
    assert played.score(0) == 3.0


def test_missing_log_probabilities_are_said(play):
    with pytest.raises(RuntimeError, match=r"calculate_log_probs"):
        play(scripted(["1"], logprobs=False), [row()])


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_reply_that_was_cut_is_closed_by_tokens_that_are_not_the_models(play, template):
    model = scripted(["12345 67890 and so on", "1"])
    played = play(model, [row(goal=1)], template=template, max_tokens_per_turn=3)
    (said,) = model.models[0].said.values()
    assert len(said[0]) == 3
    cut = played.tokenizer.decode(said[0])
    measure = CHATML if template == "thinking" else None
    seen = f"{cut.strip()!r} is no number." if not cut.strip().isdigit() else "You are at 0."
    whole = chat(played.tokenizer, "You play a game.", "Count from 0 to 1.", cut, seen, "1", template=measure)
    assert whole.removesuffix("\n") == played.text(0)
    assert played.masked_in(0) == [token for reply in said for token in reply]
    assert played.ids(0)[3] == played.tokenizer.eos_token_id
    assert played.mask(0)[3] == 0


def test_another_stop_token_is_kept_and_the_turn_closed_after_it(play, tokenizer):
    other = tokenizer().convert_tokens_to_ids("<|endoftext|>")
    model = scripted([[*tokenizer().encode("1", add_special_tokens=False), other], "2"])
    played = play(model, [row(goal=2)])
    assert "\n1<|endoftext|><|im_end|>\n<|im_start|>user\nYou are at 1." in played.text(0)
    assert played.masked_in(0).count(other) == 1
    assert played.score(0) == 2.0


def test_the_limit_of_turns(play):
    played = play(scripted(["1", "2", "3"]), [row()], max_turns=2)
    assert played.score(0) == 2.0
    assert played.record(0) == {
        "return": 2,
        "success": 0,
        "turns": 2,
        "invalid_actions": 0,
        "fault": 0,
        "replays": 0,
    }
    assert played.text(0).endswith("2<|im_end|>")


def test_a_response_that_is_full_scores_what_was_earned(play):
    replies = [str(n) for n in range(1, 100)]
    played = play(scripted(replies), [row(goal=100)], response_length=120)
    score = played.score(0)
    assert 1 < score < 99
    assert len(played.ids(0)) <= 120
    assert played.field(0, "turn_scores") == [1.0] * int(score)
    assert played.record(0)["success"] == 0
    assert played.mask(0)[-1] == 1  # no observation that nobody answers


def test_a_reply_that_fills_the_response_is_played_as_it_stands(play):
    played = play(scripted(["1 " * 500]), [row()], response_length=60)
    assert len(played.ids(0)) == 60
    assert played.mask(0) == [1] * 60
    assert played.record(0) == {
        "return": 0,
        "success": 0,
        "turns": 1,
        "invalid_actions": 1,
        "fault": 0,
        "replays": 0,
    }
    assert played.score(0) == 0.0


def test_a_prompt_that_is_too_long_is_masked_and_said(play, caplog):
    model = scripted(["1", "2", "3"])
    played = play(model, [row(rules="Rule. " * 200), row()], prompt_length=128)
    assert played.record(0) == {
        "return": 0,
        "success": 0,
        "turns": 0,
        "invalid_actions": 0,
        "fault": 1,
        "replays": 0,
    }
    assert played.mask(0) == [0]
    assert "data.max_prompt_length allows 128" in played.field(0, "env_fault")["message"]
    assert "data.max_prompt_length" in caplog.text
    assert played.record(1)["return"] == 3


@pytest.mark.parametrize("where", ["make", "reset", "step 0", "step 1"])
def test_a_fault_is_masked_and_counted(play, where):
    model = scripted(["1", "2", "3"])
    played = play(model, [row(faults=[where]), row()])
    turns = {"step 0": 1, "step 1": 2}.get(where, 0)
    assert played.record(0) == {
        "return": 0,
        "success": 0,
        "turns": turns,
        "invalid_actions": 0,
        "fault": 1,
        "replays": 0,
    }
    assert set(played.mask(0)) == {0}
    assert played.score(0) == 0.0
    assert played.field(0, "env_fault") == {"kind": "RuntimeError", "message": f"broken at {where}"}
    assert played.record(1) == {
        "return": 3,
        "success": 1,
        "turns": 3,
        "invalid_actions": 0,
        "fault": 0,
        "replays": 0,
    }
    assert len(model.models[0].asked) == bool(turns) + 1


def test_an_episode_is_played_anew_until_the_environment_is_back(play, monkeypatch, caplog):
    left = ["step 1", "make", "reset", "step 0"]

    def fail(self, where):
        if left and left[0] == where:
            raise RuntimeError(f"broken at {left.pop(0)}")

    monkeypatch.setattr(replays, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(counting_env.Count, "_fail", fail)
    model = scripted(["1", "2", "3"])
    played = play(model, [row(start=0)], fault_budget=30)
    assert played.record(0) == {
        "return": 3,
        "success": 1,
        "turns": 3,
        "invalid_actions": 0,
        "fault": 0,
        "replays": 4,
    }
    first, second, third = model.models[0].said.values()
    assert (len(first), len(second), len(third)) == (2, 1, 3)
    assert played.masked_in(0) == [token for reply in third for token in reply]
    assert "RuntimeError: broken at step 1. Replay 1 follows" in caplog.text
    assert "played at last, after 4 replays" in caplog.text


def test_an_environment_that_stays_away_is_left_out_when_the_budget_is_used_up(play, monkeypatch):
    monkeypatch.setattr(replays, "FIRST_WAIT", 0.05)
    began = time.monotonic()
    played = play(scripted(["1", "2", "3"]), [row(faults=["step 1"]), row()], fault_budget=0.5)
    assert 0.5 < time.monotonic() - began < 20
    assert (played.record(0)["fault"], played.record(1)["fault"]) == (1, 0)
    assert played.record(0)["replays"] >= 2
    assert not any(played.mask(0))
    assert played.field(0, "env_fault") == {"kind": "RuntimeError", "message": "broken at step 1"}


def test_a_fault_that_waiting_does_not_mend_is_not_waited_for(play):
    model = scripted(["1", "2", "3"])
    rows = [row(colour="red"), row(rules="Rule. " * 500), row()]
    played = play(model, rows, fault_budget=1_000)
    assert [played.record(i)["fault"] for i in range(3)] == [1, 1, 0]
    assert [played.record(i)["replays"] for i in range(3)] == [0, 0, 0]
    assert played.field(0, "env_fault")["kind"] == "WrongArguments"


def test_what_the_generation_server_raises_is_verls_and_the_environment_is_given_back(play):
    with pytest.raises(ConnectionError, match="gone"):
        play(scripted(["1", ConnectionError("gone")]), [row()])
    close_all()
    assert counting_env.opened == set()


def test_a_cancelled_episode_gives_its_environment_back(play):
    with pytest.raises(asyncio.CancelledError):
        play(scripted(["1", asyncio.CancelledError()]), [row()])
    close_all()
    assert counting_env.opened == set()


def test_the_steps_whose_weights_were_sampled_are_said_of_every_episode(play):
    """verl 0.9.1 counts with them, and cannot count with None."""
    played = play(scripted(["1", "2", "3"]), [row(), row(faults=["reset"])])
    assert (played.field(0, "min_global_steps"), played.field(0, "max_global_steps")) == (3, 5)
    assert (played.field(1, "min_global_steps"), played.field(1, "max_global_steps")) == (9, 9)


def test_a_prompt_that_fills_the_context_of_the_model_is_masked_too(play):
    played = play(scripted(["1"]), [row(rules="Rule. " * 50)], max_model_len=100)
    assert "rollout.max_model_len allows 99" in played.field(0, "env_fault")["message"]
    assert played.record(0)["fault"] == 1


def test_what_the_row_leaves_out_comes_from_the_yaml(play):
    given = {"env_id": COUNT, "env_kwargs": {"goal": 1, "rules": "By the yaml. "}}
    rows = [{}, {"env_kwargs": {"goal": 2, "rules": None}}, {"reset_options": {"start": 5}, "env_id": None}]
    # By what is shown, since the episodes may begin in any order.
    model = scripted(lambda seen: str(int(re.findall(r"(?:from|at) (\d+)", seen)[-1]) + 1))
    played = play(model, rows, **given)
    assert [played.score(i) for i in range(3)] == [1.0, 2.0, 1.0]
    assert "By the yaml. Count from 0 to 1." in played.prompt(0)
    assert "By the yaml. Count from 0 to 2." in played.prompt(1)
    assert "Count from 5 to 6." in played.prompt(2)


def test_an_environment_that_nobody_registered_is_an_error(play):
    with pytest.raises(ValueError, match=r"env_id='bridge/None-v0' is not registered"):
        play(scripted(["1"]), [{"env_id": "bridge/None-v0"}])


@pytest.mark.parametrize(
    ("name", "value", "should"),
    [
        ("max_turns", 0, "an integer"),
        ("max_tokens_per_turn", 1.5, "an integer"),
        ("fault_budget", -1, "a number of seconds from 0"),
    ],
)
def test_a_number_that_cannot_be_is_an_error(play, name, value, should):
    with pytest.raises(Exception, match=f"{name}={value!r} should be {should}"):
        play(scripted(["1"]), [row()], **{name: value})


def test_the_extra_info_is_that_of_every_sample(play):
    played = play(
        scripted(["1", "2", "3"]), [row(), row(faults=["reset"]), row(rules="x " * 2_000)], validate=True
    )
    for i in range(3):
        assert set(played.record(i)) == set(KEYS)


def test_no_environment_is_left_open_after_many_episodes_with_faults(play):
    rows = [row(rate=0.05, seed=i % 7, goal=1 + i % 3) for i in range(200)]
    played = play(scripted(["1", "2", "3"]), rows)
    faults = sum(played.record(i)["fault"] for i in range(200))
    assert 0 < faults < 100
    for i in range(200):
        assert (played.record(i)["fault"] == 1) == (sum(played.mask(i)) == 0)
        assert played.score(i) == (0 if played.record(i)["fault"] else 1 + i % 3)
    close_all()
    assert counting_env.opened == set()
