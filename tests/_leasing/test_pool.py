"""Leases and episodes as pure flows: no socket, no server, each reply written by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from gymnasium.error import ResetNeeded

from agentgym_gym import catalogue, errors
from agentgym_gym._episode import Episode
from agentgym_gym._leasing import capacity, held
from agentgym_gym._leasing.pool import LeasePool, pool_of
from agentgym_gym.calls import Call, Reply, exchange
from agentgym_gym.formats import get_format
from agentgym_gym.wire import Outcome, Start, Wire

GREETING = "This is environment Hand."


class HandWire(Wire):
    """A wire small enough to play by hand."""

    greeting = GREETING
    closes = True

    def create(self, task_id):
        return (yield from exchange(Call("create", "POST", "/create", {}))).integer("id")

    def reset(self, env_id, task_id):
        body = yield from exchange(Call("reset", "POST", "/reset", {"id": env_id, "task": task_id}))
        return Start(body.text("observation"))

    def step(self, env_id, action):
        body = yield from exchange(Call("step", "POST", "/step", {"id": env_id, "action": action}))
        return Outcome(body.text("observation"), body.number("reward"), body.flag("done"))

    def close(self, env_id):
        yield from exchange(Call("close", "POST", "/close", {"id": env_id}))


class Endless(HandWire):
    """Cannot close."""

    closes = False


class Small(HandWire):
    """Holds two, like a server with a cap."""

    capacity = 2


class Wrapping(HandWire):
    """Hands out ids in use when it is full."""

    reissues_ids = True
    closes = False


def make(wire: Wire) -> catalogue.Environment:
    return replace(catalogue.find("TextCraft"), name="Hand", wire=wire)


def play(flow, *answers):
    """Drive a flow by a list of answers: (stage, JSON or fault). Returns its result and what was asked."""
    answers, asked = list(answers), []
    try:
        call = next(flow)
        while True:
            asked.append(call)
            assert answers, f"nothing was expected after {[c.stage for c in asked]}"
            stage, answer = answers.pop(0)
            assert call.stage == stage
            if isinstance(answer, errors.Fault):
                call = flow.throw(answer)
            else:
                call = flow.send(Reply(call, 200, json.dumps(answer).encode()))
    except StopIteration as stop:
        assert not answers, f"never asked for {answers}"
        return stop.value, asked


IDENTIFY = ("identify", GREETING)
SEEN = {"observation": "seen"}
STEPPED = {"observation": "on", "reward": 0, "done": False}
DOWN = errors.ServerUnreachable("down", refused=True)
LOST = errors.ConnectionLost("lost")


def created(env_id):
    return ("create", {"id": env_id})


@pytest.fixture
def pool():
    return LeasePool(make(HandWire()), "http://hand")


def episode(wire: Wire, **options) -> Episode:
    return Episode(
        make(wire),
        wire=wire,
        action_format=get_format("bare"),
        on_unknown="forward",
        **{"max_turns": None, **options},
    )


def test_the_server_is_identified_once(pool):
    play(pool.acquire(0), IDENTIFY, created(0))
    play(pool.acquire(0), created(1))
    assert pool.load == 2


def test_calls_go_to_the_pools_server(pool):
    lease, asked = play(pool.acquire(0), IDENTIFY, created(0))
    assert {call.server for call in asked} == {"http://hand"}
    assert lease.env_id == 0


def test_the_wrong_server_is_told_with_what_to_check(pool):
    with pytest.raises(
        errors.WrongServer, match=r"http://hand does not serve Hand.*BabyAI.*AGENTGYM_HAND_URL"
    ):
        play(pool.acquire(0), ("identify", "This is environment BabyAI."))
    assert pool.load == 0


def test_released_environments_are_closed(pool):
    lease, _ = play(pool.acquire(0), IDENTIFY, created(0))
    _, asked = play(pool.release(lease), ("close", True))
    assert asked[0].body == {"id": 0}
    assert pool.load == 0


def test_a_close_that_fails_troubles_nobody(pool):
    lease, _ = play(pool.acquire(0), IDENTIFY, created(0))
    play(pool.release(lease), ("close", LOST))
    assert pool.load == 0


def test_ids_are_used_again_where_nothing_can_be_closed():
    pool = LeasePool(make(Endless()), "http://hand")
    lease, _ = play(pool.acquire(0), IDENTIFY, created(7))
    play(pool.release(lease))
    again, _ = play(pool.acquire(0))
    assert (again.env_id, again.fresh) == (7, False)


def test_a_pool_that_is_full_says_so():
    pool = LeasePool(make(Small()), "http://hand")
    first, _ = play(pool.acquire(0), IDENTIFY, created(0))
    play(pool.acquire(0), created(1))
    with pytest.raises(errors.ServerFull, match="at most 2"):
        play(pool.acquire(0))
    play(pool.release(first), ("close", True))
    play(pool.acquire(0), created(2))


def test_a_failed_create_frees_its_place():
    pool = LeasePool(make(Small()), "http://hand")
    for _ in range(3):
        with pytest.raises(errors.ConnectionLost):
            play(pool.acquire(0), *([] if pool._identified else [IDENTIFY]), ("create", LOST))
    assert pool.load == 0


def test_an_id_in_use_given_out_again_means_full():
    pool = LeasePool(make(Wrapping()), "http://hand")
    lease, _ = play(pool.acquire(0), IDENTIFY, created(0))
    with pytest.raises(errors.ServerFull, match="in use"):
        play(pool.acquire(0), created(0))
    lease.check()  # the holder is not disturbed


def test_an_id_in_use_given_out_again_means_restarted_where_ids_only_grow(pool):
    old, _ = play(pool.acquire(0), IDENTIFY, created(0))
    new, _ = play(pool.acquire(0), created(0))
    new.check()
    with pytest.raises(errors.LeaseLost, match="restarted"):
        old.check()
    play(pool.release(old))  # nothing is closed: the id is another's now
    assert pool.load == 1


def test_nothing_is_closed_on_a_server_that_went_away(pool):
    lease, _ = play(pool.acquire(0), IDENTIFY, created(0))
    with pytest.raises(errors.ServerUnreachable):
        play(pool.acquire(0), ("create", DOWN))
    play(pool.release(lease))
    play(pool.acquire(0), IDENTIFY, created(0))  # and it is identified anew


def test_one_slow_connect_takes_nothing_away(pool):
    lease, _ = play(pool.acquire(0), IDENTIFY, created(0))
    with pytest.raises(errors.ServerUnreachable):
        play(pool.acquire(0), ("create", errors.ServerUnreachable("slow")))
    lease.check()
    play(pool.release(lease), ("close", True))


def test_after_a_restart_no_episode_goes_on_in_an_id_of_before(pool):
    """The id may be another client's by now."""
    lease, _ = play(pool.acquire(0), IDENTIFY, created(0))
    with pytest.raises(errors.ServerUnreachable):
        play(pool.acquire(0), ("create", DOWN))
    with pytest.raises(errors.LeaseLost):
        lease.check()


