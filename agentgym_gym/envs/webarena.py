"""WebArena: carry out a task on websites through a browser (Zhou et al., 2024, arXiv:2307.13854).

The server expects an action between two fences of three backticks. A reward before the end only means that
the server executed an action; the score comes with ``terminated``. The server hides its failures: the
observation of a failed reset is ``TimeoutError``, and a failed step has no ``info`` and an exception message
as its observation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from agentgym_gym._text import shown
from agentgym_gym.actions import Action, Grammar, Style
from agentgym_gym.arguments import Choice, Integer, Text, strategies
from agentgym_gym.calls import Body, Call, Flow
from agentgym_gym.catalogue import Environment
from agentgym_gym.envs._agentgym_parsers import answers
from agentgym_gym.errors import BadArguments, BadReply, ClientAnswer, EnvironmentFailed, NoAction
from agentgym_gym.wire import Outcome, Score, Seen, Start, Wire, look

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = [
    "WEBARENA",
    "ClickElement",
    "CloseTab",
    "GoBack",
    "GoForward",
    "Goto",
    "Hover",
    "NewTab",
    "Press",
    "Scroll",
    "Stop",
    "TabFocus",
    "TypeText",
    "WebArenaWire",
]

_FENCE = "```"

# Text between two actions on one line; an argument that contained it would swallow the second action.
_ACTIONS = tuple(
    f"] {verb} [" for verb in ["click", "type", "hover", "press", "scroll", "goto", "tab_focus", "stop"]
)
_BETWEEN = (
    *_ACTIONS,
    *(f"]{joint}{action[2:]}" for joint in (", ", "; ", " and ", " then ") for action in _ACTIONS),
)
_WITHOUT = (_FENCE, *_BETWEEN)

# A fence and its content up to the next fence; of fences with nothing between them, only the last one opens.
_FENCED = re.compile(r"(?<!`)`{3,}(?!`)(?!\s*```)(?:.*?`{3,}|.*\Z)", re.DOTALL)


_KEYS = 1_000  # the server's browser can type the characters below this one

# The text of `type [5] [] [0]` and of `type [5] [tea] []`, if they are read without their last number.
_EMPTY = re.compile(r"\]\s*\[[01]|.*\]\s*\[")


class _TypedText(Text):
    """Text that the server's browser can type."""

    def check(self, value: Any) -> None:
        super().check(value)
        if _EMPTY.fullmatch(value):
            raise BadArguments("the text to type or the number after it is empty")
        strange = next((letter for letter in value if ord(letter) >= _KEYS), None)
        if strange:
            raise BadArguments(f"the browser has no key for {shown(strange)}")

    def strategy(self) -> SearchStrategy[str]:
        st = strategies()
        letters = st.characters(max_codepoint=_KEYS - 1, exclude_categories=["Cc"])
        drawn = st.text(letters | st.sampled_from("[]\"'`<>{} 01"), max_size=40).map(str.strip)
        return st.sampled_from(self.samples) | drawn.filter(self._fits)  # type: ignore[no-any-return]


