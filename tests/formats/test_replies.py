"""The replies of `tests/replies/` are read as the rule labels them."""

from __future__ import annotations

from collections import Counter

import pytest

import agentgym_gym
import replies
from agentgym_gym import FORMATS, errors
from replies import entries

each_format = pytest.mark.parametrize("action_format", FORMATS)


@each_format
def test_no_other_action_is_played(action_format):
    mistaken = []
    for entry in entries(action_format):
        verdict = entry.verdict()
        if verdict == "wrong" or (verdict == "forwarded" and entry.kind == "nothing"):
            mistaken.append(
                f"{entry}\n    sent: {entry.sent[0]!r:.120}, expected: {entry.action or 'nothing'!r:.120}"
            )
    assert not mistaken, "\n".join([f"{len(mistaken)} replies", *mistaken])


@each_format
def test_all_marked_actions_are_read(action_format):
    marked = [entry for entry in entries(action_format) if entry.kind == "action"]
    missed = [f"{entry}: {verdict}" for entry in marked if (verdict := entry.verdict()) != "read"]
    assert not missed, "\n".join([f"{len(missed)} of {len(marked)}", *missed])


@each_format
def test_the_labels_of_the_corpus_are_valid(action_format):
    """Each action is one of its environment, as it is written there, and no reply is listed twice."""
    found = entries(action_format)
    for entry in found:
        if entry.kind == "nothing":
            assert not entry.action
            continue
        try:
            assert str(entry.environment.grammar.parse(entry.action)) == entry.action, str(entry)
        except errors.UnknownAction:
            # The environment may forward text that its grammar does not know.
            assert (entry.kind, entry.environment.on_unknown) == ("either", "forward"), str(entry)
    twice = [key for key, count in Counter((e.environment.name, e.reply) for e in found).items() if count > 1]
    assert twice == []


@each_format
def test_the_corpus_is_large_and_mixed(action_format):
    found = entries(action_format)
    kinds = Counter(entry.kind for entry in found)
    assert len(found) >= 350
    assert min(kinds["action"], kinds["nothing"]) >= 100
    known = {each.name for each in agentgym_gym.environments() if each.of_agentgym}
    assert {entry.environment.name for entry in found} == known
    assert len({entry.family for entry in found}) >= 10
    assert max(len(entry.reply) for entry in found) >= 16_000


WRITTEN = """=== a headline | tiny | Maze
{U+FEFF}Action:{U+000D}
{x 3 go }

--> either move up
=== another | tiny | SQLGym
--> SELECT 1,
2
=== the last | tiny | Maze
a
--> nothing
"""


def test_the_notation_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(replies, "FOLDER", tmp_path)
    (tmp_path / "react.txt").write_text(WRITTEN, encoding="utf-8")
    found = [(e.line, e.headline, e.reply, e.kind, e.action) for e in entries("react")]
    assert found == [
        (1, "a headline", "\ufeffAction:\r\ngo go go \n", "either", "move up"),
        (6, "another", "", "action", "SELECT 1,\n2"),
        (9, "the last", "a", "nothing", ""),
    ]


@pytest.mark.parametrize(
    "missing", ["--> either move up\n", "--> nothing\n", "=== a headline | tiny | Maze\n"]
)
def test_an_entry_that_lacks_a_part_is_refused(tmp_path, monkeypatch, missing):
    """It would be read as a part of the entry before it."""
    monkeypatch.setattr(replies, "FOLDER", tmp_path)
    (tmp_path / "react.txt").write_text(WRITTEN.replace(missing, ""), encoding="utf-8")
    with pytest.raises(ValueError, match=r"react\.txt"):
        entries("react")
