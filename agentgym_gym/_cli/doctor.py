"""``agentgym doctor``: check a server, or the local setup."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_gym._addresses import parse_urls
from agentgym_gym._cli.console import clean, out, print_json, print_pairs, print_table
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import ExtraEnvs, Header, headers_of, register_envs
from agentgym_gym._cli.server_sources import ServerSource, print_advice, source_of
from agentgym_gym.catalogue import environments
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._probe import Probe, probe
from agentgym_gym.evaluate._run_metadata import versions
from agentgym_gym.options import Option

if TYPE_CHECKING:
    from agentgym_gym._headers import HiddenHeaders
    from agentgym_gym.catalogue import Environment

__all__ = ["DoctorOptions", "doctor"]

_REQUIREMENT = re.compile(r"""([\w.-]+).*\bextra\s*==\s*["']([\w-]+)["']""")
_PYTHON = re.compile(r"""python_version\s*(<|>=)\s*["']3\.(\d+)["']""")
_COMBINED = frozenset({"all", "dev"})  # extras that combine others


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """The options of ``agentgym doctor``."""

    url: Annotated[
        str | None,
        Option("server to check", positional=True, metavar="[URL]", default="the local setup"),
    ] = None
    env: ExtraEnvs = None
    header: Header = None
    as_json: Annotated[bool, Option("print JSON instead of tables", flag="--json")] = False


@command(DoctorOptions)
def doctor(options: DoctorOptions) -> None:
    """Check a server, or the local setup.

    Without a URL, it lists the installed packages and the server of each environment, and checks the
    configured servers. Exits with 1 if a check fails.

    Other users of this machine can see --header in the list of processes. To hide it, set the variable
    AGENTGYM_<NAME>_HEADERS to a JSON object instead.
    """
    register_envs(options.env)
    url, headers, as_json = options.url, headers_of(options.header), options.as_json
    if headers and not url:
        raise BadOption("--header needs a URL; without one, set the variables AGENTGYM_<NAME>_HEADERS")
    healthy = (
        _check_servers(parse_urls(url, "URL"), headers, as_json=as_json)
        if url
        else _check_setup(as_json=as_json)
    )
    if not healthy:
        raise typer.Exit(1)


def _check_servers(urls: tuple[str, ...], headers: HiddenHeaders, *, as_json: bool) -> bool:
    probes = [probe(url, headers=headers) for url in urls]
    if as_json:
        results = [_probe_json(result) for result in probes]
        print_json(results[0] if len(results) == 1 else results)
    else:
        for result in probes:
            _print_probe(result)
    return all(result.problem is None for result in probes)


def _print_probe(result: Probe) -> None:
    rows = {"server": result.url}
    if result.answers is not None:
        join = " or ".join if result.ambiguous else ", ".join
        rows["answer"] = clean(result.answers)
        names = (e.id for e in result.environments) if result.environments else map(clean, result.mounted)
        rows["serves"] = join(names) or "no environment of the catalogue"
        if result.environments:
            rows["world"] = clean(result.world)
        rows["round trip"] = f"{result.round_trip_ms:.1f} ms"
    print_pairs(rows | {"result": clean(_result(result))})
    if result.mounted:
        mounted = [(clean(name), clean(url)) for name, url in result.mounted.items()]
        print_table(("name", "URL"), mounted, left={"name", "URL"})


def _result(result: Probe) -> str:
    if result.ambiguous:
        return (
            f"ok; servers of these environments give the same responses; pass --server {result.url} to use it"
        )
    if result.mounted and result.problem is None:
        return f"ok; pass the URL of one of its servers: --server {result.url}/NAME"
    return result.problem or f"ok; pass --server {result.url} to use it"


def _probe_json(result: Probe) -> dict[str, Any]:
    return {
        "url": result.url,
        "answers": result.answers,
        "world": result.world if result.environments else None,
        "environments": [environment.id for environment in result.environments],
        "ambiguous": result.ambiguous,
        "mounted": dict(result.mounted),
        "round_trip_ms": result.round_trip_ms,
        "ok": result.problem is None,
        "problem": result.problem,
    }


def _check_setup(*, as_json: bool) -> bool:
    extras = _extras()
    installed = versions(*extras)
    findings = [_Finding.of(environment) for environment in environments()]
    healthy = all(finding.healthy for finding in findings)
    if as_json:
        print_json(
            {"versions": installed, "environments": [each.to_json() for each in findings], "ok": healthy}
        )
        return healthy
    packages = [
        (package, version or f"not installed, extra {extras.get(package, 'all')}")
        for package, version in installed.items()
    ]
    print_table(("package", "version"), packages, left={"package", "version"})
    if not all(installed.values()):
        out.print("To install an extra, run in a checkout: pip install '.[EXTRA]'")
    rows = [(each.environment.id, each.environment.variable, "\n".join(each.lines())) for each in findings]
    headings = ("environment", "variable", "server")
    print_table(headings, rows, left=headings)
    print_advice(finding.source for finding in findings)
    for result in (result for finding in findings for result in finding.probes):
        if result.problem is not None:
            out.print(f"{result.url}: {clean(result.problem).rstrip('.')}.")
    return healthy


@dataclass(frozen=True)
class _Finding:
    """An environment, the source of its server, and the probes of its configured URLs."""

    environment: Environment
    source: ServerSource
    probes: tuple[Probe, ...]

    @classmethod
    def of(cls, environment: Environment) -> _Finding:
        source = source_of(environment)
        return cls(environment, source, tuple(probe(url, environment) for url in source.urls))

    @property
    def healthy(self) -> bool:
        return self.source.kind != "invalid" and all(result.problem is None for result in self.probes)

    def lines(self) -> list[str]:
        if not self.probes:
            return [clean(self.source.label)]
        return [
            f"{each.url}: {f'ok, {each.round_trip_ms:.1f} ms' if each.problem is None else 'failed'}"
            for each in self.probes
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.environment.id,
            "variable": self.environment.variable,
            "server": self.source.kind,
            "server_note": self.source.note,
            "probes": [_probe_json(result) for result in self.probes],
        }


def _extras() -> dict[str, str]:
    """Return the extra of each optional package for this Python, from the metadata of this library."""
    try:
        requirements = metadata.requires("agentgym-gym") or []
    except metadata.PackageNotFoundError:
        return {}
    matches = [
        match for match in map(_REQUIREMENT.match, filter(_applies, requirements)) if match is not None
    ]
    extras: dict[str, str] = {}
    for package, extra in (match.groups() for match in matches):
        if extra not in _COMBINED and package != "agentgym-gym":
            extras.setdefault(package, extra)
    return extras


def _applies(requirement: str) -> bool:
    """Return whether a requirement is for this version of Python."""
    return all(
        (sys.version_info < (3, int(minor))) == (comparison == "<")
        for comparison, minor in _PYTHON.findall(requirement)
    )
