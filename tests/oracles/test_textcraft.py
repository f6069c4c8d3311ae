"""The oracle of TextCraft."""

import contextlib
import dataclasses

import pytest

from agentgym_gym import find
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.envs.textcraft import Craft, Get, Inventory
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import evaluate, load_oracle, summarise

TEXTCRAFT = find("TextCraft")


def begin(recipes, goal):
    oracle = load_oracle(TEXTCRAFT)
    oracle.reset(None, f"Crafting commands:\n{recipes}\n\nGoal: craft {goal}.", {"goal": goal})
    return oracle


def play(recipes, goal, *answers):
    """Return what the oracle does when it gets the answers one after another."""
    oracle = begin(recipes, goal)
    return [str(oracle.act(answer, {})) for answer in ("", *answers)]


def planned(recipes, goal, held=""):
    """Return all that the oracle does in a game where everything works and some items are held."""
    oracle, answer, actions = begin(recipes, goal), "", []
    if held:
        oracle.act("", {})
        assert oracle.act("what?", {}) == Inventory()
        answer = f"Inventory: {held} "
    while (action := oracle.act(answer, {})) is not None:
        assert len(actions) < 20
        actions.append(str(action))
        got = isinstance(action, Get)
        item = action.item if got else f"minecraft:{action.item.replace(' ', '_')}"
        answer = f"{'Got' if got else 'Crafted'} {action.count} {item}"
    return actions


@pytest.mark.slow
def test_it_solves_every_task(textcraft_url):
    with contextlib.closing(
        AgentGymEnv("TextCraft", server=textcraft_url, split="all", max_turns=None)
    ) as env:
        records = evaluate(env, load_oracle(TEXTCRAFT), env.tasks)
    summary = summarise(records)
    assert (summary.scored, summary.success_rate, summary.parse_error_share) == (544, 1.0, 0.0)
    assert len({record.goal for record in records}) == 544
    too_long = {record.task_id: record.turns for record in records if record.turns > TEXTCRAFT.max_turns}
    least = {task: f"it takes {turns} turns at least" for task, turns in too_long.items()}
    assert least == TEXTCRAFT.unwinnable
    assert len(too_long) == 13


def test_shared_ingredients_are_collected_once_and_crafted_together():
    recipes = "craft 1 ladder using 3 stick, 2 pole\ncraft 1 pole using 2 stick\ncraft 4 stick using 1 bamboo"
    assert planned(recipes, "ladder") == [
        "get 2 bamboo",
        *["craft 4 stick using 1 bamboo"] * 2,
        *["craft 1 pole using 2 stick"] * 2,
        "craft 1 ladder using 3 stick, 2 pole",
    ]


def test_the_recipe_with_the_fewest_turns_is_chosen():
    recipes = "craft 1 dye using 1 berry\ncraft 8 dye using 1 root, 1 seed\ncraft 1 seed using 1 pod\n"
    assert planned(f"{recipes}craft 1 cloth using 1 dye", "cloth")[0] == "get 1 berry"
    assert len(planned(f"{recipes}craft 1 cloth using 8 dye", "cloth")) == 5


def test_items_in_the_inventory_are_not_crafted_again():
    recipes = "craft 1 torch using 1 stick, 1 coal\ncraft 4 stick using 1 bamboo"
    assert planned(recipes, "torch", "[stick] (3)") == ["get 1 coal", "craft 1 torch using 1 stick, 1 coal"]
    assert planned(recipes, "torch", "[torch] (1)") == []


def test_circles_lead_nowhere():
    circle = "craft 1 a using 1 b\ncraft 1 b using 1 a"
    assert planned(circle, "a") == []
    assert planned(f"{circle}\ncraft 1 b using 1 c", "a") == [
        "get 1 c",
        "craft 1 b using 1 c",
        "craft 1 a using 1 b",
    ]


