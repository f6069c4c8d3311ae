"""The ten databases of the local SQLGym server: eight for training, and two that no train task is about."""

from __future__ import annotations

from agentgym_servers.sqlgym._names import COUNTRIES, TOWNS
from agentgym_servers.sqlgym._schema import Database, Label, Link, Number, Pick, Table

__all__ = ["DEV", "TRAIN"]

_YEARS = (1990, 2023)


def _university() -> Database:
    departments = Table(
        "department",
        12,
        Label("name", "place"),
        Pick("building", ("North Wing", "Old Hall", "South Wing", "Tower")),
        Number("budget", 200_000, 900_000, 10_000),
    )
    lecturers = Table(
        "lecturer",
        40,
        Label("name", "person"),
        Pick("position", ("assistant", "professor", "reader")),
        Number("salary", 30_000, 90_000, 500),
        Link(departments),
    )
    courses = Table(
        "course",
        60,
        Label("title", "title"),
        Pick("level", ("basic", "advanced", "expert")),
        Number("credits", 2, 12, counts=True),
        Link(lecturers),
    )
    students = Table(
        "student",
        90,
        Label("name", "person"),
        Pick("home_town", TOWNS[:8]),
        Number("birth_year", 1995, 2006),
        Link(departments),
    )
    enrolments = Table(
        "enrolment",
        320,
        Pick("term", ("spring", "summer", "autumn")),
        Number("grade", 20, 100),
        Link(students),
        Link(courses),
    )
    return Database("university", (departments, lecturers, courses, students, enrolments))


def _shop() -> Database:
    suppliers = Table(
        "supplier", 15, Label("name", "firm"), Pick("country", COUNTRIES[:6]), Number("rating", 1, 10)
    )
    products = Table(
        "product",
        70,
        Label("name", "title"),
        Pick("category", ("books", "clothes", "garden", "kitchen", "toys")),
        Number("price", 5, 240),
        Number("stock", 0, 500),
        Link(suppliers),
    )
    customers = Table("customer", 80, Label("name", "person"), Pick("city", TOWNS[:9]), Number("age", 18, 85))
    orders = Table(
        "order",
        160,
        Pick("status", ("new", "paid", "returned", "shipped")),
        Number("order_year", 2015, 2023),
        Link(customers),
        many="purchase_orders",
    )
    items = Table("item", 350, Number("quantity", 1, 12), Link(orders), Link(products), many="order_items")
    return Database("shop", (suppliers, products, customers, orders, items))


def _airline() -> Database:
    airlines = Table(
        "airline",
        12,
        Label("name", "firm"),
        Pick("country", COUNTRIES[2:9]),
        Number("founding_year", 1920, 2015),
    )
    airports = Table(
        "airport",
        18,
        Label("name", "place"),
        Pick("climate", ("cold", "dry", "mild", "tropical")),
        Number("runways", 1, 6, counts=True),
    )
    flights = Table(
        "flight",
        150,
        Label("code", "code"),
        Pick("weekday", ("Friday", "Monday", "Saturday", "Sunday", "Thursday", "Tuesday", "Wednesday")),
        Number("distance", 150, 9_000, 10),
        Number("delay", 0, 180),
        Link(airlines),
        Link(airports),
    )
    passengers = Table(
        "passenger",
        90,
        Label("name", "person"),
        Pick("nationality", COUNTRIES[:7]),
        Number("miles", 0, 90_000, 100, counts=True),
    )
    bookings = Table(
        "booking",
        330,
        Pick("travel_class", ("business", "economy", "first")),
        Number("fare", 40, 2_400, 10),
        Link(flights),
        Link(passengers),
    )
    return Database("airline_traffic", (airlines, airports, flights, passengers, bookings))


