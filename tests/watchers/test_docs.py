"""The documents are true."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from inspect import signature
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import command_line
import needs
from agentgym_gym import AgentGymEnv, Limits
from agentgym_gym.evaluate import ChatPrompt, History, Price, price_of, read_prices
from agentgym_gym.testing import KINDS, SEEN_AS
from doc_blocks import blocks_of, run_in_shell, run_python
from fake_model import completion
from fake_server import FakeServer
from ports import reserved_ports

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def generated():
    """The pages as docs/generate.py would write them now, by path."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


def test_two_commands_set_all_up():
    assert blocks_of(README, "console")[-1] == "make demo\nmake test\n"
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(r"^demo:", makefile, re.MULTILINE)
    assert re.search(r"^test:", makefile, re.MULTILINE)


@pytest.mark.slow
def test_the_python_blocks_run(tmp_path):
    code = "\n".join(blocks_of(README, "python"))
    run = run_python(code, tmp_path)
    assert run.returncode == 0, run.stderr
    assert "Goal: craft " in run.stdout
    assert "Inventory: You are not carrying anything. 0.0 1" in run.stdout
    assert "get 1 oak logs None None\n" in run.stdout
    assert "'agentgym/WebShop-v0'" in run.stdout
    assert run.stdout.rstrip().endswith("search[waterproof hiking boots]")


def test_the_page_on_many_at_once_names_all_that_is_logged():
    sources = [path.read_text("utf-8") for path in (ROOT / "agentgym_gym").rglob("*.py")]
    logged = r'(?:\blog\(\s*logging\.\w+,\s*|self\._log\()"([^"]+)"'
    events = {event for source in sources for event in re.findall(logged, source)}
    page = (ROOT / "docs" / "many.md").read_text("utf-8")
    assert len(events) >= 9
    assert set(re.findall(r"^\| `([^`]+)` \| [A-Z]+ \|", page, re.MULTILINE)) == events


@pytest.mark.slow
def test_the_page_on_many_at_once_runs(tmp_path, textcraft_url):
    page = (ROOT / "docs" / "many.md").read_text("utf-8")
    code = "\n".join(blocks_of(page, "python"))
    run = run_python(code, tmp_path, AGENTGYM_TEXTCRAFT_URL=textcraft_url)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == (
        "Inventory: You are not carrying anything. 0.0 [1 1 1 1 1 1 1 1]\n2 [0 0]\n[1, 1, 1, 1, 1, 1, 1, 1]\n"
    )
    limits = dict(re.findall(r"^\| `(\w+)` \| .* \| (\d+) \|$", page, re.MULTILINE))
    assert limits == {name: f"{value:g}" for name, value in asdict(Limits()).items()}


@pytest.mark.slow
def test_the_page_on_environments_runs(tmp_path, textcraft_url):
    page = (ROOT / "docs" / "environment.md").read_text("utf-8")
    code = "\n".join(blocks_of(page, "python"))
    run = run_python(code, tmp_path, AGENTGYM_TEXTCRAFT_URL=textcraft_url)
    assert (run.returncode, run.stderr) == (0, "")
    assert "\nagentgym/TextCraft-v0\n" in run.stdout
    assert "\nUnknownAction " in run.stdout


def test_the_page_on_environments_has_every_option():
    page = (ROOT / "docs" / "environment.md").read_text("utf-8")
    table = page.partition("| option | values | default |")[2].partition("\n\n")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert listed == set(signature(AgentGymEnv).parameters) - {"environment", "own_options"}


