"""``agentgym verl``: create and validate folders for training with verl."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer
from rich.text import Text

from agentgym_gym._addresses import configured
from agentgym_gym._cli.console import Command, clean, out, print_json
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import Force  # noqa: TC001 - typer reads it at run time
from agentgym_gym._cli.resolve_env import TASKS_HELP, complete_name, find_modules_here
from agentgym_gym._cli.sources import probe
from agentgym_gym._cli.verl_rows import chosen_in, print_shares, read_options, rows_of, with_own_limits
from agentgym_gym.catalogue import find
from agentgym_gym.errors import BadOption, MissingExtra, UnknownEnvironment

if TYPE_CHECKING:
    from agentgym_gym._cli.verl_rows import EnvSelection
    from verl_bridge.recipes import Finding, RlRecipe
    from verl_bridge.recipes._view import View

__all__ = ["Checkpointing", "Gpus", "InitOptions", "Version", "installed_verl", "model_of", "verl"]

verl = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Write a folder from which verl trains, and look it over.",
)

_STYLES = {"ok": "green", "warning": "yellow", "problem": "red", "not looked at": "dim"}

Version: TypeAlias = Annotated[
    Literal["0.7", "0.8", "0.9"] | None,
    typer.Option("--verl", help="Which verl; by default the installed one, else the newest."),
]
Gpus: TypeAlias = Annotated[int, typer.Option(min=1, help="GPUs of the machine.")]
Checkpointing: TypeAlias = Annotated[
    bool, typer.Option(help="Whether activations are computed again instead of kept.")
]
Algorithm: TypeAlias = Literal["grpo", "gym_grpo", "ppo", "rloo", "reinforce_plus_plus", "remax"]


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """The options of ``agentgym verl init``."""

    env: Annotated[
        list[str],
        typer.Option(
            metavar="ID[=WEIGHT]",
            help="Which environment: its id or its name; MODULE:ID for one of your own or another's. "
            "Repeat it to train in several at once; weights are their shares of the tasks, 1 by default.",
            autocompletion=complete_name,
        ),
    ]
    out_: Annotated[Path, typer.Option("--out", help="Folder to write to.")]
    version: Version = None
    algorithm: Annotated[
        Algorithm,
        typer.Option(help="How the policy is improved; gym_grpo leaves failed episodes out of groups."),
    ] = "grpo"
    engine: Annotated[Literal["sglang", "vllm"], typer.Option(help="What generates.")] = "sglang"
    preset: Annotated[
        Literal["test", "full"],
        typer.Option(help="How much: test is 1 epoch of a few tasks, full is 15 epochs of all."),
    ] = "test"
    integration: Annotated[
        Literal["agent-loop", "interaction"],
        typer.Option(help="How the environment reaches verl; interactions are in verl 0.7 alone."),
    ] = "agent-loop"
    like: Annotated[
        Literal["agentgym-rl", "scalinginter-rl", "gigpo"] | None,
        typer.Option(
            help="Whose published settings to take where nothing else is said; batches and epochs of theirs "
            "by preset full alone."
        ),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            help="Path of a model's folder, or its name on the hub; by default that of --like, else "
            "Qwen/Qwen2.5-3B-Instruct."
        ),
    ] = None
    server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ENV=]URL",
            help="A server of AgentGym's environment; repeat it for several. By default the one that is "
            "configured where the training runs. With several environments say for which, here and below.",
        ),
    ] = None
    env_kwargs: Annotated[
        list[str] | None,
        typer.Option(metavar="[ENV=]JSON", help="More arguments of the environment, as a JSON object."),
    ] = None
    turns: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N]",
            help="Turn limit of all environments; by default what suits each. Several are stages of the "
            "training.",
        ),
    ] = None
    turns_every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Training steps of a stage of --turns; by default those of --like, else 100."
        ),
    ] = None
    kl_coef: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="How strongly the policy is held near the model that it began as; 0 for no reference "
            "policy. By default that of --like, else 0.001.",
        ),
    ] = None
    gpus: Gpus = 4
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ENV=]TASKS",
            help=f"{TASKS_HELP} By default a few for preset test, all for full.",
        ),
    ] = None
    val: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ENV=]N",
            help="How many of these are for validation; by default 8 for preset test, else a tenth. Of "
            "each of several environments, at most 100 by default.",
        ),
    ] = None
    split: Annotated[
        list[str] | None,
        typer.Option(metavar="[ENV=]SPLIT", help="Which split the tasks are of; by default the first."),
    ] = None
    system_prompt: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ENV=]FILE",
            help="System prompt in place of the environment's own.",
        ),
    ] = None
    isolate: Annotated[
        list[str] | None,
        typer.Option(metavar="[ENV=]WHERE", help="Where each environment runs: loop, thread or process."),
    ] = None
    success_at: Annotated[
        list[str] | None,
        typer.Option(metavar="[ENV=]RETURN", help="Return that solves a task where no success is stated."),
    ] = None
    offload: Annotated[
        bool, typer.Option(help="Whether what is not in use waits in the machine's memory.")
    ] = True
    checkpointing: Checkpointing = True
    force: Force = False


@verl.command("init", cls=Command)
@command(InitOptions)
def _init(options: InitOptions) -> None:
    """Write a folder from which verl trains.

    Settings, the loop, the tasks, a script that starts it, and a README. No server is asked.
    """
    from verl_bridge import recipes  # noqa: PLC0415 - no other command waits for this import

    given = read_options(
        options.env,
        server=options.server,
        env_kwargs=options.env_kwargs,
        tasks=options.tasks,
        val=options.val,
        split=options.split,
        system_prompt=options.system_prompt,
        isolate=options.isolate,
        success_at=options.success_at,
    )
    try:
        recipe = with_own_limits(_recipe(options, given), given)
        parts, shares = rows_of(recipe, given)
        written = recipes.write(recipe, options.out_, shares=shares, force=options.force)
        for part, rows in parts.items():
            written.append(options.out_ / "data" / f"{part}.parquet")
            recipes.write_rows(written[-1], rows)
    except (ValueError, FileExistsError) as error:
        raise BadOption(str(error)) from error
    except OSError as error:
        raise BadOption(f"cannot write to {options.out_}: {error.strerror or error}") from error
    for path in written:
        out.print(f"wrote {path}", soft_wrap=True)
    if shares:
        print_shares(shares)
    out.print(f"Next: agentgym verl check {shlex.quote(str(options.out_))}", soft_wrap=True)


def _recipe(options: InitOptions, given: Sequence[EnvSelection]) -> RlRecipe:
    """Return the recipe for the options.

    Raises:
        MissingExtra: PyYAML is not installed, which is required to read published settings.
        ValueError: An option is invalid, or two options are incompatible.
    """
    from verl_bridge import recipes  # noqa: PLC0415 - no other command waits for this import

    try:
        return recipes.RlRecipe(
            verl=options.version or installed_verl(recipes.VERSIONS),
            algorithm=options.algorithm,
            engine=options.engine,
            preset=options.preset,
            integration=options.integration,
            model=None if options.model is None else model_of(options.model),
            gpus=options.gpus,
            turns=_turns(options.turns),
            turns_every=options.turns_every,
            kl_coef=options.kl_coef,
            like=options.like,
            offload=options.offload,
            checkpointing=options.checkpointing,
            **chosen_in(given),
        )
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        raise MissingExtra("Taking published settings", extra="cli", module="yaml") from error


@verl.command("check", cls=Command)
def _check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that init or sft wrote.")],
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds allowed for each call of an environment.")
    ] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Check a folder for what would fail, before a GPU is rented.

    Composes the settings by the installed verl, reads the tasks, and plays the first turns of each
    environment, alone and two episodes at once. Each check goes as far as what is installed allows. Exits
    with 1 if there is a problem. The module of an environment of your own may lie in the folder where this
    runs: so it does for run.sh.
    """
    if not folder.is_dir():
        raise BadOption(f"{folder} is no folder: agentgym verl init or sft writes one")
    from verl_bridge import recipes  # noqa: PLC0415 - no other command waits for this import

    find_modules_here()
    try:
        findings, view = recipes.check(folder, timeout=timeout)
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        raise MissingExtra("Looking over a folder", extra="cli", module="yaml") from error
    findings += list(_probed(view)) if view is not None else []
    bad = any(finding.status == "problem" for finding in findings)
    if as_json:
        print_json({"ok": not bad, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            _print(finding)
    if bad:
        raise typer.Exit(1)


def _print(finding: Finding) -> None:
    line = Text(f"{finding.status:<13} ", style=_STYLES[finding.status])
    line.append(f"{finding.check}: {' '.join(clean(finding.text).split())}", style="none")
    out.print(line, soft_wrap=True)
    if finding.advice:
        out.print(Text(f"{'':<14}→ {clean(finding.advice)}"), soft_wrap=True)


def _probed(view: View) -> Iterator[Finding]:
    """Identify every server of AgentGym's environments, since the other checks use only one of several."""
    from verl_bridge.recipes._finding import ok, problem  # noqa: PLC0415 - no other command waits for these
    from verl_bridge.tasks import EnvTask  # noqa: PLC0415

    given = view.arguments()
    defaults = {name: given.get(name) for name in ("env_id", "env_kwargs")}
    asked: set[tuple[str, str]] = set()
    for row in (row for rows in view.rows.values() for row in rows):
        try:
            played = EnvTask.of(row, **defaults)
            environment = find(played.env_id)
            headers = played.env_kwargs.get("headers")
            urls = configured(environment, played.env_kwargs.get("server"))
        except (ValueError, AttributeError, UnknownEnvironment):
            continue  # reported by the check of the environments
        for url in urls:
            if (environment.name, url) not in asked:
                asked.add((environment.name, url))
                found = probe(url, environment, headers)
                if found.problem:
                    advice = "start the right server there, or name it by --server or its variable"
                    yield problem("server", f"{found.url}: {found.problem}", advice)
                else:
                    yield ok("server", f"{found.url} is {environment.name}, {found.round_trip_ms} ms")


def _turns(given: str | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    try:
        return tuple(int(each) for each in given.split(","))
    except ValueError:
        raise BadOption(f"--turns {given!r:.80} is no turn limit, such as 20, or several: 10,20,30") from None


def model_of(given: str) -> str:
    """Return the absolute path if the model is an existing folder, otherwise the name unchanged."""
    folder = Path(given).expanduser()
    return str(folder.resolve()) if folder.is_dir() else given


def installed_verl(known: tuple[str, ...]) -> str:
    """Return the minor version of the installed verl, or the newest supported one if verl is not installed.

    Raises:
        BadOption: The installed version is not supported.
    """
    try:
        version = metadata.version("verl")
    except metadata.PackageNotFoundError:
        return known[-1]
    minor = ".".join(version.split(".")[:2])
    if minor not in known:
        raise BadOption(
            f"verl {version} is installed, and recipes are for verl {', '.join(known)}: choose one by --verl"
        )
    return minor