def test_ids_at_rest_count_towards_the_capacity():
    class SmallEndless(Endless):
        capacity = 1

    pool = LeasePool(make(SmallEndless()), "http://hand")
    lease, _ = play(pool.acquire(0), IDENTIFY, created(0))
    lease.maybe_busy = True
    play(pool.release(lease))
    with pytest.raises(errors.ServerFull):
        play(pool.acquire(0))


def test_a_forked_child_holds_nothing(pool, monkeypatch):
    lease, _ = play(pool.acquire(0), IDENTIFY, created(0))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(errors.LeaseLost, match="another process"):
        lease.check()
    play(pool.release(lease))


def test_one_pool_for_each_server():
    environment = make(HandWire())
    assert pool_of(environment, "http://a") is pool_of(environment, "http://a")
    assert pool_of(environment, "http://a") is not pool_of(environment, "http://b")


def test_an_episode_keeps_its_lease_from_task_to_task():
    playing = episode(HandWire())
    servers = ["http://one-lease"]
    play(playing.reset(3, servers), IDENTIFY, created(0), ("reset", SEEN))
    _, asked = play(playing.reset(4, servers), ("reset", SEEN))
    assert asked[0].body == {"id": 0, "task": 4}
    play(playing.close(), ("close", True))
    play(playing.close())


def test_a_spoilt_environment_is_replaced_at_reset():
    playing = episode(HandWire())
    servers = ["http://unusable"]
    play(playing.reset(3, servers), IDENTIFY, created(0), ("reset", SEEN))
    play(
        playing.reset(3, servers),
        ("reset", errors.EnvironmentFailed("no such id")),
        ("close", True),
        created(1),
        ("reset", SEEN),
    )
    assert playing.lease.env_id == 1


