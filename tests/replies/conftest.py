"""The tests of this folder draw as many examples as `tests/properties`."""

import property_profile  # noqa: F401 - it loads the profile
