"""Tasks of the shop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_servers.webarena._sites.shop_data import CATEGORIES, STATUSES, ShopProduct, money
from agentgym_servers.webarena._templates.steps import Step, click, fill, goto, pick, push, put
from agentgym_servers.webarena._templates.template import (
    Made,
    answer,
    change,
    content,
    exactly,
    reach,
    template,
)

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.webarena._sites.state import SiteState

__all__: list[str] = []

SHOP = "__SHOPPING__"


def _found(product: ShopProduct) -> tuple[Step, ...]:
    return (fill("Search products", product.name), click(product.name))


@template("shopping")
def _price(state: SiteState, draw: Draw) -> Made:
    """The price of a product."""
    product = draw.one(state.shop.products)
    return answer(f"What is the price of the {product.name}?", money(product.price)[1:], *_found(product))


@template("shopping")
def _sku(state: SiteState, draw: Draw) -> Made:
    """The SKU of a product."""
    product = draw.one(state.shop.products)
    return exactly(f"Tell me the SKU of the {product.name}.", product.sku, *_found(product))


@template("shopping")
def _worst_review(state: SiteState, draw: Draw) -> Made | None:
    """Who gave the lowest rating."""
    product = draw.one(state.shop.products)
    reviews = sorted(state.shop.reviews_of(product.number), key=lambda each: each.rating)
    if not reviews[1:] or reviews[0].rating == reviews[1].rating:
        return None
    intent = f"Which customer gave the lowest rating to the {product.name}?"
    return exactly(intent, reviews[0].author, *_found(product))


@template("shopping")
def _count_reviews(state: SiteState, draw: Draw) -> Made:
    """The number of reviews."""
    product = draw.one(state.shop.products)
    count = len(state.shop.reviews_of(product.number))
    return answer(f"How many reviews does the {product.name} have?", str(count), *_found(product))


@template("shopping")
def _cheapest(state: SiteState, draw: Draw) -> Made:
    """The cheapest product of a category."""
    category = draw.one(list(CATEGORIES))
    best = min(
        (each for each in state.shop.products if each.category == category), key=lambda each: each.price
    )
    steps = (click(category), click("Sort by price, low to high"))
    return exactly(f"What is the cheapest product in the category {category}?", best.name, *steps)


@template("shopping")
def _most_expensive(state: SiteState, draw: Draw) -> Made:
    """The price of the most expensive product of a category."""
    category = draw.one(list(CATEGORIES))
    most = max(each.price for each in state.shop.products if each.category == category)
    intent = f"How much does the most expensive product in the category {category} cost?"
    return answer(intent, money(most)[1:], click(category), click("Sort by price, high to low"))


@template("shopping")
def _order_status(state: SiteState, draw: Draw) -> Made:
    """The status of an order."""
    order = draw.one(state.shop.orders_of(state.shop.me))
    return exactly(f"What is the status of my order {order.label}?", order.status, click("My orders"))


@template("shopping")
def _spent(state: SiteState, draw: Draw) -> Made:
    """The total of the orders of a year with one status."""
    year = draw.one(("2022", "2023"))
    status = draw.one(("Complete", "Canceled", "Pending"))
    orders = [
        each
        for each in state.shop.orders_of(state.shop.me)
        if each.date[:4] == year and each.status == status
    ]
    total = money(sum(each.total for each in orders))[1:]
    intent = (
        f"What is the total of my orders of {year} with the status {status}? Answer 0.00 if there are none."
    )
    return answer(intent, total, click("My orders"))


@template("shopping")
def _last_order_with(state: SiteState, draw: Draw) -> Made:
    """The date of the last order of a product."""
    orders = state.shop.orders_of(state.shop.me)
    product, _ = draw.one(draw.one(orders).lines)
    date = next(each.date for each in orders if product in dict(each.lines))
    label = next(each.label for each in orders if each.date == date and product in dict(each.lines))
    intent = f"When did I last order the {state.shop.products[product].name}? Answer as YYYY-MM-DD."
    return exactly(intent, date, click("My orders"), click(label))


@template("shopping")
def _add_to_cart(state: SiteState, draw: Draw) -> Made:
    """Put a product into the cart."""
    product, count = draw.one(state.shop.products), draw.between(2, 9)
    steps = (*_found(product), put("Quantity", str(count)), push("Add to cart"))
    check = content(f"{SHOP}/cart", "#cart", product.name, money(product.price * count))
    return change(f"Put {count} pieces of the {product.name} into my cart.", check, *steps)


@template("shopping")
def _add_to_wishlist(state: SiteState, draw: Draw) -> Made:
    """Put a product onto the wish list."""
    product = draw.one(state.shop.products)
    check = content(f"{SHOP}/wishlist", "main", product.name)
    return change(
        f"Add the {product.name} to my wish list.", check, *_found(product), push("Add to wish list")
    )


@template("shopping")
def _change_address(state: SiteState, draw: Draw) -> Made:
    """Change the address of the account."""
    other = draw.one(state.shop.customers[1:])
    number = draw.between(200, 299)
    street = f"{number} {other.street.split(' ', 1)[1]}"
    steps = (
        goto(f"{SHOP}/account"),
        click("Change address"),
        put("Street", street),
        put("Town", other.town),
        put("Postcode", other.postcode),
        push("Save address"),
    )
    check = content(f"{SHOP}/account", "#account", f"{street}, {other.town} {other.postcode}")
    return change(
        f"I have moved. My address is now {street}, {other.town} {other.postcode}. Update it.", check, *steps
    )


@template("shopping")
def _buy(state: SiteState, draw: Draw) -> Made:
    """Order a product."""
    product = draw.one(state.shop.products)
    label = f"{state.shop.orders[-1].number + 1:09d}"
    steps = (*_found(product), push("Add to cart"), click("Proceed to checkout"), push("Place order"))
    check = content(f"{SHOP}/orders/{label}", "#lines", product.name)
    return change(f"Order one {product.name}.", check, *steps)


@template("shopping")
def _open_order(state: SiteState, draw: Draw) -> Made:
    """Open the page of an order."""
    orders = state.shop.orders_of(state.shop.me)
    status = draw.one(sorted({each.status for each in orders}))
    order = next(each for each in orders if each.status == status)
    intent = f"Show me the page of my most recent order with the status {status}."
    return reach(intent, f"{SHOP}/orders/{order.label}", click("My orders"), click(order.label))


@template("shopping")
def _review(state: SiteState, draw: Draw) -> Made:
    """Write a review."""
    product, stars = draw.one(state.shop.products), draw.between(2, 5)
    title = draw.one(("Fits well", "A birthday present", "Used it for a year", "My second one"))
    steps = (*_found(product), click("Write a review"), pick(f"{stars} stars"), put("Summary", title))
    check = content(f"{SHOP}/product/{product.number}", ".reviews", f"{title} {stars} of 5")
    intent = f'Review the {product.name} with {stars} stars and the summary "{title}".'
    return change(intent, check, *steps, push("Submit review"))


@template("shopping")
def _draft_refund(state: SiteState, draw: Draw) -> Made:
    """Write a message without sending it."""
    order = draw.one(state.shop.orders_of(state.shop.me))
    why = draw.one(("it broke on the first day", "a part was missing", "I ordered the wrong size"))
    text = f"Please refund order {order.label} of {money(order.total)}, {why}."
    intent = (
        f"Draft a refund message for my order {order.label} in the contact form: it must contain the number"
        f" and the total of the order, and the reason: {why}. Do not send it."
    )
    check = content("last", "#message|value", order.label, money(order.total)[1:], why)
    return change(intent, check, click("My orders"), click("Contact us"), put("Message", text))


@template("shopping")
def _reorder(state: SiteState, draw: Draw) -> Made:
    """Order the same again."""
    order = draw.one(state.shop.orders_of(state.shop.me))
    steps = (
        click("My orders"),
        click(order.label),
        push("Reorder"),
        click("Proceed to checkout"),
        push("Place order"),
    )
    label = f"{state.shop.orders[-1].number + 1:09d}"
    names = [state.shop.products[number].name for number, _ in order.lines]
    return change(
        f"Order the same again as in my order {order.label}.",
        content(f"{SHOP}/orders/{label}", "#lines", *names),
        *steps,
    )


@template("shopping")
def _cancel(state: SiteState, draw: Draw) -> Made | None:
    """Cancel a pending order."""
    pending = [each for each in state.shop.orders_of(state.shop.me) if each.status == STATUSES[0]]
    if not pending:
        return None
    order = draw.one(pending)
    check = content(f"{SHOP}/orders/{order.label}", "#order", "Canceled")
    return change(
        f"Cancel my order {order.label}.", check, click("My orders"), click(order.label), push("Cancel order")
    )


@template("shopping")
def _filter_price(state: SiteState, draw: Draw) -> Made:
    """List what is not too expensive."""
    category, most = draw.one(list(CATEGORIES)), draw.between(3, 12) * 10
    url = f"{SHOP}/category/{category}?max_price={most}"
    intent = f"Show me the products of the category {category} that cost at most {most} dollars."
    return reach(intent, url, click(category), fill("Highest price", str(most)))


@template("shopping")
def _no_such_product(state: SiteState, draw: Draw) -> Made:
    """A question without an answer."""
    noun = draw.one(("Snow Globe", "Typewriter", "Telescope", "Bread Machine", "Piano Stool", "Chess Clock"))
    intent = f"What is the price of the {draw.one(('cheapest', 'largest', 'oldest'))} {noun} in the shop?"
    return exactly(f"{intent} Answer N/A if there is none.", "N/A", fill("Search products", noun))


@template("shopping")
def _subscribe_newsletter(state: SiteState, draw: Draw) -> Made:
    """Subscribe to the newsletter."""
    name = draw.one(state.shop.customers).name.split()[0].lower()
    email = f"{name}{draw.between(10, 99)}@example.net"
    check = content(f"{SHOP}/", "main", "You are subscribed to the newsletter")
    return change(f"Subscribe to the newsletter with {email}.", check, fill("Newsletter e-mail", email))
