"""Old names of public objects."""

from __future__ import annotations

import runpy
import sys
import types
import warnings

import pytest

from agentgym_gym._deprecated import deprecated_names
from agentgym_gym.errors import BadOption

MESSAGE = (
    "module_with_old_names.WrongOption is deprecated: use agentgym_gym.errors.BadOption; "
    "version 0.4 removes the old name"
)


@pytest.fixture(params=["module", "package"])
def module(request, monkeypatch):
    module = types.ModuleType("module_with_old_names")
    module.__getattr__ = deprecated_names(
        module.__name__, {"WrongOption": "agentgym_gym.errors:BadOption"}, removed_in="0.4"
    )
    if request.param == "package":
        module.__path__ = []  # so that `importlib` looks up names of `from module import name` too
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.fixture
def warnings_of(tmp_path):
    """Run a program, and return its names, and its warnings under Python's default filter."""
    return lambda code: _run(tmp_path / "program.py", code)


def _run(program, code):
    program.write_text(code, "utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter("default", DeprecationWarning)
        names = runpy.run_path(str(program))
    return names, [(str(each.message), each.filename, each.lineno) for each in caught]


def test_an_import_of_an_old_name_warns_once_with_its_place(module, warnings_of, tmp_path):
    names, caught = warnings_of("import sys\nfrom module_with_old_names import WrongOption\n")
    assert names["WrongOption"] is BadOption
    assert caught == [(MESSAGE, str(tmp_path / "program.py"), 2)]


def test_each_place_warns_once(module, warnings_of):
    names, caught = warnings_of(
        "import module_with_old_names as module\n"
        "used = [module.WrongOption for _ in range(3)]\n"
        "again = module.WrongOption\n"
    )
    assert names["used"] == [BadOption] * 3
    assert [line for *_, line in caught] == [2, 3]


def test_an_unknown_name_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match="module 'module_with_old_names' has no attribute 'Nothing'"):
        module.Nothing  # noqa: B018 - only the lookup counts
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        from module_with_old_names import Nothing  # noqa: F401 - only the lookup counts
