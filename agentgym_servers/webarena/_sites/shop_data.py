"""The data of the shop: products, customers, orders, reviews and searches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentgym_servers.webarena._sites.words import STREETS, TOWNS, people, spread

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = [
    "CATEGORIES",
    "TODAY",
    "Customer",
    "Order",
    "Shop",
    "ShopProduct",
    "ShopReview",
    "draw_shop",
    "money",
]

TODAY = "2023-06-15"
"""The date on all sites."""

CATEGORIES = {
    "Kitchen": "Kettle Teapot Mug Toaster Saucepan Colander Whisk Grater",
    "Garden": "Trowel Rake Planter Sprinkler Hose Lantern Pruner Wheelbarrow",
    "Office": "Stapler Notebook Lamp Organizer Calculator Clipboard Shredder Chair",
    "Sports": "Dumbbell Racket Helmet Backpack Kayak Tent Bottle Yoga_Mat",
    "Toys": "Puzzle Kite Robot Train_Set Marble_Run Doll_House Yo-Yo Spinning_Top",
    "Audio": "Headphones Speaker Microphone Turntable Amplifier Radio Earbuds Soundbar",
}
_BRANDS = (
    "Norvik Halden Brightwell Corvo Lumina Tessera Falmouth Orlando Pikewood Zenmark Aldora Quillon".split()
)
_STYLES = "Blue Red Green Black White Copper Steel Bamboo Compact Classic Foldable Deluxe".split()
_TITLES = (
    "Better than expected,Does the job,Would buy again,Not for me,Broke after a week,Good value,A bit too"
    " small,Looks great,Arrived late,Simply excellent,Only average,Very sturdy"
).split(",")
_TEXTS = (
    "I use it every day.,The color is nicer than in the picture.,My sister has the same one.,It came well"
    " packed.,The handle is loose.,I expected more for the price.,It fits on the shelf.,The instructions "
    "are hard to read."
).split(",")
STATUSES = ("Pending", "Processing", "Complete", "Canceled")
MONTHS = tuple((year, month) for year in (2022, 2023) for month in range(1, 13) if (year, month) < (2023, 6))


def money(cents: int) -> str:
    """Return a price as text, such as ``$12.50``."""
    return f"${cents // 100:,}.{cents % 100:02d}"


@dataclass
class ShopProduct:
    """A product; its price is in cents."""

    number: int
    sku: str
    name: str
    category: str
    price: int
    stock: int
    weight: str
    enabled: bool = True


@dataclass
class ShopReview:
    """A review of a product, which only the admin sees before it is approved."""

    number: int
    product: int
    author: str
    rating: int
    title: str
    text: str
    approved: bool = True


@dataclass
class Customer:
    """A customer."""

    name: str
    email: str
    phone: str
    street: str
    town: str
    postcode: str

    @property
    def address(self) -> str:
        """The address on one line."""
        return f"{self.street}, {self.town} {self.postcode}"


@dataclass
class Order:
    """An order; its lines are numbers of products and quantities."""

    number: int
    customer: str
    date: str
    status: str
    lines: list[tuple[int, int]]
    total: int
    address: str
    comments: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The number with leading zeros."""
        return f"{self.number:09d}"


