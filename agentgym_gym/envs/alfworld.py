"""ALFWorld: household tasks in text (Shridhar et al., 2021, arXiv:2010.03768).

The server accepts only lower case, and answers "Nothing happens." to every action that it cannot parse or
execute. It ends an episode after 50 actions, and cannot free an environment. The release of the game
determines whether ``put mug 1 in/on desk 1`` or ``move mug 1 to desk 1`` lays down an object;
``info["available_actions"]`` shows which one is valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from agentgym_gym.actions import Action, Grammar
from agentgym_gym.arguments import Name
from agentgym_gym.calls import Body, Call, Flow
from agentgym_gym.catalogue import Environment
from agentgym_gym.envs._agentgym_parsers import (
    INVALID_ACTION,
    answers,
    code_action,
    json_call,
    known,
    react_action,
)
from agentgym_gym.errors import BadArguments
from agentgym_gym.wire import Outcome, Seen, Start, Wire, look

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "ALFWORLD",
    "ALFWorldWire",
    "Clean",
    "Close",
    "Cool",
    "Examine",
    "GoTo",
    "Heat",
    "Inventory",
    "Look",
    "Move",
    "Open",
    "Put",
    "Take",
    "Use",
]

_ARTICLES = ("a", "an", "the")
_JOINING = ("and", "from", "in", "into", "on", "onto", "then", "to", "with")


class _HouseholdName(Name):
    """The name of an object or receptacle, optionally after an article, which is dropped."""

    def read(self, text: str) -> str:
        """Parse a name with or without an article."""
        article, _, rest = text.strip().partition(" ")
        return super().read(rest if article.lower() in _ARTICLES else text)


def _household_name(*samples: str) -> _HouseholdName:
    """Return the argument for a name, with examples of names."""
    # A number ends a name, and names in the game are short: "use of the lamp is next" is not an action.
    words = r"[a-z]+(?: [a-z]+)?(?: [0-9]{1,3})?"
    return _HouseholdName(samples, reserved=[*_ARTICLES, *_JOINING], words=words)


_Object = Annotated[
    str, _household_name("mug 1", "apple 2", "soapbar 1", "cellphone 3"), "the object's name and number"
]
_Receptacle = Annotated[
    str,
    _household_name("desk 1", "countertop 2", "drawer 11", "armchair 1"),
    "the receptacle's name and number",
]


@dataclass(frozen=True)
class GoTo(Action):
    """Walk to a receptacle."""

    template: ClassVar[str] = "go to {recep}"
    accepts: ClassVar[Mapping[str, Mapping[str, str]]] = {"goto {recep}": {}}
    recep: _Receptacle

    @classmethod
    def name(cls) -> str:
        """Return AgentGym's name of the function."""
        return "goto"


@dataclass(frozen=True)
class Take(Action):
    """Take an object from the receptacle where you are."""

    template: ClassVar[str] = "take {obj} from {recep}"
    accepts: ClassVar[Mapping[str, Mapping[str, str]]] = {"pick up {obj} from {recep}": {}}
    obj: _Object
    recep: _Receptacle


@dataclass(frozen=True)
class Put(Action):
    """Put the object that you hold in or on the receptacle where you are."""

    template: ClassVar[str] = "put {obj} in/on {recep}"
    accepts: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "put {obj} in {recep}": {},
        "put {obj} on {recep}": {},
        "put {obj} into {recep}": {},
        "put {obj} onto {recep}": {},
    }
    obj: _Object
    recep: _Receptacle


@dataclass(frozen=True)
class Move(Action):
    """Do what `put` does, in the games that know it by this name."""

    template: ClassVar[str] = "move {obj} to {recep}"
    obj: _Object
    recep: _Receptacle


@dataclass(frozen=True)
class Open(Action):
    """Open the receptacle where you are."""

    template: ClassVar[str] = "open {recep}"
    recep: _Receptacle


@dataclass(frozen=True)
class Close(Action):
    """Close the receptacle where you are."""

    template: ClassVar[str] = "close {recep}"
    recep: _Receptacle


