"""The report in a real Chromium, opened from a file."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from decimal import ROUND_HALF_UP, Decimal

import pytest

from agentgym_gym.evaluate import write_report
from peak_memory import PEAK
from report_browser import CONTRAST, HIDDEN, OPENED, shown, until
from report_runs import HOSTILE, episode, large_run, rich_episodes, write_run

slow = pytest.mark.slow
PROMPT = "You are an agent.\n  Reply with an action."
SAID = ("truncated", "gave_up", "context_overflow", "reply_cut")
OWN = ("bored", "constructor", "solved")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    one = list(rich_episodes("one", random.Random(1), tasks=8, samples=2))  # noqa: S311
    two = list(rich_episodes("two", random.Random(2), tasks=8, samples=2))  # noqa: S311
    return [
        write_run(folder / "a", one, system_prompt=PROMPT, finished=True),
        write_run(folder / "b", two, finished=False),
    ]


def where(page):
    return page.evaluate("location.hash")


def rounded(value):
    """Return a number as the page rounds it: a half goes up."""
    return str(Decimal(str(value)).quantize(Decimal("0.01"), ROUND_HALF_UP))


@slow
def test_the_summary_shows_all_runs_side_by_side(view, runs):
    page = view(*runs)
    rows = page.locator(".summary tbody tr")
    assert rows.count() == 2
    index = page.evaluate("state.index")
    for row, run in zip(rows.all(), index["runs"], strict=True):
        figures = run["summary"]
        low, high = figures["success_interval"]
        text = row.inner_text()
        assert run["agent"] in text
        assert f"{figures['success_rate']:.2f}" in text
        assert f"{rounded(low)} to {rounded(high)}" in text
        bar = row.locator(".bar")
        x = [float(bar.locator(".whisker").nth(1 + side).get_attribute("x1")) for side in (0, 1)]
        assert x == pytest.approx([4 + 124 * low, 4 + 124 * high])
    assert ["not finished" in row.inner_text() for row in rows.all()] == [False, True]


@slow
def test_a_cell_shows_its_outcome_by_a_sign_and_in_words(view, tmp_path):
    fault = {"kind": "ServerError", "message": "500"}
    records = [
        episode(0),
        episode(1, score=0.0),
        episode(2, score=0.5),
        episode(3, fault=fault),
        episode(4, agent_fault=fault),
        *(
            episode(5 + at, score=0.0, terminated=False, truncated=ending == "truncated", ending=ending)
            for at, ending in enumerate((*SAID, *OWN))
        ),
        episode(20, success=None, score=3.0),
    ]
    page = view(write_run(tmp_path / "a", records))
    cells = page.locator(".cells .cell")
    signs = cells.all_inner_texts()
    assert signs == ["✓", "✕", "◐", "!", "⊘", "…", "–", "≫", "¦", "✕", "✕", "✕", "•"]
    labels = [cell.get_attribute("aria-label") for cell in cells.all()]
    assert labels[0] == "A, task 0, solved, score 1, 2 turns"
    assert labels[3] == "A, task 3, environment fault, 2 turns"
    assert labels[9:12] == [f"A, task {9 + at}, not solved, {OWN[at]}, score 0, 2 turns" for at in range(3)]
    chips = shown(page, "#outcomes .chip")
    assert len(chips) == 10
    assert sum(int(chip.split()[-1]) for chip in chips) == 13


@slow  # starts Chromium
def test_the_conversation_is_shown_as_recorded(view, tmp_path):
    call = {"name": "get", "arguments": '{"count":2}', "id": "call_1"}
    steps = (
        {
            "action": "get 2 log",
            "ignored_actions": ["inventory", '{"name": "fly"}'],
            "agent_seconds": 1.5,
            "env_seconds": 0.02,
            "reasoning": "I need logs.",
        },
        {"action": None, "parse_error": "NoAction", "prompt_tokens": 1234, "completion_tokens": 56},
        {"tool_calls": [call], "finish_reason": "length", "retries": 2},
    )
    messages = [
        ("user", "Goal: a\n  table"),
        ("assistant", "first"),
        ("user", "Got 2"),
        ("assistant", "second"),
    ]
    messages += [("user", "No action."), ("assistant", "")]
    record = episode(
        7,
        turns=2,
        steps=steps,
        rewards=(0.25, -1.0),
        messages=tuple({"role": role, "content": content} for role, content in messages),
        agent_fault={"kind": "ModelBusy", "message": "HTTP 429\nfor 300 s"},
        parse_errors={"NoAction": 1},
        agent_seconds=3.0,
        env_seconds=0.5,
        seconds=4.0,
    )
    page = view(
        write_run(tmp_path / "a", [record], system_prompt=PROMPT), fragment="#run=0&task=7", wait=OPENED
    )
    assert page.locator("#episode-title").inner_text() == "Task 7"
    head = page.locator(".episode-head").inner_text()
    for part in (
        "craft item 7",
        "agent fault",
        "4.00 s in all",
        "agent 3.00 s",
        "environment 0.50 s",
        "1 NoAction",
    ):
        assert part in head
    assert shown(page, ".fault-box") == [
        "Agent fault: ModelBusy · counted, not scored\n\nHTTP 429\nfor 300 s"
    ]
    assert shown(page, ".observation .said") == ["Goal: a\n  table", "Got 2", "No action."]
    replies = page.locator(".reply").all_inner_texts()
    assert [reply.split("\n")[0] for reply in replies] == [f"agent · turn {turn}" for turn in (1, 2, 3)]
    for part in ("reward +0.25", "first", "get 2 log", "agent 1.50 s · environment 20 ms"):
        assert part in replies[0]
    assert shown(page, ".ignored .said") == ["inventory", '{"name": "fly"}']
    for part in ("reward -1", "parse error: NoAction", "none was read", "tokens 1,234 in, 56 out"):
        assert part in replies[1]
    for part in ("finish: length", "asked 3 times", "tool call get call_1", '"count": 2'):
        assert part in replies[2]
    assert "I need logs." not in replies[0]
    page.get_by_text("Reasoning").click()
    assert page.get_by_text("I need logs.").is_visible()
    page.locator("#episode").get_by_text("System prompt").click()
    assert PROMPT in shown(page, ".system .said")


@slow
def test_hostile_transcripts_are_text(view, tmp_path):
    records = []
    for task, text in enumerate(HOSTILE.values()):
        step = {
            "action": text,
            "reasoning": text,
            "parse_error": text,
            "finish_reason": text,
            "ignored_actions": [text],
            "tool_calls": [{"name": text, "arguments": text, "id": text}],
        }
        fault = {"kind": text, "message": text}
        messages = tuple({"role": role, "content": text} for role in ("user", "assistant", text, "user"))
        known = {"goal": text, "messages": messages, "steps": (step,), "parse_errors": {text: 1}}
        records.append(episode(task, agent=text, ending=text, agent_fault=fault, **known))
    everything = "".join(HOSTILE.values())
    facts = {"options": {everything: everything}, "system_prompt": everything, "agent": everything}
    folder = write_run(tmp_path / "a", records, **facts)
    page = view(folder, title=everything)
    page.locator("#summary-tables .made > summary").click()
    page.locator(".facts > summary").click()
    before = page.evaluate("document.querySelectorAll('script, img, iframe, a').length")
    for task, text in enumerate(HOSTILE.values()):
        page.evaluate(f"location.hash = '#run=0&task={task}&sample=0'")
        until(page, f"document.querySelector('#episode-title')?.textContent === 'Task {task}'")
        page.evaluate("document.querySelectorAll('#episode details').forEach((each) => each.open = true)")
        got = page.locator(".observation .said").first.text_content()
        assert got == page.evaluate("(text) => text.replaceAll(INVISIBLE, named)", text)
        if not set("\u202e\x00\u200b\u2028\U000e0069\udc00") & set(text):
            assert got == text
    assert page.evaluate("document.querySelectorAll('script, img, iframe, a').length") == before
    page.locator("#filter").fill("script")
    assert page.locator("#count").inner_text().split()[0] == str(
        sum("script" in each for each in HOSTILE.values())
    )
    assert page.evaluate(HIDDEN) == []


@slow
def test_a_line_of_a_megabyte_wraps_and_is_cut(view, tmp_path):
    lines = ("x" * 1_000_000, "nul\x00" * 250_000, "end of it")
    messages = tuple({"role": "user", "content": line} for line in lines)
    record = episode(0, messages=messages, turns=0, rewards=())
    page = view(write_run(tmp_path / "a", [record]), fragment="#run=0&task=0", wait=OPENED)
    for _ in range(2):
        page.get_by_role("button", name="Show all 1,000,000 characters").first.click()
    assert page.locator(".more").count() == 0
    assert page.locator(".observation .said").first.text_content() == lines[0]
    assert page.evaluate("document.querySelector('#episode').scrollWidth <= innerWidth")
    page.keyboard.press("/")
    page.keyboard.type("end of")
    page.wait_for_selector("mark.current")
    assert page.locator(".search [role=status]").inner_text() == "1 of 1"


@slow
def test_only_by_the_keyboard(view, runs):
    page = view(*runs)
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('[role=grid]') !== null"):
            break
    assert page.evaluate("document.activeElement.matches(':focus-visible')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(OPENED)
    assert where(page) == "#run=0&task=1&sample=1"
    assert page.evaluate("document.activeElement.id") == "episode-title"
    for key, expected in (
        ("n", "#run=0&task=2&sample=0"),
        ("p", "#run=0&task=1&sample=1"),
        ("r", "#run=1&task=1&sample=1"),
        ("R", "#run=0&task=1&sample=1"),
    ):
        page.keyboard.press(key)
        assert where(page) == expected
    cells = page.evaluate("state.runs[0].cells.map(({task, sample, outcome}) => [task, sample, outcome])")
    after = next(cell for cell in cells[cells.index([1, 1, cells[3][2]]) + 1 :] if cell[2] != "solved")
    page.keyboard.press("f")
    assert where(page) == f"#run=0&task={after[0]}&sample={after[1]}"
    page.wait_for_selector(OPENED)
    page.keyboard.press("j")
    assert "turn 1" in page.evaluate("document.activeElement.innerText")
    page.keyboard.press("j")
    assert "turn 2" in page.evaluate("document.activeElement.innerText")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Enter")  # its button to close has the focus
    assert not page.locator("#help").is_visible()
    page.keyboard.press("?")
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#episode").is_visible()
    assert page.evaluate("document.activeElement.ariaLabel").startswith(
        f"A, task {after[0]}, sample {after[1]},"
    )


@slow
def test_the_address_keeps_what_is_open(view, runs):
    page = view(*runs, fragment="#run=1&task=3&sample=1", wait=OPENED)
    assert page.locator("#episode-title").inner_text() == "Task 3 · sample 1"
    assert page.locator(".eyebrow").inner_text().split()[:2] == ["B", "two"]
    page.get_by_role("button", name="Close").click()
    assert where(page) == ""
    page.go_back()
    page.wait_for_selector(OPENED)
    assert where(page) == "#run=1&task=3&sample=1"
    page.evaluate("location.hash = '#run=9&task=3'")
    page.wait_for_selector("#episode", state="hidden")


@slow
def test_filters(view, runs):
    page = view(*runs)
    outcomes = "(cells) => cells.map(({outcome}) => outcome)"
    cells = page.evaluate(f"state.groups[0].tasks.map(({{cells}}) => [...cells.values()].map({outcomes}))")
    rows = ".chunk .row"
    assert len(shown(page, rows)) == 8
    page.locator("#filter").fill("ITEM 3")
    assert len(shown(page, rows)) == 1
    page.locator("#filter").fill("")
    page.locator("#solved-filter").select_option("never")
    without = ("fault", "agent_fault")
    scored = [[each for run in row for each in run if each not in without] for row in cells]
    assert len(shown(page, rows)) == sum(bool(row) and "solved" not in row for row in scored)
    page.locator("#solved-filter").select_option("")
    page.locator("#outcomes .chip").first.click()
    assert len(shown(page, rows)) == sum("solved" in [*a, *b] for a, b in cells)
    assert page.locator(".cells .cell:not(.dim)").count() >= sum("solved" in [*a, *b] for a, b in cells)
    assert set(page.locator(".row:not([hidden]) .cells .cell:not(.dim)").all_inner_texts()) == {"✓"}
    page.locator(".summary input").first.uncheck()
    assert len(shown(page, rows)) == sum("solved" in b for _, b in cells)
    assert not page.locator(".cells[data-run='0']").first.is_visible()


@slow
def test_search_in_an_episode(view, runs):
    page = view(*runs, fragment="#run=0&task=0&sample=0", wait=OPENED)
    page.keyboard.press("/")
    page.keyboard.type("LOGS")
    # What is typed is looked for as soon as the keys rest, which a busy machine may do in their midst.
    until(page, "[...document.querySelectorAll('mark')].map((each) => each.innerText).join() === 'logs'")
    assert page.locator(".reasoning").first.get_attribute("open") is not None
    page.keyboard.press("Control+A")
    page.keyboard.type("of task")
    until(page, "[...document.querySelectorAll('mark')].filter((m) => m.innerText == 'of task').length > 1")
    marks = page.locator("mark").count()
    assert page.locator(".search [role=status]").inner_text() == f"1 of {marks}"
    page.keyboard.press("Shift+Enter")
    assert page.locator(".search [role=status]").inner_text() == f"{marks} of {marks}"


@slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(view, runs, scheme):
    """WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    page = view(*runs, color_scheme=scheme, viewport={"width": 1400, "height": 2000})
    page.evaluate("location.hash = '#run=0&task=1&sample=1'")
    page.wait_for_selector(OPENED)
    found = page.evaluate(CONTRAST)
    assert len(found) > 100
    assert [each for each in found if each[0] < 4.5] == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground.strip("rgb()").split(","))) > 380) == (scheme == "light")
    page.keyboard.press("t")
    page.keyboard.press("t" if scheme == "light" else "Shift")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground


