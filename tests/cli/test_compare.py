"""`agentgym compare`."""

from __future__ import annotations

import json

import pytest

from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import compare_runs, read_run

OPTIONS = {"action_format": "react", "max_turns": 20}


@pytest.fixture
def written(tmp_path):
    """Writes the folder of a run."""

    def write(name, scores, *, env="TextCraft", agent="someone", options=None, finished=True, world=None):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        with (folder / "episodes.jsonl").open("w", encoding="utf-8") as file:
            for task, score in scores.items():
                fields = {"env_id": f"agentgym/{env}-v0", "agent": agent, "task_id": task, "goal": None}
                fields |= {"score": score, "success": score == 1, "return": score, "turns": 1, "seconds": 0.1}
                fields |= {"terminated": True, "truncated": False, "parse_errors": {}, "fault": None}
                file.write(json.dumps({**fields, "rewards": [score], "messages": []}) + "\n")
        facts = {"env_id": f"agentgym/{env}-v0", "agent": agent, "options": options or OPTIONS}
        summary = {"run": {**facts, "finished": finished, **({"served_by": [world]} if world else {})}}
        (folder / "summary.json").write_text(json.dumps(summary), "utf-8")
        return folder

    return write


def rows(result, title):
    """Return the rows of a table by their headings."""
    lines = result.stdout.partition(title)[2].splitlines()[2:]
    table = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]
    stop = next(i for i, line in enumerate(table) if not line)
    return [dict(zip(table[0], row, strict=True)) for row in table[2:stop]]


A = {i: float(i < 4) for i in range(12)}
B = {i: float(i >= 4) for i in range(12)}


def test_two_runs(run, written):
    a, b = written("a", A, agent="small"), written("b", {**B, 12: 1.0}, agent="large")
    result = run("compare", a, b)
    assert (result.exit_code, result.stderr) == (0, "")
    (success,), (score,) = rows(result, "Success:"), rows(result, "Score:")
    assert success == score
    assert success | {"95 %": ""} == {
        "runs": "B - A",
        "tasks": "12",
        "means": "0.67 - 0.33",
        "difference": "+0.33",
        "95 %": "",
        "p": "0.388",  # 2 (1 + 12 + 66 + 220 + 495) / 2 ** 12
        "won": "8",
        "lost": "4",
        "equal": "0",
    }
    for name, folder, agent in (("A", a, "small"), ("B", b, "large")):
        assert f"{name}  {folder} ({agent} on TextCraft-v0 (server of unknown make))\n" in result.stdout
    assert "p: paired permutation test over tasks, two-sided, exact.\n" in result.stdout
    assert "\n1 task (12) left out: not in A.\n" in result.stdout


def test_json(run, written):
    a, b = written("a", A), written("b", B, options={**OPTIONS, "max_turns": 5}, finished=False)
    value = json.loads(run("compare", a, b, "--json").stdout)
    (one,) = value["comparisons"]
    assert value["test"] == "paired permutation test over tasks, two-sided"
    assert one["success"]["p_value"] == pytest.approx(2 * 794 / 2**12)
    assert one["success"]["wins"] == 8
    assert one["warnings"] == ["B is not finished", "max_turns differs: 20 in A, 5 in B"]
    assert (one["a"]["path"], one["b"]["path"]) == (str(a), str(b))


def test_several_runs_in_several_environments(run, written, tmp_path):
    for name in ("a", "b"):
        written(f"{name}/craft", A if name == "a" else B)
        written(f"{name}/maze", A if name == "a" else B, env="Maze")
    written("b/wordle", A, env="Wordle")
    written("c", A)
    result = run("compare", *(tmp_path / name for name in ("a", "b", "c")))
    assert result.exit_code == 0
    columns = ("environment", "runs", "difference", "p", "p (Holm)")
    assert [tuple(row[name] for name in columns) for row in rows(result, "Success:")] == [
        ("TextCraft-v0 (server of unknown make)", "B - A", "+0.33", "0.388", "1.000"),
        ("TextCraft-v0 (server of unknown make)", "C - A", "+0.00", "1.000", "1.000"),
        ("Maze-v0 (server of unknown make)", "B - A", "+0.33", "0.388", "1.000"),
    ]
    assert "p (Holm): corrected for the number of comparisons in the table." in result.stdout
    assert (
        f"{tmp_path}/b/wordle is not compared: it is the only run in Wordle-v0 "
        "(server of unknown make).\n" in result.stdout
    )


def test_several_models_in_one_folder(run, written, tmp_path):
    written("both/maze/small", A, agent="small", env="Maze")
    written("both/textcraft/large", B, agent="large")
    written("both/textcraft/small", A, agent="small")
    written("maze", B, agent="large", env="Maze")
    result = run("compare", tmp_path / "both", tmp_path / "maze")
    found = [(row["environment"], row["runs"], row["difference"]) for row in rows(result, "Success:")]
    assert found == [
        (f"{name}-v0 (server of unknown make)", runs, "+0.33")
        for name, runs in (("Maze", "C - A"), ("TextCraft", "B - A"))
    ]


