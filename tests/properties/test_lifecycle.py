"""Reset, step and close in any order, on a server that may fail at any moment: what holds all the same."""

from __future__ import annotations

import gc
import threading

import gymnasium.error
import pytest
from hypothesis import settings

import inside
from lifecycle_machine import ATTEMPTS, CRAFT, GET, Lifecycle, Player, alone, run


def test_lifecycle(new_world):
    run(
        lambda: Lifecycle(new_world(), alone),
        max_examples=2 * settings.default.max_examples,
        stateful_step_count=40,
    )


def test_lifecycle_without_close(new_world_without_close):
    run(
        lambda: Lifecycle(new_world_without_close(), alone),
        max_examples=settings.default.max_examples,
        stateful_step_count=30,
    )


def test_lifecycle_on_the_local_server(new_real_world):
    run(
        lambda: Lifecycle(new_real_world(), alone),
        max_examples=max(5, settings.default.max_examples // 10),
        stateful_step_count=20,
    )


# -------------------------------------------------------------------------------- what happens only sometimes


def test_every_break_breaks_as_it_is_named(new_world):
    """The machine draws what to break; here is each in turn, on a step that would have won."""
    world = new_world()
    for name, broken in world.breaks.items():
        player = Player(world)
        world.transport.begin(player)
        player.reset(0)
        player.step(GET)
        world.transport.begin(player, [name] * ATTEMPTS)
        observation, reward, terminated, truncated, info = player.step(CRAFT)
        assert observation in player.env.observation_space
        observation.encode()  # no lone surrogates
        assert info.get("fault", {}).get("kind") == broken.kind, name
        assert truncated == bool(broken.kind), name
        assert terminated == (not broken.kind), name
        assert world.transport.steps == broken.ran, name
        assert len(world.transport.seen) == (ATTEMPTS if broken.again else 1), name
        assert reward == (1.0 if not broken.kind and name != "a reward of -0.0" else 0.0), name
        world.transport.begin(player)
        player.close()


def test_an_interrupt_ends_the_episode(new_world, monkeypatch):
    """The state of the server is then unknown, so neither is the episode resumed nor the id used again."""
    world = new_world()
    player = Player(world)
    world.transport.begin(player)
    player.reset(0)

    def interrupt(request):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(world.transport, "handle_request", interrupt)
        with pytest.raises(KeyboardInterrupt):
            player.step(GET)
    world.transport.begin(player)
    with pytest.raises(gymnasium.error.ResetNeeded):
        player.step(GET)
    assert world.transport.seen == []
    player.reset(0)
    assert world.transport.seen == ["/close", "/create", "/reset"]
    player.close()
    assert not world.transport.open


def test_a_dropped_env_releases_its_lease(new_world):
    world = new_world()
    player = Player(world)
    world.transport.begin(player)
    player.reset(0)
    assert world.transport.open
    del player.env
    gc.collect()
    assert not world.transport.open
    assert world.pool.load == 0


def test_an_env_may_be_collected_at_any_time(new_world):
    """The collector may run while the pool is at work, and in the same thread."""
    world = new_world()
    player = Player(world)
    world.transport.begin(player)
    player.reset(0)
    pool = world.pool

    def collect():
        with pool._lock:
            del player.env
            gc.collect()

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(3)
    assert not thread.is_alive(), "the pool waits for itself"
    assert not world.transport.open


def test_an_env_that_is_used_after_close_is_closed_at_exit(new_world):
    world = new_world()
    player = Player(world)
    world.transport.begin(player)
    player.reset(0)
    player.close()
    player.reset(0)
    assert world.transport.open
    assert inside.is_closed_at_exit(player.env)
    player.close()
    assert not inside.is_closed_at_exit(player.env)
    assert not world.transport.open


def test_a_server_that_was_away_has_lost_the_episodes_of_all(new_world):
    """What it gives out under the old ids now may be another client's."""
    world = new_world()
    one, other = Player(world), Player(world)
    for player in (one, other):
        world.transport.begin(player)
        player.reset(0)
    world.transport.begin(one, ["refused"] * ATTEMPTS)
    assert one.step(GET)[4]["fault"]["kind"] == "ServerUnreachable"
    world.transport.begin(other)
    assert other.step(GET)[4]["fault"]["kind"] == "LeaseLost"
    assert world.transport.seen == []
    for player in (one, other):
        world.transport.begin(player)
        player.reset(0)
        player.step(GET)
        assert player.step(CRAFT)[4]["success"]
        player.close()


def test_a_restarted_server_gives_no_env_to_two(new_world):
    world = new_world()
    one, other = Player(world), Player(world)
    for player in (one, other):
        world.transport.begin(player)
        player.reset(0)
    world.restart()
    world.transport.begin(other)
    other.reset(0)  # and is given environment 0, which the first one holds
    assert other.lease.env_id == one.lease.env_id == 0
    world.transport.begin(one)
    assert one.step(GET)[4]["fault"]["kind"] == "LeaseLost"
    assert world.transport.seen == []
    one.reset(0)
    for player in (one, other):
        world.transport.begin(player)
        player.step(GET)
        assert player.step(CRAFT)[4]["success"]
        player.close()
    assert not world.transport.open
