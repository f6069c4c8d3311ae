"""Write the generated parts of the documentation; tests/watchers/test_docs.py compares them.

Run it with ``make docs``.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import defaultdict
from dataclasses import MISSING, fields
from importlib import import_module
from inspect import getdoc, signature
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from typer import Context
from typer.main import get_command
from typer.testing import CliRunner

import agentgym_gym
from agentgym_gym import FORMATS, Environment
from agentgym_gym._cli import app
from agentgym_gym._cli.console import Command
from agentgym_gym.errors import ActionError, ManyActions, NoAction
from agentgym_gym.evaluate import ChatOptions, Run, RunLimits
from agentgym_gym.evaluate._chat.causes import CAUSES, RULES
from agentgym_gym.options import Option, members_of, options_of
from agentgym_gym.testing import PROPERTIES
from agentgym_servers.alfworld._measures import comparison
from verl_bridge._run.loop_arguments import LoopOptions
from verl_bridge.recipes import RlRecipe, SftRecipe
from verl_bridge.recipes._numbers import RlNumbers, SftNumbers, labels
from verl_bridge.recipes._rl_rules import RL_RULES
from verl_bridge.recipes._sft_rules import SFT_RULES

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PACKAGES = ("agentgym_gym", "agentgym_servers", "verl_bridge")

OPTIONS: dict[str, tuple[type, str]] = {
    "Run": (Run, "An agent in an environment, with its tasks: an argument of `agentgym_gym.evaluate.play`."),
    "ChatOptions": (ChatOptions, "A model, as the agent of a run."),
    "RunLimits": (RunLimits, "The limits that all runs of a call of `play` share."),
    "RlRecipe": (RlRecipe, "A [training folder](training/recipes.md), as `agentgym verl init` writes it."),
    "SftRecipe": (
        SftRecipe,
        "A folder for [fine-tuning](training/sft.md), as `agentgym verl sft` writes it.",
    ),
    "GymAgentLoop": (LoopOptions, "Keys of `agent_loop.yaml`, for [the agent loop](training/bridge.md)."),
}
"""The sections of docs/options.md: a dataclass with a sentence."""

WAYS: dict[str, type[ActionError] | None] = {
    "Thought:\nI think.\n\nAction:\n{action}": None,
    "Thought: I think.\nAction: {action}": None,
    "Action: {action}": None,
    "Action:{action}": None,
    "  Action:   {action}   ": None,
    "Thought:\nx\n\nAction:\n\n{action}": None,
    "thought: x\naction: {action}": None,
    "思考：好\n\nAction:\n{action}": None,
    "<think>x</think>\nAction:\n{action}": None,
    "Thought:\nmy Action: is good\n\nAction:\n{action}": None,
    "Thought:\nx\n\nAction:\n{action}\nObservation: done": None,
    "Thought:\nx\n\nAction:\n{action}</s>": None,
    "Thought:\nx\n\nAction:\n{action}<|im_end|>": None,
    'Thought:\nx\n\nAction:\n"{action}"': None,
    "Thought:\nx\n\nAction:\n`{action}`": None,
    "Thought:\nx\n\nAction:\n```\n{action}\n```": None,
    "Thought:\nx\n\nAction:\n**{action}**": None,
    "Thought:\nx\n\nAction:\n{ACTION}": None,
    "Thought:\nx\r\n\r\nAction:\r\n{action}\r\n": None,
    "Thought:\nx\n\nAction:\n{action}\n\nAction:\n{action}": None,
    "Thought:\nx\n\nAction:\n{action}\n{next}": None,
    "Action: {action}\nAction: {next}": ManyActions,
    "{action}": None,
    "": NoAction,
    "Thought:\nonly a thought": NoAction,
    "[[ {action} ]]": None,
    "> think: x\n> {action}": NoAction,
    "<action>{action}</action>": None,
}
"""Replies in the format ``react``, each with its kind of error, or None if it is parsed."""

_PLAIN = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}

MARKED = frozenset({"> think: x\n> {action}"})
"""Replies that are parsed if the environment's actions have marks of their own."""

