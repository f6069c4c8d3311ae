"""SciWorld: do science at the level of a primary school in a house of ten rooms (Wang et al., 2022).

The server's score may be above 0 at the start of a task, so episodes are scored by the difference. A wrong
``focus on`` ends the episode at -100. The server answers an ambiguous request with a numbered list, and
treats the next action as the choice. Each environment is a Java process, so a server runs out of memory
unless environments are closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

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
from agentgym_gym.envs.sciworld_actions import GRAMMAR
from agentgym_gym.envs.sciworld_tasks import UNWINNABLE, splits
from agentgym_gym.errors import BadArguments, BadReply, EnvironmentFailed
from agentgym_gym.wire import Outcome, Score, Seen, Start, Wire, look

__all__ = ["SCIWORLD", "SciWorldWire"]

_FULL = 100.0

_RULES = """\
You are doing an elementary science experiment in a text game. It takes place in a house with several rooms, \
a greenhouse, a workshop and an outside. The first message states your task and describes where you are. \
After each of your actions you are told what happened.

- Use the names of things as they are shown to you. Where several things have the same name, say where the \
one you mean is, or what it holds, as in `substance in metal pot` or `cup containing blue paint`.
- Doors and many containers begin closed: open a door before you go through it, and a container before you \
use what is in it. `look around` describes the room that you are in, and you only reach what is there.
- If you are asked which of several actions you mean, answer with the number alone, at once; anything else \
cancels your request and is not carried out.
- The task may ask you to focus on something. Focus on that and nothing else, in the order that it asks for: \
focusing on a wrong thing fails the task at once.
- Heating, cooling, growing and the like take time: wait, and look again.
- Parts of the task are rewarded as you go along."""


def _score_of(body: Body) -> float:
    """Return the server's score: 0 to 100, or -100 for a failed task."""
    score = body.number("score")
    if not -_FULL <= score <= _FULL:
        raise BadReply(f"{body.call} broke the protocol: 'score' should be -100 to 100, got {score}")
    return score


class SciWorldWire(Wire):
    """Protocol of AgentGym's SciWorld server: ids under ``id``, errors as ``{"error": …}`` with HTTP 200."""

    greeting = "This is environment ScienceWorld."
    closes = True
    time_limits: ClassVar[Mapping[str, float]] = {"close": 15.0}  # it waits for other steps, 0.2 s each

    def create(self, task_id: int) -> Flow[int]:
        """Create an environment; the server starts a Java process for it."""
        body = (yield Call("create", "POST", "/create")).body()
        return body.integer("id")

    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task; its description precedes the first observation, as in AgentGym's client."""
        body = (yield Call("reset", "POST", "/reset", {"id": env_id, "data_idx": task_id})).body()
        task, seen = body.text("task_description"), body.text("observation")
        if body.flag("done"):
            raise EnvironmentFailed(f"{body.call} began a task that is over already")
        return Start(f"{task}\n{seen}", goal=task, details={"score": _score_of(body)})

    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Execute one action."""
        body = (yield Call("step", "POST", "/step", {"id": env_id, "action": action})).body()
        return Outcome(
            body.text("observation"),
            body.number("reward"),
            body.flag("done"),
            details={"score": _score_of(body)},
        )

    def recognise(self, env_id: int, seen: Seen) -> Flow[bool | None]:
        """Compare the task, the last observation and the score."""
        shown = yield from look(Call("observe", "GET", "/detail", query={"id": env_id}), seen)
        if not isinstance(shown, Body):
            return shown
        if not shown.has("task_description"):  # no task was started
            return False
        task, observation = shown.text("task_description"), shown.text("observation")
        now = seen.start if seen.outcome is None else seen.outcome
        first = f"{task}\n{observation}" == seen.observation
        same = first if seen.outcome is None else observation == seen.observation
        return same and task == seen.start.goal and _score_of(shown) == now.details["score"]

    def close(self, env_id: int) -> Flow[None]:
        """Free an environment; the server answers HTTP 500 if it does not exist."""
        (yield Call("close", "POST", "/close", {"id": env_id})).body()

    def judge(self, start: Start, score: float, action: str, outcome: Outcome) -> Score:
        """Score the gain since the start of the task; a failed task scores -1."""
        now = outcome.details["score"]
        gained = (now - start.details["score"]) / _FULL
        return Score(max(gained, -1.0), now == _FULL, outcome.done, now)


# Functions of AgentGym's client: start of the action, argument names, and the word between two arguments. The
# client describes `lookin` to the model but rejects calls of it.
_FUNCTIONS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "open": ("open", ("obj",), ""),
    "close": ("close", ("obj",), ""),
    "activate": ("activate", ("obj",), ""),
    "deactivate": ("deactivate", ("obj",), ""),
    "connect": ("connect", ("obj1", "obj2"), "to"),
    "disconnect": ("disconnect", ("obj",), ""),
    "use": ("use", ("tool", "obj"), "on"),
    "lookaround": ("look around", (), ""),
    "lookat": ("look at", ("obj",), ""),
    "read": ("read", ("obj",), ""),
    "move": ("move", ("obj", "container"), "to"),
    "pickup": ("pick up", ("obj",), ""),
    "drop": ("drop", ("obj",), ""),
    "pour": ("pour", ("liq", "container"), "into"),
    "dunk": ("dunk", ("container", "liq"), "in"),
    "mix": ("mix", ("container",), ""),
    "goto": ("go to", ("loc",), ""),
    "eat": ("eat", ("food",), ""),
    "flush": ("flush", ("obj",), ""),
    "focus": ("focus on", ("obj",), ""),
    "wait": ("wait", ("duration",), ""),
    "choose": ("choose", ("option",), ""),
    "examine": ("examine", ("obj",), ""),
    "task": ("task", (), ""),
    "inventory": ("inventory", (), ""),
}


def _sent(name: str, values: list[Any]) -> str:
    """Return the action text of a call with these arguments."""
    verb, _, joint = _FUNCTIONS[name]
    if not values:
        return verb
    if len(values) == 1:
        between = "" if name == "wait" else " "
        return f"{values[0]}" if name == "choose" else f"{verb}{between}{values[0]}"
    return f"{verb} {values[0]} {joint} {values[1]}"


@answers(INVALID_ACTION)
def _read_function_calling(reply: str) -> str:
    """Return the text that AgentGym's client would send for a JSON call.

    The client sends a call without arguments as the verb only, and a call with one argument as if the
    function had only one. It reads the argument of ``read`` from ``obj``, although its prompt names it
    ``info``.
    """
    name, arguments = json_call(reply)
    name = known(name.strip(), _FUNCTIONS)
    _, names, joint = _FUNCTIONS[name]
    if arguments in ({}, [], ""):
        return _sent(name, [])
    expected = names[: 1 if isinstance(arguments, dict) and len(arguments) == 1 else 2]
    if not isinstance(arguments, dict) or not expected or not set(expected) <= set(arguments):
        raise BadArguments(f"the arguments are: {', '.join(names) or 'none'}")
    if len(arguments) > 1 and not joint:
        raise BadArguments(f"the only argument is {names[0]}")
    return _sent(name, [arguments[each] for each in expected])


@answers(INVALID_ACTION)
def _read_code_as_action(reply: str) -> str:
    """Return the text that AgentGym's client would send for a reply that is one Python call."""
    return code_action(reply, {name: names for name, (_, names, _) in _FUNCTIONS.items()}, _action_of_call)


