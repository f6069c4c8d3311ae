"""How a question speaks of something without its name, and what it asks about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["ASKED", "COMPARED", "DECADES", "NAMED", "OTHERS", "REFERENCES"]

NAMED: Mapping[str, str] = {
    "film": 'the film "{title}"',
    "book": 'the book "{title}"',
    "painting": 'the painting "{title}"',
    "instrument": "the {title}",
}
"""What a thing of a kind is called in a question; all others are called by their title."""

REFERENCES: Mapping[tuple[str, str], tuple[str, str]] = {
    ("film", "director"): ("person", "the director of {x}"),
    ("film", "actor"): ("person", "the leading actor of {x}"),
    ("film", "composer"): ("person", "the composer of the music for {x}"),
    ("film", "town"): ("town", "the town where {x} is set"),
    ("book", "author"): ("person", "the author of {x}"),
    ("book", "publisher"): ("company", "the company that published {x}"),
    ("painting", "painter"): ("person", "the painter of {x}"),
    ("painting", "museum"): ("building", "the building where {x} hangs"),
    ("building", "architect"): ("person", "the architect of {x}"),
    ("building", "town"): ("town", "the town where {x} stands"),
    ("company", "founder"): ("person", "the founder of {x}"),
    ("company", "town"): ("town", "the town where {x} has its seat"),
    ("instrument", "inventor"): ("person", "the inventor of {x}"),
    ("instrument", "maker"): ("company", "the company that makes {x}"),
    ("dish", "cook"): ("person", "the cook who first made {x}"),
    ("dish", "town"): ("town", "the town that {x} comes from"),
    ("person", "town"): ("town", "the town where {x} was born"),
    ("person", "school"): ("school", "the school where {x} studied"),
    ("person", "teacher"): ("scholar", "the teacher of {x}"),
    ("scholar", "town"): ("town", "the town where {x} was born"),
    ("school", "town"): ("town", "the town of {x}"),
}
"""By kind and fact: the kind of what the fact names, and how it is spoken of."""

ASKED: Mapping[str, Mapping[str, str]] = {
    "person": {
        "town": "In which town was {y} born?",
        "year": "In which year was {y} born?",
        "school": "At which school did {y} study?",
        "teacher": "Who taught {y}?",
    },
    "scholar": {"town": "In which town was {y} born?", "year": "In which year was {y} born?"},
    "town": {
        "river": "Which river flows through {y}?",
        "year": "In which year was {y} founded?",
    },
    "company": {
        "town": "In which town is the seat of {y}?",
        "founder": "Who founded {y}?",
        "year": "In which year was {y} founded?",
    },
    "school": {"town": "In which town is {y}?", "year": "In which year was {y} opened?"},
    "building": {
        "town": "In which town is {y}?",
        "architect": "Who designed {y}?",
        "year": "In which year was {y} finished?",
    },
}
"""By kind and fact: the question for it."""

COMPARED: Mapping[str, tuple[str, tuple[tuple[str, Callable[..., int]], ...]]] = {
    "person": ("year", (("the elder of {a} and {b}", min), ("the younger of {a} and {b}", max))),
    "town": ("population", (("the larger of {a} and {b}", max), ("the smaller of {a} and {b}", min))),
}
"""By kind: the number that two of it are compared by, and how the one with the least or most is spoken of."""

OTHERS: Mapping[tuple[str, str], str] = {
    ("film", "director"): "Which other film was made by {y}?",
    ("film", "actor"): "In which other film did {y} play the leading part?",
    ("film", "composer"): "For which other film did {y} write the music?",
    ("book", "author"): "Which other book was written by {y}?",
    ("painting", "painter"): "Which other painting is by {y}?",
    ("building", "architect"): "Which other building was designed by {y}?",
    ("company", "founder"): "Which other company was founded by {y}?",
    ("instrument", "inventor"): "Which other instrument was invented by {y}?",
    ("dish", "cook"): "Which other dish was first made by {y}?",
}
"""By kind and fact: the question for the second thing of the kind that has the same in it."""

DECADES: Mapping[str, str] = {
    "building": "Which building in {y} was finished in the {decade}s?",
    "company": "Which company that was founded in the {decade}s has its seat in {y}?",
}
"""By kind: the question for the one of a town and of ten years."""
