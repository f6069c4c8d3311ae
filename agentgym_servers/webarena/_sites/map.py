"""The map: places with addresses, and directions between them."""

from __future__ import annotations

from agentgym_servers.webarena._sites.html import choice, facts, field, form, link, table, tag
from agentgym_servers.webarena._sites.map_data import KINDS, MODES, Place, route
from agentgym_servers.webarena._sites.web import Response, Site, Visit, address, or_404

__all__ = ["MAP"]

MAP = Site("map", "Openways Map", (("Search", "/"), ("Directions", "/directions")), accounts=False)


def _search_form() -> object:
    return form("/search", field("Search places", "q"), submit="Search", method="get")


@MAP.get("/")
def _home(visit: Visit) -> Response:
    hint = tag("p", 'Type a name, a kind with a town such as "hotel in ', visit.state.map.towns[0], '", or ')
    near = tag("p", '"cafe near ', visit.state.map.places[3].name, '".')
    return visit.page("Search", tag("h1", "Openways Map"), _search_form(), hint, near)


def _found(visit: Visit, query: str) -> list[Place]:
    data, text = visit.state.map, query.lower()
    for joint in (" near ", " in "):
        kind, found, where = text.partition(joint)
        kind = next((each for each in KINDS if kind.startswith(each) or kind.rstrip("s") == each), "")
        if not found or not kind:
            continue
        if joint == " in ":
            return [each for each in data.of(kind) if each.town.lower() == where.strip()]
        places = [each for each in data.places if where.strip() in each.name.lower()]
        return data.near(places[0], kind) if places else []
    return [
        each for each in data.places if text and text in f"{each.name}, {each.address} {each.kind}".lower()
    ]


@MAP.get("/search")
def _search(visit: Visit) -> Response:
    query = visit.text("q")
    rows = [(link(each.name, f"/place/{each.number}"), each.address) for each in _found(visit, query)]
    found = table((), rows, id="results") if rows else tag("p", "No places were found.")
    return visit.page(f"Search: {query}", tag("h1", f"Results for: {query}"), _search_form(), found)


@MAP.get("/place/{number}")
def _place(visit: Visit, number: str) -> Response:
    place = or_404(next((each for each in visit.state.map.places if str(each.number) == number), None))
    about = [
        ("Kind", KINDS[place.kind]),
        ("Address", place.address),
        ("Phone", place.phone),
        ("Opening hours", place.hours),
    ]
    way = link("Directions from here", address("/directions", start=place.name))
    return visit.page(place.name, tag("h1", place.name), facts(about), way)


@MAP.get("/directions")
def _directions(visit: Visit) -> Response:
    start, end, mode = visit.text("start"), visit.text("end"), visit.text("mode", "car")
    mode = mode if mode in MODES else "car"
    fields = (
        field("From", "start", start),
        field("To", "end", end),
        choice("Travel by", "mode", MODES, mode),
    )
    query_form = form("/directions", *fields, submit="Get directions", method="get")
    by_name = {each.name.lower(): each for each in visit.state.map.places}
    ends = by_name.get(start.lower()), by_name.get(end.lower())
    answer = tag("p", "Enter the names of two places.")
    if ends[0] is not None and ends[1] is not None:
        way = route(ends[0], ends[1], mode)
        about = [("From", start), ("To", end), ("By", mode), ("Distance", way.distance), ("Time", way.time)]
        answer = facts(about, id="route")
    return visit.page("Directions", tag("h1", "Directions"), query_form, answer)
