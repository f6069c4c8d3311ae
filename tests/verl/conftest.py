"""Fixtures of the tests with verl: without it they are skipped, saying so."""

from __future__ import annotations

import functools
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import agentgym_gym.rollout
import inside_bridge

if importlib.util.find_spec("verl") is not None:
    with warnings.catch_warnings():
        # Imported once and here: what verl and Ray warn of then is not ours to mend.
        warnings.simplefilter("ignore")
        import verl.experimental.agent_loop  # noqa: F401


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes the folder of a tiny random model with a tokenizer of a given template."""
    from verl_worker import make_model

    @functools.cache
    def make(template: str) -> Path:
        folder = tmp_path_factory.mktemp(template)
        make_model(template, folder)
        return folder

    return make


@pytest.fixture
def tokenizer(model_folder: Callable[[str], Path]) -> Callable[..., Any]:
    from verl_worker import AutoTokenizer

    return lambda template="chatml": AutoTokenizer.from_pretrained(model_folder(template))


@pytest.fixture
def play(model_folder: Callable[[str], Path], tmp_path: Path) -> Callable[..., Any]:
    """Plays rows, mappings of ``interaction_kwargs``, in verl's own worker."""
    import verl_worker

    return functools.partial(verl_worker.play, model_folder, tmp_path)


@pytest.fixture(autouse=True)
def _by_itself(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test a log in which nothing was said yet, and no environment of another."""
    inside_bridge.forget_logged_retries(monkeypatch)
    yield
    agentgym_gym.rollout.close_all()


@pytest.fixture(scope="module")
def compute() -> Callable[..., Any]:
    """verl's function as the trainer calls it, with the wrapper."""
    from verl_bridge import trainer

    trainer.install()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of engines that are not installed
        from verl.trainer.ppo import ray_trainer

    assert ray_trainer.compute_advantage.wrapped_by_verl_bridge
    return ray_trainer.compute_advantage
