"""The tree of errors is the one that its module draws, and each error does what it is for."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import gymnasium.error
import pytest

from agentgym_gym import errors

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == errors.__name__
}


def drawn() -> dict[str, str]:
    """Return the parent of each error in the drawing."""
    parents, above = {}, {-1: "gymnasium.error.Error"}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    (?P<before>[ │├└─]*)(?P<name>[A-Z]\w+)", line)
        if match:
            depth = len(match["before"]) // 4
            parents[match["name"]] = above[depth - 1]
            above[depth] = match["name"]
        elif "gymnasium.error.Error" in line and not parents:
            above = {0: "gymnasium.error.Error"}
    return parents


def test_the_tree_is_as_drawn():
    by_name = {**CLASSES, "gymnasium.error.Error": gymnasium.error.Error}
    assert set(drawn()) == set(CLASSES)
    for name, parent in drawn().items():
        assert by_name[parent] in CLASSES[name].__bases__, name


def test_all_are_exported_in_order():
    assert sorted(errors.__all__) == errors.__all__
    assert set(errors.__all__) == {*CLASSES, "ArgumentName", "ClientAnswer"}


def make(kind: type[Exception]) -> Exception:
    if kind is errors.MissingExtra:
        return errors.MissingExtra("It", extra="servers", module="fastapi")
    if kind is errors.BadFile:
        return errors.BadFile("what happened", path="run.toml")
    return kind("what happened")


@pytest.mark.parametrize("kind", CLASSES.values(), ids=lambda kind: kind.__name__)
def test_every_error(kind):
    error = make(kind)
    assert error.kind == kind.__name__
    assert inspect.getdoc(kind)
    all_families = (errors.SetupError, errors.ActionError, errors.Fault, errors.AgentFault)
    families = [family for family in all_families if issubclass(kind, family)]
    assert len(families) == (kind is not errors.AgentGymError)
    faults = issubclass(kind, (errors.Fault, errors.AgentFault))
    assert error.transient is (faults and kind is not errors.JudgeFailed)
    if kind is not errors.MissingExtra:
        assert str(error) == "what happened"


@pytest.mark.parametrize("kind", CLASSES.values(), ids=lambda kind: kind.__name__)
def test_every_error_travels(kind):
    """Between processes, as gymnasium's AsyncVectorEnv and ray send them."""
    error = make(kind)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own bytes
        assert type(other) is kind
        assert str(other) == str(error)
        assert vars(other) == vars(error)


def test_an_unknown_action_keeps_its_text():
    assert errors.UnknownAction("what happened").text is None
    error = errors.UnknownAction("what happened", text="dance")
    assert pickle.loads(pickle.dumps(error)).text == "dance"  # noqa: S301 - our own bytes


def test_a_missing_extra_is_an_error_with_what_to_install():
    error = errors.MissingExtra("The command line", extra="cli", module="typer")
    assert "pip install '.[cli]'" in str(error)
    assert "'typer'" in str(error)


def test_bad_values_are_value_errors():
    """As callers that catch them would expect."""
    assert issubclass(errors.BadOption, ValueError)
    assert issubclass(errors.ActionError, ValueError)


def test_only_what_was_never_sent_is_marked_as_such():
    unsent = {name for name, kind in CLASSES.items() if not getattr(kind, "was_sent", True)}
    assert unsent == {"ServerUnreachable"}
