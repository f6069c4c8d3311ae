"""Custom prompts: a replacement for the environment's system prompt, and few-shot examples."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_gym._text import scrub, shown
from agentgym_gym.errors import BadFile, BadOption
from agentgym_gym.evaluate._toml import read_toml
from agentgym_gym.rollout._history import system_message

__all__ = ["ENVIRONMENT_PROMPT", "ChatPrompt"]

ENVIRONMENT_PROMPT = "{{system_prompt}}"
"""Placeholder for the environment's own system prompt."""


@dataclass(frozen=True)
class ChatPrompt:
    """The messages before the first observation.

    Attributes:
        system: The system prompt. Each ``{{system_prompt}}`` in it is replaced by the environment's own
            system prompt; nothing else is replaced. None uses only the environment's own. A blank text sends
            no system prompt.
        examples: Few-shot messages after the system prompt, alternating between the roles ``user`` and
            ``assistant``, each with ``role`` and ``content``.
        source: The file that the prompt was read from.

    Raises:
        BadOption: The roles of the examples do not alternate, or the last example has no reply.
    """

    system: str | None = None
    examples: tuple[dict[str, str], ...] = ()
    source: str | None = None

    def __post_init__(self) -> None:
        expected = ["user", "assistant"] * (len(self.examples) // 2 + 1)
        for number, (example, role) in enumerate(zip(self.examples, expected, strict=False), 1):
            if example["role"] != role:
                raise BadOption(
                    f"{self._where}: example {number} has the role {example['role']!r:.40} and should have "
                    f"{role!r}: the examples are turns, each of a 'user' message and an 'assistant' message"
                )
        if len(self.examples) % 2:
            raise BadOption(
                f"{self._where}: the last example has no reply: add a message of the role 'assistant'"
            )

    @classmethod
    def read(cls, path: Path | str) -> ChatPrompt:
        """Read a prompt file.

        A ``.json`` file contains a list of messages, or an object with the list under ``messages``. A
        ``.jsonl`` file contains one message per line, and a ``.toml`` file an array of tables
        ``[[messages]]``. Each message has ``role`` and ``content``, and only the first may have the role
        ``system``. Any other file is plain text and becomes the system prompt.

        Raises:
            BadOption: The file cannot be read, or its contents are invalid.
            MissingExtra: The file is TOML, and Python 3.10 lacks a package to read it.
        """
        path = Path(path)
        try:
            text = path.read_text("utf-8-sig")
            messages = _messages(path, text)
        except OSError as error:
            raise BadFile(f"the prompt {path} cannot be read: {error.strerror or error}", path=path) from None
        except (ValueError, RecursionError) as error:
            if isinstance(error, BadOption):
                raise
            raise BadFile(f"the prompt {path} cannot be read: {error}", path=path) from None
        if messages is None:
            return cls(scrub(text), source=str(path))
        checked = [_check_message(path, number, message) for number, message in enumerate(messages, 1)]
        system = checked.pop(0)["content"] if checked and checked[0]["role"] == "system" else None
        return cls(system, tuple(checked), source=str(path))

    def messages(self, environment_prompt: str | None) -> list[dict[str, str]]:
        """Return the messages before the first observation.

        Args:
            environment_prompt: The environment's own system prompt, or None.
        """
        own = environment_prompt or ""
        system = own if self.system is None else self.system.replace(ENVIRONMENT_PROMPT, own)
        return [*system_message(system), *map(dict, self.examples)]

    def as_dict(self) -> dict[str, Any]:
        """Return the prompt and its source as JSON values, with the SHA-256 of the prompt."""
        prompt = {"system": self.system, "examples": list(self.examples)}
        serialized = json.dumps(prompt, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")
        return {"source": self.source, "sha256": hashlib.sha256(serialized).hexdigest(), **prompt}

    @property
    def _where(self) -> str:
        return f"the prompt {self.source}" if self.source else "the prompt"


def _messages(path: Path, text: str) -> Sequence[Any] | None:
    """Return the messages in a file, or None if the file is plain text."""
    match path.suffix.lower():
        case ".json":
            value = json.loads(text)
        case ".jsonl":
            value = [json.loads(line) for line in text.split("\n") if line.strip()]
        case ".toml":
            value = read_toml(text, "A prompt in TOML")
        case _:
            return None
    if isinstance(value, dict):
        value = value.get("messages")
    if not isinstance(value, list):
        raise BadFile(
            f"the prompt {path} should contain a list of messages, under 'messages' if in an object",
            path=path,
        )
    return value


def _check_message(path: Path, number: int, message: Any) -> dict[str, str]:
    roles = ("user", "assistant", "system") if number == 1 else ("user", "assistant")
    if not isinstance(message, dict) or set(message) != {"role", "content"}:
        raise BadFile(
            f"the prompt {path}: message {number} should have exactly 'role' and 'content', not "
            f"{shown(message)}",
            path=path,
        )
    if message["role"] not in roles or not isinstance(message["content"], str):
        raise BadFile(
            f"the prompt {path}: message {number} should be text of the role {' or '.join(roles)}, not "
            f"{shown(message)}",
            path=path,
        )
    return {"role": message["role"], "content": scrub(message["content"])}