class _BooleanInteger(Integer):
    """0 or 1; a call may also pass a boolean."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def from_json(self, value: Any) -> int:
        return int(value) if isinstance(value, bool) else super().from_json(value)


class _OptionalText(Text):
    """Text that may be empty, for tasks without an answer."""

    def check(self, value: Any) -> None:
        if value != "":
            super().check(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.max_chars}

    def strategy(self) -> SearchStrategy[str]:
        return strategies().just("") | super().strategy()  # type: ignore[no-any-return]


class _Browsing(Action):
    """Base of all actions."""

    style = Style(verbatim=True, fence="", mark=_FENCED)


_Element = Annotated[int, Integer(0, 999_999_999), "the number before the element, without its brackets"]


@dataclass(frozen=True)
class ClickElement(_Browsing):
    """Click an element."""

    template: ClassVar[str] = "click [{id}]"
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {"click[{id}]": {}, "click {id}": {}}
    id: _Element


@dataclass(frozen=True)
class TypeText(_Browsing):
    """Type text into a field; the last number is 1 to press Enter after it, or 0.

    Without that number, Enter is pressed.
    """

    template: ClassVar[str] = "type [{id}] [{text}] [{press_enter}]"
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "type[{id}][{text}][{press_enter}]": {},
        "type [{id}] [{text}]": {"press_enter": 1},
        "type[{id}][{text}]": {"press_enter": 1},
    }
    id: _Element
    text: Annotated[str, _TypedText(["restaurants near CMU", "teapot"], without=_WITHOUT), "what to type"]
    press_enter: Annotated[int, _BooleanInteger(), "1 to press Enter behind it, 0 not to"]


@dataclass(frozen=True)
class Hover(_Browsing):
    """Hold the mouse over an element."""

    template: ClassVar[str] = "hover [{id}]"
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {"hover[{id}]": {}, "hover {id}": {}}
    id: _Element


@dataclass(frozen=True)
class Press(_Browsing):
    """Press a key or several at once."""

    template: ClassVar[str] = "press [{keys}]"
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {"press[{keys}]": {}}
    keys: Annotated[
        str,
        Text(["Control+v", "Enter", "PageDown"], max_chars=100, without=_WITHOUT),
        "the keys, with a plus sign between them",
    ]


@dataclass(frozen=True)
class Scroll(_Browsing):
    """Scroll the page up or down."""

    template: ClassVar[str] = "scroll [{direction}]"
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "scroll [direction={direction}]": {},
        "scroll[{direction}]": {},
        "scroll {direction}": {},
    }
    direction: Annotated[str, Choice("down", "up"), "where to"]


@dataclass(frozen=True)
class Goto(_Browsing):
    """Open an address in this tab."""

    template: ClassVar[str] = "goto [{url}]"
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {"goto[{url}]": {}}
    url: Annotated[str, Text(["http://homepage.com"], without=_WITHOUT), "the address"]


@dataclass(frozen=True)
class NewTab(_Browsing):
    """Open an empty tab."""

    template: ClassVar[str] = "new_tab"


@dataclass(frozen=True)
class TabFocus(_Browsing):
    """Go to another tab."""

    template: ClassVar[str] = "tab_focus [{tab}]"
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {"tab_focus[{tab}]": {}, "tab_focus {tab}": {}}
    tab: Annotated[int, Integer(0, 999), "the number of the tab"]


@dataclass(frozen=True)
class CloseTab(_Browsing):
    """Close this tab."""

    template: ClassVar[str] = "close_tab"


@dataclass(frozen=True)
class GoBack(_Browsing):
    """Go back to the page before."""

    template: ClassVar[str] = "go_back"


@dataclass(frozen=True)
class GoForward(_Browsing):
    """Go forward again after going back."""

    template: ClassVar[str] = "go_forward"


@dataclass(frozen=True)
class Stop(_Browsing):
    """End the task, with the answer if the objective requires one, otherwise with empty brackets."""

    template: ClassVar[str] = "stop [{answer}]"
    accepts: ClassVar[Mapping[str, Mapping[str, Any]]] = {"stop[{answer}]": {}, "stop": {"answer": ""}}
    blind_answers: ClassVar[tuple[str, ...]] = ("", "N/A", "Yes", "No", "0", "1", "None")
    answer: Annotated[str, _OptionalText(["$42", "N/A"], without=_WITHOUT), "the answer, or nothing"]


_GRAMMAR = Grammar(
    [
        ClickElement(164),
        TypeText(164, "restaurants near CMU", 1),
        Hover(164),
        Press("Control+v"),
        Scroll("down"),
        NewTab(),
        TabFocus(1),
        CloseTab(),
        Goto("http://homepage.com"),
        GoBack(),
        GoForward(),
        Stop("$42"),
    ]
)

_RULES = """\
You are working in a web browser to reach an objective. After each of your actions you are shown the open \
tabs, what can be seen of the page, its address, the objective, and the action before.

