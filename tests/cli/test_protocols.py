"""`agentgym eval --protocol`: the protocols, their item files, and deviations from them."""

import hashlib
import json
from pathlib import Path

import pytest

from agentgym_gym import environments, find
from agentgym_gym._cli.plans import AgentPlan
from agentgym_gym._cli.protocol_plan import GivenSettings, plan_under
from agentgym_gym._cli.protocols import PROTOCOLS, read_protocol
from agentgym_gym.errors import BadOption
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


def plan(name, only=None, items=None, *, environment=None, model=None, run=None):
    given = GivenSettings(environment or {}, model or {}, run or {})
    return plan_under(name, only=only, items=items, agents=[AgentPlan(agent="oracle")], given=given)


@pytest.fixture
def own(tmp_path):
    """Writes a protocol and returns its path."""

    def write(text=OWN, name="own"):
        path = tmp_path / f"{name}.toml"
        path.write_text(text, "utf-8")
        return str(path)

    return write


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
    assert f"TextCraft-v0 (local world 2) by oracle, protocol {text}\n" in result.stdout
    assert f"\nProtocol {text}; its metric is success.\n" in result.stdout


def test_a_folder_with_the_published_files(run, tmp_path, write_items, textcraft_url):
    mazes = [f"lmrlgym_maze_{task}" for task in reversed(range(25))]
    (tmp_path / "eval").mkdir()
    write_items(*mazes, name="eval/lmrlgym_maze_test.json")
    write_items("maze_3", name="eval/a_category.json")
    arguments = ("--agent", "oracle", "--items", tmp_path / "eval", "--concurrency", 1)
    result = run("eval", "--protocol", "agentgym-eval", *arguments, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    assert [each["task_id"] for each in episodes(tmp_path / "run")] == list(reversed(range(25)))
    assert recorded(tmp_path / "run")["protocol"]["deviations"] == []
    write_items("textcraft_1", "textcraft_2", name="eval/textcraft_test.json")
    played = plan("agentgym-eval", items=tmp_path / "eval").environments
    assert [each.id.rpartition("/")[2] for each in played] == ["TextCraft-v0", "Maze-v0"]
    assert played[0].protocol.items["file"] == "textcraft_test.json"
    (only,) = plan("agentgym-eval", "textcraft", tmp_path / "eval").environments
    assert only.tasks == "1,2"


def test_without_its_item_file_a_protocol_is_refused(run, tmp_path):
    arguments = ("--protocol", "agentgym-eval", "--agent", "oracle", "--out", tmp_path / "run")
    result = run("eval", "WebShop", *arguments)
    assert result.exit_code == 2
    assert result.stderr == (
        "error: protocol agentgym-eval plays the items of webshop_test.json (WebShop), published at "
        "https://huggingface.co/datasets/AgentGym/AgentEval: give --items PATH, that file or a folder of "
        "such files\n"
    )
    assert "sqlgym_test.json (SQLGym) and 9 more, published at " in run("eval", *arguments).stderr
    assert not (tmp_path / "run").exists()


def test_item_files_that_do_not_fit(tmp_path, write_items):
    weather, both = write_items("weather_1"), write_items("weather_1", "textcraft_2", name="both.json")
    with pytest.raises(
        BadOption, match=r"items\.json has items of Weather, which protocol agentgym-rl does "
    ):
        plan("agentgym-rl", items=weather)
    with pytest.raises(BadOption, match=r"items\.json has no items of TextCraft: protocol agentgym-rl plays"):
        plan("agentgym-rl", "TextCraft", weather)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadOption, match=r"empty has no items of WebArena, SearchQA, TextCraft, BabyAI, SciW"):
        plan("agentgym-rl", items=tmp_path / "empty")
    assert [each.tasks for each in plan("agentgym-rl", "TextCraft", both).environments] == ["2"]
    with pytest.raises(BadOption, match="protocol quick needs no item file: remove --items"):
        plan("quick", items=weather)
    for name, value in {"tasks": "0:5", "split": "test", "positions": "0:5"}.items():
        with pytest.raises(BadOption, match=rf"{name}='{value}' and --items both select the tasks"):
            plan("agentgym-eval", items=weather, environment={name: value})


