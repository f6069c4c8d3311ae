"""Fixtures for the tests with inspect_ai."""

from __future__ import annotations

import json

import pytest

from report_runs import episode


@pytest.fixture
def record():
    """Makes a record out of what matters in a test."""

    def make(task_id=0, sample=0, *, score=1.0, fault=None, agent_fault=None, **others):
        fields = {
            "agent": "some-model",
            "sample": sample,
            "goal": f"goal {task_id}",
            "score": score,
            "truncated": fault is not None,
            "fault": {"kind": fault, "message": "the server failed"} if fault else None,
            "agent_fault": {"kind": agent_fault, "message": "the model failed"} if agent_fault else None,
            "rewards": (0.0, score),
            "messages": (
                {"role": "user", "content": f"Goal: goal {task_id}."},
                {"role": "assistant", "content": f"get 1 stick ({task_id}, {sample})"},
                {"role": "user", "content": "Got 1 stick"},
                {"role": "assistant", "content": "craft it"},
                {"role": "user", "content": "Crafted it"},
            ),
        }
        return episode(task_id, **{**fields, **others})

    return make


@pytest.fixture
def folder(tmp_path):
    """Writes the folder of a run."""

    def write(records, name="run", **facts):
        path = tmp_path / "runs" / name
        path.mkdir(parents=True)
        lines = [json.dumps(record.to_json()) + "\n" for record in records]  # lone surrogates are escaped
        (path / "episodes.jsonl").write_text("".join(lines), "utf-8")
        run = {
            "env_id": "agentgym/TextCraft-v0",
            "agent": "some-model",
            "tasks": "0:2",
            "samples": 2,
            "seed": 0,
            "options": {"action_format": "react", "max_turns": 20},
            "system_prompt": "You are playing a game.",
            "versions": {"python": "3.11.7", "agentgym-gym": "0.1.0", "textcraft": None},
            "git": {"commit": "0123abc", "dirty": True},
            "finished": True,
            "written": "2026-11-20T12:00:10+00:00",
            "wall_seconds": 10.0,
            **facts,
        }
        (path / "summary.json").write_text(json.dumps({"run": run}), "utf-8")
        return path

    return write
