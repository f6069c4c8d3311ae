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
import forked
import inside_bridge

LONGEST = [
    Path(__file__).with_name(f"test_{name}.py")
    for name in ("training", "trainer", "sft", "check", "aborts", "recipes")
]


def pytest_configure(config: pytest.Config) -> None:
    """Import verl, once and before any test; not in a process that only hands tests to others."""
    hands_out = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if hands_out or importlib.util.find_spec("verl") is None:
        return
    with warnings.catch_warnings():
        # What verl and Ray warn of then is not ours to mend.
        warnings.simplefilter("ignore")
        importlib.import_module("verl.experimental.agent_loop")
    forked.keep()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no process waits for another at the end."""
    items.sort(key=lambda item: LONGEST.index(item.path) if item.path in LONGEST else len(LONGEST))


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
    """Give each test a log in which nothing was said yet, no environment of another, and a quick `check`."""
    inside_bridge.forget_logged_retries(monkeypatch)
    inside_bridge.compose_by(monkeypatch, forked.run_module)
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
