"""Load the commands that other packages bring by the entry points ``agentgym.commands``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from agentgym_gym._cli.console import ERROR, Command, clean, err, report

__all__ = ["ENTRY_POINTS", "CommandGroup"]

ENTRY_POINTS = "agentgym.commands"
"""The group of entry points; docs/howto/add_command.md documents its contract."""


class CommandGroup(TyperGroup):
    """A group of commands, to which other packages can add commands.

    The commands of other packages come last. Each is loaded when it is called or listed.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._all = _Commands(self.commands, self.name or "")
        self.commands = self._all  # type: ignore[assignment] # typer only reads it

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of the commands, and on standard error which entry points are ignored."""
        for problem in self._all.ignored():
            err.print(Text(f"warning: {problem}", style="yellow"))
        super().format_commands(ctx, formatter)


class _Commands(Mapping[str, Any]):
    """The commands of a group by name.

    Args:
        own: The commands of this library.
        group: The name of the group; empty for the program.
    """

    def __init__(self, own: Mapping[str, Any], group: str) -> None:
        self._own = own
        self._group = group
        self._loaded: dict[str, TyperCommand | TyperGroup] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._own:
            return self._own[name]  # without a search for entry points, which takes milliseconds
        if name not in self._loaded:
            self._loaded[name] = _load(name, self._added[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._own, *sorted(self._added.keys() - self._own.keys())])

    def __len__(self) -> int:
        return len(self._own.keys() | self._added.keys())

    @cached_property
    def _added(self) -> Mapping[str, Sequence[EntryPoint]]:
        """The entry points of this group, by the name of their command."""
        added: dict[str, list[EntryPoint]] = {}
        for point in _entry_points():
            group, _, name = point.name.rpartition(".")
            if group == self._group:
                added.setdefault(name, []).append(point)
        return added

    def ignored(self) -> Iterator[str]:
        """Yield the ignored entry points: with the name of a built-in command, or in an unknown group."""
        for name in sorted(self._added.keys() & self._own.keys()):
            packages = _packages(self._added[name])
            yield f"ignored the command {name} of {packages}: agentgym has a command of this name"
        if not self._group:
            for point in _entry_points():
                group = point.name.rpartition(".")[0]
                if group and not isinstance(self.get(group), CommandGroup):
                    package = _packages([point])
                    yield f"ignored the command {point.name} of {package}: there is no group {group}"


@cache
def _entry_points() -> Sequence[EntryPoint]:
    return tuple(entry_points(group=ENTRY_POINTS))


def _packages(points: Sequence[EntryPoint]) -> str:
    """Return the names of the packages that have entry points."""
    names = sorted(point.dist.name if point.dist else point.value for point in points)
    return f"the package{'s' * (len(names) > 1)} {' and '.join(names)}"


def _load(name: str, points: Sequence[EntryPoint]) -> TyperCommand | TyperGroup:
    """Return the command of an entry point; if it cannot be loaded, one that prints the reason."""
    packages = _packages(points)
    if len(points) > 1:
        return _unavailable(name, f"{packages} both define it; uninstall one of them")
    try:
        return _command(name, points[0].load())
    except Exception as error:  # noqa: BLE001 - the module of another package may raise anything
        return _unavailable(name, f"cannot load it from {packages}: {type(error).__name__}: {error}")


def _command(name: str, target: Any) -> TyperCommand | TyperGroup:
    parent = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(target, typer.Typer):
        _report_errors(target)
        parent.add_typer(target, name=name, cls=CommandGroup)
        made: Any = get_command(parent)
        command: TyperGroup = made.commands[name]
        return command
    if not callable(target):
        raise TypeError(f"{target!r:.80} is neither a function nor a typer.Typer")
    parent.command(name, cls=Command)(target)
    single: Any = get_command(parent)
    return single  # type: ignore[no-any-return]


def _report_errors(group: typer.Typer) -> None:
    """Let all commands of a group print their errors as one line, unless they have a class of their own."""
    for command in group.registered_commands:
        if command.cls is TyperCommand:
            command.cls = Command
    for below in group.registered_groups:
        if below.typer_instance is not None:
            _report_errors(below.typer_instance)


def _unavailable(name: str, reason: str) -> TyperCommand:
    """Return a command that prints why the command of this name cannot be called, and exits with an error."""
    line = " ".join(clean(reason).split())

    def run() -> None:
        report(f"the command {name} is unavailable: {line}")
        raise typer.Exit(ERROR)

    parent = typer.Typer(add_completion=False, rich_markup_mode=None)
    parent.command(
        name,
        short_help=f"unavailable: {line}",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )(run)
    single: Any = get_command(parent)
    return single  # type: ignore[no-any-return]