def test_a_new_environment_that_cannot_be_reset_is_a_fault():
    playing = episode(HandWire())
    with pytest.raises(errors.EnvironmentFailed):
        play(
            playing.reset(3, ["http://broken"]),
            IDENTIFY,
            created(0),
            ("reset", errors.EnvironmentFailed("boom")),
            ("close", True),
        )
    assert playing.lease is None
    with pytest.raises(ResetNeeded):
        play(playing.step("inventory"))


def test_the_least_loaded_server_is_used_and_a_dead_one_passed_over():
    wire = HandWire()
    environment = make(wire)
    servers = ["http://first", "http://second"]
    several = [
        Episode(environment, action_format=get_format("bare"), on_unknown="forward", max_turns=None)
        for _ in range(3)
    ]
    play(several[0].reset(0, servers), IDENTIFY, created(0), ("reset", SEEN))
    play(several[1].reset(0, servers), IDENTIFY, created(0), ("reset", SEEN))
    assert [playing.lease.server for playing in several[:2]] == servers
    play(several[0].close(), ("close", True))
    play(several[2].reset(0, servers), ("create", DOWN), created(1), ("reset", SEEN))
    assert several[2].lease.server == "http://second"


def test_a_full_server_is_passed_over():
    environment = make(Wrapping())
    servers = ["http://full", "http://roomy"]
    options = {"action_format": get_format("bare"), "on_unknown": "forward", "max_turns": None}
    several = [Episode(environment, **options) for _ in range(3)]
    for playing in several[:2]:
        play(playing.reset(0, servers), IDENTIFY, created(0), ("reset", SEEN))
    play(several[2].reset(0, servers), created(0), created(1), ("reset", SEEN))
    assert several[2].lease.server == "http://roomy"


@pytest.mark.parametrize("fault", [LOST, errors.ServerTimeout("late"), errors.BadReply("junk"), DOWN])
def test_a_fault_ends_the_episode_and_the_next_reset_gets_a_clean_environment(fault):
    playing = episode(HandWire())
    servers = [f"http://fault-{fault.kind}"]
    play(playing.reset(3, servers), IDENTIFY, created(0), ("reset", SEEN))
    turn, _ = play(playing.step("inventory"), ("step", fault))
    assert turn[1:4] == (0.0, False, True)
    assert turn.info["fault"] == {"kind": fault.kind, "message": str(fault)}
    assert turn.info["score"] == 0.0
    with pytest.raises(ResetNeeded):
        play(playing.step("inventory"))
    if fault is DOWN:  # whoever came since may own our id on it
        play(playing.reset(3, servers), IDENTIFY, created(0), ("reset", SEEN))
    else:
        play(playing.reset(3, servers), ("close", True), created(1), ("reset", SEEN))


def test_an_interrupted_step_ends_the_episode():
    playing = episode(HandWire())
    servers = ["http://interrupted"]
    play(playing.reset(3, servers), IDENTIFY, created(0), ("reset", SEEN))
    flow = playing.step("inventory")
    next(flow)
    flow.close()  # what a driver does on Ctrl-C
    with pytest.raises(ResetNeeded):
        play(playing.step("inventory"))
    play(playing.reset(3, servers), ("close", True), created(1), ("reset", SEEN))


def test_a_lease_lost_to_a_restart_is_a_fault_of_the_step():
    environment = make(HandWire())
    options = {"action_format": get_format("bare"), "on_unknown": "forward", "max_turns": None}
    one, two = Episode(environment, **options), Episode(environment, **options)
    play(one.reset(3, ["http://restarted"]), IDENTIFY, created(0), ("reset", SEEN))
    play(two.reset(3, ["http://restarted"]), created(0), ("reset", SEEN))
    turn, _ = play(one.step("inventory"))
    assert turn.info["fault"]["kind"] == "LeaseLost"
    turn, _ = play(two.step("inventory"), ("step", STEPPED))
    assert "fault" not in turn.info


def test_an_id_of_zero_is_an_id():
    playing = episode(HandWire())
    play(playing.reset(0, ["http://zero"]), IDENTIFY, created(0), ("reset", SEEN))
    _, asked = play(playing.step("inventory"), ("step", STEPPED))
    assert asked[0].body == {"id": 0, "action": "inventory"}


# ----------------------------------------------------------------- a server that holds only so many, for all


class Listing(Endless):
    """Holds two, says which, and gives out ids that never come again."""

    capacity = 2

    def list_envs(self):
        body = yield from exchange(Call("observe", "GET", "/list_envs"))
        return tuple(body.value)


def listed(*env_ids):
    return ("observe", list(env_ids))


def other_process(wire):
    """What another process would have: a pool that knows nothing of this one's."""
    return LeasePool(make(wire), "http://hand")


