r"""Laws that every method keeps, whatever it promises of its values.

* *sentence*: every sentence about values in the final statement is true of the final values.
* *neighbour*: with secret and noise held fixed, a table that differs by one record has the same
  labels, shape, types, metadata, statement and public errors, and status follows from values.
* *hidden*: where published values are the same, nothing public varies with a hidden cell.
* *secret*: tables of other records share no noise under one secret.
* *likelihood ratio*: no outcome of a private method is more than :math:`e^\varepsilon` times as
  likely with a record as without.

Below them stand the tables and releases that they are tried on, and the tests of draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import chi2

from discreet.accounting import rho_to_epsilon
from discreet.arrays import Array, Real
from discreet.design.axis import Axis
from discreet.design.base import Design
from discreet.design.formula import Term
from discreet.design.hierarchy import Hierarchy
from discreet.design.product import ProductDesign
from discreet.design.sparse import SparseDesign
from discreet.errors import DiscreetError
from discreet.facade.table import Table
from discreet.protect.draws import SecretDraws, SeededDraws, SeededSecret
from discreet.protect.publish import in_unit, run
from discreet.protect.sentences import LEAST_P
from discreet.randomness import stream
from discreet.tables.protected import CellStatus, Method, Protected
from discreet.tables.statement import PrivacyStatement, Statement
from discreet.tables.truth import Bounds, CellValues, DataSet

_SECRETS = 40
_TESTED_DELTA = 0.02  # of Gaussian noise: a smaller one is not seen in so few outcomes
_OUTCOMES = 800
FEWEST_EXPECTED = 5.0  # draws of a value, below which Pearson's statistic has no χ² law


class Broken(Exception):
    """Why a promise is broken."""


class BrokenPromiseError(AssertionError):
    """A method does not do what it declares."""

    def __init__(self, name: str, broken: Mapping[str, str]) -> None:
        self.broken = dict(broken)
        listed = "".join(f"\n  {check}: {why}" for check, why in broken.items())
        super().__init__(f"method {name!r} breaks its promises:{listed}")


@dataclass(frozen=True, eq=False)
class ReleaseEvidence:
    """What the sentences of a statement are judged by."""

    truth: Array  # true values of the published cells, in the unit of the release
    finals: Sequence[Protected]  # final values, made under many secrets
    # Whether the same cells have the same values in other tables.
    agrees_elsewhere: Callable[[], bool]


def check_sentences(statement: Statement, evidence: ReleaseEvidence) -> str:
    """Raise when a sentence about the values is not true of them."""
    about_values = [s for s in statement.sentences if s.about == "values"]
    for sentence in about_values:
        if sentence.holds is None:
            raise Broken(f"nothing can test the sentence {sentence.text!r}.")
        if not sentence.holds(evidence):
            raise Broken(f"the statement says {sentence.text!r}, and that is not so.")
    return f"{len(about_values)} sentences about values are true"


def neighbour(method: Any, table: Table, seed: int = 1) -> str:
    """Whatever is public beside the values is the same for tables that differ by one record."""
    if "neighbour" in method.claims.follows_truth:
        return "exempt: the statement says so"
    tables = [table, *neighbours(table)]
    outcomes = [_public_face(method, each, seed) for each in tables]
    for place, face in enumerate(outcomes[1:], 1):
        for part, value in face.items():
            if value != outcomes[0].get(part):
                raise Broken(f"one record more or less (case {place}) changes the public {part}.")
    _status_follows_values(method, tables, seed)
    return f"{len(tables) - 1} neighbours look alike"


def neighbours(table: Table) -> Iterator[Table]:
    """Tables in which one record moved, came or went, the fullest and the emptiest cells included.

    Weights and keys move along.
    """
    y = table.y
    full, empty, single = int(np.argmax(y)), np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    moves = [(full, None), (None, full), (full, int(np.argsort(y)[len(y) // 2]))]
    moves += [(full, int(empty[0])), (None, int(empty[0]))] if len(empty) else []
    moves += [(int(single[0]), full), (int(single[0]), None)] if len(single) else []
    return (_move_record(table, source, target) for source, target in moves)


def _move_record(table: Table, source: int | None, target: int | None) -> Table:
    """The table with one record taken out of a cell and put into another."""
    inner = table.require_inner()
    optional = {name: getattr(inner, name) for name in ("weight", "weight_squared", "key")}
    parts = {name: values.copy() for name, values in optional.items() if values is not None}
    count = inner.count.copy()
    for cell, sign in ((source, -1), (target, 1)):
        if cell is None:
            continue
        share = {name: values[cell] / max(count[cell], 1) for name, values in parts.items()}
        count[cell] += sign
        for name, values in parts.items():
            step = 12_345 if name == "key" else (share[name] or 30.0)
            values[cell] = values[cell] + sign * step if count[cell] else 0
    if "key" in parts:
        parts["key"] %= table.convention.modulus
    return _like(table, table.design, replace(inner, count=count, **parts))


def _like(table: Table, design: Design, inner: CellValues) -> Table:
    """A table with other cells, of the same data set, unit and custodian."""
    kept = {name: getattr(table, name) for name in ("data_set", "unit", "secret", "ledger")}
    return replace(Table.from_inner(design, inner, table.convention), **kept)


def _public_face(method: Any, table: Table, seed: int) -> dict[str, Any]:
    """What the public sees beside the values, or the error it sees instead."""
    try:
        made = publish(method, table, 0, seed)
    except DiscreetError as error:
        return {"error": error.public()}
    design, parts = made.design, ("z", "y", "status", "quality", "precision")
    arrays = {name: getattr(made, name) for name in parts}
    precision = arrays["precision"]
    return {
        "labels": [(axis.name, axis.leaves, axis.total) for axis in design.axes],
        "codes": [codes for _, codes in design.published_codes()] if design.axes else [],
        "shape": (design.n_inner, design.n_published),
        "types": {k: None if v is None else v.dtype.str for k, v in arrays.items()},
        "precision": None if precision is None else precision.tolist(),
        "unit": made.unit,
        "statement": made.statement.to_json(),
    }


def _status_follows_values(method: Any, tables: Sequence[Table], seed: int) -> None:
    """The same released value has the same status, wherever a cell can have records."""
    seen: dict[Any, int] = {}
    for table in tables:
        try:
            made = publish(method, table, 0, seed)
        except DiscreetError:
            continue
        status = np.zeros(len(made.z), np.int8) if made.status is None else made.status
        for value, kind in zip(made.z.tolist(), status.tolist(), strict=True):
            if kind != CellStatus.structural_zero and seen.setdefault(value, kind) != kind:
                raise Broken(f"cells released as {value} have different status.")


def hidden(method: Any, table: Table, seed: int = 1) -> str:
    """Where two tables are released alike, nothing public tells their hidden cells apart."""
    first = publish(method, table, 0, seed)
    if not first.hidden.any():
        return "not exercised: no cell is hidden"
    compared = 0
    for other in neighbours(table):
        again = publish(method, other, 0, seed)
        both = first.hidden & again.hidden
        compared += int(both.sum())
        for part in ("z", "status", "precision", "quality"):
            here, there = getattr(first, part), getattr(again, part)
            if here is not None and there is not None and (here[both] != there[both]).any():
                raise Broken(f"{part} of a hidden cell varies with its true count.")
    return f"{compared} hidden cells show nothing"


def secret(method: Any, table: Table, seed: int = 1) -> str:
    """The same secret gives unrelated noise to tables of other records."""
    if method.source == "system":
        return "not exercised: noise comes from the system"
    if "source" in method.claims.follows_truth:
        return "not exercised: nothing is drawn"
    other = _other_records(table)
    pairs = []
    for k in range(_SECRETS):
        here = publish(method, table, k, seed)
        there = publish(method, other, k, seed, keys=f"others {k}")
        pairs.append((here.z - _truth(table, here), there.z - _truth(other, there)))
    one, two = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    one, two = one - one.mean(axis=0), two - two.mean(axis=0)
    products = (one * two).sum(axis=1)
    spread = float(products.std(ddof=1)) / math.sqrt(len(products))
    score = 0.0 if spread == 0 else abs(float(products.mean())) / spread
    scale = float(np.sqrt((one**2).sum() * (two**2).sum())) or 1.0
    correlation = float(products.sum()) / scale
    if math.erfc(score / math.sqrt(2)) < LEAST_P:
        raise Broken(f"noise of other records is correlated by {correlation:.2f} under one secret.")
    return f"noise of other records is uncorrelated ({correlation:+.3f})"


def _other_records(table: Table) -> Table:
    """A table of the same size with other records: counts turned round, keys drawn elsewhere."""
    inner = table.require_inner()
    parts: dict[str, Any] = {
        name: None if values is None else values[::-1].copy()
        for name, values in vars(inner).items()
    }
    return _like(table, table.design, replace(inner, **parts))


def _truth(table: Table, made: Protected) -> Array:
    return np.asarray(table.published.weight if made.unit == "weight" else table.z)


def likelihood_ratio(method: Any) -> str:
    """Outcomes on tiny tables are about as likely with a record as without, or with another.

    Events are thresholds of sums of released values, and of several values at once.
    """
    if method.source != "system":
        return "not claimed"
    base = tiny_table([2, 1])
    worst = 0.0
    cases = {"added": [3, 1], "removed": [1, 1], "replaced": [1, 2]}
    here, stated = _outcomes(method, base, base.z), publish(method, base, 0).statement.privacy
    if stated is None:
        raise Broken("a method that draws from the system states no guarantee.")
    for case, counts in cases.items():
        there = _outcomes(method, tiny_table(counts), base.z)
        for one, two in ((here, there), (there, here)):
            excess = _largest_excess(one, two, *_guarantee(stated, case == "replaced"))
            worst = max(worst, excess)
            if excess > 1:
                raise Broken(f"an outcome is likelier than ε allows when a record is {case}.")
    return f"no outcome is beyond the guarantee (at most {worst:.2f} of it for certain)"


def _guarantee(privacy: PrivacyStatement, replaced: bool) -> tuple[float, float]:
    """ε and δ of the guarantee; of Gaussian noise at a δ that few draws can test."""
    if privacy.rho is not None:
        rho = privacy.rho_replace if replaced and privacy.rho_replace else privacy.rho
        return rho_to_epsilon(rho, _TESTED_DELTA), _TESTED_DELTA
    if replaced:
        return privacy.epsilon_replace, privacy.delta_replace
    return privacy.epsilon, privacy.delta


def tiny_table(counts: Sequence[int]) -> Table:
    """A table of one variable with as many categories as counts, and its total."""
    axis = Axis.flat("a", [str(k) for k in range(len(counts))])
    table = Table.from_inner(ProductDesign([axis], "a"), np.array(counts))
    return table.with_secret(SeededSecret(1, "tiny table"))


def _outcomes(method: Any, table: Table, centre: Array) -> Real:
    """Statistics of many draws: sums of released values, and the least of them, with every sign."""
    table, draws = in_unit(table, method, table.unit), SecretDraws()
    drawn = [run(method, table, draws).z - centre for _ in range(_OUTCOMES)]
    z = np.array(drawn, dtype=np.float64)
    signs = np.array(np.meshgrid(*[[-1, 0, 1]] * z.shape[1])).reshape(z.shape[1], -1)
    signs = signs[:, signs.any(axis=0)]
    signed = z[:, :, None] * signs
    least = np.where(signs == 0, np.inf, signed).min(axis=1)
    return np.hstack([signed.sum(axis=1), least])


def _largest_excess(one: Real, two: Real, epsilon: float, delta: float) -> float:
    """The largest ratio of P(E) to e^ε P'(E) + δ over threshold events, five errors apart."""
    n, factor, worst = len(one), math.exp(min(epsilon, 50.0)), 0.0
    for a, b in zip(one.T, two.T, strict=True):
        cuts = np.unique(a)
        p = np.searchsorted(np.sort(-a), -cuts, side="right") / n
        q = np.searchsorted(np.sort(-b), -cuts, side="right") / n
        least = p - 5 * np.sqrt(p * (1 - p) / n) - 15 / n
        most = q + 5 * np.sqrt(q * (1 - q) / n) + 15 / n
        worst = max(worst, float((least / (factor * most + delta)).max()))
    return worst


