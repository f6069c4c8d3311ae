"""The words of which the world is made: parts of names, and sentences with gaps for facts."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["ENDINGS", "FIRST_NAMES", "MIDDLES", "SENTENCES", "STARTS", "TITLES", "VALUES"]

STARTS = (
    *("bal", "bel", "bor", "bran", "cal", "cor", "dal", "der", "dor", "el", "fal", "fen", "gar", "gel"),
    *("hal", "hor", "il", "jar", "kel", "kor", "lam", "lor", "mal", "mer", "mor", "nal", "nor", "ol"),
    *("pel", "quin", "ral", "ros", "sal", "sel", "tal", "tor", "ul", "val", "ver", "wil", "yor", "zel"),
)
"""First syllables of invented words."""

MIDDLES = ("", "a", "e", "i", "o", "ar", "en")
"""What may stand between them."""

ENDINGS = (
    *("bert", "brook", "dane", "den", "dor", "drith", "fast", "ford", "gard", "gund", "hild", "ick", "ingen"),
    *("kamp", "ket", "lin", "lock", "low", "mere", "mond", "nack", "ness", "oth", "pan", "quist", "rane"),
    *(
        "rick",
        "sel",
        "shaw",
        "sten",
        "tam",
        "thorn",
        "tin",
        "vale",
        "vane",
        "vik",
        "wald",
        "wen",
        "yard",
        "zin",
    ),
)
"""Last syllables of invented words."""

FIRST_NAMES = (
    *(
        "Ada",
        "Albin",
        "Alma",
        "Anton",
        "Asta",
        "Basil",
        "Berta",
        "Bruno",
        "Cara",
        "Casper",
        "Clara",
        "Conrad",
    ),
    *("Dagmar", "Dario", "Delia", "Edgar", "Edna", "Elias", "Elsa", "Emil", "Erna", "Fabian", "Flora"),
    *("Frida", "Gerda", "Gideon", "Greta", "Hanna", "Harald", "Hedda", "Hugo", "Ida", "Igor", "Ines", "Isak"),
    *("Jonas", "Judith", "Karla", "Kaspar", "Lena", "Leopold", "Lydia", "Magnus", "Marta", "Milan", "Mina"),
    *("Nadia", "Noah", "Nora", "Olga", "Oskar", "Otto", "Paula", "Petra", "Ragnar", "Rita", "Rosa", "Samuel"),
    *("Selma", "Sigrid", "Silas", "Stella", "Tessa", "Theo", "Thora", "Ursula", "Vera", "Viktor", "Wanda"),
)

TITLES: Mapping[str, tuple[str, ...]] = {
    "region": ("{word}",),
    "river": ("{word}",),
    "town": ("{word}",),
    "school": ("{word} Academy", "{word} College", "{word} Institute", "{word} School"),
    "scholar": ("{first} {word}",),
    "person": ("{first} {word}",),
    "company": ("{word} Works", "{word} & Sons", "{word} Brothers", "{word} Trading", "{word} Mills"),
    "building": ("{word} Tower", "{word} Hall", "{word} Palace", "{word} House", "{word} Court"),
    "film": (
        *("The Night of {word}", "Goodbye, {word}", "The Train to {word}", "A Letter from {word}"),
        *("The Thief of {word}", "Summer in {word}", "The Clockmaker of {word}", "Return to {word}"),
    ),
    "book": (
        *("The Garden of {word}", "The Winters of {word}", "A History of {word}", "The Daughters of {word}"),
        *("Songs from {word}", "The Keeper of {word}", "Days in {word}", "The House of {word}"),
    ),
    "painting": (
        *("Evening at {word}", "Harvest near {word}", "The Ferry of {word}", "Snow over {word}"),
        *("Portrait of {word}", "Boats at {word}", "The Market of {word}", "Horses of {word}"),
    ),
    "instrument": (
        "{word} horn",
        "{word} harp",
        "{word} flute",
        "{word} drum",
        "{word} fiddle",
        "{word} organ",
    ),
    "dish": ("{word} soup", "{word} pie", "{word} stew", "{word} cake", "{word} dumplings", "{word} pudding"),
}
"""What things of each kind are called."""

VALUES: Mapping[str, tuple[str, ...]] = {
    "side": ("north", "south", "east", "west", "middle"),
    "living": ("fishing", "farming", "forestry", "mining", "weaving", "keeping sheep", "growing fruit"),
    "end": ("the sea", "a large lake", "a wide marsh", "a bay with many islands"),
    "subject": ("geometry", "music", "history", "chemistry", "drawing", "botany", "law", "astronomy"),
    "goods": ("clocks", "lamps", "shoes", "paper", "glass", "bicycles", "furniture", "tea", "rope", "stoves"),
    "material": ("brick", "granite", "timber", "sandstone", "concrete", "marble"),
    "story": (
        *("two sisters who inherit a mill", "a lost letter", "a teacher who gives up her post"),
        *("a strike in a small factory", "a wedding that never takes place", "an old sailor and his dog"),
    ),
    "sound": ("deep and soft", "bright", "sharp", "warm", "thin and high"),
    "ingredient": ("barley", "cabbage", "plums", "mushrooms", "smoked fish", "onions", "chestnuts", "apples"),
}
"""Small facts that no question asks for."""

SENTENCES: Mapping[str, tuple[str, ...]] = {
    "region": (
        "{title} is a region in the {side} of the country. Most people of {title} live by {living}.",
        "{title} lies in the {side} of the country. The region of {title} is known for {living}.",
    ),
    "river": (
        "{title} is a river. The {title} is {length} kilometres long and ends in {end}.",
        ("The {title} is a river that runs for {length} kilometres. In the end the {title} reaches {end}."),
    ),
    "town": (
        (
            "{title} is a town on the river {river}, in the region of {region}. {title} was founded in "
            "{year} and has {population} inhabitants."
        ),
        (
            "The town of {title} lies in {region}, where the river {river} flows through it. {title} "
            "has {population} inhabitants and was founded in {year}."
        ),
    ),
    "school": (
        ("{title} is a school in {town}. It was opened in {year} and is known for its lessons in {subject}."),
        ("{title}, opened in {year}, is a school for young people in {town}. Its main subject is {subject}."),
    ),
    "scholar": (
        "{title} (born {year}) was a scholar from {town}. {title} taught {subject} and wrote works on it.",
        "{title} was born in {town} in {year}. {title} was a scholar of {subject} and had many pupils.",
    ),
    "person": (
        (
            "{title} (born {year}) was {trade}. {last} came from {town}, studied at {school} and was "
            "taught there by {teacher}."
        ),
        (
            "{title} was born in {town} in {year}. A pupil of {teacher} at {school}, {last} became "
            "known as {trade}."
        ),
    ),
    "company": (
        (
            "{title} is a company that makes {goods}. It was founded in {year} by {founder} and has its "
            "seat in {town}."
        ),
        (
            "{title} is a maker of {goods}. Since {founder} founded the company in {year}, it has had "
            "its seat in {town}."
        ),
    ),
    "building": (
        (
            "{title} is a building of {material} in {town}. It was designed by {architect} and finished "
            "in {year}."
        ),
        (
            "{title} stands in {town}. The building, by the architect {architect}, is of {material} and "
            "was finished in {year}."
        ),
    ),
    "film": (
        (
            "{title} is a film of {year} about {story}. It is set in {town}. {director} directed it, "
            "{actor} plays the leading part, and the music is by {composer}."
        ),
        (
            "{title} is a film directed by {director}, with {actor} in the leading part and music by "
            "{composer}. It came out in {year}, is set in {town}, and tells of {story}."
        ),
    ),
    "book": (
        "{title} is a book by {author}, published in {year} by {publisher}. It tells of {story}.",
        ("{title} is a book about {story}. {author} wrote it, and {publisher} published it in {year}."),
    ),
    "painting": (
        "{title} is a painting by {painter}, made in {year}. It hangs in {museum}.",
        "{title} was painted by {painter} in {year}. The painting hangs in {museum}.",
    ),
    "instrument": (
        (
            "The {title} is a musical instrument with a {sound} sound. {inventor} invented it in "
            "{year}, and {maker} makes it."
        ),
        (
            "The {title} is an instrument made by {maker}. Its inventor is {inventor}, who showed it "
            "first in {year}. The sound is {sound}."
        ),
    ),
    "dish": (
        ("{title} is a dish from {town}, made with {ingredient}. The cook {cook} first served it in {year}."),
        (
            "{title} is a dish of {ingredient}. It comes from {town}, where the cook {cook} made it "
            "first in {year}."
        ),
    ),
}
"""What the document of each kind says; ``last`` is the last name of a person."""