TRIED = (
    ("Maze --format react", "Thought: I could go left.\n**Action:** move up. That is closer.\n"),
    ("SciWorld --format react", "Action: jump up and down\n"),
    ("TextCraft --format tags", "I take the stick now.\n"),
)
"""Examples of docs/replies.md: the arguments of `agentgym parse`, and the reply."""


def command_pages() -> dict[Path, str]:
    """Return docs/cli.md, the overview, and a page for each command below docs/cli/."""
    commands = _commands(get_command(app), "agentgym")
    names = [name.removeprefix("agentgym ") for name in commands if name != "agentgym"]
    rows = [
        f"| [`agentgym {name}`](cli/{_file(name)}) | {_prose(_summary(commands[f'agentgym {name}']))} |"
        for name in names
    ]
    toctree = "\n".join(
        ["```{toctree}", ":hidden:", "", *(f"cli/{_file(name)[:-3]}" for name in names), "```"]
    )
    table = "| command | what it does |\n|---|---|\n" + "\n".join(rows)
    introduction = "Each command has a page with its arguments and options; `--help` prints the same."
    options = _parameters("agentgym", commands["agentgym"])
    overview = f"# The command line\n\n{introduction}\n\n{table}\n\n{options}\n\n{toctree}\n"
    pages = {
        DOCS / "cli" / _file(name): _command_page(f"agentgym {name}", commands[f"agentgym {name}"])
        for name in names
    }
    return {DOCS / "cli.md": overview, **pages}


def formats_section() -> str:
    """Return the table of formats in docs/environment.md."""
    grammar = agentgym_gym.find("TextCraft").grammar
    return "\n".join(f"`{name}`:\n\n````text\n{f.example(grammar)}\n````\n" for name, f in FORMATS.items())


def parse_section() -> str:
    """Return the examples of `agentgym parse` in docs/replies.md."""
    parts = []
    for arguments, reply in TRIED:
        result = CliRunner(env=_PLAIN).invoke(app, ["parse", *arguments.split()], input=reply)
        shown = reply.rstrip("\n").replace("\n", "\\n")
        output = (result.stdout + result.stderr).rstrip()
        parts.append(f"```console\n$ printf '{shown}' | agentgym parse {arguments}\n{output}\n```\n")
    return "\n".join(parts)


def houses_section() -> str:
    """Return the table of the generated houses of ALFWorld beside ALFWorld's games."""
    rows = [f"| {name} | {made:.2f} | {real:.2f} |" for name, (made, real) in comparison().items()]
    return "\n".join(["| measure | generated | ALFWorld's games |", "|---|---|---|", *rows])


def causes_section() -> str:
    """Return the tables of docs/model_errors.md: the causes of errors, and the rules that find them."""
    causes = [f"| {cause} | {_cell(effect)} |" for cause, effect in CAUSES.items()]
    rules = [f"| {rule.cause} | {_cell(rule.replies)} | {_cell(rule.effect)} |" for rule in RULES]
    return "\n".join(
        [
            *("| cause | what happens |", "|---|---|", *causes, ""),
            *("| cause | reply of the server | result |", "|---|---|---|", *rules),
        ]
    )


def properties_section() -> str:
    """Return the table of docs/audit.md: the properties that an audit checks."""
    rows = (
        f"| `{each.name}` | {each.severity} | {_cell(each.claim)} | {_cell(each.cost)} |"
        for each in PROPERTIES
    )
    return "\n".join(["| property | severity | claim | cost of a defect |", "|---|---|---|---|", *rows])


