"""What is true of one env is true of awaited ones, and of many side by side."""

from __future__ import annotations

import asyncio
import functools

import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from agentgym_gym import errors
from lifecycle_machine import ATTEMPTS, CRAFT, GET, NOT_SENT, SENT, Checks, Lifecycle, Player, account_of, run
from many_machine import AwaitedPlayer, row, side_by_side, turn_of

MODES = list(AutoresetMode)


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def test_lifecycle_awaited(new_world, loop):
    def awaited(world, options):
        return [AwaitedPlayer(world, loop=loop, **each) for each in options]

    run(lambda: Lifecycle(new_world(), awaited), stateful_step_count=40)


@pytest.mark.parametrize("number", [1, 3])
def test_lifecycle_in_a_vector(new_world, number):
    """One after the other: no other one is touched."""

    def members(world, options):
        return side_by_side(world, (options * number)[:number])

    run(lambda: Lifecycle(new_world(), members), stateful_step_count=40)


class AllAtOnce(Checks):
    """A vector environment whose members are all reset and all stepped at once.

    Args:
        world: The server and the way to it.
        mode: When members are reset by themselves.
    """

    def __init__(self, world, mode) -> None:
        super().__init__(world, functools.partial(side_by_side, autoreset_mode=mode))
        self.mode = mode
        self.begun = False
        world.breaks.pop("id 0", None)  # by which one would be given what another holds, and is playing

    a_break = st.runner().flatmap(lambda self: st.sampled_from(sorted(self.world.breaks)))
    all_breaks = st.lists(
        st.one_of(st.just([]), a_break.map(lambda name: [name]), a_break.map(lambda name: [name] * ATTEMPTS)),
        min_size=3,
        max_size=3,
    )
    tasks = st.lists(st.integers(0, 543), min_size=3, max_size=3)

    @initialize(number=st.integers(1, 3), max_turns=st.sampled_from([None, 1, 3]))
    def make(self, number, max_turns):
        self.players = self.players_of(
            self.world, [{"on_fault": "truncate", "max_turns": max_turns}] * number
        )
        self.vector = self.players[0].vector

    def begin_all(self, breaks):
        for player, its in zip(self.players, breaks, strict=False):
            self.begin(player, its)
        # A refusal takes away what all the others hold on the server.
        self.refused = [n for n, its in enumerate(breaks[: len(self.players)]) if "refused" in its]

    def end_all(self):
        for player in self.players:
            assert player.account["steps"] <= 1, "a step was played twice"
        self.world.transport.steps = 0
        self.end()

    def may_be_lost(self, number):
        return {"LeaseLost"} if set(self.refused) - {number} else set()

    @rule(breaks=all_breaks, tasks=tasks, mask=st.lists(st.booleans(), min_size=3, max_size=3))
    def reset(self, breaks, tasks, mask):
        chosen = [
            number
            for number in range(len(self.players))
            if mask[number] or self.mode != AutoresetMode.DISABLED
        ]
        breaks = [its if number in chosen else [] for number, its in enumerate(breaks)]
        self.begin_all(breaks)
        options = {"task_id": tasks[: len(self.players)]}
        options["reset_mask"] = [number in chosen for number in range(len(self.players))]
        try:
            said, infos = self.vector.reset(options=options)
        except errors.WrongServer:
            # The first error of all is raised, without the number of its environment.
            assert any(breaks)
            self.begun = False
            for number in chosen:
                self.players[number].playing = False
        except errors.Fault:
            assert all(number in self.vector._unset for number in chosen)
            self.begun = True
            for number in chosen:
                self.check_begun(number, None, {"fault": {}}, breaks[number])
        else:
            self.begun = True
            for number in chosen:
                self.check_begun(number, said[number], row(infos, number), breaks[number])
                if self.players[number].playing:
                    assert infos["task_id"][number] == tasks[number]
        self.end_all()

    def check_begun(self, number, said, info, breaks):
        player = self.players[number]
        if "fault" in info:
            self.check_reset_failed(player, info, [*breaks, *self.may_be_lost(number)])
            return
        player.playing, player.turn, player.earned = True, 0, 0.0
        self.check(player, said, info)

    # No precondition: what is drawn must not depend on whose reset was answered first.
    @rule(breaks=all_breaks, actions=st.lists(st.sampled_from(SENT + NOT_SENT), min_size=3, max_size=3))
    def step(self, breaks, actions):
        if not self.begun:
            return
        unset = dict(self.vector._unset)
        expected = [
            self.expected(player.lease, breaks[number]) | self.may_expect(number, breaks)
            if player.playing
            else None
            for number, player in enumerate(self.players)
        ]
        self.begin_all(breaks)
        given = [
            None
            if self.mode == AutoresetMode.DISABLED and not player.playing and number not in unset
            else actions[number]
            for number, player in enumerate(self.players)
        ]
        try:
            turns = self.vector.step(given)
        except errors.WrongServer:
            assert any(breaks)
            self.begun = False
            for player in self.players:
                player.playing = False
            self.end_all()
            return
        for number, player in enumerate(self.players):
            turn = turn_of(turns, number)
            if given[number] is None:
                assert turn[1:] == (0.0, False, False, {})
            elif number not in unset and not player.playing:  # AutoresetMode.NEXT_STEP
                assert turn[1:4] == (0.0, False, False)
                self.check_begun(number, turn[0], turn[4], breaks[number])
            else:
                self.check_played(number, given[number], turn, expected[number], unset, breaks[number])
        self.end_all()

    def may_expect(self, number, breaks):
        others = {name for n, its in enumerate(breaks[: len(self.players)]) if n != number for name in its}
        looked_at = {None} if others & {"502", "503", "504"} else set()  # then what is broken may be a look
        return looked_at | ({"LeaseLost"} if "refused" in others else set())

    def check_played(self, number, action, turn, expected, unset, breaks):
        player = self.players[number]
        said, info = turn[0], turn[4]
        if "final_obs" in info:
            assert self.mode == AutoresetMode.SAME_STEP
            assert turn[2] or turn[3]
            turn = (info.pop("final_obs"), *turn[1:4], info.pop("final_info"))
        if number in unset:
            assert turn[1:4] == (0.0, False, True)
            assert turn[4]["fault"]["kind"] == unset[number].kind
            player.playing = False
        else:
            kinds = expected if action in SENT else {None}
            self.check_turn(player, turn, kinds)
        if self.mode == AutoresetMode.SAME_STEP and not player.playing:
            self.check_begun(number, said, info, breaks)