@dataclass(frozen=True)
class Heat(Action):
    """Heat the object that you hold with the microwave where you are."""

    template: ClassVar[str] = "heat {obj} with {recep}"
    obj: _Object
    recep: Annotated[str, _household_name("microwave 1"), "the microwave's name and number"]


@dataclass(frozen=True)
class Cool(Action):
    """Cool the object that you hold with the fridge where you are."""

    template: ClassVar[str] = "cool {obj} with {recep}"
    obj: _Object
    recep: Annotated[str, _household_name("fridge 1"), "the fridge's name and number"]


@dataclass(frozen=True)
class Clean(Action):
    """Clean the object that you hold with the sink basin where you are."""

    template: ClassVar[str] = "clean {obj} with {recep}"
    obj: _Object
    recep: Annotated[str, _household_name("sinkbasin 1"), "the sinkbasin's name and number"]


@dataclass(frozen=True)
class Use(Action):
    """Switch a lamp on or off.

    ``toggle`` is read as this: AgentGym's client has a function of that name, the game has no such command.
    """

    template: ClassVar[str] = "use {obj}"
    accepts: ClassVar[Mapping[str, Mapping[str, str]]] = {"toggle {obj}": {}}
    aliases = ("toggle",)
    obj: Annotated[
        str,
        _household_name("desklamp 1", "floorlamp 1"),
        "the lamp's name and number",
    ]

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Create the action; AgentGym's ``toggle`` names the lamp ``recep`` in Python calls."""
        if isinstance(value, Mapping) and value.keys() == {"recep"}:
            value = {"obj": value["recep"]}
        return super().from_json(value)


@dataclass(frozen=True)
class Examine(Action):
    """Look closely at the receptacle where you are, or at an object there or in your hand."""

    template: ClassVar[str] = "examine {recep}"
    recep: Annotated[
        str,
        _household_name("desk 1", "mug 1", "drawer 11"),
        "the name and number of the receptacle or object",
    ]


@dataclass(frozen=True)
class Look(Action):
    """Say where you are and what is beside you."""  # plain: prompt

    template: ClassVar[str] = "look"
    accepts: ClassVar[Mapping[str, Mapping[str, str]]] = {"look around": {}}


@dataclass(frozen=True)
class Inventory(Action):
    """Say what you hold."""  # plain: prompt

    template: ClassVar[str] = "inventory"


_GRAMMAR = Grammar(
    [
        GoTo("countertop 1"),
        Take("mug 1", "countertop 1"),
        Put("mug 1", "desk 1"),
        Move("mug 1", "desk 1"),
        Open("drawer 1"),
        Close("drawer 1"),
        Heat("mug 1", "microwave 1"),
        Cool("mug 1", "fridge 1"),
        Clean("mug 1", "sinkbasin 1"),
        Use("desklamp 1"),
        Examine("mug 1"),
        Look(),
        Inventory(),
    ]
)

_RULES = """\
You are in a house and have a household task to do. The first message says what is in the room and what your \
task is, and lists what can be done at the start. After each of your actions you are told what you see.

- Objects lie in or on receptacles, such as a drawer or a countertop. You see what a receptacle holds when \
you are there and it is open; a closed one must be opened first.
- Things are named with their number, such as `mug 1`: use the names that you were shown.
- Take, put, open, close and examine work only where you are: go to the receptacle first.
- You can hold one object at a time.
- To heat, cool or clean an object, hold it and go to a microwave, a fridge or a sink basin. You need not \
open that or put the object into it.
- To look at an object under a lamp, hold the object, go to where the lamp is and use the lamp.
- `Nothing happens.` means that the game did not understand, or that it cannot be done here and now. Some \
games call `put` `move`: where one of them does nothing, try the other."""

_TASK = re.compile(r"^Your task is to: (.+?)\.?$", re.MULTILINE)


