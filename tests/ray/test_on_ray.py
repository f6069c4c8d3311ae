"""Evaluations on a local Ray cluster, with the real ray: see noxfile.py."""

from __future__ import annotations

import gc
import os
import re
import warnings

import pytest

import needs

ray = pytest.importorskip("ray", reason=needs.reason("ray"))

import command_line  # noqa: E402 - not before it is known that ray is there
import programs  # noqa: E402
from agentgym_gym.evaluate import read_run  # noqa: E402

LOCALLY = ("--ray", "local", "--concurrency", 40)


@pytest.fixture(scope="module", autouse=True)
def _cluster():
    """A cluster of this process, which each evaluation uses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("PYTHONPATH", programs.environment()["PYTHONPATH"])  # by which its processes import ours
        ray.init(address="local", log_to_driver=False)
        yield
        with warnings.catch_warnings():  # Ray does not wait for the processes that it ends
            warnings.simplefilter("ignore", ResourceWarning)
            ray.shutdown()
            gc.collect()


@pytest.fixture
def evaluate(textcraft_url, tmp_path):
    """Returns the result of `agentgym eval` in TextCraft, and the episodes by their tasks."""

    def run(agent, tasks, *options):
        out = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        words = ("--server", textcraft_url, "--agent", agent, "--tasks", tasks, "--out", out)
        ended = command_line.run("eval", "TextCraft", *words, *options)
        records = read_run(out).records if ended.exit_code == 0 else ()
        return ended, sorted(records, key=lambda record: record.task_id)

    return run


def test_it_plays_as_without_it(evaluate):
    (_, on_ray), (_, alone) = evaluate("oracle", "0:60", *LOCALLY), evaluate("oracle", "0:60")
    assert len(on_ray) == 60
    assert [(r.score, r.messages, r.ending) for r in on_ray] == [
        (r.score, r.messages, r.ending) for r in alone
    ]


def test_it_plays_in_other_processes_which_have_the_variables(evaluate, monkeypatch):
    monkeypatch.setenv("AGENTGYM_OF_THE_TEST", "here")
    _, records = evaluate("ray_agents:Where", "0:40", *LOCALLY)
    found = {tuple(record.replies[0].split()[2:]) for record in records}
    assert {text for _, text in found} == {"here"}
    assert len({process for process, _ in found}) == 2
    assert str(os.getpid()) not in {process for process, _ in found}


def test_a_process_that_dies_loses_no_episode(evaluate, monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTGYM_DIES_IN", str(tmp_path))
    _, records = evaluate("ray_agents:Where", "0:20", "--ray", "local", "--concurrency", 6)
    assert (tmp_path / "died").exists()
    assert [record.task_id for record in records] == list(range(20))
    assert all(record.scored for record in records)


def test_modules_that_the_machines_cannot_import_are_named(evaluate, monkeypatch, tmp_path):
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "only_here.py").write_text(
        "from ray_agents import Where\n\nclass NotThere(Where):\n    pass\n"
    )
    monkeypatch.syspath_prepend(modules)
    ended, _ = evaluate("only_here:NotThere", "1", *LOCALLY)
    assert ended.exit_code == 2
    assert re.search(r"cannot use the Ray cluster.*No module named", " ".join(ended.stderr.split()))


def test_a_mistake_in_the_set_up_is_reported_as_without_it(evaluate):
    (on_ray, _), (alone, _) = (evaluate("ray_agents:Refuses", "1", *more) for more in (LOCALLY, ()))
    assert on_ray.exit_code == alone.exit_code == 2
    assert "the agent has no key" in on_ray.stderr
    assert "Ray" not in on_ray.stderr


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_without_a_cluster(evaluate, unreachable_url, scheme):
    address = unreachable_url.replace("http://", scheme)
    ended, _ = evaluate("oracle", "1", "--ray", address)
    assert ended.exit_code == 2
    assert f"there is no Ray cluster at '{address}'" in " ".join(ended.stderr.split())
