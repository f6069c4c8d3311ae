"""The values that an environment's process may send: plain data as JSON, so that reading them runs no code.

Plain are None, truth values, numbers, text, bytes, arrays and scalars of numpy except object arrays, and
lists, tuples, sets and mappings of these. gymnasium's spaces and some types of this library are sent as the
arguments of their constructors. An entry of a mapping with any other value is left out, and its name is
reported.
"""

from __future__ import annotations

import base64
import importlib
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from agentgym_gym._text_space import TextSpace

__all__ = ["NotPlain", "decode", "encode", "register_type"]

_TAG = "~"  # the key of a JSON object that is not a mapping with text keys
_ARRAY_KINDS = frozenset("biufcSUMm")  # of numpy's types, without objects and structures
_MAX_DEPTH = 50
_MAX_VALUES = 200_000  # in one message: a small graph of shared lists may have any number of paths
_MAX_BITS = 8192  # of an integer; Python converts no longer ones to text
_MORE_TYPES = ("agentgym_gym.rollout._adapter", "agentgym_gym._portable")
"""Modules that register the types of higher layers."""


class NotPlain(TypeError):
    """A value is not plain data."""


class _Type(NamedTuple):
    """A type that is sent as arguments of a function.

    Attributes:
        base: The type.
        arguments: Returns the arguments for a value.
        build: Returns the value for the arguments.
        subclasses: Whether `arguments` accepts the subclasses, too.
    """

    base: type
    arguments: Callable[[Any], Mapping[str, Any]]
    build: Callable[..., Any]
    subclasses: bool


_types: dict[str, _Type] = {}


def register_type(
    base: type,
    arguments: Callable[[Any], Mapping[str, Any]],
    build: Callable[..., Any] | None = None,
    *,
    subclasses: bool = False,
) -> None:
    """Let a type cross from an environment's process.

    Args:
        base: The type.
        arguments: Returns the arguments of `build` for a value: plain data, or values of registered types.
        build: Returns the value; by default `base`. It must be safe for any arguments.
        subclasses: Whether its subclasses may cross, too.
    """
    _types[base.__name__] = _Type(base, arguments, build or base, subclasses)


def encode(value: Any, dropped: list[str] | None = None) -> Any:
    """Return plain data as values of JSON.

    Args:
        value: The data.
        dropped: Gets the names of the mappings' entries that are left out; None to leave out none.

    Raises:
        NotPlain: The value, or an item of it that is no entry of a mapping, is not plain.
    """
    return _Encoder(dropped).plain(value, "", 0)


def decode(text: bytes) -> Any:
    """Return the value of JSON text with encoded values.

    Raises:
        ValueError: The text is not the JSON of encoded values.
    """
    try:
        return json.loads(text, object_hook=_decoded)
    except Exception as error:  # a constructor of a registered type may raise anything
        raise ValueError(f"{type(error).__name__}: {error}") from error


class _Encoder:
    def __init__(self, dropped: list[str] | None) -> None:
        self._dropped = dropped
        self._count = 0
        self._open = set[int]()  # the containers around the current value

    def plain(self, value: Any, name: str, depth: int) -> Any:
        """Return a value for JSON; raise NotPlain if there is none."""
        self._count += 1
        if self._count > _MAX_VALUES or depth > _MAX_DEPTH:
            raise NotPlain(f"more than {_MAX_VALUES} values, or nested more than {_MAX_DEPTH} times")
        if isinstance(value, (np.generic, np.ndarray, np.dtype)):
            return _encoded_array(value)
        if value is None or isinstance(value, (str, float, int)):
            if isinstance(value, int) and value.bit_length() > _MAX_BITS:
                raise NotPlain(f"an integer of {value.bit_length()} bits")
            return value
        if id(value) in self._open:
            raise NotPlain(f"a {type(value).__name__} that contains itself")
        self._open.add(id(value))
        try:
            return self._container(value, name, depth)
        finally:
            self._open.discard(id(value))

    def _container(self, value: Any, name: str, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value, name, depth)
        for kind in (list, tuple, set, frozenset):
            if isinstance(value, kind):
                items = [self.plain(item, name, depth + 1) for item in value]
                return items if kind is list else _tagged(kind.__name__, items)
        if isinstance(value, (bytes, bytearray)):
            return _tagged("bytes", base64.b64encode(value).decode("ascii"))
        if isinstance(value, complex):
            return _tagged("complex", [value.real, value.imag])
        if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # a scalar of a library like numpy
            return self.plain(value.item(), name, depth + 1)
        known = _type_of(value)
        if known is None:
            raise NotPlain(f"a {type(value).__module__}.{type(value).__qualname__} is not plain data")
        name_of_type, arguments = known
        inner = {key: self.plain(item, name, depth + 1) for key, item in arguments.items()}
        return _tagged("type", [name_of_type, inner])

    def _mapping(self, mapping: Mapping[Any, Any], name: str, depth: int) -> Any:
        pairs = []
        for key, value in mapping.items():
            path = f"{name}.{key}" if name else str(key)
            try:
                pairs.append((self.plain(key, path, depth + 1), self.plain(value, path, depth + 1)))
            except NotPlain:
                if self._dropped is None:
                    raise
                self._dropped.append(path[:200])
        if all(isinstance(key, str) and key != _TAG for key, _ in pairs):
            return dict(pairs)
        return _tagged("dict", pairs)


