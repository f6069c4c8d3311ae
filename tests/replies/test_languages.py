"""The labels of a language are read, and the page on replies lists them."""

import re
from pathlib import Path

import pytest

from agentgym_gym import FORMATS, catalogue
from agentgym_gym.formats._labels import LABELS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "replies.md").read_text("utf-8")
TABLE = {
    language: (labels.split(", "), before.split(", ") if before else [])
    for language, labels, before in re.findall(
        r"^\| ([A-Z]\w+) \| (.*?) \| ?(.*?) ?\|$",
        PAGE.partition("| language | label |")[2].partition("\n\n")[0],
        re.MULTILINE,
    )
}


def test_the_page_lists_every_language():
    assert TABLE.keys() == LABELS.keys()


@pytest.mark.parametrize("language", TABLE)
def test_the_labels_on_the_page_are_the_ones_that_are_read(language):
    labels, before = TABLE[language]
    row = LABELS[language]
    assert [label for label in labels if not re.fullmatch(row.action, label, re.IGNORECASE)] == []
    assert set(before) == set(filter(None, row.before.split("|")))
    grammar = catalogue.find("Maze").grammar
    for label in [*labels, *(f"{word} {label}" for word in before for label in labels)]:
        reading = FORMATS["react"].read(f"I go.\n{label}: move up\nSo.", grammar)
        assert (str(reading.action), reading.mark) == ("move up", "label")
