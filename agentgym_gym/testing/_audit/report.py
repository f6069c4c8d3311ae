"""The result of an audit: as text, as an HTML page, and in notebooks. Texts of environments are escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agentgym_gym._html import block, escaped, folded, paragraph, table
from agentgym_gym._text import CONTROLS, UNSEEN
from agentgym_gym._version import __version__
from agentgym_gym.errors import BadOption
from agentgym_gym.testing._audit.properties import PROPERTIES

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.findings import Defect, PropertyResult, Severity

__all__ = ["FIRST_LINE", "Audit", "AuditFailed", "result_line"]

FIRST_LINE = "<!doctype html><!-- an audit of agentgym audit -->\n"

_HIDDEN = re.compile(f"[{CONTROLS}{UNSEEN}\x85\u2028\u2029]")
_WIDTH = max(len(each.name) for each in PROPERTIES)
_PROPERTIES = {each.name: each for each in PROPERTIES}

_COLUMNS = ("property", "status", "claim", "details", "seconds")

_STYLE = """
:root { color-scheme: light dark; --line: light-dark(#e2dfd8, #2e333b); --panel: light-dark(#fff, #1a1d23); }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem; font: 15px/1.55 system-ui, sans-serif;
  background: light-dark(#faf9f6, #14161a); color: light-dark(#1d2127, #e7e6e2); }
section { border: 1px solid var(--line); border-radius: 8px; padding: 0 1rem; margin: 1rem 0; }
h1, h2 { line-height: 1.25; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; background: var(--panel); }
th, td { border: 1px solid var(--line); padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 0.8rem;
  overflow-x: auto; }
.muted { color: light-dark(#5a626d, #a3aab5); }
.error { color: light-dark(#8d2419, #ffb5aa); font-weight: 650; }
.warning { color: light-dark(#6b4a00, #f3d488); font-weight: 650; }
.passed { color: light-dark(#17663f, #6fd6a2); }
"""


class AuditFailed(AssertionError):
    """The environment has defects; the message lists them."""


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes:
        env_id: The gymnasium id of the environment.
        results: The result of each property, in the order of the table.
        seconds: Duration of the audit.
        about: The settings of the audit, as JSON values.
    """

    env_id: str
    results: tuple[PropertyResult, ...]
    seconds: float = 0.0
    about: Mapping[str, Any] = field(default_factory=dict)

    def failed(self, at: Severity = "error") -> tuple[PropertyResult, ...]:
        """Return the properties that do not hold, without those whose defects are all documented.

        Args:
            at: The lowest severity: ``"error"``, or ``"warning"`` for both.
        """
        return tuple(
            result
            for result in self.results
            if result.status == "failed" and (at == "warning" or result.severity == "error")
        )

    @property
    def passed(self) -> bool:
        """Whether no property with the severity ``"error"`` failed."""
        return not self.failed()

    @property
    def checked(self) -> bool:
        """Whether at least one property was checked, and not skipped."""
        return any(result.status != "skipped" for result in self.results)

    def check(self, at: Severity = "error", *, only: Collection[str] = ()) -> None:
        """Raise if the environment has defects, or if all properties were skipped.

        Args:
            at: The lowest severity that counts.
            only: Names of the properties that count; empty for all. A skipped one does not raise.

        Raises:
            AuditFailed: A property failed, or none could be checked.
            BadOption: A name is not the name of a property.
        """
        if unknown := sorted(set(only) - set(_PROPERTIES)):
            raise BadOption("only", unknown[0], f"one of {', '.join(_PROPERTIES)}")
        if not self.checked:
            reasons = dict.fromkeys(f"{each.name}: {each.reason}" for each in self.results)
            raise AuditFailed("\n".join([f"no property of {self.env_id} could be checked:", *reasons]))
        failed = [each for each in self.failed(at) if not only or each.name in only]
        if failed:
            shown = replace(self, results=tuple(failed))
            raise AuditFailed(f"{self.env_id} is not sound\n\n{shown.text(list_all=False)}")

    def text(self, *, list_all: bool = True) -> str:
        """Return the defects as text, each with its advice and a program that shows it.

        Args:
            list_all: Whether a line for each property comes first.
        """
        return _text(self, list_all=list_all)

    def page(self) -> str:
        """Return an HTML page with all results. It needs no other file and runs no script."""
        return _page(self)

    def _repr_html_(self) -> str:
        return _notebook(self)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "env_id": self.env_id,
            "passed": self.passed,
            "seconds": self.seconds,
            "about": dict(self.about),
            "results": [asdict(result) for result in self.results],
        }


def _status_of(result: PropertyResult) -> str:
    """Return the status of a property in one word: passed, skipped, error or warning."""
    return result.severity if result.status == "failed" else result.status


def result_line(result: PropertyResult) -> str:
    """Return a line on a property, as it is printed while an audit runs."""
    detail = " ".join(_detail(result).split())
    return _visible(f"{result.name:<{_WIDTH}}  {_status_of(result):<7}  {result.seconds:5.1f} s  {detail}")


def _text(audit: Audit, *, list_all: bool = True) -> str:
    parts = ["\n".join(map(result_line, audit.results))] if list_all else []
    for number, (result, defect) in enumerate(_defects(audit), 1):
        parts += _paragraphs(f"{number}. {result.name} ({_weight(result, defect)})", defect)
    return _visible("\n\n".join([*parts, _summary(audit)]))


def _notebook(audit: Audit) -> str:
    rows = [tuple(map(_visible, (each.name, _status_of(each), _detail(each)))) for each in audit.results]
    texts = (
        folded(_visible(f"{result.name}: {defect.text}"), _named_parts(defect))
        for result, defect in _defects(audit)
    )
    return block([paragraph(_summary(audit)), table(("property", "status", "details"), rows), *texts])


def _page(audit: Audit) -> str:
    title = f"Audit of {audit.env_id}"
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    about = json.dumps(dict(audit.about), ensure_ascii=False, default=str)
    body = [
        f"<h1>{_html(title)}</h1>",
        f"<p>{_html(_summary(audit))}</p>",
        f'<p class="muted">agentgym-gym {_html(__version__)}, settings {_html(about)}</p>',
        *_defect_sections(audit),
        "<h2>Properties</h2>",
        "<table><thead><tr>",
        *(f'<th scope="col">{each}</th>' for each in _COLUMNS),
        "</tr></thead><tbody>",
        *map(_row, audit.results),
        "</tbody></table>",
    ]
    head = [
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_html(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{_html(title)}</title><style>{_STYLE}</style></head><body><main>",
    ]
    return FIRST_LINE + "\n".join([*head, *body, "</main></body></html>"]) + "\n"


def _defect_sections(audit: Audit) -> Iterator[str]:
    for number, (result, defect) in enumerate(_defects(audit), 1):
        weight = f'<span class="{result.severity}">{_weight(result, defect)}</span>'
        yield f"<section><h2>{number}. {_html(result.name)} {weight}</h2>"
        yield f"<p>{_html(defect.text)}</p>"
        if result.name in _PROPERTIES:
            each = _PROPERTIES[result.name]
            yield f'<p class="muted">{_html(each.claim)} {_html(each.cost)}</p>'
        for name, text in _named_parts(defect):
            part = f"<b>{name.capitalize()}:</b> {_html(text)}"
            yield f"<pre>{_html(text)}</pre>" if name == "program" else f"<p>{part}</p>"
        yield "</section>"


def _row(result: PropertyResult) -> str:
    status, claim = _status_of(result), _PROPERTIES[result.name].claim if result.name in _PROPERTIES else ""
    cells = [_html(text) for text in (result.name, status, claim, _detail(result), f"{result.seconds:.1f}")]
    cells[1] = f'<span class="{status}">{cells[1]}</span>'
    if result.measured:
        measured = _html(json.dumps(result.measured, indent=1, default=str))
        cells[3] += f"<details><summary>measured</summary><pre>{measured}</pre></details>"
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _defects(audit: Audit) -> Iterator[tuple[PropertyResult, Defect]]:
    """Yield the defects, errors first and documented ones last."""
    found = [(result, defect) for result in audit.results for defect in result.defects]
    yield from sorted(found, key=lambda pair: (bool(pair[1].known), pair[0].severity != "error"))


def _weight(result: PropertyResult, defect: Defect) -> str:
    return "documented" if defect.known else result.severity


def _named_parts(defect: Defect) -> list[tuple[str, str]]:
    tasks = ", ".join(map(str, defect.tasks))
    parts = (
        ("documented", defect.known),
        ("advice", defect.advice),
        ("tasks", tasks),
        ("program", defect.program),
    )
    return [(name, _visible(text)) for name, text in parts if text]


def _paragraphs(heading: str, defect: Defect) -> Iterator[str]:
    more = {"Documented": defect.known, "Advice": defect.advice}
    yield "\n".join(
        [f"{heading}: {defect.text}", *(f"{name}: {text}" for name, text in more.items() if text)]
    )
    if defect.program:
        yield "This program fails until it is repaired:"
        yield defect.program.rstrip()


def _detail(result: PropertyResult) -> str:
    count, known = len(result.defects), sum(bool(each.known) for each in result.defects)
    parts = [f"{count} defect{'s' * (count != 1)}" if count else "", f"{known} documented" if known else ""]
    return "; ".join(filter(None, [*parts, result.reason or _measured(result.measured)]))


def _measured(measured: Mapping[str, Any]) -> str:
    """Return the numbers among measurements; nested ones are in the JSON."""
    numbers = {name: value for name, value in measured.items() if isinstance(value, (int, float))}
    return ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in numbers.items())


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _summary(audit: Audit) -> str:
    counts = Counter(map(_status_of, audit.results))
    names = {"passed": "passed", "error": "failed", "warning": "failed with a warning", "skipped": "skipped"}
    shown = ", ".join(f"{counts[status]} {name}" for status, name in names.items() if counts[status])
    return f"{audit.env_id}: {shown or 'no property'}, in {audit.seconds:.0f} s."


def _visible(text: str) -> str:
    """Return a text without the characters that have no glyph, or that a terminal obeys."""
    return _HIDDEN.sub("\ufffd", text)


def _html(text: str) -> str:
    return escaped(_visible(text))
