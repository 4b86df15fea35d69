"""The paper, run again: its tables, what it concludes, and the schemes side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from discreet.assessment.plots.style import altair_module, apply_style, colours, shapes
from discreet.errors import DataError, NotConvergedError
from discreet.facade.opening import open as open_records
from discreet_studies.frozen import SEEDS, is_frozen
from discreet_studies.inner_frequencies.extras import extra_findings
from discreet_studies.inner_frequencies.log import LOG
from discreet_studies.inner_frequencies.results import (
    EPSILONS,
    KINDS,
    WEIGHTED,
    SchemeResults,
    all_results,
    quick_results,
)
from discreet_studies.inner_frequencies.schemes import ACCEPTED, PARTS, TOTAL_EXACT, Data
from discreet_studies.inner_frequencies.standin import LABOUR_FORCE, stand_in
from discreet_studies.inner_frequencies.tables import (
    TOLERANCES,
    large_tables,
    noise_is_right,
    small_tables,
)
from discreet_studies.model import Finding, Options, Picture, Study, over_seeds, own

_MOST_CELLS = 20_000_000
_NO_BIAS = 0.005  # percent: rounds to the printed 0.00
_PARTS = list(PARTS)


def run(options: Options) -> Study:
    """Tables 2 to 7 exactly; Tables 8 to 14 on the stand-in, or on records that are given."""
    is_stand_in = options.data is None
    data = _stand_in(options.seed) if is_stand_in else _read_records(options)
    found = all_results(data, options.seed)
    if is_stand_in:
        _require_fits(found)
    return Study(
        name="inner-frequencies",
        title="Releasable inner cell frequencies by post-processing protected tabular data",
        source="Langsrud (2019b)",
        tables=(*small_tables(), *large_tables(found, is_stand_in)),
        findings=_judged_findings(found, options)
        if is_stand_in
        else tuple(replace(f, is_judged=False) for f in findings(found)),
        pictures=pictures(found),
        notes=(_about(data, options), *_shortfalls(found), *_NOTES),
        is_confidential=not is_stand_in,
        log=LOG if is_stand_in else (),
    )


def _judged_findings(found: SchemeResults, options: Options) -> tuple[Finding, ...]:
    """Sentences over seeds that are fixed in advance, where schemes are quick; else over one."""
    seeds = SEEDS[: options.replicates]
    others = [
        found if seed == options.seed else quick_results(_stand_in(seed), seed) for seed in seeds
    ]
    for each in others:
        _require_fits(each)
    right = sum(noise_is_right(each) for each in others)
    return (
        *(over_seeds(each) for each in zip(*map(quick_findings, others), strict=True)),
        *slow_findings(found),
        own(
            "Deviations that are noise alone agree with the printed ones for every seed.",
            right == len(others),
            f"For {right} of {len(others)} seeds.",
        ),
        *extra_findings(options.seed),
        is_frozen(FROZEN, LOG),
    )


def _require_fits(found: SchemeResults) -> None:
    if found.shortfalls:
        raise NotConvergedError(f"fits fell short of their tolerance: {_list_shortfalls(found)}.")


FROZEN = {
    "stand-in": asdict(LABOUR_FORCE),
    "tolerances": TOLERANCES,
    "certificate of fits": ACCEPTED,
    "seeds": SEEDS,
}
"""What an entry of the log freezes."""

_NOTES = (
    "Table 2 leaves one number free, so its residuals have two possible outcomes.",
    "Non-negative fits are certified and nearly of smallest norm: the projected gradient is at "
    f"most {ACCEPTED:g} counts in each cell. The paper's were stopped by a threshold, whose effect "
    "its Table 14 shows.",
    "Exact margins are met as constraints, where the paper weighs them by 1000.",
    "Utility is not bounded by zero: noisy inner cells with many zeros fall below it.",
    "The paper leaves open how a weight enters; here it multiplies the squared deviation in "
    "Table 14, and the equation in Table 7, which the printed digits cannot tell apart.",
)


def _shortfalls(found: SchemeResults) -> list[str]:
    if not found.shortfalls:
        return []
    return [
        "These fits fell short of their tolerance, and are shown as they are: "
        f"{_list_shortfalls(found)}."
    ]


def _list_shortfalls(found: SchemeResults) -> str:
    return "; ".join(found.shortfalls)


def _stand_in(seed: int) -> Data:
    table = stand_in(LABOUR_FORCE, seed)
    return Data.of(table.design, table.y)


def _read_records(options: Options) -> Data:
    """The records, crossed by all variables."""
    by = options.by or "*".join(LABOUR_FORCE.sizes)
    table = open_records(str(options.data)).tabulate(by)
    if table.design.n_inner > _MOST_CELLS:
        raise DataError(
            f"{by} has {table.design.n_inner:,} inner cells; choose variables with at most "
            f"{_MOST_CELLS:,}."
        )
    return Data.of(table.design, table.y)


def _about(data: Data, options: Options) -> str:
    empty = int((data.y == 0).sum())
    kind = "the records given" if options.data else "invented records with the paper's sparsity"
    return (
        f"Tables 8 to 14 rest on {kind}: {int(data.y.sum()):,} records; of {len(data.y):,} inner "
        f"cells {len(data.y) - empty:,} are not empty."
    )


def findings(found: SchemeResults) -> Iterator[Finding]:
    """The conclusions of section 4."""
    yield from quick_findings(found)
    yield from slow_findings(found)


def quick_findings(found: SchemeResults) -> Iterator[Finding]:
    """Conclusions that need no exact two-way margins."""
    yield _fitting_helps(found, "3-way")
    yield _fitting_helps(found, "2-way")
    yield _bias_of_non_negativity(found)
    yield _total_is_sufficient(found)
    yield _margins_before_inner_cells(found)
    yield _inner_cells_without_zeros(found)
    yield _two_way_is_better_in_table_9(found)


def slow_findings(found: SchemeResults) -> Iterator[Finding]:
    """Conclusions about exact two-way margins and weights."""
    yield _exact_margins_remove_it(found)
    yield _exact_margins_help(found)
    yield _weights_converge(found)
    yield _largest_weight(found)


def _settings() -> list[tuple[str, float]]:
    return [(kind, epsilon) for kind in KINDS for epsilon in EPSILONS]


def _fitting_helps(found: SchemeResults, part: str) -> Finding:
    gains = []
    for kind, epsilon in _settings():
        fitted = found(kind, epsilon, part).utility[part]
        others = (f"{part} (no fitting)", f"{part} (zero replace)")
        gains.append(fitted - max(found(kind, epsilon, other).utility[part] for other in others))
    return Finding(
        f"Fitting improves the utility of noisy {part} margins, beyond replacing negative values.",
        min(gains) > 0,
        f"Utility fitted minus the better of no fitting and zeros: {_format_signed(gains)}.",
    )


def _bias_of_non_negativity(found: SchemeResults) -> Finding:
    biases = [found(kind, epsilon, "3-way").bias for kind, epsilon in _settings()]
    return Finding(
        "Non-negative estimation makes the total too large.",
        min(biases) > 0,
        f"Bias from noisy three-way margins: {_percent(biases)}.",
    )


def _exact_margins_remove_it(found: SchemeResults) -> Finding:
    return _no_bias_left(found, "3-way (2-way exact)", "Exact two-way margins remove the bias.")


def _total_is_sufficient(found: SchemeResults) -> Finding:
    return _no_bias_left(
        found,
        TOTAL_EXACT,
        "To correct the bias, it would be sufficient to include the overall total.",
    )


def _no_bias_left(found: SchemeResults, scheme: str, text: str) -> Finding:
    biases = [found(kind, epsilon, scheme).bias for kind, epsilon in _settings()]
    return Finding(
        text, max(map(abs, biases)) < _NO_BIAS, f"Bias that is left: {_percent(biases)}."
    )


def _margins_before_inner_cells(found: SchemeResults) -> Finding:
    pairs = [
        (found("with zeros", e, "3-way").utility, found("with zeros", e, "inner cells").utility)
        for e in EPSILONS
    ]
    better = all(a[part] > b[part] for a, b in pairs for part in a)
    shown = ", ".join(f"{a['inner']:.3f} against {b['inner']:.3f}" for a, b in pairs)
    return Finding(
        "With zeros it is better to perturb margins than inner cells.",
        better,
        f"Utility of inner cells: {shown}.",
    )


def _exact_margins_help(found: SchemeResults) -> Finding:
    pairs = [
        (
            found(kind, e, "3-way (2-way exact)").utility["3-way"],
            found(kind, e, "3-way").utility["3-way"],
        )
        for kind, e in _settings()
    ]
    shown = ", ".join(f"{a:.3f} against {b:.3f}" for a, b in pairs)
    return Finding(
        "Exact two-way margins improve the three-way margins.",
        all(a > b for a, b in pairs),
        f"Utility of three-way margins: {shown}.",
    )


def _two_way_is_better_in_table_9(found: SchemeResults) -> Finding:
    """The sentence names Table 9 alone; in Table 10 it must not be so."""
    gains = {
        epsilon: [
            found(kind, epsilon, "2-way").utility["3-way"]
            - found(kind, epsilon, "3-way").utility["3-way"]
            for kind in KINDS
        ]
        for epsilon in EPSILONS
    }
    low, high = (gains[epsilon] for epsilon in EPSILONS)
    return Finding(
        "In Table 9 the utility of three-way margins increases when going from three-way to "
        "two-way perturbation, and in the other tables it does not.",
        min(low) > 0 > max(high),
        "Utility of three-way margins, 2-way minus 3-way perturbation, with and without zeros: "
        f"{_format_signed(low)} at ε = {EPSILONS[0]}, {_format_signed(high)} at ε = {EPSILONS[1]}. "
        "It depends on the three-way association of the records, which the paper does not print.",
        is_judged=False,
    )


def _inner_cells_without_zeros(found: SchemeResults) -> Finding:
    inner = [found("without zeros", e, "inner cells").utility for e in EPSILONS]
    others = [found("without zeros", e, "3-way").utility for e in EPSILONS]
    return Finding(
        "Without zeros, perturbing inner cells straightforwardly tends to be the best method.",
        all(a[part] > b[part] for a, b in zip(inner, others, strict=True) for part in a),
        "Utility of three-way margins: "
        + ", ".join(
            f"{a['3-way']:.3f} against {b['3-way']:.3f}" for a, b in zip(inner, others, strict=True)
        )
        + ".",
    )


def _weights_converge(found: SchemeResults) -> Finding:
    two = [scores.deviation["2-way"] for scores in found.weights.values()][:-1]
    printed = [round(deviation, 2) for deviation in two]  # fits tell no more of heavy margins
    return Finding(
        "A larger weight brings exact margins closer.",
        printed[0] > printed[-1] and all(a >= b for a, b in pairwise(printed)),
        f"Deviation of two-way margins {_numbers(two)}, compared to two decimals as printed.",
    )


def _largest_weight(found: SchemeResults) -> Finding:
    three = {weight: scores.deviation["3-way"] for weight, scores in found.weights.items()}
    return Finding(
        "Using 1000 as weight gave good results, but a higher weight must be avoided.",
        three["10000"] > 1.05 * three["1000"],
        f"Deviation of three-way margins {_numbers(list(three.values())[:-1])} at weights 0 to "
        "10000, and with exact margins "
        f"{found(*WEIGHTED, '3-way (2-way exact)').deviation['3-way']:.3g}.",
        known="The paper's solver stopped short of the optimum at high weights (9.21 at 10000); "
        "a certified fit is not harmed by them.",
    )


def _percent(values: list[float]) -> str:
    return ", ".join(f"{value:.3f} %" for value in values)


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def _format_signed(values: list[float]) -> str:
    return ", ".join(f"{value:+.3f}" for value in values)


def pictures(found: SchemeResults) -> tuple[Picture, ...]:
    """Utility of every scheme, a picture for each ε."""
    return tuple(
        Picture(
            f"Utility at ε = {epsilon}",
            "Hellinger utility of inner cells and margins by scheme; to the right is better.",
            lambda epsilon=epsilon: _dots(found, epsilon),  # type: ignore[misc]
        )
        for epsilon in EPSILONS
    )


def _dots(found: SchemeResults, epsilon: float) -> Any:
    alt = altair_module()
    rows = [
        {"scheme": scheme, "data": kind, "part": part, "utility": value}
        for kind in KINDS
        for scheme, scores in found.scores[kind, epsilon].items()
        for part, value in scores.utility.items()
    ]
    order = list(found.scores[KINDS[0], epsilon])
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(size=70, filled=True, opacity=0.9)
        .encode(
            x=alt.X("utility:Q", title="Hellinger utility", scale=alt.Scale(zero=False)),
            y=alt.Y("scheme:N", sort=order, title=None, axis=alt.Axis(grid=True, labelLimit=0)),
            color=alt.Color("part:N", scale=colours(_PARTS), sort=_PARTS, title="cells"),
            shape=alt.Shape("part:N", scale=shapes(_PARTS), sort=_PARTS, title="cells"),
        )
        .properties(width=260, height=alt.Step(20))
        .facet(column=alt.Column("data:N", sort=list(KINDS), title=None))
    )
    return apply_style(chart)
