"""``agentgym verl``: create and validate folders for training with verl."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer
from rich.text import Text

from agentgym_gym._addresses import configured
from agentgym_gym._cli.completion import complete_env, complete_split
from agentgym_gym._cli.console import Command, clean, out, print_json
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.help_layouts import VERL_INIT
from agentgym_gym._cli.options import Force  # noqa: TC001 - typer reads it at run time
from agentgym_gym._cli.resolve_env import TASKS_HELP, find_modules_here
from agentgym_gym._cli.sources import probe
from agentgym_gym._cli.verl_rows import env_arguments, print_shares, read_options, rows_of, with_turn_limits
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
    help="Write and check folders for training with verl.",
)

_STYLES = {"ok": "green", "warning": "yellow", "problem": "red", "skipped": "dim"}

Version: TypeAlias = Annotated[
    Literal["0.7", "0.8", "0.9"] | None,
    typer.Option("--verl", help="version of verl", show_default="installed, else newest"),
]
Gpus: TypeAlias = Annotated[int, typer.Option(min=1, help="number of GPUs")]
Checkpointing: TypeAlias = Annotated[bool, typer.Option(help="recompute activations to save memory")]
Algorithm: TypeAlias = Literal["grpo", "ppo", "rloo", "reinforce_plus_plus", "remax", "gigpo"]


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """The options of ``agentgym verl init``."""

    env: Annotated[
        list[str],
        typer.Option(
            metavar="ID[=WEIGHT]",
            help="environment (id, name or MODULE:ID) and its weight; repeatable",
            autocompletion=complete_env,
        ),
    ]
    out_: Annotated[Path, typer.Option("--out", help="output folder")]
    version: Version = None
    algorithm: Annotated[
        Algorithm | None,
        typer.Option(help="training algorithm", show_default="that of --like, else grpo"),
    ] = None
    engine: Annotated[Literal["sglang", "vllm"], typer.Option(help="inference engine")] = "sglang"
    preset: Annotated[
        Literal["train", "test", "full"],
        typer.Option(help="amount of training; test is short, full 15 epochs"),
    ] = "train"
    integration: Annotated[
        Literal["agent-loop", "interaction"],
        typer.Option(help="integration with verl; interaction is for verl 0.7 only"),
    ] = "agent-loop"
    like: Annotated[
        Literal["agentgym-rl", "scalinginter-rl", "gigpo"] | None,
        typer.Option(help="paper whose published settings are the defaults"),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            help="model folder, or name on the hub",
            show_default="that of --like, else Qwen/Qwen2.5-3B-Instruct",
        ),
    ] = None
    server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ENV=]URL",
            help="server URL; repeatable",
            show_default="configured at training",
        ),
    ] = None
    env_kwargs: Annotated[
        list[str] | None,
        typer.Option(metavar="[ENV=]JSON", help="more arguments of the environment, as a JSON object"),
    ] = None
    turns: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N]",
            help="turn limit of all environments; several are training stages",
            show_default="per environment",
        ),
    ] = None
    turns_every: Annotated[
        int | None,
        typer.Option(
            min=1, help="training steps per stage of --turns", show_default="those of --like, else 100"
        ),
    ] = None
    kl_coef: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="coefficient of the KL penalty; 0 for no reference policy",
            show_default="that of --like, else 0.001",
        ),
    ] = None
    trainer: Annotated[
        Literal["sync", "colocate_async", "separate_async"],
        typer.Option(help="verl 0.9's trainer; the asynchronous ones overlap generation and training"),
    ] = "sync"
    gpus: Gpus = 4
    rollout_gpus: Annotated[
        int | None,
        typer.Option(min=1, help="GPUs that only generate, for separate_async", show_default="half"),
    ] = None
    tasks: Annotated[
        list[str] | None,
        typer.Option(metavar="[ENV=]TASKS", help=TASKS_HELP, show_default="few for test, else all"),
    ] = None
    val: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ENV=]N",
            help="number of tasks for validation",
            show_default="8 for test, else a tenth",
        ),
    ] = None
    split: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ENV=]SPLIT",
            help="split of the training tasks; all for every task",
            show_default="train",
            autocompletion=complete_split,
        ),
    ] = None
    val_split: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ENV=]SPLIT",
            help="split of the validation tasks",
            show_default="dev, else training tasks that are kept out",
            autocompletion=complete_split,
        ),
    ] = None
    system_prompt: Annotated[
        list[str] | None,
        typer.Option(metavar="[ENV=]FILE", help="file with a system prompt to replace the environment's"),
    ] = None
    isolate: Annotated[
        list[str] | None,
        typer.Option(metavar="[ENV=]WHERE", help="where each environment runs: loop, thread or process"),
    ] = None
    success_at: Annotated[
        list[str] | None,
        typer.Option(metavar="[ENV=]RETURN", help="return that counts as success if none is reported"),
    ] = None
    offload: Annotated[
        bool | None,
        typer.Option(
            help="offload unused weights and states to CPU memory",
            show_default="by the memory estimate for train, else on",
        ),
    ] = None
    checkpointing: Checkpointing = True
    gpu_memory: Annotated[
        float, typer.Option(metavar="GB", min=1, help="memory of a GPU, for the memory estimate")
    ] = 80.0
    thinking: Annotated[
        Literal["off", "hide", "keep"] | None,
        typer.Option(
            help="the model's reasoning: off, hidden from the environment, or kept",
            show_default="by model name",
        ),
    ] = None
    lora: Annotated[
        int, typer.Option(metavar="RANK", min=0, help="train adapters of this rank; 0 for all weights")
    ] = 0
    rollout_correction: Annotated[
        bool, typer.Option("--rollout-correction", help="correct for the engine's own probabilities")
    ] = False
    seed: Annotated[
        int | None, typer.Option(min=0, help="seed of the order of tasks", show_default="verl's")
    ] = None
    tools: Annotated[
        Literal["none", "native"],
        typer.Option(help="whether the model writes actions or calls the environment's tools"),
    ] = "none"
    force: Force = False


@verl.command("init", cls=Command, epilog=VERL_INIT.epilog)
@command(InitOptions, VERL_INIT.groups)
def _init(options: InitOptions) -> None:
    """Write a folder for reinforcement learning with verl.

    The folder contains the settings, the agent loop, the tasks, a script that starts the training, and a
    README. No server is contacted.

    Preset train makes 300 steps of 32 tasks, 8 episodes each, and sizes memory settings by an estimate, which
    is printed. Preset test is 1 epoch of a few tasks; full is 15 epochs of all tasks, with few updates. The
    batches and epochs of --like apply with presets train and full.

    To train in several environments at once, repeat --env; weights are their shares of the tasks, 1 by
    default. Options marked [ENV=] then need the name of an environment, as in --tasks Maze=0:50, and can be
    repeated. By default, at most 100 tasks of each environment are for validation.

    Tasks are ids and ranges: 3, 1,2,5, 0:50 (without 50) or 10:, or all, or a file of AgentGym's item ids. If
    an environment has no numbered tasks, they are seeds, and all means 1000. Ids must be of the split train
    unless --split names another; a file may name tasks of any split. With --like, a file of item ids counts
    as the tasks of the paper.
    """
    # No other command needs these imports.
    from verl_bridge import recipes  # noqa: PLC0415
    from verl_bridge.recipes._amount import amount_of, describe  # noqa: PLC0415

    selections = read_options(
        options.env,
        server=options.server,
        env_kwargs=options.env_kwargs,
        tasks=options.tasks,
        val=options.val,
        split=options.split,
        system_prompt=options.system_prompt,
        isolate=options.isolate,
        success_at=options.success_at,
        val_split=options.val_split,
        native_tools=options.tools == "native",
    )
    try:
        recipe = with_turn_limits(_recipe(options, selections), selections)
        tasks = rows_of(recipe, selections)
        recipe = dataclasses.replace(recipe, val_tasks=len(tasks.parts["val"]) // len(selections))
        written = recipes.write(
            recipe, options.out_, shares=tasks.shares, notes=tasks.notes, force=options.force
        )
        for part, rows in tasks.parts.items():
            written.append(options.out_ / "data" / f"{part}.parquet")
            recipes.write_rows(written[-1], rows)
    except (ValueError, FileExistsError) as error:
        raise BadOption(str(error)) from error
    except OSError as error:
        raise BadOption(f"cannot write to {options.out_}: {error.strerror or error}") from error
    for path in written:
        out.print(f"wrote {path}")
    if tasks.shares:
        print_shares(tasks.shares)
    amount = amount_of(recipe, len(tasks.parts["train"]), len(tasks.parts["val"]))
    for line in (*tasks.notes, *describe(recipe, amount)):
        out.print(Text(line))
    out.print(f"Next: agentgym verl check {shlex.quote(str(options.out_))}")


def _recipe(options: InitOptions, selections: Sequence[EnvSelection]) -> RlRecipe:
    """Return the recipe for the options.

    Raises:
        MissingExtra: PyYAML is not installed, which is required to read published settings.
        ValueError: An option is invalid, or two options are incompatible.
    """
    from verl_bridge import recipes  # noqa: PLC0415 - no other command needs this import

    try:
        return recipes.RlRecipe(
            verl=options.version or installed_verl(recipes.VERSIONS),
            algorithm=options.algorithm or "",
            engine=options.engine,
            preset=options.preset,
            integration=options.integration,
            model=None if options.model is None else model_of(options.model),
            trainer=options.trainer,
            gpus=options.gpus,
            rollout_gpus=options.rollout_gpus,
            turns=_turns(options.turns),
            turns_every=options.turns_every,
            kl_coef=options.kl_coef,
            like=options.like,
            offload=options.offload,
            checkpointing=options.checkpointing,
            gpu_memory=options.gpu_memory,
            thinking=options.thinking,
            lora=options.lora,
            rollout_correction=options.rollout_correction,
            seed=options.seed,
            tool_calls=options.tools == "native",
            **env_arguments(selections),
        )
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        raise MissingExtra("Reading published settings", extra="cli", module="yaml") from error


@verl.command("check", cls=Command)
def _check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder written by init or sft")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="settings to override, as for run.sh"),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="timeout of each environment call, in seconds")
    ] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of lines")] = False,
) -> None:
    """Validate a training folder before you rent a GPU.

    It composes the settings with the installed verl, reads the tasks, and plays the first turns of each
    environment, first one episode and then two at once, and then two whole episodes. Checks whose packages
    are not installed are skipped. Exits with 1 if there is a problem. As for run.sh, the module of an
    environment of your own may be in the working directory.
    """
    if not folder.is_dir():
        raise BadOption(f"{folder} is not a folder: write one with agentgym verl init or sft")
    # No other command needs these imports.
    from agentgym_gym._cli.verl_players import find_task, players_of  # noqa: PLC0415
    from verl_bridge import recipes  # noqa: PLC0415 - no other command needs this import
    from verl_bridge.recipes._overrides import check_override  # noqa: PLC0415

    try:
        for override in overrides or ():
            check_override(override)
    except ValueError as error:
        raise BadOption(str(error)) from error
    find_modules_here()
    try:
        findings, view = recipes.check(
            folder, overrides=overrides or (), timeout=timeout, players=players_of, find_task=find_task
        )
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        raise MissingExtra("Checking a folder", extra="cli", module="yaml") from error
    findings += list(_probe_servers(view)) if view is not None else []
    bad = any(finding.status == "problem" for finding in findings)
    if as_json:
        print_json({"ok": not bad, "findings": [dataclasses.asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            _print(finding)
    if bad:
        raise typer.Exit(1)


def _print(finding: Finding) -> None:
    line = Text(f"{finding.status:<8} ", style=_STYLES[finding.status])
    line.append(f"{finding.check}: {' '.join(clean(finding.text).split())}", style="none")
    out.print(line)
    if finding.advice:
        out.print(Text(f"{'':<9}→ {clean(finding.advice)}"))


def _probe_servers(view: View) -> Iterator[Finding]:
    """Identify every server of AgentGym's environments, since the other checks use only one of several."""
    from verl_bridge.recipes._finding import ok, problem  # noqa: PLC0415 - no other command needs these
    from verl_bridge.tasks import EnvTask  # noqa: PLC0415

    arguments = view.arguments()
    defaults = {name: arguments.get(name) for name in ("env_id", "env_kwargs")}
    probed: set[tuple[str, str]] = set()
    for row in (row for rows in view.rows.values() for row in rows):
        try:
            task = EnvTask.of(row, **defaults)
            environment = find(task.env_id)
            headers = task.env_kwargs.get("headers")
            urls = configured(environment, task.env_kwargs.get("server"))
        except (ValueError, AttributeError, UnknownEnvironment):
            continue  # reported by the check of the environments
        for url in urls:
            if (environment.name, url) not in probed:
                probed.add((environment.name, url))
                result = probe(url, environment, headers)
                if result.problem:
                    advice = "start the right server there, or name it by --server or its variable"
                    yield problem("server", f"{result.url}: {result.problem}", advice)
                else:
                    yield ok("server", f"{result.url} is {environment.name}, {result.round_trip_ms} ms")


def _turns(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise BadOption(f"--turns {text!r:.80} should be turn limits, such as 20 or 10,20,30") from None


def model_of(name: str) -> str:
    """Return the absolute path if the model is an existing folder, otherwise the name unchanged."""
    folder = Path(name).expanduser()
    return str(folder.resolve()) if folder.is_dir() else name


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
        raise BadOption(f"no recipe for the installed verl {version}: give --verl, one of {', '.join(known)}")
    return minor
