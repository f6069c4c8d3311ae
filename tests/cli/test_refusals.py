"""A command that cannot be carried out names the option and the value, and writes nothing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import needs
from agentgym_gym.evaluate import RunFolder
from command_line import commands, options
from trajectories import ENTRY, FACTS, episode

EVAL = "eval TextCraft --out out"
ORACLE = f"{EVAL} --agent oracle --tasks 0:2"
MODEL = f"{EVAL} --model m"
NASTY = "eval nasty_envs:nasty/Nasty-v0 --agent random --tasks 0 --out out"
COUNT = "eval counting_env:bridge/Count-v0 --tasks 3 --out out"
INIT = "verl init --out out"
TWO = f"{INIT} --env Maze --env TextCraft"
RL = "data rl --out out"
SFT = "data sft --out out traj.json"
REFORMAT = "data reformat --out out.json traj.json"

REFUSED = {
    ORACLE: [
        ("--model m", "--agent 'oracle'", "has no model"),
        ("--split dev", "--split='dev'"),
        ("--action-format xml", "'--action-format': 'xml'"),
        ("--parser mine", "'--parser': 'mine'"),
        ("--on-unknown cry", "'--on-unknown': 'cry'"),
        ("--timeout 0", "--timeout=0"),
        ("--server here", "--server='here'"),
        ("--env-timeout 5", "--timeout=SECONDS"),
        ("--limit 0", "'--limit': it should be greater"),
        ("--positions 0:5", "--positions='0:5'"),
        ("--limit 2 --sample 2", "--limit=2 and --sample=2"),
        ("--system-prompt mine.txt", "--system-prompt is only for models"),
    ],
    f"{EVAL} --agent random": [
        ("--tasks 540:600", "0 to 543"),
        ("--tasks some", "should be a selection"),
        ("--tasks ''", "--tasks='' should be a selection"),
        ("--split test --tasks 0:5", "--positions='0:5'"),
        ("--positions 90:92", "--positions='90:92'", "0 to 90"),
        ("--sample 92", "--sample=92", "from 1 to 91"),
    ],
    EVAL: [
        ("", "no agent: give --agent, --model, or"),
        ("--temperature 0", "--temperature: only for models"),
        ("--model-path x", "--model-path 'x'", "--launch"),
        ("--agent nobody", "--agent='nobody'", "should be one of 'oracle'"),
        ("--agent replay:none.jsonl", "cannot read none.jsonl"),
        ("--agent nowhere:Agent", "--agent='nowhere:Agent' cannot be imported"),
        ("--agent json:__doc__", "a class or a function"),
        ("--launch vllm", "--launch needs --model-path"),
        ("--launch vllm --model-path 'nowhere/*'", "nowhere"),
    ],
    MODEL: [
        ("--sampling '[1]'", "--sampling='[1]'", "JSON object"),
        ("--history few", "history"),
        ("--prompt none.txt", "none.txt cannot be read"),
        ("--system-prompt none.txt", "cannot read", "none.txt"),
    ],
    NASTY: [
        ("--env-timeout 0", "--env-timeout=0.0", "a number of seconds"),
        ("--success-at nan", "--success-at=nan", "finite number"),
        ("--isolate jail", "'jail' is not one of"),
    ],
    COUNT: [
        ("--model tiny --max-cost 1", "--max-cost=1", "a price of tiny"),
        ("--agent random --max-cost 1", "--max-cost=1.0 is only for models"),
        ("--agent random --requests-per-minute 5", "--requests-per-minute=5.0 is only for models"),
        ("--model tiny --max-tokens-total 5 --ray auto", "cannot be enforced on a Ray cluster"),
        ("--model tiny --requests-per-minute 0", "--requests-per-minute", "a positive number"),
    ],
    "serve": [
        ("Nope", "'Nope'"),
        ("textcraft --port 99999", "99999"),
        ("textcraft --host 192.0.2.1", "192.0.2.1"),
    ],
    "leases": [
        ("localhost:1", "'localhost:1'"),
        ("http://a.test,http://b.test", "several servers"),
        ("http://a.test --json --clear", "--json", "--clear"),
    ],
    "validate Maze": [
        ("--resume", "--resume", "give --out"),
        ("--gold random", "--gold random has no solutions"),
    ],
    RL: [
        ("nowhere.json", "'nowhere.json' is not a file or folder"),
        ("nowhere:agentgym/Maze-v0", "cannot import 'nowhere'"),
        (":maze", "cannot import ''"),
        ("json:Nope", "'json:Nope' is not registered"),
        ("bad_items.json", "bad_items.json", "Maze has no task 25"),
        ("maze --tasks 20:22", "0 to 19, in the split train"),
        ("maze.json --tasks 0:1", "--tasks='0:1' is only for environments"),
        ("maze --val-split nowhere", "--val-split='nowhere'"),
        ("maze --val lots", "val='lots'"),
        ("maze --val 25", "leaves none for training"),
        ("maze --num-samples 26", "from 1 to 20"),
        ("maze --parser agentgym --action-format tags", "parser='agentgym' reads Maze in"),
        ("maze --server Mase=http://a:1", "--server='Mase=http://a:1'"),
        ("maze --server wordle=http://a:1", "--server is given for Wordle"),
        ("maze --server http://a:1 --server http://b:1", "--server is given twice for Maze"),
        ("maze wordle --server http://a:1", "names none of Maze, Wordle"),
        ("maze --system-prompt none.txt", "cannot read none.txt"),
        ("maze --system-prompt empty.txt", "empty.txt is empty"),
        ("maze --system-prompt latin.txt", "cannot read latin.txt"),
        ("maze wordle --system-prompt empty.txt", "names none of Maze, Wordle"),
        ("maze --system-prompt-from-traj maze.json", "has no trajectory of Maze"),
        ("maze --system-prompt-from-traj maze.json --system-prompt x", "give one of them"),
        ("maze --server http://me:secret@127.0.0.1:9", "--server contains a password"),
        ("alfworld --split dev", "--split='dev'"),
        ("maze --max-turns -1", "--max-turns"),
    ],
    SFT: [
        ("nowhere", "nowhere does not exist"),
        ("bad.json", "bad.json: entry 0: message 0"),
        ("--successful", "1 success unknown"),
        ("--val 1", "leaves none for training"),
        ("--val 0 --min-score nan", "--min-score", "finite number"),
        ("--val 0 --best 0", "--best"),
    ],
    REFORMAT: [
        ("--to tags", "traj.json: entry 0", "the format of its replies"),
        ("--to tags --from xml", "'--from': 'xml'"),
        ("--to agentgym", "'--to': 'agentgym'"),
    ],
    "data reformat --out out.json other": [("--to tags --from react", "CartPole-v1", "not in the catalogue")],
    INIT: [
        ("--env Nope", "there is no environment 'Nope'"),
        ("--env own_nowhere:own/Env-v0", "cannot import 'own_nowhere'", "the folder where it lies"),
        ("--env own_nowhere:own/Env-v0 --server http://a:1", "cannot import 'own_nowhere'"),
        ("--env CartPole-v1 --server http://a:1", "--env-kwargs"),
        ("--env Maze --tools native --integration interaction --verl 0.7", "this library's agent loop"),
        ("--env Maze --like gigpo", "no settings for agentgym/Maze-v0", "agentgym/ALFWorld-v0"),
        ("--env WebShop --like agentgym-rl", "agentgym/BabyAI-v0"),
        ("--env WebShop --like somebody", "'somebody'", "'gigpo'"),
        ("--env WebShop --algorithm remax --verl 0.7", "verl 0.7 cannot do ReMax"),
        ("--env WebShop --algorithm gigpo --verl 0.7 --integration interaction", "the turns of each episode"),
        ("--env WebShop --turns ten", "'ten' should be whole numbers"),
        ("--env WebShop --turns 10,0", "turns=0 should be at least 1"),
        ("--env WebShop --turns 10,20 --integration interaction --verl 0.7", "give one"),
        ("--env CartPole-v1 --tasks 0:20", "CartPole-v1 is not a text environment", "rollout.TextAdapter"),
        (
            "--env nasty_envs:nasty/Nasty-v0 --tasks 0:20 --isolate loop",
            "nasty/Nasty-v0 has no coroutine functions",
        ),
        ("--env nasty_envs:nasty/Nasty-v0 --tasks 0:20 --isolate jail", "--isolate='jail'"),
        ("--env nasty_envs:nasty/Nasty-v0 --tasks 0:20 --success-at high", "'high' should be a number"),
        ("--env WebArena --like agentgym-rl --gpus 32", "32 does not divide the 16"),
        ("--env WebShop --kl-coef -1", "'--kl-coef'"),
        ("--env WebShop --kl-coef inf", "--kl-coef=inf"),
        ("--env WebShop --kl-coef nan", "'--kl-coef'"),
        ("--env Maze --env TextCraft=0", "the weight '0'", "a positive number"),
        ("--env Maze=often", "the weight 'often'", "a positive number"),
        ("--env Maze --env agentgym/Maze-v0=2", "--env is given twice for Maze"),
        ("--env Maze --tasks 0:20 --tasks Maze=0:5", "--tasks is given twice for Maze"),
        ("--env Maze --val-split nowhere", "--val-split='nowhere'"),
        ("--env Maze --val some", "--val='some'", "a number of tasks"),
        ("--env Maze --env TextCraft=1000 --preset test", "the weight 1 of agentgym/Maze-v0"),
    ],
    f"{INIT} --env TextCraft": [
        ("--integration interaction --verl 0.9", "has no interactions"),
        ("--gpus 3", "gpus=3 does not divide the 256"),
        ("--server http://me:secret@10.0.0.1:1", "AGENTGYM_TEXTCRAFT_URL"),
        ("--server nonsense", "--server='nonsense'"),
        ("--env-kwargs '[1]'", "--env-kwargs", "JSON object"),
        ("--model a --model b", "--model is given 2 times"),
        ("--engine hf", "'--engine': 'hf'"),
    ],
    TWO: [
        ("--val 3", "names none of Maze, TextCraft"),
        ("--server http://a:1", "names none of Maze, TextCraft"),
        ("--tasks BabyAI=0:5", "BabyAI, which has no tasks here"),
        ("--val Maze=20", "20 of 20 tasks of agentgym/Maze-v0", "leave none for training"),
        ("""--env-kwargs 'Maze={"headers": {}}'""", "AGENTGYM_MAZE_HEADERS"),
    ],
    "verl check .": [
        (override, "is not an override; write KEY=VALUE")
        for override in ("n_gpus_per_node", "=3", "'trainer n=3'")
    ],
}
"""Options that are refused, each with parts of its error, by the command."""

ROWS = [(command, *row) for command, rows in REFUSED.items() for row in rows]

FILES = {
    "bad.json": [{**ENTRY, "conversations": ["hello"]}],
    "bad_items.json": [{"item_id": "maze_1"}, {"item_id": "maze_25"}],
    "maze.json": [{"item_id": "maze_1", "conversations": None}, {"item_id": "maze_2", "conversations": None}],
    "traj.json": [ENTRY],
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the files that the commands name; no command writes to it."""
    place = tmp_path_factory.mktemp("files")
    for name, value in FILES.items():
        (place / name).write_text(json.dumps(value))
    (place / "empty.txt").write_text(" \n")
    (place / "latin.txt").write_bytes(b"\xe9t\xe9")
    (place / "mine.txt").write_text("Play.")
    (place / "empty").mkdir()
    with RunFolder(place / "other", {**FACTS, "env_id": "CartPole-v1"}) as folder:
        folder.add(episode(0, env_id="CartPole-v1"))
    return place


