"""Audit a pattern or a release: what can be found out of cells that are hidden or perturbed."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from discreet.arrays import Array, Index, Mask, Real
from discreet.assessment.audit.equations import (
    Bracket,
    DisagreementError,
    Term,
    Told,
    bracketing_cells,
    disclosed_by_equations,
    disclosing_cells,
    told_by_equations,
    told_to_coalitions,
    told_with_signs,
)
from discreet.assessment.audit.inversion import invert_pattern, perfect_fits_of
from discreet.assessment.audit.perturbed import PerturbedAudit, audit_perturbed
from discreet.assessment.audit.ranges import is_perturbed
from discreet.assessment.audit.subject import Audit, Subject, subject_of
from discreet.assessment.cells import check_choice
from discreet.display.bars import shows_progress
from discreet.errors import ParameterError, whole
from discreet.facade.table import Table
from discreet.noise.matrix import TransitionMatrix
from discreet.randomness import stream
from discreet.signatures import takes_options
from discreet.solve.linear.intervals import Intervals, feasible_intervals
from discreet.solve.linear.unknowns import Unknowns, unknowns
from discreet.suppress.attackers import Attackers
from discreet.suppress.pattern import Pattern
from discreet.suppress.unions import find_unions
from discreet.tables.protected import Protected

Which = Literal["primary", "all", "none"]
View = Literal["equations", "signs", "none"]
_SEED = 1  # the result does not depend on it
_MOST_BRACKETED = 4_000  # published cells above which programs for brackets take too long


@dataclass(frozen=True)
class AuditOptions:
    """What an audit is told beside its pattern or release.

    Args:
      table: The true table of a release. Without it the audit is the attack of an outsider.
      intervals: Whose intervals are computed: those of `"primary"` cells, of `"all"` suppressed
        cells, or of `"none"`.
      lone: What contributors can compute who know the cells they are alone in: by `"equations"`,
        also with `"signs"` and what each has in other cells (which takes a while), or `"none"`.
      coalition: How many of them pool what they know; by equations.
      bounds: Smallest and largest value that the public knows of each published cell; infinite, or
        a single number, where nothing is known. What a pattern or a release tells of its hidden
        cells counts in any case.
      non_negative: Whether it is public that inner cells are not negative; never where some are.
      exact: Whether intervals are followed to their ends. If not, an interval that meets its need
        is not followed further.
      explain: Of how many disclosed cells it is found out which published cells disclose them;
        where signs do, in tables of a few thousand cells without public bounds.
      workers: Processes for the intervals; by default those that are worth starting.
      program: Whether the pattern's own method is run on other tables with the same shown cells, to
        see what the pattern tells (`Audit.inversion`). It takes a minute, and needs counts.
      law: The law of a perturbed release's noise, or its largest move, where the statement does
        not give it.
    """

    table: Table | None = None
    _: KW_ONLY
    intervals: Which = "primary"
    lone: View = "equations"
    coalition: int = 1
    bounds: tuple[Any, Any] | None = None
    non_negative: bool = True
    exact: bool = True
    explain: int = 20
    workers: int | None = None
    program: bool = False
    law: TransitionMatrix | int | None = None

    def __post_init__(self) -> None:
        check_choice("intervals", self.intervals, get_args(Which))
        check_choice("lone", self.lone, get_args(View))
        whole("coalition", self.coalition, 1)


@shows_progress("auditing")
@takes_options(AuditOptions)
def audit(  # noqa: D417  see its class
    source: Pattern | Protected, options: AuditOptions
) -> Audit | PerturbedAudit:
    """What the public, and each contributor, can find out about suppressed or perturbed cells.

    What the equations alone disclose is found in three independent ways, and it is an error if they
    disagree. Intervals with signs and public bounds find at least these cells and often more. The
    proofs that a pattern carries are checked.

    Of perturbed counts every range follows from the published law of the noise, from signs, and
    from the sums that the true table keeps; the answer is then a `PerturbedAudit`.

    Args:
      source: A `Pattern` (of other programs: `Pattern.from_labels`), or a release. All cells that a
        release hides count as sensitive; of perturbed cells those that may hold one or two.
    """
    if isinstance(source, Protected) and (options.law is not None or is_perturbed(source)):
        return _audit_perturbed(source, options)
    subject = _with_bounds(subject_of(source, options.table), options.bounds)
    if subject.is_signed:
        options = replace(options, non_negative=False)
    rng = stream(_SEED, "audit")
    values = subject.z[subject.shown]
    system = unknowns(subject.X[:, subject.shown], values, known=subject.known, y=subject.y)
    by_equations = disclosed_by_equations(system, subject.targets, rng=rng)
    low, high, is_exact = _intervals(subject, by_equations, options)
    told, n_attackers = _tell_disclosure(
        subject, system, by_equations, (low, high), options, rng=rng
    )
    sources = _sources(subject, by_equations, options.explain)
    found = Audit(
        subject,
        by_equations,
        low,
        high,
        is_exact,
        told,
        sources,
        attackers=n_attackers,
        coalition=options.coalition,
    )
    has_signs_alone = options.non_negative and options.bounds is None
    if has_signs_alone:
        found = replace(found, perfect=perfect_fits_of(subject, options.intervals == "all"))
    if isinstance(source, Pattern):
        found = _with_proofs(found, source, options)
    elif options.program:
        raise ParameterError("program=True needs a pattern: Suppress(...).pattern(table).")
    if has_signs_alone:
        found = replace(found, brackets=_brackets(found, options.explain - len(sources)))
    return found


def _audit_perturbed(source: Protected, options: AuditOptions) -> PerturbedAudit:
    if options.lone == "signs" or options.coalition > 1:
        raise ParameterError(
            "the audit of perturbed counts takes the view of an outsider: leave out lone= and "
            "coalition=."
        )
    return audit_perturbed(
        source,
        options.table,
        law=options.law,
        intervals=options.intervals,
        bounds=None if options.bounds is None else _ends(options.bounds, source.z.shape),
        workers=options.workers,
    )


def _with_proofs(found: Audit, pattern: Pattern, options: AuditOptions) -> Audit:
    """The audit with what is asked of a pattern alone: its proofs, sums of cells, its message."""
    if pattern.proofs is not None:
        found = replace(found, unproven=pattern.proofs.unproven(pattern))
    if pattern.closeness and options.lone != "none" and options.non_negative:
        found = replace(found, unions=find_unions(pattern))
    return replace(found, inversion=invert_pattern(pattern)) if options.program else found


def _intervals(
    subject: Subject, by_equations: Mask, options: AuditOptions
) -> tuple[Real, Real, Mask]:
    """Intervals of the chosen targets; NaN for the others."""
    n = subject.targets.shape[1]
    low, high, is_exact = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, dtype=bool)
    chosen = (
        np.flatnonzero(subject.is_sensitive) if options.intervals == "primary" else np.arange(n)
    )
    if options.intervals == "none" or not len(chosen):
        return low, high, is_exact
    enough = None
    if (
        not options.exact
    ):  # what a rule asks for is enough; nothing less than the ends where none asks
        below, above = (need[chosen] for need in subject.needs)
        is_asked, value = (below > 0) | (above > 0), subject.values[chosen]
        low_enough = np.where(is_asked, value - below, -np.inf)
        enough = low_enough, np.where(is_asked, value + above, np.inf)
    found = feasible_intervals(
        subject.X[:, subject.shown],
        subject.z[subject.shown],
        subject.targets[:, chosen],
        signs=options.non_negative,
        limits=subject.limits,
        enough=enough,
        known=subject.known,
        y=subject.y,
        workers=options.workers,
    )
    _check(subject, found, chosen, by_equations)
    low[chosen], high[chosen], is_exact[chosen] = found.low, found.high, found.is_proven
    return low, high, is_exact


def _with_bounds(subject: Subject, bounds: tuple[Any, Any] | None) -> Subject:
    """The subject with further public bounds."""
    if bounds is None:
        return subject
    low, high = _ends(bounds, subject.z.shape)
    if subject.bounds is not None:
        low, high = np.maximum(low, subject.bounds[0]), np.minimum(high, subject.bounds[1])
    return replace(subject, bounds=(low, high))


def _ends(bounds: tuple[Any, Any], shape: tuple[int, ...]) -> tuple[Real, Real]:
    """Public bounds of every published cell."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ParameterError(
            f"bounds are a pair, smallest and largest values of published cells, got {bounds!r}."
        )
    low, high = (np.broadcast_to(np.asarray(b, np.float64), shape) for b in bounds)
    if (low > high).any():
        raise ParameterError("a public lower bound is above the upper one of the same cell.")
    return low, high


