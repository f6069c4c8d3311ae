"""A visit to the shop: the pages that an agent sees, the items to click on them, and the purchase.

An action is ``search[keywords]`` or ``click[item]``. As on AgentGym's server, an item may be in any case,
only the first line is read, and an invalid action has no effect.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentgym_servers._frame.game_turn import GameTurn
from agentgym_servers.webshop._reward import reward

if TYPE_CHECKING:
    from agentgym_servers.webshop._products import Goal, Product

__all__ = ["PAGE_RESULTS", "Session", "keywords_of"]

PAGE_RESULTS = 10
"""The number of results per page, as on AgentGym's server."""

_MAX_ITEM = 2_000  # characters; no item has a longer name

_BACK, _NEXT, _PREV, _BUY = "Back to Search", "Next >", "< Prev", "Buy Now"
_SUB_PAGES = ("Description", "Features", "Reviews")
_SEPARATOR = " [SEP] "
_HTML_BLANKS = " \t\n\f\r"


class Session:
    """One task in play.

    Args:
        goal: The purchase to make.
        twin: Whether it behaves as on AgentGym's server, where a blank text leaves a gap on its page and each
            purchase pays.
    """

    def __init__(self, goal: Goal, *, twin: bool = False) -> None:
        self._goal = goal
        self._twin = twin
        self._page = "search"  # or results, item, done, or the name of a sub-page
        self._results: Sequence[Product] = ()
        self._number = 1  # of the page of results
        self._product = goal.product  # the last clicked one; meaningless before the first click
        self._chosen: dict[str, str] = {}
        self._paid: float | None = None

    def play(self, action: str, results: Sequence[Product] = ()) -> GameTurn:
        """Play one action.

        Args:
            action: The text.
            results: The results of the search, if `keywords_of` returns keywords.

        Returns:
            The page after the action, with the reward of a purchase, which ends the task.
        """
        name, argument = _parsed(action)
        if name == "search":
            self._page, self._results, self._number, self._chosen = "results", results, 1, {}
        elif name == "click" and len(argument) <= _MAX_ITEM and self._click(argument.lower()):
            return GameTurn(self.observation, self._paid or 0.0, done=True)
        return GameTurn(self.observation, 0.0)

    @property
    def has_search_bar(self) -> bool:
        """Whether this is the search page. A search is possible on every page."""
        return self._page == "search"

    @property
    def clickables(self) -> list[str]:
        """The items to click on the page, in lower case."""
        if self._page == "search":
            return ["search"]
        if self._page == "results":
            turns = [_PREV, _NEXT] if self._number > 1 else [_NEXT]
            names = [_BACK, *turns, *(product.asin for product in self._shown)]
        elif self._page == "item":
            names = [_BACK, _PREV, *_SUB_PAGES, _BUY]
            names += [value for values in self._product.options.values() for value in values]
        else:
            names = [] if self._page == "done" else [_BACK, _PREV]
        return list(dict.fromkeys(name.lower() for name in names))

    @property
    def instruction_text(self) -> str | None:
        """The instruction as the page displays it; None after a purchase."""
        if self._page == "done":
            return None
        # AgentGym's server has this blank only on the first page.
        return f"Instruction:{' ' if self._page == 'search' else ''}{self._goal.instruction}"

    @property
    def observation(self) -> str:
        """The page as text."""
        if self._page == "done":
            return _SEPARATOR.join(self._receipt)
        instruction = ["Instruction:", self._goal.instruction]
        search_page = ["WebShop", *instruction, "Search"]
        parts = search_page if self._page == "search" else [*instruction, _BACK, *self._body]
        return _SEPARATOR.join(part.strip() for part in parts if self._is_part(part))

    def _is_part(self, text: str) -> bool:
        """Return whether a text becomes a part of the page.

        AgentGym's server parses its pages by Beautiful Soup, and drops only blank texts with a line feed.
        """
        if self._twin:
            return bool(text.strip(_HTML_BLANKS) or (text and "\n" not in text))
        return bool(text.strip())

    @property
    def _shown(self) -> Sequence[Product]:
        return self._results[(self._number - 1) * PAGE_RESULTS : self._number * PAGE_RESULTS]

    @property
    def _body(self) -> list[str]:
        """The text of a page after its first button."""
        product = self._product
        if self._page == "results":
            results = [part for each in self._shown for part in (each.asin, each.name, each.price_tag)]
            back = [_PREV] if self._number > 1 else []
            return [f"Page {self._number} (Total results: {len(self._results)})", *back, _NEXT, *results]
        if self._page == "item":
            options = [part for name, values in product.options.items() for part in (name, *values)]
            price, rating = f"Price: {product.price_tag}", f"Rating: {product.rating}"
            return [_PREV, *options, product.name, price, rating, *_SUB_PAGES, _BUY]
        if self._page == "Reviews":
            return [
                _PREV,
                *(part for r in product.reviews for part in (f'"{r.title}"', str(r.stars), r.text)),
            ]
        features = [f" {line}" for line in product.features]  # the blank is on AgentGym's page
        return [_PREV, *(features if self._page == "Features" else [product.description])]

    @property
    def _receipt(self) -> list[str]:
        """The page after a purchase; like AgentGym's, it shows no more of the goal."""
        options = json.dumps(self._chosen, sort_keys=True)
        for letter in "<>&'":  # the characters that Flask escapes in JSON within a page
            options = options.replace(letter, f"\\u{ord(letter):04x}")
        empty = ("attrs", "None", "category", "None", "query", "None", "product category", "None")
        bought = ("Purchased", "asin", self._product.asin, "options", options, *empty)
        target = (
            "asin",
            "options",
            "attrs",
            "price upper",
            "instuction text",
            "category",
            "product category",
        )
        score = ("Reward", "Your score (min 0.0, max 1.0)", str(self._paid), "Reward Details", "None")
        code = ("Your code:", "None", "(Paste it in your MTurk interface.)")
        thanks = "Thank you for shopping with us!"
        return [thanks, *code, *bought, "Target", *target, "query", "Goal", "None", *score]

    def _click(self, item: str) -> bool:
        """Click an item if it is on the page; return whether that was a purchase."""
        if item not in self.clickables or self._page == "search":
            return False
        if item == _BACK.lower():
            self._page, self._results, self._number, self._chosen = "search", (), 1, {}
        elif self._page == "results":
            self._click_results(item)
        elif self._page == "item":
            return self._click_item(item)
        else:
            self._page = "item"  # a sub-page has no other items
        return False

    def _click_results(self, item: str) -> None:
        if item == _NEXT.lower():
            self._number += 1
        elif item == _PREV.lower():
            self._number -= 1
        else:
            self._product = next(each for each in self._shown if each.asin.lower() == item)
            self._page, self._chosen = "item", {}

    def _click_item(self, item: str) -> bool:
        if item == _BUY.lower():
            if self._paid is None or self._twin:
                self._paid = reward(self._product, self._chosen, self._goal).total
                self._page = "done"
                return True
        elif item == _PREV.lower():
            self._page, self._chosen = "results", {}
        elif item.capitalize() in _SUB_PAGES:
            self._page = item.capitalize()
        else:
            names = [name for name, values in self._product.options.items() if item in values]
            self._chosen[names[-1]] = item  # as on AgentGym's server, the last option with this value
        return False


def keywords_of(action: str) -> str | None:
    """Return the keywords of a search; None for any other action."""
    name, argument = _parsed(action)
    return argument if name == "search" else None


def _parsed(action: str) -> tuple[str, str]:
    r"""Return the name and the argument of an action, both empty if it has none.

    AgentGym's server extracts the same parts with the pattern ``(.+)\\[(.+)\\]``, which takes very long for
    some texts: the argument is the text in the last closed brackets of the first line.
    """
    line = action.partition("\n")[0]
    end = line.rfind("]")
    begin = line.rfind("[", 1, end - 1) if end > 0 else -1
    return ("", "") if begin < 0 else (line[:begin], line[begin + 1 : end])
