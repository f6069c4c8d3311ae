"""verl's own trainer on a CPU, over a real TextCraft server that is killed in the midst of a step."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))
if metadata.version("verl").startswith("0.8."):
    pytest.skip("some minutes: the oldest and the newest verl play these", allow_module_level=True)

import pyarrow as pa
import pyarrow.parquet as pq

from agentgym_gym import AgentGymEnv
from agentgym_gym.local_servers import LocalServer
from agentgym_gym.testing import FaultyProxy
from verl_bridge.cpu.overrides import cpu_overrides
from verl_bridge.cpu.tiny import make_tiny
from verl_run import Run, row

pytestmark = pytest.mark.slow  # minutes of training: `make trainings`

BATCH, SAMPLES, STEPS, TURNS = 2, 4, 3, 4
IN_THE_SECOND_STEP = BATCH * SAMPLES * TURNS + 6
"""Actions played by then: more than the episodes of the first step can play."""

LOOP = """\
- name: gym_env
  _target_: verl_bridge.agent_loop.GymAgentLoop
  max_turns: {turns}
  max_tokens_per_turn: 8
  fault_budget: {budget}
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, textcraft_url: str) -> Path:
    with AgentGymEnv("TextCraft", server=textcraft_url) as env:
        texts = [env.reset(options={"task_id": number})[0] for number in range(40)]
    return make_tiny(tmp_path_factory.mktemp("tiny"), [*texts, "You craft.", "Could not find"] * 4)


class Outage:
    """A training run, and what happens to its server, or to itself, in the midst of its second step.

    Args:
        happens: What happens; it is given this.
        budget: Seconds for which a faulted episode is played anew.
        modules: What verl imports in each of its processes.
    """

    def __init__(
        self,
        tiny: Path,
        folder: Path,
        happens: Callable[[Outage], None],
        *,
        budget: float,
        modules: str = "verl_bridge.cpu",
    ):
        self.folder, self.temporary, self.modules = folder, folder / "tmp", modules
        self.temporary.mkdir()
        self.servers = [LocalServer("textcraft")]
        self.at = 0.0
        with FaultyProxy(self.servers[0].start(), share=0) as self.proxy:
            self._happens = happens
            self._ended = threading.Event()
            watching = threading.Thread(target=self._watch)
            watching.start()
            try:
                self._run(tiny, budget)
            finally:
                self._ended.set()
                watching.join()
            self.took = time.monotonic() - self.at
            patience = time.monotonic() + 30
            while self.open and time.monotonic() < patience:
                time.sleep(0.1)
            self.held = self._leases()
            self.still_open = self.open
        for server in self.servers:
            server.stop()

    @property
    def open(self) -> list[int]:
        """What the server that runs now has made and not closed."""
        journal = self.proxy.journal
        return [made.id for made in journal.created if made.life == journal.life and not made.closed]

    def kill_server(self) -> None:
        self.servers[-1].process.kill()

    def start_server(self) -> None:
        self.servers.append(LocalServer("textcraft", port=urlsplit(self.servers[0].url).port))
        self.servers[-1].start()

    def _watch(self) -> None:
        while not self._ended.wait(0.01):
            if self.proxy.faults.calls["step"] >= IN_THE_SECOND_STEP:
                self.at = time.monotonic()
                self._happens(self)
                return

    def _run(self, tiny: Path, budget: float) -> None:
        folder, rollout = self.folder, "actor_rollout_ref.rollout"
        (folder / "loop.yaml").write_text(LOOP.format(turns=TURNS, budget=budget))
        # AgentGym's parser sends whatever a random model writes.
        sent = {"action_format": "react", "parser": "agentgym"}
        tasks = range(BATCH * STEPS)
        rows = [row("TextCraft", task, self.proxy.url, told="You craft.", **sent) for task in tasks]
        pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
        arguments = [
            *("-m", "verl.trainer.main_ppo", *cpu_overrides()),
            "algorithm.adv_estimator=grpo",
            f"data.train_files={folder}/rows.parquet",
            f"data.val_files={folder}/rows.parquet",
            f"data.train_batch_size={BATCH}",
            "data.max_prompt_length=1536",
            "data.max_response_length=384",
            f"actor_rollout_ref.model.path={tiny}",
            f"actor_rollout_ref.actor.ppo_mini_batch_size={BATCH}",
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8",
            f"{rollout}.n={SAMPLES}",
            f"{rollout}.calculate_log_probs=True",
            f"{rollout}.log_prob_micro_batch_size_per_gpu=8",
            f"{rollout}.agent.agent_loop_config_path={folder}/loop.yaml",
            "trainer.logger=[console]",
            "trainer.val_before_train=False",
            "trainer.test_freq=-1",
            "trainer.save_freq=-1",
            "trainer.total_epochs=1",
            "trainer.resume_mode=disable",
            f"trainer.default_local_dir={folder}/checkpoints",
        ]
        variables = {"TMPDIR": str(self.temporary), "VERL_USE_EXTERNAL_MODULES": self.modules}
        self.run = Run(arguments, variables, folder)

    def _leases(self) -> list[object]:
        """What `agentgym leases` says of all processes of the run."""
        told = subprocess.run(
            [sys.executable, "-m", "agentgym_gym", "leases", self.proxy.url, "--json"],
            env={**os.environ, "TMPDIR": str(self.temporary)},
            capture_output=True,
            text=True,
            check=True,
        )
        return [env for process in json.loads(told.stdout)["processes"] for env in process["envs"]]


