"""Where an action ends: before comments and signs, at the end of a statement, and before another action."""

from __future__ import annotations

import pytest

from agentgym_gym import FORMATS, environments, errors, find
from every_format import MARKED, each_environment, failed, verdict

TAUGHT = {
    "react": "Thought: I know.\nAction: {}",
    "tags": "<action>{}</action>",
    "adapt": "> {}",
    "bare": "{}",
}
SIGNS = ("", "\u200b", "。", "!", "！", "\x07", " …", "\u00ad", " ✅", ".")
ASIDES = (
    *(" (this is the next step)", " (closer)", " — because it is near", ". That is closer.", " # now"),
    *(" // go", " – next", " (I need it).", "; that helps"),
)


@each_environment
def test_no_sign_or_comment_behind_an_action_is_sent(environment):
    failures, count = [], 0
    for name, taught in TAUGHT.items():
        asides = ASIDES if name in {"react", "adapt"} else ()
        for action in environment.grammar.examples:
            for behind in (*SIGNS, *asides):
                reply = taught.replace("{}", f"{action}{behind}")
                count += 1
                found = verdict(FORMATS[name], reply, environment.grammar, action)
                if found != "read" and f"{action};" not in found:
                    failures.append((found, reply))
    assert not failures, failed(failures, count)


JOINTS = (" and ", ", then ", "; ", " && ", " then ", ", ", " and then ", ". Then ", " -> ")


@each_environment
@pytest.mark.parametrize("name", ["react", "tags", "adapt"])
def test_the_first_of_two_actions_on_a_line_is_played_and_the_other_is_named(environment, name):
    examples, mistaken = environment.grammar.examples, []
    for number, first in enumerate(examples):
        second = examples[(number + 1) % len(examples)]
        if str(first).isdigit():
            continue  # a number before a full stop or a comma is that of a list
        for joint in JOINTS:
            reply = TAUGHT[name].replace("{}", f"{first}{joint}{second}")
            found = FORMATS[name].read(reply, environment.grammar)
            if (str(found.action).rstrip(";"), found.ignored) != (str(first), (str(second),)):
                mistaken.append((reply, found))
    assert mistaken == []


@pytest.mark.parametrize("joint", JOINTS)
def test_no_argument_swallows_an_action(joint):
    grammar = find("TextCraft").grammar
    line = f"craft 8 glass using 2 iron ingot{joint}inventory"
    for name in ("react", "tags", "adapt"):
        found = FORMATS[name].read(TAUGHT[name].replace("{}", line), grammar)
        assert (str(found.action), found.ignored) == ("craft 8 glass using 2 iron ingot", ("inventory",))
    with pytest.raises(errors.NoAction, match=r"several actions|ingot"):
        FORMATS["bare"].parse(line, grammar)


@pytest.mark.parametrize(
    "line",
    [
        "craft 1 flint and steel using 1 iron ingot, 1 flint",
        "get 1 flint and steel",
        "craft 2 stick using 1 oak planks, 1 spruce planks",
    ],
)
def test_a_joint_within_an_argument_joins_no_actions(line):
    found = FORMATS["react"].read(f"Action: {line}", find("TextCraft").grammar)
    assert (str(found.action), found.ignored) == (line, ())


def test_an_action_whose_words_join_two_is_one():
    grammar = find("BabyAI").grammar
    line = "toggle and go through blue closed door 1"
    for name, taught in TAUGHT.items():
        found = FORMATS[name].read(taught.replace("{}", line), grammar)
        assert (str(found.action), found.ignored) == (line, ())


@pytest.mark.parametrize(
    ("line", "played"),
    [
        ("disconnect sink (closer)", "disconnect sink"),
        ("deactivate thermometer (this should bring me closer)", "deactivate thermometer"),
        ("read book (pride and prejudice)", "read book (pride and prejudice)"),
        ("read book (the one on the left)", "read book"),
        ("move book (moby dick) to red box (it is near)", "move book (moby dick) to red box"),
        ("read book (beowulf) because I want to know", None),
    ],
)
def test_only_the_title_of_a_book_is_in_parentheses(line, played):
    grammar = find("SciWorld").grammar
    try:
        found = str(FORMATS["react"].parse(f"Action: {line}", grammar))
    except errors.BadArguments:
        found = None
    assert found == played


