"""The rules of `agentgym verl check` about numbers: each finds its mistake, and no recipe breaks one."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from checked import checked
from number_mistakes import FIELD_TEST, FURTHER, NUMBER_MISTAKES, TEXTCRAFT
from recipe_choices import CHOICES, versions
from sft_number_mistakes import SFT_MISTAKES
from verl_bridge.recipes import (
    LIKE,
    PRESETS,
    SFT_PRESETS,
    VERSIONS,
    RlRecipe,
    SftRecipe,
    published_by,
    write,
    write_sft,
)
from verl_bridge.recipes._numbers import RlNumbers, SftNumbers, labels
from verl_bridge.recipes._rl_rules import RL_RULES
from verl_bridge.recipes._sft_rules import SFT_RULES

MISTAKES = ((RL_RULES, NUMBER_MISTAKES), (SFT_RULES, SFT_MISTAKES))
RECORDS = ((RL_RULES, RlNumbers), (SFT_RULES, SftNumbers))


def rules_of(table):
    """Return the rules of all subjects."""
    return [rule for rules in table.values() for rule in rules]


@pytest.mark.parametrize("mistake", [*NUMBER_MISTAKES, *SFT_MISTAKES], ids=str)
def test_a_mistake_breaks_one_rule(tmp_path, mistake):
    (found,) = checked(mistake.make(tmp_path / "run"), "numbers", timeout=1)
    assert (found.status, mistake.finding in found.text) == (mistake.status, True), found
    assert found.advice


@pytest.mark.parametrize(("table", "mistakes"), MISTAKES, ids=["rl", "sft"])
def test_each_rule_is_broken_by_a_mistake(table, mistakes):
    broken = []
    for mistake in mistakes:
        finding = re.sub(r"=[^ ,]*", "", mistake.finding)
        (rule,) = (
            each for each in rules_of(table) if each.status == mistake.status and finding in each.condition
        )
        broken.append(rule)
    assert [rule.condition for rule in rules_of(table) if rule not in broken] == []


def test_the_mistakes_of_the_field_test_are_all_there():
    assert len(FIELD_TEST) >= 28  # the two others, of groups, are in check_mistakes
    assert len(FURTHER) >= 20


@pytest.mark.parametrize(
    ("rule", "record"),
    [(rule, record) for table, record in RECORDS for rule in rules_of(table)],
    ids=lambda each: getattr(each, "condition", each.__name__ if isinstance(each, type) else None),
)
def test_a_rule_reads_the_values_of_its_sentence(rule, record):
    fields = {name for _, name, _, _ in Formatter().parse(rule.text) if name}
    names = set(rule.wrong.__code__.co_names)
    assert fields <= names
    assert rule.settings(labels(record))


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


@pytest.mark.parametrize("version", VERSIONS)
def test_no_recipe_for_fine_tuning_breaks_a_rule(tmp_path, version):
    for preset in SFT_PRESETS:
        for validation in (False, True):
            folder = tmp_path / f"{preset}-{validation}"
            write_sft(SftRecipe(verl=version, preset=preset, validation=validation), folder)
            (found,) = checked(folder, "numbers")
            assert found.status == "ok", found
