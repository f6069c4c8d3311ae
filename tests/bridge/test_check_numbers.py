"""The rules of `agentgym verl check` about numbers: each finds its mistake, and no recipe breaks one."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from checked import checked
from number_mistakes import FIELD_TEST, FURTHER, NUMBER_MISTAKES, TEXTCRAFT
from recipe_choices import CHOICES, versions
from verl_bridge.recipes import LIKE, PRESETS, VERSIONS, RlRecipe, published_by, write
from verl_bridge.recipes._number_rules import RULES

ALL_RULES = [rule for rules in RULES.values() for rule in rules]


@pytest.mark.parametrize("mistake", NUMBER_MISTAKES, ids=str)
def test_a_mistake_breaks_one_rule(tmp_path, mistake):
    (found,) = checked(mistake.make(tmp_path / "run"), "numbers", timeout=1)
    assert (found.status, mistake.finding in found.text) == (mistake.status, True), found
    assert found.advice


def rule_of(mistake):
    """Return the only rule whose finding, without values, contains the mistake's."""
    finding = re.sub(r"=[^ ,]*", "", mistake.finding)
    (rule,) = (each for each in ALL_RULES if each.status == mistake.status and finding in each.condition)
    return rule


def test_each_rule_is_broken_by_a_mistake():
    broken = [rule_of(mistake) for mistake in NUMBER_MISTAKES]
    assert [rule.condition for rule in ALL_RULES if rule not in broken] == []
    assert len(FIELD_TEST) >= 28  # the two others, of groups, are in check_mistakes
    assert len(FURTHER) >= 20


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.condition)
def test_a_rule_reads_the_values_of_its_sentence(rule):
    fields = {name for _, name, _, _ in Formatter().parse(rule.text) if name}
    names = set(rule.wrong.__code__.co_names)
    assert fields <= names
    assert rule.settings


def recipes():
    """Yield every recipe of the choices and of the papers, for each version of verl and each preset."""
    for choices in CHOICES:
        for version in versions(choices):
            for preset in PRESETS:
                yield {"env_id": TEXTCRAFT, "verl": version, "preset": preset, **choices}
    for like in LIKE:
        for env in published_by(like):
            for version in VERSIONS:
                for preset in PRESETS:
                    yield {"env_id": f"agentgym_gym:{env}", "verl": version, "preset": preset, "like": like}


@pytest.mark.parametrize("version", VERSIONS)
def test_no_recipe_breaks_a_rule(tmp_path, version):
    number = 0
    for number, choices in enumerate(each for each in recipes() if each["verl"] == version):
        write(RlRecipe(**choices), tmp_path / str(number))
        (found,) = checked(tmp_path / str(number), "numbers")
        assert found.status == "ok", (choices, found)
    assert number > 50
