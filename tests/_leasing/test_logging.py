"""What is read of a warning where no log was set up."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def test_who_has_set_up_no_log_reads_none():
    program = textwrap.dedent("""
        from agentgym_gym import errors
        from agentgym_gym._leasing import circuit_breaker
        server = circuit_breaker.CircuitBreaker("http://x")
        for _ in range(circuit_breaker.MAX_FAILURES):
            server.note(errors.ServerTimeout("late"))
    """)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stderr == ""
