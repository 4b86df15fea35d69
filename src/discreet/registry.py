"""Methods, fitters, measures and everything else that is chosen by name.

One line here, or an entry point of another package (`discreet.registry`), makes a new one available
in Python, on the command line, in recipes, in comparisons and in the table builder. Nothing is
imported until it is asked for.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from discreet.errors import (
    DiscreetError,
    ParameterError,
    PluginError,
    UnknownNameError,
    check_known,
)
from discreet.progress import notice

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


Entry = str | tuple[str, Mapping[str, Any]]
"""Module and name, for one of a family with the parameters that make it."""
METHODS: dict[str, str] = {
    "adjust": "discreet.protect.adjust:Adjust",
    "cell-key": "discreet.protect.cell_key:CellKey",
    "controlled-rounding": "discreet.protect.controlled_rounding:ControlledRounding",
    "discrete-gaussian": "discreet.protect.private_methods:DiscreteGaussian",
    "discrete-laplace": "discreet.protect.private_methods:DiscreteLaplace",
    "drop-add": "discreet.protect.drop_add:DropAdd",
    "laplace": "discreet.protect.private_methods:Laplace",
    "magnitude-key": "discreet.protect.magnitude_key:MagnitudeKey",
    "pram": "discreet.protect.pram:Pram",
    "quality": "discreet.protect.quality:Quality",
    "safe": "discreet.protect.safe:Safe",
    "small-count-rounding": "discreet.protect.small_count:SmallCountRounding",
    "suppress": "discreet.suppress.suppress:Suppress",
}
FITTERS: dict[str, str] = {
    "least-absolute": "discreet.solve.absolute.least_absolute:LeastAbsolute",
    "auto": "discreet.solve.auto:Auto",
    "chain": "discreet.solve.auto:Chain",
    "non-negative": "discreet.solve.non_negative.non_negative:NonNegative",
    "from-margins": "discreet.solve.margins.from_margins:FromMargins",
    "additive": "discreet.solve.least_squares.additive:Additive",
    "least-squares": "discreet.solve.least_squares.least_squares:LeastSquares",
    "log-linear": "discreet.solve.likelihood.log_linear:LogLinear",
    "noise-likelihood": "discreet.solve.likelihood.noise_likelihood:NoiseLikelihood",
    "poisson": "discreet.solve.likelihood.poisson:Poisson",
    "whole-number": "discreet.solve.integer.whole_number:WholeNumber",
}
_DEVIATION = "discreet.assessment.utility.deviation:Deviation"
_ZEROS = "discreet.assessment.utility.deviation:FalseZeros"
_RANKS = "discreet.assessment.utility.association:RankCorrelation"
_SMALL = "discreet.assessment.risk.unchanged:SmallCells"
_PROBABILITY = "discreet.assessment.risk.disclosure:DisclosureProbability"
_EXACT = "discreet.assessment.risk.disclosure:ExactDisclosure"
_NEARLY = "discreet.assessment.risk.disclosure:NearCertainGuesses"
_ENTROPY = "discreet.assessment.risk.entropy:EntropyRisk"
MEASURES: dict[str, Entry] = {
    "hellinger-utility": "discreet.assessment.utility.association:HellingerUtility",
    "hellinger-distance": "discreet.assessment.utility.association:HellingerDistance",
    "mean-absolute-deviation": _DEVIATION,
    "median-absolute-deviation": (_DEVIATION, {"summary": "median"}),
    "max-absolute-deviation": (_DEVIATION, {"summary": "max"}),
    "mean-relative-deviation": (_DEVIATION, {"summary": "mean", "relative": True}),
    "median-relative-deviation": (_DEVIATION, {"summary": "median", "relative": True}),
    "max-relative-deviation": (_DEVIATION, {"summary": "max", "relative": True}),
    "root-mean-square": (_DEVIATION, {"summary": "root-mean-square"}),
    "mean-percentage-error": "discreet.assessment.utility.deviation:MeanPercentageError",
    "inaccurate-cells": "discreet.assessment.utility.deviation:InaccurateCells",
    "false-zeros": _ZEROS,
    "false-positives": (_ZEROS, {"positives": True}),
    "withheld-cells": "discreet.assessment.utility.deviation:WithheldCells",
    "additivity-error": "discreet.assessment.utility.additivity:AdditivityError",
    "total-bias": "discreet.assessment.utility.deviation:TotalBias",
    "total-difference": "discreet.assessment.utility.deviation:TotalDifference",
    "rank-correlation": _RANKS,
    "rank-concordance": (_RANKS, {"concordance": True}),
    "largest-rank-move": "discreet.assessment.utility.association:LargestRankMove",
    "chi-square-shift": "discreet.assessment.utility.association:ChiSquareShift",
    "cramers-v-shift": "discreet.assessment.utility.association:CramersVShift",
    "changed-decisions": "discreet.assessment.utility.association:ChangedDecisions",
    "adjusted-chi-square": "discreet.assessment.utility.association:AdjustedChiSquare",
    "unchanged-cells": "discreet.assessment.risk.unchanged:UnchangedCells",
    "unchanged-small-cells": (_SMALL, {"unchanged": True}),
    "surviving-small-cells": _SMALL,
    "uniqueness": "discreet.assessment.risk.unchanged:Uniqueness",
    "certain-nonzero": "discreet.assessment.risk.unchanged:CertainNonzero",
    "proven-nonzero": "discreet.assessment.risk.unchanged:ProvenNonzero",
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
    "differencing": "discreet.assessment.risk.uncrossed:Differencing",
    "targeted-attribution": "discreet.assessment.risk.disclosure:TargetedAttribution",
    "table-disclosure": "discreet.assessment.risk.uncrossed:TableDisclosure",
    "intersection-disclosure": "discreet.assessment.risk.uncrossed:IntersectionDisclosure",
    "l-diversity": "discreet.assessment.risk.diversity:LDiversity",
    "t-closeness": "discreet.assessment.risk.diversity:TCloseness",
    "entropy-risk": _ENTROPY,
    "repaired-entropy-risk": (_ENTROPY, {"repaired": True}),
    "mechanism-epsilon": "discreet.assessment.risk.entropy:MechanismEpsilon",
    "mechanism-delta": "discreet.assessment.risk.entropy:MechanismDelta",
}
RECORD_MEASURES: dict[str, str] = {
    "pmse": "discreet.assessment.microdata.utility:PropensityError",
    "pmse-ratio": "discreet.assessment.microdata.utility:PropensityRatio",
    "margin-utility": "discreet.assessment.microdata.utility:MarginUtility",
    "interval-overlap": "discreet.assessment.microdata.utility:IntervalOverlap",
    "membership-inference": "discreet.assessment.microdata.risk:MembershipInference",
    "membership-advantage": "discreet.assessment.microdata.risk:MembershipAdvantage",
    "correct-attribution": "discreet.assessment.microdata.risk:CorrectAttribution",
    "replicated-uniques": "discreet.assessment.microdata.risk:ReplicatedUniques",
    "copied-records": "discreet.assessment.microdata.risk:CopiedRecords",
    "nearest-record-distance": "discreet.assessment.microdata.risk:NearestRecordDistance",
    "large-units": "discreet.attacks.leverage:LargeUnits",
    "cluster-insiders": "discreet.attacks.insiders:InsiderDisclosure",
}
ENGINES: dict[str, str] = {
    "query": "discreet.records.query_engine:QueryEngine",
    "ibis": "discreet.records.query_engine:QueryEngine",
    "numpy": "discreet.testing.numpy_engine:NumpyEngine",
}
SYNTHESIZERS: dict[str, str] = {
    "from-residuals": "discreet.synthesis.methods:from_residuals",
    "hybrid": "discreet.synthesis.hybrid:hybrid",
    "ipso": "discreet.synthesis.methods:ipso",
    "mixed": "discreet.synthesis.mixed:mixed",
    "residual-correlation": "discreet.synthesis.methods:residual_correlation",
    "romm": "discreet.synthesis.methods:romm",
    "score-correlation": "discreet.synthesis.methods:score_correlation",
}
CONNECTIONS: dict[str, str] = {
    "postgres": "discreet.records.postgres:connect",
    "postgresql": "discreet.records.postgres:connect",
    "spark": "discreet.records.spark:connect",
}
MATRICES: dict[str, str] = {
    "discrete-laplace": "discreet.noise.pram:discrete_laplace",
    "drop-add": "discreet.noise.pram:drop_add",
    "file": "discreet.noise.matrix:read_matrix",
    "linear-table": "discreet.noise.linear:linear_table",
    "perturbation-table": "discreet.noise.entropy:perturbation_table",
    "pram": "discreet.noise.pram:pram",
}
RULES: dict[str, str] = {
    "threshold": "discreet.rules.counts:Threshold",
    "direct-disclosure": "discreet.rules.counts:DirectDisclosure",
    "group-disclosure": "discreet.rules.counts:GroupDisclosure",
    "k-disclosure": "discreet.rules.counts:KDisclosure",
    "dominance": "discreet.rules.magnitudes:Dominance",
    "p%": "discreet.rules.magnitudes:PPercent",
    "p/q": "discreet.rules.magnitudes:PQ",
    "few-contributors": "discreet.rules.magnitudes:FewContributors",
    "zero-unsafe": "discreet.rules.magnitudes:ZeroUnsafe",
}
FORMATS: dict[str, str] = {
    "csv": "discreet.release.formats.csv:CsvWriter",
    "csvw": "discreet.release.formats.csv:CsvwWriter",
    "html": "discreet.release.formats.html:HtmlWriter",
    "json": "discreet.release.formats.json:JsonWriter",
    "json-stat": "discreet.release.formats.json:JsonStatWriter",
    "parquet": "discreet.release.formats.tabular:ParquetWriter",
    "px": "discreet.release.formats.px:PxWriter",
    "sdmx-csv": "discreet.release.formats.tabular:SdmxCsvWriter",
    "xlsx": "discreet.release.formats.xlsx:XlsxWriter",
}
_REFIT = "discreet.attacks.refit:Refit"
ATTACKS: dict[str, Entry] = {
    "integer-reconstruction": "discreet.attacks.reconstruction:IntegerReconstruction",
    "refit-least-squares": _REFIT,
    "refit-least-absolute": (_REFIT, {"fitter": "least-absolute"}),
    "refit-log-linear": (_REFIT, {"fitter": "log-linear"}),
    "refit-noise-likelihood": (_REFIT, {"fitter": "noise-likelihood"}),
    "inner-table": "discreet.attacks.refit:InnerTable",
    "bounds": "discreet.attacks.bounds:CountBounds",
    "averages": "discreet.attacks.averages:Averages",
    "several-laws": "discreet.attacks.several_laws:SeveralLaws",
    "weighted-steps": "discreet.attacks.extra_figures:WeightedSteps",
    "decimals": "discreet.attacks.extra_figures:WeightDecimals",
    "quality-classes": "discreet.attacks.extra_figures:QualityClasses",
    "complements": "discreet.attacks.complements:Complements",
    "contributor": "discreet.attacks.contributors:Contributor",
    "group-attributes": "discreet.attacks.groups:GroupAttributes",
    "nested-crossings": "discreet.attacks.groups:NestedCrossings",
    "differencing": "discreet.attacks.differencing:Differencing",
    "leavers": "discreet.attacks.editions:Leavers",
    "unchanged-cells": "discreet.attacks.editions:UnchangedCells",
    "pattern-difference": "discreet.attacks.patterns:PatternDifference",
    "pattern-intersection": "discreet.attacks.patterns:PatternIntersection",
    "pattern-inversion": "discreet.attacks.patterns:PatternInversion",
    "fitted-values": "discreet.attacks.leverage:FittedValues",
    "copies": "discreet.attacks.leverage:Copies",
    "longest-column": "discreet.attacks.leverage:LongestColumn",
    "cluster-insider": "discreet.attacks.insiders:ClusterInsider",
    "membership": "discreet.attacks.membership:Membership",
}
KINDS: dict[str, Mapping[str, Entry]] = {
    "method": METHODS,
    "fitter": FITTERS,
    "measure": MEASURES,
    "measure of records": RECORD_MEASURES,
    "engine": ENGINES,
    "connection": CONNECTIONS,
    "format": FORMATS,
    "matrix": MATRICES,
    "rule": RULES,
    "synthesizer": SYNTHESIZERS,
    "attack": ATTACKS,
}
PARTS: dict[str, tuple[str, str | None]] = {
    "method": ("method", "cell-key"),
    "matrix": ("matrix", "perturbation-table"),
    "fitter": ("fitter", "non-negative"),
    "fitters": ("fitter", None),
    "rules": ("rule", "threshold"),
}
"""Parameters that are registered themselves: their kind, and the usual name."""
_NOW_WRITTEN = {
    "parameters": 'nested data, such as method={"name": "drop-add", "cap": 3}',
    "ptable": 'matrix={"name": "file", "path": "ptable.csv"}',
    "sensitive_zeros": 'rules="threshold(3, zeros)"',
}
# Only a comma before another NAME= separates parameters: values such as [1, 2] hold commas too.
_COMMA = re.compile(r",(?=\s*[A-Za-z_][\w-]*\s*=)")
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


def names(kind: str) -> list[str]:
    """Every registered name of a kind, those of plug-ins last."""
    built_in = KINDS[kind]
    return [*built_in, *plugin_entries(kind, frozenset(built_in))]


def each(kind: str, *, texts: Sequence[str], calls: Sequence[str]) -> dict[str, Any]:
    """One of every name of a kind, made without parameters, by name.

    A plug-in of which none can be made, or that lacks a part, is named in a notice and left out.

    Args:
      kind: One of `KINDS`.
      texts: Attributes that each has, as texts.
      calls: Attributes that each has, and that can be called.
    """
    found = {name: build(kind, name) for name in KINDS[kind]}
    for name in plugin_entries(kind, frozenset(KINDS[kind])):
        try:
            made = build(kind, name)
            missing = [part for part in texts if not isinstance(getattr(made, part, None), str)]
            missing += [part for part in calls if not callable(getattr(made, part, None))]
            if missing:
                raise fault(kind, name, f"it has no {' and no '.join(missing)}")
        except PluginError as error:
            notice(str(error))
        except DiscreetError as error:
            notice(str(fault(kind, name, error)))
        else:
            found[name] = made
    return found


def fault(kind: str, name: str, why: object) -> PluginError:
    """An error that names the plug-in behind a name that is not built in."""
    return plugin_fault(kind, plugin_entries(kind, frozenset(KINDS[kind]))[name], why)


def load(kind: str, name: str) -> Any:
    """The class or function registered under a name, with the parameters of its entry."""
    built_in = KINDS[kind]
    if name not in built_in:
        others = plugin_entries(kind, frozenset(built_in))
        if name not in others:
            raise UnknownNameError(kind, name, [*built_in, *others])
        return load_plugin(kind, others[name])
    entry = built_in[name]
    path, parameters = (entry, {}) if isinstance(entry, str) else entry
    found = load_path(path)
    return functools.partial(found, **parameters) if parameters else found


def load_path(path: str) -> Any:
    """What stands at `"module:name"`."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def build(
    kind: str, given: str | Mapping[str, Any], parameters: Mapping[str, Any] | None = None
) -> Any:
    """An instance from plain data, as recipes and the command line give it.

    A parameter that is itself registered (`PARTS`) is given by its name or as nested data:
    `{"name": "cell-key", "matrix": {"name": "perturbation-table", "D": 5, "V": 3}}`. A parameter
    that the constructor does not have goes to this part, so that `{"name": "cell-key", "D": 5,
    "V": 3}` means the same.

    The same is written as a text, `"cell-key:D=5,V=3"`.

    Args:
      kind: One of `KINDS`.
      given: A registered name, or the name and the parameters together, as a text or as data.
      parameters: The parameters that go with a name.

    >>> build("method", "drop-add:share=0.1,cap=3").cap
    3
    """
    check_known("kind", [kind], KINDS)
    if isinstance(given, str):
        given = read_text(given)
    if isinstance(given, Mapping):
        if not isinstance(given.get("name"), str):
            raise ParameterError(f'{kind} as plain data needs a "name", got {dict(given)!r}.')
        if twice := [name for name in parameters or {} if name in given]:
            raise ParameterError(f"{kind} {given['name']!r} has two values of {twice[0]!r}.")
        parameters = {**given, **(parameters or {})}
        given = str(parameters.pop("name"))
    else:
        raise ParameterError(
            f'{kind} is given by its name, or as plain data with a "name"; got {given!r}.'
        )
    target = load(kind, given)
    try:
        return make(target, parameters or {}, f"{kind} {given!r}")
    except DiscreetError:
        raise
    except Exception as error:  # whatever another package's code raises
        if given in KINDS[kind]:
            raise
        raise fault(kind, given, f"{type(error).__name__}: {error}") from error


