"""Solutions of the pages with fields to fill."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from agentgym_gym.envs.webarena import Press
from agentgym_servers.miniwob._solutions.page_view import Line, NoSolution, PageView

if TYPE_CHECKING:
    from agentgym_gym.actions import Action

__all__ = ["FIELDS", "choose_date"]

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def choose_date(view: PageView, month: int, day: int) -> Iterator[Action]:
    """Choose a day of the year that the calendar shows; the calendar is open."""
    while True:
        shown = next((_MONTHS.index(line.name) + 1 for line in view.lines if line.name in _MONTHS), month)
        if shown == month:
            break
        yield view.named("Prev" if shown > month else "Next").click()
    yield view.one("link", str(day)).click()


def _date(view: PageView) -> Iterator[Action]:
    month, day, _ = map(int, view.words(r"(\d+)/(\d+)/(\d+)"))
    yield view.one("textbox").click()
    yield from choose_date(view, month, day)
    yield view.submit()


def _list(view: PageView) -> Iterator[Action]:
    (name,) = view.words(r"Select (.+) from the list")
    yield view.one("combobox").enter(name, then_enter=True)
    yield view.submit()


def _copy(view: PageView) -> Iterator[Action]:
    nth = re.search(r"(\d)\w\w text area", view.goal)
    fields = view.all("textbox")
    answer = next(line for line in fields if "answer-input" in line.label)
    areas = [line for line in fields if line is not answer]
    yield areas[int(nth[1]) - 1 if nth else 0].click()
    yield Press("Control+a")
    yield Press("Control+c")
    yield answer.click()
    yield Press("Control+v")
    yield view.submit()


def _last_word(view: PageView) -> Iterator[Action]:
    word = re.sub(r"\W+$", "", view.one("textbox").value).split()[-1]
    yield view.one("textbox", index=1).enter(word)
    yield view.submit()


def _typed(view: PageView) -> Iterator[Action]:
    text = view.quoted()[0]
    if "upper case" in view.goal:
        text = text.upper()
    elif "lower case" in view.goal:
        text = text.lower()
    for index in range(len(view.all("textbox"))):
        yield view.one("textbox", index=index).enter(text)
    yield view.submit()


def _calendar_field(view: PageView) -> Iterator[Action]:
    month, day, year = view.words(r"(\d+)/(\d+)/(\d+)")
    yield view.one("Date").click()  # the day
    yield Press("ArrowLeft")
    yield Press("ArrowLeft")
    for digit in month + day + year:
        yield Press(digit)
    yield view.submit()


def _clock_field(view: PageView) -> Iterator[Action]:
    hour, minute, half = view.words(r"(\d+):(\d+) ([AP]M)")
    yield view.one("InputTime").enter(f"{int(hour):02}{minute}{half}")
    yield view.submit()


def _word(view: PageView) -> Iterator[Action]:
    (nth,) = view.words(r"(\d+)\w\w word")
    words = " ".join(line.name for line in view.all("StaticText")).split()
    yield view.one("textbox").enter(re.sub(r"\W+$", "", words[int(nth) - 1]))
    yield view.submit()


def _radio_and_text(view: PageView) -> Iterator[Action]:
    radio, number, field = view.words(r'(\d)\w\w radio button and enter the number "(.+)" into the (\d)')
    yield view.one("radio", index=int(radio) - 1).click()
    yield view.one("textbox", index=int(field) - 1).enter(number)
    yield view.submit()


def _guess(view: PageView) -> Iterator[Action]:
    low, high = 0, 9
    while low <= high:
        guess = (low + high) // 2
        yield from _replace(view, str(guess))
        yield view.submit()
        text = " ".join(line.name for line in view.all("StaticText"))
        if "lower" in text:
            high = guess - 1
        elif "higher" in text:
            low = guess + 1
        else:
            raise NoSolution(text)


def _replace(view: PageView, number: str) -> Iterator[Action]:
    """Type a number in place of the one in the field."""
    yield view.one("spinbutton").click()
    yield Press("Control+a")
    for letter in number:
        yield Press(letter)


def _login(view: PageView) -> Iterator[Action]:
    for index, text in enumerate(view.quoted(2)[:2]):
        yield view.one("textbox", index=index).enter(text)
        if view.all("button", "Cancel"):  # of a message over the fields
            yield view.one("button", "Cancel").click()
            yield view.one("textbox", index=index).enter(text)
    yield view.one("button").click()


def _film(view: PageView) -> Iterator[Action]:
    genre, name, year = view.words(r"Search for (.+) movies directed by (.+) from year (\d+)")
    words = {"genre": genre, "director": name, "year": year, "date": year}
    fields = view.all("textbox")
    labels = [_nearest(view, field, words) for field in fields]
    if "" in labels or len(set(labels)) < len(fields):
        labels = [_nearest(view, field, words, after=True) for field in fields]
    for index, label in enumerate(labels):
        yield view.one("textbox", index=index).enter(words[label])
    yield view.lines[-1].click()


def _nearest(view: PageView, field: Line, words: Iterable[str], *, after: bool = False) -> str:
    """Return the word in the name of a field, or else in the nearest text before or after it."""
    place = view.lines.index(field)
    lines = view.lines[place + 1 :] if after else view.lines[: place + 1][::-1]
    texts = (line.name.lower() for line in [field, *lines])
    return next((word for text in texts for word in words if word in text), "")


def _table(view: PageView) -> Iterator[Action]:
    cells = [line.name for line in view.all("cell")]
    table = dict(zip(cells[::2], cells[1::2], strict=True))
    label = re.search(r"value of (.+) into", view.goal)
    names = [label[1]] if label else [line.name.rstrip(":") for line in view.all("StaticText")]
    for index, name in enumerate(names):
        yield view.one("textbox", index=index).enter(table[name])
    yield view.submit()


def _algebra(view: PageView) -> Iterator[Action]:
    sum_ = re.fullmatch(r"(\S+) ([-+]) (\S+) = (\S+)", view.all("StaticText")[0].name.strip())
    if sum_ is None:
        raise NoSolution(view.lines[1].name)
    left, sign, right, total = sum_.groups()
    if left == "x":
        answer = int(total) - int(right) if sign == "+" else int(total) + int(right)
    else:
        answer = int(total) - int(left) if sign == "+" else int(left) - int(total)
    yield view.one("textbox").enter(str(answer))
    yield view.submit()


def _arithmetic(view: PageView) -> Iterator[Action]:
    text = " ".join(line.name for line in view.all("StaticText"))
    match = re.search(r"(-?\d+) ([-+x*]) (-?\d+)", text)
    if match is None:
        raise NoSolution(text)
    one, sign, two = int(match[1]), match[2], int(match[3])
    yield view.one("textbox").enter(str({"+": one + two, "-": one - two}.get(sign, one * two)))
    yield view.submit()


def _letters(view: PageView) -> Iterator[Action]:
    yield view.one("textbox").enter("".join(line.name for line in view.all("StaticText")).strip())
    yield view.submit()


def _autocomplete(view: PageView) -> Iterator[Action]:
    start, *end = view.quoted()
    yield view.one("textbox").enter(start.strip())
    names = [line.name for line in view.all("StaticText")] + [line.name for line in view.all("menuitem")]
    fitting = [name for name in names if name.startswith(start) and name.endswith(end[0] if end else "")]
    if not fitting:
        raise NoSolution(view.goal)
    yield view.named(fitting[0]).click()
    yield view.submit()


FIELDS: Mapping[str, Callable[[PageView], Iterator[Action]]] = {
    "choose-date": _date,
    "choose-date-easy": _date,
    "choose-date-medium": _date,
    "choose-date-nodelay": _date,
    "choose-list": _list,
    "copy-paste": _copy,
    "copy-paste-2": _copy,
    "enter-date": _calendar_field,
    "enter-password": _typed,
    "enter-text": _typed,
    "enter-text-2": _typed,
    "enter-text-dynamic": _typed,
    "enter-time": _clock_field,
    "find-word": _word,
    "form-sequence-2": _radio_and_text,
    "guess-number": _guess,
    "login-user": _login,
    "login-user-popup": _login,
    "multi-layouts": _film,
    "multi-orderings": _film,
    "read-table": _table,
    "read-table-2": _table,
    "scroll-text": _last_word,
    "simple-algebra": _algebra,
    "simple-arithmetic": _arithmetic,
    "text-transform": _letters,
    "use-autocomplete": _autocomplete,
    "use-autocomplete-nodelay": _autocomplete,
}
"""The solutions by the names of the pages."""