def _tagged(tag: str, content: Any) -> dict[str, Any]:
    return {_TAG: tag, "of": content}


def _encoded_array(value: Any) -> dict[str, Any]:
    kind = value if isinstance(value, np.dtype) else value.dtype
    if kind.kind not in _ARRAY_KINDS or isinstance(value, np.ma.MaskedArray):
        raise NotPlain(f"a {type(value).__name__} of {kind}")
    if isinstance(value, np.dtype):
        return _tagged("dtype", kind.str)
    array = np.ascontiguousarray(value)
    content = base64.b64encode(array.tobytes()).decode("ascii")
    tag = "array" if isinstance(value, np.ndarray) else "scalar"
    return _tagged(tag, [kind.str, value.shape, content])


def _type_of(value: Any) -> tuple[str, Mapping[str, Any]] | None:
    """Return the name of a value's registered type, and its arguments."""
    if "agentgym_gym.actions" in sys.modules:  # otherwise there is no value of its types
        _import_types()
    for name, known in _types.items():
        if type(value) is known.base or (known.subclasses and isinstance(value, known.base)):
            return name, known.arguments(value)
    return None


def _import_types() -> None:
    for module in _MORE_TYPES:
        importlib.import_module(module)


def _decoded(fields: dict[str, Any]) -> Any:
    """Return the value of a JSON object, whose own values are already decoded."""
    return _DECODERS[fields[_TAG]](fields["of"]) if _TAG in fields else fields


def _decoded_bytes(content: str) -> bytes:
    return base64.b64decode(content, validate=True)


def _decoded_array(parts: list[Any]) -> Any:
    kind, shape, content = parts
    flat = np.frombuffer(_decoded_bytes(content), np.dtype(str(kind)))
    return flat.reshape(shape).copy()  # a buffer of bytes is read-only


def _decoded_type(parts: list[Any]) -> Any:
    name, arguments = parts
    if name not in _types:
        _import_types()
    return _types[name].build(**arguments)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
    "complex": lambda parts: complex(*parts),
    "bytes": _decoded_bytes,
    "dtype": lambda name: np.dtype(str(name)),
    "array": _decoded_array,
    "scalar": lambda parts: _decoded_array(parts)[()],
    "type": _decoded_type,
}


def _attributes(*names: str, **renamed: str) -> Callable[[Any], Mapping[str, Any]]:
    """Return a function that reads arguments from attributes of the same names, or of other names."""
    by_argument = {name: name for name in names} | renamed
    return lambda value: {argument: getattr(value, name) for argument, name in by_argument.items()}


register_type(spaces.Box, _attributes("low", "high", "dtype"))
register_type(spaces.Discrete, _attributes("n", "start"))
register_type(spaces.MultiBinary, _attributes("n"))
register_type(spaces.MultiDiscrete, _attributes("nvec", "dtype", "start"))
register_type(spaces.Text, _attributes("max_length", "min_length", charset="character_list"))
register_type(spaces.Tuple, _attributes("spaces"))
register_type(spaces.Dict, lambda space: {"spaces": list(space.spaces.items())})
register_type(spaces.Sequence, _attributes("stack", space="feature_space"))
register_type(spaces.OneOf, _attributes("spaces"))
register_type(spaces.Graph, _attributes("node_space", "edge_space"))
register_type(TextSpace, _attributes())
