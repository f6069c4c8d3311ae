"""One env of any kind, a server that may fail at any moment, and what must be true after any operation."""

from __future__ import annotations

import json

import gymnasium.error
import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agentgym_gym import AgentGymEnv, errors
from agentgym_gym.actions import Verbatim
from agentgym_gym.envs.textcraft import Craft, Get, Ingredient, Inventory
from inside import directly, given_up, scrub

FIXED_KEYS = {"task_id", "turn", "score", "agentgym_score", "raw_reward", "success", "action"}
OTHER_KEYS = {"goal", "available_actions", "parse_error", "ignored_actions", "played_call", "fault"}
ATTEMPTS = 3

GET = "Thought: I need wood.\nAction: get 1 oak logs"
CRAFT = "Thought: Now.\nAction: craft 4 oak planks using 1 oak logs"

# What an agent may do, and whether anything of it is sent.
SENT = [
    GET,
    CRAFT,
    Get(1, "oak logs"),
    Craft(4, "oak planks", (Ingredient(1, "oak logs"),)),
    Inventory(),
    Verbatim("get 1 oak logs"),
    Verbatim("\ud800 \x00"),
    "Thought: \ud800\nAction: dance wildly",
    "Action: id 0",
]
NOT_SENT = [
    "",
    "\ud800",
    "I do not know.",
    "Action: get",
    f"{GET}\n{CRAFT}",
    "Action: get 0 oak logs",
    "Action:",
]


class Player:
    """One env, and what must be true of it.

    Attributes:
        account: What the transport is to do for it, and has done.
        closes_alone: Whether it can be closed and the others left open.
    """

    closes_alone = True

    def __init__(self, world, **options) -> None:
        self.options = options
        self.playing = False
        self.turn = 0
        self.earned = 0.0
        self.account = {}
        self.env = self.made(world)

    def made(self, world):
        client = httpx.Client(transport=world.transport)
        env = AgentGymEnv(world.environment, server=world.url, http_client=client, **self.options)
        directly(env._driver, world.transport)
        return env

    def reset(self, task, seed=None):
        return self.env.reset(seed=seed, options={"task_id": task})

    def step(self, action):
        return self.env.step(action)

    def close(self):
        self.env.close()

    def is_over(self, action):
        """Check that a step after the end is refused."""
        with pytest.raises(gymnasium.error.ResetNeeded):
            self.step(action)

    @property
    def lease(self):
        return self.env._episode.lease


def account_of(transport):
    """Return what the transport keeps for the process that makes the requests now."""
    return {name: vars(transport)[name] for name in ("breaks", "seen", "steps", "told", "_caller")}


def alone(world, options):
    """Return an env for each of some options."""
    return [Player(world, **each) for each in options]


def recipe_for(observation: str) -> list[str] | None:
    """Return the actions that make a goal from what can simply be got; None where it takes more."""
    commands, _, goal = observation.rpartition("Goal: craft ")
    made = {}
    for line in commands.splitlines():
        if line.startswith("craft "):
            result, _, ingredients = line.removeprefix("craft ").partition(" using ")
            made[result.partition(" ")[2]] = (line, ingredients.split(", "))
    if goal.rstrip(".") not in made:
        return None
    line, ingredients = made[goal.rstrip(".")]
    if any(ingredient.partition(" ")[2] in made for ingredient in ingredients):
        return None
    return [f"Action: get {ingredient}" for ingredient in ingredients] + [f"Action: {line}"]


