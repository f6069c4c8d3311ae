"""Metrics of this repository's size, and the path of a step through it: ``make figures`` prints them.

Lines of Python; public modules and the names they export; classes of one name in several modules; functions
of more than 100 lines; the modules and generators between ``env.step`` and the socket, from a trace of a step
of TextCraft on its local server.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("agentgym_gym", "agentgym_servers", "verl_bridge")
LONG = 100


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
    step = traced_step()
    by_package = Counter(name.split(".")[1] if "." in name else name for name in step.modules)
    print(f"a step: {len(step.modules)} modules, {step.generators} generators; {dict(by_package)}")


if __name__ == "__main__":
    main()
