"""The report of a training in a real Chromium, opened from a file."""

from __future__ import annotations

import re

import pytest

from agentgym_gym.evaluate import write_report
from report_browser import CONTRAST, HIDDEN, OPENED, shown, until
from report_runs import HOSTILE
from trainings import PROMPT, line, write_training

pytestmark = pytest.mark.slow  # starts Chromium

FAULT = {"kind": "ServerTimeout", "message": "no reply"}
MAZE = {"env_id": "agentgym/Maze-v0", "served_by": "agentgym-servers/2 (Maze)"}


@pytest.fixture
def training(tmp_path):
    """Six steps in two environments, a task more solved with each, and two validations."""
    lines = [line(0, 20, validation=True, score=0.0), line(5, 20, validation=True)]
    for step in range(1, 7):
        lines += [line(step, task, score=float(task < step)) for task in range(6)]
        lines += [line(step, 0, **MAZE), line(step, 0, fault=FAULT, **MAZE)]
    return write_training(tmp_path / "training", lines)


def chart(page, run, name):
    """Return the points of a line of the first charts, from the left and from the top."""
    names = ["Success", "Score", "Turns", "Parse errors", "Faults"]
    path = page.locator(".charts").nth(1).locator(".chart").nth(names.index(name)).locator("path").nth(run)
    return [
        tuple(map(float, point)) for point in re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get_attribute("d"))
    ]


def signs(page, group):
    # Not what is rendered: cells that are not near the screen are not.
    return page.locator("#grids .card").nth(group).locator("button.cell").all_text_contents()


def test_the_charts_show_each_step(view, training):
    page = view(training)
    assert shown(page, ".summary caption") == [
        "Maze-v0 (local world 2) 6 training steps",
        "TextCraft-v0 (server of unknown make) 7 training steps",
    ]
    tags = shown(page, ".run-name .tag")
    assert tags == ["training, step 6", "training, step 6", "validation, step 5"]
    success = chart(page, 0, "Success")
    (left, low), (right, high) = success[0], success[-1]
    assert len(success) == 6
    # A sixth is solved at first and all at last, on an axis from 0 to 1.
    assert [y for _, y in success] == pytest.approx(
        [low + (high - low) * step / 5 for step in range(6)], abs=0.11
    )
    assert [x for x, _ in success] == pytest.approx(
        [left + (right - left) * step / 5 for step in range(6)], abs=0.11
    )
    assert low - high == pytest.approx((130 - 22 - 10) * 5 / 6, abs=0.11)
    validated = chart(page, 1, "Success")
    assert [y for _, y in validated] == pytest.approx([108, 10])  # the axis, and the top
    label = page.locator(".charts").nth(1).locator(".chart").first.get_attribute("aria-label")
    assert label == ("Success: B 0.17 at step 1, 1.00 at step 6; C 0.00 at step 0, 1.00 at step 5")
    faults = page.locator(".charts").first.locator(".chart").last.get_attribute("aria-label")
    assert faults == "Faults, share of episodes: A 50.0 % at step 1, 50.0 % at step 6"


def test_the_table_has_the_numbers_of_the_charts(view, training):
    page = view(training)
    page.get_by_text("Figures of each training step").nth(1).click()
    page.wait_for_selector(".by-step tbody button")
    rows = [row.inner_text().split("\t") for row in page.locator(".by-step tbody tr").all()]
    assert [row[0].strip() for row in rows] == ["0", "1", "2", "3", "4", "5", "5", "6"]
    assert rows[2][1:] == ["B", "6", "0.33", "0.33", "2.0", "0.0 %", "0.0 %"]
    page.locator(".by-step tbody button").nth(2).click()
    assert page.locator("#step").input_value() == "2"


def test_a_step_is_chosen_in_the_list_by_keys_and_in_a_chart(view, training):
    page = view(training)
    assert (signs(page, 0), signs(page, 1)) == (["✓", "!"], ["✓"] * 6)
    page.locator("#step").select_option("2")
    assert signs(page, 1) == ["✓"] * 2 + ["✕"] * 4
    page.locator("h1").click()
    page.keyboard.press("[")
    assert signs(page, 1) == ["✓"] + ["✕"] * 5
    page.keyboard.press("[")
    assert signs(page, 0) == ["✕"]  # before the first step there is only a validation, of TextCraft
    page.keyboard.press("[")
    page.keyboard.press("]")
    assert page.locator("#step").input_value() == "1"
    first = page.locator(".charts").nth(1).locator(".chart").first
    box = first.bounding_box()
    first.click(position={"x": box["width"] - 12, "y": box["height"] / 2})
    assert page.locator("#step").input_value() == "6"
    page.locator("#step").select_option("")
    assert len(signs(page, 0)) == 12
    assert len(signs(page, 1)) == 38
    assert sum(int(chip.split()[-1]) for chip in shown(page, "#outcomes .chip")) == 50


def test_an_episode_is_opened_and_its_address_leads_to_its_step(view, training):
    page = view(training)
    page.locator("#step").select_option("3")
    page.locator("#grids .card").nth(1).locator("button.cell").nth(4).click()
    page.wait_for_selector(OPENED)
    assert page.locator("#episode-title").inner_text() == "Task 4 · step 3"
    assert "training" in page.locator(".eyebrow").inner_text()
    assert page.evaluate("location.hash") == "#run=1&step=3&task=4&sample=0"
    page.keyboard.press("n")
    until(page, "document.querySelector('#episode-title').innerText === 'Task 5 · step 3'")
    page.wait_for_selector(OPENED)
    page.locator(".system summary").click()
    assert page.locator(".system .said").inner_text() == PROMPT
    other = view(training, fragment="#run=2&step=5&task=20&sample=0", wait=OPENED)
    assert other.locator("#step").input_value() == "5"
    assert other.locator("#episode-title").inner_text() == "Task 20 · step 5"
    assert other.locator("#grids button.cell.open").count() == 1


def test_steps_of_which_the_page_has_no_episodes_cannot_be_chosen(view, training, tmp_path):
    write_report([training], tmp_path / "report.html", last=1)
    page = view()
    assert page.locator("#step option").all_text_contents() == ["All steps", "Step 5", "Step 6"]
    page.get_by_text("Figures of each training step").nth(1).click()
    page.wait_for_selector(".by-step tbody button")
    buttons = page.locator(".by-step tbody button").all()
    assert [each.is_enabled() for each in buttons] == [False] * 5 + [True] * 3
    assert len(chart(page, 0, "Success")) == 6


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read(view, training, scheme):
    """WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    page = view(training, color_scheme=scheme, viewport={"width": 1400, "height": 2000})
    page.get_by_text("Figures of each training step").first.click()
    found = page.evaluate(CONTRAST)
    assert len(found) > 100
    assert [each for each in found if each[0] < 4.5] == []


def test_on_a_phone(view, training):
    page = view(training, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_foreign_text_is_shown_as_text(view, tmp_path):
    lines = []
    for step, text in enumerate(filter(None, HOSTILE.values()), start=1):
        made = line(step, goal=text, env_id=f"{text}/{text}", ending=text)
        lines.append({**made, "agent": text, "session": None})
    page = view(write_training(tmp_path / "training", lines))
    page.locator("#step").select_option("")
    for each in page.get_by_text("Figures of each training step").all():
        each.click()
    page.wait_for_selector(".by-step tbody button")
    assert page.evaluate(HIDDEN) == []
    assert page.locator("main script, main img, main iframe").count() == 0
