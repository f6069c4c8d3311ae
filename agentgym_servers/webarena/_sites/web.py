"""The common parts of the sites: requests, responses, routes and accounts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from agentgym_servers.webarena._sites.html import document, form, link, tag
from agentgym_servers.webarena._sites.html import field as html_field

if TYPE_CHECKING:
    from agentgym_servers.webarena._sites.state import State

__all__ = ["Request", "Response", "Site", "Visit", "address", "redirect", "signed_in_cookie"]

COOKIE = "session"


@dataclass(frozen=True)
class Request:
    """A request of the browser.

    Attributes:
        method: ``GET`` or ``POST``.
        host: The name of the site.
        path: The path without the query.
        query: The fields of the query; of those that are there twice, the last.
        form: The fields of the body.
        cookies: The cookies of the site.
    """

    method: str
    host: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    form: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """An answer to the browser."""

    html: str
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def redirect(path: str, *headers: tuple[str, str]) -> Response:
    """Return a response that makes the browser open another page."""
    return Response("", 303, (("Location", path), *headers))


def address(path: str, **query: str | int) -> str:
    """Return a path with a query."""
    return f"{path}?{urlencode(query)}" if query else path


def signed_in_cookie(user: str) -> str:
    """Return the value of the cookie of a user who is signed in."""
    return f"u-{user}"


@dataclass
class Visit:
    """One request to a site, with the state of all sites of the episode.

    Attributes:
        site: The site.
        state: The state, which a handler may change.
        request: The request.
        user: The name of the user who is signed in; empty if nobody is.
    """

    site: Site
    state: State
    request: Request
    user: str

    def text(self, name: str, default: str = "") -> str:
        """Return a field of the form, or of the query."""
        return self.request.form.get(name, self.request.query.get(name, default)).strip()

    def number(self, name: str, default: int) -> int:
        """Return a field that is a whole number from 0 to 99999; the default if it is not."""
        value = self.text(name)
        return int(value) if re.fullmatch(r"[0-9]{1,5}", value) else default

    def page(self, title: str, *body: object, status: int = 200) -> Response:
        """Return a page of the site."""
        if self.user:
            account = [link("Sign out", f"{self.site.root}/logout")]
        else:
            account = [link("Sign in", f"{self.site.root}/login")] if self.site.accounts else []
        links = [link(text, self.site.root + path) for text, path in self.site.menu]
        return Response(document(f"{title} - {self.site.title}", [*links, *account], *body), status)

    def missing(self) -> Response:
        """Return the page for an address that has none."""
        return self.page("Not found", tag("h1", "404 Not found"), status=404)


Handler = Callable[..., Response]


class Site:
    """A site: its routes.

    Args:
        key: Its name in WebArena's tasks, such as ``shopping``.
        title: Its title, at the end of the title of each page.
        menu: Texts and paths of the links on top of each page.
        root: The beginning of all paths.
        accounts: Whether users sign in.
    """

    def __init__(
        self,
        key: str,
        title: str,
        menu: tuple[tuple[str, str], ...],
        root: str = "",
        *,
        accounts: bool = True,
    ) -> None:
        self.key, self.title, self.menu, self.root, self.accounts = key, title, menu, root, accounts
        self._routes: list[tuple[str, re.Pattern[str], Handler, bool]] = []
        if accounts:
            self.get("/login")(_login_page)
            self.post("/login")(_login)
            self.get("/logout")(_logout)

    def get(self, pattern: str, *, signed_in: bool = False) -> Callable[[Handler], Handler]:
        """Return a decorator of the handler of a page.

        Args:
            pattern: A regular expression of the path, whose groups are the arguments after the visit.
            signed_in: Whether the user has to sign in first.
        """
        return self._route("GET", pattern, signed_in)

    def post(self, pattern: str, *, signed_in: bool = False) -> Callable[[Handler], Handler]:
        """Return a decorator of the handler of a form; the arguments are those of `get`."""
        return self._route("POST", pattern, signed_in)

    def _route(self, method: str, pattern: str, signed_in: bool) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            self._routes.append((method, re.compile(re.escape(self.root) + pattern), handler, signed_in))
            return handler

        return add

    def answer(self, state: State, request: Request) -> Response:
        """Answer a request."""
        cookie = request.cookies.get(COOKIE, "")
        user = cookie.removeprefix("u-") if cookie.startswith("u-") else ""
        if user not in state.accounts(self.key):
            user = ""
        visit = Visit(self, state, request, user)
        path = request.path.rstrip("/") or "/"
        if self.root and path == self.root:
            path += "/"
        for method, pattern, handler, signed_in in self._routes:
            match = pattern.fullmatch(path)
            if match is None or method != request.method:
                continue
            if signed_in and not user:
                return redirect(f"{self.root}/login")
            return handler(visit, *match.groups())
        return visit.missing()


def _login_page(visit: Visit) -> Response:
    wrong = tag("p", "The name or the password is wrong.") if visit.text("wrong") else None
    fields = (html_field("Username", "username"), html_field("Password", "password", kind="password"))
    return visit.page(
        "Sign in", tag("h1", "Sign in"), wrong, form(f"{visit.site.root}/login", *fields, submit="Sign in")
    )


def _login(visit: Visit) -> Response:
    name = visit.text("username")
    if not name or visit.state.accounts(visit.site.key).get(name) != visit.text("password"):
        return redirect(f"{visit.site.root}/login?wrong=1")
    return redirect(f"{visit.site.root}/", ("Set-Cookie", f"{COOKIE}={signed_in_cookie(name)}; Path=/"))


def _logout(visit: Visit) -> Response:
    return redirect(f"{visit.site.root}/", ("Set-Cookie", f"{COOKIE}=; Path=/; Max-Age=0"))