def test_what_another_process_holds_is_not_taken():
    ours, theirs = other_process(Listing()), other_process(Listing())
    first, _ = play(ours.acquire(0), IDENTIFY, listed(), created(501))
    second, _ = play(theirs.acquire(0), IDENTIFY, listed(501), created(502))
    with pytest.raises(errors.ServerFull, match="processes of this machine"):
        play(ours.acquire(0))
    play(theirs.release(second))
    again, _ = play(ours.acquire(0), listed(501, 502))
    assert (again.env_id, again.fresh) == (502, False)  # what the other process left, and no third one
    assert first.env_id == 501


def test_what_someone_unknown_has_made_is_not_taken():
    pool = other_process(Listing())
    with pytest.raises(errors.ServerFull, match="restart"):
        play(pool.acquire(0), IDENTIFY, listed(7, 8))
    assert pool.load == 0


def test_an_id_that_is_listed_already_is_not_taken_for_new():
    pool = other_process(Listing())
    with pytest.raises(errors.ServerFull, match="in use"):
        play(pool.acquire(0), IDENTIFY, listed(7), created(7))


def test_an_id_of_before_a_restart_is_not_taken():
    pool = other_process(Listing())
    lease, _ = play(pool.acquire(0), IDENTIFY, listed(), created(501))
    play(pool.release(lease))
    again, _ = play(other_process(Listing()).acquire(0), IDENTIFY, listed(), created(640))
    assert (again.env_id, again.fresh) == (640, True)


def test_a_spoilt_environment_is_left_out_of_its_slot():
    pool = other_process(Listing())
    lease, _ = play(pool.acquire(0), IDENTIFY, listed(), created(501))
    lease.unusable = True
    play(pool.release(lease))
    again, _ = play(pool.acquire(0), listed(501), created(502))
    assert again.env_id == 502


def test_a_slot_is_kept_while_a_request_may_still_run():
    ours, theirs = other_process(Listing()), other_process(Listing())
    for env_id in (501, 502):
        lease, _ = play(ours.acquire(0), *([] if ours._identified else [IDENTIFY]), listed(), created(env_id))
        lease.maybe_busy = True
        play(ours.release(lease))
    with pytest.raises(errors.ServerFull):
        play(theirs.acquire(0), IDENTIFY)


def test_a_process_that_ends_leaves_its_slot():
    code = f"""
from agentgym_gym._leasing import capacity
from pathlib import Path
import os
import subprocess
import sys
capacity.FOLDER = Path({str(capacity.FOLDER)!r})
taken = capacity.Slots("http://hand", 1).take()
taken.remember(7)
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    slot = capacity.Slots("http://hand", 1).take()
    assert slot.env_id == 7
    assert capacity.Slots("http://hand", 1).take() is None
    slot.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_that_ends_frees_nothing_of_its_parents():
    code = f"""
import gc, os, sys
from pathlib import Path
from agentgym_gym._leasing import capacity, held
capacity.FOLDER = Path({str(capacity.FOLDER)!r})
slot = capacity.Slots("http://hand", 1).take()
written = held.Journal("Hand", "http://hand")
written.add(7)
if os.fork() == 0:
    del slot, written
    gc.collect()
    sys.exit(0)
os.wait()
print(capacity.look("http://hand")[0].taken, [(each.alive, list(each.ids)) for each in held.records("http://hand")])
slot.release()
written.discard(7)
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True
    )
    assert (ended.stdout, ended.stderr) == ("True [(True, [7])]\n", "")
    assert held.records("http://hand") == []


def test_what_cannot_be_written_down_is_played_all_the_same(pool, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(capacity, "FOLDER", tmp_path / "file" / "below")
    lease, _ = play(pool.acquire(0), IDENTIFY, created(0))
    play(pool.release(lease), ("close", True))
    assert held.records(pool.server) == []


def test_what_is_held_is_written_down_until_it_is_closed_or_the_server_goes_away(pool):
    def written():
        return [env_id for each in held.records(pool.server) for env_id in each.ids]

    leases = [play(pool.acquire(0), *([] if n else [IDENTIFY]), created(n))[0] for n in range(4)]
    assert written() == [0, 1, 2, 3]
    play(pool.release(leases[0]), ("close", True))
    play(pool.release(leases[1]), ("close", LOST))  # who knows
    assert written() == [1, 2, 3]
    with pytest.raises(errors.ServerUnreachable):
        play(pool.acquire(0), ("create", DOWN))
    assert written() == []
