"""SQLGym: which text is one statement, what is never sent, a full server, and whole episodes on SQLite."""

from __future__ import annotations

import itertools
import json
import sqlite3

import pytest

import agentgym_gym
from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.actions import Verbatim
from agentgym_gym.calls import Call
from agentgym_gym.envs.sqlgym import SQLGYM, Query, SqlGymWire
from agentgym_gym.wire import Outcome, Score, Start
from by_hand import exchange
from fake_server import FakeServer

WIRE = SqlGymWire()
READER = SQLGYM.agentgym_readers["react"]


# ------------------------------------------------------------------------------------------ the statement


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "select\n  name\nfrom singer;",
        "SELECT ';', \"a;b\", `c;d`, [e;f] /* ; */ -- ;",
        "SELECT 'it''s; fine' ;;",
        "-- how many\nSELECT count(*) FROM singer",
        "/* a */ WITH t(n) AS (SELECT 1) SELECT n FROM t",
        "with recursive t(n) as (select 1) select n from t",
        'WITH "a b" AS MATERIALIZED (SELECT 1) SELECT * FROM "a b"',
        "VALUES (1), (2)",
        "SELECT '/*', '--', '' ; -- done; really",
        "SELECT  'two  blanks'",
    ],
)
def test_a_statement_is_kept_as_it_was_written(sql):
    assert Query(sql).sql == sql
    for action_format in FORMATS.values():
        assert action_format.parse(action_format.render(Query(sql)), SQLGYM.grammar) == Query(sql)
    for reply in (
        sql,
        f"```sql\n{sql}\n```",
        f"```\n{sql}\n```",
        f"```SQL\n{sql}\n```",
        f"````\n{sql}\n````",
    ):
        assert FORMATS["react"].parse(f"Thought:\nx\n\nAction:\n{reply}", SQLGYM.grammar) == Query(sql)


@pytest.mark.parametrize(
    "sql", ["SELECT 1; SELECT 2", "SELECT 'a'; DROP TABLE t", "SELECT 1;;SELECT 2", "SELECT /*;*/ 1; -- a\n2"]
)
def test_two_statements_are_one_too_many(sql):
    with pytest.raises(errors.ManyActions):
        Query(sql)
    for action_format in ("react", "adapt", "bare"):
        with pytest.raises(errors.ManyActions):
            FORMATS[action_format].parse(f"> Action:\n```sql\n{sql}\n```", SQLGYM.grammar)


@pytest.mark.parametrize(
    "sql",
    [
        *(
            "",
            " ",
            ";",
            "-- SELECT 1",
            "/* SELECT 1 */",
            "/* SELECT 1",
            "\ufeff",
            "hello",
            "With this I count.",
        ),
        *("DROP TABLE singer", "INSERT INTO t VALUES (1)", "PRAGMA user_version", "ATTACH 'x' AS y"),
        *(
            "SELECT '```'",
            "SELECT '</action>'",
            "SELECT '<|im_end|>'",
            "SELECT 1\n-- Action: go",
            "SELECT '\0'",
        ),
        *("SELECT 1 ", "SELECT 'a\r\nb'", "SELECT " + "1" * 8_000, 1, None),
    ],
)
def test_anything_else_is_refused(sql):
    with pytest.raises(errors.BadArguments):
        Query(sql)


def test_a_reply_is_read_by_its_fence():
    parse = FORMATS["react"].parse
    count = Query("SELECT 1")
    clear = [
        "I count.\n```sql\nSELECT 1\n```",
        "The table:\n```\nsinger(id, name)\n```\nAnd so:\n```sql\nSELECT 1\n```",
        "With this query I count:\n```sql\nSELECT 1\n```\nselect it if you like.",
        "```sql\nSELECT 1",
        "SELECT 2\n\n```sql\nSELECT 1\n```",
        "SELECT 1",
    ]
    for reply in clear:
        assert parse(reply, SQLGYM.grammar) == count
    with pytest.raises(errors.ManyActions):
        parse("```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```", SQLGYM.grammar)
    with pytest.raises(errors.NoAction):
        parse("I do SELECT 1", SQLGYM.grammar)


def test_a_fence_inside_an_argument_is_taken_off():
    call = {"function_name": "query", "arguments": {"sql": "```sql\nSELECT 1;\n```"}}
    assert FORMATS["function_calling"].parse(json.dumps(call), SQLGYM.grammar) == Query("SELECT 1;")


# ---------------------------------------------------------------------------------- what is worth nothing

NOTHING = ["", " \n", ";", " ;; ", "-- a", "/* a */", "/* a", "-- a\n;/**/", "\ufeff", "\ufeff;"]


PAID = Outcome("[]", 1.0, done=True)


