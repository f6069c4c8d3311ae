"""No test depends on the copies of sockets that earlier tests of the process left: at most 64 are kept."""

from __future__ import annotations

import pytest

import inside


@pytest.fixture(autouse=True)
def _no_copied_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    inside.forget_copied_sockets(monkeypatch)
