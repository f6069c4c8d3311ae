"""Find the price of a product with tool calls, and answer with it."""

from __future__ import annotations

import random
import re
import string

import gymnasium

from seeded_defects.text_game import SolutionPlayer, TextGame

MAKES = (  # noqa: SIM905 - shorter than a list
    "antique brass ceramic copper cork cotton folding glass granite iron leather linen marble "
    "nylon oak paper pine plastic rubber silk slate steel velvet wicker woolen"
).split()
PRODUCTS = (  # noqa: SIM905 - shorter than a list
    "basket bench bowl box candle chair clock cup desk fan hat jug kettle lamp mat mirror plate "
    "shelf stool vase"
).split()
PRINTABLE = string.ascii_letters + string.digits + string.punctuation + " \n"


def product_of(task: int) -> str:
    """Return the product that a task is about; no two tasks have the same."""
    number = (7 * task + 11) % 500
    return f"{MAKES[number % 25]} {PRODUCTS[number // 25]}"


def price_of(task: int) -> int:
    """Return the price in cents of a task's product; no two tasks have the same."""
    return 1009 + (task * 3571 + 77) % 8713


def solution(task: int) -> list[str]:
    """Return the calls that answer the question of a task."""
    product = product_of(task)
    return [f"search[{product.split()[1]}]", f"open[{product}]", f"answer[{price_of(task)}]"]


class PriceShop(TextGame):
    """Answer a question about a price within 8 turns. One answer is allowed.

    Both the game and the registration limit the turns.
    """

    max_turns = 8
    system_prompt = (
        "Answer the question about a shop. Call one tool per turn:\n"
        "search[WORD] lists the products with that word, for example: search[spoon]\n"
        "open[PRODUCT] shows a product, for example: open[silver spoon]\n"
        "answer[CENTS] ends the task, for example: answer[250]"
    )

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gymnasium.spaces.Text(2000, min_length=0, charset=PRINTABLE)
        self.action_space = gymnasium.spaces.Text(200, min_length=0, charset=PRINTABLE)

    def goal(self) -> str:
        """Return the question."""
        return f"What is the price of the {self.product}, in cents?"

    def start(self, task: int) -> str:
        """Open the shop."""
        self.product, self.price = product_of(task), self.price_in(task)
        self.prices = self.catalogue(task)
        self.answered = False
        return f"Question: {self.goal()}"

    def price_in(self, task: int) -> int:
        """Return the right answer of a task."""
        return price_of(task)

    def catalogue(self, task: int) -> dict[str, int]:
        """Return the prices of the products of a task's shop."""
        rng = random.Random(f"shop/{task}")  # noqa: S311
        _, kind = self.product.split()
        same = [f"{make} {kind}" for make in rng.sample(MAKES, 5)]
        others = [f"{rng.choice(MAKES)} {other}" for other in rng.sample(PRODUCTS, 5)]
        prices = {product: rng.randrange(1000, 9999) for product in (*same, *others)}
        return {**prices, self.product: self.price}

    def is_finished(self) -> bool:
        """Return whether the question is answered."""
        return self.answered

    def play(self, action: str) -> tuple[str, float]:
        """Call one tool."""
        match = re.fullmatch(r"(search|open|answer)\[([^\[\]\n]{0,60})\]", action.strip())
        if match is None:
            return "Error: call search[WORD], open[PRODUCT] or answer[CENTS].", 0.0
        tool, argument = match[1], match[2].strip()
        if tool == "search":
            return self.search(argument), 0.0
        if tool == "open":
            return self.open(argument), 0.0
        self.answered = True
        self.won = argument == str(self.price)
        return ("Correct.", 1.0) if self.won else ("Wrong.", 0.0)

    def search(self, word: str) -> str:
        """List the products with a word."""
        products = sorted(product for product in self.prices if word in product.split())
        return f"Products: {', '.join(products)}." if products else "No product found."

    def open(self, product: str) -> str:
        """Show a product."""
        if product not in self.prices:
            return "No such product."
        return f"{product}: {self.prices[product]} cents. Delivery takes three days."


class Solver(SolutionPlayer):
    """Searches, opens and answers."""

    solution = staticmethod(solution)
