"""Solutions of the pages that look like sites: mail, search, news, a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from agentgym_servers.miniwob._solutions.page_view import Line, NoSolution, PageView

if TYPE_CHECKING:
    from agentgym_gym.actions import Action

__all__ = ["SITES"]


def _mail(view: PageView) -> Iterator[Action]:
    sender, what, text = _errand(view.goal)
    thread = next(line for line in view.labelled("email-thread") if _sender(view, line).name == sender)
    if what in {"trash", "star"}:
        yield next(line for line in view.inside(thread) if what in line.label.split()).click()
        return
    yield _sender(view, thread).click()
    yield view.text("Reply" if what == "reply" else "Forward").click()
    if what == "reply":
        yield view.one("textbox", index=-1).enter(text)
        yield view.labelled("send-reply")[0].click()
    else:
        yield view.one("textbox").enter(text)
        yield view.labelled("send-forward")[0].click()


def _sender(view: PageView, thread: Line) -> Line:
    return next(line for line in view.inside(thread) if line.role == "StaticText")


def _errand(goal: str) -> tuple[str, str, str]:
    """Return the sender of a mail, the action to take, and the text of the reply or the receiver."""
    plain = re.search(r"Find the email by (\S+) and (.+)", goal)
    if plain is None:
        raise NoSolution(goal)
    sender, rest = plain.groups()
    if "trash" in rest:
        return sender, "trash", ""
    if "star" in rest:
        return sender, "star", ""
    if "reply" in rest:
        return sender, "reply", rest.split('"')[1]
    return sender, "forward", rest.removeprefix("forward that email to ").rstrip(".")


def _search(view: PageView) -> Iterator[Action]:
    query = view.quoted()[0]
    (nth,) = view.words(r"(\d+)\w\w search result")
    yield view.one("textbox").enter(query)
    yield view.one("button", "Search").click()
    page, index = divmod(int(nth) - 1, 3)
    if page:
        yield view.one("link", str(page + 1)).click()
    yield (view.labelled("search-title") or view.all("link"))[index].click()


def _posts(view: PageView) -> dict[int, str]:
    """Return the account of each post by the index of the post."""
    return dict(enumerate(line.name for line in view.all("StaticText") if line.name.startswith("@")))


def _one_post(view: PageView) -> Iterator[Action]:
    user, what = view.words(r'For the user (\S+), click on the "(.+)" button')
    index = next(index for index, name in _posts(view).items() if name == user)
    icons = {"Reply": "reply", "Retweet": "retweet", "Like": "like"}
    if what in icons:
        yield view.labelled(icons[what])[index].click()
        return
    yield view.labelled("more")[index].click()
    yield next(line for line in view.lines if line.name.startswith(what)).click()


def _some_posts(view: PageView) -> Iterator[Action]:
    what, number, user = view.words(r'Click the "(.+)" button on (all|\d+) posts? by (\S+) and')
    those = [index for index, name in _posts(view).items() if name == user]
    for index in those if number == "all" else those[: int(number)]:
        yield view.labelled(what.lower())[index].click()
    yield view.submit()


def _terminal(view: PageView) -> Iterator[Action]:
    ending = re.search(r"extension (\.\S+)", view.goal)
    yield view.one("textbox").enter("ls", then_enter=True)
    texts = [line.name for line in view.all("StaticText")]
    files = texts[texts.index("ls") + 1].split()
    fitting = [name for name in files if (name.endswith(ending[1]) if ending else "." not in name)]
    yield view.one("textbox").enter(f"rm {fitting[0]}", then_enter=True)


SITES: Mapping[str, Callable[[PageView], Iterator[Action]]] = {
    "email-inbox": _mail,
    "email-inbox-delete": _mail,
    "email-inbox-forward": _mail,
    "email-inbox-important": _mail,
    "email-inbox-noscroll": _mail,
    "email-inbox-reply": _mail,
    "email-inbox-star-reply": _mail,
    "search-engine": _search,
    "social-media": _one_post,
    "social-media-all": _some_posts,
    "social-media-some": _some_posts,
    "terminal": _terminal,
}
"""The solutions by the names of the pages."""