def model_servers_section() -> str:
    """Return the tables of model servers in docs/model_errors.md, which the tests play."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    try:
        groups = import_module("model_servers").BEHAVIOURS
    finally:
        sys.path.pop(0)
    seconds = json.loads((DOCS / "records" / "model_servers.json").read_text("utf-8"))
    parts = []
    for subject, behaviours in groups.items():
        rows = ["| the server | report | cause | scored | printed | seconds |", "|---|---|---|---|---|---:|"]
        for each in behaviours:
            project, _, number = each.report.partition("#")
            link = f"[{each.report}](https://github.com/{project}/issues/{number})" if number else ""
            ended = "the run ends" if each.cause == "settings" else f"{each.scored} of 4"
            if each.parse_errors:
                ended += f", {each.parse_errors} parse errors"
            printed = "" if each.printed == "parse errors" else _code(each.printed) if each.printed else ""
            measured = "" if seconds.get(each.name) is None else f"{seconds[each.name]:.1f}"
            cells = (_cell(each.name), link, each.cause, ended, printed, measured)
            rows.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join([f"### {subject}", "", *rows]))
    return "\n\n".join(parts)


def environments_page() -> str:
    """Return docs/environments/README.md: all environments in a table."""
    rows = [
        f"| [{e.name}]({e.name.lower()}.md) | {e.summary} | {e.task_count:,} "
        f"| {e.max_turns} | {_score(e)} | {_server(e)} |"
        for e in agentgym_gym.environments()
    ]
    head = "| environment | task | tasks | turn limit | score | server |\n|---|---|---|---|---|---|\n"
    return f"# The environments\n\n{head}" + "\n".join(rows) + "\n"


def environment_page(environment: Environment) -> str:
    """Return the page of one environment."""
    introduction = "The prompt begins with these rules; the actions and the format follow:"
    rules = f"{introduction}\n\n{_fenced(environment.rules)}"
    parts = [
        f"# {environment.name}\n\n{environment.summary}",
        _facts(environment),
        f"## Actions\n\n{_actions(environment)}",
        f"## System prompt\n\n{rules}",
        f"## Formats\n\n{_formats(environment)}",
        *([f"## Parsing of replies\n\n{_ways(environment)}"] if environment.of_agentgym else []),
        f"## Start of an episode\n\n{_transcript(environment)}",
        f"## Notes on its server\n\n{environment.quirks}",
        *([f"## This project's server\n\n{_local(environment)}"] if environment.local_quirks else []),
        *([f"## Tasks that cannot be won\n\n{_unwinnable(environment)}"] if environment.unwinnable else []),
        *([f"## AgentGym's server\n\n{_launch(environment)}"] if environment.of_agentgym else []),
    ]
    return "\n\n".join(parts) + "\n"


def modules_page() -> str:
    """Return docs/modules.md: the modules of each package with the first lines of their docstrings."""
    introduction = (
        "Each module with the first line of its docstring. Modules and packages whose name begins with an "
        "underscore are private: they may change without notice. [Architecture](architecture.md) shows how "
        "they work together."
    )
    parts = [f"# Modules\n\n{introduction}"]
    for package in PACKAGES:
        folders = defaultdict[Path, list[Path]](list)
        for path in sorted((ROOT / package).rglob("*.py")):
            folders[path.parent].append(path)
        for folder, paths in folders.items():
            name = folder.relative_to(ROOT).as_posix()
            parts.append(f"{'##' if name == package else '###'} {name}")
            parts += [_summary_of(path) for path in paths if path.name == "__init__.py"]
            rows = [
                f"| `{path.stem}` | {_summary_of(path)} |" for path in paths if path.name != "__init__.py"
            ]
            parts += ["\n".join(["| module | contents |", "|---|---|", *rows])] if rows else []
    return "\n\n".join(parts) + "\n"


def _summary_of(path: Path) -> str:
    """Return the first line of a module's docstring."""
    line = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
    return _cell(line)


def options_page() -> str:
    """Return docs/options.md: the fields of each dataclass of options."""
    introduction = (
        "The options of a run, a model, a recipe and the agent loop. They are arguments [in "
        "Python](howto/evaluate_python.md), keys in [run files](evaluation.md) and in `agent_loop.yaml`, and "
        "options such as `--max-turns` on [the command line](cli.md)."
    )
    parts = [f"# Options\n\n{introduction}"]
    for title, (kind, summary) in OPTIONS.items():
        parts.append(f"## {title}\n\n{summary}\n\n{options_table(kind)}")
    return "\n\n".join(parts) + "\n"


