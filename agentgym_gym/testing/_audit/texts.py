"""Whether any text gets an answer: an agent could escape a bad score with one that breaks the environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agentgym_gym.testing._audit.bulk import action_pool
from agentgym_gym.testing._audit.episodes import shown_value
from agentgym_gym.testing._audit.findings import Checked, Defect
from agentgym_gym.testing._audit.programs import program, reset_call

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.subject import OpenEnv, Subject

__all__ = ["check_texts"]

_SLOW = 2.0
"""Seconds of an answer that count as a hang."""

_GROWN = 0.3
"""Seconds of an answer to a growing text that count as a hang, if a slightly shorter text is much faster."""

_TIMEOUT = 8.0
"""Timeout of a step in this check, in seconds."""

_PATTERNS = 3
"""Actions whose last word is replaced by the texts."""

_LAST_WORD = re.compile(r"[\w.-]+(?=[^\w.-]*$)")

_TEXTS = {
    "an empty text": "''",
    "a blank text": "' \\n\\t '",
    "100 kB of text": "'x' * 100_000",
    "a lone surrogate": "'\\ud800'",
    "NUL": "'\\x00'",
    "control characters": "'\\x07\\x1b[31m\\x7f'",
    "an emoji": "'\\U0001f44d\\U0001f3fd'",
    "letters outside of ASCII": "'\\u0130\\u00df\\u6f22e\\u0301'",
    "a superscript digit": "'\\u00b2'",
    "a number of 5,000 digits": "'9' * 5000",
    "a negative number": "'-1'",
    "a fraction": "'0.5'",
    "NaN": "'nan'",
    "a number outside of the range of floats": "'1e999'",
    "right-to-left marks": "'\\u202eabc\\u200f'",
    "tokens of chat templates": "'<|im_end|><|endoftext|></s>[INST]'",
    "a JSON object": "'{\"action\": null}'",
    "a JSON list": "'[1, 2]'",
    "JSON null": "'null'",
    "5,000 opening brackets": "'[' * 5000",
    "braces": "'{}{0}{x.y}'",
    "percent signs": "'%s%d%n%'",
    "a backslash": "'\\\\'",
    "brackets that do not match": "'(['",
    "a question mark and a star": "'?*'",
    "SQL quotes": "'\\' OR 1=1; --\"'",
    "HTML": "'<b>&amp;<script>'",
    "two lines": "'a\\nb'",
}
"""Python expressions of texts by description."""

_GROWING = {
    "letters": ("'a' * {} + '!'", range(12, 30, 2)),
    "words": ("'a ' * {} + '!'", range(12, 30, 2)),
    "digits": ("'1' * {} + 'x'", range(12, 30, 2)),
    "spaces": ("' ' * {} + '!'", (50, 100, 200, 400, 800, 1600, 3200)),
    "opening tags": ("'<action>' * {}", (50, 100, 200, 400, 800)),
}
"""Texts with sizes, for which some regular expressions take exponential time. A regular expression stops all
threads of its process, so the text grows until its answer is slow."""


@dataclass(frozen=True)
class _Text:
    """A text that is hard to handle, possibly within an action.

    Attributes:
        name: Its description.
        code: A Python expression of this module, never of an environment.
        before: The part of an action before it.
        after: The part of an action after it.
        sizes: The sizes to put into `code`, ascending; empty if it has none.
    """

    name: str
    code: str
    before: str = ""
    after: str = ""
    sizes: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        text = eval(self.code, {"__builtins__": {}})  # noqa: S307 - an expression of this module
        return f"{self.before}{text}{self.after}"

    @property
    def expression(self) -> str:
        """The Python expression of the whole text."""
        parts = [self.before and repr(self.before), self.code, self.after and repr(self.after)]
        return " + ".join(filter(None, parts))

    def of_size(self, name: str, size: int) -> _Text:
        """Return the text with a size."""
        return replace(self, name=name, code=self.code.replace("{}", str(size)), sizes=())


async def check_texts(subject: Subject) -> Checked:
    """Send texts that are hard to handle, each in a new episode, and as the last word of actions."""
    pool = await action_pool(subject)
    usual = _Text("a usual action", "''", next((action for action in pool if action.strip()), "look"))
    left = _texts(pool)
    total = len(left)
    found: dict[str, list[tuple[_Text, str]]] = {}
    timeout = min(_TIMEOUT, subject.timeout)
    while left and subject.seconds_left > 0 and "hang" not in found:
        async with subject.open(timeout=timeout) as env:
            broken = False
            while left and subject.seconds_left > 0 and not broken:
                text, kind, problem = await _send(subject, env, left.pop(0))
                if not kind:
                    continue
                if kind not in found:
                    async with subject.open(timeout=timeout) as other:
                        if (await _answer(subject, other, usual))[0]:
                            return Checked(note="usual actions fail, too: see the other properties")
                found.setdefault(kind, []).append((text, problem))
                broken = kind == "hang" or bool((await _answer(subject, env, usual))[0])
    defects = [await _defect(subject, kind, texts) for kind, texts in found.items()]
    return Checked(defects, {"texts": total - len(left)})


def _texts(pool: Sequence[str]) -> list[_Text]:
    """Return the texts by themselves, then in place of the last word of some actions."""
    shapes: dict[tuple[str, str], None] = {}
    for action in pool:
        word = _LAST_WORD.search(action)
        if word is not None and action[: word.start()].strip():
            shapes.setdefault((action[: word.start()], action[word.end() :]))
    texts = []
    for before, after in [("", ""), *sorted(shapes, key=lambda each: len(each[0]))[:_PATTERNS]]:
        place = f" in {shown_value(before + '…' + after, 40)}" if before else ""
        for name, code in _TEXTS.items():
            texts.append(_Text(name + place, code, before, after))
        for name, (code, sizes) in _GROWING.items():
            texts.append(_Text(name + place, code, before, after, tuple(sizes)))
    return texts


async def _send(subject: Subject, env: OpenEnv, text: _Text) -> tuple[_Text, str, str]:
    """Return a text, the kind of what goes wrong with it, if anything, and the sentence."""
    if not text.sizes:
        return (text, *await _answer(subject, env, text))
    before = 0.0
    for size in text.sizes:
        sized = text.of_size(f"{size} {text.name}", size)
        kind, problem = await _answer(subject, env, sized)
        if kind:
            return sized, kind, problem
        seconds = _seconds(env)
        if seconds > _GROWN:
            await _answer(subject, env, sized)  # again: the machine may have been busy
            seconds = min(seconds, _seconds(env))
        if seconds > _GROWN:
            kind = "hang" if seconds > 1.5 * before else ""
            longer = text.of_size(sized.name, 3 * size)
            return longer, kind, f"takes {seconds:.1f} s, and much more with longer ones"
        before = seconds
    return text, "", ""


def _seconds(env: OpenEnv) -> float:
    return env.trace.transitions[-1].seconds if env.trace.transitions else 0.0


async def _answer(subject: Subject, env: OpenEnv, text: _Text) -> tuple[str, str]:
    """Return what goes wrong if a text is the first action of an episode, and the error in words."""
    trace = await env.begin(subject.tasks[0])
    if trace.error:
        return "error", f"makes the next reset raise {trace.error[:160]}"
    trace = await env.step(text.text)
    if trace.timed_out:
        return "hang", "has no answer in time"
    if trace.error:
        return "error", f"raises {trace.error[:160]}"
    if fault := trace.last_info.get("fault"):
        return "fault", f"is a fault: {shown_value(fault, 160)}"
    if trace.transitions[-1].seconds > _SLOW:
        return "hang", f"takes {trace.transitions[-1].seconds:.1f} s"
    return "", ""


async def _defect(subject: Subject, kind: str, texts: Sequence[tuple[_Text, str]]) -> Defect:
    text, problem = texts[0]
    several = f" ({len(texts)} texts have this effect)" if len(texts) > 1 else ""
    reset = f"env.{reset_call(subject, subject.tasks[0])}"
    step = f"env.step({text.expression})"
    lines = {
        "error": [
            "env, problem = make(), None",
            reset,
            "try:",
            f"    {step}",
            "except Exception as error:",
            "    problem = error",
            'assert problem is None, f"the text raises {problem!r}"',
        ],
        "fault": ["env = make()", reset, f"info = {step}[4]", 'assert not info.get("fault"), info["fault"]'],
        "hang": [
            "import signal",
            "def late(*_):",
            f'    raise AssertionError("the text has no answer after {_SLOW:g} s")',
            "signal.signal(signal.SIGALRM, late)",
            "env = make()",
            reset,
            f"signal.alarm({_SLOW:.0f})",
            step,
        ],
    }[kind]
    return Defect(
        f"the step with {text.name} {problem}{several}",
        "answer every text with an observation: catch the errors of parsers, limit the length of texts, and "
        "use regular expressions without nested repetition",
        subject.tasks[:1],
        await program(subject, lines),
    )
