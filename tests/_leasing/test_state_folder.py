"""The folder of leases belongs to the user, or is refused."""

from __future__ import annotations

import os

import pytest

import inside
from agentgym_gym import AgentGymEnv
from agentgym_gym._leasing import slots, state_folder
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
    monkeypatch.setattr(state_folder.os, "getuid", lambda: own + 1)


@pytest.fixture(params=[writable_by_all, a_link, of_another_user], ids=lambda way: way.__name__)
def unsafe(request, tmp_path, monkeypatch):
    folder = tmp_path / "leases"
    inside.keep_files_in(folder, monkeypatch)
    request.param(folder, monkeypatch)
    return folder


def test_slots_are_not_taken_in_it(unsafe, started):
    server = started(GameServer())
    with pytest.raises(SetupError, match=r"unsafe folder.*TMPDIR"):
        slots.Slots(server.url, 8).take()


def test_environments_work_without_records_in_it(unsafe, started, caplog):
    server = started(GameServer())
    with AgentGymEnv("TextCraft", server=server.url) as env:
        env.reset(options={"task_id": 1})
        assert "fault" not in env.step(server.action)[4]
    assert "unsafe folder" in caplog.text
    assert not any(path.is_dir() for path in unsafe.iterdir())


def test_its_records_are_not_read(unsafe, started):
    server = started(GameServer())
    with pytest.raises(PermissionError, match="unsafe folder"):
        inside.records(server.url)
    with pytest.raises(PermissionError, match="unsafe folder"):
        slots.slot_states(server.url)


def test_a_folder_of_the_user_is_created_for_the_user_only(tmp_path, monkeypatch):
    inside.keep_files_in(tmp_path / "new", monkeypatch)
    assert state_folder.base_folder(create=True).stat().st_mode & 0o777 == 0o700