STATEMENTS = [
    "SELECT count(*) FROM singer",
    "SELECT T1.name, COUNT(*) AS n FROM singer AS T1 JOIN concert AS T2 ON T1.id = T2.sid GROUP BY T1.name",
    "SELECT name\nFROM singer\nWHERE age > (SELECT avg(age) FROM singer)\nORDER BY length (name) DESC",
    "SELECT name\n\nFROM singer\n\nWHERE age > 3",
    "SELECT (\n\n1\n)",
    "WITH a (x) AS (SELECT 1) SELECT x FROM a",
    "select a - b diff from t",
    "SELECT x FROM t WHERE a != 3 AND b LIKE '%— (x). #'",
    "SELECT CAST(a AS UNSIGNED BIG INT) FROM t t1 LIMIT 1",
    "SELECT\n  (SELECT count(*) FROM a)\n  - (SELECT count(*) FROM b)\n  as difference",
    "SELECT (\n  SELECT count(*) FROM a\n)\n* 100.0 AS share\nFROM t",
]
BEHIND = [
    *(
        "\n\nThis gives the names.",
        "\nThis gives the names.",
        "\nFrom this we know the rest.",
        "\nThen I look.",
    ),
    *(" (this is the next step)", " — because it counts", "\n\n- It counts.", ";\nThat is it.", "\n```"),
    *(" - because I need it", "\nObservation: 3"),
]


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("label", ["Action: ", "Action:\n", "Action:\u200b "])
def test_a_statement_without_a_fence_is_played_whole_and_without_prose(statement, label):
    grammar = find("SQLGym").grammar
    for behind in ("", *BEHIND):
        sql = FORMATS["react"].parse(f"I count.\n{label}{statement}{behind}", grammar).sql
        assert sql.rstrip(";") == statement


@pytest.mark.parametrize(
    "statement",
    [
        *("SELECT team\\_name FROM teams\nWHERE team\\_id = 3", "SELECT\n  Enrollment (K-12)\nFROM schools"),
        *("SELECT a FROM t\nQUALIFY row_number() OVER (ORDER BY a) = 1", "SELECT top 3 a\nFROM t"),
    ],
)
def test_a_statement_that_sqlite_does_not_have_is_not_cut(statement):
    grammar = find("SQLGym").grammar
    assert FORMATS["react"].parse(f"Action: {statement}", grammar).sql == statement
    assert FORMATS["react"].parse(f"Action:\n```sql\n{statement}\n```", grammar).sql == statement


@pytest.mark.parametrize("behind", ["This counts the rows.", "(The rows are those of the first table.)"])
def test_prose_behind_the_semicolon_is_no_part_of_a_statement_in_a_fence(behind):
    reply = f"Action:\n```sql\nSELECT count(*) FROM t;\n\n{behind}\n```"
    assert FORMATS["react"].parse(reply, find("SQLGym").grammar).sql == "SELECT count(*) FROM t;"


@pytest.mark.parametrize(
    "statement",
    [
        *("SELECT name FROM singer because I need it", "SELECT (1\n\nThis is all.", "SELECT 'abc\n\nIt is."),
        *("Select the names of the singers", "SELECT name FROM singer please run it", "SELECT name,\n\n"),
    ],
)
def test_half_a_statement_and_one_with_prose_are_refused(statement):
    grammar = find("SQLGym").grammar
    for name in ("react", "tags"):
        with pytest.raises(errors.BadArguments):
            FORMATS[name].parse(TAUGHT[name].replace("{}", statement), grammar)


INFO = ("", "text", "json", "sql", "json {.x}", "python {.numberLines start=1}", 'text title="a b"')


@each_environment
@pytest.mark.parametrize("fence", ["```", "~~~"])
@pytest.mark.parametrize("info", INFO)
def test_an_empty_fence_is_an_empty_mark(environment, fence, info):
    grammar = environment.grammar
    empty = f"Action:\n{fence}{info}\n{fence}"
    with pytest.raises(errors.NoAction):
        FORMATS["react"].parse(empty, grammar)
    action = grammar.examples[0]
    filled = f"Action:\n{fence}{info}\n{action}\n{fence}"
    assert FORMATS["react"].parse(filled, grammar) == action


FRAMES = [
    *("```\n{}\n```", "~~~text\n{}\n~~~", "```json {.x}\n{}\n```", "\\boxed{{}}", "$\\boxed{{}}$"),
    *("$$\n\\boxed{{}}\n$$", "\\[\\boxed{\\text{{}}}\\]", "<|begin_of_box|>{}<|end_of_box|>"),
    *("<answer>{}</answer>", "<answer>\n{}\n</answer>", "<response>\n{}\n</response>\n", "<box>{}</box>"),
    *(
        "<final_answer>{}</final_answer>",
        "<think>Hm.</think>\n<answer>{}</answer>",
        "**<answer>{}</answer>**",
    ),
]


@pytest.mark.parametrize("frame", FRAMES)
def test_what_is_around_a_bare_action_is_taken_off(frame):
    failures = []
    for environment in environments():
        for action in environment.grammar.examples[:3]:
            text = str(action) if environment.name in MARKED else FORMATS["bare"].render(action)
            reply = frame.replace("{}", text)
            found = verdict(FORMATS["bare"], reply, environment.grammar, action)
            failures += [(found, reply)] if found != "read" else []
    assert not failures, failed(failures, len(failures))