def sample_table(*, weights: bool = False, seed: int = 1, unit: str | None = None) -> Table:
    """A table that exercises every promise: zeros, small and large counts, the same cell twice.

    Region has a hierarchy in which one parent has a single child, so 15 published cells occur
    twice; counts run from 0 to several hundred.
    """
    regions = Hierarchy.from_dict({"All": {"north": ["n1", "n2"], "south": ["s1"]}})
    axes = [
        Axis.from_hierarchies("region", [regions]),
        Axis.flat("age", ["0-17", "18-39", "40-64", "65+"]),
        Axis.flat("sex", ["f", "m"]),
    ]
    design = ProductDesign(axes, "region*age*sex")
    counts = [0, 1, 2, 3, 4, 5, 6, 0, 7, 9, 12, 1, 17, 23, 0, 31, 2, 48, 3, 77, 0, 160, 1, 420]
    rng = stream(seed, "testing.sample_table")
    count = np.array(counts)
    weight = count * rng.uniform(25, 35, len(count)) if weights else None
    squares = None if weight is None else weight**2 / np.maximum(count, 1)
    inner = CellValues(count, weight, squares, np.zeros(len(count), dtype=np.int64))
    table = Table.from_inner(design, inner).rekeyed(rng)
    bounds = Bounds(weight=300.0, mean_weight=30.0) if weights else Bounds()
    return replace(table, data_set=DataSet("sample", bounds=bounds), unit=unit)


