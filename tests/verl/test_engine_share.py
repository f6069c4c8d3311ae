"""GPUs that only generate have their own share of memory for the engine, in verl 0.9."""

from __future__ import annotations

import asyncio
from importlib import metadata
from types import SimpleNamespace

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

from hydra import compose, initialize_config_module

import verl_bridge.trainer  # noqa: F401 - wraps verl's functions at their import

pytestmark = pytest.mark.skipif(
    not metadata.version("verl").startswith("0.9."), reason="verl has separate_async from 0.9 on"
)

SHARE, SEPARATE = 0.55, 0.85


class Replica:
    """In place of an engine: keeps the configuration that it is started with."""

    def __init__(self, *, config, replica_rank, **_):
        self.share, self.length = config.gpu_memory_utilization, config.response_length
        self._server_handle, self._server_address = None, str(replica_rank)

    async def init_hybrid(self, _):
        pass

    async def init_standalone(self):
        pass


@pytest.fixture
def config():
    settings = [
        "actor_rollout_ref.rollout.name=vllm",
        "actor_rollout_ref.rollout.nnodes=1",
        "actor_rollout_ref.rollout.n_gpus_per_node=4",
        f"actor_rollout_ref.rollout.gpu_memory_utilization={SHARE}",
        "data.max_response_length=77",
    ]
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", settings)


def shares(config, worker_group=None):
    """The engines' shares with verl's own manager, of which only the engines are replaced."""
    from verl.workers.rollout.llm_server import LLMServerManager

    class Manager(LLMServerManager):
        rollout_replica_class = Replica

    manager = Manager(config, worker_group=worker_group)
    asyncio.run(manager._initialize_llm_servers())
    assert {replica.length for replica in manager.rollout_replicas} == {77}
    return {replica.share for replica in manager.rollout_replicas}


def test_only_engines_on_gpus_of_their_own_have_it(config):
    from omegaconf import open_dict

    with open_dict(config):
        config.actor_rollout_ref.rollout.standalone_gpu_memory_utilization = SEPARATE
    assert shares(config) == {SEPARATE}
    assert shares(config, SimpleNamespace(world_size=4)) == {SHARE}
    assert config.actor_rollout_ref.rollout.gpu_memory_utilization == SHARE


def test_without_the_setting_all_engines_have_the_same(config):
    assert shares(config) == {SHARE}
