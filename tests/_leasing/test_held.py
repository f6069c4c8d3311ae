"""What a process holds is persisted, for when it dies."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentgym_gym import errors
from agentgym_gym._leasing import capacity, held
from agentgym_gym._leasing.acquire import acquire_on
from agentgym_gym._leasing.pool import LeasePool
from by_hand import DOWN, IDENTIFY, LOST, HandWire, created, make, play


@pytest.fixture
def pool():
    return LeasePool(make(HandWire()), "http://hand")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_that_ends_frees_nothing_of_its_parents():
    code = f"""
import gc, os, sys
from pathlib import Path
from agentgym_gym._leasing import capacity, held
capacity.FOLDER = Path({str(capacity.FOLDER)!r})
slot = capacity.Slots("http://hand", 1).take()
journal = held.Journal("Hand", "http://hand")
journal.add(7)
journal.flush()
if os.fork() == 0:
    del slot, journal
    gc.collect()
    sys.exit(0)
os.wait()
print(capacity.slot_states("http://hand")[0].taken, [(each.alive, list(each.ids)) for each in held.records("http://hand")])
slot.release()
journal.discard(7)
journal.flush()
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True
    )
    assert (ended.stdout, ended.stderr) == ("True [(True, [7])]\n", "")
    assert held.records("http://hand") == []


def test_an_episode_is_played_where_nothing_can_be_persisted(pool, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(capacity, "FOLDER", tmp_path / "file" / "below")
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    play(pool.release(lease), ("close", True))
    assert held.records(pool.server) == []


def test_held_ids_are_persisted_until_they_are_closed_or_the_server_goes_away(pool):
    def persisted():
        return [env_id for each in held.records(pool.server) for env_id in each.ids]

    leases = [play(acquire_on(pool, 0), *([] if n else [IDENTIFY]), created(n))[0] for n in range(4)]
    assert persisted() == [0, 1, 2, 3]
    play(pool.release(leases[0]), ("close", True))
    play(pool.release(leases[1]), ("close", LOST))  # who knows
    assert persisted() == [1, 2, 3]
    with pytest.raises(errors.ServerUnreachable):
        play(acquire_on(pool, 0), ("create", DOWN))
    assert persisted() == []


def test_changes_reach_the_disk_in_their_order_when_they_are_flushed():
    journal = held.Journal("Hand", "http://hand")
    journal.add(1)
    assert held.records("http://hand") == []
    journal.clear()
    journal.add(1)
    journal.add(2)
    journal.discard(2)
    journal.flush()
    assert [list(each.ids) for each in held.records("http://hand")] == [[1]]