@pytest.mark.parametrize("nothing", NOTHING)
def test_an_empty_statement_scores_0(nothing):
    """The server takes one for a result without rows, and pays for it where that is what is expected."""
    for words in (nothing, READER(nothing), READER(f"Action: ```sql\n{nothing}\n```")):
        WIRE.check(words)  # AgentGym's client sends it
        assert WIRE.judge(Start(""), 0.0, words, PAID) == Score(
            0.0, success=False, done=True, agentgym_score=1.0
        )


def test_statements_that_sqlite_finds_empty_score_0():
    database = sqlite3.connect(":memory:")
    paid = 0
    pieces = ["-", "/", "*", ";", "\n", " ", "'", "\ufeff", "a", "["]
    for text in map("".join, itertools.chain(*(itertools.product(pieces, repeat=n) for n in range(5)))):
        if WIRE.judge(Start(""), 0.0, text, PAID).score == 0:
            continue
        paid += 1
        try:
            found = database.execute(text).description
        except sqlite3.Error:
            continue
        assert found is not None, repr(text)
    database.close()
    assert paid > 1_000


def test_a_nul_is_not_sent_as_agentgym_does():
    with pytest.raises(errors.BadArguments):
        WIRE.check(READER("```sql\nSELECT '\0'\n```"))


# ------------------------------------------------------------------------------------------------ the wire


def test_the_calls_before_a_reset():
    assert exchange(WIRE.create(0), 0) == (0, Call("create", "POST", "/create"))
    assert exchange(WIRE.list_envs(), [7, 8]) == ((7, 8), Call("observe", "GET", "/list_envs"))


@pytest.mark.parametrize("listed", [None, {}, 8, "12345678", [None], ["1"], [True], [1.5]])
def test_an_invalid_list_is_a_fault(listed):
    with pytest.raises(errors.BadReply):
        exchange(WIRE.list_envs(), listed)


def test_reset_returns_the_question():
    start, call = exchange(WIRE.reset(7, 9_428), ["a contains tables.\n\nHow many?", None])
    assert start == Start("a contains tables.\n\nHow many?", goal="How many?")
    assert call == Call("reset", "POST", "/reset", {"item_id": 9_428, "env_idx": 7})
    start, _ = exchange(WIRE.reset(7, 0), ["How many?", None])
    assert start.goal is None


GOOD = {"state": "[(1,)]", "reward": 1.0, "done": True, "info": {"ground_truth": "SELECT gold"}}


def test_a_step_does_not_return_the_gold_statement():
    outcome, call = exchange(WIRE.step(7, "SELECT 1"), GOOD)
    assert outcome == Outcome("[(1,)]", 1.0, done=True)
    assert "gold" not in repr(outcome)
    assert call == Call("step", "POST", "/step", {"action": "SELECT 1", "env_idx": 7})
    assert WIRE.judge(Start(""), 0.0, "SELECT 1", outcome).score == 1.0


# ------------------------------------------------------------------------------------------ whole episodes

TASKS = {
    0: ("How many singers are there?", "SELECT count(*) FROM singer"),
    1: ("Which singers are older than 500?", "SELECT name FROM singer WHERE age > 500"),
    2: ("List the names.", "SELECT name FROM singer"),
    3: ("A question with a broken answer.", "SELECT * FROM no_such_table"),
}


class Server(FakeServer):
    """A server of SQLGym's wire with one database, as careless as AgentGym's."""

    def __init__(self):
        self.envs = {}
        self.created = 0
        self.steps = []
        self.database = sqlite3.connect(":memory:", check_same_thread=False)
        self.database.execute("CREATE TABLE singer (name TEXT, age INTEGER)")
        self.database.executemany("INSERT INTO singer VALUES (?, ?)", [("Ann", 30), ("Bo", 40)])
        self.database.execute("PRAGMA query_only = ON")
        super().__init__(self._answer)

    def stop(self):
        super().stop()
        self.database.close()

    def _answer(self, request):
        body, path = request.json, request.path
        if path == "/":
            return "ok"
        if path == "/list_envs":
            return list(self.envs)
        if path == "/create":
            if len(self.envs) < 8:
                self.envs[1_000 + len(self.envs)] = None
            self.created += 1
            return 1_000 + (self.created - 1) % 8
        env_id = body.get("env_idx")
        if path == "/reset" and env_id in self.envs and body["item_id"] in TASKS:
            self.envs[env_id] = body["item_id"]
            return [f"a database.\n\n{TASKS[body['item_id']][0]}", None]
        if path == "/step" and self.envs.get(env_id) is not None:
            self.steps.append(body["action"])
            return self.step(TASKS[self.envs[env_id]][1], body["action"])
        return 404 if path in {"/openapi.json", "/close"} else 500, "Internal Server Error"

    def step(self, gold, action):
        said, right = "", False
        try:
            rows = self.database.execute(action).fetchall()
            said = str(rows)
            right = set(rows) == set(self.database.execute(gold).fetchall())
        except sqlite3.Error as error:
            said = said or str(error)
        said = said if len(said) <= 100 else f"{said[:100]}..."
        return {"state": said, "reward": float(right), "done": True, "info": {"ground_truth": gold}}


