"""Strategies of replies and episodes; and hypothesis's strategies of typed actions, by its entry point."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import _agentgym_gym_hypothesis
import agentgym_gym
from agentgym_gym import FORMATS, Action, errors
from agentgym_gym.arguments import Integer
from agentgym_gym.testing.strategies import broken_replies, episodes, replies, tasks

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = agentgym_gym.environments()
_agentgym_gym_hypothesis.setup()  # as hypothesis does where the package is installed: see below

brief = settings(
    max_examples=5, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.slow
@pytest.mark.parametrize("action_format", FORMATS.values(), ids=FORMATS)
def test_replies_contain_an_action(action_format):
    written = st.sampled_from(ENVIRONMENTS).flatmap(
        lambda e: st.tuples(st.just(e), replies(e.name, action_format.name))
    )

    @settings(brief, max_examples=30)
    @given(written)
    def check(drawn):
        environment, reply = drawn
        assert type(action_format.parse(reply, environment.grammar)) in environment.grammar.actions

    check()


@pytest.mark.slow
@pytest.mark.parametrize("action_format", FORMATS.values(), ids=FORMATS)
def test_broken_replies_are_broken_in_many_ways(action_format):
    environment = agentgym_gym.find("TextCraft")
    seen = Counter()

    @settings(brief, max_examples=200, phases=[Phase.generate])
    @given(broken_replies(environment, action_format))
    def look(reply):
        try:
            seen["read"] += bool(action_format.parse(reply, environment.grammar))
        except errors.ActionError as error:
            seen[type(error)] += 1

    look()
    # About a third can be read. What hypothesis draws depends on the modules that other tests have imported.
    assert 0 < seen["read"] < 0.6 * sum(seen.values())
    assert len(seen) >= 3


@brief
@given(episodes("TextCraft", "tags", max_turns=3), tasks("Maze"))
def test_episodes_are_tasks_and_replies(episode, task):
    environment = agentgym_gym.find("TextCraft")
    number, texts = episode
    assert environment.has_task(number)
    assert 1 <= len(texts) <= 3
    assert all(isinstance(reply, str) for reply in texts)
    assert agentgym_gym.find("Maze").has_task(task)


def test_mistakes_are_named():
    with pytest.raises(errors.UnknownEnvironment):
        replies("TextCrft")
    with pytest.raises(errors.BadOption):
        replies("TextCraft", "reakt")
    with pytest.raises(errors.BadOption):
        tasks("TextCraft", "tset")
    with pytest.raises(errors.BadOption):
        episodes("TextCraft", max_turns=0)


# --------------------------------------------------------------------------------------------- from_type

# Where fields allow or forbid each other, an action is more than its fields.
RESTRICTED = {"Connect", "Move", "GetValueByFormula", "UpdateCellByFormula"}


@pytest.mark.slow
@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda e: e.name)
def test_every_typed_action_is_known_by_its_type(environment):
    for action in environment.grammar.actions:
        seen = drawn(st.from_type(action))
        assert {type(one) for one in seen} == {action}
        assert all(environment.grammar.parse(str(one)) == one for one in seen)
        if action.__name__ not in RESTRICTED:
            assert {type(one) for one in drawn(st.builds(action))} == {action}


def drawn(strategy):
    seen = []

    @brief
    @given(strategy)
    def look(one):
        seen.append(one)

    look()
    return seen


@pytest.mark.slow
def test_the_base_represents_any():
    seen = set()

    @settings(brief, max_examples=100, phases=[Phase.generate])
    @given(st.from_type(Action))
    def look(one):
        seen.add(type(one))

    look()
    assert len(seen & {action for e in ENVIRONMENTS for action in e.grammar.actions}) > 20


@dataclass(frozen=True)
class Jump(Action):
    """Jump."""

    template: ClassVar[str] = "jump {height}"
    height: Annotated[int, Integer(3, 4), "how high"]


@dataclass(frozen=True, slots=True)
class Slotted(Jump):
    """Jump, by a class that Python makes twice."""


@dataclass(frozen=True)
class Move:
    """Something that holds an action."""

    jump: Jump


@brief
@given(st.builds(Move), st.from_type(Slotted), st.builds(Jump, height=st.just(3)))
def test_an_action_of_ones_own_is_known(move, slotted, low):
    assert move.jump.height in (3, 4)
    assert type(slotted) is Slotted
    assert low == Jump(3)


PROGRAM = """
    import sys
    {first}
    {second}
    from hypothesis import HealthCheck, given, settings, strategies as st
    from agentgym_gym.envs.textcraft import Get
    busy = [HealthCheck.too_slow]  # a machine may be
    @settings(database=None, deadline=None, max_examples=20, suppress_health_check=busy)
    @given(st.from_type(Get))
    def check(action):
        assert 1 <= action.count <= 1_000_000
    check()
    assert "fixed_dictionaries" in repr(st.from_type(Get)), st.from_type(Get)
"""


@pytest.fixture
def installed(tmp_path):
    """The variables of a process to which the package looks installed, with its entry point."""
    (entry,) = re.findall(
        r"^\[project\.entry-points\.hypothesis\]\n(\w+) = \"([\w:.]+)\"$",
        (ROOT / "pyproject.toml").read_text("utf-8"),
        re.MULTILINE,
    )
    folder = tmp_path / "as_installed-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: as-installed\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[hypothesis]\n{} = {}\n".format(*entry))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}


def run(program, environment, folder):
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("first", ["hypothesis", "agentgym_gym"])
def test_whichever_is_imported_first(installed, tmp_path, first):
    second = {"hypothesis": "agentgym_gym", "agentgym_gym": "hypothesis"}[first]
    run(PROGRAM.format(first=f"import {first}", second=f"import {second}"), installed, tmp_path)


@pytest.mark.slow
def test_importing_hypothesis_imports_nothing_of_this_library(installed, tmp_path):
    program = """
        import hypothesis, sys
        assert "_agentgym_gym_hypothesis" in sys.modules
        assert {"agentgym_gym", "gymnasium", "httpx", "numpy"}.isdisjoint(sys.modules)
    """
    run(program, installed, tmp_path)
