"""Leases and episodes as pure flows: no socket, no server, each reply written by hand."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from gymnasium.error import ResetNeeded

from agentgym_gym import errors
from agentgym_gym._episode import RemoteEpisode
from agentgym_gym._leasing.acquire import acquire_on
from agentgym_gym._leasing.pool import LeasePool
from agentgym_gym._leasing.pools import pool_of
from agentgym_gym.formats import get_format
from by_hand import (
    DOWN,
    IDENTIFY,
    LOST,
    SEEN,
    STEPPED,
    Endless,
    HandWire,
    Small,
    Wrapping,
    created,
    make,
    play,
)

if TYPE_CHECKING:
    from agentgym_gym.wire import Wire


@pytest.fixture
def pool():
    return LeasePool(make(HandWire()), "http://hand")


def episode(wire: Wire, **options) -> RemoteEpisode:
    return RemoteEpisode(
        make(wire),
        wire=wire,
        action_format=get_format("bare"),
        on_unknown="forward",
        **{"max_turns": None, **options},
    )


def test_the_server_is_identified_once(pool):
    play(acquire_on(pool, 0), IDENTIFY, created(0))
    play(acquire_on(pool, 0), created(1))
    assert pool.load == 2


def test_calls_go_to_the_pools_server(pool):
    lease, asked = play(acquire_on(pool, 0), IDENTIFY, created(0))
    assert {call.server for call in asked} == {"http://hand"}
    assert lease.env_id == 0


def test_the_wrong_server_is_told_with_what_to_check(pool):
    with pytest.raises(
        errors.WrongServer, match=r"http://hand does not serve Hand.*BabyAI.*AGENTGYM_HAND_URL"
    ):
        play(acquire_on(pool, 0), ("identify", "This is environment BabyAI."))
    assert pool.load == 0


def test_released_environments_are_closed(pool):
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    _, asked = play(pool.release(lease), ("close", True))
    assert asked[0].body == {"id": 0}
    assert pool.load == 0


def test_a_close_that_fails_troubles_nobody(pool):
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    play(pool.release(lease), ("close", LOST))
    assert pool.load == 0


def test_ids_are_used_again_where_nothing_can_be_closed():
    pool = LeasePool(make(Endless()), "http://hand")
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, created(7))
    play(pool.release(lease))
    again, _ = play(acquire_on(pool, 0))
    assert (again.env_id, again.fresh) == (7, False)


def test_a_pool_that_is_full_says_so():
    pool = LeasePool(make(Small()), "http://hand")
    first, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    play(acquire_on(pool, 0), created(1))
    with pytest.raises(errors.ServerFull, match="at most 2"):
        play(acquire_on(pool, 0))
    play(pool.release(first), ("close", True))
    play(acquire_on(pool, 0), created(2))


def test_a_failed_create_frees_its_place():
    pool = LeasePool(make(Small()), "http://hand")
    for _ in range(3):
        with pytest.raises(errors.ConnectionLost):
            play(acquire_on(pool, 0), *([] if pool.identified else [IDENTIFY]), ("create", LOST))
    assert pool.load == 0


def test_an_id_in_use_given_out_again_means_full():
    pool = LeasePool(make(Wrapping()), "http://hand")
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    with pytest.raises(errors.ServerFull, match="in use"):
        play(acquire_on(pool, 0), created(0))
    lease.check()  # the holder is not disturbed


def test_an_id_in_use_given_out_again_means_restarted_where_ids_only_grow(pool):
    old, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    new, _ = play(acquire_on(pool, 0), created(0))
    new.check()
    with pytest.raises(errors.LeaseLost, match="restarted"):
        old.check()
    play(pool.release(old))  # nothing is closed: the id is another's now
    assert pool.load == 1


def test_nothing_is_closed_on_a_server_that_went_away(pool):
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    with pytest.raises(errors.ServerUnreachable):
        play(acquire_on(pool, 0), ("create", DOWN))
    play(pool.release(lease))
    play(acquire_on(pool, 0), IDENTIFY, created(0))  # and it is identified anew


def test_one_slow_connect_takes_nothing_away(pool):
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    with pytest.raises(errors.ServerUnreachable):
        play(acquire_on(pool, 0), ("create", errors.ServerUnreachable("slow")))
    lease.check()
    play(pool.release(lease), ("close", True))


def test_after_a_restart_no_episode_goes_on_in_an_id_of_before(pool):
    """The id may be another client's by now."""
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    with pytest.raises(errors.ServerUnreachable):
        play(acquire_on(pool, 0), ("create", DOWN))
    with pytest.raises(errors.LeaseLost):
        lease.check()


def test_ids_in_quarantine_count_towards_the_capacity():
    class SmallEndless(Endless):
        capacity = 1

    pool = LeasePool(make(SmallEndless()), "http://hand")
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    lease.maybe_busy = True
    play(pool.release(lease))
    with pytest.raises(errors.ServerFull):
        play(acquire_on(pool, 0))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_holds_nothing(pool):
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    child = os.fork()  # a made-up `os.getpid` would have filelock close what the real process has open
    if not child:
        status = 1
        try:
            with pytest.raises(errors.LeaseLost, match="another process"):
                lease.check()
            play(pool.release(lease))  # asks nothing
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    lease.check()
    play(pool.release(lease), ("close", True))


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


def test_an_unusable_environment_is_replaced_at_reset():
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
        RemoteEpisode(environment, action_format=get_format("bare"), on_unknown="forward", max_turns=None)
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
    several = [RemoteEpisode(environment, **options) for _ in range(3)]
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
    one, two = RemoteEpisode(environment, **options), RemoteEpisode(environment, **options)
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


def test_a_lost_lease_names_the_true_reason(pool):
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, created(0))
    list(pool.note_fault(errors.ServerUnreachable("nobody listens", refused=True)))
    with pytest.raises(errors.LeaseLost, match=r"^http://hand went down \(it refused a connection\)") as down:
        lease.check()
    assert "restarted" not in str(down.value)
    earlier = pool.add_new(5, None)
    pool.add_new(5, None)
    with pytest.raises(errors.LeaseLost, match=r"^http://hand was restarted: it gave out the id 5 again"):
        earlier.check()


def test_the_latency_of_a_server_is_that_of_its_recent_steps(pool):
    for seconds in (1.0, 1.0, None, 2.0):
        pool.note_reply(seconds)
    assert pool.latency == pytest.approx(1.2)
    for _ in range(30):
        pool.note_reply(0.1)
    assert pool.latency == pytest.approx(0.1, abs=0.01)
