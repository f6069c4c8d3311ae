"""The options of an environment: types, help, defaults and validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from agentgym_gym._addresses import parse_urls
from agentgym_gym._headers import parse_headers
from agentgym_gym._http import HttpClient
from agentgym_gym._http.limits import DEFAULT_TIMEOUT, Limits
from agentgym_gym._text import redact
from agentgym_gym.errors import BadOption
from agentgym_gym.options import Option

if TYPE_CHECKING:
    from agentgym_gym.formats import Format

__all__ = [
    "AGENTGYMS_OWN",
    "FORMAT_NAMES",
    "ActionFormat",
    "EnvOptions",
    "EnvTimeout",
    "FormatName",
    "HttpClient",
    "Isolate",
    "MaxTurns",
    "OnUnknown",
    "Parser",
    "Server",
    "SuccessAt",
    "Timeout",
    "is_client",
    "is_whole",
]

FormatName: TypeAlias = Literal[
    "react", "function_calling", "code_as_action", "tags", "adapt", "bare", "tool_calls"
]

FORMAT_NAMES = "react, function_calling, code_as_action, tags, adapt, bare, tool_calls"
"""The names of the action formats, for help lines."""

_ENVIRONMENT = "Environment"

Server: TypeAlias = Annotated[
    str | Sequence[str] | None,
    Option(
        "server URL, or several separated by commas",
        _ENVIRONMENT,
        default="its variable, else a local server",
        usual=True,
        recorded=False,
    ),
]

ActionFormat: TypeAlias = Annotated[
    FormatName | None,
    Option(f"action format: {FORMAT_NAMES}", _ENVIRONMENT, default="react", metavar="FORMAT"),
]

Parser: TypeAlias = Annotated[
    Literal["default", "agentgym"] | None,
    Option("reply parser; agentgym parses as AgentGym's own client does", _ENVIRONMENT),
]

OnUnknown: TypeAlias = Annotated[
    Literal["forward", "refuse"] | None,
    Option("handling of actions outside the environment's grammar", _ENVIRONMENT),
]

MaxTurns: TypeAlias = Annotated[
    int | None,
    Option("turn limit; 0 for none", _ENVIRONMENT, default="the environment's, else 100", least=0),
]

Timeout: TypeAlias = Annotated[
    float | None,
    Option(
        "timeout of each server request, in seconds",
        _ENVIRONMENT,
        default=f"{DEFAULT_TIMEOUT:g}",
        recorded=False,
    ),
]

Isolate: TypeAlias = Annotated[
    Literal["loop", "thread", "process"] | None,
    Option("where each environment runs", _ENVIRONMENT, default="loop or thread"),
]

SuccessAt: TypeAlias = Annotated[
    float | None,
    Option("return that counts as success if none is reported", _ENVIRONMENT, metavar="RETURN"),
]

EnvTimeout: TypeAlias = Annotated[
    float | None,
    Option("timeout of each call to another library's environment, in seconds", _ENVIRONMENT, default="900"),
]

AGENTGYMS_OWN: Any = type("AgentGymsOwn", (), {"__repr__": lambda _: "<AgentGym's own>"})()
"""Default of ``max_turns``: AgentGym's own turn limit; None means no limit."""


@dataclass(frozen=True)
class EnvOptions:
    """The options of one environment; `AgentGymEnv` documents them.

    Attributes:
        own: The options of this kind of environment only.

    Raises:
        BadOption: An option has an invalid value.
    """

    server: Server = None
    split: str | None = None
    action_format: FormatName | Format = "react"
    parser: Literal["default", "agentgym"] = "default"
    on_unknown: OnUnknown = None
    on_fault: Literal["truncate", "raise"] = "truncate"
    max_turns: int | None = AGENTGYMS_OWN
    timeout: float | Mapping[str, float] = DEFAULT_TIMEOUT
    max_envs_per_server: int | None = None
    render_mode: str | None = None
    headers: Mapping[str, str] | None = None
    http_client: HttpClient | None = None
    own: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.server is not None:
            parse_urls(self.server, "server")  # report a typing mistake here, not at the first reset
        if self.max_turns is not AGENTGYMS_OWN:
            _positive("max_turns", self.max_turns, "turns")
        _positive("max_envs_per_server", self.max_envs_per_server, "environments")
        _one_of("parser", self.parser, ("default", "agentgym"))
        _one_of("on_fault", self.on_fault, ("truncate", "raise"))
        _one_of("on_unknown", self.on_unknown, ("forward", "refuse", None))
        _one_of("render_mode", self.render_mode, ("ansi", None))
        if self.headers is not None:
            # A type whose repr hides the values, because reprs appear in logs and tracebacks.
            object.__setattr__(self, "headers", parse_headers(self.headers, "headers"))

    @cached_property
    def non_default(self) -> dict[str, Any]:
        """The options that differ from the defaults, by name: arguments for an identical environment."""
        named = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "own"}
        return {name: value for name, value in named.items() if value != _DEFAULTS[name]} | dict(self.own)

    def limits(self, own: Mapping[str, float]) -> Limits:
        """Return the time limits.

        Args:
            own: Limits of the environment, instead of the general ones.

        Raises:
            BadOption: ``timeout`` is invalid.
        """
        return Limits.of(self.timeout, own)

    @property
    def arguments(self) -> str:
        """The options that differ from the defaults, as call arguments, without passwords and tokens."""
        public = dict(self.non_default)
        if self.server is not None:
            several = not isinstance(self.server, str)
            public["server"] = [*map(redact, self.server)] if several else redact(str(self.server))
        if "http_client" in public and not isinstance(self.http_client, str):
            public["http_client"] = _named(self.http_client)
        return "".join(f", {name}={value!r}" for name, value in public.items())

    def make_client(self, *, asynchronous: bool) -> Any:
        """Return the driver's argument for ``http_client``: a client, a callable that returns one, or None.

        Args:
            asynchronous: Whether the driver needs an ``httpx.AsyncClient`` instead of an ``httpx.Client``.

        Raises:
            BadOption: The import failed, or the object is not a client of the required type.
        """
        if self.http_client is None:
            return None
        # Imported on demand: it imports the HTTP client.
        from agentgym_gym._http.httpx_client import client_source  # noqa: PLC0415

        client = client_source(self.http_client)
        if is_client(client) and hasattr(client, "aclose") != asynchronous:
            kind = "AsyncClient" if asynchronous else "Client"
            raise BadOption("http_client", expected=f"an httpx.{kind}, not a {type(client).__name__}")
        return client


_DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(EnvOptions)}


def is_client(value: object) -> bool:
    """Return whether this is an HTTP client, as opposed to a callable that returns one."""
    return not isinstance(value, type) and hasattr(value, "send") and hasattr(value, "build_request")


def is_whole(value: object) -> bool:
    """Return whether this is an integer, including numpy's, but not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _named(client: object) -> str:
    """Return a name for a client or its factory; its own repr might show a token."""
    of = client if hasattr(client, "__qualname__") else type(client)
    return f"{of.__module__}:{of.__qualname__}"


def _positive(name: str, value: Any, unit: str) -> None:
    if value is not None and not (is_whole(value) and value >= 1):
        raise BadOption(name, value, f"a positive number of {unit}, or None for no limit")


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise BadOption(name, value, f"one of {allowed}")
