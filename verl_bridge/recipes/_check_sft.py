"""Check a folder for fine-tuning: sizes must fit, rows must be readable, and games must not be too long."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from verl_bridge.recipes._check_lengths import CHARACTERS, context_length, estimate_tokens, tokenizer_of
from verl_bridge.recipes._finding import Finding, ok, problem, skipped, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._view import View

__all__ = ["check_sft"]

_ROLES = ("system", "user", "assistant", "tool")


def check_sft(view: View) -> Iterator[Finding]:
    """Yield the findings of a folder's data.

    Args:
        view: The folder.
    """
    yield from _check_sizes(view)
    yield from _read_rows(view)
    yield from _check_split_leakage(view)
    yield from _check_dataset(view)
    yield from _check_lengths(view)


def _check_sizes(view: View) -> Iterator[Finding]:
    batch = view.number("data.train_batch_size", 256)
    gpus = view.number("trainer.n_gpus_per_node", 1) * view.number("trainer.nnodes", 1)
    micro = view.number("data.micro_batch_size_per_gpu", 4)
    longest = view.number("data.max_length", 1024)
    held = view.number("data.max_token_len_per_gpu", 8192)
    packed = view.get("data.use_dynamic_bsz", True)
    wrong = []
    if batch % gpus:
        wrong.append(
            (f"a batch of {batch} games cannot be divided among {gpus} GPUs", "data.train_batch_size")
        )
    elif not packed and batch // gpus % micro:
        text = f"{batch // gpus} games of a GPU cannot be divided into micro-batches of {micro}"
        wrong.append((text, "data.micro_batch_size_per_gpu"))
    if packed and held < longest:
        text = f"a GPU gets at most {held} tokens at a time, and a game may have {longest}"
        wrong.append((text, "data.max_token_len_per_gpu"))
    for text, setting in wrong:
        yield problem("sizes", text, f"change {setting}")
    if not wrong:
        yield ok("sizes", f"{batch} games a step on {gpus} GPUs")


def _read_rows(view: View) -> Iterator[Finding]:
    """Read the rows into the view, and check whether they are games."""
    try:
        importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        yield skipped("data", "pyarrow is not installed here: not read", "pip install 'pyarrow>=14'")
        return
    batch = view.number("data.train_batch_size", 256)
    for part in ("train", "val"):
        if not view.paths(f"data.{part}_files"):
            if part == "train":
                yield problem("data", "no data.train_files are set", "set data.train_files to a parquet file")
            continue
        error = view.load_rows(part)
        if error:
            yield problem("data", error, "write it with agentgym data sft")
        else:
            yield from _check_rows(view, part, batch)


def _check_rows(view: View, part: str, batch: int) -> Iterator[Finding]:
    rows = view.rows[part]
    for at, row in enumerate(rows):
        wrong = _row_error(row, str(view.get("data.messages_key", "messages")))
        if wrong:
            yield problem("data", f"{view.location(part, at)}: {wrong}", "write it with agentgym data sft")
            return
    if len(rows) < batch and part == "train":
        yield problem(
            "data",
            f"train has {len(rows)} games, and verl drops incomplete batches of {batch}: nothing is left",
            "write more games, or set a smaller data.train_batch_size",
        )
    elif len(rows) < batch:
        yield warning(
            "data",
            f"val has {len(rows)} games, too few for a batch of {batch}: its loss will be nan",
            "write more games, or none for validation",
        )
    else:
        yield ok("data", f"{part} has {len(rows)} games, {len(rows) // batch} batches of {batch}")


def _row_error(row: Mapping[str, Any], column: str) -> str | None:
    messages = row.get(column)
    if not isinstance(messages, list) or not messages:
        return f"there are no {column}"
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in _ROLES or not isinstance(message.get("content"), str):
            return f"message {at} should have a role and a content as text, not {message!r:.80}"
    learned = _learned(row, messages)
    if not any(learned):
        return "it has no reply to learn"
    return None


def _learned(row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> list[bool]:
    marks = row.get("loss") or [None] * len(messages)
    return [
        message["role"] == "assistant" and mark is not False
        for message, mark in zip(messages, marks, strict=False)
    ]


def _check_split_leakage(view: View) -> Iterator[Finding]:
    if not view.rows.get("val"):
        return
    keys = {
        part: {(row.get("data_source"), row.get("task_id")) for row in rows if row.get("task_id") is not None}
        for part, rows in view.rows.items()
    }
    both = keys.get("train", set()) & keys["val"]
    if both:
        yield problem(
            "validation",
            f"{len(both)} of the tasks in val are in train too, such as {min(map(str, both)):.200}",
            "write them again with agentgym data sft, which splits by task",
        )
    else:
        yield ok("validation", "no task is in both train and val")


def _check_dataset(view: View) -> Iterator[Finding]:
    """Report how verl loaded the first rows."""
    for name, wrong in ((view.result or {}).get("classes") or {}).items():
        if wrong is None:
            yield ok("dataset", f"{name} can be read")
        else:
            yield problem(
                "dataset",
                f"{name}: {wrong}",
                "if the template is the cause, use another model, or set model.custom_chat_template",
            )


def _check_lengths(view: View) -> Iterator[Finding]:
    rows = [(part, at, row) for part, of_part in view.rows.items() for at, row in enumerate(of_part)]
    if not rows or any(_row_error(row, str(view.get("data.messages_key", "messages"))) for *_, row in rows):
        return
    model = str(view.get("model.path", ""))
    tokenizer, why = tokenizer_of(str(view.get("model.tokenizer_path") or model))
    if why:
        yield skipped(
            "lengths",
            f"{why}: a token is assumed to be {CHARACTERS} characters",
            "check again when it is available",
        )
    options = view.get("data.apply_chat_template_kwargs") or {}
    key = str(view.get("data.messages_key", "messages"))
    try:
        lengths = [_tokens(tokenizer, row[key], options) for *_, row in rows]
    except Exception as error:  # noqa: BLE001 - a template may raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        yield problem("lengths", f"the chat template rejects a game: {reason}", "use another model")
        return
    limit = view.number("data.max_length", 1024)
    longest = max(range(len(rows)), key=lengths.__getitem__)
    place = view.location(*rows[longest][:2])
    over = sum(length > limit for length in lengths)
    if over:
        stops = view.get("data.truncation", "error") == "error"
        then = "verl stops at the first" if stops else "they are cut, and their ends are not learned"
        finding = warning if why else problem
        yield finding(
            "lengths",
            f"{over} of {len(rows)} games have more than {limit} tokens, {place} has {lengths[longest]}: "
            f"{then}",
            f"set data.max_length to {lengths[longest]}, or write the folder without these games",
        )
    else:
        yield ok("lengths", f"the longest game, {place}, has {lengths[longest]} of {limit} tokens")
    most, why = context_length(model)
    if why:
        yield skipped("model", why)
    elif most is not None and most < min(lengths[longest], limit):
        yield problem(
            "model",
            f"its context has {most} tokens, and {place} has {lengths[longest]}",
            "use a model with a longer context, or write the folder without such games",
        )
    else:
        yield ok("model", f"the longest game fits in its context, {most}")


def _tokens(tokenizer: Any, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> int:
    if tokenizer is None:
        return estimate_tokens(messages)
    text = tokenizer.apply_chat_template([dict(message) for message in messages], tokenize=False, **options)
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])
