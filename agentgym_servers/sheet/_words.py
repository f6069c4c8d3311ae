"""The words that the sheets are made of."""

from __future__ import annotations

__all__ = ["CLASSES", "DUTIES", "PEOPLE", "PRODUCTS", "STATUSES", "STORES", "SUBJECTS", "TEAMS"]

PRODUCTS = (
    ("oat flakes", "Grain"),
    ("rye bread", "Grain"),
    ("wild rice", "Grain"),
    ("barley", "Grain"),
    ("walnut", "Nuts"),
    ("cashew", "Nuts"),
    ("hazelnut", "Nuts"),
    ("cream cheese", "Dairy"),
    ("yoghurt", "Dairy"),
    ("butter", "Dairy"),
    ("kefir", "Dairy"),
    ("green tea", "Drinks"),
    ("apple juice", "Drinks"),
    ("cocoa", "Drinks"),
    ("pear", "Fruit"),
    ("plum", "Fruit"),
    ("quince", "Fruit"),
    ("cherry", "Fruit"),
)
"""Products with their categories."""

STORES = ("North Hall", "South Hall", "Harbour", "Station")
"""Where products are sold."""

PEOPLE = (
    "Adela",
    "Bruno",
    "Cosima",
    "Dario",
    "Edith",
    "Farid",
    "Gitta",
    "Henrik",
    "Imke",
    "Jonas",
    "Kira",
    "Lasse",
    "Mirjam",
    "Nuno",
    "Orla",
    "Pavel",
    "Rosa",
    "Selim",
    "Tova",
    "Ugo",
)
"""First names, no two with the same beginning."""

CLASSES = ("8a", "8b", "8c")
"""School classes."""

SUBJECTS = ("Math", "English", "Physics", "Chemistry", "Biology")
"""School subjects."""

DUTIES = (
    "Press release",
    "Server update",
    "Price list",
    "Trade fair stand",
    "Customer survey",
    "Fire drill",
    "Annual report",
    "Data cleaning",
    "New logo",
    "Stock count",
    "Staff training",
    "Printer contract",
)
"""What is done in an office."""

TEAMS = ("Sales", "Technology", "Design", "Purchasing")
"""Who does it."""

STATUSES = ("Open", "Started", "Completed")
"""How far it is."""
