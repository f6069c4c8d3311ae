"""The folder of leases belongs to the user, or is refused."""

from __future__ import annotations

import os

import pytest

import by_hand
import command_line
import inside
from agentgym_gym import AgentGymEnv
from agentgym_gym.errors import SetupError
from game_server import GameServer

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have no numbers here")


def writable_by_all(folder, monkeypatch):
    folder.mkdir()
    folder.chmod(0o777)


def a_link(folder, monkeypatch):
    (folder.parent / "elsewhere").mkdir()
    folder.symlink_to(folder.parent / "elsewhere")


def of_another_user(folder, monkeypatch):
    folder.mkdir()
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    inside.keep_files_in(tmp_path / "leases", monkeypatch)
    return tmp_path / "leases"


@pytest.fixture(params=[writable_by_all, a_link, of_another_user], ids=lambda way: way.__name__)
def unsafe(request, folder, monkeypatch):
    request.param(folder, monkeypatch)
    return folder


def test_slots_are_not_taken_in_it(unsafe, started, monkeypatch):
    by_hand.register(by_hand.make(by_hand.Small()), monkeypatch)
    with pytest.raises(SetupError, match=r"unsafe folder.*TMPDIR"):
        AgentGymEnv("Hand", server=started(by_hand.HandServer()).url).reset(seed=0)


def test_environments_work_without_records_in_it(unsafe, started, caplog):
    server = started(GameServer())
    with AgentGymEnv("TextCraft", server=server.url) as env:
        env.reset(options={"task_id": 1})
        assert "fault" not in env.step(server.action)[4]
    assert "unsafe folder" in caplog.text
    assert not any(path.is_dir() for path in unsafe.iterdir())


def test_its_records_are_not_read(unsafe, started):
    ended = command_line.run("leases", started(GameServer()).url)
    assert ended.exit_code != 0
    assert "unsafe folder" in ended.output


def test_a_folder_of_the_user_is_created_for_the_user_only(folder, started):
    with AgentGymEnv("TextCraft", server=started(GameServer()).url) as env:
        env.reset(seed=0)
        assert folder.stat().st_mode & 0o777 == 0o700
