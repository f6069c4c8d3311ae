"""SQLGym: answer a question about a database by one SQL statement (BIRD: Li et al., 2023, arXiv:2305.03111).

The server has eight environments and frees none. When all are taken it returns ids that are in use, so two
episodes would score each other's statements. Its response to a step contains the gold statement. An empty
statement returns no rows, so the server scores it as correct if the gold statement returns none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from agentgym_gym._text import shown
from agentgym_gym.actions import Action, Grammar, Style
from agentgym_gym.arguments import Text, strategies
from agentgym_gym.calls import Call, Flow
from agentgym_gym.catalogue import Environment
from agentgym_gym.envs._sql_text import (
    OPENING_CHARS,
    UNFINISHED,
    begins_query,
    end_of_statement,
    first_statement,
    has_prose,
    is_closed,
    is_complete,
    is_empty,
    plain_text,
    tokens_of,
    without_opening,
)
from agentgym_gym.errors import BadArguments, ManyActions
from agentgym_gym.wire import Outcome, Score, Start, Wire

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["SQLGYM", "Query", "Sql", "SqlGymWire"]

# Marks that end a reply or an action in one of the formats, at any position.
_MARKS = re.compile(
    r"```|\b(?:then|or)\s+select\b|</?(?:action|think)>|<\||<｜|<end_of_turn>"
    r"|^[ \t>#*_`-]*(?:next[ \t]+)?(?:action|observation|thought)[ \t\d*_`]*(?:[:：]|$)",
    re.IGNORECASE | re.MULTILINE,
)


class Sql(Text):
    """One SQL query, unchanged except that parsing removes a surrounding code fence."""

    def read(self, text: str) -> str:
        """Parse a statement with or without a code fence."""
        value = plain_text(without_opening(text.replace("\r\n", "\n").strip()))
        return super().read(first_statement(value.rstrip("`") if value.endswith("```") else value))

    def check(self, value: Any) -> None:
        """Accept a single complete query.

        Raises:
            ManyActions: The text continues after the end of the statement.
            BadArguments: The text is not a query, breaks off, or is otherwise invalid.
        """
        super().check(value)
        several = "\n" in value or "`" in value or "<" in value or value.lower().count("select") > 1
        if several and (mark := _MARKS.search(value)):
            raise BadArguments(f"{shown(mark[0].strip())} is not allowed in {self.describe()}")
        tokens = tokens_of(value[:OPENING_CHARS])
        if not begins_query(tokens):
            raise BadArguments(f"expected {self.describe()}, got {shown(value)}")
        if len(value) > OPENING_CHARS:
            tokens = tokens_of(value)
        end = tokens.index(";") if ";" in tokens else len(tokens)
        if any(part != ";" for part in tokens[end:]):
            raise ManyActions("there is more than one SQL statement; only one can be executed")
        if tokens[end - 1].lower() in UNFINISHED or not is_closed(tokens):
            raise BadArguments(f"the SQL statement breaks off: {shown(value[-40:])}")
        if has_prose(tokens) and not is_complete(value):
            raise BadArguments(f"the SQL statement has words that are not SQL: {shown(value)}")

    def _fits(self, value: str) -> bool:
        try:
            return super()._fits(value)
        except ManyActions:
            return False

    def describe(self) -> str:
        """Describe the statement and its possible first words."""
        return f"one SQL statement of at most {self.max_chars} characters: SELECT, WITH or VALUES"

    def strategy(self) -> SearchStrategy[str]:
        """Draw likely statements, and others with arbitrary text in quotes."""
        st = strategies()
        letters = st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n'\"`[];-*/<> ")
        texts = st.text(letters, max_size=20)
        named = texts.map(lambda text: f"'{text.replace(chr(39), chr(39) * 2)}'")
        named |= texts.map(lambda text: f'"{text.replace(chr(34), chr(34) * 2)}"')
        begun = st.sampled_from(["SELECT ", "select\n  ", "-- a; b\nSELECT ", "WITH a AS (SELECT 1) SELECT "])
        ended = st.sampled_from(["", ";", "\n;;", " FROM [a;b]", " FROM `c``;d`", "; -- done", " /* ; */"])
        drawn = st.tuples(begun, named, ended).map("".join).filter(self._fits)
        return st.sampled_from(self.samples) | drawn  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _SqlStyle(Style):
    """Style of a fenced statement; without a fence it ends where the statement does."""

    def end(self, text: str, start: int, limit: int) -> int:
        """Return the position where a statement without a fence ends."""
        return end_of_statement(text, start, limit)


@dataclass(frozen=True)
class Query(Action):
    """Execute one SQL statement, whose result is your answer to the question."""

    template: ClassVar[str] = "{sql}"
    blind_answers: ClassVar[tuple[str, ...]] = (
        *("SELECT 0", "SELECT 1", "SELECT NULL", "SELECT ''", "SELECT 1 WHERE 0"),
        "SELECT name FROM sqlite_master",
    )
    style: ClassVar[Style] = _SqlStyle(
        lines=False,
        verbatim=True,
        fence="sql",
        # A fence may open around another one, and ends at the end of the text at the latest.
        mark=re.compile(r"```[`\s]*.*?(?:`{3,}|\Z)", re.DOTALL),
    )
    sql: Annotated[
        str,
        Sql(
            ["SELECT count(*) FROM singer", "SELECT name FROM singer WHERE country = 'France'"],
            max_chars=8_000,
            lines=True,
        ),
        "the SQL statement, in SQLite's dialect",
    ]

    @classmethod
    def begins(cls, text: str) -> bool:
        """Return whether the text starts like a query."""
        return begins_query(tokens_of(without_opening(text[:OPENING_CHARS].lstrip())))


_GRAMMAR = Grammar([Query("SELECT count(*) FROM singer")])

_RULES = """\
You are given the description of an SQLite database and a question. Answer the question by one SQL \
statement: its result is your answer. You have one attempt, and cannot look into the database first.

