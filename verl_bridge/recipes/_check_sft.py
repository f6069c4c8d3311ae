"""Check a folder for fine-tuning: sizes must fit, rows must be readable, and games must not be too long."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from verl_bridge.recipes._check_lengths import guess, reads, tokenizer_of
from verl_bridge.recipes._finding import Finding, ok, problem, unseen, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._view import View

__all__ = ["found"]

_ROLES = ("system", "user", "assistant", "tool")


def found(view: View) -> Iterator[Finding]:
    """Yield the findings of a folder, except whether verl composes its settings."""
    yield from _sizes(view)
    yield from _earlier(view)
    yield from _read(view)
    yield from _apart(view)
    yield from _dataset(view)
    yield from _lengths(view)


def _sizes(view: View) -> Iterator[Finding]:
    batch = view.number("data.train_batch_size", 256)
    gpus = view.number("trainer.n_gpus_per_node", 1) * view.number("trainer.nnodes", 1)
    micro = view.number("data.micro_batch_size_per_gpu", 4)
    longest = view.number("data.max_length", 1024)
    held = view.number("data.max_token_len_per_gpu", 8192)
    packed = view.get("data.use_dynamic_bsz", True)
    wrong = []
    if batch % gpus:
        wrong.append((f"a batch of {batch} games does not go into {gpus} GPUs", "data.train_batch_size"))
    elif not packed and batch // gpus % micro:
        text = f"{batch // gpus} games of a GPU do not go into micro-batches of {micro}"
        wrong.append((text, "data.micro_batch_size_per_gpu"))
    if packed and held < longest:
        text = f"a GPU takes {held} tokens at a time, and a game may have {longest}"
        wrong.append((text, "data.max_token_len_per_gpu"))
    for text, what in wrong:
        yield problem("sizes", text, f"change {what}")
    if not wrong:
        yield ok("sizes", f"{batch} games a step on {gpus} GPUs")


def _earlier(view: View) -> Iterator[Finding]:
    """Report checkpoints from which verl would resume; they may be of other games."""
    folder = view.path("trainer.default_local_dir")
    latest = folder / "latest_checkpointed_iteration.txt" if folder is not None else None
    if view.get("trainer.resume_mode", "auto") == "auto" and latest is not None and latest.is_file():
        step = latest.read_text("utf-8").strip()
        yield warning(
            "checkpoints",
            f"{folder} holds an earlier training, and verl goes on from its step {step:.20}",
            "remove it, or run.sh trainer.resume_mode=disable, if this is to begin anew",
        )


def _read(view: View) -> Iterator[Finding]:
    """Read the rows into the view, and check whether they are games."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        yield unseen("data", "pyarrow is not installed here: not read", "pip install 'pyarrow>=14'")
        return
    batch = view.number("data.train_batch_size", 256)
    for part in ("train", "val"):
        files = view.paths(f"data.{part}_files")
        if not files and part == "train":
            yield problem("data", "no data.train_files are set", "set data.train_files to a parquet file")
        rows: list[dict[str, Any]] = []
        view.files[part] = []
        try:
            for file in files:
                rows += (of_file := parquet.read_table(file).to_pylist())
                view.files[part].append((file, len(of_file)))
        except (OSError, ValueError) as error:  # pyarrow's errors are subclasses of these
            said = " ".join(str(error).split())[:300]
            yield problem("data", f"cannot read {file}: {said}", "write it by agentgym data sft")
            continue
        if files:
            view.rows[part] = rows
            yield from _fit(view, part, batch)


