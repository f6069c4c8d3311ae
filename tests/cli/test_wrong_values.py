"""A wrong value has one sentence, which names the argument, the option or the key of a file."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_gym.errors import ArgumentName, BadFile, BadOption
from agentgym_gym.evaluate import ChatOptions, Run, play

WRONG = {
    "tasks": (
        "some",
        (
            "should be a selection such as '0:50', '3', '1,2,5', '10:' or 'all', or the path of an existing "
            "file of item ids"
        ),
    ),
    "split": ("spring", "should be one of ['all', 'test', 'train'] of Maze"),
    "timeout": (0.0, "should be a positive number of seconds"),
    "server": ("here", "is not the URL of a server; it should look like 'http://127.0.0.1:36001'"),
    "success_at": (float("inf"), "should be a finite number"),
}
"""A wrong value of each argument of `Run`, and the rest of the sentence."""

OF_MODEL = {
    "history": (
        "few",
        (
            "should be one of 'all', 'turns:K' and 'tokens:N', or limits with 'summary' or "
            "'summary:module:function'"
        ),
    ),
    "base_url": ("here", "is not a URL such as 'http://127.0.0.1:8000/v1'"),
    "model_timeout": (0.0, "should be a number of seconds, finite and not negative"),
}
"""The same of `ChatOptions`."""

ALL = {**WRONG, **OF_MODEL}
every_wrong_value = pytest.mark.parametrize("name", ALL)


def in_toml(value):
    return json.dumps(value) if isinstance(value, str) else repr(value)


@every_wrong_value
def test_in_python(name, tmp_path):
    value, rest = ALL[name]
    agent = ChatOptions(model="m", **{name: value}) if name in OF_MODEL else "oracle"
    settings = {} if name in OF_MODEL else {name: value}
    with pytest.raises(BadOption) as error:
        play(Run("Maze", agent, folder=tmp_path / "run", **settings))
    assert str(error.value) == f"{name}={value!r} {rest}"
    facts = error.value.as_dict()
    assert (facts["kind"], facts["message"]) == ("BadOption", str(error.value))
    assert (facts["argument"], facts["value"]) == (name, repr(value))
    assert facts.get("expected", "") == (rest.removeprefix("should be ") if rest.startswith("should") else "")


@every_wrong_value
def test_on_the_command_line(run, tmp_path, name):
    value, rest = ALL[name]
    option = f"--{name.replace('_', '-')}"
    agent = ["--model", "m"] if name in OF_MODEL else ["--agent", "oracle"]
    result = run("eval", "Maze", *agent, "--out", tmp_path / "run", option, value)
    assert (result.exit_code, result.stderr) == (2, f"error: {option}={value!r} {rest}\n")


@every_wrong_value
def test_in_a_run_file(run, tmp_path, name):
    value, rest = ALL[name]
    line = f"{name} = {in_toml(value)}\n"
    file = tmp_path / "run.toml"
    environment = '[[environments]]\nid = "Maze"\n' + line * (name in WRONG)
    agent = f'[[agents]]\nmodel = "m"\n{line}' if name in OF_MODEL else '[[agents]]\nagent = "oracle"\n'
    file.write_text(f"out = {json.dumps(str(tmp_path / 'run'))}\n{environment}{agent}", "utf-8")
    result = run("eval", file)
    assert (result.exit_code, result.stderr) == (2, f"error: {name} = {value!r} in {file} {rest}\n")


WORDS = st.text(max_size=30)
PARTS = WORDS | st.lists(WORDS | WORDS.map(ArgumentName), min_size=1, max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.binary() | st.builds(object),
    lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner),
)
ERRORS = st.one_of(
    st.builds(BadOption, PARTS),
    st.builds(BadOption, WORDS, VALUES, PARTS),
    st.builds(BadOption, WORDS, problem=PARTS),
    st.builds(lambda words, path: BadFile(words, path=path), WORDS, WORDS),
)
ERRORS = st.one_of(ERRORS, st.builds(BadOption.found_in, ERRORS, WORDS))


@given(ERRORS)
def test_an_error_travels_and_is_json(error):
    facts = json.loads(json.dumps(error.as_dict()))
    assert facts == error.as_dict()
    assert facts["message"] == str(error)
    renamed = error.renamed({facts.get("argument", ""): "--option"})
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301
        assert type(other) is type(error)
        assert other.as_dict() == facts
        assert str(other.renamed({facts.get("argument", ""): "--option"})) == str(renamed)


def test_a_user_s_own_error_travels():
    """Whatever its constructor needs."""
    error = OwnError(3, unit="turns")
    other = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (str(other), other.unit) == ("3 turns are too few", "turns")


class OwnError(BadOption):
    def __init__(self, number, *, unit):
        super().__init__(f"{number} {unit} are too few")
        self.unit = unit
