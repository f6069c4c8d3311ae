"""The shop as its customers see it."""

from __future__ import annotations

from agentgym_servers.webarena._sites.html import (
    Html,
    button_form,
    choice,
    facts,
    field,
    form,
    items,
    join,
    link,
    table,
    tag,
    text_area,
)
from agentgym_servers.webarena._sites.shop_data import CATEGORIES, Order, ShopProduct, ShopReview, money
from agentgym_servers.webarena._sites.web import NotFound, Response, Site, Visit, address, or_404, redirect

__all__ = ["SHOP"]

SHOP = Site(
    "shopping",
    "Corner Market",
    (
        ("Home", "/"),
        ("My account", "/account"),
        ("My orders", "/orders"),
        ("My wish list", "/wishlist"),
        ("Cart", "/cart"),
        ("Contact us", "/contact"),
    ),
)


def _search_box(query: str = "") -> Html:
    return form("/search", field("Search products", "q", query), submit="Search", method="get")


def _named(product: ShopProduct) -> Html:
    return link(product.name, f"/product/{product.number}")


def _list(products: list[ShopProduct]) -> Html:
    rows = [(_named(each), money(each.price), each.category) for each in products]
    return table(("Product", "Price", "Category"), rows) if rows else tag("p", "No products were found.")


@SHOP.get("/")
def _home(visit: Visit) -> Response:
    categories = items(link(name, f"/category/{name}") for name in CATEGORIES)
    letter = form("/newsletter", field("Newsletter e-mail", "email"), submit="Subscribe")
    done = tag("p", "You are subscribed to the newsletter.") if visit.state.shop.newsletter else letter
    return visit.page(
        "Home", tag("h1", "Corner Market"), _search_box(), tag("h2", "Categories"), categories, done
    )


@SHOP.post("/newsletter")
def _newsletter(visit: Visit) -> Response:
    visit.state.shop.newsletter = "@" in visit.text("email")
    return redirect("/")


@SHOP.get("/search")
def _search(visit: Visit) -> Response:
    query = visit.text("q")
    words = query.lower().split()
    found = [each for each in visit.state.shop.products if _matches(each, words)]
    return visit.page(
        f"Search: {query}", tag("h1", f"Results for: {query}"), _search_box(query), _list(found)
    )


def _matches(product: ShopProduct, words: list[str]) -> bool:
    text = f"{product.name} {product.sku}".lower()
    return product.enabled and bool(words) and all(word in text for word in words)


@SHOP.get("/category/{name}")
def _category(visit: Visit, name: str) -> Response:
    if name not in CATEGORIES:
        raise NotFound
    products = [each for each in visit.state.shop.products if each.category == name and each.enabled]
    most = visit.number("max_price", 0)
    if most:
        products = [each for each in products if each.price <= 100 * most]
    order = visit.text("sort")
    if order in {"price", "price_desc"}:
        products.sort(key=lambda each: each.price, reverse=order == "price_desc")
    path = f"/category/{name}"
    sorts = [
        link("Sort by price, low to high", address(path, sort="price")),
        " ",
        link("Sort by price, high to low", address(path, sort="price_desc")),
    ]
    limit = form(path, field("Highest price", "max_price"), submit="Filter", method="get")
    return visit.page(name, tag("h1", name), tag("p", sorts), limit, _list(products))


@SHOP.get("/product/{number}")
def _product_page(visit: Visit, number: str) -> Response:
    product = or_404(visit.state.shop.product(number))
    if not product.enabled:
        raise NotFound
    reviews = visit.state.shop.reviews_of(product.number)
    base = f"/product/{product.number}"
    rating = f"{sum(each.rating for each in reviews) / len(reviews):.1f} of 5" if reviews else "none yet"
    about = facts(
        [
            ("Price", money(product.price)),
            ("SKU", product.sku),
            ("Category", link(product.category, f"/category/{product.category}")),
            ("Weight", product.weight),
            ("Rating", rating),
        ]
    )
    buy = form(f"{base}/cart", field("Quantity", "quantity"), submit="Add to cart")
    wish = button_form("Add to wish list", f"{base}/wish")
    written = items((_review(each) for each in reviews), class_="reviews")
    return visit.page(
        product.name,
        tag("h1", product.name),
        about,
        buy,
        wish,
        tag("h2", f"{len(reviews)} reviews"),
        written,
        link("Write a review", f"{base}/review"),
    )


