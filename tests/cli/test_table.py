"""`agentgym table`."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len

from agentgym_gym.evaluate import read_run, summarise
from report_runs import episode, write_run

LOCAL = "agentgym-servers/2 (WebShop, seed {})"
HOSTILE = [
    r"\input{/etc/passwd}",
    r"100% $x_1^2$ & more # ~tilde \\ {brace}",
    "[b] *star* `tick` 'single' \"double\" ?`",
    "--dash---, ,,comma <<less>> |pipe| \\| \\",
    "<script>alert(1)</script> &amp; <!-- -->",
    "| a | b |\n| --- | --- |",
    "[link](javascript:alert) ![image](x) http://a.example www.b.example @someone",
    "=1+2",
    "𝒻é漢字",
]


@pytest.fixture
def written(tmp_path):
    """Writes a run in WebShop, in which each task has a list of outcomes, and returns its folder."""

    def write(name, outcomes, *, agent="small", seed=0, env="agentgym/WebShop-v0", timing=None, **facts):
        records = [
            episode(task, sample=sample, agent=agent, env_id=env, score=float(solved), steps=steps, turns=1)
            for task, (solutions, steps) in outcomes.items()
            for sample, solved in enumerate(solutions)
        ]
        served_by = {"served_by": [LOCAL.format(seed)], "server_make": ["local"]} if seed is not None else {}
        folder = write_run(tmp_path / name, records, env_id=env, agent=agent, **served_by, **facts)
        summary = {**json.loads((folder / "summary.json").read_text("utf-8")), "timing": timing or {}}
        (folder / "summary.json").write_text(json.dumps(summary), "utf-8")
        return folder

    return write


def once(*solved, first=0):
    return {first + task: ([each], ()) for task, each in enumerate(solved)}


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def markdown_tables(text):
    """Return the tables that a Markdown parser finds, as rows of texts."""
    page = MarkdownIt("commonmark").enable("table").render(text)
    tables = re.findall(r"<table>.*?</table>", page, re.DOTALL)
    cells = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.DOTALL)
    rows = [re.findall(r"<tr>.*?</tr>", table, re.DOTALL) for table in tables]
    found = [[cells.findall(row) for row in table] for table in rows]
    assert "<" not in "".join(cell for table in found for row in table for cell in row)
    return [[[html.unescape(cell) for cell in row] for row in table] for table in found]


LATEX = {
    "textbackslash": "\\",
    "textasciicircum": "^",
    "textasciitilde": "~",
    "textless": "<",
    "textgreater": ">",
    "textbar": "|",
    "textasciigrave": "`",
    "char39": "'",
    "char34": '"',
}


def typeset(cell):
    """Return the text that LaTeX shows for a cell; fail if it would execute or drop something of it."""
    text = ""
    while cell:
        command = re.match(r"\\(text[a-z]+|char\d\d)\{\}", cell)
        symbol = re.match(r"\\([{}$&#%_])|\{([\[\]*])\}", cell)
        if command:
            text += LATEX[command[1]]
        elif symbol:
            text += symbol[1] or symbol[2]
        elif cell.startswith("{}"):
            cell = cell[2:]
            continue
        else:
            assert cell[0] not in "\\{}$&#%_^~<>|`'\"[]*\n", cell
            assert not re.match(r"--|,,|[?!]`", cell), cell
            text += cell[0]
            cell = cell[1:]
            continue
        cell = cell[(command or symbol).end() :]
    return text


def latex_tables(text):
    tables = []
    for columns, body in re.findall(r"\\begin\{tabular\}\{([lr]+)\}\n(.*?)\\end\{tabular\}", text, re.DOTALL):
        lines = [line.removesuffix(" \\\\") for line in body.splitlines() if line.endswith(" \\\\")]
        rows = [[typeset(cell.strip()) for cell in re.split(r"(?<!\\)&", line)] for line in lines]
        assert body.count("rule\n") == 3
        assert len(lines) == len(body.splitlines()) - 3
        assert all(len(row) == len(columns) for row in rows)
        tables.append(rows)
    return tables


def test_models_by_environments(run, written):
    folders = [
        written("a", once(1, 1, 0, 0), agent="small"),
        written("b", once(1, 1, 1, 0), agent="large"),
        written("c", once(1, 0), agent="small", env="gem/Guess-v0", seed=None),
    ]
    result = run("table", *folders, "--format", "markdown")
    assert (result.exit_code, result.stderr) == (0, "")
    success, runs = markdown_tables(result.stdout)
    assert success == [
        ["environment", "split", "tasks", "small", "large"],
        ["WebShop-v0 (local world 2, seed 0)", "test", "4", "0.50 (0.15 to 0.85)", "0.75 (0.30 to 0.95)"],
        ["Guess-v0", "-", "2", "0.50 (0.09 to 0.91)", "-"],
    ]
    assert [dict(zip(runs[0], row, strict=True))["success"] for row in runs[1:]] == ["0.50", "0.75", "0.50"]
    assert "Ranges are 95 % intervals." in result.stdout
    assert latex_tables(run("table", *folders, "--format", "latex").stdout) == [success, runs]


def test_runs_on_different_worlds_and_splits_are_different_rows(run, written):
    folders = [
        written("a", once(1, 1)),
        written("b", once(0, 0), seed=7),
        written("c", once(0, 1), served_by=None, seed=None),
        written("d", once(1, 0, first=5000)),
        written("e", once(1, 0), agent="large"),
    ]
    success, _ = markdown_tables(run("table", *folders, "--format", "markdown").stdout)
    assert [row[:3] for row in success[1:]] == [
        ["WebShop-v0 (local world 2, seed 0)", "test", "2"],
        ["WebShop-v0 (local world 2, seed 7)", "test", "2"],
        ["WebShop-v0 (server of unknown make)", "test", "2"],
        ["WebShop-v0 (local world 2, seed 0)", "train", "2"],
    ]
    assert [row[3][:4] for row in success[1:]] == ["1.00", "0.00", "0.50", "0.50"]
    assert [row[4] for row in success[2:]] == ["-"] * 3


def test_success_at_k(run, written):
    folders = [written("a", {0: ([1, 0], ()), 1: ([0, 0], ())}), written("b", once(1, 0), agent="large")]
    success, runs = markdown_tables(run("table", *folders, "--format", "markdown").stdout)
    assert success[1][3].endswith(", pass@2 0.50")
    assert success[1][3].startswith("0.25 (")
    assert "pass" not in success[1][4]
    row = dict(zip(runs[0], runs[1], strict=True))
    assert (row["pass@k"], row["pass^k"], row["episodes"]) == ("0.50 (k=2)", "0.00 (k=2)", "4")


def test_tokens_cost_parse_errors_and_wall_time(run, written):
    steps = ({"prompt_tokens": 900, "completion_tokens": 100, "parse_error": "NoAction"},)
    played = {task: ([1], steps) for task in range(2)}
    a = written("a", played, timing={"cost": 1.5}, wall_seconds=75.4, finished=True)
    b = written("b", once(1, 0), agent="large")
    _, runs = markdown_tables(run("table", a, b, "--format", "markdown").stdout)
    first, second = (dict(zip(runs[0], row, strict=True)) for row in runs[1:])
    assert (first["tokens"], first["cost"], first["wall time"]) == ("2,000", "1.50", "1 min 15 s")
    assert (second["tokens"], second["cost"], second["wall time"]) == ("-", "-", "-")
    assert first["parse errors"] == "0.0%"
    (bare,) = markdown_tables(run("table", b, "--format", "markdown").stdout)
    assert not {"tokens", "cost", "wall time", "pass@k"} & set(bare[0])


def test_prices_replace_the_recorded_costs(run, written, tmp_path):
    steps = ({"prompt_tokens": 900, "completion_tokens": 100},)
    folders = [
        written("a", {0: ([1], steps)}, timing={"cost": 1.5}),
        written("b", {0: ([1], steps)}, agent="large", timing={"cost": 2.5}),
        written("c", once(1), agent="small-uncounted", timing={"cost": 3.5}),
    ]
    prices = tmp_path / "prices.toml"
    prices.write_text('["small*"]\ninput = 10000\noutput = 20000\n')
    result = run("table", *folders, "--format", "csv", "--prices", prices)
    assert [row["cost"] for row in read_csv(result.stdout)] == ["11.0", "2.5", ""]
    assert result.stderr == f"{prices} has no price of large\n"
    assert run("table", *folders, "--prices", tmp_path / "none.toml").exit_code == 2


def test_csv_is_read_back(run, written, tmp_path):
    a = written("a", {0: ([1, 0], ()), 1: ([1, 1], ())}, timing={"cost": 0.125}, wall_seconds=8.5)
    b = written("b", once(0, 1, 1), agent="large", finished=False)
    assert run("table", a, b, "--out", tmp_path / "t.csv").exit_code == 0
    first, second = read_csv((tmp_path / "t.csv").read_text("utf-8"))
    summary = summarise(read_run(a).records)
    assert (first["model"], first["world"], first["split"]) == ("small", "local world 2, seed 0", "test")
    assert (first["tasks"], first["k"], first["episodes"]) == ("2", "2", "4")
    assert float(first["success"]) == summary.success_rate == 0.75
    assert float(first["pass_at_k"]) == 1.0
    assert (float(first["success_low"]), float(first["success_high"])) == summary.success_interval
    assert (float(first["cost"]), float(first["wall_seconds"])) == (0.125, 8.5)
    assert (second["cost"], second["finished"], Path(second["path"])) == ("", "False", b.resolve())
    assert float(second["success"]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(run, written, monkeypatch, name):
    folders = [written("a", once(1, 0), agent=name), written("b", once(1, 0), agent="other")]
    folders.append(written("c", once(1, 0), agent=name, env=f"hostile/{name.replace('/', '')}-v0", seed=None))
    line, env = " ".join(name.split()), f"{' '.join(name.replace('/', '').split())}-v0"
    for form, read in (("markdown", markdown_tables), ("latex", latex_tables)):
        success, runs = read(run("table", *folders, "--format", form).stdout)
        assert success[0] == ["environment", "split", "tasks", line, "other"]
        assert success[2][0] == env
        assert [row[0] for row in runs[1:]] == [line, "other", line]
    rows = read_csv(run("table", *folders, "--format", "csv").stdout)
    assert [row["model"] for row in rows] == [name, "other", name]
    text = run("table", *folders).stdout
    assert text.count(line) >= 3


def test_control_and_invisible_characters_are_removed(run, written, tmp_path):
    folder = written("a", once(1, 0), agent="\x1b[2Jevil\u202e\u200b\udc00 \r\nname\x07")
    for form in ("text", "markdown", "latex", "csv"):
        run("table", folder, "--format", form, "--out", tmp_path / form)
        text = (tmp_path / form).read_text("utf-8")
        assert ("evil? name" in text) == (form != "csv")
        assert form == "csv" or not set("\x1b\u202e\u200b\r\x07") & set(text)
    assert "\x1b" not in run("table", folder).stdout


def test_two_runs_of_a_model_are_not_averaged(run, written):
    folders = [written("a", once(1, 1)), written("b", once(0, 0)), written("c", once(0, 0), agent="large")]
    result = run("table", *folders, "--format", "markdown")
    success, _ = markdown_tables(result.stdout)
    assert success[0][3:] == ["small", "small #2", "large"]
    assert [cell[:4] for cell in success[1][3:]] == ["1.00", "0.00", "0.00"]
    assert f"small #2 is the run in {folders[1].resolve()}." in run("table", *folders).stdout


def test_notes_on_unequal_and_unfinished_runs(run, written):
    a = written("a", once(1, 1))
    b = written("b", once(0, 0, 1), agent="large", finished=False)
    text = run("table", a, b).stdout
    assert "\nWebShop-v0 (local world 2, seed 0), test: the runs played different tasks.\n" in text
    assert "\nlarge in WebShop-v0 (local world 2, seed 0) is not finished.\n" in text
    assert " 2 to 3 " in text
    assert "different tasks" not in run("table", a).stdout


@pytest.mark.parametrize(
    ("env", "tasks", "recorded", "split"),
    [
        ("agentgym/TextCraft-v0", [0, 1], None, "train"),
        ("agentgym/TextCraft-v0", [450, 451], None, "test"),
        ("agentgym/TextCraft-v0", [0, 451], None, "all"),
        ("agentgym/TextCraft-v0", [0, 451], "train", "train"),
        ("agentgym/TextCraft-v0", [10**6], None, ""),
        ("agentgym/BIRD-v0", [0], None, "train"),
        ("gem/Guess-v0", [0], None, ""),
    ],
)
def test_the_split_of_a_run(run, tmp_path, env, tasks, recorded, split):
    records = [episode(task, env_id=env) for task in tasks]
    folder = write_run(tmp_path / "run", records, env_id=env, options={"split": recorded})
    (row,) = read_csv(run("table", folder, "--format", "csv").stdout)
    assert row["split"] == split


def test_a_file_of_text(run, written, tmp_path):
    folders = [written("a", once(1, 0), agent="漢字"), written("b", once(1, 1), agent="small")]
    result = run("table", *folders, "--out", tmp_path / "table.txt")
    assert result.stdout == f"Written to {tmp_path}/table.txt.\n"
    lines = (tmp_path / "table.txt").read_text("utf-8").splitlines()
    assert lines[0] == "Success by environment and model:"
    assert lines[2].split() == ["environment", "split", "tasks", "漢字", "small"]
    assert cell_len(lines[2].partition("small")[0]) == lines[3].index("1.00 (0.34")
    assert lines[3].endswith("0.50 (0.09 to 0.91)  1.00 (0.34 to 1.00)")
    assert lines[-1] == "Ranges are 95 % intervals."


def test_errors_name_the_remedy(run, written, tmp_path):
    folder = written("a", once(1, 0))
    assert "cannot write to" in run("table", folder, "--out", tmp_path / "none" / "t.md").stderr
    assert run("table", folder, "--format", "excel").exit_code == 2
    assert run("table").exit_code == 2


def test_a_run_without_episodes_and_summary(run, tmp_path):
    folder = write_run(tmp_path / "a", [], env_id="agentgym/Maze-v0", agent="m")
    (cells,) = markdown_tables(run("table", folder, "--format", "markdown").stdout)
    assert dict(zip(*cells, strict=True)) == {
        "model": "m",
        "environment": "Maze-v0 (server of unknown make)",
        "split": "-",
        "tasks": "0",
        "episodes": "0",
        "faulted": "0",
        "success": "-",
        "score": "-",
    }
    (folder / "summary.json").unlink()
    (row,) = read_csv(run("table", folder, "--format", "csv").stdout)
    assert row["env_id"] == "?"
