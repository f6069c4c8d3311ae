"""The local servers that exist: this project's, and the ones of other packages, found by entry points.

This project's own are in the package ``agentgym_servers``, which is referenced only by import paths and need
not be installed.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_gym import catalogue
from agentgym_gym._imports import import_object
from agentgym_gym.errors import ArgumentName, BadOption, MissingExtra, SetupError, UnknownEnvironment

__all__ = [
    "ALL",
    "GROUP",
    "PACKAGE",
    "ServedWorld",
    "ServerKind",
    "ServerOptions",
    "available",
    "default_world",
    "missing_part",
    "server_kind",
    "server_path",
    "servers",
]

GROUP = "agentgym.servers"
"""The entry-point group for servers of other packages."""

ALL = "all"
"""The name that selects all servers, in one process."""

PACKAGE = "agentgym_servers"
"""The package that runs servers."""

_MODEL = re.compile(r"[!-'*+\--~]+")  # a part of a header, which ends at a comma or a bracket


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Options of every server.

    Attributes:
        max_envs: Limit of environments at a time.
        max_body_bytes: Size limit of a request body; the server answers a larger one with HTTP 413.
        keep_seconds: Seconds for which it keeps an idle environment.
        seed: Seed of its generated world.
        data: A folder with a world of the user's, which replaces the generated one.
        twin: Whether it plays exactly as AgentGym's server where it differs for a reason.
        judge: Base URL of an OpenAI-compatible chat endpoint that judges answers by their meaning.
        judge_model: The model that judges there.
        simplifications: Names of ScienceWorld's simplifications with commas between them, such as ``easy``.

    Raises:
        BadOption: A number is out of range, or the judge is incomplete.
    """

    max_envs: int = 4096
    max_body_bytes: int = 1_048_576
    keep_seconds: float = 3600.0
    seed: int = 0
    data: Path | None = None
    twin: bool = False
    judge: str | None = None
    judge_model: str | None = None
    simplifications: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_envs", "max_body_bytes"):
            self._check(name, getattr(self, name) >= 1, "1 or more")
        self._check("keep_seconds", self.keep_seconds > 0, "above 0")
        self._check("seed", self.seed >= 0, "0 or more")
        if (self.judge is None) != (self.judge_model is None):
            raise BadOption("judge", problem=("and ", ArgumentName("judge_model"), " need each other"))
        named = self.judge_model is None or _MODEL.fullmatch(self.judge_model)
        self._check("judge_model", named, "a name in printable ASCII without spaces, commas and brackets")

    def _check(self, name: str, right: object, expected: str) -> None:
        if not right:
            raise BadOption(name, getattr(self, name), expected)


@dataclass(frozen=True)
class ServerKind:
    """A local server that can be started.

    Attributes:
        title: The environment's name with its capitals.
        create_app: Import path ``"module:function"`` of the function that returns its ASGI application for
            `ServerOptions`; imported on first use.
        needs: The modules it requires, besides the modules of every server.
        takes: The options that change its world or its scores: ``seed`` for a generated one, ``data``, a
            folder with a world of the user's, ``twin``, to reproduce AgentGym's server exactly, and
            ``judge`` and ``judge_model``, and ``simplifications``.
        extra: The extra of this project that installs its dependencies; empty for a server of another
            package.
        check: Import path ``"module:function"`` of a function that returns a `SetupError` if a program is
            missing, such as Java, or None; called if all modules are installed.
        program: The name of that program, for a table.
        most_envs: Import path ``"module:function"`` of a function that returns the default of ``max_envs``
            for this machine; empty for a server whose environments take little memory.
    """

    title: str
    create_app: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    extra: str = ""
    check: str = ""
    program: str = ""
    most_envs: str = ""

    def app(self, **options: Any) -> Any:
        """Return the ASGI application.

        Args:
            options: ``max_envs``, ``max_body_bytes`` and ``keep_seconds`` of `ServerOptions`, and the options
                in `takes`; None selects the default.

        Raises:
            MissingExtra: A dependency is not installed.
            BadOption: It has no such option, or the value is invalid.
        """
        missing = self.missing()
        if missing is not None:
            raise missing
        options = {name: value for name, value in options.items() if value is not None}
        refused = sorted(set(options) - {"max_envs", "max_body_bytes", "keep_seconds", *self.takes})
        if refused:
            raise BadOption(f"the {self.title} server takes no {', '.join(refused)}")
        if self.most_envs and "max_envs" not in options:
            options["max_envs"] = import_object(self.most_envs)()
        return import_object(self.create_app)(ServerOptions(**options))

    def missing(self) -> SetupError | None:
        """Return the error for a missing dependency; None if all are installed. Imports none of them."""
        for module in (PACKAGE, "fastapi", "uvicorn", *self.needs):
            if importlib.util.find_spec(module) is None:
                if not self.extra:
                    return SetupError(f"the local {self.title} server needs the module {module}: install it")
                return MissingExtra(f"the local {self.title} server", extra=self.extra, module=module)
        error: SetupError | None = import_object(self.check)() if self.check else None
        return error


