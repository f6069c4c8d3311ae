"""Tasks of the forum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_servers.webarena._sites.forum_data import TOPICS, Post
from agentgym_servers.webarena._templates.steps import Step, click, fill, push, put
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

FORUM = "__REDDIT__"


def _opened(post: Post) -> tuple[Step, ...]:
    return (click("Forums"), click(post.forum), click(post.title))


def _top(state: SiteState, forum: str) -> Post:
    return max(state.forum.posts_of(forum), key=lambda each: each.votes)


@template("reddit")
def _top_author(state: SiteState, draw: Draw) -> Made:
    """Who wrote the post with the most points."""
    name = draw.one(list(TOPICS))
    steps = (click("Forums"), click(name), click("Sort by top"))
    return exactly(
        f"Who wrote the post with the most points in the forum {name}?", _top(state, name).author, *steps
    )


@template("reddit")
def _points(state: SiteState, draw: Draw) -> Made:
    """The points of a post."""
    post = draw.one(state.forum.posts)
    intent = f'How many points does the post "{post.title}" in the forum {post.forum} have?'
    return answer(intent, str(post.votes), *_opened(post))


@template("reddit")
def _best_comment(state: SiteState, draw: Draw) -> Made:
    """Who wrote the comment with the most points."""
    post = draw.one(state.forum.posts)
    best = max(post.comments, key=lambda each: each.score)
    intent = f'Whose comment on "{post.title}" in the forum {post.forum} has the most points?'
    return exactly(intent, best.author, *_opened(post))


@template("reddit")
def _count_comments(state: SiteState, draw: Draw) -> Made:
    """The number of comments on the newest post."""
    name = draw.one(list(TOPICS))
    post = state.forum.posts_of(name)[0]
    intent = f"How many comments does the newest post of the forum {name} have?"
    return answer(intent, str(len(post.comments)), click("Forums"), click(name))


@template("reddit")
def _count_posts(state: SiteState, draw: Draw) -> Made:
    """The number of posts of a user."""
    post = draw.one(state.forum.posts)
    count = sum(each.author == post.author for each in state.forum.posts)
    intent = f'How many posts has the author of "{post.title}" (forum {post.forum}) written in all forums?'
    return answer(intent, str(count), *_opened(post), click(post.author))


@template("reddit")
def _submit(state: SiteState, draw: Draw) -> Made:
    """Write a post."""
    name = draw.one(list(TOPICS))
    subject = draw.one(TOPICS[name].split(","))
    title, body = (
        f"Who knows a shop for {subject}?",
        draw.one(("I live in a small town.", "Prices do not matter.")),
    )
    steps = (
        click("Submit a post"),
        put("Title", title),
        put("Body", body),
        put("Forum", name),
        push("Create post"),
    )
    check = content("last", "main", title, body)
    return change(f'Post in the forum {name}: title "{title}", body "{body}"', check, *steps)


@template("reddit")
def _comment(state: SiteState, draw: Draw) -> Made:
    """Write a comment."""
    post = draw.one(state.forum.posts)
    text = draw.one(
        ("Saved for the weekend.", "Which size do you use?", "My club recommends it.", "Photos please!")
    )
    steps = (*_opened(post), put("Comment", text), push("Post comment"))
    check = content(f"{FORUM}{post.path}", "#comments", text)
    return change(f'Comment on the post "{post.title}" in the forum {post.forum}: "{text}"', check, *steps)


@template("reddit")
def _vote(state: SiteState, draw: Draw) -> Made:
    """Vote for or against the newest post."""
    name, down = draw.one(list(TOPICS)), draw.chance(0.4)
    post = state.forum.posts_of(name)[0]
    word = "Downvote" if down else "Upvote"
    check = content(f"{FORUM}{post.path}", "#votes", f"You {word.lower()}d this post.")
    return change(f"{word} the newest post of the forum {name}.", check, *_opened(post), push(word))


@template("reddit")
def _vote_top(state: SiteState, draw: Draw) -> Made:
    """Vote for the post with the most comments."""
    name = draw.one(list(TOPICS))
    post = _top(state, name)
    steps = (click("Forums"), click(name), click("Sort by top"), click(post.title), push("Upvote"))
    check = content(f"{FORUM}{post.path}", "#votes", "You upvoted this post.")
    return change(f"Upvote the post with the most points in the forum {name}.", check, *steps)


@template("reddit")
def _subscribe(state: SiteState, draw: Draw) -> Made:
    """Subscribe to a forum."""
    name = draw.one(list(TOPICS))
    check = content(f"{FORUM}/f/{name}", "#subscription", "You are subscribed.")
    return change(f"Subscribe to the forum {name}.", check, click("Forums"), click(name), push("Subscribe"))


@template("reddit")
def _biography(state: SiteState, draw: Draw) -> Made:
    """Change the biography."""
    topic = draw.one(list(TOPICS))
    text = (
        f"I write about {topic} from {draw.one(('the north', 'the coast', 'a small island', 'the hills'))}."
    )
    check = content(f"{FORUM}/user/{state.forum.me}", "#bio", text)
    steps = (click("My profile"), click("Edit biography"), fill("Biography", text))
    return change(f'Change my biography to "{text}"', check, *steps)


@template("reddit")
def _edit(state: SiteState, draw: Draw) -> Made | None:
    """Add to an own post."""
    own = [each for each in state.forum.posts if each.author == state.forum.me]
    if not own:
        return None
    post = draw.one(own)
    text = draw.one(("Edit: solved!", "Edit: thanks to all!", "Edit: I tried again."))
    steps = (
        click("My profile"),
        click(post.title),
        click("Edit post"),
        put("Body", text),
        push("Save post"),
    )
    check = content(f"{FORUM}{post.path}", "#body", text)
    return change(f'Add the line "{text}" to my post "{post.title}".', check, *steps)


@template("reddit")
def _create_forum(state: SiteState, draw: Draw) -> Made:
    """Create a forum."""
    name = f"{draw.one(list(TOPICS))}_{draw.one(('beginners', 'market', 'photos', 'archive'))}"
    about = draw.one(("Be kind", "No links please", "Questions are welcome"))
    steps = (click("Create a forum"), put("Name", name), put("Description", about), push("Create"))
    return change(
        f'Create a forum {name} with the description "{about}".',
        content(f"{FORUM}/f/{name}", "main", name, about),
        *steps,
    )


@template("reddit")
def _sort_forum(state: SiteState, draw: Draw) -> Made:
    """Open a forum in an order."""
    name = draw.one(list(TOPICS))
    sort, text = draw.one((("top", "Sort by top"), ("comments", "Sort by most commented")))
    words = "points" if sort == "top" else "comments"
    intent = f"Open the forum {name}, sorted so that the posts with the most {words} come first."
    return reach(intent, f"{FORUM}/f/{name}?sort={sort}", click("Forums"), click(name), click(text))


@template("reddit")
def _open_post(state: SiteState, draw: Draw) -> Made:
    """Open a post."""
    post = draw.one(state.forum.posts)
    subject = next(each for each in TOPICS[post.forum].split(",") if each in post.title)
    intent = f"Open the post about {subject} in the forum {post.forum}."
    return reach(intent, f"{FORUM}{post.path}", *_opened(post))
