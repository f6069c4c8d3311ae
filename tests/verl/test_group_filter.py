"""verl's replay buffer drops groups without signal among their played episodes, and has them replaced."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
import warnings
from types import SimpleNamespace

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))
if importlib.util.find_spec("verl.trainer.ppo.v1") is None:
    pytest.skip("only the trainer of verl 0.9 replaces groups", allow_module_level=True)

import ray
import torch
import transfer_queue as tq
from omegaconf import OmegaConf

from verl_bridge import trainer

trainer.install()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what verl and Ray warn of then is not ours to mend
    verl_buffers = importlib.import_module("verl.trainer.ppo.v1.replay_buffer")
    tensordicts = importlib.import_module("verl.utils.tensordict_utils")
ReplayBuffer, ReplayBufferAsync = verl_buffers.ReplayBuffer, verl_buffers.ReplayBufferAsync

BATCH = 2
FAULT = None
MOST = 64
"""Groups in a row without a played episode that end a run."""


@pytest.fixture(scope="module", autouse=True)
def _queue():
    """verl's real queue, in processes of Ray."""
    ray.init(num_cpus=8, include_dashboard=False, logging_level="ERROR")
    tq.init(OmegaConf.create({"backend": {"SimpleStorage": {"num_data_storage_units": 1}}}))
    yield
    tq.close()
    ray.shutdown()


class Rollout:
    """Finishes the groups that a buffer asks for at once, with prepared scores."""

    def __init__(self, kind=ReplayBuffer, *, metric="reward", turns=1):
        self.turns, self.groups, self.asked = turns, {}, []
        self.prepared = iter(())
        self._names = (f"g{number}" for number in itertools.count())
        kwargs = {"train_batch_size": BATCH, "gen_batch_size": 1} if kind is ReplayBuffer else {}
        self.buffer = kind(
            trainer_mode="sync" if kind is ReplayBuffer else "colocate_async",
            trainer_config=OmegaConf.create({}),
            max_off_policy_threshold=8,
            max_off_policy_strategy="drop",
            sampler_kwargs=OmegaConf.create({}),
            poll_interval=0.01,
            refill_fn=self._refill,
            filter_groups_metric=metric,
            **kwargs,
        )

    def play(self, *groups):
        """Put groups of episodes with these scores into the queue."""
        for scores in groups:
            name = next(self._names)
            self.groups[name] = scores
            rows = [row for score in scores for row in self._rows(score)]
            keys = [
                f"{name}_{session}_{turn}"
                for session, score in enumerate(scores)
                for turn in range(self._turns(score))
            ]
            tags = [{"status": "success"} for _ in keys]
            fields = tensordicts.list_of_dict_to_tensordict(rows)
            tq.kv_batch_put(keys=keys, partition_id="train", fields=fields, tags=tags)
            tag = {"is_prompt": True, "status": "finished", "global_steps": 1}
            tq.kv_batch_put(keys=[name], partition_id="train", tags=[tag])

    def _turns(self, score):
        """A faulted episode has one row; others have more turns the lower their score is."""
        return 1 if score is FAULT or self.turns == 1 else self.turns + (score < 1)

    def _rows(self, score):
        record = {"return": score or 0.0, "success": float(score == 1), "fault": float(score is FAULT)}
        record |= {"env_id": "test/Guessing-v0", "fault_kind": "Timeout" if score is FAULT else ""}
        row = {
            "rm_scores": torch.tensor([0.0, score or 0.0]),
            "extra_fields": {"reward_extra_info": record},
        }
        return [dict(row) for _ in range(self._turns(score))]

    def _refill(self, number):
        self.asked.append(number)
        self.play(*itertools.islice(self.prepared, number))
        return number

    def sample(self, *groups, then=()):
        """Return the scores of the groups in a batch, and the metrics of the filter.

        Args:
            groups: Scores of the episodes of the first groups.
            then: Scores of the groups that are played when the buffer asks for more.
        """
        self.prepared = iter(then)
        self.play(*groups)
        try:
            batch, metrics = self.buffer.sample(global_steps=1, partition_id="train", batch_size=BATCH)
            taken = dict.fromkeys(key.split("_")[0] for key in batch.keys)
            return [self.groups[name] for name in taken], metrics
        finally:
            tq.kv_clear(keys=[*tq.kv_list("train").get("train", {})], partition_id="train")

    def metrics(self):
        """Return what the trainer adds to the metrics of a step."""
        metrics = {"env/lost_groups": 0.0}
        base = SimpleNamespace(replay_buffer=self.buffer)
        empty = SimpleNamespace(keys=[], tags=[], partition_id="train")
        arguments = {"self": base, "batch": empty, "metrics": metrics}
        trainer._step_metrics(None, arguments, lambda: None)
        return metrics


KINDS = pytest.mark.parametrize("kind", [ReplayBuffer, ReplayBufferAsync])
WITHOUT = [(1, 1, 1, FAULT), (0, 0, 0, 0), (0.1, 0.1, 0.1, FAULT), (1, FAULT, FAULT, FAULT), (FAULT,) * 4]
WITH = [(1, 0, FAULT, FAULT), (1, 0, 0, 0), (0.5, 0.25, FAULT, 0.5)]


