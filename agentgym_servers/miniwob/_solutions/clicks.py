"""Solutions of the pages that need clicks only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from agentgym_gym.envs.webarena import Hover, Press
from agentgym_servers.miniwob._solutions.page_view import NoSolution, PageView

if TYPE_CHECKING:
    from agentgym_gym.actions import Action

__all__ = ["CLICKS"]


def _in_order(view: PageView) -> Iterator[Action]:
    yield view.text("1").click()
    while True:  # the other numbers are covered now, in ascending order
        yield view.labelled("rect")[0].click()


def _buy_ticket(view: PageView) -> Iterator[Action]:
    (goal,) = view.words(r"ticket with the (.+?)\.?$")
    buttons = view.all("button")
    if "cost" in goal or "price" in goal:
        sizes = [int(button.name.split("$")[1]) for button in buttons]
    else:
        times = [re.fullmatch(r"(\d+)h (\d+)m", line.name) for line in view.all("StaticText")]
        sizes = [int(m[1]) * 60 + int(m[2]) for m in times if m is not None]
    most = any(word in goal for word in ("most", "longest", "highest"))
    yield buttons[sizes.index(max(sizes) if most else min(sizes))].click()


def _quoted_button(view: PageView) -> Iterator[Action]:
    yield view.one("button", view.quoted()[0]).click()


def _named_buttons(view: PageView) -> Iterator[Action]:
    for name in re.findall(r"button (ONE|TWO)", view.goal):
        yield view.one("button", name).click()


def _only_button(view: PageView) -> Iterator[Action]:
    yield view.one("button").click()


def _boxes(view: PageView) -> Iterator[Action]:
    (names,) = view.words(r"Select (.*?) and click Submit")
    if names != "nothing":
        for name in names.split(", "):
            yield next(
                line for line in view.lines if line.name == name and line.role in {"checkbox", "radio"}
            ).click()
    yield view.submit()


def _unfold(view: PageView) -> Iterator[Action]:
    yield view.one("tab").click()
    yield view.one("button", "Submit").click()


def _link_in_folds(view: PageView) -> Iterator[Action]:
    name = view.quoted()[0]
    for index in range(len(view.all("tab"))):
        if found := _links(view, name):
            yield found[0]
            return
        yield view.one("tab", index=index).click()
    yield from _links(view, name)[:1]


def _links(view: PageView, name: str) -> list[Action]:
    links = [line for line in view.labelled("alink") if any(text.name == name for text in view.inside(line))]
    return [link.click() for link in links]


def _link(view: PageView) -> Iterator[Action]:
    yield from _links(view, view.quoted()[0])[:1]


def _close(view: PageView) -> Iterator[Action]:
    yield view.one("button", "Close").click()


def _dialog(view: PageView) -> Iterator[Action]:
    name = view.quoted()[0]
    yield view.one("button", "Close" if name == "x" else name).click()


def _menu(view: PageView) -> Iterator[Action]:
    (path,) = view.words(r"Select (.+)")
    *around, last = path.split(">")
    for name in around:  # a click would select it
        yield Hover(view.one("menuitem", name).number)
    yield view.one("menuitem", last).click()


def _tab(view: PageView) -> Iterator[Action]:
    (name,) = view.words(r"Click on (Tab #\d+)")
    yield view.one("link", name).click()


def _widget(view: PageView) -> Iterator[Action]:
    kind = view.quoted()[0]
    roles = {"button": "button", "checkbox": "checkbox", "radio": "radio"}
    if kind in roles:
        yield view.one(roles[kind]).click()
        return
    fields = view.all("textbox")
    texts = [line for line in fields if line.label or "class: " in line.rest]
    areas = [line for line in fields if line not in texts]
    yield (areas if kind == "textarea" else texts)[0].click()


def _greatest(view: PageView) -> Iterator[Action]:
    count = len(view.labelled("card"))
    best, most = 0, -1
    for index in range(count):
        yield view.labelled("card")[index].click()
        shown = [text.name for text in view.inside(view.labelled("card")[index])]
        number = int(next((text for text in shown if text.isdigit()), "-1"))
        if number > most:
            best, most = index, number
    if best != count - 1:
        yield view.labelled("card")[best].click()
    yield view.submit()


def _odd_or_even(view: PageView) -> Iterator[Action]:
    numbers = [int(line.name) for line in view.all("StaticText")]
    for index, number in enumerate(numbers):
        yield view.one("button", "Odd" if number % 2 else "Even", index).click()
    yield view.submit()


def _tree(view: PageView) -> Iterator[Action]:
    name = view.quoted()[0]
    opened: set[int] = set()
    while True:
        found = [line for line in view.all("StaticText") if line.name == name]
        if found:
            yield found[0].click()
            return
        closed = [line for line in view.labelled("expandable-hitarea") if line.number not in opened]
        if not closed:
            raise NoSolution(name)
        opened.add(closed[0].number)
        yield closed[0].click()


def _food(view: PageView) -> Iterator[Action]:
    dishes: dict[str, list[str]] = {}
    name = ""
    for line in view.lines:
        if line.role == "StaticText" and line.name not in {"+", "-"}:
            name = line.name
            dishes[name] = []
        elif line.role == "image" and name:
            dishes[name].append(line.name)
    if view.goal.startswith("Order one of each item: "):
        goal = view.goal.split(": ")[1].split(", ")
    else:
        number, kind = view.words(r"Order (\d+) items? that are (.+)")
        goal = [dish for dish, kinds in dishes.items() if kind in kinds]
        goal = (goal * int(number))[: int(number)]
    order = list(dishes)
    for dish in goal:
        yield view.labelled("add")[order.index(dish)].click()
    yield view.one("button", "Order!").click()


def _contact(view: PageView) -> Iterator[Action]:
    name, what = view.words(r"Find (\S+) in the contact book and click on their (phone number|email|address)")
    label = {"phone number": "Phone:", "email": "Email:", "address": "Address:"}[what]
    while view.one("heading").name != name:
        yield view.one("link", ">").click()
    yield next(line for line in view.after(view.text(label)) if line.role == "link").click()


def _agreement(view: PageView) -> Iterator[Action]:
    if "Scroll" in view.goal:
        name, button = view.quoted(2)[:2]
        yield view.one("textbox").click()
        yield Press("Control+End")
        yield view.one("textbox", "Name").enter(name)
        yield view.one("button", button).click()
    else:
        yield view.one("button", "Cancel").click()


def _focus(view: PageView) -> Iterator[Action]:
    nth = re.search(r"(\d)\w\w input", view.goal)
    yield view.one("textbox", index=int(nth[1]) - 1 if nth else 0).click()


def _generate(view: PageView) -> Iterator[Action]:
    yield view.one("button", "Generate").click()
    while not _fits(view):
        yield view.one("button", "Generate").click()
    yield view.submit()


def _fits(view: PageView) -> bool:
    number = int(view.all("StaticText")[0].name)
    if "even" in view.goal or "odd" in view.goal:
        return number % 2 == ("odd" in view.goal)
    relation, bound = view.words(r"(less|greater) than (-?\d+)")
    return number < int(bound) if relation == "less" else number > int(bound)


CLICKS: Mapping[str, Callable[[PageView], Iterator[Action]]] = {
    "ascending-numbers": _in_order,
    "buy-ticket": _buy_ticket,
    "click-button": _quoted_button,
    "click-button-sequence": _named_buttons,
    "click-checkboxes": _boxes,
    "click-checkboxes-large": _boxes,
    "click-checkboxes-transfer": _boxes,
    "click-collapsible": _unfold,
    "click-collapsible-2": _link_in_folds,
    "click-collapsible-2-nodelay": _link_in_folds,
    "click-collapsible-nodelay": _unfold,
    "click-dialog": _close,
    "click-dialog-2": _dialog,
    "click-link": _link,
    "click-menu": _menu,
    "click-option": _boxes,
    "click-tab": _tab,
    "click-tab-2": _link_in_folds,
    "click-tab-2-easy": _link_in_folds,
    "click-tab-2-hard": _link_in_folds,
    "click-tab-2-medium": _link_in_folds,
    "click-test": _only_button,
    "click-test-2": _named_buttons,
    "click-test-transfer": _named_buttons,
    "click-widget": _widget,
    "find-greatest": _greatest,
    "focus-text": _focus,
    "focus-text-2": _focus,
    "generate-number": _generate,
    "navigate-tree": _tree,
    "odd-or-even": _odd_or_even,
    "order-food": _food,
    "phone-book": _contact,
    "sign-agreement": _agreement,
    "unicode-test": _quoted_button,
}
"""The solutions by the names of the pages."""