@pytest.mark.slow
def test_quick_on_all_local_servers(run, tmp_path):
    result = run("eval", "--protocol", "quick", "--agent", "oracle", "--limit", 2, "--out", tmp_path / "all")
    assert result.exit_code == 0, result.stderr
    local = {each.id for each in environments() if each.local_server is not None}
    local -= {
        "agentgym/SciWorld-v0",
        "agentgym/WebArena-v0",
        "agentgym/MiniWoB-v0",
    }  # which need Java and a browser
    runs = [read_run(folder) for folder in (tmp_path / "all").iterdir() if folder.is_dir()]
    assert {each.env_id for each in runs} == local
    assert all(record.success for each in runs for record in each.records)
    assert {each.protocol.partition(", with ")[2] for each in runs} == {
        "limit 2 in place of sample 50",
        "limit 2 in place of all",
    }


def test_quick(run, tmp_path, textcraft_url):
    result = run(
        *("eval", "TextCraft", "--protocol", "quick", "--agent", "oracle", "--server", textcraft_url),
        *("--concurrency", 1, "--out", tmp_path / "one"),
    )
    assert "\n50 of 91 tasks, drawn with seed 0, split test.\n" in result.stdout
    whole = read_run(tmp_path / "one")
    sample = find("TextCraft").sample_tasks(50, split="test")
    assert [each["task_id"] for each in episodes(whole.path)] == sample
    assert whole.protocol == f"quick ({read_protocol('quick').sha256[:8]})"


