"""Metrics of this repository, and the path of a step through it: ``make figures`` prints them.

Lines of Python, also by package; public modules and the names they export; classes of one name in several
modules; functions of more than 100 lines; small modules that only one other imports; how often the names of
options are written; the path through the checks of a training folder, from a trace of one check; the modules
and generators between ``env.step`` and the socket, from a trace of a step of TextCraft on its local server.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Annotated, Any, NamedTuple, get_origin, get_type_hints

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("agentgym_gym", "agentgym_servers", "verl_bridge")
CHECKS = tuple(
    f"verl_bridge.recipes.{name}"
    for name in ("_absent", "_check", "_compose", "_setting_types", "_verl_settings")
)
LONG = 100
SMALL = 70


class Module(NamedTuple):
    """A module and its source."""

    name: str
    path: Path
    lines: int
    tree: ast.Module

    @property
    def public(self) -> bool:
        """Whether no part of its name begins with an underscore."""
        return not any(part.startswith("_") for part in self.name.split("."))

    @property
    def exports(self) -> list[str]:
        """The names in its ``__all__``."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return [str(name) for name in ast.literal_eval(node.value)]
        return []


class Step(NamedTuple):
    """The path of a step.

    Attributes:
        modules: Modules of this library whose functions were called, in the order of their first calls.
        generators: The maximum depth of nested generators while the request was sent.
    """

    modules: tuple[str, ...]
    generators: int


@functools.cache
def modules(package: str) -> tuple[Module, ...]:
    """Return the modules of a package."""
    found = []
    for path in sorted((ROOT / package).rglob("*.py")):
        source = path.read_text("utf-8")
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        found.append(Module(name, path, source.count("\n"), ast.parse(source)))
    return tuple(found)


def public_modules() -> list[Module]:
    """Return the public modules of all packages."""
    return [module for package in PACKAGES for module in modules(package) if module.public]


def traced_step() -> Step:
    """Play one step of TextCraft, and return its path."""
    from agentgym_gym import AgentGymEnv  # noqa: PLC0415 - only this function needs the import

    env = AgentGymEnv("TextCraft")
    called: dict[str, None] = {}
    most = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal most
        name = frame.f_globals.get("__name__", "")
        if event != "call" or not name.startswith("agentgym_gym"):
            return
        called[name] = None
        generators = 0
        caller: FrameType | None = frame
        while caller is not None:
            own = str(caller.f_globals.get("__name__", "")).startswith("agentgym_gym")
            generators += own and bool(caller.f_code.co_flags & inspect.CO_GENERATOR)
            caller = caller.f_back
        most = max(most, generators)

    env.reset(options={"task_id": 0})
    env.step("Action: inventory")  # initializes lazy parts
    sys.setprofile(note)
    try:
        env.step("Action: inventory")
    finally:
        sys.setprofile(None)
        env.close()
    return Step(tuple(called), most)


def traced_check() -> tuple[list[str], int]:
    """Check a training folder for TextCraft, and return the path through the checks' modules.

    Returns:
        The functions that a module of the checks calls in another, each once for each caller; and how many of
        these calls return to a module that was left: it was called before, and is not the last that the
        caller's module called.
    """
    from verl_bridge.recipes import RlRecipe, check, seeded, write, write_rows  # noqa: PLC0415

    env_id = "agentgym_gym:agentgym/TextCraft-v0"
    start = "verl_bridge.recipes._check"
    calls: dict[tuple[str, str, str, str], None] = {}

    def name_of(frame: FrameType) -> str:
        name = str(frame.f_globals.get("__name__", ""))
        return name if name.startswith(CHECKS) else ""

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = name_of(frame)
        if event != "call" or name in {"", start}:
            return
        caller = frame.f_back
        while caller is not None and not name_of(caller):
            caller = caller.f_back
        if caller is not None and name_of(caller) != name:
            calls[name_of(caller), caller.f_code.co_name, name, frame.f_code.co_name] = None

    with TemporaryDirectory() as place:
        folder = Path(place)
        write(RlRecipe(env_id, preset="test"), folder)
        for part, tasks in {"train": range(64), "val": range(64, 72)}.items():
            write_rows(folder / f"data/{part}.parquet", seeded(env_id, tasks, None))
        sys.setprofile(note)
        try:
            check(folder)
        finally:
            sys.setprofile(None)
    returns, seen, last = 0, {start}, dict[str, str]()
    for caller, _, called, _ in calls:
        returns += called in seen and last.get(caller) != called
        seen.add(called)
        last[caller] = called
    return [f"{called}.{function}" for *_, called, function in calls], returns


