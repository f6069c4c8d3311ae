"""The pauses and limits of `verl_bridge` that tests make smaller, reached for here and nowhere else."""

from __future__ import annotations

import importlib
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pytest


def call_steps_slow_from(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Have `check` warn of a step that takes so long."""
    from verl_bridge.recipes import _check_episodes

    monkeypatch.setattr(_check_episodes, "SLOW_STEP", seconds)


def forget_logged_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the log begin with a line for each kind of fault, as in a new process."""
    from verl_bridge._run import replays

    monkeypatch.setattr(replays, "_replay_log", replays._ReplayLog())


def retry_episodes_after(monkeypatch: pytest.MonkeyPatch, first: float, most: float) -> None:
    """Set the seconds before the first retry of a faulted episode, and the most before a later one."""
    from verl_bridge._run import replays

    monkeypatch.setattr(replays, "FIRST_WAIT", first)
    monkeypatch.setattr(replays, "MAX_WAIT", most)
    forget_logged_retries(monkeypatch)


def sum_up_retries_after(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the seconds between two summaries of retries in the log."""
    from verl_bridge._run import replays

    monkeypatch.setattr(replays, "LOG_SECONDS", seconds)


def forget_session() -> None:
    """Have the next episode that is written ask Ray for the job again."""
    from verl_bridge._run import episode_log

    episode_log.session.cache_clear()


def forget_cut_episodes(monkeypatch: pytest.MonkeyPatch, play: Any, every: int = 256) -> None:
    """Have the first episode that is cut off warned of, and later ones after so many episodes.

    Args:
        monkeypatch: The fixture.
        play: A method of the agent loop, or of the interaction.
        every: Episodes between two warnings.
    """
    from verl_bridge._tokens.observations import CutEpisodes

    monkeypatch.setitem(play.__globals__, "_cut_episodes", CutEpisodes(every))


def freeze_imports_again() -> None:
    """Have the next episode freeze the imports, as the first of a process does."""
    importlib.import_module("verl_bridge.agent_loop")._freeze_imports.cache_clear()


def note_encoded_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the texts that are encoded with escaped control tokens from now on."""
    from verl_bridge._tokens import control

    texts: list[str] = []
    encode = control.ControlTokens.encode

    def noted(self: Any, text: str) -> Any:
        texts.append(text)
        return encode(self, text)

    monkeypatch.setattr(control.ControlTokens, "encode", noted)
    return texts


def compose_by(monkeypatch: pytest.MonkeyPatch, run: Callable[..., Any]) -> None:
    """Have `check` start the process in which verl composes settings by this in place of `subprocess.run`."""
    from verl_bridge.recipes import _check_settings

    started_by = SimpleNamespace(run=run, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(_check_settings, "subprocess", started_by)


def take_composed(monkeypatch: pytest.MonkeyPatch, composed: Mapping[Path, Any]) -> None:
    """Have `check` take what one process made of many folders, since importing verl takes long.

    Args:
        monkeypatch: The fixture.
        composed: What `verl_run.compose` returned for each folder.
    """
    from verl_bridge.recipes import _check_settings

    monkeypatch.setattr(_check_settings, "compose_apart", lambda folder, _: composed[folder])
