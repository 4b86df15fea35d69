"""The paper, run again: its tables, what it concludes, and pictures of what it tells in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.assessment.plots.cells import before_after
from discreet.assessment.plots.style import PALETTE, altair_module, apply_style
from discreet_studies.chance import orders, quantile
from discreet_studies.fair_comparison import printed
from discreet_studies.fair_comparison.example import (
    CELL_KEY_DRAWS,
    ROUNDING_DRAWS,
    PartyTable,
    RedrawnFigures,
    cell_key,
    redraw_keys,
    redraw_roundings,
)
from discreet_studies.fair_comparison.likely import fit_findings, fit_releases
from discreet_studies.fair_comparison.tables import (
    Worked,
    additivity_table,
    aggregated_tables,
    inner_tables,
    interval_table,
    probability_tables,
    risk_table,
    rounding_table,
    share_table,
    utility_table,
)
from discreet_studies.model import Finding, Options, Picture, Study, own

_BARS = 40
_SAME_VARIANCE = 1e-6


def run(options: Options) -> Study:
    """The worked example, and the same with redrawn keys and roundings."""
    replicates = options.replicates or CELL_KEY_DRAWS
    example = PartyTable.of_the_paper()
    worked = Worked.of(example, options.seed)
    keys = redraw_keys(example, replicates, options.seed)
    roundings = redraw_roundings(example, min(replicates, ROUNDING_DRAWS), options.seed)
    return Study(
        name="fair-comparison",
        title="Fair risk-utility comparison of tabular perturbation methods by post-processing to "
        "expected frequencies",
        source="Langsrud & Lupp (2021)",
        tables=(
            additivity_table(example),
            *aggregated_tables(worked),
            *inner_tables(worked),
            utility_table(worked),
            interval_table(keys),
            *probability_tables(worked),
            risk_table(worked),
            share_table(keys),
            rounding_table(roundings),
        ),
        findings=(
            *_findings(example, keys, roundings),
            *fit_findings(fit_releases(example, replicates, options.seed)),
        ),
        pictures=pictures(worked, keys),
        notes=(
            f"Redrawn keys: {replicates}; redrawn roundings: {len(roundings.published)}.",
            "Table 1 is the data and Table 3 one draw of the cell key method, which nobody can "
            "repeat without its keys: both are taken as printed.",
            "The paper calls the table 3 × 2 × 2; it has three parties, three ages and two sexes.",
            "Additivity is restored by the scheme the paper's package uses: cells whose fit is "
            "negative, and cells that are zero, are set to zero with everything in them, and the "
            "others are fitted again.",
        ),
    )


def _findings(
    example: PartyTable, keys: RedrawnFigures, roundings: RedrawnFigures
) -> tuple[Finding, ...]:
    better = float(np.mean(keys.restored > keys.published))
    higher, step = orders([[keys.published, keys.restored]])
    outcomes = len(np.unique(np.round(roundings.published, 6)))
    return (
        Finding(
            "The utility of additivity-restored frequencies tends to be higher.",
            higher,
            f"Mean {keys.restored.mean():.4f} against {keys.published.mean():.4f}; higher in "
            f"{100 * better:.0f} % of the draws; {step}.",
        ),
        Finding(
            "Small count rounding has two outcomes.",
            outcomes == len(printed.ROUNDED_UTILITIES),
            f"{outcomes} different utilities in {len(roundings.published)} draws.",
        ),
        own(
            "Table 3 is a draw that the perturbation table can give.",
            _is_possible(example),
            "Every deviation of Table 3 from Table 2 has a positive probability.",
        ),
        _noise_as_stated(),
        _realised_noise(example, keys),
    )


def _noise_as_stated() -> Finding:
    """The perturbation table has the parameters that section 2 states."""
    matrix = cell_key().matrix
    variances = matrix.audit().variance[1:]
    stated = {name: int(text) for name, text in printed.NOISE.items()}
    return own(
        "The perturbation table has the largest perturbation, the variance and the smallest "
        "positive count that the paper states.",
        matrix.max_move == stated["largest perturbation"]
        and bool(np.abs(variances - stated["variance"]).max() < _SAME_VARIANCE)
        and matrix.blocked + 1 == stated["smallest positive count"],
        f"Perturbations up to {matrix.max_move:g}, variances from {variances.min():.6g} to "
        f"{variances.max():.6g}, no counts from 1 to {matrix.blocked}.",
    )


def _realised_noise(example: PartyTable, keys: RedrawnFigures) -> Finding:
    """The noise that was drawn has the stated variance, whatever the number of draws."""
    stated = float(printed.NOISE["variance"])
    mean, draws = float(keys.square.mean()), len(keys.square)
    error = float(keys.square.std(ddof=1)) / math.sqrt(draws)
    return own(
        "The noise that was drawn has the variance that the paper states.",
        abs(mean - stated) <= quantile(draws) * error,
        f"Mean square {mean:.3f} over {draws:,} draws of {int((example.table.z > 0).sum())} cells, "
        f"{(mean - stated) / error:+.1f} standard errors from {stated:g}.",
    )


def _is_possible(example: PartyTable) -> bool:
    """Whether every cell of Table 3 has a positive probability."""
    matrix, truth = cell_key().matrix, example.table.z
    moves = example.read_published(printed.TABLE_3).astype(np.int64) - truth
    law, reach = matrix.law[matrix.row_of(truth)], matrix.max_move
    inside = np.abs(moves) <= reach
    place = np.clip(moves + reach, 0, law.shape[1] - 1)
    return bool(np.all(inside & (law[np.arange(len(moves)), place] > 0)))


def pictures(worked: Worked, keys: RedrawnFigures) -> tuple[Picture, ...]:
    """The worked example cell by cell, and the spread of the utility."""
    truth = worked.example.table
    return (
        Picture(
            "Published cells, cell key method",
            "Table 2 and Table 6: true and additivity-restored values.",
            lambda: before_after(truth, worked.restored),
        ),
        Picture(
            "Published cells, small count rounding",
            "Table 2 and Table 4: true and rounded values.",
            lambda: before_after(truth, worked.scr),
        ),
        Picture(
            "Utility of redrawn keys",
            "Hellinger utility of the cell key method over redrawn keys, as published and with "
            "additivity restored.",
            lambda: _histogram(keys),
        ),
    )


def _histogram(keys: RedrawnFigures) -> Any:
    alt = altair_module()
    drawn = {"as published": keys.published, "additivity restored": keys.restored}
    low = min(float(values.min()) for values in drawn.values())
    edges = np.linspace(low, 1.0, _BARS + 1)
    rows = [
        {"stage": stage, "low": float(a), "high": float(b), "share": float(n) / len(values)}
        for stage, values in drawn.items()
        for a, b, n in zip(edges, edges[1:], np.histogram(values, edges)[0], strict=False)
    ]
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(color=PALETTE[0])
        .encode(
            x=alt.X("low:Q", bin="binned", title="Hellinger utility", scale=alt.Scale(zero=False)),
            x2="high:Q",
            y=alt.Y("share:Q", title="share of draws", axis=alt.Axis(format="%", tickCount=4)),
        )
        .properties(width=460, height=110)
        .facet(row=alt.Row("stage:N", sort=list(drawn), title=None))
    )
    return apply_style(chart)
