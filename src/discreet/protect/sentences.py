"""What statements say: sentences with the predicate that makes each of them testable.

A predicate takes evidence: `finals`, protected values made under many secrets; `truth`, the true
values of their cells; and `remade(terms)`, the same release of another table of the same records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet import __version__
from discreet.arrays import Array, Real
from discreet.tables.protected import COUNT, WEIGHT, CellStatus, Claims, Protected
from discreet.tables.statement import PrivacyStatement, Sentence, Statement, Step, step_of
from discreet.tables.truth import DataSet, SecretLike

if TYPE_CHECKING:
    from discreet.protect.editions import EditionPlan

LEAST_P = 1e-6
"""Predicates about averages reject at this probability."""
LARGE_COUNT = 40
"""From here on a count is large: a claimed variance holds for all counts of this size or more."""


def claim_sentences(claims: Claims, unit: str) -> list[Sentence]:
    """Sentences about the values of a method, from what it claims."""
    said = []
    if math.isfinite(claims.max_move):
        noun = {COUNT: "count", WEIGHT: "weighted count"}.get(unit, unit)
        text = f"No {noun} moved by more than {claims.max_move:g}."
        plain = f"No figure was changed by more than {claims.max_move:g}."
        holds = partial(_moves_at_most, claims.max_move)
        said.append(Sentence("moves-at-most", text, plain, holds=holds))
    if claims.unbiased:
        text = "The expected change of every value is zero."
        plain = "On average figures are neither too high nor too low."
        said.append(Sentence("mean-zero", text, plain, holds=_mean_zero))
    if claims.variance is not None:
        text = f"The variance of the change is {claims.variance:.4g} for counts of {LARGE_COUNT} "
        holds = partial(_variance_is, claims.variance)
        said.append(Sentence("variance", f"{text}or more.", holds=holds))
    if claims.keeps_zeros:
        text = "True zeros are published as zeros."
        said.append(Sentence("zeros-stay", text, holds=_zeros_stay))
        text = "A value above zero proves that the cell has records, since zeros stay zero."
        if claims.keeps_positive:
            text = (
                "Which cells are empty is not hidden: zeros stay zero and nothing else becomes "
                "zero."
            )
        # a later step may hide it again, so this is a sentence with a predicate, not a limit
        holds = partial(_occupied_cells_show, claims.keeps_positive)
        said.append(Sentence("occupied-cells", text, holds=holds))
    if claims.blocked:
        said.append(never_published(claims.blocked))
    if claims.additive:
        said.append(adds_up())
    else:
        text = "Totals were changed separately, so cells need not add up to them."
        plain = "Figures may not add up to totals, because each was changed separately."
        said.append(Sentence("need-not-add-up", text, plain, holds=_fails_to_add_up))
    if claims.consistent:
        text = "The same records get the same change in every table of this edition."
        plain = "The same figure is changed in the same way in every table."
        said.append(Sentence("same-everywhere", text, plain, holds=_same_everywhere))
    return said


def never_published(values: Sequence[int]) -> Sentence:
    """Some values never appear."""
    some = values if isinstance(values, range) else sorted(values)
    shown = " and ".join(map(str, some)) if len(some) < 3 else f"{some[0]} to {some[-1]}"
    return Sentence(
        "never-published",
        f"Values of {shown} are never published.",
        f"Figures of {shown} are never shown.",
        holds=partial(_never_published, some[0], some[-1]),
    )


def known_rounded(base: int) -> Sentence:
    """Known margins have no small counts."""
    return Sentence(
        "known-rounded",
        f"Small counts of these margins were rounded first, so that none of them is between 0 and "
        f"{base}; others moved where sums demanded it. The rounding follows from the known margins "
        "and a secret alone.",
        f"Totals below {base} were rounded.",
        "process",
        holds=partial(_known_rounded, base),
    )


def adds_up() -> Sentence:
    """Published cells are sums of one inner table."""
    return Sentence(
        "adds-up",
        "Published cells are sums of one protected inner table.",
        "Figures add up to their totals.",
        holds=_adds_up,
    )


def none_below(threshold: int) -> Sentence:
    """Small values are hidden."""
    return Sentence(
        "threshold",
        f"Changed counts below {threshold} are not shown.",
        f"Figures below {threshold} are not shown.",
        holds=partial(_none_below, threshold),
    )


def not_negative() -> Sentence:
    """No value is below zero."""
    return Sentence("not-negative", "No value is negative.", holds=_not_negative)


def whole_numbers() -> Sentence:
    """Values are whole numbers."""
    return Sentence("whole-numbers", "Values are whole numbers.", holds=_whole_numbers)


def multiples_of(base: int) -> Sentence:
    """Values are multiples of a base."""
    return Sentence(
        "multiples", f"All values are multiples of {base}.", holds=partial(_multiples_of, base)
    )


def may_be_negative() -> Sentence:
    """Some values are below zero, or have decimals."""
    return Sentence(
        "may-be-negative",
        "Values are not whole numbers and may be negative.",
        "Some figures have decimals or are below zero; they stand for small numbers.",
        holds=_is_odd,
    )


def process(kind: str, text: str, plain: str = "") -> Sentence:
    """What was done."""
    return Sentence(kind, text, plain, "process")


def limit(kind: str, text: str, plain: str = "") -> Sentence:
    """What is not protected."""
    return Sentence(kind, text, plain, "limits")


def groups_not_hidden() -> Sentence:
    """What the values say of whole groups."""
    return limit(
        "groups",
        "What a group has in common is not hidden: if all of a group fall in one category, the "
        "table shows it with high probability.",
    )


def nested_crossings() -> Sentence:
    """What key-based noise gives away when variables are crossed further and further."""
    return limit(
        "nested-crossings",
        "A record that is alone in a cell has the same noise in every finer crossing; tables "
        "that cross ever more variables can single it out.",
    )


class StatementSubject(Protocol):
    """What is published: a table, or records."""

    @property
    def data_set(self) -> DataSet:
        """Name and edition."""

    @property
    def secret(self) -> SecretLike | None:
        """What noise is drawn from."""


class Sourced(Protocol):
    """A method that says where its randomness comes from."""

    @property
    def source(self) -> str:
        """`"keys"`, `"table"` or `"system"`."""


def data_step(
    subject: StatementSubject,
    method: Sourced,
    *,
    is_counted: bool,
    number: int | None,
    plan: EditionPlan | None = None,
    place: int = 0,
    follows: bool = False,
) -> Step:
    """The first step of a statement: which data, and what other releases of them mean.

    The number says which of its edition's releases this is, if a ledger counts them; plan and place
    say how editions follow each other and which of them this is, and `follows` that the method went
    on from earlier ones.
    """
    data = subject.data_set
    told = plan is not None and (method.source == "keys" or plan.mode.kind == "phased")
    edition = (
        limit("editions", plan.text, plan.plain) if plan and told else _edition(method, follows)
    )
    said = [edition, _others(method, is_counted)]
    if method.source != "system" and subject.secret is not None and subject.secret.is_public:
        said.append(
            limit(
                "public-secret",
                "These figures come from demonstration data under a secret that everybody knows; "
                "they are not protected.",
                "These are demonstration figures.",
            )
        )
    if number is not None and number > 1:
        said.append(
            limit(
                "released-again",
                f"This is release {number} of this edition. The first one and this one were drawn "
                f"apart and tell more together: {_SEVERAL}",
            )
        )
    parameters = {
        "name": data.name,
        "edition": data.edition,
        "keys": str(plan.mode) if plan else data.keys,
        "why": plan.why if plan else None,
        "place": place or None,
    }
    return step_of("data", parameters, said)


def follows_truth(method: Sourced) -> bool:
    """Whether a method draws nothing: its releases follow from the true values alone."""
    claims = getattr(method, "claims", None)
    return "source" in getattr(claims, "follows_truth", ())


_SEVERAL = (
    "in measured tables one cell-key release gave 21 to 38 % of the counts, four with other "
    "parameters 24 to 68 %, and 40 draws of a table-wise method 70 to 99 %."
)
"""What several releases cost; measured by `attack.several_laws` and in the tests of attacks."""


def _edition(method: Sourced, follows: bool) -> Sentence:
    """What a next edition would give away."""
    if follows_truth(method):
        how = (
            "Of cells that could protect others, those were hidden that an earlier edition hid"
            if follows
            else "Each edition is suppressed anew"
        )
        text = (
            f"{how}: a cell that is hidden here and shown in another "
            "edition or another table of nearly the same records can often be computed."
        )
    else:
        text = (
            "Each edition is drawn anew: the average of n editions of nearly the same records has "
            "noise that is smaller by the square root of n, and what changed between them is "
            "hidden by that noise alone."
        )
    return limit("editions", text)


def _others(method: Sourced, is_counted: bool) -> Sentence:
    """What other releases of the same records mean."""
    if method.source == "system" and not is_counted:
        text = "Earlier releases of the same records are not counted here; what they cost adds up."
    elif method.source != "system" and not is_counted:
        text = (
            "Nobody counts releases of these records. Releases by another method, with other "
            f"parameters or in another unit tell more together than each alone: {_SEVERAL}"
        )
    elif method.source != "system":
        text = (
            "The custodian's ledger registers releases of this edition, this one among them. "
            "Another one, by another method or with other parameters, is refused unless the "
            "custodian accepts what the two tell together."
        )
    else:
        text = (
            "The custodian's ledger adds up what all private releases of this data set cost; other "
            "releases have no ε and are not part of the sum."
        )
    return limit("other-releases", text)


def _moves(evidence: Any) -> Real:
    """Changes of the shown cells, a row for each release; hidden cells count as unmoved."""
    rows = [np.where(f.hidden, 0.0, f.z - evidence.truth) for f in evidence.finals]
    return np.array(rows, dtype=np.float64)


def _slack(evidence: Any) -> float:
    return 1e-9 * max(1.0, float(np.abs(evidence.truth).max(initial=0.0)))


def _moves_at_most(reach: float, evidence: Any) -> bool:
    return bool(np.abs(_moves(evidence)).max(initial=0.0) <= reach + _slack(evidence))


def _zeros_stay(evidence: Any) -> bool:
    return not _moves(evidence)[:, evidence.truth == 0].any()


def _occupied_cells_show(keeps_positive: bool, evidence: Any) -> bool:
    occupied = evidence.truth > 0
    return all(
        not (f.z > 0)[~f.hidden & ~occupied].any()
        and not (keeps_positive and (f.z <= 0)[~f.hidden & occupied].any())
        for f in evidence.finals
    )


def _none_below(threshold: int, evidence: Any) -> bool:
    """Whether no shown value is small; structural zeros are no counts of anybody."""
    return all(
        (f.z[~f.hidden & (f.status != CellStatus.structural_zero)] >= threshold).all()
        for f in evidence.finals
    )


def _never_published(lowest: int, highest: int, evidence: Any) -> bool:
    shown = np.concatenate([f.z[~f.hidden] for f in evidence.finals])
    inside = (shown > lowest - 1 + 1e-9) & (shown < highest + 1 - 1e-9)
    return not bool((inside & (shown > 1e-9)).any())


def _mean_zero(evidence: Any) -> bool:
    moves = _moves(evidence)
    # single cells have too few draws to show a small bias that all of them share; sums show it
    tests = [*moves.T, moves.sum(axis=1)]
    return min(map(mean_p, tests)) * len(tests) >= LEAST_P


def _variance_is(variance: float, evidence: Any) -> bool:
    large = evidence.truth >= LARGE_COUNT
    moves = _moves(evidence)[:, large]
    if not large.any() or len(moves) < 2:
        return True
    squares = (moves - moves.mean(axis=0)) ** 2 * len(moves) / (len(moves) - 1)
    return mean_p(squares.mean(axis=1), variance) >= LEAST_P


def _adds_up(evidence: Any) -> bool:
    return is_additive(evidence.finals[:5])  # a sparse least squares each; five tell enough


def is_additive(finals: Iterable[Protected]) -> bool:
    """Whether published cells are sums of some inner table, in each of the releases."""
    return all(map(_is_sum, finals))


def _fails_to_add_up(evidence: Any) -> bool:
    """Whether sums are missed, or the table has none: then any values add up."""
    first = evidence.finals[0]
    anything = np.random.default_rng(1).random(len(first.z))
    return not _adds_up(evidence) or _is_sum(replace(first, z=anything, y=None))


def _is_sum(final: Protected) -> bool:
    from scipy.sparse.linalg import lsmr

    X, z, y = final.design.matrix(), final.z.astype(np.float64), final.y
    if y is None:
        y = lsmr(X.T.astype(float), z, atol=1e-12, btol=1e-12, maxiter=10_000)[0]
    return bool(np.abs(X.T @ y - z).max(initial=0.0) <= 1e-6 * max(1.0, float(np.abs(z).max())))


def _known_rounded(base: int, evidence: Any) -> bool:
    """Whether no value without noise is small, as long as values are as they were published."""
    for final in evidence.finals:
        if final.precision is None or final.statement.says("adds-up"):
            continue
        held = final.z[np.isinf(final.precision)]
        if ((held > 0) & (held < base)).any():
            return False
    return True


def _same_everywhere(evidence: Any) -> bool:
    return bool(evidence.agrees_elsewhere())


def _not_negative(evidence: Any) -> bool:
    return all(final.z.min(initial=0) >= -_slack(evidence) for final in evidence.finals)


def _whole_numbers(evidence: Any) -> bool:
    return all((final.z == np.rint(final.z)).all() for final in evidence.finals)


def _multiples_of(base: int, evidence: Any) -> bool:
    return all((final.z % base == 0).all() for final in evidence.finals)


def _is_odd(evidence: Any) -> bool:
    return not (_not_negative(evidence) and _whole_numbers(evidence))


def mean_p(values: Array, expected: float = 0.0) -> float:
    """Two-sided probability of a mean as far off as this, for independent values."""
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    off = abs(float(np.mean(values)) - expected)
    if spread == 0:
        return 1.0 if off <= 1e-12 * max(1.0, abs(expected)) else 0.0
    from scipy.special import stdtr  # start-up time: every table loads these sentences

    # Student's tails: with eight draws those of a normal law reject one honest sum in 800.
    return float(2 * stdtr(len(values) - 1, -off / spread))


def statement_of(
    name: str,
    parameters: Mapping[str, Any],
    sentences: Iterable[Sentence],
    privacy: PrivacyStatement | None = None,
) -> Statement:
    """The statement of a method; parameters that were left out are not named."""
    return Statement((step_of(f"protect:{name}", parameters, sentences),), privacy, __version__)
