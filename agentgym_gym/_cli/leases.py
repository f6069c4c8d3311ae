"""``agentgym leases``: list the leases on a server, and release orphaned ones."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_gym._addresses import parse_urls
from agentgym_gym._cli.console import clean, err, out, print_json, print_pairs, print_table
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import ExtraEnvs, Header, headers_of, register_envs
from agentgym_gym._leasing import journal
from agentgym_gym._leasing.slots import SlotState, slot_states
from agentgym_gym._orphans import close_left, newest_id, remove_lost, run_on
from agentgym_gym._text import reason, redact
from agentgym_gym.calls import Call, Flow
from agentgym_gym.catalogue import find
from agentgym_gym.errors import BadOption, Fault, NoServer, SetupError
from agentgym_gym.evaluate._probe import Probe, headers_for, probe
from agentgym_gym.options import Option

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentgym_gym._headers import HiddenHeaders
    from agentgym_gym._leasing.journal import Record

__all__ = ["LeasesOptions", "leases"]


@dataclass(frozen=True, kw_only=True)
class LeasesOptions:
    """The options of ``agentgym leases``."""

    url: Annotated[str, Option("server URL, as given to the environments", positional=True, metavar="URL")]
    clear: Annotated[
        bool,
        Option("close environments that dead processes on this machine left open"),
    ] = False
    env: ExtraEnvs = None
    header: Header = None
    yes: Annotated[bool, Option("close without confirmation")] = False
    as_json: Annotated[bool, Option("print JSON instead of tables; not with --clear", flag="--json")] = False


@command(LeasesOptions)
def leases(options: LeasesOptions) -> None:
    """List the leases on a server, and release those of dead clients.

    It lists the leases of this user on this machine, and the environments that the server itself lists. It
    never closes the environments of a running process. Exits with 1 if a lease could not be released.

    Other users of this machine can see --header in the list of processes. To hide it, set the variable
    AGENTGYM_<NAME>_HEADERS to a JSON object instead.
    """
    register_envs(options.env)
    (server, *more) = parse_urls(options.url, "URL")
    if more:
        raise BadOption("URL", redact(options.url), problem="names several servers; give one at a time")
    if options.clear and options.as_json:
        raise BadOption("--json and --clear exclude each other: give one of them")
    state = _state_of(server, headers_for(server, headers=headers_of(options.header)))
    if options.as_json:
        print_json(state.to_json())
    elif not options.clear:
        state.print_table()
    elif not _clear(state, yes=options.yes):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _ServerState:
    """The leases on a server.

    Attributes:
        server: Base URL of the server.
        probe: The result of probing the server.
        records: The lease records of processes on this machine.
        slots: The slots of the server, if its capacity is fixed.
        listed: The environment ids that the server lists; None if it has no list.
        headers: HTTP headers for the server.
    """

    server: str
    probe: Probe
    records: tuple[Record, ...]
    slots: tuple[SlotState, ...]
    listed: tuple[int, ...] | None
    headers: HiddenHeaders

    @property
    def closes(self) -> bool:
        """Whether the server may be able to close environments."""
        return any(environment.wire.closes for environment in self.probe.environments)

    @property
    def orphaned(self) -> list[Record]:
        """The records of processes that exited and left environments open."""
        return [record for record in self.records if record.ids and not record.alive]

    @property
    def foreign(self) -> list[int] | None:
        """The listed ids that no process on this machine has recorded; None if the server has no list."""
        ours = {slot.env_id for slot in self.slots}
        return None if self.listed is None else [env_id for env_id in self.listed if env_id not in ours]

    def print_table(self) -> None:
        rows = {
            "server": redact(self.server),
            "serves": " or ".join(e.id for e in self.probe.environments) or "no environment of the catalogue",
        }
        if self.probe.problem is not None:
            rows["problem"] = clean(self.probe.problem)
        if self.listed is not None:
            rows["open"] = _count(len(self.listed))
        print_pairs(rows)
        self._show_records()
        if self.slots:
            self._show_slots()
        if self.probe.environments and not self.closes:
            out.print(self.cannot_close)

    def _show_records(self) -> None:
        records = [record for record in self.records if record.ids]
        if records:
            rows = []
            for record in records:
                state = "running" if record.alive else "ended"
                since = _time(min(record.ids.values())).strftime("%Y-%m-%d %H:%M")
                leased = (str(len(record.ids)), since, _ranges(record.ids))
                pid = "?" if record.pid is None else record.pid
                rows.append((f"{pid} ({state})", clean(record.environment), *leased))
            headings = ("process", "environment", "leases", "since", "ids")
            print_table(headings, rows, left={"process", "environment", "since", "ids"})
        elif self.closes or not self.probe.environments:
            out.print("No process on this machine has leases there, running or ended.")
        if self.orphaned:
            out.print(f"To release orphaned leases, run: agentgym leases {redact(self.server)} --clear")

    def _show_slots(self) -> None:
        free = [slot for slot in self.slots if not slot.taken and slot.env_id in (self.listed or ())]
        out.print(f"Leased by processes on this machine: {sum(slot.taken for slot in self.slots)}.")
        out.print(f"Left by ended processes, to be reused on this machine: {len(free)}.")
        if self.foreign is not None:
            out.print(f"Created by clients elsewhere: {len(self.foreign)}.")

    @property
    def cannot_close(self) -> str:
        """The explanation for a server that cannot close environments."""
        reused = "Later processes on this machine reuse those of ended ones. " if self.slots else ""
        return f"This server cannot close environments. {reused}A restart of the server removes all of them."

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
            "places": [{"env_id": slot.env_id, "taken": slot.taken} for slot in self.slots],
        }


def _state_of(server: str, headers: HiddenHeaders) -> _ServerState:
    result = probe(server, headers=headers)
    listed: tuple[int, ...] | None = None
    if not all(environment.wire.closes for environment in result.environments):
        try:
            listed = run_on(server, _listed(), headers)
        except Fault:
            listed = None  # the server has no list of environments
    try:
        records, slots = tuple(journal.records(server)), tuple(slot_states(server))
    except OSError as error:
        raise SetupError(f"cannot read the leases of this machine: {reason(error)}") from error
    return _ServerState(server, result, records, slots, listed, headers)


def _clear(state: _ServerState, *, yes: bool) -> bool:
    """Close orphaned environments; return False if the server failed before all were closed."""
    if not state.probe.environments:
        raise NoServer(f"cannot release leases: {state.probe.url}: {state.probe.problem}")
    if not state.closes:
        raise BadOption(f"cannot release leases: {state.cannot_close}")
    orphaned = _remove_lost(state)
    count = sum(len(record.ids) for record in orphaned)
    if not orphaned:
        out.print("No ended process on this machine left leases there.")
        return True
    if not yes:
        processes = f"{len(orphaned)} process{'es' * (len(orphaned) != 1)}"
        err.print(
            f"{_count(count)} on {redact(state.server)} will be closed, left by {processes} that ended. "
            "A restarted server reuses ids, and a restart cannot be detected for certain. After a restart, "
            "these ids may belong to other machines, users or programs.",
        )
        typer.confirm("Close them?", abort=True, err=True)
    return _close(state, orphaned)


def _remove_lost(state: _ServerState) -> list[Record]:
    """Drop environments that a restart of the server has lost, and return the remaining records.

    To detect a restart, this creates and closes an environment: a restarted server reuses low ids.
    """
    names = {environment.name for environment in state.probe.environments}
    orphaned, newest = state.orphaned, None
    played = next((record.environment for record in orphaned if record.environment in names), None)
    if played is not None:
        try:
            newest = newest_id(state.server, find(played).wire, state.headers)
        except Fault as fault:  # for example, the server is full
            err.print(f"cannot check for a restart of the server: {clean(str(fault))}")
    lost = remove_lost(orphaned, names, newest)
    for record in state.records:
        if not record.ids and not record.alive:
            with record.claimed():
                pass  # releasing an empty record removes its folder
    if lost:
        out.print(f"{_count(lost)} lost in a restart of the server.")
    return [record for record in orphaned if record.ids]


def _close(state: _ServerState, orphaned: Sequence[Record]) -> bool:
    counts: Counter[str] = Counter()
    try:
        close_left(state.server, orphaned, state.headers, counts)
    except Fault as fault:
        err.print(f"The server failed before all were closed: {clean(str(fault))}")
        return False
    finally:
        out.print(f"Closed {_count(counts['closed'])}.")
        if counts["refused"]:
            out.print(f"Not closed by the server, or unknown to it: {_count(counts['refused'])}.")
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
