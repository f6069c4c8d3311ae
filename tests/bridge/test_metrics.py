"""Metrics and the error of a step, out of records, without verl."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import subprocess
import sys
import textwrap
from collections import defaultdict
from types import ModuleType

import pytest

import counting_env
from agentgym_gym.local_servers import LocalServer
from agentgym_gym.rollout import close_all
from agentgym_gym.testing import FaultyProxy
from task_play import begin
from verl_bridge import trainer
from verl_bridge._log_labels import labels_of
from verl_bridge._metrics import by_environment, failure_message, records_of, without_faulted
from verl_bridge._timing import Timing
from verl_bridge.tasks import EnvTask

MAZE, CRAFT = "agentgym/Maze-v0", "my/Craft-v1"


def record(env_id=MAZE, fault="", message="", **numbers):
    return {
        "return": 0.0,
        "success": 0.0,
        "turns": 2.0,
        "fault": float(bool(fault)),
        "replays": 0.0,
        "env_id": env_id,
        "fault_kind": fault,
        "fault_message": message,
        **numbers,
    }


def test_the_metrics_of_each_environment():
    records = [
        record(success=1.0, ignored_actions=3.0, **{"return": 3.0}),
        record(turns=5.0, replays=2.0, ignored_actions=0.0),
        record(fault="ServerTimeout", turns=99.0, replays=1.0),
        record(fault="ServerTimeout"),
        record(fault="LeaseLost"),
        record(CRAFT, **{"return": -1.0}),
    ]
    found = by_environment(records)
    assert {name: value for name, value in found.items() if MAZE in name} == {
        f"env/{MAZE}/episodes": 5,
        f"env/{MAZE}/faults": 3,
        f"env/{MAZE}/fault/LeaseLost": 1,
        f"env/{MAZE}/fault/ServerTimeout": 2,
        f"env/{MAZE}/success": 0.5,
        f"env/{MAZE}/score": 1.5,
        f"env/{MAZE}/turns": 3.5,
        f"env/{MAZE}/ignored_actions": 1.5,
        f"env/{MAZE}/replays": 3,
    }
    assert found[f"env/{CRAFT}/score"] == -1
    assert by_environment(records, "val-env")[f"val-env/{CRAFT}/episodes"] == 1


def test_an_environment_that_was_not_played_has_no_averages():
    found = by_environment([record(fault="LeaseLost")])
    assert found[f"env/{MAZE}/faults"] == 1
    assert not {f"env/{MAZE}/{name}" for name in ("success", "score", "turns")} & set(found)


def test_what_is_not_of_the_bridge_is_passed_over():
    assert by_environment([{"score": 1.0}, {}, record(env_id="")]) == {}
    assert failure_message([{"score": 1.0}, record(fault="LeaseLost")]) == ""
    assert records_of({"score": [1.0]}) == []


def test_a_kind_of_fault_may_be_anything():
    found = by_environment([record(fault="no/such thing\n" * 20), record(fault="")])
    (kind,) = [name for name in found if "/fault/" in name]
    assert kind.startswith(f"env/{MAZE}/fault/no_such_thing_")
    assert len(kind) < 100


def test_any_number_of_a_record_becomes_a_mean():
    """Over the episodes that were played: verl's own `reward` is 0 in a faulted one."""
    played = [record(cut=1.0, reward=2.0), record(cut=0.0, reward=3, note="text")]
    found = by_environment([*played, record(fault="LeaseLost", cut=0.0, reward=0.0)])
    assert (found[f"env/{MAZE}/cut"], found[f"env/{MAZE}/reward"]) == (0.5, 2.5)
    assert f"env/{MAZE}/note" not in found


def test_validations_of_different_size_compare():
    """All but the counts, which grow with the number of episodes."""
    records = [
        record(success=1.0, reward=3.0, cut=1.0, retries=1.0, replays=1.0, **{"return": 3.0}),
        record(success=0.0, reward=1.0, cut=0.0, retries=0.0, **{"return": 1.0}),
        record(fault="LeaseLost", reward=0.0, cut=0.0, retries=2.0),
    ]
    one, four = (by_environment(records * times, "val-env") for times in (1, 4))
    counts = {"episodes", "faults", "fault/LeaseLost", "retries", "replays"}
    at = f"val-env/{MAZE}/"
    assert {name for name in one if four[name] != one[name]} == {at + name for name in counts}
    assert all(four[at + name] == 4 * one[at + name] for name in counts)
    assert one[f"{at}reward"] == 2.0


def test_a_number_of_verl_s_own_does_not_take_the_place_of_an_average():
    """The scorer of an interaction returns the return as `score` too."""
    records = [record(score=value, **{"return": value}) for value in (1.0, 3.0)]
    assert by_environment(records)[f"env/{MAZE}/score"] == 2.0