def test_differences_are_warnings(run, written):
    result = run("compare", written("a", A), written("b", B, options={**OPTIONS, "max_turns": 5}))
    assert "warning: max_turns differs: 20 in A, 5 in B.\n" in result.stdout


def test_runs_on_different_worlds_are_not_compared(run, written, tmp_path):
    worlds = [f"agentgym-servers/{version} (TextCraft, seed 0)" for version in (1, 2)]
    a, b = (written(name, A, world=world) for name, world in zip("ab", worlds, strict=True))
    result = run("compare", a, b)
    assert result.exit_code == 2
    words = " ".join(result.stderr.split())
    assert "is of TextCraft-v0 (local world 1, seed 0), and there is no other run of it" in words
    assert "but of TextCraft-v0 (local world 2, seed 0): compare runs in one environment, on one" in words
    with pytest.raises(BadOption, match="different worlds"):
        compare_runs(read_run(a), read_run(b))
    with pytest.raises(BadOption, match=r"and .* \(server of unknown make\)"):
        compare_runs(read_run(a), read_run(written("c", A)))
    again = written("d", A, world=worlds[0])
    result = run("compare", a, b, again, written("e", A, world=worlds[1]), "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    compared = [(each["a"]["path"], each["b"]["path"]) for each in json.loads(result.stdout)["comparisons"]]
    assert compared == [(str(a), str(again)), (str(b), str(tmp_path / "e"))]


def test_fixed_broken_and_unchanged_tasks(run, written):
    a, b = written("a", A), written("b", {**B, 3: 1.0, 11: 0.0, 12: 1.0})
    result = run("compare", a, b)
    assert "Fixed (solved in B and not in A): 7 tasks (4, 5, 6, 7, 8, 9, 10).\n" in result.stdout
    assert "Broken (solved in A and not in B): 3 tasks (0, 1, 2).\n" in result.stdout
    assert "Unchanged: 2 tasks (3, 11).\n" in result.stdout
    (one,) = json.loads(run("compare", a, b, "--json").stdout)["comparisons"]
    assert (one["fixed"], one["broken"], one["unchanged"]) == ([4, 5, 6, 7, 8, 9, 10], [0, 1, 2], [3, 11])
    same = run("compare", a, written("c", A))
    assert "Fixed (solved in B and not in A): no task.\n" in same.stdout
    assert "(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...).\n" in same.stdout


def test_p_values_of_many_runs_are_corrected(run, written):
    """By Holm's method: three tests, of which the smallest p is multiplied by 3, and the next one by 2."""
    tasks = range(12)
    runs = [written("a", dict.fromkeys(tasks, 0.0))]
    runs += [
        written(name, {i: float(i < won) for i in tasks}) for name, won in (("b", 7), ("c", 12), ("d", 5))
    ]
    result = run("compare", *runs)
    p = {"b": 2 / 2**7, "c": 2 / 2**12, "d": 2 / 2**5}  # McNemar's test, with all differences in favour of B
    expected = [2 * p["b"], 3 * p["c"], p["d"]]
    shown = [(row["runs"], row["p"], row["p (Holm)"]) for row in rows(result, "Success:")]
    assert shown == [("B - A", "0.016", "0.031"), ("C - A", "< 0.001", "0.001"), ("D - A", "0.062", "0.062")]
    value = json.loads(run("compare", *runs, "--json").stdout)
    assert [one["success"]["p_value_holm"] for one in value["comparisons"]] == pytest.approx(expected)
    assert "Fixed" not in result.stdout
    (alone,) = json.loads(run("compare", *runs[:2], "--json").stdout)["comparisons"]
    assert alone["success"]["p_value_holm"] == alone["success"]["p_value"] == p["b"]


def test_many_differing_tasks_are_drawn(run, written):
    a, b = written("a", dict.fromkeys(range(40), 0.0)), written("b", {i: i / 40 for i in range(40)})
    result = run("compare", a, b)
    assert rows(result, "Score:")[0]["p"] == "< 0.001"
    assert (
        "two-sided, exact, or by 100,000 draws where more than 20 tasks differ by unequal amounts."
        in result.stdout
    )


def test_text_of_a_server_or_model_does_not_control_the_terminal(run, written):
    result = run("compare", written("a", A, agent="\x1b[2Jevil"), written("b", B))
    assert "\x1b" not in result.stdout
    assert "evil on TextCraft-v0" in result.stdout


def test_errors_name_what_was_wrong(run, written, tmp_path):
    a, b = written("a", A), written("b", B, env="Maze")
    result = run("compare", a, b)
    assert result.exit_code == 2
    for part in ("is of TextCraft-v0 (server", "of Maze-v0 (server", "compare runs in one environment"):
        assert part in result.stderr
    assert f"{a} is given 2 times" in " ".join(run("compare", a, a).stderr.split())
    assert run("compare", a).exit_code == 2
    assert run("compare").exit_code == 2
