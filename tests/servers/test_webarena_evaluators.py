"""Our scores equal WebArena's: its own evaluators score the same answers, addresses and pages.

The tests that compare need a checkout of WebArena, and its tasks are the ones compared.
"""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
from pathlib import Path

import pytest

import needs
from fake_model import completion
from fake_server import FakeServer
from webarena_evaluators import NO_SCORE, BlockingPage, Originals, ScriptedPage, ScriptedTabs, draws

pytest.importorskip("playwright", reason=needs.reason("playwright"))
pytest.importorskip("nltk", reason=needs.reason("nltk"))

from playwright.async_api import Error

from webarena_parts import (
    CheckFailed,
    Chromium,
    DataWorld,
    Judge,
    Scoring,
    Tabs,
    WebArenaTask,
    answer_is_right,
    cleaned,
    includes,
    pages_are_right,
    wait_seconds,
)

SITES = ("SHOPPING_ADMIN", "SHOPPING", "REDDIT", "GITLAB", "WIKIPEDIA", "MAP", "HOMEPAGE")

# Around a word or a number, all that a tokenizer may separate or not.
AROUND = [
    *(
        "{}",
        " {}\n",
        "'{}'",
        '"{}"',
        "“{}”",
        "`{}`",
        "({})",
        "[{}]",
        "{}.",
        "{}!",
        "{}?",
        "{},",
        "{};",
        "{}:",
    ),
    *("{}-star", "{}/5", "{}rd", "{}/10/2023", "{}.5", "{},000", "{}:30", "1{}", "{}1", "${}", "{}%", "#{}"),
    *(
        "The answer is {}",
        "It is {}. Thanks",
        "{}. Next",
        "{}. 4",
        "{}.) so",
        "{}... so",
        "{}'s",
        "-{}",
        "--{}--",
    ),
    *(
        "{} {}",
        "{},{}",
        "{}…",
        "{}\u00a0x",
        "{}\u200b",
        "<b>{}</b>",
        "&lt;{}&gt;",
        "{}&amp;",
        "x{}",
        "{}\n{}",
        "no. {}",
    ),
    *(
        "{}.!",
        "{}??",
        "a {}, b",
        "{}–5",
        "{}*",
        "{}@x",
        "'{}",
        "{}'",
        "'{}\"",
        "n't{}",
        "{}'ll",
        "{}n't",
        "{} administrators",
    ),
]


@pytest.fixture(scope="module")
def originals():
    return Originals()


@pytest.fixture(scope="module")
def world(originals, tmp_path_factory):
    """WebArena's tasks, as the server reads them."""
    folder = tmp_path_factory.mktemp("webarena")
    tasks = json.loads(Path(os.environ["WEBARENA"], "config_files", "test.raw.json").read_text("utf-8"))
    for task in tasks:
        task["storage_state"] = None
    (folder / "test.raw.json").write_text(json.dumps(tasks), "utf-8")
    (folder / "sites.json").write_text(
        json.dumps({f"__{name}__": f"http://{name.lower()}.example" for name in SITES})
    )
    return DataWorld(folder)


@pytest.fixture
def config(tmp_path):
    """Write a task for WebArena's evaluators; return its file."""

    def write(task):
        path = tmp_path / "task.json"
        path.write_text(json.dumps({"intent": task.intent, "eval": task.check}), "utf-8")
        return path

    return write


async def ours(task, answer, tabs, scoring):
    """Return the score by our rules."""
    try:
        right = await answer_is_right(task, answer, scoring.judge)
        return float(right and await pages_are_right(task, tabs, scoring))
    except CheckFailed:
        return NO_SCORE


def mutated(text, draw, others):
    """Return a text that may mean the same as another or not."""
    number = re.search(r"\d+", text)
    near = (
        text if number is None else text.replace(number[0], str(int(number[0]) + draw.choice([-1, 1, 10])), 1)
    )
    words = text.split()
    draw.shuffle(words)
    return draw.choice(
        [
            text,
            draw.choice(AROUND).replace("{}", text),
            draw.choice(AROUND).replace("{}", text),
            draw.choice([text.upper(), text.lower(), text.title(), text.swapcase()]),
            draw.choice(
                [html.escape(text), text.replace("a", "á"), text.replace("-", "–"), text.replace(" ", "  ")]
            ),
            draw.choice(
                [text[:-1], text[1:], " ".join(words), " ".join(words[1:]), f"{text} and more", near]
            ),
            draw.choice(["", "N/A", "n/a", "'N/A'", "None", "İ", "'", '"', "\ud800", " ", "0"]),
            draw.choice(others),
        ]
    )


