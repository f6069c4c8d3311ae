"""WebArena's own evaluators, imported from a checkout of WebArena, and pages for them and for ours.

The checkout is not part of this repository: the variable ``WEBARENA`` names it. ``make webarena
WEBARENA=../webarena`` runs the tests that use it. Nothing of its code is changed: modules that the evaluators
import and do not need are replaced, and so are the shop's interface, the language model and the clock.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import needs

__all__ = ["NO_SCORE", "BlockingPage", "Originals", "ScriptedPage", "ScriptedTabs", "draws"]

NO_SCORE = "no score"
"""The result of a check that raises an error."""

_SITES = ("REDDIT", "SHOPPING", "SHOPPING_ADMIN", "GITLAB", "WIKIPEDIA", "MAP", "HOMEPAGE")


def draws(seed: int) -> random.Random:
    """Return a source of random choices."""
    return random.Random(seed)  # noqa: S311 - nothing secret


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(members)
    return module


class Originals:
    """WebArena's evaluators; the tests of the importing file are skipped without a checkout.

    Attributes:
        sleeps: The seconds of each wait that WebArena would have made.
        judge: Returns the reply of the language model to its question.
    """

    def __init__(self) -> None:
        needs.skip_without("webarena", "punkt", "playwright", "requests")
        account = {"username": "admin", "password": "admin1234"}
        stand_ins = [
            _module("beartype", beartype=lambda function: function),
            _module("browser_env"),
            _module("browser_env.actions", Action=dict),
            _module("browser_env.utils", StateInfo=dict),
            _module(
                "browser_env.env_config",
                ACCOUNTS={"shopping_site_admin": account},
                **{name: f"http://{name.lower()}.example" for name in _SITES},
            ),
            _module("llms"),
            _module("llms.providers"),
            _module(
                "llms.providers.openai_utils",
                generate_from_openai_chat_completion=lambda messages, **_: self.judge(
                    messages[-1]["content"]
                ),
            ),
        ]
        path = [str(Path(os.environ["WEBARENA"]).resolve()), *sys.path]
        with mock.patch.dict(sys.modules, {each.__name__: each for each in stand_ins}):
            with mock.patch.object(sys, "path", path):
                self._evaluators = importlib.import_module("evaluation_harness.evaluators")
            self._helpers = sys.modules["evaluation_harness.helper_functions"]
        self.sleeps: list[float] = []
        self._evaluators.time = SimpleNamespace(sleep=self.sleeps.append)
        self.judge: Callable[[str], str] = _no_judge

    def score(self, config: Path, answer: str, page: Any) -> Any:
        """Return the score of an episode, or `NO_SCORE` if a check raises an error."""
        self.sleeps.clear()
        self._helpers.requests = getattr(page, "shop", None)
        try:
            return self._evaluators.evaluator_router(config)([{}, {"answer": answer}], config, page, None)
        except Exception:  # noqa: BLE001 - whatever its code raises
            return NO_SCORE


def _no_judge(_question: str) -> str:
    raise LookupError("this test has no judge")


class ScriptedPage:
    """A page whose checks read one value after another, for WebArena's evaluators.

    Args:
        url: The address at the end of the episode.
        locators: The locators of the check.
        values: What each page of the check has: the value of a script, or an exception that it raises.
    """

    def __init__(self, url: str, locators: Iterable[str], values: Iterable[Any]) -> None:
        self.url = url
        self._scripts = {f"() => {each}" for each in locators} | {
            f"() => {each.strip()}" for each in locators
        }
        self._values = iter(values)
        self.shop = SimpleNamespace(post=self._token, get=self._listed)

    def goto(self, url: str) -> None:
        self.url = url

    def content(self) -> str:
        return self._next()

    def evaluate(self, script: str, *arguments: Any) -> Any:
        if "return index" in script:  # the first of WebArena's two scripts for a role
            return 0
        role = "col-max-role" in script
        return self._next() if role or script in self._scripts else None

    def _next(self) -> Any:
        value = next(self._values)
        if isinstance(value, Exception):
            raise value
        return value

    def _token(self, url: str, **_: Any) -> Any:
        return SimpleNamespace(status_code=200, json=lambda: "token")

    def _listed(self, url: str, **_: Any) -> Any:
        if "/orders" in url:
            return SimpleNamespace(status_code=200, json=lambda: {"items": [{"increment_id": "000000170"}]})
        value = self._next()
        ratings = [{"rating_name": "Rating", "percent": value}]
        reviews = [{"nickname": "first", "ratings": ratings}, {"nickname": value, "ratings": ratings}]
        return SimpleNamespace(status_code=200, json=lambda: reviews if value else [])


class ScriptedTabs:
    """The same page for our evaluation, whose calls are awaited."""

    def __init__(self, page: ScriptedPage) -> None:
        self._page = page
        self.shown = self
        self.context = SimpleNamespace(request=self)

    @property
    def url(self) -> str:
        return self._page.url

    async def visit(self, url: str) -> int:
        self._page.goto(url)
        return 200

    async def content(self) -> str:
        return self._page.content()

    async def evaluate(self, script: str, *arguments: Any) -> Any:
        return self._page.evaluate(script, *arguments)

    async def ended(self) -> bool:
        return False

    async def post(self, url: str, **_: Any) -> Any:
        return _awaited(self._page.shop.post(url))

    async def get(self, url: str, **_: Any) -> Any:
        return _awaited(self._page.shop.get(url))


def _awaited(reply: Any) -> Any:
    async def json() -> Any:
        return reply.json()

    return SimpleNamespace(ok=True, status=200, url="", json=json)


class BlockingPage:
    """A real page with methods that block, as WebArena's code calls them, in a thread of its own."""

    def __init__(self, page: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._page, self._loop = page, loop

    @property
    def url(self) -> str:
        return self._page.url

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._page, name)
        return lambda *args: asyncio.run_coroutine_threadsafe(method(*args), self._loop).result(60)