@slow
def test_on_a_phone_and_on_paper(view, runs):
    page = view(*runs, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator(".cells .cell").first.click()
    page.wait_for_selector(OPENED)
    assert page.evaluate("document.querySelector('#episode').scrollWidth") <= 360
    assert page.evaluate("document.querySelector('#main').inert")
    page.emulate_media(media="print")
    assert not page.locator(".toolbar").is_visible()
    assert not page.locator("#main").is_visible()
    assert page.locator(OPENED).is_visible()


@slow
def test_figures_of_several_samples_fit_the_page(view, tmp_path):
    """All results of `summarise` are shown, and no width is too small for them."""
    page = view(write_run(tmp_path / "a", rich_episodes("a" * 200, random.Random(4), tasks=4)))  # noqa: S311
    figures = {
        "pass_at": {"1": 0.5, "2": 0.75, "4": None},
        "pass_at_intervals": {"1": [0.4, 0.6], "2": [0.6, 0.9], "4": None},
        "pass_hat": {"1": 0.5, "2": 0.25, "4": None},
        "score_interval": [0.31, 0.62],
        "samples": 4,
        "solved": {"never": [1], "sometimes": [0, 2], "always": [3], "unknown": []},
        "tokens": {"prompt": 2_345_678, "completion": 34_567},
        "timing": {"seconds": 7200, "cost": 1.25},
        "agent_faults": {"Kind" * 40: 3},
    }
    page.evaluate(
        """(figures) => {
          Object.assign(state.runs[0].summary, figures, { seconds: undefined });
          document.getElementById("summary-tables").replaceChildren();
          drawSummary();
        }""",
        figures,
    )
    row = page.locator(".summary tbody tr").inner_text()
    for part in (
        "pass@2 0.75 · 0.60 to 0.90",
        "pass@4 –",
        "pass^2 0.25",
        "0.31 to 0.62",
        "1 always",
        "2 sometimes",
    ):
        assert part in row
    for part in ("2.3 M in", "35 k out", "1.25", "120 min"):
        assert part in row
    for width in (1600, 1200, 1000, 800, 600, 360):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(50)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@slow
def test_tasks_with_other_goals_are_not_compared(view, tmp_path):
    first = [episode(0, goal="a"), episode(1, goal="b"), episode(2, goal=None)]
    second = [episode(0, goal="a"), episode(1, goal="c"), episode(2, goal="d")]
    page = view(write_run(tmp_path / "x", first), write_run(tmp_path / "y", second))
    cells = [row.locator(".cell").count() for row in page.locator(".chunk .row").all()]
    assert cells == [2, 1, 1, 2]


@slow
def test_runs_on_different_worlds_are_apart(view, tmp_path):
    worlds = [f"agentgym-servers/2 (WebShop, seed {seed})" for seed in (0, 7)]
    runs = [
        write_run(tmp_path / name, [episode(0)], served_by=[served_by])
        for name, served_by in zip("abcde", [*worlds, worlds[0], None, None], strict=True)
    ]
    page = view(*runs)
    tables = page.locator(".summary")
    assert [table.locator("tbody tr").count() for table in tables.all()] == [2, 1, 2]
    captions = [table.locator("caption").inner_text() for table in tables.all()]
    labels = ["local world 2, seed 0", "local world 2, seed 7", "server of unknown make"]
    named = [f"TextCraft-v0 ({label})" for label in labels]
    assert all(caption.startswith(name) for name, caption in zip(named, captions, strict=True))
    assert shown(page, "h3") == named


@slow
def test_an_empty_run(view, tmp_path):
    page = view(write_run(tmp_path / "a", [], env_id="agentgym/Maze-v0", agent="m"))
    assert "–" in page.locator(".summary tbody tr").inner_text()
    assert page.locator("#count").inner_text() == "0 tasks"


@slow
def test_a_truncated_file_shows_an_error(view, tmp_path):
    out = tmp_path / "report.html"
    write_report([write_run(tmp_path / "a", [episode(task) for task in range(200)])], out)
    whole = out.read_bytes()
    blocks = [at.start() for at in re.finditer(b'id="block-', whole)]
    out.write_bytes(whole[: blocks[2]])
    page = view(path=out, fragment="#run=0&task=1", wait=OPENED)
    page.evaluate("location.hash = '#run=0&task=199'")
    page.wait_for_selector("#episode .notice")
    assert "the file is not whole" in page.locator("#episode .notice").inner_text()


@pytest.mark.exhaustive  # 20 seconds, and it measures time
def test_five_thousand_episodes(view, tmp_path):
    """5,000 episodes of 20 turns of 500 characters: under 30 MB, under 1 GB to write, open in under 2 s."""
    folder, out = large_run(tmp_path / "a"), tmp_path / "report.html"
    program = (
        f"{PEAK}\n"
        "from pathlib import Path\n"
        "from agentgym_gym.evaluate import write_report\n"
        f"write_report([Path({str(folder)!r})], Path({str(out)!r}))\n"
        "print(peak_memory())"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 1e9
    assert out.stat().st_size < 30e6
    taken = []
    for _ in range(4):  # the browser is warm from the second on, as a user's is; the machine may be busy
        began = time.monotonic()
        page = view(path=out)
        taken.append(time.monotonic() - began)
        if taken[-1] < 2:
            break
    assert page.evaluate("state.runs[0].cells.length") == 5000
    assert min(taken) < 2
    began = time.monotonic()
    page.evaluate("location.hash = '#run=0&task=4999&sample=0'")
    page.wait_for_selector(OPENED)
    assert page.locator(".reply").count() == 20
    assert time.monotonic() - began < 10
