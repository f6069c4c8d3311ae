"""The report of several runs: the matrix, comparisons, order, filters, search, copy and download."""

from __future__ import annotations

import csv
import json
import random
import re
import time

import pytest

import command_line
from agentgym_gym.evaluate import EpisodeRecord, compare_runs, read_run, write_report
from report_browser import CONTRAST, HIDDEN, OPENED, shown, until
from report_runs import HOSTILE, episode, many_runs, rich_episodes, write_run

pytestmark = pytest.mark.slow  # starts Chromium

MAZE = "agentgym/Maze-v0"
SEED = random.Random


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs in one environment, and one of the first agent in another."""
    folder = tmp_path_factory.mktemp("several")
    made = [
        write_run(folder / name, rich_episodes(name, SEED(seed), tasks=12, samples=2), agent=name)
        for seed, name in enumerate(("one", "two", "three"))
    ]
    maze = [episode(task, env_id=MAZE, agent="one", score=float(task > 1)) for task in range(4)]
    return [*made, write_run(folder / "maze", maze, agent="one", env_id=MAZE)]


def test_the_matrix_has_the_figures_of_the_table(view, runs):
    page = view(*runs)
    page.locator("#tab-matrix").click()
    table = command_line.run("table", *runs, "--format", "csv").stdout
    told = {(row["model"], row["env_id"]): row["success"] for row in csv.DictReader(table.splitlines())}
    rows = page.locator("#view-matrix tbody tr")
    heads = page.locator("#view-matrix thead th").all_inner_texts()[1:]
    shown_in = [next(env for _, env in told if env.partition("/")[2] in head) for head in heads]
    assert sorted(shown_in) == sorted({env for _, env in told})
    assert [row.locator("th").inner_text() for row in rows.all()] == ["one", "two", "three"]
    for row in rows.all():
        model = row.locator("th").inner_text()
        for cell, env in zip(row.locator("td").all(), shown_in, strict=True):
            success = told.get((model, env))
            assert cell.inner_text().startswith("–" if success is None else f"{float(success):.2f}")
    page.locator("#view-matrix thead .plain").first.click()
    rates = [float(row.locator("td .main").first.inner_text()) for row in rows.all()]
    assert rates == sorted(rates, reverse=True)


def test_the_matrix_names_the_protocol_of_a_column(view, tmp_path):
    episodes = [episode(task, env_id=MAZE, agent="one", score=1.0) for task in range(2)]
    texts = ["quick (1a2b3c4d)", "quick (1a2b3c4d), with temperature 0.7 in place of 0"]
    runs = [
        write_run(tmp_path / str(n), episodes, agent="one", env_id=MAZE, protocol={"text": text})
        for n, text in enumerate(texts)
    ]
    page = view(*runs)
    page.locator("#tab-matrix").click()
    heads = page.locator("#view-matrix thead th").all_inner_texts()
    assert [head.partition("protocol ")[2] for head in heads] == ["", *texts]


def test_a_comparison_has_the_figures_of_compare(view, runs):
    page = view(*runs)
    page.locator("#tab-compare").click()
    first, second, third = map(read_run, runs[:3])
    pairs = [compare_runs(a, b) for a, b in ((first, second), (first, third), (second, third))]
    ranked = sorted(pair.success.p_value for pair in pairs)
    page.locator("#compare-b").select_option("C")
    until(page, "document.querySelector('#comparison .pair')?.innerText.includes('three')")
    cells = page.locator("#comparison tbody tr").first.locator("td").all_inner_texts()
    paired = pairs[1].success
    assert cells[0] == str(paired.tasks)
    assert cells[2].replace("\N{MINUS SIGN}", "-") == f"{paired.difference:+.2f}"
    holm = max((3 - at) * p for at, p in enumerate(ranked) if p <= paired.p_value)
    assert cells[4:6] == [f"{paired.p_value:.3f}", f"{min(1.0, holm):.3f}"]
    assert cells[6:] == [str(each) for each in (paired.wins, paired.losses, paired.ties)]
    fixed = page.locator("#comparison .task-list").first
    assert fixed.locator("button").all_text_contents() == list(map(str, pairs[1].fixed))
    page.locator("#compare-a").select_option("B")
    until(page, "document.querySelector('#comparison .pair')?.innerText.includes('two')")


def test_runs_are_sorted_and_columns_chosen(view, runs):
    page = view(*runs)
    rates = "[...document.querySelector('.summary tbody').querySelectorAll('.main')].map((e) => +e.innerText)"
    page.locator("#sort").select_option("Success")
    assert page.evaluate(rates) == sorted(page.evaluate(rates), reverse=True)
    page.get_by_role("button", name="Reverse").click()
    assert page.evaluate(rates) == sorted(page.evaluate(rates))
    page.locator(".menu summary").click()
    page.get_by_role("checkbox", name="Turns").uncheck()
    heads = page.locator(".summary").first.locator("thead th").all_inner_texts()
    assert "Success ▴" in heads
    assert "Turns" not in heads


def test_the_plot_has_a_point_for_each_run(view, runs):
    page = view(*runs)
    page.locator("#tab-plot").click()
    assert page.locator(".plot").first.locator(".plot-point").count() == 3
    assert page.locator("#plot-axis option").all_text_contents()[0] == "Tokens per episode"
    page.locator("#plot-axis").select_option("turns")
    assert "turns per episode" in page.locator(".plot").first.get_attribute("aria-label")


def test_a_kind_of_failure_filters_the_tasks(view, runs):
    page = view(*runs)
    page.locator("#tab-failures").click()
    index = page.evaluate("state.index")
    kind = "turn_limit"
    heads = page.locator("#view-failures thead").first.locator("th").all_inner_texts()
    cell = page.locator("#view-failures tbody tr").first.locator("td").nth(heads.index("turn limit") - 1)
    assert cell.inner_text().split()[0] == str(index["runs"][0]["summary"]["failures"][kind])
    cell.locator("button").click()
    lit = page.locator("#grids .cells .cell:not(.dim)")
    assert lit.count() == sum(run["summary"]["failures"].get(kind, 0) for run in index["runs"])
    lit.first.click()
    page.wait_for_selector(OPENED)
    assert "turn limit" in page.locator(".episode-head").inner_text()


def test_search_finds_episodes_by_their_transcripts(view, runs):
    page = view(*runs)
    page.keyboard.press("s")
    page.keyboard.type("REPLY 1 of task 3")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#search-status').innerText.endsWith('found')")
    assert page.locator("#search-status").inner_text() == "7 episodes of 76 found"
    assert page.locator("#matches li").count() == 7
    assert set(page.locator("#matches mark").all_text_contents()) == {"reply 1 of task 3"}
    assert page.locator("#count").inner_text() == "2 of 16 tasks"
    page.locator("#matches button").last.click()
    page.wait_for_selector(OPENED)
    assert page.evaluate("location.hash") == "#run=3&task=3&sample=0"
    until(page, "document.querySelector('#episode mark')?.innerText === 'reply 1 of task 3'")
    page.get_by_role("button", name="Clear").click()
    assert page.locator("#count").inner_text() == "16 tasks"


def test_an_episode_is_copied_and_downloaded(view, tmp_path):
    record = episode(7, agent="../Org/m 1", steps=({"action": "look"},))
    folder = write_run(tmp_path / "a", [record], agent="../Org/m 1")
    page = view(
        folder, fragment="#run=0&task=7", wait=OPENED, permissions=["clipboard-read", "clipboard-write"]
    )
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download").click()
    assert waiting.value.suggested_filename == "textcraft-v0-org-m-1-task-7-sample-0.jsonl"
    found = EpisodeRecord.from_json(json.loads(waiting.value.path().read_text("utf-8")))
    assert found == record
    page.get_by_role("button", name="Copy").click()
    until(page, "document.querySelector('.copy').innerText === 'Copied'")
    text = page.evaluate("navigator.clipboard.readText()")
    assert "--- agent, turn 2 ---\nreply 1 of task 7\n" in text
    assert "Outcome: solved, score 1, 2 turns" in text


def test_hostile_texts_in_all_views(view, tmp_path):
    texts = [text for text in HOSTILE.values() if text]
    made = []
    for number, text in enumerate(texts):
        messages = tuple({"role": role, "content": text} for role in ("user", "assistant"))
        records = [episode(task, agent=text, goal=text, messages=messages, score=0.0) for task in range(2)]
        made.append(write_run(tmp_path / f"{number:02}", records, agent=text, options={text: number}))
    page = view(*made)
    before = page.evaluate("document.querySelectorAll('script, img, iframe, a').length")
    for name in ("matrix", "compare", "plot", "failures", "runs"):
        page.locator(f"#tab-{name}").click()
    until(page, "document.querySelector('#comparison .pair') !== null")
    for text in ("<script>", "alert(2)", "txt.exe"):
        page.evaluate("document.querySelector('#search-status').innerText = ''")  # of the search before
        page.locator("#search-all").fill(text)
        page.locator("#search-button").click()
        until(page, "document.querySelector('#search-status').innerText.includes(' found')")
        until(page, "document.querySelectorAll('#matches li').length > 0")
    assert page.evaluate(HIDDEN) == []
    names = page.evaluate("state.runs.map(({ cells }) => fileNameOf(cells[0]))")
    assert all(re.fullmatch(r"textcraft-v0-[a-z0-9_-]*task-0-sample-0\.jsonl", name) for name in names)
    assert page.evaluate("document.querySelectorAll('script, img, iframe, a').length") == before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_has_enough_contrast(view, runs, scheme):
    """WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    page = view(*runs, color_scheme=scheme, viewport={"width": 1400, "height": 1400})
    for name in ("matrix", "compare", "failures"):
        page.locator(f"#tab-{name}").click()
        if name == "compare":
            until(page, "document.querySelector('#comparison .pair') !== null")
        assert [each for each in page.evaluate(CONTRAST) if each[0] < 4.5] == []