def test_a_run_outlives_its_server(tiny, tmp_path):
    """All its steps are done with all their episodes, and it gives back what it held when it ends."""

    def happens(outage: Outage) -> None:
        outage.kill_server()
        time.sleep(20)
        outage.start_server()

    outage = Outage(tiny, tmp_path, happens, budget=120)
    text = outage.run.text
    assert outage.run.code == 0, text[-6_000:]
    assert all(f"step:{step} - " in text for step in range(1, STEPS + 1))
    assert "Replay 1 follows in" in text
    assert "played at last, after" in text
    assert outage.proxy.url in text
    assert "left out after" not in text
    assert outage.proxy.journal.life == 1
    assert outage.proxy.journal.created[-1].life == 1
    assert (outage.still_open, outage.held, outage.run.left) == ([], [], [])


def test_a_run_whose_server_stays_away_ends_within_its_budget(tiny, tmp_path):
    outage = Outage(tiny, tmp_path, Outage.kill_server, budget=6)
    text = outage.run.text
    assert outage.run.code not in {0, None}
    assert "step:2 - " not in text
    assert "The episode is left out after" in text
    assert outage.proxy.url in text
    assert outage.took < 6 + 150  # of which most is verl's own end
    assert (outage.held, outage.run.left) == ([], [])


def processes_of(outage: Outage) -> list[int]:
    """Return the processes of a run, except the one that releases its environments."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = ((folder / name).read_bytes() for name in ("environ", "cmdline"))
        except OSError:
            continue
        of_run = f"TMPDIR={outage.temporary}".encode() in environment.split(b"\0")
        if of_run and b"wait_and_release" not in command:
            processes.append(int(folder.name))
    return processes


def test_a_killed_run_releases_its_leases(tiny, tmp_path):
    """Its trainer and all that is Ray's, in the midst of a step; not the process that releases."""

    def happens(outage: Outage) -> None:
        # All are stopped first: the trainer would otherwise end by itself when one of its workers is gone.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in processes_of(outage):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)

    outage = Outage(tiny, tmp_path, happens, budget=60)
    assert outage.run.code == -signal.SIGKILL
    assert len(outage.proxy.journal.created) >= BATCH * SAMPLES
    assert (outage.still_open, outage.held) == ([], [])


def test_a_run_ends_when_its_rollout_worker_is_killed(tiny, tmp_path):
    """Trainers up to verl 0.8 await their workers; that of 0.9 would poll its replay buffer for ever."""
    killed: list[int] = []

    def happens(outage: Outage) -> None:
        for process in processes_of(outage):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if b"AgentLoopWorker" in Path(f"/proc/{process}/cmdline").read_bytes():
                    os.kill(process, signal.SIGKILL)
                    killed.append(process)

    modules = "verl_bridge.cpu,verl_bridge.trainer"
    outage = Outage(tiny, tmp_path, happens, budget=60, modules=modules)
    text = outage.run.text
    assert killed
    assert outage.run.code not in {0, None}, text[-6_000:]
    assert outage.took < 150  # of which most is verl's own end
    assert "step:2 - " not in text
    assert "ActorDiedError" in text
    if not metadata.version("verl").startswith("0.7."):
        assert re.search(rf"WorkerDied: .* pid: {killed[0]} name: agent_loop_worker_0_", text)
    assert (outage.still_open, outage.held, outage.run.left) == ([], [], [])
