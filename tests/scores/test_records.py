"""Records, summaries, resumes and rescored runs: round trips with a fault at each place where one can be."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import itertools
import json
import math
import pickle

import gymnasium
import pytest

import command_line
from agentgym_gym import AgentGymEnv
from agentgym_gym.errors import AgentFault, BadOption
from agentgym_gym.evaluate import (
    DIVERGED,
    EpisodeRecord,
    Price,
    RunFolder,
    RunResult,
    compare_runs,
    evaluate,
    evaluate_async,
    read_records,
    read_run,
    read_training,
    rescore,
    summarise,
)
from agentgym_gym.rollout import Episode, EpisodeWriter, Pool
from agentgym_gym.testing import ScriptedAgent
from fake_server import FakeServer
from game_server import WIN, GameServer, error_500, lost_after
from verl_bridge.numbers import numbers_of, numbers_of_unplayed
from verl_bridge.reward import TurnScore, compute_score

LENGTH = 3


class Ladder(gymnasium.Env):
    """Three turns. The first two pay 0.25 each and count as solved, the last one as `last` of the task."""

    observation_space = action_space = gymnasium.spaces.Text(100)

    def __init__(self, fails=(), last=0.5, solved=True, states=True):
        self.fails, self.last, self.solved, self.states = list(fails), last, solved, states
        self.played = []

    def _fail(self, where):
        if (self.task, where) in self.fails:
            self.fails.remove((self.task, where))
            raise ConnectionError(f"lost at {where}")

    def reset(self, *, seed=None, options=None):
        self.task, self.turn = seed, 0
        self.played.append(seed)
        self._fail(0)
        return "Begin.", {}

    def step(self, action):
        self.turn += 1
        self._fail(self.turn)
        done = self.turn == LENGTH
        if (self.task, f"stated at {self.turn}") in self.fails:
            return "Lost.", 0.25, done, False, {"success": True, "fault": {"kind": "Lost", "message": "so"}}
        info = {"success": self.solved if done else True} if self.states else {}
        if action == "?":
            info["parse_error"] = "NoAction"
        return "Go on.", self.last if done else 0.25, done, False, info


class Failing(ScriptedAgent):
    """An agent that fails at its reset (0) or in a turn."""

    def __init__(self, at, *replies):
        super().__init__(*replies)
        self.at, self.turn = at, 0

    def reset(self, env, observation, info):
        super().reset(env, observation, info)
        self.turn = 0
        self._fail()

    def act(self, observation, info):
        self.turn += 1
        self._fail()
        return super().act(observation, info)

    def _fail(self):
        if self.turn == self.at:
            raise ConnectionError("the model is lost")


def written_and_read(record, folder):
    """Return a record after a file."""
    with RunFolder(folder, {}) as run:
        run.add(record)
    ((found,), _) = read_records(folder / "episodes.jsonl")
    return found


# --- an episode with a fault has no score, wherever the fault is ---


@pytest.mark.parametrize("at", range(LENGTH + 1))
@pytest.mark.parametrize("whose", ["environment", "stated", "agent"])
def test_a_fault_at_any_turn_leaves_neither_score_nor_success(tmp_path, monkeypatch, at, whose):
    monkeypatch.chdir(tmp_path)
    stated = whose == "stated" and at > 0
    fails = () if whose == "agent" else [(0, f"stated at {at}" if stated else at)]
    replies = ("?", "go", "go")
    agent = ScriptedAgent(*replies) if fails else Failing(at, *replies)
    (record,) = evaluate(Ladder(fails), agent, [0])
    assert written_and_read(record, tmp_path) == record
    assert (record.scored, record.score, record.success) == (False, None, None)
    paid = max(0, at - 1) * 0.25
    assert (record.return_, math.fsum(record.rewards)) == (paid, paid)
    assert record.terminated is False
    if fails:
        assert (record.ending, record.truncated, record.agent_fault) == ("fault", True, None)
        assert record.fault["kind"] == ("Lost" if stated else "ConnectionError")
        assert record.turns == at  # the failed turn is one, too
    else:
        assert (record.ending, record.truncated, record.fault) == ("agent_fault", False, None)
        assert record.agent_fault["kind"] == "AgentCrashed"
        assert record.turns == max(0, at - 1)
    summary = summarise([record])
    assert (summary.scored, summary.faulted, summary.parse_errors, summary.failures) == (0, 1, {}, {})
    assert (summary.success_rate, summary.mean_score, summary.mean_turns) == (None, None, None)


@pytest.mark.parametrize("at", range(LENGTH + 1))
def test_a_fault_in_the_second_sample_leaves_the_others(at):
    env = Ladder([(1, at)])
    env.fails = []

    def note(record):
        env.fails = [(1, at)] if (record.task_id, record.sample) == (0, 1) else []

    agent = ScriptedAgent("go", "go", "go")
    records = evaluate(env, agent, [0, 1], samples=3, on_episode=note)
    assert env.played == [0, 1] * 3
    assert [(each.task_id, each.sample) for each in records] == [
        (task, sample) for sample in range(3) for task in (0, 1)
    ]
    assert [each.score for each in records] == [1.0, 1.0, 1.0, None, 1.0, 1.0]
    summary = summarise(records)
    assert (summary.episodes, summary.scored, summary.samples) == (6, 5, 3)
    assert (summary.success_rate, summary.avg_at_k) == (1.0, None)
    assert (summary.pass_at[2], summary.pass_at[3]) == (1.0, None)


@pytest.mark.parametrize(
    ("solved", "last", "success_at", "success", "score"),
    [
        (True, 0.5, None, True, 1.0),
        (False, 0.5, None, False, 1.0),  # the last turn decides
        (True, -0.5, None, True, 0.0),
        (None, 0.5, None, None, 1.0),
        (None, 0.5, 1.0, True, 1.0),
        (None, 0.25, 0.75, True, 0.75),
        (None, 0.25, 0.7500001, False, 0.75),
        (None, -0.5, 0.0, True, 0.0),
        (False, 0.5, 0.0, False, 1.0),
        (True, 0.0, 1.0, True, 0.5),
    ],
)
def test_success_comes_from_the_last_turn_or_the_threshold(solved, last, success_at, success, score):
    env = Ladder(last=last, solved=solved, states=solved is not None)
    (record,) = evaluate(env, ScriptedAgent("go", "go", "go"), [0], success_at=success_at)
    assert (record.success, record.score, record.return_) == (success, score, score)
    assert (record.turns, record.terminated, record.truncated) == (LENGTH, True, False)


@pytest.mark.parametrize("replies", range(LENGTH + 2))
def test_an_agent_that_gives_up_is_scored_by_what_it_has(replies):
    (record,) = evaluate(Ladder(last=0.5), ScriptedAgent(*["go"] * replies), [0])
    ending = "gave_up" if replies < LENGTH else "terminated"
    assert (record.ending, record.turns, record.terminated) == (
        ending,
        min(replies, LENGTH),
        replies >= LENGTH,
    )
    assert record.score == [0.0, 0.25, 0.5, 1.0, 1.0][replies]
    assert record.success is (True if replies else None)


@pytest.mark.parametrize("max_turns", range(1, LENGTH + 2))
@pytest.mark.parametrize("at", [*range(1, LENGTH + 1), None])
def test_a_rollout_that_wins_or_faults_in_its_last_turn_is_not_cut(max_turns, at):
    async def play():
        make_env = functools.partial(Ladder, [(0, at)])
        async with Pool(make_env) as pool, Episode(pool, task=0, max_turns=max_turns) as episode:
            while not episode.over:
                await episode.step("go")
            return episode.record(agent="x"), episode.truncated

    record, truncated = asyncio.run(play())
    turns = min(max_turns, LENGTH if at is None else at)
    ending = "fault" if turns == at else "terminated" if turns == LENGTH else "truncated"
    assert (record.ending, record.turns, truncated) == (ending, turns, ending != "terminated")
    assert (record.terminated, record.truncated) == (ending == "terminated", ending != "terminated")
    assert record.score == (None if turns == at else [0.25, 0.5, 1.0][turns - 1])


# --- the turn limit, and faults of a server ---


@pytest.fixture(scope="module")
def games():
    with GameServer() as server:
        yield server


@pytest.mark.parametrize("max_turns", range(1, WIN + 2))
@pytest.mark.parametrize("unread", range(3))
def test_the_turn_limit_counts_each_reply_and_the_last_turn_may_win(games, max_turns, unread):
    replies = [*["no action"] * unread, *[games.action] * WIN]
    with AgentGymEnv(games.environment, server=games.url, max_turns=max_turns) as env:
        (record,) = evaluate(env, ScriptedAgent(*replies), [5])
    won = WIN + unread <= max_turns
    assert (record.score, record.success) == (float(won), won)
    assert (record.terminated, record.truncated) == (won, not won)
    assert (record.ending, record.turns) == (
        "terminated" if won else "truncated",
        min(WIN + unread, max_turns),
    )
    assert record.parse_errors.get("NoAction", 0) == min(unread, max_turns)


@pytest.mark.parametrize("at", range(1, WIN + 1))
@pytest.mark.parametrize("fault", [error_500, lost_after], ids=["500", "lost"])
def test_a_fault_at_any_step_is_of_its_episode(games, at, fault):
    """Even where the server has played the winning step, which nobody saw."""
    count = itertools.count(1)

    def fails(play):
        answer = play()
        stepped = isinstance(answer, dict) and "Step 0" not in answer.get("observation", "Step 0")
        return fault(lambda: answer) if stepped and next(count) == at else answer

    with AgentGymEnv(games.environment, server=games.url) as env:
        games.fault = fails
        try:
            first, second = evaluate(env, ScriptedAgent(*[games.action] * WIN), [1, 2])
        finally:
            games.fault = None
    assert (first.score, first.success, first.ending, first.turns) == (None, None, "fault", at)
    assert (second.score, second.success, second.turns) == (1.0, True, WIN)


PROGRESS = (0.25, 0.25, 0.0, 0.75, 1.0)


@pytest.mark.parametrize("turns", range(1, len(PROGRESS) + 2))
def test_progress_is_paid_once_in_each_episode(started, turns):
    """On the wire of the tools, which pays the total reached so far."""
    left = []

    def answer(request):
        if request.path == "/reset":
            left[:] = PROGRESS
            return "Now new trial starts."
        if request.path == "/step":
            reward = left.pop(0)
            return {"observation": "Observation: ok", "reward": reward, "done": not left}
        return {"/": "ok", "/create": 0, "/list_envs": [0]}.get(request.path, (404, {}))

    replies = ["Action: loadPaperNet with Action Input: {}"] * turns
    with AgentGymEnv("Academia", server=started(FakeServer(answer)).url) as env:
        for record in evaluate(env, ScriptedAgent(*replies), [1, 2]):
            assert record.rewards == (0.25, 0.0, 0.0, 0.5, 0.25)[:turns]
            assert record.score == max(PROGRESS[:turns])
            assert (record.success, record.terminated) == (turns >= 5, turns >= 5)


# --- numbers of a run, worked out by hand ---


@pytest.fixture
def record():
    """Makes a record: of a score, or None for a fault."""

    def make(task=0, sample=0, score=1.0, **others):
        scored = score is not None
        fields = {
            "env_id": "agentgym/TextCraft-v0",
            "agent": "someone",
            "task_id": task,
            "sample": sample,
            "goal": f"goal {task}",
            "score": score,
            "success": score >= 1 if scored else None,
            "return_": score if scored else 0.5,
            "turns": 2,
            "terminated": scored,
            "truncated": not scored,
            "parse_errors": {"NoAction": 1},
            "fault": None if scored else {"kind": "ServerTimeout", "message": "late"},
            "seconds": 0.5,
            "rewards": (0.0, score) if scored else (0.5, 0.0),
            "messages": tuple(
                {"role": role, "content": text}
                for role, text in (
                    ("user", "Goal: …"),
                    ("assistant", "Action: inventory"),
                    ("user", "…"),
                    ("assistant", "nothing"),
                    ("user", "…"),
                )
            ),
            "steps": ({"action": "inventory"}, {"action": None, "parse_error": "NoAction"}),
        }
        return EpisodeRecord(**{**fields, **others})

    return make


SCORES = {  # by task, the scores of its samples
    0: (1.0, None, 0.0),
    1: (1.0, 1.0, 1.0),
    2: (None, None, None),
    3: (0.0, 0.5, 0.0),
}


def test_the_averages_are_over_tasks_and_without_faults(record):
    records = [
        record(task, sample, score, turns=2 if score is not None else 9)
        for task, own in SCORES.items()
        for sample, score in enumerate(own)
    ]
    for given in (records, records[::-1]):
        summary = summarise(given)
        assert (summary.episodes, summary.scored, summary.faulted) == (12, 8, 4)
        assert (summary.tasks, summary.samples) == (4, 3)
        assert summary.faults == {"ServerTimeout": 4}
        assert summary.success_rate == pytest.approx((1 / 2 + 1 + 0) / 3)
        assert summary.mean_score == pytest.approx((1 / 2 + 1 + 0.5 / 3) / 3)
        assert (summary.solved.never, summary.solved.sometimes) == ((3,), (0,))
        assert (summary.solved.always, summary.solved.unknown) == ((1,), (2,))
        assert (summary.parse_errors, summary.parse_error_share) == ({"NoAction": 8}, 0.5)
        assert (summary.failures["parse_error"], summary.failures["ended_unsolved"]) == (4, 4)
        assert (summary.mean_turns, summary.avg_at_k) == (2.0, None)
        assert summary.pass_at == {1: None, 2: None, 3: None}


@pytest.mark.parametrize(
    ("third", "at", "hat"),
    [
        # Of task 0, one of two or three; of task 1, all; of task 3, none.
        (None, {1: (1 / 2 + 1) / 3, 2: 2 / 3, 3: None}, {1: (1 / 2 + 1) / 3, 2: 1 / 3, 3: None}),
        (0.0, {1: (1 / 3 + 1) / 3, 2: (2 / 3 + 1) / 3, 3: 2 / 3}, {1: (1 / 3 + 1) / 3, 2: 1 / 3, 3: 1 / 3}),
        (1.0, {1: (2 / 3 + 1) / 3, 2: 2 / 3, 3: 2 / 3}, {1: (2 / 3 + 1) / 3, 2: (1 / 3 + 1) / 3, 3: 1 / 3}),
    ],
)
def test_pass_at_k_by_the_subsets_of_the_samples(record, third, at, hat):
    scores = {**SCORES, 0: (1.0, third, 0.0)}
    del scores[2]
    summary = summarise(
        record(task, sample, score) for task, own in scores.items() for sample, score in enumerate(own)
    )
    assert summary.pass_at == pytest.approx(at)
    assert summary.pass_hat == pytest.approx(hat)
    assert (summary.avg_at_k is None) is (third is None)


def test_tokens_of_faulted_episodes_cost_money_too(record):
    steps = ({"prompt_tokens": 1000, "completion_tokens": 10, "cached_tokens": 400},) * 2
    records = [record(task, score=score, steps=steps) for task, score in enumerate((1.0, None, 0.0))]
    price = Price(input=2.0, output=50.0, cached_input=0.5)
    once = (600 * 2.0 + 400 * 0.5 + 10 * 50.0) / 1e6
    assert summarise(records, price).cost == pytest.approx(6 * once)
    assert summarise([*records, record(3)], price).cost is None  # the tokens of some replies are unknown


@pytest.mark.parametrize(
    ("successes", "of", "low", "high"),
    [  # Wilson's formula, by hand
        (0, 1, 0.0, 0.7935),
        (1, 1, 0.2065, 1.0),
        (0, 4, 0.0, 0.4899),
        (2, 4, 0.1500, 0.8500),
        (1, 2, 0.0945, 0.9055),
        (10, 10, 0.7225, 1.0),
    ],
)
def test_the_interval_of_a_success_rate(record, successes, of, low, high):
    summary = summarise(record(task, score=float(task < successes)) for task in range(of))
    assert summary.success_interval == pytest.approx((low, high), abs=1e-4)


def test_the_interval_of_equal_shares_has_a_width(record):
    """As of as many trials as there are tasks: of a half of two tasks."""
    summary = summarise(record(task, sample, float(sample)) for task in (1, 2) for sample in (0, 1))
    assert summary.success_interval == pytest.approx((0.0945, 0.9055), abs=1e-4)


@pytest.mark.parametrize(
    ("actions", "kinds"),
    [
        ("a", ()),
        ("aa", ()),
        ("aaa", ("repeated_action",)),
        ("baaa", ("repeated_action",)),
        ("aaba", ()),
        ("aa-a", ("parse_error",)),
        ("ababa", ()),
        ("ababab", ("loop",)),
        ("cababab", ("loop",)),
        ("abcabcab", ()),
        ("abcabcabc", ("loop",)),
        ("abcdefabcdefabcdef", ("loop",)),
        ("abcdefgabcdefgabcdefg", ()),
    ],
)
@pytest.mark.parametrize("ending", ["ended_unsolved", "turn_limit", "gave_up", None])
def test_failures_by_their_actions(record, actions, kinds, ending):
    said = [
        ("user", "Goal: …"),
        *(each for name in actions for each in (("assistant", name), ("user", "no"))),
    ]
    failed = record(
        score=0.0 if ending else 1.0,
        terminated=ending == "ended_unsolved" or not ending,
        truncated=ending == "turn_limit",
        turns=len(actions),
        messages=tuple({"role": role, "content": text} for role, text in said),
        steps=tuple({"action": None if name == "-" else name} for name in actions),
        parse_errors={"NoAction": 1} if "-" in actions else {},
    )
    assert summarise([failed]).failures == (dict.fromkeys((ending, *kinds), 1) if ending else {})


# --- a run that is killed after each line, or within one, and resumed ---

RUN = {"env_id": "Ladder", "agent": "scripted", "seed": 0, "options": {"max_turns": 3}}
PLANNED = [(task, sample) for sample in range(3) for task in (4, 7, 9)]
FAULTED = (7, 1)


def play(folder, *, resume=False, retry=False, fails=(), stop_after=None):
    """Play what is left of the run; return the episodes that were left."""
    env, agent = Ladder(fails), ScriptedAgent("go", "go", "go")
    with RunFolder(folder, RUN, resume=resume, planned=PLANNED) as run:
        left = run.remaining(PLANNED, retry_faulted=retry)
        for number, (task, sample) in enumerate(left):
            if number == stop_after:
                raise KeyboardInterrupt
            env.fails = [(task, 2)] if (task, sample) in fails else []
            (record,) = evaluate(env, agent, [task])
            run.add(EpisodeRecord(**{**vars(record), "sample": sample}))
    return left


def facts(folder):
    return json.loads((folder / "summary.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a run with one fault, in the second sample of the second task."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("whole")
        patch.chdir(folder)
        assert play(folder, fails=[FAULTED]) == PLANNED
    return (folder / "episodes.jsonl").read_bytes(), (folder / "summary.json").read_bytes()


KILLED = {
    *((lines, torn, "stale") for lines in range(len(PLANNED) + 1) for torn in (0, -1)),
    *((lines, torn, "none") for lines in (0, 4) for torn in (0, 1, 300, -1)),
}
"""Which of all these places are in the quick run: the end of each line, and a part of the next one."""


@pytest.mark.parametrize(
    ("lines", "torn", "summary"),
    [
        pytest.param(*place, marks=() if place in KILLED else pytest.mark.slow)
        for place in itertools.product(range(len(PLANNED) + 1), (0, 1, 300, -1), ("stale", "none"))
    ],
)
def test_a_run_killed_at_any_line_is_resumed_without_a_trace(
    tmp_path, monkeypatch, whole, lines, torn, summary
):
    monkeypatch.chdir(tmp_path)
    content = whole[0].splitlines(keepends=True)
    kept = b"".join(content[:lines])
    fragment = (
        content[lines].removesuffix(b"\n")[: torn if torn >= 0 else None] if lines < 9 and torn else b""
    )
    (tmp_path / "episodes.jsonl").write_bytes(kept + fragment)
    if summary == "stale":
        begun = json.loads(whole[1])
        (tmp_path / "summary.json").write_text(json.dumps({"run": {**begun["run"], "finished": False}}))
    assert len(read_run(tmp_path).records) == lines
    assert play(tmp_path, resume=True, fails=[FAULTED]) == PLANNED[lines:]
    now, before = (
        [(each["task_id"], each["sample"], each["score"], each["rewards"]) for each in map(json.loads, text)]
        for text in ((tmp_path / "episodes.jsonl").read_bytes().splitlines(), content)
    )
    assert now == before
    assert (tmp_path / "episodes.jsonl").read_bytes().startswith(kept)
    found = facts(tmp_path)
    assert (found["episodes"], found["scored"], found["run"]["finished"]) == (9, 8, True)
    assert (found["faults"], found["success_rate"]) == ({"ConnectionError": 1}, 1.0)
    assert play(tmp_path, resume=True) == []


@pytest.mark.parametrize("stop_after", [0, 1, 3, 4, 8, 9])
def test_an_interrupted_run_is_marked_until_all_is_played(tmp_path, monkeypatch, stop_after):
    monkeypatch.chdir(tmp_path)
    if stop_after < 9:
        with pytest.raises(KeyboardInterrupt):
            play(tmp_path, stop_after=stop_after)
    else:
        play(tmp_path)
    found = facts(tmp_path)
    assert (found["episodes"], found["run"]["finished"]) == (stop_after, stop_after == 9)
    assert (found["run"]["stopped"] is None) is (stop_after == 9)
    assert play(tmp_path, resume=True) == PLANNED[stop_after:]
    found = facts(tmp_path)
    assert (found["episodes"], found["run"]["finished"], found["run"]["stopped"]) == (9, True, None)


@pytest.mark.parametrize("error", [None, RuntimeError("disk")])
@pytest.mark.parametrize("count", [1, 8, 9])
def test_a_run_is_finished_when_all_of_its_episodes_are_played(tmp_path, monkeypatch, record, error, count):
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(RuntimeError), RunFolder(tmp_path, RUN, planned=PLANNED) as run:
        for task, sample in PLANNED[:count]:
            run.add(record(task, sample))
        if error is not None:
            raise error
    found = facts(tmp_path)["run"]
    assert (found["finished"], found["stopped"]) == (
        count == 9,
        "RuntimeError: disk" if error and count < 9 else None,
    )


def test_faulted_episodes_are_retried_on_request_and_the_last_scored_one_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    again = [FAULTED, (9, 2)]
    play(tmp_path, fails=again)
    assert play(tmp_path, resume=True) == []
    assert play(tmp_path, resume=True, retry=True, fails=[FAULTED]) == again
    assert (facts(tmp_path)["scored"], facts(tmp_path)["episodes"]) == (8, 9)
    assert play(tmp_path, resume=True, retry=True) == [FAULTED]
    found = facts(tmp_path)
    assert (found["scored"], found["episodes"], found["faults"]) == (9, 9, {})
    assert len(read_records(tmp_path / "episodes.jsonl")[0]) == 12
    assert play(tmp_path, resume=True, retry=True) == []


@pytest.mark.parametrize(
    ("attempts", "counts"),
    [
        ((1.0,), 1.0),
        ((None,), None),
        ((None, 0.0), 0.0),
        ((0.0, None), 0.0),  # a fault never replaces a score
        ((None, 1.0, None), 1.0),
        ((0.0, 1.0), 1.0),
        ((1.0, 0.0), 0.0),
        ((None, None), None),
    ],
)
def test_of_several_attempts_one_counts(tmp_path, monkeypatch, record, attempts, counts):
    monkeypatch.chdir(tmp_path)
    with RunFolder(tmp_path, RUN) as run:
        for sample in (0, 1):
            for number, score in enumerate(attempts):
                run.add(record(3, sample, score, seconds=float(number)))
    for found in (read_run(tmp_path).records, run.counting()):
        assert [(each.sample, each.score) for each in found] == [(0, counts), (1, counts)]
    if counts is None:
        assert [each.seconds for each in found] == [len(attempts) - 1.0] * 2
    assert run.summary.scored == (0 if counts is None else 2)


@pytest.mark.parametrize("number", [1, 2, 9])
def test_a_line_cut_in_the_middle_of_the_file_is_an_error_and_changes_nothing(
    tmp_path, monkeypatch, whole, number
):
    monkeypatch.chdir(tmp_path)
    lines = whole[0].splitlines(keepends=True)
    lines[number - 1] = lines[number - 1][:200] + b"\n"
    (tmp_path / "episodes.jsonl").write_bytes(b"".join(lines))
    for reads in (read_run, lambda folder: play(folder, resume=True)):
        with pytest.raises(BadOption, match=f"line {number}: "):
            reads(tmp_path)
    assert (tmp_path / "episodes.jsonl").read_bytes() == b"".join(lines)


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"agent": "x"},
        {"env_id": "x"},
        {"options": {"max_turns": 4}},
        {"options": None},
        {"protocol": "q"},
    ],
    ids=str,
)
def test_a_run_with_another_fact_is_not_resumed(tmp_path, monkeypatch, whole, other):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "episodes.jsonl").write_bytes(whole[0])
    (tmp_path / "summary.json").write_bytes(whole[1])
    with pytest.raises(BadOption, match=f"has a run with {next(iter(other))}"):
        RunFolder(tmp_path, {**RUN, **other}, resume=True)
    assert (tmp_path / "episodes.jsonl").read_bytes() == whole[0]
    assert (tmp_path / "summary.json").read_bytes() == whole[1]


def test_the_command_line_resumes_each_sample(tmp_path, monkeypatch):
    """By a file that is cut after the first sample of the second task, and in the middle of the next line."""
    monkeypatch.chdir(tmp_path)
    words = ("eval", "nasty_envs:nasty/Nasty-v0", "--agent", "nasty_envs:Says", "--concurrency", 1)
    words = (
        *words,
        "--tasks",
        "2,3,4",
        "--samples",
        3,
        "--out",
        "run",
        "--env-kwargs",
        '{"wrong": "step exit"}',
    )
    assert command_line.run(*words).exit_code == 0
    file = tmp_path / "run" / "episodes.jsonl"
    content = file.read_bytes()
    lines = content.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + lines[2][:50])
    for more, count in (((), 9), ((), 9), (("--retry-faulted",), 12)):
        assert command_line.run(*words, "--resume", *more).exit_code == 0
        keys = [(each.task_id, each.sample) for each in read_records(file)[0]]
        planned = [(task, sample) for sample in range(3) for task in (2, 3, 4)]
        assert keys == planned + [(3, 0), (3, 1), (3, 2)] * (count == 12)
        found = facts(tmp_path / "run")
        assert (found["episodes"], found["scored"], found["mean_score"]) == (9, 6, 2.0)
        assert found["run"]["finished"] is True


# --- several at once ---


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_records_of_concurrent_samples_are_in_order(concurrency):
    fails = [(5, 2)]  # once, in any sample

    def make_env():
        env = Ladder()
        env.fails = fails
        return env

    work = evaluate_async(
        make_env, lambda: ScriptedAgent("go", "go", "go"), [3, 5], samples=3, concurrency=concurrency
    )
    records = asyncio.run(work)
    assert [(each.task_id, each.sample) for each in records] == [
        (task, sample) for sample in range(3) for task in (3, 5)
    ]
    assert [each.score for each in records if each.task_id == 3] == [1.0] * 3
    assert sorted(str(each.score) for each in records if each.task_id == 5) == ["1.0", "1.0", "None"]
    assert summarise(records).success_rate == 1.0


class Sometimes(Failing):
    """Fails in the episodes whose letter is f."""

    def __init__(self, episodes):
        super().__init__(1, "go", "go", "go")
        self.episodes = iter(episodes)

    def reset(self, env, observation, info):
        self.at = 1 if next(self.episodes) == "f" else -1
        super().reset(env, observation, info)


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize(
    ("episodes", "played"),
    [("f" * 19, 19), ("f" * 20, 20), ("f" * 25, 20), ("f" * 19 + "." + "f" * 19, 39), ("." + "f" * 21, 21)],
    ids=["19", "20", "25", "19, one that is well, 19", "one that is well, 21"],
)
def test_a_run_ends_at_the_twentieth_fault_of_the_agent_in_a_row(episodes, played, awaited):
    agent, records = Sometimes(episodes), []

    def run():
        tasks = range(len(episodes))
        if not awaited:
            return evaluate(Ladder(), agent, tasks, on_episode=records.append)
        work = evaluate_async(Ladder, lambda: agent, tasks, concurrency=1, on_episode=records.append)
        return asyncio.run(work)

    if played < len(episodes) or len(episodes) == 20:
        with pytest.raises(AgentFault, match="the last 20 episodes"):
            run()
    else:
        run()
    assert [each.scored for each in records] == [letter == "." for letter in episodes[:played]]


# --- two runs compared ---


def run_of(record, scores, **fact):
    records = tuple(record(task, n, each) for task, own in scores.items() for n, each in enumerate(own))
    return RunResult(None, {"env_id": "agentgym/TextCraft-v0", **fact}, records)


@pytest.mark.parametrize(
    ("a", "b", "success", "score", "verdict"),
    [
        ((1.0,), (1.0,), 0.0, 0.0, "unchanged"),
        ((0.0,), (1.0,), 1.0, 1.0, "fixed"),
        ((1.0,), (0.0,), -1.0, -1.0, "broken"),
        ((0.0, 0.0), (0.0, 1.0), 0.5, 0.5, "fixed"),  # the second sample; half of them solve it
        ((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 1 / 3, 1 / 3, "unchanged"),
        ((1.0, 0.0), (1.0, 1.0), 0.5, 0.5, "unchanged"),
        ((1.0, 0.0), (0.0, 1.0), 0.0, 0.0, "unchanged"),
        ((1.0, None), (1.0, 0.0), -0.5, -0.5, "unchanged"),
        ((None, 0.0), (1.0, None), 1.0, 1.0, "fixed"),
        ((0.2, 0.4), (0.4, 0.2), 0.0, 0.0, "unchanged"),
        ((0.2,), (0.4,), 0.0, 0.2, "unchanged"),
        ((0.1, 0.2), (0.15, 0.15), 0.0, 0.0, "unchanged"),  # means that differ by rounding
    ],
)
def test_a_task_of_two_runs(record, a, b, success, score, verdict):
    """With a task that both solve."""
    found = compare_runs(
        run_of(record, {4: a, 8: (1.0,)}), run_of(record, {4: b, 8: (1.0,)}), names=("a", "b")
    )
    assert (found.success.tasks, found.score.tasks) == (2, 2)
    assert (found.success.difference, found.score.difference) == pytest.approx((success / 2, score / 2))
    assert (found.score.wins, found.score.losses) == (int(score > 0), int(score < 0))
    assert found.score.ties == 2 - (score != 0)
    assert {name: 4 in getattr(found, name) for name in ("fixed", "broken", "unchanged")} == {
        name: name == verdict for name in ("fixed", "broken", "unchanged")
    }
    assert 8 in found.unchanged
    assert found.score.p_value == 1.0  # of one difference or none


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (2, 0, 0.5), (5, 0, 0.0625), (6, 0, 0.03125), (5, 1, 0.21875), (3, 3, 1.0)],
)
def test_the_sign_test_by_hand(record, wins, losses, p):
    b = {task: (float(task < wins),) for task in range(wins + losses + 2)}
    a = {task: (float(wins <= task < wins + losses),) for task in b}
    found = compare_runs(run_of(record, a), run_of(record, b)).success
    assert (found.wins, found.losses, found.ties, found.p_value) == (wins, losses, 2, pytest.approx(p))


@pytest.mark.parametrize(
    ("differences", "p"),
    [  # of all choices of signs, those whose sum is as far from 0
        ((0.5, 0.25), 2 / 4),
        ((0.5, -0.25), 4 / 4),
        ((1.0, 0.5, 0.25), 2 / 8),
        ((1.0, 0.5, -0.25), 4 / 8),
        ((1.0, -0.5, 0.25), 6 / 8),
        ((1.0, -0.5, -0.25), 8 / 8),
        ((1.0, -0.5, -0.5), 8 / 8),
        ((1.0, 0.5, -0.5), 6 / 8),
        ((1.0, 0.0, 0.0, 0.5), 2 / 4),
    ],
)
def test_the_permutation_test_by_hand(record, differences, p):
    b = {task: (max(0.0, each),) for task, each in enumerate(differences)}
    a = {task: (max(0.0, -each),) for task, each in enumerate(differences)}
    found = compare_runs(run_of(record, a), run_of(record, b)).score
    assert (found.p_value, found.draws) == (pytest.approx(p), None)


def test_tasks_missing_in_one_run_are_left_out_of_both(record):
    a = run_of(record, {1: (1.0,), 2: (None, None), 3: (1.0, None), 4: (0.0,)})
    b = run_of(record, {1: (1.0,), 2: (1.0, 1.0), 3: (0.0, 0.0), 5: (1.0,)})
    found = compare_runs(a, b, names=("A", "B"))
    assert found.left_out == {"not scored in A": (2,), "not in B": (4,), "not in A": (5,)}
    assert (found.success.tasks, found.success.a, found.success.b) == (2, 1.0, 0.5)
    other = RunResult(None, b.facts, tuple(dataclasses.replace(each, goal="x") for each in b.records))
    assert compare_runs(a, other, names=("A", "B")).left_out["another goal in A than in B"] == (1, 2, 3)


# --- replies that are read again ---

OPTIONS = {"action_format": "react", "parser": "default", "on_unknown": None}


def played(record, *replies, **fields):
    """Return a record of replies that were carried out as they are."""
    said = [("user", "Goal: …")]
    for reply in replies:
        said += [("assistant", f"Action: {reply}" if reply else "nothing"), ("user", "…")]
    last = fields.pop("score", 1.0)
    return record(
        **fields,
        score=last,
        turns=len(replies),
        messages=tuple({"role": role, "content": text} for role, text in said),
        rewards=(*[0.0] * (len(replies) - 1), last or 0.0),
        steps=tuple(
            {"action": reply} if reply else {"action": None, "parse_error": "NoAction"} for reply in replies
        ),
        parse_errors={"NoAction": replies.count("")} if "" in replies else {},
    )


@pytest.mark.parametrize("at", range(3))
def test_an_episode_diverges_at_the_turn_that_is_read_otherwise(record, at):
    """AgentGym's parser sends an empty action for a reply without one."""
    replies = ["inventory"] * 3
    replies[at] = ""
    same, other = played(record, *["inventory"] * 3, sample=0), played(record, *replies, sample=1)
    faulted = played(record, *replies, sample=2, score=None)
    found = rescore(RunResult(None, {"options": OPTIONS}, (same, other, faulted)), parser="agentgym")
    assert (found.replies, found.different, found.diverged) == (9, 1, 1)
    assert (found.errors_before, found.errors_after) == ({"NoAction": 2}, {})
    kept, cut, left = found.records
    assert (kept.score, kept.success, kept.ending, kept.turns) == (1.0, True, "terminated", 3)
    assert (cut.score, cut.success, cut.ending, cut.turns) == (None, None, DIVERGED, at)
    assert (cut.scored, cut.sample, len(cut.rewards), len(cut.steps)) == (False, 1, at, at + 1)
    assert left == faulted
    assert [(each.sample, each.turn, each.read) for each in found.examples] == [(1, at + 1, "")]
    assert found.success_bounds == (0.5, 1.0)
    summary = summarise(found.records)
    assert (summary.scored, summary.success_rate, summary.agent_faults) == (1, 1.0, {"Diverged": 1})


