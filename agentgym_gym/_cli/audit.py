"""``agentgym audit``: check whether an environment is fit to train and to test on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agentgym_gym._cli.console import ERROR, clean, err, out, print_json, report
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import TASKS_HELP, Header, Json, Split, headers_of
from agentgym_gym.errors import BadFile, BadOption
from agentgym_gym.evaluate._resolve import refuse_twice
from agentgym_gym.options import Option

__all__ = ["AuditOptions", "audit"]


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The options of ``agentgym audit``."""

    env: Annotated[
        str | None,
        Option(
            "environment: id, name, URL, or MODULE:ID of another package",
            positional=True,
            metavar="[ENV]",
            completes="environment",
        ),
    ] = None
    tasks: Annotated[str | None, Option(TASKS_HELP, default="some of each split, or seeds")] = None
    split: Split = None
    solver: Annotated[
        str | None,
        Option(
            "agent that plays the solutions: oracle, replay:PATH or MODULE:NAME",
            metavar="AGENT",
            completes="agent",
            default="oracle, if there is one",
        ),
    ] = None
    only: Annotated[
        Sequence[str],
        Option("check only this property; repeatable", metavar="PROPERTY", completes="property"),
    ] = ()
    skip: Annotated[
        Sequence[str], Option("leave out this property; repeatable", metavar="PROPERTY", completes="property")
    ] = ()
    budget: Annotated[
        float | None,
        Option("time limit of all checks, in seconds", default="100; with --thorough 1800"),
    ] = None
    thorough: Annotated[bool, Option("play all tasks, and more episodes for each property")] = False
    seed: Annotated[int, Option("random seed of the drawn actions", least=0)] = 0
    fail_on: Annotated[Literal["error", "warning"], Option("lowest severity for the exit status 1")] = "error"
    list_: Annotated[bool, Option("list the properties, and check nothing", flag="--list")] = False
    out: Annotated[Path | None, Option("output folder for the results", default="not kept")] = None
    resume: Annotated[bool, Option("resume the audit in the output folder")] = False
    page: Annotated[Path | None, Option("HTML file for the results", metavar="FILE")] = None
    as_json: Json = False
    server: Annotated[
        str | None,
        Option(
            "server URL, or several separated by commas",
            metavar="URL",
            default="its variable, else a local server",
        ),
    ] = None
    header: Header = None
    timeout: Annotated[float, Option("timeout of each call of the environment, in seconds")] = 30.0
    env_kwargs: Annotated[
        Mapping[str, Any],
        Option("more arguments of the environment, as a JSON object", metavar="JSON", values="json"),
    ] = field(default_factory=dict)


@command(
    AuditOptions,
    {
        "Tasks": ("tasks", "split", "solver"),
        "Properties": ("only", "skip", "budget", "thorough", "seed", "fail_on", "list_"),
        "Results": ("out", "resume", "page", "as_json"),
        "Environment": ("server", "header", "timeout", "env_kwargs"),
    },
    examples=(
        "agentgym audit TextCraft",
        "agentgym audit my_module:my/Env-v0 --budget 60 --page audit.html",
        "agentgym audit http://127.0.0.1:36001 --only replay --only forgery",
        "agentgym audit --list",
    ),
)
def audit(options: AuditOptions) -> None:
    """Check whether an environment is fit to train and to test on.

    It needs no model. It plays the environment, compares what it returns, shrinks what is wrong, and prints
    each defect with advice and with a short program that fails until the defect is repaired.

    Each property gets a share of the time in --budget. A property that does not apply to the environment is
    skipped, with the reason. --list explains all properties. Exits with 1 if a property failed, with 2 if
    none could be checked.

    The environment may be any gymnasium environment; with --server, or the URL of a server as ENV, it is one
    of AgentGym's. Solutions come from the oracle; from replay:PATH, a run whose episodes won; or from an
    agent of yours, MODULE:NAME.

    Other users of this machine can see --header in the list of processes. To hide it, set the variable
    AGENTGYM_<NAME>_HEADERS to a JSON object instead. Programs have no headers: they need that variable.
    """
    if options.list_:
        _list_properties(as_json=options.as_json)
        return
    if options.env is None:
        raise BadOption("ENV is missing: give an environment, or --list")
    if options.resume and options.out is None:
        raise BadOption("--resume needs the folder of the earlier audit: give --out")
    # Imported here, because httpx and hypothesis take as long as all other commands.
    from agentgym_gym.testing import audit as run_audit  # noqa: PLC0415
    from agentgym_gym.testing._audit.report import FIRST_LINE, result_line  # noqa: PLC0415

    if options.page is not None:
        _check_page(options.page, FIRST_LINE)
    lines = err if options.as_json else out
    result = run_audit(
        options.env,
        _arguments(options),
        solver=options.solver,
        tasks=options.tasks,
        split=options.split,
        only=options.only,
        skip=options.skip,
        budget=options.budget,
        thorough=options.thorough,
        seed=options.seed,
        timeout=options.timeout,
        folder=options.out,
        resume=options.resume,
        on_result=lambda each: lines.print(clean(result_line(each))),
    )
    if options.as_json:
        print_json(result.to_json())
    else:
        out.print(f"\n{clean(result.text(list_all=False))}")
    if options.page is not None:
        options.page.write_text(result.page(), encoding="utf-8")
        lines.print(f"Written to {options.page}.")
    if not result.checked:
        report("no property could be checked; the reasons are above")
        raise typer.Exit(ERROR)
    raise typer.Exit(1 if result.failed(options.fail_on) else 0)


def _arguments(options: AuditOptions) -> dict[str, Any]:
    """Return the arguments of the environment, with its server and headers.

    Raises:
        BadOption: An argument is given twice, or a header is invalid.
    """
    own = {"server": options.server, "headers": headers_of(options.header) or None}
    given = {name: value for name, value in own.items() if value is not None}
    refuse_twice([*given], options.env_kwargs)
    return {**options.env_kwargs, **given}


def _check_page(path: Path, first_line: str) -> None:
    """Check that the page can be written, before the audit.

    Raises:
        BadFile: Its folder does not exist, or the file exists and is not the page of an audit.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            if file.readline() in {first_line, ""}:
                return
    except FileNotFoundError:
        if path.parent.is_dir():
            return
        raise BadFile(f"cannot write to {path}: there is no folder {path.parent}", path=path) from None
    except OSError as error:
        raise BadFile(f"cannot write to {path}: {error.strerror or error}", path=path) from error
    raise BadFile(f"{path} exists and is not the page of an audit: choose another file", path=path)


def _list_properties(*, as_json: bool) -> None:
    from agentgym_gym.testing import PROPERTIES  # noqa: PLC0415 - as above

    if as_json:
        names = ("name", "severity", "claim", "cost")
        print_json([{name: getattr(each, name) for name in names} for each in PROPERTIES])
        return
    for each in PROPERTIES:
        out.print(f"{each.name} ({each.severity})\n  {each.claim}\n  {each.cost}")
