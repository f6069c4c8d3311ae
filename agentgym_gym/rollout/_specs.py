"""Find the environment of an id: one rule for commands, rollouts and training."""

from __future__ import annotations

import difflib
import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, parse_env_id

__all__ = ["Unregistered", "find_spec", "import_envs", "is_registered_by", "split_id"]

MOST_NAMED = 10
"""Maximum number of ids in an error message."""

_FRAMEWORKS = frozenset({"agentgym_gym", "gymnasium"})
"""Packages that others import to register environments: an import of them does not make an id theirs."""

_NEUTRAL = _FRAMEWORKS | sys.stdlib_module_names
"""Packages that give no evidence about which module registered an environment."""

_registrations: dict[str, dict[str, Any]] = {}
"""Entry points by id, by the module whose import registered them, for the imports that were observed."""

_observed = {*_FRAMEWORKS}
"""Modules whose registrations are all known."""

_ABSENT = object()

_import_lock = threading.RLock()
"""Held during an import, so that the registrations of two imports are kept apart."""


class Unregistered(ValueError):
    """No environment is registered under an id, or the module that registers it cannot be imported."""

    transient = False


def split_id(env_id: str) -> tuple[str | None, str]:
    """Split ``MODULE:ID`` into the module, or None, and the gymnasium id.

    The module ends at the first colon. A text that is itself a registered id has no module, because ids may
    contain colons.

    >>> from agentgym_gym.rollout import split_id
    >>> split_id("my_module:my/Env-v0")
    ('my_module', 'my/Env-v0')
    >>> split_id("my_module:game:Guess-v0")
    ('my_module', 'game:Guess-v0')
    """
    module, colon, bare = env_id.partition(":")
    if not colon or _versions(env_id):
        return None, env_id
    return module, bare


def find_spec(env_id: str) -> EnvSpec:
    """Return the environment of an id, ``ID`` or ``MODULE:ID``, after importing the module.

    ``MODULE:ID`` is an environment that MODULE registered in one of three ways: during its first import,
    which this function observes; through `agentgym_gym.register`; or with an entry point in MODULE's
    top-level package. A package that MODULE imports may also have registered it, except gymnasium and
    agentgym_gym. If MODULE was imported before this function could observe it, the function also accepts an
    id whose entry point is in neither gymnasium nor agentgym_gym, provided that no other module is known to
    have registered it.

    Args:
        env_id: The id. Without a version, it selects the highest registered one.

    Raises:
        Unregistered: There is no such environment, or the module cannot be imported.
    """
    import_envs(env_id)
    module, bare = split_id(env_id)  # after the import, which may have registered the whole text as an id
    specs = _versions(bare)
    if module is not None:
        registered = _registered(specs, module)
        specs = registered or [spec for spec in specs if _may_have_registered(spec, module)]
    if specs:
        return specs[0]
    advice = (
        f"put the module that registers it before a colon, as in my_package:{env_id}"
        if module is None
        else _advice(module, bare)
    )
    raise Unregistered(f"{env_id!r} is not registered: {advice}")


