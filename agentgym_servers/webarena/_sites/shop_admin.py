"""The admin side of the shop: orders, products, customers, reviews and reports."""

from __future__ import annotations

import re

from agentgym_servers.webarena._sites.html import (
    Html,
    button_form,
    choice,
    facts,
    field,
    form,
    items,
    link,
    table,
    tag,
)
from agentgym_servers.webarena._sites.shop_data import STATUSES, money
from agentgym_servers.webarena._sites.web import Response, Site, Visit, address, or_404, redirect

__all__ = ["SHOP_ADMIN"]

_ROOT = "/admin"

SHOP_ADMIN = Site(
    "shopping_admin",
    "Corner Market Admin",
    (
        ("Dashboard", "/"),
        ("Orders", "/orders"),
        ("Products", "/products"),
        ("Customers", "/customers"),
        ("Reviews", "/reviews"),
        ("Bestsellers", "/bestsellers"),
        ("Sales", "/sales"),
        ("Search terms", "/terms"),
    ),
    _ROOT,
)


def _find(path: str, label: str, query: str) -> Html:
    return form(f"{_ROOT}{path}", field(label, "q", query), submit="Search", method="get")


@SHOP_ADMIN.get("/", signed_in=True)
def _dashboard(visit: Visit) -> Response:
    shop = visit.state.shop
    pending = sum(not each.approved for each in shop.reviews)
    about = [
        ("Orders", len(shop.orders)),
        ("Products", len(shop.products)),
        ("Customers", len(shop.customers)),
        ("Reviews to approve", pending),
    ]
    return visit.page("Dashboard", tag("h1", "Dashboard"), facts(about))


@SHOP_ADMIN.get("/orders", signed_in=True)
def _orders(visit: Visit) -> Response:
    shop, query, status = visit.state.shop, visit.text("q"), visit.text("status")
    orders = [each for each in shop.orders[::-1] if not status or each.status == status]
    if query:
        orders = [
            each for each in orders if query in each.label or query in shop.customer(each.customer).name
        ]
    rows = [
        (
            link(each.label, f"{_ROOT}/orders/{each.label}"),
            each.date,
            shop.customer(each.customer).name,
            money(each.total),
            each.status,
        )
        for each in orders
    ]
    filters = [(link(f"Show {each}", address(f"{_ROOT}/orders", status=each)), " ") for each in STATUSES]
    return visit.page(
        "Orders",
        tag("h1", "Orders"),
        _find("/orders", "Search orders", query),
        tag("p", filters),
        tag("p", f"{len(rows)} orders"),
        table(("Order", "Date", "Customer", "Total", "Status"), rows),
    )


@SHOP_ADMIN.get("/orders/{label}", signed_in=True)
def _order(visit: Visit, label: str) -> Response:
    shop = visit.state.shop
    order = or_404(shop.order(label))
    customer = shop.customer(order.customer)
    about = [
        ("Customer", link(customer.name, f"{_ROOT}/customers/{customer.email}")),
        ("Status", order.status),
        ("Date", order.date),
        ("Ship to", order.address),
        ("Total", money(order.total)),
    ]
    rows = [(shop.products[number].name, shop.products[number].sku, count) for number, count in order.lines]
    doing = (
        [button_form("Cancel order", f"{_ROOT}/orders/{label}/cancel")] if order.status != "Canceled" else []
    )
    comment = form(f"{_ROOT}/orders/{label}/comment", field("Comment", "comment"), submit="Notify customer")
    return visit.page(
        f"Order {label}",
        tag("h1", f"Order {label}"),
        facts(about, id="order"),
        table(("Product", "SKU", "Quantity"), rows),
        doing,
        comment,
        items(order.comments, id="comments"),
    )


@SHOP_ADMIN.post("/orders/{label}/cancel", signed_in=True)
def _cancel(visit: Visit, label: str) -> Response:
    or_404(visit.state.shop.order(label)).status = "Canceled"
    return redirect(f"{_ROOT}/orders/{label}")


@SHOP_ADMIN.post("/orders/{label}/comment", signed_in=True)
def _comment(visit: Visit, label: str) -> Response:
    order = or_404(visit.state.shop.order(label))
    if visit.text("comment"):
        order.comments.append(visit.text("comment"))
    return redirect(f"{_ROOT}/orders/{label}")


@SHOP_ADMIN.get("/products", signed_in=True)
def _products(visit: Visit) -> Response:
    query = visit.text("q")
    products = [
        each for each in visit.state.shop.products if query.lower() in f"{each.name} {each.sku}".lower()
    ]
    rows = [
        (
            link(each.name, f"{_ROOT}/products/{each.number}"),
            each.sku,
            money(each.price),
            each.stock,
            "Enabled" if each.enabled else "Disabled",
        )
        for each in products
    ]
    heads = ("Product", "SKU", "Price", "Stock", "Status")
    return visit.page(
        "Products", tag("h1", "Products"), _find("/products", "Search products", query), table(heads, rows)
    )


