"""Encode environment text without control tokens, even if the text contains their spelling.

A tokenizer reads ``<|im_end|>`` as a control token anywhere in a text. In an observation it must be plain
text: otherwise the observation could end the user's turn and start a turn of the model.

Control tokens are the tokenizer's special tokens, and other added tokens that are not made of words only,
such as ``<tool_call>``. Some tokenizers also add runs of blanks, phrases of words and single bytes. Those
mean the same as their characters one by one, so they do not count.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Collection
from typing import Any

__all__ = ["ControlTokens"]

_WORDS = re.compile(r"[\w\s.,:;!?'\"()-]*|<0x[0-9A-F]{2}>")
_BEGIN, _END = "\ue0f0", "\ue0f1"
"""Around the number of a hidden token: characters for private use, which no template changes."""

_HIDDEN = re.compile(f"{_BEGIN}([0-9]{{1,9}}){_END}")
_log = logging.getLogger(__name__)


class ControlTokens:
    """The control tokens of a tokenizer.

    A conversation is encoded as a whole, so that every other token is the one that the tokenizer itself would
    choose. For this, the tokenizer is copied, and each control token of the copy gets a secret random name.
    :meth:`mark` replaces the template's control tokens by these names; environment text is left unchanged.
    Only a tokenizer of the library ``tokenizers`` can be copied in this way. Any other tokenizer encodes text
    that :meth:`escape` has made safe.

    Args:
        tokenizer: A tokenizer of transformers.
        sample: A conversation with control tokens as the template writes them. The copy is used if it encodes
            the sample exactly as the tokenizer does. None if this object will encode nothing.
    """

    def __init__(self, tokenizer: Any, sample: str | None = None) -> None:
        self._tokenizer = tokenizer
        added = {str(token.content): int(id_) for id_, token in tokenizer.added_tokens_decoder.items()}
        special = {*map(int, tokenizer.all_special_ids)} | {
            int(id_) for id_, token in tokenizer.added_tokens_decoder.items() if token.special
        }
        control = {text: id_ for text, id_ in added.items() if id_ in special or not _WORDS.fullmatch(text)}
        control.pop("", None)
        self.ids = frozenset(control.values())
        longest_first = sorted(control, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._texts = tuple(control)
        escaped = [f"{re.escape(text[0])} {re.escape(text[1:])}" for text in longest_first if len(text) > 1]
        self._escaped = re.compile("|".join(escaped) or "(?!)")
        self._hidden = {text: f"{_BEGIN}{number}{_END}" for number, text in enumerate(control)}
        secret = secrets.token_hex(16)
        self._names = {text: f"<{secret}:{number}>" for number, text in enumerate(control)}
        self._copy: Any = None
        self._real: dict[int, int] = {}
        if sample is None:
            return
        self._copy, self._real = self._renamed_copy(control)
        if self._copy is not None and self.encode(self.mark(sample)) != self._tokenize(sample):
            self._copy = None
        if self._copy is None and control:
            _log.warning(
                "the control tokens of the tokenizer %s cannot be renamed: the model sees each one that an "
                "environment writes with a blank in it",
                type(tokenizer).__name__,
            )

    def mark(self, text: str) -> str:
        """Return template text, where control tokens are intended, as input for :meth:`encode`."""
        return text if self._copy is None else self._pattern.sub(lambda match: self._names[match[0]], text)

    def plain(self, text: str) -> str:
        """Return environment text, where no control token is intended, as input for :meth:`encode`."""
        return text if self._copy is not None else self.escape(text)

    def hide(self, text: str, shown: Collection[str] = ()) -> str:
        """Return a text for a chat template, which :meth:`encode_rendered` encodes without control tokens.

        Args:
            text: The text.
            shown: Control tokens that are intended in it.
        """
        if self._copy is None and not shown:
            return self.escape(text)

        def replaced(match: re.Match[str]) -> str:
            token = match[0]
            if token in shown:
                return token
            return f"{token[0]} {token[1:]}" if self._copy is None else self._hidden[token]

        return self._pattern.sub(replaced, text)

    def restore(self, text: str) -> str:
        """Return the text that :meth:`hide` was given, except what :meth:`escape` may have changed."""
        if self._copy is not None:
            return _HIDDEN.sub(self._reveal, text)
        return self._escaped.sub(lambda match: match[0][0] + match[0][2:], text)

    def until_first(self, text: str) -> str:
        """Return the beginning of a text up to its first control token; empty without one."""
        found = self._pattern.search(text)
        return text[: found.end()] if found else ""

    def encode_rendered(self, text: str) -> list[int]:
        """Return the tokens of a rendered conversation, whose messages have gone through :meth:`hide`."""
        marked = self.mark(text)
        return self.encode(_HIDDEN.sub(self._reveal, marked) if _BEGIN in marked else marked)

    def _reveal(self, match: re.Match[str]) -> str:
        number = int(match[1])
        return self._texts[number] if number < len(self._texts) else match[0]

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text built from results of :meth:`mark` and :meth:`plain`."""
        if self._copy is None:
            return self._tokenize(text)
        # encode() keeps Python's lock; the batch method lets other threads run.
        (encoding,) = self._copy.encode_batch_fast([text], add_special_tokens=False)
        ids: list[int] = encoding.ids
        if not self._real or self._real.keys().isdisjoint(ids):  # the copies of most have the same ids
            return ids
        return [self._real.get(id_, id_) for id_ in ids]

    def escape(self, text: str) -> str:
        """Return the text with a blank after the first character of each control token in it.

        Use this for text that the tokenizer itself will encode.
        """
        if not self.has_control(text):
            return text
        text = self._pattern.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
        if self.has_control(text):  # for example if the tokenizer normalizes full-width letters
            text = re.sub(r"[^\w\s.,:;!?'\"()-]", " ", text)
        return " ".join(text) if self.has_control(text) else text

    def has_control(self, text: str) -> bool:
        """Return whether the tokenizer finds a control token in a text."""
        ids = set(self._tokenize(text))
        if str(self._tokenizer.unk_token) not in text:  # means letters outside the vocabulary
            ids.discard(self._tokenizer.unk_token_id)
        return not self.ids.isdisjoint(ids)

    def _tokenize(self, text: str) -> list[int]:
        return [int(token) for token in self._tokenizer.encode(text, add_special_tokens=False)]

    def _renamed_copy(self, control: dict[str, int]) -> tuple[Any, dict[int, int]]:
        """Return the copy, and a map from its token ids to the real ones where they differ."""
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is None or not hasattr(backend, "encode_batch_fast"):
            return None, {}
        try:
            copy = type(backend).from_str(_rename_tokens(backend.to_str(), self._names))
        except Exception as error:  # noqa: BLE001 - the library raises nothing but Exception
            _log.debug("the tokenizer was not copied: %s", error)
            return None, {}
        names = {self._names.get(text, text): text for text in control}
        names |= {str(token.content): str(token.content) for token in _other_added(backend, control)}
        real = {copy.token_to_id(name): backend.token_to_id(text) for name, text in names.items()}
        return (None, {}) if None in real else (copy, {a: b for a, b in real.items() if a != b})


def _other_added(backend: Any, control: dict[str, int]) -> list[Any]:
    return [token for token in backend.get_added_tokens_decoder().values() if token.content not in control]


def _rename_tokens(saved: str, names: dict[str, str]) -> str:
    """Return a serialized tokenizer with some tokens renamed, in its vocabulary too."""
    whole = json.loads(saved)
    for token in whole["added_tokens"]:
        token["content"] = names.get(token["content"], token["content"])
    model = whole["model"]
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = {names.get(piece, piece): id_ for piece, id_ in vocabulary.items()}
    else:
        model["vocab"] = [[names.get(piece, piece), score] for piece, score in vocabulary]
    if "merges" in model:  # otherwise merges could assemble a control token from its parts
        model["merges"] = [merge for merge in model["merges"] if not _uses_renamed(merge, names)]
    if model.get("unk_token") in names:
        model["unk_token"] = names[model["unk_token"]]
    whole.update(truncation=None, padding=None, post_processor=None)
    return json.dumps(whole)


def _uses_renamed(merge: str | list[str], names: dict[str, str]) -> bool:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left in names or right in names or left + right in names
