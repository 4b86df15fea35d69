"""Measure the difference between a table and its release: risk and utility.

`discreet.assess(table, release)` takes every measure that applies, of tables or of records;
`compare` judges methods, `frontier` their parameters, `select_margins` what they publish; `plots`
draws. Whatever they say is confidential until somebody decides otherwise: it is a function of true
counts or records.
"""

from __future__ import annotations

from discreet.assessment.assess import Assessment, assess
from discreet.assessment.measure import Measure, NotApplicableError, Score
from discreet.lazy import lazy_names

__all__ = ["Assessment", "Measure", "NotApplicableError", "Score", "assess"]
__getattr__ = lazy_names(
    __name__,
    {
        "audit.inversion": "perfect_fits",
        "compare.comparison": "compare",
        "compare.frontier": "frontier",
        "compare.job": "Job",
        "compare.select_margins": "select_margins",
        "plots": "plots",
        "plots.style": "to_svg",
    },
)
