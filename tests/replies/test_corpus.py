"""The replies of this folder are read as the rule labels them."""

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
        if verdict == "wrong" or (verdict == "forwarded" and entry.sends_nothing):
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
def test_the_error_the_thought_and_the_forwarded_text_match_the_label(action_format):
    found = [entry for entry in entries(action_format) if entry.kind in {"error", "thought", "forward"}]
    mistaken = [f"{entry}: {entry.reading!r:.200}" for entry in found if not entry.is_as_labelled]
    assert not mistaken, "\n".join([f"{len(mistaken)} of {len(found)}", *mistaken])


@each_format
def test_the_labels_of_the_corpus_are_valid(action_format):
    """Each action is one of its environment, as it is written there, and no reply is listed twice."""
    found = entries(action_format)
    for entry in found:
        if entry.sends_nothing:
            assert bool(entry.action) == (entry.kind != "nothing")
            continue
        try:
            assert str(entry.environment.grammar.parse(entry.action)) == entry.action, str(entry)
        except errors.UnknownAction:
            # The environment may forward text outside its grammar.
            assert entry.kind in {"either", "forward"}, str(entry)
            assert entry.environment.on_unknown == "forward", str(entry)
        else:
            assert entry.kind != "forward", str(entry)
    twice = [key for key, count in Counter((e.environment.name, e.reply) for e in found).items() if count > 1]
    assert twice == []


@each_format
def test_the_corpus_is_large_and_mixed(action_format):
    found = entries(action_format)
    kinds = Counter(entry.kind for entry in found)
    assert len(found) >= 350
    assert min(kinds["action"], kinds["nothing"]) >= 100
    assert kinds["error"] >= 5
    known = {each.name for each in agentgym_gym.environments() if each.of_agentgym}
    assert {entry.environment.name for entry in found} == known
    assert len({entry.family for entry in found}) >= 10
    assert max(len(entry.reply) for entry in found) >= 16_000


WRITTEN = """=== a headline | tiny | Maze
{U+FEFF}Action:{U+000D}
{x 3 go }

--> either move up
=== an error | tiny | Maze
b
--> error NoAction some words
=== another | tiny | SQLGym
--> SELECT 1,
2
=== the last | tiny | Maze
a
--> nothing
"""


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Writes a corpus of one file."""
    monkeypatch.setattr(replies, "FOLDER", tmp_path)
    (tmp_path / "every_format.txt").write_text("")
    return lambda text: (tmp_path / "react.txt").write_text(text, encoding="utf-8")


def test_the_notation_is_read(corpus):
    corpus(WRITTEN)
    found = [(e.line, e.headline, e.reply, e.kind, e.action) for e in entries("react")]
    assert found == [
        (1, "a headline", "\ufeffAction:\r\ngo go go \n", "either", "move up"),
        (6, "an error", "b", "error", "NoAction some words"),
        (9, "another", "", "action", "SELECT 1,\n2"),
        (12, "the last", "a", "nothing", ""),
    ]


@pytest.mark.parametrize(
    "missing", ["--> either move up\n", "--> nothing\n", "=== a headline | tiny | Maze\n"]
)
def test_an_entry_that_lacks_a_part_is_refused(corpus, missing):
    """It would be read as a part of the entry before it."""
    corpus(WRITTEN.replace(missing, ""))
    with pytest.raises(ValueError, match=r"react\.txt"):
        entries("react")