def _fit(view: View, part: str, batch: int) -> Iterator[Finding]:
    rows = view.rows[part]
    for at, row in enumerate(rows):
        wrong = _wrong(row, str(view.get("data.messages_key", "messages")))
        if wrong:
            yield problem("data", f"{view.place(part, at)}: {wrong}", "write it by agentgym data sft")
            return
    if len(rows) < batch and part == "train":
        yield problem(
            "data",
            f"train has {len(rows)} games, and verl leaves out what does not fill a batch of {batch}: "
            "nothing is left",
            "write more games, or set a smaller data.train_batch_size",
        )
    elif len(rows) < batch:
        yield warning(
            "data",
            f"val has {len(rows)} games, which do not fill a batch of {batch}: its loss will be nan",
            "write more games, or none for validation",
        )
    else:
        yield ok("data", f"{part} has {len(rows)} games, {len(rows) // batch} batches of {batch}")


def _wrong(row: Mapping[str, Any], column: str) -> str | None:
    messages = row.get(column)
    if not isinstance(messages, list) or not messages:
        return f"there are no {column}"
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in _ROLES or not isinstance(message.get("content"), str):
            return f"message {at} should have a role and a content as text, not {message!r:.80}"
    learned = _learned(row, messages)
    if not any(learned):
        return "it holds no reply that is to be learned"
    return None


def _learned(row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> list[bool]:
    marks = row.get("loss") or [None] * len(messages)
    return [
        message["role"] == "assistant" and mark is not False
        for message, mark in zip(messages, marks, strict=False)
    ]


def _apart(view: View) -> Iterator[Finding]:
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
            "write them again by agentgym data sft, which keeps them apart",
        )
    else:
        yield ok("validation", "no task is in both train and val")


def _dataset(view: View) -> Iterator[Finding]:
    """Report how verl loaded the first rows."""
    for what, wrong in ((view.answer or {}).get("classes") or {}).items():
        if wrong is None:
            yield ok("dataset", f"{what} can be read")
        else:
            yield problem(
                "dataset",
                f"{what}: {wrong}",
                "take another model, or set its model.custom_chat_template, if it is about the template",
            )


def _lengths(view: View) -> Iterator[Finding]:
    rows = [(part, at, row) for part, of_part in view.rows.items() for at, row in enumerate(of_part)]
    if not rows or any(_wrong(row, str(view.get("data.messages_key", "messages"))) for *_, row in rows):
        return
    model = str(view.get("model.path", ""))
    tokenizer, why = tokenizer_of(str(view.get("model.tokenizer_path") or model))
    if why:
        yield unseen("lengths", f"{why}: a token is taken for 4 characters", "check again with it")
    options = view.get("data.apply_chat_template_kwargs") or {}
    key = str(view.get("data.messages_key", "messages"))
    try:
        lengths = [_tokens(tokenizer, row[key], options) for *_, row in rows]
    except Exception as error:  # noqa: BLE001 - a template may raise anything
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        yield problem("lengths", f"the chat template refuses a game: {said}", "take another model")
        return
    limit = view.number("data.max_length", 1024)
    longest = max(range(len(rows)), key=lengths.__getitem__)
    place = view.place(*rows[longest][:2])
    over = sum(length > limit for length in lengths)
    if over:
        stops = view.get("data.truncation", "error") == "error"
        then = "verl stops at the first" if stops else "they are cut, and their ends are not learned"
        say = warning if why else problem
        yield say(
            "lengths",
            f"{over} of {len(rows)} games have more than {limit} tokens, {place} has {lengths[longest]}: "
            f"{then}",
            f"set data.max_length to {lengths[longest]}, or write the folder without these games",
        )
    else:
        yield ok("lengths", f"the longest game, {place}, has {lengths[longest]} of {limit} tokens")
    most, why = reads(model)
    if why:
        yield unseen("model", why)
    elif most is not None and most < min(lengths[longest], limit):
        yield problem(
            "model",
            f"it reads {most} tokens, and {place} has {lengths[longest]}",
            "take a model for longer texts, or write the folder without such games",
        )
    else:
        yield ok("model", f"the longest game fits in what it reads, {most}")


def _tokens(tokenizer: Any, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> int:
    if tokenizer is None:
        return guess(messages)
    text = tokenizer.apply_chat_template([dict(message) for message in messages], tokenize=False, **options)
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])