def _films() -> Database:
    studios = Table(
        "studio",
        12,
        Label("name", "firm"),
        Pick("country", COUNTRIES[3:]),
        Number("founding_year", 1910, 2005),
    )
    directors = Table(
        "director",
        30,
        Label("name", "person"),
        Pick("nationality", COUNTRIES[:6]),
        Number("awards", 0, 25, counts=True),
    )
    films = Table(
        "film",
        110,
        Label("title", "title"),
        Pick("genre", ("comedy", "crime", "drama", "romance", "western")),
        Number("release_year", *_YEARS),
        Number("length", 75, 210),
        Link(directors),
        Link(studios),
    )
    actors = Table(
        "actor",
        70,
        Label("name", "person"),
        Pick("training", ("academy", "none", "theatre")),
        Number("age", 18, 88),
    )
    roles = Table(
        "role",
        320,
        Pick("kind", ("extra", "lead", "supporting")),
        Number("pay", 1_000, 90_000, 500),
        Link(films),
        Link(actors),
    )
    return Database("film_archive", (studios, directors, films, actors, roles))


def _football() -> Database:
    clubs = Table(
        "club",
        16,
        Label("name", "place"),
        Pick("league", ("first", "second", "third")),
        Number("members", 300, 9_000, 50, counts=True),
    )
    players = Table(
        "player",
        110,
        Label("name", "person"),
        Pick("position", ("defender", "goalkeeper", "midfielder", "striker")),
        Number("age", 17, 39),
        Number("wage", 500, 40_000, 100),
        Link(clubs),
    )
    stadiums = Table(
        "stadium",
        14,
        Label("name", "title"),
        Pick("surface", ("grass", "hybrid", "turf")),
        Number("capacity", 2_000, 60_000, 500),
    )
    matches = Table(
        "game",
        90,
        Pick("competition", ("cup", "friendly", "league", "playoff")),
        Number("attendance", 500, 40_000, 100),
        Link(stadiums),
    )
    appearances = Table(
        "appearance",
        340,
        Pick("card", ("none", "red", "yellow")),
        Number("minutes", 5, 90, counts=True),
        Number("goals", 0, 4, counts=True),
        Link(players),
        Link(matches),
    )
    return Database("football", (clubs, players, stadiums, matches, appearances))


def _hospital() -> Database:
    wards = Table(
        "ward",
        12,
        Label("name", "place"),
        Pick("floor", ("ground", "lower", "upper")),
        Number("beds", 6, 60, counts=True),
    )
    doctors = Table(
        "doctor",
        35,
        Label("name", "person"),
        Pick("speciality", ("cardiology", "neurology", "oncology", "surgery")),
        Number("experience", 1, 40),
        Link(wards),
    )
    patients = Table(
        "patient",
        100,
        Label("name", "person"),
        Pick("blood_group", ("A", "AB", "B", "O")),
        Number("birth_year", 1930, 2018),
    )
    visits = Table(
        "visit",
        330,
        Pick("reason", ("accident", "check", "illness", "vaccination")),
        Number("cost", 20, 2_500, 5),
        Number("waiting_time", 0, 240),
        Link(doctors),
        Link(patients),
    )
    drugs = Table(
        "drug",
        25,
        Label("name", "title"),
        Pick("form", ("cream", "syrup", "tablet")),
        Number("price", 3, 180),
    )
    prescriptions = Table("prescription", 260, Number("doses", 1, 60, counts=True), Link(visits), Link(drugs))
    return Database("hospital", (wards, doctors, patients, visits, drugs, prescriptions))


def _library() -> Database:
    authors = Table(
        "author",
        45,
        Label("name", "person"),
        Pick("country", COUNTRIES[1:8]),
        Number("birth_year", 1850, 1995),
    )
    publishers = Table(
        "publisher",
        14,
        Label("name", "firm"),
        Pick("city", TOWNS[4:10]),
        Number("staff", 5, 400, counts=True),
    )
    books = Table(
        "book",
        130,
        Label("title", "title"),
        Pick("language", ("Arabic", "English", "French", "Hindi", "Spanish")),
        Number("pages", 60, 900, counts=True),
        Number("publication_year", 1950, 2023),
        Link(authors),
        Link(publishers),
    )
    members = Table(
        "member",
        80,
        Label("name", "person"),
        Pick("membership", ("adult", "child", "senior", "student")),
        Number("joining_year", 2000, 2023),
    )
    loans = Table(
        "loan",
        340,
        Pick("state", ("lost", "open", "returned")),
        Number("days", 1, 60, counts=True),
        Number("fine", 0, 30),
        Link(books),
        Link(members),
    )
    return Database("city_library", (authors, publishers, books, members, loans))