@pytest.fixture
def files(written, monkeypatch, textcraft_url):
    """The files that the commands name, in the working directory."""
    monkeypatch.chdir(written)
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", textcraft_url)
    return written


def refused(run, *words):
    """Run a command that is refused, and return its error in one line."""
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "secret" not in result.stderr
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before
    return " ".join(result.stderr.split())


@pytest.mark.parametrize(("command", "options", "parts"), [(c, o, parts) for c, o, *parts in ROWS])
def test_impossible_requests_are_named_and_nothing_is_written(run, files, command, options, parts):
    if command.startswith("data"):
        pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))
    error = refused(run, *shlex.split(command), *shlex.split(options))
    for part in parts:
        assert part in error


AGENT = '[[agents]]\nagent = "oracle"\n'
TEXTCRAFT = '[[environments]]\nid = "TextCraft"\n'


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('out = "x"', "one or more tables [[environments]]"),
        (f'out = "x"\n{TEXTCRAFT}[[agents]]\nagnt = "oracle"', "no key 'agnt'"),
        (f"out = 3\n{TEXTCRAFT}{AGENT}", "out = 3 in run.toml should be text"),
        (f"{TEXTCRAFT}{AGENT}", "has no output folder"),
        (f'out = "x"\n[[environments]]\n{AGENT}', "needs an id"),
        (f'out = "x"\n{TEXTCRAFT}[[agents]]\nname = "x"', "one of agent, model and launch"),
        ("out = ", "is not TOML"),
        (f'out = "x"\n{TEXTCRAFT}{AGENT}{AGENT}', "two agents are called 'oracle'"),
    ],
)
def test_a_run_file_that_cannot_be_played_is_named(run, files, text, part):
    (files / "run.toml").write_text(text)
    assert part in refused(run, "eval", "run.toml")


TAKES_RUNS = [words for words in commands() if any(each.names == ("RUN",) for each in options(*words))]
NEEDED = {"rescore": ("--out", "new"), "export": ("--to", "inspect", "--out", "new")}


@pytest.mark.parametrize("words", TAKES_RUNS, ids=" ".join)
@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_a_folder_without_a_run_is_named(run, files, words, folder):
    error = refused(run, *words, folder, *NEEDED.get(words[0], ()))
    assert folder in error
    assert "no run" in error