class ALFWorldWire(Wire):
    """Protocol of AgentGym's ALFWorld server: ids under ``id``, errors as ``{"error": …}`` with HTTP 200."""

    greeting = "This is environment AlfWorld."
    closes = False

    def create(self, task_id: int) -> Flow[int]:
        """Create an environment."""
        body = (yield Call("create", "POST", "/create")).body()
        return body.integer("id")

    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task; the first observation ends with the available actions, as in AgentGym's client."""
        body = (
            yield Call("reset", "POST", "/reset", {"id": env_id, "game": task_id, "world_type": "Text"})
        ).body()
        body.check_id("id", env_id)
        observation, actions = body.text("observation"), body.texts("available_actions")
        task = _TASK.search(observation)
        return Start(
            _with_actions(observation, actions),
            goal=task[1] if task else None,
            available_actions=actions,
        )

    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Execute one action."""
        body = (yield Call("step", "POST", "/step", {"id": env_id, "action": action})).body()
        return Outcome(
            body.text("observation"),
            body.number("reward"),
            body.flag("done"),
            available_actions=body.texts("available_actions"),
        )

    def recognise(self, env_id: int, seen: Seen) -> Flow[bool | None]:
        """Compare the task, the last observation and the available actions."""
        shown = yield from look(Call("observe", "GET", "/detail", query={"id": env_id}), seen)
        if not isinstance(shown, Body):
            return shown
        if not shown.has("game"):  # no task was started
            return False
        observation = shown.text("observation")
        actions = shown.texts("available_actions")
        same = observation == seen.observation
        if seen.outcome is None:
            same = _with_actions(observation, actions) == seen.observation
        return same and shown.integer("game") == seen.task_id

    def page(self, seen: Seen) -> str:
        """Return the last observation with the list of available actions, which step observations omit."""
        if seen.outcome is None:
            return seen.observation
        return _with_actions(seen.observation, seen.outcome.available_actions or ())


def _with_actions(observation: str, actions: Sequence[str]) -> str:
    return f"{observation}\nAVAILABLE ACTIONS: {','.join(actions)}"


# AgentGym's functions: the start of the action, the word between its arguments, and the argument names.
_FUNCTIONS = {
    "goto": ("go to", "", ("recep",)),
    "take": ("take", "from", ("obj", "recep")),
    "put": ("put", "in/on", ("obj", "recep")),
    "toggle": ("toggle", "", ("obj",)),
    "open": ("open", "", ("recep",)),
    "close": ("close", "", ("recep",)),
    "heat": ("heat", "with", ("obj", "recep")),
    "cool": ("cool", "with", ("obj", "recep")),
    "clean": ("clean", "with", ("obj", "recep")),
    "examine": ("examine", "with", ("recep", "obj")),
    "inventory": ("inventory", "", ()),
    "look": ("look", "", ()),
    "use": ("use", "", ("obj",)),
}
_SIGNATURES = {name: arguments for name, (_, _, arguments) in _FUNCTIONS.items()} | {"toggle": ("recep",)}


def _sentence(name: str, values: list[Any]) -> str:
    """Return the action text that AgentGym's client builds for a function and its arguments."""
    verb, between, _ = _FUNCTIONS[name]
    return f"{verb} {f' {between} '.join(map(str, values))}" if values else verb


@answers(INVALID_ACTION)
def _read_function_calling(reply: str) -> str:
    """Return the text that AgentGym's ``AlfWorldEnvClient`` would send for a JSON reply.

    The client writes as many arguments as the reply has; without arguments it sends only the verb.
    """
    name, given = json_call(reply)
    name = known(name.strip(), _FUNCTIONS)
    names = _FUNCTIONS[name][2]
    if given not in ("", []) and not (isinstance(given, dict) and set(given) <= set(names)):
        raise BadArguments(f"the arguments of {name} are: {', '.join(names) or 'none'}")
    names = names[: len(given)]
    if not all(each in given for each in names):
        raise BadArguments(f"the first argument of {name} is missing")
    return _sentence(name, [given[each] for each in names])


@answers(INVALID_ACTION)
def _read_code_as_action(reply: str) -> str:
    """Return the text that AgentGym's ``AlfWorldEnvClient`` would send for a Python reply."""
    return code_action(reply, _SIGNATURES, _action_of_call)


def _action_of_call(name: str, given: dict[str, Any]) -> str:
    names = _SIGNATURES[name]
    if name == "examine" and not given.get("obj", ""):
        given.pop("obj", None)
        names = names[:1]
    if len(given) < len(names):
        raise BadArguments(f"the arguments of {name} are: {', '.join(names)}")
    return _sentence(name, [given[each] for each in names])


