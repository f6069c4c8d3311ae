"""Print how the corpus of replies is read: `PYTHONPATH=tests/support python tests/replies/figures.py`."""

from __future__ import annotations

import sys
from collections import Counter

from agentgym_gym import FORMATS
from replies import entries

COLUMNS = (
    ("plain", lambda e, _: e.kind == "action"),
    ("read", lambda e, verdict: e.kind == "action" and verdict == "read"),
    ("refused", lambda e, verdict: e.kind == "action" and verdict == "refused"),
    ("own words", lambda e, verdict: e.kind == "action" and verdict == "forwarded"),
    ("wrong", lambda e, verdict: e.kind == "action" and verdict == "wrong"),
    ("nothing", lambda e, _: e.sends_nothing),
    ("played", lambda e, verdict: e.sends_nothing and verdict == "wrong"),
    ("own words", lambda e, verdict: e.sends_nothing and verdict == "forwarded"),
    ("either", lambda e, _: e.kind == "either"),
    ("wrong", lambda e, verdict: e.kind == "either" and verdict == "wrong"),
)


def main(names):
    """Print a table of the formats and, for each format that is named, one of its families."""
    judged = {name: [(entry, entry.verdict()) for entry in entries(name)] for name in FORMATS}
    _table("format", judged)
    for name in names:
        families = Counter(entry.family for entry, _ in judged[name])
        _table(name, {f: [(e, v) for e, v in judged[name] if e.family == f] for f in sorted(families)})


def _table(title, rows):
    sys.stdout.write(
        f"\n{title:18}" + "".join(f"{heading:>10}" for heading, _ in COLUMNS) + "    read of plain\n"
    )
    for name, judged in rows.items():
        counts = [sum(1 for entry, verdict in judged if has(entry, verdict)) for _, has in COLUMNS]
        share = f"{counts[1] / counts[0]:.1%}" if counts[0] else "-"
        sys.stdout.write(f"{name:18}" + "".join(f"{count:>10}" for count in counts) + f"{share:>17}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