class Checks(RuleBasedStateMachine):
    """What holds of the envs on one server after any operations.

    Args:
        world: The server and the way to it.
        players_of: Makes the envs of the world and a list of options.
    """

    def __init__(self, world, players_of) -> None:
        super().__init__()
        self.world = world
        self.players_of = players_of
        self.players: list[Player] = []
        # Errors of a restarted server for an environment that it does not have.
        self.unknown = "EnvironmentFailed" if world.pool.environment.wire.closes else "ServerError"

    def begin(self, player, breaks=()):
        self.world.transport.begin(player, breaks)
        player.account = account_of(self.world.transport)
        self.epoch = self.world.pool.epoch

    def end(self):
        """Check what holds after any call."""
        transport = self.world.transport
        assert transport.steps <= 1, "a step was played twice"
        if self.world.pool.epoch != self.epoch:
            # The server was not there, and so may have been restarted: what it held then is given up, since
            # to close it now might be to close what is another's.
            kept = {player.lease.env_id for player in self.players if player.lease and player.lease.current}
            transport.excused |= transport.open - kept

    @invariant()
    def nothing_is_lost(self):
        """All environments open on the server are held here, or were lost by no fault of ours.

        Lost ones, after a gateway reported that its server was away, may show another observation: the result
        of a request without an answer, or with an answer that was changed on its way.
        """
        transport, pool = self.world.transport, self.world.pool
        transport.excused |= transport.open & given_up(pool.server)
        held = {player.lease.env_id for player in self.players if player.lease and player.lease.current}
        kept = held | set(pool._free) | set(pool._unclosed)
        assert transport.open - transport.excused <= kept
        assert {id(lease) for lease in pool._held.values()} <= {id(player.lease) for player in self.players}
        assert pool.load <= len(self.players)
        assert held.isdisjoint(pool._free)
        assert len(pool._free) == len(set(pool._free))

    def expected(self, lease, breaks):
        """Return the kinds of fault that a step may end with; None for no fault."""
        if not lease.current:
            return {"LeaseLost"}
        kind = None
        for attempt in range(ATTEMPTS):
            broken = self.world.breaks.get(breaks[attempt]) if attempt < len(breaks) else None
            kind = broken and broken.kind
            if not broken or not broken.again:
                break
        forgotten = lease.env_id not in self.world.transport.open
        if lease.memory.away != lease.gateway.away:  # what is broken may be a look, which is repeated
            return {kind, None, self.unknown}
        return {kind or self.unknown, self.unknown} if forgotten else {kind}

    def may_be_lost(self, player):
        """Return the kind of fault that also ends a step in an environment that was given up."""
        return {"LeaseLost"} if given_up(self.world.pool.server) else set()

    def check_reset_failed(self, player, error, breaks):
        """A reset fails for nothing but what was broken."""
        player.playing = False
        assert breaks, f"nothing was broken, and yet: {error!r}"

    def check_raised(self, player, fault, expected):
        """A step raises what it would otherwise return."""
        player.playing = False
        assert player.options["on_fault"] == "raise"
        assert fault.kind in expected | self.may_be_lost(player)

    def check_turn(self, player, turn, expected):
        observation, reward, terminated, truncated, info = turn
        assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
        player.turn += 1
        player.earned += reward
        self.check(player, observation, info)
        if "fault" in info:
            assert set(info["fault"]) == {"kind", "message"}
            assert all(isinstance(value, str) and value for value in info["fault"].values())
            assert (reward, terminated, truncated) == (0.0, False, True)
            assert (info["success"], info["raw_reward"]) == (False, 0.0)
            assert player.options["on_fault"] == "truncate"
            assert info["fault"]["kind"] in expected | self.may_be_lost(player)
        else:
            assert None in expected
            limit = player.options["max_turns"]
            assert truncated == (not terminated and player.turn == limit)
            if player.account["told"]:
                [told] = player.account["told"]
                assert observation == scrub(told["observation"])
                assert (info["raw_reward"], terminated) == (told["reward"], told["done"])
                assert reward == (1.0 if told["done"] and told["reward"] > 0 else 0.0)
                assert info["success"] == (reward > 0)
        player.playing = not (terminated or truncated)

    def check(self, player, observation, info):
        assert observation in player.env.observation_space
        observation.encode()  # no lone surrogates
        assert set(info) >= FIXED_KEYS
        assert set(info) <= FIXED_KEYS | OTHER_KEYS
        assert info["turn"] == player.turn
        assert info["score"] == player.earned
        assert 0.0 <= info["score"] <= 1.0
        assert type(info["score"]) is type(info["raw_reward"]) is type(info["agentgym_score"]) is float
        assert type(info["success"]) is bool
        json.dumps(info)

    def teardown(self):
        for player in self.players:
            self.begin(player)
        for player in self.players:
            self.begin(player)
            player.close()
            self.end()
        self.nothing_is_lost()
        if self.world.pool.environment.wire.closes:
            assert self.world.transport.open <= self.world.transport.excused
        assert self.world.pool.load == 0


