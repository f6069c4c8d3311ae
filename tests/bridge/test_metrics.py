"""Metrics and the error of a step: what is added to verl's functions, for replaced ones, without verl."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from collections import defaultdict

import pytest

import counting_env
import forked
from agentgym_gym.local_servers import LocalServer
from agentgym_gym.rollout import close_all
from agentgym_gym.testing import FaultyProxy
from loop_without_verl import play, record_of, row_of
from task_play import begin
from verl_bridge import trainer
from verl_bridge.tasks import EnvTask
from verl_bridge.trainer import NothingPlayed
from verl_functions import METRICS, RAY_TRAINER, Batch, metrics_of, wrapped

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


@pytest.fixture
def by_environment(monkeypatch):
    """Returns the metrics of a training step with some records."""
    return lambda records: metrics_of(monkeypatch, records)


@pytest.fixture
def of_validation(monkeypatch):
    """Returns the metrics of a validation with some records."""

    class RayPPOTrainer:
        def _val_metrics_update(self, reward_extra_infos_dict):
            return {}

    module = wrapped(monkeypatch, RAY_TRAINER, RayPPOTrainer=RayPPOTrainer)

    def metrics(records):
        columns = {name: list(column) for name, column in Batch(records).non_tensor_batch.items()}
        return module.RayPPOTrainer()._val_metrics_update(columns)

    return metrics


def test_the_metrics_of_each_environment(by_environment, of_validation):
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
    assert of_validation(records)[f"val-env/{CRAFT}/episodes"] == 1


def test_an_environment_that_was_not_played_has_no_averages(by_environment):
    found = by_environment([record(fault="LeaseLost")])
    assert found[f"env/{MAZE}/faults"] == 1
    assert not {f"env/{MAZE}/{name}" for name in ("success", "score", "turns")} & set(found)


def test_other_agents_results_are_skipped(by_environment, fail):
    assert by_environment([{"score": 1.0}, {}, record(env_id="")]) == {}
    assert by_environment([{"score": 1.0}]) == {}
    fail([{"score": 1.0}, record(fault="LeaseLost")])


def test_a_kind_of_fault_may_be_anything(by_environment):
    found = by_environment([record(fault="no/such thing\n" * 20), record(fault="")])
    (kind,) = [name for name in found if "/fault/" in name]
    assert kind.startswith(f"env/{MAZE}/fault/no_such_thing_")
    assert len(kind) < 100


def test_any_number_of_a_record_becomes_a_mean(by_environment):
    """Over the episodes that were played: verl's own `reward` is 0 in a faulted one."""
    played = [record(cut=1.0, reward=2.0), record(cut=0.0, reward=3, note="text")]
    found = by_environment([*played, record(fault="LeaseLost", cut=0.0, reward=0.0)])
    assert (found[f"env/{MAZE}/cut"], found[f"env/{MAZE}/reward"]) == (0.5, 2.5)
    assert f"env/{MAZE}/note" not in found


def test_validations_of_different_size_compare(of_validation):
    """All but the counts, which grow with the number of episodes."""
    records = [
        record(success=1.0, reward=3.0, cut=1.0, retries=1.0, replays=1.0, **{"return": 3.0}),
        record(success=0.0, reward=1.0, cut=0.0, retries=0.0, **{"return": 1.0}),
        record(fault="LeaseLost", reward=0.0, cut=0.0, retries=2.0),
    ]
    one, four = (of_validation(records * times) for times in (1, 4))
    counts = {"episodes", "faults", "fault/LeaseLost", "retries", "replays"}
    at = f"val-env/{MAZE}/"
    assert {name for name in one if four[name] != one[name]} == {at + name for name in counts}
    assert all(four[at + name] == 4 * one[at + name] for name in counts)
    assert one[f"{at}reward"] == 2.0


def test_a_number_of_verl_s_own_does_not_take_the_place_of_an_average(by_environment):
    """The scorer of an interaction returns the return as `score` too."""
    records = [record(score=value + 5, **{"return": value}) for value in (1.0, 3.0)]
    assert by_environment(records)[f"env/{MAZE}/score"] == 2.0