@pytest.mark.parametrize(
    ("rule", "scores", "solved"),
    [
        (lambda each: 0.25 * each.sample, [0.0, 0.25, None], [True, False, None]),
        (lambda each: (each.sample, each.sample == 1), [0.0, 1.0, None], [False, True, None]),
        (lambda each: (0.5, None), [0.5, 0.5, None], [None, None, None]),
    ],
)
def test_a_rule_scores_each_sample_but_no_fault(record, rule, scores, solved):
    records = tuple(record(2, sample, score) for sample, score in enumerate((1.0, 0.0, None)))
    found = rescore(RunResult(None, {}, records), score=rule).records
    assert [each.score for each in found] == scores
    assert [each.success for each in found] == solved
    assert [each.return_ for each in found] == [1.0, 0.0, 0.5]


# --- rollouts and rows of a training ---


def test_records_of_a_rollout_survive_a_writer_that_is_killed(tmp_path, monkeypatch, record):
    monkeypatch.chdir(tmp_path)

    async def write(folder, *records):
        async with EpisodeWriter(folder) as writer:
            for each in records:
                await writer.write(each)

    step = {"step": 1, "validation": False, "session": "a", "ended": "2026-01-01T00:00:00"}
    records = [record(task, 0, score, **step) for task in (1, 2) for score in (1.0, None, 0.0)]
    asyncio.run(write(tmp_path, *records[:4]))
    asyncio.run(write(tmp_path, *records[4:]))
    for file in tmp_path.glob("episodes-*.jsonl"):
        file.write_bytes(file.read_bytes() + b'{"env_id": "agent')
    (run,) = read_training(tmp_path)
    assert [(each.task_id, each.sample) for each in run.records] == [(t, n) for t in (1, 2) for n in range(3)]
    for task in (1, 2):
        scores = [each.score for each in run.records if each.task_id == task]
        assert sorted(scores, key=str) == [0.0, 1.0, None]
    summary = summarise(run.records)
    assert (summary.episodes, summary.scored, summary.success_rate) == (6, 4, 0.5)


