"""The paper, run again: its tables, what it concludes, and its figures from our simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.arrays import Real
from discreet.assessment.plots.style import (
    PALETTE,
    QUIET,
    altair_module,
    apply_style,
    colours,
    shapes,
)
from discreet_studies.chance import orders, quantile
from discreet_studies.model import Finding, Options, Picture, Study, own
from discreet_studies.three_approaches import printed
from discreet_studies.three_approaches.simulation import (
    ASSOCIATION,
    REPLICATES,
    Simulation,
    expected_chi_square,
    expected_total,
    many_totals,
    simulate,
)
from discreet_studies.three_approaches.steps import publish_in_steps, step_findings
from discreet_studies.three_approaches.tables import (
    Totals,
    law_tables,
    risk_table,
    section_table,
    utility_table,
)

LEVEL = 0.05
_WHISKER = 1.5
_WEAK = 0.1
"""Share by which a mean statistic may differ from the law, which is that of weak interactions."""
_TRUE = "Original weighted"
_RELEASED = ("DP Avg", "PRAM Avg", "Q Avg")
RELEASES = ("Original weighted", "DP Avg", "PRAM Avg", "PRAM Avg cell", "Q Avg", "Q Avg cell")
_METHODS = ["DP", "PRAM", "Q"]


def run(options: Options) -> Study:
    """Both simulations and everything the paper makes of them."""
    replicates = options.replicates or REPLICATES
    found = {kind: simulate(kind, replicates, options.seed) for kind in ASSOCIATION}
    totals = {kind: many_totals(kind, options.seed) for kind in ASSOCIATION}
    return Study(
        name="three-approaches",
        title="Comparison of three post-tabular confidentiality approaches for survey weighted "
        "frequency tables",
        source="Shlomo, Krenzke & Li (2019)",
        tables=(
            *law_tables(),
            section_table(totals),
            risk_table(found),
            utility_table(found, totals),
        ),
        findings=(
            *findings(found["dependent"], found["independent"]),
            _totals_follow_the_law(totals),
            _association_as_stated(found),
            *step_findings(publish_in_steps(replicates, options.seed)),
        ),
        pictures=pictures(found),
        notes=(
            f"{replicates} replications of each kind of table; the paper has {REPLICATES}.",
            "Row, column and interaction effects are uniform on (-1, 1): the printed interval "
            "has lost a sign, and with (-0.5, 0.5) the population would be 35,600 instead of the "
            "printed 44,000.",
            "The average weight is the mean over cells, and post-randomisation is made invariant "
            "with strength 0.8; the paper states neither. Its percent differences of weighted "
            "counts are 1.031 times those of sample counts, ours 1.040 times; with the total of "
            "weights over the sample size it would be once.",
            "The expected total is then about 45,000, two standard errors above the printed ones "
            "in both kinds of table, whose random numbers the paper probably shares. "
            "Totals and distances together would be met best by a half-width of about 0.95; one is "
            "the nearest that the text suggests.",
        ),
    )


def findings(dependent: Simulation, independent: Simulation) -> Iterator[Finding]:
    """The conclusions of sections 3.5 and 4."""
    yield _order_finding(
        "DP preserves totals best, with the smallest percent differences.",
        dependent,
        "difference",
        [("DP", "PRAM"), ("DP", "Q")],
    )
    yield _order_finding(
        "DP has smaller Hellinger distances than PRAM and Q, so the highest utility.",
        dependent,
        "distance",
        [_RELEASED],
    )
    yield _order_finding(
        "DP has the highest risk measure, Q the lowest.", dependent, "risk", [_RELEASED[::-1]]
    )
    yield _order_finding(
        "Adjusting by the overall average weight gives smaller distances than by the cell's.",
        dependent,
        "distance",
        [("PRAM Avg", "PRAM Avg cell"), ("Q Avg", "Q Avg cell")],
    )
    yield _dependence_is_seen(dependent)
    yield _order_finding(
        "With independent attributes perturbation increases the chi-square statistic, DP least, "
        "then PRAM, then Q.",
        independent,
        "chi_square",
        [(_TRUE, *_RELEASED)],
    )
    yield _fewer_outliers(independent)
    yield _wrong_decisions(independent)


def _order_finding(
    text: str, found: Simulation, measure: str, chains: list[tuple[str, ...]]
) -> Finding:
    """Means of a measure that increase along each chain of releases, draw by draw."""
    holds, shown = orders([found(name, measure) for name in chain] for chain in chains)
    names = dict.fromkeys(name for chain in chains for name in chain)
    means = ", ".join(f"{name} {found(name, measure).mean():.4g}" for name in names)
    return Finding(text, holds, f"Means {means}; {shown}.")


def _dependence_is_seen(found: Simulation) -> Finding:
    p = {name: float(found(name, "p_value").max()) for name in (_TRUE, *_RELEASED)}
    return Finding(
        "With dependent attributes all p-values stay close to zero.",
        max(p.values()) < LEVEL,
        "Largest p-value " + ", ".join(f"{name} {value:.2g}" for name, value in p.items()) + ".",
    )


def _fewer_outliers(found: Simulation) -> Finding:
    """Outliers by the rule of the box plots that the paper shows."""
    beyond = {name: _outliers(found(name, "chi_square")) for name in _RELEASED}
    last = _RELEASED[-1]
    holds, shown = orders([beyond[last], beyond[name]] for name in _RELEASED[:-1])
    counted = ", ".join(
        f"{name} {int(out.sum())} (standard deviation {found(name, 'chi_square').std():.3g})"
        for name, out in beyond.items()
    )
    return Finding(
        "With independent attributes Q has less outliers among the chi-square statistics.",
        holds,
        f"Statistics beyond 1.5 interquartile ranges, of {len(beyond[last])}: {counted}; {shown}.",
    )


def _outliers(values: Real) -> Real:
    low, high = np.quantile(values, (0.25, 0.75))
    reach = _WHISKER * (high - low)
    return np.where((values < low - reach) | (values > high + reach), 1.0, 0.0)


def _totals_follow_the_law(totals: Totals) -> Finding:
    """A population of another size than the paper's constants give is noticed."""
    steps = {}
    for kind, association in printed.ASSOCIATION.items():
        drawn = totals[kind][_TRUE]
        error = float(drawn.std(ddof=1)) / math.sqrt(len(drawn))
        steps[kind] = (float(drawn.mean()) - expected_total(association)) / error
    draws = len(totals["dependent"][_TRUE])
    return own(
        "Totals of simulated tables have the mean that the paper's constants give.",
        max(map(abs, steps.values())) <= quantile(draws),
        f"Means of {draws:,} tables: "
        + ", ".join(
            f"{kind} {totals[kind][_TRUE].mean():,.0f} ({step:+.1f} standard errors from "
            f"{expected_total(printed.ASSOCIATION[kind]):,.0f})"
            for kind, step in steps.items()
        )
        + ".",
    )


