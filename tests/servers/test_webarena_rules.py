"""The rules of WebArena that need no browser: reading an action, scores, and a page as text."""

from __future__ import annotations

import pytest

import needs

pytest.importorskip("playwright", reason=needs.reason("playwright"))
pytest.importorskip("nltk", reason=needs.reason("nltk"))

from agentgym_servers._browser.actions import BrowserAction, NotAnAction, read_action
from agentgym_servers._browser.tree import Numbers, nodes_with_line, page_text
from agentgym_servers.webarena._answers import matches_answer, matches_url
from agentgym_servers.webarena._evaluation import problem_of
from agentgym_servers.webarena._page_functions import is_agents_page, raised_by_page
from agentgym_servers.webarena._sites.addresses import OWN_ADDRESSES
from agentgym_servers.webarena._world import world_of


@pytest.mark.parametrize(
    ("action", "command"),
    [
        ("click [12]", BrowserAction("click", "12")),
        ("click[12]", BrowserAction("click", "12")),
        ("hover [3] please", BrowserAction("hover", "3")),
        ("type [4] [tea pot] [1]", BrowserAction("type", "4", "tea pot", enter=True)),
        ("type [4] [tea pot]", BrowserAction("type", "4", "tea pot", enter=True)),
        ("type [4] [a [b] c] [0]", BrowserAction("type", "4", "a [b] c")),
        ("press [Control+a]", BrowserAction("press", text="Control+a")),
        ("scroll [down]", BrowserAction("scroll", text="down")),
        ("scroll up", BrowserAction("scroll", text="up")),
        ("goto [http://homepage.com]", BrowserAction("goto", text="http://homepage.com")),
        ("new_tab", BrowserAction("new_tab")),
        ("tab_focus [2]", BrowserAction("tab_focus", text="2")),
        ("stop [$42]", BrowserAction("stop", text="$42")),
        ("stop", BrowserAction("stop")),
        ("stop []", BrowserAction("stop")),
    ],
)
def test_an_action_is_read(action, command):
    assert read_action(f"I think so. In summary, ```{action}``` and ```click [1]```") == command


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("click [1]", "Cannot parse action from response click [1]"),
        ("``` ```", "list index out of range"),
        ("```click [one]```", "Invalid click action click [one]"),
        ("```type [1] []```", "Invalid type action type [1] [] [1]"),
        ("```noop```", "Invalid action noop"),
        ("```scroll [left]```", "Invalid scroll action scroll [left]"),
        ("```tab_focus [" + "9" * 5000 + "]```", "Exceeds the limit (9 digits)"),
    ],
)
def test_text_without_an_action_is_answered_as_by_agentgyms_server(reply, message):
    with pytest.raises(NotAnAction) as error:
        read_action(reply)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("references", "answer", "right"),
    [
        ({"exact_match": "Mini Shop"}, " 'mini shop' ", True),
        ({"exact_match": "Mini Shop"}, "the mini shop", False),
        ({"must_include": ["7"]}, "It is 7.", True),
        ({"must_include": ["7"]}, "It is 17", False),
        ({"must_include": ["7"]}, "7-star", False),
        ({"must_include": ["7"]}, "7/10/2023", False),
        ({"must_include": ["7"]}, "the 7th", False),
        ({"must_include": ["7"]}, "$7, or (7)?", True),
        ({"must_include": ["7"]}, "There are 7. they are red", False),  # "7." is one word to nltk
        ({"must_include": ["7"]}, "There are 7. 4 are red", True),
        ({"must_include": ["7", "r"]}, "17 red", True),
        ({"must_include": ["7"]}, f"{'x ' * 1_000} 7", True),
        ({"must_include": ["7"]}, f"{'x ' * 10_000} 7", False),
        ({"must_include": ["12.50", "red"]}, "$12.50, in Red", True),
        ({"must_include": ["12.50", "red"]}, "$12.50", False),
        ({"fuzzy_match": ["on Main Street"]}, "It is on the street, Main", True),
        ({"fuzzy_match": ["on Main Street"]}, "on Park Street", False),
        ({"fuzzy_match": "N/A"}, "n/a", True),
        ({"fuzzy_match": "N/A"}, "there is none", False),
        ({"exact_match": "a", "must_include": ["b"]}, "a", False),
        ({"exact_match": "Green Tea"}, "green tea, 12", False),
        ({"must_include": ["12"]}, "", False),
        ({"fuzzy_match": ["green tea", "12"]}, "12 for tea, green", True),
        ({"fuzzy_match": ["green tea", "12"]}, "green tea", False),
    ],
)
def test_answers(references, answer, right):
    assert matches_answer(references, answer) is right