def options_table(kind: type) -> str:
    """Return a table of a dataclass's fields; its docstring describes the fields without an `Option`."""
    options, hints = options_of(kind), get_type_hints(kind)
    described = dict(re.findall(r"^ {4}(\w+): ((?:.|\n {8})+)", getdoc(kind) or "", re.MULTILINE))
    rows = ["| option | meaning | values | default |", "|---|---|---|---|"]
    for field in fields(kind):
        option = options.get(field.name) or Option(_phrase(described[field.name]))
        kinds = [each for each in members_of(hints[field.name]) if get_origin(each) is Literal]
        choices = [f"`{word}`" for each in kinds for word in get_args(each)]
        default = option.default or ("" if field.default in {MISSING, None, ()} else str(field.default))
        cells = (f"`{field.name}`", _cell(_fields(option.help)), ", ".join(choices), _cell(_fields(default)))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def number_rules_page() -> str:
    """Return docs/training/check_numbers.md: the rules of `agentgym verl check` about numbers."""
    introduction = (
        "verl accepts these settings, and the training then fails or is spoiled. `agentgym verl check` finds "
        "them, also where verl is not installed. Each finding has the values, the reason and the advice. "
        "Settings that verl itself rejects at the start have no rule; [mistakes that `check` "
        "finds](check.md) has the other checks. "
        "Below each table are the full names of the settings that its rules read."
    )
    parts = [f"# Rules about numbers\n\n{introduction}"]
    of_trainers = ((RL_RULES, labels(RlNumbers)), (SFT_RULES, labels(SftNumbers)))
    for subject, rules, labelled in (
        (subject, rules, labelled) for every, labelled in of_trainers for subject, rules in every.items()
    ):
        cells = ((rule.status, *map(_settings, (rule.condition, rule.reason, rule.advice))) for rule in rules)
        rows = [f"| {' | '.join(row)} |" for row in cells]
        table = "\n".join(["| kind | settings | effect | advice |", "|---|---|---|---|", *rows])
        read = sorted({setting for rule in rules for setting in rule.settings(labelled)})
        parts.append(f"## {subject}\n\n{table}\n\nThe rules read {', '.join(read)}.")
    return "\n\n".join(parts) + "\n"


def _settings(text: str) -> str:
    """Return a text whose names of settings become code."""
    return re.sub(r"[a-z]\w*(?:[._]\w+)+(?:: [\w-]+)?", lambda name: f"`{name[0]}`", text)


def _phrase(sentence: str) -> str:
    """Return a sentence of a docstring in the form of a help text."""
    words = " ".join(sentence.split()).removesuffix(".")
    return words if words[1:2].isupper() else words[0].lower() + words[1:]


def _fields(text: str) -> str:
    """Return a help text that names fields instead of options such as ``--model-path``."""
    return re.sub(r"--([a-z-]+)", lambda name: f"`{name[1].replace('-', '_')}`", text)


def _cell(text: str) -> str:
    """Return a line of a docstring or of a help text as a cell of a table."""
    parts = re.split("(`[^`]*`)", re.sub(r":\w+:(?=`)", "", text).replace("``", "`"))
    shown = "".join(part if part.startswith("`") else _prose(part) for part in parts)
    return shown.replace("|", "\\|")


def _server(environment: Environment) -> str:
    whose = ["ours"] * bool(environment.local_server) + ["AgentGym's"] * environment.of_agentgym
    return ", or ".join(whose)


def _score(environment: Environment) -> str:
    return "{:g} to {:g}".format(*environment.score_range)


def _facts(environment: Environment) -> str:
    splits, parts = (
        ", ".join(f"`{n}` {min(t)}..{max(t)} ({len(t):,})" for n, t in named.items())
        for named in (environment.splits, environment.parts)
    )
    unknown = {"forward": "sent in the agent's words", "refuse": "rejected with advice, and not sent"}
    rows = {
        "id": ", ".join(f"`{each}`" for each in environment.ids),
        "tasks": splits,
        **({"selected like splits": parts} if parts else {}),
        "turn limit": str(environment.max_turns),
        "score": _score(environment),
        "an action outside the grammar is": unknown[environment.on_unknown],
        "variable of its server": f"`{environment.variable}`",
        **{f"time limit `{name}`": f"{s:g} s by default" for name, s in environment.wire.time_limits.items()},
        **{f"option `{name}`": doc for name, doc in environment.options.items()},
    }
    return "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows.items())


