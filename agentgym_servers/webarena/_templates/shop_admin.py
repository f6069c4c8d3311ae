"""Tasks of the admin side of the shop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_servers.webarena._sites.shop_data import MONTHS, STATUSES, money
from agentgym_servers.webarena._templates.steps import click, fill, pick, push, replaced
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

ADMIN = "__SHOPPING_ADMIN__"


@template("shopping_admin")
def _bestseller(state: SiteState, draw: Draw) -> Made | None:
    """The best-selling product of a year."""
    year = draw.one(("2022", "2023"))
    (first, count), (_, second) = state.shop.sold(year)[:2]
    if count == second:
        return None
    return exactly(
        f"What is the best-selling product of {year}?",
        first.name,
        click("Bestsellers"),
        click(f"Year {year}"),
    )


@template("shopping_admin")
def _sold_count(state: SiteState, draw: Draw) -> Made:
    """How often one of the best-selling products was sold."""
    year = draw.one(("2022", "2023"))
    product, count = draw.one(state.shop.sold(year)[:10])
    steps = (click("Bestsellers"), click(f"Year {year}"))
    return answer(f"How many pieces of the {product.name} were sold in {year}?", str(count), *steps)


@template("shopping_admin")
def _top_term(state: SiteState, draw: Draw) -> Made:
    """The search term that is used most, or least."""
    most = draw.chance(0.5)
    term = (max if most else min)(state.shop.searches, key=lambda each: each[1])[0]
    return exactly(f"Which search term is used {'most' if most else 'least'}?", term, click("Search terms"))


@template("shopping_admin")
def _customer_email(state: SiteState, draw: Draw) -> Made:
    """The e-mail address, or the phone number, of a customer."""
    customer = draw.one(state.shop.customers)
    steps = (click("Customers"), click(customer.name))
    if draw.chance(0.5):
        return exactly(f"What is the phone number of the customer {customer.name}?", customer.phone, *steps)
    return exactly(f"What is the e-mail address of the customer {customer.name}?", customer.email, *steps)


@template("shopping_admin")
def _customer_by_phone(state: SiteState, draw: Draw) -> Made:
    """The name of the customer with a phone number."""
    customer = draw.one(state.shop.customers)
    steps = (click("Customers"), fill("Search customers", customer.phone))
    return exactly(f"Which customer has the phone number {customer.phone}?", customer.name, *steps)


@template("shopping_admin")
def _who_ordered(state: SiteState, draw: Draw) -> Made:
    """Who placed an order."""
    order = draw.one(state.shop.orders)
    name = state.shop.customer(order.customer).name
    steps = (click("Orders"), fill("Search orders", order.label))
    return exactly(f"Who placed the order {order.label}?", name, *steps)


@template("shopping_admin")
def _count_status(state: SiteState, draw: Draw) -> Made:
    """The number of orders with a status."""
    status = draw.one(STATUSES)
    count = sum(each.status == status for each in state.shop.orders)
    return answer(
        f"How many orders have the status {status}?", str(count), click("Orders"), click(f"Show {status}")
    )


@template("shopping_admin")
def _pending_reviews(state: SiteState, draw: Draw) -> Made:
    """The number of reviews of one rating that wait."""
    rating = draw.between(1, 5)
    count = sum(not each.approved and each.rating == rating for each in state.shop.reviews)
    intent = f"How many of the reviews that are not approved yet give {rating} of 5?"
    return answer(intent, str(count), click("Reviews"))


@template("shopping_admin")
def _approve(state: SiteState, draw: Draw) -> Made | None:
    """Approve the only review of an author that waits."""
    waiting = [each for each in state.shop.reviews if not each.approved]
    authors = [each.author for each in waiting]
    single = [each for each in waiting if authors.count(each.author) == 1]
    if not single:
        return None
    review = draw.one(single)
    product = state.shop.products[review.product]
    text = f"{review.title} {review.rating} of 5 by {review.author}"
    check = content(f"__SHOPPING__/product/{product.number}", ".reviews", text)
    intent = f"Approve the review of the {product.name} by {review.author}."
    return change(intent, check, click("Reviews"), push(f"Approve review by {review.author}"))


@template("shopping_admin")
def _sales(state: SiteState, draw: Draw) -> Made | None:
    """The sales of a month."""
    year, month = draw.one(MONTHS)
    name = f"{year}-{month:02d}"
    total = sum(
        each.total for each in state.shop.orders if each.date[:7] == name and each.status == "Complete"
    )
    if not total:
        return None
    return answer(f"What were the sales of complete orders in {name}?", money(total)[1:], click("Sales"))


@template("shopping_admin")
def _set_price(state: SiteState, draw: Draw) -> Made:
    """Change the price of a product."""
    product = draw.one(state.shop.products)
    price = f"{draw.between(200, 260)}.{draw.one(('00', '50', '99'))}"
    steps = (
        click("Products"),
        fill("Search products", product.sku),
        click(product.name),
        *replaced("Price", price),
        push("Save product"),
    )
    check = content(f"{ADMIN}/products/{product.number}", "[name=price]|value", price)
    return change(f"Set the price of the product with the SKU {product.sku} to ${price}.", check, *steps)


@template("shopping_admin")
def _set_stock(state: SiteState, draw: Draw) -> Made:
    """Change the stock of a product."""
    product, stock = draw.one(state.shop.products), draw.between(200, 900)
    steps = (
        click("Products"),
        fill("Search products", product.name),
        click(product.name),
        *replaced("Stock", str(stock)),
        push("Save product"),
    )
    check = content(f"{ADMIN}/products/{product.number}", "[name=stock]|value", str(stock))
    return change(f"We counted {stock} pieces of the {product.name}. Update its stock.", check, *steps)


@template("shopping_admin")
def _disable(state: SiteState, draw: Draw) -> Made:
    """Take a product out of the shop."""
    product = draw.one(state.shop.products)
    steps = (click("Products"), fill("Search products", product.sku), click(product.name))
    check = content(f"{ADMIN}/products/{product.number}", "[name=status]:checked|value", "Disabled")
    intent = f"Disable the product {product.name} in the shop."
    return change(intent, check, *steps, pick("Disabled"), push("Save product"))


@template("shopping_admin")
def _cancel_order(state: SiteState, draw: Draw) -> Made:
    """Cancel an order."""
    order = draw.one([each for each in state.shop.orders if each.status != "Canceled"])
    steps = (click("Orders"), fill("Search orders", order.label), click(order.label), push("Cancel order"))
    check = content(f"{ADMIN}/orders/{order.label}", "#order", "Canceled")
    return change(f"Cancel the order {order.label}.", check, *steps)


@template("shopping_admin")
def _notify(state: SiteState, draw: Draw) -> Made:
    """Write a comment on an order."""
    order = draw.one(state.shop.orders)
    text = draw.one(
        ("the parcel leaves tomorrow", "one item is sold out", "the carrier needs a phone number")
    )
    steps = (click("Orders"), fill("Search orders", order.label), click(order.label), fill("Comment", text))
    check = content(f"{ADMIN}/orders/{order.label}", "#comments", text)
    return change(f'Notify the customer of the order {order.label} that "{text}".', check, *steps)


@template("shopping_admin")
def _no_such_customer(state: SiteState, draw: Draw) -> Made | None:
    """A question about somebody who never bought anything."""
    name = f"{draw.one(('Ottoline', 'Barnaby', 'Philippa'))} {draw.one(('Quill', 'Vane', 'Oake'))}"
    if any(each.name == name for each in state.shop.customers):
        return None
    intent = f"What is the phone number of the customer {name}? Answer N/A if there is no such customer."
    return exactly(intent, "N/A", click("Customers"), fill("Search customers", name))


@template("shopping_admin")
def _list_status(state: SiteState, draw: Draw) -> Made:
    """List orders of a status."""
    status = draw.one(STATUSES)
    url = f"{ADMIN}/orders?status={status}"
    return reach(
        f"Show the list of all orders with the status {status}.",
        url,
        click("Orders"),
        click(f"Show {status}"),
    )
