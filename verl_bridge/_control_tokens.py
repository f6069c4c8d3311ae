"""Text in which nothing becomes a control token, though it may hold the words of one.

A tokenizer reads ``<|im_end|>`` as a control token wherever it stands. In the words of an environment it must
be text: otherwise an observation could end the user's turn and write the model's.

A token counts as a control token if it is one of the tokenizer's special tokens, or another added token that
is not made of words alone, such as ``<tool_call>``. Runs of blanks, phrases of words and single bytes, which
some tokenizers add too, say no more than the same letters one by one.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from typing import Any

__all__ = ["ControlTokens"]

_WORDS = re.compile(r"[\w\s.,:;!?'\"()-]*|<0x[0-9A-F]{2}>")
_log = logging.getLogger(__name__)


class ControlTokens:
    """The control tokens of a tokenizer.

    A conversation is encoded as a whole, so that every other token is the one that the tokenizer itself would
    choose. It is done by a copy of the tokenizer, in which each control token has another name, which nobody
    outside of this process knows: :meth:`mark` gives the template's control tokens these names, and
    the words of the environment are left as they are. A tokenizer that cannot be copied so, because it is not
    one of the library ``tokenizers``, reads what :meth:`apart` made of the words.

    Args:
        tokenizer: A tokenizer of transformers.
        sample: A conversation in which control tokens stand as the template writes them. The copy is used if
            it reads the sample as the tokenizer does. None if nothing will be encoded here.
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
        self._known = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        secret = secrets.token_hex(16)
        self._names = {text: f"<{secret}:{number}>" for number, text in enumerate(control)}
        self._copy: Any = None
        self._real: dict[int, int] = {}
        if sample is None:
            return
        self._copy, self._real = self._renamed(control)
        if self._copy is not None and self.encode(self.mark(sample)) != self._by_tokenizer(sample):
            self._copy = None
        if self._copy is None and control:
            _log.warning(
                "the tokenizer %s cannot be told which words are only words: a control token in the words of "
                "an environment is shown with a blank in it",
                type(tokenizer).__name__,
            )

    def mark(self, text: str) -> str:
        """Return text of a template, in which control tokens are meant, for :meth:`encode`."""
        return text if self._copy is None else self._known.sub(lambda found: self._names[found[0]], text)

    def plain(self, text: str) -> str:
        """Return text of an environment, in which none is meant, for :meth:`encode`."""
        return text if self._copy is not None else self.apart(text)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text put together from what :meth:`mark` and :meth:`plain` returned."""
        if self._copy is None:
            return self._by_tokenizer(text)
        # The method for one text alone keeps Python's lock; this one lets other threads go on.
        (encoding,) = self._copy.encode_batch_fast([text], add_special_tokens=False)
        return [self._real.get(id_, id_) for id_ in encoding.ids]

    def apart(self, text: str) -> str:
        """Return the text with a blank after the first character of each control token in it.

        For where the tokenizer itself will encode the text.
        """
        if not self.found(text):
            return text
        text = self._known.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)
        if self.found(text):  # as where the tokenizer takes full-width letters for plain ones
            text = re.sub(r"[^\w\s.,:;!?'\"()-]", " ", text)
        return " ".join(text) if self.found(text) else text

    def found(self, text: str) -> bool:
        """Whether the tokenizer itself finds a control token in a text."""
        ids = set(self._by_tokenizer(text))
        if str(self._tokenizer.unk_token) not in text:  # stands for letters that the tokenizer does not know
            ids.discard(self._tokenizer.unk_token_id)
        return not self.ids.isdisjoint(ids)

    def _by_tokenizer(self, text: str) -> list[int]:
        return [int(token) for token in self._tokenizer.encode(text, add_special_tokens=False)]

    def _renamed(self, control: dict[str, int]) -> tuple[Any, dict[int, int]]:
        """Return the copy, and the real ids of its tokens where they differ."""
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is None or not hasattr(backend, "encode_batch_fast"):
            return None, {}
        try:
            copy = type(backend).from_str(_with_names(backend.to_str(), self._names))
        except Exception as error:  # noqa: BLE001 - the library raises nothing but Exception
            _log.debug("the tokenizer was not copied: %s", error)
            return None, {}
        names = {self._names.get(text, text): text for text in control}
        names |= {str(token.content): str(token.content) for token in _others(backend, control)}
        real = {copy.token_to_id(name): backend.token_to_id(text) for name, text in names.items()}
        return (None, {}) if None in real else (copy, {a: b for a, b in real.items() if a != b})


def _others(backend: Any, control: dict[str, int]) -> list[Any]:
    return [token for token in backend.get_added_tokens_decoder().values() if token.content not in control]


def _with_names(saved: str, names: dict[str, str]) -> str:
    """Return a saved tokenizer with other names for some tokens, in its vocabulary too."""
    whole = json.loads(saved)
    for token in whole["added_tokens"]:
        token["content"] = names.get(token["content"], token["content"])
    model = whole["model"]
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = {names.get(piece, piece): id_ for piece, id_ in vocabulary.items()}
    else:
        model["vocab"] = [[names.get(piece, piece), score] for piece, score in vocabulary]
    if "merges" in model:  # by which the model would spell one of them out of its parts
        model["merges"] = [merge for merge in model["merges"] if not _spells(merge, names)]
    if model.get("unk_token") in names:
        model["unk_token"] = names[model["unk_token"]]
    whole.update(truncation=None, padding=None, post_processor=None)
    return json.dumps(whole)


def _spells(merge: str | list[str], names: dict[str, str]) -> bool:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left in names or right in names or left + right in names
