"""What an environment's own world talks about: goals, items, tool names and help texts."""

from __future__ import annotations

import itertools
import re
from functools import cache

import agentgym_gym
from local_game import LocalGame

# Tasks of environments without a local server, as in their data sets, or with a single task.
_WRITTEN_GOALS = {
    "Maze": (
        "The goal is at position 8, 6",
        "Your current position is at position 1, 1. There are walls to your left, above you, below you.",
        "Reach the goal by moving right, right and down",
        "I move right until there is a wall",
        "move right, move right, move down",
    ),
    "Wordle": (
        "Guess the hidden word of five letters",
        "The feedback was b y b b b",
        "I guess a word with an s and an e",
    ),
    "ALFWorld": (
        "Your task is to: put a clean mug in coffeemachine.",
        "Your task is to: look at alarmclock under the desklamp.",
        "Your task is to: put two soapbar in garbagecan.",
        "Your task is to: heat some apple and put it in fridge.",
        "Your task is to: cool some potato and put it in microwave.",
        "Your task is to: examine the pen with the desklamp.",
        "Your task is to: put some spraybottle on toilet.",
        "put a hot plate in cabinet",
        "clean some lettuce and put it in countertop",
        "go to countertop 1 and take the mug",
    ),
    "SciWorld": (
        "Your task is to boil water. For compounds without a boiling point, combust the substance.",
        "Your task is to find a(n) non-living thing. First, focus on it. Then move it to the red box.",
        "Your task is to grow a apple plant from seed. Seeds can be found in the bedroom.",
        "Your task is to determine if unknown substance B is electrically conductive.",
        "Your task is to measure the temperature of the water, which is located around the kitchen.",
        "Your task is to use chemistry to create green paint. When you are done, focus on the green paint.",
        "turn on the red light bulb",
        "look around the greenhouse, then wait",
        "mix the salt and the water in the metal pot",
        "connect the battery to the wire",
    ),
    "WebArena": (
        "What is the price range for products from ugreen?",
        "Post a notice on the forum: the park is closed on Sunday",
        "Go to the merge request on verification functions assigned to me",
        "Tell me the full address of all international airports within 50 km of Carnegie Mellon University",
        "Fill the form with the email address of the customer, and click on Submit",
        "Scroll down until the reviews are shown",
        "Open the tab of the shop, type the word 'boots' and press Enter",
        "Add the cheapest tea to my cart",
        "How many commits did Eric make on 3/5/2023?",
        "Stop when the order has been cancelled",
    ),
    "MiniWoB": (
        "Click on the numbers in ascending order.",
        'Click on the "Next" button.',
        "Select ZrLIee, RKPgD, 3mJ5 and click Submit.",
        'Expand the sections below, to find and click on the link "ut.".',
        "Copy the text in the textarea below, paste it into the textbox and press Submit.",
        'Find the email by Celestyn and reply to them with the text "Mi enim sapien, massa.".',
        "Enter 10/20/2017 as the date and hit submit.",
        "Use the terminal below to delete a file ending with the extension .py",
        'Check the 3rd radio button and enter the number "-7" into the 2nd textbox.',
        'For the user @beaulah, click on the "Retweet" button.',
        "Search for surreal movies directed by Baxter from year 1995.",
        "Press the key that opens the menu, then hover over its first item",
    ),
}
_GOALS = 40


@cache
def texts(name):
    """Return the goals, items, tool names, help texts and rules of an environment, one line each."""
    environment = agentgym_gym.find(name)
    found = [
        *goals(environment.name),
        *items(environment),
        *(f"I need {item}" for item in items(environment)),
        *helps(environment),
    ]
    lines = (" ".join(line.split()) for text in found for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line))


@cache
def sentences(name):
    """Return each text of an environment with a colon, with a full stop and with nothing at the end."""
    bare = dict.fromkeys(text.rstrip(" .:") for text in texts(name))
    return [text + end for text in bare if text for end in (":", ".", "")]


def named(environment):
    """Return what the examples of the grammar name."""
    examples = environment.grammar.examples
    return tuple(dict.fromkeys(str(value) for each in examples for value in each.to_json().values()))


def items(environment):
    """Return what the examples of the grammar name, and what the world holds."""
    return tuple(dict.fromkeys([*named(environment), *_items(environment.name)]))


def helps(environment):
    """Return the names, usages and explanations of the actions, the rules and the start of a transcript."""
    grammar = environment.grammar
    described = [
        parameter.get("description", "")
        for tool in grammar.tools()
        for parameter in tool["function"]["parameters"]["properties"].values()
    ]
    return (
        *(text for a in grammar.actions for text in (a.name(), a.doc(), a.usage(), *map(_usage, a.accepts))),
        *map(str, grammar.examples),
        *described,
        environment.summary,
        environment.rules,
        *environment.transcript,
    )


@cache
def goals(name):
    """Return some dozens of goals of an environment, as its local world has them."""
    if name in _WRITTEN_GOALS:
        return _WRITTEN_GOALS[name]
    return tuple(dict.fromkeys(itertools.islice(_goals(name), _GOALS)))


_STEPS = {
    "SQLGym": 8,
    "SearchQA": 101,
}  # from one task to the next: of one database, which takes time to make
_FORMS = {"TextCraft": "Goal: craft {}.", "BabyAI": "Your goal: {}"}


def _goals(name):
    with LocalGame(name) as game:
        for task in game.environment.task_ids[:: _STEPS.get(name, 1)][:_GOALS]:
            yield _FORMS.get(name, "{}").format(game.reset(task).goal)


def _items(name):
    if name == "TextCraft":
        with LocalGame(name) as game:
            recipes = "".join(game.reset(task).observation for task in range(0, 544, 32))
        found = re.findall(r"\d+ ([a-z' ]+?)(?= using|,|\n)", recipes)
        return sorted(set(found))[::2]
    if name == "Wordle":
        with LocalGame(name) as game:
            game.reset(0)
            words = game.get("/wordle/filtered_vocab", id=game.id, whole=True).json()
        return [*words[::100], *(" ".join(word) for word in words[50::200])]
    return []


def _usage(template):
    return template.replace("{", "<").replace("}", ">")
