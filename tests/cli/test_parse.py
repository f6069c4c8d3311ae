"""`agentgym parse`: which action a reply holds, and where."""

import json

import pytest
from rich.cells import cell_len

REACT = "Thought:\nI need logs.\n\n**Action:** get 1 oak logs\nBut I may need more.\n"
CALL = '{"function_name": "get", "arguments": {"count": 1, "item": "oak logs"}}'
HERMES = '<tool_call>\n{{"name": "get", "arguments": {{"count": {}, "item": "oak logs"}}}}\n</tool_call>'
THINK = "<think>\nUp.\n</think>\n<action>\nmove up\n</action>"
SEARCH = "<search>who wrote Emma</search>"
SQL = "Action:\n```sql\nSELECT a\nFROM t\n```\nI hope so."

# By environment, format and reply: the action, the mark, line and column counted by hand, the marked text.
READ = {
    ("TextCraft", "react", REACT): ("get 1 oak logs", "label", 4, 13, "get 1 oak logs"),
    ("TextCraft", "react", "Action:\n\ninventory"): ("inventory", "label", 3, 1, "inventory"),
    ("Maze", "react", "I go up. Action: move up"): ("move up", "label", 1, 18, "move up"),
    ("Maze", "react", "Thought: x\r\nAction: move up\r\n"): ("move up", "label", 2, 9, "move up"),
    ("Maze", "react", "<action>move up</action>"): ("move up", "tags", 1, 9, "move up"),
    ("Maze", "tags", THINK): ("move up", "tags", 5, 1, "move up"),
    ("Maze", "tags", "Hm.\n  Action 2: move left"): ("move left", "label", 2, 13, "move left"),
    ("Maze", "adapt", "> think: up\n> move up"): ("move up", "command", 2, 3, "move up"),
    ("Maze", "bare", "\nmove up\n"): ("move up", "whole reply", 2, 1, "move up"),
    ("TextCraft", "function_calling", f"So:\n{CALL}\n"): ("get 1 oak logs", "call", 2, 1, CALL),
    ("SearchQA", "react", f"I look it up.\n{SEARCH}"): (SEARCH, "environment", 2, 1, SEARCH),
}


def parsed(run, env, reply, *options):
    """Return the exit code and the JSON object that the command prints."""
    result = run("parse", env, "--json", *options, input=reply.encode())
    assert result.stderr == ""
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize("given", READ)
def test_the_action_and_its_place(run, given):
    env, written, reply = given
    code, facts = parsed(run, env, reply, "--format", written)
    place = [facts[name] for name in ("action", "mark", "line", "column")]
    assert (code, *place, reply[facts["start"] : facts["end"]].rstrip()) == (0, *READ[given])
    assert (facts["ignored"], facts["error"], facts["message"]) == ([], None, None)


def test_a_code_block(run):
    reply = "I look.\n```python\n# now\ninventory()\n```"
    code, facts = parsed(run, "TextCraft", reply, "--format", "code_as_action")
    assert (code, facts["action"], facts["mark"]) == (0, "inventory", "code")
    assert "inventory()" in reply[facts["start"] : facts["end"]]


def test_the_marked_text_is_underlined(run):
    result = run("parse", "TextCraft", "--format", "react", input=REACT)
    assert result.exit_code == 0
    assert result.stdout == (
        "action   get 1 oak logs\n"
        "mark     label\n"
        "place    line 4, column 13\n"
        "\n"
        "4 | **Action:** get 1 oak logs\n"
        "  |             ^^^^^^^^^^^^^^\n"
    )


def test_an_action_of_several_lines(run):
    shown = run("parse", "SQLGym", input=SQL).stdout
    assert "action   SELECT a\n         FROM t\n" in shown
    assert "place    line 3, column 1, to line 4, column 6\n" in shown
    assert shown.endswith("3 | SELECT a\n  | ^^^^^^^^\n")


def test_a_long_line_is_cut_around_the_marked_text(run):
    reply = f"{'I go up. ' * 50}Action: move up. {'I go on. ' * 50}"
    *_, line, underline = run("parse", "Maze", input=reply).stdout.splitlines()
    assert len(line) < 80
    assert line.startswith("1 | …")
    assert line.endswith("…")
    assert line[underline.index("^") : underline.rindex("^") + 1] == "move up"