@dataclass(frozen=True)
class ServedWorld:
    """The world of one of this project's servers, as identified in its replies.

    Attributes:
        title: The environment's name.
        version: The version of all worlds: scores are comparable only between equal versions.
        seed: The seed of a generated world; None for a fixed world or the user's data.
        data: Whether it is the user's data.
        twin: Whether the server plays exactly as AgentGym's.
        judge: The model that judges answers; None if none does.
        simplifications: The simplifications of its rules with ``+`` between them; None without any.
    """

    title: str
    version: int
    seed: int | None = None
    data: bool = False
    twin: bool = False
    judge: str | None = None
    simplifications: str | None = None

    def __str__(self) -> str:
        parts = [self.title]
        if self.data:
            parts.append("data")
        elif self.seed is not None:
            parts.append(f"seed {self.seed}")
        if self.twin:
            parts.append("twin")
        if self.judge is not None:
            parts.append(f"judge {self.judge}")
        if self.simplifications is not None:
            parts.append(f"simplified {self.simplifications}")
        return f"agentgym-servers/{self.version} ({', '.join(parts)})"

    @classmethod
    def parse(cls, served_by: str | None) -> ServedWorld | None:
        """Parse a header or ``info["served_by"]``; return None unless it is one of this project's servers."""
        match = _WORLD.fullmatch(served_by or "")
        if match is None:
            return None
        seed = None if match["seed"] is None else int(match["seed"])
        return cls(
            match["title"],
            int(match["version"]),
            seed,
            data=match["data"] is not None,
            twin=match["twin"] is not None,
            judge=match["judge"],
            simplifications=match["simplifications"],
        )


_WORLD = re.compile(
    r"agentgym-servers/(?P<version>\d+) "
    r"\((?P<title>\w+)(?:, seed (?P<seed>\d+)|(?P<data>, data))?(?P<twin>, twin)?"
    r"(?:, judge (?P<judge>[^\s,()]+))?(?:, simplified (?P<simplifications>[\w+]+))?\)"
)


def servers() -> Mapping[str, str]:
    """Return the import paths of all servers by lower-case name; this project's have precedence."""
    own = {
        environment.name.lower(): environment.local_server
        for environment in catalogue.environments()
        if environment.local_server is not None
    }
    others = {point.name.lower(): point.value for point in importlib.metadata.entry_points(group=GROUP)}
    return {**others, **own}


def server_path(name: str) -> str:
    """Return the import path of a server.

    Args:
        name: The name, alias or id of an environment, or the name of an entry point, ignoring case; or an
            import path ``"module:NAME"``, which is returned.

    Raises:
        UnknownEnvironment: There is no server of that name; the message lists all.
    """
    if ":" in name:
        return name
    paths = servers()
    path = paths.get(name.lower())
    if path is None:
        with contextlib.suppress(UnknownEnvironment):
            path = catalogue.find(name).local_server
    if path is None:
        raise UnknownEnvironment(f"there is no local server named {name!r}; available: {', '.join(paths)}")
    return path


def server_kind(name: str) -> ServerKind:
    """Return a server.

    Args:
        name: The name, alias or id of an environment, or the name of an entry point, ignoring case; or an
            import path ``"module:NAME"``.

    Raises:
        UnknownEnvironment: There is no server of that name; the message lists all.
        SetupError: Its package is not installed, or the path does not lead to a `ServerKind`.
    """
    path = server_path(name)
    package = path.partition(":")[0].partition(".")[0]
    if importlib.util.find_spec(package) is None:
        raise SetupError(f"the server {name!r} needs the package {package}, which is not installed")
    kind = import_object(path)
    if not isinstance(kind, ServerKind):
        raise SetupError(f"{path} should be a ServerKind, not {type(kind).__name__}")
    return kind


def available(name: str) -> str | None:
    """Return None if a local server can be started here, or otherwise the reason.

    Args:
        name: As for `server_kind`.
    """
    try:
        missing = server_kind(name).missing()
    except SetupError as error:
        return str(error)
    return None if missing is None else str(missing)


def missing_part(name: str) -> tuple[str, str]:
    """Return a few words for what a local server lacks here, and the extra that installs it, if any.

    Args:
        name: As for `server_kind`; the server must not be available.
    """
    try:
        kind = server_kind(name)
    except SetupError:
        return "a package", ""
    if isinstance(kind.missing(), MissingExtra):
        return f"extra {kind.extra}", kind.extra
    return kind.program or "a package", ""


def default_world(name: str) -> ServedWorld | None:
    """Return the world of a local server that is started without options; None if it is not this project's.

    Args:
        name: As for `server_kind`; the server must be available.
    """
    if not server_path(name).startswith(f"{PACKAGE}."):
        return None
    kind = server_kind(name)
    version: int = import_object(f"{PACKAGE}._frame.version:WORLDS_VERSION")
    return ServedWorld(kind.title, version, seed=0 if "seed" in kind.takes else None)