def test_columns_become_records():
    columns = {"env_id": [MAZE, None], "fault": [1.0, None], "acc": [None, 0.5], "of_another_size": [1]}
    assert records_of(columns) == [{"env_id": MAZE, "fault": 1.0}, {"acc": 0.5}]


def test_the_error_of_a_step_names_servers_faults_and_tries():
    refused = "GET http://***@10.0.0.1:36001/ could not connect: [Errno 111] Connection refused"
    records = [
        *[record(fault="ServerUnreachable", message=refused, replays=6.0)] * 3,
        record(fault="LeaseLost", message="http://[::1]:8000/step\nlost it", replays=1.0),
        record(
            CRAFT, fault="OSError", message="disk full", env_server="https://a:b@craft.example/x http://c:1"
        ),
    ]
    said = failure_message(records)
    assert said.startswith("None of the 5 episodes of this step could be played")
    assert f"{MAZE} at http://10.0.0.1:36001, http://[::1]:8000: 4 episodes failed" in said
    assert f"ServerUnreachable, 3 times, such as: {refused}" in said
    assert "LeaseLost, 1 times, such as: http://[::1]:8000/step lost it" in said
    assert f"{CRAFT} at http://c:1, https://craft.example: 1 episodes failed" in said
    assert "up to 6 times." in said
    assert "a:b" not in said
    assert failure_message([*records, record()]) == ""
    assert failure_message([]) == ""


def process(sources, uids, infos, **others):
    """Stand in for verl's function: the mean of each prompt's values, then of those of all prompts."""
    values = defaultdict(lambda: defaultdict(list))
    for place, (source, uid) in enumerate(zip(sources, uids, strict=True)):
        for name, column in infos.items():
            values[source, name][uid].append(column[place])
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for (source, name), by_uid in values.items():
        for column in by_uid.values():
            n = len(column)
            found[source][name][f"mean@{n}"].append(math.fsum(column) / n)
            for k in {k for k in (2, 4, n) if 1 < k <= n}:
                found[source][name][f"best@{k}/mean"].append(max(column))
    return {
        source: {
            name: {metric: math.fsum(all_) / len(all_) for metric, all_ in metrics.items()}
            for name, metrics in names.items()
        }
        for source, names in found.items()
    }


def test_a_validation_without_its_faulted_episodes():
    infos = {
        "reward": [1.0, 0.0, 4.0, 0.0, *[2.0] * 4, *[0.0] * 4, 7.0],
        "fault": [0.0, 1.0, 0.0, 0.0, *[0.0] * 4, *[1.0] * 4, 0.0],
    }
    uids = ["a"] * 4 + ["b"] * 4 + ["c"] * 4 + ["d"]
    sources = ["maze"] * 12 + ["craft"]
    found = without_faulted(process, sources, uids, infos)
    means = ((1 + 4 + 0) / 3 + 2) / 2  # of "a" and "b"; of "c" nothing was played
    assert found["maze"]["reward"]["mean@4"] == pytest.approx(means)
    assert found["maze"]["reward"]["best@2/mean"] == 3
    assert found["maze"]["reward"]["best@4/mean"] == 2  # of "b" alone, as of no other four were played
    assert set(found["maze"]["reward"]) == {"mean@4", "best@2/mean", "best@4/mean"}
    assert found["maze"]["fault"]["mean@4"] == pytest.approx((1 / 4 + 0 + 1) / 3)
    assert found["craft"] == {"reward": {"mean@1": 7}, "fault": {"mean@1": 0}}


def test_an_unknown_success_is_in_no_average():
    records = [record(success=math.nan), record(success=1.0), record(CRAFT, success=math.nan)]
    found = by_environment(records)
    assert found[f"env/{MAZE}/success"] == 1.0
    assert f"env/{CRAFT}/success" not in found
    assert found[f"env/{CRAFT}/score"] == 0.0


@pytest.mark.parametrize("faulted", [False, True])
def test_a_validation_in_which_success_is_unknown(faulted):
    nan = math.nan
    infos = {
        "success": [nan, 1.0, nan, 0.0, nan, nan, 1.0, 0.0],
        "reward": [1.0, 1.0, 3.0, 3.0, 5.0, 7.0, 9.0, 9.0],
        "fault": [0.0, 0.0, 0.0, float(faulted), 0.0, 0.0, 0.0, 0.0],
    }
    sources = ["partly"] * 4 + ["never"] * 2 + ["always"] * 2
    uids = ["a", "a", "b", "b", "c", "c", "d", "d"]
    found = without_faulted(process, sources, uids, infos)
    known = {"a": 1.0} if faulted else {"a": 1.0, "b": 0.0}
    assert found["partly"]["success"]["mean@2"] == sum(known.values()) / len(known)
    assert "best@2/mean" not in found["partly"]["success"]  # no two of a prompt are known
    assert found["partly"]["reward"]["mean@2"] == 2.0
    assert found["partly"]["fault"]["mean@2"] == (0.25 if faulted else 0.0)
    assert set(found["never"]) == {"reward", "fault"}
    assert found["never"]["reward"]["mean@2"] == 6.0
    assert found["always"]["success"] == {"mean@2": 0.5, "best@2/mean": 1.0}
    assert not any(
        math.isnan(value) for source in found.values() for each in source.values() for value in each.values()
    )