@pytest.mark.parametrize(
    ("references", "url", "right"),
    [
        ("http://shop/orders/7", "http://shop/orders/7/", True),
        ("http://shop/orders/7", "http://shop/orders/8", False),
        ("http://shop/a?sort=top", "http://shop/a?page=2&sort=top", True),
        ("http://shop/a?sort=top", "http://shop/a?sort=new", False),
        ("http://shop/a |OR| http://shop/b", "http://shop/b", True),
        ("http://shop/t?a=1&b=2", "http://shop/t?b=2&a=1", True),
        ("http://shop/t?a=1&b=2", "http://shop/t?a=1&b=3", False),
        ("http://shop/t?a=1&b=2", "http://shop/t?a=1", False),
        ("http://shop/a?x=1 |OR| http://shop/b?x=2", "http://shop/b?x=1", True),
        ("http://shop/a;b=c", "http://shop/a", True),
    ],
)
def test_addresses(references, url, right):
    assert matches_url(references, url) is right


PAGE = {"url": "last", "locator": "", "required_contents": {"must_include": ["tea"]}}


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ({"eval_types": ["string_match"]}, "reference_answers must have the answer"),
        ({"eval_types": ["string_match"], "reference_answers": None}, "must have the answer"),
        ({"eval_types": ["string_match"], "reference_answers": {}}, "must have the answer"),
        ({"eval_types": ["string_match"], "reference_answers": {"taste": "x"}}, "no match of kind 'taste'"),
        (
            {"eval_types": ["string_match"], "reference_answers": {"exact_match": 7}},
            "exact_match must be text",
        ),
        ({"eval_types": ["string_match"], "reference_answers": {"must_include": "ab"}}, "must be a list"),
        ({"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": [None]}}, "must be a list"),
        ({"eval_types": ["url_match"]}, "reference_url must be an address"),
        ({"eval_types": ["url_match"], "reference_url": ""}, "reference_url must be an address"),
        (
            {"eval_types": ["url_match"], "reference_url": "http://shop", "url_note": "EXACT"},
            "no url_note 'EXACT'",
        ),
        ({"eval_types": ["program_html"]}, "must be a list of pages"),
        ({"eval_types": ["program_html"], "program_html": []}, "must be a list of pages"),
        ({"eval_types": ["program_html"], "program_html": [3]}, "a page must be an object"),
        ({"eval_types": ["program_html"], "program_html": [PAGE | {"url": None}]}, "texts url and locator"),
        ({"eval_types": ["program_html"], "program_html": [PAGE | {"locator": "#a"}]}, "no locator of the"),
        ({"eval_types": ["program_html"], "program_html": [PAGE | {"required_contents": {}}]}, "exact_match"),
        ({"eval_types": ["program_html", "url_match"], "program_html": [PAGE]}, "url_match is not valid"),
    ],
)
def test_a_check_that_no_agent_could_pass_is_named(check, problem):
    assert problem in problem_of(check)


def test_the_checks_of_our_own_tasks_are_valid():
    world = world_of(0)
    assert [number for number in range(0, 812, 4) if problem_of(world.task(number).check)] == []


@pytest.mark.parametrize(
    ("message", "by_page"),
    [
        ("Page.evaluate: TypeError: Cannot read properties of null (reading 'outerText')\n at eval", True),
        ("Page.evaluate: IndexSizeError: Failed to execute", True),
        ("Page.evaluate: SyntaxError: Failed to execute 'querySelector' on 'Document': 'div['", False),
        ("Page.evaluate: Execution context was destroyed, most likely because of a navigation", False),
        ("Page.evaluate: Target page, context or browser has been closed", False),
    ],
)
def test_an_error_of_a_script_is_the_pages_or_the_checks(message, by_page):
    from playwright.async_api import Error

    assert raised_by_page(Error(message)) is by_page


@pytest.mark.parametrize(
    ("url", "agents"),
    [("last", True), ("func:reddit_get_post_url('__last_url__')", True), ("http://shop/last", False)],
)
def test_a_page_is_the_agents_or_the_judges(url, agents):
    assert is_agents_page(url) is agents


