"""WebShop: find a product on a shopping site and buy it (Yao et al., 2022, arXiv:2207.01206).

The server rewards only the purchase, and pays again for a second one. It has no ``/close`` and keeps every
environment; from 8,000 environments on it returns ids that are in use. ``click`` takes a label on the page,
regardless of case. An action that the server does not understand changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from agentgym_gym._text import shown
from agentgym_gym.actions import Action, Grammar, Style
from agentgym_gym.arguments import Text
from agentgym_gym.calls import Body, Call, Flow
from agentgym_gym.catalogue import Environment, make_splits
from agentgym_gym.envs._agentgym_parsers import (
    INVALID_ACTION,
    answers,
    code_action,
    json_call,
    known,
    react_action,
)
from agentgym_gym.errors import BadArguments, BadReply, ServerError
from agentgym_gym.wire import Outcome, Score, Start, Wire

__all__ = ["WEBSHOP", "Click", "Search", "WebShopWire"]

# The server treats a search that starts with one of these words as a command: <r> shows random products, <c>
# and <q> the ones of a category or query, and <a> fails, as does <c> without arguments.
_COMMANDS = frozenset({"<a>", "<c>", "<q>", "<r>"})


# Text that starts a second action on one line; an argument that contained it would swallow that action.
_ACTIONS = ("search[", "search [", "click[", "click [")


class _Keywords(Text):
    """Search keywords, which must not start with a command of the server."""

    def check(self, value: Any) -> None:
        super().check(value)
        if value.partition(" ")[0].lower() in _COMMANDS:
            raise BadArguments(f"keywords cannot begin with {', '.join(sorted(_COMMANDS))}")


class _Shopping(Action):
    """Base of both actions."""

    style = Style(verbatim=True)  # the name of an option may contain double or non-breaking spaces


@dataclass(frozen=True)
class Search(_Shopping):
    """Search the shop for products."""

    template: ClassVar[str] = "search[{keywords}]"
    accepts: ClassVar[dict[str, dict[str, str]]] = {"search [{keywords}]": {}}
    keywords: Annotated[
        str,
        # The search engine accepts at most 1,024 different words, and may count each letter as one.
        _Keywords(["waterproof hiking boots", "green coffee table"], max_chars=1_000, without=_ACTIONS),
        "what to search for",
    ]


@dataclass(frozen=True)
class Click(_Shopping):
    """Click a button, a product or an option of the page, named as it is printed there."""

    template: ClassVar[str] = "click[{item}]"
    accepts: ClassVar[dict[str, dict[str, str]]] = {"click [{item}]": {}}
    item: Annotated[
        str,
        Text(["buy now", "back to search", "next >", "B09N8SLFRJ", "size: x-large [tall]"], without=_ACTIONS),
        "what to click",
    ]


_GRAMMAR = Grammar([Search("waterproof hiking boots"), Click("buy now")])

_RULES = """\
You are shopping on a website. The first page names what you are to buy; its parts, as those of every page, \
are separated by `[SEP]`. After each of your actions you see the page that it leads to.

