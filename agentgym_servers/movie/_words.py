"""The words of which the films and people of the Movie world are made."""

from __future__ import annotations

__all__ = [
    "ADJECTIVES",
    "ALTERNATIVES",
    "BIRTHPLACES",
    "CITIES",
    "COMPANIES",
    "COUNTRIES",
    "FIRST_NAMES",
    "GENRES",
    "KEYWORDS",
    "KNOWN_FOR",
    "LAST_NAMES",
    "NOUNS",
    "STUDIES",
]


def _split(text: str, mark: str | None = None) -> tuple[str, ...]:
    return tuple(" ".join(word.split()) for word in text.split(mark))


FIRST_NAMES = _split("""
Ada Alvin Amara Anton Bela Bruno Carla Cedric Clara Corin Dalia Darius Delia Edgar Elif Elmer Enzo Esther
Farid Fiona Flora Gideon Greta Hanno Hedda Hugo Ines Ingrid Iris Ivo Jasper Jonna Judith Kamil Karim Kira
Lars Leonie Lorna Lucian Maia Marek Martha Milo Mira Nadia Nils Noor Odette Olaf Orla Otis Paula Petra
Quentin Ramon Rhea Rosalind Rufus Sabine Selma Silas Stella Sunil Tamar Tess Theo Tilda Ulrich Ursula Vera
Viktor Wanda Wesley Xenia Yara Yusuf Zelda Zoltan
""")

LAST_NAMES = _split("""
Abelson Adeyinka Almqvist Ambergate Arkwell Barrowby Belcastro Bellweather Birkhart Blackmoor Bramley
Brightwater Calloway Carrick Castellan Chandran Cloverly Corvino Dalrymple Darnell Delacourt Dunmere
Eastlake Eberling Ellingwood Fairburn Falkner Farrow Feldmann Ferreira Foxglen Galbraith Garrick Glenmore
Grimaldo Hallward Harcastle Hartung Hollowell Ibarra Ingleby Jarvela Kaplanski Kestrel Kilbride Kobayama
Lachance Langmere Larkspur Lindqvist Lockhaven Maddern Marchetti Merriwick Montclair Nakagori Norcross
Oakhurst Okonedo Ostrander Pallister Pemberlane Quillan Radcliff Ravenel Rosendale Sandoval Selwyn Silverton
Stavros Tarrant Thornbury Tremaine Underhill Valcourt Vandermeer Voss Wainscott Westerly Wildgrove Yarrow
Zimmerling
""")

ADJECTIVES = _split("""
Amber Ancient Broken Burning Crimson Distant Drifting Electric Empty Fading Final Forgotten Frozen Gentle
Gilded Golden Hidden Hollow Infinite Iron Last Lonely Lost Midnight Nameless Paper Quiet Restless Scarlet
Secret Second Silent Silver Sleeping Stolen Sunken Velvet Wandering Whispering Wild
""")

NOUNS = _split("""
Anchor Archive Arrow Bridge Canyon Carousel Cartographer Cathedral Clockmaker Comet Compass Courier Crown
Detective Echo Engine Falcon Ferry Forest Garden Harbor Horizon Inheritance Island Journey Kingdom Lantern
Letter Lighthouse Locksmith Meadow Messenger Mirror Mountain Observatory Orchard Passenger Pilot Promise
River Shadow Signal Station Stranger Summer Symphony Tower Train Voyage Winter
""")

CITIES = (
    "Antwerp",
    "Bergen",
    "Bilbao",
    "Bologna",
    "Busan",
    "Cartagena",
    "Dakar",
    "Dresden",
    "Dundee",
    "Galway",
    "Genoa",
    "Havana",
    "Lima",
    "Lyon",
    "Montreal",
    "Nagasaki",
    "Odessa",
    "Oslo",
    "Porto",
    "Riga",
    "Salvador",
    "Seattle",
    "Tallinn",
    "Tampico",
    "Valparaiso",
    "Windhoek",
)
"""Where the films are set."""

BIRTHPLACES = (
    "Aarhus, Denmark",
    "Adelaide, South Australia, Australia",
    "Albany, New York, USA",
    "Bath, Somerset, England, UK",
    "Boise, Idaho, USA",
    "Bremen, Germany",
    "Bristol, England, UK",
    "Cordoba, Argentina",
    "Cork, Ireland",
    "Duluth, Minnesota, USA",
    "Eugene, Oregon, USA",
    "Ghent, Belgium",
    "Graz, Austria",
    "Halifax, Nova Scotia, Canada",
    "Inverness, Scotland, UK",
    "Kochi, Kerala, India",
    "Kumasi, Ghana",
    "Lille, France",
    "Linz, Austria",
    "Lund, Sweden",
    "Mobile, Alabama, USA",
    "Nantes, France",
    "Napier, New Zealand",
    "Nara, Japan",
    "Padua, Italy",
    "Regina, Saskatchewan, Canada",
    "Salamanca, Spain",
    "Sapporo, Hokkaido, Japan",
    "Savannah, Georgia, USA",
    "Swansea, Wales, UK",
    "Tampere, Finland",
    "Toledo, Ohio, USA",
    "Trieste, Italy",
    "Tulsa, Oklahoma, USA",
    "Utrecht, Netherlands",
    "Wichita, Kansas, USA",
)

