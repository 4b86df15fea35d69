"""What the patterns of several editions tell: cells hidden in all of them, or shown in one.

A cell that protects others is often shown in another edition. Its figure there stands in for the
hidden one, and equations give the rest; a cell that is hidden in every edition is likely sensitive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.sparse import csc_array, eye_array, hstack, vstack

from discreet.arrays import Index, Mask, Real
from discreet.assessment.audit.inversion import RUNS, weigh_tables
from discreet.assessment.audit.ranges import is_perturbed
from discreet.assessment.audit.subject import WITHHELD
from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.attacks.reconstruction import IntegerReconstruction
from discreet.errors import InfeasibleError, NotConvergedError, ParameterError
from discreet.solve.linear.program import Program
from discreet.suppress.pattern import PUBLISHED, SECONDARY, Pattern
from discreet.tables.protected import COUNT

_INVERTED = 200  # inner cells: tables that fit are looked for one cell after another


@dataclass(frozen=True)
class PatternDifference(PublicAttack):
    """Claims hidden counts of a release from figures that other editions show of the same cells.

    The table nearest to these figures is taken, by absolute differences over the figures' square
    roots; without other editions any table that agrees with the shown cells. Cells with a figure of
    their own, and the smallest ones, are claimed first.
    """

    name: ClassVar[str] = "pattern-difference"
    about: ClassVar[About] = "hidden"
    beside: ClassVar[Literal["alone"]] = "alone"
    remedy: ClassVar[str] = "the pattern of the last edition again, as far as it protects"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Nothing is hidden, or there is no other edition."""
        return _refusal(release, knowledge)

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Claims about hidden cells, by their positions; nothing is drawn."""
        hidden = _hidden(release)
        figure, is_known = _borrow_figures(release, hidden, knowledge.earlier)
        y = _nearest_table(release, hidden, np.flatnonzero(is_known), figure)
        values = np.rint(np.asarray(release.design.matrix().T @ y))
        targets = np.flatnonzero(hidden)
        sure = is_known[targets] + 1.0 / (2.0 + values[targets])
        return Claims.ranked(targets.tolist(), values[targets].astype(int).tolist(), sure)


@dataclass(frozen=True)
class PatternIntersection(PublicAttack):
    """Claims that cells are sensitive which all editions hide."""

    name: ClassVar[str] = "pattern-intersection"
    about: ClassVar[About] = "sensitive"
    remedy: ClassVar[str] = "the pattern of the last edition again, as far as it protects"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Nothing is hidden, or there is no other edition."""
        return _refusal(release, knowledge)

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Claims about hidden cells, by their positions; nothing is drawn."""
        always = np.all([_hidden(each) for each in (release, *knowledge.earlier)], axis=0)
        targets = np.flatnonzero(always)
        return Claims.ranked(targets.tolist(), [True] * len(targets), np.ones(len(targets)))


@dataclass(frozen=True)
class PatternInversion(PublicAttack):
    """Claims the likeliest hidden counts among tables for which the program hides the same cells.

    `knowledge.extra["program"]` is the method; without it all tables with the same shown cells are
    alike, which is the baseline.

    Cost: the method runs so often on tables of some twenty inner cells: a minute by default.

    Args:
      runs: How often the method runs, all tables and draws of its costs together; at least ten
        draws of each table.
    """

    runs: int = RUNS

    name: ClassVar[str] = "pattern-inversion"
    about: ClassVar[About] = "hidden"
    beside: ClassVar[Literal["alone"]] = "alone"
    remedy: ClassVar[str] = "costs and decoys from a secret (`table.with_secret`), or more rounding"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Nothing is hidden, no counts, too large, or no program."""
        if release.status is None or not _hidden(release).any():
            return "no cell is hidden"
        if release.unit != COUNT or is_perturbed(release):
            return "the shown values are no true counts"
        if release.design.n_inner > _INVERTED:
            return f"more than {_INVERTED:,} inner cells"
        return "" if "program" in knowledge.extra else "the program that hid the cells is not given"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Claims about hidden cells, by their positions; nothing is drawn."""
        method, hidden = knowledge.extra.get("program"), _hidden(release)
        fits = IntegerReconstruction().vary(release, rng).table
        start = Pattern(
            release.design,
            release.design.aggregate(fits),
            np.where(hidden, SECONDARY, PUBLISHED),
            fits,
            bounds=(_fewest(release, hidden), np.full(len(hidden), np.inf)),
            method=method,
            is_drawn=_drawn_from_secret(release),
        )
        tables, weights = weigh_tables(start, self.runs)
        values = tables @ release.design.matrix().tocsc()[:, hidden].toarray()
        said, sure = [], []
        for column in values.T:
            counts, number = np.unique(column, return_inverse=True)
            share = np.bincount(number.ravel(), weights) / weights.sum()
            said.append(int(counts[share.argmax()]))
            sure.append(float(share.max()))
        return Claims.ranked(np.flatnonzero(hidden).tolist(), said, sure)


def _drawn_from_secret(release: Any) -> bool:
    """Whether the statement says that costs of hiding were drawn from a secret."""
    said = (s.text for s in release.statement.sentences if s.kind == "pattern-tells")
    return any("drawn from a secret" in text for text in said)


def _fewest(release: Any, hidden: Mask) -> Real:
    """No hidden count is empty where zeros are shown."""
    return np.where(hidden & release.statement.says("empty-cells"), 1.0, 0.0)


def _refusal(release: Any, knowledge: Knowledge) -> str:
    every = (release, *knowledge.earlier)
    if not all(each.status is not None and each.hidden.any() for each in every):
        return "no cell is hidden"
    return "" if knowledge.earlier else "there is no other edition"


def _hidden(release: Any) -> Mask:
    if release.status is None:
        raise ParameterError("this release hides no cells, so there is nothing to compare.")
    return np.isin(release.status, WITHHELD)


def _borrow_figures(release: Any, hidden: Mask, others: tuple[Any, ...]) -> tuple[Real, Mask]:
    """The figure of each hidden cell in the newest edition that shows it, and where one does."""
    figure, is_known = np.zeros(len(hidden)), np.zeros(len(hidden), dtype=bool)
    for other in others:
        if len(other.z) != len(release.z):
            raise ParameterError("editions are compared cell by cell, but these differ in cells.")
        shown = hidden & ~_hidden(other)
        figure[shown], is_known[shown] = np.asarray(other.z)[shown], True
    return figure, is_known


def _nearest_table(release: Any, hidden: Mask, known: Index, figure: Real) -> Real:
    """Inner cells with the shown sums, as near to borrowed figures as these allow."""
    X = release.design.matrix().tocsc().astype(np.float64)
    n, m = X.shape[0], len(known)
    shown, z = X[:, ~hidden], np.asarray(release.z, dtype=np.float64)[~hidden]
    # Differences are variables of their own, above and below; the shown sums have none.
    both = csc_array(hstack([shown, X[:, known]], format="csc"))
    apart = csc_array(hstack([csc_array((m, shown.shape[1])), eye_array(m)], format="csc"))
    matrix: Any = vstack([both, -apart, apart], format="csr")
    sums = np.concatenate([z, figure[known]])
    floor, ceiling = np.zeros(n + 2 * m), np.full(n + 2 * m, np.inf)
    cost = np.concatenate([np.zeros(n), np.tile(1.0 / np.sqrt(1.0 + figure[known]), 2)])
    program = Program(matrix, sums, sums, floor, ceiling, changing="nothing")
    try:
        found = program.minimise(cost)
    except (InfeasibleError, NotConvergedError):
        found = None
    return np.zeros(n) if found is None else found[:n]
