"""The studies by name; nothing is imported until it is asked for."""

from __future__ import annotations

import importlib
import time
from dataclasses import replace

from discreet.errors import ParameterError, UnknownNameError
from discreet_studies.model import Options, Study

STUDIES: dict[str, tuple[str, str]] = {
    "three-approaches": (
        "discreet_studies.three_approaches.study",
        "Three post-tabular approaches for survey weighted tables (Shlomo, Krenzke & Li 2019)",
    ),
    "fair-comparison": (
        "discreet_studies.fair_comparison.study",
        "Fair risk-utility comparison by expected frequencies (Langsrud & Lupp 2021)",
    ),
    "inner-frequencies": (
        "discreet_studies.inner_frequencies.study",
        "Releasable inner cell frequencies from protected tables (Langsrud 2019b)",
    ),
    "regression-decimals": (
        "discreet_studies.regression_decimals",
        "Suppressed tables as decimal numbers that add up (Langsrud 2019a, section 7)",
    ),
    "eliminating-small-cells": (
        "discreet_studies.eliminating_small_cells.study",
        "Eliminating small cells from census counts tables (Giessing & Höhne 2011)",
    ),
    "regression-microdata": (
        "discreet_studies.regression_microdata.study",
        "Information preserving regression-based tools for microdata (Langsrud 2019a)",
    ),
}
"""Module and one line about each study; a module has a function `run(options)`."""

TAKING_RECORDS = ("inner-frequencies",)
"""Studies that can use other records than the paper's."""


def run_study(name: str, options: Options | None = None) -> Study:
    """Run a study.

    Args:
      name: One of `STUDIES`.
      options: What it is told; the paper's own settings by default.
    """
    if name not in STUDIES:
        raise UnknownNameError("study", name, STUDIES)
    _check(name, options or Options())
    started = time.perf_counter()
    found: Study = importlib.import_module(STUDIES[name][0]).run(options or Options())
    return replace(found, seconds=time.perf_counter() - started)


def _check(name: str, options: Options) -> None:
    if options.by is not None and options.data is None:
        raise ParameterError("by= names variables of records of yours; give data= as well.")
    if options.data is not None and name not in TAKING_RECORDS:
        raise ParameterError(
            f"study {name!r} takes no records; data= is for {', '.join(TAKING_RECORDS)}."
        )