def _action_of_call(name: str, given: dict[str, Any]) -> str:
    names = _FUNCTIONS[name][1]
    if name == "use" and not given.get("obj"):  # optional
        given.pop("obj", None)
        names = names[:1]
    if set(given) != set(names):
        raise BadArguments(f"the arguments are: {', '.join(names) or 'none'}")
    return _sent(name, [given[each] for each in names])


_QUIRKS = """\
- The server's score is above 0 at the start of one task in twelve, at most 50. The score here is the gain
  since then, so a solved task may be worth less than 1; `info["success"]` reports whether it is solved.
- A wrong `focus on` ends the episode with a score of -1.
- If a request is ambiguous, the server lists the possible meanings. The next text is its choice: anything but
  one of the numbers cancels the request, and is not executed either.
- AgentGym's prompt describes `use` with only a tool, and waits of any length. This library sends the former
  and not the latter; the server supports neither.
- In code, AgentGym's client reads `wait` only with a duration, as does `parser="agentgym"`.
- The server accepts `in` as well as `into` for `pour` and `dunk`, but names contain the word `in` too; this
  library sends `into`.
- Some observations list the same things in another order each time.
- On AgentGym's server each environment is a Java process of 110 to 230 MB that lives until it is closed, and
  takes 0.7 s to start.
- The server ends an episode after 100 moves; looking around, the inventory and unknown actions cost none."""

_LOCAL_QUIRKS = """\
- `--simplifications easy` plays by ScienceWorld's simplified rules: doors and containers are open, plants
  need no water, one can teleport, and actions of electricity are left out where the task allows. Single names
  with commas between them select some. The oracle's solutions are for the full rules.
- It plays the simulator of the package `scienceworld`, version 1.2.3, as AgentGym's server does, so tasks,
  texts and scores are the same. It needs Java 8 or newer, and the extra `servers-sciworld`.
- All environments share a few Java processes: one for each processor, at most four. A process has 128
  simulators. If another environment has taken its simulator, an environment first repeats its actions in the
  next free one.
- A task is the same in any process: the same actions give the same texts. On AgentGym's server the order of
  things in a list varies, as does the course of a task where heat spreads. Lists here may have another order
  than there; they have the same items.
- `train`, `dev` and `test` are ScienceWorld's own division of the variations of each kind of task.
- The solutions of all tasks were played. 25 tasks are not solved within 30 turns; they are only in the split
  `all`.
- A step does not compute the list of valid actions, which AgentGym's server spends most of a step on and then
  discards. `/step_visual` still returns it, in alphabetical order.
- A task can have 500 actions, of 1,024 characters at most; the rest of a longer action is ignored.
- A request before the first reset returns advice; AgentGym's server returns the error of Java or Python.
- A negative task id is refused; on AgentGym's server it counts from the end.
- A closed environment has no valid id; on AgentGym's server it "has been deleted".
- `/detail` shows no more after `/step_visual` than after `/step`.
- The number of environments is limited: `/create` deletes environments without a request for an hour, and
  returns `{"error"}` if the server is still full. `/list_envs` lists them."""

SCIWORLD = Environment(
    name="SciWorld",
    summary="Do elementary science in a text game (Wang et al., 2022, arXiv:2203.07540).",
    wire=SciWorldWire(),
    grammar=GRAMMAR,
    rules=_RULES,
    max_turns=30,
    splits=splits(UNWINNABLE),
    unwinnable=UNWINNABLE,
    score_range=(-1.0, 1.0),
    agentgym_readers={
        "react": react_action,
        "function_calling": _read_function_calling,
        "code_as_action": _read_code_as_action,
    },
    local_server="agentgym_servers.sciworld:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers.sciworld._oracle:SciWorldOracle",
    quirks=_QUIRKS,
    launch="cd agentenv-sciworld && pip install -e . && sciworld --host 127.0.0.1 --port 36001",
    transcript=(
        "Your task is to find a(n) non-living thing. First, focus on the thing. …",
        "open door to kitchen",
        "The door is now open.",
        "go to kitchen",
        "You move to the kitchen.",
    ),
)
