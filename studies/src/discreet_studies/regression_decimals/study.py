"""Section 7 of the paper, run again."""

from __future__ import annotations

from discreet_studies.model import Options, Study
from discreet_studies.regression_decimals.example import Example
from discreet_studies.regression_decimals.findings import findings
from discreet_studies.regression_decimals.tables import all_tables


def run(options: Options) -> Study:
    """Tables 1 to 3, and what the section says about decimals."""
    example = Example(options.seed)
    return Study(
        name="regression-decimals",
        title="Information preserving regression-based tools for statistical disclosure control",
        source="Langsrud (2019a)",
        tables=all_tables(example),
        findings=findings(example),
        notes=(
            "Section 7, on suppressed tables; the pattern is the paper's.",
            "The random columns of Tables 2 and 3 are draws that nobody can repeat. They are shown "
            "beside draws of ours, and judged by their length and by what they add up to.",
            "The residual of Table 3 is a tenth of the one modulo 10, not of the full one.",
        ),
    )
