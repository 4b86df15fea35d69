"""What the statement of a suppressed table says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from discreet.arrays import Mask
from discreet.protect.sentences import groups_not_hidden, limit, never_published, process
from discreet.rules.counts import CountRule, PrimaryRule, Threshold, public_name_and_reason
from discreet.rules.magnitudes import PQ, Dominance, FewContributors, ZeroUnsafe
from discreet.solve.linear.intervals import Limits, feasible_intervals
from discreet.tables.statement import Sentence

SHOWN_IS_TRUE = "shown-is-true"
"""The kind of the sentence by which shown cells have their true values."""
_ROUNDING = 1e-6  # widths come from linear programs in floating point
PEOPLE = "people"
"""What records are of, where the data set has no word of its own."""
_ASKED_OF_SUMS = (PQ, Dominance, FewContributors, ZeroUnsafe)
_HIDDEN = (
    "Figures that say too much about single {units} are not shown. Where there are any, some other "
    "figures are hidden as well, so that"
)


def suppressed_cells(
    rules: Sequence[PrimaryRule], units: str = PEOPLE, *, has_decimals: bool
) -> list[Sentence]:
    """What was done, and what shown cells are; `units` is what the records are of."""
    why = "; ".join(public_name_and_reason(rule)[1] for rule in rules)
    plain = "the figures that are shown leave each of the first ones a range of possible values."
    done = (
        f"Sensitive cells are not shown ({why}). Where there are any, further cells are not shown, "
        "so that every sensitive cell keeps an interval of possible values that is as wide as its "
        "rule asks."
    )
    return [
        process("suppress", done, f"{_HIDDEN.format(units=units)} {plain}"),
        shown_is_true(has_decimals=has_decimals),
    ]


def shown_is_true(*, has_decimals: bool) -> Sentence:
    """What cells are that are neither hidden nor replaced by decimals."""
    text = "Cells that are shown have their true values."
    plain = "All figures that are shown are exact."
    if has_decimals:
        text = "Cells that hold no such decimal number have their true values."
        plain = "All other figures are exact."
    return Sentence(SHOWN_IS_TRUE, text, plain, holds=_are_shown_cells_true)


def thresholds(rules: Iterable[PrimaryRule], *, has_decimals: bool) -> list[Sentence]:
    """What holds of small counts; decimals can be small numbers."""
    said = []
    for rule in (rule for rule in rules if isinstance(rule, Threshold)):
        if rule.max > 0 and not has_decimals:
            said.append(never_published(range(1, rule.max + 1)))
        lowest = 0 if rule.zeros else 1
        said.append(
            Sentence(
                "not-derivable",
                f"No suppressed count of {lowest} to {rule.max} is a linear combination of "
                "published cells.",
                holds=partial(_is_none_derivable, lowest, rule.max),
            )
        )
    return said


def widths(rules: Iterable[PrimaryRule], *, zeros_are_public: bool) -> list[Sentence]:
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
    has_sums: bool,
    is_drawn: bool,
) -> list[Sentence]:
    """What is not protected; `is_drawn` says whether costs of hiding were drawn from a secret."""
    pattern_tells = limit(
        "pattern-tells",
        "Which cells are suppressed follows from the true values and from costs that are drawn "
        "from a secret. A suppressed cell is sensitive or protects one that is, or a count above a "
        "threshold that was drawn to be treated like those below, and one more record may change "
        "the pattern. Whoever knows the program can ask how often each table "
        "with the same shown cells has this pattern, and guess better than from these cells alone."
        if is_drawn
        else "Which cells are suppressed follows from the true values. A suppressed cell is "
        "sensitive or protects one that is, and one more record may change the pattern. No secret "
        "was used: whoever runs the program on all tables with the same shown cells can rule out "
        "those with another pattern, and some cells may follow from that.",
    )
    empty_cells = Sentence(
        "empty-cells",
        "Empty cells are shown as empty, so that a hidden one is not.",
        holds=_are_empty_cells_shown,
    )
    lone_contributors = limit(
        "lone-contributors",
        "Someone who is alone in a suppressed cell may compute other suppressed cells.",
    )
    own_parts = limit(
        "own-parts",
        "Intervals hold for the public and for each contributor, who knows the cells he is alone "
        "in and his own parts of others. Several who pool what they know may narrow them."
        if singletons
        else "Intervals hold for the public. Someone with a large part of another suppressed cell "
        "knows that it is not less than that, and may narrow them.",
    )
    forced = limit("forced", "Some cells are shown although the rules call them sensitive.")
    said = [
        (pattern_tells, True),
        (groups_not_hidden(), True),
        (empty_cells, zeros_are_public),
        (lone_contributors, not singletons),
        (own_parts, has_sums),
        (forced, has_forced),
    ]
    return [sentence for sentence, is_said in said if is_said]


def contributor_sums(
    rules: Iterable[PrimaryRule], *, is_covered: bool = True, is_proven: bool
) -> list[Sentence]:
    """What holds of contributors who are in several suppressed cells.

    Args:
      rules: The rules of the pattern.
      is_covered: Whether sums of cells were looked at; they are not where values may be negative.
      is_proven: Whether all of them were proven.
    """
    several = "What one contributor has in several suppressed cells together"
    # A rule with exceptions is asked of all sums with a cell that is none.
    sums = [getattr(rule, "rule", rule) for rule in rules if not isinstance(rule, CountRule)]
    if not sums:
        return []
    if not is_covered or not all(isinstance(rule, _ASKED_OF_SUMS) for rule in sums):
        said = f"{several} may be known more closely than the rules allow for a single cell."
        return [limit("contributor-sums", said)]
    n = max((rule.n for rule in sums if isinstance(rule, PQ)), default=1)
    pool = f", alone or {n} of them pooling what they know" if n > 1 else ""
    is_kept = "is" if is_proven else "was to be"
    said = (
        f"{several} {is_kept} protected as in a single cell, against the public and other "
        f"contributors{pool}, where it is among the largest contributions."
    )
    if is_proven:
        return [process("contributor-sums", f"{said} This is proven for all of them.")]
    # Beyond a fixed effort sums are not searched to the end, and of large ones not at all.
    open_still = (
        "This is not proven for all of them: some may be known more closely than the rules allow."
    )
    return [limit("contributor-sums", f"{said} {open_still}")]


def _are_shown_cells_true(evidence: Any) -> bool:
    return all(
        bool((final.z == evidence.truth)[~final.hidden & ~final.replaced].all())
        for final in evidence.finals
    )


def _are_empty_cells_shown(evidence: Any) -> bool:
    is_empty = evidence.truth == 0
    return not any((is_empty & (final.hidden | final.replaced)).any() for final in evidence.finals)


def _hidden_columns(lowest: int, highest: int, evidence: Any) -> tuple[Any, Mask, Any]:
    """All columns, which cells are hidden, and the columns of the small counts among these."""
    final, truth = evidence.finals[0], evidence.truth
    hidden = final.hidden | final.replaced
    columns = final.design.matrix().tocsc()
    return columns, hidden, columns[:, hidden & (truth >= lowest) & (truth <= highest)]


def _is_none_derivable(lowest: int, highest: int, evidence: Any) -> bool:
    from discreet.solve.linear.elimination import find_spanned  # start-up time: Numba

    columns, hidden, small = _hidden_columns(lowest, highest, evidence)
    return not find_spanned(columns[:, ~hidden], small).any()


def _has_width(
    lowest: int, highest: int, width: int, zeros_are_public: bool, evidence: Any
) -> bool:
    columns, hidden, small = _hidden_columns(lowest, highest, evidence)
    n, shown = int(hidden.sum()), ~hidden
    # Where empty cells are shown, whoever looks for intervals knows that a hidden count is not 0.
    limits = (
        Limits(columns[:, hidden], np.ones(n), np.full(n, np.inf)) if zeros_are_public else None
    )
    found = feasible_intervals(
        columns[:, shown], evidence.truth[shown], small, limits=limits, workers=1
    )
    return bool((found.width >= width - _ROUNDING).all())