@pytest.mark.parametrize(
    ("session", "step", "validation", "kept"),
    [
        ("b", 2, False, [0, 1, 3]),  # a restart repeats step 2 and what follows
        ("b", 3, False, [0, 1, 2, 3]),
        ("b", 1, False, [0, 3]),
        ("a", 2, False, [0, 1, 2, 3]),
        ("b", 2, True, [0, 1, 2, 3]),
    ],
)
def test_a_training_that_is_resumed_drops_the_steps_that_it_repeats(
    tmp_path, record, session, step, validation, kept
):
    def at(number, step, session, *, validation=False):
        ended = f"2026-01-01T00:00:0{number}"
        return record(number, step=step, session=session, validation=validation, ended=ended)

    records = [at(0, 0, "a"), at(1, 1, "a"), at(2, 2, "a"), at(3, step, session, validation=validation)]
    lines = [json.dumps(each.to_json()) for each in records]
    (tmp_path / "episodes-1.jsonl").write_text("\n".join(lines) + "\n")
    assert sorted(each.task_id for run in read_training(tmp_path) for each in run.records) == kept


def test_the_samples_of_a_task_are_numbered_in_each_step(tmp_path, record):
    records = [
        record(task, score=score, step=step, session="a", validation=False, ended=f"2026-01-01T00:00:0{step}")
        for step in (1, 2)
        for task in (4, 5)
        for score in (1.0, None)
    ]
    lines = [json.dumps(each.to_json()) for each in records]
    (tmp_path / "episodes-1.jsonl").write_text("\n".join(lines) + "\n")
    (run,) = read_training(tmp_path)
    assert [(each.step, each.task_id, each.sample) for each in run.records] == [
        (step, task, sample) for step in (1, 2) for task in (4, 5) for sample in (0, 1)
    ]