- The page is shown as its accessibility tree: each element stands on a line of its own, with a number in \
brackets before it. Actions name an element by that number. Numbers change from page to page: take them from \
the last page shown.
- What lies above or below the part shown is reached by scrolling.
- `http://homepage.com` lists the websites that there are.
- When the objective is reached, end the task with `stop`. Where the objective is a question, the answer \
belongs in the brackets, as short as it can be. If the objective cannot be reached, answer `N/A`. Nothing \
can be done after that."""

# Exceptions caused by the action itself: no fence, an unknown action, invalid arguments, blank text, a number
# of thousands of digits, or a character that the browser has no key for.
_AGENTS_DOING = re.compile(
    r"Cannot parse action from response |Invalid (?:[a-z_]+ )?action |list index out of range\Z"
    r"|Exceeds the limit \(|(?:'(?:.|\\[0-9A-Za-z\\]{1,9})'|\"'\")\Z",
    re.DOTALL,
)


_PAGE = "OBSERVATION:\n"


class WebArenaWire(Wire):
    """Protocol of AgentGym's WebArena server: ids under ``env_idx``, failures disguised as observations."""

    greeting = "ok"
    plain_greeting = True
    # This server does not list its routes; servers with the same greeting that list them are of another kind.
    no_routes: ClassVar[tuple[str, ...]] = ("/step",)
    closes = True
    time_limits: ClassVar[Mapping[str, float]] = {"close": 30.0}  # a close takes 5 s, and they run in turn

    def create(self, task_id: int) -> Flow[int]:
        """Create an environment, which starts a browser."""
        body = (yield Call("create", "POST", "/create")).body()
        return body.integer("env_idx")

    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task and request the first page with the objective, as AgentGym's client does.

        Raises:
            EnvironmentFailed: The reset failed; the server does not report the reason.
        """
        body = {"env_idx": env_id, "seed": 0, "idx": task_id}
        start = (yield Call("reset", "POST", "/reset", body)).body()
        if start.text("observation") == "TimeoutError":
            raise EnvironmentFailed(f"{start.call} failed: the server answered 'TimeoutError'")
        goal = start.text("object")
        page = (yield Call("observe", "GET", "/observation", query={"env_idx": env_id})).body()
        return Start(page.text(), goal=goal)

    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Execute one action, enclosed in fences unless it already has some.

        Raises:
            EnvironmentFailed: The step failed, and not because of the action: the environment does not exist,
                its browser crashed, the page could not be read, or the evaluation failed.
        """
        fenced = action if _FENCE in action else f"{_FENCE}{action}{_FENCE}"
        body = (yield Call("step", "POST", "/step", {"env_idx": env_id, "action": fenced})).body()
        observation, reward = body.text("observation"), body.number("reward")
        terminated, truncated = body.flag("terminated"), body.flag("truncated")
        if not body.has("info") and not _AGENTS_DOING.match(observation):
            raise EnvironmentFailed(f"{body.call} failed: {shown(observation)}")
        if not 0 <= reward <= 1:
            raise BadReply(f"{body.call} broke the protocol: 'reward' should be from 0 to 1, got {reward}")
        return Outcome(observation, reward, terminated or truncated, details={"terminated": terminated})

    def recognise(self, env_id: int, seen: Seen) -> Flow[bool | None]:
        """Compare the cached prompt of the last page; the server does not query the browser for it.

        After a failed step or the end of the episode the server may have no page to show. In this case only
        the objective is compared, if there is a page.
        """
        shown = yield from look(Call("observe", "GET", "/observation", query={"env_idx": env_id}), seen)
        failed = not seen.observation.startswith(_PAGE) or seen.done
        if not isinstance(shown, Body):
            return failed or shown
        page = shown.text()
        return f"\nOBJECTIVE: {seen.start.goal}\n" in page if failed else page == seen.observation

    def close(self, env_id: int) -> Flow[None]:
        """Free an environment and its browser; the server ignores ids that are already closed.

        Raises:
            EnvironmentFailed: The browser could not be closed.
        """
        body = (yield Call("close", "POST", "/close", {"env_idx": env_id})).body()
        status = body.text("closed")
        if status != "closed":
            raise EnvironmentFailed(f"{body.call} failed: {shown(status)}")

    def judge(self, start: Start, score: float, action: str, outcome: Outcome) -> Score:
        """Use only the final reward as the score."""
        worth = outcome.reward if outcome.details["terminated"] else 0.0
        return Score(worth, worth == 1.0, outcome.done, agentgym_score=worth)


_NO_FENCES = ClientAnswer(
    "Cannot parse action from response. Your action should be inside triple backticks (```). "
    "Please adjust accordingly."
)


@answers(_NO_FENCES)
def _read_as_agentgym(reply: str) -> str:
    """Return the text that AgentGym's ``WebarenaEnvClient`` would send: a reply with two fences, unchanged.

    The server executes the text between the first two fences.
    """
    if reply.count(_FENCE) < 2:  # noqa: PLR2004 - a pair
        raise NoAction("there is no action between two fences of three backticks in the reply")
    return reply


