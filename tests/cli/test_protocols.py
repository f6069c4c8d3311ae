"""`agentgym eval --protocol`: the protocols, their item files, and deviations from them."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from agentgym_gym import environments, find
from agentgym_gym.evaluate import read_run
from fake_model import asked, completion
from fake_server import FakeServer, in_turn

OWN = """\
summary = "Two environments."
samples = 2
max_turns = 9
parser = "agentgym"

[model]
temperature = 0
max_tokens = 64

[[environments]]
id = "TextCraft"
split = "test"
limit = 2

[[environments]]
id = "Maze"
tasks = "0:3"
metric = "score"

[environments.model]
max_tokens = 32
"""


def episodes(folder):
    return [json.loads(line) for line in (folder / "episodes.jsonl").read_text("utf-8").splitlines()]


def recorded(folder):
    return json.loads((folder / "summary.json").read_text("utf-8"))["run"]


@pytest.fixture
def planned(run):
    """Returns the environment, the number of episodes and the protocol of each run that is planned."""

    def plan(protocol, *words):
        result = run("eval", *words, "--protocol", protocol, "--agent", "oracle", "--dry-run")
        assert result.exit_code == 0, result.stderr
        lines = re.findall(
            r"^(\S+)-v0 by oracle: (\d+) episodes? .*; protocol (.*)\)$", result.stdout, re.MULTILINE
        )
        return [(name, int(episodes), text) for name, episodes, text in lines]

    return plan


@pytest.fixture
def digest(planned):
    """Returns the digest of a protocol that a run names."""
    return lambda protocol: re.search(r"\((\w{8})\)", planned(protocol)[0][2])[1]


@pytest.fixture
def own(tmp_path):
    """Writes a protocol and returns its path."""

    def write(text=OWN, name="own"):
        path = tmp_path / f"{name}.toml"
        path.write_text(text, "utf-8")
        return str(path)

    return write


@pytest.fixture
def refused(run):
    """Returns the error of an evaluation that cannot be played."""

    def error(*words):
        result = run("eval", *words, "--agent", "oracle")
        assert (result.exit_code, result.stdout) == (2, "")
        return result.stderr

    return error


@pytest.fixture
def write_items(tmp_path):
    """Writes an item file in AgentGym's format and returns its path."""

    def write(*ids, name="items.json"):
        path = tmp_path / name
        path.write_text(json.dumps([{"item_id": each, "conversations": None} for each in ids]), "utf-8")
        return path

    return write