def _review(review: ShopReview) -> Html:
    return join(tag("b", review.title), f" {review.rating} of 5 by {review.author}. ", review.text)


@SHOP.get("/product/{number}/review", signed_in=True)
def _review_page(visit: Visit, number: str) -> Response:
    product = or_404(visit.state.shop.product(number))
    stars = choice("Rating", "rating", ("1 star", "2 stars", "3 stars", "4 stars", "5 stars"))
    fields = (stars, field("Summary", "title"), text_area("Review", "text"))
    written = form(f"/product/{number}/review", *fields, submit="Submit review")
    return visit.page("Write a review", tag("h1", f"Review of {product.name}"), written)


@SHOP.post("/product/{number}/review", signed_in=True)
def _add_review(visit: Visit, number: str) -> Response:
    product, shop = or_404(visit.state.shop.product(number)), visit.state.shop
    rating = visit.text("rating")[:1]
    if not visit.text("title") or not rating:
        return visit.page("Write a review", tag("p", "A rating and a summary are needed."), status=400)
    name = shop.customer(visit.user).name
    shop.reviews.append(
        ShopReview(
            len(shop.reviews), product.number, name, int(rating), visit.text("title"), visit.text("text")
        )
    )
    return redirect(f"/product/{number}")


@SHOP.post("/product/{number}/cart")
def _add_to_cart(visit: Visit, number: str) -> Response:
    product, cart = or_404(visit.state.shop.product(number)), visit.state.shop.cart
    quantity = visit.number("quantity", 1)
    if not quantity:
        raise NotFound
    cart[product.number] = cart.get(product.number, 0) + quantity
    return redirect("/cart")


@SHOP.post("/product/{number}/wish", signed_in=True)
def _add_to_wishlist(visit: Visit, number: str) -> Response:
    product, wished = or_404(visit.state.shop.product(number)), visit.state.shop.wishlist
    if product.number not in wished:
        wished.append(product.number)
    return redirect("/wishlist")


@SHOP.get("/wishlist", signed_in=True)
def _wishlist(visit: Visit) -> Response:
    wished = [visit.state.shop.products[number] for number in visit.state.shop.wishlist]
    return visit.page("My wish list", tag("h1", "My wish list"), _list(wished))


@SHOP.get("/cart")
def _cart(visit: Visit) -> Response:
    shop = visit.state.shop
    rows = [
        (
            _named(shop.products[number]),
            quantity,
            money(shop.products[number].price * quantity),
            button_form(f"Remove {shop.products[number].name}", f"/cart/{number}/remove"),
        )
        for number, quantity in shop.cart.items()
    ]
    if not rows:
        return visit.page("Cart", tag("h1", "Cart"), tag("p", "Your cart is empty."))
    total = sum(shop.products[number].price * quantity for number, quantity in shop.cart.items())
    heads = ("Product", "Quantity", "Subtotal", "")
    pay = link("Proceed to checkout", "/checkout")
    return visit.page(
        "Cart", tag("h1", "Cart"), table(heads, rows, id="cart"), tag("p", f"Total: {money(total)}"), pay
    )


@SHOP.post("/cart/{number}/remove")
def _remove(visit: Visit, number: str) -> Response:
    visit.state.shop.cart.pop(or_404(visit.state.shop.product(number)).number, None)
    return redirect("/cart")


@SHOP.get("/checkout", signed_in=True)
def _checkout(visit: Visit) -> Response:
    shop = visit.state.shop
    if not shop.cart:
        return redirect("/cart")
    lines = items(f"{quantity} x {shop.products[number].name}" for number, quantity in shop.cart.items())
    where = tag("p", f"Ship to: {shop.customer(visit.user).address}")
    return visit.page(
        "Checkout", tag("h1", "Checkout"), lines, where, button_form("Place order", "/checkout")
    )