def read_text(text: str) -> dict[str, Any]:
    """The name and the parameters of a text ``NAME:PARAMETER=VALUE,…`` as plain data.

    >>> read_text("cell-key:D=5, V=3")
    {'name': 'cell-key', 'D': 5, 'V': 3}
    """
    name, _, rest = text.partition(":")
    found: dict[str, Any] = {"name": name.strip()}
    for part in filter(None, _COMMA.split(rest.strip())):
        parameter, separator, value = part.partition("=")
        if not separator or not value.strip():
            raise ParameterError(f"parameters are written NAME=VALUE,NAME=VALUE; got {part!r}.")
        found[parameter.strip().replace("-", "_")] = plain_value(value.strip())
    return found


def plain_value(text: str) -> Any:
    """A value as it is written on a command line.

    Numbers, lists, truth values and null are read as JSON; truth values also as `True`, `no` and
    the like. Everything else is text, and so is what stands in quotation marks.

    >>> [plain_value(text) for text in ("3", "False", "yes", "p%(10)", '"no"')]
    [3, False, True, 'p%(10)', 'no']
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return _TRUTH.get(text.lower(), text)


def make(target: Callable[..., Any], parameters: Mapping[str, Any], what: str) -> Any:
    """What a class or function makes of plain parameters; `what` names it in messages."""
    known = inspect.signature(target).parameters
    own = {name: value for name, value in parameters.items() if name in known}
    flat = {name: value for name, value in parameters.items() if name not in known}
    for part in (name for name in known if name in PARTS):
        below = _names_below(part, own.get(part)) if flat else []
        _check_names(what, flat, [*known, *below])
        if flat or own.get(part) is not None or known[part].default is inspect.Parameter.empty:
            own[part] = _build_part(part, own.get(part), flat)
        flat = {}
    _check_names(what, flat, [*known])
    if missing := [p.name for p in known.values() if p.default is p.empty and p.name not in own]:
        raise ParameterError(f"{what} needs a value of {' and '.join(missing)}.")
    try:
        return target(**own)
    except TypeError as error:
        raise ParameterError(f"{what}: {error}.") from error


def _check_names(what: str, given: Mapping[str, Any], known: list[str]) -> None:
    for name in given:
        if name in known:
            continue
        if name in _NOW_WRITTEN:
            raise ParameterError(f"{what} has no parameter {name!r}: write {_NOW_WRITTEN[name]}.")
        raise UnknownNameError(f"parameter of {what}", name, known)


def _names_below(part: str, given: Any) -> list[str]:
    """Names of the parameters that can be handed on to a part, and to its own part."""
    kind, usual = PARTS[part]
    chosen = given.get("name") if isinstance(given, Mapping) else given or usual
    if not _is_name(chosen):
        return []
    known = inspect.signature(load(kind, chosen)).parameters
    return [*known, *(name for p in known if p in PARTS for name in _names_below(p, None))]


def _build_part(part: str, given: Any, flat: Mapping[str, Any]) -> Any:
    """A part from its name or plain data, each of several; what is an object already stays."""
    if isinstance(given, list | tuple):
        return [_build_part(part, each, {}) for each in given]
    kind, usual = PARTS[part]
    chosen = usual if given is None else given
    if _is_name(chosen) or isinstance(chosen, Mapping):
        return build(kind, chosen, flat)
    return chosen


def _is_name(chosen: Any) -> TypeGuard[str]:
    """Whether this is a name; a text with brackets, such as `p%(10)`, is the constructor's own."""
    return isinstance(chosen, str) and "(" not in chosen