def test_a_row_without_a_number_and_a_column_of_another_size_are_left_out(of_validation, monkeypatch):
    found = of_validation([record(), {"acc": 0.5}])
    assert (found[f"val-env/{MAZE}/episodes"], f"val-env/{MAZE}/acc" in found) == (1, False)
    module = sys.modules[RAY_TRAINER]
    columns = {"env_id": [MAZE, None], "fault": [1.0, None], "of_another_size": [1]}
    assert module.RayPPOTrainer()._val_metrics_update(columns)[f"val-env/{MAZE}/faults"] == 1


@pytest.fixture
def fail(monkeypatch):
    """Begins the update of a training step with some records."""
    module = wrapped(monkeypatch, "verl.trainer.ppo.reward", extract_reward=lambda batch: None)
    return lambda records, **meta: module.extract_reward(Batch(records, **meta))


def test_the_error_of_a_step_names_servers_faults_and_tries(fail):
    refused = "GET http://***@10.0.0.1:36001/ could not connect: [Errno 111] Connection refused"
    records = [
        *[record(fault="ServerUnreachable", message=refused, replays=6.0)] * 3,
        record(fault="LeaseLost", message="http://[::1]:8000/step\nlost it", replays=1.0),
        record(
            CRAFT, fault="OSError", message="disk full", env_server="https://a:b@craft.example/x http://c:1"
        ),
    ]
    with pytest.raises(NothingPlayed, match="None of the 5 episodes") as failed:
        fail(records)
    for text in (
        f"{MAZE} at http://10.0.0.1:36001, http://[::1]:8000: 4 episodes failed",
        f"ServerUnreachable, 3 times, such as: {refused}",
        "LeaseLost, 1 times, such as: http://[::1]:8000/step lost it",
        f"{CRAFT} at http://c:1, https://craft.example: 1 episodes failed",
        "up to 6 times.",
    ):
        assert text in str(failed.value)
    assert "a:b" not in str(failed.value)
    fail([*records, record()])
    fail(records, validate=True)
    fail([])


def process(data_sources, sample_uids, infos_dict, **others):
    """Stand in for verl's function: the mean of each prompt's values, then over all prompts."""
    values = defaultdict(lambda: defaultdict(list))
    for place, (source, uid) in enumerate(zip(data_sources, sample_uids, strict=True)):
        for name, column in infos_dict.items():
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


@pytest.fixture
def without_faulted(monkeypatch):
    """verl's function, wrapped."""
    return wrapped(monkeypatch, METRICS, process_validation_metrics=process).process_validation_metrics


def test_a_validation_without_its_faulted_episodes(without_faulted):
    infos = {
        "reward": [1.0, 0.0, 4.0, 0.0, *[2.0] * 4, *[0.0] * 4, 7.0],
        "fault": [0.0, 1.0, 0.0, 0.0, *[0.0] * 4, *[1.0] * 4, 0.0],
    }
    uids = ["a"] * 4 + ["b"] * 4 + ["c"] * 4 + ["d"]
    sources = ["maze"] * 12 + ["craft"]
    found = without_faulted(sources, uids, infos)
    means = ((1 + 4 + 0) / 3 + 2) / 2  # of "a" and "b"; of "c" nothing was played
    assert found["maze"]["reward"]["mean@4"] == pytest.approx(means)
    assert found["maze"]["reward"]["best@2/mean"] == 3
    assert found["maze"]["reward"]["best@4/mean"] == 2  # only of "b": of no other four were played
    assert set(found["maze"]["reward"]) == {"mean@4", "best@2/mean", "best@4/mean"}
    assert found["maze"]["fault"]["mean@4"] == pytest.approx((1 / 4 + 0 + 1) / 3)
    assert found["craft"] == {"reward": {"mean@1": 7}, "fault": {"mean@1": 0}}


