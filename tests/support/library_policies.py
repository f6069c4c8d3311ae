"""Scripted models for the games: each returns the reply to a conversation, and depends on nothing else."""

from __future__ import annotations

import re
from collections import deque

OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
ICE = {0: 0, 1: 3, 2: 3, 3: 3, 4: 0, 6: 0, 8: 3, 9: 1, 10: 0, 13: 2, 14: 1}
"""The best action in each cell of the slippery lake: 0 to 3 are left, down, right and up."""


def observations(messages):
    return [message["content"] for message in messages if message["role"] == "user"]


def replies(messages):
    return [message["content"] for message in messages if message["role"] == "assistant"]


def bisect(messages):
    """Return the middle of the numbers that the hints leave."""
    first, *answers = observations(messages)
    low, high = map(int, re.search(r"between (\d+) and (\d+)", first).groups())
    for reply, answer in zip(replies(messages), answers, strict=True):
        guess = int(re.search(r"\d+", reply)[0])
        if re.findall(r"number is (higher|lower)", answer)[-1] == "higher":
            low = guess + 1
        else:
            high = guess - 1
    return str((low + high) // 2)


def in_brackets(messages):
    return f"[{bisect(messages)}]"


def in_a_box(messages):
    return f"\\boxed{{{bisect(messages)}}}"


def blackjack(messages):
    score = int(re.findall(r"\(Score: (\d+)\)", observations(messages)[-1])[-1])
    return "[Hit]" if score < 17 else "[Stand]"


def game_2048(messages):
    """Push down and left, and elsewhere when neither moves a tile."""
    order = ("down", "left", "right", "up")
    answers = observations(messages)[1:]
    blocked = 0
    while blocked < len(answers) and "doesn't change" in answers[-1 - blocked]:
        blocked += 1
    return f"\\boxed{{{order[(blocked or len(answers) % 2) % 4]}}}"


def chain_sum(messages):
    terms = re.findall(r"([+-]?) *(\d+)", observations(messages)[0])
    return str(sum(-int(number) if sign == "-" else int(number) for sign, number in terms))


def word_sorting(messages):
    question = observations(messages)[0]
    words = question.rpartition(": ")[2].strip().split(", ")
    return ", ".join(sorted(words, reverse="in descending order" in question))


def find_coin(messages):
    """Walk through all rooms, depth first, and take the coin where it lies."""
    at, came, seen = (0, 0), [], {(0, 0)}
    for reply in replies(messages):
        way = reply.split()[-1]
        at = _beyond(at, way)
        if came and way == OPPOSITE[came[-1]]:
            came.pop()
        else:
            came.append(way)
        seen.add(at)
    commands = observations(messages)[-1].rpartition("Commands: ")[2].split(", ")
    if "take coin" in commands:
        return "take coin"
    verb = "go" if any(command.startswith("go ") for command in commands) else "move"
    for way in OPPOSITE:
        if f"{verb} {way}" in commands and _beyond(at, way) not in seen:
            return f"{verb} {way}"
    return f"{verb} {OPPOSITE[came[-1]]}" if came else "look"


def _beyond(at, way):
    right, down = {"north": (0, -1), "south": (0, 1), "east": (1, 0), "west": (-1, 0)}[way]
    return at[0] + right, at[1] + down


def door_key(messages):
    """Return the first action of a shortest way to the goal."""
    rows = observations(messages)[-1].splitlines()[1:]
    cells = {(x, y): cell for y, row in enumerate(rows) for x, cell in enumerate(row)}
    at = next(place for place, cell in cells.items() if cell in ">v<^")
    start = (at, ">v<^".index(cells[at]), "k" not in cells.values(), "D" not in cells.values())
    ways, left = {start: ""}, deque([start])
    while left:
        state = left.popleft()
        for action, after in _moves(state, cells):
            if after not in ways:
                ways[after] = ways[state] or action
                if cells[after[0]] == "G":
                    return ways[after]
                left.append(after)
    return "done"


def _moves(state, cells):
    (x, y), facing, has_key, is_open = state
    yield "left", ((x, y), (facing - 1) % 4, has_key, is_open)
    yield "right", ((x, y), (facing + 1) % 4, has_key, is_open)
    ahead = [(x + 1, y), (x, y + 1), (x - 1, y), (x, y - 1)][facing]
    cell = cells[ahead]
    if cell == "k" and not has_key:
        yield "pickup", ((x, y), facing, True, is_open)
    elif cell == "D" and has_key and not is_open:
        yield "toggle", ((x, y), facing, has_key, True)
    elif cell != "#" and (cell != "D" or is_open):
        yield "forward", (ahead, facing, has_key, is_open)


def frozen_lake(messages):
    row, column = map(int, re.findall(r"\d+", observations(messages)[-1])[-2:])
    return ("left", "down", "right", "up")[ICE[row * 4 + column]]