_QUIRKS = """\
- The server needs the websites of WebArena, which are hosted separately, and for some tasks a language model
  as judge. An environment takes 540 MB and 2.5 s to start, a step 1.6 s.
- AgentGym plays 15 to 25 turns; the limit here is 15, and `max_turns` sets another.
- An action outside the grammar is refused, because the server would report it as a failed step.
- The server's reward before the end, `info["raw_reward"]`, only means that an action was executed. It does
  not count toward the score.
- The response to a failed step looks like any other. If the agent's text caused the failure (no fence, no
  such action, invalid arguments, a character without a key), the message is the observation and the episode
  continues, as with AgentGym's client. Every other failure (a crashed browser, an unreadable page, a failed
  evaluation) is a fault. Only the page's `PREVIOUS ACTION` may report a missing element or an unreachable
  address.
- It can type the characters up to U+03E7, and no line feed.
- The numbers of elements differ from reset to reset."""

_LOCAL_QUIRKS = """\
- It needs Chromium or Chrome on this machine, and the extra `servers-webarena`. One browser serves all
  environments. Each task has a separate browser context, which ends with the task.
- The sites are this project's own: a shop with an admin side, a forum, a repository host, a map and a wiki,
  with data from the seed. The address line shows WebArena's addresses; in the tree the addresses end in
  `.test`. The browser reaches no other host.
- Each task starts with a fresh state of the sites and with signed-in accounts. An environment never sees the
  changes of another one. The sites start in one of ten states; two of them occur only in tasks of `test`.
- The 812 tasks are made by 94 templates, by themselves and joined to longer tasks on several sites; 4 % of
  them cannot be done. Solutions take 2 to 14 turns, 7 on average. Scores are computed by WebArena's rules
  for answers, addresses and contents of pages. No task here needs a language model as judge. With `--data`,
  `--judge` names one; without it, a `fuzzy_match` requires that the answer has all words of the reference,
  and a reference `N/A` that the answer is the same.
- `--data` takes a folder of WebArena's own task files with the addresses of the user's sites in
  `sites.json`; the browser reaches no others. These sites keep the changes of an episode. The server waits
  as AgentGym's does: 1.5 s after a reset and after an action, and 3 s after a check has opened a page.
- A check that cannot be evaluated, such as one whose page does not load, is the fault `JudgeFailed`, with the
  reason. An element that is not on the page is the agent's failure.
- Numbers of elements are counted from 1 in each episode, so that texts are equal in each process. Pages are
  written by WebArena's rule; [the servers' page](../servers.md#webarenas-browser) lists the rest.
- A step has no picture: `info` has one pixel in its place. `/observation_metadata` has the picture.
- After `stop` no action is executed, and the score is not paid again.
- An address that is not one of the sites shows a page with the reason, where AgentGym's server stays on the
  page. Only addresses with `http://` or `https://` are opened.
- Every character can be typed. On our own sites a step waits for the page to load, not for a fixed 1.5 s.
  The message about a missing element has other words.
- `/list_envs` returns the ids, instead of an error."""

WEBARENA = Environment(
    name="WebArena",
    summary="Carry out a task on websites (a shop, a forum, a code host, a map and more) through a browser "
    "(Zhou et al., 2024, arXiv:2307.13854).",
    wire=WebArenaWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=15,
    splits={"all": range(812), "train": range(648), "test": range(648, 812)},
    cheap_wins={"answer 'N/A'": "some tasks cannot be done, 4 % as in WebArena"},
    on_unknown="refuse",
    agentgym_readers={"react": _read_as_agentgym},
    local_server="agentgym_servers.webarena:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers.webarena._oracle:WebArenaOracle",
    quirks=_QUIRKS,
    launch="""\
cd agentenv-webarena
# First host WebArena's websites, and put their addresses into setup.sh and agentenv_webarena/__init__.py.
source ./setup.sh
webarena --host 127.0.0.1 --port 36001""",
    transcript=(
        "OBSERVATION:\nTab 0 (current): Mini Shop\n\n…",
        "```click [16]```",
        "OBSERVATION:\nTab 0 (current): Contact\n\n…",
        "```stop []```",
        "OBSERVATION:\nTab 0 (current): Contact\n\n…",
    ),
)