def test_the_settings_reach_the_model(run, tmp_path, own, textcraft_url, started, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    server = started(FakeServer(in_turn(completion("Thought:\nx\n\nAction:\ninventory"))))
    common = ("--protocol", own(), "--model", "tiny", "--base-url", f"{server.url}/v1", "--max-turns", 1)
    place = ("--server", textcraft_url, "--out", tmp_path / "run")
    assert run("eval", "TextCraft", *common, *place, "--temperature", 0).exit_code == 0
    assert [(body["temperature"], body["max_tokens"]) for body in asked(server)] == [(0, 64)] * 4
    assert recorded(tmp_path / "run")["protocol"]["text"].endswith(", with max turns 1 in place of 9")
    assert run("eval", "Maze", *common, "--tasks", 0, "--out", tmp_path / "maze").exit_code == 0
    assert asked(server)[-1]["max_tokens"] == 32
    result = run("eval", *common, "--temperature", 0.7, "--top-p", 0.9, "--out", tmp_path / "x", "--dry-run")
    changes = "max turns 1 in place of 9, temperature 0.7 in place of 0, top p 0.9 in place of the default"
    assert result.stdout.count(f", with {changes})") == 2


def test_a_deviation_is_part_of_the_run(run, tmp_path, own, textcraft_url):
    common = ("eval", "TextCraft", "--agent", "oracle", "--server", textcraft_url)
    by_protocol, deviating, plain = (tmp_path / name for name in ("a", "b", "c"))
    assert run(*common, "--protocol", own(), "--out", by_protocol).exit_code == 0
    deviates = (*common, "--protocol", own(), "--samples", 1, "--out", deviating)
    assert run(*deviates).exit_code == 0
    same = ("--max-turns", 9, "--parser", "agentgym", "--split", "test", "--limit", 2, "--samples", 2)
    assert run(*common, *same, "--out", plain).exit_code == 0
    name = f"own ({read_protocol(own()).sha256[:8]})"
    text = f"{name}, with samples 1 in place of 2"

    assert run(*deviates, "--resume").exit_code == 0
    refused = run(*common, "--protocol", own(), "--out", deviating, "--resume")
    assert refused.exit_code == 2
    assert "holds a run with protocol.text" in refused.stderr
    assert run(*common, *same, "--out", by_protocol, "--resume").exit_code == 2
    assert run(*common, "--protocol", own(), "--out", plain, "--resume").exit_code == 2

    compared = run("compare", by_protocol, deviating, plain).stdout
    assert f"(oracle on TextCraft-v0 (local world 2), protocol {text})" in compared
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


def test_arguments_of_the_environment_add_to_those_of_the_protocol(own):
    text = OWN.replace("limit = 2", 'limit = 2\nenv_kwargs = { answers = "none" }')
    secret = {"headers": {"Authorization": "Bearer hidden"}, "server": "http://127.0.0.1:1"}
    (quiet,) = plan(own(text), "TextCraft", environment={"env_kwargs": secret}).environments
    assert quiet.env_kwargs == {"answers": "none", **secret}
    assert quiet.protocol.deviations == []
    (other,) = plan(own(text), "TextCraft", environment={"env_kwargs": {**secret, "size": 5}}).environments
    assert other.protocol.text.endswith(
        ", with env kwargs {'answers': 'none', 'size': 5} in place of {'answers': 'none'}"
    )
    assert "hidden" not in json.dumps(other.protocol.facts)


@pytest.mark.parametrize("option", ["tasks", "positions"])
def test_a_selection_of_tasks_replaces_the_sample_of_a_protocol(option):
    (played,) = plan("quick", "Wordle", environment={option: "0:5"}).environments
    assert (getattr(played, option), played.sample) == ("0:5", None)
    assert played.protocol.text.endswith(f", with {option} 0:5 in place of sample 50")


def test_an_alias_names_the_environment_of_a_protocol():
    assert [each.id.rpartition("/")[2] for each in plan("quick", "BIRD").environments] == ["SQLGym-v0"]


def test_the_hash_is_of_what_a_protocol_states(own, tmp_path):
    def digest(text):
        return read_protocol(own(text)).sha256

    first = digest(OWN)
    assert first == digest(OWN.replace("Two environments.", "Other words.") + "\n# A comment\n")
    assert first == digest(OWN.replace("temperature = 0", "temperature = 0.0"))
    for stated, other in (
        ("samples = 2", "samples = 3"),
        ("max_turns = 9", "max_turns = 8"),
        ("temperature = 0", "temperature = 0.1"),
        ("limit = 2", "limit = 3"),
        ('metric = "score"', ""),
        ("max_tokens = 32", "max_tokens = 33"),
    ):
        assert digest(OWN.replace(stated, other)) != first, stated
    prompt = OWN.replace("[model]", '[model]\nprompt = "prompt.txt"')
    hashes = []
    for text in ("Play.", "Play well."):
        (tmp_path / "prompt.txt").write_text(text, "utf-8")
        hashes.append(digest(prompt))
    assert len({first, *hashes}) == 3
    assert read_protocol(own(prompt)).environments[0].model_settings["prompt"] == str(tmp_path / "prompt.txt")


@pytest.mark.parametrize(
    ("stated", "other", "message"),
    [
        ("samples = 2", "samples = [", "own.toml is not TOML"),
        ("samples = 2", 'samples = "two"', "own.toml: samples should be a whole number, not 'two'"),
        ("samples = 2", "samples = 0", "own.toml: samples should be 1 or more, not 0"),
        ("samples = 2", "sample_count = 2", "own.toml: there is no key 'sample_count'; the keys are summary"),
        ("temperature = 0", "temprature = 0", r"own.toml, \[model\]: there is no key 'temprature'; the keys"),
        ("temperature = 0", 'model = "m"', r"own.toml, \[model\]: there is no key 'model'"),
        ("limit = 2", "server = 'x'", r"own.toml, \[\[environments\]\]: there is no key 'server'"),
        ("max_tokens = 32", "n = 1", r"own.toml, \[environments.model\]: there is no key 'n'"),
        ('id = "Maze"', 'id = "Mase"', r"\[\[environments\]\]: id = 'Mase': there is no environment"),
        ('id = "Maze"', "", r'own.toml, \[\[environments\]\]: each needs an id, such as id = "WebShop"'),
        ('id = "Maze"', 'id = "textcraft"', "own.toml: two of .* are TextCraft: keep one"),
        ('metric = "score"', 'metric = "f1"', "metric should be one of success, score, not 'f1'"),
        ('metric = "score"', 'items = "f.json"', "Maze has tasks and items, which both select its tasks"),
        ('metric = "score"', "count = 3", "count is the number of items, and Maze has no items"),
        ('tasks = "0:3"', 'items = "f.json"', "own.toml: items needs a line published = "),
        ("[model]", '[model]\nprompt = "none.txt"', "prompt: cannot read .*none.txt: No such file"),
        (OWN, "samples = 2", r"own.toml should have one or more tables \[\[environments\]\]"),
    ],
)
def test_an_invalid_protocol(own, stated, other, message):
    assert stated in OWN
    with pytest.raises(BadOption, match=message):
        read_protocol(own(OWN.replace(stated, other)))


def test_options_that_do_not_go_together(run, tmp_path, own):
    def error(*arguments):
        result = run("eval", *arguments, "--agent", "oracle")
        assert result.exit_code == 2
        return result.stderr

    assert "no environment: give an ID, a run file, or --protocol" in error()
    names = ", ".join(PROTOCOLS)
    assert f"--protocol='swift' is not one of {names}; for a protocol of your own" in error(
        "--protocol", "swift"
    )
    assert f"cannot read {tmp_path}/none.toml: No such file" in error("--protocol", f"{tmp_path}/none.toml")
    assert "--items x.json needs --protocol; without one, give --tasks" in error("Maze", "--items", "x.json")
    assert "--protocol cannot be combined with the run file run.toml" in error(
        "run.toml", "--protocol", "quick"
    )
    assert "protocol own does not include WebShop; it includes TextCraft, Maze" in error(
        "WebShop", "--protocol", own()
    )


def test_the_example_in_the_docs(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text("utf-8")
    example = page.partition("### A protocol of your own")[2].partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "own.toml").write_text(example, "utf-8")
    (tmp_path / "prompt.toml").write_text('[[messages]]\nrole = "system"\ncontent = "Play."\n', "utf-8")
    crafting, baby = read_protocol(str(tmp_path / "own.toml")).environments
    assert (crafting.metric, crafting.model_settings["max_tokens"]) == ("success", 256)
    assert (baby.metric, baby.model_settings["max_tokens"]) == ("score", 64)


def test_the_protocols_of_the_package():
    assert PROTOCOLS == ("agentgym-eval", "agentgym-rl", "quick", "webshop-500")
    protocols = {name: read_protocol(name) for name in PROTOCOLS}
    assert len({each.sha256 for each in protocols.values()}) == len(PROTOCOLS)
    settings = {each.id.rpartition("/")[2]: each for each in protocols["agentgym-rl"].environments}
    assert {name: each.settings["max_turns"] for name, each in settings.items()} == {
        "WebArena-v0": 15,
        "SearchQA-v0": 30,
        "TextCraft-v0": 30,
        "BabyAI-v0": 20,
        "SciWorld-v0": 30,
    }
    assert {name: each.model_settings["max_tokens"] for name, each in settings.items()} == {
        **dict.fromkeys(settings, 512),
        "SciWorld-v0": 200,
    }
    assert len(protocols["agentgym-eval"].environments) == 14
    assert all(each.items and each.count for each in protocols["agentgym-eval"].environments)
    (webshop,) = plan("webshop-500").environments
    assert (webshop.split, webshop.max_turns, find("WebShop").split("test")) == ("test", 100, range(500))
