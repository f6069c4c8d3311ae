"""``agentgym doctor``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_gym._addresses import parse_urls
from agentgym_gym._cli.console import clean, print_json, print_pairs, print_table
from agentgym_gym._cli.options import Header, headers_of
from agentgym_gym._cli.resolve_env import Own, know
from agentgym_gym._cli.sources import Probe, ServerSource, probe, source_of
from agentgym_gym.catalogue import environments
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._run_metadata import versions

if TYPE_CHECKING:
    from agentgym_gym._headers import HiddenHeaders
    from agentgym_gym.catalogue import Environment

__all__ = ["doctor"]

_REQUIREMENT = re.compile(r"""([\w.-]+).*\bextra\s*==\s*["']([\w-]+)["']""")
_GATHERED = frozenset({"all", "dev"})  # extras that combine others


def doctor(
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="A server to look at; by default the whole set-up.")
    ] = None,
    env: Own = None,
    header: Header = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show what answers at a URL, or the state of this machine.

    Without a URL: what is installed, and for each environment where its server comes from and, where one is
    configured, whether it is the right one. Exits with 1 if something is not as it should be.
    """
    know(env)
    headers = headers_of(header)
    if headers and not url:
        raise BadOption("--header goes with a URL; each environment has a variable AGENTGYM_<NAME>_HEADERS")
    healthy = (
        _look_at(parse_urls(url, "URL"), headers, as_json=as_json) if url else _look_around(as_json=as_json)
    )
    if not healthy:
        raise typer.Exit(1)


def _look_at(urls: tuple[str, ...], headers: HiddenHeaders, *, as_json: bool) -> bool:
    probes = [probe(url, headers=headers) for url in urls]
    if as_json:
        found = [_probe_json(each) for each in probes]
        print_json(found[0] if len(found) == 1 else found)
    else:
        for each in probes:
            _print_probe(each)
    return all(each.problem is None for each in probes)


def _print_probe(found: Probe) -> None:
    rows = {"server": found.url}
    if found.answers is not None:
        among = " or ".join if found.ambiguous else ", ".join
        rows["says"] = clean(found.answers)
        names = (e.id for e in found.environments) if found.environments else map(clean, found.mounted)
        rows["serves"] = among(names) or "nothing known here"
        rows["round trip"] = f"{found.round_trip_ms:.1f} ms"
    print_pairs(rows | {"result": clean(_result(found))})
    if found.mounted:
        mounted = [(clean(name), clean(url)) for name, url in found.mounted.items()]
        print_table(("name", "URL"), mounted, left={"name", "URL"})


def _result(found: Probe) -> str:
    if found.ambiguous:
        return (
            f"ok; these servers answer alike, so which it is cannot be told; use it by --server {found.url}"
        )
    if found.mounted and found.problem is None:
        return f"ok; use the URL of one of its servers: --server {found.url}/NAME"
    return found.problem or f"ok; use it by --server {found.url}"


def _probe_json(found: Probe) -> dict[str, Any]:
    return {
        "url": found.url,
        "answers": found.answers,
        "environments": [environment.id for environment in found.environments],
        "ambiguous": found.ambiguous,
        "mounted": dict(found.mounted),
        "round_trip_ms": found.round_trip_ms,
        "ok": found.problem is None,
        "problem": found.problem,
    }


def _look_around(*, as_json: bool) -> bool:
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
        (package, version or f"not installed (in a checkout: pip install '.[{extras.get(package, 'all')}]')")
        for package, version in installed.items()
    ]
    print_table(("package", "version"), packages, left={"package", "version"})
    rows = [(each.environment.id, each.environment.variable, "\n".join(each.lines())) for each in findings]
    headings = ("environment", "variable", "server")
    print_table(headings, rows, left=headings)
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
        return self.source.kind != "invalid" and all(found.problem is None for found in self.probes)

    def lines(self) -> list[str]:
        if not self.probes:
            return [clean(self.source.note)]
        said = [found.problem or f"ok, {found.round_trip_ms:.1f} ms" for found in self.probes]
        return [f"{found.url}: {clean(text)}" for found, text in zip(self.probes, said, strict=True)]

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.environment.id,
            "variable": self.environment.variable,
            "server": self.source.kind,
            "server_note": self.source.note,
            "probes": [_probe_json(found) for found in self.probes],
        }


def _extras() -> dict[str, str]:
    """Return the extra of each optional package, from the metadata of this library."""
    try:
        requirements = metadata.requires("agentgym-gym") or []
    except metadata.PackageNotFoundError:
        return {}
    matches = [match for match in map(_REQUIREMENT.match, requirements) if match is not None]
    found: dict[str, str] = {}
    for package, extra in (match.groups() for match in matches):
        if extra not in _GATHERED and package != "agentgym-gym":
            found.setdefault(package, extra)
    return found
