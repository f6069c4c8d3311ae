"""``agentgym leases``."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_gym._addresses import parse_urls
from agentgym_gym._cli.console import clean, err, out, print_json, print_pairs, print_table
from agentgym_gym._cli.options import Header, headers_of
from agentgym_gym._cli.resolve_env import Own, know
from agentgym_gym._cli.sources import Probe, headers_for, probe
from agentgym_gym._leasing import journal
from agentgym_gym._leasing.slots import SlotState, slot_states
from agentgym_gym._orphans import close_left, newest_id, remove_lost, run_on
from agentgym_gym._text import redact
from agentgym_gym.calls import Call, Flow
from agentgym_gym.catalogue import find
from agentgym_gym.errors import BadOption, Fault, NoServer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentgym_gym._headers import HiddenHeaders
    from agentgym_gym._leasing.journal import Record

__all__ = ["leases"]


def leases(
    url: Annotated[str, typer.Argument(metavar="URL", help="The server, by the URL that was played on.")],
    clear: Annotated[
        bool, typer.Option("--clear", help="Close what processes of this machine left when they died.")
    ] = False,
    env: Own = None,
    header: Header = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before anything is closed.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of tables; not with --clear.")
    ] = False,
) -> None:
    """List the leases held on a server; close those of dead clients.

    Known are those of this user and machine, and what the server lists by itself. What a running process
    holds is never closed. Exits with 1 if something could not be cleared.
    """
    know(env)
    (server, *more) = parse_urls(url, "URL")
    if more:
        raise BadOption(f"URL={redact(url)!r} names several servers; give one at a time")
    if clear and as_json:
        raise BadOption("--json shows, and --clear asks: give one of them")
    found = _state_of(server, headers_for(server, given=headers_of(header)))
    if as_json:
        print_json(found.to_json())
    elif not clear:
        found.print_table()
    elif not _clear(found, yes=yes):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _ServerState:
    """The leases on a server.

    Attributes:
        server: Base URL of the server.
        probe: The result of probing the server.
        records: The lease records of processes on this machine.
        places: The slots of the server, if its capacity is fixed.
        listed: The environment ids that the server lists; None if it has no list.
        headers: HTTP headers for the server.
    """

    server: str
    probe: Probe
    records: tuple[Record, ...]
    places: tuple[SlotState, ...]
    listed: tuple[int, ...] | None
    headers: HiddenHeaders

    @property
    def closes(self) -> bool:
        """Whether the server may be able to close environments."""
        return any(environment.wire.closes for environment in self.probe.environments)

    @property
    def left(self) -> list[Record]:
        """The records of processes that exited and left environments open."""
        return [record for record in self.records if record.ids and not record.alive]

    @property
    def others(self) -> list[int] | None:
        """The listed ids that no process on this machine has recorded; None if the server has no list."""
        ours = {place.env_id for place in self.places}
        return None if self.listed is None else [env_id for env_id in self.listed if env_id not in ours]

    def print_table(self) -> None:
        rows = {
            "server": redact(self.server),
            "serves": " or ".join(e.id for e in self.probe.environments) or "nothing known here",
        }
        if self.probe.problem is not None:
            rows["problem"] = clean(self.probe.problem)
        if self.listed is not None:
            rows["holds"] = _count(len(self.listed))
        print_pairs(rows)
        self._show_records()
        if self.places:
            self._show_places()
        if self.probe.environments and not self.closes:
            out.print(self.cannot_close)

    def _show_records(self) -> None:
        records = [record for record in self.records if record.ids]
        if records:
            rows = []
            for record in records:
                state = "runs" if record.alive else "ended"
                since = _time(min(record.ids.values())).strftime("%Y-%m-%d %H:%M")
                held = (str(len(record.ids)), since, _ranges(record.ids))
                pid = "?" if record.pid is None else record.pid
                rows.append((f"{pid} ({state})", clean(record.environment), *held))
            headings = ("process", "environment", "held", "since", "ids")
            print_table(headings, rows, left={"process", "environment", "since", "ids"})
        elif self.closes or not self.probe.environments:
            out.print("No process of this machine holds anything there, or left anything.")
        if self.left:
            out.print(f"What was left is closed by: agentgym leases {redact(self.server)} --clear")

    def _show_places(self) -> None:
        left = [place for place in self.places if not place.taken and place.env_id in (self.listed or ())]
        out.print(f"Held by processes of this machine: {sum(place.taken for place in self.places)}.")
        out.print(f"Left by others that ended, and used by the next here: {len(left)}.")
        if self.others is not None:
            out.print(f"Made by clients that are not known here: {len(self.others)}.")

    @property
    def cannot_close(self) -> str:
        """The explanation for a server that cannot close environments."""
        used = "What ended processes of this machine left is used by the next, and the rest"
        return (
            f"This server cannot close environments. {used if self.places else 'They'} "
            f"{'goes' if self.places else 'go'} when it is restarted."
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "url": redact(self.server),
            "environments": [each.id for each in self.probe.environments],
            "problem": self.probe.problem,
            "closes": self.closes if self.probe.environments else None,
            "listed": None if self.listed is None else list(self.listed),
            "processes": [
                {
                    "pid": record.pid,
                    "alive": record.alive,
                    "environment": record.environment,
                    "envs": [{"id": i, "made": _time(made).isoformat()} for i, made in record.ids.items()],
                }
                for record in self.records
            ],
            "places": [{"env_id": place.env_id, "taken": place.taken} for place in self.places],
        }


def _state_of(server: str, headers: HiddenHeaders) -> _ServerState:
    found = probe(server, headers=headers)
    listed: tuple[int, ...] | None = None
    if not all(environment.wire.closes for environment in found.environments):
        try:
            listed = run_on(server, _listed(), headers)
        except Fault:
            listed = None  # the server has no list of environments
    return _ServerState(
        server, found, tuple(journal.records(server)), tuple(slot_states(server)), listed, headers
    )


def _clear(found: _ServerState, *, yes: bool) -> bool:
    """Close orphaned environments; return False if the server failed before all were closed."""
    if not found.probe.environments:
        raise NoServer(f"nothing can be closed: {found.probe.url}: {found.probe.problem}")
    if not found.closes:
        raise BadOption(f"nothing can be closed: {found.cannot_close}")
    left = _remove_lost(found)
    count = sum(len(record.ids) for record in left)
    if not left:
        out.print("Nothing is left there by processes of this machine that ended.")
        return True
    if not yes:
        err.print(
            f"{_count(count)} on {redact(found.server)} will be closed, left by {len(left)} that ended. "
            "Ids begin again when a server is restarted, and nothing here can tell for sure that it was not: "
            "if it was, and other machines, users or programs play on it, these may be theirs by now.",
            soft_wrap=True,
        )
        typer.confirm("Close them?", abort=True, err=True)
    return _close(found, left)


def _remove_lost(found: _ServerState) -> list[Record]:
    """Drop environments that a restart of the server has lost, and return the remaining records.

    To detect a restart, this creates and closes an environment: a restarted server reuses low ids.
    """
    names = {environment.name for environment in found.probe.environments}
    left, newest = found.left, None
    played = next((record.environment for record in left if record.environment in names), None)
    if played is not None:
        try:
            newest = newest_id(found.server, find(played).wire, found.headers)
        except Fault as fault:  # for example, the server is full
            err.print(f"Whether it was restarted could not be looked at: {clean(str(fault))}", soft_wrap=True)
    gone = remove_lost(left, names, newest)
    for record in found.records:
        if not record.ids and not record.alive:
            with record.claimed():
                pass  # releasing an empty record removes its folder
    if gone:
        out.print(f"{_count(gone)} went with a server that is no longer there.")
    return [record for record in left if record.ids]


def _close(found: _ServerState, left: Sequence[Record]) -> bool:
    counts: Counter[str] = Counter()
    try:
        close_left(found.server, left, found.headers, counts)
    except Fault as fault:
        err.print(f"The server failed, and the rest is left: {clean(str(fault))}", soft_wrap=True)
        return False
    finally:
        out.print(f"Closed {_count(counts['closed'])}.")
        if counts["refused"]:
            out.print(f"Of {_count(counts['refused'])} the server knew nothing, or could not close it.")
    return True


def _listed() -> Flow[tuple[int, ...]]:
    return (yield Call("observe", "GET", "/list_envs")).body().integers()


def _count(number: int) -> str:
    return f"{number} environment{'s' * (number != 1)}"


def _time(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.timezone.utc).astimezone()


def _ranges(ids: Iterable[int]) -> str:
    """Format ids as ranges: 0-2, 7."""
    numbered = enumerate(sorted(ids))
    runs = [[env_id for _, env_id in run] for _, run in groupby(numbered, lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