def _check(subject: Subject, found: Intervals, chosen: Array, by_equations: Mask) -> None:
    """What equations disclose must be a point, and the truth must lie in every interval."""
    # Ends of intervals are solutions of programs, which are exact to about 1e-6 of the values.
    size = 1e-5 * np.maximum(1.0, np.abs(np.nan_to_num(found.low)))
    wide = by_equations[chosen] & (found.width > size)
    value = subject.values[chosen]
    outside = (value < found.low - size) | (value > found.high + size)
    if wide.any() or (outside & found.is_proven).any():
        k = int(chosen[np.flatnonzero(wide | outside)[0]])
        raise DisagreementError(
            f"the interval of target {k} contradicts the equations or the true value. Either the "
            "published cells do not add up, or public bounds exclude the truth."
        )


def _tell_disclosure(
    subject: Subject,
    system: Unknowns,
    by_equations: Mask,
    public: tuple[Real, Real],
    options: AuditOptions,
    *,
    rng: np.random.Generator,
) -> tuple[tuple[Told, ...], int]:
    """What contributors are told beyond the public intervals, and how many of them there are."""
    if options.lone == "none" or not len(subject.attackers):
        return (), 0
    groups = _groups(system, subject.attackers)
    open_still = np.flatnonzero(subject.is_sensitive & ~by_equations)
    targets = subject.targets[:, open_still]
    empty = _empty_cells(subject, system) if options.non_negative else np.empty(0, np.intp)
    found = told_by_equations(system, targets, groups, empty, rng=rng)
    several = options.coalition
    together = told_to_coalitions(system, targets, groups, found, several, empty, rng=rng)
    if options.lone == "signs":
        found += _with_signs(subject, open_still, found, *public, options.non_negative)
    # Numbers among all targets in place of numbers among those that are open still.
    numbered = (
        replace(told, targets=tuple(open_still[list(told.targets)].tolist()))
        for told in (*found, *together)
    )
    n_attackers = len(groups) if options.lone == "equations" else len(subject.attackers)
    return tuple(numbered), n_attackers


