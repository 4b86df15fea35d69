"""Public batteries that hold methods, fitters, engines and installations to their promises."""

from discreet.testing.engines import EngineReport, check_engine
from discreet.testing.fitters import check_fitter
from discreet.testing.install import Validation, check_install
from discreet.testing.laws import BrokenPromiseError
from discreet.testing.methods import check_method

__all__ = [
    "BrokenPromiseError",
    "EngineReport",
    "Validation",
    "check_engine",
    "check_fitter",
    "check_install",
    "check_method",
]
