"""Record what a user sees: help screens, messages, exit codes, and the files of runs and training folders.

Record before and after a change that should not be seen, and compare the two folders::

    python tools/golden.py build/before
    python tools/golden.py build/after
    diff -r build/before build/after

It only uses the command line, so that it also records an older checkout: give ``--python`` the interpreter in
which that is installed. Times, ports, process ids, versions and paths are replaced by their names.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

GROUPS: dict[str, str] = {
    "": "envs doctor leases serve play parse eval compare table rescore validate report view export data "
    "verl",
    "data": "rl sft agenttraj reformat",
    "verl": "init check sft",
}
"""The commands by their group."""

PAPERS, VERSIONS = ("agentgym-rl", "scalinginter-rl", "gigpo"), ("0.7", "0.8", "0.9")
ALGORITHMS = ("grpo", "ppo", "rloo", "reinforce_plus_plus", "remax", "gigpo")

MISTAKES = """
nothing
envs --server
envs Nowhere
doctor Nowhere
doctor --server http://127.0.0.1:1
doctor TextCraft --server ftp://x
leases Nowhere
leases TextCraft --server http://127.0.0.1:1
serve nowhere
serve textcraft --port 99999
serve textcraft --host nowhere.invalid
play Nowhere
play TextCraft --task 99999
play TextCraft --server http://127.0.0.1:1
play TextCraft --env-kwargs {
play TextCraft --env-kwargs [1]
play TextCraft --env-kwargs {"sice":5}
play TextCraft --header Nothing
play TextCraft --action-format prose
parse TextCraft
parse TextCraft "Action: inventory"
parse TextCraft "Action: inventory" --json
parse TextCraft "inventory or not"
parse TextCraft "Action: fly" --json
parse TextCraft "Action: get 1" --action-format react
parse TextCraft "<action>inventory</action>" --action-format tags
parse Nowhere x
eval
eval Nowhere --agent oracle
eval TextCraft
eval TextCraft --agent nobody
eval TextCraft --agent no_module:Agent
eval TextCraft --agent oracle --model x
eval TextCraft --agent oracle --temperature 0
eval TextCraft --agent oracle --system-prompt none.txt
eval TextCraft --agent oracle --limit 0
eval TextCraft --agent oracle --limit x
eval TextCraft --agent oracle --limit 2 --limit 3
eval TextCraft --agent oracle --limit 2 --sample 2
eval TextCraft --agent oracle --positions 0:5 --tasks 0:5
eval TextCraft --agent oracle --positions 90000
eval TextCraft --agent oracle --tasks 0:5 --split test
eval TextCraft --agent oracle --tasks 99999
eval TextCraft --agent oracle --tasks ,
eval TextCraft --agent oracle --tasks none.json
eval TextCraft --agent oracle --split dev
eval TextCraft --agent oracle --seed -1
eval TextCraft --agent oracle --max-turns -1
eval TextCraft --agent oracle --success-at nan
eval TextCraft --agent oracle --env-timeout 5
eval TextCraft --agent oracle --timeout 0
eval TextCraft --agent oracle --timeout x
eval TextCraft --agent oracle --isolate moon
eval TextCraft --agent oracle --parser mine
eval TextCraft --agent oracle --on-unknown guess
eval TextCraft --agent oracle --action-format prose
eval TextCraft --agent oracle --server http://127.0.0.1:1
eval TextCraft --agent oracle --server nowhere
eval TextCraft --agent oracle --header x
eval TextCraft --agent oracle --env-kwargs {"max_turns":3} --max-turns 4
eval TextCraft --agent oracle --env-kwargs {"nothing":3}
eval TextCraft --agent oracle --max-cost 3
eval TextCraft --agent oracle --items x.json
eval TextCraft --agent oracle --protocol none
eval Maze --agent oracle --protocol webshop-500
eval --agent oracle --protocol agentgym-eval
eval TextCraft --agent oracle --resume
eval TextCraft --agent oracle --ray nowhere:1
eval TextCraft --agent replay:none
eval TextCraft --out out --agent oracle --unknown
eval TextCraft --model x --base-url http://127.0.0.1:1/v1 --limit 1
eval TextCraft --model x --base-url nowhere --limit 1
eval TextCraft --model x --base-url URL --model-path y
eval TextCraft --model x --base-url URL --temperature -1
eval TextCraft --model x --base-url URL --top-p 2
eval TextCraft --model x --base-url URL --sampling {"temperature":1} --temperature 0
eval TextCraft --model x --base-url URL --sampling {"messages":[]}
eval TextCraft --model x --base-url URL --sampling [
eval TextCraft --model x --base-url URL --history turns:x
eval TextCraft --model x --base-url URL --prompt none.txt
eval TextCraft --model x --base-url URL --stop ""
eval TextCraft --model x --base-url URL --max-cost 1
eval TextCraft --model x --base-url URL --max-cost -1 --prices none.toml
eval TextCraft --model x --base-url URL --requests-per-minute 0
eval TextCraft --model x --base-url URL --retry-seconds -1
eval TextCraft --model x --base-url URL --model-timeout 0
eval TextCraft --model x --base-url URL --tools native --action-format tags --limit 1
eval TextCraft --model x --base-url URL --split all --tasks all --samples 5
eval TextCraft --launch vllm
eval TextCraft --launch vllm --model-path none/*
eval TextCraft --launch moon --model-path x
eval run.toml --agent oracle
eval none.toml
eval bad.toml
eval bad2.toml
eval bad3.toml
eval run.toml --dry-run
eval TextCraft --agent oracle --limit 3 --dry-run
eval TextCraft --model x --base-url URL --protocol quick --dry-run
eval TextCraft --model x --base-url URL --protocol quick --temperature 1 --limit 2 --dry-run
compare runs/none
compare empty
table empty
rescore empty --out again
rescore runs/oracle
rescore runs/oracle --out runs/oracle
rescore runs/oracle --out again --score no:thing
validate TextCraft --gold nobody --tasks 0:2
validate Nowhere
validate TextCraft --concurrency 0
report empty --out page.html
view empty
export runs/oracle
export runs/oracle --format nothing --out x
data rl Nowhere --out out
data rl TextCraft --out out --tasks 0:5 --split dev
data rl TextCraft --out out --val 200%
data rl TextCraft Maze --out out --server http://127.0.0.1:1
data sft empty --out out
data sft runs/none --out out
data sft runs/oracle --out out --val 2
data agenttraj empty --out out.json
data reformat empty --to tags --out out
verl init --env Nowhere --out out
verl init --env TextCraft
verl init --env TextCraft=x --out out
verl init --env TextCraft --env TextCraft --out out
verl init --env TextCraft --env Maze --tasks 0:5 --out out
verl init --env TextCraft --tasks Maze=0:5 --out out
verl init --env TextCraft --val 0 --out out
verl init --env TextCraft --turns x --out out
verl init --env TextCraft --turns 0 --out out
verl init --env TextCraft --lora -1 --out out
verl init --env TextCraft --gpus 0 --out out
verl init --env TextCraft --verl 0.5 --out out
verl init --env TextCraft --algorithm dqn --out out
verl init --env TextCraft --algorithm gigpo --integration interaction --verl 0.7 --out out
verl init --env TextCraft --integration interaction --verl 0.9 --out out
verl init --env TextCraft --trainer colocate_async --verl 0.8 --out out
verl init --env TextCraft --rollout-gpus 2 --verl 0.9 --out out
verl init --env TextCraft --like gigpo --verl 0.9 --out out
verl init --env TextCraft --isolate moon --out out
verl init --env TextCraft --success-at x --out out
verl init --env TextCraft --env-kwargs {"headers":{}} --out out
verl init --env TextCraft --server http://a:b@127.0.0.1:1 --out out
verl init --env TextCraft --split test --val-split nowhere --out out
verl init --env TextCraft --system-prompt none.txt --out out
verl init --env TextCraft --thinking loud --out out
verl check empty
verl check none
verl check folder --option x=1
verl sft empty --out out
verl sft runs/oracle --out out --batch 64 --verl 0.9
verl sft runs/oracle --out out --learning-rate 0
verl sft runs/oracle --out out --eval Nowhere
"""
"""Commands with one mistake each, and some that print and write nothing."""

RUNS = {
    "oracle": "eval TextCraft --agent oracle --tasks 0:12 --concurrency 1 --out OUT",
    "random": "eval TextCraft --agent random --tasks 0:6 --seed 3 --samples 2 --max-turns 4 --concurrency 1 "
    "--out OUT",
    "thoughts": "eval Wordle --agent oracle:thoughts --limit 3 --concurrency 1 --out OUT",
    "maze": "eval Maze --agent oracle --sample 3 --seed 1 --action-format tags --concurrency 1 --out OUT",
    "model": "eval TextCraft --model tiny --base-url URL --limit 2 --max-turns 3 --concurrency 1 --out OUT",
    "tools": "eval TextCraft --model calls --tools native --base-url URL --limit 2 --max-turns 3 "
    "--concurrency 1 --out OUT",
    "quick": "eval TextCraft --model tiny --base-url URL --protocol quick --limit 2 --temperature 1 "
    "--concurrency 1 --out OUT",
    "budget": "eval TextCraft --model tiny --base-url URL --limit 3 --max-turns 3 --max-tokens-total 40 "
    "--concurrency 1 --out OUT",
    "broken": "eval TextCraft --model broken --base-url URL --limit 2 --retry-seconds 0 --concurrency 1 "
    "--out OUT",
    "refused": "eval TextCraft --model refused --base-url URL --limit 2 --concurrency 1 --out OUT",
    "file": "eval run.toml",
    "again": "eval TextCraft --agent oracle --tasks 0:12 --concurrency 1 --out runs/oracle",
    "resumed": "eval TextCraft --agent oracle --tasks 0:12 --concurrency 1 --out runs/oracle --resume",
    "other": "eval TextCraft --agent oracle --tasks 0:13 --concurrency 1 --out runs/oracle --resume",
}
"""Evaluations, and the names of their folders below ``runs``."""

READERS = """
compare runs/oracle runs/random
compare runs/oracle runs/random --json
table runs/oracle runs/random runs/maze
table runs/oracle runs/random --format latex
table runs/oracle runs/random --format markdown
rescore runs/oracle --parser agentgym --out rescored
report runs/oracle runs/random --out page.html
export runs/oracle --format inspect --out exported
validate TextCraft --tasks 0:3 --concurrency 1
validate TextCraft --tasks 0:3 --concurrency 1 --json
data sft runs/oracle --out sft
data sft runs/oracle --val 0.25 --json --out sft2
data agenttraj runs/oracle --out traj.json
data reformat runs/oracle --to tags --out tags.jsonl
data rl TextCraft --tasks 0:20 --out rl
data rl TextCraft Maze --val 4 --out rl2
verl sft runs/oracle --batch 4 --verl 0.9 --out sft-0.9
verl sft runs/oracle --batch 4 --verl 0.7 --eval TextCraft --out sft-0.7
verl check sft-0.9
envs
envs --json
"""
"""Commands that read runs, or write files without a run."""

REPLACED: list[tuple[str, str]] = [
    (r"(127\.0\.0\.1|localhost|0\.0\.0\.0):\d{4,5}", r"\1:PORT"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d(\.\d+)?(\+00:00|Z)?", "DATE"),
    (r"\b\d{8}-\d{6}\b", "DATE"),
    (r"\b\d+(\.\d+)? (ms|s|min|h)\b", r"TIME \2"),
    (r"\bprocess \d+", "process ID"),
    (r"agentgym-gym \d+(\.\d+)+\S*", "agentgym-gym VERSION"),
]
UNSTABLE = {
    *("seconds", "agent_seconds", "env_seconds", "wall_seconds", "written", "process", "git", "versions"),
    *("server_tasks", "tokens_per_second", "queued", "round_trip_ms", "retry_seconds_used"),
}
"""Keys whose values differ from run to run."""


class Printed(NamedTuple):
    """The exit status of a command, and its output."""

    status: int
    out: str
    err: str


class ChatModel(http.server.BaseHTTPRequestHandler):
    """A model with OpenAI's chat API that always makes the same reply; its name chooses which."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a chat completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body["model"] == "refused":
            self._send(400, {"error": {"message": "no such model"}})
        elif body["model"] == "broken":
            self._send(200, {"choices": []})
        else:
            message: dict[str, Any] = {"role": "assistant", "content": "Thought: hm.\n\nAction: inventory"}
            if "tools" in body:
                call = {"name": "inventory", "arguments": "{}"}
                message = {"role": "assistant", "content": None}
                message["tool_calls"] = [{"id": "c1", "type": "function", "function": call}]
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 10, "completion_tokens": 5}
            self._send(200, {"model": body["model"], "choices": [choice], "usage": usage})

    def _send(self, status: int, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Recorder:
    """Runs commands in a folder, and writes what they print.

    Args:
        python: The interpreter.
        work: The working directory of the commands.
        out: The folder to write to.
        url: The base URL of the model.
    """

    def __init__(self, python: str, work: Path, out: Path, url: str) -> None:
        self._python, self._work, self._out, self._url = python, work, out, url

    def run(self, command: str) -> Printed:
        """Run a command."""
        words = [self._url if word == "URL" else word for word in split(command)]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AGENTGYM_")},
            "COLUMNS": "110",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "OPENAI_API_KEY": "none",
        }
        process = subprocess.run(
            [self._python, "-m", "agentgym_gym", *words],
            cwd=self._work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return Printed(process.returncode, process.stdout, process.stderr)

    def note(self, name: str, command: str, printed: Printed) -> None:
        """Write a command with what it printed."""
        path = self._out / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [f"$ agentgym {command}", f"exit {printed.status}", printed.out, "--- stderr", printed.err]
        path.write_text(self.stable("\n".join(parts)) + "\n", "utf-8")

    def keep(self, name: str, folder: Path) -> None:
        """Write the files of a folder."""
        for file in sorted(folder.rglob("*")):
            if not file.is_file() or file.name.endswith(".lock"):
                continue
            target = self._out / name / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self._text(file), "utf-8")

    def _text(self, file: Path) -> str:
        if file.suffix == ".parquet":
            script = "import json, sys, pyarrow.parquet as p; t = p.read_table(sys.argv[1]); "
            script += "print(t.schema, json.dumps(t.to_pylist(), indent=1, default=str))"
            shown = [self._python, "-c", script, str(file)]
            return self.stable(subprocess.run(shown, capture_output=True, text=True, check=True).stdout)
        try:
            text = file.read_text("utf-8")
        except UnicodeDecodeError:
            return "not text\n"
        if file.suffix == ".jsonl":
            return "\n".join(self._json(line) for line in text.splitlines()) + "\n"
        return self._json(text) + "\n" if file.suffix == ".json" else self.stable(text)

    def _json(self, text: str) -> str:
        return self.stable(json.dumps(_without_unstable(json.loads(text)), indent=1, ensure_ascii=False))

    def stable(self, text: str) -> str:
        """Return a text without what differs from run to run."""
        text = text.replace(self._url, "URL").replace(str(self._work), "WORK")
        for pattern, name in REPLACED:
            text = re.sub(pattern, name, text)
        return text


def _without_unstable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "…" if key in UNSTABLE else _without_unstable(each) for key, each in value.items()}
    return [_without_unstable(each) for each in value] if isinstance(value, list) else value


def split(command: str) -> list[str]:
    """Split a command into words; braces keep their quotation marks."""
    return [
        word if word.startswith(("{", "[")) else "".join(shlex.split(word)) if word != '""' else ""
        for word in re.findall(r'"[^"]*"|[{\[]\S*|\S+', command)
    ]


def helps() -> Iterator[str]:
    """Yield the commands that print help."""
    yield "--help"
    for group, names in GROUPS.items():
        yield from (f"{group} {name} --help".strip() for name in names.split())


def trainings() -> Iterator[str]:
    """Yield the commands that write folders for training: all papers and algorithms, for each version."""
    for version in VERSIONS:
        for paper in PAPERS:
            env = "WebShop" if paper == "gigpo" else "TextCraft"
            yield f"verl init --env {env} --like {paper} --verl {version}"
        for algorithm in ALGORITHMS:
            yield f"verl init --env TextCraft --algorithm {algorithm} --preset test --verl {version}"
        yield f"verl init --env TextCraft --preset full --engine vllm --gpus 8 --seed 4 --verl {version}"
        yield f"verl init --env Maze=2 --env TextCraft=1 --turns 5,10 --verl {version}"
        adapter = "--lora 16 --engine vllm --thinking hide --model Qwen/Qwen3-4B"
        yield f"verl init --env TextCraft {adapter} --verl {version}"
        yield f"verl init --env TextCraft --tools native --engine vllm --tasks 0:40 --val 8 --verl {version}"
    yield "verl init --env TextCraft --integration interaction --preset test --verl 0.7"
    yield "verl init --env TextCraft --trainer colocate_async --verl 0.9"
    yield "verl init --env TextCraft --trainer separate_async --rollout-gpus 2 --gpus 8 --verl 0.9"


def file_name(command: str) -> str:
    """Return a file name for a command."""
    return re.sub(r"[^\w.=,-]+", "_", command.replace("--", "")).strip("_")[:120]


def prepare(work: Path, url: str) -> None:
    """Write the files that the commands read."""
    (work / "empty").mkdir()
    agent = '[[agents]]\nagent = "oracle"\n'
    environment = '[[environments]]\nid = "TextCraft"\nlimit = 2\n'
    model = f'[[agents]]\nmodel = "tiny"\nbase_url = "{url}"\nname = "named"\n'
    run = f'out = "runs/file"\nconcurrency = 1\nmax_turns = 2\n\n{environment}\n{agent}\n{model}'
    (work / "run.toml").write_text(run, "utf-8")
    (work / "bad.toml").write_text(f'out = "x"\nsice = 3\n{environment}{agent}', "utf-8")
    (work / "bad2.toml").write_text(f'out = "x"\n{environment.replace("2", "true")}{agent}', "utf-8")
    (work / "bad3.toml").write_text("out = [", "utf-8")


def record(python: str, out: Path) -> None:
    """Record everything into a new folder."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ChatModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    work = Path(tempfile.mkdtemp(prefix="golden"))
    recorder = Recorder(python, work, out, url)
    try:
        prepare(work, url)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, command in RUNS.items():
                folder = work / "runs" / name
                recorder.note(f"runs/{name}", command, recorder.run(command.replace("OUT", str(folder))))
                recorder.keep(f"runs/{name}", folder)
            commands = [command for command in READERS.splitlines() if command]
            for command in commands:
                before = set(work.iterdir())
                recorder.note(f"readers/{file_name(command)}", command, recorder.run(command))
                for new in sorted(set(work.iterdir()) - before):
                    if new.is_dir():
                        recorder.keep(f"readers/{new.name}", new)
            list(pool.map(lambda pair: _training(recorder, work, *pair), enumerate(trainings())))
            (work / "folder").symlink_to(work / "training-0")
            mistakes = [command for command in MISTAKES.splitlines() if command]
            for kind, commands in (("help", list(helps())), ("mistakes", mistakes)):
                for command, printed in zip(commands, pool.map(recorder.run, commands), strict=True):
                    recorder.note(f"{kind}/{file_name(command)}", command, printed)
    finally:
        server.shutdown()
        shutil.rmtree(work, ignore_errors=True)


def _training(recorder: Recorder, work: Path, number: int, command: str) -> None:
    folder = work / f"training-{number}"
    printed = recorder.run(f"{command} --out {folder}")
    name = f"trainings/{file_name(command)}"
    recorder.note(name, command, printed)
    recorder.keep(name, folder)
    recorder.note(f"{name}/check", "verl check", recorder.run(f"verl check {folder} --timeout 5"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="new folder for the recording")
    parser.add_argument("--python", default=sys.executable, help="interpreter with the checkout to record")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    record(arguments.python, arguments.out)
