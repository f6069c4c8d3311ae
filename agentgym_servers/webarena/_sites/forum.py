"""The forum: posts by topic, with comments and votes."""

from __future__ import annotations

import re

from agentgym_servers.webarena._sites.forum_data import Comment, Post
from agentgym_servers.webarena._sites.html import (
    Html,
    button_form,
    field,
    form,
    items,
    join,
    link,
    table,
    tag,
    text_area,
)
from agentgym_servers.webarena._sites.shop_data import TODAY
from agentgym_servers.webarena._sites.web import NotFound, Response, Site, Visit, address, or_404, redirect

__all__ = ["FORUM"]

FORUM = Site(
    "reddit",
    "Roundtable",
    (
        ("Home", "/"),
        ("Forums", "/forums"),
        ("Submit a post", "/submit"),
        ("My profile", "/me"),
        ("Create a forum", "/create_forum"),
    ),
)


_POST = "/f/{_forum}/{number}"


def _post(visit: Visit, number: str) -> Post:
    return or_404(visit.state.forum.post(number))


def _posts(posts: list[Post]) -> Html:
    rows = [
        (
            link(each.title, each.path),
            f"{each.votes} points",
            join("by ", link(each.author, f"/user/{each.author}")),
            each.date,
            f"{len(each.comments)} comments",
        )
        for each in posts
    ]
    return table((), rows, class_="posts") if rows else tag("p", "There are no posts.")


def _sorted(posts: list[Post], order: str) -> list[Post]:
    if order == "top":
        return sorted(posts, key=lambda each: -each.votes)
    if order == "comments":
        return sorted(posts, key=lambda each: -len(each.comments))
    return posts


def _orders(path: str) -> Html:
    names = (("new", "Sort by new"), ("top", "Sort by top"), ("comments", "Sort by most commented"))
    return tag("p", ((link(text, address(path, sort=name)), " ") for name, text in names))


@FORUM.get("/")
def _home(visit: Visit) -> Response:
    posts = sorted(visit.state.forum.posts, key=lambda each: each.date, reverse=True)[:15]
    search = form("/search", field("Search posts", "q"), submit="Search", method="get")
    return visit.page("Home", tag("h1", "New posts"), search, _posts(posts))


@FORUM.get("/search")
def _search(visit: Visit) -> Response:
    query = visit.text("q")
    found = [each for each in visit.state.forum.posts if query and query.lower() in each.title.lower()]
    return visit.page(f"Search: {query}", tag("h1", f"Posts with: {query}"), _posts(found))


@FORUM.get("/forums")
def _forums(visit: Visit) -> Response:
    rows = [(link(name, f"/f/{name}"), about) for name, about in visit.state.forum.forums.items()]
    return visit.page("Forums", tag("h1", "Forums"), table((), rows, id="forums"))


@FORUM.get("/f/{name}")
def _forum(visit: Visit, name: str) -> Response:
    forum = visit.state.forum
    if name not in forum.forums:
        raise NotFound
    subscribed = name in forum.subscribed
    toggle = button_form("Unsubscribe" if subscribed else "Subscribe", f"/f/{name}/subscribe")
    return visit.page(
        name,
        tag("h1", name),
        tag("p", forum.forums[name]),
        tag("p", "You are subscribed." if subscribed else "You are not subscribed.", id="subscription"),
        toggle,
        _orders(f"/f/{name}"),
        _posts(_sorted(forum.posts_of(name), visit.text("sort"))),
    )


@FORUM.post("/f/{name}/subscribe", signed_in=True)
def _subscribe(visit: Visit, name: str) -> Response:
    subscribed = visit.state.forum.subscribed
    if name in subscribed:
        subscribed.remove(name)
    elif name in visit.state.forum.forums:
        subscribed.append(name)
    return redirect(f"/f/{name}")


@FORUM.get(_POST)
def _post_page(visit: Visit, _forum: str, number: str) -> Response:
    post = _post(visit, number)
    votes = (button_form("Upvote", f"{post.path}/up"), " ", button_form("Downvote", f"{post.path}/down"))
    mine = {1: "You upvoted this post.", -1: "You downvoted this post."}.get(post.mine, "")
    own = link("Edit post", f"{post.path}/edit") if post.author == visit.user else None
    return visit.page(
        post.title,
        tag("h1", post.title),
        tag(
            "p",
            "by ",
            link(post.author, f"/user/{post.author}"),
            " in ",
            link(post.forum, f"/f/{post.forum}"),
        ),
        tag("p", f"{post.votes} points, {post.date}. ", mine, id="votes"),
        tag("p", post.body, id="body"),
        own,
        tag("p", votes),
        tag("h2", f"{len(post.comments)} comments"),
        items((_comment(each) for each in post.comments), id="comments"),
        form(f"{post.path}/comment", text_area("Comment", "comment"), submit="Post comment"),
    )


