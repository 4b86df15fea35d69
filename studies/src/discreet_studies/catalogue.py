"""The studies by name; nothing is imported until it is asked for."""

from __future__ import annotations

import importlib
import shlex
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from discreet import __version__
from discreet.errors import ParameterError, UnknownNameError
from discreet_studies.model import Options, Origin, Study

_2019A = (
    "Langsrud, Ø. (2019a). Information preserving regression-based tools for statistical "
    "disclosure control. Statistics and Computing 29. https://doi.org/10.1007/s11222-018-9848-9"
)


@dataclass(frozen=True)
class Entry:
    """One study of the list.

    Attributes:
      module: Where its function `run(options)` is.
      about: One line about it.
      reference: Its paper in full.
    """

    module: str
    about: str
    reference: str


STUDIES: dict[str, Entry] = {
    "three-approaches": Entry(
        "discreet_studies.three_approaches.study",
        "Three post-tabular approaches for survey weighted tables (Shlomo, Krenzke & Li 2019)",
        "Shlomo, N., Krenzke, T. & Li, J. (2019). Comparison of three post-tabular confidentiality "
        "approaches for survey weighted frequency tables. Transactions on Data Privacy 12.",
    ),
    "fair-comparison": Entry(
        "discreet_studies.fair_comparison.study",
        "Fair risk-utility comparison by expected frequencies (Langsrud & Lupp 2021)",
        "Langsrud, Ø. & Lupp, D. P. (2021). Fair risk-utility comparison of tabular perturbation "
        "methods by post-processing to expected frequencies. Joint UNECE/Eurostat Expert Meeting "
        "on Statistical Data Confidentiality.",
    ),
    "inner-frequencies": Entry(
        "discreet_studies.inner_frequencies.study",
        "Releasable inner cell frequencies from protected tables (Langsrud 2019b)",
        "Langsrud, Ø. (2019b). Releasable inner cell frequencies by post-processing protected "
        "tabular data. Joint UNECE/Eurostat Work Session on Statistical Data Confidentiality, The "
        "Hague.",
    ),
    "regression-decimals": Entry(
        "discreet_studies.regression_decimals",
        "Suppressed tables as decimal numbers that add up (Langsrud 2019a, section 7)",
        _2019A,
    ),
    "eliminating-small-cells": Entry(
        "discreet_studies.eliminating_small_cells.study",
        "Eliminating small cells from census counts tables (Giessing & Höhne 2011)",
        "Giessing, S. & Höhne, J. (2011). Eliminating small cells from census counts tables: "
        "empirical vs. design transition probabilities. SORT, Statistics and Operations Research "
        "Transactions, special issue, 59-76.",
    ),
    "regression-microdata": Entry(
        "discreet_studies.regression_microdata.study",
        "Information preserving regression-based tools for microdata (Langsrud 2019a)",
        _2019A,
    ),
}
"""The studies by name."""

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
    options = options or Options()
    _check(name, options)
    started = time.process_time()
    found: Study = importlib.import_module(STUDIES[name].module).run(options)
    return replace(found, seconds=time.process_time() - started, origin=_origin(name, options))


def _origin(name: str, options: Options) -> Origin:
    """Everything that is needed to run the study again."""
    given = {
        "--replicates": options.replicates,
        "--seed": options.seed,
        "--data": options.data,
        "--by": options.by,
    }
    words = [
        part
        for option, value in given.items()
        if value is not None
        for part in (option, shlex.quote(str(value)))
    ]
    return Origin(
        STUDIES[name].reference,
        __version__,
        datetime.now(UTC).date().isoformat(),
        options.seed,
        " ".join(["discreet study run", name, *words]),
    )


def _check(name: str, options: Options) -> None:
    if options.by is not None and options.data is None:
        raise ParameterError("by= names variables of records of yours; give data= as well.")
    if options.data is not None and name not in TAKING_RECORDS:
        raise ParameterError(
            f"study {name!r} takes no records; data= is for {', '.join(TAKING_RECORDS)}."
        )