- Search first, with a few words that fit the product. The results are products, each with its number such \
as B09N8SLFRJ, its title and its price: click the number to open the product's page.
- On that page click each option that you were asked for, such as the colour and the size. The page does \
not show which options are chosen.
- `Description`, `Features` and `Reviews` tell more of a product. `Back to Search`, `Next >` and `< Prev` \
take you to other pages.
- Click only what is printed on the page. Anything else changes nothing.
- When all is as asked, click `Buy Now`. That ends the task, and you are scored by how well the product, its \
options and its price fit. You can buy once, and without buying you score nothing."""

_GOAL = re.compile(r"Instruction: \[SEP\] (.+?) \[SEP\] ", re.DOTALL)


# The server parses ``name[argument]`` at the start of the first line, and the argument's first word.
_SEARCHED = re.compile(r"search\[([^\[\n]+)\]")


@dataclass(frozen=True)
class WebShopWire(Wire):
    """Protocol of AgentGym's WebShop server: ids under ``env_idx``, failures as a bare HTTP 500.

    Attributes:
        available_actions: Whether to request the available actions, with one additional request for each
            reset and step.
    """

    greeting = "ok"
    routes: ClassVar[dict[str, tuple[str, ...]]] = {"/reset": ("env_idx", "session_id")}
    closes = False
    capacity = 8_000
    reissues_ids = True
    repeats_ids = False  # ids are random numbers

    available_actions: bool = False

    def create(self, task_id: int) -> Flow[int]:
        """Create an environment; the response is a bare id."""
        body = (yield Call("create", "POST", "/create")).body()
        return body.integer()

    def list_envs(self) -> Flow[tuple[int, ...] | None]:
        """Return the ids of all environments; ids are random, so a listed id of ours is still ours."""
        try:
            return (yield Call("observe", "GET", "/list_envs")).body().integers()
        except ServerError:  # optional: the list only lets the client reuse environments
            return None

    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task and request the first page, as AgentGym's client does."""
        body = {"env_idx": env_id, "session_id": task_id}
        start = (yield Call("reset", "POST", "/reset", body)).body()
        start.text(0)
        page = (yield Call("observe", "GET", "/observation", query={"env_idx": env_id})).body()
        observation = page.text()
        goal = _GOAL.search(observation)
        return Start(observation, goal[1] if goal else None, (yield from self._list_actions(env_id)))

    def check(self, words: str) -> None:
        """Reject searches that the server fails on: the agent's mistake must not count as a fault."""
        found = _SEARCHED.match(words)
        searched = found[1].lower().split(" ") if found else [""]
        if searched[0] == "<a>" or searched == ["<c>"]:
            raise BadArguments(f"the server cannot search for {shown(words)}")

    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Execute one action."""
        body = (yield Call("step", "POST", "/step", {"env_idx": env_id, "action": action})).body()
        reward, done = _reward_of(body), body.flag("done")
        # After a purchase no action is left, and a failed request for the list would lose the score.
        actions = None if done else (yield from self._list_actions(env_id))
        return Outcome(body.text("state"), reward, done, actions)

    def judge(self, start: Start, score: float, action: str, outcome: Outcome) -> Score:
        """Score a purchase as the server does and ignore earlier rewards; success requires a score of 1."""
        if not outcome.done:
            return Score(score, success=False, done=False, agentgym_score=outcome.reward)
        return Score(outcome.reward, outcome.reward == 1.0, done=True, agentgym_score=outcome.reward)

    def _list_actions(self, env_id: int) -> Flow[tuple[str, ...] | None]:
        if not self.available_actions:
            return None
        call = Call("observe", "GET", "/available_actions", query={"env_idx": env_id})
        body = (yield call).body()
        search = ("search[<keywords>]",) if body.flag("has_search_bar") else ()
        # The server lists the button of the search bar, but clicking it does nothing.
        return search + tuple(f"click[{item}]" for item in body.texts("clickables") if item != "search")


def _reward_of(body: Body) -> float:
    reward = body.number("reward")
    if not 0 <= reward <= 1:
        raise BadReply(f"{body.call} broke the protocol: 'reward' should be from 0 to 1, got {reward}")
    return reward


_PARAMETERS = {"search": "keywords", "click": "item"}


@answers(INVALID_ACTION)
def _read_function_calling(reply: str) -> str:
    """Return the text that AgentGym's client would send for a JSON call."""
    name, arguments = json_call(reply)
    parameter = _PARAMETERS[known(name, _PARAMETERS)]
    if not isinstance(arguments, dict) or parameter not in arguments:
        raise BadArguments(f"{name} takes one argument, {parameter}")
    return f"{name}[{arguments[parameter]}]"


@answers(INVALID_ACTION)
def _read_code_as_action(reply: str) -> str:
    """Return the text that AgentGym's client would send for a Python call or a string literal."""
    return code_action(reply, {each: (argument,) for each, argument in _PARAMETERS.items()}, _action_of_call)


def _action_of_call(name: str, given: dict[str, Any]) -> str:
    if not given:
        raise BadArguments(f"{name} takes one argument, {_PARAMETERS[name]}")
    return f"{name}[{given[_PARAMETERS[name]]}]"