def references_of(check):
    """Return the texts that a task's answer has to have."""
    values = (check.get("reference_answers") or {}).values()
    return [text for value in values for text in ([value] if isinstance(value, str) else value)]


ODD = [
    "' '",
    "'",
    '"',
    '"\'"',
    "“",
    ".",
    "-",
    "$",
    "B",
    "İ",
    "ß",
    "3.",
    "(4)",
    "``",
    "''",
    "…",
    "'s",
    "a b",
    "",
]


def odd_tasks():
    """Return tasks with references that no task of WebArena has."""
    for text in ODD:
        for references in ({"exact_match": text}, {"must_include": [text]}, {"must_include": [text, "5"]}):
            check = {"eval_types": ["string_match"], "reference_answers": references, "reference_url": ""}
            yield WebArenaTask(("shopping",), "", (), check)


def test_the_scores_of_answers_are_webarenas(originals, world, config):
    draw, scored = draws(0), 0
    tasks = [task for task in world._tasks.values() if "string_match" in task.check["eval_types"]]
    tasks += odd_tasks()
    others = [text for task in tasks for text in references_of(task.check)]
    differences = []

    async def play():
        nonlocal scored
        for task in tasks:
            # Only an address that is right shows the score of the answer.
            page = ScriptedPage(task.check["reference_url"].split(" |OR| ")[0] or "http://x.example/", (), ())
            scoring, file = Scoring(world.addresses), config(task)
            for _ in range(24):
                texts = [mutated(each, draw, others) for each in references_of(task.check)]
                answer = draw.choice([", ", " ", ". ", "\n", "; "]).join(texts)
                theirs = originals.score(file, answer, page)
                if "fuzzy_match" in task.check["reference_answers"] and theirs == NO_SCORE:
                    continue  # it asked its judge
                mine = await ours(task, answer, ScriptedTabs(page), scoring)
                scored += 1
                if mine != theirs:
                    differences.append((task.check["reference_answers"], answer, mine, theirs))

    asyncio.run(play())
    assert differences == []
    assert scored > 5_000


def mutated_url(url, draw, others):
    base, _, query = url.partition("?")
    fields = query.split("&")
    draw.shuffle(fields)
    return draw.choice(
        [
            url,
            f"{url}/",
            f"{base}?{'&'.join(fields)}",
            f"{base}?{'&'.join(fields[1:])}",
            f"{url}{'&' if query else '?'}page=2",
            f"{url}#reviews",
            f"{base};a=b?{query}",
            f"{base}/more?{query}",
            base,
            base.rpartition("/")[0],
            base.upper() + "?" + query,
            url.replace("=", "=x", 1),
            url.replace("+", "%20"),
            url.replace("example", "example:80"),
            url.replace("http:", "https:"),
            f"http://other.example/?u={url}",
            f"http://other.example/{url}",
            "about:blank",
            draw.choice(others),
        ]
    )


def test_the_scores_of_addresses_are_webarenas(originals, world, config):
    draw, differences, scores = draws(1), [], []
    tasks = [task for task in world._tasks.values() if "url_match" in task.check["eval_types"]]
    others = [task.check["reference_url"].split(" |OR| ")[0] for task in tasks]

    async def play():
        for original in tasks:
            for number in range(24):
                check = {**original.check, "eval_types": ["url_match"]}
                if number % 4 == 0:
                    gold = check["reference_url"].split(" |OR| ")[0]
                    check["reference_url"] = f"{mutated_url(gold, draw, others)} |OR| {gold}more"
                task = WebArenaTask(original.sites, original.intent, original.start_urls, check)
                file = config(task)
                gold = draw.choice(check["reference_url"].split(" |OR| "))
                page = ScriptedPage(mutated_url(gold, draw, others), (), ())
                theirs = originals.score(file, "", page)
                mine = await ours(task, "", ScriptedTabs(page), Scoring(world.addresses))
                scores.append(theirs)
                if mine != theirs:
                    differences.append((check["reference_url"], page.url, mine, theirs))

    asyncio.run(play())
    assert differences == []
    assert min(scores.count(0.0), scores.count(1.0)) > 1_000


