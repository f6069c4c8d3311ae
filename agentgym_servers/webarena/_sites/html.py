"""HTML from Python: every text is escaped, because models write some of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = [
    "Html",
    "button_form",
    "choice",
    "document",
    "facts",
    "field",
    "form",
    "items",
    "join",
    "link",
    "table",
    "tag",
    "text_area",
]

_STYLE = (
    "body{font:14px/1.3 sans-serif;margin:8px;max-width:1200px}"
    "nav a,nav form{margin-right:10px;display:inline}"
    "ul{list-style:none;padding:0}"
    "h1{font-size:20px;margin:8px 0}"
    "h2{font-size:16px;margin:8px 0}"
    "p,ul,table{margin:4px 0}"
    "td,th{padding:1px 8px;text-align:left;vertical-align:top}"
    "label{margin-right:8px}"
    "a{white-space:nowrap}"
    "td form,form.one{display:inline}"
    "input[type=text],input[type=password]{width:260px}"
    "textarea{width:500px;height:60px}"
)


_VOID = {"input", "br", "meta"}


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = object  # text, Html, a number, None, or an iterable of these


def join(*children: Child) -> Html:
    """Return children one after another; text is escaped."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escape(child))
        elif isinstance(child, Iterable):
            parts.append(join(*child))
        elif child is not None:
            parts.append(escape(str(child)))
    return Html("".join(parts))


def tag(element: str, /, *children: Child, **attributes: str | int | bool | None) -> Html:
    """Return an element.

    Args:
        element: Its name.
        children: Its content: text is escaped.
        attributes: Its attributes: an underscore at the end is left out, others are hyphens.
    """
    written = []
    for key, value in attributes.items():
        key_name = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {key_name}")
        elif value is not None and value is not False:
            written.append(f' {key_name}="{escape(str(value))}"')
    head = f"<{element}{''.join(written)}>"
    return Html(head if element in _VOID else f"{head}{join(*children)}</{element}>")


def link(text: Child, href: str) -> Html:
    """Return a link."""
    return tag("a", text, href=href)


def items(children: Iterable[Child], **attributes: str) -> Html:
    """Return a list."""
    return tag("ul", (tag("li", child) for child in children), **attributes)


def table(heads: Sequence[str], rows: Iterable[Sequence[Child]], **attributes: str) -> Html:
    """Return a table."""
    return tag(
        "table",
        tag("tr", (tag("th", head) for head in heads)) if heads else None,
        (tag("tr", (tag("td", cell) for cell in row)) for row in rows),
        **attributes,
    )


def facts(pairs: Iterable[tuple[str, Child]], **attributes: str) -> Html:
    """Return a table of names and values."""
    return tag("table", (tag("tr", tag("th", name), tag("td", value)) for name, value in pairs), **attributes)


def field(label: str, name: str, value: str = "", kind: str = "text") -> Html:
    """Return a line of text to fill in."""
    box = tag("input", type=kind, name=name, value=value or None, aria_label=label)
    return tag("p", tag("label", label, " "), box)


def text_area(label: str, name: str, value: str = "") -> Html:
    """Return an area of text to fill in."""
    return tag(
        "p", tag("label", label), tag("br"), tag("textarea", value, name=name, aria_label=label, id=name)
    )


def choice(label: str, name: str, options: Iterable[str], chosen: str = "") -> Html:
    """Return options of which one can be chosen."""
    return tag(
        "p",
        f"{label}: ",
        (
            tag(
                "label",
                tag("input", type="radio", name=name, value=option, checked=option == chosen),
                option,
            )
            for option in options
        ),
    )


def form(action: str, *children: Child, submit: str, method: str = "post") -> Html:
    """Return a form with a button."""
    return tag("form", *children, tag("button", submit), action=action, method=method)


def button_form(label: str, action: str) -> Html:
    """Return a button that posts to an address."""
    return tag("form", tag("button", label), action=action, method="post", class_="one")


def document(title: str, navigation: Child, *body: Child) -> Html:
    """Return a page."""
    head = tag("head", tag("meta", charset="utf-8"), tag("title", title), tag("style", Html(_STYLE)))
    return join(
        Html("<!doctype html>"),
        tag("html", head, tag("body", tag("nav", navigation), tag("main", *body)), lang="en"),
    )