@dataclass
class Shop:
    """All data of the shop.

    Attributes:
        me: The e-mail address of the customer whose account the agent uses.
    """

    products: list[ShopProduct]
    reviews: list[ShopReview]
    customers: list[Customer]
    orders: list[Order]
    searches: list[tuple[str, int]]
    me: str
    cart: dict[int, int] = field(default_factory=dict)
    wishlist: list[int] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    newsletter: bool = False

    def product(self, number: str) -> ShopProduct | None:
        """Return a product by its number."""
        return next((each for each in self.products if str(each.number) == number), None)

    def customer(self, email: str) -> Customer:
        """Return a customer by the e-mail address."""
        return next(each for each in self.customers if each.email == email)

    def orders_of(self, email: str) -> list[Order]:
        """Return the orders of a customer, the newest first."""
        return [each for each in self.orders if each.customer == email][::-1]

    def order(self, label: str) -> Order | None:
        """Return an order by its number."""
        return next((each for each in self.orders if each.label == label), None)

    def reviews_of(self, product: int) -> list[ShopReview]:
        """Return the approved reviews of a product."""
        return [each for each in self.reviews if each.product == product and each.approved]

    def sold(self, year: str) -> list[tuple[ShopProduct, int]]:
        """Return the products sold in a year with their quantities, most first."""
        counts: dict[int, int] = {}
        for order in self.orders:
            if order.date.startswith(year) and order.status != "Canceled":
                for number, quantity in order.lines:
                    counts[number] = counts.get(number, 0) + quantity
        ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        return [(self.products[number], count) for number, count in ranked]

    def place(self, lines: list[tuple[int, int]], address: str) -> Order:
        """Add an order of the agent's account."""
        total = sum(self.products[number].price * quantity for number, quantity in lines)
        order = Order(self.orders[-1].number + 1, self.me, TODAY, "Pending", lines, total, address)
        self.orders.append(order)
        return order


def draw_shop(draw: Draw) -> Shop:
    """Draw the data of a shop."""
    products = _draw_products(draw)
    customers = [_draw_customer(draw, name) for name in people(draw, 14)]
    shop = Shop(products, _draw_reviews(draw, products), customers, [], [], customers[0].email)
    _draw_orders(draw, shop)
    terms = draw.some([each.name.split(" ", 1)[1].lower() for each in products], 10)
    shop.searches = sorted(
        ((term, uses) for term, uses in zip(terms, draw.some(range(5, 90), 10), strict=True)),
        key=lambda each: each[0],
    )
    return shop


def _draw_products(draw: Draw) -> list[ShopProduct]:
    products: list[ShopProduct] = []
    for category, nouns in CATEGORIES.items():
        prices = draw.some(range(4, 180), 8)
        for noun, price in zip(nouns.split(), prices, strict=True):
            name = f"{draw.one(_BRANDS)} {draw.one(_STYLES)} {noun.replace('_', ' ')}"
            cents = price * 100 + draw.one((0, 25, 49, 50, 95, 99))
            sku = f"{category[:2].upper()}{draw.between(1000, 9999)}-{len(products):02d}"
            weight = f"{draw.between(1, 60) / 10:.1f} kg"
            products.append(
                ShopProduct(len(products), sku, name, category, cents, draw.between(3, 120), weight)
            )
    return products


def _draw_customer(draw: Draw, name: str) -> Customer:
    first, last = name.lower().split()
    street = f"{draw.between(2, 199)} {draw.one(STREETS)} Street"
    phone = f"555-{draw.between(100, 999)}-{draw.between(1000, 9999)}"
    return Customer(
        name, f"{first}.{last}@example.com", phone, street, draw.one(TOWNS), f"{draw.between(10000, 99999)}"
    )


def _draw_reviews(draw: Draw, products: list[ShopProduct]) -> list[ShopReview]:
    reviews: list[ShopReview] = []
    for product in products:
        for author in draw.some(people(draw, 8), draw.between(0, 4)):
            text = f"{draw.one(_TEXTS)} {draw.one(_TEXTS)}"
            review = ShopReview(
                len(reviews), product.number, author, draw.between(1, 5), draw.one(_TITLES), text
            )
            review.approved = not draw.chance(0.12)
            reviews.append(review)
    return reviews


def _draw_orders(draw: Draw, shop: Shop) -> None:
    drawn = []
    for n in range(48):
        year, month = draw.one(MONTHS)
        customer = shop.customers[0] if n % 4 == 0 else draw.one(shop.customers[1:])
        lines = [(each.number, draw.between(1, 3)) for each in draw.some(shop.products, draw.between(1, 3))]
        drawn.append((spread(draw, year, month), customer, lines, draw.one(STATUSES)))
    drawn.sort(key=lambda each: each[0])
    for n, (date, customer, lines, status) in enumerate(drawn):
        total = sum(shop.products[number].price * quantity for number, quantity in lines)
        shop.orders.append(Order(101 + n, customer.email, date, status, lines, total, customer.address))
