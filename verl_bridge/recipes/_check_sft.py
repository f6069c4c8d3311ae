"""Check a folder for fine-tuning: sizes must fit, rows must be readable, and games must not be too long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_bridge.recipes._check_files import Missing
from verl_bridge.recipes._check_lengths import estimate_tokens
from verl_bridge.recipes._finding import Finding, ok, problem, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._check_files import Rows, Settings

__all__ = [
    "Games",
    "Measured",
    "check_dataset",
    "check_game_context",
    "check_game_lengths",
    "check_game_rows",
    "check_game_sizes",
    "check_game_splits",
    "find_games",
    "measure",
]

Games: TypeAlias = "Sequence[tuple[str, Sequence[Mapping[str, Any]]]]"
"""The messages of games, each with the place of its row."""

_ROLES = ("system", "user", "assistant", "tool")


def check_game_sizes(settings: Settings) -> Iterator[Finding]:
    """Check whether the sizes divide each other as verl requires."""
    batch = settings.number("data.train_batch_size", 256)
    gpus = settings.number("trainer.n_gpus_per_node", 1) * settings.number("trainer.nnodes", 1)
    micro = settings.number("data.micro_batch_size_per_gpu", 4)
    longest = settings.number("data.max_length", 1024)
    packed_tokens = settings.number("data.max_token_len_per_gpu", 8192)
    packed = settings.get("data.use_dynamic_bsz", True)
    wrong = []
    if batch % gpus:
        wrong.append(
            (f"a batch of {batch} games cannot be divided among {gpus} GPUs", "data.train_batch_size")
        )
    elif not packed and batch // gpus % micro:
        text = f"{batch // gpus} games of a GPU cannot be divided into micro-batches of {micro}"
        wrong.append((text, "data.micro_batch_size_per_gpu"))
    if packed and packed_tokens < longest:
        text = f"a GPU gets at most {packed_tokens} tokens at a time, and a game may have {longest}"
        wrong.append((text, "data.max_token_len_per_gpu"))
    for text, setting in wrong:
        yield problem("sizes", text, f"change {setting}")
    if not wrong:
        yield ok("sizes", f"{batch} games a step on {gpus} GPUs")


def check_game_rows(rows: Rows, settings: Settings) -> Iterator[Finding]:
    """Check whether the rows are games, and enough for a batch."""
    for part in ("train", "val"):
        if part in rows.errors:
            yield problem("data", rows.errors[part], "write it with agentgym data sft")
        elif part in rows.parts:
            yield _check_part(rows, part, settings)
        elif part == "train":
            yield problem("data", "no data.train_files are set", "set data.train_files to a parquet file")


def _check_part(rows: Rows, part: str, settings: Settings) -> Finding:
    games, batch = rows.parts[part], settings.number("data.train_batch_size", 256)
    for at, row in enumerate(games):
        wrong = _row_error(row, _messages_key(settings))
        if wrong:
            return problem("data", f"{rows.location(part, at)}: {wrong}", "write it with agentgym data sft")
    if len(games) < batch and part == "train":
        return problem(
            "data",
            f"train has {len(games)} games, and verl drops incomplete batches of {batch}: nothing is left",
            "write more games, or set a smaller data.train_batch_size",
        )
    if len(games) < batch:
        return warning(
            "data",
            f"val has {len(games)} games, too few for a batch of {batch}: its loss will be nan",
            "write more games, or none for validation",
        )
    return ok("data", f"{part} has {len(games)} games, {len(games) // batch} batches of {batch}")


def _messages_key(settings: Settings) -> str:
    return str(settings.get("data.messages_key", "messages"))


def _row_error(row: Mapping[str, Any], column: str) -> str | None:
    messages = row.get(column)
    if not isinstance(messages, list) or not messages:
        return f"there are no {column}"
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in _ROLES or not isinstance(message.get("content"), str):
            return f"message {at} should have a role and a content as text, not {message!r:.80}"
    marks = row.get("loss") or [None] * len(messages)
    learned = (
        message["role"] == "assistant" and mark is not False
        for message, mark in zip(messages, marks, strict=False)
    )
    return None if any(learned) else "it has no reply to learn"


def check_game_splits(rows: Rows) -> Iterator[Finding]:
    """Check whether tasks of the validation split are also trained on."""
    if not rows.parts.get("val"):
        return
    keys = {
        part: {
            (row.get("data_source"), row.get("task_id")) for row in games if row.get("task_id") is not None
        }
        for part, games in rows.parts.items()
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


def check_dataset(composed: Mapping[str, Any]) -> Iterator[Finding]:
    """Check whether verl loaded the first rows."""
    for name, error in composed["classes"].items():
        if error is None:
            yield ok("dataset", f"{name} can be read")
        else:
            yield problem(
                "dataset",
                f"{name}: {error}",
                "if the template is the cause, use another model, or set model.custom_chat_template",
            )


class Measured(NamedTuple):
    """The lengths of all games.

    Attributes:
        tokens: The tokens of each game.
        longest: Where the longest game is.
        estimated: Whether they are estimates, without a tokenizer.
        error: Why the chat template rejects a game; empty if it does not.
    """

    tokens: Sequence[int] = ()
    longest: str = ""
    estimated: bool = False
    error: str = ""


def find_games(rows: Rows, settings: Settings) -> Games | Missing:
    """Return all games, unless there are none, or one is invalid, which another check reports."""
    key, games = _messages_key(settings), []
    for part, of_part in rows.parts.items():
        for at, row in enumerate(of_part):
            if _row_error(row, key):
                return Missing()
            games.append((rows.location(part, at), row[key]))
    return games or Missing()


def measure(games: Games, settings: Settings, tokenizer: Any = None) -> Measured:
    """Count the tokens of games.

    Args:
        games: The games.
        settings: The settings.
        tokenizer: The tokenizer of the model; without it, tokens are estimated.
    """
    options = settings.get("data.apply_chat_template_kwargs") or {}
    try:
        tokens = [_tokens(tokenizer, messages, options) for _, messages in games]
    except Exception as error:  # noqa: BLE001 - a template may raise anything
        return Measured(error=" ".join(f"{type(error).__name__}: {error}".split())[:300])
    longest = max(range(len(games)), key=tokens.__getitem__)
    return Measured(tokens, games[longest][0], estimated=tokenizer is None)


def _tokens(tokenizer: Any, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> int:
    if tokenizer is None:
        return estimate_tokens(messages)
    text = tokenizer.apply_chat_template([dict(message) for message in messages], tokenize=False, **options)
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def check_game_lengths(measured: Measured, settings: Settings) -> Iterator[Finding]:
    """Check whether the games are longer than verl reads them."""
    if measured.error:
        text = f"the chat template rejects a game: {measured.error}"
        yield problem("lengths", text, "use another model")
        return
    limit, longest = settings.number("data.max_length", 1024), max(measured.tokens)
    over = sum(length > limit for length in measured.tokens)
    if over:
        stops = settings.get("data.truncation", "error") == "error"
        then = "verl stops at the first" if stops else "they are cut, and their ends are not learned"
        finding = warning if measured.estimated else problem
        yield finding(
            "lengths",
            f"{over} of {len(measured.tokens)} games have more than {limit} tokens, {measured.longest} has "
            f"{longest}: {then}",
            f"set data.max_length to {longest}, or write the folder without these games",
        )
    else:
        yield ok("lengths", f"the longest game, {measured.longest}, has {longest} of {limit} tokens")


def check_game_context(measured: Measured, context: int | None, settings: Settings) -> Iterator[Finding]:
    """Check whether the games fit in the context of the model."""
    if measured.error:
        return
    needed = min(max(measured.tokens), settings.number("data.max_length", 1024))
    if context is not None and context < needed:
        yield problem(
            "model",
            f"its context has {context} tokens, and {measured.longest} has {max(measured.tokens)}",
            "use a model with a longer context, or write the folder without such games",
        )
    else:
        yield ok("model", f"the longest game fits in its context, {context}")