_QUIRKS = """\
- All environments of a server take turns: during the reset of one the others wait, and so does `GET /`, which
  took up to 10.8 s. Allow for it in the time limits, or start several servers.
- The server cannot free an environment: this library keeps its environments and reuses them.
- It accepts only lower case, and ends an episode after 50 actions.
- The first observation ends in the line `AVAILABLE ACTIONS: …`, as AgentGym's own client shows it. Later
  observations have none; `info["available_actions"]` has them at every turn.
- A release of ALFWorld has either `put mug 1 in/on desk 1` or `move mug 1 to desk 1`; a game accepts one.
- AgentGym's prompt offers a function `toggle`, but the game has no such command. `toggle desklamp 1` is read
  as `use desklamp 1`; `parser="agentgym"` sends it unchanged.
- The tasks of the split `test` come from ALFWorld's `valid_train`, not from its `valid_seen` and
  `valid_unseen`: scores are not comparable with scores reported for ALFWorld itself."""

_LOCAL_QUIRKS = """\
- Houses and tasks are generated from a seed (`--seed`), as 2,620 tasks in ALFRED's 120 rooms. They have the
  receptacles of these rooms, as many objects as ALFWorld's games, and the types, objects and receptacles of
  AgentGym's training tasks, in another order: [a comparison](../servers.md#alfworlds-houses). No planner and
  no file of ALFWorld is needed, and a reset takes a few milliseconds.
- In `test`, the tasks with even ids (`test_seen`) are in rooms of training tasks, and the tasks with odd ids
  (`test_unseen`) in twelve rooms without training tasks. On AgentGym's server all are in training rooms.
- `--data DIR` plays ALFWorld's own games, where you have them; [how](../servers.md#alfworlds-own-games).
  `official_train`, `valid_seen` and `valid_unseen` select all of them; the generated world has no such tasks.
- An action is executed exactly if `available_actions` lists it; they are in alphabetical order. An object is
  laid down by `put mug 1 in/on desk 1`.
- Receptacles and objects are listed by kind, the highest number first, and `help` describes the commands in
  other words.
- Each receptacle has its own place. In ALFWorld's games some share one, and can be used from there.
- An object of a task never lies where it belongs at the start, unless it needs cleaning, heating or cooling.
- `world_type` is checked and has no effect. On AgentGym's server it has none either.
- A negative task id is refused like any other task that does not exist. On AgentGym's it counts from the end.
- Each error describes the failure. On AgentGym's some name a part of the program.
- Environments do not wait for each other, and are deleted after an hour without a request.
- It has `/list_envs`, which lists the ids of its environments."""

ALFWORLD = Environment(
    name="ALFWorld",
    summary="Do a household task in text, such as cleaning a mug (Shridhar et al., 2021, arXiv:2010.03768).",
    wire=ALFWorldWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=30,
    splits={"train": range(2420), "test": range(2420, 2620)},
    parts={
        "test_seen": range(2420, 2620, 2),
        "test_unseen": range(2421, 2620, 2),
        # Only on a local server with ALFWorld's own games; these are all of them.
        "official_train": range(10_000, 13_553),
        "valid_seen": range(20_000, 20_140),
        "valid_unseen": range(30_000, 30_134),
    },
    agentgym_readers={
        "react": react_action,
        "function_calling": _read_function_calling,
        "code_as_action": _read_code_as_action,
    },
    local_server="agentgym_servers.alfworld:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers.alfworld._oracle:ALFWorldOracle",
    quirks=_QUIRKS,
    launch="cd agentenv-alfworld && bash ./setup.sh && alfworld --host 127.0.0.1 --port 36001",
    transcript=(
        "You are in the middle of a room. Looking quickly around you, you see a countertop 1, a desk 1, …",
        "go to countertop 1",
        "You arrive at countertop 1. On the countertop 1, you see a apple 1, and a mug 1.",
        "take mug 1 from countertop 1",
        "You pick up the mug 1 from the countertop 1.",
        "go to desk 1",
        "You arrive at desk 1. On the desk 1, you see a desklamp 1.",
    ),
)