def _music() -> Database:
    labels = Table(
        "label",
        12,
        Label("name", "firm"),
        Pick("country", COUNTRIES[:5]),
        Number("founding_year", 1940, 2015),
        many="record_labels",
    )
    bands = Table(
        "band",
        40,
        Label("name", "title"),
        Pick("style", ("blues", "folk", "jazz", "pop", "rock")),
        Number("founding_year", 1960, 2020),
        Link(labels),
    )
    albums = Table(
        "album",
        110,
        Label("title", "title"),
        Pick("format", ("cassette", "disc", "download", "vinyl")),
        Number("copies_sold", 500, 90_000, 100, counts=True),
        Link(bands),
    )
    venues = Table(
        "venue", 18, Label("name", "place"), Pick("town", TOWNS[6:13]), Number("capacity", 80, 12_000, 20)
    )
    concerts = Table(
        "concert",
        260,
        Pick("season", ("autumn", "spring", "summer", "winter")),
        Number("ticket_price", 8, 120),
        Number("visitors", 40, 9_000, 10, counts=True),
        Link(bands),
        Link(venues),
    )
    return Database("music_scene", (labels, bands, albums, venues, concerts))


def _museum() -> Database:
    artists = Table(
        "artist",
        45,
        Label("name", "person"),
        Pick("nationality", COUNTRIES[2:9]),
        Number("birth_year", 1600, 1980),
    )
    galleries = Table(
        "gallery",
        12,
        Label("name", "place"),
        Pick("storey", ("first", "ground", "second")),
        Number("area", 40, 600, 5),
        many="galleries",
    )
    works = Table(
        "artwork",
        120,
        Label("title", "title"),
        Pick("technique", ("drawing", "painting", "photograph", "sculpture")),
        Number("insured_value", 1_000, 800_000, 1_000),
        Number("creation_year", 1650, 2020),
        Link(artists),
        Link(galleries),
    )
    visitors = Table(
        "visitor",
        70,
        Label("name", "person"),
        Pick("ticket", ("child", "full", "reduced")),
        Number("age", 6, 90),
    )
    reviews = Table(
        "review",
        300,
        Pick("language", ("English", "German", "Polish")),
        Number("stars", 1, 5, counts=True),
        Number("words", 5, 400, counts=True),
        Link(works),
        Link(visitors),
    )
    return Database("museum", (artists, galleries, works, visitors, reviews))


def _buses() -> Database:
    depots = Table(
        "depot",
        12,
        Label("name", "place"),
        Pick("district", ("centre", "east", "north", "west")),
        Number("capacity", 10, 120),
    )
    drivers = Table(
        "driver",
        60,
        Label("name", "person"),
        Pick("contract", ("full-time", "part-time", "seasonal")),
        Number("hiring_year", 1995, 2023),
        Number("salary", 24_000, 52_000, 200),
        Link(depots),
    )
    buses = Table(
        "bus",
        50,
        Label("plate", "code"),
        Pick("engine", ("diesel", "electric", "gas", "hybrid")),
        Number("places", 18, 110, counts=True),
        Link(depots),
        many="buses",
    )
    routes = Table(
        "route",
        25,
        Label("name", "title"),
        Pick("kind", ("express", "local", "night")),
        Number("length", 3, 48),
    )
    trips = Table(
        "trip",
        340,
        Pick("weather", ("dry", "fog", "rain", "snow")),
        Number("passengers", 0, 100, counts=True),
        Number("lateness", 0, 40),
        Link(drivers),
        Link(buses),
        Link(routes),
    )
    return Database("bus_company", (depots, drivers, buses, routes, trips))


TRAIN = (_university(), _shop(), _airline(), _films(), _football(), _hospital(), _library(), _music())
"""The databases of the train split."""

DEV = (_museum(), _buses())
"""The databases of the dev split."""
