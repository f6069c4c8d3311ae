"""The common parts of the sites: routes, visits and accounts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agentgym_servers.webarena._sites.html import document, form, link, tag
from agentgym_servers.webarena._sites.html import field as html_field

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from agentgym_servers.webarena._sites.state import SiteState

__all__ = ["NotFound", "Response", "Site", "Visit", "address", "or_404", "redirect", "signed_in_cookie"]

COOKIE = "session"

_T = TypeVar("_T")


def redirect(path: str) -> RedirectResponse:
    """Return a response that makes the browser open another page, also after a form."""
    return RedirectResponse(path, 303)


def address(path: str, **query: str | int) -> str:
    """Return a path with a query."""
    return f"{path}?{urlencode(query)}"


def signed_in_cookie(user: str) -> str:
    """Return the value of the cookie of a user who is signed in."""
    return f"u-{user}"


class NotFound(HTTPException):
    """There is no such page."""

    def __init__(self) -> None:
        super().__init__(404)


def or_404(thing: _T | None) -> _T:
    """Return a thing that is not None.

    Raises:
        NotFound: It is None.
    """
    if thing is None:
        raise NotFound
    return thing


@dataclass(frozen=True)
class Visit:
    """One request to a site.

    Attributes:
        site: The site.
        state: The state of all sites of the episode, which a handler may change.
        user: The name of the signed-in user; empty if there is none.
        fields: The fields of the query and of the form; a field of the form wins.
    """

    site: Site
    state: SiteState
    user: str
    fields: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        """Return a field."""
        return self.fields.get(name, default).strip()

    def number(self, name: str, default: int) -> int:
        """Return a field that is a whole number from 0 to 99999; the default if it is not."""
        value = self.text(name)
        return int(value) if re.fullmatch(r"[0-9]{1,5}", value) else default

    def page(self, title: str, *body: object, status: int = 200) -> HTMLResponse:
        """Return a page of the site."""
        if self.user:
            account = [link("Sign out", f"{self.site.root}/logout")]
        else:
            account = [link("Sign in", f"{self.site.root}/login")] if self.site.accounts else []
        navigation = [*self.site.menu, *account]
        return HTMLResponse(document(f"{title} - {self.site.title}", navigation, *body), status)


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
        self.key, self.title, self.root, self.accounts = key, title, root, accounts
        self.menu = [link(text, root + path) for text, path in menu]
        self._app = Starlette(exception_handlers={404: self._not_found, 405: self._not_found})
        self._app.router.redirect_slashes = False
        if accounts:
            self.get("/login")(_login_page)
            self.post("/login")(_login)
            self.get("/logout")(_logout)

    def get(self, path: str, *, signed_in: bool = False) -> Callable[[Handler], Handler]:
        """Return a decorator of the handler of a page.

        Args:
            path: The path as Starlette writes it, whose parameters are the arguments after the visit.
            signed_in: Whether the user has to sign in first.
        """
        return self._route("GET", path, signed_in)

    def post(self, path: str, *, signed_in: bool = False) -> Callable[[Handler], Handler]:
        """Return a decorator of the handler of a form, with the same arguments as `get`."""
        return self._route("POST", path, signed_in)

    def _route(self, method: str, path: str, signed_in: bool) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            async def endpoint(request: Request) -> Response:
                visit = self._visit(request, await request.body())
                if signed_in and not visit.user:
                    return redirect(f"{self.root}/login")
                return handler(visit, **request.path_params)

            self._app.add_route(_without_slash(self.root + path), endpoint, [method])
            return handler

        return add

    def _visit(self, request: Request, form: bytes = b"") -> Visit:
        state: SiteState = request.state.sites
        cookie = request.cookies.get(COOKIE)
        names = (name for name in state.accounts(self.key) if cookie == signed_in_cookie(name))
        fields = (request.scope["query_string"] + b"&" + form).decode("latin-1")
        return Visit(self, state, next(names, ""), dict(parse_qsl(fields, keep_blank_values=True)))

    async def _not_found(self, request: Request, _error: Exception) -> Response:
        return self._visit(request).page("Not found", tag("h1", "404 Not found"), status=404)

    def app(self, state: SiteState) -> ASGIApp:
        """Return the site in the state of one episode as an ASGI application."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            path = _without_slash(scope["path"])
            await self._app({**scope, "path": path, "state": {"sites": state}}, receive, send)

        return app


def _without_slash(path: str) -> str:
    return path.rstrip("/") or "/"


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
    response = redirect(f"{visit.site.root}/")
    response.set_cookie(COOKIE, signed_in_cookie(name))
    return response


def _logout(visit: Visit) -> Response:
    response = redirect(f"{visit.site.root}/")
    response.delete_cookie(COOKIE)
    return response