RAISED = "Page.evaluate: TypeError: Cannot read properties of null (reading 'outerText')"
FORUM = [
    "/f/books/81371/a-title",
    "/f/books/81371",
    "/f/books",
    "/",
    "/f/books/81371/a-title/-/comment/9",
    "/d/x/1/y",
]


def values_of(check, draw, others):
    """Return what the pages of a check may have."""
    for target in check["program_html"]:
        required, locator = target["required_contents"], target["locator"]
        texts = [required["exact_match"]] if "exact_match" in required else required["must_include"]
        drawn = [draw.choice(text.split(" |OR| ")) for text in texts]
        # Mostly right, because a check of many pages is wrong if one is.
        text = draw.choice([" ", "\n", "</td><td>"]).join(
            each if draw.random() < 0.8 else mutated(each, draw, others) for each in drawn
        )
        if draw.random() < 0.1:
            text = html.escape(text)
        odd = [None, 0, 7, 7.5, True, False, "", [text], {"a": text}]
        called = locator.strip() == "" or locator.startswith("func:")
        if draw.random() < 0.15:
            text = "" if called else draw.choice([*odd, Error(RAISED)])
        yield text


def test_the_scores_of_pages_are_webarenas_after_the_same_waits(originals, world, config):
    draw, differences, scores = draws(2), [], []
    tasks = [task for task in world._tasks.values() if "program_html" in task.check["eval_types"]]
    others = [
        text
        for task in tasks
        for target in task.check["program_html"]
        for text in target["required_contents"].get("must_include", ["None"])
    ]
    slow = Scoring(world.addresses, world.check_seconds)

    async def play():
        for original in tasks:
            check = {**original.check, "eval_types": ["program_html"]}
            task = WebArenaTask(original.sites, original.intent, original.start_urls, check)
            file, locators = config(task), [each["locator"] for each in check["program_html"]]
            for _ in range(12):
                values = list(values_of(check, draw, others))
                url = f"http://reddit.example{draw.choice(FORUM)}"
                theirs = originals.score(file, "", ScriptedPage(url, locators, values))
                tabs = ScriptedTabs(ScriptedPage(url, locators, values))
                mine = await ours(task, "", tabs, Scoring(world.addresses))
                scores.append(theirs)
                if mine != theirs:
                    differences.append((check["program_html"], values, mine, theirs))
                assert sum(originals.sleeps) == wait_seconds(task, slow)

    asyncio.run(play())
    assert differences == []
    assert min(scores.count(0.0), scores.count(1.0)) > 1_000


SCRIPTS = [
    *(
        "document.title",
        "document.querySelector('#tea').outerText",
        "document.querySelector('#none').outerText",
    ),
    *(
        "document.querySelector('#none')",
        "document.querySelector('#tea').nothing",
        "document.querySelector('#box').value",
    ),
    *(
        "document.querySelector('#box').checked",
        "document.querySelectorAll('li').length",
        "document.links.length / 2",
    ),
    *(
        "[...document.querySelectorAll('li')].map(each => each.outerText)",
        "document.querySelector('#box').dataset",
    ),
    *(
        "[...document.querySelectorAll('li')].map(each => each.outerText).join(', ')",
        "document.body.children",
    ),
    *(
        "document.title.length / 0",
        "document.title * 1",
        "document.createElement('a').href",
        "document.createTextNode('x')",
    ),
    *(
        "func:gitlab_get_project_memeber_role(__page__, 'ann')",
        "func:gitlab_get_project_memeber_role(__page__, 'bob')",
        "",
    ),
]
CONTENTS = [
    *(
        "Shop",
        "shop",
        "Tea & more",
        "tea &amp; more",
        "None",
        "none",
        "",
        "7",
        "7.0",
        "2",
        "1.5",
        "0",
        "True",
        "true",
    ),
    *(
        "false",
        "['Green', 'Black']",
        "green, black",
        "green",
        "nan",
        "inf",
        "{'a': 'b'}",
        "Maintainer",
        "Guest",
        "<li>",
        "ref",
    ),
]
SHOP = """<!doctype html><title>Shop</title><p id=tea>Tea &amp; more</p><ul><li>Green<li>Black</ul>
<input id=box value=7 checked type=checkbox data-a=b><a href=/a>a</a><a href=/b>b</a><a href=/c>c</a>
<table><tr><td data-label=Account><span class=gl-avatar-labeled-sublabel>@ann</span>
<td class=col-max-role><span>Maintainer</span></table>"""


