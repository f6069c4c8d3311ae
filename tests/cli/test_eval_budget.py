"""`agentgym eval`: budgets, unusable model servers, and the output during a run and at its end."""

import json
import re
import shlex
import threading

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

import inside
from fake_model import asked, completion, refused
from fake_server import FakeServer, in_turn

USAGE = {"prompt_tokens": 100, "completion_tokens": 20}
COUNT = "counting_env:bridge/Count-v0"


def summary(folder):
    return json.loads((folder / "summary.json").read_text("utf-8"))


def episodes(folder):
    return [json.loads(line) for line in (folder / "episodes.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture
def model(started):
    return lambda *answers: started(FakeServer(in_turn(*answers)))


@pytest.fixture
def command(tmp_path):
    """Returns a command in which a model plays episodes of two turns."""

    def make(server, *more, tasks="3:13"):
        options = ("--base-url", f"{server.url}/v1", "--tasks", tasks, "--max-turns", 2)
        return ("eval", COUNT, "--model", "tiny", *options, "--out", tmp_path / "run", *more)

    return make


def continued(result):
    """Return the command that an output recommends."""
    return shlex.split(re.search(r"^Continue.*?: agentgym (.*)$", result.stdout, re.MULTILINE)[1])


def test_a_budget_ends_a_run_that_a_larger_one_continues(run, tmp_path, model, command):
    server, folder = model(completion("4", usage=USAGE)), tmp_path / "run"
    # The fourth episode begins with the last request of the budget, and does not count.
    result = run(*command(server, "--max-tokens-total", 7 * 120, "--concurrency", 1))
    assert result.exit_code == 1
    assert len(asked(server)) == 7
    assert [record["turns"] for record in episodes(folder)] == [2, 2, 2]
    assert "840 tokens, --max-tokens-total=840" in result.stderr
    written = summary(folder)
    assert (written["episodes"], written["run"]["finished"]) == (3, False)
    assert written["run"]["stopped"] == "budget used up: 840 tokens, max_tokens_total=840"
    assert written["run"]["usage"]["requests"] == 7
    assert written["run"]["usage"]["prompt_tokens"] + written["run"]["usage"]["completion_tokens"] == 840
    assert "Continue with a larger --max-tokens-total: agentgym eval" in result.stdout

    again = [word if word != "N" else 840 + 2 * 120 for word in continued(result)]
    result = run(*again)
    assert result.exit_code == 1
    assert [record["task_id"] for record in episodes(folder)] == [3, 4, 5, 6]
    result = run(*[word if word != "N" else 10**6 for word in continued(result)])
    assert result.exit_code == 0, result.stderr
    written = summary(folder)
    assert (written["episodes"], written["run"]["finished"], written["run"]["stopped"]) == (10, True, None)
    assert written["run"]["usage"]["requests"] == len(asked(server)) == 21
    assert "Continue" not in result.stdout


def test_episodes_in_progress_do_not_count(run, tmp_path, model, command):
    server = model(completion("4", usage=USAGE))
    result = run(*command(server, "--max-tokens-total", 1000, "--concurrency", 8, tasks="3:40"))
    assert "budget used up" in result.stderr
    assert 1000 <= 120 * len(asked(server)) < 1000 + 9 * 120
    assert result.exit_code in {1, 2}  # 2 if no episode had ended
    finished = episodes(tmp_path / "run") if result.exit_code == 1 else []
    assert all(record["ending"] == "truncated" for record in finished)


def test_a_maximum_cost(run, tmp_path, model, command):
    server, prices = model(completion("4", usage=USAGE)), tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 10000.0\noutput = 0.0\n")  # 1 each
    paid = ("--prices", prices, "--concurrency", 1)
    result = run(*command(server, "--max-cost", 4.5, *paid))
    assert result.exit_code == 1
    assert len(asked(server)) == 5
    assert "budget used up: cost 5, --max-cost=4.5" in result.stderr
    assert summary(tmp_path / "run")["run"]["usage"]["cost"] == pytest.approx(5)
    result = run(*command(server, "--max-cost", 5, *paid, "--resume"))
    assert (result.exit_code, len(asked(server))) == (1, 5)


def test_a_budget_of_several_runs(run, tmp_path, model):
    server = model(completion("4", usage=USAGE))
    (tmp_path / "run.toml").write_text(
        f"""
        out = "{tmp_path / "out"}"
        max_tokens_total = 720
        concurrency = 1
        tasks = "3:5"
        max_turns = 2
        [[environments]]
        id = "{COUNT}"
        [[agents]]
        model = "a"
        base_url = "{server.url}/v1"
        [[agents]]
        model = "b"
        base_url = "{server.url}/v1"
        """
    )
    result = run("eval", tmp_path / "run.toml")
    assert result.exit_code == 1
    assert len(asked(server)) == 6
    written = {name: summary(tmp_path / "out" / f"Count-v0-{name}") for name in "ab"}
    assert [written[name]["episodes"] for name in "ab"] == [2, 1]
    assert written["a"]["run"]["stopped"] is None
    assert "max_tokens_total=720" in written["b"]["run"]["stopped"]
    result = run(*[word if word != "N" else 960 for word in continued(result)])
    assert result.exit_code == 0, result.stderr


def test_a_model_server_that_is_not_there(run, tmp_path, command, started):
    server = started(FakeServer(in_turn({})))
    server.stop()
    result = run(*command(server))
    assert result.exit_code == 2
    error = " ".join(result.stderr.split())
    assert f"cannot reach the model server {server.url}/v1: cannot connect:" in error
    assert "start it, or give another --base-url=URL" in error
    assert not (tmp_path / "run").exists()


NO_QUOTA = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}


@pytest.mark.parametrize(
    ("reply", "key", "advice"),
    [
        (
            ("429 Too Many", NO_QUOTA),
            "sk-mine",
            "the quota is used up (HTTP 429: You exceeded your quota)",
        ),
        (
            ("402 Pay", {"error": "pay"}),
            "sk-mine",
            "used up (HTTP 402: pay); raise it, then resume",
        ),
        (("401 No", {}), "sk-mine", "replace the key in the variable OPENAI_API_KEY by a valid one"),
        (("401 No", {}), None, "the variable OPENAI_API_KEY is not set: set it to a valid key"),
    ],
)
def test_a_server_that_refuses_ends_the_run_at_once(run, monkeypatch, model, command, reply, key, advice):
    if key is None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    else:
        monkeypatch.setenv("OPENAI_API_KEY", key)
    server = model(refused(*reply))
    result = run(*command(server, "--concurrency", 1))
    assert result.exit_code == 2
    assert advice in " ".join(result.stderr.split())
    assert server.url in result.stderr
    assert len(asked(server)) == 1


def test_a_server_that_refuses_midway_ends_the_run_with_its_results(run, tmp_path, model, command):
    answers = [
        *([completion("4", usage=USAGE)] * 4),
        refused("429 No", NO_QUOTA),
        completion("4", usage=USAGE),
    ]
    server = model(*answers)
    result = run(*command(server, "--concurrency", 1, tasks="3:7"))
    assert result.exit_code == 2
    assert "error: " in result.stderr
    assert "HTTP 429: You exceeded your quota" in result.stderr
    assert "Count-v0 by tiny" in result.stdout
    written = summary(tmp_path / "run")
    assert written["episodes"] == 2
    assert written["run"]["stopped"].startswith("AccessDenied: ")
    assert run(*continued(result)).exit_code == 0
    assert summary(tmp_path / "run")["episodes"] == 4


def test_a_price_file_without_the_model_is_reported(run, tmp_path, model, command):
    (tmp_path / "prices.toml").write_text("[other]\ninput = 1.0\noutput = 1.0\n")
    result = run(*command(model(completion("4", usage=USAGE)), "--prices", tmp_path / "prices.toml"))
    assert result.exit_code == 0
    assert "has no price of tiny" in result.stderr


def test_a_resumed_run_keeps_its_price(run, tmp_path, model, command):
    prices = tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 100.0\noutput = 1000.0\n")
    server = model(completion("4", usage=USAGE))
    assert run(*command(server, "--prices", prices, tasks="3:5")).exit_code == 0
    assert run(*command(server, "--resume", tasks="3:7")).exit_code == 0
    assert summary(tmp_path / "run")["timing"]["cost"] == pytest.approx(8 * 0.03)
    prices.write_text("[tiny]\ninput = 0.0\noutput = 1000.0\n")
    assert run(*command(server, "--prices", prices, "--resume", tasks="3:7")).exit_code == 0
    assert summary(tmp_path / "run")["timing"]["cost"] == pytest.approx(8 * 0.02)


def test_a_resume_that_is_refused_names_the_difference(run, tmp_path, model, command):
    server = model(completion("4", usage=USAGE))
    for name, word in (("a", "first"), ("b", "second")):
        (tmp_path / name).write_text(f"{'Count carefully. ' * 50}Say the {word} number.")
    usual = ("--temperature", 0.5, "--prompt", tmp_path / "a")
    assert run(*command(server, *usual)).exit_code == 0
    other = run(*command(server, "--temperature", 1, "--prompt", tmp_path / "a", "--resume"))
    assert other.exit_code == 2
    assert "agent_settings.sampling.temperature 0.5, not 1.0" in other.stderr
    (tmp_path / "a").write_text((tmp_path / "b").read_text())
    other = run(*command(server, *usual, "--resume"))
    assert other.exit_code == 2
    assert "agent_settings.prompt.sha256" in other.stderr


def test_a_long_text_is_shown_from_its_difference(run, tmp_path, model):
    server = model(completion("4", usage=USAGE))
    name, out = (
        "counting_env:bridge/Instructed-v0",
        ("--out", tmp_path / "run", "--tasks", "3", "--max-turns", 1),
    )
    usual = ("eval", name, "--model", "tiny", "--base-url", f"{server.url}/v1", *out)
    for word, message in (("first", ""), ("second", "has a run with agent_settings.system_prompt '…")):
        (tmp_path / "prompt").write_text(f"{'Count carefully. ' * 50}Say the {word} number.")
        result = run(*usual, "--system-prompt", tmp_path / "prompt", "--resume")
        assert message in result.stderr
    assert "first number.', not '…" in result.stderr


def test_the_end_of_a_run(run, tmp_path, model, command):
    busy = refused("503 Busy", {"error": {"message": "loading"}})
    server = model(
        completion("4", usage=USAGE),
        completion("4", usage=USAGE),
        busy,
        busy,
        completion("4", finish_reason="length", usage=USAGE),
    )
    secret = "sk-of-mine"  # noqa: S105 - a made-up one
    options = ("--retry-seconds", 0, "--concurrency", 1, "--env-kwargs", '{"rules": "a b"}')
    words = [
        word if word != f"{server.url}/v1" else server.url.replace("//", f"//me:{secret}@") + "/v1"
        for word in command(server, *options, tasks="3:8")
    ]
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "2 ended by ModelBusy; not scored." in lines
    shown = f"{server.url.replace('//', '//***@')}/v1"
    assert f"ModelBusy, 2 of 2: {shown}: HTTP 503: loading (1 attempt)" in lines
    assert "2 ended by reply_cut." in lines
    assert "reply_cut: raise --max-tokens, or give --on-cut-reply play." in lines
    assert "5 seeds." in lines
    assert any(
        line.startswith("6 requests to the model tiny at ") and line.endswith("/v1.") for line in lines
    )
    assert any(re.fullmatch(r"Wall time \d+\.\d s\.", line) for line in lines)
    assert secret not in result.output
    again = continued(result)
    assert again[-2:] == ["--resume", "--retry-faulted"]
    given = [str(word) for word in words]
    assert [word for word in again[:-2] if "***" not in word] == [
        word for word in given if secret not in word
    ]
    assert run(*command(server, *options, "--resume", "--retry-faulted", tasks="3:8")).exit_code == 0
    assert len(asked(server)) == 8


def test_the_command_that_continues_hides_headers(run, tmp_path, monkeypatch, counted):
    inside.retry_at_once(monkeypatch)
    server = counted()
    server.broken.add("/step")
    usual = ["eval", "TextCraft", "--agent", "random", "--tasks", "3", "--server", server.url]
    usual += ["--out", str(tmp_path / "run")]
    result = run(*usual, "--header", "Authorization: Bearer x", "--header=X-Key: y", "--yes")
    hidden = ["--header", "Authorization: ***", "--header", "X-Key: ***"]
    assert continued(result) == [*usual, *hidden, "--resume", "--retry-faulted"]


class Written:
    """Standard error that signals a line of progress."""

    def __init__(self, expected):
        self.expected, self.text, self.progress = expected, "", threading.Event()

    def write(self, text):
        self.text += text
        if re.search(self.expected, self.text):
            self.progress.set()

    def flush(self):
        pass

    def isatty(self):
        return False


def test_lines_of_progress_where_there_is_no_terminal(run, monkeypatch, started, command):
    """The second episode of the model waits until the line is there."""
    stderr, answered = Written(r"1/2 episodes.*requests 1"), []

    def answer(_):
        answered.append(1)
        if len(answered) > 2:
            stderr.progress.wait(60)
        return completion("4", usage=USAGE)

    inside.limit_progress(monkeypatch, look=1, line=0.01)
    usual = command(started(FakeServer(answer)), "--concurrency", 1, tasks="3:5")
    assert run(*usual, stderr=stderr).exit_code == 0
    line = next(line for line in stderr.text.splitlines() if re.match("1/2 episodes.*requests 1", line))
    assert "success 0.00" in line
    assert "tokens/s" in line
    assert " left" in line


def test_the_progress_names_the_fault_that_is_retried(run, monkeypatch, started, command):
    """The server fails until the line is there."""
    stderr = Written(r"0/1 episodes.* retries \d+  retrying 1: HTTP 503: out of order")

    def answer(_):
        if stderr.progress.is_set():
            return completion("4", usage=USAGE)
        return refused("503 Busy", {"error": {"message": "out of \x1b[31morder"}}, "Retry-After: 0.1")

    inside.limit_progress(monkeypatch, look=1, line=0.01)
    assert run(*command(started(FakeServer(answer)), tasks="3"), stderr=stderr).exit_code == 0
    assert stderr.progress.is_set()
    assert "\x1b" not in stderr.text


def test_the_first_trouble_is_reported_before_the_next_line(run, monkeypatch, started, command):
    """The server fails until the line is there, and ten times more, which print no other line."""
    stderr, after = Written(r"0/1 episodes.* retrying 1: HTTP 503"), []

    def answer(_):
        if stderr.progress.is_set():
            after.append(1)
        if len(after) > 10:
            return completion("4", usage=USAGE)
        return refused("503 Busy", None, "Retry-After: 0.05")

    inside.limit_progress(monkeypatch, look=0.01, line=1e6)
    assert run(*command(started(FakeServer(answer)), tasks="3"), stderr=stderr).exit_code == 0
    assert stderr.text.count(" episodes  ") == 1


def test_an_environment_that_does_not_reply_is_reported(run, monkeypatch):
    """It replies when the line is there."""
    stderr = Written(r"0/1 episodes.* Waiting-v0 waits 0 s")

    class Waiting(gymnasium.Env):
        observation_space = action_space = gymnasium.spaces.Text(9)

        def reset(self, *, seed=None, options=None):
            return "begin", {}

        def step(self, action):
            assert stderr.progress.wait(60)
            return "end", 1.0, True, False, {}

    monkeypatch.setitem(gymnasium.registry, "Waiting-v0", EnvSpec("Waiting-v0", entry_point=Waiting))
    inside.limit_slow(monkeypatch, 0)
    inside.limit_progress(monkeypatch, look=0.01, line=1e6)
    result = run("eval", "Waiting-v0", "--agent", "random", "--tasks", 3, stderr=stderr)
    assert result.exit_code == 0, stderr.text
    assert stderr.text.count(" episodes  ") == 1


def test_the_summary_is_current_during_the_run(run, tmp_path, started, command):
    """The last episode of the model waits until the summary has those before it."""
    seen, answered, waiting = [], [], threading.Event()

    def answer(_):
        answered.append(1)
        while len(answered) > 4 and not seen and not waiting.wait(0.02):
            value = summary(tmp_path / "run")
            if value["episodes"] == 2:
                seen.append(value)
        return completion("4", usage=USAGE)

    threading.Timer(60, waiting.set).start()
    assert run(*command(started(FakeServer(answer)), "--concurrency", 1, tasks="3:6")).exit_code == 0
    waiting.set()
    (value,) = seen
    assert (value["run"]["finished"], value["run"]["stopped"]) == (False, None)
    assert value["run"]["usage"]["requests"] >= 4
    assert value["tokens"]["completion"] == 80
    assert summary(tmp_path / "run")["episodes"] == 3
