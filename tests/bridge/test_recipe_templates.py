"""The templates of recipes: what the filler makes of one, and that each is YAML that a reader can open."""

from __future__ import annotations

from importlib import resources

import pytest
import yaml

from verl_bridge.recipes import LIKE, VERSIONS, published_by
from verl_bridge.recipes._filler import fill, lay_over, read_template

TEMPLATE = """\
## For the reader of the template.
folder: .

group:
  #if found
  # <words> as they are
  #else
  # none
  #end
  key: <words>
  #if not found
  other: 1
  #end
"""


def test_values_are_yaml_where_they_are_values_and_comments_stay():
    text = fill(TEMPLATE, {"found": True, "words": "a <found>"})
    assert text == 'folder: .\n\ngroup:\n  # a <found> as they are\n  key: "a <found>"\n'


@pytest.mark.parametrize("value", [None, False, ""])
def test_a_condition_does_not_hold_without_a_value(value):
    text = fill(TEMPLATE, {"found": value, "words": 5e-7})
    assert text == "folder: .\n\ngroup:\n  # none\n  key: 5.0e-07\n  other: 1\n"


def test_zero_is_a_value():
    assert "other" not in fill(TEMPLATE, {"found": 0.0, "words": 1})


def test_a_name_without_a_value_is_refused():
    with pytest.raises(KeyError, match="words"):
        fill(TEMPLATE, {"found": True})


def test_an_overlay_adds_what_is_missing_and_cites_what_is_as_published():
    text = fill(TEMPLATE, {"found": False, "words": 2})
    laid = lay_over(
        text,
        {"group.key": 7, "group.new.deep": True},
        lambda key, value: "A paper." if (key, value) == ("group.key", "2") else "",
    )
    body = "  # none A paper.\n  key: 2\n  other: 1\n  new:\n    deep: true\n"
    assert laid == f"folder: .\n\ngroup:\n{body}"


@pytest.mark.parametrize("name", [*(f"verl-{version}" for version in VERSIONS), "sft", "interaction"])
def test_a_template_can_be_read_before_it_is_filled(name):
    assert yaml.safe_load(read_template(f"{name}.yaml"))


def test_every_overlay_has_a_name_and_every_name_an_overlay():
    folder = resources.files("verl_bridge.recipes") / "templates" / "papers"
    assert {file.name for file in folder.iterdir()} == {f"{like}.yaml" for like in LIKE}


@pytest.mark.parametrize("like", LIKE)
def test_each_setting_of_an_overlay_says_how_its_source_names_it(like):
    for paper in published_by(like).values():
        assert set(paper.settings) <= set(paper.named)