def longest_functions(found: list[Module]) -> list[tuple[int, str]]:
    """Return the functions with the most lines and their lengths, the longest first."""
    return sorted(
        (
            ((node.end_lineno or node.lineno) - node.lineno + 1, f"{module.name}.{node.name}")
            for module in found
            for node in ast.walk(module.tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ),
        reverse=True,
    )


def small_with_one_importer(found: list[Module]) -> list[str]:
    """Return the modules of at most 70 lines that one other module imports."""
    importers: defaultdict[str, set[str]] = defaultdict(set)
    names = {module.name for module in found}
    for module in found:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                those = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                those = {alias.name for alias in node.names}
            else:
                continue
            for name in those & names:
                importers[name].add(module.name)
    small = [module for module in found if module.lines <= SMALL and module.path.name != "__init__.py"]
    return sorted(module.name for module in small if len(importers[module.name] - {module.name}) == 1)


def option_names(found: list[Module]) -> list[tuple[int, str]]:
    """Return how often the options of ``agentgym eval`` are written in the source, the most frequent first.

    A name is written where it is declared, passed or read: as a field, a parameter, a keyword, an attribute
    or a text.
    """
    from agentgym_gym.evaluate import ChatOptions, Run, RunLimits  # noqa: PLC0415 - other figures need no import

    written: Counter[str] = Counter()
    for module in found:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                written[node.target.id] += 1
            elif isinstance(node, (ast.arg, ast.keyword)):
                written[str(node.arg)] += 1
            elif isinstance(node, ast.Attribute):
                written[node.attr] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                written[node.value.removeprefix("--").replace("-", "_")] += 1
    hints = [get_type_hints(kind, include_extras=True) for kind in (Run, ChatOptions, RunLimits)]
    names = {name for each in hints for name, hint in each.items() if get_origin(hint) is Annotated}
    return sorted(((written[name], name) for name in names), reverse=True)


def main() -> None:
    """Print the metrics."""
    every: list[Module] = []
    for package in PACKAGES:
        found = modules(package)
        public = [module for module in found if module.public]
        exported = {name for module in public for name in module.exports}
        print(
            f"{package}: {sum(module.lines for module in found):,} lines, {len(public)} public modules of "
            f"{len(found)}, {sum(len(module.exports) for module in public)} exports of {len(exported)} names"
        )
        every += found
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module in every:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.name)
    public_twice = [name for name, where in places.items() if len(where) > 1 and not name.startswith("_")]
    private_twice = [name for name, where in places.items() if len(where) > 1 and name.startswith("_")]
    print(f"classes of one name in several modules: {len(public_twice)} public, {len(private_twice)} private")
    for name in sorted(public_twice):
        print(f"  {name}: {', '.join(places[name])}")
    longest = longest_functions(every)
    print(f"functions of more than {LONG} lines: {sum(lines > LONG for lines, _ in longest)}")
    for lines, name in longest[:5]:
        print(f"  {lines} {name}")
    rooms = Counter[str]()
    for module in every:
        package, _, rest = module.name.partition(".")
        rooms[f"{package}.{rest.partition('.')[0]}" if "." in rest else package] += module.lines
    print("lines by package: " + ", ".join(f"{name} {lines:,}" for name, lines in rooms.most_common(22)))
    small = small_with_one_importer(every)
    print(f"modules of at most {SMALL} lines with one importer: {len(small)}")
    names = option_names(every)
    print(
        f"names of the {len(names)} options of a run: written {sum(count for count, _ in names):,} times; "
        + ", ".join(f"{name} {count}" for count, name in names[:5])
    )
    step = traced_step()
    by_package = Counter(name.split(".")[1] if "." in name else name for name in step.modules)
    calls, returns = traced_check()
    print(f"a check of a training folder: {len(calls)} calls between its modules, {returns} returns to one")
    print(f"a step: {len(step.modules)} modules, {step.generators} generators; {dict(by_package)}")


if __name__ == "__main__":
    main()
