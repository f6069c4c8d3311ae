"""Private modules are imported by their own package and by a few tests; all else uses what is public."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from figures import PACKAGES, ROOT, modules, public_modules


def modules_named(tree):
    """Yield each module that is imported, or that a text such as one for `importlib` or a patch names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"(agentgym_gym|agentgym_servers|verl_bridge)(\.\w+)+", node.value):
                yield node.lineno, node.value
            elif "import " in node.value:  # a program that a test starts
                yield from ((node.lineno, name) for name in _imported_in_text(node.value))


def _imported_in_text(text):
    for line in text.splitlines():
        words = line.split()
        if words[:1] in (["import"], ["from"]) and len(words) > 1:
            yield words[1].rstrip(",;") + (f".{words[3]}" if words[0] == "from" and len(words) > 3 else "")


def is_private(module):
    package, *parts = module.split(".")
    return package in PACKAGES and any(part.startswith("_") and not part.endswith("__") for part in parts)


INSIDE = {
    "tests/_http/test_http11.py": "the bytes of requests, and replies cut at any byte",
    "tests/_leasing/test_circuit_breaker.py": "the exact waits of a circuit, by a clock of its own",
    "tests/_leasing/test_given_back.py": "races between two calls, played in every order by hand",
    "tests/bridge/test_check_numbers.py": "goes over the table of rules",
    "tests/bridge/test_gigpo.py": "exact arithmetic without torch",
    "tests/bridge/test_memory.py": "exact arithmetic of the estimate of memory",
    "tests/bridge/test_recipe_hardware.py": "the lines about memory that `init` prints, without its tasks",
    "tests/bridge/test_shares.py": "exact arithmetic of shares",
    "tests/evaluate/test_figures.py": "exact arithmetic, with seeds and numbers of draws that no option sets",
    "tests/oracles/test_babyai.py": "proves from the grid of a level that a task cannot be won",
    "tests/replies/test_languages.py": "the page on replies lists every language that is read",
    "tests/scores/test_credit.py": "credit by turns, without torch and verl",
    "tests/servers/test_alfworld_official.py": "reads ALFWorld's own files where TextWorld is not installed",
    "tests/servers/test_miniwob_server.py": "looks at the tab in which a page is played",
    "tests/servers/test_request_limits.py": "the limits of half requests have no option",
    "tests/servers/test_sciworld_simulator.py": "which games share a simulator, and its paths",
    "tests/servers/test_serial_thread.py": "the order of calls within one thread",
    "tests/servers/test_sqlgym_fair_queue.py": "the order of statements, by turns",
    "tests/servers/test_sqlgym_worker.py": "the limits of a process of statements",
    "tests/servers/test_webarena_rules.py": "53 cases, each of which takes Chromium seconds",
    "tests/servers/test_webshop_reward.py": "exact arithmetic of the reward",
    "tests/support/aborting_server.py": "a rollout server that ends requests as a GPU engine does",
    "tests/support/advantage_log.py": "records what verl's estimators get",
    "tests/support/ends_run.py": "closes what actors of Ray hold, as the end of a training does",
    "tests/support/household_games.py": "builds houses of the recorded games, which no task has",
    "tests/support/inside.py": "makes pauses and limits of agentgym_gym smaller",
    "tests/support/inside_bridge.py": "makes pauses and limits of verl_bridge smaller",
    "tests/support/needs.py": "finds Java and Chromium as the servers do",
    "tests/support/page_commands.py": "selects the tasks of a page's evaluations as the command does",
    "tests/support/plain_sites.py": "the state of a site of WebArena, without a browser",
    "tests/support/webarena_parts.py": "WebArena's sites, browser and rules, without a server",
    "tests/support/verl_run.py": "composes settings as the check does, in verl's own process",
    "tests/test__deprecated.py": "no public name is deprecated yet",
    "tests/verl/test_cpu.py": "the parts of the plugin for CPUs have no public name",
    "tests/verl/test_fused_kernels.py": "the estimate of logits beside the memory that verl needs",
    "tests/verl/test_joined_rows.py": "gives verl's estimators rows of turns without a training",
    "tests/verl/test_penalties.py": "the metrics of two episodes, without a training",
    "tests/verl/test_policy_losses.py": "the table of losses, and the weights of rows, with verl's functions",
    "tests/verl/test_same_messages.py": "builds the prompts of turns without a model",
}
"""The tests that look inside, each with the reason why its promise cannot be seen from outside."""


OUTSIDE = {
    "docs/figures.py": "traces the modules of a check",
    "docs/generate.py": "writes docs/cli/ from the typer application, and docs/options.md from fields",
    "docs/screenshot.py": "finds Chromium as the servers do",
    "benchmarks/bridge_turn.py": "subtracts the tokenizer's own time",
    "benchmarks/evaluation.py": "empties a cache, as in a new process",
    "agentgym_servers/webarena/_judge.py": "one place reads the variables for proxies",
    "tools/alfworld_facts.py": "measures ALFWorld's games as it does the generated houses",
}
"""Other files that import private modules of a package that is not their own."""


def imported_from_inside(*folders):
    """Return the files in these folders that name a private module of another package."""
    return {
        file.relative_to(ROOT).as_posix()
        for folder in folders
        for file in (ROOT / folder).rglob("*.py")
        for _, module in modules_named(ast.parse(file.read_text("utf-8")))
        if file != Path(__file__).resolve() and is_private(module) and module.split(".")[0] != folder
    }


@pytest.mark.slow
def test_few_tests_look_inside():
    found = imported_from_inside("tests")
    assert found - set(INSIDE) == set()
    assert set(INSIDE) - found == set()
    assert len(INSIDE) <= 40


@pytest.mark.slow
def test_nothing_else_looks_inside():
    folders = ("examples", "docs", "benchmarks", "tools", "agentgym_servers", "verl_bridge")
    assert imported_from_inside(*folders) == set(OUTSIDE)


def test_every_module_has_a_summary():
    """Its docstring begins with a line that docs/modules.md shows."""
    every = [module for package in PACKAGES for module in modules(package)]
    assert len(every) > 500
    summaries = {module.name: (ast.get_docstring(module.tree) or "").partition("\n\n")[0] for module in every}
    assert {name for name, text in summaries.items() if not re.fullmatch(r"[^\n]{12,}\.", text)} == set()


def private_types(tree):
    """Return the types that come from a private module, by the name under which it imports them."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and is_private(str(node.module))
        for alias in node.names
    }


def annotations_of(body, within=""):
    """Yield the annotations of what is public in a module or class."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from annotations_of(node.body, f"{within}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (
            not node.name.startswith("_") or node.name == "__init__"
        ):
            given = [each.annotation for each in (*node.args.args, *node.args.kwonlyargs)]
            yield from ((within + node.name, each) for each in (*given, node.returns) if each)


@pytest.mark.slow
def test_public_signatures_name_public_types():
    modules = [module for module in public_modules() if module.name.startswith("agentgym_gym")]
    assert len(modules) > 40
    public = {name for module in modules for name in module.exports}
    named = set()
    for module in modules:
        private = private_types(module.tree) - public
        named |= {
            f"{module.name}: {where}: {name.id}"
            for where, annotation in annotations_of(module.tree.body)
            for name in ast.walk(annotation)
            if isinstance(name, ast.Name) and name.id in private
        }
    assert named == set()
