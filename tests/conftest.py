"""Shared settings of the test suite."""

from hypothesis import settings

settings.register_profile("discreet", deadline=None, derandomize=True)
settings.load_profile("discreet")