def import_envs(env_id: str) -> None:
    """Import the module of ``MODULE:ID`` and record its registrations.

    Raises:
        Unregistered: The module cannot be imported.
    """
    module, _ = split_id(env_id)
    if module is None:
        return
    problem = f"cannot import {module!r}, the module of {env_id!r}"
    if not all(part.isidentifier() for part in module.split(".")) or module.endswith(".py"):
        raise Unregistered(
            f"{problem}: write the module as an import does, without .py and with dots for slashes, as in "
            "my_package.my_module:my/Env-v0"
        )
    try:
        _observe_import(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit and panics of extension modules do not derive from Exception
        missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        advice = (
            "install it, or run the command in the folder where it lies"
            if missing
            else f"python -c 'import {module}' should succeed first"
        )
        raise Unregistered(f"{problem}: {type(error).__name__}: {error}; {advice}") from error


def is_registered_by(env_id: str, module: str) -> bool:
    """Return whether a module is known to have registered an id, without importing it.

    Args:
        env_id: The gymnasium id, with its version.
        module: The name of the module.
    """
    spec = gymnasium.registry.get(env_id)
    return spec is not None and bool(_registered([spec], module))


def _observe_import(module: str) -> None:
    if module in _observed and module in sys.modules:
        return
    with _import_lock:
        first = module not in sys.modules
        before = dict(gymnasium.registry)
        importlib.import_module(module)
        if not first:
            return
        _registrations.setdefault(module, {}).update(
            (spec.id, spec.entry_point)
            for spec in list(gymnasium.registry.values())
            if before.get(spec.id) is not spec
        )
        _observed.add(module)


def _versions(env_id: str) -> list[EnvSpec]:
    """Return the environment registered under an id; without a version, all versions, highest first."""
    if env_id in gymnasium.registry:
        return [gymnasium.registry[env_id]]
    try:
        namespace, name, version = parse_env_id(env_id)
    except gymnasium.error.Error:
        return []
    if version is not None:
        return []
    specs = [
        (spec.version, spec)
        for spec in list(gymnasium.registry.values())
        if (spec.namespace, spec.name) == (namespace, name) and spec.version is not None
    ]
    return [spec for _, spec in sorted(specs, key=lambda pair: pair[0], reverse=True)]


def _registered(specs: Iterable[EnvSpec], module: str) -> list[EnvSpec]:
    """Return the environments that a module, or a package it imports, is known to have registered."""
    imported: set[str] | None = set() if _package(module) in _NEUTRAL else None
    registered = []
    for spec in specs:
        packages = {_package(owner) for owner in _known_owners(spec)} | {_entry_package(spec)}
        if _package(module) in packages:
            registered.append(spec)
            continue
        if imported is None:  # computed only if needed, because large packages take time
            imported = _imported_packages(module)
        if packages & imported:
            registered.append(spec)
    return registered


def _may_have_registered(spec: EnvSpec, module: str) -> bool:
    """Return whether a module whose import was not observed may have registered an environment."""
    return (
        module not in _observed
        and _package(module) not in _NEUTRAL
        and _entry_package(spec) not in _FRAMEWORKS
        and not _known_owners(spec)
    )


def _known_owners(spec: EnvSpec) -> set[str]:
    """Return the modules that registered an environment, from observed imports and the catalogue."""
    owners = {
        module
        for module, entry_points in list(_registrations.items())
        if entry_points.get(spec.id, _ABSENT) == spec.entry_point
    }
    noted = vars(spec).get("registered_by")
    return owners | {noted} if isinstance(noted, str) else owners


def _package(module: str) -> str:
    return module.partition(".")[0]


def _entry_package(spec: EnvSpec) -> str:
    """Return the top-level package of an environment's entry point."""
    entry_point: str | Callable[..., Any] | None = spec.entry_point or spec.vector_entry_point
    while isinstance(entry_point, functools.partial):
        entry_point = entry_point.func
    if isinstance(entry_point, str):
        return _package(entry_point.partition(":")[0])
    return _package(str(getattr(entry_point, "__module__", None) or ""))


def _imported_packages(module: str) -> set[str]:
    """Return the packages, except neutral ones, that define the names in a module and its submodules."""
    loaded = [
        value
        for name, value in list(sys.modules.items())
        if f"{name}.".startswith(f"{module}.") and isinstance(value, ModuleType)
    ]
    return {_package(source) for each in loaded for source in _sources(each)} - _NEUTRAL


def _sources(module: ModuleType) -> Iterator[str]:
    """Yield the modules that define the names in a module."""
    for value in list(vars(module).values()):
        source = None
        if issubclass(type(value), ModuleType):  # isinstance would run code of lazy proxies
            source = vars(value).get("__name__")
        elif issubclass(type(value), (type, FunctionType, BuiltinFunctionType)):
            source = getattr(value, "__module__", None)
        if isinstance(source, str):
            yield source


def _advice(module: str, bare: str) -> str:
    """Return advice for an unknown id: similar ids of the module, or the module that registered the id."""
    every = list(gymnasium.registry.values())
    ids = [spec.id for spec in _registered(every, module)]
    verb = "registers"
    if not ids:
        ids = [spec.id for spec in every if _may_have_registered(spec, module)]
        verb = "may have registered"
    nearest = sorted(difflib.get_close_matches(bare, ids, MOST_NAMED, cutoff=0.0))
    more = f" and {len(ids) - len(nearest)} more" if len(ids) > len(nearest) else ""
    advice = f"{module} registers no environment"
    if ids:
        advice = f"{module} {verb} {', '.join(nearest)}{more}; use one of these ids"
    for spec in _versions(bare)[:1]:
        owner = min(_known_owners(spec), default=_entry_package(spec))
        return f"{advice}; {spec.id} is registered by {owner}: write {owner}:{spec.id}"
    return advice if ids else f"{advice}; name the module that registers {bare!r}"