@pytest.mark.parametrize("samples", [2, pytest.param(8, marks=pytest.mark.exhaustive)])
def test_twenty_runs_of_some_samples_and_100_tasks(samples, browser, view, tmp_path, report_at_end):
    """At three widths nothing is clipped, names and goals stay, and only the rows near the viewport exist."""
    out = tmp_path / "report.html"
    written = write_report(many_runs(tmp_path / "runs", runs=20, samples=samples, tasks=100), out)
    assert (written.runs, written.episodes) == (20, 2_000 * samples)
    for width in (1400, 800, 400):
        began = time.monotonic()
        page = view(path=out, viewport={"width": width, "height": 900})
        ready = time.monotonic() - began
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("button.cell").count() < 1_000 * samples
        table = page.locator(".cells-table")
        table.evaluate("(table) => table.scrollTo(table.scrollWidth, table.scrollHeight)")
        page.wait_for_selector(f"button.cell[aria-label^='T, task 99, sample {samples - 1},']")
        places = page.evaluate(
            """() => {
              const box = (element) => element.getBoundingClientRect();
              const table = document.querySelector(".cells-table");
              const row = [...table.querySelectorAll(".row")].at(-1);
              const head = table.querySelector(".heads");
              const [frame, goal, last] = [box(table), box(row.querySelector(".goal")), box(row.lastChild)];
              return [goal.left - frame.left, box(head).top - frame.top, frame.right - last.right,
                getComputedStyle(row.querySelector(".goal-text")).visibility];
            }"""
        )
        assert places == [
            pytest.approx(0, abs=1),
            pytest.approx(0, abs=1),
            pytest.approx(0, abs=1),
            "visible",
        ]
        assert shown(page, ".column-name")[-1] == "model-19"
        report_at_end(
            f"report of 20 x {samples} x 100 at {width} px: ready in {ready:.1f} s, "
            f"{written.size / 1e6:.0f} MB"
        )