@pytest.fixture
def server(started):
    return started(Server())


@pytest.fixture
def new_env(server):
    made = []

    def make(**options):
        made.append(AgentGymEnv("BIRD", server=server.url, **options))
        return made[-1]

    yield make
    for env in made:
        env.close()


@pytest.mark.parametrize(
    ("task", "reply", "score"),
    [
        (0, "Thought:\nx\n\nAction:\n```sql\nSELECT count(*)\nFROM singer;\n```", 1.0),
        (0, "I do SELECT 1", None),
        (0, "SELECT 1", 0.0),
        (0, "```sql\nSELECT 1\n```", 0.0),
        (0, "```sql\nSELECT name FROM nobody\n```", 0.0),
        (1, "```sql\nSELECT 1 WHERE 0\n```", 1.0),
        (1, "```sql\n-- nobody is\n```", None),
        (2, "```sql\nSELECT name FROM singer UNION ALL SELECT name FROM singer\n```", 1.0),
        (3, "```sql\nSELECT * FROM no_such_table\n```", 0.0),
    ],
)
def test_an_episode(server, new_env, task, reply, score):
    env = new_env()
    _, info = env.reset(options={"task_id": task})
    assert info["goal"] == TASKS[task][0]
    observation, reward, terminated, truncated, info = env.step(reply)
    assert (reward, info["score"]) == (score or 0.0, score or 0.0)
    assert (terminated, truncated) == (score is not None, score is None)
    assert ("parse_error" in info) == (score is None)
    assert len(server.steps) == (score is not None)
    assert info["agentgym_score"] == info["raw_reward"] == (score or 0.0)
    if reply != TASKS[task][1]:
        assert "ground_truth" not in json.dumps(info)
        assert TASKS[task][1] not in observation or score is None


@pytest.mark.parametrize("options", [{}, {"parser": "agentgym"}, {"on_unknown": "forward"}])
@pytest.mark.parametrize("nothing", NOTHING)
def test_no_episode_is_won_by_an_empty_statement(server, new_env, options, nothing):
    env = new_env(**options)
    for reply in (nothing, f"```sql\n{nothing}\n```", Verbatim(nothing)):
        env.reset(options={"task_id": 1})
        _, reward, terminated, truncated, info = env.step(reply)
        assert (reward, info["score"], info["success"]) == (0.0, 0.0, False)
        assert terminated or truncated
        assert "fault" not in info
    if not options:
        assert server.steps == []


@pytest.mark.parametrize("reply", ["", "```sql\n```", "```sql\n-- nobody is\n```"])
def test_an_empty_statement_is_sent_as_agentgym_does_and_only_its_score_is_paid(server, new_env, reply):
    env = new_env(parser="agentgym")
    env.reset(options={"task_id": 1})
    observation, reward, terminated, _, info = env.step(reply)
    assert (observation, reward, terminated) == ("[]", 0.0, True)
    assert (info["score"], info["success"], info["agentgym_score"]) == (0.0, False, 1.0)
    assert server.steps == [READER(reply)]


def test_agentgyms_parser_sends_what_it_finds(server, new_env):
    env = new_env(parser="agentgym")
    env.reset(options={"task_id": 0})
    *_, info = env.step("```sql\nDROP TABLE singer;\n```")
    assert (info["action"], info["score"]) == ("DROP TABLE singer;", 0.0)
    assert server.steps == ["DROP TABLE singer;"]


def test_a_ninth_environment_is_refused_also_to_another_client(server, new_env):
    for env in [new_env() for _ in range(7)]:
        env.reset(options={"task_id": 0})
    server.envs[1_007] = None  # another process's
    server.created += 1
    with pytest.raises(errors.ServerFull, match="restart"):
        new_env().reset(options={"task_id": 0})
    assert server.created == 8


def test_it_is_found_by_both_names():
    assert agentgym_gym.find("BIRD") is agentgym_gym.find("agentgym/SQLGym-v0") is SQLGYM
    assert SQLGYM.has_task(0)
    assert SQLGYM.has_task(10_961)
    assert not SQLGYM.has_task(10_962)
    assert SQLGYM.split("dev")[0] == 9_428