def test_a_validation_without_faults_is_verls_own():
    given = (["maze"] * 2, ["a", "a"], {"reward": [1.0, 0.0], "fault": [0.0, 0.0]})
    assert without_faulted(process, *given) == process(*given)
    none = (*given[:2], {"reward": [1.0, 0.0]})
    assert without_faulted(process, *none) == process(*none)


@pytest.fixture
def module(monkeypatch):
    """A module of the name of one of verl's, whose functions are the test's to choose."""
    made = ModuleType("verl.trainer.ppo.metric_utils")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def test_a_function_that_is_not_as_expected_is_left_alone(module, caplog):
    module.compute_data_metrics = own = lambda rows, use_critic: {"rows": rows}
    trainer.wrap(module)
    assert module.compute_data_metrics is own
    assert (
        "metric_utils.compute_data_metrics of this verl is not as expected (it has no parameter batch)"
        in caplog.text
    )
    assert (
        "metric_utils.process_validation_metrics of this verl is not as expected (it does not exist)"
        in caplog.text
    )


def test_what_fails_in_the_bridge_ends_no_training(module, caplog):
    module.compute_data_metrics = lambda batch, use_critic=True: {"critic/score/mean": 1.0}
    module.process_validation_metrics = lambda data_sources, sample_uids, infos_dict: {"maze": {}}
    trainer.wrap(module)
    trainer.wrap(module)  # no second time
    with caplog.at_level(logging.WARNING):
        assert module.compute_data_metrics("no batch", use_critic=False) == {"critic/score/mean": 1.0}
        assert module.process_validation_metrics(["maze"], ["a"], {"fault": [1.0, 1.0]}) == {"maze": {}}
    assert caplog.text.count("could not be computed") == 2


def test_a_module_is_wrapped_when_it_is_imported(tmp_path):
    folder = tmp_path / "verl" / "trainer" / "ppo"
    folder.mkdir(parents=True)
    for package in (folder, *list(folder.parents)[:2]):
        (package / "__init__.py").touch()
    (folder / "metric_utils.py").write_text(
        "def compute_data_metrics(batch): return {}\n"
        "def process_validation_metrics(data_sources, sample_uids, infos_dict): return {}\n"
    )
    program = """
        import verl_bridge.trainer
        from verl.trainer.ppo.metric_utils import compute_data_metrics, process_validation_metrics
        print(compute_data_metrics.wrapped_by_verl_bridge, process_validation_metrics.__name__)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["True", "process_validation_metrics"]
    assert done.stderr == ""


def test_the_labels_of_an_episode():
    close_all()

    async def work():
        task = EnvTask("counting_env:bridge/Count-v0", {"server": "http://a:b@c:1"}, {"start": 1}, 7)
        episode = await begin(task)  # which takes no such argument
        await episode.end()
        return labels_of(task, episode.fault)

    found = asyncio.run(work())
    assert "server" in found.pop("fault_message")
    assert Timing.of(found.pop("env_timing")) == Timing()
    assert found == {
        "env_id": "bridge/Count-v0",
        "env_task": '{"start": 1, "seed": 7}',
        "env_server": "http://***@c:1",
        "fault_kind": "WrongArguments",
    }
    assert counting_env.opened == set()


def test_labels_hide_a_password_that_contains_an_at_sign():
    task = EnvTask("bridge/Count-v0", {"server": "http://me:se@cret@c:1/x"}, {"proxy": "https://a:b@cret@d/"})
    labels = labels_of(task, {"kind": "OSError", "message": "http://me:se@cret@c:1 is gone"})
    assert labels["env_server"] == "http://***@c:1/x"
    assert labels["env_task"] == '{"proxy": "https://***@d/"}'
    assert labels["fault_message"] == "http://***@c:1 is gone"


@pytest.mark.slow
def test_retries_are_those_of_the_episode():
    """Of an environment that counts its own since it was made, and is used again."""
    close_all()

    async def retries(kwargs):
        episode = await begin(EnvTask("agentgym_gym:agentgym/Maze-v0", kwargs, {"task_id": 3}))
        await episode.end()
        assert episode.fault is None
        return episode.retries

    async def all_of_them(url):
        return [await retries({"server": url}) for _ in range(5)]

    server = LocalServer("maze")
    try:
        with FaultyProxy(server.start(), 0.4, kinds=["reset"], stages=["reset"], seed=2) as proxy:
            counted = asyncio.run(all_of_them(proxy.url))
            close_all()
            assert sum(counted) == proxy.faults.injected["reset"] > 1
            assert 0 in counted
    finally:
        server.stop()