def _actions(environment: Environment) -> str:
    rows = []
    for example in environment.grammar.examples:
        hints = get_type_hints(type(example), include_extras=True)
        annotations = {name: hints[name].__metadata__ for name in signature(type(example)).parameters}
        arguments = [
            f"`{name}`: {_prose(f'{kind.describe()}; {doc}')}" for name, (kind, doc) in annotations.items()
        ]
        cells = [
            _code(type(example).usage()),
            type(example).doc(),
            "<br>".join(arguments),
            _code(str(example)),
        ]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "| action | what it does | arguments | example |\n|---|---|---|---|\n" + "\n".join(rows)


def _formats(environment: Environment) -> str:
    return "\n\n".join(
        f"`{name}`:\n\n{_fenced(written.example(environment.grammar))}" for name, written in FORMATS.items()
    )


def _ways(environment: Environment) -> str:
    """Return a table: a reply, the result of AgentGym's client, and the one here."""
    grammar, react = environment.grammar, FORMATS["react"]
    one, other = (grammar.style.write(str(each)) for each in (grammar.examples[0], grammar.examples[-1]))
    rows = []
    for way in WAYS:
        reply = way.format(action=one, ACTION=one.upper(), next=other)
        try:
            read = _code(str(react.parse(reply, grammar)))
        except ActionError as error:
            read = error.kind
        try:
            sent = _code(environment.agentgym_readers["react"](reply))
        except ActionError as error:
            sent = f"answers {_code(error.answer.text if error.answer else error.kind)}"
        rows.append("| " + " | ".join(c.replace("|", "\\|") for c in (_code(reply), sent, read)) + " |")
    columns = ("reply, in the format `react`", "AgentGym's client sends or answers", "parsed here as")
    head = f"| {' | '.join(columns)} |\n|---|---|---|\n"
    return head + "\n".join(rows)


def _transcript(environment: Environment) -> str:
    first, *turns = environment.transcript
    parts = [f"[environment]\n{first}"]
    for action, observation in zip(turns[::2], turns[1::2], strict=True):
        parts += [f"[agent]\n{action}", f"[environment]\n{observation}"]
    return _fenced("\n\n".join(part.rstrip() for part in parts))


def _local(environment: Environment) -> str:
    differences = "Differences from AgentGym's" if environment.of_agentgym else "Notes"
    return (
        "It is used unless you name another. To start it by itself, run\n"
        f"`agentgym serve {environment.name.lower()}`. {differences}:\n\n"
        f"{environment.local_quirks}"
    )


def _unwinnable(environment: Environment) -> str:
    tasks: dict[str, list[int]] = {}
    for task, why in sorted(environment.unwinnable.items()):
        tasks.setdefault(why, []).append(task)
    rows = [f"| {why} | {', '.join(map(str, those))} |" for why, those in tasks.items()]
    summary = (
        f"{len(environment.unwinnable)} tasks of this project's server, with seed 0 where it has seeds, "
        f"cannot be won within {environment.max_turns} turns, or have no known solution. Only the split "
        "`all` contains them. `agentgym validate` plays them, and counts them separately."
    )
    return f"{summary}\n\n| why | tasks |\n|---|---|\n" + "\n".join(rows)


def _launch(environment: Environment) -> str:
    return (
        "In a checkout of [AgentGym](https://github.com/WooooDyy/AgentGym):\n\n"
        f"```bash\n{environment.launch.strip()}\n```\n\nThen, here:\n\n"
        f"```bash\nexport {environment.variable}=http://127.0.0.1:36001\n"
        f"agentgym doctor ${environment.variable}\nagentgym play {environment.name} --task "
        f"{environment.split(None)[0]}\n```"
    )


def _fenced(text: str) -> str:
    return f"````text\n{text}\n````"


def _code(text: str) -> str:
    """Return any text as inline code, with its line ends shown."""
    if not text:
        return "(nothing)"
    shown = text.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
    marks = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{marks}{pad}{shown}{pad}{marks}"


