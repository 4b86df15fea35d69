"""What the statement of a suppressed table says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from discreet.protect.sentences import groups_not_hidden, limit, never_published, process
from discreet.rules.counts import Rule, Threshold, told
from discreet.solve.linear.intervals import Limits, feasible_intervals
from discreet.tables.statement import Sentence

SHOWN_IS_TRUE = "shown-is-true"
"""The kind of the sentence by which shown cells have their true values."""
_ROUNDING = 1e-6
_HIDDEN = (
    "Figures that say too much about single people are not shown. Some other figures are hidden as "
    "well, so that"
)


def suppressed_cells(
    rules: Sequence[Rule], *, has_intervals: bool, has_decimals: bool
) -> list[Sentence]:
    """What was done, and what shown cells are."""
    why = "; ".join(told(rule)[1] for rule in rules)
    aim, plain = (
        (
            "every sensitive cell keeps an interval of possible values that is as wide as its rule "
            "asks",
            f"{_HIDDEN} the first ones cannot be computed from the figures that are shown.",
        )
        if has_intervals
        else (
            "no sensitive cell is a linear combination of cells that are",
            f"{_HIDDEN} the first ones are no sums or differences of figures that are shown.",
        )
    )
    return [
        process(
            "suppress",
            f"Sensitive cells are not shown ({why}). Further cells are not shown, so that {aim}.",
            plain,
        ),
        shown_is_true(has_decimals=has_decimals),
    ]


def shown_is_true(*, has_decimals: bool) -> Sentence:
    """What cells are that are neither hidden nor replaced by decimals."""
    text, plain = (
        (
            "Cells that hold no such decimal number have their true values.",
            "All other figures are exact.",
        )
        if has_decimals
        else (
            "Cells that are shown have their true values.",
            "All figures that are shown are exact.",
        )
    )
    return Sentence(SHOWN_IS_TRUE, text, plain, holds=_shown_is_true)


def thresholds(rules: Iterable[Rule], *, has_decimals: bool) -> list[Sentence]:
    """What holds of small counts; decimals can be small numbers."""
    said = []
    for rule in rules:
        if isinstance(rule, Threshold):
            if rule.max > 0 and not has_decimals:
                said.append(never_published(range(1, rule.max + 1)))
            lowest = 0 if rule.zeros else 1
            said.append(
                Sentence(
                    "not-derivable",
                    f"No suppressed count of {lowest} to {rule.max} is a linear combination of "
                    "published cells.",
                    holds=partial(_not_derivable, lowest, rule.max),
                )
            )
    return said


def widths(rules: Iterable[Rule], *, zeros_are_public: bool) -> list[Sentence]:
    """What holds of the intervals of small counts."""
    least = "no empty cell among the hidden ones" if zeros_are_public else "no negative count"
    return [
        Sentence(
            "interval-width",
            f"For every suppressed count of {0 if rule.zeros else 1} to {rule.max}, tables with "
            f"the same published cells and {least} have values that differ by "
            f"{rule.width} or more.",
            holds=partial(
                _has_width, 0 if rule.zeros else 1, rule.max, rule.width, zeros_are_public
            ),
        )
        for rule in rules
        if isinstance(rule, Threshold)
    ]


def limits(
    *,
    zeros_are_public: bool,
    singletons: bool,
    has_forced: bool,
    has_intervals: bool,
    has_sums: bool,
) -> list[Sentence]:
    """What is not protected."""
    tight = limit(
        "intervals",
        "Suppressed values are protected against sums and differences. That values are not "
        "negative, or that a hidden one is not zero, may still bound them closely or give them.",
    )
    said = [
        limit(
            "pattern-tells",
            "Which cells are suppressed follows from the true values. A suppressed cell is "
            "sensitive or protects one that is, and one more record may change the pattern.",
        ),
        *([] if has_intervals else [tight]),
        groups_not_hidden(),
    ]
    if zeros_are_public:
        said.append(
            Sentence(
                "empty-cells",
                "Empty cells are shown as empty, so that a hidden one is not.",
                holds=_empty_are_shown,
            )
        )
    if not singletons:
        said.append(
            limit(
                "lone-contributors",
                "Someone who is alone in a suppressed cell may compute other suppressed cells.",
            )
        )
    if has_sums and has_intervals:
        also = " and for contributors who are alone in a cell" if singletons else ""
        said.append(
            limit(
                "own-parts",
                f"Intervals hold for the public{also}. Someone with a large part of another "
                "suppressed cell knows that it is not less than that, and may narrow them.",
            )
        )
    if has_forced:
        said.append(limit("forced", "Some cells are shown although the rules call them sensitive."))
    return said


def _shown_is_true(evidence: Any) -> bool:
    return all(
        bool((final.z == evidence.truth)[~final.hidden & ~final.replaced].all())
        for final in evidence.finals
    )


def _empty_are_shown(evidence: Any) -> bool:
    return not any(
        ((evidence.truth == 0) & (final.hidden | final.replaced)).any() for final in evidence.finals
    )


def _not_derivable(lowest: int, highest: int, evidence: Any) -> bool:
    from discreet.solve.linear.elimination import find_spanned  # start-up time: Numba

    final, truth = evidence.finals[0], evidence.truth
    hidden = final.hidden | final.replaced
    columns = final.design.matrix().tocsc()
    small = hidden & (truth >= lowest) & (truth <= highest)
    return not find_spanned(columns[:, ~hidden], columns[:, small]).any()


def _has_width(
    lowest: int, highest: int, width: int, zeros_are_public: bool, evidence: Any
) -> bool:
    final, truth = evidence.finals[0], evidence.truth
    hidden = final.hidden | final.replaced
    columns = final.design.matrix().tocsc()
    small = hidden & (truth >= lowest) & (truth <= highest)
    n = int(hidden.sum())
    limits = Limits(columns[:, hidden], np.ones(n), np.full(n, np.inf))
    found = feasible_intervals(
        columns[:, ~hidden],
        truth[~hidden],
        columns[:, small],
        limits=limits if zeros_are_public else None,
        workers=1,
    )
    return bool((found.width >= width - _ROUNDING).all())