class Lifecycle(Checks):
    """Two envs on one server, used one after the other."""

    # What goes wrong during a call: nothing, one request, as many as are tried, or some of them.
    a_break = st.runner().flatmap(lambda self: st.sampled_from(sorted(self.world.breaks)))
    some_breaks = st.one_of(
        st.just([]),
        a_break.map(lambda name: [name]),
        a_break.map(lambda name: [name] * ATTEMPTS),
        st.just(["refused"] * ATTEMPTS),  # of all, what does most to the others
        st.lists(st.none() | a_break, max_size=6),
    )
    a_player = st.runner().flatmap(lambda self: st.sampled_from(self.players))
    a_busy_player = st.runner().flatmap(lambda self: st.sampled_from([s for s in self.players if s.playing]))
    an_idle_player = st.runner().flatmap(
        lambda self: st.sampled_from([s for s in self.players if not s.playing])
    )

    @initialize(
        on_fault=st.lists(st.sampled_from(["truncate", "raise"]), min_size=2, max_size=2),
        max_turns=st.lists(st.sampled_from([None, 3, 8]), min_size=2, max_size=2),
    )
    def make(self, on_fault, max_turns):
        options = [{"on_fault": f, "max_turns": t} for f, t in zip(on_fault, max_turns, strict=True)]
        self.players = self.players_of(self.world, options)

    @rule(player=a_player, breaks=some_breaks, task=st.integers(0, 543))
    def reset(self, player, breaks, task):
        self.begin(player, breaks)
        try:
            observation, info = player.reset(task)
        except (errors.Fault, errors.WrongServer) as error:
            self.check_reset_failed(player, error, breaks)
        else:
            player.playing, player.turn, player.earned = True, 0, 0.0
            self.check(player, observation, info)
            assert info["task_id"] == task
            assert "fault" not in info
        self.end()

    @precondition(lambda self: any(player.playing for player in self.players))
    @rule(player=a_busy_player, breaks=some_breaks, action=st.sampled_from(SENT))
    def step(self, player, breaks, action):
        expected = self.expected(player.lease, breaks)
        self.begin(player, breaks)
        try:
            turn = player.step(action)
        except errors.Fault as fault:
            self.check_raised(player, fault, expected)
        else:
            self.check_turn(player, turn, expected)
            turn[4]["action"].encode()  # no lone surrogates
        self.end()

    @precondition(lambda self: any(player.playing for player in self.players))
    @rule(player=a_busy_player, action=st.sampled_from(NOT_SENT))
    def step_without_action(self, player, action):
        self.begin(player)
        observation, reward, terminated, _, info = turn = player.step(action)
        self.check_turn(player, turn, {None})
        assert (reward, terminated, info["raw_reward"], info["action"]) == (0.0, False, 0.0, None)
        assert info["parse_error"] in {"NoAction", "ManyActions", "UnknownAction", "BadArguments"}
        assert player.env._episode.action_format.example(player.env.environment.grammar) in observation
        assert self.world.transport.seen == []

    @precondition(lambda self: not all(player.playing for player in self.players))
    @rule(player=an_idle_player, action=st.sampled_from(SENT + NOT_SENT))
    def step_after_the_end(self, player, action):
        self.begin(player)
        player.is_over(action)
        assert self.world.transport.seen == []

    @rule(player=a_player, action=st.sampled_from([1, b"get", ["get"], "".join]))
    def step_of_a_wrong_type(self, player, action):
        self.begin(player)
        if not player.playing:
            player.is_over(action)
            return
        with pytest.raises(errors.BadOption):
            player.step(action)
        assert self.world.transport.seen == []

    @precondition(lambda self: self.players and self.players[0].closes_alone)
    @rule(player=a_player, breaks=some_breaks)
    def close(self, player, breaks):
        self.begin(player, breaks)
        player.close()
        player.playing = False
        self.end()
        self.begin(player)
        player.close()
        # What was not answered may be open still, and is asked again.
        assert self.world.transport.seen in ([], ["/close"], ["/observation"], ["/observation", "/close"])
        assert breaks or not self.world.transport.seen

    @precondition(lambda self: self.world.restart)
    @rule()
    def server_restarts(self):
        self.world.restart()

    @rule(player=a_player, task=st.integers(0, 20))
    def all_is_well_again(self, player, task):
        """Nothing that went wrong before is in the way of an episode from beginning to end."""
        self.reset(player, [], task)
        assert player.playing
        actions = recipe_for(player.env._episode.transcript[0])
        if actions is None or len(actions) > (player.options["max_turns"] or 100):
            return
        for number, action in enumerate(actions):
            self.begin(player)
            turn = player.step(action)
            assert turn[2] == (number == len(actions) - 1), turn
            self.check_turn(player, turn, {None})
        assert (player.earned, turn[4]["score"], turn[4]["success"]) == (1.0, 1.0, True)


def run(machine, **options):
    """Let hypothesis look for what a machine does not withstand."""
    run_state_machine_as_test(machine, settings=settings(**options))