- Use the tables and columns as they are named in the description. A name that is no plain word goes between \
double quotes or backticks.
- The database can be read, not changed.
- The result counts as right when it has the rows that are expected, in whatever order and number: so select \
just the columns asked for, in the order in which they are asked for."""

_CAPACITY = 8


class SqlGymWire(Wire):
    """Protocol of AgentGym's SQLGym server: bare values, ids under ``env_idx``, failures as HTTP 500.

    The response to a step contains the gold statement, which this class ignores.
    """

    greeting = "ok"
    closes = False
    capacity = _CAPACITY
    reissues_ids = True
    repeats_ids = False  # ids are random numbers
    routes: ClassVar[Mapping[str, Collection[str]]] = {"/reset": ("env_idx", "item_id")}
    no_routes = ("/close",)

    def create(self, task_id: int) -> Flow[int]:
        """Create an environment; the response is a bare id."""
        return (yield Call("create", "POST", "/create")).body().integer()

    def list_envs(self) -> Flow[tuple[int, ...] | None]:
        """Return the ids of all environments; ids are random, so a listed id of ours is still ours."""
        return (yield Call("observe", "GET", "/list_envs")).body().integers()

    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task."""
        body = (yield Call("reset", "POST", "/reset", {"env_idx": env_id, "item_id": task_id})).body()
        observation = body.text(0)
        return Start(observation, goal=observation.partition("\n\n")[2].strip() or None)

    def check(self, words: str) -> None:
        """Reject NUL: SQLite's driver fails on it, and the agent's mistake must not count as a fault."""
        if "\0" in words:
            raise BadArguments("an SQL statement cannot hold the character NUL")

    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Execute a statement."""
        body = (yield Call("step", "POST", "/step", {"env_idx": env_id, "action": action})).body()
        return Outcome(body.text("state"), body.number("reward"), body.flag("done"))

    def judge(self, start: Start, score: float, action: str, outcome: Outcome) -> Score:
        """Score a statement as the server does, except that an empty one scores 0.

        The server rewards an empty statement if the gold statement returns no rows.
        """
        if is_empty(action):
            return Score(score, success=False, done=outcome.done, agentgym_score=outcome.reward)
        return super().judge(start, score, action, outcome)


def _read_as_agentgym(reply: str) -> str:
    """Return the text that AgentGym's ``SqlGymEnvClient`` would send.

    The client takes the text between the last ```` ```sql ```` and the next fence, or the whole reply if
    there is none.
    """
    return reply.rpartition("```sql")[2].partition("```")[0].strip()


_QUIRKS = """\
- The server has eight environments and frees none; a ninth would be one that is in use. The processes of a
  machine share the environments created here, each used by one process at a time, and later processes reuse
  them. If other clients created all eight, a reset raises `ServerFull` until the server is restarted.
- The reply to each step contains the gold statement. It is neither shown nor kept in `info`.
- Results are compared as sets: the order and repetition of rows do not matter, and any result without rows is
  correct if the gold result has none. AgentGym's server also accepts an empty statement for it; here that
  scores 0. Only `parser="agentgym"` sends one, and `info["agentgym_score"]` is then the server's reward.
- If the gold statement itself fails, no answer is correct.
- The result is shown cut to 100 characters.
- A long statement blocks the whole server, and ends in `ServerTimeout`."""

_LOCAL_QUIRKS = """\
- It has ten generated databases of some hundred rows each, and a question for each task. The train tasks
  are about eight of them, and the dev tasks about the two others.
- `--data` replaces them by a folder of BIRD: `train.json` or `dev.json`, with `train_databases` or
  `dev_databases` next to it. The description of a database is read from the database, with the names that SQL
  accepts. AgentGym's server shows the readable names in `*_tables.json`, and lists other columns than the
  foreign keys.
- It has at most 4,096 environments, and never reuses an id. It deletes environments without a request for an
  hour.
- `info.ground_truth` exists, and is empty.
- The first statement after a reset can score. Later ones are executed and score 0.
- A statement without a result, such as an empty one, is never correct.
- If the gold statement fails, is empty or exceeds a limit, the task cannot be judged: with `--data`, its
  reset fails with the reason, which is the fault `JudgeFailed`. The gold statement may take twice the time of
  an agent's. It is executed once, unless it reads the clock or random numbers.
- A statement may read, and call SQLite's functions that are known to be harmless. Anything else returns
  `not authorized`; for a change, AgentGym's server returns `attempt to write a readonly database`.
- The limits of a statement are 20 million steps of SQLite's machine, .9 seconds of processor time, 100,000
  rows, 32 MB of text, 64 MB of memory, and 1 MiB for one value (on Python 3.10, one value is limited only by
  the memory). On BIRD's databases they are 30 seconds in place of steps, 512 MB, and SQLite's own length of a
  value. Beyond a limit the statement fails with `interrupted`, `the result is too large`, `out of memory` or
  `string or blob too big`.
- Statements run in one process per processor, at least two and at most eight. If SQLite cannot interrupt a
  statement, its process is killed and replaced a tenth of a second after the time limit. If another program
  kills the process, the step is a fault. Environments take turns: each executes one statement at a time, and
  its next one waits for statements that other environments have already sent."""

SQLGYM = Environment(
    name="SQLGym",
    aliases=("BIRD",),
    summary=(
        "Answer a question about a database with one SQL statement (BIRD: Li et al., 2023, arXiv:2305.03111)."
    ),
    wire=SqlGymWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=1,
    splits={"train": range(9_428), "dev": range(9_428, 10_962)},
    on_unknown="refuse",
    agentgym_readers={"react": _read_as_agentgym},
    local_server="agentgym_servers.sqlgym:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers.sqlgym._oracle:SQLGymOracle",
    quirks=_QUIRKS,
    launch=(
        "cd agentenv-sqlgym && pip install . && bash setup.sh\n"
        "AGENTENV_SQLGYM_BIRD_PATH=$PWD/bird sqlgym --host 127.0.0.1 --port 36001"
    ),
    transcript=(
        "mini_a contains tables such as singer, concert. Table singer has columns such as singer_id, name, …",
        "SELECT count(*) FROM singer",
        "[(30,)]",
    ),
)