def test_wide_characters_and_tabs_before_the_marked_text(run):
    *_, line, underline = run("parse", "Maze", input="动作：\tmove up").stdout.splitlines()
    assert line == "1 | 动作： move up"
    assert underline.index("^") == cell_len("1 | 动作： ")
    assert underline.count("^") == len("move up")


def test_ignored_calls_are_listed(run):
    reply = f"{HERMES.format(1)}\n{HERMES.format(2)}"
    code, facts = parsed(run, "TextCraft", reply, "--format", "function_calling")
    assert (code, facts["action"], facts["mark"], facts["line"]) == (0, "get 1 oak logs", "call", 2)
    assert len(facts["ignored"]) == 1
    assert "2" in facts["ignored"][0]
    shown = run("parse", "TextCraft", "--format", "function_calling", input=reply).stdout
    assert f"ignored  {facts['ignored'][0]}\n" in shown


def test_an_action_outside_the_grammar_is_sent_as_written(run):
    reply = "Thought: I could bounce about.\nAction: bounce about"
    shown = run("parse", "SciWorld", input=reply)
    assert shown.exit_code == 0
    assert "action   bounce about\nnote     outside the grammar; sent as written\n" in shown.stdout
    code, facts = parsed(run, "SciWorld", reply)
    assert (code, facts["action"], facts["error"]) == (0, "bounce about", None)
    assert facts["message"] == "outside the grammar; sent as written"
    assert (facts["mark"], facts["line"], facts["column"]) == ("label", 2, 9)
    assert reply[facts["start"] : facts["end"]] == "bounce about"


def test_where_unknown_actions_are_refused(run):
    result = run("parse", "SciWorld", "--on-unknown", "refuse", input="Action: bounce about")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: UnknownAction: ")


def test_a_thought_is_not_an_action(run):
    code, facts = parsed(run, "Maze", "> think: where am I?", "--format", "adapt")
    assert (code, facts["action"], facts["error"]) == (0, None, None)
    assert facts["message"] == "a thought; no action is sent"


def test_a_reply_without_an_action(run):
    result = run("parse", "TextCraft", input="I do not know.")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: NoAction: ")
    code, facts = parsed(run, "TextCraft", "I do not know.")
    assert (code, facts["error"], facts["action"], facts["start"]) == (1, "NoAction", None, None)
    assert facts["message"] in result.stderr


@pytest.mark.parametrize("reply", ["", "Action:", "\n\n"])
def test_a_reply_that_is_empty(run, reply):
    assert parsed(run, "Maze", reply)[1]["error"] == "NoAction"


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize(
    "reply",
    [
        "\x1b]0;title\x07Thought: \x1b[31mred\nAction: \x1b[1mbounce\x1b[0m \x9b31m \u202egnp\r\n",
        "\x1b[2J",
        '\x1b[1mAction: wait{"a": "\\ud800"}\x00',
    ],
)
def test_nothing_that_a_terminal_obeys_is_printed(run, reply, options):
    result = run("parse", "SciWorld", *options, input=reply.encode())
    assert result.exit_code in {0, 1}
    assert {c for c in result.stdout + result.stderr if not c.isprintable()} <= {"\n"}


def test_agentgyms_own_parser(run):
    code, facts = parsed(run, "TextCraft", REACT.replace("**", ""), "--parser", "agentgym")
    assert (code, facts["action"].splitlines()[0], facts["error"]) == (0, "get 1 oak logs", None)


def test_the_reply_of_a_file(run, tmp_path):
    file = tmp_path / "reply.txt"
    file.write_bytes(REACT.encode())
    assert run("parse", "TextCraft", file).stdout == run("parse", "TextCraft", input=REACT).stdout
    assert run("parse", "TextCraft", tmp_path / "none.txt").exit_code == 2


def test_unreadable_input(run):
    result = run("parse", "TextCraft", input=b"Action: \xff")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "write it as UTF-8" in result.stderr
    result = run("parse", "CartPole-v1", input=REACT)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "has no grammar" in result.stderr