@pytest.mark.slow
@pytest.mark.needs("playwright", "chromium")
def test_a_real_page_gives_webarenas_scores(originals, world, config):
    async def play():
        chromium = Chromium()
        try:
            tabs = Tabs(await chromium.context())
            await tabs.open("")
            await tabs.shown.set_content(SHOP)
            page, differences = BlockingPage(tabs.shown, asyncio.get_running_loop()), []
            for script in SCRIPTS:
                for content in CONTENTS:
                    for required in ({"exact_match": content}, {"must_include": [content]}):
                        target = {"url": "last", "locator": script, "required_contents": required}
                        check = {"eval_types": ["program_html"], "program_html": [target]}
                        task = WebArenaTask(("shopping",), "", (), check)
                        theirs = await asyncio.to_thread(originals.score, config(task), "", page)
                        mine = await ours(task, "", tabs, Scoring(world.addresses))
                        if mine != theirs:
                            differences.append((script, required, mine, theirs))
            return differences
        finally:
            await chromium.close()

    assert asyncio.run(play()) == []


def test_a_judge_that_decides_alike_gives_webarenas_scores(originals, world, config):
    draw, differences, scores = draws(3), [], []
    tasks = [
        task for task in world._tasks.values() if "fuzzy_match" in (task.check["reference_answers"] or {})
    ]
    verdict, wrong = "", ""

    def decide(question):
        return (
            "incorrect" if wrong and (wrong in question or json.dumps(wrong)[1:-1] in question) else verdict
        )

    def reply(request):
        return completion(f"I compared them.\n\nVerdict: {decide(request.json['messages'][-1]['content'])}")

    async def play(url):
        nonlocal verdict, wrong
        judge = Judge(url, "judge")
        for task in tasks:
            references = task.check["reference_answers"]["fuzzy_match"]
            unavailable = references == "N/A"
            page = ScriptedPage(task.check["reference_url"] or "http://x.example/", (), ())
            file = config(task)
            for verdict in (
                ("same", "different") if unavailable else ("correct", "partially correct", "incorrect")
            ):
                wrong = "" if unavailable else draw.choice([*references, ""])
                for answer in ("N/A", "There is none.", ", ".join(references)):
                    theirs = originals.score(file, answer, page)
                    mine = await ours(task, answer, ScriptedTabs(page), Scoring(world.addresses, judge=judge))
                    scores.append(theirs)
                    if mine != theirs:
                        differences.append((references, answer, verdict, wrong, mine, theirs))

    originals.judge = decide
    try:
        with FakeServer(reply) as server:
            asyncio.run(play(server.url))
    finally:
        originals.judge = lambda _: (_ for _ in ()).throw(LookupError())
    assert differences == []
    assert min(scores.count(0.0), scores.count(1.0)) > 100


@pytest.mark.needs("punkt")
def test_a_single_character_is_a_word_where_nltk_finds_one():
    from nltk.tokenize import word_tokenize

    draw, differences, found = draws(4), [], 0
    around = [
        text for text in AROUND if "administrators" not in text
    ]  # the one word that its model knows better
    words = [
        "there",
        "are",
        "items",
        "Mr.",
        "U.S.",
        "e.g.",
        "no.",
        "vs.",
        "3rd",
        "n't",
        "4",
        "a.",
        "12.",
        "ok.",
    ]
    for _ in range(4_000):
        character = draw.choice("0123456789abcdefghijklmnopqrstuvwxyzäß中$%!?-*&(")
        parts = [*draw.choices(words, k=draw.randint(0, 4)), draw.choice(around).replace("{}", character)]
        draw.shuffle(parts)
        text = draw.choice([" ", ". ", ", ", "\n"]).join(parts).strip().lower()
        theirs = character in word_tokenize(cleaned(text))
        found += theirs
        if includes(text, character, whole=True) != theirs:
            differences.append((text, character, theirs))
    assert differences == []
    assert 1_000 < found < 3_000
