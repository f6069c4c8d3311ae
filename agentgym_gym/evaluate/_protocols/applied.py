"""The protocol of a run, in the words that every table, page and export shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_gym._text import shown

__all__ = ["AppliedProtocol", "Deviation", "protocol_text", "refused_fields"]

_DIGITS = 8  # of the hash, in texts


@dataclass(frozen=True)
class Deviation:
    """A setting of a run that differs from its protocol.

    Attributes:
        setting: Name of the setting.
        value: Value in the run.
        stated: Value in the protocol; None if the protocol uses the default.
        instead_of: Name of the setting that this one replaces, if it is another one.
    """

    setting: str
    value: Any
    stated: Any = None
    instead_of: str = ""

    @property
    def text(self) -> str:
        """The deviation in words, such as ``temperature 0.7 in place of 0``."""
        stated = "the default" if self.stated is None else _shown(self.stated)
        replaced = f"{self.instead_of} {stated}" if self.instead_of else stated
        return f"{self.setting.replace('_', ' ')} {_shown(self.value)} in place of {replaced}"


@dataclass(frozen=True)
class AppliedProtocol:
    """A protocol as one environment of a run applies it.

    Attributes:
        name: Name of the protocol.
        sha256: Hash of all that the protocol states.
        metric: The metric that the protocol reports: ``success`` or ``score``.
        items: File name and hash of the item file; None if the protocol needs none.
        deviations: The settings of the run that differ from the protocol.
    """

    name: str
    sha256: str
    metric: str
    items: Mapping[str, str] | None = None
    deviations: Sequence[Deviation] = ()

    @property
    def text(self) -> str:
        """The protocol with its deviations: ``quick (1a2b3c4d), with temperature 0.7 in place of 0``."""
        name, deviations = f"{self.name} ({self.sha256[:_DIGITS]})", [each.text for each in self.deviations]
        return f"{name}, with {', '.join(deviations)}" if deviations else name

    @property
    def facts(self) -> dict[str, Any]:
        """The protocol as JSON values, for the run's record."""
        return {
            "text": self.text,
            "name": self.name,
            "sha256": self.sha256,
            "metric": self.metric,
            "items": None if self.items is None else dict(self.items),
            "deviations": [
                {"setting": each.setting, "value": each.value, "stated": each.stated}
                for each in self.deviations
            ],
        }


def protocol_text(facts: Mapping[str, Any]) -> str | None:
    """Return the recorded `AppliedProtocol.text` of a run, with what its model server refused of it.

    Args:
        facts: The facts about the run.

    Returns:
        The text; None if the run has no protocol.
    """
    recorded = facts.get("protocol")
    text = recorded.get("text") if isinstance(recorded, Mapping) else None
    if not isinstance(text, str):
        return None
    refused = refused_fields(facts)
    return f"{text}; the server refused: {', '.join(refused)}" if refused else text


def refused_fields(facts: Mapping[str, Any]) -> list[str]:
    """Return sentences on what the model server of a run refused, and what was sent instead.

    Args:
        facts: The facts about the run.
    """
    server = facts.get("model_server")
    refused = server.get("refused") if isinstance(server, Mapping) else None
    return [each for each in refused if isinstance(each, str)] if isinstance(refused, list) else []


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:g}" if isinstance(value, float) else shown(value)