def _comment(comment: Comment) -> Html:
    return join(link(comment.author, f"/user/{comment.author}"), f" ({comment.score} points): {comment.text}")


@FORUM.post(_POST + "/comment", signed_in=True)
def _add_comment(visit: Visit, _forum: str, number: str) -> Response:
    post = _post(visit, number)
    if visit.text("comment"):
        post.comments.append(Comment(visit.user, visit.text("comment"), 1))
    return redirect(post.path)


@FORUM.get(_POST + "/edit", signed_in=True)
def _edit_page(visit: Visit, _forum: str, number: str) -> Response:
    post = _post(visit, number)
    if post.author != visit.user:
        raise NotFound
    edit = form(f"{post.path}/edit", text_area("Body", "body", post.body), submit="Save post")
    return visit.page("Edit post", tag("h1", post.title), edit)


@FORUM.post(_POST + "/edit", signed_in=True)
def _edit(visit: Visit, _forum: str, number: str) -> Response:
    post = _post(visit, number)
    if post.author == visit.user:
        post.body = visit.text("body") or post.body
    return redirect(post.path)


@FORUM.post(_POST + "/{vote}", signed_in=True)
def _vote(visit: Visit, _forum: str, number: str, vote: str) -> Response:
    post, points = _post(visit, number), or_404({"up": 1, "down": -1}.get(vote))
    post.mine = 0 if post.mine == points else points
    return redirect(post.path)


@FORUM.get("/submit", signed_in=True)
def _submit_page(visit: Visit) -> Response:
    fields = (field("Title", "title"), text_area("Body", "body"), field("Forum", "forum"))
    return visit.page(
        "Submit a post", tag("h1", "Submit a post"), form("/submit", *fields, submit="Create post")
    )


@FORUM.post("/submit", signed_in=True)
def _submit(visit: Visit) -> Response:
    forum, name, title = visit.state.forum, visit.text("forum"), visit.text("title")
    if name not in forum.forums or not title:
        return visit.page("Submit a post", tag("p", "A title and an existing forum are needed."), status=400)
    post = Post(
        max(each.number for each in forum.posts) + 1, name, title, visit.text("body"), visit.user, TODAY, 1
    )
    forum.posts.append(post)
    return redirect(post.path)


@FORUM.get("/create_forum", signed_in=True)
def _create_page(visit: Visit) -> Response:
    fields = (field("Name", "name"), field("Description", "about"))
    return visit.page(
        "Create a forum", tag("h1", "Create a forum"), form("/create_forum", *fields, submit="Create")
    )


@FORUM.post("/create_forum", signed_in=True)
def _create(visit: Visit) -> Response:
    name = visit.text("name").lower()
    if not re.fullmatch("[a-z0-9_]{2,30}", name):
        return visit.page(
            "Create a forum", tag("p", "A name has letters, digits and underscores."), status=400
        )
    visit.state.forum.forums.setdefault(name, visit.text("about"))
    return redirect(f"/f/{name}")


@FORUM.get("/me", signed_in=True)
def _me(visit: Visit) -> Response:
    return redirect(f"/user/{visit.user}")


@FORUM.get("/user/{name}")
def _user(visit: Visit, name: str) -> Response:
    forum = visit.state.forum
    if name not in forum.bios:
        raise NotFound
    posts = sorted(
        (each for each in forum.posts if each.author == name), key=lambda each: each.date, reverse=True
    )
    edit = link("Edit biography", "/me/edit") if name == visit.user else None
    about = tag("p", forum.bios[name], id="bio")
    return visit.page(name, tag("h1", name), about, edit, tag("h2", f"{len(posts)} posts"), _posts(posts))


@FORUM.get("/me/edit", signed_in=True)
def _bio_page(visit: Visit) -> Response:
    edit = form("/me/edit", field("Biography", "bio"), submit="Save biography")
    return visit.page("Edit biography", tag("h1", "Edit biography"), edit)


@FORUM.post("/me/edit", signed_in=True)
def _bio(visit: Visit) -> Response:
    visit.state.forum.bios[visit.user] = visit.text("bio")
    return redirect(f"/user/{visit.user}")
