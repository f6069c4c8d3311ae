"""The version of this package, separate so that it can be read without importing the rest."""

__version__ = "0.2.0"
