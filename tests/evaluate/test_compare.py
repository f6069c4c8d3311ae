"""Runs compared, paired by task."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean

import pytest

from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import RunResult, compare_runs, summarise

FACTS = {
    "env_id": "agentgym/TextCraft-v0",
    "options": {"action_format": "react", "max_turns": 20, "split": "test"},
    "agent_settings": {"model": "a", "history": {"turns": None, "tokens": None}},
    "system_prompt": "Craft.",
    "finished": True,
}


@pytest.fixture
def run(record):
    """Makes a run of the scores of each task's samples, None for a fault."""

    def make(name, outcomes, *, goals=None, **facts):
        records = [
            record(
                task,
                fault="ServerFull" if score is None else None,
                score=1.0 if score is None else score,
                sample=i,
                **({} if goals is None else {"goal": goals[task]}),
            )
            for task, scores in outcomes.items()
            for i, score in enumerate(scores)
        ]
        return RunResult(Path(name), {**FACTS, "agent": name, **facts}, tuple(records))

    return make


def by_all_signs(differences):
    """Return the share of the choices of signs with a sum as far from 0."""
    signs = list(product((-1, 1), repeat=len(differences)))
    sums = [abs(sum(s * d for s, d in zip(each, differences, strict=True))) for each in signs]
    return fmean(each >= abs(sum(differences)) - 1e-9 for each in sums)


def test_a_task_counts_by_the_mean_of_its_episodes(run, record):
    a = {0: [0.0, 0.5, 0.0, 0.0], 1: [1.0] * 4, 2: [0.0] * 4, 3: [0.2, None, 0.4, None]}
    b = {0: [1.0] * 4, 1: [1.0, 1.0, 1.0, 0.0], 2: [0.0] * 4, 3: [0.9, 0.8, None, None]}
    compared = compare_runs(run("a", a), run("b", b))
    success = [1.0 - 0.25, 0.75 - 1.0, 0.0, 0.0]
    score = [1.0 - 0.125, 0.75 - 1.0, 0.0, 0.85 - 0.3]
    for paired, differences in ((compared.success, success), (compared.score, score)):
        assert paired.tasks == 4
        assert paired.difference == pytest.approx(fmean(differences))
        assert paired.b - paired.a == pytest.approx(paired.difference)
        of_differences = summarise(record(task, score=each) for task, each in enumerate(differences))
        assert paired.interval == pytest.approx(of_differences.score_interval)
        assert paired.p_value == by_all_signs(differences)
        assert paired.draws is None
        assert (paired.wins, paired.losses) == (
            sum(d > 0 for d in differences),
            sum(d < 0 for d in differences),
        )
        assert paired.wins + paired.losses + paired.ties == 4
    assert compared.left_out == {}
    assert compared.warnings == ()


def test_the_other_way_round_the_result_is_the_opposite(run):
    a, b = run("a", {i: [float(i % 3 == 0)] for i in range(30)}), run("b", {i: [i / 30] for i in range(30)})
    one, other = compare_runs(a, b), compare_runs(b, a)
    for name in ("success", "score"):
        forth, back = getattr(one, name), getattr(other, name)
        assert forth.difference == -back.difference
        assert forth.p_value == back.p_value
        assert (forth.wins, forth.losses, forth.ties) == (back.losses, back.wins, back.ties)
        low, high = back.interval
        assert forth.interval == pytest.approx((-high, -low), abs=0.02)


def test_with_one_episode_for_each_task_it_is_mcnemar_s_exact_test(run):
    a = {i: [float(i < 40)] for i in range(200)}
    b = {i: [float(40 <= i < 101)] for i in range(200)}
    paired = compare_runs(run("a", a), run("b", b)).success
    assert (paired.wins, paired.losses, paired.ties) == (61, 40, 99)
    assert paired.p_value == pytest.approx(0.046044066929342785)  # scipy.stats.binomtest(40, 101)


def test_left_out_tasks_are_listed(run):
    a = {0: [1.0], 1: [1.0], 2: [None], 3: [0.0], 5: [1.0], 6: [None]}
    b = {0: [0.0], 1: [None], 2: [1.0], 4: [1.0], 5: [1.0], 6: [None, None]}
    goals = dict.fromkeys(range(7), "the same")
    compared = compare_runs(run("a", a, goals=goals), run("b", b, goals={**goals, 5: "another"}))
    assert compared.left_out == {
        "not scored in B": (1,),
        "not scored in A": (2,),
        "not in B": (3,),
        "not in A": (4,),
        "another goal in A than in B": (5,),
        "not scored in A and B": (6,),
    }
    assert (compared.score.tasks, compared.score.losses) == (1, 1)
    assert compared.score.interval is None
    assert compared.score.p_value == 1.0


