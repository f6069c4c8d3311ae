"""Tasks of the wiki and of the map, and of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_servers.webarena._sites.map_data import KINDS, MODES, Place, route
from agentgym_servers.webarena._sites.wiki import wiki_path
from agentgym_servers.webarena._templates.steps import Step, click, fill, goto, pick, put
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

MAP, WIKI = "__MAP__", "__WIKIPEDIA__"


def _article(title: str) -> Step:
    return fill("Search articles", title)


def _place(place: Place) -> tuple[Step, ...]:
    return (fill("Search places", place.name), click(place.name))


def _way(start: Place, end: Place, mode: str) -> tuple[Step, ...]:
    return (
        click("Directions"),
        put("From", start.name),
        put("To", end.name),
        pick(mode),
        Step("click", "button", "Get directions"),
    )


def _two(state: SiteState, draw: Draw) -> tuple[Place, Place]:
    start, end = draw.some(state.map.places, 2)
    return start, end


@template("wikipedia")
def _founded(state: SiteState, draw: Draw) -> Made:
    """When a town was founded."""
    town = draw.one(state.wiki.of("town"))
    return answer(f"In which year was {town.title} founded?", town.facts["Founded"], _article(town.title))


@template("wikipedia")
def _no_such_article(state: SiteState, draw: Draw) -> Made | None:
    """A question about a town without an article."""
    town = f"{draw.one(('Upper', 'Nether', 'Great'))} {draw.one(('Quenby', 'Sallowby', 'Wrenholt'))}"
    if town in state.wiki.articles:
        return None
    intent = f"In which year was {town} founded? Answer N/A if the wiki has no article on it."
    return exactly(intent, "N/A", _article(town))


@template("wikipedia")
def _fact_of_sight(state: SiteState, draw: Draw) -> Made:
    """A fact about a sight."""
    sight, fact = draw.one(state.wiki.of("sight")), draw.one(("Architect", "Opened", "Height"))
    questions = {
        "Architect": "Who designed the {}?",
        "Opened": "When did the {} open?",
        "Height": "How high is the {}?",
    }
    return answer(
        questions[fact].format(sight.title), sight.facts[fact].removesuffix(" m"), _article(sight.title)
    )


@template("wikipedia")
def _elevation(state: SiteState, draw: Draw) -> Made:
    """The elevation of a mountain."""
    peak = draw.one(state.wiki.of("mountain"))
    return answer(
        f"How many metres high is {peak.title}? Write it as on its page.",
        peak.facts["Elevation"].removesuffix(" m"),
        _article(peak.title),
    )


@template("wikipedia")
def _birthplace_of_founder(state: SiteState, draw: Draw) -> Made:
    """The birthplace of the founder of a company."""
    company = draw.one(state.wiki.of("company"))
    founder = state.wiki.articles[company.facts["Founder"]]
    intent = f"Where was the founder of {company.title} born?"
    return exactly(intent, founder.facts["Birthplace"], _article(company.title), click(founder.title))


@template("wikipedia")
def _higher(state: SiteState, draw: Draw) -> Made:
    """The higher of two mountains."""
    one, two = draw.some(state.wiki.of("mountain"), 2)
    best = max((one, two), key=lambda each: int(each.facts["Elevation"].removesuffix(" m").replace(",", "")))
    steps = (_article(one.title), _article(two.title))
    return exactly(f"Which is higher, {one.title} or {two.title}?", best.title, *steps)


@template("wikipedia")
def _population_of_headquarters(state: SiteState, draw: Draw) -> Made:
    """The population of the town of a company."""
    company = draw.one(state.wiki.of("company"))
    town = state.wiki.articles[company.facts["Headquarters"]]
    intent = (
        f"How many people live in the town of the headquarters of {company.title}? Write it as its page does."
    )
    return answer(intent, town.facts["Population"], _article(company.title), click(town.title))


@template("wikipedia")
def _open_architect(state: SiteState, draw: Draw) -> Made:
    """Open the article on the architect of a sight."""
    sight = draw.one(state.wiki.of("sight"))
    who = sight.facts["Architect"]
    intent = f"Open the article on the person who designed the {sight.title}."
    return reach(intent, WIKI + wiki_path(who), _article(sight.title), click(who))


@template("wikipedia")
def _lifetime(state: SiteState, draw: Draw) -> Made:
    """How old somebody became."""
    who = draw.one(state.wiki.of("person"))
    age = int(who.facts["Died"]) - int(who.facts["Born"])
    return answer(
        f"How many years lie between the birth and the death of {who.title}?", str(age), _article(who.title)
    )


@template("map")
def _phone(state: SiteState, draw: Draw) -> Made:
    """The phone number of a place."""
    place = draw.one(state.map.places)
    return answer(f"What is the phone number of the {place.name}?", place.phone, *_place(place))


@template("map")
def _place_address(state: SiteState, draw: Draw) -> Made:
    """The address of a place."""
    place = draw.one(state.map.places)
    return answer(f"What is the full address of the {place.name}?", place.address, *_place(place))


@template("map")
def _postcode(state: SiteState, draw: Draw) -> Made:
    """The postcode of the only museum, library or pharmacy of a town."""
    kind, town = draw.one(("museum", "library", "pharmacy", "bakery")), draw.one(state.map.towns)
    place = next(each for each in state.map.of(kind) if each.town == town)
    steps = (fill("Search places", f"{kind} in {town}"), click(place.name))
    return answer(f"What is the postcode of the {kind} in {town}?", place.postcode, *steps)


@template("map")
def _closing(state: SiteState, draw: Draw) -> Made:
    """When a place closes."""
    place = draw.one(state.map.places)
    return answer(
        f"At what time does the {place.name} close? Answer as HH:MM.",
        f"{place.closes:02d}:00",
        *_place(place),
    )


@template("map")
def _distance(state: SiteState, draw: Draw) -> Made:
    """The distance between two places."""
    start, end = _two(state, draw)
    mode = draw.one(list(MODES))
    by = {"car": "by car", "bicycle": "by bicycle", "foot": "on foot"}[mode]
    intent = (
        f"How long is the way {by} from the {start.name} to the {end.name}? Answer in km with one decimal."
    )
    return answer(intent, route(start, end, mode).distance.removesuffix(" km"), *_way(start, end, mode))


@template("map")
def _travel_time(state: SiteState, draw: Draw) -> Made:
    """The time between two places."""
    start, end = _two(state, draw)
    mode = draw.one(("car", "bicycle"))
    intent = (
        f"How long does it take by {mode} from the {start.name} to the {end.name}? Write it as the map does."
    )
    return answer(intent, route(start, end, mode).time, *_way(start, end, mode))


@template("map")
def _nearest(state: SiteState, draw: Draw) -> Made:
    """The nearest cafe or hotel."""
    kind = draw.one(("cafe", "hotel"))
    place = draw.one([each for each in state.map.places if each.kind != kind])
    best = state.map.near(place, kind)[0]
    return exactly(
        f"Which {kind} is nearest to the {place.name}?",
        best.name,
        fill("Search places", f"{kind} near {place.name}"),
    )


@template("map")
def _count_kind(state: SiteState, draw: Draw) -> Made:
    """The number of places of a kind in a town."""
    kind, town = draw.one(list(KINDS)), draw.one(state.map.towns)
    count = sum(each.town == town for each in state.map.of(kind))
    return answer(
        f"How many places of the kind {kind} does the map have in {town}?",
        str(count),
        fill("Search places", f"{kind} in {town}"),
    )


@template("map")
def _open_place(state: SiteState, draw: Draw) -> Made:
    """Open the page of a place."""
    place = draw.one(state.map.places)
    return reach(
        f"Open the page of the {place.name} on the map.", f"{MAP}/place/{place.number}", *_place(place)
    )


@template("map")
def _show_way(state: SiteState, draw: Draw) -> Made:
    """Show the directions between two places."""
    start, end = _two(state, draw)
    mode = draw.one(list(MODES))
    intent = f"Show the directions from the {start.name} to the {end.name}, travelling by {mode}."
    return change(intent, content("last", "#route", start.name, end.name, mode), *_way(start, end, mode))


@template("map", "wikipedia")
def _museum_of_birthplace(state: SiteState, draw: Draw) -> Made:
    """The museum of the town where somebody was born."""
    who = draw.one(state.wiki.of("person"))
    town = who.facts["Birthplace"]
    museum = next(each for each in state.map.of("museum") if each.town == town)
    steps = (goto(WIKI + wiki_path(who.title)), goto(f"{MAP}/"), fill("Search places", f"museum in {town}"))
    return exactly(
        f"What is the name of the museum in the town where {who.title} was born?", museum.name, *steps
    )


@template("map", "wikipedia")
def _hotel_near_sight(state: SiteState, draw: Draw) -> Made:
    """The phone number of the library of the town of a sight."""
    sight = draw.one(state.wiki.of("sight"))
    library = next(each for each in state.map.of("library") if each.town == sight.facts["Town"])
    steps = (
        goto(WIKI + wiki_path(sight.title)),
        goto(f"{MAP}/"),
        fill("Search places", f"library in {library.town}"),
        click(library.name),
    )
    return answer(
        f"What is the phone number of the library in the town of the {sight.title}?", library.phone, *steps
    )