_QUIRKS = """\
- The score is between 0 and 1: the share of the required attributes, options and price that the purchase
  meets. Success is a score of 1, the rest is partial credit. AgentGym's server continues after a purchase and
  pays for the next one; here the first ends the episode.
- It has 1,000 products and 6,910 goals made of them, which are the tasks. A task's price limit is drawn
  without a seed and may differ between environments of one server: `info["goal"]` contains it.
- An environment takes 6.7 MB and is never freed. Released ones are reused, also by later processes of the
  same machine, so the server has no more than were in use at one time. From 8,000 environments on it would
  return ids that are in use: a reset then raises `ServerFull`.
- It reads text with a `[` only after the last one: such a click or search does nothing.
- A search whose first word is `<a>`, `<c>`, `<q>` or `<r>` is a command to the server, and some of these
  crash it. They are refused here.
- A page does not show which options were clicked.
- `available_actions=True` puts the possible actions into `info["available_actions"]`, for one more request
  each turn."""

_LOCAL_QUIRKS = """\
- Its 1,000 products and 6,910 tasks are generated from a seed (`--seed`, 0 by default) and differ from
  AgentGym's, so scores are not comparable. A task is the same in every process, with its price limit. With
  `--data FOLDER` it plays the official files `items_shuffle*.json` and `items_ins_v2*.json`: the tasks have
  the same ids as on AgentGym's server, but other price limits. The instructions of `items_human_ins.json`, if
  that file exists, have the ids after them.
- The reward equals AgentGym's with one exception: it compares all words of two titles instead of their
  nouns. [The formula](../servers.md#webshops-reward) includes the name of an option, so x-large does not
  match a required size of large.
- A second purchase in an episode pays nothing and changes nothing until the next reset.
- An environment is created in a millisecond and takes a few kilobytes. Ids count up from a random number and
  are never reused. An environment without a request for an hour is deleted. There are at most 4,096 at a
  time; past that, `/create` fails.
- Without a `session_id`, and after `/create`, the task depends only on the number of environments that the
  server created before, and on the number of such resets of this one.
- The search is our own BM25. It reads the first 2,000 characters and at most 64 different known words of a
  search, removes the plural s, and orders equal results by their place in the shop. `<a>`, `<c>`, `<q>` and
  `<r>` are ordinary words, and no search fails.
- Instructions begin in six ways, where AgentGym's begin with "Find me". Products have ratings and reviews.
- An option may add to the price: the description names the amount, and the page shows the range of prices.
  AgentGym's server draws one price within the range.
- A blank line of a page is left out. On AgentGym's server it leaves an empty part between two `[SEP]`.
- There are no pictures and no page of attributes."""

WEBSHOP = Environment(
    name="WebShop",
    summary="Find the product that was asked for on a shopping site, choose its options and buy it "
    "(Yao et al., 2022, arXiv:2207.01206).",
    wire=WebShopWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=10,
    splits=make_splits(range(6_910), test=range(500)),
    agentgym_readers={
        "react": react_action,
        "function_calling": _read_function_calling,
        "code_as_action": _read_code_as_action,
    },
    options={"available_actions": "Whether to ask the server, each turn, for the list of what can be done."},
    quirks=_QUIRKS,
    local_server="agentgym_servers.webshop:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers.webshop._oracle:WebShopOracle",
    launch="""\
cd agentenv-webshop
conda env create -n agentenv-webshop -f environment.yml && conda activate agentenv-webshop
bash ./setup.sh
webshop --host 127.0.0.1 --port 36001""",
    transcript=(
        "WebShop [SEP] Instruction: [SEP] Find me coffee tables with coated steel, tempered glass, …",
        "search[coffee tables with coated steel tempered glass steel frame]",
        "Instruction: [SEP] Find me coffee tables with coated steel, tempered glass, …",
        "click[b09n8slfrj]",
        "Instruction: [SEP] Find me coffee tables with coated steel, tempered glass, …",
    ),
)
