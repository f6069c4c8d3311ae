"""Writes catalogues in the format of WebShop's official files, with options that are easily confused."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SIZES = (
    ("small", "medium", "large", "x-large", "xx-large"),
    ("8", "8.5", "9", "9.5", "10", "10.5 wide", "10 wide"),
    ("twin", "twin xl", "full", "queen", "king", "california king"),
    ("16 x 24 inch", "24 x 36 inch", '18" x 18"', '20" x 20"', "5 ft x 7 ft"),
    ("9 women/7.5 men", "9.5 women/8 men", "10 women/8.5 men"),
    ("3.4 fl oz", "1.7 fl oz", "3.4 fluid ounce"),
)
COLORS = (
    ("Black", "White", "Navy", "Navy Blue", "Dark Green", "Green", "Black/White"),
    ("Style 1", "Style 2", "Style 12", "A1", "A2", "Multi 1"),
    ("001 Red", "002 Red", "Red", "Pink", "Heather Gray", "Rose Gold", "Gold"),
)
PACKS = (
    ("Pack of 1", "Pack of 2", "Pack of 6", "Pack of 12"),
    ("1 Count", "12 Count", "12 Count (Pack of 1)", "12 Count (Pack of 2)"),
    ("3.5 Ounce (Pack of 1)", "3.5 Ounce (Pack of 12)", "8 Ounce (Pack of 2)"),
)
PACK_NAMES = ("Item Package Quantity", "Size Name", "Style", "Pack")
KINDS = (
    ("Cotton Crew Socks", "socks", "Clothing \u203a Men \u203a Socks", "men's socks"),
    ("Trail Running Shoes", "running shoes", "Clothing \u203a Women \u203a Shoes", "women's running shoes"),
    ("Roasted Almond Snack", "snacks", "Grocery \u203a Snacks \u203a Nuts", "nuts & seeds"),
    ("Velvet Throw Pillow Cover", "pillow covers", "Home \u203a Bedding \u203a Pillows", "throw pillows"),
    ("Daily Moisturizer Cream", "face creams", "Beauty \u203a Skin Care \u203a Creams", "face moisturizers"),
)
ATTRIBUTES = (
    "machine wash",
    "long lasting",
    "easy clean",
    "non slip",
    "gluten free",
    "high quality",
    "bpa free",
)


@dataclass(frozen=True)
class Catalogue:
    """Products and their entries in the file of instructions, by product number."""

    products: dict[str, dict[str, Any]]
    entries: dict[str, dict[str, Any]]

    def write(self, folder: Path) -> Path:
        """Write the files into a folder and return it."""
        (folder / "items_shuffle.json").write_text(json.dumps(list(self.products.values())), "utf-8")
        (folder / "items_ins_v2.json").write_text(json.dumps(self.entries), "utf-8")
        return folder

    def options(self, asin: str) -> dict[str, list[str]]:
        """Return the options of a product as its page shows them."""
        return {
            name.lower(): [each["value"].strip().replace("/", " | ").lower() for each in values]
            for name, values in self.products[asin]["customization_options"].items()
        }


def make_catalogue(count: int, seed: int) -> Catalogue:
    """Return a catalogue in which each product has a size, a colour and a pack."""
    draw = random.Random(seed)  # noqa: S311 - nothing secret
    products, entries = {}, {}
    for number in range(count):
        asin = f"B{number:09d}"
        title, query, path, noun = draw.choice(KINDS)
        attributes = draw.sample(ATTRIBUTES, 4)
        options = [
            ("Size", draw.choice(SIZES)),
            ("Color", draw.choice(COLORS)),
            (draw.choice(PACK_NAMES), draw.choice(PACKS)),
        ]
        draw.shuffle(options)
        products[asin] = {
            "asin": asin,
            "name": f"Brand{number} {title}",
            "category": "x",
            "query": query,
            "product_category": path,
            "full_description": "",
            "small_description": [f"This one is {attributes[3]}."],
            "pricing": f"${draw.randint(5, 90)}.50",
            "customization_options": {
                name: [{"value": value, "image": None} for value in draw.sample(values, min(3, len(values)))]
                for name, values in options
            },
            "images": ["x"],
        }
        entries[asin] = {
            "attributes": attributes[:3],
            "instruction": f"Find me {', '.join(attributes[1:])} {noun} of brand {number}",
            "instruction_attributes": attributes[1:],
        }
    return Catalogue(products, entries)