ROLLOUTS = (ROOT / "docs" / "rollouts.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2))
def test_the_page_on_rollouts_runs(number, tmp_path, textcraft_url):
    code = blocks_of(ROLLOUTS, "python")[number]
    assert sum(1 for line in code.splitlines() if line) <= 60
    run = run_python(code, tmp_path, AGENTGYM_TEXTCRAFT_URL=textcraft_url)
    assert (run.returncode, run.stderr) == (0, "")
    if number == 0:
        (file,) = (tmp_path / "runs/mine").glob("episodes-*.jsonl")
        assert len(file.read_text("utf-8").splitlines()) == 16
    else:
        expected = re.findall(r"^prints\n\n```text\n(.*?)^```", ROLLOUTS, re.DOTALL | re.MULTILINE)
        assert run.stdout == expected[0]


ADAPTERS = (ROOT / "docs" / "adapters.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_the_page_on_adapters_runs(number, tmp_path):
    if number == 3:
        pytest.importorskip("minigrid", reason=needs.reason("minigrid"))
    code = blocks_of(ADAPTERS, "python")[number]
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    expected = re.findall(r"^prints\n\n```text\n(.*?)^```", ADAPTERS, re.DOTALL | re.MULTILINE)
    assert run.stdout == expected[number]


@pytest.mark.slow
def test_the_command_on_the_page_on_adapters_runs(tmp_path):
    (code,) = blocks_of(ADAPTERS, "console")
    run_in_shell(code, tmp_path)
    summary = json.loads((tmp_path / "lake/summary.json").read_text("utf-8"))
    assert (summary["scored"], summary["faults"], summary["parse_errors"]) == (20, {}, {})


@pytest.mark.slow
def test_the_page_on_models_runs(tmp_path, textcraft_url):
    page = (ROOT / "docs" / "models.md").read_text("utf-8")
    code, function = blocks_of(page, "python")
    with FakeServer(lambda request: completion("Action: inventory", usage={"completion_tokens": 3})) as model:
        run = run_python(
            code.replace("http://127.0.0.1:8000", model.url), tmp_path, AGENTGYM_TEXTCRAFT_URL=textcraft_url
        )
        requests = [request.json for request in model.requests]
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "3 tokens: inventory\n" * 5 + "0.0\n"
    assert requests[-1]["temperature"] == 0.7
    for file, (example,) in {
        "prompt.txt": re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE),
        "prompt.toml": blocks_of(page, "toml"),
    }.items():
        (tmp_path / file).write_text(example, "utf-8")
        assert "OWN" in ChatPrompt.read(tmp_path / file).messages("OWN")[0]["content"]
    for policy in re.findall(r'^\| `"([a-z]\S+)"` \|', page, re.MULTILINE):
        History.parse(policy)
    names = {}
    exec(function, names)  # noqa: S102 - an example of the page
    assert names["summarize"]([{"role": "user", "content": "o1"}]) == "Earlier turns:\nuser: o1"


@pytest.mark.slow
def test_the_page_on_testing_runs(tmp_path):
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    code = "\n".join(blocks_of(page, "python"))
    run = run_python(code, tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "True True 0\nServerTimeout\nscripted 2 None\nfunction 1 None\n"
    executed = {"lost", "truncate", "garble", "delay"}
    table = re.findall(r"^\| `(\w+)` \| .* \| (yes|no) \| `(\w+)`", page, re.MULTILINE)
    assert table == [(kind, "yes" if kind in executed else "no", SEEN_AS[kind]) for kind in KINDS]


@pytest.mark.slow
def test_the_dialect_and_the_format_on_the_page_on_replies_run(tmp_path):
    page = (ROOT / "docs" / "replies.md").read_text("utf-8")
    dialect, own_format = blocks_of(page, "python")
    run = run_python(dialect, tmp_path)
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "get 1 stick\n")
    run = run_python(own_format, tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert "exactly one action between `[[` and `]]`" in run.stdout
    assert run.stdout.endswith("\n[[move right]]\nmove up\n")


@pytest.mark.slow
def test_the_commands_run(tmp_path):
    """All between the first, which installs, and the last, for contributors: pasted in order."""
    install, *pasted, _ = blocks_of(README, "console")
    assert install.splitlines()[-1] == "pip install '.[all]'"
    run_in_shell("".join(pasted), tmp_path, COLUMNS="120")
    runs = tmp_path / "runs"
    summary = json.loads((runs / "oracle" / "summary.json").read_text("utf-8"))
    assert (summary["scored"], summary["success_rate"]) == (20, 1.0)
    for made in ("random/episodes.jsonl", "report.html", "craft/run.sh"):
        assert (runs / made).exists()


def test_the_readme_is_short():
    assert len(README.split()) < 900


@pytest.mark.slow
def test_the_commands_on_evaluation_run(tmp_path):
    page = (ROOT / "docs" / "evaluation.md").read_text("utf-8")
    (code,) = re.findall(r"^```console\n(cd examples.*?)^```", page, re.DOTALL | re.MULTILINE)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with reserved_ports(1) as (port,):
        printed = run_in_shell(code.replace("36001", str(port)), tmp_path)
    assert "serves      own/Guessing-v0" in printed
    summary = json.loads((tmp_path / "runs/guessing/summary.json").read_text("utf-8"))
    assert (summary["scored"], summary["faults"]) == (10, {})


@pytest.mark.slow
def test_the_pages_on_rescoring_and_validation_run(tmp_path):
    pages = [(ROOT / "docs" / name).read_text("utf-8") for name in ("rescoring.md", "validate.md")]
    (rules,) = blocks_of(pages[0], "python")
    (tmp_path / "my_rules.py").write_text(rules, "utf-8")
    printed = run_in_shell("".join("".join(blocks_of(page, "console")) for page in pages), tmp_path)
    scored = json.loads((tmp_path / "runs/random-short/summary.json").read_text("utf-8"))
    assert scored["run"]["rescored"]["score"] == "my_rules:short"
    read = json.loads((tmp_path / "runs/random-agentgym/summary.json").read_text("utf-8"))
    assert read["run"]["rescored"]["replies"] > 0
    assert printed.count("Doing nothing wins no task.") == 2
    assert "answer 2 wins 2.9% of the tasks, above 1%: known, some questions ask for" in printed
    assert '"passed": true' in printed
    assert json.loads(blocks_of(pages[1], "json")[0])["task_id"] == 3


@pytest.mark.slow
def test_generated_pages_are_up_to_date(generated):
    for path, text in generated.items():
        assert path.read_text("utf-8") == text, "run `make docs`"


@pytest.mark.slow
def test_no_word_of_a_generated_page_vanishes_as_html(generated):
    """`<count>` outside of code is a tag for a browser, which shows nothing."""
    parse = MarkdownIt("commonmark").enable("table").parse
    inline = [
        (path.name, child.content)
        for path, text in generated.items()
        for token in parse(text)
        for child in token.children or ()
        if child.type == "html_inline"
    ]
    assert {(name, tag) for name, tag in inline if tag != "<br>"} == set()


@pytest.mark.slow
def test_every_environment_has_a_page_and_every_page_an_environment(generated):
    written = set(ROOT.glob("docs/environments/*.md"))
    assert written == {path for path in generated if path.parent.name == "environments"}


@pytest.mark.slow
def test_every_command_has_a_page_and_every_page_a_command(generated):
    pages = {path for path in generated if (ROOT / "docs" / "cli") in path.parents}
    assert len(pages) > 20
    assert set(ROOT.glob("docs/cli/**/*.md")) == pages


def test_links_between_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_path_of_a_step_is_as_traced(textcraft_url, monkeypatch):
    spec = importlib.util.spec_from_file_location("figures", ROOT / "docs" / "figures.py")
    figures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figures)
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", textcraft_url)
    step = figures.traced_step()
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("The modules of a step")[2]
    assert "with six generators" in page
    block = page.partition("```\n")[2].partition("```")[0]
    listed = re.findall(r"([\w.]+)(?:,|$)", block, re.MULTILINE)
    assert ([f"agentgym_gym.{name}" for name in listed], 6) == (list(step.modules), step.generators)


def test_the_licence_is_the_one_named():
    assert "Apache License" in (ROOT / "LICENSE").read_text("utf-8")


@pytest.mark.slow
def test_the_page_on_evaluation_runs(capsys):
    page = (ROOT / "docs" / "evaluation.md").read_text("utf-8")
    for code in blocks_of(page, "python"):
        exec(compile(code, "docs/evaluation.md", "exec"), {"__name__": "page"})  # noqa: S102 - our own page
    looks, coin = capsys.readouterr().out.splitlines()
    assert looks == "40 0.0 2.0 {'gave_up': 40}"
    rate, interval = coin.split(maxsplit=1)
    assert float(rate) == 0.0
    assert interval.startswith("(0.0, 0.16")


@pytest.mark.slow
def test_the_run_file_on_the_page_on_evaluation_can_be_played(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "evaluation.md").read_text("utf-8")
    (text,) = re.findall(r"^```toml\n(out = .*?)^```", page, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(text)
    (tmp_path / "ckpts/one").mkdir(parents=True)
    for file in ("config.json", "model.safetensors"):
        (tmp_path / "ckpts/one" / file).write_text("{}")
    if sys.version_info < (3, 11):
        pytest.importorskip("tomli", reason=needs.reason("tomli"))
    planned = command_line.run("eval", "run.toml", "--dry-run")
    assert planned.exit_code == 0, planned.stderr
    assert re.findall(r"^(\S+)-v0 by (\S+): (\d+) episodes", planned.stdout, re.MULTILINE) == [
        ("TextCraft", "oracle", "100"),
        ("Maze", "oracle", "10"),
        ("TextCraft", "one", "100"),
        ("Maze", "one", "10"),
    ]
    example = command_line.run("eval", ROOT / "examples" / "oracle_and_random.toml", "--dry-run")
    assert "\n150 episodes in total." in example.stdout


def run_commands_below(heading, folder):
    """Run the first block of commands below a heading of docs/evaluation.md, and return what was printed."""
    page = (ROOT / "docs" / "evaluation.md").read_text("utf-8").partition(f"## {heading}\n")[2]
    code = blocks_of(page, "console")[0]
    return run_in_shell(code, folder, COLUMNS="180")


@pytest.mark.slow
def test_the_commands_that_compare_runs_run(tmp_path):
    printed = run_commands_below("Compare two runs", tmp_path)
    for name, folder, agent in (("A", "chance", "random"), ("B", "known", "oracle")):
        assert re.search(
            rf"^{name}  runs/{folder} \({agent} on TextCraft-v0 \(local world \d+\)\)$", printed, re.MULTILINE
        )
    assert "two-sided, exact.\n" in printed
    assert "\nBroken (solved in A and not in B): no task.\n" in printed
    assert "warning" not in printed


@pytest.mark.slow
def test_the_commands_that_print_tables_run(tmp_path):
    printed = run_commands_below("Tables of several runs", tmp_path)
    assert re.search(r"^environment +split +tasks +oracle +random *$", printed, re.MULTILINE)
    assert "| environment | split | tasks | oracle | random |" in printed
    assert (tmp_path / "runs/table/results.tex").read_text("utf-8").count("\\toprule") == 2


def test_the_prices_on_the_page_on_evaluation_can_be_read(tmp_path):
    page = (ROOT / "docs" / "evaluation.md").read_text("utf-8").partition("### Prices")[2]
    (tmp_path / "prices.toml").write_text(blocks_of(page, "toml")[0])
    if sys.version_info < (3, 11):
        pytest.importorskip("tomli", reason=needs.reason("tomli"))
    price = price_of("Qwen/Qwen3-8B", read_prices(tmp_path / "prices.toml"))
    assert price == Price(input=0.2, cached_input=0.02, output=0.6)