@KINDS
@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("scores", WITHOUT, ids=str)
def test_a_group_without_signal_is_replaced(kind, turns, scores):
    rollout = Rollout(kind, turns=turns)
    taken, _ = rollout.sample((1, 0, 1, 0), scores, then=[WITH[0], WITH[1]])
    assert scores not in taken
    assert len(taken) == BATCH
    replaced = 2 if kind is ReplayBuffer else 1  # verl's synchronous trainer starts two for one
    assert sum(rollout.asked) == replaced
    lost = sum(score is not FAULT for score in scores) < 2
    known = {} if lost else {"env/dropped_groups_score": scores[0]}
    assert rollout.metrics() == {
        "env/dropped_groups": 1,
        "env/refilled_groups": replaced,
        "env/lost_groups": lost,
        **{name: pytest.approx(score) for name, score in known.items()},
    }


@KINDS
@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("scores", WITH, ids=str)
def test_a_group_with_signal_is_kept(kind, turns, scores):
    rollout = Rollout(kind, turns=turns)
    taken, metrics = rollout.sample((1, 0, 1, 0), scores)
    assert sorted(map(str, taken)) == sorted(map(str, [(1, 0, 1, 0), scores]))
    assert (rollout.asked, metrics) == ([], {})
    assert rollout.metrics() == {"env/dropped_groups": 0, "env/refilled_groups": 0, "env/lost_groups": 0}


@KINDS
def test_a_group_of_one_is_only_dropped_for_a_fault(kind):
    """As with an estimator that compares no samples."""
    rollout = Rollout(kind)
    taken, _ = rollout.sample((1,), (FAULT,), then=[(0,), (0,)])
    assert (FAULT,) not in taken
    assert rollout.metrics()["env/dropped_groups"] == 1


@pytest.mark.parametrize("turns", [1, 3])
def test_all_rows_of_a_kept_group_are_in_the_batch(turns):
    """The rows that are hidden from the filter are still trained with."""
    rollout = Rollout(turns=turns)
    rollout.play(WITH[0], WITH[1])
    batch, _ = rollout.buffer.sample(global_steps=1, partition_id="train", batch_size=BATCH)
    tq.kv_clear(keys=list(batch.keys), partition_id="train")
    expected = sum(rollout._turns(score) for group in (WITH[0], WITH[1]) for score in group)
    assert len(batch.keys) == expected > 2


def test_another_number_of_the_episodes_can_be_the_metric():
    """Here the returns differ, and nobody succeeds."""
    rollout = Rollout(ReplayBufferAsync, metric="success")
    taken, _ = rollout.sample((1, 0, 0, 0), (0.5, 0.25, 0, FAULT), then=[(1, 1, 0, 0)])
    assert sorted(taken) == [(1, 0, 0, 0), (1, 1, 0, 0)]


def test_metrics_are_those_since_the_last_step():
    rollout = Rollout(ReplayBufferAsync)
    rollout.sample((1, 1, 1, 1), (0, 0, 0, 0), then=[(0, 0, 0, FAULT), WITH[0], WITH[1]])
    expected = {"env/dropped_groups": 3, "env/refilled_groups": 3, "env/lost_groups": 0}
    assert rollout.metrics() == {**expected, "env/dropped_groups_score": pytest.approx(1 / 3)}
    rollout.sample(WITH[0], WITH[1])
    assert rollout.metrics() == dict.fromkeys(expected, 0)


@KINDS
def test_a_run_without_played_episodes_ends_with_the_reason(kind):
    """verl would replace the groups indefinitely."""
    rollout = Rollout(kind)
    faulted = itertools.repeat((FAULT,) * 4)
    with pytest.raises(trainer.NothingPlayed, match="could be played"):
        rollout.sample((FAULT,) * 4, (FAULT,) * 4, then=faulted)
    assert MOST < sum(scores == (FAULT,) * 4 for scores in rollout.groups.values()) < 2 * MOST


@KINDS
def test_a_played_episode_between_faulted_groups_continues(kind):
    rollout = Rollout(kind)
    groups = [(0, FAULT, FAULT, FAULT) if number % 50 == 0 else (FAULT,) * 4 for number in range(3 * MOST)]
    taken, _ = rollout.sample(*groups[:BATCH], then=[*groups[BATCH:], *[(1, 0, 0, 0)] * 400])
    assert taken == [(1, 0, 0, 0)] * BATCH


def test_a_warning_is_logged_if_many_groups_in_a_row_have_no_signal(caplog):
    rollout = Rollout(ReplayBufferAsync)
    unsolved = [(0, 0, 0, 0)] * (MOST + 3)
    rollout.sample(*unsolved[:BATCH], then=[*unsolved[BATCH:], WITH[0], WITH[1]])
    (record,) = (each for each in caplog.records if "groups in a row have no signal" in each.message)
    assert record.levelname == "WARNING"
    caplog.clear()
    rollout.sample((0, 0, 0, 0), WITH[0], then=[WITH[1]])
    assert not [each for each in caplog.records if "in a row" in each.message]


def test_a_buffer_without_the_filter_keeps_every_group():
    rollout = Rollout(metric=None)
    taken, _ = rollout.sample((1, 1, 1, 1), (0, 0, FAULT, 0))
    assert {*taken} == {(1, 1, 1, 1), (0, 0, FAULT, 0)}
    assert rollout.metrics() == {"env/lost_groups": 0}


def test_the_score_of_a_group_without_played_episodes_is_unknown():
    rollout = Rollout(ReplayBufferAsync)
    rollout.play((FAULT,) * 4, (1, FAULT, FAULT, FAULT), (0, 0, 0, FAULT))
    rollout.buffer._sync_metadata_from_transfer_queue()
    names, scores = rollout.buffer._dapo_filtered_keys("train")
    tq.kv_clear(keys=[*tq.kv_list("train")["train"]], partition_id="train")
    assert len(names) == 3
    assert scores[0.0] == 1
    assert sum(count for score, count in scores.items() if math.isnan(score)) == 2