def _empty_cells(subject: Subject, system: Unknowns) -> Index:
    """Unknown inner cells that sums of zero show to be empty, by position among the unknown."""
    X, values = subject.X[:, subject.shown], subject.z[subject.shown]
    doubted = unknowns(X, values, signs=True, known=subject.known, y=subject.y).cells
    return np.flatnonzero(~np.isin(system.cells, doubted))


def _groups(system: Unknowns, everybody: Attackers) -> list[Array]:
    """For each contributor the unknown inner cells that he knows, by position among those."""
    known = everybody.known.tocsr()[system.cells].tocsc()
    found = np.split(known.indices, known.indptr[1:-1]) if known.shape[1] else []
    return [cells for cells in found if len(cells)]


def _with_signs(
    subject: Subject, open_still: Array, found: list[Told], low: Real, high: Real, signs: bool
) -> list[Told]:
    """What programs tell in addition, about targets that are neither told nor known already."""
    close = subject.rounding(subject.values[open_still])
    below, above = (need[open_still] for need in subject.needs)
    already = set().union(*(told.targets for told in found))
    public = set(np.flatnonzero(high[open_still] - low[open_still] <= close).tolist())
    targets, more = subject.targets[:, open_still], []
    for told in told_with_signs(subject, targets, (below, above), close, signs=signs):
        rest = sorted(set(told.targets) - already - public)
        if rest:
            more.append(replace(told, targets=tuple(rest)))
    return more


def _sources(subject: Subject, by_equations: Mask, most: int) -> dict[int, tuple[Term, ...]]:
    """Which published cells disclose a target, for sensitive ones first."""
    disclosed = np.flatnonzero(by_equations)
    chosen = disclosed[np.argsort(~subject.is_sensitive[disclosed], kind="stable")][:most]
    found = disclosing_cells(subject.X, subject.shown, subject.targets[:, chosen], subject.known)
    pairs = zip(chosen.tolist(), found, strict=True)
    return {k: terms for k, terms in pairs if terms is not None}


def _brackets(found: Audit, most: int) -> dict[int, Bracket]:
    """Which published cells bound a target that follows from signs, from both sides."""
    subject = found.subject
    chosen = np.flatnonzero(np.isin(found.positions, found.disclosed_with_signs))[: max(most, 0)]
    known = subject.known
    is_large = len(subject.shown) > _MOST_BRACKETED
    if is_large or (known is not None and subject.y is not None and subject.y[known].any()):
        return {}
    brackets = bracketing_cells(
        subject.X,
        subject.shown,
        subject.z,
        subject.targets[:, chosen],
        (found.low[chosen] + found.high[chosen]) / 2,
        known,
    )
    pairs = zip((int(k) for k in chosen), brackets, strict=True)
    return {k: bracket for k, bracket in pairs if bracket is not None}