def test_the_order_of_the_recipes_shown_does_not_make_it_longer():
    recipes = [
        "craft 2 d using 1 e",
        "craft 1 d using 1 f",
        "craft 1 a using 1 d, 1 b",
        "craft 1 b using 1 d, 1 e",
    ]
    assert len(planned("\n".join(recipes), "a")) == len(planned("\n".join(recipes[::-1]), "a")) == 4


def test_a_kind_is_served_by_a_member():
    recipes = "craft 4 oak planks using 1 oak logs\ncraft 4 stick using 2 planks"
    assert planned(recipes, "stick") == [
        "get 1 oak logs",
        "craft 4 oak planks using 1 oak logs",
        "craft 4 stick using 2 oak planks",
    ]


def test_an_item_made_from_a_name_is_not_a_kind_of_it():
    recipes = "craft 8 blue glass using 8 glass, 1 dye\ncraft 3 bottle using 3 glass"
    assert planned(recipes, "bottle") == ["get 3 glass", "craft 3 bottle using 3 glass"]


def test_a_goal_without_a_recipe_is_taken():
    assert planned("", "bone") == ["get 1 bone"]


@pytest.mark.parametrize("name", ["fuels", "burnables"])
def test_an_unavailable_item_is_found_to_be_a_kind(name):
    recipes = f"craft 2 fuel rod using 1 gas\ncraft 1 torch using 1 {name}"
    assert play(recipes, "torch", f"Could not find {name}", "Got 1 gas", "Crafted 2 minecraft:fuel_rod") == [
        f"get 1 {name}",
        "get 1 gas",
        "craft 2 fuel rod using 1 gas",
        "craft 1 torch using 1 fuel rod",
    ]


def test_a_member_that_does_not_serve_is_not_tried_again():
    recipes = "craft 1 black wool using 1 coal\ncraft 1 gray wool using 1 coal\ncraft 1 painting using 1 wool"
    refusal = "Could not find a valid recipe for ItemTagWithCount(...)"
    said = play(recipes, "painting", "Got 1 coal", "Crafted 1 minecraft:black_wool", refusal, "Got 1 coal")
    assert said[2:] == ["craft 1 painting using 1 black wool", "get 1 coal", "craft 1 gray wool using 1 coal"]


def test_a_recipe_that_does_not_work_is_not_tried_again():
    recipes = "craft 1 a using 1 b\ncraft 1 a using 1 c, 1 d"
    refusal = "Could not find a valid recipe for ItemTagWithCount(...)"
    said = play(recipes, "a", "Got 1 b", refusal, "Got 1 c", "Got 1 d", refusal)
    assert said == [
        "get 1 b",
        "craft 1 a using 1 b",
        "get 1 c",
        "get 1 d",
        "craft 1 a using 1 c, 1 d",
        "None",
    ]


def test_an_unknown_response_makes_it_look():
    oracle = begin("craft 1 a using 2 b", "a")
    assert oracle.act("", {}) == Get(2, "b")
    assert oracle.act("Your reply was not carried out.", {}) == Inventory()
    assert oracle.act("Inventory: [b] (1) [c] (7) ", {}) == Get(1, "b")
    assert isinstance(oracle.act("Got 1 b", {}), Craft)


def test_it_gives_up_when_nothing_helps():
    said = play("craft 1 a using 1 b", "a", *["what?"] * 10)
    assert said[:6] == ["get 1 b", "inventory", "get 1 b", "inventory", "get 1 b", "None"]
    assert play("", "unobtainium", "Could not find unobtainium") == ["get 1 unobtainium", "None"]


def test_it_plays_alike_every_time():
    recipes = (
        "\n".join(f"craft 1 k{i} using 1 x{i}, 1 y" for i in range(8)) + "\ncraft 1 goal using 1 k, 1 k3"
    )
    assert play(recipes, "goal") == play(recipes, "goal")


def test_without_an_oracle():
    with pytest.raises(BadOption, match="no oracle"):
        load_oracle(dataclasses.replace(TEXTCRAFT, oracle=None))
