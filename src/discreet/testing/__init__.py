"""Public batteries that hold methods, fitters and engines to their promises; slow references."""

from discreet.testing.methods import BrokenPromiseError, check_method

__all__ = ["BrokenPromiseError", "check_method"]
