"""What is left open when a program ends is closed by both that hold it, and neither complains."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


@pytest.mark.slow
def test_a_program_ends_in_silence_with_environments_in_the_pool():
    code = """
        import asyncio
        from verl_bridge.tasks import EnvTask

        async def main():
            task = EnvTask("agentgym_gym:agentgym/Maze-v0", {}, {"task_id": 0})
            episodes = await asyncio.gather(*(task.episode().begin() for _ in range(3)))
            for episode in episodes:
                await episode.step("move up")
            for episode in episodes[1:]:
                await episode.end()
            print(*(episode.fault for episode in episodes))

        asyncio.run(main())
    """
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "None None None\n", "")