def with_section(page: str, name: str, text: str) -> str:
    """Return a page with the text between its marks replaced."""
    pattern = re.compile(rf"(<!-- generated by docs/generate.py: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda match: f"{match[1]}\n{text}\n{match[2]}", page)


def pages() -> dict[Path, str]:
    """Return every page that is generated in whole or in part, with its current content."""
    names = ("environment", "replies", "servers", "model_errors", "audit")
    environment, replies, servers, model_errors, audit = (DOCS / f"{name}.md" for name in names)
    errors = with_section(model_errors.read_text("utf-8"), "causes", causes_section())
    own = {
        DOCS / "environments" / f"{e.name.lower()}.md": environment_page(e)
        for e in agentgym_gym.environments()
    }
    return {
        **own,
        DOCS / "environments" / "README.md": environments_page(),
        DOCS / "modules.md": modules_page(),
        DOCS / "options.md": options_page(),
        DOCS / "training" / "check_numbers.md": number_rules_page(),
        **command_pages(),
        environment: with_section(environment.read_text("utf-8"), "formats", formats_section()),
        replies: with_section(replies.read_text("utf-8"), "parse", parse_section()),
        model_errors: with_section(errors, "model servers", model_servers_section()),
        audit: with_section(audit.read_text("utf-8"), "properties", properties_section()),
        servers: with_section(servers.read_text("utf-8"), "houses", houses_section()),
    }


def _commands(command: Any, name: str) -> dict[str, Any]:
    """Return a command and the commands below it, by their full names."""
    commands = {name: command}
    for short, below in getattr(command, "commands", {}).items():
        commands |= _commands(below, f"{name} {short}")
    return commands


def _context(name: str, command: Any) -> Context:
    return Context(command, info_name=name, parent=Context(command, **get_command(app).context_settings))


def _file(name: str) -> str:
    return f"{name.replace(' ', '/')}.md"


def _summary(command: Any) -> str:
    return " ".join(command.help.partition("\n\n")[0].split())


def _command_page(name: str, command: Any) -> str:
    usage = " ".join([name, *command.collect_usage_pieces(_context(name, command))])
    parts = [f"# {name}", f"```text\n{usage}\n```"]
    parts += [_prose(" ".join(paragraph.split())) for paragraph in command.help.split("\n\n")]
    if below := getattr(command, "commands", {}):
        folder = name.rpartition(" ")[2]
        rows = [
            f"| [`{name} {each}`]({folder}/{each}.md) | {_prose(_summary(c))} |" for each, c in below.items()
        ]
        parts.append("| command | what it does |\n|---|---|\n" + "\n".join(rows))
    if command.epilog:
        examples = [line.strip() for line in command.epilog.splitlines() if line.startswith("  ")]
        parts.append("\n".join(["```sh", *examples, "```"]))
    parts.append(_parameters(name, command))
    return "\n\n".join(parts) + "\n"


def _parameters(name: str, command: Any) -> str:
    """Return the definitions of a command's arguments and options, which Sphinx indexes."""
    context = _context(name, command)
    grouped = command.grouped(context) if isinstance(command, Command) else _ungrouped(command, context)
    parts = [f"```{{program}} {name}\n```"]
    for title, parameters in grouped.items():
        parts += [f"## {title}", *(_definition(each, context) for each in parameters)]
    return "\n\n".join(parts)


def _ungrouped(command: Any, context: Context) -> dict[str, list[Any]]:
    return {"Options": command.get_params(context)}


def _definition(parameter: Any, context: Context) -> str:
    record = parameter.get_help_record(context)
    signature, (text, _, facts) = record[0], record[1].partition("  [")
    if parameter.param_type_name == "argument":
        signature = re.sub(r"^\[(.*?)\]", r"\1", signature)
    signature = signature.replace(" / ", ", ")
    text = _prose(text) + (f" ({facts.removesuffix(']')})" if facts else "")
    return f"```{{option}} {signature}\n\n{text}\n```"


def _prose(text: str) -> str:
    """Return a help text as Markdown: words that Markdown or typography would change become code."""
    changed = re.compile(r"(?<!\S)([('\"]*)((?:--|\S*[<>*_\[|])[^\s`]*?)([,.;:)'\"]*)(?!\S)")
    return changed.sub(r"\1`\2`\3", text)


if __name__ == "__main__":
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