@pytest.mark.parametrize("at", [*range(LENGTH + 1), None])
def test_the_numbers_of_an_episode_for_verl(at):
    async def numbers():
        async with Pool(lambda: Ladder([(0, at)])) as pool, Episode(pool, task=0) as episode:
            for reply in ("?", "go", "go"):
                if not episode.over:
                    await episode.step(reply)
            return numbers_of(episode, 2)

    found = asyncio.run(numbers())
    assert found.keys() == numbers_of_unplayed().keys()
    assert (found["return"], found["success"], found["fault"]) == ((1, 1, 0) if at is None else (0, 0, 1))
    assert (found["turns"], found["replays"]) == (LENGTH if at is None else at, 2)
    unread = 1 if at is None or at > 1 else 0
    assert (found["parse_errors"], found["invalid_actions"]) == (unread, unread)


def test_an_unreported_success_is_unknown_to_verl_and_not_a_failure():
    async def numbers():
        async with Pool(lambda: Ladder(states=False)) as pool, Episode(pool, task=0) as episode:
            while not episode.over:
                await episode.step("go")
            return numbers_of(episode)

    assert math.isnan(asyncio.run(numbers())["success"])


def turn(number, returned, **numbers):
    return TurnScore(number, {**numbers_of_unplayed(), "return": returned, "env_id": "Maze", **numbers})


@pytest.mark.parametrize(
    ("turns", "score"),
    [
        ([turn(0.5, 0.5)], 0.5),
        ([turn(0.5, 0.5), turn(0.25, 0.75)], 0.75),
        ([turn(1.0, 1.0), turn(0.0, 0.0, fault=1.0)], 0.0),  # a fault at the last turn
        ([turn(0.0, 0.0), turn(-1.0, -1.0)], -1.0),
        ([], 0.0),
    ],
)
def test_the_score_of_a_row_is_the_record_of_its_last_turn(turns, score):
    row = {"turn_scores": pickle.loads(pickle.dumps(turns)), "interaction_kwargs": {"env_id": "Maze"}}  # noqa: S301
    found = compute_score("Maze", "", None, row)
    assert (found["score"], found["return"]) == (score, score)
    assert found["fault"] == float(bool(turns) and turns[-1].record["fault"])
    assert found.get("cut") == (None if turns else 1.0)


@pytest.mark.parametrize("row", [None, {}, {"turn_scores": None}, {"turn_scores": [1.0]}])
def test_a_row_that_no_environment_played_has_no_score(row):
    with pytest.raises(ValueError, match="turn_scores"):
        compute_score("Maze", "", None, row)
