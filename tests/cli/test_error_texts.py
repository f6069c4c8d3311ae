"""An error that the command line prints contains the text of a user, a file or a server unchanged."""

from __future__ import annotations

import itertools
import json

import gymnasium
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import command_line
from agentgym_gym.errors import BadOption
from fake_model import refused
from fake_server import FakeServer

FOLDERS = itertools.count()


OPTIONS = {
    name for words in command_line.commands() for each in command_line.options(*words) for name in each.names
}
ARGUMENTS = sorted(name.removeprefix("--").replace("-", "_") for name in OPTIONS if name.startswith("--"))
CALLS = (
    "pass server='http://HOST:PORT' to gymnasium.make(x)",
    "the argument server=",
    "1, or None for no limit",
    "x (force=True)",
    "Value error, x",
    "Input should be x",
)
NAMED = st.builds(
    "{}={}".format, st.sampled_from(["task_id", "headers", *ARGUMENTS]), st.sampled_from("x5'/")
)
WORDS = st.one_of(NAMED, st.sampled_from(CALLS), st.text("abc=,:;()[]{}<>'-_/.é漢", min_size=1, max_size=8))
TEXTS = st.permutations(range(3)).flatmap(
    lambda order: st.tuples(NAMED, WORDS, WORDS).map(lambda words: " ".join(words[at] for at in order))
)
TEXTS = TEXTS.filter(lambda text: len(text) < 75)  # longer values are cut
"""Texts that look like the arguments of this library."""


def tried(function):
    """Run a test with texts of users."""
    for text in ("limit=3", "server='http://a:1'", "task_id=5", "first limit=3", "timeout=0", CALLS[0]):
        function = example(text=text)(function)
    quick = settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
    return quick(given(text=TEXTS)(function))


class Raises(gymnasium.Env):
    """An environment whose constructor raises an error with a text, also one of this library."""

    observation_space = action_space = gymnasium.spaces.Text(100)

    def __init__(self, text, ours=False):
        raise (BadOption if ours else RuntimeError)(text)


if "words/Raises-v0" not in gymnasium.registry:
    gymnasium.register("words/Raises-v0", Raises)


def printed(result):
    """Return the error of a command that failed."""
    assert result.exit_code == 2, result.output
    return result.stderr


@tried
@pytest.mark.parametrize("option", ["--tasks", "--split", "--positions"])
def test_a_selection(run, tmp_path, option, text):
    command = ("eval", "TextCraft", "--agent", "oracle", f"{option}={text}", "--out", tmp_path / "run")
    error = printed(run(*command))
    assert error.startswith(f"error: {option}=")
    assert text in error


@tried
def test_env_kwargs(run, tmp_path, text):
    kwargs = json.dumps({text: 1}, ensure_ascii=False)
    command = ("eval", "TextCraft", "--agent", "oracle", "--env-kwargs", kwargs, "--out", tmp_path / "run")
    assert text in printed(run(*command))
    not_json = run(
        "eval", "TextCraft", "--agent", "oracle", f"--env-kwargs={text}", "--out", tmp_path / "run"
    )
    assert text in printed(not_json)


@tried
def test_a_run_file(run, tmp_path, text):
    file = tmp_path / "run.toml"
    agents = '[[agents]]\nagent = "oracle"\n'
    for line in (
        f"{json.dumps(text, ensure_ascii=False)} = 1",
        f"limit = {json.dumps(text, ensure_ascii=False)}",
    ):
        file.write_text(f'out = "x"\n[[environments]]\nid = "TextCraft"\n{line}\n{agents}', encoding="utf-8")
        assert text in printed(run("eval", file))


@tried
def test_an_exception_of_an_environment(run, tmp_path, text):
    name = f"{__name__}:words/Raises-v0"
    for ours in (False, True):
        kwargs = json.dumps({"text": text, "ours": ours})
        command = ("eval", name, "--agent", "random", "--env-kwargs", kwargs, "--tasks", "0:1")
        assert text in printed(run(*command, "--out", tmp_path / "run"))
        assert text in printed(run("play", name, "--env-kwargs", kwargs))


@pytest.mark.slow
@tried
def test_the_error_of_a_model_server(run, tmp_path, text):
    with FakeServer(lambda _: refused("400 Bad Request", {"error": {"message": text}})) as server:
        model = ("--model", "m", "--base-url", f"{server.url}/v1")
        out = tmp_path / str(next(FOLDERS))
        result = run("eval", "TextCraft", *model, "--tasks", "0:1", "--out", out)
    assert f"HTTP 400: {text}" in printed(result)


@tried
def test_the_greeting_of_an_environment_s_server(run, tmp_path, text):
    with FakeServer(lambda _: text) as server:
        command = ("eval", "TextCraft", "--agent", "oracle", "--server", server.url, "--tasks", "0:1")
        error = printed(run(*command, "--out", tmp_path / "run"))
    assert text in error.replace("\\", "")  # a quoted text


def test_an_argument_of_the_library_is_named_as_the_option(run):
    with FakeServer(lambda _: (401, {})) as server:
        error = printed(run("play", "TextCraft", "--server", server.url))
    assert "Give a header Authorization by --header, " in error
