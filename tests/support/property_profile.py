"""The number of examples that hypothesis draws in `tests/properties` and `tests/replies`."""

from __future__ import annotations

import os

from hypothesis import settings

# There are many environments and formats, so `pytest` and `make test` draw few examples for each.
# `make properties` sets HYPOTHESIS_PROFILE=full; thorough draws the most, and others in each run.
patient = settings.get_profile("patient")
settings.register_profile("quick", patient, derandomize=True, max_examples=3)
settings.register_profile("full", patient, derandomize=True, max_examples=25)
settings.register_profile("thorough", patient, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