def test_the_items_of_a_file_in_its_order(run, tmp_path, write_items, textcraft_url):
    ids = [450, 12, 447, 3, 500]
    items = write_items(*(f"textcraft_{task}" for task in ids))
    arguments = ("eval", "--protocol", "agentgym-eval", "--agent", "oracle", "--items", items)
    result = run(*arguments, "--server", textcraft_url, "--concurrency", 1, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    assert [each["task_id"] for each in episodes(tmp_path / "run")] == ids
    facts = recorded(tmp_path / "run")
    protocol = facts["protocol"]
    digest = hashlib.sha256(items.read_bytes()).hexdigest()
    assert protocol["items"] == {"file": "items.json", "sha256": digest}
    assert protocol["deviations"] == [{"setting": "items", "value": 5, "stated": 100}]
    assert (facts["options"]["parser"], facts["options"]["max_turns"]) == ("agentgym", 20)
    text = f"agentgym-eval ({protocol['sha256'][:8]}), with items 5 in place of 100"
    assert protocol["text"] == text
    assert f"TextCraft-v0 (local world 3) by oracle, protocol {text}\n" in result.stdout
    assert f"\nProtocol {text}; its metric is success.\n" in result.stdout


@pytest.mark.slow  # a server of Maze
def test_a_folder_with_the_published_files(run, planned, tmp_path, write_items):
    mazes = [f"lmrlgym_maze_{task}" for task in reversed(range(25))]
    (tmp_path / "eval").mkdir()
    write_items(*mazes, name="eval/lmrlgym_maze_test.json")
    write_items("maze_3", name="eval/a_category.json")
    arguments = ("--agent", "oracle", "--items", tmp_path / "eval", "--concurrency", 1)
    result = run("eval", "--protocol", "agentgym-eval", *arguments, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    assert [each["task_id"] for each in episodes(tmp_path / "run")] == list(reversed(range(25)))
    protocol = recorded(tmp_path / "run")["protocol"]
    assert (protocol["deviations"], protocol["items"]["file"]) == ([], "lmrlgym_maze_test.json")
    write_items("textcraft_1", "textcraft_2", name="eval/textcraft_test.json")
    both = planned("agentgym-eval", "--items", tmp_path / "eval")
    assert [each[:2] for each in both] == [("TextCraft", 2), ("Maze", 25)]
    (only,) = planned("agentgym-eval", "textcraft", "--items", tmp_path / "eval")
    assert only == both[0]


def test_without_its_item_file_a_protocol_is_refused(run, tmp_path):
    arguments = ("--protocol", "agentgym-eval", "--agent", "oracle", "--out", tmp_path / "run")
    result = run("eval", "WebShop", *arguments)
    assert result.exit_code == 2
    assert "webshop_test.json (WebShop), published at" in result.stderr
    assert "give --items=" in result.stderr
    assert "sqlgym_test.json (SQLGym) and 9 more" in run("eval", *arguments).stderr
    assert not (tmp_path / "run").exists()


def test_item_files_that_do_not_fit(planned, refused, tmp_path, write_items):
    weather, both = write_items("weather_1"), write_items("weather_1", "textcraft_2", name="both.json")
    (tmp_path / "empty").mkdir()
    for words, message in (
        (("--protocol", "agentgym-rl", "--items", weather), "items.json' has items of Weather, which"),
        (("TextCraft", "--protocol", "agentgym-rl", "--items", weather), "has no items of TextCraft"),
        (("--protocol", "agentgym-rl", "--items", tmp_path / "empty"), "empty' has no items of WebArena, "),
        (("--protocol", "quick", "--items", weather), "quick needs no item file; remove it"),
    ):
        assert message in refused(*words)
    assert [each[:2] for each in planned("agentgym-rl", "TextCraft", "--items", both)] == [("TextCraft", 1)]
    for name, value in {"tasks": "0:5", "split": "test", "positions": "0:5"}.items():
        error = refused("--protocol", "agentgym-eval", "--items", weather, f"--{name}", value)
        assert f"--{name}='{value}' and --items both" in error


LOCAL = {each.name for each in environments() if each.local_server is not None}
LOCAL -= {"SciWorld", "WebArena", "MiniWoB"}  # which need Java and a browser


def test_quick_is_of_all_local_servers(planned):
    runs = planned("quick", "--limit", 2)
    assert {(name, episodes) for name, episodes, _ in runs} == {(name, 2) for name in LOCAL}
    assert {text.partition(", with ")[2] for *_, text in runs} == {
        "limit 2 in place of sample 50",
        "limit 2 in place of all",
    }


@pytest.mark.exhaustive  # it starts all servers; tests/servers plays them one by one
def test_quick_on_all_local_servers(run, tmp_path):
    result = run("eval", "--protocol", "quick", "--agent", "oracle", "--limit", 2, "--out", tmp_path / "all")
    assert result.exit_code == 0, result.stderr
    runs = [read_run(folder) for folder in (tmp_path / "all").iterdir() if folder.is_dir()]
    assert {each.env_id for each in runs} == {f"agentgym/{name}-v0" for name in LOCAL}
    assert all(record.success for each in runs for record in each.records)


@pytest.mark.slow
def test_quick(run, digest, tmp_path, textcraft_url):
    result = run(
        *("eval", "TextCraft", "--protocol", "quick", "--agent", "oracle", "--server", textcraft_url),
        *("--concurrency", 1, "--out", tmp_path / "one"),
    )
    assert "\n50 of 91 tasks, drawn with seed 0, split test.\n" in result.stdout
    whole = read_run(tmp_path / "one")
    sample = find("TextCraft").sample_tasks(50, split="test")
    assert [each["task_id"] for each in episodes(whole.path)] == sample
    assert whole.protocol == f"quick ({digest('quick')})"


def test_the_settings_reach_the_model(run, tmp_path, own, textcraft_url, started, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    server = started(FakeServer(in_turn(completion("Thought:\nx\n\nAction:\ninventory"))))
    (tmp_path / "prompt.txt").write_text("Be brief.", "utf-8")  # with the protocol
    text = OWN.replace("[model]", '[model]\nprompt = "prompt.txt"')
    common = ("--protocol", own(text), "--model", "tiny", "--base-url", f"{server.url}/v1", "--max-turns", 1)
    place = ("--server", textcraft_url, "--out", tmp_path / "run")
    assert run("eval", "TextCraft", *common, *place, "--temperature", 0).exit_code == 0
    assert [(body["temperature"], body["max_tokens"]) for body in asked(server)] == [(0, 64)] * 4
    assert {body["messages"][0]["content"] for body in asked(server)} == {"Be brief."}
    assert recorded(tmp_path / "run")["protocol"]["text"].endswith(", with max turns 1 in place of 9")
    assert run("eval", "Maze", *common, "--tasks", 0, "--out", tmp_path / "maze").exit_code == 0
    assert asked(server)[-1]["max_tokens"] == 32
    result = run("eval", *common, "--temperature", 0.7, "--top-p", 0.9, "--out", tmp_path / "x", "--dry-run")
    changes = "max turns 1 in place of 9, temperature 0.7 in place of 0, top p 0.9 in place of the default"
    assert result.stdout.count(f", with {changes})") == 2


def test_a_deviation_is_part_of_the_run(run, digest, tmp_path, own, textcraft_url):
    common = ("eval", "TextCraft", "--agent", "oracle", "--server", textcraft_url)
    by_protocol, deviating, plain = (tmp_path / name for name in ("a", "b", "c"))
    assert run(*common, "--protocol", own(), "--out", by_protocol).exit_code == 0
    deviates = (*common, "--protocol", own(), "--samples", 1, "--out", deviating)
    assert run(*deviates).exit_code == 0
    same = ("--max-turns", 9, "--parser", "agentgym", "--split", "test", "--limit", 2, "--samples", 2)
    assert run(*common, *same, "--out", plain).exit_code == 0
    name = f"own ({digest(own())})"
    text = f"{name}, with samples 1 in place of 2"

    assert run(*deviates, "--resume").exit_code == 0
    refused = run(*common, "--protocol", own(), "--out", deviating, "--resume")
    assert refused.exit_code == 2
    assert "has a run with protocol.text" in refused.stderr
    assert run(*common, *same, "--out", by_protocol, "--resume").exit_code == 2
    assert run(*common, "--protocol", own(), "--out", plain, "--resume").exit_code == 2

    compared = run("compare", by_protocol, deviating, plain).stdout
    assert f"(oracle on TextCraft-v0 (local world 3), protocol {text})" in compared
    assert f"warning: the protocol differs: {name} in A, {text} in B." in compared
    assert f"warning: the protocol differs: {name} in A, none in C." in compared
    table = run("table", by_protocol, deviating, plain, "--format", "csv").stdout.splitlines()
    assert [line.count(name) for line in table] == [0, 1, 1, 0]
    rows = run("table", by_protocol, deviating, plain, "--format", "markdown").stdout.splitlines()
    first = rows[2 : rows.index("", 2)]
    assert [cell.strip() for cell in first[0].split("|")[1:5]] == [
        "environment",
        "split",
        "protocol",
        "tasks",
    ]
    assert len(first) == 5  # a row for each protocol
    assert "protocol" not in run("table", plain).stdout

    rescored = tmp_path / "rescored"
    assert run("rescore", by_protocol, "--parser", "default", "--out", rescored).exit_code == 0
    assert read_run(rescored).protocol is None
    assert recorded(rescored)["rescored"]["protocol_played"]["name"] == "own"


def test_arguments_of_the_environment_extend_the_protocol(run, planned, tmp_path, own, textcraft_url):
    protocol = own(OWN.replace("limit = 2", "limit = 2\nenv_kwargs = { max_envs_per_server = 4 }"))
    secret = {"headers": {"Authorization": "Bearer hidden"}, "server": textcraft_url}
    words = ("eval", "TextCraft", "--protocol", protocol, "--agent", "oracle", "--out", tmp_path / "run")
    assert run(*words, "--env-kwargs", json.dumps(secret)).exit_code == 0
    facts = recorded(tmp_path / "run")
    assert facts["options"]["max_envs_per_server"] == 4
    assert (facts["server"], facts["protocol"]["deviations"]) == ([textcraft_url], [])
    assert "hidden" not in json.dumps(facts)
    more = json.dumps({**secret, "on_fault": "truncate"})
    ((_, _, text),) = planned(protocol, "TextCraft", "--env-kwargs", more)
    stated = "{'max_envs_per_server': 4}"
    assert text.endswith(f", with env kwargs {stated[:-1]}, 'on_fault': 'truncate'}} in place of {stated}")


@pytest.mark.parametrize(("option", "value"), [("tasks", "784:789"), ("positions", "0:5")])
def test_a_selection_of_tasks_replaces_the_sample_of_a_protocol(planned, option, value):
    ((_, episodes, text),) = planned("quick", "Wordle", f"--{option}", value)
    assert episodes == 5
    assert text.endswith(f", with {option} {value} in place of sample 50")


def test_an_alias_names_the_environment_of_a_protocol(planned):
    assert [name for name, _, _ in planned("quick", "BIRD")] == ["SQLGym"]


def test_the_hash_is_of_what_a_protocol_states(digest, own, tmp_path):
    first = digest(own())
    assert first == digest(own(OWN.replace("Two environments.", "Other words.") + "\n# A comment\n"))
    assert first == digest(own(OWN.replace("temperature = 0", "temperature = 0.0")))
    for stated, other in (
        ("samples = 2", "samples = 3"),
        ("max_turns = 9", "max_turns = 8"),
        ("temperature = 0", "temperature = 0.1"),
        ("limit = 2", "limit = 3"),
        ('metric = "score"', ""),
        ("max_tokens = 32", "max_tokens = 33"),
    ):
        assert digest(own(OWN.replace(stated, other))) != first, stated
    prompt = OWN.replace("[model]", '[model]\nprompt = "prompt.txt"')
    hashes = []
    for text in ("Play.", "Play well."):
        (tmp_path / "prompt.txt").write_text(text, "utf-8")
        hashes.append(digest(own(prompt)))
    assert len({first, *hashes}) == 3


@pytest.mark.parametrize(
    ("stated", "other", "message"),
    [
        ("samples = 2", "samples = [", "is not TOML"),
        ("samples = 2", 'samples = "two"', "samples = 'two' in FILE should be a whole number"),
        ("samples = 2", "samples = 0", "samples = 0 in FILE should be 1 or more"),
        ("samples = 2", "sample_count = 2", "there is no key 'sample_count'; the keys are summary"),
        ("temperature = 0", "temprature = 0", "[model] of FILE: there is no key 'temprature'"),
        ("temperature = 0", 'model = "m"', "[model] of FILE: there is no key 'model'"),
        ("limit = 2", "server = 'x'", "[[environments]] of FILE: there is no key 'server'"),
        ("max_tokens = 32", "n = 1", "[environments.model] of FILE: there is no key 'n'"),
        ('id = "Maze"', 'id = "Mase"', "id = 'Mase' in [[environments]] of FILE is unknown"),
        ('id = "Maze"', "", "id in [[environments]] of FILE is missing"),
        ('id = "Maze"', 'id = "textcraft"', "are TextCraft: keep one"),
        (
            'metric = "score"',
            'metric = "f1"',
            "metric = 'f1' in [[environments]] of FILE should be one of success, score",
        ),
        (
            'metric = "score"',
            'items = "f.json"',
            "tasks = '0:3' in [[environments]] of FILE and items both select the tasks of Maze",
        ),
        (
            'metric = "score"',
            "count = 3",
            "count = 3 in [[environments]] of FILE is the number of items, and Maze",
        ),
        ('tasks = "0:3"', 'items = "f.json"', "items in FILE needs a line published = "),
        ("[model]", '[model]\nprompt = "none.txt"', "none.txt' in FILE cannot be read: No such file"),
        (OWN, "samples = 2", "one or more tables [[environments]]"),
    ],
)
def test_an_invalid_protocol(refused, own, stated, other, message):
    assert stated in OWN
    file = own(OWN.replace(stated, other))
    error = refused("--protocol", file)
    assert "own.toml" in error
    assert message.replace("FILE", str(file)) in error


def test_options_that_do_not_go_together(refused, tmp_path, own):
    for words, message in (
        ((), "give an ID, a run file, or --protocol"),
        (("--protocol", "swift"), "--protocol='swift' should be one of agentgym-eval, agentgym-rl, quick, "),
        (("--protocol", f"{tmp_path}/none.toml"), f"cannot read {tmp_path}/none.toml"),
        (("Maze", "--items", "x.json"), "--items='x.json' needs --protocol"),
        (("run.toml", "--protocol", "quick"), "--protocol cannot be combined with the run file run.toml"),
        (
            ("WebShop", "--protocol", own()),
            "ID='WebShop' is not in protocol own, which includes TextCraft, Maze",
        ),
    ):
        assert message in refused(*words)


def test_the_example_in_the_docs(planned, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text("utf-8")
    example = page.partition("### A protocol of your own")[2].partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "own.toml").write_text(example, "utf-8")
    (tmp_path / "prompt.toml").write_text('[[messages]]\nrole = "system"\ncontent = "Play."\n', "utf-8")
    assert [name for name, _, _ in planned(tmp_path / "own.toml")] == ["TextCraft", "BabyAI"]


@pytest.mark.parametrize(
    ("protocol", "environment", "item", "turns", "tokens"),
    [
        ("agentgym-rl", "WebArena", "webarena_1", 15, 512),
        ("agentgym-rl", "SearchQA", "searchqa_1", 30, 512),
        ("agentgym-rl", "TextCraft", "textcraft_1", 30, 512),
        ("agentgym-rl", "BabyAI", "babyai_1", 20, 512),
        ("agentgym-rl", "SciWorld", "sciworld_1", 30, 200),
        ("webshop-500", "WebShop", None, 100, None),
    ],
)
def test_the_published_settings(run, write_items, protocol, environment, item, turns, tokens):
    """What an option states as the protocol does is no deviation; a model would be served by nobody."""
    items = ("--items", write_items(item)) if item else ()
    model = ("--model", "m", "--base-url", "http://model.test/v1", "--server", "http://games.test")
    stated = ("--max-turns", turns, *(("--max-tokens", tokens) if tokens else ()))
    result = run("eval", environment, "--protocol", protocol, *items, *model, *stated, "--dry-run")
    line = result.stdout.splitlines()[0]
    assert line.startswith(f"{environment}-v0 by m: {1 if item else 500} episode")
    assert "; protocol" in line
    assert " in place of " not in line