_GROUPS = {"matrix": "matrices", "measure of records": "record_measures"}


def group_of(kind: str) -> str:
    """The group of entry points of a kind, without the package's name in front."""
    return _GROUPS.get(kind, f"{kind}s")


@functools.cache
def plugin_entries(kind: str, built_in: frozenset[str]) -> dict[str, tuple[EntryPoint, ...]]:
    """Entry points of a kind by name; a notice names those that ask for a built-in name."""
    from importlib.metadata import entry_points

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=f"discreet.{group_of(kind)}"):
        if entry.name in built_in:
            notice(
                f"{owner(entry)} registers {kind} {entry.name!r}, but that name is built in and "
                "stays what it is. Rename the plug-in's entry point."
            )
        else:
            found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def load_plugin(kind: str, claims: tuple[EntryPoint, ...]) -> Any:
    """The class or function behind a name, or an error that names the plug-in at fault."""
    first = claims[0]
    if len(claims) > 1:
        owners = " and ".join(map(owner, claims))
        raise PluginError(
            f"{owners} both register {kind} {first.name!r}, so the name has no meaning. Uninstall "
            "one of them."
        )
    try:
        found = first.load()
    except (Exception, SystemExit) as error:  # whatever another package's code raises
        raise plugin_fault(kind, claims, f"{type(error).__name__}: {error}") from error
    if not callable(found):
        raise plugin_fault(kind, claims, f"a class or function was expected, not {found!r}")
    return found


def plugin_fault(kind: str, claims: tuple[EntryPoint, ...], why: object) -> PluginError:
    """An error that names the plug-in behind a name."""
    first = claims[0]
    return PluginError(
        f"{owner(first)} does not give its {kind} {first.name!r} ({first.value}): "
        f"{str(why).rstrip('.')}. Repair or uninstall the plug-in."
    )


def owner(entry: EntryPoint) -> str:
    """The plug-in that registers a name."""
    return f"plug-in {entry.dist.name!r}" if entry.dist is not None else "a plug-in"
