"""What the tests are helped by."""

from __future__ import annotations

import signal
import sys

import pytest

import programs


@pytest.mark.parametrize("here", [signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler])
def test_a_program_is_ended_by_ctrl_c_however_the_tests_were_started(here):
    before = signal.signal(signal.SIGINT, here)
    try:
        ended = programs.run(
            [sys.executable, "-Sc", "import signal; signal.raise_signal(signal.SIGINT)"], stderr=-3
        )
        assert signal.getsignal(signal.SIGINT) is here
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.returncode == -signal.SIGINT