@pytest.mark.parametrize("mode", MODES)
def test_all_at_once(new_world, mode):
    run(lambda: AllAtOnce(new_world(), mode), stateful_step_count=30)


# --------------------------------------------------------------------------------------------------- parity


def told(world, observation, *turn):
    """Return the text, without the address of the world."""
    *flags, info = turn
    if "fault" in info:
        info = {**info, "fault": {k: v.replace(world.url, "") for k, v in info["fault"].items()}}
    return (observation, *flags, info)


def played_alone(new_world, seed, script, mode, options, kind):
    """Yield what a single env returns, each call in one list, reset as a vector of that mode would."""
    world = new_world()
    player = kind(world, **options)
    world.transport.begin(player)
    player.account = account_of(world.transport)
    said = [told(world, *player.reset(None, seed))]
    over = False
    for action, breaks in script:
        world.transport.begin(player, [] if over and mode == AutoresetMode.NEXT_STEP else breaks)
        player.account = account_of(world.transport)
        if over and mode == AutoresetMode.NEXT_STEP:
            observation, info = player.reset(None)
            said.append(told(world, observation, 0.0, False, False, info))
            over = False
            continue
        turn = told(world, *player.step(action))
        over = turn[2] or turn[3]
        if over and mode != AutoresetMode.NEXT_STEP:
            again = told(world, *player.reset(None))
            if mode == AutoresetMode.SAME_STEP:
                ended = {"final_obs": turn[0], "final_info": turn[-1]}
                turn = (again[0], *turn[1:4], {**again[1], **ended})
            else:
                said.append(turn)
                turn = again
            over = False
        said.append(turn)
    player.close()
    return said


def played_side_by_side(new_world, seeds, scripts, mode, options):
    """Return the results of each env of a vector, each call in one list."""
    world = new_world()
    members = side_by_side(world, [options] * len(seeds), autoreset_mode=mode)
    vector, numbers = members[0].vector, range(len(seeds))
    over = [False] * len(seeds)

    def begin(breaks):
        for member, its in zip(members, breaks, strict=True):
            world.transport.begin(member, its)
            member.account = account_of(world.transport)

    begin([[]] * len(seeds))
    first, infos = vector.reset(seed=seeds)
    said = [[told(world, first[n], row(infos, n))] for n in numbers]
    for turns in zip(*scripts, strict=True):
        begin([[] if over[n] else breaks for n, (_, breaks) in enumerate(turns)])
        stepped = vector.step([action for action, _ in turns])
        for n in numbers:
            turn = turn_of(stepped, n)
            if "final_info" in turn[4]:
                final = told(world, "", turn[4]["final_info"])[-1]
                turn = (*turn[:4], {**turn[4], "final_info": final})
            said[n].append(told(world, *turn))
            over[n] = mode == AutoresetMode.NEXT_STEP and (turn[2] or turn[3])
        ended = stepped[2] | stepped[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            begin([[]] * len(seeds))
            first, infos = vector.reset(options={"reset_mask": ended})
            for n in numbers:
                if ended[n]:
                    said[n].append(told(world, first[n], row(infos, n)))
    vector.close()
    return said


def played(breaks):
    """Return what draws a turn: an action, and what goes wrong with it."""
    # All of it is over with the step that it happens to; and of a refusal, or of a gateway that says that its
    # server is away, the others would hear.
    names = sorted(breaks.keys() - {"refused", "id 0", "502", "503", "504"})
    broken = st.sampled_from(names).map(lambda name: [name] * (ATTEMPTS if breaks[name].again else 1))
    return st.one_of(
        st.tuples(st.sampled_from(SENT + NOT_SENT), st.just([])),
        st.tuples(st.sampled_from([GET, CRAFT]), st.just([])),
        st.tuples(st.sampled_from(SENT), broken),
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_single_awaited_and_vector_environments_report_alike(new_world, loop, mode):
    turns = played(new_world().breaks)

    @given(
        seeds=st.lists(st.integers(0, 2**32), min_size=1, max_size=3),
        scripts=st.lists(st.lists(turns, min_size=8, max_size=8), min_size=3, max_size=3),
        max_turns=st.sampled_from([None, 2, 5]),
    )
    def alike(seeds, scripts, max_turns):
        options = {"max_turns": max_turns}
        scripts = scripts[: len(seeds)]
        awaited = functools.partial(AwaitedPlayer, loop=loop)
        alone, as_well = (
            [played_alone(new_world, *each, mode, options, kind) for each in zip(seeds, scripts, strict=True)]
            for kind in (Player, awaited)
        )
        assert alone == as_well
        assert alone == played_side_by_side(new_world, seeds, scripts, mode, options)

    alike()
