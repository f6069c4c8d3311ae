"""Draws that are the same everywhere."""

from __future__ import annotations

from collections import Counter

import pytest

from agentgym_servers._frame.draw import Draw


def test_they_are_what_they_were():
    draw = Draw("a test", 0)
    assert [draw.below(1000) for _ in range(6)] == [953, 171, 64, 812, 287, 318]
    assert draw.some("abcdefgh", 8) == list("fgbahced")


def test_each_seed_has_draws_of_its_own():
    assert len({tuple(Draw("x", n).some(range(100), 5)) for n in range(50)}) == 50
    assert Draw("x", 12).below(10**6) != Draw("x1", 2).below(10**6)


def test_they_are_even():
    draw = Draw(0)
    counts = Counter(draw.between(3, 5) for _ in range(3000))
    assert set(counts) == {3, 4, 5}
    assert min(counts.values()) > 900
    assert 200 < sum(draw.chance(0.25) for _ in range(1000)) < 300
    assert Counter(draw.one("ab") for _ in range(1000)).keys() == {"a", "b"}


def test_some_are_drawn_once_each():
    draw = Draw(1)
    assert sorted(draw.shuffled(range(20))) == list(range(20))
    with pytest.raises(ValueError, match="3 cannot be drawn of 2"):
        draw.some("ab", 3)