def publish(
    method: Method, table: Table, number: int, seed: int = 1, *, keys: str | None = None
) -> Protected:
    """The method as it publishes, for a custodian with a secret of their own for each number.

    The table's record keys are the custodian's too, unless `keys` names other records.
    """
    custodian = SeededDraws(seed, f"testing {number}")
    records = custodian if keys is None else SeededDraws(seed, keys)
    secret = custodian.table(table).secret
    fresh = records.table(in_unit(table, method, table.unit))
    return run(method, replace(fresh, secret=secret), SecretDraws())


def retabulate(table: Table, terms: Sequence[Term]) -> Table:
    """Another table of the same records: other margins, and the variables in reversed order."""
    design = table.design.require_variables("variables to tabulate by")
    other = SparseDesign(
        design.axes[::-1],
        [tuple(reversed(term)) for term in terms],
        design.inner_codes()[::-1],
        occurring=design.is_confidential,
    )
    return _like(table, other, table.require_inner())


def by_cell(release: Protected) -> dict[frozenset[tuple[str, str]], Any]:
    """Published values by the (variable, code) pairs of their cells, totals left out."""
    design = release.design
    columns = []
    for axis, (index, codes) in zip(design.axes, design.published_codes(), strict=True):
        pairs = [None if c in axis.total_codes else (axis.name, c) for c in codes]
        columns.append([pairs[k] for k in index.tolist()])
    names = (frozenset(p for p in row if p is not None) for row in zip(*columns, strict=True))
    return dict(zip(names, release.z.tolist(), strict=True))


def chi_square(drawn: Array, support: Array, probabilities: Array) -> tuple[float, int]:
    """Pearson's statistic of draws against a law, and its degrees of freedom.

    Values that are expected less than five times are taken together. A value that the law does
    not allow makes the statistic infinite.
    """
    observed = np.array([np.count_nonzero(drawn == v) for v in support], dtype=float)
    possible = probabilities > 0
    if observed[possible].sum() < len(drawn):
        return math.inf, 1
    expected = len(drawn) * probabilities
    often = expected >= FEWEST_EXPECTED
    seen = np.append(observed[often], observed[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    if len(wanted) > 1 and wanted[-1] < FEWEST_EXPECTED:
        seen = np.append(seen[:-2], seen[-2:].sum())
        wanted = np.append(wanted[:-2], wanted[-2:].sum())
    return float(((seen - wanted) ** 2 / wanted).sum()), len(wanted) - 1


def chi_square_p(statistic: float, degrees: int) -> float:
    """Probability of a statistic at least as large when the law holds."""
    return 1.0 if degrees == 0 and statistic < math.inf else float(chi2.sf(statistic, degrees))