def test_addresses_are_shown_as_webarenas():
    for placeholder, local in OWN_ADDRESSES.local.items():
        shown = OWN_ADDRESSES.shown(f"{local}/a?b=c")
        assert ".test" not in shown
        assert OWN_ADDRESSES.opened(shown) == f"{local}/a?b=c" == OWN_ADDRESSES.fill(f"{placeholder}/a?b=c")
        assert OWN_ADDRESSES.opened(shown.replace("http:", "https:")) == f"{local}/a?b=c"


def node(number, role, name, children=(), **properties):
    made = {
        "nodeId": str(number),
        "backendDOMNodeId": number,
        "role": {"value": role},
        "name": {"value": name},
    }
    listed = [{"name": key, "value": {"value": value}} for key, value in properties.items()]
    return made | {"childIds": [str(child) for child in children], "properties": listed}


def test_a_tree_is_written_as_agentgyms_server_does():
    """As in its recordings: bare roles, what is outside the window, and repeated texts are left out."""
    nodes = [
        node(9, "RootWebArea", "Mini Shop", [4, 5, 6, 7, 8], focused=True, url="http://shop/"),
        node(4, "heading", "Mini Shop", [14], level=1),
        node(14, "StaticText", "Mini Shop"),
        node(5, "generic", "", [15]),
        node(15, "link", "It's blue", focusable=True, url="http://shop/blue"),
        node(6, "form", "", [16]),
        node(16, "textbox", "Search", required=False),
        node(7, "StaticText", "below"),
        node(8, "StaticText", "tall"),
    ]
    boxes = {4: (8, 8, 100, 30), 14: (8, 8, 50, 30), 5: (8, 40, 9, 9), 15: (8, 50, 9, 9), 6: (8, 60, 9, 9)}
    boxes |= {16: (8, 60, 9, 9), 7: (8, 900, 9, 9), 8: (8, 700, 9, 90)}
    assert set(boxes) | {9} == {*nodes_with_line(nodes), 5}
    numbers = Numbers()
    page = page_text(nodes, boxes, numbers)
    assert page.text == (
        "[1] RootWebArea 'Mini Shop' focused: True url: http://shop/\n"
        "\t[2] heading 'Mini Shop'\n"
        '\t[4] link "It\'s blue" url: http://shop/blue\n'
        "\t[5] form ''\n"
        "\t\t[6] textbox 'Search' required: False\n"
        "\t[7] StaticText 'tall'"
    )
    assert page.elements["4"].center == (12.5, 54.5)
    assert page_text(nodes, boxes, numbers).text == page.text
    boxes[7] = (8, 600, 9, 9)
    assert "[8] StaticText 'below'" in page_text(nodes, boxes, numbers).text


@pytest.mark.parametrize(
    ("box", "shown"),
    [
        ((0, 0, 100, 0), False),
        ((0, 0, 0, 100), False),
        ((0, 0, 50, 0.7), False),  # all of it is in the window, and .7 times .7 is .49
        ((0, 0, 50, 0.8), True),
        ((0, 719.5, 400, 30), True),  # half a pixel of 30
        ((0, 719.99, 400, 30), False),
        ((-399, 100, 400, 20), True),  # one pixel of 400, 20 high
        ((1279, 100, 4000, 20), False),
        ((0, 720, 400, 30), False),
        ((1280, 0, 400, 30), False),
        ((-50, -50, 50, 50), False),
    ],
)
def test_the_height_of_an_element_counts_as_in_webarenas_formula(box, shown):
    nodes = [node(9, "RootWebArea", "", [4]), node(4, "button", "Go")]
    assert ("button 'Go'" in page_text(nodes, {4: box}, Numbers()).text) == shown
    assert "button" not in page_text(nodes, {}, Numbers()).text  # an element without a box


def test_a_text_is_left_out_if_one_of_three_lines_before_has_it():
    names = ["Cart 12", "12", "art", "other", "3", "x y", "z", "art"]
    nodes = [node(90, "RootWebArea", "", range(1, 9))]
    nodes += [node(number, "StaticText", name) for number, name in enumerate(names, 1)]
    nodes[1:1] = [node(10, "link", "the statictext of Cart")]
    nodes[0]["childIds"].insert(0, "10")
    shown = page_text(nodes, dict.fromkeys(range(1, 11), (9, 9, 9, 9)), Numbers()).text
    texts = [line.partition(" ")[2] for line in shown.split("\n")[1:]]
    # A link of this name is left out, too; and a "3" after "[3] StaticText 'Cart 12'".
    assert texts == [f"StaticText {name!r}" for name in ("Cart 12", "other", "x y", "z", "art")]
