"""Small text environments without defects, and forty copies with one seeded defect each.

Importing this package registers the environments: ``sound/NAME-v0`` and ``defect/NAME-v0``.
"""

from __future__ import annotations

from seeded_defects.registry import ALL, SOUND, SeededDefect, SoundEnv

__all__ = ["ALL", "SOUND", "SeededDefect", "SoundEnv"]