@SHOP_ADMIN.get("/products/{number}", signed_in=True)
def _product_page(visit: Visit, number: str) -> Response:
    product = or_404(visit.state.shop.product(number))
    price = f"{product.price // 100}.{product.price % 100:02d}"
    status = choice("Status", "status", ("Enabled", "Disabled"), "Enabled" if product.enabled else "Disabled")
    fields = (field("Price", "price", price), field("Stock", "stock", str(product.stock)), status)
    edit = form(f"{_ROOT}/products/{number}", *fields, submit="Save product")
    return visit.page(product.name, tag("h1", product.name), tag("p", f"SKU: {product.sku}"), edit)


@SHOP_ADMIN.post("/products/{number}", signed_in=True)
def _save_product(visit: Visit, number: str) -> Response:
    product = or_404(visit.state.shop.product(number))
    dollars, _, cents = visit.text("price").lstrip("$").partition(".")
    if re.fullmatch("[0-9]{1,5}", dollars) and re.fullmatch("[0-9]{0,2}", cents):
        product.price = 100 * int(dollars) + int(f"{cents:0<2}")
    product.stock = visit.number("stock", product.stock)
    product.enabled = visit.text("status") != "Disabled"
    return redirect(f"{_ROOT}/products/{number}")


@SHOP_ADMIN.get("/customers", signed_in=True)
def _customers(visit: Visit) -> Response:
    shop, query = visit.state.shop, visit.text("q")
    rows = [
        (link(each.name, f"{_ROOT}/customers/{each.email}"), each.town, len(shop.orders_of(each.email)))
        for each in shop.customers
        if query.lower() in f"{each.name} {each.email} {each.phone}".lower()
    ]
    find = _find("/customers", "Search customers", query)
    return visit.page("Customers", tag("h1", "Customers"), find, table(("Name", "Town", "Orders"), rows))


@SHOP_ADMIN.get("/customers/{email}", signed_in=True)
def _customer(visit: Visit, email: str) -> Response:
    shop = visit.state.shop
    found = or_404(next((each for each in shop.customers if each.email == email), None))
    about = [("E-mail", found.email), ("Phone", found.phone), ("Address", found.address)]
    rows = [
        (link(each.label, f"{_ROOT}/orders/{each.label}"), each.date, money(each.total), each.status)
        for each in shop.orders_of(email)
    ]
    orders = table(("Order", "Date", "Total", "Status"), rows)
    return visit.page(found.name, tag("h1", found.name), facts(about), tag("h2", "Orders"), orders)


@SHOP_ADMIN.get("/reviews", signed_in=True)
def _reviews(visit: Visit) -> Response:
    shop = visit.state.shop
    rows = [
        (
            shop.products[each.product].name,
            f"{each.title}, {each.rating} of 5 by {each.author}",
            button_form(f"Approve review by {each.author}", f"{_ROOT}/reviews/{each.number}/approve"),
            button_form(f"Delete review by {each.author}", f"{_ROOT}/reviews/{each.number}/delete"),
        )
        for each in shop.reviews
        if not each.approved
    ]
    return visit.page(
        "Reviews",
        tag("h1", "Reviews to approve"),
        tag("p", f"{len(rows)} reviews"),
        table((), rows, id="reviews"),
    )


@SHOP_ADMIN.post("/reviews/{number}/approve", signed_in=True)
def _approve_review(visit: Visit, number: str) -> Response:
    for review in visit.state.shop.reviews:
        if str(review.number) == number:
            review.approved = True
    return redirect(f"{_ROOT}/reviews")


@SHOP_ADMIN.post("/reviews/{number}/delete", signed_in=True)
def _delete_review(visit: Visit, number: str) -> Response:
    reviews = visit.state.shop.reviews
    reviews[:] = [each for each in reviews if str(each.number) != number]
    return redirect(f"{_ROOT}/reviews")


@SHOP_ADMIN.get("/bestsellers", signed_in=True)
def _bestsellers(visit: Visit) -> Response:
    year = visit.text("year", "2023")
    rows = [(product.name, count) for product, count in visit.state.shop.sold(year)[:12]]
    years = [(link(f"Year {each}", address(f"{_ROOT}/bestsellers", year=each)), " ") for each in (2022, 2023)]
    return visit.page(
        "Bestsellers", tag("h1", f"Bestsellers of {year}"), tag("p", years), table(("Product", "Sold"), rows)
    )


@SHOP_ADMIN.get("/sales", signed_in=True)
def _sales(visit: Visit) -> Response:
    months: dict[str, list[int]] = {}
    for order in visit.state.shop.orders:
        if order.status == "Complete":
            months.setdefault(order.date[:7], []).append(order.total)
    rows = [(month, len(totals), money(sum(totals))) for month, totals in sorted(months.items())]
    return visit.page(
        "Sales", tag("h1", "Sales of complete orders"), table(("Month", "Orders", "Sales"), rows)
    )


@SHOP_ADMIN.get("/terms", signed_in=True)
def _terms(visit: Visit) -> Response:
    rows = visit.state.shop.searches
    return visit.page("Search terms", tag("h1", "Search terms"), table(("Search term", "Uses"), rows))
