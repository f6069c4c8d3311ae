"""``agentgym export``; what inspect_ai makes of its logs is in tests/inspect."""

from __future__ import annotations

import sys

import pytest

import forked
from agentgym_gym.evaluate import EpisodeRecord, RunFolder


@pytest.fixture
def played(tmp_path):
    """A run of one episode."""
    record = EpisodeRecord(
        env_id="agentgym/TextCraft-v0",
        agent="oracle",
        task_id=0,
        goal=None,
        score=1.0,
        success=True,
        return_=1.0,
        turns=1,
        terminated=True,
        truncated=False,
        parse_errors={},
        fault=None,
        seconds=1.0,
        rewards=(1.0,),
        messages=({"role": "user", "content": "Goal"}, {"role": "assistant", "content": "get 1 stick"}),
    )
    with RunFolder(tmp_path / "run", {"env_id": record.env_id, "agent": "oracle"}) as folder:
        folder.add(record)
    return folder.path


def test_without_inspect_ai_the_error_names_what_to_install(played, tmp_path):
    code = "import sys; sys.modules['inspect_ai'] = None; from agentgym_gym.__main__ import main; main()"
    result = forked.run(code, "export", played, "--to", "inspect", "--out", tmp_path / "logs")
    assert result.returncode == 2
    wanted = "pip install '.[inspect]" if sys.version_info >= (3, 11) else "Python 3.11"
    assert wanted in result.stderr
    assert not (tmp_path / "logs").exists()


def test_only_tools_that_are_known_are_exported_to(run, played, tmp_path):
    result = run("export", played, "--to", "excel", "--out", tmp_path / "logs")
    assert result.exit_code == 2
    assert "inspect" in result.output