def test_without_success_the_score_is_compared(run):
    a, b = run("a", {0: [1.0], 1: [1.0]}), run("b", {0: [0.5], 1: [0.0]})
    silent = replace(a, records=(replace(a.records[0], success=None), a.records[1]))
    compared = compare_runs(silent, b)
    assert (compared.score.tasks, compared.success.tasks) == (2, 1)
    assert compared.success_unknown == (0,)


def test_equal_scores_are_ties_however_many_were_averaged(run):
    """0.1 is not the mean of three times 0.1, in floats."""
    compared = compare_runs(run("a", {0: [0.1] * 3, 1: [0.7] * 3}), run("b", {0: [0.1], 1: [0.7]}))
    assert (compared.score.ties, compared.score.p_value) == (2, 1.0)
    assert compared.warnings == ("the number of samples differs: 3 in A, 1 in B",)


def test_runs_without_common_tasks_have_no_difference(run):
    compared = compare_runs(run("a", {0: [1.0]}), run("b", {1: [1.0]}))
    value = json.loads(json.dumps(compared.to_json(), allow_nan=False))
    for name in ("success", "score"):
        assert value[name]["tasks"] == 0
        for key in ("a", "b", "difference", "interval", "p_value"):
            assert value[name][key] is None
    assert value["left_out"] == {"not in B": [0], "not in A": [1]}


@pytest.mark.parametrize(
    ("facts", "warnings"),
    [
        ({"options": {**FACTS["options"], "max_turns": 30}}, ("max_turns differs: 20 in A, 30 in B",)),
        (
            {"options": {"max_turns": 20, "split": "test"}},
            ("action_format differs: 'react' in A, None in B",),
        ),
        ({"options": {**FACTS["options"], "split": "train"}}, ("split differs: 'test' in A, 'train' in B",)),
        ({"options": None}, 3),
        ({"system_prompt": "Craft well."}, ("the system prompt differs",)),
        ({"finished": False}, ("B is not finished",)),
        ({"seed": 4, "server": ["http://other.test"]}, ()),
        (
            {"agent_settings": {"model": "b", "history": {"turns": 2, "tokens": None, "summary": "a:b"}}},
            ("the history differs: all in A, turns:2,summary:a:b in B",),
        ),
        (
            {"agent_settings": {"model": "b", "history": {"newer": 2}}},
            ("the history differs: all in A, {'newer': 2} in B",),
        ),
        ({"agent_settings": {"model": "b", "history": {"turns": None, "tokens": None}}}, ()),
        ({"agent_settings": None}, ()),
    ],
)
def test_other_differences_are_named(run, facts, warnings):
    found = compare_runs(run("a", {0: [1.0]}), run("b", {0: [1.0]}, **facts)).warnings
    assert len(found) == warnings if isinstance(warnings, int) else found == warnings


def test_a_run_without_a_summary_is_compared_with_a_warning(run):
    a, b = run("a", {0: [1.0]}), run("b", {0: [0.0]})
    (warning,) = compare_runs(a, replace(b, facts={})).warnings
    assert warning.startswith("B has no summary.json")


def test_runs_in_different_environments_are_not_compared(run):
    with pytest.raises(BadOption, match=r"TextCraft-v0, and b in .*Maze-v0"):
        compare_runs(run("a", {0: [1.0]}), run("b", {0: [1.0]}, env_id="agentgym/Maze-v0"))


def test_a_run_solves_a_task_if_half_of_its_scored_episodes_do(run):
    a = {0: [1.0, 0.0, 0.0], 1: [1.0, 0.0], 2: [1.0, None], 3: [0.0], 4: [0.0] * 4, 5: [None], 6: [1.0, 1.0]}
    b = {0: [1.0, 0.0], 1: [1.0, 1.0], 2: [0.0, None], 3: [0.0], 4: [1.0, 0.0, 0.0, 0.0], 5: [1.0], 6: [0.0]}
    compared = compare_runs(run("a", a), run("b", b))
    assert (compared.fixed, compared.broken, compared.unchanged) == ((0,), (2, 6), (1, 3, 4))
    other_way = compare_runs(run("b", b), run("a", a))
    assert (other_way.fixed, other_way.broken, other_way.unchanged) == ((2, 6), (0,), (1, 3, 4))
