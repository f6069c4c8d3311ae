"""The version of this package, for those who must not import all of it."""

__version__ = "0.2.0"