def _association_as_stated(found: dict[str, Simulation]) -> Finding:
    """An interaction of another strength than the paper states is noticed."""
    seen, is_near = [], []
    for kind, association in printed.ASSOCIATION.items():
        drawn, expected = found[kind](_TRUE, "chi_square"), expected_chi_square(association)
        error = float(drawn.std(ddof=1)) / math.sqrt(len(drawn))
        allowed = quantile(len(drawn)) * error + _WEAK * expected
        is_near.append(abs(float(drawn.mean()) - expected) <= allowed)
        seen.append(f"{kind} {drawn.mean():.1f} (expected {expected:.1f} ± {allowed:.1f})")
    return own(
        "Attributes of simulated tables are as dependent as the paper's constants make them.",
        all(is_near),
        f"Mean chi-square statistics of true weighted tables: {', '.join(seen)}.",
    )


def _wrong_decisions(found: Simulation) -> Finding:
    rejected = {name: 1.0 * (found(name, "p_value") < LEVEL) for name in (_TRUE, *_RELEASED)}
    holds, shown = orders([rejected[_TRUE], rejected[name]] for name in _RELEASED)
    shares = ", ".join(f"{name} {share.mean():.3g}" for name, share in rejected.items())
    return Finding(
        "Perturbed tables used as if they were true ones lead to wrong decisions.",
        holds,
        f"Share of tables in which independence is rejected at 5 %: {shares}; {shown}.",
    )


def pictures(simulations: dict[str, Simulation]) -> tuple[Picture, ...]:
    """The four figures of the paper."""
    dependent, independent = simulations["dependent"], simulations["independent"]
    return (
        Picture(
            "Figure 1",
            "Risk and utility of weighted counts, dependent attributes. Safer downwards, more "
            "useful to the right: the Hellinger distance runs from large to small, as in the "
            "paper.",
            lambda: _map(dependent),
        ),
        Picture(
            "Figure 2",
            "Chi-square statistics of weighted tables with dependent attributes. Boxes hold half "
            "of the tables, whiskers all within one and a half boxes.",
            lambda: _boxes(dependent, "chi_square", "chi-square"),
        ),
        Picture(
            "Figure 3",
            "Chi-square statistics of weighted tables with independent attributes.",
            lambda: _boxes(independent, "chi_square", "chi-square"),
        ),
        Picture(
            "Figure 4",
            "p-values of the test of independence in weighted tables with independent attributes.",
            lambda: _boxes(independent, "p_value", "p-value"),
        ),
    )


def _map(found: Simulation) -> Any:
    alt = altair_module()
    points = [
        {
            "method": name,
            "distance": float(found(f"{name} Avg", "distance").mean()),
            "risk": float(found(f"{name} Avg", "risk").mean()),
        }
        for name in _METHODS
    ]
    chart = (
        alt.Chart(alt.InlineData(values=points))
        .mark_point(size=130, filled=True, opacity=1)
        .encode(
            x=alt.X(
                "distance:Q",
                title="Hellinger distance (reversed)",
                scale=alt.Scale(reverse=True, zero=False, padding=30),
            ),
            y=alt.Y("risk:Q", title="risk measure RM", scale=alt.Scale(zero=False, padding=30)),
            color=alt.Color("method:N", scale=colours(_METHODS), sort=_METHODS, title="method"),
            shape=alt.Shape("method:N", scale=shapes(_METHODS), sort=_METHODS, title="method"),
        )
        .properties(width=420, height=260)
    )
    return apply_style(chart)


def _boxes(found: Simulation, measure: str, title: str) -> Any:
    alt = altair_module()
    rows = [
        {"release": name, "value": float(value)}
        for name in RELEASES
        for value in found(name, measure)
    ]
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_boxplot(
            size=22,
            color=PALETTE[5],
            median={"color": "black"},
            outliers={"size": 8, "color": QUIET},
        )
        .encode(
            x=alt.X("value:Q", title=title, scale=alt.Scale(zero=False)),
            y=alt.Y("release:N", sort=list(RELEASES), title=None),
        )
        .properties(width=480, height=alt.Step(34))
    )
    return apply_style(chart)
