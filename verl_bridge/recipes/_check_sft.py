"""Check a folder for fine-tuning: sizes must fit, rows must be readable, and games must not be too long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_bridge._run.recorded import encode_recorded, marked_messages
from verl_bridge.recipes._check_lengths import estimate_tokens
from verl_bridge.recipes._finding import Finding, Missing, ok, problem, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._check_data import Rows
    from verl_bridge.recipes._verl_settings import SftSettings

__all__ = [
    "Games",
    "Measured",
    "check_dataset",
    "check_game_context",
    "check_game_lengths",
    "check_game_sizes",
    "check_tokenizer",
    "find_games",
    "game_errors",
    "measure",
]

Games: TypeAlias = "Sequence[tuple[str, Sequence[Mapping[str, Any]]]]"
"""The messages of games, each with the place of its row."""

_ROLES = ("system", "user", "assistant", "tool")


def check_game_sizes(settings: SftSettings) -> Iterator[Finding]:
    """Check whether the sizes divide each other as verl requires."""
    shared = settings.sequence_parallel
    # With a share that does not divide the GPUs, check_numbers reports that.
    ranks = settings.all_gpus // shared if 0 < shared <= settings.all_gpus else 1
    batch, micro = settings.batch, settings.micro
    gpus = f"{ranks} GPUs" if shared <= 1 else f"{ranks} groups of {shared} GPUs"
    wrong = []
    if batch % ranks:
        wrong.append((f"a batch of {batch} games cannot be divided among {gpus}", "data.train_batch_size"))
    elif not settings.packed and batch // ranks % micro:
        text = f"{batch // ranks} games of a GPU cannot be divided into micro-batches of {micro}"
        wrong.append((text, "data.micro_batch_size_per_gpu"))
    if settings.packed and settings.packed_tokens * max(1, shared) < settings.longest:
        most = f"a GPU gets at most {settings.packed_tokens} tokens at a time"
        text = f"{most}, and a game may have {settings.longest}"
        wrong.append((text, "data.max_token_len_per_gpu"))
    for text, setting in wrong:
        yield problem("sizes", text, f"change {setting}")
    if not wrong:
        yield ok("sizes", f"{batch} games a step on {gpus}")


def game_errors(rows: Rows, settings: SftSettings) -> dict[str, str]:
    """Return the error of the first invalid row of each part, with its place; empty without one."""
    return rows.first_errors(lambda row: _row_error(row, settings.messages))


def _row_error(row: Mapping[str, Any], column: str) -> str | None:
    messages = row.get(column)
    if not isinstance(messages, list) or not messages:
        return f"there are no {column}"
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in _ROLES or not isinstance(message.get("content"), str):
            return f"message {at} should have a role and a content as text, not {message!r:.80}"
    marks = row.get("loss")
    if marks and len(marks) != len(messages):
        return f"the column loss has {len(marks)} marks for {len(messages)} messages"
    learned = (
        message["role"] == "assistant" and message["loss"] is not False
        for message in marked_messages(row, column)
    )
    return None if any(learned) else "it has no reply to learn"


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
        error: Why a game cannot be encoded; empty if all can be.
    """

    tokens: Sequence[int] = ()
    longest: str = ""
    estimated: bool = False
    error: str = ""


def find_games(rows: Rows, row_errors: Mapping[str, str], settings: SftSettings) -> Games | Missing:
    """Return all games, unless there are none, or one is invalid, which another check reports."""
    if any(row_errors.values()):
        return Missing()
    games = [
        (rows.location(part, at), marked_messages(row, settings.messages))
        for part, of_part in rows.parts.items()
        for at, row in enumerate(of_part)
    ]
    return games or Missing()


def measure(games: Games, settings: SftSettings, tokenizer: Any = None) -> Measured:
    """Count the tokens of games.

    Args:
        games: The games.
        settings: The settings.
        tokenizer: The tokenizer of the model; without it, tokens are estimated.
    """
    options = settings.template_options or {}
    try:
        tokens = [_tokens(tokenizer, messages, options) for _, messages in games]
    except Exception as error:  # noqa: BLE001 - a template may raise anything
        return Measured(error=" ".join(f"{type(error).__name__}: {error}".split())[:300])
    longest = max(range(len(games)), key=tokens.__getitem__)
    return Measured(tokens, games[longest][0], estimated=tokenizer is None)


def _tokens(tokenizer: Any, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> int:
    if tokenizer is None:
        return estimate_tokens(messages)
    return len(encode_recorded(tokenizer, options, messages).ids)


def check_tokenizer(games: Games, tokenizer: Any) -> Iterator[Finding]:  # noqa: ARG001 - reported if missing
    """Yield nothing: without a tokenizer, the lengths of the games are estimates."""
    yield from ()


def check_game_lengths(measured: Measured, settings: SftSettings) -> Iterator[Finding]:
    """Check whether the games are longer than verl reads them."""
    if measured.error:
        yield problem("lengths", f"a game cannot be encoded: {measured.error}", "use another model")
        return
    limit, longest = settings.longest, max(measured.tokens)
    over = sum(length > limit for length in measured.tokens)
    if over:
        stops = settings.truncation == "error"
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


def check_game_context(measured: Measured, context: int | None, settings: SftSettings) -> Iterator[Finding]:
    """Check whether the games fit in the context of the model."""
    if measured.error:
        return
    needed = min(max(measured.tokens), settings.longest)
    if context is not None and context < needed:
        yield problem(
            "model",
            f"its context has {context} tokens, and {measured.longest} has {max(measured.tokens)}",
            "use a model with a longer context, or write the folder without such games",
        )
    else:
        yield ok("model", f"the longest game fits in its context, {context}")
