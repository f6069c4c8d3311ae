"""Names of training folders: verl finds its files there, or `init` and `check` say why not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

import needs
from agentgym_gym.errors import BadFile
from verl_bridge.recipes import RlRecipe, check, write

USABLE = ["it's", 'a "b" c', "$HOME", "a=b,c", "a{b}", "back\\slash", "'", "-x", "ü", "a#b;c&d", "100%", "~"]
UNUSABLE = {
    "a*b": "file patterns",
    "[a]": "file patterns",
    "a::b": "parts of an address",
    "${a}": "interpolation",
    "a\nb": "control character",
    "end\\": "backslash",
    "\\'": "backslash",
    os.fsdecode(b"\xff"): "not UTF-8",
}


@pytest.fixture
def recipe():
    return RlRecipe(env_id="agentgym/TextCraft-v0", verl="0.9")


def passed(folder, tmp_path):
    """Return the arguments that run.sh passes to Python."""
    shows = tmp_path / "shows"
    shows.write_text('#!/usr/bin/env bash\nprintf "%s\\0" "$@"\n')
    shows.chmod(0o755)
    ended = subprocess.run(
        ["bash", folder / "run.sh"],  # noqa: S607
        env={"PATH": os.environ["PATH"], "PYTHON": str(shows)},
        capture_output=True,
        check=True,
        timeout=60,
    )
    return ended.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("name", USABLE)
def test_a_folder_may_have_any_other_name(tmp_path, recipe, name):
    hydra = pytest.importorskip("hydra.core.override_parser.overrides_parser", reason=needs.reason("verl"))
    folder = tmp_path / name
    write(recipe, folder)
    arguments = passed(folder, tmp_path)
    assert arguments[arguments.index("--config-path") + 1] == str(folder)
    (override,) = [each for each in arguments if each.startswith("folder=")]
    assert hydra.OverridesParser.create().parse_override(override).value() == str(folder)


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_name_that_verl_cannot_use_is_refused_by_init_and_reported_by_check(tmp_path, recipe, name):
    folder = tmp_path / name
    with pytest.raises(BadFile, match=UNUSABLE[name]):
        write(recipe, folder)
    assert not folder.exists()
    write(recipe, tmp_path / "usable")
    shutil.move(tmp_path / "usable", folder)
    (finding,), _ = check(folder)
    assert (finding.status, finding.check) == ("problem", "settings")
    assert UNUSABLE[name] in finding.text


@pytest.mark.slow
@pytest.mark.parametrize("name", ['it\'s "a" $b\nc', os.fsdecode(b"\xff")], ids=["quotes", "bytes"])
def test_a_run_folder_may_have_any_name(tmp_path, name):
    folder = tmp_path / name
    play = ("eval", "TextCraft", "--agent", "random", "--tasks", "0", "--out", folder)
    for arguments in (play, ("table", folder)):
        ended = subprocess.run(
            [sys.executable, "-m", "agentgym_gym", *arguments], capture_output=True, check=False, timeout=120
        )
        assert (ended.returncode, b"Traceback" in ended.stderr) == (0, False), ended.stderr
    assert (folder / "episodes.jsonl").exists()
