"""Public batteries that hold methods, fitters, engines and installations to their promises."""

from discreet.lazy import lazy_names
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

__getattr__ = lazy_names(
    __name__,
    {
        "engines": "ALL_CASES",
        "laws": "Broken ReleaseEvidence by_cell check_sentences chi_square chi_square_p"
        " retabulate sample_table",
        "numpy_engine": "NumpyEngine",
    },
)
