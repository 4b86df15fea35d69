"""The paper, run again."""

from __future__ import annotations

from dataclasses import replace

from discreet.errors import DataError, NotConvergedError
from discreet.microdata.open import open as open_records
from discreet_studies.inner_frequencies.example import small_tables
from discreet_studies.inner_frequencies.findings import findings
from discreet_studies.inner_frequencies.large import large_tables
from discreet_studies.inner_frequencies.pictures import pictures
from discreet_studies.inner_frequencies.results import Results, all_results
from discreet_studies.inner_frequencies.schemes import ACCEPTED, Data
from discreet_studies.inner_frequencies.standin import LABOUR_FORCE, stand_in
from discreet_studies.model import Options, Study

_MOST_CELLS = 20_000_000


def run(options: Options) -> Study:
    """Tables 2 to 7 exactly; Tables 8 to 14 on the stand-in, or on records that are given."""
    data = _given(options) if options.data else _stand_in(options)
    found = all_results(data, options.seed)
    is_stand_in = options.data is None
    if is_stand_in and found.shortfalls:
        raise NotConvergedError(f"fits fell short of their tolerance: {_listed(found)}.")
    return Study(
        name="inner-frequencies",
        title="Releasable inner cell frequencies by post-processing protected tabular data",
        source="Langsrud (2019b)",
        tables=(*small_tables(), *large_tables(found, is_stand_in)),
        findings=tuple(replace(f, is_judged=is_stand_in) for f in findings(found)),
        pictures=pictures(found),
        notes=(_about(data, options), *_shortfalls(found), *_NOTES),
        is_confidential=not is_stand_in,
    )


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


def _shortfalls(found: Results) -> list[str]:
    if not found.shortfalls:
        return []
    return [
        f"These fits fell short of their tolerance, and are shown as they are: {_listed(found)}."
    ]


def _listed(found: Results) -> str:
    return "; ".join(found.shortfalls)


def _stand_in(options: Options) -> Data:
    table = stand_in(LABOUR_FORCE, options.seed)
    return Data.of(table.design, table.y)


def _given(options: Options) -> Data:
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