KNOWN_FOR = (
    "quiet dramas",
    "wide landscapes",
    "dry comedies",
    "long takes",
    "dark thrillers",
    "bright musicals",
)
STUDIES = (
    "a school of drama",
    "a stage in the provinces",
    "an art school",
    "a radio station",
    "a puppet theatre",
)

COMPANIES = tuple(
    f"{name} {kind}"
    for name, kind in zip(
        _split("""
Alderbrook Bluehour Brasslamp Candlewick Cinder Coalbridge Daybreak Driftwood Eleventh Fernhill
Firstlight Foxtail Glasshouse Greyhound Halfmoon Highwire Inkwell Juniper Kingfisher Longacre Magpie
Marigold Northgate Nutmeg Overcoat Paperboat Quarry Redkite Riverstone Saltmarsh Seventhfloor Stonecrop
Tailwind Tinroof Twolanterns Underpass Whitewash Windmill Yellowbrick Zephyr
"""),
        ("Pictures", "Films", "Entertainment", "Studios", "Productions") * 8,
        strict=True,
    )
)

COUNTRIES = {
    "AU": "Australia",
    "BR": "Brazil",
    "CA": "Canada",
    "DE": "Germany",
    "DK": "Denmark",
    "ES": "Spain",
    "FR": "France",
    "GB": "United Kingdom",
    "IE": "Ireland",
    "IN": "India",
    "IT": "Italy",
    "JP": "Japan",
    "KR": "South Korea",
    "MX": "Mexico",
    "NO": "Norway",
    "US": "United States of America",
}

GENRES = (
    "Action",
    "Adventure",
    "Animation",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Family",
    "Fantasy",
    "History",
    "Horror",
    "Music",
    "Mystery",
    "Romance",
    "Science Fiction",
    "Thriller",
)

KEYWORDS = _split(
    """
airship, amnesia, archive, astronomy, bakery, bank robbery, beekeeper, blackout, border, boxing, bridge,
chess, circus, codebreaker, coming of age, concert hall, country house, courtroom, cruise ship, desert,
diary, double life, drought, duel, earthquake, exile, expedition, family feud, ferry, fishing village,
flood, forgery, friendship, ghost town, glacier, grandfather, heist, hitchhiker, hostage, hotel,
inheritance, insomnia, island, journalist, jungle, kidnapping, lighthouse, lost child, lottery,
mapmaker, memory, mining town, mistaken identity, monastery, motorcycle, mountain, museum, night train,
observatory, opera, orphan, painter, piano, pilot, poison, prison break, rainforest, revenge, rivalry,
road trip, robot, sailing, school, secret society, shipwreck, siblings, small town, smuggling,
snowstorm, space station, spy, storm, submarine, taxi driver, time loop, treasure, twins, undercover,
vineyard, volcano, wedding, whistleblower, wilderness, witness
""",
    ",",
)

ALTERNATIVES = {
    "DE": (
        ("Das Haus", "Der Garten", "Die Stadt", "Das Licht", "Der Weg", "Die Nacht", "Der Zug", "Die Stimme"),
        ("am Fluss", "ohne Namen", "im Nebel", "der Stille", "hinter dem Berg", "aus Glas", "von gestern"),
    ),
    "ES": (
        ("La casa", "El puente", "La ciudad", "El faro", "El camino", "La noche", "El tren", "La carta"),
        ("sin nombre", "del norte", "de papel", "en la niebla", "perdida en el mar", "de cristal", "de ayer"),
    ),
    "FR": (
        ("La maison", "Le jardin", "La ville", "Le phare", "Le chemin", "La nuit", "Le train", "La lettre"),
        ("sans nom", "du nord", "de papier", "dans la brume", "au bord du lac", "de verre", "d'hier"),
    ),
    "IT": (
        ("La casa", "Il ponte", "La notte", "Il faro", "Il sentiero", "La voce", "Il treno", "La lettera"),
        ("senza nome", "del nord", "di carta", "nella nebbia", "sul lago", "di vetro", "di ieri"),
    ),
}
"""First and second halves of titles in other countries, by the country's code."""
