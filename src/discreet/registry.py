"""Methods, fitters, measures, engines, synthesizers and file formats by name.

One line here makes a new one available in Python, on the command line, in recipes, in comparisons
and in the table builder. Nothing is imported until it is asked for.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from discreet.errors import ParameterError, UnknownNameError

Entry = str | tuple[str, Mapping[str, Any]]
"""Module and name, for one of a family with the parameters that make it."""

METHODS: dict[str, str] = {
    "adjust": "discreet.protect.adjust:Adjust",
    "cell-key": "discreet.protect.cell_key:CellKey",
    "controlled-rounding": "discreet.protect.controlled_rounding:ControlledRounding",
    "discrete-gaussian": "discreet.protect.discrete_gaussian:DiscreteGaussian",
    "discrete-laplace": "discreet.protect.discrete_laplace:DiscreteLaplace",
    "drop-add": "discreet.protect.drop_add:DropAdd",
    "laplace": "discreet.protect.laplace:Laplace",
    "pram": "discreet.protect.pram:Pram",
    "quality": "discreet.protect.quality:Quality",
    "safe": "discreet.protect.safe:Safe",
    "small-count-rounding": "discreet.protect.small_count:SmallCountRounding",
    "suppress": "discreet.protect.suppress.suppress:Suppress",
}
FITTERS: dict[str, str] = {
    "least-absolute": "discreet.solve.continuous.least_absolute:LeastAbsolute",
    "auto": "discreet.solve.continuous.auto:Auto",
    "chain": "discreet.solve.continuous.chain:Chain",
    "non-negative": "discreet.solve.continuous.non_negative:NonNegative",
    "additive": "discreet.solve.continuous.additive:Additive",
    "least-squares": "discreet.solve.continuous.least_squares:LeastSquares",
    "log-linear": "discreet.solve.continuous.log_linear:LogLinear",
    "poisson": "discreet.solve.continuous.poisson:Poisson",
    "whole-number": "discreet.solve.integer.whole_number:WholeNumber",
}
_DEVIATION = "discreet.assess.utility.deviation:Deviation"
_ZEROS = "discreet.assess.utility.zeros:FalseZeros"
_RANKS = "discreet.assess.utility.ranks:RankCorrelation"
_SMALL = "discreet.assess.risk.unchanged:SmallCells"
_PROBABILITY = "discreet.assess.risk.disclosure:DisclosureProbability"
_EXACT = "discreet.assess.risk.exact:ExactDisclosure"
_NEARLY = "discreet.assess.risk.exact:NearCertainGuesses"
_ENTROPY = "discreet.assess.risk.entropy:EntropyRisk"
MEASURES: dict[str, Entry] = {
    "hellinger-utility": "discreet.assess.utility.hellinger:HellingerUtility",
    "hellinger-distance": "discreet.assess.utility.hellinger:HellingerDistance",
    "mean-absolute-deviation": _DEVIATION,
    "median-absolute-deviation": (_DEVIATION, {"summary": "median"}),
    "max-absolute-deviation": (_DEVIATION, {"summary": "max"}),
    "mean-relative-deviation": (_DEVIATION, {"summary": "mean", "relative": True}),
    "median-relative-deviation": (_DEVIATION, {"summary": "median", "relative": True}),
    "max-relative-deviation": (_DEVIATION, {"summary": "max", "relative": True}),
    "root-mean-square": (_DEVIATION, {"summary": "root-mean-square"}),
    "mean-percentage-error": "discreet.assess.utility.deviation:MeanPercentageError",
    "inaccurate-cells": "discreet.assess.utility.deviation:InaccurateCells",
    "false-zeros": _ZEROS,
    "false-positives": (_ZEROS, {"positives": True}),
    "withheld-cells": "discreet.assess.utility.zeros:WithheldCells",
    "additivity-error": "discreet.assess.utility.additivity:AdditivityError",
    "total-bias": "discreet.assess.utility.totals:TotalBias",
    "total-difference": "discreet.assess.utility.totals:TotalDifference",
    "rank-correlation": _RANKS,
    "rank-concordance": (_RANKS, {"concordance": True}),
    "largest-rank-move": "discreet.assess.utility.ranks:LargestRankMove",
    "chi-square-shift": "discreet.assess.utility.association:ChiSquareShift",
    "cramers-v-shift": "discreet.assess.utility.association:CramersVShift",
    "changed-decisions": "discreet.assess.utility.association:ChangedDecisions",
    "adjusted-chi-square": "discreet.assess.utility.association:AdjustedChiSquare",
    "unchanged-cells": "discreet.assess.risk.unchanged:UnchangedCells",
    "unchanged-small-cells": (_SMALL, {"unchanged": True}),
    "surviving-small-cells": _SMALL,
    "uniqueness": "discreet.assess.risk.unchanged:Uniqueness",
    "certain-nonzero": "discreet.assess.risk.nonzero:CertainNonzero",
    "proven-nonzero": "discreet.assess.risk.nonzero:ProvenNonzero",
    "disclosure-probability": _PROBABILITY,
    "disclosure-probability-own": (_PROBABILITY, {"intruder": "own"}),
    "disclosure-probability-refit": (_PROBABILITY, {"intruder": "refit"}),
    "exact-disclosure": _EXACT,
    "exact-disclosure-own": (_EXACT, {"intruder": "own"}),
    "exact-disclosure-refit": (_EXACT, {"intruder": "refit"}),
    "disclosure-precision": (_EXACT, {"figure": "precision"}),
    "disclosure-recall": (_EXACT, {"figure": "recall"}),
    "near-certain-guesses": _NEARLY,
    "near-certain-guesses-own": (_NEARLY, {"intruder": "own"}),
    "differencing": "discreet.assess.risk.differencing:Differencing",
    "targeted-attribution": "discreet.assess.risk.exact:TargetedAttribution",
    "table-disclosure": "discreet.assess.risk.uncrossed:TableDisclosure",
    "intersection-disclosure": "discreet.assess.risk.uncrossed:IntersectionDisclosure",
    "l-diversity": "discreet.assess.risk.diversity:LDiversity",
    "t-closeness": "discreet.assess.risk.diversity:TCloseness",
    "entropy-risk": _ENTROPY,
    "repaired-entropy-risk": (_ENTROPY, {"repaired": True}),
    "mechanism-epsilon": "discreet.assess.risk.mechanism:MechanismEpsilon",
    "mechanism-delta": "discreet.assess.risk.mechanism:MechanismDelta",
}
RECORD_MEASURES: dict[str, str] = {
    "pmse": "discreet.assess.microdata.propensity:PropensityError",
    "pmse-ratio": "discreet.assess.microdata.propensity:PropensityRatio",
    "margin-utility": "discreet.assess.microdata.margins:MarginUtility",
    "interval-overlap": "discreet.assess.microdata.overlap:IntervalOverlap",
    "membership-inference": "discreet.assess.microdata.membership:MembershipInference",
    "membership-advantage": "discreet.assess.microdata.membership:MembershipAdvantage",
    "correct-attribution": "discreet.assess.microdata.attribution:CorrectAttribution",
    "replicated-uniques": "discreet.assess.microdata.copies:ReplicatedUniques",
    "copied-records": "discreet.assess.microdata.copies:CopiedRecords",
    "nearest-record-distance": "discreet.assess.microdata.nearest:NearestRecordDistance",
}
ENGINES: dict[str, str] = {
    "ibis": "discreet.tabulate.ibis_engine:IbisEngine",
    "numpy": "discreet.tabulate.numpy_engine:NumpyEngine",
}
SYNTHESIZERS: dict[str, str] = {
    "from-residuals": "discreet.synthesize.from_residuals:from_residuals",
    "hybrid": "discreet.synthesize.hybrid:hybrid",
    "ipso": "discreet.synthesize.ipso:ipso",
    "mixed": "discreet.synthesize.mixed:mixed",
    "residual-correlation": "discreet.synthesize.residual_correlation:residual_correlation",
    "romm": "discreet.synthesize.romm:romm",
    "score-correlation": "discreet.synthesize.score_correlation:score_correlation",
}
FORMATS: dict[str, str] = {
    "csv": "discreet.release.formats.csv:CsvWriter",
    "html": "discreet.release.formats.html:HtmlWriter",
    "json": "discreet.release.formats.json:JsonWriter",
    "json-stat": "discreet.release.formats.json_stat:JsonStatWriter",
    "parquet": "discreet.release.formats.parquet:ParquetWriter",
    "px": "discreet.release.formats.px:PxWriter",
    "sdmx-csv": "discreet.release.formats.sdmx_csv:SdmxCsvWriter",
    "xlsx": "discreet.release.formats.xlsx:XlsxWriter",
}
_KINDS: dict[str, Mapping[str, Entry]] = {
    "method": METHODS,
    "fitter": FITTERS,
    "measure": MEASURES,
    "measure of records": RECORD_MEASURES,
    "engine": ENGINES,
    "synthesizer": SYNTHESIZERS,
    "format": FORMATS,
}


def load(kind: str, name: str) -> Any:
    """The class or function registered under a name, with the parameters of its entry."""
    entries = _KINDS[kind]
    if name not in entries:
        raise UnknownNameError(kind, name, entries)
    entry = entries[name]
    path, parameters = (entry, {}) if isinstance(entry, str) else entry
    module, _, attribute = path.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    return functools.partial(found, **parameters) if parameters else found


def build(kind: str, name: str, parameters: Mapping[str, Any] | None = None) -> Any:
    """An instance from plain parameters, as recipes and the command line give them.

    A class whose constructor takes more than plain values offers `from_parameters`.
    """
    target = load(kind, name)
    maker = getattr(target, "from_parameters", target)
    known = inspect.signature(maker).parameters
    for given in parameters or {}:
        if given not in known:
            raise UnknownNameError(f"parameter of {kind} {name!r}", given, known)
    needed = [p.name for p in known.values() if p.default is p.empty]
    if missing := [name for name in needed if name not in (parameters or {})]:
        raise ParameterError(f"{kind} {name!r} needs a value of {' and '.join(missing)}.")
    try:
        return maker(**(parameters or {}))
    except TypeError as error:
        raise ParameterError(f"{kind} {name!r}: {error}.") from error
