"""The soak: thousands of episodes at once, on a server that dies, behind a proxy that injects faults.

TextCraft's local server, the proxy (``_soak_proxy.py``) and the client (``_soak_client.py``) each run in
their own process. One call in twenty is reset, lost, truncated, delayed or gets HTTP 500, and the server is
killed and restarted a few times. The replies of an episode depend on its number (``_soak_player.py``), so
each unfaulted episode is later played again, by itself, on a new server without a proxy.

Prints one JSON object: the claims, each with its metrics and whether it held. The exit status is 1 if one did
not hold. Run it with ``python benchmarks/soak.py``; docs/reliability.md reports the results.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from _common import free_port
from _soak_player import Player

from agentgym_gym import AgentGymEnv
from agentgym_gym.local_servers import LocalServer

HERE = Path(__file__).parent
ROOT = HERE.parent
AWAY = 2.0  # seconds until a killed server is restarted
GROWTH = 2 * 1024  # maximum growth of the client's memory in kilobytes, apart from the kills
SETTLED = 2  # samples after a kill until its effect on the memory is over
BLOCKS_GROWTH = 0.05  # maximum growth of Python's allocated memory blocks, as a share
BEYOND = 100  # number of ids to query above the last known one


def main() -> int:
    """Run the soak; return the exit status."""
    parser = argparse.ArgumentParser(description="Many episodes on a server that fails; see the file.")
    parser.add_argument(
        "--episodes", type=int, default=10_000, help="number of episodes (default: %(default)s)"
    )
    parser.add_argument(
        "--concurrent", type=int, default=128, help="number of episodes at once (default: %(default)s)"
    )
    parser.add_argument(
        "--kills", type=int, default=3, help="number of kills of the server (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="random seed of replies and faults (default: %(default)s)"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=1800,
        help="time limit in seconds (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, help="file for the result as JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(args.episodes, args.concurrent, args.kills, args.seed, args.limit, Path(folder))
        result = {"benchmark": "soak", **soak.run()}
    written = json.dumps(result, indent=2)
    print(written)
    if args.out:
        args.out.write_text(written + "\n", "utf-8")
    return 0 if result["held"] else 1


@dataclass
class Soak:
    """One soak.

    Attributes:
        episodes: Total number of episodes.
        concurrent: Number of episodes at once.
        kills: How often the server is killed.
        seed: Random seed of replies and faults.
        limit: Seconds after which the client counts as hung.
        folder: For files of the run.
        memory: Samples: number of finished episodes, kilobytes of the client, allocated blocks of its Python.
        killed_at: The indices of the samples at which the server was killed.
    """

    episodes: int
    concurrent: int
    kills: int
    seed: int
    limit: float
    folder: Path
    memory: list[tuple[int, int, int]] = field(default_factory=list)
    killed_at: list[int] = field(default_factory=list)

    def run(self) -> dict[str, Any]:
        """Play, list the remaining environments, replay; return the metrics."""
        server = LocalServer("textcraft", port=free_port())
        server.start()
        try:
            return self._run(server)
        finally:
            server.stop()

    def _run(self, server: LocalServer) -> dict[str, Any]:
        # Clients record their leases here, for `agentgym leases`.
        here = {**os.environ, "TMPDIR": str(self.folder), "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}"}
        with process("_soak_proxy.py", server.url, self.seed, env=here) as proxy:
            url = receive(proxy)
            began = time.perf_counter()
            client = self._play(server, proxy, url, here)
            seconds = time.perf_counter() - began
            if client is None:
                return {"no_hang": {"held": False, "last": self.memory[-1:]}, "held": False}
            report = request(proxy, "report")
            before = held_by(server.url, report)
            clear = [sys.executable, "-m", "agentgym_gym", "leases", url, "--clear", "--yes"]
            cleared = subprocess.run(clear, env=here, check=False, capture_output=True, text=True).returncode  # noqa: S603
            after = held_by(server.url, report)
        outcomes = self._outcomes()
        played = [each for each in outcomes if "fault" not in each]
        server.stop()
        began = time.perf_counter()
        server.start()
        wrong = self._replay(server.url, played)
        claims = {
            "no_hang": {"seconds": round(seconds), "held": True},
            "every_episode_once": self._episodes(outcomes, played),
            "no_wrong_score": {
                "replayed": len(played),
                "different": wrong[:20],
                "seconds": round(time.perf_counter() - began),
                "held": not wrong,
            },
            "every_fault_counted": self._faults(client, report, outcomes),
            "nothing_left": left(report, before, after, cleared),
            "memory_flat": self._memory(),
        }
        settings = {"episodes": self.episodes, "concurrent": self.concurrent, "kills": self.kills}
        held = all(claim["held"] for claim in claims.values())
        counted = {
            "calls": report["calls"],
            "injected": report["injected"],
            "unplanned": report["unplanned"],
            "client": client["stats"],
        }
        return {**settings, "seed": self.seed, "counted": counted, **claims, "held": held}

    def _play(
        self, server: LocalServer, proxy: subprocess.Popen[str], url: str, env: dict[str, str]
    ) -> dict[str, Any] | None:
        """Play all episodes while killing the server; return the client's counts."""
        kills = [self.episodes * (n + 1) // (self.kills + 1) for n in range(self.kills)]
        arguments = (url, self.episodes, self.concurrent, self.seed, self.folder / "outcomes")
        with process("_soak_client.py", *arguments, env=env) as client:
            watchdog = threading.Timer(self.limit, client.kill)
            watchdog.start()
            try:
                while "played" not in (line := receive(client)):
                    self.memory.append((line["over"], line["rss"], line["blocks"]))
                    sys.stderr.write(f"{line}\n")
                    if kills and line["over"] >= kills[0]:
                        kills.pop(0)
                        self.killed_at.append(len(self.memory) - 1)
                        self._kill(server)
                request(proxy, "quiet")
                _send(client, "close")
                counts: dict[str, Any] = receive(client)
            except EOFError:
                return None
            finally:
                watchdog.cancel()
            if kills or client.wait(10):
                return None
            return counts

    @staticmethod
    def _kill(server: LocalServer) -> None:
        server.stop()  # with SIGKILL
        time.sleep(AWAY)
        server.start()

    def _outcomes(self) -> list[dict[str, Any]]:
        lines = (self.folder / "outcomes").read_text("ascii").splitlines()
        return sorted(map(json.loads, lines), key=lambda outcome: outcome["episode"])

    def _replay(self, url: str, played: list[dict[str, Any]]) -> list[int]:
        """Play each episode again, by itself; return the numbers of those that differ."""
        env = AgentGymEnv("TextCraft", server=url)
        wrong = []
        for outcome in played:
            player = Player(env, self.seed, outcome["episode"])
            player.begin(*env.reset(options={"task_id": player.task_id}))
            while not player.over and (reply := player.next_reply()) is not None:
                player.append_reply(reply, *env.step(reply))
            if player.fault or player.outcome() != outcome:
                wrong.append(player.number)
        env.close()
        return wrong

    def _episodes(self, outcomes: list[dict[str, Any]], played: list[dict[str, Any]]) -> dict[str, Any]:
        once = [outcome["episode"] for outcome in outcomes] == list(range(self.episodes))
        return {
            "finished": len(played),
            "terminated": sum(each["terminated"] for each in played),
            "truncated": sum(each["truncated"] for each in played),
            "given_up": sum(not (each["terminated"] or each["truncated"]) for each in played),
            "of_score_1": sum(each["score"] == 1 for each in played),
            "faulted_at_reset": sum(each.get("at") == "reset" for each in outcomes),
            "faulted_at_a_step": sum(each.get("at") == "step" for each in outcomes),
            "held": once,
        }

    def _faults(
        self, client: dict[str, Any], report: dict[str, Any], outcomes: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Compare the client's counts with the faults of its episodes, and those with the proxy's counts."""
        counted, injected = Counter(client["stats"]["faults"]), Counter(report["injected"])
        seen = {where: Counter(kinds) for where, kinds in client["seen"].items()}
        faulted = Counter(each["fault"] for each in outcomes if "fault" in each)
        lost = counted["ConnectionLost"] + client["retried"].get("ConnectionLost", 0)
        cut = lost - injected["reset"] - injected["lost"] - injected["truncate"]
        sent = client["stats"]["requests"] + client["late"] - client["unreached"]
        never_arrived = sent - sum(report["calls"].values())
        replies_cut = cut - never_arrived - report["unplanned"]
        errors_cut = injected["error"] - counted["ServerError"] - client["retried"].get("ServerError", 0)
        in_time = injected["delay"] - counted["ServerTimeout"]
        return {
            "by_kind": counted,
            "at_step": seen["step"],
            "at_reset": seen["reset"],
            "recovered_by_a_new_environment": seen["recovered"],
            "at_close": seen["close"],
            "retried": client["retried"],
            "delays_in_time": in_time,
            "cut_by_kills": {
                "before_they_arrived": never_arrived,
                "without_a_response": report["unplanned"],
                "on_the_way_back": replies_cut,
                "injected_errors": errors_cut,
            },
            "calls_with_other_counts": client["uncounted"],
            "held": not client["uncounted"]
            and counted == sum(seen.values(), Counter())
            and faulted == seen["step"] + seen["reset"]
            and sum(client["retried"].values()) == client["stats"]["retries"]
            and in_time >= 0
            and never_arrived >= 0
            # A kill cuts at most one response of each worker.
            and 0 <= replies_cut <= self.concurrent * self.kills
            and 0 <= errors_cut <= self.kills,
        }

    def _memory(self) -> dict[str, Any]:
        """Return the metrics of the client's memory.

        A kill makes all workers fail at the same moment. That needs memory which is free afterwards but which
        the process keeps: so the resident memory is compared between kills. Allocated blocks are compared
        between the two halves of the soak, by the maximum of each.
        """
        blocks = [used for _, _, used in self.memory]
        half = len(blocks) // 2
        more = max(blocks[half:]) / max(blocks[:half]) - 1  # a worker without a connection uses fewer
        ends = [*self.killed_at[1:], len(self.memory) - 1]
        stretches = [
            (min(start + SETTLED, end), end) for start, end in zip(self.killed_at or [0], ends, strict=True)
        ]
        growth = sum(max(0, self.memory[end][1] - self.memory[start][1]) for start, end in stretches)
        return {
            "kilobytes": {over: rss for over, rss, _ in self.memory},
            "growth_between_kills": growth,
            "at_most": GROWTH,
            "blocks": {over: used for over, _, used in self.memory},
            "share_of_blocks_more": round(more, 4),
            "share_at_most": BLOCKS_GROWTH,
            "held": growth <= GROWTH and more <= BLOCKS_GROWTH,
        }


def held_by(url: str, report: dict[str, Any]) -> set[int]:
    """Return the ids of the environments that exist on a server."""
    life = max((made["life"] for made in report["created"]), default=0)
    last = max((made["id"] for made in report["created"] if made["life"] == life), default=0)
    with httpx.Client(base_url=url) as http:
        return {
            env_id
            for env_id in range(last + BEYOND)
            if "error" not in http.get("/observation", params={"id": env_id}).json()
        }


def left(report: dict[str, Any], before: set[int], after: set[int], cleared: int) -> dict[str, Any]:
    """Return the remaining environments on the server in its last life, and the reasons.

    Args:
        report: The proxy's counts until the client had ended.
        before: The environments on the server at that time.
        after: Those that remained after ``agentgym leases --clear``.
        cleared: The exit status of that command.
    """
    lives = Counter(made["life"] for made in report["created"])
    life = max(lives, default=0)
    made = [each for each in report["created"] if each["life"] == life]
    received = [each for each in made if each["reply_sent"]]
    not_closed = {each["id"] for each in received if not each["close_requested"]}
    close_lost = {each["id"] for each in received if each["close_requested"] and not each["closed"]}
    unreceived = {each["id"] for each in made if not each["reply_sent"]}
    return {
        "created_in_each_life": [lives[each] for each in sorted(lives)],
        "created_in_the_last": len(made),
        "left_by_the_client": len(before),
        "of_these_the_close_request_was_lost": len(before & close_lost),
        "of_these_the_client_sent_no_close_request": len(before & not_closed),
        "of_these_the_client_received_no_id": len(before & unreceived),
        "status_of_leases_clear": cleared,
        "left_after_leases_clear": len(after),
        "left_without_a_received_id": len(after & unreceived),
        "held": not cleared and before == close_lost | not_closed | unreceived and after == unreceived,
    }


@contextmanager
def process(file: str, *arguments: object, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run a file of this folder in a process; stop the process when the context is left."""
    command = [sys.executable, str(HERE / file), *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env) as started:  # noqa: S603
        try:
            yield started
        except BaseException:
            started.kill()
            raise


def receive(process: subprocess.Popen[str]) -> Any:
    """Return the next message of a process.

    Raises:
        EOFError: It has ended.
    """
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise EOFError("the process has ended")
    return json.loads(line)


def request(process: subprocess.Popen[str], word: str) -> Any:
    """Send a process a word, and return its response."""
    _send(process, word)
    return receive(process)


def _send(process: subprocess.Popen[str], word: str) -> None:
    if process.stdin:
        process.stdin.write(word + "\n")
        process.stdin.flush()


if __name__ == "__main__":
    sys.exit(main())
