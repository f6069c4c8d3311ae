"""The words that the products of a made world consist of. All of it is data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BRANDS",
    "COLORS",
    "DEPARTMENTS",
    "FEATURE_ENDS",
    "LINES",
    "OPENINGS",
    "REVIEWS",
    "Choice",
    "Department",
    "Kind",
]


@dataclass(frozen=True)
class Choice:
    """An option of a product, such as its size.

    Attributes:
        name: Its name.
        values: What may be chosen, the cheapest first.
        cents: By how much each value costs more than the one before it.
    """

    name: str
    values: tuple[str, ...]
    cents: int = 0


@dataclass(frozen=True)
class Kind:
    """A kind of product.

    Attributes:
        noun: What it is called, in the plural.
        path: The last two parts of its category.
        dollars: The least and the greatest price.
    """

    noun: str
    path: tuple[str, str]
    dollars: tuple[int, int]


@dataclass(frozen=True)
class Department:
    """Kinds of product that share their attributes and options.

    Attributes:
        name: The name of the department.
        qualities: Attributes that stand before the noun.
        parts: Attributes that stand behind "with".
        uses: Attributes that stand behind "for".
        choices: The options of its products; colour is one of every product's.
        kinds: The kinds of product.
    """

    name: str
    qualities: tuple[str, ...]
    parts: tuple[str, ...]
    uses: tuple[str, ...]
    choices: tuple[Choice, ...]
    kinds: tuple[Kind, ...]


COLORS = (
    *("black", "white", "navy", "crimson", "olive", "teal", "beige", "charcoal", "lavender", "mustard"),
    *("coral", "ivory", "burgundy", "turquoise", "copper", "peach"),
)

BRANDS = (
    *(
        "Altrona",
        "Bexley Hill",
        "Brightmoor",
        "Calder & Finch",
        "Corvelle",
        "Dunmere",
        "Elmstead",
        "Farrowby",
    ),
    *("Fenwick Lane", "Galdora", "Harbourne", "Hexton", "Ivarsen", "Juniper Row", "Kestrelle", "Lindqvora"),
    *("Lowmarsh", "Maplethorn", "Merrivane", "Northfold", "Oakhollow", "Orvento", "Pellworth", "Quarrington"),
    *("Redfern", "Rookhaven", "Saltmere", "Silverton", "Tamberly", "Thistledown", "Umberlake", "Vandrelle"),
    *("Vestaby", "Wainford", "Westerlow", "Willowmead", "Yarrow", "Zephyrine", "Ashgrove", "Blyth"),
)

LINES = (
    *("Aspen", "Beacon", "Breeze", "Canyon", "Cascade", "Comet", "Compass", "Cypress", "Dawn", "Drift"),
    *("Echo", "Ember", "Falcon", "Field", "Flint", "Forge", "Glade", "Granite", "Grove", "Harvest"),
    *("Haven", "Horizon", "Island", "Lagoon", "Lantern", "Legend", "Lotus", "Meadow", "Meridian", "Mirage"),
    *("Nimbus", "Nova", "Orbit", "Orchard", "Otter", "Pebble", "Pinnacle", "Prairie", "Quill", "Raven"),
    *("Reef", "Ridge", "River", "Saffron", "Sierra", "Solstice", "Sparrow", "Summit", "Tempo", "Thicket"),
    *("Tide", "Timber", "Trail", "Tundra", "Valley", "Vista", "Voyage", "Willow", "Zenith", "Zircon"),
)

OPENINGS = ("Find me", "I am looking for", "I would like to buy", "Please find me", "I need", "Show me")

FEATURE_ENDS = (
    "checked by hand before it is packed",
    "so that it lasts for many seasons",
    "as our customers asked for",
    "with care for every detail",
    "for each day of the week",
    "tried by a hundred households",
    "without any extra cost",
    "made in our own workshop",
)

REVIEWS = (
    ("Just right", 5, "It is what I hoped for, and it came two days early."),
    ("Would buy it again", 5, "My sister has one too. Both of us are glad of it."),
    ("Good for the price", 4, "A little smaller than I thought, but well made."),
    ("Solid", 4, "I have used it for two months and nothing is broken."),
    ("It does its job", 3, "Nothing special. The parcel was dented, the product was not."),
    ("Not what I expected", 2, "The colour is darker than in the picture."),
    ("A present", 5, "My father liked it at once."),
    ("Came late", 3, "The product is fine. The delivery took three weeks."),
    ("Sent it back", 1, "It did not suit me, so I got my money back without trouble."),
    ("Second one", 4, "I bought the first a year ago and it is still in use."),
)
"""Title, stars and text."""

_CLOTHES = Choice("size", ("xs", "s", "m", "l", "xl", "xxl"), 100)
_SHOES = Choice("size", ("36", "37", "38", "39", "40", "41", "42", "43"))
_PACKS = Choice("pack", ("single", "twin pack", "family box", "bulk carton"), 450)

DEPARTMENTS = (
    Department(
        "Shoes",
        ("non slip", "waterproof", "lightweight", "machine washable", "breathable"),
        ("rubber sole", "arch support", "memory foam", "velvet lining", "side zipper", "padded collar"),
        ("daily wear", "long walks", "garden work", "rainy days"),
        (_SHOES, Choice("width", ("narrow", "regular", "wide"))),
        (
            Kind("women's sandals", ("Women", "Sandals"), (18, 70)),
            Kind("men's loafers", ("Men", "Loafers"), (25, 110)),
            Kind("hiking boots", ("Outdoor", "Boots"), (40, 160)),
            Kind("running shoes", ("Sport", "Running"), (35, 140)),
            Kind("house slippers", ("Home", "Slippers"), (12, 40)),
            Kind("ballet flats", ("Women", "Flats"), (20, 80)),
            Kind("rain boots", ("Outdoor", "Rain"), (22, 75)),
        ),
    ),
    Department(
        "Clothing",
        ("slim cut", "loose cut", "wrinkle free", "fleece lined", "quick drying", "hand knitted"),
        ("long sleeves", "button closure", "elastic waist", "side pockets", "high collar", "cotton blend"),
        ("office days", "cold weather", "gym training", "summer evenings"),
        (_CLOTHES,),
        (
            Kind("women's blouses", ("Women", "Tops"), (15, 60)),
            Kind("men's dress shirts", ("Men", "Shirts"), (18, 75)),
            Kind("cardigans", ("Women", "Knitwear"), (22, 90)),
            Kind("jogging trousers", ("Sport", "Trousers"), (16, 55)),
            Kind("winter coats", ("Men", "Coats"), (60, 240)),
            Kind("denim jackets", ("Women", "Jackets"), (30, 120)),
            Kind("polo shirts", ("Men", "Shirts"), (14, 48)),
            Kind("pyjama sets", ("Home", "Nightwear"), (18, 64)),
        ),
    ),
    Department(
        "Furniture",
        ("easy to assemble", "space saving", "height adjustable", "scratch resistant", "heavy duty"),
        ("solid wood", "steel frame", "tempered glass", "storage drawers", "round corners", "faux leather"),
        ("living rooms", "dining rooms", "small apartments", "home offices"),
        (Choice("size", ("60 cm", "90 cm", "120 cm", "150 cm"), 1_500),),
        (
            Kind("coffee tables", ("Living", "Tables"), (45, 220)),
            Kind("bookcases", ("Living", "Shelves"), (50, 260)),
            Kind("bar stools", ("Dining", "Stools"), (35, 140)),
            Kind("writing desks", ("Office", "Desks"), (70, 320)),
            Kind("nightstands", ("Bedroom", "Tables"), (30, 130)),
            Kind("sideboards", ("Dining", "Cabinets"), (90, 400)),
            Kind("shoe racks", ("Hall", "Shelves"), (20, 85)),
        ),
    ),
    Department(
        "Kitchen",
        ("dishwasher safe", "bpa free", "leak proof", "heat resistant", "stackable"),
        ("stainless steel", "silicone handle", "glass lid", "measuring marks", "bamboo base"),
        ("camping trips", "baking days", "meal preparation", "large families"),
        (Choice("capacity", ("350 ml", "600 ml", "900 ml", "1400 ml"), 300), _PACKS),
        (
            Kind("water bottles", ("Drinks", "Bottles"), (9, 38)),
            Kind("storage jars", ("Storage", "Jars"), (8, 35)),
            Kind("mixing bowls", ("Baking", "Bowls"), (12, 50)),
            Kind("saucepans", ("Cooking", "Pans"), (20, 95)),
            Kind("teapots", ("Drinks", "Tea"), (15, 65)),
            Kind("lunch boxes", ("Storage", "Boxes"), (10, 36)),
        ),
    ),
    Department(
        "Electronics",
        ("fast charging", "noise cancelling", "water resistant", "energy saving", "plug and play"),
        ("usb c port", "aluminum case", "voice control", "backlit keys", "carrying pouch", "long cable"),
        ("video calls", "travel", "gaming", "music lovers"),
        (Choice("style", ("basic", "plus", "premium"), 1_200),),
        (
            Kind("wireless headphones", ("Audio", "Headphones"), (25, 190)),
            Kind("bluetooth speakers", ("Audio", "Speakers"), (20, 150)),
            Kind("power banks", ("Phones", "Chargers"), (15, 70)),
            Kind("keyboards", ("Computers", "Input"), (18, 130)),
            Kind("webcams", ("Computers", "Cameras"), (22, 110)),
            Kind("alarm clocks", ("Home", "Clocks"), (12, 55)),
            Kind("phone cases", ("Phones", "Cases"), (8, 32)),
        ),
    ),
    Department(
        "Beauty",
        ("fragrance free", "cruelty free", "long lasting", "dermatologist tested", "travel sized"),
        ("aloe vera", "coconut oil", "vitamin c", "green tea", "shea butter", "hyaluronic acid"),
        ("dry skin", "sensitive skin", "damaged hair", "night care"),
        (Choice("volume", ("50 ml", "100 ml", "200 ml", "400 ml"), 350), _PACKS),
        (
            Kind("face creams", ("Skin", "Face"), (8, 48)),
            Kind("shampoos", ("Hair", "Washing"), (6, 30)),
            Kind("body lotions", ("Skin", "Body"), (7, 34)),
            Kind("hair masks", ("Hair", "Treatment"), (9, 36)),
            Kind("lip balms", ("Skin", "Lips"), (4, 15)),
            Kind("bath salts", ("Bath", "Salts"), (6, 28)),
        ),
    ),
    Department(
        "Grocery",
        ("gluten free", "sugar free", "organic", "fair trade", "dairy free"),
        ("resealable bag", "whole grains", "dark chocolate", "sea salt", "dried berries", "roasted nuts"),
        ("breakfast", "hiking snacks", "gift baskets", "school lunches"),
        (Choice("flavor", ("original", "honey", "cinnamon", "ginger", "vanilla", "lemon")), _PACKS),
        (
            Kind("granola", ("Pantry", "Cereals"), (5, 22)),
            Kind("crackers", ("Snacks", "Salty"), (4, 18)),
            Kind("cookies", ("Snacks", "Sweet"), (4, 20)),
            Kind("herbal teas", ("Drinks", "Tea"), (5, 26)),
            Kind("trail mixes", ("Snacks", "Nuts"), (7, 30)),
            Kind("protein bars", ("Snacks", "Bars"), (9, 38)),
        ),
    ),
    Department(
        "Bedding",
        ("hypoallergenic", "super soft", "fade proof", "oeko certified", "double sided"),
        ("hidden zipper", "bamboo viscose", "embroidered border", "goose down", "linen weave"),
        ("hot sleepers", "guest rooms", "nurseries", "winter nights"),
        (Choice("size", ("twin", "full", "queen", "king"), 900),),
        (
            Kind("duvet covers", ("Bedroom", "Covers"), (25, 110)),
            Kind("throw pillows", ("Living", "Pillows"), (12, 45)),
            Kind("mattress pads", ("Bedroom", "Mattresses"), (30, 140)),
            Kind("wool blankets", ("Living", "Blankets"), (28, 130)),
            Kind("fitted sheets", ("Bedroom", "Sheets"), (14, 60)),
        ),
    ),
)
