"""The data of the forum: forums, posts, comments, votes and profiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentgym_servers.webarena._sites.words import people, spread

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["TOPICS", "Comment", "Forum", "Post", "draw_forum"]

TOPICS = {
    "baking": "sourdough starter,rye bread,puff pastry,pizza stone,cinnamon rolls,cake flour",
    "cycling": "gravel tires,bike lights,chain lube,commuting in rain,disc brakes,saddle bags",
    "photography": "film cameras,night shots,tripods,prime lenses,photo books,street portraits",
    "hiking": "trail shoes,water filters,mountain huts,rain jackets,paper maps,ultralight tents",
    "gardening": "tomato seedlings,compost bins,raised beds,garden slugs,rose cuttings,herb spirals",
    "chess": "endgame studies,blitz openings,club nights,chess clocks,puzzle books,opening traps",
    "movies": "silent films,film festivals,movie posters,long takes,black comedies,popcorn recipes",
    "space": "meteor showers,moon craters,home telescopes,rocket launches,star charts,solar eclipses",
}
_EVERY, _REST = 9, 4  # which posts are of the agent's account
_OPENERS = (
    "My thoughts on {},Beginner question about {},What I learned about {},Please rate my {},The best "
    "advice on {},Is it worth spending money on {}"
).split(",")
_BODIES = (
    "I have tried this for a month now.|It took me three attempts.|Any hints are welcome.|I was surprised"
    " by the result.|My neighbor does it differently.|There must be an easier way.|I took notes of "
    "everything."
).split("|")
_REPLIES = (
    "I agree with this.|That did not work for me.|Thank you for sharing.|Try it twice before you give "
    "up.|You can find this in the library.|I had the same problem.|Great post!|Patience is everything.|I "
    "would do it the other way round.|This should be pinned."
).split("|")


@dataclass
class Comment:
    """A comment on a post."""

    author: str
    text: str
    score: int


@dataclass
class Post:
    """A post; `mine` is the vote of the agent's account."""

    number: int
    forum: str
    title: str
    body: str
    author: str
    date: str
    score: int
    comments: list[Comment] = field(default_factory=list)
    mine: int = 0

    @property
    def votes(self) -> int:
        """The score with the vote of the agent's account."""
        return self.score + self.mine

    @property
    def path(self) -> str:
        """The address on the site."""
        return f"/f/{self.forum}/{self.number}"


@dataclass
class Forum:
    """All data of the forum.

    Attributes:
        me: The name of the user whose account the agent uses.
    """

    me: str
    forums: dict[str, str]
    posts: list[Post]
    bios: dict[str, str]
    subscribed: list[str] = field(default_factory=list)

    def posts_of(self, forum: str) -> list[Post]:
        """Return the posts of a forum, the newest first."""
        return sorted(
            (each for each in self.posts if each.forum == forum),
            key=lambda each: (each.date, each.number),
            reverse=True,
        )

    def post(self, number: str) -> Post | None:
        """Return a post by its number."""
        return next((each for each in self.posts if str(each.number) == number), None)


def draw_forum(draw: Draw) -> Forum:
    """Draw the data of a forum."""
    names = [name.replace(" ", "_").lower() for name in people(draw, 18)]
    bios = {name: draw.one(_BODIES) for name in names}
    forum = Forum(names[0], {name: f"All about {name}" for name in TOPICS}, [], bios)
    numbers = draw.some(range(10_000, 10_400), 48)
    numbers.sort()
    scores = draw.some(range(3, 400), 48)
    days = draw.shuffled(range(48))
    for topic, subjects in TOPICS.items():
        for subject, opener in zip(subjects.split(","), draw.shuffled(_OPENERS), strict=True):
            n = len(forum.posts)
            day = days[n]
            date = spread(draw, 2022 + day // 24, 1 + (day % 24) // 4)[:8] + f"{1 + day % 4 * 7:02d}"
            author = names[0] if n % _EVERY == _REST else draw.one(names[1:])
            body = f"{draw.one(_BODIES)} {draw.one(_BODIES)}"
            post = Post(numbers[n], topic, opener.format(subject), body, author, date, scores[n])
            forum.posts.append(post)
            writers = draw.some(names[1:], draw.between(1, 6))
            best = draw.some(range(1, 90), len(writers))
            post.comments = [
                Comment(writer, text, score)
                for writer, text, score in zip(writers, draw.some(_REPLIES, len(writers)), best, strict=True)
            ]
    return forum
