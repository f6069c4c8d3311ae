"""Runs as the tests of the report need them: written without being played."""

from __future__ import annotations

import json
import random
from pathlib import Path

from agentgym_gym.evaluate import EpisodeRecord

SYLLABLES = ("ba", "co", "di", "en", "fu", "ga", "hi", "jo", "ka", "le", "mi", "no", "pu", "ri", "so", "tu")
WORDS = [first + second for first in SYLLABLES for second in SYLLABLES]
WORDS += [first + second + third for first in SYLLABLES[:8] for second in SYLLABLES for third in SYLLABLES]

HOSTILE = {
    "script": "<script>alert('observation')</script>",
    "end of script": "</script><script>alert(1)</script>",
    "comment": "<!-- --> <!--<script> --!>",
    "image": '<img src=x onerror="alert(2)"><svg onload=alert(3)>',
    "link": "<a href='javascript:alert(4)'>go</a> <iframe src=//example.com></iframe>",
    "attributes": "\" onmouseover='alert(5)' x=\"",
    "entities": "&lt;b&gt; &#60;script&#62; &amp;",
    "template": "{{policy}} ${alert(6)} `alert(7)`",
    "bidi": "safe\u202etxt.exe\u202c \u2067rtl\u2069",
    "hebrew": "שלום world",
    "separators": "a\u2028b\u2029c",
    "controls": "nul\x00 escape\x1b[31mred\x1b[0m bell\x07 return\ronly",
    "zero width": "pass\u200bword\u2060 \ufeffx soft\u00adhyphen",
    "tags": "".join(chr(0xE0000 + ord(letter)) for letter in "ignore"),
    "surrogates": "low \udc00 high \ud800 end",
    "emoji": "👩\u200d🔬 👍🏽",
    "empty": "",
}


def episode(task=0, *, agent="someone", score=1.0, fault=None, agent_fault=None, turns=2, **others):
    """Return a record; what is not given is as in an episode that went well.

    A fault may be named by its kind.
    """
    if isinstance(fault, str):
        fault = {"kind": fault, "message": "it failed"}
    scored = fault is None and agent_fault is None
    messages = [{"role": "user", "content": f"observation 0 of task {task}"}]
    for turn in range(turns):
        messages.append({"role": "assistant", "content": f"reply {turn} of task {task}"})
        messages.append({"role": "user", "content": f"observation {turn + 1} of task {task}"})
    fields = {
        "env_id": "agentgym/TextCraft-v0",
        "agent": agent,
        "task_id": task,
        "goal": f"craft item {task}",
        "score": score if scored else None,
        "success": score == 1.0 if scored else None,
        "return_": score if scored else 0.0,
        "turns": turns,
        "terminated": scored,
        "truncated": not scored,
        "parse_errors": {},
        "fault": fault,
        "agent_fault": agent_fault,
        "seconds": 2.5,
        "rewards": (*[0.0] * (turns - 1), score)[:turns],
        "messages": tuple(messages),
    }
    return EpisodeRecord(**{**fields, **others})


def write_run(folder: Path, records, **facts) -> Path:
    """Write the folder of a run."""
    folder.mkdir(parents=True)
    with (folder / "episodes.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record.to_json()) + "\n" for record in records)
    (folder / "summary.json").write_text(json.dumps({"run": facts}), "utf-8")
    return folder


def rich_episodes(agent, drawn: random.Random, tasks=24, samples=4):
    """Yield episodes with all that a record may hold, of every outcome."""
    for task in range(tasks):
        skill = drawn.random()
        for sample in range(samples):
            yield _rich(agent, task, sample, skill, drawn)


def _rich(agent, task, sample, skill, drawn):
    turns = drawn.randint(2, 9)
    steps = []
    for turn in range(turns):
        step = {
            "action": f"get {turn + 1} oak log",
            "agent_seconds": drawn.uniform(0.2, 3),
            "env_seconds": drawn.uniform(0.01, 0.4),
            "prompt_tokens": 300 + 90 * turn,
            "completion_tokens": drawn.randint(20, 120),
            "cached_tokens": 80 * turn,
            "finish_reason": "stop",
        }
        if turn == 0:
            step |= {"reasoning": "First I need logs.\nThen planks.", "reasoning_tokens": 12}
        if turn == 1:
            step |= {"action": None, "parse_error": "NoAction", "retries": 2, "finish_reason": "length"}
        if turn == turns - 1:
            call = {"name": "get", "arguments": '{"item": "oak log", "count": 1}', "id": "call_7"}
            step |= {"tool_calls": [call]}
        steps.append(step)
    at = drawn.random()
    more = {"steps": tuple(steps), "sample": sample, "parse_errors": {"NoAction": 1}, "turns": turns}
    more |= {"agent_seconds": sum(s["agent_seconds"] for s in steps)}
    more |= {"env_seconds": sum(s["env_seconds"] for s in steps)}
    more |= {"seconds": more["agent_seconds"] + more["env_seconds"] + 0.3}
    if at < 0.03:
        return episode(
            task, agent=agent, fault={"kind": "ServerTimeout", "message": "no reply within 60 s"}, **more
        )
    if at < 0.06:
        return episode(
            task, agent=agent, agent_fault={"kind": "ModelBusy", "message": "HTTP 429 for 300 s"}, **more
        )
    if drawn.random() < skill:
        return episode(task, agent=agent, **more)
    score = drawn.choice([0.0, 0.0, 0.5])
    ending = drawn.choice(["terminated", "truncated", "gave_up", "context_overflow", "reply_cut"])
    flags = {"terminated": ending == "terminated", "truncated": ending == "truncated"}
    return episode(task, agent=agent, score=score, ending=ending, **flags, **more)


def large_run(folder: Path, episodes=5000, turns=20, characters=500) -> Path:
    """Write a run of many episodes; `characters` is the length of a turn: its observation and its reply."""
    drawn = random.Random(0)  # noqa: S311
    # Many more than gzip's window of 32 KB holds, so that repeated ones are not compressed.
    texts = [_text(drawn, characters) for _ in range(min(2000, episodes * turns))]
    folder.mkdir(parents=True)
    with (folder / "episodes.jsonl").open("w", encoding="utf-8") as file:
        for task in range(episodes):
            messages = [{"role": "user", "content": "Goal: craft"}]
            for _ in range(turns):
                text = drawn.choice(texts)
                messages.append({"role": "assistant", "content": text[: characters // 4]})
                messages.append({"role": "user", "content": text[characters // 4 :]})
            others = {"messages": tuple(messages), "turns": turns, "rewards": (0.0,) * turns}
            steps = tuple({"action": "get 1 oak log", "agent_seconds": drawn.random()} for _ in range(turns))
            record = episode(task, score=float(drawn.random() < 0.5), steps=steps, **others)
            file.write(json.dumps(record.to_json()) + "\n")
    (folder / "summary.json").write_text(json.dumps({"run": {"finished": True}}), "utf-8")
    return folder


def _text(drawn: random.Random, characters: int) -> str:
    return " ".join(drawn.choices(WORDS, k=characters // 5))[:characters].ljust(characters, ".")


def many_runs(folder: Path, *, runs: int, samples: int, tasks: int) -> list[Path]:
    """Write runs of many episodes of two turns, and return their folders."""
    folders = []
    for number in range(runs):
        drawn = random.Random(number)  # noqa: S311
        name = f"model-{number:02}"
        records = [
            episode(task, agent=name, sample=sample, score=float(drawn.random() < 0.2 + number / 40))
            for task in range(tasks)
            for sample in range(samples)
        ]
        folders.append(write_run(folder / name, records, agent=name, finished=True))
    return folders
