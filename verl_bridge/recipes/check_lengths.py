"""Checks of a recipe's limits of tokens against the model and what its environments say."""

from __future__ import annotations

import importlib
import json
import math
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_bridge.recipes.finding import Finding, ok, problem, unseen, warning

if TYPE_CHECKING:
    from verl_bridge.recipes.check_tasks import Start
    from verl_bridge.recipes.view import View

__all__ = ["fit"]

USUAL_REPLY = 100
"""Tokens that a reply is taken to have: a thought of a few sentences, and an action."""

_CHARACTERS = 4  # of a token, where there is no tokenizer to ask

Count = Callable[[list[dict[str, Any]]], int]


def fit(view: View, starts: list[Start]) -> Iterator[Finding]:
    """Check whether prompts and whole episodes fit.

    Args:
        view: The folder.
        starts: What environments said.
    """
    prompt = view.number("data.max_prompt_length", 512)
    response = view.number("data.max_response_length", 512)
    yield from _of_model(view, prompt + response)
    count, why = _tokenizer(view)
    if why:
        yield unseen(
            "lengths", f"{why}: a token is taken for {_CHARACTERS} characters", "check again with it"
        )
    if not starts:
        yield unseen("lengths", "no episode could be begun: prompts were not measured")
        return
    yield from _prompts(starts, count or _guess, prompt, sure=count is not None)
    yield from _episodes(view, starts, count or _guess, response)


def _prompts(starts: list[Start], count: Count, limit: int, *, sure: bool) -> Iterator[Finding]:
    lengths = [
        (count([*start.system, {"role": "user", "content": start.observations[0]}]), start)
        for start in starts
    ]
    longest, start = max(lengths, key=lambda pair: pair[0])
    text = (
        f"{start.place}: the system prompt and the first observation of {start.task.env_id} have "
        f"{longest} tokens"
    )
    if longest <= limit:
        yield ok("prompt length", f"{text} of {limit}")
    else:
        say = problem if sure else warning
        yield say(
            "prompt length", f"{text}, and {limit} are allowed", f"set data.max_prompt_length above {longest}"
        )


def _episodes(view: View, starts: list[Start], count: Count, limit: int) -> Iterator[Finding]:
    given = view.arguments()
    turns, reply = given.get("max_turns"), given.get("max_tokens_per_turn")
    if reply is not None and reply > limit:
        yield problem(
            "response length",
            f"a reply may have {reply} tokens, and all replies together {limit}",
            "set data.max_response_length to what an episode needs",
        )
        return
    if turns is None:
        yield warning("response length", "no limit of turns is set", "set max_turns in the yaml of the loop")
        return
    later = [text for start in starts for text in start.observations[1:] or start.observations]
    usual = math.ceil(statistics.median(count([{"role": "user", "content": text}]) for text in later))
    answer = min(USUAL_REPLY, reply or USUAL_REPLY)
    needed = turns * (usual + answer)
    sum_ = f"{turns} turns of {answer} tokens, with observations of {usual}, are {needed}"
    if needed <= limit:
        yield ok("response length", f"{sum_} of {limit}")
    else:
        yield warning(
            "response length",
            f"{sum_}, and {limit} are allowed: long episodes will be cut off",
            f"set data.max_response_length to about {needed}, or fewer turns",
        )


def _of_model(view: View, needed: int) -> Iterator[Finding]:
    file = Path(str(view.get("actor_rollout_ref.model.path", ""))).expanduser() / "config.json"
    try:
        limit = json.loads(file.read_text("utf-8")).get("max_position_embeddings")
    except (OSError, ValueError, AttributeError):
        yield unseen("model", f"{file.parent} is no folder with a model here: its length was not looked at")
        return
    if isinstance(limit, int) and limit < needed:
        yield problem(
            "model",
            f"it reads {limit} tokens, and prompt and response may have {needed}",
            "set a smaller data.max_response_length, or take a model for longer texts",
        )
    else:
        yield ok("model", f"prompt and response of {needed} tokens fit in what it reads, {limit}")


def _tokenizer(view: View) -> tuple[Count | None, str]:
    """Return a count of the tokens of a conversation, or why there is none."""
    name = str(
        view.get("actor_rollout_ref.model.tokenizer_path") or view.get("actor_rollout_ref.model.path", "")
    )
    try:
        transformers = importlib.import_module("transformers")
    except ModuleNotFoundError:
        return None, "transformers is not installed here"
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(Path(name).expanduser()), local_files_only=True
        )
        if not tokenizer.chat_template:
            return None, f"the tokenizer of {name} has no chat template"
    except Exception as error:  # noqa: BLE001 - of many kinds, by what is there of a model
        return None, f"the tokenizer of {name} cannot be loaded here ({type(error).__name__})"

    def count(messages: list[dict[str, Any]]) -> int:
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return len(tokenizer.encode(text, add_special_tokens=False))

    return count, ""


def _guess(messages: list[dict[str, Any]]) -> int:
    return sum(math.ceil(len(message["content"]) / _CHARACTERS) for message in messages)