@SHOP.post("/checkout", signed_in=True)
def _place_order(visit: Visit) -> Response:
    shop = visit.state.shop
    if not shop.cart:
        return redirect("/cart")
    order = shop.place(list(shop.cart.items()), shop.customer(visit.user).address)
    shop.cart.clear()
    return redirect(f"/orders/{order.label}")


@SHOP.get("/orders", signed_in=True)
def _orders(visit: Visit) -> Response:
    rows = [
        (link(each.label, f"/orders/{each.label}"), each.date, money(each.total), each.status)
        for each in visit.state.shop.orders_of(visit.user)
    ]
    return visit.page("My orders", tag("h1", "My orders"), table(("Order", "Date", "Total", "Status"), rows))


def _own_order(visit: Visit, label: str) -> Order:
    order = visit.state.shop.order(label)
    return or_404(order if order is not None and order.customer == visit.user else None)


@SHOP.get("/orders/{label}", signed_in=True)
def _order(visit: Visit, label: str) -> Response:
    order, shop = _own_order(visit, label), visit.state.shop
    rows = [
        (_named(shop.products[number]), quantity, money(shop.products[number].price * quantity))
        for number, quantity in order.lines
    ]
    about = facts([("Status", order.status), ("Date", order.date), ("Ship to", order.address)], id="order")
    doing = [button_form("Reorder", f"/orders/{label}/reorder")]
    if order.status == "Pending":
        doing.append(button_form("Cancel order", f"/orders/{label}/cancel"))
    return visit.page(
        f"Order {label}",
        tag("h1", f"Order {label}"),
        about,
        table(("Product", "Quantity", "Subtotal"), rows, id="lines"),
        tag("p", f"Total: {money(order.total)}"),
        doing,
        items(order.comments) if order.comments else None,
    )


@SHOP.post("/orders/{label}/cancel", signed_in=True)
def _cancel(visit: Visit, label: str) -> Response:
    order = _own_order(visit, label)
    if order.status == "Pending":
        order.status = "Canceled"
    return redirect(f"/orders/{label}")


@SHOP.post("/orders/{label}/reorder", signed_in=True)
def _reorder(visit: Visit, label: str) -> Response:
    for number, quantity in _own_order(visit, label).lines:
        visit.state.shop.cart[number] = visit.state.shop.cart.get(number, 0) + quantity
    return redirect("/cart")


@SHOP.get("/account", signed_in=True)
def _account(visit: Visit) -> Response:
    me = visit.state.shop.customer(visit.user)
    about = [("Name", me.name), ("E-mail", me.email), ("Phone", me.phone), ("Address", me.address)]
    change = link("Change address", "/account/address")
    return visit.page("My account", tag("h1", "My account"), facts(about, id="account"), change)


@SHOP.get("/account/address", signed_in=True)
def _address_page(visit: Visit) -> Response:
    fields = (field("Street", "street"), field("Town", "town"), field("Postcode", "postcode"))
    now = tag("p", f"Now: {visit.state.shop.customer(visit.user).address}")
    return visit.page(
        "Change address",
        tag("h1", "Change address"),
        now,
        form("/account/address", *fields, submit="Save address"),
    )


@SHOP.post("/account/address", signed_in=True)
def _change_address(visit: Visit) -> Response:
    me = visit.state.shop.customer(visit.user)
    me.street = visit.text("street") or me.street
    me.town = visit.text("town") or me.town
    me.postcode = visit.text("postcode") or me.postcode
    return redirect("/account")


@SHOP.get("/contact")
def _contact(visit: Visit) -> Response:
    sent = tag("p", "Thank you, we have received your message.") if visit.text("sent") else None
    write = form(
        "/contact", field("Subject", "subject"), text_area("Message", "message"), submit="Send message"
    )
    received = items(visit.state.shop.messages, id="sent") if visit.state.shop.messages else None
    return visit.page("Contact us", tag("h1", "Contact us"), sent, write, received)


@SHOP.post("/contact")
def _send(visit: Visit) -> Response:
    visit.state.shop.messages.append(f"{visit.text('subject')}: {visit.text('message')}")
    return redirect("/contact?sent=1")