def test_an_unknown_success_is_in_no_average(by_environment):
    records = [record(success=math.nan), record(success=1.0), record(CRAFT, success=math.nan)]
    found = by_environment(records)
    assert found[f"env/{MAZE}/success"] == 1.0
    assert f"env/{CRAFT}/success" not in found
    assert found[f"env/{CRAFT}/score"] == 0.0


@pytest.mark.parametrize("faulted", [False, True])
def test_a_validation_in_which_success_is_unknown(without_faulted, faulted):
    nan = math.nan
    infos = {
        "success": [nan, 1.0, nan, 0.0, nan, nan, 1.0, 0.0],
        "reward": [1.0, 1.0, 3.0, 3.0, 5.0, 7.0, 9.0, 9.0],
        "fault": [0.0, 0.0, 0.0, float(faulted), 0.0, 0.0, 0.0, 0.0],
    }
    sources = ["partly"] * 4 + ["never"] * 2 + ["always"] * 2
    uids = ["a", "a", "b", "b", "c", "c", "d", "d"]
    found = without_faulted(sources, uids, infos)
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


def test_a_validation_without_faults_is_verls_own(without_faulted):
    given = (["maze"] * 2, ["a", "a"], {"reward": [1.0, 0.0], "fault": [0.0, 0.0]})
    assert without_faulted(*given) == process(*given)
    none = (*given[:2], {"reward": [1.0, 0.0]})
    assert without_faulted(*none) == process(*none)


def test_an_unexpected_function_is_not_replaced(monkeypatch, caplog):
    own = lambda rows, use_critic: {"rows": rows}  # noqa: E731
    assert wrapped(monkeypatch, METRICS, compute_data_metrics=own).compute_data_metrics is own
    for name, reason in (
        ("compute_data_metrics", "it has no parameter batch"),
        ("process_validation_metrics", "it does not exist"),
    ):
        assert f"metric_utils.{name} of this verl is not as expected ({reason})" in caplog.text


def test_an_error_in_the_metrics_does_not_end_the_training(monkeypatch, caplog):
    functions = {
        "compute_data_metrics": lambda batch, use_critic=True: {"critic/score/mean": 1.0},
        "process_validation_metrics": lambda data_sources, sample_uids, infos_dict: {"maze": {}},
    }
    module = wrapped(monkeypatch, METRICS, **functions)
    trainer.install()  # no second time
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
        import sys
        sys.path.insert(0, sys.argv[1])
        import verl_bridge.trainer
        from verl.trainer.ppo.metric_utils import compute_data_metrics, process_validation_metrics
        print(compute_data_metrics.wrapped_by_verl_bridge, process_validation_metrics.__name__)
    """
    done = forked.run(program, tmp_path)
    assert done.stdout.split() == ["True", "process_validation_metrics"]
    assert done.stderr == ""


@pytest.mark.parametrize("server", ["http://a:b@c:1", "http://me:se@cret@c:1/x"])
def test_the_labels_of_an_episode_hide_passwords(server):
    """Also one that contains an at sign."""
    options = {"start": 1, "proxy": "https://a:b@cret@d/"}
    row = row_of("counting_env:bridge/Count-v0", {"server": server}, options, seed=7)
    found = record_of(asyncio.run(play(row)))  # the environment takes no server
    close_all()
    assert {name: found[name] for name in ("env_id", "env_task", "env_server", "fault_kind")} == {
        "env_id": "bridge/Count-v0",
        "env_task": '{"start": 1, "proxy": "https://***@d/", "seed": 7}',
        "env_server": "http://***@c:1" + "/x" * server.endswith("/x"),
        "fault_kind": "WrongArguments",
    }
    assert "server" in found["fault_message"]
    assert counting_env.opened == set()


def test_the_message_of_a_fault_hides_passwords():
    row = row_of("nasty_envs:nasty/Fails-v0", {"text": "http://me:se@cret@c:1 is gone"})
    found = record_of(asyncio.run(play(row)))
    close_all()
    assert found["fault_message"] == "http://***@c:1 is gone"


@pytest.mark.slow
def test_retries_are_counted_per_episode():
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
